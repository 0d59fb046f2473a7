/* "sharding_indexed" as a codec: layouts by hand, foreign orders, lies in the index. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../kit/chain_fixture.h"
#include "../kit/codec_kit.h"
#include "../kit/suite.h"

TEST_SUITE(sharding_codec);

#define LITTLE "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"
#define BIG "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}}"
#define NAMED(name_, config_) "{\"name\":\"" name_ "\",\"configuration\":" config_ "}"
#define SHARD(shape_, codecs_, index_, more_) \
    NAMED("sharding_indexed",                 \
          "{\"chunk_shape\":" shape_ ",\"codecs\":" codecs_ ",\"index_codecs\":" index_ more_ "}")
#define PLAIN_INDEX "[" LITTLE "]"
#define CRC_INDEX "[" LITTLE ",\"crc32c\"]"
#define START ",\"index_location\":\"start\""

/* Two inner chunks of two bytes each, index without checksum: 32 bytes of it. */
#define TWO_BY_TWO "[" SHARD("[2]", "[\"bytes\"]", PLAIN_INDEX, "") "]"

static void put_u64(uint8_t *at, uint64_t value)
{
    for (int i = 0; i < 8; i++)
        at[i] = (uint8_t)(value >> 8 * i);
}

static void put_entry(uint8_t *index, size_t i, uint64_t offset, uint64_t len)
{
    put_u64(index + 16 * i, offset);
    put_u64(index + 16 * i + 8, len);
}

/* ---- all of them -------------------------------- */

static const struct {
    const char *list;
    int ndim;
} shard_lists[] = {
    { "[" SHARD("[1,1]", "[" LITTLE "]", CRC_INDEX, "") "]", 2 },
    { "[" SHARD("[1]", "[" LITTLE "," NAMED("zstd", "{\"level\":1}") "]", PLAIN_INDEX, START) "]",
      1 },
    { "[" SHARD("[]", "[" BIG "]", CRC_INDEX, START) "]", 0 },
    { "[" SHARD("[1,1,1]", "[" NAMED("transpose", "{\"order\":[2,0,1]}") "," LITTLE "]",
                "[" BIG ",\"crc32c\"]", "") "," NAMED("gzip", "{\"level\":1}") "]",
      3 },
    { "[" SHARD("[1,1]", "[\"vlen-utf8\"]", CRC_INDEX, "") "]", 2 },
    { "[" NAMED("transpose", "{\"order\":[1,0]}") "," SHARD("[1,1]", "[\"vlen-bytes\",\"crc32c\"]",
                                                            PLAIN_INDEX, START) "]",
      2 },
    { "[" SHARD("[1,1]", "[" SHARD("[1,1]", "[" LITTLE "]", PLAIN_INDEX, "") "]", CRC_INDEX,
                START) "]",
      2 },
    { "[" SHARD("[1]", "[" LITTLE "]", "[" NAMED("transpose", "{\"order\":[1,0]}") ",\"packbits\"]",
                "") "]",
      1 },
};

CASE("each", .setup = codecs_setup, .teardown = codecs_teardown, .timeout = UNTIMED);

EACH(P16_shards_hold_what_the_kit_asks, shard_lists)
{
    char why[1024] = "no data type was taken";
    codec_kit kit = { .reg = codecs_reg,
                      .codecs = shard_lists[_i].list,
                      .ndim = shard_lists[_i].ndim,
                      .rounds = 3,
                      .seed = 555 };

    ck_assert_msg(codec_kit_run(&kit, why, sizeof(why)) == 0, "%s", why);
}

/* Random inner shapes that divide random shards: values, and the canonical order. */
LOOP(P16_shards_of_any_geometry_come_back, 0, 24)
{
    uint64_t random = 1000 + (uint64_t)_i, shape[3], inner[3], n = 1;
    char list[400];
    uint16_t fill = 7;
    brc_buf plain = BRC_BUF_INIT, out = BRC_BUF_INIT;
    int ndim = (int)(codec_kit_random(&random) % 4);

    for (int i = 0; i < 3; i++) {
        inner[i] = 1 + codec_kit_random(&random) % 4;
        shape[i] = inner[i] * (1 + codec_kit_random(&random) % 4);
        n *= i < ndim ? shape[i] : 1;
    }
    int at = snprintf(list, sizeof(list),
                      "[{\"name\":\"sharding_indexed\",\"configuration\":{"
                      "\"chunk_shape\":[");
    for (int i = 0; i < ndim; i++)
        at +=
            snprintf(list + at, sizeof(list) - (size_t)at, "%s%d", i > 0 ? "," : "", (int)inner[i]);
    snprintf(list + at, sizeof(list) - (size_t)at,
             "],\"codecs\":[" LITTLE "],\"index_codecs\":" CRC_INDEX "%s}}]", _i % 2 ? START : "");
    codecs_open_filled(list, "uint16", ndim, shape, &fill, 2);
    ck_assert_int_eq(brc_buf_reserve(&plain, 2 * n, NULL), BRC_OK);
    plain.len = 2 * n;
    for (size_t i = 0; i < n; i++) { /* runs of the fill value make absent inner chunks */
        plain.data[2 * i] = (uint8_t)(codec_kit_random(&random) % 5 < 4 ? 7 : i);
        plain.data[2 * i + 1] = 0;
    }
    codecs_encode(plain.data, plain.len, &out);
    codecs_expect(out.data, out.len, plain.data, plain.len);
    brc_buf_dispose(&plain);
    brc_buf_dispose(&out);
}

/* ---- layouts -------------------------------- */

TEST(P14_shard_index_stands_at_either_end)
{
    uint8_t end[4 + 32] = { 1, 2, 3, 4 }, start[32 + 4] = { 0 };
    uint64_t n = 4;

    put_entry(end + 4, 0, 0, 2);
    put_entry(end + 4, 1, 2, 2);
    codecs_open(TWO_BY_TWO, "uint8", 1, &n);
    codecs_expect_stored("\1\2\3\4", 4, end, sizeof(end));
    put_entry(start, 0, 32, 2);
    put_entry(start, 1, 34, 2);
    memcpy(start + 32, "\1\2\3\4", 4);
    codecs_open("[" SHARD("[2]", "[\"bytes\"]", PLAIN_INDEX, START) "]", "uint8", 1, &n);
    codecs_expect_stored("\1\2\3\4", 4, start, sizeof(start));
}

TEST(P15_shard_inner_chunks_go_in_c_order)
{
    /* (2, 4) in (2, 2): 1 2 | 3 4 / 5 6 | 7 8 */
    uint8_t stored[8 + 32 + 4], plain[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
    uint64_t shape[2] = { 2, 4 };
    brc_buf out = BRC_BUF_INIT;

    memcpy(stored, "\1\2\5\6\3\4\7\x8", 8);
    put_entry(stored + 8, 0, 0, 4);
    put_entry(stored + 8, 1, 4, 4);
    codecs_open("[" SHARD("[2,2]", "[\"bytes\"]", CRC_INDEX, "") "]", "uint8", 2, shape);
    codecs_encode(plain, 8, &out);
    ck_assert_uint_eq(out.len, sizeof(stored));
    ck_assert_mem_eq(out.data, stored, 40);
    codecs_expect(out.data, out.len, plain, 8);
    out.data[41] ^= 1;
    codecs_expect_corrupt(out.data, out.len, "the index: crc32c: the stored checksum");
    brc_buf_dispose(&out);
}

/* Inner chunks that are all fill, bit for bit, are left out; a zero's sign is a bit. */
TEST(D7_shards_leave_out_what_is_all_fill)
{
    static const float fill = 0.0f, plain[4] = { 0.0f, 0.0f, -0.0f, 0.0f };
    uint64_t n = 4;
    uint8_t stored[8 + 32];
    brc_buf out = BRC_BUF_INIT;

    memcpy(stored, plain + 2, 8);
    put_entry(stored + 8, 0, UINT64_MAX, UINT64_MAX);
    put_entry(stored + 8, 1, 0, 8);
    codecs_open_filled("[" SHARD("[2]", "[" LITTLE "]", PLAIN_INDEX, "") "]", "float32", 1, &n,
                       &fill, 4);
    codecs_expect_stored(plain, sizeof(plain), stored, sizeof(stored));
    /* all absent: the index alone */
    uint8_t empty[32];
    memset(empty, 0xFF, sizeof(empty));
    static const float zeros[4] = { 0 };
    codecs_expect_stored(zeros, sizeof(zeros), empty, sizeof(empty));
    /* without a fill value nothing can be left out, nor read */
    codecs_open("[" SHARD("[2]", "[" LITTLE "]", PLAIN_INDEX, "") "]", "float32", 1, &n);
    codecs_encode(zeros, sizeof(zeros), &out);
    ck_assert_uint_eq(out.len, 16 + 32);
    out.len = 0;
    ck_assert_int_eq(codecs_decode(empty, sizeof(empty), &out), BRC_EUNSUPPORTED);
    brc_buf_dispose(&out);
}

TEST(P14_shards_of_rank_0_have_one_inner_chunk)
{
    uint8_t stored[2 + 16] = { 0x34, 0x12 };

    put_entry(stored + 2, 0, 0, 2);
    codecs_open("[" SHARD("[]", "[" LITTLE "]", PLAIN_INDEX, "") "]", "int16", 0, NULL);
    codecs_expect_stored("\x34\x12", 2, stored, sizeof(stored));
}

TEST(P14_nested_shards_count_from_their_own_first_byte)
{
    /* outer: two of two elements; inner: two of one element */
    uint8_t stored[2 * (2 + 32) + 32];
    uint64_t n = 4;

    for (size_t i = 0; i < 2; i++) {
        uint8_t *inner = stored + 34 * i;
        inner[0] = (uint8_t)(10 + 2 * i);
        inner[1] = (uint8_t)(11 + 2 * i);
        put_entry(inner + 2, 0, 0, 1);
        put_entry(inner + 2, 1, 1, 1);
        put_entry(stored + 68, i, 34 * i, 34);
    }
    codecs_open(
        "[" SHARD("[2]", "[" SHARD("[1]", "[\"bytes\"]", PLAIN_INDEX, "") "]", PLAIN_INDEX, "") "]",
        "uint8", 1, &n);
    codecs_expect_stored("\x0A\x0B\x0C\x0D", 4, stored, sizeof(stored));
    put_entry(stored + 34 + 2, 0, 36, 1);
    codecs_expect_corrupt(stored, sizeof(stored), "inner chunk 1: sharding_indexed: inner chunk 0");
}

TEST(P14_shards_of_strings)
{
    /* (2, 2) by rows of one: "" "b" / fill fill */
    static const char plain[] = "\0\0\0\0\1\0\0\0b\1\0\0\0f\1\0\0\0f";
    static const char head[] = "\2\0\0\0\0\0\0\0\1\0\0\0b";
    uint8_t stored[13 + 32];
    uint64_t shape[2] = { 2, 2 };

    memcpy(stored, head, 13);
    put_entry(stored + 13, 0, 0, 13);
    put_entry(stored + 13, 1, UINT64_MAX, UINT64_MAX);
    codecs_open_filled("[" SHARD("[1,2]", "[\"vlen-utf8\"]", PLAIN_INDEX, "") "]", "string", 2,
                       shape, "\1\0\0\0f", 5);
    codecs_expect_stored(plain, sizeof(plain) - 1, stored, sizeof(stored));
    stored[4] = 1;
    codecs_expect_corrupt(stored, sizeof(stored), "inner chunk 0");
}

/* ---- what others may write, and what nobody may -------------------------------- */

TEST(P15_shards_are_read_in_any_order_with_gaps_and_shared_ranges)
{
    uint8_t stored[10 + 32] = { 99, 3, 4, 99, 99, 1, 2, 99, 99, 99 };
    uint64_t n = 4;

    put_entry(stored + 10, 0, 5, 2);
    put_entry(stored + 10, 1, 1, 2);
    codecs_open(TWO_BY_TWO, "uint8", 1, &n);
    codecs_expect(stored, sizeof(stored), "\1\2\3\4", 4);
    put_entry(stored + 10, 1, 5, 2);
    codecs_expect(stored, sizeof(stored), "\1\2\1\2", 4);
    put_entry(stored + 10, 1, 4, 2);
    codecs_expect(stored, sizeof(stored), "\1\2\x63\1", 4);
}

TEST(X6_shard_entries_outside_of_the_value_are_refused)
{
    static const struct {
        uint64_t offset, len;
        const char *says;
    } lies[] = {
        { 3, 2, "inner chunk 1 should be 2 bytes at 3" }, /* into the index           */
        { 4, 2, "outside its index" },
        { 36, 2, "outside its index" },
        { 1000, 2, "outside its index" },
        { 2, UINT64_MAX - 1, "outside its index" },
        { UINT64_MAX - 1, 2, "outside its index" },
        { UINT64_MAX - 1, UINT64_MAX - 1, "outside its index" },
        { UINT64_MAX, 2, "marked as absent in one half" },
        { 2, UINT64_MAX, "marked as absent in one half" },
        { 2, 1, "bytes: the chunk decodes to 1 bytes, not 2" },
        { 2, 0, "bytes: the chunk decodes to 0 bytes, not 2" },
        { 0, 4, "bytes: the chunk decodes to 4 bytes, not 2" },
    };
    uint8_t stored[4 + 32] = { 1, 2, 3, 4 };
    uint64_t n = 4;

    codecs_open(TWO_BY_TWO, "uint8", 1, &n);
    put_entry(stored + 4, 0, 0, 2);
    for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
        put_entry(stored + 4, 1, lies[i].offset, lies[i].len);
        codecs_expect_corrupt(stored, sizeof(stored), lies[i].says);
    }
    codecs_expect_corrupt(stored, 31, "31 bytes cannot hold the index of 32");
    codecs_expect_corrupt(stored, 0, "0 bytes cannot hold the index of 32");
    put_entry(stored, 0, 31, 2); /* the index comes first here                        */
    put_entry(stored, 1, 32, 2);
    codecs_open("[" SHARD("[2]", "[\"bytes\"]", PLAIN_INDEX, START) "]", "uint8", 1, &n);
    codecs_expect_corrupt(stored, sizeof(stored), "inner chunk 0 should be 2 bytes at 31");
}

/* Every byte of small shards, to every other value: an error, or memory of the right
 * length. With checksums everywhere: an error, or the right values. */
LOOP(X6_every_byte_of_a_small_shard_may_be_wrong, 0, 4)
{
    static const char *const lists[] = {
        "[" SHARD("[2,2]", "[" LITTLE ",\"crc32c\"]", CRC_INDEX, "") "]",
        "[" SHARD("[2,2]", "[" LITTLE "]", PLAIN_INDEX, START) "]",
        "[" SHARD("[2,2]", "[" SHARD("[1,2]", "[" LITTLE ",\"crc32c\"]", CRC_INDEX, START) "]",
                  CRC_INDEX, "") "]",
        "[" SHARD("[2,2]", "[" LITTLE "," NAMED("gzip", "{\"level\":1}") ",\"crc32c\"]", CRC_INDEX,
                  "") "]",
    };
    uint16_t plain[16], fill = 5;
    uint64_t shape[2] = { 4, 4 };
    brc_buf stored = BRC_BUF_INIT, out = BRC_BUF_INIT;
    int checked = _i != 1, right = 0;

    for (uint16_t i = 0; i < 16; i++)
        plain[i] = i % 4 < 2 && i < 8 ? 5 : (uint16_t)(i * 300);
    codecs_open_filled(lists[_i], "uint16", 2, shape, &fill, 2);
    codecs_encode(plain, sizeof(plain), &stored);
    for (size_t at = 0; at < stored.len; at++) {
        uint8_t old = stored.data[at];
        for (int flip = 1; flip < 256; flip++) {
            stored.data[at] = (uint8_t)(old ^ flip);
            int rc = codecs_decode(stored.data, stored.len, &out);
            ck_assert_msg(rc == BRC_OK || rc == BRC_ECORRUPT, "byte %zu ^ %d: %s", at, flip,
                          codecs_err.message);
            ck_assert(rc < 0 || out.len == sizeof(plain));
            ck_assert(rc < 0 || !checked || memcmp(out.data, plain, sizeof(plain)) == 0);
            right += rc == BRC_OK;
        }
        stored.data[at] = old;
    }
    ck_assert_int_eq(right > 0, !checked);
    for (size_t cut = 0; cut < stored.len; cut++)
        ck_assert_int_lt(codecs_decode(stored.data, cut, &out), 0);
    brc_buf_dispose(&stored);
    brc_buf_dispose(&out);
}

/* ---- configurations -------------------------------- */

TEST(B07_wrong_options_of_shards_are_refused)
{
    static const struct {
        const char *codec, *says;
    } cases[] = {
        { SHARD("[3,3]", "[" LITTLE "]", CRC_INDEX, ""), "must divide the shard" },
        { SHARD("[0,6]", "[" LITTLE "]", CRC_INDEX, ""), "must divide the shard" },
        { SHARD("[8,6]", "[" LITTLE "]", CRC_INDEX, ""), "must divide the shard" },
        { SHARD("[4]", "[" LITTLE "]", CRC_INDEX, ""), "a list of 2 extents" },
        { SHARD("[4,6]", "[]", CRC_INDEX, ""), "\"codecs\": /codecs: the list is empty" },
        { SHARD("[4,6]", "[\"bytes\"]", CRC_INDEX, ""), "\"endian\"" },
        { SHARD("[4,6]", "[" LITTLE "]", "[\"bytes\"]", ""), "\"index_codecs\": /codecs/0" },
        { SHARD("[4,6]", "[" LITTLE "]", "[" LITTLE "," NAMED("gzip", "{\"level\":1}") "]", ""),
          "the same length" },
        { SHARD("[4,6]", "[" LITTLE "]", "[" NAMED("packbits", "{\"last_bit\":7}") "]", ""),
          "the same length" },
        { SHARD("[4,6]", "[" LITTLE "]", CRC_INDEX, ",\"index_location\":\"middle\""),
          "\"start\" or \"end\"" },
        { SHARD("[4,6]", "[" LITTLE "]", CRC_INDEX, ",\"order\":1"), "order" },
        { NAMED("sharding_indexed", "{\"chunk_shape\":[4,6],\"codecs\":[" LITTLE "]}"),
          "\"index_codecs\"" },
        { "\"sharding_indexed\"", "\"chunk_shape\"" },
    };
    char list[600];
    uint64_t huge[2] = { UINT64_C(1) << 16, UINT64_C(1) << 15 };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        snprintf(list, sizeof(list), "[%s]", cases[i].codec);
        codecs_expect_refused(list, BRC_EINVAL, cases[i].says);
    }
    codecs_expect_refused("[" SHARD("[4,6]", "[\"nobody\"]", CRC_INDEX, "") "]", BRC_EUNSUPPORTED,
                          "\"nobody\" is not known");
    ck_assert_int_eq(
        codecs_try_open("[" SHARD("[1,1]", "[\"bytes\"]", CRC_INDEX, "") "]", "uint8", 2, huge),
        BRC_ELIMIT);
    ck_assert_msg(strstr(codecs_err.message, "2^30") != NULL, "%s", codecs_err.message);
}

/* An index that a value cannot have is not made room for. */
TEST(X6_a_short_value_gets_no_long_index)
{
    uint64_t shape = UINT64_C(1) << 29;
    uint8_t value[100] = { 0 }, place[16];
    brc_buf out = { sizeof(brc_buf), place, 0, sizeof(place), 0, BRC_BUF_FIXED, 0 };

    codecs_open("[" SHARD("[1]", "[\"bytes\"]", CRC_INDEX, "") "]", "uint8", 1, &shape);
    int rc =
        brc_chain_decode(codecs_chain, codecs_scratch, (brc_span){ value, 100 }, NULL, &out,
                         &codecs_err);
    ck_assert_int_lt(rc, 0);
    out = (brc_buf)BRC_BUF_INIT;
    ck_assert_int_eq(codecs_decode(value, sizeof(value), &out), BRC_ECORRUPT);
    ck_assert_msg(strstr(codecs_err.message, "cannot hold the index") != NULL, "%s",
                  codecs_err.message);
    ck_assert_uint_eq(out.cap, 0);
}
