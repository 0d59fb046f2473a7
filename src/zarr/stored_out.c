/*
 * Chunks handed out as the array's codecs say that they are stored: one for a key of the
 * Zarr store view, all of them for an export. Stored bytes are passed on where they are
 * encoded so already, else transcoded on the pool. A shard is put together when its last
 * inner chunk is there.
 */
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../flow/read.h"
#include "key_part.h"
#include "outer_cursor.h"
#include "shard_chunks.h"
#include "stored_chunk.h"
#include "transfer.h"

#define LIST_MOST 256 /* chunks that are looked up at once */

/* ---- one chunk -------------------------------- */

/* One inner chunk of the shard that is being put together. */
typedef struct shard_piece {
    uint64_t part; /* its number within the shard, in C order */
    size_t offset, len;
} shard_piece;

typedef struct stored_reader {
    brc_array *a;
    const brc_chunk_sink *sink;
    uint64_t chunk_bytes;   /* for progress                                        */
    const uint64_t *only;   /* the one to hand out; NULL: all                      */
    brc_outer_cursor cursor;
    uint64_t n;             /* that have been listed, the one that is being listed included */
    int in_shard, ended;    /* that one is a shard; there are no more              */
    uint64_t *outers;       /* ndim numbers each, by number % window               */
    brc_shard_chunks chunks; /* of the shard that is being listed                   */
    size_t part;             /* the next of them                                    */
    uint64_t end[BRC_MAX_NDIM]; /* of the shard that is being put together          */
    uint64_t shard; /* the one that is being put together                          */
    void *pieces; /* shard_piece[]: of it                                          */
    size_t npieces, pieces_cap;
    brc_buf bytes, whole;
    brc_shard_layout layout;
} stored_reader;

/* More than there are items that were looked up and are not done. */
#define OUTER_WINDOW 65536

static uint64_t *outer_of(const stored_reader *r, uint64_t number)
{
    return r->outers + number % OUTER_WINDOW * (uint64_t)r->a->meta.ndim;
}

/* An outer chunk's chunks of the grid: its parts, numbered in C order. */
typedef struct outer_parts {
    uint64_t first[BRC_MAX_NDIM], count[BRC_MAX_NDIM], n;
} outer_parts;

static int parts_of(const stored_reader *r, uint64_t outer, outer_parts *out, brc_error *err)
{
    return brc_outer_box(&r->a->meta, outer_of(r, outer), out->first, out->count, &out->n, err);
}

static int stored_open(void *ctx, brc_read_item *item, brc_error *err)
{
    const stored_reader *r = ctx;
    uint64_t index[BRC_MAX_NDIM] = {0};
    outer_parts parts;
    BRC_TRY(parts_of(r, item->number, &parts, err));
    brc_part_index(r->a->meta.ndim, parts.first, parts.count, item->part, index);
    return brc_key_part_item(item, r->a, index, err);
}

static int stored_place(void *ctx, brc_read_item *item, const uint8_t *data, brc_scratch *scratch,
                        brc_error *err)
{
    (void)ctx;
    return brc_key_part_place(item, data, scratch, err);
}

static void stored_out_name(void *ctx, const brc_read_item *item, brc_error *err)
{
    const stored_reader *r = ctx;
    brc_array_name_chunk(r->a, outer_of(r, item->number), err);
}

/* ---- what is to be read -------------------------------- */

/* The next chunk or shard: 1 with its id where that is known, else the zero id. */
static int next_outer(stored_reader *r, brc_oid *id, brc_error *err)
{
    uint64_t *outer = outer_of(r, r->n);
    int rc;
    memset(id, 0, sizeof(*id));
    if (r->ended)
        return 0;
    if (r->only != NULL) {
        memcpy(outer, r->only, (size_t)r->a->meta.ndim * sizeof(*outer));
        rc = 1;
        r->ended = 1;
        if (r->a->meta.nlevels == 0)
            BRC_TRY(brc_array_chunk_ids(r->a, 1, r->only, id, err));
    } else {
        rc = brc_outer_cursor_next(&r->cursor, outer, id, err);
        r->ended = rc <= 0;
    }
    r->n += rc > 0;
    return rc;
}

static int list_unsharded(stored_reader *r, brc_read_item *items, size_t cap, size_t *n,
                          brc_error *err)
{
    brc_oid id;
    int rc = 1;
    while (*n < cap && (rc = next_outer(r, &id, err)) > 0) {
        if (brc_oid_is_zero(&id))
            continue;
        items[*n].object.id = id;
        items[(*n)++].number = r->n - 1;
    }
    return rc < 0 ? rc : BRC_OK;
}

/* The next chunks of the shard that is being listed. They were looked up at once: uncommitted ones
 * may be written between two batches. */
static int list_shard(stored_reader *r, brc_read_item *items, size_t cap, size_t *n)
{
    const brc_shard_chunk *chunks = r->chunks.items;
    for (; *n < cap && r->part < r->chunks.n; r->part++, (*n)++) {
        items[*n].object.id = chunks[r->part].id;
        items[*n].number = r->n - 1;
        items[*n].part = chunks[r->part].number;
    }
    r->in_shard = r->part < r->chunks.n;
    return BRC_OK;
}

static int list_sharded(stored_reader *r, brc_read_item *items, size_t cap, size_t *n,
                        brc_error *err)
{
    brc_oid none;
    if (!r->in_shard) {
        int rc = next_outer(r, &none, err);
        if (rc <= 0)
            return rc;
        BRC_TRY(brc_shard_chunks_find(&r->chunks, r->a, outer_of(r, r->n - 1), err));
        r->part = 0;
    }
    return list_shard(r, items, cap, n);
}

static int stored_out_list(void *ctx, brc_read_item *items, size_t cap, size_t *n, brc_error *err)
{
    stored_reader *r = ctx;
    size_t most = cap < LIST_MOST ? cap : LIST_MOST;
    if (!r->in_shard && r->ended)
        return BRC_OK;
    if (r->a->is_frozen)
        BRC_TRY(brc_array_follow(r->a, err));
    BRC_TRY(r->a->meta.nlevels == 0 ? list_unsharded(r, items, most, n, err)
                                    : list_sharded(r, items, most, n, err));
    return BRC_READ_MORE;
}

static int stored_out_passed(void *ctx, const brc_read_item *item, brc_error *err)
{
    const stored_reader *r = ctx;
    return brc_task_step(r->a->session->repo, item != NULL ? r->chunk_bytes : 0, err);
}

/* ---- handing over, and shards -------------------------------- */

static int piece_order(const void *a, const void *b)
{
    const shard_piece *x = a, *y = b;
    return (x->part > y->part) - (x->part < y->part);
}

static int piece_part(void *ctx, const uint64_t *index, uint64_t *part, uint64_t *len, int *there,
                      brc_error *err)
{
    const stored_reader *r = ctx;
    outer_parts parts;
    BRC_TRY(parts_of(r, r->shard, &parts, err));
    const shard_piece key = {
        brc_part_number(r->a->meta.ndim, parts.first, parts.count, index), 0, 0};
    const shard_piece *piece =
        bsearch(&key, r->pieces, r->npieces, sizeof(shard_piece), piece_order);
    *there = piece != NULL;
    if (piece == NULL)
        return BRC_OK;
    *part = piece->offset;
    *len = piece->len;
    return BRC_OK;
}

static int fill_layout(stored_reader *r, brc_error *err)
{
    const brc_shard_slot *slots = r->layout.slots;
    r->whole.len = 0;
    for (size_t i = 0; i < r->layout.n; i++) {
        const brc_buf *from = slots[i].is_index ? &r->layout.indexes : &r->bytes;
        if (slots[i].len > 0) /* a damaged shard's pieces may all be empty */
            BRC_TRY(brc_buf_append(&r->whole, from->data + slots[i].part, (size_t)slots[i].len,
                                   err));
    }
    return BRC_OK;
}

/* Puts together what has come of a shard, and hands it over. */
static int give_shard(stored_reader *r, brc_error *err)
{
    brc_scratch *scratch;
    const uint64_t *outer = outer_of(r, r->shard);
    const brc_shard_source source = {r, r->end, piece_part};
    if (r->npieces == 0)
        return BRC_OK;
    brc_pipe *pipe = &r->a->session->repo->pipe;
    BRC_TRY(brc_pipe_scratch(pipe, brc_pipe_caller(pipe), &scratch, err));
    int rc = brc_shard_lay_out(&r->layout, &r->a->meta, scratch, outer, &source, err);
    if (rc == BRC_OK)
        rc = fill_layout(r, err);
    if (rc < 0) {
        brc_array_name_chunk(r->a, outer, err);
        return rc;
    }
    r->npieces = 0;
    r->bytes.len = 0;
    return r->sink->put(r->sink->ctx, outer, (brc_span){r->whole.data, r->whole.len}, err);
}

static int take_piece(stored_reader *r, const brc_read_item *item, brc_error *err)
{
    uint64_t index[BRC_MAX_NDIM] = {0};
    outer_parts parts;
    if (item->number != r->shard)
        BRC_TRY(give_shard(r, err));
    BRC_TRY(parts_of(r, item->number, &parts, err));
    brc_part_index(r->a->meta.ndim, parts.first, parts.count, item->part, index);
    for (int i = 0; i < r->a->meta.ndim; i++)
        if (r->npieces == 0 || index[i] >= r->end[i])
            r->end[i] = index[i] + 1;
    r->shard = item->number;
    BRC_TRY(brc_grow_array(&r->pieces, &r->pieces_cap, r->npieces + 1, sizeof(shard_piece), err));
    ((shard_piece *)r->pieces)[r->npieces++] =
        (shard_piece){item->part, r->bytes.len, item->out.len};
    return brc_buf_append(&r->bytes, item->out.data, item->out.len, err);
}

static int stored_out_done(void *ctx, brc_read_item *item, brc_error *err)
{
    stored_reader *r = ctx;
    if (r->a->meta.nlevels > 0)
        return take_piece(r, item, err);
    return r->sink->put(r->sink->ctx, outer_of(r, item->number), item->out, err);
}

/* ---- the functions -------------------------------- */

static int read_stored(stored_reader *r, brc_error *err)
{
    breccia *repo = r->a->session->repo;
    brc_read_ops ops = {.ctx = r,
                        .ordered = 1,
                        .list = stored_out_list,
                        .open = stored_open,
                        .place = stored_place,
                        .done = stored_out_done,
                        .passed = stored_out_passed,
                        .name = stored_out_name};
    uint64_t all;
    brc_stored_bytes(r->a, &r->chunk_bytes, &all);
    brc_task task = brc_task_begin(repo, "export", all);
    int rc = brc_flow_read(&repo->pipe, repo->store, &ops, err);
    if (rc == BRC_OK)
        rc = give_shard(r, err);
    brc_task_end(repo, &task, rc);
    return rc;
}

/* Within a transaction. only NULL: all. */
static int give_outers(brc_array *a, const uint64_t *only, const brc_chunk_sink *sink,
                       brc_error *err)
{
    void *p, *outers = NULL;
    int rc;
    const size_t width = (size_t)(a->meta.ndim > 0 ? a->meta.ndim : 1);
    BRC_TRY(brc_new(&p, sizeof(stored_reader), err));
    stored_reader *r = p;
    r->a = a;
    r->only = only;
    r->sink = sink;
    BRC_GO(brc_new_array(&outers, only != NULL ? width : OUTER_WINDOW * width, sizeof(uint64_t),
                         err));
    r->outers = outers;
    if (only == NULL)
        BRC_GO(brc_outer_cursor_start(&r->cursor, a, NULL, err));
    rc = read_stored(r, err);
done:
    brc_outer_cursor_end(&r->cursor);
    brc_buf_dispose(&r->bytes);
    brc_buf_dispose(&r->whole);
    brc_shard_layout_dispose(&r->layout);
    free(r->outers);
    brc_shard_chunks_dispose(&r->chunks);
    free(r->pieces);
    free(r);
    return rc;
}

typedef struct one_chunk {
    brc_buf *out;
    int there;
} one_chunk;

static int keep_chunk(void *ctx, const uint64_t *index, brc_span stored, brc_error *err)
{
    one_chunk *one = ctx;
    (void)index;
    one->there = 1;
    return brc_buf_append(one->out, stored.data, stored.len, err);
}

int brc_stored_chunk(brc_array *a, const uint64_t *outer, brc_buf *out, int *there, brc_error *err)
{
    one_chunk one = {.out = out};
    brc_chunk_sink sink = {&one, keep_chunk};
    out->len = 0;
    BRC_TRY(give_outers(a, outer, &sink, err));
    *there = one.there;
    return BRC_OK;
}

int brc_array_get_stored(brc_array *a, const brc_chunk_sink *sink, brc_error *err)
{
    brc_array *now = NULL;
    BRC_TRY(brc_array_begin_read(a, err));
    int rc = brc_array_freeze(&now, a, err);
    if (rc == BRC_OK)
        rc = give_outers(now, NULL, sink, err);
    brc_array_end_read(a);
    brc_array_free(now);
    return rc;
}
