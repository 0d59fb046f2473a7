/*
 * Chunks of two versions that are cut the same: those that differ are decoded in pairs on
 * the pool, and compared there where they lie. Pairs are gathered from the two maps in
 * batches and fetched in the order in which they are stored.
 */
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../tree/chunk_key.h"
#include "chunk_item.h"
#include "diff_sides.h"

#define PAIR_BATCH 512

typedef struct chunk_pair {
    uint64_t index[BRC_MAX_NDIM];
    int there[2];
    brc_object object[2];
    brc_tally tally; /* written by the worker that compares it */
} chunk_pair;

typedef struct pair_differ {
    brc_diff_sides *sides;
    brc_unvisited rest;
    chunk_pair *pairs;
    chunk_pair **order; /* as they are fetched */
    size_t n, at;       /* of the batch: how many there are, the one that is due */
} pair_differ;

static brc_store *differ_store(const pair_differ *d)
{
    return brc_array_store(&d->sides->side[0]);
}

/* ---- the flow -------------------------------- */

static void list_side(pair_differ *d, const chunk_pair *p, int side, brc_read_item *item)
{
    item->object = p->object[side];
    item->number = 2 * (uint64_t)(p - d->pairs) + (uint64_t)side;
    item->kept = side == 0 && p->there[1];
}

static int pair_list(void *ctx, brc_read_item *items, size_t cap, size_t *n, brc_error *err)
{
    pair_differ *d = ctx;
    (void)err;
    for (; *n + 2 <= cap && d->at < d->n; d->at++) {
        const chunk_pair *p = d->order[d->at];
        for (int side = 0; side < 2; side++)
            if (p->there[side])
                list_side(d, p, side, &items[(*n)++]);
    }
    return BRC_OK;
}

static int pair_open(void *ctx, brc_read_item *item, brc_error *err)
{
    pair_differ *d = ctx;
    return brc_chunk_item(item, &d->sides->side[item->number % 2],
                          d->pairs[item->number / 2].index, err);
}

static int pair_place(void *ctx, brc_read_item *item, const uint8_t *data, brc_scratch *scratch,
                      brc_error *err)
{
    (void)scratch;
    const pair_differ *d = ctx;
    chunk_pair *p = &d->pairs[item->number / 2];
    const brc_meta *a = &d->sides->side[0].meta, *b = &d->sides->side[1].meta;
    uint64_t corner[BRC_MAX_NDIM], shape[BRC_MAX_NDIM], count[BRC_MAX_NDIM];
    int64_t strides[BRC_MAX_NDIM];
    const brc_span mine = {data, item->len}, fills[2] = {{a->fill.data, a->fill.len},
                                                         {b->fill.data, b->fill.len}};
    const brc_span *x = item->number % 2 == 0 ? &mine : p->there[0] ? &item->before : NULL;
    const brc_span *y = item->number % 2 == 1 ? &mine : NULL;
    brc_diff_overlap(d->sides, &a->grid, p->index, corner, shape, count);
    if (brc_meta_is_variable(a))
        return brc_compare_packed(&p->tally, corner, shape, count, x, y, fills, err);
    brc_strides_packed(a->ndim, shape, a->type->item_size, strides);
    const brc_place left = {x != NULL ? x->data : fills[0].data, x != NULL ? strides : NULL};
    const brc_place right = {y != NULL ? y->data : fills[1].data, y != NULL ? strides : NULL};
    brc_compare_box(&p->tally, a->type, corner, count, &left, &right);
    return BRC_OK;
}

static int pair_passed(void *ctx, const brc_read_item *item, brc_error *err)
{
    const pair_differ *d = ctx;
    return brc_task_step(d->sides->view.repo, item != NULL ? item->object.size : 0, err);
}

static void pair_name(void *ctx, const brc_read_item *item, brc_error *err)
{
    const pair_differ *d = ctx;
    brc_array_name_chunk(&d->sides->side[item->number % 2], d->pairs[item->number / 2].index, err);
}

/* ---- batches -------------------------------- */

static int pair_blob_order(const void *x, const void *y)
{
    const chunk_pair *a = *(chunk_pair *const *)x, *b = *(chunk_pair *const *)y;
    return brc_object_place_order(&a->object[a->there[1]], &b->object[b->there[1]]);
}

static int pairs_find(pair_differ *d, brc_error *err)
{
    brc_object *objects[2 * PAIR_BATCH];
    size_t n = 0;
    for (size_t i = 0; i < d->n; i++)
        for (int side = 0; side < 2; side++)
            if (d->pairs[i].there[side])
                objects[n++] = &d->pairs[i].object[side];
    return brc_objects_find(differ_store(d), objects, n, err);
}

static int pairs_run(pair_differ *d, brc_error *err)
{
    const brc_read_ops ops = {.ctx = d, .ordered = 1, .list = pair_list, .open = pair_open,
                              .place = pair_place, .passed = pair_passed,
                              .name = pair_name};
    if (d->n == 0)
        return BRC_OK;
    BRC_TRY(pairs_find(d, err));
    for (size_t i = 0; i < d->n; i++)
        d->order[i] = &d->pairs[i];
    qsort(d->order, d->n, sizeof(*d->order), pair_blob_order);
    d->at = 0;
    BRC_TRY(brc_flow_read(&d->sides->view.repo->pipe, differ_store(d), &ops, err));
    for (size_t i = 0; i < d->n; i++)
        brc_tally_merge(d->sides->tally, &d->pairs[i].tally);
    d->n = 0;
    return BRC_OK;
}

static int pair_id(const pair_differ *d, chunk_pair *p, int side, brc_span value, brc_error *err)
{
    brc_object *o = &p->object[side];
    p->there[side] = value.data != NULL;
    memset(o, 0, sizeof(*o));
    if (value.data == NULL)
        return BRC_OK;
    int rc = brc_chunk_id_of(value, brc_store_id_len(differ_store(d)), &o->id, err);
    if (rc < 0)
        brc_context(err, "%s", d->sides->side[side].path);
    return rc;
}

static int pair_note(void *ctx, brc_span key, brc_span a, brc_span b, brc_error *err)
{
    pair_differ *d = ctx;
    const brc_array *array = &d->sides->side[0];
    uint64_t corner[BRC_MAX_NDIM], shape[BRC_MAX_NDIM], count[BRC_MAX_NDIM];
    chunk_pair *p = &d->pairs[d->n];
    if (brc_chunk_key_decode(key.data, key.len, p->index) != array->meta.ndim)
        return brc_fail(err, BRC_ECORRUPT, "%s: a chunk's key is damaged; run 'breccia fsck'",
                        array->path);
    if (!brc_diff_meets(d->sides, &array->meta.grid, p->index))
        return BRC_OK;
    if (d->sides->fills_differ)
        brc_unvisited_pass(&d->rest, p->index,
                           brc_diff_overlap(d->sides, &array->meta.grid, p->index, corner, shape,
                                            count));
    BRC_TRY(pair_id(d, p, 0, a, err));
    BRC_TRY(pair_id(d, p, 1, b, err));
    if (p->there[0] && p->there[1] && brc_oid_cmp(&p->object[0].id, &p->object[1].id) == 0)
        return BRC_OK;
    brc_tally_init(&p->tally, array->meta.ndim, array->meta.type);
    return ++d->n == PAIR_BATCH ? pairs_run(d, err) : BRC_OK;
}

static int pairs_walk(pair_differ *d, brc_error *err)
{
    const brc_oid *a = &d->sides->side[0].entry.map, *b = &d->sides->side[1].entry.map;
    if (!d->sides->fills_differ) {
        BRC_TRY(brc_map_diff(differ_store(d), a, b, pair_note, d, err));
        return pairs_run(d, err);
    }
    brc_unvisited_start(&d->rest, d->sides, &d->sides->side[0].meta.grid);
    BRC_TRY(brc_map_both(differ_store(d), a, b, pair_note, d, err));
    brc_unvisited_end(&d->rest, d->sides);
    return pairs_run(d, err);
}

int brc_diff_chunk_pairs(brc_diff_sides *sides, brc_error *err)
{
    pair_differ d = {.sides = sides};
    void *pairs = NULL, *order = NULL;
    int rc;
    BRC_GO(brc_new_array(&pairs, PAIR_BATCH, sizeof(chunk_pair), err));
    BRC_GO(brc_new_array(&order, PAIR_BATCH, sizeof(chunk_pair *), err));
    d.pairs = pairs;
    d.order = order;
    rc = pairs_walk(&d, err);
done:
    free(pairs);
    free(order);
    return rc;
}
