/* Many keys at once, and the lengths of a shard's chunks: through the pool, equal to one by one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/base/buf.h"
#include "../../src/breccia.h"
#include "../kit/meeting_codec.h"
#include "../kit/suite.h"

TEST_SUITE(key_many);

#define BYTES "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"
#define ZSTD "{\"name\":\"zstd\",\"configuration\":{\"level\":1}}"
#define MEETING BYTES "," ZSTD "," MEETING_CODEC
#define SHARD(edge, codecs) \
    "[{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":[" #edge \
    "],\"codecs\":[" codecs "],\"index_codecs\":[" BYTES ",{\"name\":\"crc32c\"}]}}]"

typedef meeting_stage fixture;

static void many_start(fixture *f)
{
    meeting_stage_start(f, 1 << 20);
}

static void many_stop(fixture *f)
{
    scenario_whole(&f->t);
    meeting_stage_stop(f);
}

/* Random elements, which do not shrink: their chunks are stored as they are, and encoded for their
 * keys. Of those of a multiple of three the elements are equal, and the chunks encoded. */
static void many_array(fixture *f, const char *path, uint64_t length, uint64_t chunk,
                       const char *codecs)
{
    uint64_t seed = length + strlen(path);
    brc_array *a = scenario_array(&f->t, path, "uint32", 1, &length, &chunk, "0", codecs);
    uint32_t *data = malloc(length * sizeof(*data));
    for (uint64_t i = 0; i < length; i++)
        data[i] = i / chunk % 3 == 2 ? 5 : (uint32_t)scenario_random(&seed);
    OK(&f->t, brc_array_write(a, NULL, data, length * sizeof(*data), &f->t.err));
    free(data);
    brc_array_free(a);
}

typedef struct asked_keys {
    size_t n;
    char (*names)[64];
    const char **keys;
    brc_key_range *ranges;
    brc_buf *out;
    uint8_t *found;
} asked_keys;

static void asked_new(asked_keys *k, size_t n)
{
    k->n = n;
    k->names = calloc(n, sizeof(*k->names));
    k->keys = calloc(n, sizeof(*k->keys));
    k->ranges = calloc(n, sizeof(*k->ranges));
    k->out = calloc(n, sizeof(*k->out));
    k->found = calloc(n, 1);
    for (size_t i = 0; i < n; i++) {
        k->keys[i] = k->names[i];
        k->ranges[i] = (brc_key_range)BRC_KEY_RANGE_INIT;
    }
}

static void asked_free(asked_keys *k)
{
    for (size_t i = 0; i < k->n; i++)
        brc_buf_dispose(&k->out[i]);
    free(k->names);
    free(k->keys);
    free(k->ranges);
    free(k->out);
    free(k->found);
}

/* Each is what it is by itself; gives how many there are. */
static size_t asked_are_right(fixture *f, const asked_keys *k)
{
    brc_buf one = BRC_BUF_INIT;
    size_t there = 0;
    for (size_t i = 0; i < k->n; i++) {
        int rc = brc_key_get(&one, f->t.session, k->keys[i], &k->ranges[i], NULL, &f->t.err);
        ck_assert_msg(rc == (k->found[i] ? BRC_OK : BRC_ENOTFOUND), "%s", k->keys[i]);
        if (rc < 0)
            continue;
        there++;
        ck_assert_msg(one.len == k->out[i].len, "%s: %zu bytes, not %zu", k->keys[i],
                      k->out[i].len, one.len);
        ck_assert(one.len == 0 || memcmp(one.data, k->out[i].data, one.len) == 0);
    }
    brc_buf_dispose(&one);
    return there;
}

TEST(workers_encode_the_chunks_of_many_keys)
{
    enum { N = 48, CHUNK = 16384 };
    fixture f;
    asked_keys k;
    many_start(&f);
    many_array(&f, "/a", N * CHUNK, CHUNK, "[" MEETING "]");
    asked_new(&k, N);
    for (int i = 0; i < N; i++)
        snprintf(k.names[i], sizeof(k.names[i]), "a/c/%d", i);
    meeting_expect(0, NULL, NULL, NULL);
    OK(&f.t, brc_key_get_many(k.out, k.found, f.t.session, k.keys, NULL, N, &f.t.err));
    ck_assert(meeting_took_place());
    ck_assert_uint_eq(asked_are_right(&f, &k), N);
    asked_free(&k);
    many_stop(&f);
}

TEST(workers_learn_the_lengths_of_a_shard)
{
    enum { N = 48, CHUNK = 16384 };
    fixture f;
    brc_key_info info = BRC_KEY_INFO_INIT, again = BRC_KEY_INFO_INIT;
    brc_buf whole = BRC_BUF_INIT, part = BRC_BUF_INIT;
    brc_key_range range = {sizeof(brc_key_range), BRC_RANGE_FROM, 1, 0};
    many_start(&f);
    many_array(&f, "/a", N * CHUNK, N * CHUNK, SHARD(16384, MEETING));
    ck_assert_int_eq(scenario_ask(&f.t, "SELECT count(*) FROM encoded"), 0);
    meeting_expect(0, NULL, NULL, NULL);
    OK(&f.t, brc_key_get(NULL, f.t.session, "a/c/0", NULL, &info, &f.t.err));
    ck_assert(meeting_took_place());
    ck_assert_int_eq(scenario_ask(&f.t, "SELECT count(*) FROM encoded"), N);
    OK(&f.t, brc_key_get(&whole, f.t.session, "a/c/0", NULL, NULL, &f.t.err));
    ck_assert_uint_eq(whole.len, info.length);
    meeting_expect(0, NULL, NULL, NULL); /* a range of many chunks, too */
    OK(&f.t, brc_key_get(&part, f.t.session, "a/c/0", &range, &again, &f.t.err));
    ck_assert(meeting_took_place());
    ck_assert_uint_eq(part.len, whole.len - 1);
    ck_assert_mem_eq(part.data, whole.data + 1, part.len);
    ck_assert_str_eq(again.etag, info.etag);
    brc_buf_dispose(&whole);
    brc_buf_dispose(&part);
    many_stop(&f);
}

TEST(workers_read_ranges_of_many_shards)
{
    enum { SHARDS = 24, CHUNK = 8192 };
    fixture f;
    asked_keys k;
    brc_key_info info = BRC_KEY_INFO_INIT;
    many_start(&f);
    many_array(&f, "/a", SHARDS * 2 * CHUNK, 2 * CHUNK, SHARD(8192, MEETING));
    asked_new(&k, SHARDS);
    for (int i = 0; i < SHARDS; i++) {
        snprintf(k.names[i], sizeof(k.names[i]), "a/c/%d", i);
        k.ranges[i].kind = BRC_RANGE_BETWEEN;
        k.ranges[i].start = (uint64_t)i;
        k.ranges[i].end = 40000;
        OK(&f.t, brc_key_get(NULL, f.t.session, k.keys[i], NULL, &info,
                             &f.t.err)); /* lengths are known */
    }
    meeting_expect(0, NULL, NULL, NULL);
    OK(&f.t, brc_key_get_many(k.out, k.found, f.t.session, k.keys, k.ranges, SHARDS, &f.t.err));
    ck_assert(meeting_took_place());
    ck_assert_uint_eq(asked_are_right(&f, &k), SHARDS);
    asked_free(&k);
    many_stop(&f);
}

static void any_request(asked_keys *k, size_t i, uint64_t *seed)
{
    static const char *const odd[] = { "zarr.json", "none", "", "a1", "loose/one", "a1/c/0/0",
                                       "a3/c/99", "a2/x" };
    const unsigned array = (unsigned)scenario_below(seed, 40);
    switch (scenario_below(seed, 8)) {
    case 0:
        snprintf(k->names[i], sizeof(k->names[i]), "%s", odd[scenario_below(seed, 8)]);
        break;
    case 1:
        snprintf(k->names[i], sizeof(k->names[i]), "a%u/zarr.json", array);
        break;
    default:
        snprintf(k->names[i], sizeof(k->names[i]), "a%u/c/%u", array,
                 (unsigned)scenario_below(seed, 6));
    }
    k->ranges[i].kind = (int)scenario_below(seed, 4);
    k->ranges[i].start = scenario_below(seed, 600);
    k->ranges[i].end = scenario_below(seed, 600);
}

/* More keys, and of more arrays, than are held at once, in any order, some of them twice. */
LOOP(any_keys_and_ranges_are_as_one_by_one, 0, 3)
{
    enum { N = 1500 };
    static const char *const codecs[] = { "[" MEETING "]", SHARD(10, MEETING), "[" BYTES "]",
                                          SHARD(10, BYTES) };
    uint64_t seed = 77 + (uint64_t)_i;
    fixture f;
    asked_keys k;
    char path[16];
    many_start(&f);
    for (int i = 0; i < 36; i++) { /* some are not there */
        snprintf(path, sizeof(path), "/a%d", i);
        many_array(&f, path, 130, 40, codecs[i % 4]);
    }
    OK(&f.t, brc_key_set(f.t.session, "loose/one", "any bytes", 9, 0, &f.t.err));
    asked_new(&k, N);
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < N; i++)
            any_request(&k, i, &seed);
        OK(&f.t, brc_key_get_many(k.out, k.found, f.t.session, k.keys, k.ranges, N, &f.t.err));
        ck_assert_uint_gt(asked_are_right(&f, &k), N / 3);
    }
    asked_free(&k);
    many_stop(&f);
}

TEST(a_damaged_chunk_is_named)
{
    const char *keys[3] = {"a/c/0", "a/c/1", "a/c/2"};
    brc_buf out[3];
    uint8_t found[3];
    fixture f;
    memset(out, 0, sizeof(out));
    many_start(&f);
    many_array(&f, "/a", 120, 40, "[" MEETING "]");
    scenario_sql(&f.t, "UPDATE blob SET data=zeroblob(length(data)) WHERE seq=(SELECT place FROM"
                       " object WHERE id=(SELECT id FROM draft_chunk ORDER BY key LIMIT 1"
                       " OFFSET 1))");
    scenario_close(&f.t);
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    opts.registry = f.reg;
    opts.pool = f.pool;
    scenario_open(&f.t, &opts, 0);
    FAILS(&f.t, BRC_ECORRUPT, brc_key_get_many(out, found, f.t.session, keys, NULL, 3, &f.t.err));
    ck_assert(!found[0] && !found[1] && !found[2]);
    ck_assert_ptr_nonnull(strstr(f.t.err.message, "/a"));
    ck_assert_ptr_nonnull(strstr(f.t.err.message, "1"));
    for (int i = 0; i < 3; i++)
        brc_buf_dispose(&out[i]);
    scenario_stop(&f.t);
    brc_pool_free(f.pool);
    brc_registry_free(f.reg);
}

/* Chunks and shards that are there, and keys that are not chunks of one array. */
TEST(keys_say_where_chunks_are)
{
    static const char *const keys[] = {"a/c/2", "a/c/0", "a/c/7", "a/c/2"};
    static const char *const wrong[][2] = {
        {"a/c/0", "b/c/0"}, {"a/c/0", "a/zarr.json"}, {"a/c/0", "a/c/9"}, {"a/c/0", "nothing/c/0"},
        {"a/c/0", "a/c/0/1"}, {"a/c/0", "a//c"}};
    const uint64_t want[] = {2, 0, 7, 2};
    uint64_t index[4];
    uint8_t there[4];
    brc_buf path = BRC_BUF_INIT;
    fixture f;
    many_start(&f);
    many_array(&f, "/a", 40, 10, "[" BYTES "]");
    many_array(&f, "/b", 40, 20, SHARD(10, BYTES));
    const uint64_t longer[] = {90};
    brc_array *a;
    OK(&f.t, brc_array_open(&a, f.t.session, "/a", &f.t.err));
    OK(&f.t, brc_array_resize(a, longer, &f.t.err));
    brc_array_free(a);
    OK(&f.t, brc_key_places(&path, index, there, f.t.session, keys, 4, 1, &f.t.err));
    ck_assert_mem_eq(index, want, sizeof(want));
    ck_assert_uint_eq(path.len, 2);
    ck_assert_mem_eq(path.data, "/a", 2);
    ck_assert(there[0] && there[1] && !there[2] && there[3]);
    path.len = 0;
    const char *const shard[] = {"b/c/1"};
    OK(&f.t, brc_key_places(&path, index, NULL, f.t.session, shard, 1, 1, &f.t.err));
    ck_assert_uint_eq(index[0], 1);
    FAILS(&f.t, BRC_EINVAL, brc_key_places(&path, index, NULL, f.t.session, shard, 1, 2, &f.t.err));
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        path.len = 0;
        const int rc = brc_key_places(&path, index, NULL, f.t.session, wrong[i], 2, 1, &f.t.err);
        ck_assert_int_eq(rc, (i == 0 ? BRC_EINVAL : BRC_ENOTFOUND));
        ck_assert_msg(strstr(f.t.err.message, wrong[i][1]) != NULL, "%s", f.t.err.message);
    }
    brc_buf_dispose(&path);
    many_stop(&f);
}
