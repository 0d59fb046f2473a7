/* Cutting boxes of elements into chunks. */
#ifndef BRC_ND_CHUNK_CUT_H
#define BRC_ND_CHUNK_CUT_H

#include "shape.h"

/* The box of one chunk, cut at the array's edge. */
void brc_chunk_box(brc_sel *out, int ndim, const uint64_t *shape, const uint64_t *chunk, const uint64_t *index);

typedef struct brc_chunk_cutter {
    int ndim;
    const uint64_t *shape, *chunk; /* of the array                                  */
    size_t item;                   /* bytes of an element; 0: each has its length in front, u32le */
    brc_span fill;                 /* one element, for what is outside the array     */
    void *ctx;
    /* Bytes of the whole chunk; valid during the call. */
    int (*put)(void *ctx, const uint64_t *index, brc_span chunk, brc_error *err);
    /* the rest is the cutter's own: zero it */
    brc_buf part;
    brc_span *spans;
    size_t cap;
} brc_chunk_cutter;
/* Puts every chunk of the box, each of which it holds whole, or up to the array's edge. `data`:
 * its elements, packed in C order. */
BRC_MUST_USE int brc_chunk_cut(brc_chunk_cutter *c, const brc_sel *box, brc_span data, brc_error *err);
void brc_chunk_cutter_dispose(brc_chunk_cutter *c);

#endif
