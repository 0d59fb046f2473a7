/* The end of an open merge. */
#ifndef BRC_API_MERGE_DRAFT_H
#define BRC_API_MERGE_DRAFT_H

#include "../zarr/open_merge.h"

/* Commits what the session's open merge has become, with its other parent, and ends it. The operation log
 * says what the plan says ("op"). BRC_EMISUSE: none is open; BRC_ECONFLICT: something is not settled;
 * BRC_ESTALE: the branch has moved since. */
BRC_MUST_USE int brc_session_commit_merge(brc_oid *out, brc_session *s, const brc_commit_opts *opts, brc_error *err);
/* BRC_ECONFLICT, for what cannot be done while a merge is open on the branch. */
int brc_merge_is_open(brc_store *store, const char *branch, brc_error *err);

#endif
