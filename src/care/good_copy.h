/*
 * Repairing a file: good copies of damaged objects from another one, and derived rows anew.
 *
 * An object's id is the hash of its bytes, whatever their encoding: what has the id there is what
 * was lost here. So nothing is believed that was not hashed.
 */
#ifndef BRC_CARE_GOOD_COPY_H
#define BRC_CARE_GOOD_COPY_H

#include "../history/commit.h"

/* Puts what `from` has under this id in the place of what is there, in a transaction of its own. *copied 0: it has
 * none of this kind, or a damaged one. */
BRC_MUST_USE int brc_repair_copy(brc_store *store, brc_store *from, const brc_oid *id, int kind, int *copied, brc_error *err);
/* Whether it can be read and is what its id says. What only another build could read counts as good. */
BRC_MUST_USE int brc_repair_is_good(brc_store *store, const brc_oid *id, int kind, int *good, brc_error *err);
/* Drops all derived rows and makes those of commits anew; the others come when they are asked for. Rows
 * of expired pasts whose commit is not there go too. One transaction. */
BRC_MUST_USE int brc_repair_derived(brc_store *store, brc_error *err);

#endif
