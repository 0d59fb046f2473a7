/* "n5_default": blocks that TensorStore wrote, blocks that are smaller or larger than a chunk, and
 * blocks that are none. */
#include <string.h>

#include "../kit/chain_fixture.h"
#include "../kit/suite.h"

TEST_SUITE(n5);

#define N5(order_, codecs_)                                                             \
    "[{\"name\":\"n5_default\",\"configuration\":{\"codecs\":[{\"name\":\"transpose\"," \
    "\"configuration\":{\"order\":" order_ "}}," codecs_ "]}}]"
#define BIG "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}}"
#define GZIP "{\"name\":\"gzip\",\"configuration\":{\"level\":1}}"
#define HEADER(rows_, columns_) "\0\0\0\2\0\0\0" rows_ "\0\0\0" columns_

static const uint64_t three_two[2] = { 3, 2 };

CASE("each", .setup = codecs_setup, .teardown = codecs_teardown);

/* A block of an array of shape (5, 4) with the numbers from 0 on. */
TEST(a_block_of_n5_has_its_first_axis_within)
{
    static const uint16_t values[] = { 0, 1, 4, 5, 8, 9 };
    static const char stored[] = HEADER("\3", "\2") "\0\0\0\4\0\10\0\1\0\5\0\11";
    static const char zipped[] = HEADER(
        "\3", "\2") "\x1f\x8b\x08\x00\x89\xb8\x38\x5e\x02\xff\x63\x60\x60\x60\x61\xe0\x60\x60"
                    "\x64\x60\x65\xe0\x04\x00\xfb\x8a\xa1\x57\x0c\x00\x00\x00";

    codecs_open(N5("[1,0]", BIG), "uint16", 2, three_two);
    codecs_expect_stored(values, 12, stored, sizeof(stored) - 1);
    codecs_open(N5("[1,0]", BIG "," GZIP), "uint16", 2, three_two);
    codecs_expect(zipped, sizeof(zipped) - 1, values, 12);
    codecs_open(N5("[]", "\"bytes\""), "int8", 0, NULL);
    codecs_expect_stored("\7", 1, "\0\0\0\0\7", 5);
}

TEST(a_block_of_another_shape_is_filled_and_cut)
{
    static const uint16_t filled[] = { 7, 9, 8, 9, 9, 9 }, cut[] = { 1, 4, 2, 5, 3, 6 };
    static const char smaller[] = HEADER("\2", "\1") "\0\7\0\10";
    static const char larger[] = HEADER("\3", "\3") "\0\1\0\2\0\3\0\4\0\5\0\6\0\7\0\10\0\11";
    static const char none[] = HEADER("\0", "\1");
    static const uint16_t nine = 9, nines[] = { 9, 9, 9, 9, 9, 9 };

    codecs_open_filled(N5("[1,0]", BIG), "uint16", 2, three_two, &nine, 2);
    codecs_expect(smaller, sizeof(smaller) - 1, filled, 12);
    codecs_expect(larger, sizeof(larger) - 1, cut, 12);
    codecs_expect(none, sizeof(none) - 1, nines, 12);
    ck_assert(brc_chain_needs_fill(codecs_chain));
}

TEST(bytes_that_are_no_block_are_refused)
{
    codecs_open(N5("[1,0]", BIG), "uint16", 2, three_two);
    codecs_expect_corrupt("\0\0\0\2", 4, "4 bytes cannot hold the header");
    codecs_expect_corrupt(HEADER("\3", "\2") "\0\0", 14, "");
    codecs_expect_corrupt("\0\0\0\1\0\0\0\6aaaaaaaaaaaa", 20, "has 1 axes, and the array has 2");
    codecs_expect_corrupt("\0\3\0\2\0\0\0\3\0\0\0\2aaaaaaaaaaaa", 24, "mode 3");
    codecs_expect_corrupt("\0\0\0\2\377\377\377\377\377\377\377\377aaaa", 16,
                          "more than 8 times the 12");
    codecs_expect_corrupt(HEADER("\12", "\12") "aaaa", 16, "200 bytes, more than 8 times the 12");
    brc_buf out = BRC_BUF_INIT;
    ck_assert_int_eq(codecs_decode("\0\1\0\2\0\0\0\3\0\0\0\2\0\0\0\6aaaaaaaaaaaa", 28, &out),
                     BRC_EUNSUPPORTED);
    ck_assert_msg(strstr(codecs_err.message, "mode 1, and only mode 0") != NULL, "%s",
                  codecs_err.message);
    brc_buf_dispose(&out);
}

static const struct {
    const char *list, *type, *says;
} refused[] = {
    { "[\"n5_default\"]", "uint16", "\"codecs\" must be" },
    { "[{\"name\":\"n5_default\",\"configuration\":{\"codecs\":[" BIG "]}}]", "uint16",
      "\"codecs\" must be" },
    { "[{\"name\":\"n5_default\",\"configuration\":{\"codecs\":[" BIG "," BIG "]}}]", "uint16",
      "must be \"transpose\" with all 2 axes reversed" },
    { N5("[0,1]", BIG), "uint16", "must be \"transpose\" with all 2 axes reversed" },
    { N5("[1]", BIG), "uint16", "must be \"transpose\" with all 2 axes reversed" },
    { N5("[1,0]", "\"bytes\""), "uint16", "must be \"bytes\" with \"endian\" \"big\"" },
    { N5("[1,0]", "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"), "uint16",
      "must be \"bytes\" with \"endian\" \"big\"" },
    { N5("[1,0]", BIG "," GZIP "," GZIP), "uint16", "at most one compressor" },
    { N5("[1,0]", BIG), "float16", "N5 has no elements of float16" },
    { N5("[1,0]", "\"vlen-utf8\""), "string", "N5 has no elements of string" },
    { "[{\"name\":\"n5_default\",\"configuration\":{\"codecs\":[],\"mode\":0}}]", "uint16",
      "mode" },
};

EACH(wrong_configurations_of_n5_are_refused, refused)
{
    ck_assert_int_eq(codecs_try_open(refused[_i].list, refused[_i].type, 2, three_two), BRC_EINVAL);
    ck_assert_msg(strstr(codecs_err.message, refused[_i].says) != NULL, "%s", codecs_err.message);
}
