/* The built-in data types: their table, fill values to bits and back, text. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/base/buf.h"
#include "../../src/nd/dtype.h"
#include "../kit/suite.h"

TEST_SUITE(dtype);

/* ---- help --------------------------------------------------------------------- */

static int dtype_spec_takes(const brc_dtype_spec *spec, const char *name)
{
    return spec->match != NULL ? spec->match(spec->ctx, name) : strcmp(spec->name, name) == 0;
}

static const brc_dtype_spec *dtype_spec_of(const char *name)
{
    size_t n;
    const brc_dtype_spec *specs = brc_dtype_builtins(&n);
    for (size_t i = 0; i < n; i++)
        if (dtype_spec_takes(&specs[i], name))
            return &specs[i];
    return NULL;
}

static brc_dtype opened_dtype(const char *name)
{
    brc_dtype type = { 0 };
    brc_error err = BRC_ERROR_INIT;
    const brc_dtype_spec *spec = dtype_spec_of(name);
    ck_assert_msg(spec != NULL, "%s is not known", name);
    ck_assert_msg(spec->open(spec->ctx, &type, name, NULL, &err) == 0, "%s: %s", name, err.message);
    return type;
}

static void closed_dtype(brc_dtype *type)
{
    const brc_dtype_spec *spec = dtype_spec_of(type->name);
    if (spec->close != NULL)
        spec->close(spec->ctx, type);
}

/* The element's bits, the most significant byte first for each unit. */
static void element_hex(char *out, const brc_dtype *type, const uint8_t *element)
{
    for (size_t at = 0; at < type->item_size; at += type->swap_unit)
        for (size_t i = type->swap_unit; i-- > 0;)
            out += snprintf(out, 3, "%02x", element[at + i]);
}

static char *printed_element(const brc_dtype *type, const uint8_t *element, int how)
{
    brc_buf out = BRC_BUF_INIT;
    char *text = NULL;
    ck_assert_int_eq(type->ops->print(type, element, type->item_size, how, &out, NULL), 0);
    ck_assert_int_eq(brc_buf_take_text(&out, &text, NULL), 0);
    return text;
}

static int parse_json_fill(const brc_dtype *type, const char *json, brc_buf *out, brc_error *err)
{
    brc_json *value = NULL;
    ck_assert_msg(brc_json_parse(&value, json, strlen(json), 0, err) == 0, "%s", json);
    int rc = type->ops->parse(type, value, out, err);
    brc_json_free(value);
    return rc;
}

CASE("types");

/* ---- the table ------------------------------------------------------------------ */

TEST(seed_D1_builtin_types_have_their_sizes)
{
    static const struct {
        const char *name, *npy;
        int klass;
        size_t item_size, swap_unit;
        unsigned bits;
    } rows[] = {
        { "bool", "|b1", BRC_CLASS_BOOL, 1, 1, 1 },
        { "int8", "|i1", BRC_CLASS_INT, 1, 1, 8 },
        { "int16", "<i2", BRC_CLASS_INT, 2, 2, 16 },
        { "int32", "<i4", BRC_CLASS_INT, 4, 4, 32 },
        { "int64", "<i8", BRC_CLASS_INT, 8, 8, 64 },
        { "uint8", "|u1", BRC_CLASS_UINT, 1, 1, 8 },
        { "uint16", "<u2", BRC_CLASS_UINT, 2, 2, 16 },
        { "uint32", "<u4", BRC_CLASS_UINT, 4, 4, 32 },
        { "uint64", "<u8", BRC_CLASS_UINT, 8, 8, 64 },
        { "float16", "<f2", BRC_CLASS_FLOAT, 2, 2, 16 },
        { "float32", "<f4", BRC_CLASS_FLOAT, 4, 4, 32 },
        { "float64", "<f8", BRC_CLASS_FLOAT, 8, 8, 64 },
        { "complex64", "<c8", BRC_CLASS_COMPLEX, 8, 4, 64 },
        { "complex128", "<c16", BRC_CLASS_COMPLEX, 16, 8, 128 },
        { "r24", "|V3", BRC_CLASS_RAW, 3, 1, 24 },
        { "r128", "|V16", BRC_CLASS_RAW, 16, 1, 128 },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        brc_dtype type = opened_dtype(rows[i].name);
        ck_assert_str_eq(type.name, rows[i].name);
        ck_assert_str_eq(type.npy, rows[i].npy);
        ck_assert_int_eq(type.klass, rows[i].klass);
        ck_assert_uint_eq(type.item_size, rows[i].item_size);
        ck_assert_uint_eq(type.swap_unit, rows[i].swap_unit);
        ck_assert_uint_eq(type.bits, rows[i].bits);
        ck_assert_uint_eq(type.size, sizeof(brc_dtype));
        ck_assert_int_eq(type.ops->number != NULL,
                         type.klass != BRC_CLASS_COMPLEX && type.klass != BRC_CLASS_RAW);
        closed_dtype(&type);
    }
}

TEST(raw_names_that_are_wrong_are_refused)
{
    static const char *const unknown[] = { "r", "ra", "r8a", "r-8", "r 8", "R8", "raw", "r<bits>" };
    static const char *const refused[] = { "r0",
                                           "r5",
                                           "r08",
                                           "r00",
                                           "r12",
                                           "r4194312",
                                           "r18446744073709551624",
                                           "r340282366920938463463374607" };
    for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++)
        ck_assert_msg(dtype_spec_of(unknown[i]) == NULL, "%s", unknown[i]);
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        brc_dtype type = { 0 };
        brc_error err = BRC_ERROR_INIT;
        const brc_dtype_spec *spec = dtype_spec_of(refused[i]);
        ck_assert_msg(spec != NULL, "%s", refused[i]);
        ck_assert_msg(spec->open(spec->ctx, &type, refused[i], NULL, &err) < 0, "%s", refused[i]);
        ck_assert_msg(strstr(err.message, refused[i]) != NULL, "%s", err.message);
    }
}

TEST(configurations_are_refused_where_there_are_none)
{
    static const char *const names[] = { "float32", "r16" };
    for (size_t i = 0; i < 2; i++) {
        brc_dtype type = { 0 };
        brc_json *config = NULL;
        brc_error err = BRC_ERROR_INIT;
        const brc_dtype_spec *spec = dtype_spec_of(names[i]);
        ck_assert_int_eq(brc_json_parse(&config, "{\"unit\":1}", 10, 0, NULL), 0);
        ck_assert_int_eq(spec->open(spec->ctx, &type, names[i], config, &err), BRC_EINVAL);
        ck_assert_msg(strstr(err.message, "unit") != NULL, "%s", err.message);
        brc_json_free(config);
        ck_assert_int_eq(brc_json_parse(&config, "{}", 2, 0, NULL), 0);
        ck_assert_int_eq(spec->open(spec->ctx, &type, names[i], config, NULL), 0);
        closed_dtype(&type);
        brc_json_free(config);
    }
}

/* ---- fill values ------------------------------------------------------------------ */

static const struct {
    const char *type, *json, *hex, *fill, *plain, *text;
} good_fills[] = {
    /* type, JSON, bits, as fill_value, as JSON, as text */
    { "bool", "true", "01", "true", "true", "True" },
    { "bool", "false", "00", "false", "false", "False" },
    { "int8", "-128", "80", "-128", "-128", "-128" },
    { "int8", "127", "7f", "127", "127", "127" },
    { "int8", "-0", "00", "0", "0", "0" },
    { "int16", "1.5e1", "000f", "15", "15", "15" },
    { "int16", "0.5e1", "0005", "5", "5", "5" },
    { "int32", "100.0", "00000064", "100", "100", "100" },
    { "int32", "1e3", "000003e8", "1000", "1000", "1000" },
    { "int32", "-2147483648", "80000000", "-2147483648", "-2147483648", "-2147483648" },
    { "int32", "0e99999999999999999999", "00000000", "0", "0", "0" },
    { "int64", "-9223372036854775808", "8000000000000000", "-9223372036854775808",
      "-9223372036854775808", "-9223372036854775808" },
    { "int64", "9223372036854775807", "7fffffffffffffff", "9223372036854775807",
      "9223372036854775807", "9223372036854775807" },
    { "int64", "9007199254740993", "0020000000000001", "9007199254740993", "9007199254740993",
      "9007199254740993" },
    { "int64", "9007199254740992.0", "0020000000000000", "9007199254740992", "9007199254740992",
      "9007199254740992" },
    { "uint8", "255", "ff", "255", "255", "255" },
    { "uint8", "-0", "00", "0", "0", "0" },
    { "uint64", "18446744073709551615", "ffffffffffffffff", "18446744073709551615",
      "18446744073709551615", "18446744073709551615" },
    { "float16", "1.0", "3c00", "1.0", "1.0", "1.0" },
    { "float16", "65504", "7bff", "65500.0", "65500.0", "65500.0" },
    { "float16", "6e-8", "0001", "6e-08", "6e-08", "6e-08" },
    { "float16", "\"NaN\"", "7e00", "\"NaN\"", "\"NaN\"", "nan" },
    { "float16", "\"0x7C01\"", "7c01", "\"0x7c01\"", "\"NaN\"", "nan" },
    { "float32", "1", "3f800000", "1.0", "1.0", "1.0" },
    { "float32", "\"0x3f800000\"", "3f800000", "1.0", "1.0", "1.0" },
    { "float32", "0.1", "3dcccccd", "0.1", "0.1", "0.1" },
    { "float32", "-0", "80000000", "-0.0", "-0.0", "-0.0" },
    { "float32", "-0.0", "80000000", "-0.0", "-0.0", "-0.0" },
    { "float32", "0e5", "00000000", "0.0", "0.0", "0.0" },
    { "float32", "1e-60", "00000000", "0.0", "0.0", "0.0" },
    { "float32", "1e-45", "00000001", "1e-45", "1e-45", "1e-45" },
    { "float32", "3.4028235e38", "7f7fffff", "3.4028235e+38", "3.4028235e+38", "3.4028235e+38" },
    { "float32", "16777216", "4b800000", "16777216.0", "16777216.0", "16777216.0" },
    { "float32", "16777217.0000000001", "4b800001", "16777218.0", "16777218.0", "16777218.0" },
    { "float32", "16777217", "4b800000", "16777216.0", "16777216.0", "16777216.0" },
    { "float32", "\"NaN\"", "7fc00000", "\"NaN\"", "\"NaN\"", "nan" },
    { "float32", "\"Infinity\"", "7f800000", "\"Infinity\"", "\"Infinity\"", "inf" },
    { "float32", "\"+Infinity\"", "7f800000", "\"Infinity\"", "\"Infinity\"", "inf" },
    { "float32", "\"-Infinity\"", "ff800000", "\"-Infinity\"", "\"-Infinity\"", "-inf" },
    { "float32", "\"0x7fc00001\"", "7fc00001", "\"0x7fc00001\"", "\"NaN\"", "nan" },
    { "float32", "\"0x7f800001\"", "7f800001", "\"0x7f800001\"", "\"NaN\"", "nan" },
    { "float32", "\"0xFFC00000\"", "ffc00000", "\"0xffc00000\"", "\"NaN\"", "nan" },
    { "float64", "0.1", "3fb999999999999a", "0.1", "0.1", "0.1" },
    { "float64", "1e16", "4341c37937e08000", "1e+16", "1e+16", "1e+16" },
    { "float64", "1e15", "430c6bf526340000", "1000000000000000.0", "1000000000000000.0",
      "1000000000000000.0" },
    { "float64", "0.0001", "3f1a36e2eb1c432d", "0.0001", "0.0001", "0.0001" },
    { "float64", "0.00001", "3ee4f8b588e368f1", "1e-05", "1e-05", "1e-05" },
    { "float64", "123456.75", "40fe240c00000000", "123456.75", "123456.75", "123456.75" },
    { "float64", "5e-324", "0000000000000001", "5e-324", "5e-324", "5e-324" },
    { "float64", "2.2250738585072014e-308", "0010000000000000", "2.2250738585072014e-308",
      "2.2250738585072014e-308", "2.2250738585072014e-308" },
    { "float64", "5.684341886080802e-14", "3d30000000000000", "5.684341886080802e-14",
      "5.684341886080802e-14", "5.684341886080802e-14" },
    { "float64", "1.7976931348623157e308", "7fefffffffffffff", "1.7976931348623157e+308",
      "1.7976931348623157e+308", "1.7976931348623157e+308" },
    { "float64", "\"NaN\"", "7ff8000000000000", "\"NaN\"", "\"NaN\"", "nan" },
    { "float64", "\"0x7ff0000000000001\"", "7ff0000000000001", "\"0x7ff0000000000001\"", "\"NaN\"",
      "nan" },
    { "complex64", "[1, -2.5]", "3f800000c0200000", "[1.0,-2.5]", "[1.0,-2.5]", "(1-2.5j)" },
    { "complex64", "[0, 1]", "000000003f800000", "[0.0,1.0]", "[0.0,1.0]", "1j" },
    { "complex64", "[\"0x7f800001\", \"-Infinity\"]", "7f800001ff800000",
      "[\"0x7f800001\",\"-Infinity\"]", "[\"NaN\",\"-Infinity\"]", "(nan-infj)" },
    { "complex128", "[-0.0, \"NaN\"]", "80000000000000007ff8000000000000", "[-0.0,\"NaN\"]",
      "[-0.0,\"NaN\"]", "(-0+nanj)" },
    { "complex128", "[1, 2]", "3ff00000000000004000000000000000", "[1.0,2.0]", "[1.0,2.0]",
      "(1+2j)" },
    { "r8", "[0]", "00", "[0]", "[0]", "\\x00" },
    { "r16", "[1, 255]", "01ff", "[1,255]", "[1,255]", "\\x01\\xff" },
    { "r16", "\"Af8=\"", "01ff", "[1,255]", "[1,255]", "\\x01\\xff" },
    { "r24", "\"AQID\"", "010203", "[1,2,3]", "[1,2,3]", "\\x01\\x02\\x03" },
    { "r32", "\"/+8BAg==\"", "ffef0102", "[255,239,1,2]", "[255,239,1,2]", "\\xff\\xef\\x01\\x02" },
};

static void fill_round_trips(const brc_dtype *type, const uint8_t *element)
{
    brc_buf again = BRC_BUF_INIT;
    char *fill = printed_element(type, element, BRC_PRINT_FILL);
    ck_assert_msg(parse_json_fill(type, fill, &again, NULL) == 0, "%s %s", type->name, fill);
    ck_assert_uint_eq(again.len, type->item_size);
    ck_assert_msg(memcmp(again.data, element, type->item_size) == 0, "%s %s", type->name, fill);
    free(fill);
    brc_buf_dispose(&again);
}

TEST(D7_fill_values_keep_their_bits)
{
    for (size_t i = 0; i < sizeof(good_fills) / sizeof(good_fills[0]); i++) {
        brc_dtype type = opened_dtype(good_fills[i].type);
        brc_error err = BRC_ERROR_INIT;
        brc_buf out = BRC_BUF_INIT;
        char hex[64];
        ck_assert_int_eq(brc_buf_byte(&out, 0xaa, NULL), 0); /* parsing appends */
        ck_assert_msg(parse_json_fill(&type, good_fills[i].json, &out, &err) == 0, "%s: %s",
                      good_fills[i].json, err.message);
        ck_assert_uint_eq(out.len, 1 + type.item_size);
        element_hex(hex, &type, out.data + 1);
        ck_assert_msg(strcmp(hex, good_fills[i].hex) == 0, "%s %s: %s", type.name,
                      good_fills[i].json, hex);
        const char *expected[] = { good_fills[i].fill, good_fills[i].plain, good_fills[i].text };
        for (int how = BRC_PRINT_FILL; how <= BRC_PRINT_TEXT; how++) {
            char *text = printed_element(&type, out.data + 1, how);
            ck_assert_str_eq(text, expected[how]);
            free(text);
        }
        fill_round_trips(&type, out.data + 1);
        brc_buf_dispose(&out);
        closed_dtype(&type);
    }
}

TEST(D7_wrong_fill_values_are_refused)
{
    static const struct {
        const char *type, *json, *says;
    } bad[] = {
        { "bool", "0", "fill value 0 does not fit bool (true or false)" },
        { "bool", "1", "bool" },
        { "bool", "\"true\"", "fill value \"true\" does not fit bool (true or false)" },
        { "bool", "null", "fill value null" },
        { "int8", "300", "fill value 300 does not fit int8 (-128 to 127)" },
        { "int8", "128", "fill value 128 does not fit int8 (-128 to 127)" },
        { "int8", "-129", "fill value -129 does not fit int8 (-128 to 127)" },
        { "int8", "1.5", "fill value 1.5 is not an integer, as int8 needs" },
        { "int8", "1e-1", "not an integer" },
        { "int8", "1e400", "fill value 1e400 does not fit int8" },
        { "int8", "1e99999999999999999999", "does not fit int8" },
        { "int8", "1e-99999999999999999999", "not an integer" },
        { "int8", "\"0\"", "fill value \"0\" is not a number, as int8 needs" },
        { "int8", "false", "fill value false is not a number" },
        { "int8", "null", "fill value null is not a number" },
        { "int8", "[1]", "fill value [...] is not a number" },
        { "uint8", "-1", "fill value -1 does not fit uint8 (0 to 255)" },
        { "uint8", "256", "(0 to 255)" },
        { "int64", "9223372036854775808", "(-9223372036854775808 to 9223372036854775807)" },
        { "int64", "-9223372036854775809", "does not fit int64" },
        { "int64", "9007199254740994.0", "above 2^53" },
        { "int64", "1e17", "fill value 1e17 is above 2^53: write it for int64 with plain digits" },
        { "uint64", "18446744073709551616", "(0 to 18446744073709551615)" },
        { "uint64", "99999999999999999999", "does not fit uint64" },
        { "float16", "65520", "fill value 65520 is too large for float16" },
        { "float16", "\"0x7fc00000\"", "0x and 4 hex digits" },
        { "float32", "1e39", "fill value 1e39 is too large for float32" },
        { "float32", "-1e39", "too large" },
        { "float32", "3.4028236e38", "too large" },
        { "float32", "true", "fill value true does not fit float32" },
        { "float32", "null", "fill value null does not fit float32" },
        { "float32", "\"1.5\"", "fill value \"1.5\" does not fit float32" },
        { "float32", "\"nan\"", "\"nan\"" },
        { "float32", "\"inf\"", "\"inf\"" },
        { "float32", "\"0x\"", "fill value \"0x\" for float32 must be 0x and 8 hex digits" },
        { "float32", "\"0xg\"", "8 hex digits" },
        { "float32", "\"0x3f80000g\"", "8 hex digits" },
        { "float32", "\"0x3f8000001\"", "8 hex digits" },
        { "float32", "\"0x0\"", "8 hex digits" },
        { "float32", "\"0x3ff0000000000000\"", "8 hex digits" },
        { "float32", "\"a\\u0000b\"", "float32" },
        { "float64", "1e309", "too large for float64" },
        { "float64", "[1]", "[...]" },
        { "complex64", "1", "fill value 1 does not fit complex64" },
        { "complex64", "[1]", "fill value for complex64 has 1 parts, not 2" },
        { "complex64", "[1,2,3]", "3 parts" },
        { "complex64", "[1,\"x\"]", "\"x\"" },
        { "complex64", "[1,1e39]", "too large for complex64" },
        { "complex128", "{\"re\":1}", "{...}" },
        { "r16", "[1,2,3]", "fill value [...] does not fit r16 (2 integers from 0 to 255" },
        { "r16", "[1]", "r16" },
        { "r16", "[1,256]", "r16" },
        { "r16", "[1,-1]", "r16" },
        { "r16", "[1,1.0]", "r16" },
        { "r16", "[1,\"1\"]", "r16" },
        { "r16", "[1,[2]]", "r16" },
        { "r16", "\"Af8\"", "base64 of 2 bytes" },
        { "r16", "\"Af9=\"", "base64 of 2 bytes" },
        { "r16", "\"Af=8\"", "base64 of 2 bytes" },
        { "r16", "\"AQID\"", "base64 of 2 bytes" },
        { "r16", "\"A_8=\"", "base64 of 2 bytes" },
        { "r16", "\"A\\u0000==\"", "base64 of 2 bytes" },
        { "r16", "null", "fill value null" },
        { "r16", "258", "fill value 258" },
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        brc_dtype type = opened_dtype(bad[i].type);
        brc_error err = BRC_ERROR_INIT;
        brc_buf out = BRC_BUF_INIT;
        ck_assert_msg(parse_json_fill(&type, bad[i].json, &out, &err) == BRC_EINVAL, "%s %s",
                      bad[i].type, bad[i].json);
        ck_assert_msg(strstr(err.message, bad[i].says) != NULL, "%s %s: %s", bad[i].type,
                      bad[i].json, err.message);
        ck_assert_uint_eq(out.len, 0);
        brc_buf_dispose(&out);
        closed_dtype(&type);
    }
}

TEST(long_values_are_cut_in_errors)
{
    brc_dtype type = opened_dtype("int8");
    brc_error err = BRC_ERROR_INIT;
    brc_buf out = BRC_BUF_INIT;
    char text[3008] = "\"";
    for (size_t i = 1; i < 3000; i += 2)
        memcpy(text + i, "\xc3\xa9\"", 4);
    ck_assert_int_eq(parse_json_fill(&type, text, &out, &err), BRC_EINVAL);
    ck_assert_uint_lt(strlen(err.message), 120);
    ck_assert(brc_utf8_valid(err.message, strlen(err.message)));
    memset(text, '9', 3000);
    text[3000] = '\0';
    ck_assert_int_eq(parse_json_fill(&type, text, &out, &err), BRC_EINVAL);
    ck_assert(strstr(err.message, "999... does not fit int8") != NULL);
}

TEST(text_that_people_type_is_json_or_a_string)
{
    static const struct {
        const char *type, *text, *hex;
    } rows[] = {
        { "float32", "NaN", "7fc00000" },
        { "float32", "-Infinity", "ff800000" },
        { "float32", "\"NaN\"", "7fc00000" },
        { "float32", " 1.5 ", "3fc00000" },
        { "float32", "0x7f800001", "7f800001" },
        { "bool", "true", "01" },
        { "complex64", "[1, 2]", "3f80000040000000" },
        { "r16", "[1, 2]", "0102" },
        { "r16", "Af8=", "01ff" },
        { "int8", "-5", "fb" },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        brc_dtype type = opened_dtype(rows[i].type);
        brc_error err = BRC_ERROR_INIT;
        brc_buf out = BRC_BUF_INIT;
        char hex[64];
        ck_assert_msg(brc_dtype_parse_text(&type, rows[i].text, &out, &err) == 0, "%s",
                      err.message);
        element_hex(hex, &type, out.data);
        ck_assert_str_eq(hex, rows[i].hex);
        brc_buf_dispose(&out);
        closed_dtype(&type);
    }
    brc_dtype type = opened_dtype("int8");
    brc_buf out = BRC_BUF_INIT;
    brc_error err = BRC_ERROR_INIT;
    static const char *const bad[] = { "", "five", "1.5", "\xff", "NaN" };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        ck_assert_msg(brc_dtype_parse_text(&type, bad[i], &out, &err) == BRC_EINVAL, "%s", bad[i]);
    ck_assert_uint_eq(out.len, 0);
}

TEST(default_elements_are_zero_bits)
{
    static const char *const names[] = { "bool", "int8", "complex128", "r24" };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        brc_dtype type = opened_dtype(names[i]);
        brc_buf out = BRC_BUF_INIT;
        ck_assert_int_eq(brc_dtype_default(&type, &out, NULL), 0);
        ck_assert_uint_eq(out.len, type.item_size);
        for (size_t k = 0; k < out.len; k++)
            ck_assert_uint_eq(out.data[k], 0);
        brc_buf_dispose(&out);
        closed_dtype(&type);
    }
}

TEST(full_buffers_are_errors)
{
    static const char *const fills[][2] = { { "int32", "5" },
                                            { "complex128", "[1,2]" },
                                            { "r24", "[1,2,3]" } };
    for (size_t i = 0; i < 3; i++) {
        brc_dtype type = opened_dtype(fills[i][0]);
        uint8_t memory[2];
        brc_buf out = BRC_FIXED_BUF(memory, sizeof(memory));
        ck_assert_int_eq(parse_json_fill(&type, fills[i][1], &out, NULL), BRC_ELIMIT);
        ck_assert_int_eq(brc_dtype_default(&type, &out, NULL), BRC_ELIMIT);
        ck_assert_uint_eq(out.len, 0);
        closed_dtype(&type);
    }
}

/* ---- numbers and byte order ---------------------------------------------------------- */

TEST(numbers_for_differences)
{
    static const struct {
        const char *type, *json;
        double number;
    } rows[] = {
        { "bool", "true", 1 },
        { "bool", "false", 0 },
        { "int8", "-128", -128 },
        { "int16", "-2", -2 },
        { "int64", "-5", -5 },
        { "uint8", "200", 200 },
        { "uint64", "18446744073709551615", 18446744073709551616.0 },
        { "float16", "-1.5", -1.5 },
        { "float32", "0.5", 0.5 },
        { "float64", "1e300", 1e300 },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        brc_dtype type = opened_dtype(rows[i].type);
        brc_buf out = BRC_BUF_INIT;
        ck_assert_int_eq(parse_json_fill(&type, rows[i].json, &out, NULL), 0);
        ck_assert_msg(type.ops->number(&type, out.data) == rows[i].number, "%s %s", rows[i].type,
                      rows[i].json);
        brc_buf_dispose(&out);
    }
}

TEST(D6_units_are_swapped)
{
    uint8_t src[48], dst[48], twice[48];
    for (size_t i = 0; i < sizeof(src); i++)
        src[i] = (uint8_t)i;
    for (size_t unit = 1; unit <= 16; unit++) {
        size_t len = 48 - 48 % unit;
        brc_swap_units(dst, src, len, unit);
        for (size_t i = 0; i < len; i++)
            ck_assert_uint_eq(dst[i], src[i / unit * unit + unit - 1 - i % unit]);
        memcpy(twice, dst, len);
        brc_swap_units(twice, twice, len, unit); /* in place */
        ck_assert_int_eq(memcmp(twice, src, len), 0);
    }
    brc_swap_units(NULL, NULL, 0, 4);
}

TEST(native_form_is_what_the_machine_reads)
{
    brc_dtype type = opened_dtype("complex64");
    uint8_t data[8] = { 0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0 };
    float parts[2];
    brc_dtype_native(&type, data, sizeof(data));
    memcpy(parts, data, sizeof(parts));
    ck_assert(parts[0] == 1.0f);
    ck_assert(parts[1] == -2.0f);
}

/* ---- a type's own scan -------------------------------- */

static int word_parse(const brc_dtype *type, const brc_json *json, brc_buf *out, brc_error *err)
{
    (void)type;
    return brc_json_is(json, "parsed") ? brc_buf_append(out, "p", 1, err) : BRC_EINVAL;
}

static int word_scan(const brc_dtype *type, const char *text, const brc_json *json, brc_buf *out,
                     brc_error *err)
{
    (void)type;
    ck_assert_int_eq(brc_json_kind(json), text[0] == '[' ? BRC_JSON_ARRAY : BRC_JSON_ABSENT);
    if (strcmp(text, "parsed") == 0)
        return 0;
    if (strcmp(text, "wrong") == 0)
        return brc_fail(err, BRC_ELIMIT, "it is wrong");
    BRC_TRY(brc_buf_append(out, "s", 1, err));
    return 1;
}

TEST(text_goes_to_a_types_scan_first)
{
    brc_dtype_ops ops = { .size = sizeof(ops), .parse = word_parse, .scan = word_scan };
    brc_dtype type = { .size = sizeof(type), .name = "words", .item_size = 1, .ops = &ops };
    brc_error err = BRC_ERROR_INIT;
    brc_buf out = BRC_BUF_INIT;
    ck_assert_int_eq(brc_dtype_parse_text(&type, "[1]", &out, &err), BRC_OK);
    ck_assert_int_eq(brc_dtype_parse_text(&type, "else", &out, &err), BRC_OK);
    ck_assert_int_eq(brc_dtype_parse_text(&type, "parsed", &out, &err), BRC_OK);
    ck_assert_int_eq(brc_dtype_parse_text(&type, "wrong", &out, &err), BRC_ELIMIT);
    ck_assert_uint_eq(out.len, 3);
    ck_assert_mem_eq(out.data, "ssp", 3);
    ops.size = offsetof(brc_dtype_ops, scan); /* built before there was one */
    ck_assert_int_eq(brc_dtype_parse_text(&type, "else", &out, &err), BRC_EINVAL);
    ck_assert_int_eq(brc_dtype_parse_text(&type, "parsed", &out, &err), BRC_OK);
    brc_buf_dispose(&out);
}
