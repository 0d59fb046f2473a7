/*
 * An array's chunks in the order of their keys: the map, and the uncommitted rows laid over
 * it as it goes. Nothing is held but the way to one chunk and some rows, and the file may be
 * written between two steps.
 */
#ifndef BRC_ZARR_CHUNK_CURSOR_H
#define BRC_ZARR_CHUNK_CURSOR_H

#include "../tree/map_cursor.h"
#include "array.h"
#include "frozen_rows.h"

enum { BRC_CHUNK_ROWS = 512 };

typedef struct brc_chunk_cursor {
    const brc_array *a;
    brc_map_cursor map;
    brc_arena arena;                    /* the rows' keys                         */
    brc_chunk_row page[BRC_CHUNK_ROWS]; /* some of them, by key                   */
    const brc_chunk_row *rows;          /* those, or all that are frozen          */
    size_t n, at;
    int rows_end;                       /* there is no further page               */
    size_t from_len;                    /* what comes before this key is passed over */
    uint8_t from[BRC_CHUNK_KEY_MAX];
} brc_chunk_cursor;

/* Within a transaction of either kind. brc_chunk_cursor_end() releases it, also after a
 * failure. */
BRC_MUST_USE int brc_chunk_cursor_start(brc_chunk_cursor *c, const brc_array *a, brc_error *err);
/* The same, but it begins at the first chunk that is not before this place. */
BRC_MUST_USE int brc_chunk_cursor_start_at(brc_chunk_cursor *c, const brc_array *a, const uint64_t *from, brc_error *err);
/* 1 with a chunk's place in the grid and its id, 0 at the end. */
BRC_MUST_USE int brc_chunk_cursor_next(brc_chunk_cursor *c, uint64_t *index, brc_oid *id, brc_error *err);
void brc_chunk_cursor_end(brc_chunk_cursor *c);

#endif
