/* Sessions on private drafts that are there already: by number, and by token. */
#ifndef BRC_ZARR_SESSION_DRAFT_H
#define BRC_ZARR_SESSION_DRAFT_H

#include "session.h"

/* A session that may change a private draft, whoever owns it: the caller has checked. It stays, even
 * if it is empty. */
BRC_MUST_USE int brc_session_take(brc_session **out, breccia *repo, const brc_draft_row *row, brc_error *err);
/* The one of these rows that the token names. BRC_EINVAL: it is no token; BRC_ENOTFOUND, BRC_ESTALE: it names none of
 * these, or one that was another's by then. */
BRC_MUST_USE int brc_token_find(const brc_draft_row **out, brc_store *store, const char *token, const brc_draft_row *rows,
                                size_t n, brc_error *err);

#endif
