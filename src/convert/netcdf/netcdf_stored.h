/* Which chunks of a NetCDF-4 variable the file stores. */
#ifndef BRC_CONVERT_NETCDF_STORED_H
#define BRC_CONVERT_NETCDF_STORED_H

#include "../../nd/shape.h"

typedef struct brc_netcdf_stored {
    int sparse;        /* few are; else all elements are to be read        */
    uint64_t *numbers; /* of those chunks in the grid, in C order, rising  */
    size_t n, at;
} brc_netcdf_stored;

/* `path` is the variable's in the open file of this name. An index of a chunk that is not
 * stored comes in `gap`, where it is sparse. */
BRC_MUST_USE int brc_netcdf_find_stored(brc_netcdf_stored *out, const char *file, const char *path, int ndim,
                                        const uint64_t *shape, const uint64_t *chunk, uint64_t *gap, brc_error *err);
/* 1 and the index of the next stored chunk, 0 at the end. */
int brc_netcdf_next_stored(brc_netcdf_stored *stored, int ndim, const uint64_t *shape, const uint64_t *chunk, uint64_t *index);
void brc_netcdf_stored_free(brc_netcdf_stored *stored);

#endif
