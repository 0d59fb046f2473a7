/* JSON: what is accepted, what survives, what is refused and where. */
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/base/json.h"
#include "../kit/suite.h"

TEST_SUITE(json);

#define OK(expr) ck_assert_int_eq((expr), BRC_OK)

static brc_json *parse_ok(const char *text)
{
    brc_json *value;
    brc_error err = BRC_ERROR_INIT;
    int rc = brc_json_parse(&value, text, strlen(text), 0, &err);
    ck_assert_msg(rc == BRC_OK, "%s: %s", text, err.message);
    ck_assert_ptr_nonnull(value);
    return value;
}

static char *written(const brc_json *value, int pretty)
{
    brc_buf buf = BRC_BUF_INIT;
    char *text;
    OK(pretty ? brc_json_write(&buf, value, BRC_JSON_PRETTY,
                               NULL) : brc_json_write(&buf, value, 0, NULL));
    OK(brc_buf_take_text(&buf, &text, NULL));
    return text;
}

static void check_written(const char *text, const char *expected)
{
    brc_json *value = parse_ok(text);
    char *out = written(value, 0);
    ck_assert_str_eq(out, expected);
    free(out);
    brc_json_free(value);
}

/* ---- numbers ---------------------------------------------------------------- */

TEST(number_literals_survive)
{
    static const char *const texts[] = {
        "0", "-0", "123", "18446744073709551615", "-9223372036854775808", "1.10", "1e5", "1E+05",
        "-0.0e-00", "0.1000000000000000055511151231257827", "9007199254740993", "1e400",
        "340282366920938463463374607431768211456", "[1,2.50,-3]", "{\"a\":1.0}",
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        check_written(texts[i], texts[i]);
}

TEST(X7_integers_are_exact)
{
    static const struct {
        const char *text;
        int is_int, is_uint;
        int64_t i;
        uint64_t u;
    } cases[] = {
        { "0", 1, 1, 0, 0 },
        { "-0", 1, 1, 0, 0 },
        { "9223372036854775807", 1, 1, INT64_MAX, INT64_MAX },
        { "9223372036854775808", 0, 1, 0, UINT64_C(9223372036854775808) },
        { "-9223372036854775808", 1, 0, INT64_MIN, 0 },
        { "-9223372036854775809", 0, 0, 0, 0 },
        { "18446744073709551615", 0, 1, 0, UINT64_MAX },
        { "18446744073709551616", 0, 0, 0, 0 },
        { "184467440737095516150", 0, 0, 0, 0 },
        { "9007199254740993", 1, 1, 9007199254740993, 9007199254740993 },
        { "1.0", 0, 0, 0, 0 },
        { "1e3", 0, 0, 0, 0 },
        { "\"1\"", 0, 0, 0, 0 },
        { "true", 0, 0, 0, 0 },
        { "[1]", 0, 0, 0, 0 },
    };
    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        brc_json *v = parse_ok(cases[k].text);
        int64_t i = 77;
        uint64_t u = 77;
        ck_assert_int_eq(brc_json_int(v, INT64_MIN, INT64_MAX, &i), cases[k].is_int);
        ck_assert_int_eq(brc_json_uint(v, UINT64_MAX, &u), cases[k].is_uint);
        ck_assert_int_eq(i, cases[k].is_int ? cases[k].i : 77);
        ck_assert_uint_eq(u, cases[k].is_uint ? cases[k].u : 77);
        brc_json_free(v);
    }
}

TEST(integers_have_bounds)
{
    brc_json *v = parse_ok("-5");
    int64_t i;
    uint64_t u;
    ck_assert(brc_json_int(v, -5, -5, &i));
    ck_assert(!brc_json_int(v, -4, 100, &i));
    ck_assert(!brc_json_int(v, -100, -6, &i));
    brc_json_free(v);
    v = parse_ok("32");
    ck_assert(brc_json_uint(v, 32, &u));
    ck_assert(!brc_json_uint(v, 31, &u));
    brc_json_free(v);
    /* ten million digits */
    size_t len = 10000000;
    char *digits = malloc(len);
    memset(digits, '9', len);
    brc_error err = BRC_ERROR_INIT;
    OK(brc_json_parse(&v, digits, len, 0, &err));
    ck_assert(!brc_json_uint(v, UINT64_MAX, &u));
    ck_assert_uint_eq(strlen(brc_json_literal(v)), len);
    brc_json_free(v);
    free(digits);
}

TEST(doubles_are_finite_and_know_no_locale)
{
    double d = 77;
    setlocale(LC_ALL, "de_DE.UTF-8"); /* where there is one: a decimal comma */
    brc_json *v = parse_ok("[0.1, -2.5e3, 1e400, -1e400, 1e-400, 5, \"1\","
                           " 1.7976931348623157e308]");
    ck_assert(brc_json_double(brc_json_item(v, 0), &d) && d == 0.1);
    ck_assert(brc_json_double(brc_json_item(v, 1), &d) && d == -2500.0);
    ck_assert(!brc_json_double(brc_json_item(v, 2), &d) && d == -2500.0);
    ck_assert(!brc_json_double(brc_json_item(v, 3), &d));
    ck_assert(brc_json_double(brc_json_item(v, 4), &d) && d == 0.0);
    ck_assert(brc_json_double(brc_json_item(v, 5), &d) && d == 5.0);
    ck_assert(!brc_json_double(brc_json_item(v, 6), &d));
    ck_assert(brc_json_double(brc_json_item(v, 7), &d) && d == 1.7976931348623157e308);
    ck_assert(!brc_json_double(NULL, &d));
    brc_json_free(v);
    setlocale(LC_ALL, "C");
}

/* ---- strings ------------------------------------------------------------------ */

TEST(strings_are_written_with_few_escapes)
{
    check_written("\"a\\/b\"", "\"a/b\"");
    check_written("\"\\u00e9 \\u65e5 \\ud83e\\udea8 \\u0041\"",
                  "\"\xC3\xA9 \xE6\x97\xA5 \xF0\x9F\xAA\xA8 A\"");
    check_written("\"\\\"\\\\\\b\\f\\n\\r\\t\"", "\"\\\"\\\\\\b\\f\\n\\r\\t\"");
    check_written("\"\\u0008\\u000A\\u001F\\u007f\"", "\"\\b\\n\\u001f\x7f\"");
    check_written("\"\\uFFFF\\uD800\\uDC00\\uDBFF\\uDFFF\"",
                  "\"\xEF\xBF\xBF\xF0\x90\x80\x80\xF4\x8F\xBF\xBF\"");
    check_written("\"\"", "\"\"");
    check_written("{\"\":\"\",\"\\u00e9\\n\":1}", "{\"\":\"\",\"\xC3\xA9\\n\":1}");
}

/* No text, and never a NULL for who does not look. */
static void check_no_text(const brc_json *value)
{
    static const char *const texts[] = { "", "1", "null" };
    const char *text = "before";
    ck_assert(!brc_json_text(value, &text));
    ck_assert_str_eq(text, "");
    ck_assert(!brc_json_is(value, ""));
    ck_assert_int_eq(brc_json_choice(value, texts, 3), -1);
}

TEST(strings_that_look_like_marks)
{
    static const struct {
        const char *json, *text;
    } cases[] = {
        { "\"\\u0001\"", "\x01" },
        { "\"\\u0001n5\"", "\x01n5" },
        { "\"\\u0001r\\\\u0000\"", "\x01r\\u0000" },
        { "\"\\u0001\\u0001t\\n\"", "\x01\x01t\n" },
        { "\"a\\u0001\"", "a\x01" },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        brc_json *v = parse_ok(cases[i].json);
        ck_assert_int_eq(brc_json_kind(v), BRC_JSON_STRING);
        ck_assert(brc_json_is(v, cases[i].text));
        brc_json *built = brc_json_new_string(cases[i].text);
        ck_assert(brc_json_equal(v, built));
        brc_json_free(built);
        brc_json_free(v);
        check_written(cases[i].json, cases[i].json);
    }
    brc_json *v = parse_ok("{\"\\u0001n5\": 5}");
    ck_assert_str_eq(brc_json_name(brc_json_item(v, 0)), "\x01n5");
    ck_assert_str_eq(brc_json_literal(brc_json_member(v, "\x01n5")), "5");
    brc_json_free(v);
}

TEST(X7_strings_with_nul_are_kept)
{
    check_written("\"\\u0000\"", "\"\\u0000\"");
    check_written("[\"a\\u0000\\\"b\\\\ \\u00e9\",1]", "[\"a\\u0000\\\"b\\\\ \xC3\xA9\",1]");
    check_written("\"\\u0001\\u0000\\u0001\"", "\"\\u0001\\u0000\\u0001\"");
    brc_json *v = parse_ok("{\"a\":\"x\\u0000y\",\"b\":\"\\u0078\\u0000y\",\"c\":\"x\\\\u0000y\"}");
    const brc_json *a = brc_json_member(v, "a");
    ck_assert_int_eq(brc_json_kind(a), BRC_JSON_STRING);
    check_no_text(a);
    ck_assert(!brc_json_is(a, "") && !brc_json_is(a, "x") && !brc_json_is(a, "x\\u0000y"));
    ck_assert(brc_json_equal(a, brc_json_member(v, "b")));
    ck_assert(!brc_json_equal(a, brc_json_member(v, "c")));
    ck_assert(brc_json_is(brc_json_member(v, "c"), "x\\u0000y"));
    brc_json *copy;
    OK(brc_json_clone(&copy, v, NULL));
    ck_assert(brc_json_equal(copy, v));
    brc_json_free(copy);
    brc_json_free(v);
}

TEST(a_string_of_a_megabyte)
{
    size_t len = 1 << 20;
    char *text = malloc(len + 3);
    text[0] = text[len + 1] = '"';
    for (size_t i = 0; i < len; i++)
        text[i + 1] = (char)('a' + i % 26);
    text[len + 2] = 0;
    brc_json *v = parse_ok(text);
    const char *read;
    ck_assert(brc_json_text(v, &read));
    ck_assert_uint_eq(strlen(read), len);
    char *out = written(v, 0);
    ck_assert(strcmp(out, text) == 0);
    free(out);
    brc_json_free(v);
    free(text);
}

TEST(quoting_and_pointers)
{
    brc_buf buf = BRC_BUF_INIT;
    OK(brc_json_quote(&buf, "a\0\"\n", 4, NULL));
    OK(brc_json_pointer_step(&buf, "x~y/z", NULL));
    OK(brc_json_pointer_step(&buf, "", NULL));
    OK(brc_buf_terminate(&buf, NULL));
    ck_assert_str_eq((char *)buf.data, "\"a\\u0000\\\"\\n\"/x~0y~1z/");
    brc_buf_dispose(&buf);
}

/* ---- what is refused ------------------------------------------------------------ */

static const struct {
    const char *text;
    size_t len; /* 0: strlen */
    const char *says;
} refused[] = {
    { "", 0, "ends at byte 0" },
    { "  ", 0, "ends at byte 2" },
    { "nul", 0, "\"nul\" at byte 0" },
    { "nullx", 0, "\"nullx\" at byte 0" },
    { "True", 0, "\"True\"" },
    { "NaN", 0, "\"NaN\" at byte 0" },
    { "[1, NaN]", 0, "\"NaN\" at byte 4" },
    { "Infinity", 0, "\"Infinity\"" },
    { "-Infinity", 0, "'I' at byte 1 where a digit" },
    { "+1", 0, "'+' at byte 0" },
    { "01", 0, "leading zero at byte 0" },
    { "-01", 0, "leading zero at byte 1" },
    { "1.", 0, "where a digit is expected" },
    { ".5", 0, "'.' at byte 0" },
    { "1e", 0, "ends at byte 2" },
    { "1e+", 0, "ends at byte 3" },
    { "-", 0, "ends at byte 1" },
    { "0x10", 0, "'x' at byte 1" },
    { "1 2", 0, "'2' at byte 2 where the end" },
    { "[1,]", 0, "']' at byte 3 where a value" },
    { "[,1]", 0, "',' at byte 1" },
    { "[1 2]", 0, "where ',' or ']' is expected" },
    { "[1", 0, "ends at byte 2" },
    { "[1}", 0, "'}' at byte 2" },
    { "]", 0, "']' at byte 0" },
    { "{\"a\":1,}", 0, "'}' at byte 7 where a member's name" },
    { "{a:1}", 0, "'a' at byte 1 where a member's name" },
    { "{'a':1}", 0, "where a member's name" },
    { "{\"a\" 1}", 0, "where ':' is expected" },
    { "{\"a\":}", 0, "where a value is expected" },
    { "{\"a\":1", 0, "where ',' or '}' is expected" },
    { "{1:2}", 0, "where a member's name" },
    { "/* c */ 1", 0, "'/' at byte 0" },
    { "1 // c", 0, "'/' at byte 2" },
    { "\"abc", 0, "string without an end at byte 0" },
    { "\"abc\\", 0, "ends at byte 5" },
    { "\"a\tb\"", 0, "control character in a string, which must be escaped, at byte 2" },
    { "\"a\nb\"", 0, "control character" },
    { "\"a\0b\"", 5, "control character" },
    { "1\0", 2, "byte 0x00 at byte 1 where the end" },
    { "[1]\xA0", 0, "byte 0xa0 at byte 3" },
    { "\"\\x41\"", 0, "'x' at byte 2" },
    { "\"\\u12G4\"", 0, "'G' at byte 5 where a hex digit" },
    { "\"\\u12\"", 0, "where a hex digit" },
    { "\"\\ud800\"", 0, "surrogate pair at byte 1" },
    { "\"\\udc00\"", 0, "surrogate pair at byte 1" },
    { "\"x\\ud800\\u0041\"", 0, "surrogate pair at byte 2" },
    { "\"\\ud800\\ud800\"", 0, "surrogate pair" },
    { "\"\\ud800x\"", 0, "surrogate pair" },
    { "\"\xFF\"", 0, "invalid UTF-8 at byte 1" },
    { "\"a\xC3\"", 0, "invalid UTF-8 at byte 2" },
    { "\"\xC0\x80\"", 0, "invalid UTF-8" },
    { "\"\xE0\x9F\xBF\"", 0, "invalid UTF-8" },
    { "\"\xED\xA0\x80\"", 0, "invalid UTF-8" },
    { "\"\xF4\x90\x80\x80\"", 0, "invalid UTF-8" },
    { "\"\xF0\x9F\xAA", 0, "invalid UTF-8" },
    { "\xEF\xBB\xBF{}", 0, "byte order mark" },
    { "{\"a\":1,\"b\":2,\"a\":3}", 0, "duplicate member \"a\" at byte 13" },
    { "{\"a\":1,\"\\u0061\":3}", 0, "duplicate member \"a\" at byte 7" },
    { "{\"x\":[{\"k\":1},{\"k\":{\"\":0,\"\":0}}]}", 0, "duplicate member \"\"" },
    { "{\"a\\u0000\":1,\"a\\u0000\":2}", 0, "duplicate member" },
    { "{\"a\xC0\x80\":1}", 0, "invalid UTF-8" },
    { "[NaN]", 0, "\"NaN\" at byte 1 is not a value" },
    { "{\"attributes\":{\"a\":-Infinity}}", 0, "'I' at byte 20 where a digit is expected" },
};

EACH(X7_bad_documents_are_refused, refused)
{
    size_t len = refused[_i].len ? refused[_i].len : strlen(refused[_i].text);
    char *text = malloc(len > 0 ? len : 1); /* exactly: a sanitizer sees a read past it */
    memcpy(text, refused[_i].text, len);
    brc_error err = BRC_ERROR_INIT;
    brc_json *value = (brc_json *)&err;
    ck_assert_int_eq(brc_json_parse(&value, text, len, 0, &err), BRC_EINVAL);
    ck_assert_ptr_null(value);
    ck_assert_msg(strstr(err.message, refused[_i].says), "%s: %s", refused[_i].text, err.message);
    free(text);
}

static void repeat_text(brc_buf *buf, size_t n, const char *text)
{
    size_t len = strlen(text);
    OK(brc_buf_reserve(buf, n * len, NULL));
    for (size_t i = 0; i < n; i++, buf->len += len)
        memcpy(buf->data + buf->len, text, len);
}

static char *nested(size_t depth, const char *open, const char *inner, const char *close)
{
    brc_buf buf = BRC_BUF_INIT;
    char *text;
    repeat_text(&buf, depth, open);
    OK(brc_buf_text(&buf, inner, NULL));
    repeat_text(&buf, depth, close);
    OK(brc_buf_take_text(&buf, &text, NULL));
    return text;
}

TEST(X7_depth_is_limited)
{
    brc_error err = BRC_ERROR_INIT;
    brc_json *v;
    char *text = nested(64, "[", "", "]");
    check_written(text, text);
    free(text);
    text = nested(64, "{\"a\":", "1", "}");
    check_written(text, text);
    free(text);
    text = nested(65, "[", "", "]");
    ck_assert_int_eq(brc_json_parse(&v, text, strlen(text), 0, &err), BRC_ELIMIT);
    ck_assert_ptr_nonnull(strstr(err.message, "64 levels deep at byte 64"));
    free(text);
    text = nested(1000000, "[", "", "]");
    ck_assert_int_eq(brc_json_parse(&v, text, strlen(text), 0, &err), BRC_ELIMIT);
    free(text);
    /* siblings do not add up */
    brc_buf buf = BRC_BUF_INIT;
    OK(brc_buf_text(&buf, "[", NULL));
    repeat_text(&buf, 100, "[[]],");
    OK(brc_buf_text(&buf, "{}]", NULL));
    OK(brc_json_parse(&v, (char *)buf.data, buf.len, 0, &err));
    ck_assert_uint_eq(brc_json_count(v), 101);
    brc_json_free(v);
    brc_buf_dispose(&buf);
}

TEST(X7_count_is_limited)
{
    brc_error err = BRC_ERROR_INIT;
    brc_buf buf = BRC_BUF_INIT;
    brc_json *v;
    OK(brc_buf_text(&buf, "[", NULL));
    repeat_text(&buf, 999999, "0,"); /* and the array itself */
    buf.data[buf.len - 1] = ']';
    OK(brc_json_parse(&v, (char *)buf.data, buf.len, 0, &err));
    ck_assert_uint_eq(brc_json_count(v), 999999);
    brc_json_free(v);
    buf.len--;
    OK(brc_buf_text(&buf, ",0]", NULL));
    ck_assert_int_eq(brc_json_parse(&v, (char *)buf.data, buf.len, 0, &err), BRC_ELIMIT);
    ck_assert_ptr_nonnull(strstr(err.message, "1000000 values"));
    brc_buf_dispose(&buf);
}

TEST(X7_size_is_limited)
{
    brc_error err = BRC_ERROR_INIT;
    brc_json *v;
    char *text = malloc(BRC_JSON_MAX_BYTES + 1);
    memset(text, ' ', BRC_JSON_MAX_BYTES + 1);
    text[0] = '1';
    ck_assert_int_eq(brc_json_parse(&v, text, BRC_JSON_MAX_BYTES + 1, 0, &err), BRC_ELIMIT);
    OK(brc_json_parse(&v, text, BRC_JSON_MAX_BYTES, 0, &err));
    brc_json_free(v);
    free(text);
}

/* A hundred thousand members: a quadratic search for duplicates would take minutes. */
TEST(X7_duplicates_among_many)
{
    brc_buf buf = BRC_BUF_INIT, other = BRC_BUF_INIT;
    brc_error err = BRC_ERROR_INIT;
    size_t n = 100000;
    OK(brc_buf_text(&buf, "{", NULL));
    OK(brc_buf_text(&other, "{", NULL));
    for (size_t i = 0; i < n; i++) {
        OK(brc_buf_printf(&buf, NULL, "\"m%zu\":%zu,", i, i));
        OK(brc_buf_printf(&other, NULL, "\"m%zu\":%zu,", n - 1 - i, n - 1 - i));
    }
    buf.data[buf.len - 1] = other.data[other.len - 1] = '}';
    brc_json *a, *b;
    OK(brc_json_parse(&a, (char *)buf.data, buf.len, 0, &err));
    OK(brc_json_parse(&b, (char *)other.data, other.len, 0, &err));
    ck_assert_uint_eq(brc_json_count(a), n);
    ck_assert(brc_json_equal(a, b));
    OK(brc_json_set(b, "m777", brc_json_new_uint(0), &err));
    ck_assert(!brc_json_equal(a, b));
    brc_json_free(a);
    brc_json_free(b);
    buf.data[buf.len - 1] = ',';
    size_t at = buf.len;
    char says[64];
    OK(brc_buf_text(&buf, "\"m4\\u0032\":0}", NULL));
    ck_assert_int_eq(brc_json_parse(&a, (char *)buf.data, buf.len, 0, &err), BRC_EINVAL);
    snprintf(says, sizeof(says), "duplicate member \"m42\" at byte %zu", at);
    ck_assert_ptr_nonnull(strstr(err.message, says));
    brc_buf_dispose(&buf);
    brc_buf_dispose(&other);
}

/* ---- access and building ----------------------------------------------------------- */

TEST(values_have_kinds)
{
    static const int kinds[] = { BRC_JSON_NULL, BRC_JSON_BOOL, BRC_JSON_BOOL, BRC_JSON_NUMBER,
                                 BRC_JSON_STRING, BRC_JSON_ARRAY, BRC_JSON_OBJECT };
    brc_json *v = parse_ok(" [ null , true,false,\t1,\"s\",[],\r\n{\"k\":[]} ] ");
    size_t i = 0;
    for (const brc_json *item = brc_json_first(v); item; item = brc_json_next(item), i++) {
        ck_assert_int_eq(brc_json_kind(item), kinds[i]);
        ck_assert_ptr_eq(brc_json_item(v, i), item);
    }
    ck_assert_uint_eq(i, 7);
    ck_assert_uint_eq(brc_json_count(v), 7);
    ck_assert_ptr_null(brc_json_item(v, 7));
    ck_assert_ptr_null(brc_json_item(v, SIZE_MAX));
    int truth = 7;
    ck_assert(brc_json_bool(brc_json_item(v, 1), &truth) && truth == 1);
    ck_assert(brc_json_bool(brc_json_item(v, 2), &truth) && truth == 0);
    ck_assert(!brc_json_bool(brc_json_item(v, 0), &truth));
    ck_assert_str_eq(brc_json_literal(brc_json_item(v, 3)), "1");
    ck_assert_str_eq(brc_json_literal(brc_json_item(v, 4)), "");
    ck_assert(brc_json_is(brc_json_item(v, 4), "s") && !brc_json_is(brc_json_item(v, 4), "S"));
    static const char *const texts[] = { "1", "", "s" };
    ck_assert_int_eq(brc_json_choice(brc_json_item(v, 4), texts, 3), 2);
    ck_assert_int_eq(brc_json_choice(brc_json_item(v, 4), texts, 2), -1);
    for (i = 0; i < 7; i++)
        if (i != 4)
            check_no_text(brc_json_item(v, i));
    ck_assert_str_eq(brc_json_name(brc_json_item(brc_json_item(v, 6), 0)), "k");
    ck_assert_ptr_null(brc_json_name(brc_json_item(v, 0)));
    ck_assert_ptr_null(brc_json_member(v, "k"));
    brc_json_free(v);
}

TEST(absent_is_accepted_everywhere)
{
    int64_t i;
    uint64_t u;
    double d;
    int b;
    ck_assert_int_eq(brc_json_kind(NULL), BRC_JSON_ABSENT);
    ck_assert_ptr_null(brc_json_member(NULL, "a"));
    ck_assert_uint_eq(brc_json_count(NULL), 0);
    ck_assert_ptr_null(brc_json_item(NULL, 0));
    ck_assert_ptr_null(brc_json_name(brc_json_item(NULL, 0)));
    check_no_text(NULL);
    ck_assert_str_eq(brc_json_literal(NULL), "");
    ck_assert(!brc_json_int(NULL, 0, 1, &i) && !brc_json_uint(NULL, 1, &u));
    ck_assert(!brc_json_double(NULL, &d) && !brc_json_bool(NULL, &b));
    OK(brc_json_allow(NULL, NULL, 0, NULL));
    brc_json_free(NULL);
    ck_assert(brc_json_equal(NULL, NULL));
    brc_buf buf = BRC_BUF_INIT;
    ck_assert_int_eq(brc_json_write(&buf, NULL, 0, NULL), BRC_EMISUSE);
    ck_assert_uint_eq(buf.len, 0);
    brc_buf_dispose(&buf);
}

TEST(unknown_members_are_named)
{
    static const char *const names[] = { "level", "checksum" };
    brc_error err = BRC_ERROR_INIT;
    brc_json *v = parse_ok("{\"level\":1,\"checksum\":false}");
    OK(brc_json_allow(v, names, 2, &err));
    ck_assert_int_eq(brc_json_allow(v, names, 1, &err), BRC_EINVAL);
    ck_assert_ptr_nonnull(strstr(err.message, "\"checksum\""));
    brc_json_free(v);
    v = parse_ok("{\"Level\":1}"); /* names have a case */
    ck_assert_int_eq(brc_json_allow(v, names, 2, &err), BRC_EINVAL);
    ck_assert_ptr_null(brc_json_member(v, "level"));
    brc_json_free(v);
    v = parse_ok("[]");
    ck_assert_int_eq(brc_json_allow(v, names, 2, &err), BRC_EINVAL);
    brc_json_free(v);
}

TEST(documents_are_built)
{
    brc_error err = BRC_ERROR_INIT;
    brc_json *doc = brc_json_new_object(), *list = brc_json_new_array();
    OK(brc_json_push(list, brc_json_new_uint(UINT64_MAX), &err));
    OK(brc_json_push(list, brc_json_new_null(), &err));
    OK(brc_json_set(doc, "a", brc_json_new_string("x\"y"), &err));
    OK(brc_json_set(doc, "b", list, &err));
    OK(brc_json_set(doc, "c", brc_json_new_object(), &err));
    OK(brc_json_set(doc, "a", brc_json_new_string("new"), &err)); /* keeps its place */
    OK(brc_json_set(doc, "A", brc_json_new_array(), &err));
    OK(brc_json_set(doc, "c", brc_json_new_null(), &err));
    char *text = written(doc, 0);
    ck_assert_str_eq(text, "{\"a\":\"new\",\"b\":[18446744073709551615,null],\"c\":null,\"A\":[]}");
    free(text);
    text = written(doc, 1);
    ck_assert_str_eq(text, "{\n  \"a\": \"new\",\n  \"b\": [\n    18446744073709551615,\n    null\n"
                           "  ],\n  \"c\": null,\n  \"A\": []\n}");
    brc_json *again = parse_ok(text);
    ck_assert(brc_json_equal(doc, again));
    brc_json_free(again);
    free(text);
    OK(brc_json_set(doc, "A", brc_json_new_uint(1), &err)); /* the last one */
    brc_json_remove(doc, "a");
    brc_json_remove(doc, "b");
    brc_json_remove(doc, "not there");
    OK(brc_json_set(doc, "z", brc_json_new_uint(2), &err));
    text = written(doc, 0);
    ck_assert_str_eq(text, "{\"c\":null,\"A\":1,\"z\":2}");
    free(text);
    brc_json_free(doc);
}

TEST(building_consumes_also_on_failure)
{
    brc_error err = BRC_ERROR_INIT;
    brc_json *list = brc_json_new_array(), *object = brc_json_new_object();
    ck_assert_int_eq(brc_json_add(list, "a", brc_json_new_null(), &err), BRC_EMISUSE);
    ck_assert_int_eq(brc_json_set(list, "a", brc_json_new_null(), &err), BRC_EMISUSE);
    ck_assert_int_eq(brc_json_push(object, brc_json_new_null(), &err), BRC_EMISUSE);
    ck_assert_int_eq(brc_json_set(NULL, "a", brc_json_new_null(), &err), BRC_ENOMEM);
    ck_assert_int_eq(brc_json_push(list, NULL, &err), BRC_ENOMEM);
    brc_json_free(list);
    brc_json_free(object);
}

TEST(equality_ignores_the_order_of_members)
{
    static const struct {
        const char *a, *b;
        int equal;
    } cases[] = {
        { "{\"a\":1,\"b\":[1,2]}", "{ \"b\": [1, 2], \"a\": 1 }", 1 },
        { "{\"a\":1}", "{\"a\":1,\"b\":2}", 0 },
        { "{\"a\":1}", "{\"b\":1}", 0 },
        { "[1,2]", "[2,1]", 0 },
        { "[1,2]", "[1]", 0 },
        { "[]", "{}", 0 },
        { "1", "1.0", 0 },
        { "1", "\"1\"", 0 },
        { "true", "false", 0 },
        { "null", "null", 1 },
        { "\"\\u00e9\"", "\"\xC3\xA9\"", 1 },
        { "{\"a\":1,\"b\":2,\"c\":3,\"d\":4,\"e\":5,\"f\":6,\"g\":7,\"h\":8,\"i\":9}",
          "{\"i\":9,\"h\":8,\"g\":7,\"f\":6,\"e\":5,\"d\":4,\"c\":3,\"b\":2,\"a\":1}", 1 },
        { "{\"a\":1,\"b\":2,\"c\":3,\"d\":4,\"e\":5,\"f\":6,\"g\":7,\"h\":8,\"i\":9}",
          "{\"i\":9,\"h\":8,\"g\":7,\"f\":6,\"e\":5,\"d\":4,\"c\":3,\"b\":2,\"x\":1}", 0 },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        brc_json *a = parse_ok(cases[i].a), *b = parse_ok(cases[i].b);
        ck_assert_msg(brc_json_equal(a, b) == cases[i].equal, "%s and %s", cases[i].a, cases[i].b);
        ck_assert_int_eq(brc_json_equal(b, a), cases[i].equal);
        ck_assert(!brc_json_equal(a, NULL));
        brc_json_free(a);
        brc_json_free(b);
    }
}

TEST(utf8_without_nul)
{
    ck_assert(brc_utf8_valid("", 0));
    ck_assert(brc_utf8_valid("a\xC3\xA9\xE6\x97\xA5\xF0\x9F\xAA\xA8", 10));
    ck_assert(!brc_utf8_valid("a\0b", 3));
    ck_assert(!brc_utf8_valid("\xC3\xA9\xC3", 3));
    ck_assert(!brc_utf8_valid("\xC1\xBF", 2));
    ck_assert(!brc_utf8_valid("\x80", 1));
    ck_assert(!brc_utf8_valid("\xED\xBF\xBF", 3));
    ck_assert(brc_utf8_valid("\xED\x9F\xBF\xEE\x80\x80", 6));
    ck_assert(!brc_utf8_valid("\xF5\x80\x80\x80", 4));
    ck_assert(!brc_utf8_valid("\xF0\x8F\xBF\xBF", 4));
}

/* Nobody looks whether a name is there that is said to be new; the reader finds it. */
TEST(members_are_added_in_order_without_a_search)
{
    brc_error err = BRC_ERROR_INIT;
    brc_json *doc = brc_json_new_object(), *read = NULL;
    brc_buf text = BRC_BUF_INIT;
    char name[16];
    for (int i = 0; i < 1000; i++) {
        snprintf(name, sizeof(name), "m%d", i);
        OK(brc_json_add(doc, name, brc_json_new_uint((uint64_t)i), &err));
    }
    ck_assert_uint_eq(brc_json_count(doc), 1000);
    ck_assert_str_eq(brc_json_name(brc_json_item(doc, 999)), "m999");
    OK(brc_json_set(doc, "m500", brc_json_new_uint(7), &err)); /* found among them */
    ck_assert_uint_eq(brc_json_count(doc), 1000);
    OK(brc_json_write(&text, doc, 0, &err));
    OK(brc_json_parse(&read, (const char *)text.data, text.len, 0, &err));
    ck_assert(brc_json_equal(doc, read));
    brc_json_free(read);
    OK(brc_json_add(doc, "m500", brc_json_new_uint(8), &err));
    text.len = 0;
    OK(brc_json_write(&text, doc, 0, &err));
    ck_assert_int_eq(brc_json_parse(&read, (const char *)text.data, text.len, 0, &err), BRC_EINVAL);
    brc_buf_dispose(&text);
    brc_json_free(doc);
}
