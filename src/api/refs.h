/* Branches and tags that go, and what undo needs of them: what is uncommitted, and messages. */
#ifndef BRC_API_REFS_H
#define BRC_API_REFS_H

#include "../work/session.h"

/* *none: 1 if there are no private drafts, but for what was kept of an earlier branch of this name. */
BRC_MUST_USE int brc_branch_no_private(brc_store *store, const char *branch, int *none, brc_error *err);
/* Deletes a ref (its full name). The shared draft of a branch stays, nobody's, if something is changed in
 * it, and so does an open merge; private ones go: without the branch they cannot be committed. */
BRC_MUST_USE int brc_ref_leave(brc_store *store, const char *full, brc_error *err);
/* Appends the message of the tag that went with this row of the operation log; "": it had none. */
BRC_MUST_USE int brc_ref_message_kept(brc_buf *out, brc_store *store, int64_t seq, brc_error *err);
/* Within the transaction that makes the branch again, which has no draft yet. A draft that was dropped
 * meanwhile does not come back. */
BRC_MUST_USE int brc_branch_come_back(brc_store *store, const char *branch, int64_t kept, brc_error *err);

#endif
