/*
 * Parts of a shard that no one has put together: where everything lies follows from the lengths of
 * its inner chunks, so that a range takes only the chunks that it meets. A length that is known to
 * nobody, because the chunk is stored in another encoding, is learned by encoding it once, and
 * remembered (table `encoded`).
 *
 * The layout is a function of the chunks' ids, the array's codecs and those lengths: it is the same
 * for every request, and its tag says so.
 */
#ifndef BRC_ZARR_KEY_SHARD_H
#define BRC_ZARR_KEY_SHARD_H

#include "../base/id_table.h"
#include "key_pieces.h"
#include "shard.h"

typedef struct brc_key_shard {
    int is_planned;
    uint64_t outer[BRC_MAX_NDIM];
    uint64_t version, changes; /* of the array when it was planned                */
    uint64_t first[BRC_MAX_NDIM], count[BRC_MAX_NDIM]; /* its chunks in the grid  */
    brc_shard_layout layout;
    brc_oid tag;
    brc_key_pieces missing;    /* chunks whose lengths are to be learned          */
    brc_id_table learned;      /* lengths that had to be learned, by the chunks' ids ... */
    brc_oid doc;               /* ... under this document's codecs                */
} brc_key_shard;

/* Within a transaction: whether a chunk's or a shard's key is there. */
BRC_MUST_USE int brc_key_chunk_exists(int *exists, brc_array *a, const uint64_t *outer, brc_error *err);
void brc_key_shard_dispose(brc_key_shard *shard);
/* Plans shard `outer` within a read transaction of the array's session: 1, or 0 where lengths must be
 * learned before. layout.size 0: the shard has no chunks. */
BRC_MUST_USE int brc_key_shard_plan(brc_key_shard *shard, brc_array *a, const uint64_t *outer, brc_error *err);
/* Learns them, or some of them, and ends the transaction: plan again in a new one. */
BRC_MUST_USE int brc_key_shard_learn(brc_key_shard *shard, brc_array *a, brc_error *err);
/* Of the planned shard the bytes from `start` to before `end`, which are in it, are to be put to `to`:
 * what is known of them is there at once, and chunks become pieces, which are read next. Within
 * the transaction. */
BRC_MUST_USE int brc_key_shard_pieces(brc_key_shard *shard, brc_array *a, uint64_t start, uint64_t end, uint8_t *to,
                                      size_t request, brc_key_pieces *pieces, brc_error *err);
/* After they were read, outside of the transaction: 1; 0 where a length was wrong and is known now, so
 * that this must be planned again. */
BRC_MUST_USE int brc_key_shard_settle(brc_key_shard *shard, const brc_array *a, const brc_key_pieces *pieces, brc_error *err);

#endif
