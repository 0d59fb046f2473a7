/* Nodes that one commit removed and a later one made again. */
#ifndef BRC_HISTORY_MADE_AGAIN_H
#define BRC_HISTORY_MADE_AGAIN_H

#include "move_set.h"

/* Adds a line for each node that `after` has, `before` has not, and `older` has, at one path, unless it has
 * come there by one of the moves from `before`, or is what it was in `older`. `older` leads to `before`, and
 * that to `after`: snapshots. Costs what differs. `out` is not sealed then. */
BRC_MUST_USE int brc_made_again(brc_move_set *out, brc_store *store, const brc_oid *older, const brc_oid *before,
                                const brc_oid *after, const brc_move_set *moves, brc_error *err);

#endif
