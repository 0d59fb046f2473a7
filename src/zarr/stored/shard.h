/*
 * Shards: splits them into stored chunks, and puts them together again.
 *
 * A shard is its inner chunks, in any order, with or without gaps, and an index at its start or
 * end: an array of uint64 of shape (chunks along each axis..., 2) that holds each chunk's offset
 * from the shard's first byte, and its length; both are 2^64 - 1 if the chunk is absent. Index
 * codecs encode the index to a length that is known in advance. In a nested shard the inner chunk
 * is a shard.
 */
#ifndef BRC_ZARR_SHARD_H
#define BRC_ZARR_SHARD_H

#include "../array/array.h"

/* Returns the box of an outer chunk's stored chunks, also of those beyond the array's grid: its first index, and
 * the count along each axis and in all. BRC_ELIMIT if the count overflows. */
BRC_MUST_USE int brc_outer_box(const brc_meta *meta, const uint64_t *outer, uint64_t *first, uint64_t *count, uint64_t *n,
                               brc_error *err);
/* Convert between an index in such a box and its number in C order. */
uint64_t brc_part_number(int ndim, const uint64_t *first, const uint64_t *count, const uint64_t *index);
void brc_part_index(int ndim, const uint64_t *first, const uint64_t *count, uint64_t number, uint64_t *index);

/* ---- shard chunks -------------------------------- */

/*
 * The chunks of a shard, including those beyond the array's grid: a client that sets a smaller
 * shape through the key view leaves these where they are, as the shards of a directory do.
 */

typedef struct brc_shard_chunk {
    uint64_t number; /* in the shard: brc_part_number() */
    brc_oid id;
} brc_shard_chunk;

typedef struct brc_shard_chunks {
    uint64_t first[BRC_MAX_NDIM], count[BRC_MAX_NDIM]; /* the box of the shard's chunks */
    void *items;                /* brc_shard_chunk[], in the grid's order                 */
    size_t n, cap;
} brc_shard_chunks;

/* Finds the chunks within a transaction, in the order of their numbers. For an array without shards, `outer` is a
 * chunk and its only place. */
BRC_MUST_USE int brc_shard_chunks_find(brc_shard_chunks *out, brc_array *a, const uint64_t *outer, brc_error *err);
void brc_shard_chunks_dispose(brc_shard_chunks *chunks);

/* ---- taking apart -------------------------------- */

/* One stored chunk of a shard, by its index in the array's grid. */
typedef struct brc_shard_part {
    uint64_t index[BRC_MAX_NDIM];
    brc_span bytes; /* within the shard's bytes */
} brc_shard_part;

typedef struct brc_shard_parts {
    void *items; /* brc_shard_part[] */
    size_t n, cap;
} brc_shard_parts;

/* Lists the chunks that shard `outer` holds, also those beyond the array's grid. BRC_ECORRUPT if the index
 * contradicts the bytes. */
BRC_MUST_USE int brc_shard_split(brc_shard_parts *out, const brc_meta *meta, brc_scratch *scratch,
                                 const uint64_t *outer, brc_span bytes, brc_error *err);

/* ---- putting together -------------------------------- */

/* A piece of a shard to put together: an inner chunk, or an index. */
typedef struct brc_shard_slot {
    uint64_t at, len; /* its offset and length in the shard                       */
    uint64_t part;    /* for a chunk: its `from`; for an index: the offset of its bytes in
                       * brc_shard_layout.indexes */
    int is_index;
} brc_shard_slot;

/* The layout of a shard: chunks in the grid's order, without gaps. It depends only on the array's codecs and the
 * chunks' lengths. */
typedef struct brc_shard_layout {
    uint64_t size;   /* of the shard; 0: the shard has no chunks                  */
    void *slots;     /* brc_shard_slot[], sorted by `at`                          */
    size_t n, cap;
    brc_buf indexes; /* the encoded indexes                                       */
} brc_shard_layout;

/* An inner chunk of a shard that is laid out. */
typedef struct brc_shard_inner {
    uint64_t number; /* in the shard: brc_part_number()                    */
    uint64_t len;    /* of its bytes, as the array's codecs encode it      */
    uint64_t from;   /* the caller's number for its slot                   */
} brc_shard_inner;

/* Lays out a shard of n inner chunks, which are in the order of their numbers. */
BRC_MUST_USE int brc_shard_lay_out(brc_shard_layout *out, const brc_meta *meta, brc_scratch *scratch,
                                   const uint64_t *outer, const brc_shard_inner *inner, size_t n, brc_error *err);
void brc_shard_layout_dispose(brc_shard_layout *layout);

#endif
