/*
 * Elements that pass as the file stores them: where those in the file are those of Zarr's type,
 * in either byte order, and each filter is a codec that Zarr has. Whoever reads the stream
 * decodes them, on as many threads as it has, and takes what is long out of the file itself.
 */
#ifndef BRC_CONVERT_LIB_HDF5_PASS_H
#define BRC_CONVERT_LIB_HDF5_PASS_H

#include "hdf5_chunks.h"

typedef struct brc_hdf5_pass brc_hdf5_pass;
/* A dataset of a fixed size; borrowed. */
typedef struct brc_hdf5_layout {
    const brc_registry *reg;
    hid_t dataset, plist, file_type;
    hid_t memory;            /* what is read of the type ...                        */
    size_t item;             /* ... and its bytes, of an item of an array type      */
    int swap;                /* ... of the other byte order, unknown to the library */
    const brc_dtype *dtype;
    int ndim, array_ndim;    /* of the dataset, and with the axes of an array type  */
    const uint64_t *shape, *chunk; /* chunk NULL: it is not in chunks               */
    int elsewhere;           /* it is in another file than the one that is imported */
    int has_gaps;            /* chunks that are not stored are fill value; 0: none may be missing */
    const char *label;
} brc_hdf5_layout;
/* *out: NULL where the elements have to be read: of a type that is another in Zarr, with a
 * filter that Zarr has no codec for, or not in one piece. */
BRC_MUST_USE int brc_hdf5_pass_open(brc_hdf5_pass **out, const brc_hdf5_layout *layout, brc_error *err);
void brc_hdf5_pass_close(brc_hdf5_pass *pass);
/* What the array says of it: its codecs, and where its elements are not in chunks their place. */
void brc_hdf5_pass_describe(const brc_hdf5_pass *pass, brc_array_in *array);
/* 1 and the next chunk of those in `stored`, 0 at the end; as next_chunk() of brc_array_in. */
BRC_MUST_USE int brc_hdf5_pass_next(brc_hdf5_pass *pass, brc_hdf5_stored *stored, uint64_t *index, brc_stored_in *bytes,
                                    brc_error *err);

#endif
