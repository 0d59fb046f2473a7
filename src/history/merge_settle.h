/* Where nodes go that theirs has made or moved. For merge_tree.c. */
#ifndef BRC_HISTORY_MERGE_SETTLE_H
#define BRC_HISTORY_MERGE_SETTLE_H

#include "merge_spots.h"

/* Puts each where it wishes to be, or notes a conflict and leaves it where ours has it. */
BRC_MUST_USE int brc_merge_settle_places(brc_merge_tree *m, brc_error *err);

#endif
