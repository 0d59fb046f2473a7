/*
 * Which commits are ancestors of others: found from some tips on, step by step. Unlike
 * closure.h it goes to the nearest commits first, so that it can stop when it finds what is
 * asked for, and it reads only commits.
 */
#ifndef BRC_HISTORY_ANCESTRY_H
#define BRC_HISTORY_ANCESTRY_H

#include "../store/store.h"

/* ---- reach -------------------------------- */

typedef struct brc_reach brc_reach;

BRC_MUST_USE int brc_reach_new(brc_reach **out, brc_store *store, brc_error *err);
void brc_reach_free(brc_reach *reach);
/* One more commit to start from; it counts as reached itself. */
BRC_MUST_USE int brc_reach_from(brc_reach *reach, const brc_oid *tip, brc_error *err);
/* 1 if `id` is reached, else 0. Goes back only until it is found, the commits nearest to
 * the tips first, and remembers for the next call what it has met. */
BRC_MUST_USE int brc_reach_find(brc_reach *reach, const brc_oid *id, brc_error *err);

/* ---- merge base -------------------------------- */

/*
 * Merge bases: common ancestors that no other common ancestor reaches. They follow from the graph
 * alone: commits are looked at by their generation, one more than the largest of their parents',
 * and never by a time.
 *
 * Two versions that were merged into each other crosswise have several. These are folded, two by
 * two in the order of their ids, into a snapshot that no ref names; where two are merged, their own
 * bases are the base, and so on down. Each is made once. What cannot be settled there is unknown.
 */

/* Commits, by id, each once. */
typedef struct brc_commit_set {
    brc_oid *ids;
    size_t n, cap;
} brc_commit_set;
void brc_commit_set_dispose(brc_commit_set *set);
BRC_MUST_USE int brc_commit_set_add(brc_commit_set *set, const brc_oid *id, brc_error *err);

/* The best common ancestors of one commit and any of several. None: they have nothing in common.
 * A commit that one of the others reaches is its own base. Parents that are not here any more count as none. */
BRC_MUST_USE int brc_merge_bases(brc_commit_set *out, brc_store *store, const brc_commit_set *some, const brc_oid *other,
                                 brc_error *err);

/* Merges two snapshots over a base into one, which is kept until the end of the store's scratch mode. */
typedef int (*brc_virtual_merge_fn)(void *ctx, const brc_oid *base, const brc_oid *ours, const brc_oid *theirs, brc_oid *out,
                                    brc_error *err);
/* The snapshot of a set: of one commit its own, of none the empty one (zero), of more what they are folded into. */
BRC_MUST_USE int brc_merge_base_root(brc_store *store, const brc_commit_set *bases, brc_virtual_merge_fn merge, void *ctx,
                                     brc_oid *root, brc_error *err);

/* ---- bisect next -------------------------------- */

/*
 * Which commit to look at next, to find the one that brought a change: candidates are the commits that a
 * bad one reaches and no good one does. It halves them as well as their graph allows: each is worth
 * as many candidates as it reaches, itself too, and the best is worth half of all. Only the graph counts,
 * and no time.
 */

typedef struct brc_bisection {
    int has_bad;
    brc_oid bad;
    brc_commit_set good, skipped;
} brc_bisection;
void brc_bisection_dispose(brc_bisection *b);

/* *state: BRC_BISECT_NEXT with the one to look at in *at; _FOUND: that is it; _OPEN: only such as were skipped are left.
 * *left: how many candidates there are. There is a bad commit, and a good one; BRC_EMISUSE if the bad one
 * is an ancestor of a good one. A good one that is none of the bad one's makes it ask for their merge base first. */
BRC_MUST_USE int brc_bisect_next(const brc_bisection *b, brc_store *store, int *state, brc_oid *at, uint64_t *left, brc_error *err);

#endif
