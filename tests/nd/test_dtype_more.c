/* Integers of less than a byte, complex numbers under the registry's names, and what
 * all types have in common. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/base/buf.h"
#include "../kit/dtype_kit.h"
#include "../kit/suite.h"

TEST_SUITE(dtype_more);

static const struct {
    const char *name;
    int bits, low, high;
} sub_bytes[] = {
    { "int2", 2, -2, 1 },
    { "int4", 4, -8, 7 },
    { "uint2", 2, 0, 3 },
    { "uint4", 4, 0, 15 },
};

CASE("all", .setup = dtype_kit_setup, .teardown = dtype_kit_teardown);

LOOP(D2_T56_sub_byte_integers, 0, 4)
{
    brc_dtype *type = kit_open(sub_bytes[_i].name);
    int low = sub_bytes[_i].low, high = sub_bytes[_i].high;
    ck_assert_uint_eq(type->item_size, 1);
    ck_assert_uint_eq(type->swap_unit, 1);
    ck_assert_int_eq((int)type->bits, sub_bytes[_i].bits);
    ck_assert_int_eq(type->klass, low < 0 ? BRC_CLASS_INT : BRC_CLASS_UINT);
    ck_assert_int_eq(brc_dtype_normalize(type, NULL, 0), 1);
    for (int value = low - 3; value <= high + 3; value++) {
        char json[16];
        brc_buf out = BRC_BUF_INIT;
        brc_error err = BRC_ERROR_INIT;
        snprintf(json, sizeof(json), "%d", value);
        int rc = kit_parse(type, json, &out, &err);
        if (value < low || value > high) {
            ck_assert_int_eq(rc, BRC_EINVAL);
            ck_assert_msg(strstr(err.message, "does not fit") != NULL, "%s", err.message);
            continue;
        }
        ck_assert_int_eq(rc, BRC_OK);
        ck_assert_uint_eq(out.len, 1);
        ck_assert_uint_eq(out.data[0], (uint8_t)value);
        ck_assert(type->ops->number(type, out.data) == value);
        char *text = kit_print(type, out.data, 1, BRC_PRINT_FILL);
        ck_assert_str_eq(text, json);
        free(text);
        brc_buf_dispose(&out);
    }
    brc_dtype_free(type);
}

/* Whatever lies above the value, all bytes with the same value become the same. */
LOOP(T56_upper_bits_are_set_right, 0, 4)
{
    brc_dtype *type = kit_open(sub_bytes[_i].name);
    uint8_t data[256];
    int count = 1 << sub_bytes[_i].bits;
    for (int i = 0; i < 256; i++)
        data[i] = (uint8_t)i;
    brc_dtype_normalize(type, data, 256);
    for (int i = 0; i < 256; i++) {
        int value = i % count;
        if (value > sub_bytes[_i].high)
            value -= count;
        ck_assert_int_eq(data[i], (uint8_t)value);
    }
    brc_dtype_free(type);
}

static void check_normalized(const char *name, const char *from, const char *to, size_t n)
{
    brc_dtype *type = kit_open(name);
    uint8_t data[16];
    memcpy(data, from, n * type->item_size);
    brc_dtype_normalize(type, data, n);
    ck_assert_mem_eq(data, to, n * type->item_size);
    brc_dtype_free(type);
}

TEST(T56_other_types_are_set_right)
{
    check_normalized("float6_e2m3fn", "\xff\x40", "\x3f\x00", 2);
    check_normalized("float4_e2m1fn", "\xff\x18", "\x0f\x08", 2);
    check_normalized("complex_float4_e2m1fn", "\xff\x18\x01\xf0", "\x0f\x08\x01\x00", 2);
    check_normalized("float8_e4m3", "\xff\x18", "\xff\x18", 2);
    check_normalized("{\"name\":\"struct\",\"configuration\":{\"fields\":["
                     "{\"name\":\"a\",\"data_type\":\"int4\"},"
                     "{\"name\":\"b\",\"data_type\":\"int8\"}]}}",
                     "\x0f\x0f\x18\x18", "\xff\x0f\xf8\x18", 2);
    static const char *const none[] = { "bool", "int8", "uint64", "bfloat16", "r16", "complex64" };
    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
        brc_dtype *type = kit_open(none[i]);
        ck_assert_int_eq(brc_dtype_normalize(type, NULL, 0), 0);
        brc_dtype_free(type);
    }
}

TEST(T56_bytes_decodes_to_canonical_elements)
{
    static const char json[] = "[{\"name\":\"bytes\"}]";
    brc_dtype *type = kit_open("int4");
    brc_json *codecs = NULL;
    brc_chain *chain = NULL;
    brc_scratch *scratch = NULL;
    brc_buf out = BRC_BUF_INIT;
    uint64_t n = 4;
    ck_assert_int_eq(brc_json_parse(&codecs, json, strlen(json), 0, NULL), BRC_OK);
    ck_assert_int_eq(brc_chain_open(&chain, dtype_kit_registry(), codecs, 1, &n, type,
                                    (brc_span){ NULL, 0 }, NULL),
                     BRC_OK);
    ck_assert_int_eq(brc_scratch_new(&scratch, NULL), BRC_OK);
    brc_span stored = { (const uint8_t *)"\x08\xf8\x07\x17", 4 };
    ck_assert_int_eq(brc_chain_decode(chain, scratch, stored, NULL, &out, NULL), BRC_OK);
    ck_assert_mem_eq(out.data, "\xf8\xf8\x07\x07", 4);
    brc_buf_dispose(&out);
    brc_chain_free(chain);
    brc_scratch_free(scratch);
    brc_json_free(codecs);
    brc_dtype_free(type);
}

TEST(complex_numbers_have_two_names)
{
    static const struct {
        const char *name, *npy;
        size_t size, unit;
    } rows[] = {
        { "complex_float16", NULL, 4, 2 },
        { "complex_float32", "<c8", 8, 4 },
        { "complex_float64", "<c16", 16, 8 },
    };
    for (int i = 0; i < 3; i++) {
        brc_dtype *type = kit_open(rows[i].name);
        char json[40];
        snprintf(json, sizeof(json), "\"%s\"", rows[i].name);
        ck_assert_str_eq(type->name, rows[i].name);
        ck_assert_str_eq(type->json, json);
        ck_assert_uint_eq(type->item_size, rows[i].size);
        ck_assert_uint_eq(type->swap_unit, rows[i].unit);
        ck_assert_int_eq(type->npy == NULL, rows[i].npy == NULL);
        ck_assert(type->npy == NULL || strcmp(type->npy, rows[i].npy) == 0);
        brc_dtype_free(type);
    }
    kit_check("complex_float16", "[1,-2.5]", "003c00c1", "[1.0,-2.5]", NULL, "(1-2.5j)");
    kit_check("complex_float32", "[0,\"NaN\"]", "000000000000c07f", "[0.0,\"NaN\"]", NULL, "nanj");
    kit_refuses("complex_float16", "[70000,0]", "too large for complex_float16");
}

TEST(D5_every_name_is_known_and_taken)
{
    static const char *const names[] = {
        "bool", "int2", "int4", "int8", "int16", "int32", "int64", "uint2", "uint4", "uint8",
        "uint16", "uint32", "uint64", "float16", "float32", "float64", "bfloat16", "float8_e3m4",
        "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz",
        "float8_e8m0fnu", "float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn", "float8_e4m3fn",
        "complex64",
        "complex128", "complex_float16", "complex_float32", "complex_float64", "complex_bfloat16",
        "complex_float8_e3m4", "complex_float8_e4m3", "complex_float8_e4m3b11fnuz",
        "complex_float8_e4m3fnuz", "complex_float8_e5m2", "complex_float8_e5m2fnuz",
        "complex_float8_e8m0fnu", "complex_float6_e2m3fn", "complex_float6_e3m2fn",
        "complex_float4_e2m1fn", "r8", "r24", "string", "bytes", "variable_length_bytes", "binary",
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        brc_error err = BRC_ERROR_INIT;
        char json[120];
        brc_dtype *type = kit_open(names[i]);
        ck_assert_str_eq(type->name, names[i]);
        snprintf(json, sizeof(json), "\"%s\"", names[i]);
        ck_assert_str_eq(type->json, json);
        ck_assert_ptr_eq(type->registry, dtype_kit_registry());
        brc_dtype_free(type);
        snprintf(json, sizeof(json), "{\"name\":\"%s\",\"configuration\":{\"unit\":\"s\"}}",
                 names[i]);
        ck_assert_int_eq(kit_open_code(json, &err), BRC_EINVAL);
        snprintf(json, sizeof(json), "{\"name\":\"%s\",\"notconfiguration\":{}}", names[i]);
        ck_assert_int_eq(kit_open_code(json, &err), BRC_EINVAL);
    }
    static const char *const unknown[] = { "char",   "float8_e4m3fnu", "complexf32", "int3",
                                           "Int4",   "float8",         "datetime64", "raw",
                                           "uint17", "optional",       "" };
    for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++) {
        brc_error err = BRC_ERROR_INIT;
        ck_assert_msg(kit_open_code(unknown[i], &err) == BRC_EUNSUPPORTED, "%s", unknown[i]);
    }
}
