/*
 * Finds what differs between two snapshots, node by node. Equal subtrees are skipped whole. A node
 * that is gone in one place and new in another, the same in every bit, has moved.
 */
#ifndef BRC_HISTORY_TREE_DIFF_H
#define BRC_HISTORY_TREE_DIFF_H

#include "../base/json.h"
#include "moves.h"
#include "snapshot.h"

/* ---- doc diff -------------------------------- */

/* The members in which two zarr.json documents differ. */

/* A list of JSON pointers. Attributes are compared member by member. */
typedef struct brc_pointers {
    char **items;
    size_t n, cap;
} brc_pointers;

BRC_MUST_USE int brc_doc_diff(brc_pointers *out, const brc_json *a, const brc_json *b, brc_error *err);
void brc_pointers_dispose(brc_pointers *pointers);

/* ---- children diff -------------------------------- */

/* The step from groups to their children, of a walk through two versions at once, or more: diffs, merges and what
 * versions hold. The caller keeps the list of nodes that are to be visited. */

/* Calls fn() for each child that differs, by name; kind 0: that side does not have it. Equal parts of the maps are
 * skipped whole. A node that is not a group has no children. */
typedef int (*brc_child_fn)(void *ctx, const char *name, const brc_entry *a, const brc_entry *b, brc_error *err);
BRC_MUST_USE int brc_children_diff(brc_store *store, const brc_entry *a, const brc_entry *b, brc_child_fn fn, void *ctx,
                                   brc_error *err);

/* ---- node diff -------------------------------- */

/* The differences between two states of one node: metadata, storage, chunks. */

typedef struct brc_node_change {
    char *path, *from;
    int what;          /* BRC_ADDED ... */
    brc_entry a, b;    /* kind 0 if that side does not have the node */
    char **metadata;   /* JSON pointers */
    size_t nmetadata;
    int storage_only;
    int rechunked;     /* the chunks of the two sides cannot be compared by key */
    uint64_t chunks_added, chunks_removed, chunks_changed;
} brc_node_change;

/* Fills in a change whose path and sides are set: metadata and chunks of a node on both sides, or
 * the chunks of a node on one side. */
BRC_MUST_USE int brc_node_diff(brc_node_change *c, brc_store *store, brc_error *err);
void brc_node_change_dispose(brc_node_change *c);

/* ---- tree diff -------------------------------- */

typedef struct brc_tree_diff {
    brc_node_change *changes; /* sorted by path */
    size_t n, cap;
} brc_tree_diff;

/* Compares two snapshots. `path` limits the comparison to this node and everything under it; NULL:
 * everything. With `follow` they are compared with what they were where the moves say that they
 * were, else a node that came from elsewhere is new. `moves` are the moves from a to b, reduced;
 * NULL: none are known. Fails with BRC_ECORRUPT for a hierarchy beyond the limits of snapshot.h, and
 * with BRC_ELIMIT for more nodes than the store allows one call to visit. */
BRC_MUST_USE int brc_tree_diff_run(brc_tree_diff *out, brc_store *store, const brc_oid *a,
                                   const brc_oid *b, const char *path, int follow, const brc_move_set *moves,
                                   brc_error *err);
void brc_tree_diff_dispose(brc_tree_diff *diff);

/* ---- made again -------------------------------- */

/* Nodes that one commit removed and a later commit made again. */

/* Adds a line for each path at which `after` and `older` have a node and `before` does not, unless
 * the node of `after` came there by one of the moves from `before`, or is the same as in `older`.
 * `older` leads to `before`, and `before` to `after`; all are snapshots. The work grows with the
 * difference. `out` is not sealed afterwards. */
BRC_MUST_USE int brc_made_again(brc_move_set *out, brc_store *store, const brc_oid *older, const brc_oid *before,
                                const brc_oid *after, const brc_move_set *moves, brc_error *err);

#endif
