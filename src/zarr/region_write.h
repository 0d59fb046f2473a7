/*
 * Writing regions: a chunk that is covered is never read; one that is covered in part is read,
 * changed in memory and written; the caller's memory is only read. All regions go through the
 * write flow as one; where they meet in a chunk, the later ones win.
 */
#ifndef BRC_ZARR_REGION_WRITE_H
#define BRC_ZARR_REGION_WRITE_H

#include "region.h"

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
