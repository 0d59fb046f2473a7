/*
 * Cutting a selection of an array into slabs that fit into memory, in the order in
 * which a file holds its elements: C order, or Fortran order (the first axis runs
 * fastest). A slab is a run of elements in that order, and where memory allows it
 * covers whole rows of chunks, so that no chunk is read or written twice.
 *
 *   C order, cut along axis 1 of 3:   [i] [j..j+step) [all]
 */
#ifndef BRC_ND_SLABS_H
#define BRC_ND_SLABS_H

#include "shape.h"

#define BRC_SLAB_BYTES ((size_t)64 << 20)

typedef struct brc_slabs {
    brc_sel sel;    /* the slab now, as a selection of the array              */
    size_t len;     /* its bytes                                              */
    size_t max_len; /* no slab has more                                       */
    /* the rest is the walk's own */
    brc_sel within;
    size_t item;
    int order[BRC_MAX_NDIM];   /* axes, the slowest one first                    */
    int depth;                 /* order[depth] is cut, those before go one at a time     */
    uint64_t step;             /* indices of that axis in a slab ...                     */
    uint64_t first;            /* ... and in the first: the next begins at a chunk's edge */
    uint64_t at[BRC_MAX_NDIM]; /* where the next slab begins, by axis          */
    int done;
} brc_slabs;

/* `within` has steps and counts that fit the array; item is at least 1. A row of
 * chunks may take up to four times `budget`; one element always fits. */
void brc_slabs_start(brc_slabs *out, const brc_sel *within, const uint64_t *chunk, size_t item,
                     int fortran, size_t budget);
/* 1: slabs->sel is the next one; 0: there are no more. */
int brc_slabs_next(brc_slabs *slabs);
/* Bytes from one element of the slab to the next along each axis, where the slab
 * lies in memory in the file's order. */
void brc_slabs_strides(const brc_slabs *slabs, int64_t *strides);

#endif
