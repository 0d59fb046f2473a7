/*
 * Makes table delta anew (bases.h): the stored bytes of each difference begin with the id of its base.
 */
#ifndef BRC_STORE_DELTA_REBUILD_H
#define BRC_STORE_DELTA_REBUILD_H

#include "store.h"

/* Makes the table anew, in transactions of its own. Of an object whose bytes cannot be read a row stays that can be
 * right. */
BRC_MUST_USE int brc_deltas_rebuild(brc_store *store, brc_error *err);
/* Fails with BRC_ECORRUPT if a difference has no row, in short reads: a collection would remove what it builds on. Looks at
 * all objects of a file that ever had differences, and at none of others. */
BRC_MUST_USE int brc_deltas_check(brc_store *store, brc_error *err);

#endif
