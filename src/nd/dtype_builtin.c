/* The table of built-in data types. */
#include "dtype_ops.h"

/* npy is NumPy's descr: byte order, kind, bytes. A bool is a byte that carries one bit. */
#define NUMBER(name_, klass_, bytes, unit, bits_, npy_, ops_)                          \
    {                                                                                  \
        .size = sizeof(brc_dtype), .name = name_, .klass = klass_, .item_size = bytes, \
        .swap_unit = unit, .bits = bits_, .npy = npy_, .ops = &ops_                    \
    }

static const brc_dtype number_types[] = {
    NUMBER("bool", BRC_CLASS_BOOL, 1, 1, 1, "|b1", brc_bool_ops),
    NUMBER("int8", BRC_CLASS_INT, 1, 1, 8, "|i1", brc_int_ops),
    NUMBER("int16", BRC_CLASS_INT, 2, 2, 16, "<i2", brc_int_ops),
    NUMBER("int32", BRC_CLASS_INT, 4, 4, 32, "<i4", brc_int_ops),
    NUMBER("int64", BRC_CLASS_INT, 8, 8, 64, "<i8", brc_int_ops),
    NUMBER("uint8", BRC_CLASS_UINT, 1, 1, 8, "|u1", brc_uint_ops),
    NUMBER("uint16", BRC_CLASS_UINT, 2, 2, 16, "<u2", brc_uint_ops),
    NUMBER("uint32", BRC_CLASS_UINT, 4, 4, 32, "<u4", brc_uint_ops),
    NUMBER("uint64", BRC_CLASS_UINT, 8, 8, 64, "<u8", brc_uint_ops),
    NUMBER("float16", BRC_CLASS_FLOAT, 2, 2, 16, "<f2", brc_float_ops),
    NUMBER("float32", BRC_CLASS_FLOAT, 4, 4, 32, "<f4", brc_float_ops),
    NUMBER("float64", BRC_CLASS_FLOAT, 8, 8, 64, "<f8", brc_float_ops),
    NUMBER("complex64", BRC_CLASS_COMPLEX, 8, 4, 64, "<c8", brc_complex_ops),
    NUMBER("complex128", BRC_CLASS_COMPLEX, 16, 8, 128, "<c16", brc_complex_ops),
    NUMBER("complex_float16", BRC_CLASS_COMPLEX, 4, 2, 32, NULL, brc_complex_ops),
    NUMBER("complex_float32", BRC_CLASS_COMPLEX, 8, 4, 64, "<c8", brc_complex_ops),
    NUMBER("complex_float64", BRC_CLASS_COMPLEX, 16, 8, 128, "<c16", brc_complex_ops),
    NUMBER("int2", BRC_CLASS_INT, 1, 1, 2, NULL, brc_sub_int_ops),
    NUMBER("int4", BRC_CLASS_INT, 1, 1, 4, NULL, brc_sub_int_ops),
    NUMBER("uint2", BRC_CLASS_UINT, 1, 1, 2, NULL, brc_sub_uint_ops),
    NUMBER("uint4", BRC_CLASS_UINT, 1, 1, 4, NULL, brc_sub_uint_ops),
};

/* ctx is the type's row, which has every field except json. */
static int row_open(void *ctx, brc_dtype *out, const char *name, const brc_json *config,
                       brc_error *err)
{
    const brc_dtype *row = ctx;
    BRC_TRY(brc_dtype_no_config(name, config, err));
    *out = *row;
    return BRC_OK;
}

#define ROW(row, name_)                                                                          \
    {                                                                                            \
        .size = sizeof(brc_dtype_spec), .name = name_, .ctx = (void *)&(row), .open = row_open   \
    }
/* The row of a type with a state of its own; ctx is the type's name. */
#define OWN(name_, family)                                                                       \
    {                                                                                            \
        .size = sizeof(brc_dtype_spec), .name = name_, .ctx = (void *)(name_),                   \
        .open = brc_##family##_open, .close = brc_##family##_close                               \
    }

static const brc_dtype_spec builtin_dtypes[] = {
    ROW(number_types[0], "bool"),
    ROW(number_types[1], "int8"),
    ROW(number_types[2], "int16"),
    ROW(number_types[3], "int32"),
    ROW(number_types[4], "int64"),
    ROW(number_types[5], "uint8"),
    ROW(number_types[6], "uint16"),
    ROW(number_types[7], "uint32"),
    ROW(number_types[8], "uint64"),
    ROW(number_types[9], "float16"),
    ROW(number_types[10], "float32"),
    ROW(number_types[11], "float64"),
    ROW(number_types[12], "complex64"),
    ROW(number_types[13], "complex128"),
    ROW(number_types[14], "complex_float16"),
    ROW(number_types[15], "complex_float32"),
    ROW(number_types[16], "complex_float64"),
    ROW(number_types[17], "int2"),
    ROW(number_types[18], "int4"),
    ROW(number_types[19], "uint2"),
    ROW(number_types[20], "uint4"),
    ROW(brc_small_floats[0], "bfloat16"),
    ROW(brc_small_floats[1], "float8_e3m4"),
    ROW(brc_small_floats[2], "float8_e4m3"),
    ROW(brc_small_floats[3], "float8_e4m3b11fnuz"),
    ROW(brc_small_floats[4], "float8_e4m3fnuz"),
    ROW(brc_small_floats[5], "float8_e5m2"),
    ROW(brc_small_floats[6], "float8_e5m2fnuz"),
    ROW(brc_small_floats[7], "float8_e8m0fnu"),
    ROW(brc_small_floats[8], "float6_e2m3fn"),
    ROW(brc_small_floats[9], "float6_e3m2fn"),
    ROW(brc_small_floats[10], "float4_e2m1fn"),
    ROW(brc_small_floats[11], "complex_bfloat16"),
    ROW(brc_small_floats[12], "complex_float8_e3m4"),
    ROW(brc_small_floats[13], "complex_float8_e4m3"),
    ROW(brc_small_floats[14], "complex_float8_e4m3b11fnuz"),
    ROW(brc_small_floats[15], "complex_float8_e4m3fnuz"),
    ROW(brc_small_floats[16], "complex_float8_e5m2"),
    ROW(brc_small_floats[17], "complex_float8_e5m2fnuz"),
    ROW(brc_small_floats[18], "complex_float8_e8m0fnu"),
    ROW(brc_small_floats[19], "complex_float6_e2m3fn"),
    ROW(brc_small_floats[20], "complex_float6_e3m2fn"),
    ROW(brc_small_floats[21], "complex_float4_e2m1fn"),
    ROW(brc_small_floats[22], "float8_e4m3fn"),
    ROW(brc_text_types[0], "string"),
    ROW(brc_text_types[1], "bytes"),
    ROW(brc_text_types[2], "variable_length_bytes"),
    ROW(brc_text_types[3], "binary"),
    OWN("fixed_length_utf32", fixed),
    OWN("null_terminated_bytes", fixed),
    OWN("raw_bytes", fixed),
    OWN("numpy.datetime64", time),
    OWN("numpy.timedelta64", time),
    OWN("struct", struct),
    OWN("structured", struct),
    OWN("zarrs.optional", optional),
    { .size = sizeof(brc_dtype_spec),
      .name = "r<bits>",
      .match = brc_raw_match,
      .open = brc_raw_open,
      .close = brc_raw_close },
};

const brc_dtype_spec *brc_dtype_builtins(size_t *n)
{
    *n = sizeof(builtin_dtypes) / sizeof(builtin_dtypes[0]);
    return builtin_dtypes;
}
