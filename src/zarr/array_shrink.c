#include "array_shrink.h"

#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../flow/write.h"
#include "../history/map_totals.h"
#include "../tree/map_cursor.h"
#include "array_turn.h"
#include "bulk_write.h"
#include "chunk_cursor.h"
#include "element_chunk.h"
#include "fold.h"
#include "region_write.h"
#include "shard.h"

/* ---- chunks outside -------------------------------- */

/* Taken out of the map together, in one transaction: memory does not grow with the array. */
enum { DROP_BATCH = 8192 };

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

/* The next of them: none at the end. */
static int list_outside(brc_store *store, outside_keys *o, brc_error *err)
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
        brc_store_breathe(store);
    }
    return BRC_OK;
}

static int list_in_read(brc_store *store, outside_keys *o, brc_error *err)
{
    BRC_TRY(brc_store_begin_read(store, err));
    int rc = list_outside(store, o, err);
    brc_store_end_read(store);
    if (rc == BRC_OK)
        rc = brc_store_check_interrupt(store, err);
    return rc < 0 ? rc : o->n > 0;
}

static int drop_listed(brc_store *store, const outside_keys *o, brc_oid *map, brc_error *err)
{
    const brc_oid before = *map;
    BRC_TRY(brc_store_begin(store, err));
    int rc = brc_map_edit(store, &before, o->edits, o->n, map, err);
    if (rc == BRC_OK)
        rc = brc_map_total_follow(store, &before, map, o->edits, o->n, NULL, err);
    const int ended = brc_store_end(store, rc == BRC_OK, rc == BRC_OK ? err : NULL);
    return rc < 0 ? rc : ended;
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
    while (rc >= 0 && (rc = list_in_read(store, o, err)) > 0)
        rc = drop_listed(store, o, map, err);
    brc_map_cursor_end(&o->cursor);
    free(o);
    return rc;
}

int brc_array_has_few_chunks(brc_array *a, int *few, brc_error *err)
{
    brc_node_total total;
    int large, found = 1;
    *few = 0;
    BRC_TRY(brc_stack_is_large(brc_array_store(a), &a->stack, &large, err));
    if (large)
        return BRC_OK;
    memset(&total, 0, sizeof(total));
    if (!brc_oid_is_zero(&a->entry.map))
        BRC_TRY(brc_total_row(brc_array_store(a), &a->entry.map, NULL, &found, &total, err));
    *few = found && total.chunks <= DROP_BATCH;
    return BRC_OK;
}

/* ---- chunks beyond the grid -------------------------------- */

/* An edge of up to this many chunks is small; so many places are looked at in one transaction. */
#define SMALL_EDGE 65536
#define FEW_PLACES 4096
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
        BRC_TRY(brc_store_rest(brc_array_store(a), 0, err));
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

/* The places beyond the grid along one axis, of all that the shards have. */
static uint64_t places_beyond(const brc_array *a, int axis, const uint64_t *shape, uint64_t *first,
                              uint64_t *count)
{
    const brc_meta *m = &a->meta;
    uint64_t places = 1;
    memset(first, 0, BRC_MAX_NDIM * sizeof(*first));
    for (int i = 0; i < m->ndim; i++)
        count[i] = brc_mul_capped(m->outer.count[i], m->outer.chunk[i] / m->grid.chunk[i]);
    first[axis] = m->grid.count[axis];
    count[axis] -= first[axis];
    if (shape[axis] == m->shape[axis])
        return 0;
    for (int i = 0; i < m->ndim; i++)
        places = brc_mul_capped(places, count[i]);
    return places;
}

int brc_array_has_few_beyond(const brc_array *a, const uint64_t *shape)
{
    uint64_t first[BRC_MAX_NDIM], count[BRC_MAX_NDIM], sum = 0;
    for (int i = 0; i < a->meta.ndim && a->meta.nlevels > 0; i++)
        if (!brc_add_u64(sum, places_beyond(a, i, shape, first, count), &sum))
            return 0;
    return sum <= FEW_PLACES;
}

int brc_array_drop_beyond(brc_array *a, const uint64_t *shape, brc_error *err)
{
    uint64_t first[BRC_MAX_NDIM], count[BRC_MAX_NDIM];
    for (int i = 0; i < a->meta.ndim && a->meta.nlevels > 0; i++) {
        const uint64_t places = places_beyond(a, i, shape, first, count);
        if (places > 0)
            BRC_TRY(places <= SMALL_EDGE ? drop_places(a, first, count, places, err)
                                         : drop_found(a, i, first, err));
    }
    return BRC_OK;
}

/* ---- the chunks of the edges -------------------------------- */

/* Chunks that the array's end cuts, those that are stored, axis by axis: of a small edge each is
 * asked for, of a large one they are found among all stored chunks. One that lies in two edges
 * comes with the first. */
typedef struct edges {
    brc_array *a;
    uint64_t keep[BRC_MAX_NDIM];  /* elements that stay; UINT64_MAX: this axis cuts no chunk */
    uint64_t count[BRC_MAX_NDIM]; /* box of chunks that are kept                   */
    int axis;                     /* whose edge is gone through; -1: none was      */
    uint64_t box[BRC_MAX_NDIM];   /* that edge: along `axis` it counts one         */
    uint64_t next[BRC_MAX_NDIM];
    int in_box, ended;
    brc_chunk_cursor cursor;
} edges;

static int is_in_edge(const edges *e, int axis, const uint64_t *index)
{
    return e->keep[axis] != UINT64_MAX && index[axis] == e->count[axis] - 1;
}

static uint64_t edge_chunks(const edges *e, int axis)
{
    uint64_t chunks = 1;
    for (int i = 0; i < e->a->meta.ndim; i++)
        chunks = brc_mul_capped(chunks, i == axis ? 1 : e->count[i]);
    return chunks;
}

/* The next axis whose edge is cut: 0 at the end. */
static int edge_turn(edges *e, brc_error *err)
{
    const int ndim = e->a->meta.ndim;
    if (e->axis >= 0 && !e->in_box)
        brc_chunk_cursor_end(&e->cursor);
    e->in_box = 1;
    do {
        if (++e->axis >= ndim)
            return 0;
    } while (e->keep[e->axis] == UINT64_MAX);
    memcpy(e->box, e->count, sizeof(e->box));
    e->box[e->axis] = 1;
    memset(e->next, 0, sizeof(e->next));
    e->ended = 0;
    if (edge_chunks(e, e->axis) <= SMALL_EDGE)
        return 1;
    e->in_box = 0;
    BRC_TRY(brc_chunk_cursor_start(&e->cursor, e->a, err));
    return 1;
}

/* 1 with the next chunk of this axis' edge; *id is zero where it is not known yet. */
static int edge_step(edges *e, uint64_t *index, brc_oid *id, brc_error *err)
{
    const int ndim = e->a->meta.ndim;
    int rc = 0;
    memset(id, 0, sizeof(*id));
    if (!e->in_box) {
        while ((rc = brc_chunk_cursor_next(&e->cursor, index, id, err)) > 0)
            if (index[e->axis] == e->count[e->axis] - 1)
                break;
        return rc;
    }
    if (e->ended)
        return 0;
    memcpy(index, e->next, sizeof(e->next));
    index[e->axis] = e->count[e->axis] - 1;
    e->ended = !brc_index_next(ndim, e->next, e->box);
    return 1;
}

static int was_in_edge(const edges *e, const uint64_t *index)
{
    int was = 0;
    for (int i = 0; i < e->axis; i++)
        was |= is_in_edge(e, i, index);
    return was;
}

/* The next of this axis' edge, at most cap: those that turn out to be absent are left out. */
static int edge_find(edges *e, brc_write_item *items, size_t cap, size_t *n, brc_error *err)
{
    uint64_t indexes[BRC_WRITE_ITEMS * BRC_MAX_NDIM], index[BRC_MAX_NDIM];
    brc_oid ids[BRC_WRITE_ITEMS];
    const size_t ndim = (size_t)e->a->meta.ndim;
    size_t found = 0;
    int rc = 1;
    while (found < cap && found < BRC_WRITE_ITEMS) {
        rc = edge_step(e, index, &ids[found], err);
        if (rc <= 0)
            break;
        if (!was_in_edge(e, index))
            memcpy(indexes + found++ * ndim, index, ndim * sizeof(*indexes));
    }
    BRC_TRY(rc);
    if (e->in_box && found > 0)
        BRC_TRY(brc_array_chunk_ids(e->a, found, indexes, ids, err));
    for (size_t i = 0; i < found; i++) {
        brc_write_item *item = &items[*n];
        if (brc_oid_is_zero(&ids[i]))
            continue;
        memcpy(item->index, indexes + i * ndim, ndim * sizeof(*indexes));
        item->is_part = 1;
        item->was = item->old.id = ids[i];
        ++*n;
        if (e->a->session->bulk != NULL)
            BRC_TRY(brc_bulk_note_old(e->a, indexes + i * ndim, &ids[i], err));
    }
    return rc > 0;
}

static int edge_list(void *ctx, brc_write_item *items, size_t cap, size_t *n, brc_error *err)
{
    edges *e = ctx;
    int rc = 1;
    *n = 0;
    BRC_TRY(brc_task_step(e->a->session->repo, 0, err));
    while (*n == 0 && rc > 0) {
        rc = e->axis >= 0 && e->axis < e->a->meta.ndim ? edge_find(e, items, cap, n, err) : 0;
        if (rc == 0 && *n == 0 && e->axis < e->a->meta.ndim)
            rc = edge_turn(e, err);
    }
    BRC_TRY(rc);
    for (size_t i = 0; i < *n; i++) {
        uint64_t corner[BRC_MAX_NDIM], chunk[BRC_MAX_NDIM];
        brc_grid_chunk(&e->a->meta.grid, items[i].index, corner, chunk);
        BRC_TRY(brc_array_item(e->a, chunk, &items[i], err));
    }
    return BRC_OK;
}

/* ---- on the pool -------------------------------- */

static int edge_gather_fixed(const edges *e, brc_write_item *item, brc_scratch *scratch,
                             brc_error *err)
{
    const brc_meta *m = &e->a->meta;
    const size_t unit = m->type->item_size, len = (size_t)item->elements * unit;
    BRC_TRY(brc_buf_reserve(&item->own, len, err));
    if (item->old.found)
        BRC_TRY(brc_write_old(item, scratch, &item->own, err));
    else /* it has gone meanwhile */
        brc_fill_run(item->own.data, item->elements, unit, m->fill.data);
    if (item->old.found && item->own.len != len)
        return brc_fail(err, BRC_ECORRUPT, "its bytes have the wrong length");
    brc_fill_past(e->a, item->index, e->keep, item->own.data, unit, m->fill.data);
    item->own.len = item->len = len;
    item->data = item->own.data;
    return BRC_OK;
}

static int edge_gather(void *ctx, brc_write_item *item, brc_scratch *scratch, brc_error *err)
{
    const edges *e = ctx;
    const brc_meta *m = &e->a->meta;
    const brc_span fill = {m->fill.data, m->fill.len};
    void *table;
    if (!brc_meta_is_variable(m))
        return edge_gather_fixed(e, item, scratch, err);
    BRC_TRY(brc_new_array(&table, (size_t)item->elements, sizeof(brc_span), err));
    brc_fill_past(e->a, item->index, e->keep, table, sizeof(brc_span), &fill);
    int rc = brc_gather_elements(item, table, m, scratch, err);
    free(table);
    return rc;
}

/* ---- behind the flow -------------------------------- */

static int edge_done(void *ctx, const brc_write_item *item, brc_error *err)
{
    const edges *e = ctx;
    return brc_array_put_chunk(e->a, item->index, item->is_fill ? NULL : &item->id, err);
}

static int edge_now(void *ctx, const brc_write_item *item, brc_oid *id, brc_error *err)
{
    const edges *e = ctx;
    return brc_array_chunk_ids(e->a, 1, item->index, id, err);
}

static void edge_name(void *ctx, const brc_write_item *item, brc_error *err)
{
    const edges *e = ctx;
    brc_array_name_chunk(e->a, item->index, err);
}

/* The chunks that it may have to look at; 0: no edge is cut. */
static uint64_t plan_edges(edges *e, const uint64_t *keep, const uint64_t *shape)
{
    const brc_meta *m = &e->a->meta;
    uint64_t chunks = 0;
    for (int i = 0; i < m->ndim; i++) {
        if (keep[i] == 0)
            return 0; /* nothing is left */
        e->count[i] = brc_grid_find(&m->grid, i, keep[i] - 1) + 1;
        const int cuts = brc_grid_round_up(&m->grid, i, keep[i]) != keep[i];
        e->keep[i] = cuts && shape[i] != m->shape[i] ? keep[i] : UINT64_MAX;
    }
    for (int i = 0; i < m->ndim; i++)
        if (e->keep[i] != UINT64_MAX &&
            !brc_add_u64(chunks, edge_chunks(e, i), &chunks))
            return UINT64_MAX;
    return chunks;
}

uint64_t brc_array_edge_chunks(brc_array *a, const uint64_t *keep, const uint64_t *shape)
{
    edges e = {.a = a};
    return plan_edges(&e, keep, shape);
}

int brc_array_clean_edges(brc_array *a, const uint64_t *keep, const uint64_t *shape,
                          const brc_write_turn *turn, brc_error *err)
{
    void *p;
    BRC_TRY(brc_new(&p, sizeof(edges), err));
    edges *e = p;
    e->a = a;
    e->axis = -1;
    brc_write_ops ops = {
        .ctx = e,
        .len = (size_t)brc_shape_count(a->meta.ndim, a->meta.grid.chunk) * brc_array_unit(a),
        .list = edge_list,
        .gather = edge_gather,
        .done = edge_done,
        .name = edge_name,
        .turn = turn,
        .now = edge_now,
    };
    const uint64_t chunks = plan_edges(e, keep, shape);
    int rc = BRC_OK;
    if (turn != NULL && chunks > 1 && brc_chunks_memory(a, chunks) > BRC_SMALL_BYTES)
        rc = BRC_WRITE_MUCH;
    else if (chunks > 0)
        rc = brc_flow_write(&a->session->repo->pipe, brc_array_store(a), &ops, err);
    if (e->axis >= 0 && !e->in_box)
        brc_chunk_cursor_end(&e->cursor);
    free(p);
    return rc;
}
