/* Elements that differ: which of them, how they are spread, and by how much on average. */
#ifndef BRC_ND_DIFFERING_H
#define BRC_ND_DIFFERING_H

#include "../base/pool.h"
#include "../breccia_codec.h"
#include "shape.h"

/* ---- boxes -------------------------------- */

/* The most boxes that a list has. */
#define BRC_BOXES_MOST 8

typedef struct brc_one_box {
    uint64_t elements; /* those that differ */
    uint64_t first[BRC_MAX_NDIM], last[BRC_MAX_NDIM];
} brc_one_box;

/* Boxes that together contain everything added to them. */
typedef struct brc_boxes {
    int ndim, n;
    brc_one_box box[BRC_BOXES_MOST + 1];
} brc_boxes;

void brc_boxes_init(brc_boxes *boxes, int ndim);
/* Adds a box. Boxes become one if at least half of the elements of their common box differ. If there are too
 * many boxes, the two whose common box has the fewest equal elements become one. The result depends on the
 * order of calls. */
void brc_boxes_add(brc_boxes *boxes, uint64_t elements, const uint64_t *first, const uint64_t *last);
void brc_boxes_merge(brc_boxes *into, const brc_boxes *from);
/* Orders the boxes by their first corners. Makes them one if they have more than half of the
 * elements of their common box. */
void brc_boxes_settle(brc_boxes *boxes);

/* ---- cells -------------------------------- */

/* The most cells that a shape is cut into. */
#define BRC_CELLS_MOST 4096

/* The differences in each cell of a shape. The cells depend on the shape alone, and any thread may add to them in
 * any order: so boxes that are made of them do not depend on how the elements were read. */
typedef struct brc_cells {
    int ndim;
    uint64_t edge[BRC_MAX_NDIM], count[BRC_MAX_NDIM];
    brc_one_box *cell; /* in C order */
    size_t n;
    brc_lock *lock;
} brc_cells;

BRC_MUST_USE int brc_cells_init(brc_cells *cells, int ndim, const uint64_t *shape, brc_error *err);
/* Adds elements side by side along the last axis, all of which differ. */
void brc_cells_add(brc_cells *cells, const uint64_t *first, const uint64_t *last);
void brc_cells_to_boxes(const brc_cells *cells, brc_boxes *out);
void brc_cells_dispose(brc_cells *cells);

/* ---- picks -------------------------------- */

/* One element that differs. */
typedef struct brc_picked {
    uint64_t *index;  /* in the array; the memory of the whole pick begins here */
    brc_span side[2]; /* the canonical bytes of the old and the new element; data NULL: there is none */
} brc_picked;

/* The first elements that differ, in C order, of all that are added in any order by any thread. */
typedef struct brc_picks {
    int ndim;
    size_t most, n;
    void *heap; /* brc_picked[]: the last of them comes first, until brc_picks_settle() */
    size_t cap;
    int failed; /* memory ran out */
    brc_lock *lock;
} brc_picks;

BRC_MUST_USE int brc_picks_init(brc_picks *picks, int ndim, size_t most, brc_error *err);
void brc_picks_add(brc_picks *picks, const uint64_t *index, brc_span before, brc_span now);
/* Returns 1 if no element at or after this place, in C order, would be picked any more. */
int brc_picks_beyond(brc_picks *picks, const uint64_t *index);
/* Puts the picks into C order. BRC_ENOMEM if memory ran out. */
BRC_MUST_USE int brc_picks_settle(brc_picks *picks, brc_error *err);
void brc_picks_dispose(brc_picks *picks);

/* ---- sums -------------------------------- */

/* A sum that keeps its rounding errors, so that the order of the additions hardly ever changes the result. */
typedef struct brc_exact_sum {
    double high, low;
    int infinite; /* an infinity was added: the sum is infinite */
} brc_exact_sum;

/* Adds a number that is not NaN. */
void brc_sum_add(brc_exact_sum *sum, double number);
void brc_sum_merge(brc_exact_sum *into, const brc_exact_sum *from);
double brc_sum_of(const brc_exact_sum *sum);

/* ---- wanted -------------------------------- */

/* Says which elements count as different, and whether figures, the elements, or both are wanted. */
typedef struct brc_wanted {
    int is_close;      /* numbers that differ by no more than this count as equal: */
    double atol, rtol; /* atol + rtol * |new|, as in NumPy's isclose(); two NaNs are equal too */
    const brc_sel *sel; /* only these elements count; NULL: all                    */
    brc_picks *picks;   /* the first of these elements; NULL: not wanted           */
    int figures;        /* with picks: figures too, so that no part can be passed over */
} brc_wanted;

static inline int brc_wants_figures(const brc_wanted *wanted)
{
    return wanted == NULL || wanted->picks == NULL || wanted->figures;
}

/* Returns whether a selection has elements within a box. */
int brc_sel_meets(const brc_sel *sel, const uint64_t *corner, const uint64_t *count);
/* Counts the selected elements within a box. */
uint64_t brc_sel_within(const brc_sel *sel, const uint64_t *corner, const uint64_t *count);
/* Returns whether an element is selected. */
int brc_sel_has(const brc_sel *sel, const uint64_t *index);

#endif
