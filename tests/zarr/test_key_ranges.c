/* Parts of values, what is told of them, and many at once. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/base/buf.h"
#include "../../src/breccia.h"
#include "../kit/scenario.h"
#include "../kit/suite.h"

TEST_SUITE(key_ranges);

#define BYTES "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"
#define ZSTD "{\"name\":\"zstd\",\"configuration\":{\"level\":3}}"
#define GZIP "{\"name\":\"gzip\",\"configuration\":{\"level\":5}}"
#define CRC "{\"name\":\"crc32c\"}"
#define SHARD(chunk, codecs, where) \
    "{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":" chunk \
    ",\"codecs\":[" codecs "],\"index_codecs\":[" BYTES "," CRC \
    "],\"index_location\":\"" where "\"}}"

/* A 20x20 array of uint16; the outer chunks are 8x8. */
static const char *const pipelines[] = {
    BYTES,
    BYTES "," ZSTD,
    SHARD("[4,4]", BYTES, "end"),
    SHARD("[4,4]", BYTES "," ZSTD, "end"),
    SHARD("[4,2]", BYTES "," ZSTD, "start"),
    SHARD("[4,4]", SHARD("[2,2]", BYTES "," ZSTD, "end"), "start"),
    SHARD("[4,4]", SHARD("[2,2]", BYTES "," GZIP, "start"), "end"),
};
enum { PIPELINES = sizeof(pipelines) / sizeof(pipelines[0]), FIRST_SHARDED = 2 };

static brc_array *ranged_array(scenario *t, const char *path, const char *codecs)
{
    char document[2048];
    brc_array *a;
    brc_array_spec spec = BRC_ARRAY_SPEC_INIT;
    snprintf(document, sizeof(document),
             "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[20,20],"
             "\"data_type\":\"uint16\","
             "\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":[8,8]}},"
             "\"chunk_key_encoding\":{\"name\":\"default\"},\"fill_value\":0,\"codecs\":[%s]}",
             codecs);
    spec.metadata_json = document;
    OK(t, brc_array_create(&a, t->session, path, &spec, &t->err));
    return a;
}

/* Some chunks shrink, some do not and are stored as they are, some are all fill value. */
static void ranged_fill(scenario *t, brc_array *a, uint64_t seed)
{
    uint16_t data[400];
    for (int i = 0; i < 20; i++)
        for (int j = 0; j < 20; j++) {
            const uint64_t random = scenario_random(&seed);
            data[20 * i + j] = i / 4 == 1 && j / 4 == 1 ? 0
                               : (i / 4 + j / 4) % 2    ? (uint16_t)7
                                                        : (uint16_t)random;
        }
    OK(t, brc_array_write(a, NULL, data, sizeof(data), &t->err));
}

static void ranged_start(scenario *t, int pipeline)
{
    scenario_start(t);
    brc_array *a = ranged_array(t, "/a", pipelines[pipeline]);
    ranged_fill(t, a, 5);
    brc_array_free(a);
}

static void range_is(scenario *t, brc_session *s, const char *key, brc_key_range range,
                     const brc_buf *whole, size_t from, size_t to)
{
    brc_buf part = BRC_BUF_INIT;
    OK(t, brc_key_get(&part, s, key, &range, NULL, &t->err));
    ck_assert_msg(part.len == to - from, "%s: kind %d %llu-%llu gives %zu bytes, not %zu", key,
                  range.kind, (unsigned long long)range.start, (unsigned long long)range.end,
                  part.len, to - from);
    if (to > from)
        ck_assert_mem_eq(part.data, whole->data + from, to - from);
    brc_buf_dispose(&part);
}

static brc_key_range range_of(int kind, uint64_t start, uint64_t end)
{
    return (brc_key_range){ sizeof(brc_key_range), kind, start, end };
}

static brc_key_range between(uint64_t start, uint64_t end)
{
    return range_of(BRC_RANGE_BETWEEN, start, end);
}

static void ranges_of(scenario *t, const char *key)
{
    brc_buf whole = BRC_BUF_INIT;
    uint64_t seed = 11;
    OK(t, brc_key_get(&whole, t->session, key, NULL, NULL, &t->err));
    const size_t n = whole.len;
    ck_assert_uint_gt(n, 0);
    for (int i = 0; i < 60; i++) {
        const size_t from = (size_t)scenario_below(&seed, n + 1);
        const size_t len = (size_t)scenario_below(&seed, n + 1 - from);
        range_is(t, t->session, key, between(from, from + len), &whole, from, from + len);
        range_is(t, t->session, key, range_of(BRC_RANGE_FROM, from, 0), &whole, from, n);
        range_is(t, t->session, key, range_of(BRC_RANGE_LAST, from, 0), &whole, n - from, n);
    }
    range_is(t, t->session, key, range_of(BRC_RANGE_ALL, 5, 3), &whole, 0, n);
    range_is(t, t->session, key, between(n - 1, n + 9), &whole, n - 1, n);
    range_is(t, t->session, key, between(3, 3), &whole, 3, 3);
    range_is(t, t->session, key, between(n + 1, n + 9), &whole, n, n);
    range_is(t, t->session, key, between(4, 2), &whole, 0, 0);
    range_is(t, t->session, key, range_of(BRC_RANGE_FROM, UINT64_MAX, 0), &whole, n, n);
    range_is(t, t->session, key, range_of(BRC_RANGE_LAST, 0, 0), &whole, n, n);
    range_is(t, t->session, key, range_of(BRC_RANGE_LAST, UINT64_MAX, 0), &whole, 0, n);
    brc_buf_dispose(&whole);
}

LOOP(B6_ranges_are_parts_of_the_whole, 0, PIPELINES)
{
    scenario t;
    ranged_start(&t, _i);
    ranges_of(&t, "a/c/0/0");
    ranges_of(&t, "a/c/1/2"); /* which the array's end cuts */
    ranges_of(&t, "a/c/2/2");
    ranges_of(&t, "a/zarr.json");
    scenario_commit(&t, "one");
    ranges_of(&t, "a/c/0/1");
    brc_buf out = BRC_BUF_INIT;
    const brc_key_range unknown = {sizeof(brc_key_range), 4, 0, 0},
                        all = {sizeof(brc_key_range), BRC_RANGE_FROM, 0, 0};
    FAILS(&t, BRC_EINVAL, brc_key_get(&out, t.session, "a/c/0/0", &unknown, NULL, &t.err));
    FAILS(&t, BRC_ENOTFOUND, brc_key_get(&out, t.session, "a/c/3/0", &all, NULL, &t.err));
    FAILS(&t, BRC_ENOTFOUND, brc_key_get(&out, t.session, "a/c", &all, NULL, &t.err));
    brc_buf_dispose(&out);
    scenario_stop(&t);
}

static brc_key_info info_of(scenario *t, brc_session *s, const char *key)
{
    brc_key_info info = BRC_KEY_INFO_INIT, again = BRC_KEY_INFO_INIT;
    brc_buf out = BRC_BUF_INIT;
    OK(t, brc_key_get(NULL, s, key, NULL, &info, &t->err));
    ck_assert_uint_eq(strlen(info.etag), 32);
    OK(t, brc_key_get(&out, s, key, NULL, &again, &t->err));
    ck_assert_uint_eq(out.len, info.length);
    ck_assert_uint_eq(again.length, info.length);
    ck_assert_str_eq(again.etag, info.etag);
    brc_buf_dispose(&out);
    return info;
}

LOOP(B2_a_part_comes_with_the_whole_size_and_tag, 0, PIPELINES)
{
    static const char *const keys[] = { "a/c/0/0", "a/c/1/2", "a/zarr.json" };
    scenario t;
    brc_buf whole = BRC_BUF_INIT;
    brc_key_info info = BRC_KEY_INFO_INIT;
    ranged_start(&t, _i);
    for (size_t i = 0; i < 3; i++) {
        info = info_of(&t, t.session, keys[i]);
        OK(&t, brc_key_get(&whole, t.session, keys[i], NULL, NULL, &t.err));
        ck_assert_uint_eq(whole.len, info.length);
        scenario_reopen(&t);
        ck_assert_str_eq(info_of(&t, t.session, keys[i]).etag, info.etag);
    }
    info = info_of(&t, t.session, "a/c/0/0");
    brc_array *a = scenario_array_at(&t, t.session, "/a");
    ranged_fill(&t, a, 6);
    ck_assert_str_ne(info_of(&t, t.session, "a/c/0/0").etag, info.etag);
    ranged_fill(&t, a, 5);
    ck_assert_str_eq(info_of(&t, t.session, "a/c/0/0").etag, info.etag);
    FAILS(&t, BRC_ENOTFOUND, brc_key_get(NULL, t.session, "a/c/9/9", NULL, &info, &t.err));
    /* A part of it; one that the end cuts short says so by its length. */
    const brc_key_range cut = between(info.length - 2, info.length + 7);
    brc_key_info of_part = BRC_KEY_INFO_INIT;
    whole.len = 0;
    OK(&t, brc_key_get(&whole, t.session, "a/c/0/0", &cut, &of_part, &t.err));
    ck_assert_uint_eq(whole.len, 2);
    ck_assert_uint_eq(of_part.length, info.length);
    ck_assert_str_eq(of_part.etag, info.etag);
    brc_array_free(a);
    brc_buf_dispose(&whole);
    scenario_stop(&t);
}

/* Chunks that are not asked for are not read: they may even be damaged. */
TEST(a_range_of_a_shard_reads_only_the_chunks_that_it_meets)
{
    scenario t;
    brc_buf whole = BRC_BUF_INIT, part = BRC_BUF_INIT;
    brc_key_info info = BRC_KEY_INFO_INIT;
    ranged_start(&t, 4); /* chunks of 4x2, the index at the start */
    OK(&t, brc_key_get(&whole, t.session, "a/c/0/0", NULL, NULL, &t.err));
    info = info_of(&t, t.session, "a/c/0/0");
    const size_t index = 8 * 16 + 4;
    const uint64_t at = brc_get_u64le(whole.data), len = brc_get_u64le(whole.data + 8);
    /* Every chunk but the first of this shard. */
    scenario_sql(&t, "UPDATE blob SET data=zeroblob(length(data)) WHERE seq IN (SELECT place FROM"
                     " object WHERE kind=1 AND id<>(SELECT id FROM draft_chunk ORDER BY node, key"
                     " LIMIT 1))");
    brc_key_range range = {sizeof(brc_key_range), BRC_RANGE_BETWEEN, 0, index};
    OK(&t, brc_key_get(&part, t.session, "a/c/0/0", &range, NULL, &t.err));
    ck_assert_uint_eq(part.len, index);
    ck_assert_mem_eq(part.data, whole.data, index);
    range = range_of(BRC_RANGE_BETWEEN, at, at + len);
    OK(&t, brc_key_get(&part, t.session, "a/c/0/0", &range, NULL, &t.err));
    ck_assert_mem_eq(part.data, whole.data + at, len);
    brc_key_info again = BRC_KEY_INFO_INIT;
    OK(&t, brc_key_get(NULL, t.session, "a/c/0/0", NULL, &again, &t.err));
    ck_assert_str_eq(again.etag, info.etag);
    range.end++;
    FAILS(&t, BRC_ECORRUPT, brc_key_get(&part, t.session, "a/c/0/0", &range, NULL, &t.err));
    FAILS(&t, BRC_ECORRUPT, brc_key_get(&part, t.session, "a/c/0/0", NULL, NULL, &t.err));
    brc_buf_dispose(&whole);
    brc_buf_dispose(&part);
    scenario_stop(&t);
}

TEST(a_length_that_was_learned_is_remembered)
{
    scenario t;
    ranged_start(&t, 3);
    ck_assert_int_eq(scenario_ask(&t, "SELECT count(*) FROM encoded"), 0);
    brc_key_info info = BRC_KEY_INFO_INIT, again = BRC_KEY_INFO_INIT;
    OK(&t, brc_key_get(NULL, t.session, "a/c/0/0", NULL, &info, &t.err));
    const int64_t rows = scenario_ask(&t, "SELECT count(*) FROM encoded");
    ck_assert_int_ge(rows, 1); /* what does not shrink is not stored in the array's encoding */
    scenario_whole(&t);
    scenario_reopen(&t);
    scenario_sql(&t, "UPDATE blob SET data=zeroblob(length(data)) WHERE seq IN (SELECT place FROM"
                     " object WHERE kind=1)"); /* no chunk can be read */
    OK(&t, brc_key_get(NULL, t.session, "a/c/0/0", NULL, &again, &t.err));
    ck_assert_uint_eq(again.length, info.length);
    ck_assert_str_eq(again.etag, info.etag);
    scenario_sql(&t, "DELETE FROM encoded");
    scenario_reopen(&t);
    FAILS(&t, BRC_ECORRUPT, brc_key_get(NULL, t.session, "a/c/0/0", NULL, &again, &t.err));
    scenario_stop(&t);
}

/* A row that does not match its checksum is not there; one that does and is wrong is found out
 * when the chunk is read, and put right. */
TEST(a_length_that_is_wrong_is_learned_again)
{
    scenario t;
    brc_buf whole = BRC_BUF_INIT;
    brc_key_info info = BRC_KEY_INFO_INIT;
    ranged_start(&t, 3);
    OK(&t, brc_key_get(&whole, t.session, "a/c/0/0", NULL, NULL, &t.err));
    info = info_of(&t, t.session, "a/c/0/0");
    scenario_sql(&t, "UPDATE encoded SET length=length+1");
    scenario_reopen(&t);
    brc_key_info again = BRC_KEY_INFO_INIT;
    OK(&t, brc_key_get(NULL, t.session, "a/c/0/0", NULL, &again, &t.err));
    ck_assert_str_eq(again.etag, info.etag);
    scenario_sql(&t, "UPDATE encoded SET length=length+1,"
                     " checksum=row_sum('encoded', id, encoding, length+1, digest)");
    scenario_reopen(&t);
    brc_buf all = BRC_BUF_INIT;
    const brc_key_range from = {sizeof(brc_key_range), BRC_RANGE_FROM, 0, 0};
    OK(&t, brc_key_get(&all, t.session, "a/c/0/0", &from, NULL, &t.err));
    ck_assert_uint_eq(all.len, whole.len);
    ck_assert_mem_eq(all.data, whole.data, whole.len);
    brc_buf_dispose(&all);
    scenario_reopen(&t);
    ranges_of(&t, "a/c/0/0");
    ck_assert_str_eq(info_of(&t, t.session, "a/c/0/0").etag, info.etag);
    scenario_whole(&t);
    brc_buf_dispose(&whole);
    scenario_stop(&t);
}

/* The revision's shard is laid out as before when its chunks get another encoding. */
TEST(the_layout_stays_when_chunks_are_encoded_again)
{
    scenario t;
    brc_array *a;
    brc_key_info before, after;
    brc_buf was = BRC_BUF_INIT, is = BRC_BUF_INIT;
    ranged_start(&t, 3);
    scenario_commit(&t, "one");
    brc_session *at = scenario_session(&t, t.repo, "main", BRC_SESSION_AT);
    before = info_of(&t, at, "a/c/0/0");
    OK(&t, brc_key_get(&was, at, "a/c/0/0", NULL, NULL, &t.err));
    OK(&t, brc_array_open(&a, t.session, "/a", &t.err));
    OK(&t, brc_array_set_codecs(a, "[" SHARD("[4,4]", BYTES "," GZIP, "end") "]", 1, &t.err));
    brc_array_free(a);
    scenario_commit(&t, "two");
    for (int i = 0; i < 2; i++) {
        after = info_of(&t, at, "a/c/0/0");
        ck_assert_uint_eq(after.length, before.length);
        ck_assert_str_eq(after.etag, before.etag);
        OK(&t, brc_key_get(&is, at, "a/c/0/0", NULL, NULL, &t.err));
        ck_assert_uint_eq(is.len, was.len);
        ck_assert_mem_eq(is.data, was.data, was.len);
        ck_assert_str_ne(info_of(&t, t.session, "a/c/0/0").etag, before.etag);
        brc_session_free(at);
        scenario_reopen(&t);
        OK(&t, brc_session_open(&at, t.repo, "main~1", BRC_SESSION_AT, &t.err));
    }
    brc_session_free(at);
    brc_buf_dispose(&was);
    brc_buf_dispose(&is);
    scenario_stop(&t);
}

TEST(a_file_that_cannot_be_written_is_read_all_the_same)
{
    scenario t;
    ranged_start(&t, 3);
    scenario_close(&t);
    scenario_open(&t, NULL, BRC_OPEN_READONLY);
    ranges_of(&t, "a/c/0/0");
    info_of(&t, t.session, "a/c/0/0");
    ck_assert_int_eq(scenario_ask(&t, "SELECT count(*) FROM encoded"), 0);
    scenario_stop(&t);
}

LOOP(many_keys_at_once, 0, PIPELINES)
{
    static const char *const keys[] = { "a/c/0/0", "none",    "a/zarr.json",
                                        "a/c/0/0", "a/c/2/2", "" };
    const brc_key_range none = BRC_KEY_RANGE_INIT;
    const brc_key_range ranges[6] = { { sizeof(brc_key_range), BRC_RANGE_LAST, 5, 0 },
                                      none, none, between(2, 8),
                                      { sizeof(brc_key_range), BRC_RANGE_FROM, 1, 0 }, none };
    scenario t;
    brc_buf out[6], one = BRC_BUF_INIT;
    uint8_t found[6];
    memset(out, 0, sizeof(out));
    ranged_start(&t, _i);
    for (int whole = 0; whole < 2; whole++) {
        OK(&t, brc_key_get_many(out, found, t.session, keys, whole ? NULL : ranges, 6, &t.err));
        for (int i = 0; i < 6; i++) {
            ck_assert_int_eq(found[i], i != 1 && i != 5);
            if (!found[i])
                continue;
            OK(&t, brc_key_get(&one, t.session, keys[i], whole ? NULL : &ranges[i], NULL, &t.err));
            ck_assert_uint_eq(one.len, out[i].len);
            ck_assert_mem_eq(one.data, out[i].data, one.len);
        }
    }
    OK(&t, brc_key_get_many(NULL, NULL, t.session, NULL, NULL, 0, &t.err));
    for (int i = 0; i < 6; i++)
        brc_buf_dispose(&out[i]);
    brc_buf_dispose(&one);
    scenario_stop(&t);
}

LOOP(is_there, 0, PIPELINES)
{
    static const struct {
        const char *key;
        int is;
    } keys[] = { { "a/zarr.json", 1 }, { "zarr.json", 1 },  { "a/c/0/0", 1 }, { "a/c/2/2", 1 },
                 { "a/c/3/0", 0 },     { "a/c/0", 0 },      { "a/c", 0 },     { "a", 0 },
                 { "", 0 },            { "/a/zarr.json", 0 },
                 { "a/zarr.json/", 0 }, { "b/zarr.json", 0 } };
    scenario t;
    ranged_start(&t, _i);
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        const int is = scenario_has_key(&t, t.session, keys[i].key);
        ck_assert_msg(is == keys[i].is, "%s", keys[i].key);
    }
    uint16_t zero = 0;
    brc_array *a = scenario_array_at(&t, t.session, "/a");
    OK(&t, brc_array_fill(a, NULL, &zero, &t.err));
    ck_assert_int_eq(scenario_has_key(&t, t.session, "a/c/0/0"), 0);
    brc_array_free(a);
    scenario_stop(&t);
}
