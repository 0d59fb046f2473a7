/* An HDF5 file that is being exported. */
#ifndef BRC_CONVERT_HDF5_HDF5_OUT_H
#define BRC_CONVERT_HDF5_HDF5_OUT_H

#include "../../base/alloc.h"
#include "../lib/netcdf_plan.h"
#include "../lib/ragged.h"
#include "hdf5_tree.h"

/* An array in the file, for dimension scales. */
typedef struct brc_hdf5_item {
    char *inner; /* its path in the file, "a/b"                              */
    int ndim;
    uint64_t shape[BRC_MAX_NDIM];
    char **names; /* ndim of them, each may be NULL; NULL: none              */
    int scales;   /* 0: attributes of the array keep it from being a scale */
} brc_hdf5_item;

typedef struct brc_hdf5_out {
    brc_hdf5_file head;
    brc_convert *convert;
    const brc_registry *reg;
    const char *file;  /* its name                                           */
    hid_t id;          /* the file                                           */
    hid_t link_names, attr_names; /* property lists: names are UTF-8         */
    brc_hdf5_item *items;
    size_t n, cap;
    struct brc_hdf5_dataset *dataset; /* the dataset that is being written */
    struct brc_hdf5_ragged **ragged; /* groups that are datasets, in the order of nodes */
    size_t nragged, ragged_cap;
    const brc_node_out *array;      /* the array whose elements come now */
    struct brc_hdf5_ragged *filled; /* the group that this array belongs to, or NULL */
    brc_json **zarr;   /* the content of BRC_HDF5_ZARR for each node; NULL: none */
    size_t nzarr;
    brc_netcdf_plan *plan; /* of NetCDF-4; NULL: the file is plain HDF5 */
} brc_hdf5_out;

/* ---- values: hdf5_out_attr.c -------------------------------- */

/* The object to which values are written. */
typedef struct brc_hdf5_writer {
    const brc_hdf5_out *out;
    const char *inner; /* the object's path in the file                                */
    const char *at;    /* its path in its original file, to which the paths in its values refer; NULL: "/" */
    const char *label;
    brc_arena *arena;  /* for the memory that values point to                          */
} brc_hdf5_writer;

/* Replaces *type by this file's committed data type, if `committed` is the path that the same type had in
 * the original file. */
BRC_MUST_USE int brc_hdf5_type_committed(const brc_hdf5_writer *w, hid_t *type, const brc_json *committed,
                                         brc_error *err);
/* Writes a text as a reference. Returns 1, or 0 if the file does not have its target. "" is the null
 * reference. */
BRC_MUST_USE int brc_hdf5_reference_put(const brc_hdf5_writer *w, int is_region, const char *text, void *reference,
                                        brc_error *err);
/* Writes a value as an element in memory, which must be all zeros. Returns 1, or 0 if the value is not one
 * of the type. */
BRC_MUST_USE int brc_hdf5_value_read(const brc_hdf5_writer *w, const brc_hdf5_tree *tree, const brc_json *value,
                                     void *element, brc_error *err);

/* ---- parts -------------------------------- */

/* Writes the attributes of a group, or of an array of this type, whose zarr.json is `doc`. `zarr` is an object with
 * further facts for BRC_HDF5_ZARR, or NULL; the function takes it over. */
BRC_MUST_USE int brc_hdf5_attrs_write(const brc_hdf5_out *out, hid_t object, const char *inner, const brc_json *doc,
                                      const brc_dtype *array, brc_json *zarr, const char *label, brc_error *err);
/* Adds an array to out->items, with the names of its axes (JSON; NULL: none). */
BRC_MUST_USE int brc_hdf5_item_add(brc_hdf5_out *out, const char *inner, int ndim, const uint64_t *shape, const brc_json *names,
                                   int scales, brc_error *err);

/* ---- groups that are datasets: hdf5_ragged.c -------------------------------- */

typedef struct brc_hdf5_ragged {
    const brc_hdf5_out *out;
    const brc_node_out *group;
    const brc_json *note; /* the member BRC_HDF5_RAGGED, or BRC_NETCDF_RAGGED */
    char *inner;          /* the dataset's path in a file of plain HDF5 */
    hid_t file_type, plist, space, id;
    brc_hdf5_tree tree;
    brc_ragged type;
    brc_ragged_out *arrays;
    int ndim, is_null, chunked;
    uint64_t shape[BRC_MAX_NDIM], chunk[BRC_MAX_NDIM];
} brc_hdf5_ragged;

/* Finds such groups among the nodes. */
BRC_MUST_USE int brc_hdf5_ragged_find(brc_hdf5_out *out, brc_error *err);
/* Returns the group to which the node belongs, as the group itself or as a node in it; NULL if there is none. */
brc_hdf5_ragged *brc_hdf5_ragged_of_node(const brc_hdf5_out *out, const brc_node_out *node);
/* Returns the names of the dataset's axes, a list; NULL if they have none. */
const brc_json *brc_hdf5_ragged_names(const brc_hdf5_ragged *ragged);
/* Makes the dataset without elements and attributes, and lists it in out->items. Plain HDF5 only. */
BRC_MUST_USE int brc_hdf5_ragged_make(brc_hdf5_out *out, brc_hdf5_ragged *ragged, brc_error *err);
BRC_MUST_USE int brc_hdf5_ragged_put(brc_hdf5_ragged *ragged, const brc_node_out *array, const brc_sel *box, const void *data,
                                     size_t len, brc_error *err);
/* Called after an array's elements: the last array of a group writes the dataset. */
BRC_MUST_USE int brc_hdf5_ragged_end(brc_hdf5_ragged *ragged, const brc_node_out *array, brc_error *err);
void brc_hdf5_ragged_close(brc_hdf5_out *out);

/* ---- NetCDF-4: hdf5_netcdf_out.c -------------------------------- */

/* Fills in out->plan, after the groups that stand for datasets were found. */
BRC_MUST_USE int brc_hdf5_netcdf_plan(brc_hdf5_out *out, brc_error *err);
/* Writes the whole file except elements. */
BRC_MUST_USE int brc_hdf5_netcdf_write(brc_hdf5_out *out, brc_error *err);
/* Makes the path of a variable's dataset. The caller frees it. */
BRC_MUST_USE int brc_hdf5_variable_path(char **out, const brc_netcdf_plan *plan, const brc_netcdf_var *var, brc_error *err);

/* ---- the rest -------------------------------- */

/* Writes the dimension scales of all arrays, which must exist. */
BRC_MUST_USE int brc_hdf5_scales_write(const brc_hdf5_out *out, brc_error *err);

#endif
