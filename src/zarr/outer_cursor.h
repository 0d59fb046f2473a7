/*
 * What Zarr's keys name and is not empty, in the grid's order: chunks, or shards, each
 * once. Nothing is held but the way to one chunk and, of shards, the places of those of one row
 * along the first axis, at most twice: their chunks come in runs that the keys of others are between.
 */
#ifndef BRC_ZARR_OUTER_CURSOR_H
#define BRC_ZARR_OUTER_CURSOR_H

#include "chunk_cursor.h"

typedef struct brc_outer_cursor {
    brc_chunk_cursor chunks;
    uint64_t ratio[BRC_MAX_NDIM]; /* chunks in a shard along each axis               */
    uint64_t next[BRC_MAX_NDIM];  /* shard of the chunk that comes next              */
    int has_next;
    void *row;                    /* uint64_t[]: shards of a row, ndim numbers each  */
    size_t n, cap, at, tidy_at;
} brc_outer_cursor;

/* Within a transaction. brc_outer_cursor_end() releases it, also after a failure. `from`: it begins
 * at the first chunk that is not before this place, or with this row of shards; NULL: at the first
 * of all. */
BRC_MUST_USE int brc_outer_cursor_start(brc_outer_cursor *c, const brc_array *a, const uint64_t *from, brc_error *err);
/* 1 with the next place, and of a chunk its id (of a shard the zero id); 0 at the end. */
BRC_MUST_USE int brc_outer_cursor_next(brc_outer_cursor *c, uint64_t *outer, brc_oid *id, brc_error *err);
void brc_outer_cursor_end(brc_outer_cursor *c);

#endif
