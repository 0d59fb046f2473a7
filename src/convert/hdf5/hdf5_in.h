/* An HDF5 file that is being imported. */
#ifndef BRC_CONVERT_HDF5_HDF5_IN_H
#define BRC_CONVERT_HDF5_HDF5_IN_H

#include "../../base/alloc.h"
#include "hdf5_chunks.h"
#include "hdf5_lib.h"
#include "hdf5_elsewhere.h"
#include "hdf5_tree.h"

typedef struct brc_hdf5_netcdf brc_hdf5_netcdf; /* hdf5_netcdf.h */

typedef struct brc_hdf5_in {
    brc_hdf5_file head;
    brc_convert *convert;
    const brc_registry *reg;
    const char *file; /* its name  */
    hid_t id;         /* the file  */
    hid_t links;      /* the property list to open objects with, see brc_hdf5_file_open() */
    hid_t raw;        /* the property list for datasets with raw files */
    unsigned long number; /* the library's number of this file */
    brc_hdf5_paths paths;
    int how;      /* how types are read: BRC_HDF5_READING or BRC_HDF5_NETCDF */
    const brc_hdf5_netcdf *netcdf; /* of a NetCDF-4 file; NULL: the file is not NetCDF-4 */
    brc_hdf5_elsewhere *elsewhere; /* other files, shared by all files of an import */
    const struct brc_hdf5_in *first; /* the import of the file to which links lead from this one */
} brc_hdf5_in;

/* ---- the driver: hdf5_in.c -------------------------------- */

BRC_MUST_USE int brc_hdf5_in_open(void **state, brc_convert *c, const char *file, brc_error *err);
BRC_MUST_USE int brc_hdf5_in_walk(void *state, brc_error *err);

/* ---- attributes: hdf5_in_attr.c -------------------------------- */

typedef struct brc_hdf5_attrs {
    brc_json *values; /* an object                                            */
    brc_json *types;  /* data types by name, for the note; NULL: none */
    brc_json *zarr;   /* the object in BRC_HDF5_ZARR; NULL: none */
    int has_paths;    /* values or types contain paths of the file */
    int is_scale;     /* a dimension scale                                    */
} brc_hdf5_attrs;
/* Reads the attributes of an object. The attributes of a dataset (is_array) leave out those that belong to dimension
 * scales. */
BRC_MUST_USE int brc_hdf5_attrs_read(brc_hdf5_attrs *out, const brc_hdf5_in *in, hid_t object, int is_array,
                                     const char *label, brc_error *err);
/* Adds the types of an object's attributes to its note and, if they contain a path, the path of the object. Takes
 * over attrs->types. */
BRC_MUST_USE int brc_hdf5_note_attrs(brc_json *note, brc_hdf5_attrs *attrs, const char *path, brc_error *err);
/* Adds a group's note to its attributes, unless the note is empty. Takes over the note. */
BRC_MUST_USE int brc_hdf5_note_group(brc_hdf5_attrs *attrs, brc_json *note, const char *label, brc_error *err);
void brc_hdf5_attrs_free(brc_hdf5_attrs *attrs);
/* Writes the values as JSON text. Sets *out to NULL if there are none. */
BRC_MUST_USE int brc_hdf5_attrs_text(char **out, const brc_hdf5_attrs *attrs, brc_error *err);

/* Reads one attribute as JSON, and its type if the type is noted, otherwise NULL. Sets *has_paths (may be NULL) to 1
 * if either contains paths of the file. */
BRC_MUST_USE int brc_hdf5_attr_read(const brc_hdf5_in *in, hid_t object, const char *name, const char *label,
                                    brc_json **value, brc_json **type, int *has_paths, brc_error *err);

/* ---- values: hdf5_in_attr.c -------------------------------- */

/* Appends one element in memory as JSON text: a leaf as an array of its type prints a fill value, a text as a text, a
 * compound as an object, a list or array as a list. Makes a leaf's memory canonical. */
BRC_MUST_USE int brc_hdf5_value_print(const brc_hdf5_in *in, const brc_hdf5_tree *tree, void *element, brc_buf *out,
                                      const char *label, brc_error *err);
#define BRC_HDF5_VALUE_BYTES ((size_t)64 << 20)
/* Returns the path of a committed data type, or NULL. */
const char *brc_hdf5_committed(const brc_hdf5_in *in, hid_t type);

/* ---- elements: hdf5_in_attr.c -------------------------------- */

/* Returns whether brc_hdf5_canonical() or brc_hdf5_memory_span() may refuse an element. */
int brc_hdf5_is_doubtful(const brc_hdf5_type *type);
/* Makes n elements in memory canonical (little-endian, see brc_hdf5_part). Types of a fixed size only. */
BRC_MUST_USE int brc_hdf5_canonical(const brc_hdf5_type *type, const brc_dtype *dtype, uint8_t *data, uint64_t n,
                                    const char *label, brc_error *err);
/* Appends an element of variable length, which the library has put into memory, with its length. */
BRC_MUST_USE int brc_hdf5_memory_span(const brc_hdf5_in *in, const brc_hdf5_type *type, const void *element,
                                      brc_buf *out, const char *label, brc_error *err);
/* Memory that libhdf5 allocates for lists and texts; the arena releases all of it at once. A few bytes of a
 * file may be the text of every element. */
typedef struct brc_hdf5_memory {
    brc_arena arena;
    size_t taken, most;
    int is_full;
} brc_hdf5_memory;
/* Calls H5Dread() for elements that point to such memory. Returns 1, or 0 if it would take more than taken->most
 * bytes. */
BRC_MUST_USE int brc_hdf5_read_lists(brc_hdf5_memory *taken, hid_t dataset, hid_t type, hid_t memory, hid_t space,
                                     void *elements, const char *label, brc_error *err);
/* Appends n such elements of a dataset, those that are selected in `space`, with all their items. `memory` is the
 * space of n elements in a row. */
BRC_MUST_USE int brc_hdf5_spans(const brc_hdf5_in *in, const brc_hdf5_type *type, hid_t dataset, hid_t memory, hid_t space, uint64_t n,
                                brc_buf *out, const char *label, brc_error *err);

/* ---- datasets: hdf5_in_data.c, hdf5_in_attr.c, hdf5_elsewhere.c -------------------------------- */

/* Returns whether the dataset's elements are in raw files. */
int brc_hdf5_has_raw_files(hid_t dataset);
/* Reads how the dataset with these properties is stored. Sets *chunked. */
BRC_MUST_USE int brc_hdf5_storage_check(int *chunked, hid_t plist, const char *label, brc_error *err);
/*
 * The files and datasets that contain a dataset's elements, if these are not in the dataset itself: the sources of a
 * virtual dataset with their sources, and raw files. All of them are checked and kept open, because the library reads
 * missing elements as fill values. BRC_EUNSUPPORTED if one is missing, may not be read, or is not as expected. Sets
 * *out to NULL if the elements are in the dataset itself. The caller closes *out.
 */
typedef struct brc_hdf5_sources brc_hdf5_sources;
BRC_MUST_USE int brc_hdf5_sources_open(brc_hdf5_sources **out, const brc_hdf5_in *in, hid_t dataset, const char *label,
                                       brc_error *err);
/* Checks, after reading, that the files still exist. */
BRC_MUST_USE int brc_hdf5_sources_stay(const brc_hdf5_sources *sources, brc_error *err);
void brc_hdf5_sources_close(brc_hdf5_sources *sources);
/* Checks that a dataset without chunks has stored as many bytes as its shape needs. */
BRC_MUST_USE int brc_hdf5_size_check(hid_t dataset, hid_t type, int ndim, const uint64_t *shape, const char *label,
                                     brc_error *err);

/* Imports a dataset as an array or a group: hdf5_in_data.c. */
BRC_MUST_USE int brc_hdf5_dataset_import(const brc_hdf5_in *in, hid_t dataset, const char *path, const char *label,
                                         brc_error *err);
/* Imports a dataset whose type is not one of Zarr's (brc_hdf5_is_one_type()) as a group: hdf5_ragged.c. */
BRC_MUST_USE int brc_hdf5_ragged_import(const brc_hdf5_in *in, hid_t dataset, const char *path, const char *label,
                                        brc_error *err);

/* ---- names of axes: hdf5_in_attr.c -------------------------------- */

/* The NAME of a dimension scale that is not a variable in NetCDF-4 begins with this. */
#define BRC_HDF5_NO_VARIABLE "This is a netCDF dimension but not a netCDF variable"

/* Calls take() with a reference (hobj_ref_t) to the first dimension scale of each axis that has one. */
typedef int brc_hdf5_scale_fn(void *ctx, hid_t dataset, const void *reference, int axis, brc_error *err);
BRC_MUST_USE int brc_hdf5_scales_read(hid_t dataset, int ndim, brc_hdf5_scale_fn *take, void *ctx, const char *label,
                                      brc_error *err);
/* Reads the names of a dataset's axes. The caller frees the texts; an axis without a name gets NULL. */
BRC_MUST_USE int brc_hdf5_names_read(char **names, const brc_hdf5_in *in, hid_t dataset, int ndim, int is_scale,
                                     const char *path, const char *label, brc_error *err);

#endif
