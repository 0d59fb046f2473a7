/* Chunks that are taken over from one encoding into another: whatever the two grids, shards
 * and codecs are, and in whatever order the chunks come, the array is what it would be had its
 * elements been written. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/zarr/array/array.h"
#include "../../src/zarr/transfer.h"
#include "../kit/converters.h"
#include "../kit/exchange_kit.h"
#include "../kit/ios.h"
#include "../kit/scenario.h"
#include "../kit/suite.h"

TEST_SUITE(put_recoded);

#define ROWS 13
#define COLUMNS 11
#define MOST 2048 /* chunks of an array */

#define RANDOM_TRIALS 240

#define LITTLE "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"
#define BIG "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}}"
#define TURN "{\"name\":\"transpose\",\"configuration\":{\"order\":[1,0]}}"
#define GZIP "{\"name\":\"gzip\",\"configuration\":{\"level\":1}}"
#define ZSTD "{\"name\":\"zstd\",\"configuration\":{\"level\":1,\"checksum\":true}}"
#define SHARD(inner, codecs)                                                                   \
    "{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":" inner ",\"codecs\":[" \
    codecs "],\"index_codecs\":[" LITTLE "],\"index_location\":\"end\"}}"
#define ARRAY(type, fill, grid, codecs)                                                          \
    "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[13,11],\"data_type\":\"" type "\","   \
    "\"chunk_grid\":" grid ",\"chunk_key_encoding\":{\"name\":\"default\"},\"fill_value\":" fill \
    ",\"codecs\":[" codecs "]}"
#define REGULAR(shape) "{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":" shape "}}"
#define UNEVEN                                                                                  \
    "{\"name\":\"rectilinear\",\"configuration\":{\"kind\":\"inline\",\"chunk_shapes\":[[2,7,4]," \
    "[1,5,5]]}}"
#define INTS(grid, codecs) ARRAY("int16", "5", grid, codecs)
#define TEXTS(grid, more) ARRAY("string", "\"none\"", grid, "{\"name\":\"vlen-utf8\"}" more)

static const struct {
    const char *from, *to;
} same_grid[] = {
    { INTS(REGULAR("[3,4]"), LITTLE), INTS(REGULAR("[3,4]"), LITTLE "," ZSTD) },
    { INTS(REGULAR("[3,4]"), BIG "," GZIP), INTS(REGULAR("[3,4]"), TURN "," LITTLE "," ZSTD) },
    { INTS(REGULAR("[6,8]"), SHARD("[3,4]", BIG)), INTS(REGULAR("[3,4]"), LITTLE "," ZSTD) },
    { INTS(REGULAR("[3,4]"), LITTLE), INTS(REGULAR("[6,4]"), SHARD("[3,4]", LITTLE "," ZSTD)) },
    { INTS(UNEVEN, BIG), INTS(UNEVEN, LITTLE "," GZIP) },
    { TEXTS(REGULAR("[3,4]"), ""), TEXTS(REGULAR("[3,4]"), "," ZSTD) },
};
#define SAME_GRID (int)(sizeof(same_grid) / sizeof(same_grid[0]))

static const struct {
    const char *from, *to;
} other_grid[] = {
    { INTS(REGULAR("[3,4]"), LITTLE), INTS(REGULAR("[4,3]"), LITTLE "," ZSTD) },
    { INTS(REGULAR("[1,1]"), LITTLE), INTS(REGULAR("[13,11]"), BIG) },
    { INTS(REGULAR("[13,4]"), BIG "," GZIP), INTS(REGULAR("[1,11]"), TURN "," LITTLE) },
    { INTS(REGULAR("[2,11]"), LITTLE), INTS(REGULAR("[13,2]"), LITTLE "," ZSTD) },
    { INTS(REGULAR("[6,8]"), SHARD("[3,4]", BIG)), INTS(REGULAR("[2,5]"), LITTLE "," ZSTD) },
    { INTS(REGULAR("[3,5]"), LITTLE), INTS(REGULAR("[8,4]"), SHARD("[2,2]", LITTLE "," ZSTD)) },
    { INTS(UNEVEN, BIG), INTS(REGULAR("[3,3]"), LITTLE "," GZIP) },
    { INTS(REGULAR("[3,3]"), BIG), INTS(UNEVEN, LITTLE "," GZIP) },
    { TEXTS(REGULAR("[3,4]"), ""), TEXTS(REGULAR("[4,3]"), "," ZSTD) },
    { TEXTS(REGULAR("[1,1]"), ""), TEXTS(REGULAR("[13,11]"), "") },
    { TEXTS(REGULAR("[13,4]"), "," GZIP), TEXTS(REGULAR("[1,11]"), "") },
    { ARRAY("string", "\"none\"", REGULAR("[6,8]"), SHARD("[3,4]", "{\"name\":\"vlen-utf8\"}")),
      TEXTS(REGULAR("[2,5]"), "," ZSTD) },
    { TEXTS(UNEVEN, ""), ARRAY("string", "\"none\"", REGULAR("[8,4]"),
                               SHARD("[2,2]", "{\"name\":\"vlen-utf8\"}," ZSTD)) },
};
#define OTHER_GRID (int)(sizeof(other_grid) / sizeof(other_grid[0]))

/* ---- a source in memory -------------------------------- */

typedef struct kept_chunk {
    uint64_t index[2];
    brc_buf stored;
} kept_chunk;

typedef struct kept_chunks {
    kept_chunk items[MOST];
    size_t n, at;
} kept_chunks;

static int keep_stored(void *ctx, const uint64_t *index, brc_span stored, brc_error *err)
{
    kept_chunks *kept = ctx;
    ck_assert_uint_lt(kept->n, MOST);
    kept_chunk *c = &kept->items[kept->n++];
    memcpy(c->index, index, sizeof(c->index));
    return brc_buf_append(&c->stored, stored.data, stored.len, err);
}

static int give_kept(void *ctx, uint64_t *index, brc_buf *stored, brc_error *err)
{
    kept_chunks *kept = ctx;
    ck_assert_uint_eq(stored->len, 0);
    if (kept->at == kept->n)
        return 0;
    const kept_chunk *c = &kept->items[kept->at++];
    memcpy(index, c->index, sizeof(c->index));
    BRC_TRY(brc_buf_append(stored, c->stored.data, c->stored.len, err));
    return 1;
}

/* ---- arrays -------------------------------- */

typedef struct trial {
    exchange_kit kit;
    brc_array *from, *to, *written;
    brc_json *doc; /* of `from` */
    brc_buf elements;
    kept_chunks kept;
} trial;

static brc_array *array_of(trial *t, const char *path, const char *document)
{
    brc_array_spec spec = BRC_ARRAY_SPEC_INIT;
    brc_array *a;
    spec.metadata_json = document;
    ck_assert_msg(brc_array_create(&a, t->kit.session, path, &spec, &t->kit.err) == BRC_OK, "%s",
                  t->kit.err.message);
    return a;
}

/* Elements of which a third, all in one corner, are the fill value. */
static void make_elements(trial *t)
{
    const int texts = brc_array_describe(t->from)->item_size == 0;
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        const int fill = i / COLUMNS < 9 && i % COLUMNS < 6;
        const int16_t number = (int16_t)(fill ? 5 : i * 77);
        char text[32];
        int n = snprintf(text, sizeof(text), "%.*s", i % 9, "abcdefghijk");
        uint32_t len = fill ? 4 : (uint32_t)n;
        brc_error *err = &t->kit.err;
        if (texts)
            ck_assert_int_eq(brc_buf_append(&t->elements, &len, sizeof(len), err), BRC_OK);
        ck_assert_int_eq(texts ? brc_buf_append(&t->elements, fill ? "none" : text, len, err)
                               : brc_buf_append(&t->elements, &number, sizeof(number), err),
                         BRC_OK);
    }
}

static void trial_start(trial *t, const char *from, const char *to)
{
    brc_chunk_sink sink = { &t->kept, keep_stored, 0 };
    brc_error *err = &t->kit.err;
    memset(t, 0, sizeof(*t));
    exchange_start(&t->kit);
    t->from = array_of(t, "/from", from);
    t->to = array_of(t, "/to", to);
    t->written = array_of(t, "/written", to);
    make_elements(t);
    ck_assert_int_eq(brc_array_write(t->from, NULL, t->elements.data, t->elements.len, err),
                     BRC_OK);
    ck_assert_int_eq(brc_array_write(t->written, NULL, t->elements.data, t->elements.len, err),
                     BRC_OK);
    ck_assert_int_eq(brc_array_get_stored(t->from, &sink, err), BRC_OK);
    ck_assert_uint_gt(t->kept.n, 1);
    ck_assert_int_eq(brc_node_doc(&t->doc, t->kit.session, "/from", err), BRC_OK);
}

static void trial_stop(trial *t)
{
    for (size_t i = 0; i < t->kept.n; i++)
        brc_buf_dispose(&t->kept.items[i].stored);
    brc_buf_dispose(&t->elements);
    brc_json_free(t->doc);
    brc_array_free(t->from);
    brc_array_free(t->to);
    brc_array_free(t->written);
    exchange_stop(&t->kit);
}

static int put_kept(trial *t)
{
    brc_chunk_source source = { .ctx = &t->kept, .next = give_kept };
    t->kept.at = 0;
    return brc_array_put_recoded(t->to, t->doc, &source, &t->kit.err);
}

static int note_id(void *ctx, const uint64_t *index, const brc_oid *id, brc_error *err)
{
    brc_buf *out = ctx;
    BRC_TRY(brc_buf_append(out, index, 2 * sizeof(*index), err));
    return brc_buf_append(out, id->bytes, sizeof(id->bytes), err);
}

/* The index and id of every chunk: two arrays with the same ones hold the same bits, what
 * lies outside the array included. */
static brc_buf ids_of(trial *t, brc_array *a)
{
    brc_buf out = BRC_BUF_INIT;
    ck_assert_int_eq(brc_array_begin_read(a, &t->kit.err), BRC_OK);
    ck_assert_int_eq(brc_array_each_chunk(a, note_id, &out, &t->kit.err), BRC_OK);
    brc_array_end_read(a);
    return out;
}

static void check_same(trial *t)
{
    brc_buf got = ids_of(t, t->to), want = ids_of(t, t->written), elements = BRC_BUF_INIT;
    ck_assert_uint_gt(want.len, 0);
    ck_assert_uint_eq(got.len, want.len);
    ck_assert_mem_eq(got.data, want.data, want.len);
    ck_assert_int_eq(io_elements(t->to, NULL, &elements, &t->kit.err), BRC_OK);
    ck_assert_uint_eq(elements.len, t->elements.len);
    ck_assert_mem_eq(elements.data, t->elements.data, elements.len);
    brc_buf_dispose(&elements);
    brc_buf_dispose(&got);
    brc_buf_dispose(&want);
}

/* Another order: 1 reversed, 2 as if shuffled. */
static void reorder(kept_chunks *kept, int how)
{
    for (size_t i = 0; i < kept->n && how > 0; i++) {
        size_t j = how == 1 ? kept->n - 1 - i : i * 7 % kept->n;
        if (how == 1 && j <= i)
            break;
        kept_chunk c = kept->items[i];
        kept->items[i] = kept->items[j];
        kept->items[j] = c;
    }
}

CASE("same grid");

/* ---- tests -------------------------------- */

LOOP(chunks_that_are_cut_the_same_are_what_writing_gives, 0, 3 * SAME_GRID)
{
    trial t;
    trial_start(&t, same_grid[_i / 3].from, same_grid[_i / 3].to);
    reorder(&t.kept, _i % 3);
    ck_assert_msg(put_kept(&t) == BRC_OK, "%s", t.kit.err.message);
    check_same(&t);
    trial_stop(&t);
}

CASE("other grid", .timeout = 120);

LOOP(chunks_that_are_cut_otherwise_are_what_writing_gives, 0, 6 * OTHER_GRID)
{
    trial t;
    trial_start(&t, other_grid[_i / 6].from, other_grid[_i / 6].to);
    reorder(&t.kept, _i % 3);
    if (_i % 6 >= 3) /* boxes are closed before they are complete */
        t.kit.repo->pipe.memory = 128;
    ck_assert_msg(put_kept(&t) == BRC_OK, "%s", t.kit.err.message);
    check_same(&t);
    trial_stop(&t);
}

#define VLEN "{\"name\":\"vlen-utf8\"}"
static const struct {
    const char *before, *after, *type, *fill;
} rewritten[] = {
    { LITTLE, SHARD("[3,4]", LITTLE "," ZSTD), "int16", "5" },
    { SHARD("[3,4]", BIG), SHARD("[2,2]", LITTLE "," GZIP), "int16", "5" },
    { SHARD("[2,2]", LITTLE "," ZSTD), BIG "," GZIP, "int16", "5" },
    { VLEN, SHARD("[3,4]", VLEN "," ZSTD), "string", "\"none\"" },
    { SHARD("[3,4]", VLEN), SHARD("[2,2]", VLEN "," GZIP), "string", "\"none\"" },
    { SHARD("[2,2]", VLEN "," ZSTD), VLEN "," GZIP, "string", "\"none\"" },
};
#define REWRITTEN (int)(sizeof(rewritten) / sizeof(rewritten[0]))

/* Where the chunks that are stored change with the codecs, they are cut anew. */
LOOP(codecs_that_cut_otherwise_leave_what_writing_gives, 0, 2 * REWRITTEN)
{
    trial t;
    char before[1024], after[1024], codecs[512];
    const int n = _i / 2;
    snprintf(before, sizeof(before), ARRAY("%s", "%s", REGULAR("[6,8]"), "%s"),
             rewritten[n].type, rewritten[n].fill, rewritten[n].before);
    snprintf(after, sizeof(after), ARRAY("%s", "%s", REGULAR("[6,8]"), "%s"),
             rewritten[n].type, rewritten[n].fill, rewritten[n].after);
    snprintf(codecs, sizeof(codecs), "[%s]", rewritten[n].after);
    trial_start(&t, before, after);
    if (_i % 2 == 1)
        t.kit.repo->pipe.memory = 128;
    ck_assert_msg(brc_array_set_codecs(t.from, codecs, 1, &t.kit.err) == BRC_OK, "%s",
                  t.kit.err.message);
    brc_array *to = t.to;
    t.to = t.from;
    check_same(&t);
    t.to = to;
    trial_stop(&t);
}

/* ---- any grids, orders, threads and memory -------------------------------- */

enum { INTEGERS, STRINGS, BYTES, KINDS };
static const struct {
    const char *type, *codec, *fills[2];
} kinds[KINDS] = {
    { "int32", LITTLE, { "0", "-7" } },
    { "string", VLEN, { "\"\"", "\"f\"" } },
    { "bytes", "{\"name\":\"vlen-bytes\"}", { "\"\"", "\"Zg==\"" } },
};

typedef struct random_trial {
    trial t; /* first */
    brc_pool *pool;
    uint64_t random, shape[2];
    int kind, fill;
} random_trial;

static int below(random_trial *r, uint64_t n)
{
    return (int)scenario_below(&r->random, n);
}

static void random_edges(random_trial *r, char *out, size_t size, uint64_t left)
{
    size_t at = (size_t)snprintf(out, size, "[");
    while (left > 0) {
        uint64_t edge = 1 + scenario_below(&r->random, left);
        left -= edge;
        at += (size_t)snprintf(out + at, size - at, "%d%s", (int)edge, left > 0 ? "," : "]");
    }
}

/* An array's document of any grid and codecs; *plain: regular and without shards. */
static void random_document(random_trial *r, char *out, size_t size, int *plain)
{
    char edges[2][512], grid[1200], codecs[1024], shards[32], chunks[32];
    const char *more[] = { "", "," GZIP, "," ZSTD };
    const int sort = below(r, 5), a = 1 + below(r, r->shape[0] + 1),
              b = 1 + below(r, r->shape[1] + 1), times = 1 + below(r, 3);
    snprintf(chunks, sizeof(chunks), "[%d,%d]", a, b);
    snprintf(shards, sizeof(shards), "[%d,%d]", a * times, b * 2);
    snprintf(codecs, sizeof(codecs), sort == 1 ? SHARD("%s", "%s%s") : "%.0s%s%s", chunks,
             kinds[r->kind].codec, more[below(r, 3)]);
    random_edges(r, edges[0], sizeof(edges[0]), r->shape[0]);
    random_edges(r, edges[1], sizeof(edges[1]), r->shape[1]);
    if (sort == 0)
        snprintf(grid, sizeof(grid),
                 "{\"name\":\"rectilinear\",\"configuration\":{\"kind\":\"inline\","
                 "\"chunk_shapes\":[%s,%s]}}",
                 edges[0], edges[1]);
    else
        snprintf(grid, sizeof(grid), REGULAR("%s"), sort == 1 ? shards : chunks);
    snprintf(out, size,
             "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[%d,%d],\"data_type\":\"%s\","
             "\"chunk_grid\":%s,\"chunk_key_encoding\":{\"name\":\"default\"},"
             "\"fill_value\":%s,\"codecs\":[%s]}",
             (int)r->shape[0], (int)r->shape[1], kinds[r->kind].type, grid,
             kinds[r->kind].fills[r->fill], codecs);
    *plain = sort > 1;
}

/* Rows of fill value, then short elements and some long ones; the last is none of the fills. */
static void random_elements(random_trial *r)
{
    char bytes[3000];
    brc_error *err = &r->t.kit.err;
    memset(bytes, 'a' + below(r, 26), sizeof(bytes));
    const uint64_t n = r->shape[0] * r->shape[1], fills = scenario_below(&r->random, n);
    for (uint64_t i = 0; i < n; i++) {
        uint32_t len = (uint32_t)(i < fills ? r->fill : below(r, below(r, 30) == 0 ? 3000 : 12));
        int32_t number = i < fills ? (r->fill ? -7 : 0) : (int32_t)below(r, 1000);
        if (i == n - 1) {
            len = 2;
            number = 1000;
        }
        bytes[0] = i < fills ? 'f' : (char)('a' + below(r, 26));
        if (r->kind == INTEGERS) {
            ck_assert_int_eq(brc_buf_append(&r->t.elements, &number, sizeof(number), err), BRC_OK);
            continue;
        }
        ck_assert_int_eq(brc_buf_append(&r->t.elements, &len, sizeof(len), err), BRC_OK);
        ck_assert_int_eq(brc_buf_append(&r->t.elements, bytes, len, err), BRC_OK);
    }
}

static void random_start(random_trial *r, uint64_t seed)
{
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    exchange_kit *kit = &r->t.kit;
    memset(r, 0, sizeof(*r));
    r->random = seed;
    r->kind = below(r, KINDS);
    r->fill = below(r, 2);
    for (int i = 0; i < 2; i++)
        r->shape[i] = 1 + scenario_below(&r->random, 40);
    exchange_folder_start(kit);
    ck_assert_int_eq(brc_pool_new(&r->pool, 1 + (unsigned)below(r, 8), &kit->err), BRC_OK);
    opts.flags = BRC_OPEN_CREATE;
    opts.pool = r->pool;
    opts.libexec = converters_folder();
    ck_assert_int_eq(brc_open(&kit->repo, exchange_path(kit, "test.brc"), &opts, &kit->err),
                     BRC_OK);
    ck_assert_int_eq(brc_session_open(&kit->session, kit->repo, NULL, BRC_SESSION_WRITE, &kit->err),
                     BRC_OK);
}

static void random_stop(random_trial *r)
{
    trial_stop(&r->t);
    brc_pool_free(r->pool);
}

/* In order, backwards, or at random; where chunks are all alike some come before with what is
 * another's. */
static void random_order(random_trial *r, int alike)
{
    kept_chunks *kept = &r->t.kept;
    const int how = below(r, 3);
    for (size_t i = kept->n; how == 2 && i-- > 1;) {
        size_t j = scenario_below(&r->random, i + 1);
        kept_chunk c = kept->items[i];
        kept->items[i] = kept->items[j];
        kept->items[j] = c;
    }
    reorder(kept, how % 2);
    for (int k = below(r, 3); alike && k > 0 && kept->n > 1 && kept->n < MOST; k--) {
        size_t i = scenario_below(&r->random, kept->n), from = i > 0 ? i - 1 : kept->n - 1;
        kept_chunk decoy = { .stored = BRC_BUF_INIT };
        memcpy(decoy.index, kept->items[i].index, sizeof(decoy.index));
        ck_assert_int_eq(brc_buf_append(&decoy.stored, kept->items[from].stored.data,
                                        kept->items[from].stored.len, &r->t.kit.err),
                         BRC_OK);
        size_t at = scenario_below(&r->random, i + 1);
        memmove(kept->items + at + 1, kept->items + at, (kept->n++ - at) * sizeof(decoy));
        kept->items[at] = decoy;
    }
}

LOOP(P_any_grid_order_memory_and_threads_give_what_writing_gives, 0, RANDOM_TRIALS)
{
    random_trial r;
    trial *t = &r.t;
    char from[4096], to[4096];
    int alike, any;
    brc_chunk_sink sink = { &t->kept, keep_stored, 0 };
    random_start(&r, (uint64_t)_i + 1);
    random_document(&r, from, sizeof(from), &alike);
    random_document(&r, to, sizeof(to), &any);
    t->from = array_of(t, "/from", from);
    t->to = array_of(t, "/to", to);
    t->written = array_of(t, "/written", to);
    random_elements(&r);
    brc_error *err = &t->kit.err;
    ck_assert_int_eq(brc_array_write(t->from, NULL, t->elements.data, t->elements.len, err),
                     BRC_OK);
    ck_assert_int_eq(brc_array_get_stored(t->from, &sink, err), BRC_OK);
    ck_assert_int_eq(brc_node_doc(&t->doc, t->kit.session, "/from", err), BRC_OK);
    random_order(&r, alike);
    const size_t memory = t->kit.repo->pipe.memory;
    t->kit.repo->pipe.memory = (size_t)600 << below(&r, 15); /* to 9 MiB */
    ck_assert_msg(put_kept(t) == BRC_OK, "%s", err->message);
    t->kit.repo->pipe.memory = memory;
    ck_assert_int_eq(brc_array_write(t->written, NULL, t->elements.data, t->elements.len, err),
                     BRC_OK);
    check_same(t);
    random_stop(&r);
}

CASE("same grid");

/* ---- what a source gets wrong -------------------------------- */

TEST(what_lies_outside_the_array_becomes_the_fill_value)
{
    trial t;
    trial_start(&t, same_grid[0].from, same_grid[0].to);
    kept_chunk *last = &t.kept.items[t.kept.n - 1]; /* (4, 2): one row and three columns of it */
    ck_assert_uint_eq(last->stored.len, 3 * 4 * 2);
    memset(last->stored.data + 6, 0xee, 18);
    ck_assert_int_eq(put_kept(&t), BRC_OK);
    check_same(&t);
    trial_stop(&t);
}

TEST(a_later_chunk_of_the_same_index_counts)
{
    trial t;
    trial_start(&t, same_grid[0].from, same_grid[0].to);
    kept_chunk *c = &t.kept.items[t.kept.n];
    *c = t.kept.items[0];
    t.kept.items[0].stored = (brc_buf)BRC_BUF_INIT;
    ck_assert_int_eq(brc_buf_append(&t.kept.items[0].stored, t.kept.items[1].stored.data,
                                    t.kept.items[1].stored.len, &t.kit.err),
                     BRC_OK);
    t.kept.n++;
    ck_assert_int_eq(put_kept(&t), BRC_OK);
    check_same(&t);
    trial_stop(&t);
}

CASE("wrong");

TEST(a_damaged_chunk_is_named_and_nothing_is_kept)
{
    trial t;
    uint64_t chunks, bytes;
    trial_start(&t, same_grid[0].from, same_grid[0].to);
    t.kept.items[2].stored.len--;
    ck_assert_int_eq(put_kept(&t), BRC_ECORRUPT);
    ck_assert_ptr_nonnull(strstr(t.kit.err.message, "/to chunk ("));
    ck_assert_int_eq(brc_array_stat(&chunks, &bytes, t.to, &t.kit.err), BRC_OK);
    ck_assert_uint_eq(chunks, 0);
    trial_stop(&t);
}

TEST(a_chunk_outside_the_grid_or_of_another_array_is_refused)
{
    trial t;
    trial_start(&t, same_grid[0].from, same_grid[0].to);
    t.kept.items[1].index[0] = 5;
    ck_assert_int_eq(put_kept(&t), BRC_EINVAL);
    ck_assert_ptr_nonnull(strstr(t.kit.err.message, "outside the array"));
    brc_json_free(t.doc);
    ck_assert_int_eq(brc_json_parse(&t.doc, same_grid[5].from, strlen(same_grid[5].from), 0,
                                    &t.kit.err),
                     BRC_OK);
    ck_assert_int_eq(put_kept(&t), BRC_EINVAL);
    ck_assert_ptr_nonnull(strstr(t.kit.err.message, "a different shape or data type"));
    trial_stop(&t);
}

TEST(a_damaged_chunk_of_texts_is_named_and_nothing_is_kept)
{
    trial t;
    uint64_t chunks, bytes;
    trial_start(&t, TEXTS(REGULAR("[3,4]"), ""), TEXTS(REGULAR("[4,3]"), ""));
    t.kept.items[2].stored.len--;
    ck_assert_int_ne(put_kept(&t), BRC_OK);
    ck_assert_ptr_nonnull(strstr(t.kit.err.message, "/to chunk ("));
    ck_assert_int_eq(brc_array_stat(&chunks, &bytes, t.to, &t.kit.err), BRC_OK);
    ck_assert_uint_eq(chunks, 0);
    trial_stop(&t);
}
