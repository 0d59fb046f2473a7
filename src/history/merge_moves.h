/* What moves say about the nodes of a merge. For its own files. */
#ifndef BRC_HISTORY_MERGE_MOVES_H
#define BRC_HISTORY_MERGE_MOVES_H

#include "merge_spots.h"

/* Whether either side has moved this node of the base. */
int brc_merge_has_moved(const brc_merge_tree *m, const char *base);
/* Whether a move begins (from 1) or ends under the path. */
int brc_merge_moves_under(const brc_move_set *set, const char *path, int from);
/* Whether any move leads out of the node on either side, or into it. */
int brc_merge_is_crossed(const brc_merge_tree *m, const brc_tri *at);
/* Where a node of the base is on one side: *path NULL, and kind 0: it is gone. */
BRC_MUST_USE int brc_merge_follow(brc_merge_tree *m, const brc_oid *side, const brc_move_set *moves, const char *base,
                                  const char **path, brc_entry *entry, brc_error *err);
/* The spot of the node at a path of theirs; NULL: the result does not have it. */
BRC_MUST_USE int brc_merge_spot_of_theirs(brc_merge_tree *m, const char *path, brc_spot **out, brc_error *err);
/* Whether a side (theirs 1) differs from the base at or under a node, other than in how it is
 * stored. What has moved out of it does not count. */
BRC_MUST_USE int brc_merge_changed(brc_merge_tree *m, const brc_tri *at, int theirs, int *changed, brc_error *err);

#endif
