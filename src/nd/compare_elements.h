/* Comparing boxes of elements: how many differ, where, and by how much. */
#ifndef BRC_ND_COMPARE_ELEMENTS_H
#define BRC_ND_COMPARE_ELEMENTS_H

#include "dtype.h"

/* What comparisons have found. Tallies of parts, merged in any order, are equal to one
 * of the whole. */
typedef struct brc_tally {
    int ndim;
    uint64_t elements; /* that differ in any bit; 2^64-1 stands for more too       */
    double max_abs;    /* the largest difference between two numbers; where either
                          is NaN there is none. NaN: they are not numbers          */
    uint64_t first[BRC_MAX_NDIM], last[BRC_MAX_NDIM]; /* box of all that differ; of
                          no meaning where none does                               */
} brc_tally;

void brc_tally_init(brc_tally *tally, int ndim, const brc_dtype *type);
/* `elements` more differ, the outermost of them in the corners of this box. */
void brc_tally_add(brc_tally *tally, uint64_t elements, const uint64_t *first, const uint64_t *last);
void brc_tally_merge(brc_tally *into, const brc_tally *from);
/* Two elements that differ, whatever their place. */
void brc_tally_difference(brc_tally *tally, const brc_dtype *type, const uint8_t *x, const uint8_t *y);

/* A box in memory. */
typedef struct brc_place {
    const uint8_t *data;
    const int64_t *strides; /* bytes; along the last axis elements lie side by side.
                               NULL: one element, which is that of every place     */
} brc_place;
/* Compares boxes of `count` elements of a type of fixed length whose first one is at
 * `corner` of the array. Bits are compared: two equal NaNs are equal, 0.0 and -0.0 are
 * not. At least one of the two has strides. */
void brc_compare_box(brc_tally *tally, const brc_dtype *type, const uint64_t *corner,
                     const uint64_t *count, const brc_place *x, const brc_place *y);

#endif
