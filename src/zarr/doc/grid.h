/*
 * Chunk grids. Along an axis the edges are all equal, the last one running over
 * the array's end, or a list of their own (rectilinear).
 */
#ifndef BRC_ZARR_GRID_H
#define BRC_ZARR_GRID_H

#include "../../base/json.h"

typedef struct brc_grid {
    int ndim;
    int regular;                     /* no axis has a list of its own             */
    uint64_t shape[BRC_MAX_NDIM];    /* of the array                              */
    uint64_t chunk[BRC_MAX_NDIM];    /* the edge, or the longest of a list        */
    uint64_t count[BRC_MAX_NDIM];    /* chunks that meet the array                */
    uint64_t *starts[BRC_MAX_NDIM];  /* of a list: edges + 1 numbers; NULL: none  */
    uint64_t edges[BRC_MAX_NDIM];    /* of a list: how many                       */
} brc_grid;

/* Reads "chunk_grid" of a document for arrays of this shape. */
BRC_MUST_USE int brc_grid_read(brc_grid *out, const brc_json *doc, int ndim, const uint64_t *shape, brc_error *err);
/* A regular grid. */
void brc_grid_regular(brc_grid *out, int ndim, const uint64_t *shape, const uint64_t *chunk);
BRC_MUST_USE int brc_grid_copy(brc_grid *out, const brc_grid *from, brc_error *err);
void brc_grid_dispose(brc_grid *grid);

/* 1 if a chunk with this index meets the array. */
static inline int brc_grid_has(const brc_grid *grid, const uint64_t *index)
{
    for (int i = 0; i < grid->ndim; i++)
        if (index[i] >= grid->count[i])
            return 0;
    return 1;
}
/* 1 if both cut arrays of one shape the same. */
int brc_grid_same(const brc_grid *a, const brc_grid *b);

/* The chunk that holds a coordinate of an axis, which is inside the grid. */
uint64_t brc_grid_find(const brc_grid *grid, int axis, uint64_t coordinate);
/* The first element and the extent of chunk `index`. */
void brc_grid_chunk(const brc_grid *grid, const uint64_t *index, uint64_t *corner, uint64_t *chunk);
/* The end of the chunk that holds coordinate `extent` - 1: what `extent` is when it
 * is rounded up to whole chunks. */
uint64_t brc_grid_round_up(const brc_grid *grid, int axis, uint64_t extent);
/* BRC_EINVAL if the grid has no chunks for such a shape. */
BRC_MUST_USE int brc_grid_can_hold(const brc_grid *grid, const uint64_t *shape, brc_error *err);

#endif
