/*
 * Walks a hierarchy: every node at and under a path, groups before their contents, children by
 * name. It keeps one cursor for each level, so a walk through millions of nodes takes little
 * memory; the rows of drafts, if there are any, are read once.
 *
 * Every node that it returns has an allowed name, a readable entry, and a path within BRC_DEPTH_MAX
 * and BRC_PATH_MAX. Any other node is BRC_ECORRUPT, with its path, and the next call continues
 * after it. Objects never change, so a walk needs no transaction once it has begun.
 */
#ifndef BRC_HISTORY_TREE_WALK_H
#define BRC_HISTORY_TREE_WALK_H

#include "../store/store.h"
#include "snapshot.h"

/* ---- budget -------------------------------- */

/* The number of nodes that one call may visit. A small file can hold a hierarchy that no machine
 * could list: n groups that share their children have 2^n paths. */

typedef struct brc_budget {
    uint64_t max, used;
} brc_budget;

/* Returns a fresh budget for one call, from brc_open_opts.max_nodes. */
brc_budget brc_budget_of(const brc_store *store);
/* Counts one visit. Past the limit it fails with BRC_ELIMIT and a message that says how to raise
 * the limit. */
BRC_MUST_USE int brc_budget_take(brc_budget *budget, brc_error *err);

/* ---- tree walk -------------------------------- */

enum {
    BRC_WALK_RECURSE = 1, /* everything under the node, not only its children      */
    BRC_WALK_LEAVE = 2    /* return groups again after everything under them        */
};

typedef struct brc_tree_node {
    const char *path;      /* borrowed until the next step                        */
    const char *name;      /* the last name of the path; "" for the root          */
    size_t depth;          /* number of names in the path                         */
    brc_entry entry;
    int64_t row;           /* its row in the draft; 0: none                       */
    int leaving;           /* 1: returned the second time (BRC_WALK_LEAVE)        */
} brc_tree_node;

typedef struct brc_tree_walk brc_tree_walk;

/* Starts at the node at `path` (in normal form), which has this entry and row; it is returned
 * first. `drafts` are the drafts whose changes apply, the second on top of the first, or 0. With a
 * draft, call it within a read or a write. */
BRC_MUST_USE int brc_tree_walk_new(brc_tree_walk **out, brc_store *store, const char *path, const brc_entry *entry,
                                   int64_t row, const int64_t drafts[2], int flags, brc_error *err);
void brc_tree_walk_free(brc_tree_walk *walk);
/* Returns 1 with a node, or 0 at the end. Each visit counts against the store's budget. */
BRC_MUST_USE int brc_tree_walk_next(brc_tree_walk *walk, brc_tree_node *out, brc_error *err);

#endif
