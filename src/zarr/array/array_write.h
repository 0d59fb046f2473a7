/*
 * Changes of arrays for which chunks are decoded and encoded: writing, growing and appending.
 *
 * A small change is prepared without a lock and stored in one transaction, if the arrays still are what they were
 * when it was described (store/change.h); else it is described again. A larger one is a bulk write
 * (bulk_write.h). Within brc_begin() and brc_end(), and within a bulk write of the caller's, it is a part of that.
 */
#ifndef BRC_ZARR_ARRAY_WRITE_H
#define BRC_ZARR_ARRAY_WRITE_H

#include "../../flow/write.h"
#include "array.h"
#include "region.h"

/* ---- array change -------------------------------- */

/* What an array was when a change of it was described. */
typedef struct brc_array_state {
    brc_oid doc, storage;
    uint64_t version;
} brc_array_state;

typedef struct brc_array_change {
    brc_array *const *arrays; /* n of one repository */
    brc_array_state *states;  /* room for n          */
    size_t n;
    void *ctx;
    /* Within a read: what is to be done with the arrays as they are now. BRC_OK: the functions below;
     * BRC_CHANGE_NONE, _MUCH (a bulk write), or _OTHER, which the caller gets. */
    int (*plan)(void *ctx, brc_error *err);
    /* Within a read: the chunks, as brc_flow_prepare() has it. NULL in *out: there are none. */
    int (*prepare)(void *ctx, brc_prepared **out, brc_error *err);
    /* In the transaction that stores: before the first chunk, and behind the last. NULL: nothing. */
    int (*before)(void *ctx, brc_error *err);
    int (*behind)(void *ctx, brc_error *err);
    /* Does everything within changes of the arrays that have begun. */
    int (*within)(void *ctx, brc_error *err);
    const char *task; /* what progress calls it; NULL: nothing */
    uint64_t bytes;   /* plan() sets it: for progress          */
    /* its own */
    brc_prepared *prepared;
    int is_described; /* `prepared` and `states` are of the arrays as they were last */
    int is_task;
    brc_task running;
} brc_array_change;

/* Of more bytes than this a bulk write that meets others' changes ends with BRC_ECONFLICT at last;
 * a smaller one locks them out. */
#define BRC_LOCKED_BYTES ((uint64_t)16 << 20)
/* What chunks take in memory, decoded and encoded, if they are stored together. One may take more. */
#define BRC_SMALL_BYTES ((uint64_t)16 << 20)

BRC_MUST_USE int brc_array_change_run(brc_array_change *c, brc_error *err);
/* One try of a change in steps: change() is a bulk write. BRC_CHANGE_AGAIN: others' changes are in the way; with
 * `insists` that is BRC_ECONFLICT or BRC_ESTALE, and the draft stays. */
BRC_MUST_USE int brc_array_bulk_change(brc_array *a, int insists, int (*change)(void *ctx, brc_error *err), void *ctx,
                                       brc_error *err);

/* ---- region write -------------------------------- */

/*
 * Writing regions: a chunk that is covered is never read; one that is covered in part is read,
 * changed in memory and written; the caller's memory is only read. All regions go through the
 * write flow as one; where they meet in a chunk, the later ones win.
 */

typedef struct brc_region_write {
    brc_array *a;
    brc_region r;
    const uint8_t *src; /* elements of a fixed size, with the region's strides              */
    brc_span packed;    /* of variable length: packed, with zero strides one for all        */
    const uint64_t *keep; /* NULL, or: what chunks have past it, along any axis, is no more */
    /* its own */
    void *table;                /* of variable length: their spans, while chunks of it go through */
    uint64_t next, told, done;  /* chunks listed; bytes told to progress; chunks done        */
} brc_region_write;

/* Describes one. shape NULL: the array's; it stays the caller's. */
BRC_MUST_USE int brc_region_write_of(brc_region_write *rw, const brc_io *io, const uint64_t *shape, brc_error *err);
/* What so many chunks of an array take in memory, decoded and encoded. */
uint64_t brc_chunks_memory(const brc_array *a, uint64_t chunks);
/* One element everywhere in a chunk that is past `keep` along any axis: `elements` are those of the chunk. */
void brc_fill_past(const brc_array *a, const uint64_t *index, const uint64_t *keep, void *elements, size_t unit,
                   const void *fill);

/* Arrays of one repository; what is not named above is zero. Within changes of all of them. */
BRC_MUST_USE int brc_regions_write(brc_region_write *writes, size_t n, brc_error *err);
/* The same as brc_flow_prepare(). `writer` is its memory, and the writes stay where they are until it is freed. */
typedef struct brc_region_writer {
    brc_region_write *writes;
    size_t n, at;
    void *on_the_way; /* of tsearch(): items that are not done, by chunk; of several regions */
    int is_prepared;  /* ahead of the changes of the arrays                                  */
} brc_region_writer;
BRC_MUST_USE int brc_regions_prepare(brc_prepared **out, brc_region_writer *writer, brc_region_write *writes, size_t n,
                                     brc_error *err);
/* After brc_prepared_free(). */
void brc_regions_end(brc_region_writer *writer);

#endif
