/*
 * The table of built-in data types, and what is the same for all types.
 *
 * An element in canonical form is little-endian and packed; complex numbers are
 * real part, then imaginary part, each with its own byte order.
 */
#include "dtype_ops.h"

#include <stddef.h>
#include <string.h>

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

/* ctx is the type's row: all but json. */
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
/* A type with a state of its own, which is told its name. */
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

int brc_dtype_no_config(const char *name, const brc_json *config, brc_error *err)
{
    int kind = brc_json_kind(config);
    if (kind == BRC_JSON_ABSENT)
        return BRC_OK;
    if (kind != BRC_JSON_OBJECT)
        return brc_fail(err, BRC_EINVAL, "the configuration of data type %s is not an object",
                        name);
    if (brc_json_count(config) > 0)
        return brc_fail(err, BRC_EINVAL,
                        "data type %s has no configuration, but \"%.80s\" is given", name,
                        brc_json_name(config, 0));
    return BRC_OK;
}

/* Copies as much as fits on one line, whole UTF-8 characters only, with "..." where it is cut. */
static void label_text(char *out, size_t room, const char *text)
{
    size_t len = strlen(text);
    int cut = len >= room;
    if (cut) {
        len = room - 4;
        while (len > 0 && ((uint8_t)text[len] & 0xC0) == 0x80)
            len--;
    }
    for (size_t i = 0; i < len; i++)
        out[i] = (uint8_t)text[i] < 0x20 || text[i] == 0x7f ? ' ' : text[i];
    memcpy(out + len, cut ? "..." : "", cut ? 4 : 1);
}

const char *brc_value_label(char out[BRC_VALUE_LABEL], const brc_json *value)
{
    const char *text;
    int truth;
    switch (brc_json_kind(value)) {
    case BRC_JSON_NULL: return "null";
    case BRC_JSON_BOOL: return brc_json_bool(value, &truth) && truth ? "true" : "false";
    case BRC_JSON_NUMBER: label_text(out, BRC_VALUE_LABEL, brc_json_literal(value)); return out;
    case BRC_JSON_STRING:
        out[0] = '"';
        if (!brc_json_text(value, &text))
            text = "\\u0000"; /* and more, which a C string cannot be */
        label_text(out + 1, BRC_VALUE_LABEL - 2, text);
        memcpy(out + strlen(out), "\"", 2);
        return out;
    case BRC_JSON_ARRAY: return "[...]";
    case BRC_JSON_OBJECT: return "{...}";
    default: return "that is absent";
    }
}

/* JSON where the text is JSON, else NULL in *out; BRC_EINVAL is no failure here. */
static int text_as_json(brc_json **out, const char *text, brc_error *err)
{
    brc_error why = BRC_ERROR_INIT;
    int rc = brc_json_parse(out, text, strlen(text), &why);
    if (rc < 0 && rc != BRC_EINVAL && err != NULL)
        *err = why;
    return rc == BRC_EINVAL ? BRC_OK : rc;
}

/* Appends what the type makes of it, or of the text as a JSON string. */
static int scan_text(const brc_dtype *type, brc_json **value, const char *text, brc_buf *out,
                     brc_error *err)
{
    int taken = brc_text_scan(type, *value, text, out, err);
    if (taken == 0)
        taken = brc_datetime_scan(type, *value, text, out, err);
    if (taken == 0)
        taken = brc_optional_scan(type, *value, text, out, err);
    if (taken != 0)
        return taken < 0 ? taken : BRC_OK;
    if (*value == NULL) {
        if (!brc_utf8_valid(text, strlen(text)))
            return brc_fail(err, BRC_EINVAL, "the value for %s is not UTF-8 text", type->name);
        *value = brc_json_new_string(text);
        if (*value == NULL)
            return brc_nomem(err);
    }
    return type->ops->parse(type, *value, out, err);
}

int brc_dtype_parse_text(const brc_dtype *type, const char *text, brc_buf *out, brc_error *err)
{
    brc_json *value = NULL;
    BRC_TRY(text_as_json(&value, text, err));
    int rc = scan_text(type, &value, text, out, err);
    brc_json_free(value);
    return rc;
}

int brc_dtype_default(const brc_dtype *type, brc_buf *out, brc_error *err)
{
    size_t len = type->item_size > 0 ? type->item_size : 4; /* no bytes: their count alone */
    BRC_TRY(brc_buf_reserve(out, len, err));
    memset(out->data + out->len, 0, len);
    out->len += len;
    return BRC_OK;
}

/* One loop a width, so that the compiler can use vectors. */
#define SWAP_LOOP(type_, swap)                                 \
    do {                                                       \
        for (size_t at = 0; at < whole; at += sizeof(type_)) { \
            type_ v;                                           \
            memcpy(&v, src + at, sizeof(v));                   \
            v = swap(v);                                       \
            memcpy(dst + at, &v, sizeof(v));                   \
        }                                                      \
    } while (0)

void brc_swap_units(uint8_t *dst, const uint8_t *src, size_t len, size_t unit)
{
    if (len == 0)
        return;
    size_t whole = unit > 1 ? len - len % unit : 0;
    if (unit == 2) {
        SWAP_LOOP(uint16_t, __builtin_bswap16);
    } else if (unit == 4) {
        SWAP_LOOP(uint32_t, __builtin_bswap32);
    } else if (unit == 8) {
        SWAP_LOOP(uint64_t, __builtin_bswap64);
    } else {
        for (size_t at = 0; at < whole; at += unit) {
            for (size_t i = 0, j = unit - 1; i <= j; i++, j--) {
                uint8_t first = src[at + i], last = src[at + j];
                dst[at + i] = last;
                dst[at + j] = first;
            }
        }
    }
    if (dst != src && whole < len)
        memcpy(dst + whole, src + whole, len - whole);
}

/* A plug-in built against an older header has a shorter table. */
#define OPS_HAVE(ops, member)                                                       \
    ((ops)->size >= offsetof(brc_dtype_ops, member) + sizeof((ops)->member) &&      \
     (ops)->member != NULL)

void brc_dtype_swap(const brc_dtype *type, uint8_t *dst, const uint8_t *src, size_t n)
{
    if (OPS_HAVE(type->ops, swap))
        type->ops->swap(type, dst, src, n);
    else
        brc_swap_units(dst, src, n * type->item_size, type->swap_unit);
}

int brc_dtype_normalizes(const brc_dtype *type)
{
    return OPS_HAVE(type->ops, normalize);
}

void brc_dtype_normalize(const brc_dtype *type, uint8_t *data, size_t n)
{
    if (brc_dtype_normalizes(type))
        type->ops->normalize(type, data, n);
}

void brc_dtype_native(const brc_dtype *type, uint8_t *data, size_t len)
{
    if (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ && type->swap_unit > 1 && type->item_size > 0)
        brc_dtype_swap(type, data, data, len / type->item_size);
}
