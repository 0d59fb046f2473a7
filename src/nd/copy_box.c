/*
 * Copying a box between two strided places.
 *
 * The axes are put in the order of the destination's strides, neighbours that lie
 * in one piece on both sides become one axis, and the innermost becomes part of
 * the element where it can. What is left is a loop over planes:
 *
 *     outer axes ... | rows | cells
 *
 * cells: the destination's smallest stride; rows: the source's smallest stride
 * where that is another axis. Such a plane is a transposition and is done in
 * tiles, so that each cache line of either side is used up while it is near.
 */
#include "shape.h"

#include <stdlib.h>
#include <string.h>

struct copy_axis {
    uint64_t n;
    int64_t dst, src; /* strides in bytes */
};

struct copy_plan {
    int naxes;
    size_t item;
    struct copy_axis axis[BRC_MAX_NDIM + 2]; /* two of extent 1 if a box has fewer */
};

/* Wraps instead of overflowing: only its being equal to a stride counts. */
static int64_t axis_span(uint64_t n, int64_t stride)
{
    return (int64_t)(n * (uint64_t)stride);
}

static uint64_t stride_size(int64_t stride)
{
    return stride < 0 ? 0 - (uint64_t)stride : (uint64_t)stride;
}

/* Insertion sort, the largest destination stride first; equal ones stay in order. */
static void plan_sort(struct copy_plan *plan)
{
    for (int i = 1; i < plan->naxes; i++) {
        struct copy_axis moved = plan->axis[i];
        int at = i;
        for (; at > 0 && stride_size(plan->axis[at - 1].dst) < stride_size(moved.dst); at--)
            plan->axis[at] = plan->axis[at - 1];
        plan->axis[at] = moved;
    }
}

static void plan_merge(struct copy_plan *plan)
{
    int kept = 0;
    for (int i = 1; i < plan->naxes; i++) {
        struct copy_axis *outer = &plan->axis[kept], inner = plan->axis[i];
        if (outer->dst == axis_span(inner.n, inner.dst) &&
            outer->src == axis_span(inner.n, inner.src)) {
            inner.n *= outer->n;
            *outer = inner;
        } else {
            plan->axis[++kept] = inner;
        }
    }
    if (plan->naxes > 0)
        plan->naxes = kept + 1;
    if (plan->naxes > 0) {
        const struct copy_axis *last = &plan->axis[plan->naxes - 1];
        if (last->dst == (int64_t)plan->item && last->src == (int64_t)plan->item) {
            plan->item *= (size_t)last->n;
            plan->naxes--;
        }
    }
}

/* Puts the axis with the source's smallest stride beside the innermost one. */
static void plan_pick_rows(struct copy_plan *plan)
{
    int best = plan->naxes - 1;
    for (int i = plan->naxes - 2; i >= 0; i--)
        if (plan->axis[i].src != 0 &&
            stride_size(plan->axis[i].src) < stride_size(plan->axis[best].src))
            best = i;
    if (best >= plan->naxes - 2)
        return;
    struct copy_axis rows = plan->axis[best];
    for (int i = best; i < plan->naxes - 2; i++)
        plan->axis[i] = plan->axis[i + 1];
    plan->axis[plan->naxes - 2] = rows;
}

/* 0 if the box is empty. Afterwards there are two axes at least. */
static int plan_make(struct copy_plan *plan, int ndim, const uint64_t *shape, size_t item,
                     const int64_t *dst_strides, const int64_t *src_strides)
{
    plan->naxes = 0;
    plan->item = item;
    for (int d = 0; d < ndim; d++) {
        if (shape[d] == 0)
            return 0;
        if (shape[d] > 1)
            plan->axis[plan->naxes++] =
                (struct copy_axis){ shape[d], dst_strides[d], src_strides[d] };
    }
    plan_sort(plan);
    plan_merge(plan);
    plan_pick_rows(plan);
    while (plan->naxes < 2) {
        for (int i = plan->naxes; i > 0; i--)
            plan->axis[i] = plan->axis[i - 1];
        plan->axis[0] = (struct copy_axis){ 1, 0, 0 };
        plan->naxes++;
    }
    return item > 0;
}

/* One tile of a plane. With a constant width the memcpy is a move or two. */
static inline void move_tile(const struct copy_axis *rows, const struct copy_axis *cells,
                             uint64_t nrows, uint64_t ncells, size_t width, uint8_t *dst,
                             const uint8_t *src)
{
    for (uint64_t r = 0; r < nrows; r++) {
        uint8_t *to = dst + (int64_t)r * rows->dst;
        const uint8_t *from = src + (int64_t)r * rows->src;
        for (uint64_t c = 0; c < ncells; c++)
            memcpy(to + (int64_t)c * cells->dst, from + (int64_t)c * cells->src, width);
    }
}

static void move_tile_any(const struct copy_axis *rows, const struct copy_axis *cells,
                          uint64_t nrows, uint64_t ncells, size_t width, uint8_t *dst,
                          const uint8_t *src)
{
    switch (width) {
    case 1: move_tile(rows, cells, nrows, ncells, 1, dst, src); break;
    case 2: move_tile(rows, cells, nrows, ncells, 2, dst, src); break;
    case 3: move_tile(rows, cells, nrows, ncells, 3, dst, src); break;
    case 4: move_tile(rows, cells, nrows, ncells, 4, dst, src); break;
    case 6: move_tile(rows, cells, nrows, ncells, 6, dst, src); break;
    case 8: move_tile(rows, cells, nrows, ncells, 8, dst, src); break;
    case 12: move_tile(rows, cells, nrows, ncells, 12, dst, src); break;
    case 16: move_tile(rows, cells, nrows, ncells, 16, dst, src); break;
    default: move_tile(rows, cells, nrows, ncells, width, dst, src); break;
    }
}

#define TILE_ROWS 64
#define TILE_CELLS 16

static void move_plane(const struct copy_axis *rows, const struct copy_axis *cells, size_t width,
                       uint8_t *dst, const uint8_t *src)
{
    int transposed = rows->src != 0 && stride_size(rows->src) < stride_size(cells->src);
    if (!transposed || rows->n == 1) {
        move_tile_any(rows, cells, rows->n, cells->n, width, dst, src);
        return;
    }
    for (uint64_t r = 0; r < rows->n; r += TILE_ROWS) {
        uint64_t nrows = rows->n - r < TILE_ROWS ? rows->n - r : TILE_ROWS;
        for (uint64_t c = 0; c < cells->n; c += TILE_CELLS) {
            uint64_t ncells = cells->n - c < TILE_CELLS ? cells->n - c : TILE_CELLS;
            move_tile_any(rows, cells, nrows, ncells, width,
                          dst + (int64_t)r * rows->dst + (int64_t)c * cells->dst,
                          src + (int64_t)r * rows->src + (int64_t)c * cells->src);
        }
    }
}

void brc_copy_box(int ndim, const uint64_t *shape, size_t item, uint8_t *dst,
                  const int64_t *dst_strides, const uint8_t *src, const int64_t *src_strides)
{
    struct copy_plan plan;
    uint64_t index[BRC_MAX_NDIM + 2] = { 0 };
    if (!plan_make(&plan, ndim, shape, item, dst_strides, src_strides))
        return;
    const struct copy_axis *rows = &plan.axis[plan.naxes - 2], *cells = &plan.axis[plan.naxes - 1];
    for (;;) {
        move_plane(rows, cells, plan.item, dst, src);
        int d = plan.naxes - 3;
        for (; d >= 0; d--) {
            const struct copy_axis *axis = &plan.axis[d];
            if (++index[d] < axis->n) {
                dst += axis->dst;
                src += axis->src;
                break;
            }
            index[d] = 0;
            dst -= (int64_t)(axis->n - 1) * axis->dst;
            src -= (int64_t)(axis->n - 1) * axis->src;
        }
        if (d < 0)
            return;
    }
}
