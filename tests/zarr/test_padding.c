/*
 * Padding is what a chunk holds beyond the array's end. No comparison of versions may see it: they
 * are set by key, chunk by chunk, with random padding, and compared with a model that has none.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/base/buf.h"
#include "../../src/breccia.h"
#include "../kit/scenario.h"
#include "../kit/suite.h"

TEST_SUITE(padding);

enum { EDGE = 4, SIDE = 12, SHARD = 2, GRID = SIDE / EDGE, ITEMS = EDGE * EDGE };

#define BYTES "{\"name\":\"bytes\"}"
static const struct {
    const char *dtype, *fill, *codecs;
    int shard; /* chunks in a shard along each axis; 0: no shards */
    int is_text;
} kinds[] = {
    {"uint8", "0", BYTES, 0, 0},
    {"uint8", "0",
     "{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":[4,4],\"codecs\":[" BYTES
     "],\"index_codecs\":[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}]}}",
     SHARD, 0},
    {"string", "\"\"", "{\"name\":\"vlen-utf8\"}", 0, 1},
};

typedef struct padded {
    uint64_t shape[2];
    int is_there[GRID][GRID];
    uint8_t held[SIDE][SIDE]; /* also beyond the shape */
} padded;

typedef struct padding_trial {
    scenario t;
    uint64_t random;
    size_t kind;
    padded v[2];
} padding_trial;

static void set_key(padding_trial *x, const char *key, const void *data, size_t len)
{
    OK(&x->t, brc_key_set(x->t.session, key, data, len, 0, &x->t.err));
}

static void set_document(padding_trial *x, const padded *v)
{
    char text[1500];
    const int cut = EDGE * (kinds[x->kind].shard ? kinds[x->kind].shard : 1);
    snprintf(text, sizeof(text),
             "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[%d,%d],\"data_type\":\"%s\","
             "\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":[%d,%d]}},"
             "\"chunk_key_encoding\":{\"name\":\"default\"},\"fill_value\":%s,\"codecs\":[%s]}",
             (int)v->shape[0], (int)v->shape[1], kinds[x->kind].dtype, cut, cut,
             kinds[x->kind].fill, kinds[x->kind].codecs);
    set_key(x, "a/zarr.json", text, strlen(text));
}

/* The bytes of one chunk, as its codecs have them. */
static size_t chunk_bytes(const padding_trial *x, const padded *v, int row, int col, uint8_t *out)
{
    size_t n = 0;
    if (kinds[x->kind].is_text) {
        brc_put_u32le(out, ITEMS);
        n = 4;
    }
    for (int i = 0; i < ITEMS; i++) {
        const uint8_t value = v->held[row * EDGE + i / EDGE][col * EDGE + i % EDGE];
        if (!kinds[x->kind].is_text) {
            out[n++] = value;
            continue;
        }
        brc_put_u32le(out + n, value); /* as many letters */
        memset(out + n + 4, 'x', value);
        n += 4u + value;
    }
    return n;
}

static void set_shard(padding_trial *x, const padded *v, int row, int col, const char *key)
{
    enum { CHUNKS = SHARD * SHARD };
    uint8_t out[CHUNKS * (ITEMS + 16)];
    uint64_t place[CHUNKS][2];
    size_t n = 0;
    for (int i = 0; i < CHUNKS; i++) {
        const int r = row * SHARD + i / SHARD, c = col * SHARD + i % SHARD;
        place[i][0] = place[i][1] = UINT64_MAX;
        if (r >= GRID || c >= GRID || !v->is_there[r][c])
            continue;
        place[i][0] = n;
        place[i][1] = chunk_bytes(x, v, r, c, out + n);
        n += place[i][1];
    }
    if (n == 0)
        return;
    for (int i = 0; i < CHUNKS; i++, n += 16) {
        brc_put_u64le(out + n, place[i][0]);
        brc_put_u64le(out + n + 8, place[i][1]);
    }
    set_key(x, key, out, n);
}

static void store_padded(padding_trial *x, const padded *v)
{
    const int per = kinds[x->kind].shard ? kinds[x->kind].shard : 1;
    uint8_t out[4 + ITEMS * 8];
    char key[40];
    OK(&x->t, brc_key_delete(x->t.session, "a/c/", BRC_KEY_PREFIX, &x->t.err));
    set_document(x, v);
    for (int row = 0; row * per * EDGE < (int)v->shape[0]; row++)
        for (int col = 0; col * per * EDGE < (int)v->shape[1]; col++) {
            snprintf(key, sizeof(key), "a/c/%d/%d", row, col);
            if (per > 1)
                set_shard(x, v, row, col, key);
            else if (v->is_there[row][col])
                set_key(x, key, out, chunk_bytes(x, v, row, col, out));
        }
}

/* The element that a reader sees there. */
static int seen(const padded *v, int i, int j)
{
    return i < (int)v->shape[0] && j < (int)v->shape[1] && v->is_there[i / EDGE][j / EDGE]
               ? v->held[i][j] : 0;
}

/* Few values, and few that differ: chunks are often the same but for what nobody sees. */
static void random_padded(padding_trial *x, padded *v, const padded *before)
{
    const int same_values = scenario_below(&x->random, 3) > 0;
    for (int axis = 0; axis < 2; axis++)
        v->shape[axis] = before != NULL && scenario_below(&x->random, 3) > 0
                             ? before->shape[axis] : 1 + scenario_below(&x->random, SIDE);
    for (int i = 0; i < GRID * GRID; i++)
        v->is_there[i / GRID][i % GRID] = scenario_below(&x->random, 3) > 0;
    for (int i = 0; i < SIDE; i++)
        for (int j = 0; j < SIDE; j++) {
            const int is_padding = i >= (int)v->shape[0] || j >= (int)v->shape[1];
            v->held[i][j] = (uint8_t)scenario_below(&x->random, is_padding ? 3 : 2);
            if (!is_padding && before != NULL && same_values)
                v->held[i][j] = (uint8_t)seen(before, i, j);
            if (!is_padding && before == NULL && scenario_below(&x->random, 3) > 0)
                v->held[i][j] = 0;
        }
    if (before != NULL && same_values)
        for (int i = 0; i < GRID * GRID; i++)
            v->is_there[i / GRID][i % GRID] |= before->is_there[i / GRID][i % GRID];
}

static int has_chunk(const padded *v, int row, int col)
{
    return v->is_there[row][col] && row * EDGE < (int)v->shape[0] && col * EDGE < (int)v->shape[1];
}

static void expected_padding(const padding_trial *x, brc_change *out)
{
    const padded *a = &x->v[0], *b = &x->v[1];
    memset(out, 0, sizeof(*out));
    for (int row = 0; row < GRID; row++)
        for (int col = 0; col < GRID; col++) {
            int differs = 0;
            for (int i = row * EDGE; i < (row + 1) * EDGE; i++)
                for (int j = col * EDGE; j < (col + 1) * EDGE; j++) {
                    const int both = i < (int)a->shape[0] && i < (int)b->shape[0] &&
                                     j < (int)a->shape[1] && j < (int)b->shape[1];
                    differs |= seen(a, i, j) != seen(b, i, j);
                    out->elements_changed += both && seen(a, i, j) != seen(b, i, j);
                }
            if (!differs)
                continue;
            out->chunks_added += !has_chunk(a, row, col);
            out->chunks_removed += !has_chunk(b, row, col);
            out->chunks_changed += has_chunk(a, row, col) && has_chunk(b, row, col);
        }
}

static void diff_is_as_expected(padding_trial *x, const char *from, const char *to, uint32_t flags)
{
    brc_diff_opts opts = BRC_DIFF_OPTS_INIT;
    const brc_change *change;
    brc_change want;
    brc_iter *it;
    const int same_shape = memcmp(x->v[0].shape, x->v[1].shape, sizeof(x->v[0].shape)) == 0;
    expected_padding(x, &want);
    const int same = want.chunks_added + want.chunks_removed + want.chunks_changed == 0;
    opts.flags = flags;
    OK(&x->t, brc_diff(&it, x->t.repo, from, to, &opts, &x->t.err));
    int rc = brc_next(it, &change, &x->t.err);
    if (rc == 0)
        ck_assert_int_eq(same && same_shape, 1);
    if (rc > 0) {
        ck_assert_str_eq(change->path, "/a");
        ck_assert_uint_eq(change->chunks_added, want.chunks_added);
        ck_assert_uint_eq(change->chunks_removed, want.chunks_removed);
        ck_assert_uint_eq(change->chunks_changed, want.chunks_changed);
        ck_assert_int_eq((change->flags & BRC_CHANGE_STORAGE) != 0, same && same_shape);
        if (flags & BRC_DIFF_ELEMENTS)
            ck_assert_uint_eq(change->elements_changed, want.elements_changed);
        rc = brc_next(it, &change, &x->t.err);
    }
    ck_assert_int_eq(rc, 0);
    brc_iter_free(it);
}

CASE("padding", .timeout = 120);

LOOP(padding_is_never_compared, 0, 12)
{
    padding_trial x = {.random = 9000 + (uint64_t)_i, .kind = (size_t)_i % 3};
    scenario_start(&x.t);
    for (int round = 0; round < 12; round++) {
        random_padded(&x, &x.v[0], NULL);
        store_padded(&x, &x.v[0]);
        scenario_commit(&x.t, "one");
        random_padded(&x, &x.v[1], &x.v[0]);
        store_padded(&x, &x.v[1]);
        diff_is_as_expected(&x, NULL, NULL, 0);
        diff_is_as_expected(&x, NULL, NULL, BRC_DIFF_ELEMENTS);
        brc_commit_opts opts = BRC_COMMIT_OPTS_INIT;
        brc_oid id;
        opts.flags = BRC_COMMIT_ALLOW_EMPTY;
        opts.message = "two";
        OK(&x.t, brc_session_commit(&id, x.t.session, &opts, &x.t.err));
        diff_is_as_expected(&x, "main~1", "main", 0);
        diff_is_as_expected(&x, "main~1", "main", BRC_DIFF_ELEMENTS);
        const padded v = x.v[0];
        x.v[0] = x.v[1];
        x.v[1] = v;
        diff_is_as_expected(&x, "main", "main~1", 0);
    }
    scenario_whole(&x.t);
    scenario_stop(&x.t);
}

/* One side removes the array, the other changes its padding, or a value too. */
LOOP(padding_is_no_change_that_blocks_a_removal, 0, 3)
{
    static const struct {
        int value, conflicts;
    } rows[] = {{0, 0}, {1, 1}};
    padding_trial x = {.kind = (size_t)_i % 3};
    padded v = {.shape = {5, 6}};
    memset(v.is_there, 1, sizeof(v.is_there));
    for (int row = 0; row < 2; row++)
        for (int swapped = 0; swapped < 2; swapped++) {
            const char *edits = swapped ? "other" : "main", *removes = swapped ? "main" : "other";
            brc_merge_result result = BRC_MERGE_RESULT_INIT;
            int kind;
            scenario_start(&x.t);
            memset(v.held, 0, sizeof(v.held));
            store_padded(&x, &v);
            scenario_commit(&x.t, "base");
            OK(&x.t, brc_ref_create(x.t.repo, "other", NULL, NULL, 0, &x.t.err));
            for (int i = 0; i < 2; i++) {
                brc_session_free(x.t.session);
                x.t.session = NULL;
                OK(&x.t, brc_session_open(&x.t.session, x.t.repo, i == 0 ? edits : removes,
                                          BRC_SESSION_WRITE, &x.t.err));
                v.held[0][0] = (uint8_t)rows[row].value;
                v.held[5][1] = v.held[7][7] = 2;
                if (i == 0)
                    store_padded(&x, &v);
                else
                    OK(&x.t, brc_node_remove(x.t.session, "/a", &x.t.err));
                scenario_commit(&x.t, i == 0 ? "edited" : "removed");
            }
            OK(&x.t, brc_merge(&result, NULL, x.t.repo, "other", NULL, &x.t.err));
            ck_assert_int_eq((int)result.conflicts, rows[row].conflicts);
            if (rows[row].conflicts == 0) {
                brc_session *s = scenario_session(&x.t, x.t.repo, "main", BRC_SESSION_VIEW);
                OK(&x.t, brc_node_kind(&kind, s, "/a", &x.t.err));
                ck_assert_int_eq(kind, 0);
                brc_session_free(s);
            }
            scenario_stop(&x.t);
        }
}
