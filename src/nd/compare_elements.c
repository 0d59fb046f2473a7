/*
 * Comparing boxes. Pieces that lie packed on both sides are compared as bytes; only one
 * that differs is taken apart, axis by axis, down to a leaf: the last axes that lie in one
 * piece, as many as give it some length. In a leaf the typed loops count. The box of the
 * differences is found from a leaf's ends inwards, which ends soon where many differ.
 */
#include "compare_elements.h"

#include <math.h>
#include <string.h>

#include "compare_runs.h"
#include "shape.h"

#define LEAF_ELEMENTS 32  /* axes are joined until a leaf has so many                  */
#define RUN_BYTES 8192    /* compared as bytes first: what differs is in the first cache */
#define FILL_BYTES 4096   /* of an element that is everywhere                          */

/* ---- tallies ----------------------------------------------------------------- */

void brc_tally_init(brc_tally *tally, int ndim, const brc_dtype *type)
{
    memset(tally, 0, sizeof(*tally));
    tally->ndim = ndim;
    tally->max_abs = type->ops->number != NULL ? 0 : NAN;
    for (int i = 0; i < ndim; i++)
        tally->first[i] = UINT64_MAX;
}

static void tally_count(brc_tally *tally, uint64_t elements)
{
    if (!brc_add_u64(tally->elements, elements, &tally->elements))
        tally->elements = UINT64_MAX;
}

static void tally_span(brc_tally *tally, int axis, uint64_t first, uint64_t last)
{
    if (first < tally->first[axis])
        tally->first[axis] = first;
    if (last > tally->last[axis])
        tally->last[axis] = last;
}

void brc_tally_add(brc_tally *tally, uint64_t elements, const uint64_t *first,
                   const uint64_t *last)
{
    if (elements == 0)
        return;
    tally_count(tally, elements);
    for (int i = 0; i < tally->ndim; i++)
        tally_span(tally, i, first[i], last[i]);
}

void brc_tally_merge(brc_tally *into, const brc_tally *from)
{
    brc_tally_add(into, from->elements, from->first, from->last);
    if (from->max_abs > into->max_abs)
        into->max_abs = from->max_abs;
}

static void tally_run(brc_tally *tally, const brc_run_diff *run)
{
    tally_count(tally, run->elements);
    if (run->max_abs > tally->max_abs)
        tally->max_abs = run->max_abs;
}

void brc_tally_difference(brc_tally *tally, const brc_dtype *type, const uint8_t *x,
                          const uint8_t *y)
{
    brc_run_diff run;
    brc_compare_run_of(type)(type, x, y, 1, &run);
    if (run.max_abs > tally->max_abs)
        tally->max_abs = run.max_abs;
}

/* ---- boxes ------------------------------------------------------------------- */

typedef struct comparison {
    brc_tally *tally;
    const brc_dtype *type;
    brc_compare_run_fn run;
    size_t item;
    int ndim;
    const uint64_t *corner, *count;
    const int64_t *x_strides, *y_strides; /* the latter NULL: one element is everywhere */
    const uint8_t *fill;                  /* then: that element,                        */
    size_t run_elements;                  /* and how many of them y has; else of a run  */
    int leaf;                             /* its first axis                             */
    uint64_t packed[BRC_MAX_NDIM + 1];    /* elements of the axes from here on, where
                                             they lie in one piece; else 0              */
    uint64_t at[BRC_MAX_NDIM];
} comparison;

/* Does element i of a run differ? */
static int element_differs(const comparison *c, const uint8_t *x, const uint8_t *y, size_t i)
{
    const uint8_t *other = c->y_strides != NULL ? y + i * c->item : c->fill;
    return memcmp(x + i * c->item, other, c->item) != 0;
}

/* The leaf is one axis: where the first and the last difference of a run are. */
static void box_of_run(comparison *c, uint64_t start, const uint8_t *x, const uint8_t *y, size_t n)
{
    const int axis = c->leaf;
    size_t first = 0, last = n - 1;
    start += c->corner[axis];
    if (start < c->tally->first[axis]) {
        while (!element_differs(c, x, y, first))
            first++;
        tally_span(c->tally, axis, start + first, start + first);
    }
    if (start + last > c->tally->last[axis]) {
        while (!element_differs(c, x, y, last))
            last--;
        tally_span(c->tally, axis, start + last, start + last);
    }
}

static int leaf_is_covered(const comparison *c)
{
    for (int i = c->leaf; i < c->ndim; i++)
        if (c->tally->first[i] > c->corner[i] ||
            c->tally->last[i] < c->corner[i] + c->count[i] - 1)
            return 0;
    return 1;
}

/* The leaf is several axes, all short. */
static void box_of_short_axes(comparison *c, uint64_t start, const uint8_t *x, const uint8_t *y,
                              size_t n)
{
    if (leaf_is_covered(c))
        return;
    for (size_t i = 0; i < n; i++) {
        if (!element_differs(c, x, y, i))
            continue;
        uint64_t left = start + i;
        for (int axis = c->ndim - 1; axis >= c->leaf; axis--) {
            uint64_t at = c->corner[axis] + left % c->count[axis];
            tally_span(c->tally, axis, at, at);
            left /= c->count[axis];
        }
    }
}

static void compare_leaf(comparison *c, const uint8_t *x, const uint8_t *y)
{
    const uint64_t n = c->packed[c->leaf];
    for (uint64_t at = 0; at < n; at += c->run_elements) {
        size_t len = n - at < c->run_elements ? (size_t)(n - at) : c->run_elements;
        const uint8_t *p = x + at * c->item, *q = c->y_strides != NULL ? y + at * c->item : y;
        brc_run_diff run;
        if (memcmp(p, q, len * c->item) == 0)
            continue;
        c->run(c->type, p, q, len, &run);
        tally_run(c->tally, &run);
        for (int i = 0; i < c->leaf; i++)
            tally_span(c->tally, i, c->at[i], c->at[i]);
        if (c->leaf == c->ndim - 1)
            box_of_run(c, at, p, q, len);
        else
            box_of_short_axes(c, at, p, q, len);
    }
}

static int piece_is_equal(const comparison *c, uint64_t n, const uint8_t *x, const uint8_t *y)
{
    if (c->y_strides != NULL)
        return memcmp(x, y, (size_t)n * c->item) == 0;
    return brc_all_equal(x, n, c->item, c->fill);
}

static void compare_axis(comparison *c, int axis, const uint8_t *x, const uint8_t *y)
{
    if (axis == c->leaf) {
        compare_leaf(c, x, y);
        return;
    }
    if (c->packed[axis] > 0 && piece_is_equal(c, c->packed[axis], x, y))
        return;
    for (uint64_t i = 0; i < c->count[axis]; i++) {
        c->at[axis] = c->corner[axis] + i;
        compare_axis(c, axis + 1, x, y);
        x += c->x_strides[axis];
        if (c->y_strides != NULL)
            y += c->y_strides[axis];
    }
}

/* Which of the last axes lie in one piece, and the leaf among them. */
static void find_leaf(comparison *c)
{
    uint64_t n = 1;
    c->packed[c->ndim] = 1;
    c->leaf = c->ndim;
    for (int i = c->ndim - 1; i >= 0; i--) {
        const int64_t step = (int64_t)(n * c->item);
        int single = c->count[i] == 1;
        int follows = single || (c->x_strides[i] == step &&
                                 (c->y_strides == NULL || c->y_strides[i] == step));
        if (n == 0 || !follows) {
            n = c->packed[i] = 0;
            continue;
        }
        if (i == c->ndim - 1 || (c->leaf == i + 1 && n < LEAF_ELEMENTS))
            c->leaf = i;
        n *= c->count[i];
        c->packed[i] = n;
    }
}

void brc_compare_box(brc_tally *tally, const brc_dtype *type, const uint64_t *corner,
                     const uint64_t *count, const brc_place *x, const brc_place *y)
{
    uint8_t fill[FILL_BYTES];
    if (x->strides == NULL) { /* differences have no direction */
        const brc_place *swapped = x;
        x = y;
        y = swapped;
    }
    comparison c = {.tally = tally, .type = type, .run = brc_compare_run_of(type),
                    .item = type->item_size, .ndim = tally->ndim, .corner = corner,
                    .count = count, .x_strides = x->strides, .y_strides = y->strides};
    for (int i = 0; i < c.ndim; i++)
        if (count[i] == 0)
            return;
    const uint8_t *other = y->data;
    size_t bytes = RUN_BYTES;
    if (y->strides == NULL) {
        bytes = FILL_BYTES;
        c.fill = y->data;
        if (c.item <= FILL_BYTES) {
            brc_fill_run(fill, FILL_BYTES / c.item, c.item, y->data);
            other = fill;
        }
    }
    c.run_elements = c.item < bytes ? bytes / c.item : 1;
    find_leaf(&c);
    compare_axis(&c, 0, x->data, other);
}
