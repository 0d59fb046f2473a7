/* See chunk_pairs.h. Pairs are fetched in the order in which they are stored. */
#include "chunk_pairs.h"

#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../tree/chunk_key.h"
#include "chunk_item.h"

struct brc_pairs {
    brc_diff_sides *sides;
    const brc_pair_ops *ops;
    brc_chunk_pair *pairs;
    brc_chunk_pair **order; /* as they are fetched */
    size_t n, at;           /* of the batch: how many there are, the one that is due */
};

static brc_store *pairs_store(const brc_pairs *d)
{
    return brc_array_store(&d->sides->side[0]);
}

/* ---- the flow -------------------------------- */

static void list_side(brc_pairs *d, const brc_chunk_pair *p, int side, brc_read_item *item)
{
    item->object = p->object[side];
    item->number = 2 * (uint64_t)(p - d->pairs) + (uint64_t)side;
    item->kept = side == 0 && p->there[1];
}

static int pair_list(void *ctx, brc_read_item *items, size_t cap, size_t *n, brc_error *err)
{
    brc_pairs *d = ctx;
    (void)err;
    for (; *n + 2 <= cap && d->at < d->n; d->at++) {
        const brc_chunk_pair *p = d->order[d->at];
        for (int side = 0; side < 2; side++)
            if (p->there[side])
                list_side(d, p, side, &items[(*n)++]);
    }
    return BRC_OK;
}

static int pair_open(void *ctx, brc_read_item *item, brc_error *err)
{
    brc_pairs *d = ctx;
    return brc_chunk_item(item, &d->sides->side[item->number % 2],
                          d->pairs[item->number / 2].index, err);
}

static int pair_place(void *ctx, brc_read_item *item, const uint8_t *data, brc_scratch *scratch,
                      brc_error *err)
{
    (void)scratch;
    const brc_pairs *d = ctx;
    brc_chunk_pair *p = &d->pairs[item->number / 2];
    const brc_span mine = {data, item->len};
    const brc_span *x = item->number % 2 == 0 ? &mine : p->there[0] ? &item->before : NULL;
    const brc_span *y = item->number % 2 == 1 ? &mine : NULL;
    return d->ops->compare(d->sides, p, x, y, err);
}

static int pair_passed(void *ctx, const brc_read_item *item, brc_error *err)
{
    const brc_pairs *d = ctx;
    return brc_task_step(d->sides->view.repo, item != NULL ? item->object.size : 0, err);
}

static void pair_name(void *ctx, const brc_read_item *item, brc_error *err)
{
    const brc_pairs *d = ctx;
    brc_array_name_chunk(&d->sides->side[item->number % 2], d->pairs[item->number / 2].index, err);
}

/* ---- batches -------------------------------- */

static int pair_blob_order(const void *x, const void *y)
{
    const brc_chunk_pair *a = *(brc_chunk_pair *const *)x, *b = *(brc_chunk_pair *const *)y;
    return brc_object_place_order(&a->object[a->there[1]], &b->object[b->there[1]]);
}

static int pairs_find(brc_pairs *d, brc_error *err)
{
    brc_object *objects[2 * BRC_PAIR_BATCH];
    size_t n = 0;
    for (size_t i = 0; i < d->n; i++)
        for (int side = 0; side < 2; side++)
            if (d->pairs[i].there[side])
                objects[n++] = &d->pairs[i].object[side];
    return brc_objects_find(pairs_store(d), objects, n, err);
}

static int pairs_run(brc_pairs *d, brc_error *err)
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
    BRC_TRY(brc_flow_read(&d->sides->view.repo->pipe, pairs_store(d), &ops, err));
    for (size_t i = 0; i < d->n; i++)
        d->ops->done(d->ops->ctx, &d->pairs[i]);
    d->n = 0;
    return BRC_OK;
}

int brc_pairs_new(brc_pairs **out, brc_diff_sides *sides, const brc_pair_ops *ops, brc_error *err)
{
    void *memory, *pairs = NULL, *order = NULL;
    *out = NULL;
    BRC_TRY(brc_new(&memory, sizeof(brc_pairs), err));
    brc_pairs *d = memory;
    d->sides = sides;
    d->ops = ops;
    int rc = brc_new_array(&pairs, BRC_PAIR_BATCH, sizeof(brc_chunk_pair), err);
    if (rc == BRC_OK)
        rc = brc_new_array(&order, BRC_PAIR_BATCH, sizeof(brc_chunk_pair *), err);
    d->pairs = pairs;
    d->order = order;
    if (rc < 0)
        brc_pairs_free(d);
    else
        *out = d;
    return rc;
}

void brc_pairs_free(brc_pairs *d)
{
    if (d == NULL)
        return;
    free(d->pairs);
    free(d->order);
    free(d);
}

int brc_pairs_add(brc_pairs *d, const brc_chunk_pair *pair, brc_error *err)
{
    brc_chunk_pair *p = &d->pairs[d->n];
    *p = *pair;
    brc_tally_init(&p->tally, d->sides->side[0].meta.ndim, d->sides->side[0].meta.type);
    return ++d->n == BRC_PAIR_BATCH ? pairs_run(d, err) : BRC_OK;
}

int brc_pairs_end(brc_pairs *d, brc_error *err)
{
    return pairs_run(d, err);
}

/* ---- what a map says -------------------------------- */

static int pair_id(const brc_diff_sides *sides, brc_chunk_pair *p, int side, brc_span value,
                   brc_error *err)
{
    const brc_array *array = &sides->side[side];
    p->there[side] = value.data != NULL;
    if (value.data == NULL)
        return BRC_OK;
    int rc = brc_chunk_id_of(value, brc_store_id_len(brc_array_store(array)), &p->object[side].id,
                             err);
    if (rc < 0)
        brc_context(err, "%s", array->path);
    return rc;
}

int brc_pair_read(brc_chunk_pair *p, const brc_diff_sides *sides, brc_span key, brc_span a,
                  brc_span b, brc_error *err)
{
    const brc_array *array = &sides->side[0];
    memset(p, 0, sizeof(*p));
    if (brc_chunk_key_decode(key.data, key.len, p->index) != array->meta.ndim)
        return brc_fail(err, BRC_ECORRUPT, "%s: a chunk's key is damaged; run 'breccia fsck'",
                        array->path);
    BRC_TRY(pair_id(sides, p, 0, a, err));
    return pair_id(sides, p, 1, b, err);
}
