/* The visits of a merge: which nodes are to be looked at, and what becomes of each. For
 * merge_tree.c. */
#ifndef BRC_HISTORY_MERGE_WALK_H
#define BRC_HISTORY_MERGE_WALK_H

#include "merge_spots.h"

/* Visits everything that theirs has changed; afterwards ops know where they wish to be. */
BRC_MUST_USE int brc_merge_walk(brc_merge_tree *m, brc_error *err);
/* And merges the contents of nodes that both have changed: not within a read. */
BRC_MUST_USE int brc_merge_contents(brc_merge_tree *m, brc_error *err);

#endif
