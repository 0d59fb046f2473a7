/* An HDF5 file that is being imported. */
#ifndef BRC_CONVERT_HDF5_HDF5_IN_H
#define BRC_CONVERT_HDF5_HDF5_IN_H

#include "../../base/alloc.h"
#include "../lib/hdf5_chunks.h"
#include "../lib/hdf5_lib.h"
#include "hdf5_elsewhere.h"
#include "hdf5_tree.h"

typedef struct brc_hdf5_netcdf brc_hdf5_netcdf; /* hdf5_netcdf.h */

typedef struct brc_hdf5_in {
    brc_hdf5_file head;
    brc_convert *convert;
    const brc_registry *reg;
    const char *file; /* its name  */
    hid_t id;         /* the file  */
    hid_t links;      /* how its objects are opened: see brc_hdf5_file_open() */
    hid_t raw;        /* ... and those with raw files                          */
    unsigned long number; /* the library's, of this file */
    brc_hdf5_paths paths;
    int how;      /* types are read: BRC_HDF5_READING, or BRC_HDF5_NETCDF ...    */
    const brc_hdf5_netcdf *netcdf; /* ... of a NetCDF-4 file; NULL: it is none   */
    brc_hdf5_elsewhere *elsewhere; /* of both: other files   */
    const struct brc_hdf5_in *first; /* the file that is imported, of another one that it leads to too */
} brc_hdf5_in;

/* ---- the driver: hdf5_in.c -------------------------------- */

BRC_MUST_USE int brc_hdf5_in_open(void **state, brc_convert *c, const char *file, brc_error *err);
BRC_MUST_USE int brc_hdf5_in_walk(void *state, brc_error *err);

/* ---- attributes: hdf5_in_attr.c -------------------------------- */

typedef struct brc_hdf5_attrs {
    brc_json *values; /* an object                                            */
    brc_json *types;  /* name: data type, for the note; NULL: none            */
    brc_json *zarr;   /* BRC_HDF5_ZARR's object; NULL: none                   */
    int has_paths;    /* in values or types: paths of the file                */
    int is_scale;     /* a dimension scale                                    */
} brc_hdf5_attrs;
/* Reads the attributes of an object; of a dataset (is_array) without those that make up dimension scales. */
BRC_MUST_USE int brc_hdf5_attrs_read(brc_hdf5_attrs *out, const brc_hdf5_in *in, hid_t object, int is_array,
                                     const char *label, brc_error *err);
/* Adds to an object's note the types of its attributes and, if a path is in them, the path of the object.
 * attrs->types is taken over. */
BRC_MUST_USE int brc_hdf5_note_attrs(brc_json *note, brc_hdf5_attrs *attrs, const char *path, brc_error *err);
/* A group's note as one of its attributes, if anything is in it. The note is consumed. */
BRC_MUST_USE int brc_hdf5_note_group(brc_hdf5_attrs *attrs, brc_json *note, const char *label, brc_error *err);
void brc_hdf5_attrs_free(brc_hdf5_attrs *attrs);
/* The values as JSON text; NULL if there are none. */
BRC_MUST_USE int brc_hdf5_attrs_text(char **out, const brc_hdf5_attrs *attrs, brc_error *err);

/* Reads one attribute as JSON, and its type where that is noted, else NULL. *has_paths (NULL: nobody asks) is set to 1
 * where paths of the file are in either. */
BRC_MUST_USE int brc_hdf5_attr_read(const brc_hdf5_in *in, hid_t object, const char *name, const char *label,
                                    brc_json **value, brc_json **type, int *has_paths, brc_error *err);

/* ---- values: hdf5_in_attr.c -------------------------------- */

/* One element in memory as JSON text, appended: what an array of a leaf's type prints as a fill
 * value, texts as texts, a compound as an object, a list or array as a list. A leaf's memory is made
 * canonical. */
BRC_MUST_USE int brc_hdf5_value_print(const brc_hdf5_in *in, const brc_hdf5_tree *tree, void *element, brc_buf *out,
                                      const char *label, brc_error *err);
#define BRC_HDF5_VALUE_BYTES ((size_t)64 << 20)
/* The path of a committed data type, or NULL. */
const char *brc_hdf5_committed(const brc_hdf5_in *in, hid_t type);

/* ---- elements: hdf5_in_attr.c -------------------------------- */

/* Whether these two may refuse an element. */
int brc_hdf5_is_doubtful(const brc_hdf5_type *type);
/* n elements in memory made canonical (little-endian, see brc_hdf5_part): for types of a fixed size. */
BRC_MUST_USE int brc_hdf5_canonical(const brc_hdf5_type *type, const brc_dtype *dtype, uint8_t *data, uint64_t n,
                                    const char *label, brc_error *err);
/* An element of variable length, as the library has it in memory, appended with its length. */
BRC_MUST_USE int brc_hdf5_memory_span(const brc_hdf5_in *in, const brc_hdf5_type *type, const void *element,
                                      brc_buf *out, const char *label, brc_error *err);
/* Memory that libhdf5 allocates for lists and texts; the arena releases all of it at once. A few bytes of a
 * file may be the text of every element. */
typedef struct brc_hdf5_memory {
    brc_arena arena;
    size_t taken, most;
    int is_full;
} brc_hdf5_memory;
/* H5Dread() of elements that point to such: 1; 0 where all that was taken would be more than taken->most bytes. */
BRC_MUST_USE int brc_hdf5_read_lists(brc_hdf5_memory *taken, hid_t dataset, hid_t type, hid_t memory, hid_t space,
                                     void *elements, const char *label, brc_error *err);
/* n such elements of a dataset, those that are selected in `space`, appended, all items of each.
 * `memory`: n in a row. */
BRC_MUST_USE int brc_hdf5_spans(const brc_hdf5_in *in, const brc_hdf5_type *type, hid_t dataset, hid_t memory, hid_t space, uint64_t n,
                                brc_buf *out, const char *label, brc_error *err);

/* ---- datasets: hdf5_in_data.c, hdf5_in_attr.c, hdf5_elsewhere.c -------------------------------- */

/* Whether its elements are in raw files. */
int brc_hdf5_has_raw_files(hid_t dataset);
/* How the dataset with this list of properties is stored; *chunked. */
BRC_MUST_USE int brc_hdf5_storage_check(int *chunked, hid_t plist, const char *label, brc_error *err);
/*
 * The files and datasets that a dataset's elements are in, where these are others than its own: the sources of a
 * virtual dataset and theirs, and raw files. All of them are looked at, and held open, for the library reads what
 * is not there as fill values. BRC_EUNSUPPORTED if one is not there, or may not be read, or is another than it
 * should be. *out: NULL where the elements are in the dataset itself. To be closed.
 */
typedef struct brc_hdf5_sources brc_hdf5_sources;
BRC_MUST_USE int brc_hdf5_sources_open(brc_hdf5_sources **out, const brc_hdf5_in *in, hid_t dataset, const char *label,
                                       brc_error *err);
/* After reading: whether they are still there. */
BRC_MUST_USE int brc_hdf5_sources_stay(const brc_hdf5_sources *sources, brc_error *err);
void brc_hdf5_sources_close(brc_hdf5_sources *sources);
/* Checks that a dataset without chunks has stored as many bytes as its shape needs. */
BRC_MUST_USE int brc_hdf5_size_check(hid_t dataset, hid_t type, int ndim, const uint64_t *shape, const char *label,
                                     brc_error *err);

/* A dataset as an array, or as a group: hdf5_in_data.c. */
BRC_MUST_USE int brc_hdf5_dataset_import(const brc_hdf5_in *in, hid_t dataset, const char *path, const char *label,
                                         brc_error *err);
/* A dataset whose type is not one of Zarr's (brc_hdf5_is_one_type()) as a group: hdf5_ragged.c. */
BRC_MUST_USE int brc_hdf5_ragged_import(const brc_hdf5_in *in, hid_t dataset, const char *path, const char *label,
                                        brc_error *err);

/* ---- names of axes: hdf5_in_attr.c -------------------------------- */

/* The NAME of a dimension scale that is not a variable in NetCDF-4 begins with this. */
#define BRC_HDF5_NO_VARIABLE "This is a netCDF dimension but not a netCDF variable"

/* Calls take() with a reference (hobj_ref_t) to the first dimension scale of each axis that has one. */
typedef int brc_hdf5_scale_fn(void *ctx, hid_t dataset, const void *reference, int axis, brc_error *err);
BRC_MUST_USE int brc_hdf5_scales_read(hid_t dataset, int ndim, brc_hdf5_scale_fn *take, void *ctx, const char *label,
                                      brc_error *err);
/* The names of a dataset's axes: texts to free, or NULL. */
BRC_MUST_USE int brc_hdf5_names_read(char **names, const brc_hdf5_in *in, hid_t dataset, int ndim, int is_scale,
                                     const char *path, const char *label, brc_error *err);

#endif
