/* Boxes of whole chunks, which are read at once, and the chunks in them. */
#ifndef BRC_ND_CHUNK_BOXES_H
#define BRC_ND_CHUNK_BOXES_H

#include "shape.h"

typedef struct brc_box_walk {
    brc_sel box; /* the one now */
    int ndim, begun;
    const uint64_t *shape;
    uint64_t extent[BRC_MAX_NDIM]; /* of all boxes but those at the edge */
} brc_box_walk;

/* One chunk, and from the last axis on as many chunks as `budget` bytes allow: along an axis
 * only where those behind it are covered whole. item: bytes of an element; 0: variable.
 * `shape` must last. */
void brc_boxes_start(brc_box_walk *w, int ndim, const uint64_t *shape, const uint64_t *chunk, size_t item,
                     uint64_t budget);
/* 1: w->box is the next one. */
int brc_boxes_next(brc_box_walk *w);
/* The box of one chunk, cut at the array's edge. */
void brc_chunk_box(brc_sel *out, int ndim, const uint64_t *shape, const uint64_t *chunk, const uint64_t *index);

/* Cuts boxes of elements into chunks. */
typedef struct brc_chunk_cutter {
    int ndim;
    const uint64_t *shape, *chunk; /* of the array                                  */
    size_t item;                   /* bytes of an element; 0: each has its length in front, u32le */
    brc_span fill;                 /* one element: what lies behind the array's edge */
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
