/*
 * A commit that lost the race: the branch has moved since a private session's changes began. They
 * are merged onto the new tip, by the rules of a merge, and become a commit with that as its one
 * parent. Everything is computed without the lock; the last, short transaction looks whether tip
 * and draft are still what they were, or it is done again.
 */
#ifndef BRC_API_REPLAY_H
#define BRC_API_REPLAY_H

#include "../zarr/session.h"

/* The commit's text is what `like` says, but for parents and root. BRC_ECONFLICT where the changes are
 * in conflict with what is new: they are kept. *out: the commit, or the tip where it has all of them
 * already. Not within a transaction. */
BRC_MUST_USE int brc_replay_commit(brc_oid *out, brc_session *s, const brc_commit *like, int may_be_empty, brc_error *err);

#endif
