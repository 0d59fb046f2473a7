/*
 * Chunk grids. The edges along an axis are either all equal, with the last one running over the
 * array's end, or listed one by one (rectilinear).
 */
#ifndef BRC_ZARR_GRID_H
#define BRC_ZARR_GRID_H

#include "../../base/json.h"

typedef struct brc_grid {
    int ndim;
    int regular;                     /* no axis has a list of edges               */
    uint64_t shape[BRC_MAX_NDIM];    /* of the array                              */
    uint64_t chunk[BRC_MAX_NDIM];    /* the edge, or the longest of a list        */
    uint64_t count[BRC_MAX_NDIM];    /* the number of chunks that meet the array  */
    uint64_t *starts[BRC_MAX_NDIM];  /* for a list: edges + 1 numbers; NULL: no list */
    uint64_t edges[BRC_MAX_NDIM];    /* for a list: the number of edges           */
} brc_grid;

/* Reads "chunk_grid" of a document for arrays of this shape. */
BRC_MUST_USE int brc_grid_read(brc_grid *out, const brc_json *doc, int ndim, const uint64_t *shape, brc_error *err);
/* Makes a regular grid. */
void brc_grid_regular(brc_grid *out, int ndim, const uint64_t *shape, const uint64_t *chunk);
BRC_MUST_USE int brc_grid_copy(brc_grid *out, const brc_grid *from, brc_error *err);
void brc_grid_dispose(brc_grid *grid);

/* Returns 1 if a chunk with this index meets the array. */
static inline int brc_grid_has(const brc_grid *grid, const uint64_t *index)
{
    for (int i = 0; i < grid->ndim; i++)
        if (index[i] >= grid->count[i])
            return 0;
    return 1;
}
/* Returns 1 if both grids cut arrays of one shape the same. */
int brc_grid_same(const brc_grid *a, const brc_grid *b);

/* Returns the chunk that holds a coordinate of an axis; the coordinate must be inside the grid. */
uint64_t brc_grid_find(const brc_grid *grid, int axis, uint64_t coordinate);
/* Returns the first element and the extent of chunk `index`. */
void brc_grid_chunk(const brc_grid *grid, const uint64_t *index, uint64_t *corner, uint64_t *chunk);
/* Returns the end of the chunk that holds coordinate `extent` - 1: `extent` rounded up to whole chunks. */
uint64_t brc_grid_round_up(const brc_grid *grid, int axis, uint64_t extent);
/* Fails with BRC_EINVAL if the grid has no chunks for such a shape. */
BRC_MUST_USE int brc_grid_can_hold(const brc_grid *grid, const uint64_t *shape, brc_error *err);

#endif
