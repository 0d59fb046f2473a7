/*
 * What differs between two snapshots, node by node. Equal subtrees are skipped
 * whole. A node that is gone in one place and new, the same in every bit, in
 * another has moved.
 */
#ifndef BRC_HISTORY_TREE_DIFF_H
#define BRC_HISTORY_TREE_DIFF_H

#include "move_set.h"
#include "node_diff.h"

typedef struct brc_tree_diff {
    brc_node_change *changes; /* by path */
    size_t n, cap;
} brc_tree_diff;

/* `path`: only this node and what is under it; NULL: all. `moves`: from a to b, reduced; NULL: none is
 * known. A hierarchy beyond the limits
 * of snapshot.h is BRC_ECORRUPT, and more nodes than the store allows one call to visit
 * BRC_ELIMIT. */
BRC_MUST_USE int brc_tree_diff_run(brc_tree_diff *out, brc_store *store, const brc_oid *a,
                                   const brc_oid *b, const char *path, const brc_move_set *moves, brc_error *err);
void brc_tree_diff_dispose(brc_tree_diff *diff);

#endif
