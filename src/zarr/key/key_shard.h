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

#include "../../base/hash.h"
#include "../stored/shard.h"
#include "key_part.h"

/* ---- key pieces -------------------------------- */

/*
 * Chunks and parts of shards that were looked up, and are read together: fetched by the caller's thread,
 * checked and transcoded on the pool, and put where they belong. Memory in flight is bounded by the pipe's budget.
 */

typedef struct brc_key_piece {
    brc_key_part part;   /* looked up; when it has been read, its length and digest are known */
    size_t request;      /* the caller's: what it belongs to                       */
    brc_buf *whole;      /* all of its bytes are appended here; NULL:              */
    uint8_t *to;         /* those from `start` to before `end`; NULL: nowhere      */
    uint64_t start, end;
    int is_new;          /* its length, or that it is another than was thought: then nothing
                            is put to `to`                                         */
    int is_other;
} brc_key_piece;

typedef struct brc_key_pieces {
    void *items; /* brc_key_piece[] */
    size_t n, cap;
    void *indexes; /* of each its place in the grid: ndim numbers */
    size_t indexes_cap;
} brc_key_pieces;

void brc_key_pieces_dispose(brc_key_pieces *pieces);
static inline brc_key_piece *brc_key_piece_at(const brc_key_pieces *pieces, size_t i)
{
    return (brc_key_piece *)pieces->items + i;
}
/* The new one has nothing but its part; it is there until the next one comes. */
BRC_MUST_USE int brc_key_pieces_add(brc_key_pieces *pieces, const brc_array *a, const brc_key_part *part,
                                    const uint64_t *index, brc_key_piece **out, brc_error *err);
/* Within a read transaction, which is paused. */
BRC_MUST_USE int brc_key_pieces_read(brc_key_pieces *pieces, brc_array *a, brc_error *err);

/* ---- key shard -------------------------------- */

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
