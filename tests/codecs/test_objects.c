/* "numcodecs.json2" and "numcodecs.msgpack2": chunks of numcodecs, objects that are not texts, and
 * chunks that are none. */
#include <string.h>

#include "../kit/chain_fixture.h"
#include "../kit/suite.h"

TEST_SUITE(objects);

#define NAMED(name_, config_) "[{\"name\":\"" name_ "\",\"configuration\":" config_ "}]"
#define JSON "[\"numcodecs.json2\"]"
#define PACK "[\"numcodecs.msgpack2\"]"

/* "", "a", "hé" / "x\0y", U+65E5, 31 and one letters, in the form of canonical elements */
#define SIX                \
    "\0\0\0\0"             \
    "\1\0\0\0a"            \
    "\3\0\0\0h\xC3\xA9"    \
    "\3\0\0\0x\0y"         \
    "\3\0\0\0\xE6\x97\xA5" \
    "\40\0\0\0zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz"
static const char six[] = SIX;
enum { SIX_LEN = sizeof(six) - 1 };
static const uint64_t two_three[2] = { 2, 3 };

CASE("each", .setup = codecs_setup, .teardown = codecs_teardown);

/* Chunks of numcodecs 0.16.6, which escapes what is not ASCII. */
TEST(chunks_of_numcodecs_are_read)
{
    static const char json[] = "[[\"\",\"a\",\"h\\u00e9\"],[\"x\\u0000y\",\"\\u65e5\","
                               "\"zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz\"],"
                               "\"|O\",[2,3]]";
    static const char pack[] = "\x94\x93\xa0\xa1"
                               "a\xa3h\xc3\xa9\x93\xa3x\0y\xa3\xe6\x97\xa5\xd9 "
                               "zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz\xa2|O\x92\2\3";
    static const char wide[] =
        "\xdc\0\4\xdd\0\0\0\3\xd9\0\xda\0\1a\xdb\0\0\0\3h\xc3\xa9\x93\xa3x\0y"
        "\xa3\xe6\x97\xa5\xd9 zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz\xa2|O\x92"
        "\xcd\0\2\xcf\0\0\0\0\0\0\0\3";
    uint64_t one = 1, none = 0;

    codecs_open(JSON, "string", 2, two_three);
    codecs_expect(json, sizeof(json) - 1, six, SIX_LEN);
    codecs_open(PACK, "string", 2, two_three);
    codecs_expect_stored(six, SIX_LEN, pack, sizeof(pack) - 1);
    codecs_expect(wide, sizeof(wide) - 1, six, SIX_LEN);
    codecs_open(JSON, "string", 0, NULL);
    codecs_expect_stored("\1\0\0\0x", 5, "[\"x\",\"|O\",[]]", 13);
    codecs_open(JSON, "string", 1, &one);
    codecs_expect_stored("\1\0\0\0x", 5, "[\"x\",\"|O\",[1]]", 14);
    codecs_expect("[ \"x\" ,\n\"|O\", [ 1 ] ]", 21, "\1\0\0\0x", 5);
    codecs_open(JSON, "string", 1, &none);
    codecs_expect_stored("", 0, "[\"|O\",[0]]", 10);
    codecs_open(PACK, "string", 1, &none);
    codecs_expect_stored("", 0, "\x92\xa2|O\x91\0", 6);
}

TEST(lists_are_nested_as_deep_as_the_shape)
{
    static const char plain[] = "\1\0\0\0a\1\0\0\0b\1\0\0\0c\1\0\0\0d\1\0\0\0e\1\0\0\0f";
    static const char json[] = "[[[\"a\",\"b\"]],[[\"c\",\"d\"]],[[\"e\",\"f\"]],\"|O\",[3,1,2]]";
    static const char pack[] = "\x95\x91\x92\xa1"
                               "a\xa1"
                               "b\x91\x92\xa1"
                               "c\xa1"
                               "d\x91\x92\xa1"
                               "e\xa1"
                               "f\xa2|O\x93\3\1\2";
    uint64_t shape[3] = { 3, 1, 2 };

    codecs_open(JSON, "string", 3, shape);
    codecs_expect_stored(plain, sizeof(plain) - 1, json, sizeof(json) - 1);
    codecs_open(PACK, "string", 3, shape);
    codecs_expect_stored(plain, sizeof(plain) - 1, pack, sizeof(pack) - 1);
}

/* zarr-python stores its fill value of objects where nothing was written. */
TEST(none_and_zero_are_empty_texts)
{
    uint64_t n = 3;

    codecs_open(JSON, "string", 1, &n);
    codecs_expect("[0,null,\"a\",\"|O\",[3]]", 21, "\0\0\0\0\0\0\0\0\1\0\0\0a", 13);
    codecs_open(PACK, "string", 1, &n);
    codecs_expect("\x95\0\xc0\xa1"
                  "a\xa2|O\x91\3",
                  10, "\0\0\0\0\0\0\0\0\1\0\0\0a", 13);
}

static const char *const other_json[] = { "[1,\"|O\",[1]]",       "[0.0,\"|O\",[1]]",
                                          "[[\"a\"],\"|O\",[1]]", "[{\"a\":1},\"|O\",[1]]",
                                          "[NaN,\"|O\",[1]]",     "[false,\"|O\",[1]]" };
static const char *const other_pack[] = {
    "\x93\1\xa2|O\x91\1",
    "\x93\xcb\1\1\1\1\1\1\1\1\xa2|O\x91\1",
    "\223\221\241a\242|O\221\1",
    "\x93\xc2\xa2|O\x91\1",
    "\223\304\1a\242|O\221\1",
};

static void expect_other(const char *list, const char *stored)
{
    uint64_t one = 1;
    brc_buf out = BRC_BUF_INIT;

    codecs_open(list, "string", 1, &one);
    ck_assert_int_eq(codecs_decode(stored, strlen(stored), &out), BRC_EUNSUPPORTED);
    ck_assert_msg(strstr(codecs_err.message, "element 0 is not a text") != NULL, "%s",
                  codecs_err.message);
    brc_buf_dispose(&out);
}

TEST(other_objects_are_refused)
{
    for (size_t i = 0; i < sizeof(other_json) / sizeof(other_json[0]); i++)
        expect_other(JSON, other_json[i]);
    for (size_t i = 0; i < sizeof(other_pack) / sizeof(other_pack[0]); i++)
        expect_other(PACK, other_pack[i]);
}

static const char *const bad_json[] = {
    "",
    "{}",
    "[]",
    "[\"a\",\"b\",\"|O\"]",
    "[\"a\",\"b\",\"|O\",[3]]",
    "[\"a\",\"b\",\"|O\",[2,1]]",
    "[\"a\",\"|O\",[2]]",
    "[\"a\",\"b\",\"c\",\"|O\",[2]]",
    "[\"a\",\"b\",\"<f4\",[2]]",
    "[\"a\",\"b\",\"|O\",[2]",
    "[\"a\",\"b\",\"|O\",[2]]x",
    "[\"a\",\"\\ud800\",\"|O\",[2]]",
    "[\"a\",\"\xFF\",\"|O\",[2]]",
    "[\"a\",\"b\",\"|O\",[-2]]",
};

static const char *const bad_rows[] = { "[[\"a\",\"b\",\"c\"],[\"a\",\"b\"],\"|O\",[2,3]]",
                                        "[[\"a\",\"b\",\"c\"],\"a\",\"|O\",[2,3]]" };

TEST(texts_that_are_no_chunk_are_refused)
{
    uint64_t two = 2;

    codecs_open(JSON, "string", 1, &two);
    for (size_t i = 0; i < sizeof(bad_json) / sizeof(bad_json[0]); i++)
        codecs_expect_corrupt(bad_json[i], strlen(bad_json[i]), "");
    codecs_open(JSON, "string", 2, two_three);
    for (size_t i = 0; i < sizeof(bad_rows) / sizeof(bad_rows[0]); i++)
        codecs_expect_corrupt(bad_rows[i], strlen(bad_rows[i]), "its lists are not");
}

TEST(messages_that_are_no_chunk_are_refused)
{
    static const char good[] = "\x94\xa1"
                               "a\xa1"
                               "b\xa2|O\x91\2";
    uint64_t two = 2;

    codecs_open(PACK, "string", 1, &two);
    codecs_expect(good, 10, "\1\0\0\0a\1\0\0\0b", 10);
    for (size_t len = 0; len < 10; len++)
        codecs_expect_corrupt(good, len, "");
    codecs_expect_corrupt("\x94\xa1"
                          "a\xa1"
                          "b\xa2|O\x91\2x",
                          11, "its lists are not");
    codecs_expect_corrupt("\xdd\xff\xff\xff\xff", 5, "its lists are not");
    codecs_expect_corrupt("\x94\xdb\xff\xff\xff\xff"
                          "a",
                          7, "element 0 is not UTF-8, or cut off");
    codecs_expect_corrupt("\x94\xa1\xff\xa1"
                          "b\xa2|O\x91\2",
                          10, "element 0 is not UTF-8, or cut off");
    codecs_open(PACK, "string", 2, two_three);
    codecs_expect_corrupt("\x94\x92\xa0\xa0\xa0", 5, "its lists are not");
    codecs_expect_unstorable("\1\0\0\0\377\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 25,
                             "element 0 is not UTF-8");
}

static const struct {
    const char *list, *type, *says;
    int code;
} refused[] = {
    { JSON, "bytes", "not texts of variable length", BRC_EUNSUPPORTED },
    { PACK, "int32", "not texts of variable length", BRC_EUNSUPPORTED },
    { NAMED("numcodecs.json2", "{\"encoding\":\"latin-1\"}"), "string", "\"encoding\" must be",
      BRC_EINVAL },
    { NAMED("numcodecs.json2", "{\"strict\":1}"), "string", "\"strict\" must be", BRC_EINVAL },
    { NAMED("numcodecs.json2", "{\"separators\":[\";\",\":\"]}"), "string",
      "\"separators\" must be", BRC_EINVAL },
    { NAMED("numcodecs.json2", "{\"raw\":false}"), "string", "raw", BRC_EINVAL },
    { NAMED("numcodecs.msgpack2", "{\"raw\":true}"), "string", "\"raw\" must be false",
      BRC_EINVAL },
    { NAMED("numcodecs.msgpack2", "{\"encoding\":\"utf-8\"}"), "string", "encoding", BRC_EINVAL },
};

EACH(wrong_configurations_of_objects_are_refused, refused)
{
    ck_assert_int_eq(codecs_try_open(refused[_i].list, refused[_i].type, 2, two_three),
                     refused[_i].code);
    ck_assert_msg(strstr(codecs_err.message, refused[_i].says) != NULL, "%s", codecs_err.message);
}

TEST(chunks_that_are_too_much_for_a_list_are_refused)
{
    uint64_t n = 500001;

    ck_assert_int_eq(codecs_try_open(JSON, "string", 1, &n), BRC_ELIMIT);
    ck_assert_int_eq(codecs_try_open(PACK, "string", 1, &n), BRC_OK);
    ck_assert_int_eq(codecs_try_open(PACK, "string", 0, NULL), BRC_EINVAL);
    ck_assert_msg(strstr(codecs_err.message, "a scalar has no form") != NULL, "%s",
                  codecs_err.message);
}
