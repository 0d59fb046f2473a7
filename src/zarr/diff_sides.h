/* What the ways of comparing two versions of an array share. */
#ifndef BRC_ZARR_DIFF_SIDES_H
#define BRC_ZARR_DIFF_SIDES_H

#include "../nd/compare_elements.h"
#include "array.h"

typedef struct brc_diff_sides {
    brc_session view;             /* of no branch: it only names the repository    */
    brc_array side[2];            /* of one rank and one data type, not opaque     */
    uint64_t shape[BRC_MAX_NDIM]; /* what both hold; no extent is 0                */
    int fills_differ;
    brc_tally *tally;
} brc_diff_sides;

/* Sets `shape` by the sides' own; 0: it is empty. */
int brc_diff_both_hold(brc_diff_sides *sides);
/* Whether chunks are cut the same within what both hold: then they are compared pair by pair (chunk_pairs.h). */
int brc_diff_cut_same(const brc_diff_sides *sides);
/* They are not: both sides are read slab by slab, where either has a chunk. */
BRC_MUST_USE int brc_diff_slabs(brc_diff_sides *sides, brc_error *err);

/* Compares packed elements of variable length of two boxes of `shape`, which begin at
 * `corner` of the array; only the first `count` along each axis. A side that is NULL
 * is fill value everywhere. BRC_ECORRUPT if one has another number of elements. */
BRC_MUST_USE int brc_compare_packed(brc_tally *tally, const uint64_t *corner, const uint64_t *shape,
                                    const uint64_t *count, const brc_span *x, const brc_span *y,
                                    const brc_span fills[2], brc_error *err);

/* Compares the first `count` elements along each axis of one chunk of both sides, whose type may be of either
 * kind; otherwise as brc_compare_packed(). */
BRC_MUST_USE int brc_diff_box(brc_tally *tally, const brc_diff_sides *sides, const uint64_t *corner, const uint64_t *shape,
                              const uint64_t *count, const brc_span *x, const brc_span *y, brc_error *err);

/*
 * Where the fill values differ, all elements differ that neither side has a chunk of.
 * These are counted without being read: visits are reported in row-major order, and what
 * is between them is the rest.
 */
typedef struct brc_unvisited {
    const brc_grid *grid;
    uint64_t count[BRC_MAX_NDIM];  /* of the grid's boxes within what both hold   */
    uint64_t next[BRC_MAX_NDIM];   /* after the last that was visited             */
    int at_end, any;
    uint64_t first[BRC_MAX_NDIM], last[BRC_MAX_NDIM]; /* corners of the rest, in boxes */
    uint64_t visited;              /* elements                                    */
} brc_unvisited;

void brc_unvisited_start(brc_unvisited *u, const brc_diff_sides *sides, const brc_grid *grid);
void brc_unvisited_pass(brc_unvisited *u, const uint64_t *index, uint64_t elements);
/* Adds the rest to the tally. */
void brc_unvisited_end(brc_unvisited *u, brc_diff_sides *sides);

/* What both hold of one box of a grid: where it begins, its extent, and what is compared.
 * Gives the number of elements that are. */
uint64_t brc_diff_overlap(const brc_diff_sides *sides, const brc_grid *grid, const uint64_t *index,
                          uint64_t *corner, uint64_t *shape, uint64_t *count);
/* 1 if a box of the grid meets what both hold. */
int brc_diff_meets(const brc_diff_sides *sides, const brc_grid *grid, const uint64_t *index);

#endif
