/*
 * A change of one array for which chunks are decoded and encoded, and its document is set: growing
 * and appending.
 *
 * As with a write (array_write.c), a small one is prepared without a lock and stored in one
 * transaction, if the array is still the one that was described; else it is made anew. A larger one
 * is a bulk write. After a few tries that met others' changes it locks them out. Within brc_begin()
 * and brc_end(), and within a bulk write of the caller's, it is a part of that.
 */
#ifndef BRC_ZARR_ARRAY_WRITE_H
#define BRC_ZARR_ARRAY_WRITE_H

#include "array.h"
#include "region.h"

/* ---- array turn -------------------------------- */

enum { BRC_TURN_OTHER = 3 };

typedef struct brc_array_turn {
    brc_array *a;
    void *ctx;
    /* Within a read: what is to be done with the array as it is now. 0: nothing; 1: the functions
     * below; BRC_WRITE_MUCH: a bulk write; BRC_TURN_OTHER: that is what the caller gets. */
    int (*plan)(void *ctx, brc_error *err);
    /* What flow writes; `turn` as it is for brc_flow_write(). */
    int (*write)(void *ctx, const brc_write_turn *turn, brc_error *err);
    /* In the transaction that stores: before the first chunk, and behind the last. */
    int (*before)(void *ctx, brc_error *err);
    int (*behind)(void *ctx, brc_error *err);
    /* All of it, within a change of the array that has begun. */
    int (*within)(void *ctx, brc_error *err);
    const char *task; /* what progress calls it; NULL: nothing */
    uint64_t bytes;   /* plan() sets it: for progress                              */
    /* its own */
    brc_oid doc, storage;
    uint64_t version;
    int reading, begun, is_task;
} brc_array_turn;

/* Of more elements than this a bulk write that meets others' changes ends with BRC_ECONFLICT at last;
 * a smaller one locks them out. */
#define BRC_TURN_BYTES ((uint64_t)16 << 20)
/* What chunks take in memory, decoded and encoded, if they are stored together. One may take more. */
#define BRC_SMALL_BYTES ((uint64_t)16 << 20)

BRC_MUST_USE int brc_array_take_turn(brc_array_turn *t, brc_error *err);

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
    /* the caller's: what the array was when the region was described */
    brc_oid doc, storage;
    uint64_t version;
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

/* Arrays of one repository; what is not named above is zero. turn NULL: within changes of all of them.
 * Else within reads; the result may be BRC_WRITE_ANEW or BRC_WRITE_MUCH, where nothing was stored. */
BRC_MUST_USE int brc_regions_write(brc_region_write *writes, size_t n, const brc_write_turn *turn, brc_error *err);

#endif
