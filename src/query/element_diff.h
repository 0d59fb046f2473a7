/* Elements in which two versions of an array differ. */
#ifndef BRC_QUERY_ELEMENT_DIFF_H
#define BRC_QUERY_ELEMENT_DIFF_H

#include "../history/tree_diff.h"
#include "../nd/box.h"
#include "../nd/shape.h"
#include "../work/session.h"
#include "../zarr/array/array.h"

/* ---- element runs -------------------------------- */

/* A selection's elements in C order, as many at a time as fit into memory. */

typedef struct brc_element_runs {
    brc_array *a;
    brc_cut cut;
    size_t item;
    uint8_t *data;    /* of a run                        */
    brc_buf elements; /* the same, of variable length    */
} brc_element_runs;

/* sel NULL: the whole array, as it is now: who changes it meanwhile changes nothing of what comes.
 * brc_element_runs_end() releases it, also after a failure. */
BRC_MUST_USE int brc_element_runs_start(brc_element_runs *runs, brc_array *a, const brc_sel *sel, brc_error *err);
/* 1 with the next elements, in native byte order and valid until the next call; 0 at the end. No
 * lock is held between two calls. */
BRC_MUST_USE int brc_element_runs_next(brc_element_runs *runs, brc_span *out, brc_error *err);
void brc_element_runs_end(brc_element_runs *runs);

/* ---- element diff -------------------------------- */

typedef struct brc_element_diff {
    int known;               /* the rest is known                                 */
    const char *why;         /* where not: why the two cannot be compared, a clause;
                                NULL: there is no array                           */
    uint64_t added, removed; /* elements that only b's shape has, or only a's;
                                2^64-1 stands for more too                        */
    brc_tally tally;         /* of those that both have                           */
} brc_element_diff;

/* Compares bits, within what both shapes hold; padding never counts. An absent chunk
 * is its own version's fill value. If the node was added or removed, all its elements
 * were. Within a transaction; on the repository's pool and within its budget, except
 * that a pair of chunks, or one of chunks that are cut otherwise, is decoded whole.
 * The result does not depend on either. */
BRC_MUST_USE int brc_element_diff_run(brc_element_diff *out, breccia *repo, const brc_node_change *change, brc_error *err);

/* ---- blame sets -------------------------------- */

/*
 * Blame: which commit gave each unit of an array, a chunk or an element, what it has.
 *
 * It goes from a commit to its parents, with sets of units that are not settled. What a parent has
 * in the same form goes to that parent, the first that has it; what no parent has so is settled. A
 * set is one number in a forest, so that a set of a million units goes to a parent at the cost of one
 * assignment, and two that meet there are joined; what differs moves unit by unit. Maps are compared
 * by ids, so a commit costs what it changed.
 */

/* An array at one commit. */
typedef struct brc_blame_place {
    const brc_oid *commit;
    const char *path;
    brc_entry entry;
} brc_blame_place;

typedef int (*brc_blame_unit_fn)(void *ctx, size_t unit, brc_error *err);
/* Calls `differs` for the units in which two places differ, and perhaps for others that the array does not
 * have there. */
typedef int (*brc_blame_diff_fn)(void *ctx, const brc_blame_place *now, const brc_blame_place *before,
                                 brc_blame_unit_fn differs, void *arg, brc_error *err);

typedef struct brc_blamed_by {
    brc_oid commit;
    int64_t time_us;
    char *author;
    int before; /* or an ancestor of it, which is not there any more                       */
} brc_blamed_by;

typedef struct brc_blame_result {
    uint32_t *by; /* for each unit an index of `commits`                                   */
    size_t n;
    brc_blamed_by *commits;
    size_t ncommits;
} brc_blame_result;
void brc_blame_result_dispose(brc_blame_result *r);

/* `n` units of the array at the path in the commit. Chunks: two places with one map do not differ;
 * `documents`: neither if their documents are different. */
BRC_MUST_USE int brc_blame_run(brc_blame_result *out, brc_store *store, const brc_oid *commit, const char *path, size_t n,
                               int documents, brc_blame_diff_fn diff, void *ctx, brc_error *err);

#endif
