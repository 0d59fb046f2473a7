/*
 * Moves among the nodes that were added and removed. A node that is gone in one place
 * and new, the same in every bit, in another has moved; of several that are the same,
 * the first by path that is left. What is under a moved node has moved with it and is
 * not reported again.
 */
#ifndef BRC_HISTORY_MOVES_H
#define BRC_HISTORY_MOVES_H

#include "node_diff.h"

/* The changes are in order by path, added and removed nodes with everything under
 * them. A change that another one covers gets `what` 0. */
BRC_MUST_USE int brc_moves_find(brc_node_change *changes, size_t n, brc_error *err);

#endif
