/*
 * Writing regions: a chunk that is covered is never read; one that is covered in part is read,
 * changed in memory and written; the caller's memory is only read. All regions go through the
 * write flow as one; where they meet in a chunk, the later ones win.
 */
#ifndef BRC_ZARR_REGION_WRITE_H
#define BRC_ZARR_REGION_WRITE_H

#include "array.h"

typedef struct brc_region_write {
    brc_array *a;
    brc_region r;
    const uint8_t *src; /* elements of a fixed size, with the region's strides              */
    brc_span packed;    /* of variable length: packed, with zero strides one for all        */
    /* the caller's: what the array was when the region was described */
    brc_oid doc, storage;
    uint64_t version;
    /* its own */
    void *table;                /* of variable length: their spans, while chunks of it go through */
    uint64_t next, told, done;  /* chunks listed; bytes told to progress; chunks done        */
} brc_region_write;

/* Arrays of one repository; what is not named above is zero. turn NULL: within changes of all of them.
 * Else within reads; the result may be BRC_WRITE_ANEW or BRC_WRITE_MUCH, where nothing was stored. */
BRC_MUST_USE int brc_regions_write(brc_region_write *writes, size_t n, const brc_write_turn *turn, brc_error *err);

#endif
