/*
 * Shards: taken apart into what is stored, and put together again.
 *
 * A shard is its inner chunks, in any order, with gaps or without, and an index at
 * its start or end: an array of uint64 of shape (chunks along each axis..., 2) that
 * holds each chunk's offset from the shard's first byte, and its length; both are
 * 2^64 - 1 if it is absent. Index codecs encode the index, to a length that is
 * known. In a nested shard the inner chunk is a shard.
 */
#ifndef BRC_ZARR_SHARD_H
#define BRC_ZARR_SHARD_H

#include "array.h"

/* One stored chunk of a shard, by its index in the array's grid. */
typedef struct brc_shard_part {
    uint64_t index[BRC_MAX_NDIM];
    brc_span bytes; /* within the shard's */
} brc_shard_part;

typedef struct brc_shard_parts {
    void *items; /* brc_shard_part[] */
    size_t n, cap;
} brc_shard_parts;

/* Lists the chunks that shard `outer` holds and that meet the array. BRC_ECORRUPT
 * if the index contradicts the bytes. */
BRC_MUST_USE int brc_shard_split(brc_shard_parts *out, const brc_meta *meta, brc_scratch *scratch,
                                 const uint64_t *outer, brc_span bytes, brc_error *err);

/* Puts a shard together: `get` fills `out` with a chunk's bytes, or leaves *there 0.
 * The shard is empty (len 0) where no chunk is there. */
typedef int (*brc_shard_get_fn)(void *ctx, const uint64_t *index, brc_buf *out, int *there,
                                brc_error *err);
BRC_MUST_USE int brc_shard_build(brc_buf *out, const brc_meta *meta, brc_scratch *scratch,
                                 const uint64_t *outer, brc_shard_get_fn get, void *ctx,
                                 brc_error *err);

#endif
