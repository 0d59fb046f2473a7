/*
 * A rebase from the first of its commits to the last, or to one in conflict.
 *
 *      brc_rebasing_in_turn(&turn)                turn.once() gets a rebasing for each try, and does:
 *      brc_sequence_start(&r.q), or _resume()     r.q.now is the commit on which the first one comes
 *      brc_rebasing_add(&r, commit)               for each that is to be done, the oldest first
 *      brc_rebasing_run(&r)                       r.result
 *
 * Where it may stay open, the plan of its draft (open_merge.h) has, beside what a cherry-pick's has:
 *
 *      {"op": "rebase", "rev": TEXT, "onto": ID, "at": ID, "base": ID, "theirs": ID,
 *       "made": N, "skipped": N, "side": "ours" | "theirs", "paths": [TEXT...], "todo": [ID...]}
 *
 * `todo` are the commits behind `at`; `made` and `skipped` what came before it. The draft lies over what was made, which
 * nothing else names; its tip is the branch's commit, which stays where it is till the last step. What others commit there
 * meanwhile comes behind `todo` when the rebase goes on.
 */
#ifndef BRC_API_REBASE_STEPS_H
#define BRC_API_REBASE_STEPS_H

#include "sequence.h"

typedef struct brc_rebasing {
    breccia *repo;
    brc_aim *aim;     /* onto which; NULL: it goes on, and `target` says that */
    const char *onto; /* as it was called                                    */
    brc_oid target;   /* ... the commit                                      */
    int may_keep;     /* with a conflict it stays open                       */
    brc_sequence q;
    brc_pick_result result; /* made, skipped: what was done before it counts too */
    /* its own */
    void *todo; /* brc_commit *[] */
    size_t n, cap;
} brc_rebasing;

/* A call that rebases: each try has a rebasing of its own. once() gets this, with the branch in `aim`. */
typedef struct brc_rebase_turn {
    brc_aim aim;
    brc_pick_result *out;
    brc_iter **conflicts;
    breccia *repo;
    int (*once)(struct brc_rebase_turn *turn, brc_rebasing *r, brc_error *err);
    const brc_pick_opts *given; /* of a rebase that begins                    */
    int skips;                  /* of one that goes on                        */
} brc_rebase_turn;
BRC_MUST_USE int brc_rebasing_in_turn(brc_rebase_turn *turn, brc_error *err);

/* The commit belongs to it from now on, also after a failure. */
BRC_MUST_USE int brc_rebasing_add(brc_rebasing *r, brc_commit *commit, brc_error *err);
/* All that `tip` has and neither `past` nor the target has, but merges, the oldest first. In a read. */
BRC_MUST_USE int brc_rebasing_add_line(brc_rebasing *r, const brc_oid *tip, const brc_oid *past, brc_error *err);
BRC_MUST_USE int brc_rebasing_run(brc_rebasing *r, brc_error *err);

#endif
