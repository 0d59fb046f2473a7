/* The stored chunks of a dataset, and their places. */
#ifndef BRC_CONVERT_HDF5_HDF5_CHUNKS_H
#define BRC_CONVERT_HDF5_HDF5_CHUNKS_H

#include "hdf5_lib.h"

/* ---- hdf5 chunks -------------------------------- */

typedef struct brc_hdf5_stored {
    int all;             /* nearly all chunks are stored: walk the grid        */
    int complete;        /* every chunk of the grid is stored                  */
    uint64_t *corners;   /* without `all`: each chunk's first element, ndim numbers */
    size_t n, at;
} brc_hdf5_stored;
void brc_hdf5_stored_free(brc_hdf5_stored *stored);
/* Returns whether the dataset is virtual: its elements are those of other datasets, whose size the library
 * does not know. */
int brc_hdf5_is_virtual(hid_t dataset);
/* Returns whether a dataset without chunks has stored elements. The size that its layout states does not tell: the
 * library reads as many bytes as the elements take. */
int brc_hdf5_is_written(hid_t dataset);
/* Finds the stored chunks. chunk NULL: the dataset has no chunks. exact: sets out->all only if every chunk is
 * stored. */
BRC_MUST_USE int brc_hdf5_stored_read(brc_hdf5_stored *out, hid_t dataset, int ndim, const uint64_t *shape,
                                      const uint64_t *chunk, int exact, const char *label, brc_error *err);
/* Returns 1 with the box of the next listed chunk, cut at the array's edge, or 0 at the end. The axes after
 * the dataset's own, which are those of an array type, are whole. */
int brc_hdf5_stored_next(brc_hdf5_stored *stored, int ndim, int array_ndim, const uint64_t *shape, const uint64_t *chunk,
                         brc_sel *box);

/* The place of one stored chunk. */
typedef struct brc_hdf5_chunk {
    haddr_t at;      /* from the library; a user block may come before   */
    hsize_t bytes;   /* 0: the chunk is not stored                       */
    unsigned mask;   /* the filters that were left out                   */
} brc_hdf5_chunk;
/* Finds the chunk whose first element is at `corner`. */
BRC_MUST_USE int brc_hdf5_chunk_find(brc_hdf5_chunk *out, hid_t dataset, const hsize_t *corner, const char *label,
                                     brc_error *err);

/* ---- hdf5 pass -------------------------------- */

/*
 * Elements that pass as the file stores them. This needs a file type whose elements equal those of Zarr's type,
 * in either byte order, and a Zarr codec for each filter. The reader of the stream decodes the elements, on as
 * many threads as it has, and reads long pieces from the file itself.
 */

typedef struct brc_hdf5_pass brc_hdf5_pass;
/* A dataset of a fixed size; borrowed. */
typedef struct brc_hdf5_layout {
    const brc_registry *reg;
    hid_t dataset, plist, file_type;
    hid_t memory;            /* the part of the type that is read */
    size_t item;             /* bytes of one item of it; an array type has several items */
    int swap;                /* elements have the other byte order, which the library does not know */
    const brc_dtype *dtype;
    int ndim, array_ndim;    /* of the dataset, and with the axes of an array type  */
    const uint64_t *shape, *chunk; /* chunk NULL: the dataset is not chunked        */
    uint64_t refers_from;    /* brc_convert_refers_from()               */
    int elsewhere;           /* the dataset is not in the imported file */
    int has_gaps;            /* chunks that are not stored read as fill value; 0: no chunk may be missing */
    const char *label;
} brc_hdf5_layout;
/* Sets *out to NULL if the elements must be read by the library: their type differs in Zarr, Zarr has no codec for a
 * filter, or the elements are not in one piece. */
BRC_MUST_USE int brc_hdf5_pass_open(brc_hdf5_pass **out, const brc_hdf5_layout *layout, brc_error *err);
void brc_hdf5_pass_close(brc_hdf5_pass *pass);
/* Sets the array's codecs, and the place of elements that are not in chunks. */
void brc_hdf5_pass_describe(const brc_hdf5_pass *pass, brc_array_in *array);
/* Returns 1 with the next chunk of `stored`, or 0 at the end, like next_chunk() of brc_array_in. */
BRC_MUST_USE int brc_hdf5_pass_next(brc_hdf5_pass *pass, brc_hdf5_stored *stored, uint64_t *index, brc_stored_in *bytes,
                                    brc_error *err);

#endif
