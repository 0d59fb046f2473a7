/* Comparing boxes of elements: how many differ, where, and by how much. */
#ifndef BRC_ND_BOX_H
#define BRC_ND_BOX_H

#include "../breccia_codec.h"
#include "differing.h"
#include "dtype.h"
#include "shape.h"

/* ---- compare elements -------------------------------- */

/* The results of comparisons. Tallies of parts, merged in any order, equal one
 * of the whole. */
typedef struct brc_tally {
    int ndim;
    uint64_t elements; /* number that differ in any bit; 2^64-1: so many or more   */
    double max_abs;    /* the largest difference between two numbers; pairs with a
                          NaN do not count. NaN: the type does not have numbers    */
    uint64_t first[BRC_MAX_NDIM], last[BRC_MAX_NDIM]; /* box of all elements that
                          differ; without meaning if there are none                */
    /* The rest is only for brc_tally_want(). */
    const brc_wanted *wanted; /* NULL: every element counts, and its bits are compared */
    brc_boxes *boxes;         /* NULL: not wanted                                     */
    brc_cells *cells;         /* NULL: not wanted; the caller sets them after brc_tally_want() */
    int past_picks; /* of the box that is being compared, no further element is picked     */
    uint64_t numbers;         /* pairs of numbers that differ, none of which is a NaN */
    brc_exact_sum apart, squares; /* sums of their differences, and of the squares    */
} brc_tally;

void brc_tally_init(brc_tally *tally, int ndim, const brc_dtype *type);
/* Makes an empty tally count the elements that `wanted` selects. `wanted` and `boxes` (may be NULL) are borrowed. */
void brc_tally_want(brc_tally *tally, const brc_wanted *wanted, brc_boxes *boxes);
/* Adds `elements` differing elements, whose box has the corners `first` and `last`. */
void brc_tally_add(brc_tally *tally, uint64_t elements, const uint64_t *first, const uint64_t *last);
void brc_tally_merge(brc_tally *into, const brc_tally *from);
/* Adds the difference of two elements that differ to max_abs and the sums, `times` times; their place does
 * not matter. */
void brc_tally_difference(brc_tally *tally, const brc_dtype *type, const uint8_t *x, const uint8_t *y,
                          uint64_t times);
/* Returns whether the difference of two numbers is too small to count. */
int brc_is_close(const brc_wanted *wanted, const brc_dtype *type, const uint8_t *x, const uint8_t *y);

/* A box in memory. */
typedef struct brc_place {
    const uint8_t *data;
    const int64_t *strides; /* bytes; along the last axis elements lie side by side.
                               NULL: `data` is one element, repeated everywhere    */
} brc_place;
/* Compares boxes of `count` elements of a type of fixed length, whose first element is at
 * `corner` of the array. Bits are compared: NaNs with the same bits are equal, 0.0 and -0.0 are
 * not. At least one of the two boxes has strides. */
void brc_compare_box(brc_tally *tally, const brc_dtype *type, const uint64_t *corner,
                     const uint64_t *count, const brc_place *x, const brc_place *y);

/* ---- chunk cut -------------------------------- */

/* Cutting boxes of elements into chunks. */

/* Returns the box of one chunk, cut at the array's edge. */
void brc_chunk_box(brc_sel *out, int ndim, const uint64_t *shape, const uint64_t *chunk, const uint64_t *index);

typedef struct brc_chunk_cutter {
    int ndim;
    const uint64_t *shape, *chunk; /* of the array                                  */
    size_t item;                   /* bytes of an element; 0: each begins with its length, u32le */
    brc_span fill;                 /* one element, for places outside of the array   */
    void *ctx;
    /* Takes the bytes of a whole chunk, which are valid during the call. */
    int (*put)(void *ctx, const uint64_t *index, brc_span chunk, brc_error *err);
    /* The cutter's own: the caller sets it to zero. */
    brc_buf part;
    brc_span *spans;
    size_t cap;
} brc_chunk_cutter;
/* Calls put() with every chunk of the box, which contains each of them whole, or up to the array's
 * edge. `data`: the box's elements, packed in C order. */
BRC_MUST_USE int brc_chunk_cut(brc_chunk_cutter *c, const brc_sel *box, brc_span data, brc_error *err);
void brc_chunk_cutter_dispose(brc_chunk_cutter *c);

/* ---- merge box -------------------------------- */

/*
 * Merging the elements of one chunk three ways, in memory.
 *
 * Elements are compared by their bits: -0.0 differs from 0.0, and NaNs differ if their payloads do.
 * An element is one value, even if it has fields. Outside of a side's own extents the base has fill
 * values, and the other side's elements are taken.
 */

enum { BRC_SIDE_BASE, BRC_SIDE_OURS, BRC_SIDE_THEIRS, BRC_SIDES };

/* One side of a chunk. */
typedef struct brc_merge_input {
    const uint8_t *data; /* the side's elements, packed; NULL: `fill` everywhere        */
    const uint8_t *fill; /* one element                                                 */
    uint64_t count[BRC_MAX_NDIM]; /* extents that the side has of the chunk, from the first
                                     element on; any 0: none                            */
} brc_merge_input;

typedef struct brc_box_merge {
    int ndim;
    const uint64_t *shape;  /* of the chunk                                             */
    const uint64_t *corner; /* its first element in the array                           */
    const uint64_t *count;  /* extents that the result has of the chunk                 */
    size_t item;            /* bytes of an element                                      */
    int is_spans;           /* each element is a brc_span, compared by the bytes in it  */
    brc_merge_input in[BRC_SIDES];
    int unknown;            /* the base counts as unequal to both sides: everywhere, or, */
    brc_span mask;          /* if the mask is not empty, for the elements in the mask   */
    int favour;             /* BRC_SIDE_OURS or _THEIRS: the side whose value a conflict gets */
    int take;               /* not 0: the result is this side's, without a comparison   */
    uint8_t *out;           /* the whole chunk; the caller fills it with the result's fill value */
    /* Results. */
    uint64_t conflicts;     /* elements that both sides changed, to different values    */
    uint64_t first[BRC_MAX_NDIM], last[BRC_MAX_NDIM]; /* box of the conflicts in the array */
    brc_buf found;          /* mask of the conflicts; empty if it would be too long     */
    int differs[BRC_SIDES]; /* the result differs from this side, or goes beyond its extents */
} brc_box_merge;

/* The most bytes of a mask: pairs of varints, the number of elements of the chunk (in C order) that
 * are not in the mask, and the number of those that follow and are. */
#define BRC_MASK_MOST ((size_t)1 << 20)

/* Merges the chunk. `found` must be empty, or hold memory from an earlier call; the caller disposes of
 * it. */
BRC_MUST_USE int brc_box_merge_run(brc_box_merge *m, brc_error *err);
/* Counts the elements of `side` that differ from the base, among those inside the result (`outside` 0) or
 * among those of the side that lie outside. Sets conflicts, first, last and found for these elements. */
BRC_MUST_USE int brc_box_merge_changed(brc_box_merge *m, int side, int outside, brc_error *err);

#endif
