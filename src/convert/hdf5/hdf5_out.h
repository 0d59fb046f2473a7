/* An HDF5 file that is being exported. */
#ifndef BRC_CONVERT_HDF5_OUT_H
#define BRC_CONVERT_HDF5_OUT_H

#include "hdf5_type.h"

/* An array in the file, for dimension scales. */
typedef struct brc_hdf5_item {
    char *inner; /* its path in the file, "a/b"                              */
    int ndim;
    uint64_t shape[BRC_MAX_NDIM];
    char **names; /* ndim of them, each may be NULL; NULL: none              */
    int scales;   /* 0: its attributes keep it from being a scale            */
} brc_hdf5_item;

typedef struct brc_hdf5_out {
    brc_hdf5_file head;
    const brc_registry *reg;
    const char *file;  /* its name                                           */
    hid_t id;          /* the file                                           */
    hid_t link_names, attr_names; /* property lists: names are UTF-8         */
    brc_hdf5_item *items;
    size_t n, cap;
    struct brc_hdf5_dataset *dataset; /* the one that gets elements now      */
} brc_hdf5_out;

/* ---- the driver: hdf5_out.c, hdf5_out_data.c -------------------------------- */

BRC_MUST_USE int brc_hdf5_out_create(void **state, brc_convert *c, const char *file, int classic, brc_error *err);
BRC_MUST_USE int brc_hdf5_out_begin(void *state, const brc_node_out *array, int *all, brc_error *err);
BRC_MUST_USE int brc_hdf5_out_put(void *state, const brc_sel *box, const void *data, size_t len, brc_error *err);
BRC_MUST_USE int brc_hdf5_out_end(void *state, brc_error *err);
BRC_MUST_USE int brc_hdf5_out_finish(void *state, brc_error *err);

/* ---- parts -------------------------------- */

/* The attributes of a group, or array of this type, with this zarr.json. `zarr`: what else BRC_HDF5_ZARR
 * shall say, an object, or NULL; it is consumed. */
BRC_MUST_USE int brc_hdf5_attrs_write(const brc_hdf5_out *out, hid_t object, const brc_json *doc,
                                      const brc_dtype *array, brc_json *zarr, const char *label, brc_error *err);
/* The array as a dataset without elements, noted in out->items. */
BRC_MUST_USE int brc_hdf5_dataset_make(brc_hdf5_out *out, const brc_node_out *node, brc_error *err);
void brc_hdf5_dataset_close(struct brc_hdf5_dataset *dataset);
/* Dimension scales for all arrays, when they are there. */
BRC_MUST_USE int brc_hdf5_scales_write(const brc_hdf5_out *out, brc_error *err);

#endif
