/*
 * Types of HDF5 that are more than one data type of Zarr's: compounds that contain texts, lists, references or large
 * arrays; lists of variable length; arrays of these. A type is a tree that ends in types that Zarr has, the leaves.
 *
 * Its JSON, in the notes:
 *
 *   DATA TYPE, or {"data_type": DATA TYPE, "note": NOTE}       a leaf, NOTE as in hdf5_type.h
 *   {"fields": [{"name": TEXT, "type": TREE, "at": n}, ...], "size": n}   a compound; "at" is a field's
 *                                                              offset and "size" the compound's size, if
 *                                                              there are gaps between or after the fields
 *   {"list": TREE}                                             a list of variable length; in NetCDF a list
 *                                                              and a compound also have the "name" of the type
 *   {"array": [n, ...], "of": TREE}                            an array
 */
#ifndef BRC_CONVERT_HDF5_HDF5_TREE_H
#define BRC_CONVERT_HDF5_HDF5_TREE_H

#include "../../base/buf.h"
#include "hdf5_lib.h"
#include "hdf5_type.h"

/* ---- hdf5 paths -------------------------------- */

/*
 * The paths of the objects of an HDF5 file. References and committed data types are addresses in the
 * file, and become these paths as text.
 *
 * An object has the first path that hard links give it, in the order of names, the groups in a
 * group after its other members. Objects without a hard link have no path.
 */

typedef struct brc_hdf5_paths {
    void *met; /* tree of tsearch(): struct brc_hdf5_path */
    char **named; /* names of links to committed data types, group by group */
    size_t nnamed, named_cap;
    size_t taken; /* bytes of memory in all */
    struct brc_hdf5_path *first;
    /* For the paths of another file: an external link imports the part from `from` on, as `to` in the imported file.
     * NULL: the paths are those of the imported file. */
    const char *from, *to;
} brc_hdf5_paths;

/* Walks all groups of the file. Skips objects that cannot be read: a later use of the object fails.
 * `links`: the property list to open objects with. */
BRC_MUST_USE int brc_hdf5_paths_read(brc_hdf5_paths *out, hid_t file, hid_t links, const char *label, brc_error *err);
void brc_hdf5_paths_free(brc_hdf5_paths *paths);

/* Returns the path of an open object or a committed data type in its own file, or NULL if it has none. */
const char *brc_hdf5_path_of_object(const brc_hdf5_paths *paths, hid_t object);
/* Calls take() with every object that has a path, in the order of the walk, as long as take() returns BRC_OK. */
BRC_MUST_USE int brc_hdf5_paths_each(const brc_hdf5_paths *paths, int (*take)(void *ctx, const char *path, H5O_type_t type),
                                     void *ctx);
/* Returns the names of the links to committed data types in an open group. */
char *const *brc_hdf5_named_in(const brc_hdf5_paths *paths, hid_t group, size_t *n);

/* ---- hdf5 reference -------------------------------- */

/*
 * References of HDF5 as text.
 *
 *   to an object    its path in the file: "/a/b"
 *   to a region     its dataset's path, "#" and the selection: "/a#[0:2, 3:9:2]", Python's slices
 *                   of one box; "/a#[0:2, 3:5][7:9, 3:5]", the union of several; "/a#[1, 2][0, 3]",
 *                   points in this order; "/a#[...]", everything; "/a#[]", nothing
 *   to nothing      ""
 */

/* Appends the text of a reference that the library has put into memory. BRC_EINVAL if no path leads to the object. */
BRC_MUST_USE int brc_hdf5_reference_text(const brc_hdf5_paths *paths, hid_t file, int is_region, const void *reference,
                                         brc_buf *out, const char *label, brc_error *err);

/* Makes the reference of a text, which is not "". `path` is the path of the object in this file, which may differ
 * from that in the text. Returns 1, 0 if there is no such object or region, or a negative error code. */
BRC_MUST_USE int brc_hdf5_reference_make(hid_t file, int is_region, const char *path, const char *text, void *reference,
                                         const char *label, brc_error *err);

/* ---- hdf5 tree -------------------------------- */

enum { BRC_HDF5_LEAF = 1, BRC_HDF5_COMPOUND, BRC_HDF5_LIST, BRC_HDF5_ARRAY };

typedef struct brc_hdf5_tree {
    int kind;
    char *name;                  /* of a compound's field; otherwise NULL */
    char *type_name;             /* see brc_hdf5_netcdf_name_types(); otherwise NULL */
    brc_hdf5_type type;          /* of a leaf */
    brc_dtype *dtype;
    struct brc_hdf5_tree *items; /* the fields; or the type of the items of a list or array */
    size_t n;
    int ndim;                    /* of an array                                */
    uint64_t shape[BRC_MAX_NDIM];
    hid_t memory;                /* the type in memory of elements that are read and written */
    size_t size;                 /* of an element in memory */
    size_t at;                   /* a field's place in its compound's memory   */
    size_t file_size, file_at;   /* both in the type that was read */
} brc_hdf5_tree;

/* Returns whether the type by itself is a leaf. */
int brc_hdf5_is_one_type(hid_t type, int how);
/* Reads a type of a file into a tree; `how` as for brc_hdf5_type_read(). */
BRC_MUST_USE int brc_hdf5_tree_read(brc_hdf5_tree *out, const brc_registry *reg, hid_t type, int how,
                                    const char *label, brc_error *err);
/* Returns whether the tree contains references. */
int brc_hdf5_tree_refers(const brc_hdf5_tree *tree);
void brc_hdf5_tree_close(brc_hdf5_tree *tree);

/* Writes the tree as JSON. */
BRC_MUST_USE int brc_hdf5_tree_json(brc_json **out, const brc_hdf5_tree *tree, brc_error *err);
/* Makes the file's type for such JSON; `how` as for brc_hdf5_type_make(). BRC_EUNSUPPORTED or BRC_EINVAL if there is
 * no such type. */
BRC_MUST_USE int brc_hdf5_tree_make(hid_t *out, const brc_registry *reg, const brc_json *json, int how, const char *label,
                                    brc_error *err);

#endif
