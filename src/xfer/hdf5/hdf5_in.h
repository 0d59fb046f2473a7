/* An HDF5 file that is being imported. */
#ifndef BRC_XFER_HDF5_IN_H
#define BRC_XFER_HDF5_IN_H

#include "hdf5_heap.h"
#include "hdf5_type.h"

typedef struct brc_hdf5_in {
    brc_hdf5 lib;
    brc_session *session;
    const brc_registry *reg;
    const brc_xfer_opts *opts;
    const char *file; /* its name  */
    hid_t id;         /* the file  */
    hid_t links;      /* how its objects are opened: see brc_hdf5_open_file() */
    brc_hdf5_heap *heap;
    uint64_t *bytes; /* only those of the datasets are counted; NULL: they are imported */
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
/* The values as JSON text; NULL where there are none. */
BRC_MUST_USE int brc_hdf5_attrs_text(char **out, const brc_hdf5_attrs *attrs, brc_error *err);

/* ---- elements: hdf5_in_elements.c -------------------------------- */

/* n elements in memory made canonical (little-endian, see brc_hdf5_part): for types of a fixed size. */
BRC_MUST_USE int brc_hdf5_canonical(const brc_hdf5_type *type, const brc_dtype *dtype, uint8_t *data, uint64_t n,
                                    const char *label, brc_error *err);
/* n elements of variable length appended, each with its length, from references as
 * brc_hdf5_heap_get() takes them. */
BRC_MUST_USE int brc_hdf5_spans(const brc_hdf5_in *in, const brc_hdf5_type *type, const uint8_t *references, uint64_t n,
                                brc_buf *out, const char *label, brc_error *err);
/* The same for elements as the library has them in memory: a fill value. */
BRC_MUST_USE int brc_hdf5_memory_span(const brc_hdf5_type *type, const void *element, brc_buf *out, const char *label,
                                      brc_error *err);

/* ---- datasets: hdf5_in_data.c, hdf5_in_chunks.c, hdf5_in_scale.c -------------------------------- */

BRC_MUST_USE int brc_hdf5_dataset_import(const brc_hdf5_in *in, hid_t dataset, const char *path, const char *label,
                                         brc_error *err);

/* Adds the dataset's bytes to in->bytes. */
BRC_MUST_USE int brc_hdf5_dataset_count(const brc_hdf5_in *in, hid_t dataset, const char *label, brc_error *err);

/* Which chunks of a dataset are stored. */
typedef struct brc_hdf5_stored {
    int all;             /* nearly all of them: everything is read             */
    uint8_t *bits;       /* then, by number in the grid, those that are there; NULL: all */
    uint64_t *corners;   /* else the first element of each, ndim numbers       */
    size_t n, at;
} brc_hdf5_stored;
void brc_hdf5_stored_free(brc_hdf5_stored *stored);
/* Whether the chunk of this index is, which lies in the grid. */
int brc_hdf5_is_stored(const brc_hdf5_stored *stored, int ndim, const uint64_t *shape, const uint64_t *chunk,
                       const uint64_t *index);
/* chunk NULL: the dataset has none. exact: out->all only where every chunk is stored. */
BRC_MUST_USE int brc_hdf5_stored_read(brc_hdf5_stored *out, const brc_hdf5_in *in, hid_t dataset, int ndim, const uint64_t *shape,
                                      const uint64_t *chunk, int exact, const char *label, brc_error *err);

typedef struct brc_hdf5_chunks brc_hdf5_chunks;
/* How to read a chunked dataset; borrowed. */
typedef struct brc_hdf5_layout {
    const brc_hdf5_in *in;
    hid_t dataset, file_type;
    hid_t memory;            /* BRC_HDF5_NONE: elements stay as in the file        */
    size_t file_size, size;  /* of an element in the file and in memory            */
    const uint8_t *fill;     /* one element in memory                              */
    int ndim;
    const uint64_t *shape, *chunk;
    const brc_hdf5_stored *stored;
    const char *label;
} brc_hdf5_layout;
/* *out: NULL where the library has to read the chunks: filters that are not ours. */
BRC_MUST_USE int brc_hdf5_chunks_open(brc_hdf5_chunks **out, const brc_hdf5_layout *layout, hid_t plist,
                                      brc_error *err);
void brc_hdf5_chunks_close(brc_hdf5_chunks *chunks);
/* The elements of a box in memory's types. The box may have more axes than the dataset. */
BRC_MUST_USE int brc_hdf5_chunks_read(brc_hdf5_chunks *chunks, const brc_sel *box, void *dst, brc_error *err);

/* The names of a dataset's axes: texts to free, or NULL. */
BRC_MUST_USE int brc_hdf5_names_read(char **names, const brc_hdf5_in *in, hid_t dataset, int ndim, int is_scale,
                                     const char *path, const char *label, brc_error *err);

#endif
