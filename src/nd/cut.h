/*
 * Cutting a selection of an array into boxes that fit into memory: runs of elements in the
 * order in which a file holds them, or whole chunks.
 *
 *   a run, C order, cut along axis 1 of 3:   [i] [j..j+n) [all]
 */
#ifndef BRC_ND_CUT_H
#define BRC_ND_CUT_H

#include "shape.h"

/* The bytes that an element of variable length is assumed to have. */
#define BRC_VARIABLE_BYTES 64
/* How much is read at once if nothing else limits it. */
#define BRC_SLAB_BYTES ((size_t)64 << 20)

typedef struct brc_cut {
    brc_sel sel;       /* the box now, as a selection of the array             */
    uint64_t elements; /* in it                                                */
    uint64_t most;     /* no box has more                                      */
    /* the rest is the walk's own */
    brc_sel within;
    int order[BRC_MAX_NDIM];       /* axes, the slowest one first              */
    uint64_t extent[BRC_MAX_NDIM]; /* of a box, in indices of the selection ... */
    uint64_t first[BRC_MAX_NDIM];  /* ... and of the first: the next begins at a chunk's edge */
    uint64_t at[BRC_MAX_NDIM];     /* where the box begins, by axis            */
    int state;
} brc_cut;

/* Each box is a run of elements in C order, or with the first axis fastest, and the runs come in
 * that order. Where `budget` bytes allow it a run covers whole rows of chunks, so that no chunk is
 * read or written twice; a row of chunks may take up to four times the budget, and one element
 * always fits. `within` fits the array. item: bytes of an element; 0: variable. */
void brc_cut_runs(brc_cut *out, const brc_sel *within, const uint64_t *chunk, size_t item,
                  int fortran, uint64_t budget);
/* Each box is one chunk, or from the last axis on as many chunks as `budget` bytes allow: along an
 * axis only where those behind it are covered whole. */
void brc_cut_chunks(brc_cut *out, const brc_sel *within, const uint64_t *chunk, size_t item,
                    uint64_t budget);
/* 1: cut->sel is the next box; 0: there are no more. */
int brc_cut_next(brc_cut *cut);
/* Bytes from one element of the box to the next along each axis, where it lies in memory in the
 * order of the boxes. */
void brc_cut_strides(const brc_cut *cut, size_t item, int64_t *strides);

/* Extents of boxes, as multiples of what they are: from the fastest axis on as large as `budget`
 * allows, along an axis only where those behind it are `whole`. `order` NULL: the last axis is the
 * fastest; bytes: of a box before. */
void brc_cut_grow(int ndim, const int *order, uint64_t *extent, const uint64_t *whole,
                  uint64_t bytes, uint64_t budget);

#endif
