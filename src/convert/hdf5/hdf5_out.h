/* An HDF5 file that is being exported. */
#ifndef BRC_CONVERT_HDF5_HDF5_OUT_H
#define BRC_CONVERT_HDF5_HDF5_OUT_H

#include "../../base/alloc.h"
#include "hdf5_tree.h"

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
    brc_convert *convert;
    const brc_registry *reg;
    const char *file;  /* its name                                           */
    hid_t id;          /* the file                                           */
    hid_t link_names, attr_names; /* property lists: names are UTF-8         */
    brc_hdf5_item *items;
    size_t n, cap;
    struct brc_hdf5_dataset *dataset; /* the one that gets elements now      */
    struct brc_hdf5_ragged **ragged; /* groups that are datasets, in the order of nodes */
    size_t nragged, ragged_cap;
    const brc_node_out *array;      /* the one that comes now                */
    struct brc_hdf5_ragged *filled; /* the one that it belongs to, or NULL   */
    brc_json **zarr;   /* for each node, what BRC_HDF5_ZARR says: NULL: nothing */
    size_t nzarr;
} brc_hdf5_out;

/* ---- values: hdf5_out_attr.c -------------------------------- */

/* Where values are written. */
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

/* ---- the driver: hdf5_out.c -------------------------------- */

BRC_MUST_USE int brc_hdf5_out_create(void **state, brc_convert *c, const char *file, int classic, brc_error *err);
BRC_MUST_USE int brc_hdf5_out_begin(void *state, const brc_node_out *array, int *all, brc_error *err);
BRC_MUST_USE int brc_hdf5_out_put(void *state, const brc_sel *box, const void *data, size_t len, brc_error *err);
BRC_MUST_USE int brc_hdf5_out_end(void *state, brc_error *err);
BRC_MUST_USE int brc_hdf5_out_finish(void *state, brc_error *err);

/* ---- parts -------------------------------- */

/* The attributes of a group, or array of this type, with this zarr.json. `zarr`: what else BRC_HDF5_ZARR
 * shall say, an object, or NULL; it is consumed. */
BRC_MUST_USE int brc_hdf5_attrs_write(const brc_hdf5_out *out, hid_t object, const char *inner, const brc_json *doc,
                                      const brc_dtype *array, brc_json *zarr, const char *label, brc_error *err);
/* An array in out->items, with the names of its axes (JSON; NULL: none). */
BRC_MUST_USE int brc_hdf5_item_add(brc_hdf5_out *out, const char *inner, int ndim, const uint64_t *shape, const brc_json *names,
                                   int scales, brc_error *err);

/* ---- groups that are datasets: hdf5_ragged.c -------------------------------- */

/* Finds them among the nodes. */
BRC_MUST_USE int brc_hdf5_ragged_find(brc_hdf5_out *out, brc_error *err);
/* The one that the node belongs to, as its group or a node in it; NULL: none. */
struct brc_hdf5_ragged *brc_hdf5_ragged_of_node(const brc_hdf5_out *out, const brc_node_out *node);
/* 1 if the node is its group. */
int brc_hdf5_ragged_is_group(const struct brc_hdf5_ragged *ragged, const brc_node_out *node);
/* Its path in the file. */
const char *brc_hdf5_ragged_inner(const struct brc_hdf5_ragged *ragged);
/* The dataset without elements and attributes, noted in out->items. */
BRC_MUST_USE int brc_hdf5_ragged_make(brc_hdf5_out *out, struct brc_hdf5_ragged *ragged, brc_error *err);
BRC_MUST_USE int brc_hdf5_ragged_put(struct brc_hdf5_ragged *ragged, const brc_node_out *array, const brc_sel *box, const void *data,
                                     size_t len, brc_error *err);
/* After an array's elements: with its last array's the dataset is written. */
BRC_MUST_USE int brc_hdf5_ragged_end(struct brc_hdf5_ragged *ragged, const brc_node_out *array, brc_error *err);
void brc_hdf5_ragged_close(brc_hdf5_out *out);

/* ---- the rest -------------------------------- */

/* Dimension scales for all arrays, when they are there. */
BRC_MUST_USE int brc_hdf5_scales_write(const brc_hdf5_out *out, brc_error *err);

#endif
