/*
 * Types of HDF5 that are more than one data type of Zarr's: compounds with texts, lists, references
 * or large arrays in them, lists of variable length, arrays of such. A tree of them ends in types
 * that Zarr has, the leaves.
 *
 * As JSON, in the notes:
 *
 *   DATA TYPE, or {"data_type": DATA TYPE, "note": NOTE}       a leaf, NOTE as in hdf5_type.h
 *   {"fields": [{"name": TEXT, "type": TREE, "at": n}, ...], "size": n}   a compound; "at" is a field's
 *                                                              place and "size" that of all, where there
 *                                                              is room between or behind the fields
 *   {"list": TREE}                                             a list of variable length
 *   {"array": [n, ...], "of": TREE}                            an array
 */
#ifndef BRC_CONVERT_HDF5_TREE_H
#define BRC_CONVERT_HDF5_TREE_H

#include "hdf5_type.h"

enum { BRC_HDF5_LEAF = 1, BRC_HDF5_COMPOUND, BRC_HDF5_LIST, BRC_HDF5_ARRAY };

typedef struct brc_hdf5_tree {
    int kind;
    char *name;                  /* of a compound's field; else NULL           */
    brc_hdf5_type type;          /* of a leaf ...                              */
    brc_dtype *dtype;
    struct brc_hdf5_tree *items; /* the fields; the one that a list or array is of */
    size_t n;
    int ndim;                    /* of an array                                */
    uint64_t shape[BRC_MAX_NDIM];
    hid_t memory;                /* what elements are read and written as      */
    size_t size;                 /* of one in memory                           */
    size_t at;                   /* a field's place in its compound's memory   */
    size_t file_size, file_at;   /* both as the type that was read has them    */
} brc_hdf5_tree;

/* Whether the type is a leaf by itself. */
int brc_hdf5_is_one_type(hid_t type);
/* Reads a type of a file into a tree; `writing` as for brc_hdf5_type_read(). */
BRC_MUST_USE int brc_hdf5_tree_read(brc_hdf5_tree *out, const brc_registry *reg, hid_t type, int writing,
                                    const char *label, brc_error *err);
/* Whether there are references in it. */
int brc_hdf5_tree_refers(const brc_hdf5_tree *tree);
void brc_hdf5_tree_close(brc_hdf5_tree *tree);

/* The tree as JSON. */
BRC_MUST_USE int brc_hdf5_tree_json(brc_json **out, const brc_hdf5_tree *tree, brc_error *err);
/* The file's type for such JSON. BRC_EUNSUPPORTED or BRC_EINVAL if there is none. */
BRC_MUST_USE int brc_hdf5_tree_make(hid_t *out, const brc_registry *reg, const brc_json *json, const char *label,
                                    brc_error *err);

#endif
