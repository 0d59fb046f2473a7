/*
 * api_grid.h - where the chunks of an array begin, or those of its shards, also if they differ in length.
 */
#ifndef BRC_SERVE_API_GRID_H
#define BRC_SERVE_API_GRID_H

#include "api.h"

typedef struct serve_grid {
    const brc_array_info *info;
    uint64_t length[BRC_MAX_NDIM];  /* of a cell; of cells that differ the mean */
    uint64_t *starts[BRC_MAX_NDIM]; /* where cells that differ begin, and where the last one ends; NULL: they are alike, or too
                                     * many for a list */
    uint64_t n[BRC_MAX_NDIM];       /* cells along the axis                     */
} serve_grid;

/* Reads the grid of the call's array: of its chunks, or with `shards` of its shards if it has such. */
int serve_grid_read(serve_grid *out, serve_call *call, int shards);
void serve_grid_free(serve_grid *grid);
/* Returns the cell of an element, and the first element of a cell; one past the last cell is the end. */
uint64_t serve_grid_cell(const serve_grid *grid, int axis, uint64_t element);
uint64_t serve_grid_start(const serve_grid *grid, int axis, uint64_t cell);

#endif
