#include "diff_sides.h"

#include <string.h>

#include "span_table.h"

uint64_t brc_diff_overlap(const brc_diff_sides *sides, const brc_grid *grid, const uint64_t *index,
                          uint64_t *corner, uint64_t *shape, uint64_t *count)
{
    brc_grid_chunk(grid, index, corner, shape);
    for (int i = 0; i < grid->ndim; i++) {
        uint64_t left = sides->shape[i] - corner[i];
        count[i] = shape[i] < left ? shape[i] : left;
    }
    return brc_shape_count(grid->ndim, count);
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
    return 1;
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

/* The shapes of chunks too, not only where they begin: equal bytes in chunks of other
 * shapes are other elements. */
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
        brc_tally_add(tally, 1, place, place);
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

/* ---- what neither side has a chunk of -------------------------------- */

void brc_unvisited_start(brc_unvisited *u, const brc_diff_sides *sides, const brc_grid *grid)
{
    memset(u, 0, sizeof(*u));
    u->grid = grid;
    for (int i = 0; i < grid->ndim; i++) {
        u->count[i] = brc_grid_find(grid, i, sides->shape[i] - 1) + 1;
        u->first[i] = UINT64_MAX;
    }
}

static void rest_add(brc_unvisited *u, int axis, uint64_t first, uint64_t last)
{
    if (first < u->first[axis])
        u->first[axis] = first;
    if (last > u->last[axis])
        u->last[axis] = last;
}

/* All boxes from `next` to `last`, in row-major order: along the axes before the first
 * that differs both are the same, and along those after it the boxes are complete. */
static void rest_until(brc_unvisited *u, const uint64_t *last)
{
    int axis = 0;
    u->any = 1;
    for (; axis < u->grid->ndim && u->next[axis] == last[axis]; axis++)
        rest_add(u, axis, last[axis], last[axis]);
    if (axis < u->grid->ndim)
        rest_add(u, axis, u->next[axis], last[axis]);
    for (axis++; axis < u->grid->ndim; axis++)
        rest_add(u, axis, 0, u->count[axis] - 1);
}

static int row_major_order(int ndim, const uint64_t *x, const uint64_t *y)
{
    for (int i = 0; i < ndim; i++)
        if (x[i] != y[i])
            return x[i] < y[i] ? -1 : 1;
    return 0;
}

void brc_unvisited_pass(brc_unvisited *u, const uint64_t *index, uint64_t elements)
{
    const int ndim = u->grid->ndim;
    uint64_t before[BRC_MAX_NDIM];
    const int order = row_major_order(ndim, u->next, index);
    if (u->at_end || order > 0) /* reported before */
        return;
    u->visited += elements;
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

void brc_unvisited_end(brc_unvisited *u, brc_diff_sides *sides)
{
    const int ndim = u->grid->ndim;
    const brc_meta *a = &sides->side[0].meta, *b = &sides->side[1].meta;
    uint64_t last[BRC_MAX_NDIM], corner[BRC_MAX_NDIM], shape[BRC_MAX_NDIM], count[BRC_MAX_NDIM];
    uint64_t elements = brc_shape_count(ndim, sides->shape);
    for (int i = 0; i < ndim; i++)
        last[i] = u->count[i] - 1;
    if (!u->at_end)
        rest_until(u, last);
    if (!u->any)
        return;
    brc_diff_overlap(sides, u->grid, u->last, corner, shape, count);
    for (int i = 0; i < ndim; i++)
        last[i] = corner[i] + count[i] - 1;
    brc_grid_chunk(u->grid, u->first, corner, shape);
    if (elements < UINT64_MAX)
        elements -= u->visited;
    brc_tally_add(sides->tally, elements, corner, last);
    if (!brc_meta_is_variable(a))
        brc_tally_difference(sides->tally, a->type, a->fill.data, b->fill.data);
}
