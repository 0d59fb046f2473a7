/*
 * api_slice.h - a selection made small enough, and its elements in a form that a browser takes.
 */
#ifndef BRC_SERVE_API_SLICE_H
#define BRC_SERVE_API_SLICE_H

#include "api_grid.h"

/* A selection whose steps were widened until it is within the limits. */
typedef struct serve_cut {
    brc_sel sel;
    int axes[BRC_MAX_NDIM]; /* those that the selection keeps                   */
    int naxes;
    uint64_t every[BRC_MAX_NDIM]; /* of the axes that are kept: by how much the step is wider than asked for */
    uint64_t touched; /* chunks that are decoded                                */
    int by_budget;    /* wider than `most` alone would make it                  */
    uint64_t least;   /* bytes that an element takes while it is answered       */
} serve_cut;

/* Cuts a selection of the call's array to at most `most` elements along each axis and to the limits. An element counts as
 * its own bytes, or as `least` if that is more. BRC_ELIMIT: even one element is too much. */
int serve_cut_of(serve_cut *out, serve_call *call, const brc_sel *sel, uint64_t most, uint64_t least);

#endif
