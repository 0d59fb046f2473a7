/* The chunks of a grid that a selection meets, and which parts of the selection they have. */
#ifndef BRC_ZARR_SEL_CHUNKS_H
#define BRC_ZARR_SEL_CHUNKS_H

#include "../base/arena.h"
#include "grid.h"

/* Along each axis, which of the selected places are in a box: from `from` on, `n` of them. */
typedef struct brc_sel_part {
    uint64_t from[BRC_MAX_NDIM], n[BRC_MAX_NDIM];
} brc_sel_part;

/* 0 if none is. */
int brc_sel_part_of(brc_sel_part *out, const brc_sel *sel, const uint64_t *corner, const uint64_t *extent);

/* Keys of chunks, sorted. */
typedef struct brc_chunk_keys {
    brc_arena memory;
    brc_span *keys;
    size_t n, cap;
} brc_chunk_keys;
#define BRC_CHUNK_KEYS_INIT { BRC_ARENA_INIT, NULL, 0, 0 }

void brc_chunk_keys_dispose(brc_chunk_keys *list);
BRC_MUST_USE int brc_chunk_keys_add(brc_chunk_keys *list, brc_span key, brc_error *err);
/* Lists the chunks of the grid that the selection meets. *listed 0: there may be more than `most` of them,
 * and none is listed. */
BRC_MUST_USE int brc_sel_chunks(brc_chunk_keys *list, int *listed, const brc_sel *sel, const brc_grid *grid, uint64_t most,
                                brc_error *err);

#endif
