/*
 * The chunks that a shard has, those that lie beyond the array's grid among them: a smaller shape that
 * a client sets through the key view leaves these where they are, as the shards of a directory do.
 */
#ifndef BRC_ZARR_SHARD_CHUNKS_H
#define BRC_ZARR_SHARD_CHUNKS_H

#include "shard.h"

typedef struct brc_shard_chunk {
    uint64_t number; /* in the shard: brc_part_number() */
    brc_oid id;
} brc_shard_chunk;

typedef struct brc_shard_chunks {
    uint64_t first[BRC_MAX_NDIM], count[BRC_MAX_NDIM]; /* the shard's places            */
    uint64_t end[BRC_MAX_NDIM]; /* no chunk lies there or further along the axis          */
    void *items;                /* brc_shard_chunk[], in the grid's order                 */
    size_t n, cap;
} brc_shard_chunks;

/* Within a transaction. Of an array without shards, `outer` is a chunk and its only place. */
BRC_MUST_USE int brc_shard_chunks_find(brc_shard_chunks *out, brc_array *a, const uint64_t *outer, brc_error *err);
void brc_shard_chunks_dispose(brc_shard_chunks *chunks);

#endif
