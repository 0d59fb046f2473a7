/*
 * Finds ancestors of commits step by step, from some tips on (graph.h): the nearest commits first,
 * so that a search stops as soon as it finds the wanted commit.
 */
#ifndef BRC_HISTORY_ANCESTRY_H
#define BRC_HISTORY_ANCESTRY_H

#include "../store/store.h"

/* ---- reach -------------------------------- */

typedef struct brc_reach brc_reach;

BRC_MUST_USE int brc_reach_new(brc_reach **out, brc_store *store, brc_error *err);
void brc_reach_free(brc_reach *reach);
/* Adds a commit to start from, which counts as reached itself. */
BRC_MUST_USE int brc_reach_from(brc_reach *reach, const brc_oid *tip, brc_error *err);
/* Returns 1 if `id` is reached, else 0. It goes back only until it finds the commit, nearest
 * commits first, and remembers the commits that it has met for the next call. */
BRC_MUST_USE int brc_reach_find(brc_reach *reach, const brc_oid *id, brc_error *err);

/* ---- merge base -------------------------------- */

/*
 * Merge bases are common ancestors that no other common ancestor reaches. They depend only on the
 * graph: commits are visited by generation, which is one more than the largest generation of their
 * parents, and never by time.
 *
 * Two versions that were merged into each other crosswise have several bases. These are folded two
 * at a time, in the order of their ids, into a snapshot that no ref names. When two bases are
 * merged, their own bases are the base of that merge, and so on down; each is computed once.
 * Anything that such a merge cannot settle is unknown.
 */

/* A set of commits, sorted by id. */
typedef struct brc_commit_set {
    brc_oid *ids;
    size_t n, cap;
} brc_commit_set;
void brc_commit_set_dispose(brc_commit_set *set);
BRC_MUST_USE int brc_commit_set_add(brc_commit_set *set, const brc_oid *id, brc_error *err);

/* Finds the best common ancestors of one commit and any of several others; none if they have
 * nothing in common. A commit that one of the others reaches is its own base. Parents that are no
 * longer in the file count as missing. */
BRC_MUST_USE int brc_merge_bases(brc_commit_set *out, brc_store *store, const brc_commit_set *some, const brc_oid *other,
                                 brc_error *err);

/* Merges two snapshots over a base into one snapshot, which is kept until the end of the store's
 * scratch mode. */
typedef int (*brc_virtual_merge_fn)(void *ctx, const brc_oid *base, const brc_oid *ours, const brc_oid *theirs, brc_oid *out,
                                    brc_error *err);
/* Returns the snapshot of a set: of one commit its own, of none the empty one (zero), and of
 * several the folded one. */
BRC_MUST_USE int brc_merge_base_root(brc_store *store, const brc_commit_set *bases, brc_virtual_merge_fn merge, void *ctx,
                                     brc_oid *root, brc_error *err);

/* ---- bisect next -------------------------------- */

/*
 * Chooses the commit to test next in order to find the one that introduced a change. Candidates are
 * the commits that the bad commit reaches and no good commit does. The choice halves the candidates
 * as well as the graph allows: a commit's weight is the number of candidates that it reaches,
 * itself included, and the best weight is half of all. Only the graph counts, not time.
 */

typedef struct brc_bisection {
    int has_bad;
    brc_oid bad;
    brc_commit_set good, skipped;
} brc_bisection;
void brc_bisection_dispose(brc_bisection *b);

/* Sets *state to BRC_BISECT_NEXT with the commit to test in *at, to BRC_BISECT_FOUND if *at is the
 * commit that was looked for, or to BRC_BISECT_OPEN if only skipped commits are left. *left is the
 * number of candidates. There must be a bad and a good commit. Fails with BRC_EMISUSE if the bad
 * commit is an ancestor of a good one. For a good commit that is not an ancestor of the bad one, it
 * first asks for a merge base of the two. */
BRC_MUST_USE int brc_bisect_next(const brc_bisection *b, brc_store *store, int *state, brc_oid *at, uint64_t *left, brc_error *err);

#endif
