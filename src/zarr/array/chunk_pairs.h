/*
 * Chunks of two versions of an array that are cut the same, in pairs: they are decoded on the pool and
 * compared there where they lie. Pairs are added one by one and worked off in batches.
 */
#ifndef BRC_ZARR_CHUNK_PAIRS_H
#define BRC_ZARR_CHUNK_PAIRS_H

#include "../../history/tree_diff.h"
#include "../../nd/box.h"
#include "../../work/session.h"
#include "../stored/shard.h"
#include "../transfer.h"
#include "array.h"

/* ---- diff sides -------------------------------- */

/* What the ways of comparing two versions of an array share. */

typedef struct brc_diff_sides {
    brc_session view;             /* of no branch: it only names the repository    */
    brc_array side[2];            /* of one rank and one data type, not opaque     */
    uint64_t shape[BRC_MAX_NDIM]; /* what both hold; no extent is 0                */
    int fills_differ;
    brc_tally *tally;
} brc_diff_sides;

/* Sets `shape` by the sides' own; 0: it is empty. */
int brc_diff_both_hold(brc_diff_sides *sides);
/* Whether chunks are cut the same within what both hold: then they are compared pair by pair. */
int brc_diff_cut_same(const brc_diff_sides *sides);

/* Compares packed elements of variable length of two boxes of `shape`, which begin at
 * `corner` of the array; only the first `count` along each axis. A side that is NULL
 * is fill value everywhere. BRC_ECORRUPT if one has another number of elements. */
BRC_MUST_USE int brc_compare_packed(brc_tally *tally, const uint64_t *corner, const uint64_t *shape,
                                    const uint64_t *count, const brc_span *x, const brc_span *y,
                                    const brc_span fills[2], brc_error *err);

/* Compares the first `count` elements along each axis of one chunk of both sides, whose type may be of either
 * kind; otherwise as brc_compare_packed(). */
BRC_MUST_USE int brc_diff_box(brc_tally *tally, const brc_diff_sides *sides, const uint64_t *corner, const uint64_t *shape,
                              const uint64_t *count, const brc_span *x, const brc_span *y, brc_error *err);

/*
 * Where the fill values differ, all elements differ that neither side has a chunk of.
 * These are counted without being read: visits are reported in row-major order, and what
 * is between them is the rest.
 */
typedef struct brc_unvisited {
    const brc_grid *grid;
    uint64_t count[BRC_MAX_NDIM];  /* of the grid's boxes within what both hold   */
    uint64_t next[BRC_MAX_NDIM];   /* after the last that was visited             */
    int at_end, any;
    uint64_t first[BRC_MAX_NDIM], last[BRC_MAX_NDIM]; /* corners of the rest, in boxes */
    uint64_t visited;              /* elements                                    */
} brc_unvisited;

void brc_unvisited_start(brc_unvisited *u, const brc_diff_sides *sides, const brc_grid *grid);
void brc_unvisited_pass(brc_unvisited *u, const uint64_t *index, uint64_t elements);
/* Adds the rest to the tally. */
void brc_unvisited_end(brc_unvisited *u, brc_diff_sides *sides);

/* What both hold of one box of a grid: where it begins, its extent, and what is compared.
 * Gives the number of elements that are. */
uint64_t brc_diff_overlap(const brc_diff_sides *sides, const brc_grid *grid, const uint64_t *index,
                          uint64_t *corner, uint64_t *shape, uint64_t *count);
/* 1 if a box of the grid meets what both hold. */
int brc_diff_meets(const brc_diff_sides *sides, const brc_grid *grid, const uint64_t *index);

/* ---- chunk pairs -------------------------------- */

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

/* ---- chunk pull -------------------------------- */

/* Stored chunks one after the other as a source gives them, those of a shard singly. Shards are
 * read ahead, and taken apart on the pool. */

typedef struct brc_chunk_pull {
    brc_array *a;      /* for messages, and for the flow that it feeds               */
    const brc_meta *m; /* what the source's chunks are: their grid, their shards     */
    const brc_chunk_source *source;
    /* its own */
    int ended;         /* the source has come to its end, or failed:                 */
    int rc;            /* with this, to be told after the shards before it           */
    brc_error error;
    struct brc_pulled_shard *shards; /* a ring of them, in order                     */
    brc_group *group;
    size_t nshards, first, n; /* places; the first that is in use; how many are      */
    size_t held, largest;     /* bytes of those that are in use, and of one so far   */
    size_t next_part;         /* of the first                                        */
} brc_chunk_pull;

/* Caller's thread: 1 with the next chunk of m->grid, its bytes appended to `stored`; 0 at
 * the end, then and ever after. BRC_EINVAL if the source names what is outside the grid. */
BRC_MUST_USE int brc_chunk_pull_next(brc_chunk_pull *pull, uint64_t *index, brc_buf *stored, brc_error *err);
/* What it may hold of the pipe's budget. */
size_t brc_chunk_pull_held(const brc_chunk_pull *pull);
/* Waits for what is on the pool. */
void brc_chunk_pull_dispose(brc_chunk_pull *pull);

/* ---- same chunks -------------------------------- */

/*
 * Chunks that two versions store differently, but whose elements are the same: a chunk of nothing but the
 * fill value, which a client has set, beside none; and chunks that differ only in their padding, which is
 * what a chunk holds beyond the array's end.
 */

/* Takes such chunks off the counts of a change. What is left of the change may be a difference in storage alone.
 * Decodes only chunks that the array's end cuts, of those that differ; chunks that cannot be decoded here, or that
 * are cut into other chunks, are compared by their ids. Within a read. */
BRC_MUST_USE int brc_same_chunks_discount(brc_node_change *change, breccia *repo, brc_error *err);

#endif
