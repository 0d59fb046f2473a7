/* Removing branches and tags, and what undo needs of them: uncommitted changes and messages. */
#ifndef BRC_API_REFS_H
#define BRC_API_REFS_H

#include "../work/session.h"

/* Sets *none to 1 if there are no private drafts, except for those kept from an earlier branch of
 * this name. */
BRC_MUST_USE int brc_branch_no_private(brc_store *store, const char *branch, int *none, brc_error *err);
/* Deletes a ref (by its full name). A branch's shared draft stays without an owner if it has
 * changes, and so does an open merge. Private drafts are dropped, because they cannot be committed
 * without the branch. */
BRC_MUST_USE int brc_ref_leave(brc_store *store, const char *full, brc_error *err);
/* Appends the message of the tag that was deleted with this row of the operation log; "" if it had
 * none. */
BRC_MUST_USE int brc_ref_message_kept(brc_buf *out, brc_store *store, int64_t seq, brc_error *err);
/* Restores a draft, within the transaction that makes the branch again, which must not have a draft
 * yet. A draft that was dropped meanwhile does not come back. */
BRC_MUST_USE int brc_branch_come_back(brc_store *store, const char *branch, int64_t kept, brc_error *err);
/* Gives the shared changes of one branch to another at the same commit that has none. Otherwise they stay where they
 * are. Fails with BRC_ECONFLICT if the branch has an open merge. */
BRC_MUST_USE int brc_changes_carry(brc_store *store, const char *from, const char *to, brc_error *err);

#endif
