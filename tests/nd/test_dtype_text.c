/* Strings and bytes, of variable and of fixed length. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/base/buf.h"
#include "../../src/nd/dtype_text.h"
#include "../kit/dtype_kit.h"
#include "../kit/suite.h"

TEST_SUITE(dtype_text);

#define UTF32(n) "{\"name\":\"fixed_length_utf32\",\"configuration\":{\"length_bytes\":" #n "}}"
#define PADDED(n) "{\"name\":\"null_terminated_bytes\",\"configuration\":{\"length_bytes\":" #n "}}"
#define EXACT(n) "{\"name\":\"raw_bytes\",\"configuration\":{\"length_bytes\":" #n "}}"

#define RAW1X "{\"name\":\"raw_bytes\",\"configuration\":{\"length_bytes\":1,\"x\":1}}"

/* The bytes that typed text becomes, as hex; "" where it is refused. */
static void check_typed(const char *type_json, const char *text, const char *hex)
{
    brc_dtype *type = kit_open(type_json);
    brc_buf out = BRC_BUF_INIT;
    brc_error err = BRC_ERROR_INIT;
    char found[256] = "";
    int rc = kit_scan(type, text, &out, &err);
    ck_assert_msg(rc == (hex[0] ? BRC_OK : BRC_EINVAL), "%s: %d %s", text, rc, err.message);
    for (size_t i = 0; i < out.len; i++)
        snprintf(found + 2 * i, 3, "%02x", out.data[i]);
    ck_assert_str_eq(found, hex);
    brc_buf_dispose(&out);
    brc_dtype_free(type);
}

CASE("all", .setup = dtype_kit_setup, .teardown = dtype_kit_teardown);

TEST(T52_strings_are_counted_utf8)
{
    kit_check("string", "\"\"", "00000000", NULL, NULL, "");
    kit_check("string", "\"h\\u00e9llo\"", "0600000068c3a96c6c6f", "\"h\xc3\xa9llo\"", NULL,
              "h\xc3\xa9llo");
    kit_check("string", "\"a\\\"b\\n\"", "040000006122620a", "\"a\\\"b\\n\"", NULL, "a\"b\n");
    kit_check("string", "\"\\u0001n1\"", "03000000016e31", "\"\\u0001n1\"", NULL, "\x01n1");
    brc_dtype *type = kit_open("string");
    ck_assert_uint_eq(type->item_size, 0);
    ck_assert_int_eq(type->klass, BRC_CLASS_STRING);
    ck_assert_uint_eq(type->swap_unit, 1);
    ck_assert_ptr_null(type->npy);
    ck_assert_str_eq(type->json, "\"string\"");
    brc_buf zero = BRC_BUF_INIT;
    ck_assert_int_eq(brc_dtype_default(type, &zero, NULL), BRC_OK);
    ck_assert_uint_eq(zero.len, 4);
    ck_assert_mem_eq(zero.data, "\0\0\0\0", 4);
    brc_buf_dispose(&zero);
    brc_dtype_free(type);
    static const char *const wrong[] = { "123", "0", "null", "true", "[]", "{}" };
    for (size_t i = 0; i < 6; i++)
        kit_refuses("string", wrong[i], "a JSON string");
}

/* A C string cannot hold it, so such a string takes another way through. */
TEST(strings_hold_u0000)
{
    brc_dtype *type = kit_open("string");
    brc_buf out = BRC_BUF_INIT;
    static const char json[] = "\"a\\u0000\\\"\\\\\\n\\u001f\\t\xc3\xa9\\u0000\"";
    static const char bytes[] = "\x0a\0\0\0a\0\"\\\n\x1f\t\xc3\xa9";
    ck_assert_int_eq(kit_parse(type, json, &out, NULL), BRC_OK);
    ck_assert_uint_eq(out.len, 4 + 10);
    ck_assert_mem_eq(out.data, bytes, 4 + 10);
    char *fill = kit_print(type, out.data, out.len, BRC_PRINT_FILL);
    ck_assert_str_eq(fill, json);
    free(fill);
    brc_buf_dispose(&out);
    brc_dtype_free(type);
}

TEST(elements_that_lie_are_refused)
{
    static const char *const types[] = { "string", "bytes" };
    for (int i = 0; i < 2; i++) {
        brc_dtype *type = kit_open(types[i]);
        ck_assert_ptr_null(kit_print(type, (const uint8_t *)"\0\0\0", 3, BRC_PRINT_JSON));
        ck_assert_ptr_null(kit_print(type, (const uint8_t *)"\2\0\0\0a", 5, BRC_PRINT_JSON));
        ck_assert_ptr_null(kit_print(type, (const uint8_t *)"\0\0\0\0a", 5, BRC_PRINT_TEXT));
        ck_assert_ptr_null(kit_print(type, (const uint8_t *)"\xff\xff\xff\xff", 4, BRC_PRINT_FILL));
        brc_dtype_free(type);
    }
    brc_dtype *type = kit_open("string");
    ck_assert_ptr_null(kit_print(type, (const uint8_t *)"\1\0\0\0\xff", 5, BRC_PRINT_JSON));
    ck_assert_ptr_null(kit_print(type, (const uint8_t *)"\1\0\0\0\xff", 5, BRC_PRINT_TEXT));
    brc_dtype_free(type);
}

TEST(T47_bytes_keep_the_name_that_was_read)
{
    static const char *const names[] = { "bytes", "variable_length_bytes", "binary" };
    for (int i = 0; i < 3; i++) {
        brc_dtype *type = kit_open(names[i]);
        ck_assert_str_eq(type->name, names[i]);
        ck_assert_int_eq(strncmp(type->json + 1, names[i], strlen(names[i])), 0);
        ck_assert_int_eq(type->klass, BRC_CLASS_BYTES);
        ck_assert_uint_eq(type->item_size, 0);
        brc_dtype_free(type);
        kit_check(names[i], "\"\"", "00000000", NULL, NULL, "");
        kit_check(names[i], "[]", "00000000", "\"\"", NULL, "");
        kit_check(names[i], "\"AGH/\"", "030000000061ff", NULL, NULL, "\\x00a\\xff");
        kit_check(names[i], "[0, 97, 255]", "030000000061ff", "\"AGH/\"", NULL, "\\x00a\\xff");
        kit_check(names[i], "\"XA==\"", "010000005c", NULL, NULL, "\\\\");
        static const char *const wrong[] = { "123", "null", "[256]", "[-1]", "[1.5]", "[\"1\"]",
                                             "\"A\"", "\"AA=A\"", "\"AB==\"", "\"A\\u0000==\"",
                                             "\"====\"", "{}" };
        for (size_t k = 0; k < sizeof(wrong) / sizeof(wrong[0]); k++)
            kit_refuses(names[i], wrong[k], names[i]);
    }
    brc_error err = BRC_ERROR_INIT;
    ck_assert_int_eq(kit_open_code("{\"name\":\"bytes\",\"configuration\":{\"n\":1}}", &err),
                     BRC_EINVAL);
    ck_assert_int_eq(kit_open_code("{\"name\":\"string\",\"configuration\":{}}", &err), BRC_OK);
    ck_assert_int_eq(kit_open_code("char", &err), BRC_EUNSUPPORTED);
}

TEST(base64_of_every_length)
{
    uint8_t data[40];
    for (size_t i = 0; i < sizeof(data); i++)
        data[i] = (uint8_t)(i * 53 + 200);
    for (size_t len = 0; len <= sizeof(data); len++) {
        brc_buf text = BRC_BUF_INIT, back = BRC_BUF_INIT;
        ck_assert_int_eq(brc_base64_write(&text, data, len, NULL), BRC_OK);
        ck_assert_uint_eq(text.len, (len + 2) / 3 * 4);
        ck_assert_int_eq(brc_buf_terminate(&text, NULL), BRC_OK);
        ck_assert_int_eq(brc_base64_read(&back, (const char *)text.data, NULL), BRC_OK);
        ck_assert_uint_eq(back.len, len);
        ck_assert(len == 0 || memcmp(back.data, data, len) == 0);
        brc_buf_dispose(&text);
        brc_buf_dispose(&back);
    }
}

TEST(T54_fixed_text_is_padded_not_cut)
{
    kit_check(UTF32(8), "\"ab\"", "6100000062000000", NULL, NULL, "ab");
    kit_check(UTF32(8), "\"\"", "0000000000000000", NULL, NULL, "");
    kit_check(UTF32(12), "\"\xc3\xa9\xf0\x9f\x98\x80\"", "e900000000f6010000000000", NULL, NULL,
              "\xc3\xa9\xf0\x9f\x98\x80");
    kit_check(UTF32(12), "\"\xe2\x82\xac\"", "ac2000000000000000000000", NULL, NULL,
              "\xe2\x82\xac");
    kit_check(UTF32(12), "\"a\\u0000b\"", "610000000000000062000000", NULL, NULL, "a");
}

TEST(T54_over_long_text_is_refused)
{
    kit_refuses(UTF32(8), "\"abc\"", "too long for fixed_length_utf32 of 2 code points");
    kit_refuses(UTF32(8), "0", "a JSON string");
    kit_refuses(PADDED(2), "\"AQID\"", "3 bytes, too many for null_terminated_bytes of 2");
    kit_refuses(PADDED(2), "0", "base64 of at most 2 bytes");
    kit_refuses(EXACT(2), "\"AQID\"", "base64 of 2 bytes");
    kit_refuses(EXACT(2), "\"AQ==\"", "base64 of 2 bytes");
    kit_refuses(EXACT(2), "[1]", "raw_bytes");
}

TEST(fixed_bytes_are_base64_in_json)
{
    kit_check(PADDED(4), "\"YWI=\"", "61620000", "\"YWIAAA==\"", NULL, "ab");
    kit_check(PADDED(4), "\"\"", "00000000", "\"AAAAAA==\"", NULL, "");
    kit_check(PADDED(4), "\"YQBiAA==\"", "61006200", NULL, NULL, "a\\x00b");
    kit_check(EXACT(3), "\"AQL/\"", "0102ff", NULL, NULL, "\\x01\\x02\\xff");
    kit_check(EXACT(3), "[97, 0, 0]", "610000", "\"YQAA\"", NULL, "a\\x00\\x00");
}

TEST(fixed_types_have_their_sizes)
{
    static const struct {
        const char *json, *npy;
        int klass;
        size_t size, unit;
    } rows[] = {
        { UTF32(28), "<U7", BRC_CLASS_STRING, 28, 4 },
        { PADDED(5), "|S5", BRC_CLASS_BYTES, 5, 1 },
        { EXACT(3), "|V3", BRC_CLASS_RAW, 3, 1 },
    };
    for (int i = 0; i < 3; i++) {
        brc_dtype *type = kit_open(rows[i].json);
        ck_assert_str_eq(type->json, rows[i].json);
        ck_assert_str_eq(type->npy, rows[i].npy);
        ck_assert_int_eq(type->klass, rows[i].klass);
        ck_assert_uint_eq(type->item_size, rows[i].size);
        ck_assert_uint_eq(type->swap_unit, rows[i].unit);
        ck_assert_uint_eq(type->bits, 8 * rows[i].size);
        brc_dtype_free(type);
    }
    static const char *const wrong[] = { UTF32(5),
                                         UTF32(0),
                                         UTF32(-4),
                                         UTF32(4.0),
                                         UTF32("4"),
                                         PADDED(0),
                                         EXACT(0),
                                         EXACT(null),
                                         "fixed_length_utf32",
                                         "raw_bytes",
                                         "null_terminated_bytes",
                                         "{\"name\":\"raw_bytes\",\"configuration\":{}}",
                                         RAW1X,
                                         "{\"name\":\"raw_bytes\",\"notconfiguration\":{}}" };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        brc_error err = BRC_ERROR_INIT;
        ck_assert_msg(kit_open_code(wrong[i], &err) == BRC_EINVAL, "%s", wrong[i]);
    }
    brc_error err = BRC_ERROR_INIT;
    ck_assert_int_eq(kit_open_code(EXACT(18446744073709551615), &err), BRC_EUNSUPPORTED);
    ck_assert_int_eq(kit_open_code(UTF32(18446744073709551612), &err), BRC_EUNSUPPORTED);
}

TEST(numpys_text_that_is_no_text_is_shown)
{
    brc_dtype *type = kit_open(UTF32(8));
    static const uint8_t surrogate[8] = { 0x00, 0xd8, 0, 0, 'a' }, high[8] = { 0, 0, 0x11 };
    char *text = kit_print(type, surrogate, 8, BRC_PRINT_JSON);
    ck_assert_str_eq(text, "\"\xef\xbf\xbd\x61\"");
    free(text);
    text = kit_print(type, high, 8, BRC_PRINT_TEXT);
    ck_assert_str_eq(text, "\xef\xbf\xbd");
    free(text);
    ck_assert_ptr_null(kit_print(type, surrogate, 8, BRC_PRINT_FILL));
    ck_assert_ptr_null(kit_print(type, surrogate, 7, BRC_PRINT_TEXT));
    brc_dtype_free(type);
}

TEST(typed_text_is_the_text_itself)
{
    check_typed("string", "abc", "03000000616263");
    check_typed("string", "\"abc\"", "03000000616263");
    check_typed("string", "123", "03000000313233");
    check_typed("string", "true", "0400000074727565");
    check_typed("string", "[1]", "030000005b315d");
    check_typed("string", "\"open", "05000000226f70656e");
    check_typed("string", "", "00000000");
    check_typed("string", "\xff", "");
    check_typed("bytes", "abc", "03000000616263");
    check_typed("bytes", "a\\x00\\\\\\x", "05000000" "61005c5c78");
    check_typed("bytes", "\"YWJj\"", "03000000616263");
    check_typed("bytes", "[97]", "0100000061");
    check_typed("bytes", "\xff", "01000000ff");
    check_typed(UTF32(8), "12", "3100000032000000");
    check_typed(UTF32(8), "abc", "");
    check_typed(PADDED(4), "ab", "61620000");
    check_typed(PADDED(4), "abcde", "");
    check_typed(EXACT(3), "[1,2,3]", "010203");
    check_typed(EXACT(3), "AQID", "010203");
}
