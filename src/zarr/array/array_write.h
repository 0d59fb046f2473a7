/*
 * Changes of arrays that decode and encode chunks: writing, growing and appending.
 *
 * A small change is prepared without a lock and stored in one transaction if the arrays are still
 * as they were when the change was described (store/change.h); otherwise the change is described
 * again. A larger change is a bulk write (bulk_write.h). Within brc_begin() and brc_end(), or
 * within the caller's bulk write, the change is part of that.
 */
#ifndef BRC_ZARR_ARRAY_WRITE_H
#define BRC_ZARR_ARRAY_WRITE_H

#include "../../flow/write.h"
#include "array.h"
#include "region.h"

/* ---- array change -------------------------------- */

/* The state of an array when a change of it was described. */
typedef struct brc_array_state {
    brc_oid doc, storage;
    uint64_t version;
} brc_array_state;

typedef struct brc_array_change {
    brc_array *const *arrays; /* n of one repository */
    brc_array_state *states;  /* room for n          */
    size_t n;
    void *ctx;
    /* Plans, within a read, what to do with the arrays as they are now. BRC_OK: the functions below are called;
     * BRC_CHANGE_NONE, BRC_CHANGE_MUCH (a bulk write), or BRC_CHANGE_OTHER, which is returned to the caller. */
    int (*plan)(void *ctx, brc_error *err);
    /* Prepares the chunks within a read, as brc_flow_prepare() does. *out NULL: there are none. */
    int (*prepare)(void *ctx, brc_prepared **out, brc_error *err);
    /* Called in the transaction that stores, before the first chunk and after the last. NULL: nothing to do. */
    int (*before)(void *ctx, brc_error *err);
    int (*behind)(void *ctx, brc_error *err);
    /* Does everything within changes of the arrays that have begun. */
    int (*within)(void *ctx, brc_error *err);
    const char *task; /* its name for progress; NULL: none */
    uint64_t bytes;   /* set by plan(), for progress           */
    /* private */
    brc_prepared *prepared;
    int is_described; /* `prepared` and `states` describe the arrays as they were last */
    int is_task;
    brc_task running;
} brc_array_change;

/* A bulk write of more bytes than this that meets changes of others finally ends with BRC_ECONFLICT; a smaller one
 * locks others out. */
#define BRC_LOCKED_BYTES ((uint64_t)16 << 20)
/* The memory that chunks may take, decoded and encoded, to be stored together. A single chunk may take more. */
#define BRC_SMALL_BYTES ((uint64_t)16 << 20)

BRC_MUST_USE int brc_array_change_run(brc_array_change *c, brc_error *err);
/* Tries once to make a change in steps: change() is a bulk write. BRC_CHANGE_AGAIN: changes of others conflict;
 * with `insists` that is BRC_ECONFLICT or BRC_ESTALE, and the draft stays. */
BRC_MUST_USE int brc_array_bulk_change(brc_array *a, int insists, int (*change)(void *ctx, brc_error *err), void *ctx,
                                       brc_error *err);

/* ---- region write -------------------------------- */

/*
 * Writes regions. A fully covered chunk is never read; a partly covered one is read, changed in
 * memory and written; the caller's memory is only read. All regions go through the write flow
 * together; if several meet in a chunk, later ones win.
 */

typedef struct brc_region_write {
    brc_array *a;
    brc_region r;
    const uint8_t *src; /* elements of a fixed size, with the region's strides              */
    brc_span packed;    /* of variable length: packed; with zero strides one for all        */
    struct brc_device *device; /* that has the memory, if the processor does not reach it: src is then NULL */
    uint8_t *held;      /* positions in such memory: their elements, packed                 */
    brc_buffer_stats *stats; /* NULL: nothing is counted                                      */
    const uint64_t *keep; /* NULL, or: elements of chunks past it, along any axis, are cleared */
    /* private */
    void *table;                /* of variable length: their spans, while chunks of it are written */
    uint64_t next, told, done;  /* chunks listed; bytes reported to progress; chunks done    */
} brc_region_write;

/* Describes one write. shape NULL: the array's; the caller keeps ownership of the shape. */
BRC_MUST_USE int brc_region_write_of(brc_region_write *rw, const brc_io *io, const uint64_t *shape, brc_error *err);
/* Returns the memory that this many chunks of an array take, decoded and encoded. */
uint64_t brc_chunks_memory(const brc_array *a, uint64_t chunks);
/* Sets all elements of a chunk that are past `keep` along any axis to one element; `elements` are those of the
 * chunk. */
void brc_fill_past(const brc_array *a, const uint64_t *index, const uint64_t *keep, void *elements, size_t unit,
                   const void *fill);

/* Writes to arrays of one repository, within changes of all of them. Members that are not named above must be
 * zero. */
BRC_MUST_USE int brc_regions_write(brc_region_write *writes, size_t n, brc_error *err);
/* Prepares as brc_flow_prepare() does. `writer` holds its memory; the writes must stay where they are until it is
 * freed. */
typedef struct brc_region_writer {
    brc_region_write *writes;
    size_t n, at;
    void *on_the_way; /* of tsearch(): unfinished items by chunk; only with several regions */
    int is_prepared;  /* before the changes of the arrays begin                              */
} brc_region_writer;
BRC_MUST_USE int brc_regions_prepare(brc_prepared **out, brc_region_writer *writer, brc_region_write *writes, size_t n,
                                     brc_error *err);
/* Call after brc_prepared_free(). */
void brc_regions_end(brc_region_writer *writer);

#endif
