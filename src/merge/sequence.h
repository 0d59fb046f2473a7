/*
 * Steps that move the current branch: a version that is merged into it, the change of a commit that is done
 * again (cherry-pick) or taken back (revert), or several one after the other (rebase).
 *
 *      brc_sequence q = { .repo = repo, ... };
 *      brc_sequence_start(&q)            where the branch is; nothing may be uncommitted on it
 *      brc_sequence_step(&q, ...)        for each: merged without a lock, then a commit that no ref names
 *      brc_sequence_end(&q)              the branch moves, by compare-and-set
 *      brc_sequence_dispose(&q)
 *
 * A step is a merge: ours is what the steps before it have made, base and theirs are the versions
 * between which the change lies. A killed process leaves the branch as it was, and some objects for the
 * next collection. What was stored so far has no name: if a collection has begun meanwhile, or the branch
 * has moved, `again` is set, and all has to be done again (brc_sequence_change()).
 *
 * A step in conflict may stay open (brc_sequence_keep()). What was open goes on with brc_sequence_resume() in place
 * of _start(): its draft goes in the transaction in which the branch moves, or the next step in conflict is
 * kept, so until then everything is as it was.
 */
#ifndef BRC_MERGE_SEQUENCE_H
#define BRC_MERGE_SEQUENCE_H

#include "../base/buf.h"
#include "open_merge.h"

/* ---- open plan -------------------------------- */

/* The plan of an open merge, rebase, cherry-pick or revert (open_merge.h), written: a JSON object, member by member. */

/* `out` is empty before the first member. */
BRC_MUST_USE int brc_plan_text(brc_buf *out, const char *name, const char *text, brc_error *err);
BRC_MUST_USE int brc_plan_id(brc_buf *out, const char *name, const brc_oid *id, brc_error *err);
BRC_MUST_USE int brc_plan_number(brc_buf *out, const char *name, int64_t number, brc_error *err);
BRC_MUST_USE int brc_plan_true(brc_buf *out, const char *name, brc_error *err);
/* Lists: ids, and texts. */
BRC_MUST_USE int brc_plan_ids(brc_buf *out, const char *name, const brc_oid *ids, size_t n, brc_error *err);
BRC_MUST_USE int brc_plan_texts(brc_buf *out, const char *name, const char *const *texts, size_t n, brc_error *err);
/* The end: out->data is the text. */
BRC_MUST_USE int brc_plan_end(brc_buf *out, brc_error *err);

/* ---- sequence -------------------------------- */

enum { BRC_STEP_DONE = 1, BRC_STEP_EMPTY, BRC_STEP_CONFLICT };

typedef struct brc_step {
    brc_step_change change;
    brc_commit like;      /* author, time, message and meta of the commit          */
    const brc_oid *other; /* of a merge: its second parent; NULL: none             */
    int keep_empty;       /* a commit, also where it changes nothing               */
    int is_last;          /* the branch moves in its transaction                   */
} brc_step;

typedef struct brc_sequence {
    breccia *repo;
    brc_store *store;
    const char *on;    /* the branch                                                */
    const char *op;    /* in the operation log: "pick", "revert", "rebase"          */
    const char *doing; /* "something is picked", for errors                         */
    int favour;        /* BRC_FAVOUR_*, at these paths                              */
    const char *const *paths;
    size_t npaths;
    int no_commit;     /* what comes of it is uncommitted                           */
    int is_open;       /* it goes on, and `draft` is what was open                  */
    /* from here on its own */
    char *branch, *full;
    int has_tip;
    brc_oid tip;          /* of the branch, when it began or went on                */
    brc_draft_head draft; /* the branch's own; id 0: it has none. Nothing is changed in it; but see is_open */
    int has_now;
    brc_oid now, root;    /* the commit on which the next step comes, and its snapshot */
    int is_through;       /* the branch has moved                                   */
    brc_merge_run run;    /* of the last step                                       */
    int in_bulk, admitted; /* chunks are merged in a bulk write that ends with the step */
    brc_moves_carried carried; /* for the next step                                   */
    int64_t collected;    /* the last collection that had begun before              */
    int again;
} brc_sequence;

/* The branch and the version of a call, resolved once: a retry works on the same ones. */
typedef struct brc_aim {
    const char *branch; /* the current one; brc_sequence_change() sets it */
    const char *rev;    /* as the caller named it, and brc_aim_resolve() finds it once */
    int is_known;
    brc_oid id;
} brc_aim;
/* Within a read. */
BRC_MUST_USE int brc_aim_resolve(brc_aim *aim, brc_store *store, brc_oid *out, brc_error *err);
/* brc_change_run() for what moves the current branch: once() is given `aim` as its ctx, and `doing` is for
 * brc_change_is_late(). */
BRC_MUST_USE int brc_sequence_change(brc_aim *aim, breccia *repo, const char *doing,
                                     int (*once)(void *aim, int insists, brc_error *err), brc_error *err);
/* BRC_EMISUSE within a transaction, BRC_EREADONLY; `what`: "a revert". */
BRC_MUST_USE int brc_sequence_can_start(breccia *repo, const char *what, brc_error *err);
BRC_MUST_USE int brc_sequence_start(brc_sequence *q, brc_error *err);
/* What is open on the branch goes on from the commit that its draft lies over. q->draft may be set anew before the
 * next step: as it was looked at last. The branch may have moved since its tip: q->tip is where it is now. */
BRC_MUST_USE int brc_sequence_resume(brc_sequence *q, const char *branch, const brc_draft_head *draft, brc_error *err);
void brc_sequence_dispose(brc_sequence *q);
/* The next step comes on this commit. */
BRC_MUST_USE int brc_sequence_go_to(brc_sequence *q, const brc_oid *commit, brc_error *err);
/* ... on the branch's, or on none. */
BRC_MUST_USE int brc_sequence_go_to_tip(brc_sequence *q, brc_error *err);
/* Merging of q->run begins; until the step is put or kept, what it stores belongs to a bulk write. */
BRC_MUST_USE int brc_sequence_bulk_begin(brc_sequence *q, brc_error *err);
/* Puts a step that was merged without a conflict: what q->run.tree has, or without a tree what `other` has. */
BRC_MUST_USE int brc_sequence_put(brc_sequence *q, const brc_step *step, int *result, brc_error *err);
/* Merges a step and puts it. *result: BRC_STEP_*. After a conflict q->run.tree has them, and there is no further step. */
BRC_MUST_USE int brc_sequence_step(brc_sequence *q, const brc_step *step, int *result, brc_error *err);
/* Puts a step that was settled: this snapshot, with what moved since q->now. *result: BRC_STEP_DONE or _EMPTY. */
BRC_MUST_USE int brc_sequence_add(brc_sequence *q, const brc_step *step, const brc_oid *root, const brc_move_set *moves,
                                  int *result, brc_error *err);
/* Where no last step has done so: the branch goes to q->now, if that is not where it is. */
BRC_MUST_USE int brc_sequence_end(brc_sequence *q, brc_error *err);

/* After a conflict: what was merged stays open on the branch, as draft *draft. Of `what` plan, change and more count:
 * the change is that of the step. */
BRC_MUST_USE int brc_sequence_keep(brc_sequence *q, const brc_open_merge_new *what, int64_t *draft, brc_error *err);

/* Normal forms of paths, sorted; brc_paths_free() releases what there is, also after a failure. */
BRC_MUST_USE int brc_paths_normal(char ***out, const char *const *paths, size_t n, brc_error *err);
void brc_paths_free(char **paths, size_t n);

/* ---- pick -------------------------------- */

/* What cherry-pick, revert and rebase take and give. */

/* Options as a caller gave them, checked: these flags are allowed beside those of a side. */
BRC_MUST_USE int brc_pick_opts_take(brc_pick_opts *own, const brc_pick_opts *given, uint32_t flags, brc_error *err);
/* `paths` in normal form; they are used as long as the sequence is. */
void brc_pick_opts_apply(brc_sequence *q, const brc_pick_opts *opts, char *const *paths);
/* The caller's result and list of conflicts; `at`: the commit whose change is in conflict. */
BRC_MUST_USE int brc_pick_answer(brc_pick_result *out, brc_iter **conflicts, brc_sequence *q, brc_pick_result *result,
                                 const brc_oid *at, brc_error *err);

#endif
