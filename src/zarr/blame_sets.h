/*
 * Blame: which commit gave each unit of an array, a chunk or an element, what it has.
 *
 * It goes from a commit to its parents, with sets of units that are not settled. What a parent has
 * in the same form goes to that parent, the first that has it; what no parent has so is settled. A
 * set is one number in a forest, so that a set of a million units goes to a parent at the cost of one
 * assignment, and two that meet there are joined; what differs moves unit by unit. Maps are compared
 * by ids, so a commit costs what it changed.
 */
#ifndef BRC_ZARR_BLAME_SETS_H
#define BRC_ZARR_BLAME_SETS_H

#include "array.h"

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
