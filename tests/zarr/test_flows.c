/*
 * Every way that reads or writes many chunks does several at a time, and goes on to the next
 * before all of them are through.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/breccia_codec.h"
#include "../kit/ios.h"
#include "../kit/meeting_codec.h"
#include "../kit/suite.h"

TEST_SUITE(flows);

#define LITTLE "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"
#define ZSTD "{\"name\":\"zstd\",\"configuration\":{\"level\":1,\"checksum\":false}}"
/* A chunk that does not shrink is stored without codecs. */
#define MEETING "[" LITTLE "," MEETING_CODEC "," ZSTD "]"

typedef meeting_stage flows;

static void flows_start(flows *f)
{
    meeting_stage_start(f, 0);
}

static void flows_stop(flows *f)
{
    meeting_stage_stop(f);
}

/* int32, elements of 100 and more so that no chunk is fill; runs of `run` equal ones. */
static brc_array *flows_numbers(flows *f, const char *path, int ndim, const uint64_t *shape,
                                const uint64_t *chunk, uint64_t run, const char *codecs)
{
    uint64_t n = 1;
    brc_array *a = scenario_array(&f->t, path, "int32", ndim, shape, chunk, "0", codecs);
    for (int i = 0; i < ndim; i++)
        n *= shape[i];
    int32_t *data = malloc(n * sizeof(*data));
    for (uint64_t i = 0; i < n; i++)
        data[i] = (int32_t)(i / run + 100);
    OK(&f->t, brc_array_write(a, NULL, data, n * sizeof(*data), &f->t.err));
    free(data);
    return a;
}

CASE("flows", .timeout = 120);

/* ---- batches of writes -------------------------------- */

TEST(writes_of_one_chunk_each_are_one_flow)
{
    enum { N = 40 };
    flows f;
    brc_array *arrays[N];
    brc_io io[N];
    brc_buffer rooms[N];
    int32_t data[N], got[N];
    const uint64_t shape = 1;
    char path[32];
    flows_start(&f);
    for (int i = 0; i < N; i++) {
        snprintf(path, sizeof(path), "/a%d", i);
        arrays[i] = scenario_array(&f.t, path, "int32", 1, &shape, NULL, "0", MEETING);
        data[i] = i + 1;
        io[i] = io_in(&rooms[i], arrays[i], NULL, &data[i], sizeof(data[i]));
    }
    /* more than one job of the flow, so that there is something to share out */
    brc_io many[4 * N];
    brc_buffer many_rooms[4 * N];
    brc_array *big[4];
    const uint64_t length = 40 * 65536, chunk = 65536;
    int32_t *ones = malloc(length * sizeof(*ones));
    for (uint64_t i = 0; i < length; i++)
        ones[i] = (int32_t)i;
    for (int k = 0; k < 4; k++) {
        snprintf(path, sizeof(path), "/big%d", k);
        big[k] = scenario_array(&f.t, path, "int32", 1, &length, &chunk, "0", MEETING);
    }
    brc_sel sel[N];
    for (int i = 0; i < 4 * N; i++) {
        sel[i % N].size = sizeof(brc_sel);
        sel_all(&sel[i % N], big[i / N]);
        sel[i % N].start[0] = (uint64_t)(i % N) * chunk;
        sel[i % N].count[0] = chunk;
        many[i] = io_in(&many_rooms[i], big[i / N], &sel[i % N],
                        ones + sel[i % N].start[0] + (size_t)(i / N), chunk * sizeof(*ones));
        if (i / N > 0 && i % N == N - 1) /* the last one would go past the end */
            many_rooms[i].data = ones + 7;
    }
    meeting_expect(0, NULL, NULL, NULL);
    OK(&f.t, brc_write(many, 4 * N, &f.t.err));
    ck_assert(meeting_took_place());
    OK(&f.t, brc_write(io, N, &f.t.err));
    for (int i = 0; i < N; i++) {
        OK(&f.t, brc_array_read(arrays[i], NULL, &got[i], sizeof(got[i]), &f.t.err));
        ck_assert_int_eq(got[i], i + 1);
        brc_array_free(arrays[i]);
    }
    for (int k = 0; k < 4; k++)
        brc_array_free(big[k]);
    free(ones);
    scenario_whole(&f.t);
    flows_stop(&f);
}

/* Any selections, through two handles of one array and one of another. */
LOOP(of_writes_that_overlap_the_later_wins, 0, 4)
{
    enum { N = 12, ROUNDS = 60 };
    static const uint64_t shape[2] = {23, 31}, chunk[2] = {4, 5};
    flows f;
    model m[2];
    brc_array *a[3];
    uint64_t random = 4711 + (uint64_t)_i;
    const int32_t fill = 0;
    flows_start(&f);
    const char *codecs = _i % 2 ? MEETING : NULL;
    a[0] = scenario_array(&f.t, "/a", "int32", 2, shape, chunk, "0", codecs);
    OK(&f.t, brc_array_open(&a[1], f.t.session, "/a", &f.t.err));
    a[2] = scenario_array(&f.t, "/b", "int32", 2, shape, chunk, "0", codecs);
    model_new(&m[0], 2, shape, 4, &fill);
    model_new(&m[1], 2, shape, 4, &fill);
    for (int round = 0; round < ROUNDS; round++) {
        brc_io io[N];
        brc_buffer rooms[N];
        brc_sel sel[N];
        uint8_t *data[N];
        for (int i = 0; i < N; i++) {
            const int which = (int)scenario_below(&random, 3);
            model *of = &m[which == 2];
            model_selection(of, &random, &sel[i]);
            const size_t len = (size_t)brc_sel_count(&sel[i]) * 4;
            data[i] = calloc(1, len + 1);
            if (scenario_below(&random, 4) > 0) /* else the fill value */
                model_bytes(&random, data[i], len);
            io[i] = io_in(&rooms[i], a[which], &sel[i], data[i], len);
            model_write(of, &sel[i], data[i], NULL);
        }
        OK(&f.t, brc_write(io, N, &f.t.err));
        for (int i = 0; i < N; i++)
            free(data[i]);
        if (round % 8 == 0)
            scenario_commit(&f.t, "round");
        if (round % 4 == 0)
            for (int i = 0; i < 3; i++)
                model_check(&m[i == 2], &f.t, a[i]);
    }
    for (int i = 0; i < 3; i++) {
        model_check(&m[i == 2], &f.t, a[i]);
        brc_array_free(a[i]);
    }
    scenario_whole(&f.t);
    model_free(&m[0]);
    model_free(&m[1]);
    flows_stop(&f);
}

/* Handles of one array in two sessions on its branch. */
TEST(a_later_write_sees_what_another_session_wrote_before_it)
{
    flows f;
    brc_session *other;
    brc_array *a, *b;
    const uint64_t shape = 8, chunk = 8;
    const int32_t seven = 7, eight = 8;
    int32_t got[8];
    brc_sel head = BRC_SEL_INIT, tail = BRC_SEL_INIT;
    flows_start(&f);
    a = scenario_array(&f.t, "/a", "int32", 1, &shape, &chunk, "0", NULL);
    OK(&f.t, brc_session_open(&other, f.t.repo, NULL, BRC_SESSION_WRITE, &f.t.err));
    OK(&f.t, brc_array_open(&b, other, "/a", &f.t.err));
    OK(&f.t, brc_sel_parse(&head, a, "[1]", &f.t.err));
    OK(&f.t, brc_sel_parse(&tail, a, "[6]", &f.t.err));
    brc_io io[2] = {IO_OF(a, &head, (void *)(uintptr_t)&seven, 4),
                    IO_OF(b, &tail, (void *)(uintptr_t)&eight, 4)};
    OK(&f.t, brc_write(io, 2, &f.t.err));
    OK(&f.t, brc_array_read(b, NULL, got, sizeof(got), &f.t.err));
    const int32_t expected[8] = {0, 7, 0, 0, 0, 0, 8, 0};
    ck_assert_mem_eq(got, expected, sizeof(got));
    brc_array_free(a);
    brc_array_free(b);
    brc_session_free(other);
    flows_stop(&f);
}

/* ---- edges -------------------------------- */

/* A few of the 2,000 or 70,000 chunks at the edge are stored. */
LOOP(chunks_at_an_edge_are_cleaned_together, 0, 2)
{
    enum { STORED = 300, WIDE = 160, LESS = 140 };
    const uint64_t rows = _i == 0 ? 2000 : 70000;
    const uint64_t shape[2] = {rows, WIDE}, chunk[2] = {1, 64}, less[2] = {rows, LESS},
                   more[2] = {rows, 192};
    flows f;
    int32_t row[192];
    brc_sel sel = BRC_SEL_INIT;
    flows_start(&f);
    brc_array *a = scenario_array(&f.t, "/a", "int32", 2, shape, chunk, "7", MEETING);
    brc_io io[STORED];
    brc_buffer rooms[STORED];
    brc_sel sels[STORED];
    int32_t *data = malloc(STORED * WIDE * sizeof(*data));
    for (int i = 0; i < STORED; i++) {
        sels[i].size = sizeof(brc_sel);
        sel_all(&sels[i], a);
        sels[i].start[0] = (uint64_t)i * (rows / STORED);
        sels[i].count[0] = 1;
        for (int k = 0; k < WIDE; k++)
            data[i * WIDE + k] = i * 100 + k / 64;
        io[i] = io_in(&rooms[i], a, &sels[i], data + i * WIDE, WIDE * sizeof(*data));
    }
    OK(&f.t, brc_write(io, STORED, &f.t.err));
    scenario_commit(&f.t, "stored");
    meeting_expect(1, NULL, NULL, NULL);
    OK(&f.t, brc_array_resize(a, less, &f.t.err));
    ck_assert(meeting_took_place());
    OK(&f.t, brc_array_resize(a, more, &f.t.err));
    for (int i = 0; i < STORED; i++) {
        sel_all(&sel, a);
        sel.start[0] = (uint64_t)i * (rows / STORED);
        sel.count[0] = 1;
        OK(&f.t, brc_array_read(a, &sel, row, sizeof(row), &f.t.err));
        for (int k = 0; k < 192; k++)
            ck_assert_int_eq(row[k], k < LESS ? i * 100 + k / 64 : 7);
    }
    uint64_t chunks, bytes;
    OK(&f.t, brc_array_stat(&chunks, &bytes, a, &f.t.err));
    ck_assert_uint_eq(chunks, 3 * STORED); /* none where none was */
    brc_array_free(a);
    free(data);
    scenario_whole(&f.t);
    flows_stop(&f);
}

/* More than are taken out of the map at once. */
TEST(all_chunks_outside_a_smaller_shape_go)
{
    const uint64_t shape[2] = {2, 20000}, chunk[2] = {1, 1}, less[2] = {2, 10};
    flows f;
    uint64_t chunks, bytes;
    flows_start(&f);
    brc_array *a = flows_numbers(&f, "/a", 2, shape, chunk, 1, NULL);
    scenario_commit(&f.t, "all");
    OK(&f.t, brc_array_resize(a, less, &f.t.err));
    OK(&f.t, brc_array_stat(&chunks, &bytes, a, &f.t.err));
    ck_assert_uint_eq(chunks, 20);
    OK(&f.t, brc_array_resize(a, shape, &f.t.err));
    int32_t *got = malloc(2 * 20000 * sizeof(*got));
    OK(&f.t, brc_array_read(a, NULL, got, 2 * 20000 * sizeof(*got), &f.t.err));
    for (int i = 0; i < 40000; i++)
        ck_assert_int_eq(got[i], i % 20000 < 10 ? i + 100 : 0);
    free(got);
    brc_array_free(a);
    scenario_commit(&f.t, "less");
    scenario_whole(&f.t);
    flows_stop(&f);
}

/* ---- codecs -------------------------------- */

#define LOOKED_UP 1024 /* chunks that are looked up together */

/* One of the last, of which another thread has some. */
static int last_of_first(void *ctx, brc_span decoded)
{
    int32_t first;
    memcpy(&first, decoded.data, sizeof(first));
    return first - 100 < LOOKED_UP && ++*(int *)ctx > LOOKED_UP - 200;
}

static int is_of_second(void *ctx, brc_span decoded)
{
    int32_t first;
    (void)ctx;
    memcpy(&first, decoded.data, sizeof(first));
    return first - 100 >= LOOKED_UP;
}

/* The last chunks that are looked up first wait for one that is looked up with the next. */
TEST(chunks_are_recoded_without_a_barrier)
{
    const uint64_t shape = 3 * LOOKED_UP * 64, chunk = 64;
    flows f;
    int seen = 0;
    flows_start(&f);
    brc_array *a = flows_numbers(&f, "/a", 1, &shape, &chunk, chunk, MEETING);
    scenario_commit(&f.t, "all");
    meeting_expect(1, last_of_first, is_of_second, &seen);
    OK(&f.t, brc_array_set_codecs(a, "[" LITTLE "]", 1, &f.t.err));
    ck_assert(meeting_took_place());
    ck_assert_int_eq(scenario_ask(&f.t, "SELECT count(*) FROM object WHERE kind=1 AND encoding!=0"),
                     0);
    brc_array_free(a);
    scenario_whole(&f.t);
    flows_stop(&f);
}

/* Every object is many chunks, which are looked up while it is on its way. */
TEST(what_chunks_share_is_recoded_once)
{
    enum { N = 5 * LOOKED_UP };
    const uint64_t shape = N * 64, chunk = 64;
    flows f;
    flows_start(&f);
    brc_array *a = scenario_array(&f.t, "/a", "int32", 1, &shape, &chunk, "0", MEETING);
    int32_t *data = malloc(N * 64 * sizeof(*data));
    for (int i = 0; i < N * 64; i++)
        data[i] = 1 + i / 64 % 7;
    OK(&f.t, brc_array_write(a, NULL, data, N * 64 * sizeof(*data), &f.t.err));
    const int64_t last = scenario_ask(&f.t, "SELECT max(seq) FROM blob");
    OK(&f.t, brc_array_set_codecs(a, "[" LITTLE "," ZSTD "]", 1, &f.t.err));
    ck_assert_int_eq(scenario_ask(&f.t, "SELECT count(DISTINCT encoding) FROM object WHERE kind=1"),
                     1);
    ck_assert_int_le(scenario_ask(&f.t, "SELECT max(seq) FROM blob"),
                     last + 14); /* the objects, and what is beside them */
    free(data);
    brc_array_free(a);
    scenario_whole(&f.t);
    flows_stop(&f);
}

/* ---- shards -------------------------------- */

#define SHARD(codecs, index)                                                                    \
    "[{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":[4],\"codecs\":["        \
    codecs "],\"index_codecs\":[" index "]}}]"

static const char *const taken_as[] = {
    NULL, /* as it came */
    SHARD(LITTLE "," ZSTD, LITTLE),
    "[" LITTLE "," ZSTD "]",
};

LOOP(indexes_of_shards_are_decoded_together, 0, 3)
{
    const uint64_t shape = 4096, shard = 16;
    const brc_xfer_opts out = {.size = sizeof(out)};
    const brc_xfer_opts in = {.size = sizeof(in), .codecs_json = taken_as[_i]};
    flows f;
    char path[128];
    int32_t got[4096];
    flows_start(&f);
    brc_array *a = flows_numbers(&f, "/a", 1, &shape, &shard, 1,
                                 SHARD(LITTLE, LITTLE "," MEETING_CODEC));
    snprintf(path, sizeof(path), "%s/a.zarr", f.t.dir);
    OK(&f.t, brc_export(f.t.session, "/a", path, &out, &f.t.err));
    meeting_expect(1, NULL, NULL, NULL);
    OK(&f.t, brc_import(f.t.session, path, "/b", &in, &f.t.err));
    ck_assert(meeting_took_place());
    brc_array_free(a);
    OK(&f.t, brc_array_open(&a, f.t.session, "/b", &f.t.err));
    OK(&f.t, brc_array_read(a, NULL, got, sizeof(got), &f.t.err));
    for (int i = 0; i < 4096; i++)
        ck_assert_int_eq(got[i], i + 100);
    brc_array_free(a);
    scenario_whole(&f.t);
    flows_stop(&f);
}
