/* Elements of variable length, from end to end of a chain. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../kit/chain_fixture.h"
#include "../kit/codec_kit.h"
#include "../kit/suite.h"

TEST_SUITE(codecs_vlen);

#define NAMED(name_, config_) "{\"name\":\"" name_ "\",\"configuration\":" config_ "}"

/* "", "h", U+E9, "ab", in the form of canonical elements. */
#define FOUR           \
    "\0\0\0\0"         \
    "\1\0\0\0h"        \
    "\2\0\0\0\xC3\xA9" \
    "\2\0\0\0"         \
    "ab"
static const uint8_t four[] = FOUR, four_stored[] = "\4\0\0\0" FOUR;
enum { FOUR_LEN = sizeof(four) - 1, FOUR_STORED = sizeof(four_stored) - 1 };

/* ---- all of them -------------------------------------------------------------------- */

static const struct {
    const char *list;
    int ndim;
} vlen_lists[] = {
    { "[\"vlen-utf8\"]", -1 },
    { "[\"vlen-bytes\",\"crc32c\"]", -1 },
    { "[\"zarrs.vlen_v2\"," NAMED("zstd", "{\"level\":1}") "]", -1 },
    { "[\"vlen-array\"," NAMED("gzip", "{\"level\":1}") "," NAMED("numcodecs.bz2",
                                                                  "{\"level\":1}") "]",
      1 },
    { "[\"vlen-utf8\"," NAMED("blosc", "{\"cname\":\"lz4\",\"clevel\":3,\"shuffle\":\"noshuffle\","
                                       "\"blocksize\":0}") "]",
      2 },
    { "[\"vlen-utf8\",\"numcodecs.lz4\",\"numcodecs.fletcher32\",\"numcodecs.base64\"]", 2 },
    { "[\"vlen-utf8\",\"numcodecs.lzma\",\"numcodecs.zlib\",\"numcodecs.shuffle\"]", 2 },
    { "[" NAMED("transpose", "{\"order\":[2,0,1]}") ",\"vlen-bytes\"]", 3 },
    { "[" NAMED("reshape", "{\"shape\":[-1]}") ",\"vlen-utf8\"]", -1 },
    { "[" NAMED("transpose",
                "{\"order\":[1,0]}") "," NAMED("reshape", "{\"shape\":[-1,[1]]}") ",\"vlen-utf8\"]",
      2 },
};

CASE("each", .setup = codecs_setup, .teardown = codecs_teardown, .timeout = UNTIMED);

EACH(P16_chains_of_variable_length_hold_what_the_kit_asks, vlen_lists)
{
    char why[1024] = "no data type was taken";
    codec_kit kit = { .reg = codecs_reg,
                      .codecs = vlen_lists[_i].list,
                      .ndim = vlen_lists[_i].ndim,
                      .rounds = 8,
                      .seed = 31 };

    ck_assert_msg(codec_kit_run(&kit, why, sizeof(why)) == 0, "%s", why);
}

/* ---- the bytes ---------------------------------------------------------------------- */

TEST(vlen_is_a_count_and_the_elements)
{
    uint64_t shape[2] = { 2, 2 }, none = 0;

    codecs_open("[\"vlen-utf8\"]", "string", 2, shape);
    ck_assert_uint_eq(brc_chain_describe(codecs_chain)->decoded_len, UINT64_MAX);
    codecs_expect_stored(four, FOUR_LEN, four_stored, FOUR_STORED);
    codecs_open("[" NAMED("vlen-bytes", "{}") "]", "bytes", 2, shape);
    codecs_expect_stored(four, FOUR_LEN, four_stored, FOUR_STORED);
    codecs_open("[\"vlen-utf8\"]", "string", 1, &none);
    codecs_expect_stored("", 0, "\0\0\0\0", 4);
    codecs_open("[\"vlen-utf8\"]", "string", 0, NULL);
    codecs_expect_stored("\1\0\0\0x", 5, "\1\0\0\0\1\0\0\0x", 9);
}

TEST(vlen_refuses_what_is_not_its_elements)
{
    static const char *const bad_text[] = { "\xFF",         "\xC0\x80",         "\xE0\x80\x80",
                                            "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xC3",
                                            "\xE2\x82" };
    uint8_t element[16] = { 0 };
    uint64_t n = 4, one = 1;

    codecs_open("[\"vlen-utf8\"]", "string", 1, &n);
    codecs_expect_corrupt("\3\0\0\0", 4, "it has 3 elements, not 4");
    codecs_expect_corrupt("\xFF\xFF\xFF\xFF", 4, "4294967295 elements");
    codecs_expect_corrupt(four_stored, FOUR_STORED - 1, "the bytes end inside element 3 of 4");
    codecs_expect_corrupt("\4\0\0", 3, "3 bytes cannot hold the number of elements");
    codecs_expect_corrupt("\4\0\0\0" FOUR "x", FOUR_STORED + 1, "1 bytes follow the last element");
    codecs_open("[\"vlen-utf8\"]", "string", 1, &one);
    codecs_expect_corrupt("\1\0\0\0\xFF\xFF\xFF\xFFx", 9, "the bytes end inside element 0 of 1");
    for (size_t i = 0; i < sizeof(bad_text) / sizeof(bad_text[0]); i++) {
        size_t len = strlen(bad_text[i]);
        element[0] = 1;
        element[4] = (uint8_t)len;
        memcpy(element + 8, bad_text[i], len);
        codecs_expect_corrupt(element, 8 + len, "element 0 is not UTF-8");
        codecs_expect_unstorable(element + 4, 4 + len, "element 0 is not UTF-8");
    }
    /* bytes are not text */
    codecs_open("[\"vlen-bytes\"]", "bytes", 1, &one);
    codecs_expect_stored("\1\0\0\0\xFF", 5, "\1\0\0\0\1\0\0\0\xFF", 9);
    ck_assert_int_eq(codecs_try_open("[\"vlen-bytes\"]", "int8", 1, &one), BRC_EINVAL);
    ck_assert_int_eq(codecs_try_open("[\"bytes\"]", "string", 1, &one), BRC_EINVAL);
}

#define APART(index_, data_, type_, more_)                                        \
    "[" NAMED("zarrs.vlen", "{\"index_codecs\":" index_ ",\"data_codecs\":" data_ \
                            ",\"index_data_type\":" type_ more_ "}") "]"
#define LITTLE "[" NAMED("bytes", "{\"endian\":\"little\"}") "]"
#define PLAIN "[\"bytes\"]"

/* The same texts as zarrs stores them with "zarrs.vlen": offsets 0, 0, 1, 3, 5. */
TEST(zarrs_vlen_is_offsets_and_bytes)
{
    static const char start[] = "\24\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1\0\0\0\3\0\0\0\5\0\0\0h\xC3\xA9"
                                "ab";
    static const char end[] = "h\xC3\xA9"
                              "ab\0\0\0\0\0\0\0\0\1\0\0\0\3\0\0\0\5\0\0\0\24\0\0\0\0\0\0\0";
    uint64_t n = 4, two = 2, none = 0;

    codecs_open(APART(LITTLE, PLAIN, "\"uint32\"", ""), "string", 1, &n);
    codecs_expect_stored(four, FOUR_LEN, start, sizeof(start) - 1);
    codecs_open(APART(LITTLE, PLAIN, "\"uint32\"", ",\"index_location\":\"end\""), "bytes", 1, &n);
    codecs_expect_stored(four, FOUR_LEN, end, sizeof(end) - 1);
    codecs_open(APART(LITTLE, PLAIN, "\"uint64\"", ",\"index_location\":\"start\""), "string", 1,
                &two);
    codecs_expect_stored("\0\0\0\0\0\0\0\0", 8,
                         "\30\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 32);
    codecs_open(APART(LITTLE, PLAIN, "\"uint32\"", ""), "string", 1, &none);
    codecs_expect_stored("", 0, "\4\0\0\0\0\0\0\0\0\0\0\0", 12);
}

TEST(zarrs_vlen_refuses_offsets_that_lie)
{
    uint64_t n = 2;

    codecs_open(APART(LITTLE, PLAIN, "\"uint32\"", ""), "string", 1, &n);
    codecs_expect_corrupt("\14\0\0\0\0\0\0", 7, "7 bytes cannot hold the length of the index");
    codecs_expect_corrupt("\14\0\0\0\0\0\0\0\0", 9, "the index says that it has 12 bytes, of 1");
    codecs_expect_corrupt("\377\377\377\377\377\377\377\377\0", 9, "of 1");
    codecs_expect_corrupt("\13\0\0\0\0\0\0\0\0\0\0\0\1\0\0\0\2\0\0\0ab", 22, "the index");
    codecs_expect_corrupt("\14\0\0\0\0\0\0\0\1\0\0\0\1\0\0\0\2\0\0\0ab", 22,
                          "offset 0 of the index is 1");
    codecs_expect_corrupt("\14\0\0\0\0\0\0\0\0\0\0\0\2\0\0\0\1\0\0\0ab", 22,
                          "offset 2 of the index is 1, after 2");
    codecs_expect_corrupt("\14\0\0\0\0\0\0\0\0\0\0\0\1\0\0\0\3\0\0\0ab", 22, "the elements");
    codecs_expect_corrupt("\14\0\0\0\0\0\0\0\0\0\0\0\1\0\0\0\1\0\0\0ab", 22, "the elements");
    codecs_expect_corrupt("\14\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0ab", 22,
                          "2 bytes are stored, but all elements are empty");
    codecs_expect_corrupt("\14\0\0\0\0\0\0\0\0\0\0\0\1\0\0\0\2\0\0\0a\377", 22,
                          "element 1 is not UTF-8");
    codecs_expect_corrupt("\14\0\0\0\0\0\0\0\0\0\0\0\1\0\0\0\377\377\377\377ab", 22,
                          "decodes to more than");
    codecs_expect_unstorable("\1\0\0\0\377\0\0\0\0", 9, "element 0 is not UTF-8");
}

static const struct {
    const char *list, *says;
} apart_refused[] = {
    { "[\"zarrs.vlen\"]", "\"index_data_type\" must be" },
    { APART(LITTLE, PLAIN, "\"uint16\"", ""), "\"index_data_type\" must be" },
    { APART(LITTLE, PLAIN, "\"uint32\"", ",\"index_location\":\"middle\""),
      "\"index_location\" must be" },
    { APART(LITTLE, PLAIN, "\"uint32\"", ",\"index\":1"), "index" },
    { APART("[]", PLAIN, "\"uint32\"", ""), "\"index_codecs\"" },
    { APART(PLAIN, PLAIN, "\"uint32\"", ""), "\"index_codecs\"" },
    { APART(LITTLE, "[\"vlen-utf8\"]", "\"uint32\"", ""), "\"data_codecs\"" },
    { APART(
          "[" NAMED("bitround", "{\"keepbits\":1}") "," NAMED("bytes", "{\"endian\":\"big\"}") "]",
          PLAIN, "\"uint32\"", ""),
      "must be stored without loss" },
};

EACH(wrong_configurations_of_zarrs_vlen_are_refused, apart_refused)
{
    uint64_t n = 4;

    ck_assert_int_eq(codecs_try_open(apart_refused[_i].list, "string", 1, &n), BRC_EINVAL);
    ck_assert_msg(strstr(codecs_err.message, apart_refused[_i].says) != NULL, "%s",
                  codecs_err.message);
    ck_assert_int_eq(codecs_try_open(APART(LITTLE, PLAIN, "\"uint32\"", ""), "int8", 1, &n),
                     BRC_EINVAL);
}

TEST(transpose_permutes_elements_of_any_length)
{
    /* (2, 3): a bb c / dd e f, read by columns */
    static const char plain[] = "\1\0\0\0a\2\0\0\0bb\1\0\0\0c\2\0\0\0dd\1\0\0\0e\1\0\0\0f";
    static const char stored[] = "\6\0\0\0\1\0\0\0a\2\0\0\0dd\2\0\0\0bb\1\0\0\0e\1\0\0\0c\1\0\0\0f";
    uint64_t shape[2] = { 2, 3 };

    codecs_open("[" NAMED("transpose", "{\"order\":[1,0]}") ",\"vlen-utf8\"]", "string", 2, shape);
    codecs_expect_stored(plain, sizeof(plain) - 1, stored, sizeof(stored) - 1);
}

/* ---- limits ------------------------------------------------------------------------- */

/* Frames by hand: one element, "", and what surrounds it. */
#define FRAME_START "\x28\xB5\x2F\xFD"
#define ONE_BLOCK "\x41\0\0" "\1\0\0\0" "\0\0\0\0" /* the last one, 8 bytes as they are */

TEST(f22_frames_that_are_cut_or_want_a_huge_window)
{
    static const char *const plain = "\0\0\0\0";
    uint64_t one = 1;
    codecs_open("[\"vlen-utf8\"," NAMED("zstd", "{\"level\":1}") "]", "string", 1, &one);
    codecs_expect(FRAME_START "\0\0" ONE_BLOCK, 17, plain, 4);
    codecs_expect_corrupt(FRAME_START "\0\xA0" ONE_BLOCK, 17, "zstd"); /* 1 GiB */
    /* with a checksum that is missing, in part and whole: all of the content is there */
    for (size_t cut = 1; cut <= 4; cut++)
        codecs_expect_corrupt(FRAME_START "\4\0" ONE_BLOCK "\0\0\0\0", 21 - cut, "truncated");
}

/* A bomb: one element of 100 MB of the letter x, in a few bytes. Elements of variable
 * length have no length to stop at, so the ratio does, and the memory stays bounded. */
TEST(X6_bombs_of_variable_length_stop)
{
    size_t len = (size_t)100 << 20;
    uint64_t one = 1, n;
    uint8_t *plain = malloc(len + 8);
    brc_buf packed = BRC_BUF_INIT, out = BRC_BUF_INIT;

    ck_assert_ptr_nonnull(plain);
    memset(plain, 'x', len + 8);
    for (int i = 0; i < 4; i++) {
        plain[i] = i == 0;
        plain[4 + i] = (uint8_t)(len >> 8 * i);
    }
    n = len + 8;
    codecs_open_bytes("[\"bytes\"," NAMED("zstd", "{\"level\":1}") "]", n);
    codecs_encode(plain, len + 8, &packed);
    free(plain);
    codecs_open("[\"vlen-utf8\"," NAMED("zstd", "{\"level\":1}") "]", "string", 1, &one);
    codecs_expect_corrupt(packed.data, packed.len, "the chunk decodes to more than");
    brc_buf_dispose(&packed);
    brc_buf_dispose(&out);
}

/* Elements for which no byte is stored are allowed as well: a long fill value, many times. */
TEST(empty_and_equal_elements_are_no_bombs)
{
    size_t n = 400000, each = 4 + 200;
    uint64_t shape = n;
    uint8_t fill[204] = { 200 };
    brc_buf plain = BRC_BUF_INIT, out = BRC_BUF_INIT;

    memset(fill + 4, 'y', 200);
    ck_assert_int_eq(brc_buf_reserve(&plain, n * each, NULL), BRC_OK);
    for (size_t i = 0; i < n; i++)
        memcpy(plain.data + i * each, fill, each);
    codecs_open_filled("[\"vlen-utf8\"," NAMED("zstd", "{\"level\":1}") "]", "string", 1, &shape,
                       fill, each);
    codecs_encode(plain.data, n * each, &out);
    ck_assert_uint_lt(out.len, n * each / 1000);
    codecs_expect(out.data, out.len, plain.data, n * each);
    brc_buf_dispose(&plain);
    brc_buf_dispose(&out);
}

TEST(too_many_elements_are_refused_at_open)
{
    uint64_t shape[2] = { UINT64_C(1) << 20, UINT64_C(1) << 20 };

    ck_assert_int_eq(codecs_try_open("[\"vlen-utf8\"]", "string", 2, shape), BRC_ELIMIT);
    ck_assert_msg(strstr(codecs_err.message, "choose smaller chunks") != NULL, "%s",
                  codecs_err.message);
    shape[0] = shape[1] = UINT64_MAX;
    ck_assert_int_eq(codecs_try_open("[\"vlen-utf8\"]", "string", 2, shape), BRC_ELIMIT);
}

#define CATEGORIZE(config_) "[" NAMED("numcodecs.categorize", config_) ",\"bytes\"]"

TEST(labels_are_counted_from_one)
{
    static const char texts[] = "\5\0\0\0green\0\0\0\0\3\0\0\0red\5\0\0\0green";
    static const char wide[] = "b\0\0\0\xE9\0\0\0\0\0\0\0\0\0\0\0a\0\0\0\0\0\0";
    uint64_t n = 4, three = 3;

    codecs_open(CATEGORIZE("{\"labels\":[\"red\",\"green\"],\"dtype\":\"|O\"}"), "string", 1, &n);
    codecs_expect_stored(texts, sizeof(texts) - 1, "\2\0\1\2", 4);
    codecs_expect_corrupt("\2\0\3\2", 4, "element 2 is 3, and there are 2 labels");
    codecs_expect_corrupt("\2\0\1", 3, "4 bytes are expected, not 3");
    codecs_expect_unstorable("\4\0\0\0blue\0\0\0\0\0\0\0\0\0\0\0\0", 20,
                             "element 0: a text of 4 bytes is not one of the labels");
    codecs_open("[" NAMED("numcodecs.categorize",
                          "{\"labels\":[\"a\",\"b\\u00e9\"],\"dtype\":\"<U2\",\"astype\":\">u2\"}")
                "," NAMED("bytes", "{\"endian\":\"big\"}") "]",
                "{\"name\":\"fixed_length_utf32\",\"configuration\":{\"length_bytes\":8}}", 1,
                &three);
    codecs_expect_stored(wide, 24, "\0\2\0\0\0\1", 6);
}

TEST(B07_wrong_options_of_categorize_are_refused)
{
    static const struct {
        const char *config, *says;
    } wrong[] = {
        { "{}", "\"labels\" must be a list" },
        { "{\"labels\":\"a\"}", "\"labels\" must be a list" },
        { "{\"labels\":[1]}", "\"labels\" must be a list of texts" },
        { "{\"labels\":[],\"level\":1}", "level" },
        { "{\"labels\":[],\"astype\":\"<f4\"}", "\"astype\" must be a type of integers" },
        { "{\"labels\":[],\"astype\":\"O\"}", "\"astype\"" },
    };
    char list[2000] = "[{\"name\":\"numcodecs.categorize\",\"configuration\":{\"labels\":[";
    uint64_t n = 1;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        char config[300];
        snprintf(config, sizeof(config), CATEGORIZE("%s"), wrong[i].config);
        ck_assert_int_lt(codecs_try_open(config, "string", 1, &n), 0);
        ck_assert_msg(strstr(codecs_err.message, wrong[i].says), "%s", codecs_err.message);
    }
    ck_assert_int_eq(codecs_try_open(CATEGORIZE("{\"labels\":[]}"), "int8", 1, &n), BRC_EINVAL);
    ck_assert_int_eq(codecs_try_open(CATEGORIZE("{\"labels\":[\"abc\"]}"),
                                     "{\"name\":\"fixed_length_utf32\","
                                     "\"configuration\":{\"length_bytes\":8}}",
                                     1, &n),
                     BRC_EINVAL);
    size_t len = strlen(list);
    for (int i = 0; i < 256; i++, len += strlen(list + len))
        snprintf(list + len, sizeof(list) - len, "%s\"a\"", i == 0 ? "" : ",");
    snprintf(list + len, sizeof(list) - len, "]}},\"bytes\"]");
    ck_assert_int_eq(codecs_try_open(list, "string", 1, &n), BRC_EINVAL);
    ck_assert_msg(strstr(codecs_err.message, "256 labels are more than"), "%s", codecs_err.message);
}
