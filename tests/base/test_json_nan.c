/* JSON beyond RFC 8259 where attributes need it: NaN and the infinities as numbers; and names of
 * members that contain U+0000. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/base/json.h"
#include "../kit/suite.h"

TEST_SUITE(json_nan);

#define OK(call) ck_assert_int_eq((call), BRC_OK)

typedef int (*nan_parse_fn)(brc_json **out, const char *text, size_t len, brc_error *err);

static brc_json *nan_parsed(nan_parse_fn parse, const char *text)
{
    brc_json *value;
    brc_error err = BRC_ERROR_INIT;
    ck_assert_msg(parse(&value, text, strlen(text), &err) == BRC_OK, "%s: %s", text, err.message);
    return value;
}

static int parse_with_nan(brc_json **out, const char *text, size_t len, brc_error *err)
{
    return brc_json_parse(out, text, len, BRC_JSON_NAN, err);
}

static int parse_strict(brc_json **out, const char *text, size_t len, brc_error *err)
{
    return brc_json_parse(out, text, len, 0, err);
}

static void nan_refused(nan_parse_fn parse, const char *text, const char *says)
{
    brc_json *value;
    brc_error err = BRC_ERROR_INIT;
    ck_assert_int_eq(parse(&value, text, strlen(text), &err), BRC_EINVAL);
    ck_assert_ptr_null(value);
    ck_assert_msg(strstr(err.message, says), "%s: %s", text, err.message);
}

static void nan_is_written(const brc_json *value, const char *text)
{
    brc_buf out = BRC_BUF_INIT;
    OK(brc_json_write(&out, value, 0, NULL));
    OK(brc_buf_terminate(&out, NULL));
    ck_assert_str_eq((const char *)out.data, text);
    brc_buf_dispose(&out);
}

/* Attributes; what is a number and what is a text stays that, and is written as it was read. */
TEST(i24_2_nan_is_a_number_where_it_is_asked_for)
{
    static const char text[] = "[NaN,Infinity,-Infinity,\"NaN\",\"-Infinity\",1e999,0.5]";
    brc_json *list = nan_parsed(parse_with_nan, text), *copy;
    const uint64_t quiet = UINT64_C(0x7ff8000000000000);
    double d[7] = { 0 };
    uint64_t bits;
    for (size_t i = 0; i < 7; i++) {
        const brc_json *item = brc_json_item(list, i);
        int is_text = i == 3 || i == 4;
        ck_assert_int_eq(brc_json_kind(item), is_text ? BRC_JSON_STRING : BRC_JSON_NUMBER);
        ck_assert_int_eq(brc_json_is_nan(item), i < 3);
        ck_assert_int_eq(brc_json_double(item, &d[i]), !is_text && i != 5);
    }
    memcpy(&bits, &d[0], sizeof(bits));
    ck_assert_uint_eq(bits, quiet);
    ck_assert(isinf(d[1]) && d[1] > 0 && isinf(d[2]) && d[2] < 0 && d[6] == 0.5);
    ck_assert_str_eq(brc_json_literal(brc_json_item(list, 2)), "-Infinity");
    ck_assert(!brc_json_is_nan(NULL));
    nan_is_written(list, text);
    OK(brc_json_clone(&copy, list, NULL));
    ck_assert(brc_json_equal(list, copy));
    ck_assert(!brc_json_equal(brc_json_item(list, 0), brc_json_item(list, 3)));
    brc_json_nan_to_text(copy);
    nan_is_written(copy, "[\"NaN\",\"Infinity\",\"-Infinity\",\"NaN\",\"-Infinity\",1e999,0.5]");
    brc_json_free(copy);
    brc_json_free(list);
    static const char *const not_words[] = { "[nan]", "[-NaN]", "[-Inf]", "[+Infinity]", "[NaN1]",
                                             "[-]",   "[inf]",  "[Infinit]", "[- Infinity]" };
    for (size_t i = 0; i < sizeof(not_words) / sizeof(not_words[0]); i++)
        nan_refused(parse_with_nan, not_words[i], "JSON: ");
}

/* In a document only the attributes have such numbers, and copies of attributes. */
TEST(i24_2_nan_in_documents_is_for_attributes_alone)
{
    static const char *const good[] = {
        "{\"attributes\":{\"a\":NaN,\"b\":[[-Infinity],{\"attributes\":Infinity}]}}",
        "{\"a\":\"NaN\",\"attributes\":NaN,\"b\":1}",
        "{\"consolidated_metadata\":{\"k\":1,\"metadata\":{\"x\":{\"attributes\":{\"a\":NaN}}}}}",
        "{\"\\u0061ttributes\":{\"a\":NaN}}",
    };
    static const char *const bad[] = {
        "NaN",
        "[NaN]",
        "{\"fill_value\":NaN,\"attributes\":{}}",
        "{\"attributes\":{\"a\":1},\"fill_value\":-Infinity}",
        "{\"attributes\":{\"attributes\":{}},\"fill_value\":Infinity}",
        "{\"x\":{\"attributes\":{\"a\":NaN}}}",
        "{\"attributes\\u0000\":NaN}",
        "{\"consolidated_metadata\":{\"attributes\":{\"a\":NaN}}}",
        "{\"consolidated_metadata\":{\"metadata\":{\"x\":{\"fill_value\":NaN}}}}",
        "{\"consolidated_metadata\":{},\"x\":{\"metadata\":{\"x\":{\"attributes\":NaN}}}}",
    };
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        brc_json *doc = nan_parsed(brc_json_parse_document, good[i]);
        if (i < 3)
            nan_is_written(doc, good[i]);
        brc_json_free(doc);
        nan_refused(parse_strict, good[i], "is not a value");
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        nan_refused(brc_json_parse_document, bad[i], "which only attributes may have");
}

/* Names are C strings that differ where the names do, and lead back to the same text. */
TEST(i24_24_names_with_nul_are_kept)
{
    static const char text[] = "{\"a\":1,\"a\\u0000\":2,"
                               "\"\\u0000\":{\"\\u0000b\\u0000\\u0000c\":3},"
                               "\"\\u0001r\\\\u0000\":4,\"\\\\u0000\":5,\"\":6}";
    brc_json *object = nan_parsed(parse_strict, text), *copy;
    brc_json_index index;
    int64_t n;
    nan_is_written(object, text);
    OK(brc_json_index_make(&index, object, NULL));
    size_t i = 0;
    for (const brc_json *m = brc_json_first(object); m; m = brc_json_next(m), i++) {
        const char *name = brc_json_name(m);
        ck_assert(brc_json_name_is_valid(name));
        ck_assert_ptr_eq(brc_json_member(object, name), m);
        ck_assert_ptr_eq(brc_json_index_find(&index, name), m);
        ck_assert_ptr_eq(brc_json_name(brc_json_item(object, i)), name);
    }
    ck_assert_uint_eq(i, 6);
    brc_json_index_dispose(&index);
    ck_assert(brc_json_int(brc_json_member(object, "a"), 1, 1, &n));
    ck_assert(brc_json_int(brc_json_member(object, "a" BRC_JSON_NUL), 2, 2, &n));
    OK(brc_json_clone(&copy, object, NULL));
    ck_assert(brc_json_equal(object, copy));
    brc_json_remove(copy, "a" BRC_JSON_NUL);
    ck_assert(!brc_json_equal(object, copy));
    OK(brc_json_set(copy, "a" BRC_JSON_NUL, brc_json_new_uint(2), NULL));
    ck_assert(brc_json_equal(object, copy));
    brc_json_free(copy);
    brc_json_free(object);
}

TEST(i24_24_what_is_a_name)
{
    static const char *const bad[] = { "\xC0", "\x80", "\xC0\x81", "a\xC0\x80\xC0", "\xC0\xC0\x80",
                                       "\xED\xA0\x80", "\xC0\x80\xFF" };
    ck_assert(brc_json_name_is_valid("") && brc_json_name_is_valid("\xC3\xA9"));
    ck_assert(brc_json_name_is_valid(BRC_JSON_NUL) &&
              brc_json_name_is_valid("x" BRC_JSON_NUL BRC_JSON_NUL "y"));
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        ck_assert(!brc_json_name_is_valid(bad[i]));
}
