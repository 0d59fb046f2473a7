/*
 * Reads chunks and shards as the array's codecs have them: the values of the Zarr key view, and the files of an
 * export. Stored bytes are passed on if they have that encoding, otherwise transcoded. There are three ways:
 *
 *      brc_array_get_stored(), brc_stored_chunk()   whole values in the grid's order (transfer.h)
 *      brc_stored_pieces                            chunks, and parts of shards, that were looked up, read together
 *      brc_shard_plan                               the layout of a shard without reading it, for ranges and tags
 */
#ifndef BRC_ZARR_STORED_OUT_H
#define BRC_ZARR_STORED_OUT_H

#include "../transfer.h"
#include "shard.h"

/* ---- parts -------------------------------- */

/* How the stored bytes become bytes of the array's codecs. */
enum {
    BRC_STORED_AS_IS,   /* the stored bytes are those bytes                          */
    BRC_STORED_MARKED,  /* the bytes after an opaque chunk's mark are                */
    BRC_STORED_DECODED, /* the codecs do nothing: the canonical bytes are            */
    BRC_STORED_ENCODED  /* the stored bytes have another encoding                    */
};

/* One stored chunk in the encoding of the array's codecs: the value of a key of an array without shards, or a piece
 * of a shard. */
typedef struct brc_stored_part {
    brc_object object;      /* the caller sets its id                              */
    int how;
    size_t skip;            /* stored bytes before the chunk's bytes               */
    brc_form *form;         /* NULL: the array is opaque                           */
    const brc_chain *chain; /* decodes the stored bytes; NULL: they are canonical  */
    int is_known;           /* the next two are known without reading anything     */
    uint64_t len, digest;   /* length and checksum of the bytes                    */
} brc_stored_part;

/* Looks up n parts within a transaction, whose ids are set and not zero; indexes: ndim numbers each. */
BRC_MUST_USE int brc_stored_look(brc_array *a, brc_stored_part *parts, size_t n, const uint64_t *indexes, brc_error *err);

/* ---- pieces -------------------------------- */

/*
 * Chunks and parts of shards that were looked up and are read together: the caller's thread fetches
 * them, the pool checks and transcodes them and puts them in their place. The pipe's budget bounds
 * memory in flight.
 */

typedef struct brc_stored_piece {
    brc_stored_part part; /* looked up; its length and digest are known once it has been read */
    size_t request;       /* the caller's number of the request to which it belongs */
    brc_buf *whole;       /* empty: receives all of the bytes. NULL:               */
    uint8_t *to;          /* the bytes from `start` to before `end` go here; NULL: nowhere */
    uint64_t start, end;
    int is_new;           /* its length and digest were learned now: they were unknown, or is_other */
    int is_other;
} brc_stored_piece;

typedef struct brc_stored_pieces {
    void *items; /* brc_stored_piece[] */
    size_t n, cap;
    void *indexes; /* the index in the grid of each: ndim numbers */
    size_t indexes_cap;
} brc_stored_pieces;

void brc_stored_pieces_dispose(brc_stored_pieces *pieces);
static inline brc_stored_piece *brc_stored_piece_at(const brc_stored_pieces *pieces, size_t i)
{
    return (brc_stored_piece *)pieces->items + i;
}
/* Adds a piece. The new piece has only its part; the pointer is valid until the next piece is added. */
BRC_MUST_USE int brc_stored_pieces_add(brc_stored_pieces *pieces, const brc_array *a, const brc_stored_part *part,
                                       const uint64_t *index, brc_stored_piece **out, brc_error *err);
/* Reads the pieces within a read transaction, which is paused. */
BRC_MUST_USE int brc_stored_pieces_read(brc_stored_pieces *pieces, brc_array *a, brc_error *err);

/* ---- the plan of a shard -------------------------------- */

/*
 * Parts of a shard that was never put together: the layout follows from the lengths of its inner
 * chunks, so a range needs only the chunks that it meets. An unknown length, of a chunk that is
 * stored in another encoding, is learned by encoding the chunk once, and remembered (table
 * `encoded`).
 *
 * The layout is a function of the chunks' ids, the array's codecs and those lengths: it is the same
 * for every request, and its tag identifies it.
 */

typedef struct brc_shard_plan {
    int is_planned;
    uint64_t outer[BRC_MAX_NDIM];
    uint64_t version, changes; /* of the array when the shard was planned         */
    uint64_t first[BRC_MAX_NDIM], count[BRC_MAX_NDIM]; /* its chunks in the grid  */
    brc_shard_layout layout;
    brc_oid tag;
    brc_stored_pieces missing; /* chunks whose lengths must be learned            */
    brc_id_table learned;      /* lengths that had to be learned, by the chunks' ids ... */
    brc_oid doc;               /* ... under this document's codecs                */
} brc_shard_plan;

void brc_shard_plan_dispose(brc_shard_plan *shard);
/* Plans shard `outer` within a read transaction of the array's session. Returns 1, or 0 if lengths must be learned
 * first. layout.size 0: the shard has no chunks. */
BRC_MUST_USE int brc_shard_plan_make(brc_shard_plan *shard, brc_array *a, const uint64_t *outer, brc_error *err);
/* Learns the missing lengths, or some of them, and ends the transaction: plan again in a new one. */
BRC_MUST_USE int brc_shard_plan_learn(brc_shard_plan *shard, brc_array *a, brc_error *err);
/* Writes the bytes of the planned shard from `start` to before `end`, which must be within it, to `to`: known bytes
 * at once; chunks become pieces, to be read next. Within the transaction. */
BRC_MUST_USE int brc_shard_plan_pieces(brc_shard_plan *shard, brc_array *a, uint64_t start, uint64_t end, uint8_t *to,
                                       size_t request, brc_stored_pieces *pieces, brc_error *err);
/* Settles the pieces after they were read, outside of the transaction: remembers the lengths that were learned.
 * Returns 1, or 0 if a length of the plan was wrong: the right length is known now, and the shard must be planned
 * again. For an array without shards, `shard` is an empty plan. */
BRC_MUST_USE int brc_shard_plan_settle(brc_shard_plan *shard, const brc_array *a, const brc_stored_pieces *pieces,
                                       brc_error *err);

/* Reads one part that was looked up, and ends the transaction: the bytes go into `out`, which is empty (NULL: only
 * length and digest are wanted). `plan`: the array's, which learns. */
BRC_MUST_USE int brc_stored_part_read(brc_stored_part *part, brc_array *a, const uint64_t *index, brc_buf *out,
                                      brc_shard_plan *plan, brc_error *err);

/* ---- whole values -------------------------------- */

/* Tells whether a chunk's or a shard's key exists; within a transaction. */
BRC_MUST_USE int brc_stored_exists(int *exists, brc_array *a, const uint64_t *outer, brc_error *err);
/* Reads the value of a chunk's or a shard's key within a transaction; *there is 0 if there is none. */
BRC_MUST_USE int brc_stored_chunk(brc_array *a, const uint64_t *outer, brc_buf *out, int *there, brc_error *err);

/* Returns, for progress, the approximate decoded bytes of a whole chunk and of the whole array. */
void brc_stored_bytes(const brc_array *a, uint64_t *chunk, uint64_t *all);

#endif
