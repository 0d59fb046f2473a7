/*
 * Chunks of two versions of an array that are cut the same, in pairs: they are decoded on the pool and
 * compared there where they lie. Pairs are added one by one and worked off in batches.
 */
#ifndef BRC_ZARR_CHUNK_PAIRS_H
#define BRC_ZARR_CHUNK_PAIRS_H

#include "diff_sides.h"

#define BRC_PAIR_BATCH 512

typedef struct brc_chunk_pair {
    uint64_t index[BRC_MAX_NDIM];
    int there[2];            /* which sides have a chunk: at least one     */
    brc_object object[2];    /* `id` is set where it is there              */
    brc_tally tally;         /* empty at first; for compare() to write to  */
} brc_chunk_pair;

typedef struct brc_pair_ops {
    void *ctx;
    /* On a worker: the decoded chunks; NULL: the side has none, and is its fill value everywhere. */
    int (*compare)(const brc_diff_sides *sides, brc_chunk_pair *pair, const brc_span *x, const brc_span *y, brc_error *err);
    /* On the caller's thread, afterwards. */
    void (*done)(void *ctx, const brc_chunk_pair *pair);
} brc_pair_ops;

typedef struct brc_pairs brc_pairs;

/* `sides` and `ops` are borrowed. Within a read of the store. */
BRC_MUST_USE int brc_pairs_new(brc_pairs **out, brc_diff_sides *sides, const brc_pair_ops *ops, brc_error *err);
BRC_MUST_USE int brc_pairs_add(brc_pairs *pairs, const brc_chunk_pair *pair, brc_error *err);
/* Those that are left. */
BRC_MUST_USE int brc_pairs_end(brc_pairs *pairs, brc_error *err);
void brc_pairs_free(brc_pairs *pairs);

/* What the chunk maps of both sides say of one key; data NULL: nothing. */
BRC_MUST_USE int brc_pair_read(brc_chunk_pair *pair, const brc_diff_sides *sides, brc_span key, brc_span a, brc_span b,
                               brc_error *err);

#endif
