/*
 * Moves among the nodes that came and went. A node that is gone in one place and new, the
 * same in every bit, in another has moved; of several that are the same, the first by path
 * that is left. What lies under a moved node has moved with it, and is not told again.
 */
#ifndef BRC_HISTORY_MOVES_H
#define BRC_HISTORY_MOVES_H

#include "node_diff.h"

/* The changes are in order by path, added and removed nodes each with everything under
 * them. What is told by another gets `what` 0. */
BRC_MUST_USE int brc_moves_find(brc_node_change *changes, size_t n, brc_error *err);

#endif
