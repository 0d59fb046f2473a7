/* An HDF5 file that is being imported. */
#ifndef BRC_XFER_HDF5_IN_H
#define BRC_XFER_HDF5_IN_H

#include "hdf5_type.h"

typedef struct brc_hdf5_in {
    brc_hdf5 lib;
    brc_session *session;
    const brc_registry *reg;
    const brc_xfer_opts *opts;
    const char *file; /* its name  */
    hid_t id;         /* the file  */
    hid_t links;      /* how its objects are opened: see brc_hdf5_open_file() */
} brc_hdf5_in;

/* ---- attributes: hdf5_in_attr.c -------------------------------- */

typedef struct brc_hdf5_attrs {
    brc_json *values; /* an object                                            */
    brc_json *types;  /* name: data type, for the note; NULL: none            */
    brc_json *zarr;   /* BRC_HDF5_ZARR's object; NULL: none                   */
    int is_scale;     /* a dimension scale                                    */
} brc_hdf5_attrs;
/* Of a dataset (is_array) without those that make up dimension scales. */
BRC_MUST_USE int brc_hdf5_attrs_read(brc_hdf5_attrs *out, const brc_hdf5_in *in, hid_t object, int is_array,
                                     const char *label, brc_error *err);
void brc_hdf5_attrs_free(brc_hdf5_attrs *attrs);
/* The value of one attribute; NULL where there is none. */
BRC_MUST_USE int brc_hdf5_attr_value(brc_json **out, const brc_hdf5_in *in, hid_t object, const char *name,
                                     const char *label, brc_error *err);
/* The values as JSON text. */
BRC_MUST_USE int brc_hdf5_attrs_text(char **out, const brc_hdf5_attrs *attrs, brc_error *err);

/* ---- elements: hdf5_in_elements.c -------------------------------- */

/* n elements in memory made canonical (little-endian, bools checked): for types of a fixed size. */
BRC_MUST_USE int brc_hdf5_canonical(const brc_hdf5_type *type, const brc_dtype *dtype, uint8_t *data, uint64_t n,
                                    const char *label, brc_error *err);
/* n elements of variable length appended, each with its length. */
BRC_MUST_USE int brc_hdf5_spans(const brc_hdf5_type *type, const void *data, uint64_t n, brc_buf *out, const char *label,
                                brc_error *err);

/* ---- datasets: hdf5_in_data.c, hdf5_in_chunks.c, hdf5_in_scale.c -------------------------------- */

BRC_MUST_USE int brc_hdf5_dataset_import(const brc_hdf5_in *in, hid_t dataset, const char *path, const char *label,
                                         brc_error *err);

/* Which chunks of a dataset are stored. */
typedef struct brc_hdf5_stored {
    int all;             /* nearly all of them: everything is read             */
    uint64_t *corners;   /* else the first element of each, ndim numbers       */
    size_t n, at;
} brc_hdf5_stored;
/* chunk NULL: the dataset has none. */
BRC_MUST_USE int brc_hdf5_stored_read(brc_hdf5_stored *out, const brc_hdf5_in *in, hid_t dataset, int ndim,
                                      const uint64_t *shape, const uint64_t *chunk, const char *label, brc_error *err);

/* The names of a dataset's axes: texts to free, or NULL. */
BRC_MUST_USE int brc_hdf5_names_read(char **names, const brc_hdf5_in *in, hid_t dataset, int ndim, int is_scale,
                                     const char *path, const char *label, brc_error *err);

#endif
