/* Which chunks of a dataset are stored, and where. */
#ifndef BRC_CONVERT_LIB_HDF5_CHUNKS_H
#define BRC_CONVERT_LIB_HDF5_CHUNKS_H

#include "hdf5_lib.h"

typedef struct brc_hdf5_stored {
    int all;             /* nearly all of them: the grid is gone through       */
    int complete;        /* every one of the grid                              */
    uint64_t *corners;   /* else the first element of each, ndim numbers       */
    size_t n, at;
} brc_hdf5_stored;
void brc_hdf5_stored_free(brc_hdf5_stored *stored);
/* chunk NULL: the dataset has none. exact: out->all only where every chunk is stored. */
/* Whether its elements are those of other datasets, of which the library knows no size. */
int brc_hdf5_is_virtual(hid_t dataset);
BRC_MUST_USE int brc_hdf5_stored_read(brc_hdf5_stored *out, hid_t dataset, int ndim, const uint64_t *shape,
                                      const uint64_t *chunk, int exact, const char *label, brc_error *err);
/* The next of those that are listed, cut at the array's edge: 1; 0 at the end. The axes behind
 * the dataset's own, of an array type, are whole. */
int brc_hdf5_stored_next(brc_hdf5_stored *stored, int ndim, int array_ndim, const uint64_t *shape, const uint64_t *chunk,
                         brc_sel *box);

/* What is stored of one chunk. */
typedef struct brc_hdf5_chunk {
    haddr_t at;      /* as the library says: see brc_hdf5_base()          */
    hsize_t bytes;   /* 0: it is not there                               */
    unsigned mask;   /* which of its filters were left out               */
} brc_hdf5_chunk;
/* The chunk with this first element. */
BRC_MUST_USE int brc_hdf5_chunk_find(brc_hdf5_chunk *out, hid_t dataset, const hsize_t *corner, const char *label,
                                     brc_error *err);
/* What must be added to a chunk's address to have its place in the file: *known 0 where it has
 * none, for the library does not read the dataset's file by itself. */
BRC_MUST_USE int brc_hdf5_base(uint64_t *base, int *known, hid_t dataset, brc_error *err);

#endif
