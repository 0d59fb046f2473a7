/*
 * Steps that move the current branch: the one engine of merge, cherry-pick, revert and rebase, of their
 * --continue and --abort, and of uncommitted changes whose branch has moved since they began.
 *
 *      brc_steps q = { .repo = repo, .on = branch, .op = ..., .doing = ... };
 *      brc_steps_start(&q)             finds the branch; it must not have uncommitted changes
 *      brc_steps_add(&q, &step)        lists a step
 *      brc_steps_run(&q)               for each step: merges without a lock, then makes a commit that no ref names;
 *                                      with the last step the branch moves, by compare-and-set
 *      brc_steps_dispose(&q)
 *
 * A step is a merge: ours is the result of the steps before it, and base and theirs are the versions between which
 * the change is. Only the step of `git merge` has two commits and finds its base itself. A killed process leaves the
 * branch as it was, and some objects for the next collection. Nothing names the objects that were stored so far: if
 * a collection has begun meanwhile, or the branch has moved, `again` is set and everything must be repeated
 * (brc_steps_change()).
 *
 * A step in conflict may stay open, as a draft of its own (kind 3): a layer with a plan. While a branch has one,
 * sessions on the branch work on that draft instead of the shared one: a write settles the conflicts at the place
 * that is written. At first the draft has one row, for "/", which is the merged snapshot with every conflicting place
 * as in ours. Rows of draft_move record moves, and rows of `conflict` the conflicts. So the draft is a complete
 * version at any time. The plan names the operation, the change of the open step and the steps that are left
 * (docs/FORMAT.md, "Plans"); its ids are roots of garbage collection. brc_continue() makes a commit of what is settled
 * and runs the rest of the list, and brc_abort() drops the draft, whatever the operation is.
 */
#ifndef BRC_MERGE_STEPS_H
#define BRC_MERGE_STEPS_H

#include "../base/buf.h"
#include "../work/fold.h"
#include "../work/open_plan.h"
#include "merge_array.h"

/* ---- step change -------------------------------- */

/* The change of a commit, as a merge: ours is where the change is applied. */
typedef struct brc_step_change {
    int has_base, has_theirs;
    brc_oid base, theirs; /* commits; none: the empty snapshot                     */
    int is_back;          /* theirs comes before base: the change is taken back    */
} brc_step_change;

/* For a series of changes: the moves from the last change's base to where it was applied. Those of
 * the next change are derived from them, without a search through all commits made meanwhile. Must
 * be { 0 } before the first. */
typedef struct brc_moves_carried {
    int is_known;
    brc_oid from, to;   /* commits                                        */
    brc_move_set moves;
    size_t searches;    /* how often the moves were found from the common ancestor */
} brc_moves_carried;

/* Reads the snapshots and moves of a change. run->how.repo must be set. If `ours` is NULL, there is
 * no commit yet; if `carried` is NULL, it is the only change. Must be called within a read. */
BRC_MUST_USE int brc_step_change_read(brc_merge_run *run, const brc_step_change *change, const brc_oid *ours,
                                      brc_moves_carried *carried, brc_error *err);

/* ---- steps -------------------------------- */

enum { BRC_STEP_DONE = 1, BRC_STEP_EMPTY, BRC_STEP_CONFLICT };

typedef struct brc_step {
    brc_step_change change;
    int has_other;      /* it is a merge, with this second parent                  */
    brc_oid other;
    brc_oid at;         /* the commit whose change it is; zero: a merge            */
    brc_commit like;    /* author, time, message and meta of the commit            */
    brc_commit *commit; /* what `like` borrows from; the list releases it. NULL: the caller does */
    int keep_empty;     /* make a commit even if it changes nothing                */
    int is_merged;      /* q->run is its merge already; without a tree, the snapshot of `other` is taken */
} brc_step;

typedef struct brc_steps {
    breccia *repo;
    brc_store *store;
    const char *on;    /* the branch                                                */
    const char *op;    /* the name in the operation log: "merge", "pick", "revert", "rebase", "commit" */
    const char *doing; /* for errors, such as "something is picked"                 */
    int favour;        /* BRC_FAVOUR_*, at these paths                              */
    const char *const *paths;
    size_t npaths;
    int no_commit;     /* the result stays uncommitted                              */
    int may_keep;      /* a step in conflict stays open                             */
    /* The rest of the plan of a step that stays open. */
    const char *rev;             /* the version as the caller named it                */
    const char *message, *author; /* of the commit; NULL: those of `at`               */
    int64_t time_us;             /* 0: that of `at`                                   */
    int is_rebase;
    brc_oid onto;
    int is_settled;    /* theirs is what was settled before the branch moved        */
    int is_concat;     /* the merge joins what both sides appended                  */
    /* The list, and what came of it: made and skipped include earlier calls. */
    void *list;        /* brc_step[] */
    size_t n, cap, next;
    brc_pick_result result;
    /* Private fields follow. */
    char *branch, *full;
    int has_tip;
    brc_oid tip;          /* the branch's commit when the steps began or continued    */
    int is_open;          /* an open step continues, and `draft` is its draft         */
    brc_draft_head draft; /* the branch's own draft, which is not changed; id 0: it has none */
    brc_session *from;    /* the only step is these uncommitted changes; NULL: it is not */
    brc_folded folded;    /* their snapshot                                           */
    int has_now;
    brc_oid now, root;    /* the commit on which the next step is based, and its snapshot */
    int is_through;       /* the branch has moved                                     */
    brc_merge_run run;    /* the run of the last step                                 */
    int in_bulk, admitted; /* chunks are merged in a bulk write that ends with the step */
    brc_moves_carried carried; /* for the next step                                   */
    int64_t collected;    /* the last collection that began before the steps          */
    int again;
} brc_steps;

/* The branch and the version of a call. They are resolved once, so that a retry works on the same
 * ones. */
typedef struct brc_aim {
    const char *branch; /* the current branch; brc_steps_change() sets it */
    const char *rev;    /* as the caller named it; brc_aim_resolve() resolves it once */
    int is_known;
    brc_oid id;
} brc_aim;
/* Must be called within a read. */
BRC_MUST_USE int brc_aim_resolve(brc_aim *aim, brc_store *store, brc_oid *out, brc_error *err);
/* Like brc_change_run(), for calls that move the current branch. once() gets `aim` as its ctx, and
 * `doing` is for brc_change_is_late(). */
BRC_MUST_USE int brc_steps_change(brc_aim *aim, breccia *repo, const char *doing,
                                  int (*once)(void *aim, int insists, brc_error *err), brc_error *err);
/* Fails with BRC_EMISUSE within a transaction and with BRC_EREADONLY for a read-only file. `what`
 * names the call, such as "a revert". */
BRC_MUST_USE int brc_steps_can_start(breccia *repo, const char *what, brc_error *err);

BRC_MUST_USE int brc_steps_start(brc_steps *q, brc_error *err);
/* Makes the uncommitted changes of a session the only step, which is on the session's branch. Folds them, and reads
 * the branch. */
BRC_MUST_USE int brc_steps_start_from(brc_steps *q, brc_session *s, brc_error *err);
/* Continues an open step from the commit on which its draft is based. The caller may set q->draft to
 * the draft as it was examined last. The branch may have moved since its tip; q->tip is where it is
 * now. */
BRC_MUST_USE int brc_steps_resume(brc_steps *q, const char *branch, const brc_draft_head *draft, brc_error *err);
void brc_steps_dispose(brc_steps *q);
/* Bases the next step on this commit. */
BRC_MUST_USE int brc_steps_go_to(brc_steps *q, const brc_oid *commit, brc_error *err);
/* Bases the next step on the branch's commit, or on none. */
BRC_MUST_USE int brc_steps_go_to_tip(brc_steps *q, brc_error *err);
/* Begins to merge q->run: what it stores belongs to a bulk write until the step is put or kept. */
BRC_MUST_USE int brc_steps_bulk_begin(brc_steps *q, brc_error *err);
/* Appends a copy of the step to the list, and takes step->commit, also after a failure. */
BRC_MUST_USE int brc_steps_add(brc_steps *q, const brc_step *step, brc_error *err);
/* Append, of a rebase: the change of a commit; and those of all commits that `tip` reaches and neither `past` nor
 * q->onto reaches, oldest first and without merges. Must be called within a read. */
BRC_MUST_USE int brc_steps_add_id(brc_steps *q, const brc_oid *id, brc_error *err);
BRC_MUST_USE int brc_steps_add_line(brc_steps *q, const brc_oid *tip, const brc_oid *past, brc_error *err);
/* Merges a session's changes or the next step of the list. q->run.tree has the conflicts. */
BRC_MUST_USE int brc_steps_merge(brc_steps *q, const brc_step *step, brc_error *err);
/* Puts a settled step: this snapshot, with the moves since q->now. *result is BRC_STEP_DONE or
 * BRC_STEP_EMPTY. `is_last`: the branch moves in the same transaction. */
BRC_MUST_USE int brc_steps_put(brc_steps *q, const brc_step *step, const brc_oid *root, const brc_move_set *moves,
                               int is_last, int *result, brc_error *err);
/* Does the steps of the list, and moves the branch; q->result says what came of it. After a conflict q->run.tree has
 * the conflicts, and the step is open if it may be. */
BRC_MUST_USE int brc_steps_run(brc_steps *q, brc_error *err);
/* Fills in the caller's result and the list of conflicts. */
BRC_MUST_USE int brc_steps_answer(brc_pick_result *out, brc_iter **conflicts, brc_steps *q, brc_error *err);

/* Says whether a branch has no uncommitted changes with which those that are left on it would have to be combined. */
BRC_MUST_USE int brc_branch_has_room(brc_store *store, const char *branch, int *has, brc_error *err);
/* Copies and checks the caller's options. `flags` are allowed in addition to those for sides. */
BRC_MUST_USE int brc_pick_opts_take(brc_pick_opts *own, const brc_pick_opts *given, uint32_t flags, brc_error *err);
/* Makes normal forms of paths, sorted. brc_paths_free() releases them, also after a failure. */
BRC_MUST_USE int brc_paths_normal(char ***out, const char *const *paths, size_t n, brc_error *err);
void brc_paths_free(char **paths, size_t n);

/* ---- what is open -------------------------------- */

/* Opens a session on the current branch and reads what is open there; out->draft.id is 0 if nothing
 * is. The caller owns both, also after a failure. */
BRC_MUST_USE int brc_look_at_open(brc_session **s, brc_open_merge *out, breccia *repo, int mode, brc_error *err);
/* Fails with BRC_EMISUSE: nothing is open. */
int brc_none_is_open(const brc_session *s, brc_error *err);
/* Fails with BRC_EMISUSE within a transaction and with BRC_EREADONLY for a read-only file. */
BRC_MUST_USE int brc_can_end_open(breccia *repo, brc_error *err);
/* Reads the open step of the session's branch. Must be called within a read or a change of the
 * session. */
BRC_MUST_USE int brc_open_merge_read(brc_open_merge *out, brc_session *s, brc_error *err);
/* Fails with BRC_ECONFLICT if a conflict at or under the path is open, because a move would take
 * its place away. Must be called within a change. */
BRC_MUST_USE int brc_open_merge_may_move(brc_session *s, const char *path, brc_error *err);
/* Merges again; run->how names the favoured side, and the paths where it counts. */
BRC_MUST_USE int brc_open_merge_run(brc_merge_run *run, const brc_open_merge *merge, brc_error *err);
/* Makes the draft equal to this snapshot. Its moves become `moves`; NULL: they stay. Must be called
 * within a change of the session. */
BRC_MUST_USE int brc_open_merge_lay(brc_session *s, const brc_oid *root, const brc_move_set *moves, brc_error *err);

/* ---- a session's changes, whose branch has moved -------------------------------- */

/* Merges the changes onto the branch's tip and makes the commit; `like` gives everything except parents and root.
 * Returns BRC_OK, BRC_CHANGE_AGAIN, or BRC_ECONFLICT: the changes are in conflict with what is new, and are kept. *out
 * is the commit, or the tip if the tip already has all the changes. Must not be called within a transaction. */
BRC_MUST_USE int brc_replay_commit(brc_oid *out, brc_session *s, const brc_commit *like, int may_be_empty, brc_error *err);
/* Lists the conflicts of the session's changes with the branch as it is now. Returns 1 if there are any, else 0. */
BRC_MUST_USE int brc_replay_conflicts(brc_iter **out, brc_session *s, brc_error *err);
/* Makes a private draft without a running owner part of its branch's shared changes: it is merged
 * onto the tip in the same way, but stays uncommitted. Sets *done to 0 if the draft was left as it
 * is because it follows the tip, conflicts with the tip, or would have to be applied on top of
 * other changes. Must not be called within a transaction. */
BRC_MUST_USE int brc_replay_adopt(int *done, breccia *repo, const char *branch, int64_t draft, brc_error *err);

/* ---- conflicts -------------------------------- */

/* Conflicts in the form that users see. */

/* Makes an iterator over the conflicts, and takes them out of the list (NULL: none). Elements are read by the
 * iterator, as the branch (NULL: the current one) describes their arrays then. */
BRC_MUST_USE int brc_conflict_list(brc_iter **out, brc_clash_list *list, breccia *repo, const char *branch,
                                   brc_error *err);
/* Like brc_conflict_list(), but only for the conflicts that are not settled; the others are
 * released. */
BRC_MUST_USE int brc_conflict_list_open(brc_iter **out, brc_clash_list *list, breccia *repo, brc_error *err);

#endif
