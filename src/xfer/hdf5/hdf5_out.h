/* An HDF5 file that is being exported. */
#ifndef BRC_XFER_HDF5_OUT_H
#define BRC_XFER_HDF5_OUT_H

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
    brc_hdf5 lib;
    brc_session *session;
    const brc_registry *reg;
    hid_t id;          /* the file                                           */
    hid_t link_names, attr_names; /* property lists: names are UTF-8         */
    brc_hdf5_item *items;
    size_t n, cap;
} brc_hdf5_out;

/* The attributes of a group, or array of this type, with this zarr.json. `zarr`: what else BRC_HDF5_ZARR
 * shall say, an object, or NULL; it is consumed. */
BRC_MUST_USE int brc_hdf5_attrs_write(const brc_hdf5_out *out, hid_t object, const brc_json *doc,
                                      const brc_dtype *array, brc_json *zarr, const char *label, brc_error *err);
/* The array at `path` as the dataset `inner`, noted in out->items. */
BRC_MUST_USE int brc_hdf5_dataset_export(brc_hdf5_out *out, const char *path, const char *inner, brc_error *err);
/* Dimension scales for all arrays, when they are there. */
BRC_MUST_USE int brc_hdf5_scales_write(const brc_hdf5_out *out, brc_error *err);

#endif
