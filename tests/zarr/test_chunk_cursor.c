/* Chunks one by one, of the map and of uncommitted rows; and re-encoding them in batches. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/base/error.h"
#include "../../src/zarr/array/chunk_cursor.h"
#include "../kit/scenario.h"
#include "../kit/suite.h"

TEST_SUITE(chunk_cursor);

/* Some pages of rows, some batches of codecs. */
enum { CHUNKS = 3000, EACH = 64 };

#define BYTES "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"
static const char raw[] = "[" BYTES "]";
static const char packed[] =
    "[" BYTES ",{\"name\":\"gzip\",\"configuration\":{\"level\":1}}]";

/* The value of each chunk: 0 is the fill value, and such a chunk is not there. */
static uint32_t values[CHUNKS];

static uint32_t elements[CHUNKS * EACH]; /* each chunk's value in all of it */

static void write_values(scenario *t, brc_array *a)
{
    for (size_t i = 0; i < CHUNKS * EACH; i++)
        elements[i] = values[i / EACH];
    OK(t, brc_array_write(a, NULL, elements, sizeof(elements), &t->err));
}

static brc_array *new_values(scenario *t, const char *path)
{
    uint64_t shape[1] = {CHUNKS * EACH}, chunk[1] = {EACH};
    brc_array *a = scenario_array(t, path, "uint32", 1, shape, chunk, NULL, raw);
    write_values(t, a);
    return a;
}

/* Other values here and there: new ones, some that others have too, and gaps. */
static void change_values(uint64_t *random, int one_in)
{
    for (uint32_t i = 0; i < CHUNKS; i++)
        if (scenario_below(random, (uint64_t)one_in) == 0)
            values[i] = (uint32_t)scenario_below(random, 3) == 0
                            ? 0
                            : (uint32_t)scenario_below(random, 1500) + 1;
}

static void values_are(scenario *t, brc_array *a)
{
    static uint32_t got[CHUNKS * EACH];
    OK(t, brc_array_read(a, NULL, got, sizeof(got), &t->err));
    ck_assert_mem_eq(got, elements, sizeof(got));
}

typedef struct met_chunks {
    uint64_t next;
    brc_oid ids[CHUNKS];
    size_t n;
    uint64_t indexes[CHUNKS];
} met_chunks;

static int meet_chunk(void *ctx, const uint64_t *index, const brc_oid *id, brc_error *err)
{
    met_chunks *met = ctx;
    (void)err;
    if (met->n == CHUNKS || index[0] < met->next)
        return brc_fail(err, BRC_EINTERNAL, "chunk %d is out of order", (int)index[0]);
    met->next = index[0] + 1;
    met->indexes[met->n] = index[0];
    met->ids[met->n++] = *id;
    return BRC_OK;
}

/* The walk gives what looking up each chunk gives. */
static void walk_is_right(scenario *t, brc_array *a)
{
    static met_chunks met;
    static uint64_t indexes[CHUNKS];
    static brc_oid ids[CHUNKS];
    size_t at = 0;
    memset(&met, 0, sizeof(met));
    for (uint64_t i = 0; i < CHUNKS; i++)
        indexes[i] = i;
    OK(t, brc_array_begin_read(a, &t->err));
    OK(t, brc_array_chunk_ids(a, CHUNKS, indexes, ids, &t->err));
    OK(t, brc_array_each_chunk(a, meet_chunk, &met, &t->err));
    brc_array_end_read(a);
    for (uint64_t i = 0; i < CHUNKS; i++) {
        int there = !brc_oid_is_zero(&ids[i]);
        if (there != (values[i] != 0) ||
            (there && (met.indexes[at] != i || brc_oid_cmp(&met.ids[at], &ids[i]) != 0)))
            ck_abort_msg("chunk %d", (int)i);
        at += (size_t)there;
    }
    ck_assert_uint_eq(met.n, at);
}

CASE("chunks", .timeout = 60);

LOOP(f21_chunks_are_those_of_the_map_under_the_rows, 0, 6)
{
    uint64_t random = (uint64_t)_i + 1;
    scenario t;
    scenario_start(&t);
    memset(values, 0, sizeof(values));
    change_values(&random, 2);
    brc_array *a = new_values(&t, "/a");
    walk_is_right(&t, a); /* rows alone */
    scenario_commit(&t, "all");
    walk_is_right(&t, a); /* the map alone */
    change_values(&random, _i == 0 ? 1 : 5);
    write_values(&t, a);
    walk_is_right(&t, a); /* both */
    values_are(&t, a);
    memset(values, 0, sizeof(values));
    write_values(&t, a);
    walk_is_right(&t, a); /* every chunk dropped */
    brc_array_free(a);
    scenario_stop(&t);
}

static int64_t distinct_values(void)
{
    static uint8_t seen[1501];
    int64_t n = 0;
    memset(seen, 0, sizeof(seen));
    for (size_t i = 0; i < CHUNKS; i++) {
        n += values[i] != 0 && !seen[values[i]];
        seen[values[i]] = 1;
    }
    return n;
}

/* Chunks that share an object lie in different batches, in the map and in rows. */
TEST(f21_codecs_are_rewritten_in_batches)
{
    uint64_t random = 5;
    scenario t;
    scenario_start(&t);
    memset(values, 0, sizeof(values));
    change_values(&random, 1);
    brc_array *a = new_values(&t, "/a");
    scenario_commit(&t, "all");
    change_values(&random, 4);
    write_values(&t, a);
    OK(&t, brc_array_set_codecs(a, packed, 1, &t.err));
    values_are(&t, a);
    walk_is_right(&t, a);
    scenario_commit(&t, "packed");
    scenario_whole(&t);
    brc_array_free(a);
    a = NULL;
    scenario_reopen(&t);
    OK(&t, brc_array_open(&a, t.session, "/a", &t.err));
    values_are(&t, a);
    brc_array_free(a);
    ck_assert_int_eq(scenario_ask(&t, "SELECT count(*) FROM object WHERE kind=1 AND stored<size"),
                     distinct_values()); /* each object of the array, and only those */
    scenario_stop(&t);
}

/* A row of shards is met once for each row of chunks in it: what is held counts shards. */
TEST(a_row_of_shards_is_held_once)
{
    enum { ROWS = 32, SHARDS = 1500 };
    static const char sharded[] =
        "[{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":[1,1],\"codecs\":["
        BYTES "],\"index_codecs\":[" BYTES "]}}]";
    const uint64_t shape[2] = {2 * ROWS, SHARDS}, shard[2] = {ROWS, 1};
    scenario t;
    brc_outer_cursor c;
    brc_oid id;
    uint64_t outer[2], n = 0;
    uint8_t *data = malloc(2 * ROWS * SHARDS);
    scenario_start(&t);
    brc_array *a = scenario_array(&t, "/a", "uint8", 2, shape, shard, NULL, sharded);
    for (size_t i = 0; i < 2 * ROWS * SHARDS; i++) /* a shard's first chunk is in one of the rows */
        data[i] = (uint8_t)(i / SHARDS % ROWS >= i % SHARDS % ROWS);
    OK(&t, brc_array_write(a, NULL, data, 2 * ROWS * SHARDS, &t.err));
    OK(&t, brc_array_begin_read(a, &t.err));
    OK(&t, brc_outer_cursor_start(&c, a, NULL, &t.err));
    int rc;
    while ((rc = brc_outer_cursor_next(&c, outer, &id, &t.err)) > 0) {
        ck_assert_uint_eq(outer[0] * SHARDS + outer[1], n);
        n++;
    }
    OK(&t, rc);
    ck_assert_uint_eq(n, 2 * SHARDS);
    ck_assert_uint_le(c.cap, 8 * SHARDS); /* of two numbers each, up to twice, and room to grow */
    brc_outer_cursor_end(&c);
    brc_array_end_read(a);
    brc_array_free(a);
    free(data);
    scenario_stop(&t);
}
