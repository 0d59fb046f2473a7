/*
 * Repairs a file: takes good copies of damaged objects from another file, and rebuilds derived
 * rows.
 *
 * An object's id is the hash of its bytes, whatever their encoding, so an object with the same id
 * there is the one that was lost here. Every copy is hashed before it is trusted.
 */
#ifndef BRC_CARE_GOOD_COPY_H
#define BRC_CARE_GOOD_COPY_H

#include "../history/commit.h"

/* Replaces an object by the one that `from` has under this id, in a transaction of its own. *copied
 * is 0 if `from` has none of this kind, or a damaged one. */
BRC_MUST_USE int brc_repair_copy(brc_store *store, brc_store *from, const brc_oid *id, int kind, int *copied, brc_error *err);
/* Checks whether the object can be read and matches its id. An object that only another build could
 * read counts as good. */
BRC_MUST_USE int brc_repair_is_good(brc_store *store, const brc_oid *id, int kind, int *good, brc_error *err);
/* Drops all derived rows and rebuilds those of commits; the others are rebuilt when they are
 * needed. Rows of expired pasts whose commit does not exist are dropped too. One transaction. */
BRC_MUST_USE int brc_repair_derived(brc_store *store, brc_error *err);

#endif
