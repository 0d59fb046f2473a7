#include "chunk_pairs.h"

#include <stdlib.h>
#include <string.h>

#include "../../base/alloc.h"
#include "../../nd/shape.h"
#include "../../tree/map.h"
#include "chunk_cursor.h"
#include "region.h"

/* ==== diff sides ================================ */

void brc_diff_overlap(const brc_diff_sides *sides, const brc_grid *grid, const uint64_t *index,
                      uint64_t *corner, uint64_t *shape, uint64_t *count)
{
    brc_grid_chunk(grid, index, corner, shape);
    for (int i = 0; i < grid->ndim; i++) {
        uint64_t left = sides->shape[i] - corner[i];
        count[i] = shape[i] < left ? shape[i] : left;
    }
}

int brc_diff_meets(const brc_diff_sides *sides, const brc_grid *grid, const uint64_t *index)
{
    uint64_t corner[BRC_MAX_NDIM], shape[BRC_MAX_NDIM];
    if (!brc_grid_has(grid, index))
        return 0;
    brc_grid_chunk(grid, index, corner, shape);
    for (int i = 0; i < grid->ndim; i++)
        if (corner[i] >= sides->shape[i])
            return 0;
    return sides->wanted == NULL || sides->wanted->sel == NULL ||
           brc_sel_meets(sides->wanted->sel, corner, shape);
}

int brc_diff_beyond(const brc_diff_sides *sides, const brc_grid *grid, const uint64_t *index)
{
    uint64_t corner[BRC_MAX_NDIM], shape[BRC_MAX_NDIM];
    if (brc_wants_figures(sides->wanted) || !brc_grid_has(grid, index))
        return 0;
    brc_grid_chunk(grid, index, corner, shape);
    return brc_picks_beyond(sides->wanted->picks, corner);
}

int brc_diff_both_hold(brc_diff_sides *sides)
{
    const brc_meta *a = &sides->side[0].meta, *b = &sides->side[1].meta;
    int holds = 1;
    for (int i = 0; i < a->ndim; i++) {
        sides->shape[i] = a->shape[i] < b->shape[i] ? a->shape[i] : b->shape[i];
        holds &= sides->shape[i] > 0;
    }
    return holds;
}

/* Compares the shapes of chunks too, not only their corners: equal bytes in chunks of different
 * shapes are different elements. */
static int axis_is_same(const brc_grid *a, const brc_grid *b, int axis, uint64_t extent)
{
    const uint64_t n = brc_grid_find(a, axis, extent - 1) + 1;
    if (a->starts[axis] == NULL && b->starts[axis] == NULL)
        return a->chunk[axis] == b->chunk[axis];
    if (n != brc_grid_find(b, axis, extent - 1) + 1)
        return 0;
    for (uint64_t i = 1; i <= n; i++) {
        uint64_t x = a->starts[axis] != NULL ? a->starts[axis][i] : i * a->chunk[axis];
        uint64_t y = b->starts[axis] != NULL ? b->starts[axis][i] : i * b->chunk[axis];
        if (x != y)
            return 0;
    }
    return 1;
}

int brc_diff_cut_same(const brc_diff_sides *sides)
{
    const brc_meta *a = &sides->side[0].meta, *b = &sides->side[1].meta;
    for (int i = 0; i < a->ndim; i++)
        if (!axis_is_same(&a->grid, &b->grid, i, sides->shape[i]))
            return 0;
    return 1;
}

/* ---- elements of variable length -------------------------------- */

static int element_of(brc_element_cursor *cursor, brc_span fill, brc_span *out, brc_error *err)
{
    *out = fill;
    if (cursor->packed.data == NULL)
        return BRC_OK;
    if (brc_element_next(cursor, out, err) < 0)
        return brc_fail(err, BRC_ECORRUPT, "its elements are damaged; run 'breccia fsck'");
    return BRC_OK;
}

static int is_inside(int ndim, const uint64_t *at, const uint64_t *count)
{
    for (int i = 0; i < ndim; i++)
        if (at[i] >= count[i])
            return 0;
    return 1;
}

/* Takes two elements of variable length that differ. */
static void tally_text(brc_tally *tally, const uint64_t *place, brc_span a, brc_span b)
{
    const brc_wanted *wanted = tally->wanted;
    if (wanted != NULL && wanted->sel != NULL && !brc_sel_has(wanted->sel, place))
        return;
    if (wanted != NULL && wanted->picks != NULL)
        brc_picks_add(wanted->picks, place, a, b);
    if (brc_wants_figures(wanted))
        brc_tally_add(tally, 1, place, place);
}

int brc_compare_packed(brc_tally *tally, const uint64_t *corner, const uint64_t *shape,
                       const uint64_t *count, const brc_span *x, const brc_span *y,
                       const brc_span fills[2], brc_error *err)
{
    const int ndim = tally->ndim;
    brc_element_cursor left = {.at = 0}, right = {.at = 0};
    uint64_t at[BRC_MAX_NDIM] = {0}, place[BRC_MAX_NDIM];
    brc_span a, b;
    if (x != NULL)
        left.packed = *x;
    if (y != NULL)
        right.packed = *y;
    do {
        BRC_TRY(element_of(&left, fills[0], &a, err));
        BRC_TRY(element_of(&right, fills[1], &b, err));
        if ((a.len == b.len && memcmp(a.data, b.data, a.len) == 0) || !is_inside(ndim, at, count))
            continue;
        for (int i = 0; i < ndim; i++)
            place[i] = corner[i] + at[i];
        tally_text(tally, place, a, b);
    } while (brc_index_next(ndim, at, shape));
    if (brc_elements_end(&left, err) < 0 || brc_elements_end(&right, err) < 0)
        return brc_fail(err, BRC_ECORRUPT, "its elements are damaged; run 'breccia fsck'");
    return BRC_OK;
}

/* ---- elements of any length -------------------------------- */

int brc_diff_box(brc_tally *tally, const brc_diff_sides *sides, const uint64_t *corner,
                 const uint64_t *shape, const uint64_t *count, const brc_span *x,
                 const brc_span *y, brc_error *err)
{
    const brc_meta *a = &sides->side[0].meta, *b = &sides->side[1].meta;
    const brc_span fills[2] = {{a->fill.data, a->fill.len}, {b->fill.data, b->fill.len}};
    int64_t strides[BRC_MAX_NDIM];
    if (brc_meta_is_variable(a))
        return brc_compare_packed(tally, corner, shape, count, x, y, fills, err);
    brc_strides_packed(a->ndim, shape, a->type->item_size, strides);
    const brc_place left = {x != NULL ? x->data : fills[0].data, x != NULL ? strides : NULL};
    const brc_place right = {y != NULL ? y->data : fills[1].data, y != NULL ? strides : NULL};
    brc_compare_box(tally, a->type, corner, count, &left, &right);
    return BRC_OK;
}

/* ---- elements without a chunk on either side -------------------------------- */

/* Finds which boxes of an axis the selection meets. */
static void span_of_sel(brc_unvisited *u, const brc_sel *sel, int axis)
{
    const uint64_t extent = u->sides->shape[axis];
    uint64_t last = sel->start[axis];
    if (sel->count[axis] > 0)
        last += (sel->count[axis] - 1) * sel->step[axis];
    u->from[axis] = brc_grid_find(u->grid, axis, sel->start[axis] < extent ? sel->start[axis]
                                                                          : extent - 1);
    u->to[axis] = brc_grid_find(u->grid, axis, last < extent ? last : extent - 1);
}

void brc_unvisited_start(brc_unvisited *u, const brc_diff_sides *sides, const brc_grid *grid)
{
    const brc_sel *sel = sides->wanted != NULL ? sides->wanted->sel : NULL;
    memset(u, 0, sizeof(*u));
    u->sides = sides;
    u->grid = grid;
    for (int i = 0; i < grid->ndim; i++) {
        u->count[i] = brc_grid_find(grid, i, sides->shape[i] - 1) + 1;
        u->first[i] = UINT64_MAX;
        u->to[i] = u->count[i] - 1;
        if (sel != NULL)
            span_of_sel(u, sel, i);
    }
}

/* ---- picks of such elements -------------------------------- */

static int row_major_order(int ndim, const uint64_t *x, const uint64_t *y)
{
    for (int i = 0; i < ndim; i++)
        if (x[i] != y[i])
            return x[i] < y[i] ? -1 : 1;
    return 0;
}

/* Steps *at to the next box from there on that the selection meets. Returns 0 if there is none. */
static int seek_box(const brc_unvisited *u, uint64_t *at)
{
    const int ndim = u->grid->ndim;
    for (int i = 0; i < ndim; i++) {
        if (at[i] <= u->to[i] && at[i] >= u->from[i])
            continue;
        if (at[i] > u->to[i]) { /* the next along the axes before */
            do {
                if (i == 0)
                    return 0;
                at[--i]++;
            } while (at[i] > u->to[i]);
        } else {
            at[i] = u->from[i];
        }
        for (int k = i + 1; k < ndim; k++)
            at[k] = u->from[k];
        return 1;
    }
    return 1;
}

/* Returns how many elements of a box are selected along an axis, and which is the first. */
static uint64_t selected_along(const brc_sel *sel, int axis, uint64_t *first, uint64_t count)
{
    if (sel == NULL)
        return count;
    const uint64_t start = sel->start[axis], step = sel->step[axis], end = *first + count;
    const uint64_t skip = *first > start ? (*first - start + step - 1) / step : 0;
    const uint64_t left = sel->count[axis] > skip ? sel->count[axis] - skip : 0;
    *first = start + skip * step;
    const uint64_t fit = end > *first ? (end - *first + step - 1) / step : 0;
    return fit < left ? fit : left;
}

/* Picks elements of a box, all of which differ, in C order. Returns 0 if none would be picked. */
static int pick_box(const brc_unvisited *u, const uint64_t *index)
{
    const brc_wanted *wanted = u->sides->wanted;
    const brc_meta *a = &u->sides->side[0].meta, *b = &u->sides->side[1].meta;
    const int ndim = u->grid->ndim;
    uint64_t first[BRC_MAX_NDIM], shape[BRC_MAX_NDIM], count[BRC_MAX_NDIM];
    uint64_t at[BRC_MAX_NDIM] = {0}, place[BRC_MAX_NDIM] = {0};
    brc_diff_overlap(u->sides, u->grid, index, first, shape, count);
    if (brc_picks_beyond(wanted->picks, first))
        return 0;
    for (int i = 0; i < ndim; i++) {
        count[i] = selected_along(wanted->sel, i, &first[i], count[i]);
        if (count[i] == 0)
            return 1;
    }
    do {
        for (int i = 0; i < ndim; i++)
            place[i] = first[i] + at[i] * (wanted->sel != NULL ? wanted->sel->step[i] : 1);
        if (brc_picks_beyond(wanted->picks, place))
            return 1;
        brc_picks_add(wanted->picks, place, (brc_span){a->fill.data, a->fill.len},
                      (brc_span){b->fill.data, b->fill.len});
    } while (brc_index_next(ndim, at, count));
    return 1;
}

/* Picks elements of the boxes from `next` to `last`. */
static void pick_rest(const brc_unvisited *u, const uint64_t *last)
{
    const int ndim = u->grid->ndim;
    uint64_t at[BRC_MAX_NDIM] = {0};
    memcpy(at, u->next, (size_t)ndim * sizeof(*at));
    while (seek_box(u, at) && row_major_order(ndim, at, last) <= 0) {
        if (!pick_box(u, at) || ndim == 0)
            return;
        at[ndim - 1]++;
    }
}

/* ---- the rest -------------------------------- */

static void rest_add(brc_unvisited *u, int axis, uint64_t first, uint64_t last)
{
    if (first < u->first[axis])
        u->first[axis] = first;
    if (last > u->last[axis])
        u->last[axis] = last;
}

/* Takes all boxes from `next` to `last`, in row-major order: they share the indexes of the axes
 * before the first that differs, and are complete along the axes after it. */
static void rest_until(brc_unvisited *u, const uint64_t *last)
{
    int axis = 0;
    u->any = 1;
    if (u->sides->wanted != NULL && u->sides->wanted->picks != NULL)
        pick_rest(u, last);
    for (; axis < u->grid->ndim && u->next[axis] == last[axis]; axis++)
        rest_add(u, axis, last[axis], last[axis]);
    if (axis < u->grid->ndim)
        rest_add(u, axis, u->next[axis], last[axis]);
    for (axis++; axis < u->grid->ndim; axis++)
        rest_add(u, axis, 0, u->count[axis] - 1);
}

/* Counts the elements of a box, or those that are selected. */
static uint64_t elements_in(const brc_diff_sides *sides, const uint64_t *corner,
                            const uint64_t *count)
{
    const brc_sel *sel = sides->wanted != NULL ? sides->wanted->sel : NULL;
    return sel != NULL ? brc_sel_within(sel, corner, count)
                       : brc_shape_count(sides->side[0].meta.ndim, count);
}

void brc_unvisited_pass(brc_unvisited *u, const uint64_t *index)
{
    const int ndim = u->grid->ndim;
    uint64_t before[BRC_MAX_NDIM], corner[BRC_MAX_NDIM], shape[BRC_MAX_NDIM], count[BRC_MAX_NDIM];
    const int order = row_major_order(ndim, u->next, index);
    if (u->at_end || order > 0) /* already reported */
        return;
    brc_diff_overlap(u->sides, u->grid, index, corner, shape, count);
    u->visited += elements_in(u->sides, corner, count);
    if (order < 0) {
        int axis = ndim - 1;
        memcpy(before, index, (size_t)ndim * sizeof(*before));
        for (; before[axis] == 0; axis--)
            before[axis] = u->count[axis] - 1;
        before[axis]--;
        rest_until(u, before);
    }
    memcpy(u->next, index, (size_t)ndim * sizeof(*index));
    u->at_end = !brc_index_next(ndim, u->next, u->count);
}

/* Cuts the box of the rest to the selection. */
static void cut_to_sel(const brc_sel *sel, uint64_t *first, uint64_t *last)
{
    for (int i = 0; i < sel->ndim; i++) {
        const uint64_t n = selected_along(sel, i, &first[i], last[i] - first[i] + 1);
        if (n > 0)
            last[i] = first[i] + (n - 1) * sel->step[i];
    }
}

void brc_unvisited_end(brc_unvisited *u, brc_diff_sides *sides)
{
    const int ndim = u->grid->ndim;
    const brc_meta *a = &sides->side[0].meta, *b = &sides->side[1].meta;
    const brc_sel *sel = sides->wanted != NULL ? sides->wanted->sel : NULL;
    const uint64_t origin[BRC_MAX_NDIM] = {0};
    uint64_t last[BRC_MAX_NDIM], corner[BRC_MAX_NDIM], shape[BRC_MAX_NDIM], count[BRC_MAX_NDIM];
    uint64_t elements = elements_in(sides, origin, sides->shape);
    for (int i = 0; i < ndim; i++)
        last[i] = u->count[i] - 1;
    if (!u->at_end)
        rest_until(u, last);
    if (!u->any || !brc_wants_figures(sides->wanted))
        return;
    brc_diff_overlap(sides, u->grid, u->last, corner, shape, count);
    for (int i = 0; i < ndim; i++)
        last[i] = corner[i] + count[i] - 1;
    brc_grid_chunk(u->grid, u->first, corner, shape);
    if (elements < UINT64_MAX)
        elements -= u->visited;
    if (elements == 0)
        return;
    if (sel != NULL)
        cut_to_sel(sel, corner, last);
    brc_tally_add(sides->tally, elements, corner, last);
    if (!brc_meta_is_variable(a))
        brc_tally_difference(sides->tally, a->type, a->fill.data, b->fill.data, elements);
}

/* ==== chunk pairs ================================ */

/* See chunk_pairs.h. Pairs are fetched in the order in which their objects are stored. */

struct brc_pairs {
    brc_diff_sides *sides;
    const brc_pair_ops *ops;
    brc_chunk_pair *pairs;
    brc_chunk_pair **order; /* in the order of fetching */
    brc_boxes *boxes;       /* of each pair; NULL: not wanted */
    size_t n, at;           /* the number of pairs in the batch, and the next one */
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
    void *memory, *pairs = NULL, *order = NULL, *boxes = NULL;
    *out = NULL;
    BRC_TRY(brc_new(&memory, sizeof(brc_pairs), err));
    brc_pairs *d = memory;
    d->sides = sides;
    d->ops = ops;
    int rc = brc_new_array(&pairs, BRC_PAIR_BATCH, sizeof(brc_chunk_pair), err);
    if (rc == BRC_OK)
        rc = brc_new_array(&order, BRC_PAIR_BATCH, sizeof(brc_chunk_pair *), err);
    if (rc == BRC_OK && sides->tally != NULL && sides->tally->boxes != NULL)
        rc = brc_new_array(&boxes, BRC_PAIR_BATCH, sizeof(brc_boxes), err);
    d->pairs = pairs;
    d->order = order;
    d->boxes = boxes;
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
    free(d->boxes);
    free(d);
}

int brc_pairs_add(brc_pairs *d, const brc_chunk_pair *pair, brc_error *err)
{
    brc_chunk_pair *p = &d->pairs[d->n];
    *p = *pair;
    brc_tally_init(&p->tally, d->sides->side[0].meta.ndim, d->sides->side[0].meta.type);
    if (d->sides->wanted != NULL)
        brc_tally_want(&p->tally, d->sides->wanted, d->boxes != NULL ? &d->boxes[d->n] : NULL);
    return ++d->n == BRC_PAIR_BATCH ? pairs_run(d, err) : BRC_OK;
}

int brc_pairs_end(brc_pairs *d, brc_error *err)
{
    return pairs_run(d, err);
}

/* ---- entries of the maps -------------------------------- */

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

/* ==== same chunks ================================ */

typedef struct same_chunks {
    brc_diff_sides *sides;
    brc_node_change *change;
    brc_pairs *pairs;
    brc_oid fill[2]; /* of an absent chunk's content; zero: shapes differ */
} same_chunks;

/* Returns the count of the change to which a pair belongs, or NULL. */
static uint64_t *count_of(const same_chunks *c, const int there[2])
{
    if (there[0] && there[1])
        return &c->change->chunks_changed;
    if (there[0])
        return &c->change->chunks_removed;
    return there[1] ? &c->change->chunks_added : NULL;
}

/* ---- chunks of fill value -------------------------------- */

/* Makes the canonical bytes of a chunk in which every element is the fill value. */
static int fill_chunk(const brc_meta *m, brc_buf *out, brc_error *err)
{
    const uint64_t elements = brc_shape_count(m->ndim, m->grid.chunk);
    const size_t item = m->fill.len;
    void *table;
    uint64_t bytes;
    if (!brc_meta_is_variable(m)) {
        if (!brc_mul_u64(elements, item, &bytes) || bytes > BRC_MAX_CHUNK_BYTES)
            return brc_fail(err, BRC_ELIMIT, "a chunk has more than 2^31-1 bytes");
        BRC_TRY(brc_buf_reserve(out, (size_t)bytes + 1, err));
        for (; out->len < bytes; out->len += item)
            memcpy(out->data + out->len, m->fill.data, item);
        return BRC_OK;
    }
    BRC_TRY(brc_new_array(&table, (size_t)elements, sizeof(brc_span), err));
    for (uint64_t i = 0; i < elements; i++)
        ((brc_span *)table)[i] = (brc_span){m->fill.data, m->fill.len};
    int rc = brc_elements_pack(out, table, elements, err);
    free(table);
    return rc;
}

static int fill_id(const brc_array *a, brc_oid *id, brc_error *err)
{
    brc_buf chunk = BRC_BUF_INIT;
    int rc = BRC_OK;
    if (a->meta.grid.regular)
        rc = fill_chunk(&a->meta, &chunk, err);
    if (rc == BRC_OK && chunk.len > 0)
        *id = brc_hash_object(brc_store_hash(brc_array_store(a)), BRC_KIND_CHUNK, chunk.data,
                              chunk.len);
    brc_buf_dispose(&chunk);
    return rc;
}

/* Tells whether the only chunk of a pair equals the absent chunk of the other side. */
static int is_fill(const same_chunks *c, const brc_chunk_pair *p)
{
    const int side = p->there[1];
    const brc_oid *fill = &c->fill[!side];
    return p->there[0] != p->there[1] && !brc_oid_is_zero(fill) &&
           brc_oid_cmp(&p->object[side].id, fill) == 0;
}

/* ---- chunks that the end cuts -------------------------------- */

/* Counts the elements of a chunk within a side's shape; 0: none. */
static uint64_t held(const brc_meta *m, const uint64_t *corner, const uint64_t *shape,
                     uint64_t *count)
{
    for (int i = 0; i < m->ndim; i++) {
        const uint64_t left = m->shape[i] > corner[i] ? m->shape[i] - corner[i] : 0;
        count[i] = left < shape[i] ? left : shape[i];
    }
    return brc_shape_count(m->ndim, count);
}

static void pair_box(const brc_diff_sides *sides, const brc_chunk_pair *p, uint64_t *corner,
                     uint64_t *shape)
{
    const brc_meta *a = &sides->side[0].meta, *b = &sides->side[1].meta;
    brc_grid_chunk(brc_grid_has(&a->grid, p->index) ? &a->grid : &b->grid, p->index, corner,
                   shape);
}

/* Counts elements that are not fill value, within one side's shape but outside the other's. */
static int values_beyond(uint64_t *out, const brc_diff_sides *sides, int side,
                         const uint64_t *corner, const uint64_t *shape, const uint64_t *both,
                         const brc_span *data, brc_error *err)
{
    const brc_meta *m = &sides->side[side].meta;
    uint64_t count[BRC_MAX_NDIM];
    brc_tally all, inside;
    *out = 0;
    if (data == NULL || held(m, corner, shape, count) == brc_shape_count(m->ndim, both))
        return BRC_OK;
    brc_tally_init(&all, m->ndim, m->type);
    brc_tally_init(&inside, m->ndim, m->type);
    const brc_span *x = side == 0 ? data : NULL, *y = side == 1 ? data : NULL;
    BRC_TRY(brc_diff_box(&all, sides, corner, shape, count, x, y, err));
    if (brc_shape_count(m->ndim, both) > 0)
        BRC_TRY(brc_diff_box(&inside, sides, corner, shape, both, x, y, err));
    *out = all.elements - inside.elements;
    return BRC_OK;
}

/* Compares a pair; elements outside a side's shape count as fill value. */
static int compare_held(const brc_diff_sides *sides, brc_chunk_pair *p, const brc_span *x,
                        const brc_span *y, brc_error *err)
{
    const int ndim = sides->side[0].meta.ndim;
    uint64_t corner[BRC_MAX_NDIM], shape[BRC_MAX_NDIM], a[BRC_MAX_NDIM], both[BRC_MAX_NDIM];
    uint64_t beyond[2];
    pair_box(sides, p, corner, shape);
    (void)held(&sides->side[0].meta, corner, shape, a);
    (void)held(&sides->side[1].meta, corner, shape, both);
    for (int i = 0; i < ndim; i++)
        both[i] = a[i] < both[i] ? a[i] : both[i];
    if (brc_shape_count(ndim, both) > 0)
        BRC_TRY(brc_diff_box(&p->tally, sides, corner, shape, both, x, y, err));
    BRC_TRY(values_beyond(&beyond[0], sides, 0, corner, shape, both, x, err));
    BRC_TRY(values_beyond(&beyond[1], sides, 1, corner, shape, both, y, err));
    if (beyond[0] + beyond[1] > 0)
        brc_tally_add(&p->tally, beyond[0] + beyond[1], corner, corner);
    return BRC_OK;
}

static void held_compared(void *ctx, const brc_chunk_pair *p)
{
    if (p->tally.elements == 0)
        --*count_of(ctx, p->there);
}

static int end_cuts(const brc_diff_sides *sides, const brc_chunk_pair *p)
{
    uint64_t corner[BRC_MAX_NDIM], shape[BRC_MAX_NDIM];
    pair_box(sides, p, corner, shape);
    for (int s = 0; s < 2; s++)
        for (int i = 0; i < sides->side[s].meta.ndim && p->there[s]; i++)
            if (corner[i] + shape[i] > sides->side[s].meta.shape[i])
                return 1;
    return 0;
}

/* ---- all pairs -------------------------------- */

static int look_at_pair(void *ctx, brc_span key, brc_span a, brc_span b, brc_error *err)
{
    same_chunks *c = ctx;
    brc_chunk_pair p;
    BRC_TRY(brc_store_check_interrupt(brc_array_store(&c->sides->side[0]), err));
    BRC_TRY(brc_pair_read(&p, c->sides, key, a, b, err));
    uint64_t *was = count_of(c, p.there);
    for (int s = 0; s < 2; s++) /* elements outside do not count */
        p.there[s] &= brc_grid_has(&c->sides->side[s].meta.grid, p.index);
    uint64_t *is = count_of(c, p.there);
    --*was;
    if (is == NULL || is_fill(c, &p))
        return BRC_OK;
    ++*is;
    return end_cuts(c->sides, &p) ? brc_pairs_add(c->pairs, &p, err) : BRC_OK;
}

static int discount_chunks(same_chunks *c, brc_error *err)
{
    const brc_pair_ops ops = {c, compare_held, held_compared};
    const brc_array *a = &c->sides->side[0], *b = &c->sides->side[1];
    if (c->change->chunks_added + c->change->chunks_removed > 0) {
        BRC_TRY(fill_id(a, &c->fill[0], err));
        BRC_TRY(fill_id(b, &c->fill[1], err));
    }
    BRC_TRY(brc_pairs_new(&c->pairs, c->sides, &ops, err));
    int rc = brc_map_diff(brc_array_store(a), &a->entry.map, &b->entry.map, look_at_pair, c, err);
    if (rc == BRC_OK)
        rc = brc_pairs_end(c->pairs, err);
    brc_pairs_free(c->pairs);
    return rc;
}

static int is_storage(const char *pointer)
{
    return strcmp(pointer, "/codecs") == 0 || strcmp(pointer, "/storage") == 0;
}

static int discount(brc_node_change *change, brc_diff_sides *sides, brc_error *err)
{
    same_chunks c = {.sides = sides, .change = change};
    const brc_meta *a = &sides->side[0].meta, *b = &sides->side[1].meta;
    if (a->opaque || b->opaque || a->ndim != b->ndim || !brc_diff_both_hold(sides) ||
        !brc_diff_cut_same(sides))
        return BRC_OK;
    BRC_TRY(discount_chunks(&c, err));
    change->storage_only =
        change->chunks_added + change->chunks_removed + change->chunks_changed == 0;
    for (size_t i = 0; i < change->nmetadata; i++)
        change->storage_only &= is_storage(change->metadata[i]);
    return BRC_OK;
}

int brc_same_chunks_discount(brc_node_change *c, breccia *repo, brc_error *err)
{
    brc_diff_sides sides;
    if (c->a.kind != BRC_ARRAY || c->b.kind != BRC_ARRAY || c->rechunked ||
        c->chunks_added + c->chunks_removed + c->chunks_changed == 0)
        return BRC_OK;
    memset(&sides, 0, sizeof(sides));
    sides.view.repo = repo;
    int rc = brc_array_of_entry(&sides.side[0], &sides.view, c->path, &c->a, err);
    if (rc == BRC_OK)
        rc = brc_array_of_entry(&sides.side[1], &sides.view, c->path, &c->b, err);
    if (rc == BRC_OK)
        rc = discount(c, &sides, err);
    brc_meta_dispose(&sides.side[0].meta);
    brc_meta_dispose(&sides.side[1].meta);
    return rc;
}
