/*
 * The uncommitted chunks of an array as they were at one moment: what a read that takes several
 * batches sees, whoever writes meanwhile. Its map needs none of this: it never changes.
 */
#ifndef BRC_ZARR_FROZEN_ROWS_H
#define BRC_ZARR_FROZEN_ROWS_H

#include "../base/arena.h"
#include "../store/store.h"

typedef struct brc_chunk_row {
    brc_span key;
    brc_oid id; /* zero: dropped */
} brc_chunk_row;

typedef struct brc_frozen_rows {
    brc_arena arena;   /* the rows' keys */
    void *rows;        /* brc_chunk_row[], by key */
    size_t n, cap;
} brc_frozen_rows;

/* Within one transaction. *all 0: there are more than `most`, and none was kept. */
BRC_MUST_USE int brc_frozen_rows_read(brc_frozen_rows *out, brc_store *store, const brc_draft_stack *stack, size_t most,
                                      int *all, brc_error *err);
void brc_frozen_rows_dispose(brc_frozen_rows *rows);
/* NULL: none of this key. */
const brc_chunk_row *brc_frozen_rows_find(const brc_frozen_rows *rows, const void *key, size_t len);
/* In the order of the map's keys. */
int brc_chunk_key_order(brc_span a, brc_span b);

#endif
