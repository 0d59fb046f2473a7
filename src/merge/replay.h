/*
 * Commits that lost a race: the branch has moved since the changes of a session began. The changes
 * are merged onto the new tip, by the rules of a merge, and become a commit with the tip as its
 * only parent. This is a change (store/change.h): everything is computed without the lock, and the
 * last, short transaction checks that tip and draft have not changed.
 */
#ifndef BRC_MERGE_REPLAY_H
#define BRC_MERGE_REPLAY_H

#include "../history/merge_list.h"
#include "../work/fold.h"
#include "merge_array.h"

/* ---- conflicts -------------------------------- */

/* Conflicts in the form that users see. */

/* Makes an iterator over the conflicts, and takes them out of the list (NULL: none). */
BRC_MUST_USE int brc_conflict_list(brc_iter **out, brc_clash_list *list, brc_error *err);
/* Like brc_conflict_list(), but only for the conflicts that are not settled; the others are
 * released. */
BRC_MUST_USE int brc_conflict_list_open(brc_iter **out, brc_clash_list *list, brc_error *err);

/* ---- replay -------------------------------- */

/*
 * How to replay:
 *
 *      brc_replay r;
 *      brc_replay_start(&r, session)
 *      brc_replay_work_commit(&r)             in work(): merges
 *      brc_replay_commit(&r, ...)             in commit(): checks, and makes the commit
 *      brc_replay_end(&r)
 */
typedef struct brc_replay {
    brc_session *s;
    brc_store *store;
    int has_tip;
    brc_oid tip;          /* where the branch is now                                  */
    brc_draft_head draft; /* the draft as it was merged ...                           */
    brc_folded folded;    /* ... and its folded snapshot                              */
    int64_t collected;    /* the last collection that began before the replay         */
    brc_merge_run run;    /* in.base: the snapshot on which the changes are based; ours: the tip; theirs:
                           * the changes */
} brc_replay;
void brc_replay_start(brc_replay *r, brc_session *s);
void brc_replay_end(brc_replay *r);
/* Merges the changes onto the tip, outside of a transaction. BRC_ECONFLICT: the changes are in conflict with what is new, and are kept. */
BRC_MUST_USE int brc_replay_work_commit(brc_replay *r, brc_error *err);
/* Makes the commit, in commit(). `like` gives everything except parents and root. Returns BRC_OK or
 * BRC_CHANGE_AGAIN. *out is the commit, or the tip if the tip already has all the changes. */
BRC_MUST_USE int brc_replay_commit(brc_replay *r, const brc_commit *like, int may_be_empty, brc_oid *out, brc_error *err);
/* Makes a private draft without a running owner part of its branch's shared changes: it is merged
 * onto the tip in the same way, but stays uncommitted. Sets *done to 0 if the draft was left as it
 * is because it follows the tip, conflicts with the tip, or would have to be applied on top of
 * other changes. Must not be called within a transaction. */
BRC_MUST_USE int brc_replay_adopt(int *done, breccia *repo, const char *branch, int64_t draft, brc_error *err);

#endif
