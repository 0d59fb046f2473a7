/*
 * An open merge: one that left something to decide, kept as a draft of its own (kind 3) until all of
 * it is settled. While a branch has one, sessions on the branch work on it, as they do on the shared draft
 * otherwise: what a user writes settles what is written.
 *
 * The draft lies over the branch's commit. Its one row at first, of "/", is the merged snapshot, in
 * which everything in conflict is as ours has it; rows of draft_move say what moved, and rows of
 * `conflict` what is to be decided. So the draft is a whole version at any time.
 *
 *      brc_merge_work(&run); brc_merge_tree_ahead(run.tree)       conflicts
 *      brc_store_begin() ... that nothing has changed ... brc_open_merge_start() ... brc_store_end()
 *      any session on the branch, by whatever process
 *      brc_open_merge_read()                                       what is left
 *      brc_merge_continue()                                        merge_end.c
 *
 * A cherry-pick or revert does the same with another run (step_change.h): `other` is NULL, for its commit
 * has one parent, and the plan names the versions between which the change lies. Ids in a plan are roots
 * of collections; brc_gc_keep_commit() holds them when the row is made.
 *
 * A rebase is a row of cherry-picks. It stops at one of them: the draft lies over what was made before, a commit
 * that no ref names, and the plan says what is to come (rebase.c).
 */
#ifndef BRC_MERGE_OPEN_MERGE_H
#define BRC_MERGE_OPEN_MERGE_H

#include "../work/open_plan.h"
#include "../work/session.h"
#include "step_change.h"

typedef struct brc_open_merge_new {
    const char *branch;
    const brc_oid *tip;   /* the branch's commit; NULL: it has none              */
    const brc_oid *base;  /* ours, of a rebase; NULL: the tip                    */
    const brc_oid *other; /* the other parent; NULL: none                        */
    const char *plan;     /* {"op": "merge", "rev": TEXT, "message": TEXT}: op, as in the operation log; what
                             was merged, as it was called; the commit's message. "base", "theirs": commits,
                             where the base is not that of tip and other; "settled": true, theirs is what was settled before the
                             branch moved, over base. "at": the commit whose author, time
                             and message are kept, where "author", "time" and "message" are not there */
    const brc_step_change *change; /* what the plan names; NULL: nothing but `other`    */
    const brc_oid *more;  /* further commits that it names                       */
    size_t nmore;
} brc_open_merge_new;
/* Within a write. The branch must have neither a shared draft nor an open merge. */
BRC_MUST_USE int brc_open_merge_start(int64_t *draft, brc_merge_run *run, const brc_open_merge_new *what, brc_error *err);

/* That of the session's branch, in a read or a change of the session. */
BRC_MUST_USE int brc_open_merge_read(brc_open_merge *out, brc_session *s, brc_error *err);

/* BRC_ECONFLICT if something at or under the path is not settled: it would lose its place. In a change. */
BRC_MUST_USE int brc_open_merge_may_move(brc_session *s, const char *path, brc_error *err);

/* The merge again: run->how says whom to favour now, and where. */
BRC_MUST_USE int brc_open_merge_run(brc_merge_run *run, const brc_open_merge *merge, brc_error *err);
/* The draft becomes this snapshot; its moves stay, or are these (NULL: they stay). Within a change of the session. */
BRC_MUST_USE int brc_open_merge_lay(brc_session *s, const brc_oid *root, const brc_move_set *moves, brc_error *err);

#endif
