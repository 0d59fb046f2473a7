/*
 * Steps that move the current branch: a version that is merged into it, a commit's change that is
 * applied again (cherry-pick) or taken back (revert), or several such changes in order (rebase).
 *
 *      brc_sequence q = { .repo = repo, ... };
 *      brc_sequence_start(&q)            finds the branch; it must not have uncommitted changes
 *      brc_sequence_step(&q, ...)        for each step: merges without a lock, then makes a commit that no ref names
 *      brc_sequence_end(&q)              moves the branch, by compare-and-set
 *      brc_sequence_dispose(&q)
 *
 * A step is a merge: ours is the result of the steps before it, and base and theirs are the
 * versions between which the change is. A killed process leaves the branch as it was, and some
 * objects for the next collection. Nothing names the objects that were stored so far: if a
 * collection has begun meanwhile, or the branch has moved, `again` is set and everything must be
 * repeated (brc_sequence_change()).
 *
 * A step in conflict may stay open (brc_sequence_keep()). An open step continues with
 * brc_sequence_resume() instead of _start(). Its draft is removed in the transaction that moves the
 * branch, or that keeps the next step in conflict; until then everything stays as it was.
 */
#ifndef BRC_MERGE_SEQUENCE_H
#define BRC_MERGE_SEQUENCE_H

#include "../base/buf.h"
#include "open_merge.h"

/* ---- open plan -------------------------------- */

/* Writes the plan of an open merge, rebase, cherry-pick or revert (open_merge.h): a JSON object,
 * member by member. */

/* `out` must be empty before the first member. */
BRC_MUST_USE int brc_plan_text(brc_buf *out, const char *name, const char *text, brc_error *err);
BRC_MUST_USE int brc_plan_id(brc_buf *out, const char *name, const brc_oid *id, brc_error *err);
BRC_MUST_USE int brc_plan_number(brc_buf *out, const char *name, int64_t number, brc_error *err);
BRC_MUST_USE int brc_plan_true(brc_buf *out, const char *name, brc_error *err);
/* Write lists of ids and of texts. */
BRC_MUST_USE int brc_plan_ids(brc_buf *out, const char *name, const brc_oid *ids, size_t n, brc_error *err);
BRC_MUST_USE int brc_plan_texts(brc_buf *out, const char *name, const char *const *texts, size_t n, brc_error *err);
/* Ends the plan; out->data is its text. */
BRC_MUST_USE int brc_plan_end(brc_buf *out, brc_error *err);

/* ---- sequence -------------------------------- */

enum { BRC_STEP_DONE = 1, BRC_STEP_EMPTY, BRC_STEP_CONFLICT };

typedef struct brc_step {
    brc_step_change change;
    brc_commit like;      /* author, time, message and meta of the commit          */
    const brc_oid *other; /* of a merge: its second parent; NULL: none             */
    int keep_empty;       /* make a commit even if it changes nothing              */
    int is_last;          /* the branch moves in this step's transaction           */
} brc_step;

typedef struct brc_sequence {
    breccia *repo;
    brc_store *store;
    const char *on;    /* the branch                                                */
    const char *op;    /* the name in the operation log: "pick", "revert", "rebase" */
    const char *doing; /* for errors, such as "something is picked"                 */
    int favour;        /* BRC_FAVOUR_*, at these paths                              */
    const char *const *paths;
    size_t npaths;
    int no_commit;     /* the result stays uncommitted                              */
    int is_open;       /* an open sequence continues, and `draft` is its draft      */
    /* Private fields follow. */
    char *branch, *full;
    int has_tip;
    brc_oid tip;          /* the branch's commit when the sequence began or continued */
    brc_draft_head draft; /* the branch's own draft, which is not changed; id 0: it has none. See is_open */
    int has_now;
    brc_oid now, root;    /* the commit on which the next step is based, and its snapshot */
    int is_through;       /* the branch has moved                                   */
    brc_merge_run run;    /* the run of the last step                               */
    int in_bulk, admitted; /* chunks are merged in a bulk write that ends with the step */
    brc_moves_carried carried; /* for the next step                                   */
    int64_t collected;    /* the last collection that began before the sequence     */
    int again;
} brc_sequence;

/* The branch and the version of a call. They are resolved once, so that a retry works on the same
 * ones. */
typedef struct brc_aim {
    const char *branch; /* the current branch; brc_sequence_change() sets it */
    const char *rev;    /* as the caller named it; brc_aim_resolve() resolves it once */
    int is_known;
    brc_oid id;
} brc_aim;
/* Must be called within a read. */
BRC_MUST_USE int brc_aim_resolve(brc_aim *aim, brc_store *store, brc_oid *out, brc_error *err);
/* Like brc_change_run(), for calls that move the current branch. once() gets `aim` as its ctx, and
 * `doing` is for brc_change_is_late(). */
BRC_MUST_USE int brc_sequence_change(brc_aim *aim, breccia *repo, const char *doing,
                                     int (*once)(void *aim, int insists, brc_error *err), brc_error *err);
/* Fails with BRC_EMISUSE within a transaction and with BRC_EREADONLY for a read-only file. `what`
 * names the call, such as "a revert". */
BRC_MUST_USE int brc_sequence_can_start(breccia *repo, const char *what, brc_error *err);
BRC_MUST_USE int brc_sequence_start(brc_sequence *q, brc_error *err);
/* Continues an open sequence from the commit on which its draft is based. The caller may set
 * q->draft to the draft as it was examined last, before the next step. The branch may have moved
 * since its tip; q->tip is where it is now. */
BRC_MUST_USE int brc_sequence_resume(brc_sequence *q, const char *branch, const brc_draft_head *draft, brc_error *err);
void brc_sequence_dispose(brc_sequence *q);
/* Bases the next step on this commit. */
BRC_MUST_USE int brc_sequence_go_to(brc_sequence *q, const brc_oid *commit, brc_error *err);
/* Bases the next step on the branch's commit, or on none. */
BRC_MUST_USE int brc_sequence_go_to_tip(brc_sequence *q, brc_error *err);
/* Begins to merge q->run: what it stores belongs to a bulk write until the step is put or kept. */
BRC_MUST_USE int brc_sequence_bulk_begin(brc_sequence *q, brc_error *err);
/* Puts a step that was merged without a conflict: the result in q->run.tree, or the snapshot of
 * `other` if there is no tree. */
BRC_MUST_USE int brc_sequence_put(brc_sequence *q, const brc_step *step, int *result, brc_error *err);
/* Merges a step and puts it. *result is one of BRC_STEP_*. After a conflict, q->run.tree has the
 * conflicts, and no further step is possible. */
BRC_MUST_USE int brc_sequence_step(brc_sequence *q, const brc_step *step, int *result, brc_error *err);
/* Puts a settled step: this snapshot, with the moves since q->now. *result is BRC_STEP_DONE or
 * BRC_STEP_EMPTY. */
BRC_MUST_USE int brc_sequence_add(brc_sequence *q, const brc_step *step, const brc_oid *root, const brc_move_set *moves,
                                  int *result, brc_error *err);
/* Moves the branch to q->now, unless a last step has done so or it is already there. */
BRC_MUST_USE int brc_sequence_end(brc_sequence *q, brc_error *err);

/* After a conflict: keeps the merge open on the branch, as draft *draft. Of `what`, plan, change
 * and more count: the change is that of the step. */
BRC_MUST_USE int brc_sequence_keep(brc_sequence *q, const brc_open_merge_new *what, int64_t *draft, brc_error *err);

/* Makes normal forms of paths, sorted. brc_paths_free() releases them, also after a failure. */
BRC_MUST_USE int brc_paths_normal(char ***out, const char *const *paths, size_t n, brc_error *err);
void brc_paths_free(char **paths, size_t n);

/* ---- pick -------------------------------- */

/* Options and results of cherry-pick, revert and rebase. */

/* Copies and checks the caller's options. `flags` are allowed in addition to those for sides. */
BRC_MUST_USE int brc_pick_opts_take(brc_pick_opts *own, const brc_pick_opts *given, uint32_t flags, brc_error *err);
/* Applies the options to the sequence. `paths` must be in normal form and live as long as the
 * sequence. */
void brc_pick_opts_apply(brc_sequence *q, const brc_pick_opts *opts, char *const *paths);
/* Fills in the caller's result and the list of conflicts. `at` is the commit whose change is in
 * conflict. */
BRC_MUST_USE int brc_pick_answer(brc_pick_result *out, brc_iter **conflicts, brc_sequence *q, brc_pick_result *result,
                                 const brc_oid *at, brc_error *err);

#endif
