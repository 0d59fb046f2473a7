#include "array_shrink.h"

#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../flow/write.h"
#include "../history/map_totals.h"
#include "../tree/map_cursor.h"
#include "bulk_write.h"
#include "chunk_cursor.h"
#include "element_chunk.h"
#include "shard.h"

/* ---- chunks outside -------------------------------- */

/* Taken out of the map together: what is remembered does not grow with the array. */
enum { DROP_BATCH = 16384 };

typedef struct outside_keys {
    brc_map_cursor cursor; /* of the map as it was */
    const uint64_t *grid;
    int ndim;
    size_t n;
    brc_edit edits[DROP_BATCH];
    uint8_t keys[DROP_BATCH][BRC_CHUNK_KEY_MAX];
} outside_keys;

static int is_outside(const outside_keys *o, brc_span key, brc_error *err)
{
    uint64_t index[BRC_MAX_NDIM];
    if (brc_chunk_key_decode(key.data, key.len, index) != o->ndim)
        return brc_fail(err, BRC_ECORRUPT, "a chunk's key is damaged; run 'breccia fsck'");
    for (int i = 0; i < o->ndim; i++)
        if (index[i] >= o->grid[i])
            return 1;
    return 0;
}

/* The next of them: 0 at the end. */
static int list_outside(outside_keys *o, brc_error *err)
{
    o->n = 0;
    while (o->n < DROP_BATCH) {
        BRC_TRY(brc_map_cursor_descend(&o->cursor, err));
        if (o->cursor.at_end)
            break;
        const brc_span key = {o->cursor.head.key, o->cursor.head.bits / 8};
        int rc = is_outside(o, key, err);
        if (rc < 0)
            return rc;
        if (rc > 0) {
            memcpy(o->keys[o->n], key.data, key.len);
            o->edits[o->n] = (brc_edit){o->keys[o->n], key.len, NULL, 0};
            o->n++;
        }
        BRC_TRY(brc_map_cursor_step(&o->cursor, err));
    }
    return o->n > 0;
}

static int drop_listed(brc_store *store, const outside_keys *o, brc_oid *map, brc_error *err)
{
    const brc_oid before = *map;
    BRC_TRY(brc_map_edit(store, &before, o->edits, o->n, map, err));
    return brc_map_total_follow(store, &before, map, o->edits, o->n, NULL, err);
}

int brc_chunks_drop_outside(brc_store *store, int ndim, const uint64_t *grid, brc_oid *map,
                            brc_error *err)
{
    void *p;
    BRC_TRY(brc_new(&p, sizeof(outside_keys), err));
    outside_keys *o = p;
    o->grid = grid;
    o->ndim = ndim;
    int rc = brc_map_cursor_start(&o->cursor, store, map, err);
    while (rc >= 0 && (rc = list_outside(o, err)) > 0)
        rc = drop_listed(store, o, map, err);
    brc_map_cursor_end(&o->cursor);
    free(o);
    return rc;
}

/* ---- chunks beyond the grid -------------------------------- */

/* An edge of up to this many chunks is small. */
#define SMALL_EDGE 65536
#define PLACES_MOST 256

static int drop_one(brc_array *a, const uint64_t *index, const brc_oid *id, brc_error *err)
{
    if (a->session->bulk != NULL)
        BRC_TRY(brc_bulk_note_old(a, index, id, err));
    return brc_array_put_chunk(a, index, NULL, err);
}

static int drop_places(brc_array *a, const uint64_t *first, const uint64_t *count, uint64_t places,
                       brc_error *err)
{
    const int ndim = a->meta.ndim;
    uint64_t indexes[PLACES_MOST * BRC_MAX_NDIM];
    brc_oid ids[PLACES_MOST];
    for (uint64_t at = 0; at < places;) {
        size_t n = 0;
        for (; n < PLACES_MOST && at < places; n++, at++)
            brc_part_index(ndim, first, count, at, indexes + n * (size_t)ndim);
        BRC_TRY(brc_array_chunk_ids(a, n, indexes, ids, err));
        for (size_t i = 0; i < n; i++)
            if (!brc_oid_is_zero(&ids[i]))
                BRC_TRY(drop_one(a, indexes + i * (size_t)ndim, &ids[i], err));
    }
    return BRC_OK;
}

/* There are too many places to ask for each: all stored chunks from `first` on are looked at. */
static int drop_found(brc_array *a, int axis, const uint64_t *first, brc_error *err)
{
    brc_chunk_cursor c;
    uint64_t index[BRC_MAX_NDIM];
    brc_oid id;
    int rc = axis == 0 ? brc_chunk_cursor_start_at(&c, a, first, err)
                       : brc_chunk_cursor_start(&c, a, err);
    while (rc >= 0 && (rc = brc_chunk_cursor_next(&c, index, &id, err)) > 0)
        if (index[axis] >= first[axis])
            rc = drop_one(a, index, &id, err);
    brc_chunk_cursor_end(&c);
    return rc;
}

int brc_array_drop_beyond(brc_array *a, const uint64_t *shape, brc_error *err)
{
    const brc_meta *m = &a->meta;
    uint64_t all[BRC_MAX_NDIM];
    for (int i = 0; i < m->ndim && m->nlevels > 0; i++)
        all[i] = brc_mul_capped(m->outer.count[i], m->outer.chunk[i] / m->grid.chunk[i]);
    for (int i = 0; i < m->ndim && m->nlevels > 0; i++) {
        uint64_t first[BRC_MAX_NDIM] = {0}, count[BRC_MAX_NDIM], places = 1;
        memcpy(count, all, sizeof(count));
        first[i] = m->grid.count[i];
        count[i] = all[i] - first[i];
        if (shape[i] == m->shape[i] || count[i] == 0)
            continue;
        for (int k = 0; k < m->ndim; k++)
            places = brc_mul_capped(places, count[k]);
        BRC_TRY(places <= SMALL_EDGE ? drop_places(a, first, count, places, err)
                                     : drop_found(a, i, first, err));
    }
    return BRC_OK;
}

/* ---- the chunks of an edge -------------------------------- */

/* Chunks that the array's end cuts along one axis, those that are stored: of a small edge each is
 * asked for, of a large one they are found among all stored chunks. */
typedef struct edge {
    brc_array *a;
    int axis;
    uint64_t keep;                /* elements that stay, along the axis          */
    uint64_t at;                  /* index of the edge's chunks along the axis   */
    uint64_t count[BRC_MAX_NDIM]; /* box of chunks, of which `axis` counts one   */
    uint64_t next[BRC_MAX_NDIM];
    int in_box, ended;
    brc_chunk_cursor cursor;
} edge;

/* 1 with the next chunk; *id is zero where it is not known yet. 0 at the end. */
static int edge_next(edge *e, uint64_t *index, brc_oid *id, brc_error *err)
{
    const int ndim = e->a->meta.ndim;
    int rc = 0;
    memset(id, 0, sizeof(*id));
    if (!e->in_box) {
        while ((rc = brc_chunk_cursor_next(&e->cursor, index, id, err)) > 0)
            if (index[e->axis] == e->at)
                break;
        return rc;
    }
    if (e->ended)
        return 0;
    memcpy(index, e->next, sizeof(e->next));
    index[e->axis] = e->at;
    e->ended = !brc_index_next(ndim, e->next, e->count);
    return 1;
}

/* The next of them, at most cap: those that turn out to be absent are left out. */
static int edge_find(edge *e, brc_write_item *items, size_t cap, size_t *n, brc_error *err)
{
    uint64_t indexes[BRC_WRITE_ITEMS * BRC_MAX_NDIM];
    brc_oid ids[BRC_WRITE_ITEMS];
    const size_t ndim = (size_t)e->a->meta.ndim;
    size_t found = 0;
    int rc = 1;
    while (found < cap && found < BRC_WRITE_ITEMS) {
        rc = edge_next(e, items[*n].index, &ids[found], err);
        if (rc <= 0)
            break;
        memcpy(indexes + found++ * ndim, items[*n].index, ndim * sizeof(*indexes));
    }
    BRC_TRY(rc);
    if (e->in_box && found > 0)
        BRC_TRY(brc_array_chunk_ids(e->a, found, indexes, ids, err));
    for (size_t i = 0; i < found; i++) {
        if (brc_oid_is_zero(&ids[i]))
            continue;
        memcpy(items[*n].index, indexes + i * ndim, ndim * sizeof(*indexes));
        items[(*n)++].old.id = ids[i];
        if (e->a->session->bulk != NULL)
            BRC_TRY(brc_bulk_note_old(e->a, indexes + i * ndim, &ids[i], err));
    }
    return found > 0;
}

static int edge_list(void *ctx, brc_write_item *items, size_t cap, size_t *n, brc_error *err)
{
    edge *e = ctx;
    int rc = 1;
    *n = 0;
    BRC_TRY(brc_task_step(e->a->session->repo, 0, err));
    while (*n == 0 && rc > 0)
        rc = edge_find(e, items, cap, n, err);
    BRC_TRY(rc);
    for (size_t i = 0; i < *n; i++) {
        uint64_t corner[BRC_MAX_NDIM], chunk[BRC_MAX_NDIM];
        brc_grid_chunk(&e->a->meta.grid, items[i].index, corner, chunk);
        BRC_TRY(brc_array_item(e->a, chunk, &items[i], err));
    }
    return BRC_OK;
}

/* ---- on the pool -------------------------------- */

/* One element everywhere past the end: `elements` are those of a chunk. */
static void fill_past(const edge *e, const uint64_t *index, uint8_t *elements, size_t unit,
                      const void *fill)
{
    const int ndim = e->a->meta.ndim;
    uint64_t corner[BRC_MAX_NDIM], chunk[BRC_MAX_NDIM];
    int64_t strides[BRC_MAX_NDIM] = {0};
    brc_grid_chunk(&e->a->meta.grid, index, corner, chunk);
    brc_strides_packed(ndim, chunk, unit, strides);
    const uint64_t inside = e->keep - corner[e->axis];
    chunk[e->axis] -= inside;
    brc_fill_box(ndim, chunk, unit, elements + inside * (uint64_t)strides[e->axis], strides, fill);
}

static int edge_gather_fixed(const edge *e, brc_write_item *item, brc_scratch *scratch,
                             brc_error *err)
{
    const brc_meta *m = &e->a->meta;
    const size_t unit = m->type->item_size, len = (size_t)item->elements * unit;
    BRC_TRY(brc_buf_reserve(&item->own, len, err));
    BRC_TRY(brc_write_old(item, scratch, &item->own, err));
    if (item->own.len != len)
        return brc_fail(err, BRC_ECORRUPT, "its bytes have the wrong length");
    fill_past(e, item->index, item->own.data, unit, m->fill.data);
    item->data = item->own.data;
    item->len = len;
    return BRC_OK;
}

static int edge_gather(void *ctx, brc_write_item *item, brc_scratch *scratch, brc_error *err)
{
    const edge *e = ctx;
    const brc_meta *m = &e->a->meta;
    const brc_span fill = {m->fill.data, m->fill.len};
    void *table;
    if (!brc_meta_is_variable(m))
        return edge_gather_fixed(e, item, scratch, err);
    BRC_TRY(brc_new_array(&table, (size_t)item->elements, sizeof(brc_span), err));
    fill_past(e, item->index, table, sizeof(brc_span), &fill);
    int rc = brc_gather_elements(item, table, m, scratch, err);
    free(table);
    return rc;
}

/* ---- behind the flow -------------------------------- */

static int edge_done(void *ctx, const brc_write_item *item, brc_error *err)
{
    const edge *e = ctx;
    return brc_array_put_chunk(e->a, item->index, item->is_fill ? NULL : &item->id, err);
}

static void edge_name(void *ctx, const brc_write_item *item, brc_error *err)
{
    const edge *e = ctx;
    brc_array_name_chunk(e->a, item->index, err);
}

static int clean_edge(edge *e, brc_error *err)
{
    brc_array *a = e->a;
    brc_pipe *pipe = &a->session->repo->pipe;
    brc_write_ops ops = {
        .ctx = e,
        .len = (size_t)brc_shape_count(a->meta.ndim, a->meta.grid.chunk) * brc_array_unit(a),
        .list = edge_list,
        .gather = edge_gather,
        .done = edge_done,
        .name = edge_name,
    };
    uint64_t chunks = 1;
    int countable = 1;
    for (int i = 0; i < a->meta.ndim; i++)
        countable &= brc_mul_u64(chunks, e->count[i], &chunks);
    e->in_box = countable && chunks <= SMALL_EDGE;
    e->ended = 0;
    if (e->in_box)
        return brc_flow_write(pipe, brc_array_store(a), &ops, err);
    int rc = brc_chunk_cursor_start(&e->cursor, a, err);
    if (rc == BRC_OK)
        rc = brc_flow_write(pipe, brc_array_store(a), &ops, err);
    brc_chunk_cursor_end(&e->cursor);
    return rc;
}

int brc_array_clean_edges(brc_array *a, const uint64_t *keep, const uint64_t *shape, brc_error *err)
{
    const brc_meta *m = &a->meta;
    uint64_t count[BRC_MAX_NDIM] = {0};
    void *p;
    int rc = BRC_OK;
    for (int i = 0; i < m->ndim; i++) {
        if (keep[i] == 0)
            return BRC_OK; /* nothing is left */
        count[i] = brc_grid_find(&m->grid, i, keep[i] - 1) + 1;
    }
    BRC_TRY(brc_new(&p, sizeof(edge), err));
    for (int i = 0; i < m->ndim && rc == BRC_OK; i++) {
        if (brc_grid_round_up(&m->grid, i, keep[i]) == keep[i] || shape[i] == m->shape[i])
            continue;
        edge *e = p;
        memset(e, 0, sizeof(*e));
        e->a = a;
        e->axis = i;
        e->keep = keep[i];
        e->at = count[i] - 1;
        memcpy(e->count, count, sizeof(count));
        e->count[i] = 1;
        rc = clean_edge(e, err);
    }
    free(p);
    return rc;
}
