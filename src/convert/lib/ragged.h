/*
 * Elements that are more than one array of Zarr: lists of variable length, and compounds that contain texts, lists or
 * references. A dataset of such elements is a group:
 *
 *   a list       a group of `offsets` (int64) and `values`: list i, counted in C order, is
 *                values[offsets[i]:offsets[i+1]]
 *   a compound   a group with one node for each field, by its name
 *   an array     its items, with the array's axes after the other axes
 *   a leaf       an array
 *
 * These lie in one another as in the type: lists of lists are `offsets`, `values/offsets` and `values/values`.
 * Outside lists an array has the dataset's axes; inside, it has one axis of all items, list after list. The driver's
 * own note of the group tells how to make the dataset again.
 *
 * Drivers have elements in memory, with lists as hvl_t (nc_vlen_t is the same), which is brc_ragged_list.
 */
#ifndef BRC_CONVERT_LIB_RAGGED_H
#define BRC_CONVERT_LIB_RAGGED_H

#include "../../base/alloc.h"
#include "../../nd/shape.h"
#include "convert.h"

#define BRC_RAGGED_OFFSETS "offsets"
#define BRC_RAGGED_VALUES "values"

enum { BRC_RAGGED_LEAF = 1, BRC_RAGGED_COMPOUND, BRC_RAGGED_LIST, BRC_RAGGED_ARRAY };
#define BRC_RAGGED_DEPTH 24

typedef struct brc_ragged_list {
    size_t len;
    void *p;
} brc_ragged_list;

/* A type in memory. Names, notes and `own` belong to the driver. */
typedef struct brc_ragged {
    int kind;
    const char *name;         /* of a compound's field in the file */
    size_t size, at;          /* of an element; the offset of a field in its compound */
    struct brc_ragged *items; /* the fields; or the type of the items of a list or array */
    size_t n;
    int ndim;                 /* of an array, or of a leaf that has axes of its own */
    uint64_t shape[BRC_MAX_NDIM];
    const char *dtype;        /* of a leaf: as in a brc_array_spec */
    const brc_dtype *type;    /* of a leaf: the same, opened */
    const brc_json *note;     /* see brc_array_in; NULL: none                            */
    int doubtful;             /* see brc_array_in */
    const void *own;
    size_t column;            /* of an export: the number of the array that has the leaf, for ragged_out.c */
} brc_ragged;

/* Returns the number of items in an element that is an array, or a leaf with axes. */
uint64_t brc_ragged_count(const brc_ragged *type);
/* Frees the tree of types, and the structure with `self`. */
void brc_ragged_free(brc_ragged *type, int self);

/* Runs of elements of a dataset in C order, which fit into memory. A run whose lists and texts take more than
 * BRC_RAGGED_RUN is cut again, down to one element. */
#define BRC_RAGGED_RUN ((size_t)64 << 20)
#define BRC_RAGGED_ELEMENT ((size_t)1 << 30) /* the most that one element may take */
#define BRC_RAGGED_LEVELS 4
typedef struct brc_ragged_runs {
    int ndim;
    uint64_t chunk[BRC_MAX_NDIM];
    size_t size;
    brc_cut cuts[BRC_RAGGED_LEVELS];
    size_t n; /* the number of runs */
} brc_ragged_runs;
/* Starts the runs of a box whose elements have `size` bytes; chunk NULL: the array is not in chunks. */
void brc_ragged_runs_start(brc_ragged_runs *runs, const brc_sel *box, const uint64_t *chunk, size_t size);
/* Returns 1 with the next run, which is valid until the next call, and with the bytes that it
 * may take; 0 at the end. */
int brc_ragged_runs_next(brc_ragged_runs *runs, const brc_cut **run, size_t *most);
/* Called if the run takes more: cuts it, so that its parts come next, and returns 1; 0 if it has only one element. */
int brc_ragged_runs_cut(brc_ragged_runs *runs);

/* The types from the whole type to one of its parts. Only this part of elements is wanted. */
typedef struct brc_ragged_steps {
    const brc_ragged *at[BRC_RAGGED_DEPTH];
    size_t n;
} brc_ragged_steps;

/* ---- import -------------------------------- */

typedef struct brc_ragged_in {
    const char *path, *label; /* see brc_array_in                                        */
    const char *attrs_json;   /* the group's, with the driver's note                     */
    const char *note_name;    /* of an array's note                                      */
    const brc_ragged *type;
    int ndim;
    uint64_t shape[BRC_MAX_NDIM];
    int chunked;              /* as in the file */
    uint64_t chunk[BRC_MAX_NDIM];
    const char *const *names; /* of the axes; see brc_array_in                           */
    size_t weight;            /* the least bytes that an element counts for, if read() cannot
                               * bound its memory; 0: those of its type */
    void *ctx;
    /* Selects the steps to read from now on. */
    int (*select)(void *ctx, const brc_ragged_steps *steps, brc_error *err);
    /* Reads the elements of a box of the dataset, packed, into memory that is all zeros. Returns 1, or 0 if they take
     * more than `most` bytes. The memory that they point to is valid until release() or the next read. */
    int (*read)(void *ctx, const brc_sel *box, void *elements, size_t most, brc_error *err);
    void (*release)(void *ctx);
    /* Appends all items of an element of a leaf, in the form of brc_array_in.read or read_elements. */
    int (*append)(void *ctx, const brc_ragged *leaf, void *element, brc_buf *out, brc_error *err);
} brc_ragged_in;

/* Imports the dataset as groups and arrays: documents in the first round, elements in the second. */
BRC_MUST_USE int brc_convert_ragged(brc_convert *c, const brc_ragged_in *in, brc_error *err);

/* ---- export -------------------------------- */

typedef struct brc_ragged_out brc_ragged_out;

/*
 * Opens the dataset for which a group with a driver's note stands. *out is NULL on failure: BRC_EUNSUPPORTED if the
 * group's nodes do not match the type or each other. `shape` is the noted shape, which is replaced by that of the
 * arrays. `note` is the note's name, for the remedy.
 */
BRC_MUST_USE int brc_ragged_out_open(brc_ragged_out **out, brc_convert *c, const brc_node_out *group,
                                     brc_ragged *type, const char *note, int ndim, uint64_t *shape,
                                     brc_error *err);
void brc_ragged_out_free(brc_ragged_out *out);
/* Returns how many nodes after the group lie in it. */
size_t brc_ragged_out_nodes(const brc_ragged_out *out);
/* Returns one of its arrays that has the dataset's axes; NULL if it has only lists. */
const brc_node_out *brc_ragged_out_leaf(const brc_ragged_out *out);
/* Takes elements of one of its arrays, as brc_driver.put does. All elements must come. */
BRC_MUST_USE int brc_ragged_out_put(brc_ragged_out *out, const brc_node_out *array, const brc_sel *box, const void *data,
                                    size_t len, brc_error *err);

typedef struct brc_ragged_writer {
    const uint64_t *chunk; /* NULL: the dataset has no chunks */
    void *ctx;
    /* Puts one item of a leaf at `to`, in its form in memory. `item` is in native order; or, of variable length,
     * `len` bytes and a zero, which last until write() returns, as does the arena. */
    int (*place)(void *ctx, const brc_ragged *leaf, const uint8_t *item, size_t len, void *to, brc_arena *arena,
                 brc_error *err);
    /* Writes the elements of a box of the dataset, packed. */
    int (*write)(void *ctx, const brc_sel *box, const void *elements, brc_error *err);
} brc_ragged_writer;

/* Writes all elements of the dataset, after all of its arrays have come. BRC_EUNSUPPORTED if lists do not follow each
 * other. */
BRC_MUST_USE int brc_ragged_out_write(brc_ragged_out *out, const brc_ragged_writer *writer, brc_error *err);

#endif
