/*
 * Parts of a shard that was never put together: the layout follows from the lengths of its inner
 * chunks, so a range needs only the chunks that it meets. An unknown length, of a chunk that is
 * stored in another encoding, is learned by encoding the chunk once, and remembered (table
 * `encoded`).
 *
 * The layout is a function of the chunks' ids, the array's codecs and those lengths: it is the same
 * for every request, and its tag identifies it.
 */
#ifndef BRC_ZARR_KEY_SHARD_H
#define BRC_ZARR_KEY_SHARD_H

#include "../../base/hash.h"
#include "../stored/shard.h"
#include "key_part.h"

/* ---- key pieces -------------------------------- */

/*
 * Chunks and parts of shards that were looked up and are read together: the caller's thread fetches
 * them, the pool checks and transcodes them and puts them in their place. The pipe's budget bounds
 * memory in flight.
 */

typedef struct brc_key_piece {
    brc_key_part part;   /* looked up; its length and digest are known once it has been read */
    size_t request;      /* the caller's number of the request to which it belongs */
    brc_buf *whole;      /* all of its bytes are appended here; NULL:              */
    uint8_t *to;         /* its bytes from `start` to before `end` go here; NULL: nowhere */
    uint64_t start, end;
    int is_new;          /* its length and digest were learned now: they were unknown, or is_other */
    int is_other;
} brc_key_piece;

typedef struct brc_key_pieces {
    void *items; /* brc_key_piece[] */
    size_t n, cap;
    void *indexes; /* the index in the grid of each: ndim numbers */
    size_t indexes_cap;
} brc_key_pieces;

void brc_key_pieces_dispose(brc_key_pieces *pieces);
static inline brc_key_piece *brc_key_piece_at(const brc_key_pieces *pieces, size_t i)
{
    return (brc_key_piece *)pieces->items + i;
}
/* Adds a piece. The new piece has only its part; the pointer is valid until the next piece is added. */
BRC_MUST_USE int brc_key_pieces_add(brc_key_pieces *pieces, const brc_array *a, const brc_key_part *part,
                                    const uint64_t *index, brc_key_piece **out, brc_error *err);
/* Reads the pieces within a read transaction, which is paused. */
BRC_MUST_USE int brc_key_pieces_read(brc_key_pieces *pieces, brc_array *a, brc_error *err);

/* ---- key shard -------------------------------- */

typedef struct brc_key_shard {
    int is_planned;
    uint64_t outer[BRC_MAX_NDIM];
    uint64_t version, changes; /* of the array when the shard was planned         */
    uint64_t first[BRC_MAX_NDIM], count[BRC_MAX_NDIM]; /* its chunks in the grid  */
    brc_shard_layout layout;
    brc_oid tag;
    brc_key_pieces missing;    /* chunks whose lengths must be learned            */
    brc_id_table learned;      /* lengths that had to be learned, by the chunks' ids ... */
    brc_oid doc;               /* ... under this document's codecs                */
} brc_key_shard;

/* Tells whether a chunk's or a shard's key exists; within a transaction. */
BRC_MUST_USE int brc_key_chunk_exists(int *exists, brc_array *a, const uint64_t *outer, brc_error *err);
void brc_key_shard_dispose(brc_key_shard *shard);
/* Plans shard `outer` within a read transaction of the array's session. Returns 1, or 0 if lengths must be learned
 * first. layout.size 0: the shard has no chunks. */
BRC_MUST_USE int brc_key_shard_plan(brc_key_shard *shard, brc_array *a, const uint64_t *outer, brc_error *err);
/* Learns the missing lengths, or some of them, and ends the transaction: plan again in a new one. */
BRC_MUST_USE int brc_key_shard_learn(brc_key_shard *shard, brc_array *a, brc_error *err);
/* Writes the bytes of the planned shard from `start` to before `end`, which must be within it, to `to`: known bytes
 * at once; chunks become pieces, to be read next. Within the transaction. */
BRC_MUST_USE int brc_key_shard_pieces(brc_key_shard *shard, brc_array *a, uint64_t start, uint64_t end, uint8_t *to,
                                      size_t request, brc_key_pieces *pieces, brc_error *err);
/* Settles the pieces after they were read, outside of the transaction. Returns 1, or 0 if a length was wrong: the
 * right length is known now, and the shard must be planned again. */
BRC_MUST_USE int brc_key_shard_settle(brc_key_shard *shard, const brc_array *a, const brc_key_pieces *pieces, brc_error *err);

#endif
