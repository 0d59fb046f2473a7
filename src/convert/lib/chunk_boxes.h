/* Boxes of whole chunks: what is read from a file at once. */
#ifndef BRC_CONVERT_LIB_CHUNK_BOXES_H
#define BRC_CONVERT_LIB_CHUNK_BOXES_H

#include "../../nd/shape.h"

/* The libraries cannot be stopped in the middle of a box. */
#define BRC_BOX_BYTES ((uint64_t)4 << 20)

typedef struct brc_box_walk {
    brc_sel box; /* the one now */
    int ndim, begun;
    const uint64_t *shape;
    uint64_t extent[BRC_MAX_NDIM]; /* of all boxes but those at the edge */
} brc_box_walk;

/* One chunk, and from the last axis on as many chunks as BRC_BOX_BYTES allows: along an axis
 * only where those behind it are covered whole. item: bytes of an element; 0: variable.
 * `shape` must last. */
void brc_boxes_start(brc_box_walk *w, int ndim, const uint64_t *shape, const uint64_t *chunk, size_t item);
/* 1: w->box is the next one. */
int brc_boxes_next(brc_box_walk *w);
/* The box of one chunk, cut at the array's edge. */
void brc_chunk_box(brc_sel *out, int ndim, const uint64_t *shape, const uint64_t *chunk, const uint64_t *index);

#endif
