/*
 * Compares chunks of two versions of an array that are cut the same, in pairs: the pool decodes
 * both chunks and compares them in place. Pairs are added one by one and processed in batches.
 */
#ifndef BRC_ZARR_CHUNK_PAIRS_H
#define BRC_ZARR_CHUNK_PAIRS_H

#include "../../history/tree_diff.h"
#include "../../nd/box.h"
#include "../../work/session.h"
#include "array.h"

/* ---- diff sides -------------------------------- */

/* The state that all ways of comparing two versions of an array share. */

typedef struct brc_diff_sides {
    brc_session view;             /* has no branch: only names the repository      */
    brc_array side[2];            /* of one rank and one data type, not opaque     */
    uint64_t shape[BRC_MAX_NDIM]; /* the extent that both sides hold; never 0      */
    int fills_differ;             /* elements without a chunk differ               */
    brc_tally *tally;
    const brc_wanted *wanted;     /* of all tallies; NULL: brc_tally_want() is not called */
} brc_diff_sides;

/* Sets `shape` from the sides' shapes. Returns 0 if it is empty. */
int brc_diff_both_hold(brc_diff_sides *sides);
/* Tells whether chunks are cut the same within the common extent: they are compared pair by pair then. */
int brc_diff_cut_same(const brc_diff_sides *sides);

/* Tells whether no element of this box of the grid, or of those after it, would be picked. */
int brc_diff_beyond(const brc_diff_sides *sides, const brc_grid *grid, const uint64_t *index);

/* Compares packed elements of variable length of two boxes of `shape`, which begin at `corner` of the array; only
 * the first `count` along each axis. A side that is NULL is fill value everywhere. BRC_ECORRUPT if a side has a
 * different number of elements. */
BRC_MUST_USE int brc_compare_packed(brc_tally *tally, const uint64_t *corner, const uint64_t *shape,
                                    const uint64_t *count, const brc_span *x, const brc_span *y,
                                    const brc_span fills[2], brc_error *err);

/* Compares the first `count` elements along each axis of one chunk of both sides, of either kind of type; otherwise
 * like brc_compare_packed(). */
BRC_MUST_USE int brc_diff_box(brc_tally *tally, const brc_diff_sides *sides, const uint64_t *corner, const uint64_t *shape,
                              const uint64_t *count, const brc_span *x, const brc_span *y, brc_error *err);

/*
 * Counts differing elements that neither side has a chunk of. If the fill values differ, all such
 * elements differ. They are counted without being read: visits are reported in row-major order, and
 * the rest is what lies between the visits.
 */
typedef struct brc_unvisited {
    const brc_diff_sides *sides;
    const brc_grid *grid;
    uint64_t count[BRC_MAX_NDIM];  /* the grid's boxes within the common extent   */
    uint64_t next[BRC_MAX_NDIM];   /* the box after the last visited one          */
    int at_end, any;
    uint64_t first[BRC_MAX_NDIM], last[BRC_MAX_NDIM]; /* corners of the rest, in boxes */
    uint64_t from[BRC_MAX_NDIM], to[BRC_MAX_NDIM]; /* corners of the boxes that the selection meets */
    uint64_t visited;              /* elements that are selected                  */
} brc_unvisited;

void brc_unvisited_start(brc_unvisited *u, const brc_diff_sides *sides, const brc_grid *grid);
void brc_unvisited_pass(brc_unvisited *u, const uint64_t *index);
/* Adds the rest to the tally; picks, if they are wanted, were added on the way. */
void brc_unvisited_end(brc_unvisited *u, brc_diff_sides *sides);

/* Finds the common part of one box of a grid: its corner, its extent, and the count to compare. */
void brc_diff_overlap(const brc_diff_sides *sides, const brc_grid *grid, const uint64_t *index,
                          uint64_t *corner, uint64_t *shape, uint64_t *count);
/* Returns 1 if a box of the grid meets the common extent, and the selection if there is one. */
int brc_diff_meets(const brc_diff_sides *sides, const brc_grid *grid, const uint64_t *index);

/* ---- chunk pairs -------------------------------- */

#define BRC_PAIR_BATCH 512

typedef struct brc_chunk_pair {
    uint64_t index[BRC_MAX_NDIM];
    int there[2];            /* which sides have a chunk: at least one     */
    brc_object object[2];    /* `id` is set if the chunk exists            */
    brc_tally tally;         /* empty at first; compare() writes to it     */
} brc_chunk_pair;

typedef struct brc_pair_ops {
    void *ctx;
    /* Compares the decoded chunks, on a worker; NULL: the side has no chunk and is fill value everywhere. */
    int (*compare)(const brc_diff_sides *sides, brc_chunk_pair *pair, const brc_span *x, const brc_span *y, brc_error *err);
    /* Called on the caller's thread, afterwards. */
    void (*done)(void *ctx, const brc_chunk_pair *pair);
} brc_pair_ops;

typedef struct brc_pairs brc_pairs;

/* Begins, within a read of the store. `sides` and `ops` are borrowed. */
BRC_MUST_USE int brc_pairs_new(brc_pairs **out, brc_diff_sides *sides, const brc_pair_ops *ops, brc_error *err);
BRC_MUST_USE int brc_pairs_add(brc_pairs *pairs, const brc_chunk_pair *pair, brc_error *err);
/* Processes the pairs that are left. */
BRC_MUST_USE int brc_pairs_end(brc_pairs *pairs, brc_error *err);
void brc_pairs_free(brc_pairs *pairs);

/* Reads one key of the chunk maps of both sides; data NULL: that side lacks the key. */
BRC_MUST_USE int brc_pair_read(brc_chunk_pair *pair, const brc_diff_sides *sides, brc_span key, brc_span a, brc_span b,
                               brc_error *err);

/* ---- same chunks -------------------------------- */

/*
 * Chunks that two versions store differently but whose elements are the same: a chunk that a client
 * filled with nothing but the fill value, compared with an absent one; and chunks that differ only
 * in their padding, the part of a chunk beyond the array's end.
 */

/* Subtracts such chunks from the counts of a change. What is left of the change may be a difference in storage
 * alone. Of the differing chunks, decodes only those that the array's end cuts; compares chunks by id if they
 * cannot be decoded here or are cut differently. Within a read. */
BRC_MUST_USE int brc_same_chunks_discount(brc_node_change *change, breccia *repo, brc_error *err);

#endif
