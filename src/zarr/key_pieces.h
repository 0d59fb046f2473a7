/*
 * Chunks and parts of shards that were looked up, and are read together: fetched by the caller's thread,
 * checked and transcoded on the pool, and put where they belong. Memory in flight is bounded by the pipe's budget.
 */
#ifndef BRC_ZARR_KEY_PIECES_H
#define BRC_ZARR_KEY_PIECES_H

#include "key_part.h"

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
/* Lengths that are new, in the derived table. Outside of the transaction. */
BRC_MUST_USE int brc_key_pieces_remember(const brc_key_pieces *pieces, const brc_array *a, brc_error *err);

#endif
