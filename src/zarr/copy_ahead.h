/*
 * Copying nodes that have very many uncommitted chunks. A copy has chunk rows of its own, and
 * millions of them are more than one transaction may write. So those of large arrays are copied
 * ahead, some in each transaction, into a private draft that nobody else reads; the last
 * transaction takes these rows, and copies what others have written over the old ones meanwhile
 * (fold_ahead.c says why the rest is as it was). Where it fails the draft is dropped; a killed
 * process leaves it, with a dead owner.
 */
#ifndef BRC_ZARR_COPY_AHEAD_H
#define BRC_ZARR_COPY_AHEAD_H

#include "session.h"

typedef struct brc_copies {
    brc_draft_copying rows;
    int64_t draft; /* that has them; 0: none was needed */
} brc_copies;

/* Outside of a transaction: the rows at and under `from`, for a copy at `to`. */
BRC_MUST_USE int brc_copy_ahead(brc_session *s, const char *from, const char *to, brc_copies *copies, brc_error *err);
/* Drops what was not taken. */
void brc_copies_drop(brc_session *s, brc_copies *copies);

#endif
