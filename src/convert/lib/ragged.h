/*
 * Elements that are more than one array of Zarr: lists of variable length, and compounds with
 * texts, lists or references in them. One dataset of such elements is a group:
 *
 *   a list       a group of `offsets` (int64) and `values`: the list i of all, in C order, is
 *                values[offsets[i]:offsets[i+1]]
 *   a compound   a group of one node for each field, by its name
 *   an array     what it is of, with the array's axes behind those that are there
 *   a leaf       an array
 *
 * in each other as the type has them: lists of lists are `offsets`, `values/offsets` and
 * `values/values`. Outside lists an array has the dataset's axes; inside, one axis of all items,
 * one list's after the other's. What makes the dataset again is a note of the group, the
 * driver's own.
 *
 * Drivers have elements in memory: lists as hvl_t (nc_vlen_t is the same), which is brc_ragged_list.
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

/* A type in memory. Names, notes and what `own` is belong to the driver. */
typedef struct brc_ragged {
    int kind;
    const char *name;         /* of a compound's field, as the file has it               */
    size_t size, at;          /* of an element; a field's place in its compound          */
    struct brc_ragged *items; /* the fields; the one that a list or array is of          */
    size_t n;
    int ndim;                 /* of an array, or a leaf that has axes of its own         */
    uint64_t shape[BRC_MAX_NDIM];
    const char *dtype;        /* of a leaf: as in a brc_array_spec ...                   */
    const brc_dtype *type;    /* ... and opened                                          */
    const brc_json *note;     /* see brc_array_in; NULL: none                            */
    int doubtful;             /* likewise                                                */
    const void *own;
    size_t column;            /* of an export: which array has it, for ragged_out.c      */
} brc_ragged;

/* The items of an element that is an array, or a leaf with axes. */
uint64_t brc_ragged_count(const brc_ragged *type);
/* Frees the tree of types, and the structure with `self`. */
void brc_ragged_free(brc_ragged *type, int self);

/* Runs of elements of a dataset in C order, of so many bytes that they fit into memory. One whose lists
 * and texts take more than BRC_RAGGED_RUN is cut again, to one element at last. */
#define BRC_RAGGED_RUN ((size_t)64 << 20)
#define BRC_RAGGED_ELEMENT ((size_t)1 << 30) /* the most that one element may take */
#define BRC_RAGGED_LEVELS 4
typedef struct brc_ragged_runs {
    int ndim;
    uint64_t chunk[BRC_MAX_NDIM];
    size_t size;
    brc_cut cuts[BRC_RAGGED_LEVELS];
    size_t n; /* of them */
} brc_ragged_runs;
/* Starts the runs of a box whose elements have `size` bytes; chunk NULL: the array is not in chunks. */
void brc_ragged_runs_start(brc_ragged_runs *runs, const brc_sel *box, const uint64_t *chunk, size_t size);
/* 1 and the next one, which is valid until the next call, with what it may take; 0 at the end. */
int brc_ragged_runs_next(brc_ragged_runs *runs, const brc_cut **run, size_t *most);
/* The run takes more: 1, and its parts come next; 0 if it has none. */
int brc_ragged_runs_cut(brc_ragged_runs *runs);

/* The types from the whole one to the last, of which the other elements are not wanted. */
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
    int chunked;              /* as the file has it                                      */
    uint64_t chunk[BRC_MAX_NDIM];
    const char *const *names; /* of the axes; see brc_array_in                           */
    size_t weight;            /* bytes that an element counts for at least, where read() cannot bound
                                 what it takes; 0: those of its type                     */
    void *ctx;
    /* From now on only these steps are read. */
    int (*select)(void *ctx, const brc_ragged_steps *steps, brc_error *err);
    /* The elements of a box of the dataset, packed, into what is all zeros: 1; 0 where they take
     * more than `most` bytes. What they point to is valid until release() or the next read. */
    int (*read)(void *ctx, const brc_sel *box, void *elements, size_t most, brc_error *err);
    void (*release)(void *ctx);
    /* All items of an element of a leaf, appended as brc_array_in.read or read_elements gives them. */
    int (*append)(void *ctx, const brc_ragged *leaf, void *element, brc_buf *out, brc_error *err);
} brc_ragged_in;

/* The dataset as groups and arrays: documents in the first round, elements in the second. */
BRC_MUST_USE int brc_convert_ragged(brc_convert *c, const brc_ragged_in *in, brc_error *err);

/* ---- export -------------------------------- */

typedef struct brc_ragged_out brc_ragged_out;

/*
 * The dataset that a group with a driver's note stands for. *out is NULL on failure: BRC_EUNSUPPORTED
 * where the nodes in the group are not those of the type, or do not fit each other. `shape`: of the
 * note; it is replaced by that of the arrays. `note`: the note's name, for the remedy.
 */
BRC_MUST_USE int brc_ragged_out_open(brc_ragged_out **out, brc_convert *c, const brc_node_out *group,
                                     brc_ragged *type, const char *note, int ndim, uint64_t *shape,
                                     brc_error *err);
void brc_ragged_out_free(brc_ragged_out *out);
/* How many nodes follow the group's that are in it. */
size_t brc_ragged_out_nodes(const brc_ragged_out *out);
/* One of its arrays that has the dataset's axes; NULL: it has lists alone. */
const brc_node_out *brc_ragged_out_leaf(const brc_ragged_out *out);
/* Elements of one of its arrays, as brc_driver.put gets them. All must come. */
BRC_MUST_USE int brc_ragged_out_put(brc_ragged_out *out, const brc_node_out *array, const brc_sel *box, const void *data,
                                    size_t len, brc_error *err);

typedef struct brc_ragged_writer {
    const uint64_t *chunk; /* NULL: none                                                    */
    void *ctx;
    /* One item of a leaf to `to`, as memory has it. `item`: in native order; or of variable length, `len`
     * bytes and a zero, which stay until write() returns, as the arena does. */
    int (*place)(void *ctx, const brc_ragged *leaf, const uint8_t *item, size_t len, void *to, brc_arena *arena,
                 brc_error *err);
    /* The elements of a box of the dataset, packed. */
    int (*write)(void *ctx, const brc_sel *box, const void *elements, brc_error *err);
} brc_ragged_writer;

/* All elements of the dataset, when all of its arrays have come. BRC_EUNSUPPORTED where lists do not
 * lie one behind the other. */
BRC_MUST_USE int brc_ragged_out_write(brc_ragged_out *out, const brc_ragged_writer *writer, brc_error *err);

#endif
