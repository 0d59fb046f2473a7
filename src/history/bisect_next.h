/*
 * Which commit to look at next, to find the one that brought a change: candidates are the commits that a
 * bad one reaches and no good one does. It halves them as well as their graph allows: each is worth
 * as many candidates as it reaches, itself too, and the best is worth half of all. Only the graph counts,
 * and no time.
 */
#ifndef BRC_HISTORY_BISECT_NEXT_H
#define BRC_HISTORY_BISECT_NEXT_H

#include "merge_base.h"

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
