/* Elements that are written as they come: the array is what one write of all of them makes of
 * it, whatever the grid, the selection, their order in the file, the threads and the memory. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../src/zarr/array/array.h"
#include "../../src/zarr/transfer.h"
#include "../kit/exchange_kit.h"
#include "../kit/hooked_kit.h"
#include "../kit/suite.h"

TEST_SUITE(write_stream);

#define SEEDS 120

/* ---- a case by its number -------------------------------- */

typedef struct stream_case {
    unsigned state;
    int ndim;
    uint64_t shape[4], chunk[4];
    brc_sel sel;
    int fortran, big, before; /* before: the array has elements already; 2: in a commit */
    size_t memory, unit;
    size_t count; /* of elements */
    uint8_t *file, *plain; /* the elements as the file has them, and in C order, little-endian */
    size_t at;
} stream_case;

static unsigned next_number(stream_case *c, unsigned below)
{
    c->state = c->state * 1103515245u + 12345u;
    return (c->state >> 16) % below;
}

static void choose_selection(stream_case *c, int i)
{
    const uint64_t extent = c->shape[i];
    c->sel.step[i] = 1 + (next_number(c, 4) == 0) * next_number(c, 3);
    c->sel.start[i] = next_number(c, 3) == 0 ? next_number(c, (unsigned)extent) : 0;
    uint64_t most = (extent - c->sel.start[i] - 1) / c->sel.step[i] + 1;
    c->sel.count[i] = next_number(c, 3) == 0 ? 1 + next_number(c, (unsigned)most) : most;
}

/* Its element by its index in the selection, in C order. */
static void put_element(stream_case *c, size_t number, const uint64_t *index)
{
    uint64_t at = 0;
    for (int k = 0; k < c->ndim; k++) { /* from the slowest on */
        int i = c->fortran ? c->ndim - 1 - k : k;
        at = at * c->sel.count[i] + index[i];
    }
    for (size_t b = 0; b < c->unit; b++) {
        uint8_t byte = (uint8_t)(number * 2654435761u >> (8 * b + 3));
        c->plain[number * c->unit + b] = byte;
        c->file[at * c->unit + (c->big ? c->unit - 1 - b : b)] = byte;
    }
}

static void case_start(stream_case *c, unsigned seed)
{
    static const size_t units[] = { 1, 2, 4, 8 };
    static const size_t memories[] = { 600, 6000, 60000, (size_t)8 << 20 };
    uint64_t index[4] = { 0 };
    memset(c, 0, sizeof(*c));
    c->sel.size = sizeof(brc_sel);
    c->state = seed * 7919 + 17;
    c->ndim = c->sel.ndim = 1 + (int)next_number(c, 4);
    c->unit = units[next_number(c, 4)];
    c->memory = memories[next_number(c, 4)];
    c->fortran = next_number(c, 4) == 0;
    c->big = next_number(c, 3) == 0;
    c->before = (int)(next_number(c, 3) == 0) * (1 + (int)(seed & 1));
    const int runs = next_number(c, 4) == 0; /* chunks of whole rows */
    const unsigned small = next_number(c, 2); /* chunks */
    for (int i = 0; i < c->ndim; i++) {
        c->shape[i] = 1 + next_number(c, c->ndim > 2 ? 11 : 60);
        c->chunk[i] = 1 + next_number(c, small ? 5 : (unsigned)c->shape[i] + 3);
        choose_selection(c, i);
        if (runs) {
            c->chunk[i] = i > 0 ? c->shape[i] : c->chunk[i];
            c->sel.start[i] = 0;
            c->sel.step[i] = 1;
            c->sel.count[i] = c->shape[i];
        }
    }
    c->count = (size_t)brc_sel_count(&c->sel);
    c->file = malloc(c->count * c->unit);
    c->plain = malloc(c->count * c->unit);
    ck_assert(c->file != NULL && c->plain != NULL);
    for (size_t n = 0; n < c->count; n++) {
        put_element(c, n, index);
        (void)brc_index_next(c->ndim, index, c->sel.count);
    }
}

static void case_stop(stream_case *c)
{
    free(c->file);
    free(c->plain);
}

static int read_file(void *ctx, uint8_t *dst, size_t len, brc_error *err)
{
    stream_case *c = ctx;
    if (c->at + len > c->count * c->unit)
        return brc_fail(err, BRC_EIO, "it was asked for more than there is");
    memcpy(dst, c->file + c->at, len);
    c->at += len;
    return BRC_OK;
}

/* ---- arrays -------------------------------- */

static brc_array *array_for(exchange_kit *kit, const stream_case *c, const char *path)
{
    static const char *const types[] = { "",       "uint8", "uint16", "", "uint32", "", "", "",
                                         "uint64" };
    brc_array_spec spec = BRC_ARRAY_SPEC_INIT;
    brc_array *a;
    spec.ndim = c->ndim;
    spec.shape = c->shape;
    spec.chunk = c->chunk;
    spec.dtype = types[c->unit];
    spec.fill = "3";
    ck_assert_msg(brc_array_create(&a, kit->session, path, &spec, &kit->err) == BRC_OK, "%s",
                  kit->err.message);
    if (c->before)
        ck_assert_int_eq(brc_array_fill(a, NULL, "\1\2\3\4\5\6\7", &kit->err), BRC_OK);
    if (c->before == 2) {
        brc_commit_opts opts = BRC_COMMIT_OPTS_INIT;
        brc_oid id;
        opts.message = path;
        opts.author = "Ada <ada@example.org>";
        ck_assert_int_eq(brc_session_commit(&id, kit->session, &opts, &kit->err), BRC_OK);
    }
    return a;
}

static int note_chunk(void *ctx, const uint64_t *index, const brc_oid *id, brc_error *err)
{
    brc_buf *out = ctx;
    BRC_TRY(brc_buf_append(out, index, sizeof(*index), err));
    return brc_buf_append(out, id->bytes, sizeof(id->bytes), err);
}

static brc_buf chunks_of(exchange_kit *kit, brc_array *a)
{
    brc_buf out = BRC_BUF_INIT;
    ck_assert_int_eq(brc_array_begin_read(a, &kit->err), BRC_OK);
    ck_assert_int_eq(brc_array_each_chunk(a, note_chunk, &out, &kit->err), BRC_OK);
    brc_array_end_read(a);
    return out;
}

static void kit_threads(exchange_kit *kit, brc_pool *pool)
{
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    exchange_folder_start(kit);
    opts.flags = BRC_OPEN_CREATE;
    opts.pool = pool;
    brc_error *err = &kit->err;
    ck_assert_int_eq(brc_open(&kit->repo, exchange_path(kit, "test.brc"), &opts, err), BRC_OK);
    ck_assert_int_eq(brc_session_open(&kit->session, kit->repo, NULL, BRC_SESSION_WRITE, err),
                     BRC_OK);
}

/* ---- tests -------------------------------- */

static void check_stream(exchange_kit *kit, stream_case *c, unsigned seed)
{
    char path[32];
    brc_element_source source = { c, c->fortran, c->big, read_file };
    snprintf(path, sizeof(path), "/stream%u", seed);
    brc_array *a = array_for(kit, c, path);
    snprintf(path, sizeof(path), "/at_once%u", seed);
    brc_array *b = array_for(kit, c, path);
    kit->repo->pipe.memory = c->memory;
    ck_assert_msg(brc_array_write_stream(a, &c->sel, &source, &kit->err) == BRC_OK, "%u: %s", seed,
                  kit->err.message);
    ck_assert_msg(c->at == c->count * c->unit, "seed %u: not all was read", seed);
    kit->repo->pipe.memory = (size_t)64 << 20;
    ck_assert_int_eq(brc_array_write(b, &c->sel, c->plain, c->count * c->unit, &kit->err), BRC_OK);
    brc_buf got = chunks_of(kit, a), want = chunks_of(kit, b);
    ck_assert_msg(got.len == want.len && memcmp(got.data, want.data, got.len) == 0,
                  "seed %u: the chunks differ", seed);
    brc_buf_dispose(&got);
    brc_buf_dispose(&want);
    brc_array_free(a);
    brc_array_free(b);
}

CASE("streams");

LOOP(a_stream_is_what_one_write_of_it_is, 0, 3)
{
    brc_pool *pool = NULL;
    exchange_kit kit;
    brc_error err = BRC_ERROR_INIT;
    if (_i > 0)
        ck_assert_int_eq(brc_pool_new(&pool, _i == 1 ? 3 : 8, &err), BRC_OK);
    kit_threads(&kit, pool);
    for (unsigned seed = 0; seed < SEEDS; seed++) {
        stream_case c;
        case_start(&c, seed);
        check_stream(&kit, &c, seed);
        case_stop(&c);
    }
    exchange_stop(&kit);
    brc_pool_free(pool);
}

TEST(a_stream_that_ends_too_early_leaves_the_array_as_it_was)
{
    exchange_kit kit;
    stream_case c;
    uint64_t chunks, bytes;
    exchange_start(&kit);
    for (unsigned seed = 0; seed < 20; seed++) {
        char path[32];
        case_start(&c, seed);
        c.before = 0;
        c.count -= 1;
        brc_element_source source = { &c, c.fortran, c.big, read_file };
        snprintf(path, sizeof(path), "/a%u", seed);
        brc_array *a = array_for(&kit, &c, path);
        kit.repo->pipe.memory = c.memory;
        ck_assert_int_eq(brc_array_write_stream(a, &c.sel, &source, &kit.err), BRC_EIO);
        ck_assert_int_eq(brc_array_stat(&chunks, &bytes, a, &kit.err), BRC_OK);
        ck_assert_uint_eq(chunks, 0);
        brc_array_free(a);
        case_stop(&c);
    }
    exchange_stop(&kit);
}

static void slowly(void *ctx)
{
    (void)ctx;
    usleep(200000);
}

/* While one worker decodes a piece of a chunk, the others do not write the chunk. */
TEST(a_chunk_waits_for_its_slowest_piece)
{
    enum { PIECE = 64, ELEMENTS = 4 * PIECE };
    static const char *const pieces =
        "[{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":[64],\"codecs\":"
        "[" HOOKED_CODECS "],\"index_codecs\":[" LITTLE "]}}]";
    const uint64_t shape = ELEMENTS;
    int32_t data[ELEMENTS], got[ELEMENTS];
    scenario t;
    hooked_parts parts;
    memset(&t, 0, sizeof(t));
    hooked_file_start(&t, &parts, 3);
    brc_array *a = scenario_array(&t, "/a", "int32", 1, &shape, &shape, "-1", pieces);
    for (int i = 0; i < ELEMENTS; i++)
        data[i] = i / PIECE;
    OK(&t, brc_array_write(a, NULL, data, sizeof(data), &t.err));
    hook_decode(slowly, NULL, 1);
    OK(&t, brc_array_set_codecs(a, "[" LITTLE "]", 1, &t.err));
    ck_assert_int_eq(hook_calls(), 1);
    OK(&t, brc_array_read(a, NULL, got, sizeof(got), &t.err));
    ck_assert_mem_eq(got, data, sizeof(got));
    brc_array_free(a);
    hooked_file_stop(&t, &parts);
}
