/*
 * An open merge: a merge with conflicts that is kept as a draft of its own (kind 3) until all of
 * them are settled. While a branch has an open merge, sessions on the branch work on its draft
 * instead of the shared draft: a write settles the conflicts at the place that is written.
 *
 * The draft is based on the branch's commit. At first it has one row, for "/", which is the merged
 * snapshot with every conflicting place as in ours. Rows of draft_move record moves, and rows of
 * `conflict` the conflicts. So the draft is a complete version at any time.
 *
 *      brc_merge_work(&run); brc_merge_tree_ahead(run.tree)       conflicts
 *      brc_store_begin() ... check that nothing has changed ... brc_open_merge_start() ... brc_store_end()
 *      any session on the branch, of any process
 *      brc_open_merge_read()                                       the open conflicts
 *      brc_merge_continue()                                        merge_end.c
 *
 * A cherry-pick or revert does the same with another run (step_change.h): `other` is NULL because
 * its commit has one parent, and the plan names the versions between which the change is. Ids in a
 * plan are roots of garbage collection; brc_gc_keep_commit() keeps them when the row is made.
 *
 * A rebase is a series of cherry-picks. It stops at one of them: its draft is based on the last
 * commit that was made, which no ref names, and its plan lists the remaining commits (rebase.c).
 */
#ifndef BRC_MERGE_OPEN_MERGE_H
#define BRC_MERGE_OPEN_MERGE_H

#include "../work/open_plan.h"
#include "../work/session.h"
#include "step_change.h"

typedef struct brc_open_merge_new {
    const char *branch;
    const brc_oid *tip;   /* the branch's commit; NULL: it has none              */
    const brc_oid *base;  /* of a rebase: ours; NULL: the tip                    */
    const brc_oid *other; /* the other parent; NULL: none                        */
    const char *plan;     /* {"op": "merge", "rev": TEXT, "message": TEXT}: the operation as in the
                           * operation log, the merged revision as the caller named it, and the commit's
                           * message. "base" and "theirs": commits, if the base is not that of tip and
                           * other. "settled": true if theirs is what was settled before the branch moved,
                           * on top of base. "at": the commit whose author, time and message are kept,
                           * except for "author", "time" and "message" in the plan */
    const brc_step_change *change; /* the change that the plan names; NULL: it names only `other` */
    const brc_oid *more;  /* further commits that the plan names                 */
    size_t nmore;
} brc_open_merge_new;
/* Begins an open merge. The branch must have neither a shared draft nor an open merge. Must be
 * called within a write. */
BRC_MUST_USE int brc_open_merge_start(int64_t *draft, brc_merge_run *run, const brc_open_merge_new *what, brc_error *err);

/* Reads the open merge of the session's branch. Must be called within a read or a change of the
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

#endif
