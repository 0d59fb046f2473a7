/*
 * A commit that lost the race: the branch has moved since the changes of a session began. They
 * are merged onto the new tip, by the rules of a merge, and become a commit with that as its one
 * parent. It is a change (store/change.h): everything is computed without the lock, and the last, short
 * transaction checks that tip and draft are still what they were.
 */
#ifndef BRC_MERGE_REPLAY_H
#define BRC_MERGE_REPLAY_H

#include "../history/merge_list.h"
#include "../work/fold.h"
#include "merge_array.h"

/* ---- conflicts -------------------------------- */

/* Conflicts as users see them. */

/* An iterator over them, which takes them out of the list (NULL: none). */
BRC_MUST_USE int brc_conflict_list(brc_iter **out, brc_clash_list *list, brc_error *err);
/* The same, of those that are not settled; the others are gone. */
BRC_MUST_USE int brc_conflict_list_open(brc_iter **out, brc_clash_list *list, brc_error *err);

/* ---- replay -------------------------------- */

/*
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
    brc_draft_head draft; /* what the changes were                                    */
    brc_folded folded;    /* ... and the snapshot that they are                       */
    int64_t collected;    /* the last collection that had begun before                */
    brc_merge_run run;    /* in.base: what they lie over; ours: the tip; theirs: they */
} brc_replay;
void brc_replay_start(brc_replay *r, brc_session *s);
void brc_replay_end(brc_replay *r);
/* Merges the changes onto the tip, outside of a transaction. BRC_ECONFLICT: the changes are in conflict with what is new, and are kept. */
BRC_MUST_USE int brc_replay_work_commit(brc_replay *r, brc_error *err);
/* Makes the commit, in commit(). Its text is what `like` says, but for parents and root. BRC_OK, or BRC_CHANGE_AGAIN.
 * *out: the commit, or the tip where it has all of the changes already. */
BRC_MUST_USE int brc_replay_commit(brc_replay *r, const brc_commit *like, int may_be_empty, brc_oid *out, brc_error *err);
/* A private draft that nobody works on becomes what its branch shares, merged onto the tip in the same way, but
 * uncommitted. *done 0: it was left as it is, for it follows the tip, is in conflict with that, or would have to be
 * laid over other changes. Not within a transaction. */
BRC_MUST_USE int brc_replay_adopt(int *done, breccia *repo, const char *branch, int64_t draft, brc_error *err);

#endif
