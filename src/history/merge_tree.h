/*
 * Three versions of a hierarchy become one.
 *
 * Input are three snapshots, base, ours and theirs, and what has moved from the base to each of the
 * other two. Output are changes of OURS, which become a snapshot, and a list of what could not be
 * settled. Nothing here knows of refs, commits or drafts: a cherry-pick takes a commit's parent as
 * the base and the commit as theirs, a revert the other way round.
 *
 * A node is what the base calls it, wherever it is: its contents and its place are merged apart. Its
 * place is its parent, as a node, and its name. So an edit follows a move of the other side, and
 * what is put into a group goes where the group goes. What the base does not have is new, and new
 * nodes of both sides at one place are one node.
 *
 * Only what theirs changed is visited; what ours did not change is taken whole, as one entry. What
 * is in conflict stays as ours has it: a file that is merged by and by is always whole.
 *
 * What two versions of one node become is the layer's above, which knows arrays: brc_merge_ops.
 */
#ifndef BRC_HISTORY_MERGE_TREE_H
#define BRC_HISTORY_MERGE_TREE_H

#include "../base/arena.h"
#include "merge_list.h"
#include "move_set.h"

typedef struct brc_merge_three {
    brc_oid base, ours, theirs;        /* snapshots; zero: the empty one                */
    const brc_move_set *ours_moves;    /* from the base, reduced; NULL: none            */
    const brc_move_set *theirs_moves;
} brc_merge_three;

/* One node that both sides have, of one kind, and that both changed; or that theirs changed where
 * something under it has to be looked at. */
typedef struct brc_merge_place {
    const char *path;             /* in ours                                            */
    brc_entry base, ours, theirs; /* base.kind 0: both have made it; or another kind    */
} brc_merge_place;

/* What it becomes: a document, storage options, and of an array chunks. */
typedef struct brc_merged_node {
    brc_oid doc, storage;
    brc_buf text; /* of a document that is not stored yet; len 0: `doc` says it         */
    brc_oid map;  /* of an array, over which these edits are laid                       */
    void *edits;  /* brc_edit[], by key                                                 */
    size_t nedits, cap;
    brc_arena arena; /* their keys and values                                           */
} brc_merged_node;
/* The next edit; id zero: no chunk. */
BRC_MUST_USE int brc_merged_chunk(brc_merged_node *node, brc_span key, const brc_oid *id, size_t id_len, brc_error *err);

enum { BRC_FAVOUR_NONE = 0, BRC_FAVOUR_OURS = 1, BRC_FAVOUR_THEIRS = 2 };

typedef struct brc_merge_ops {
    void *ctx;
    /* Fills in what `out` says of ours where that changes. Conflicts go to the list, under place->path. */
    int (*node)(void *ctx, const brc_merge_place *place, brc_merged_node *out, brc_clash_list *clashes, brc_error *err);
    /* *same: 1 if two versions of one node differ only in how they are stored; of groups only
     * their own documents count. */
    int (*same)(void *ctx, const brc_entry *a, const brc_entry *b, int *same, brc_error *err);
    /* Who is favoured at a path: conflicts there are settled for that side. */
    int (*favour)(void *ctx, const char *path);
    /* NULL, or: a node in conflict becomes this instead of ours. For merge bases. */
    const brc_entry *unknown;
} brc_merge_ops;

typedef struct brc_merge_tree brc_merge_tree;

/* Finds out what is to be done; reads only. */
BRC_MUST_USE int brc_merge_tree_new(brc_merge_tree **out, brc_store *store, const brc_merge_three *input,
                                    const brc_merge_ops *ops, brc_error *err);
void brc_merge_tree_free(brc_merge_tree *tree);
/* By path. The layer above may take them out of it. */
brc_clash_list *brc_merge_tree_clashes(brc_merge_tree *tree);
/* Writes the maps of arrays with many changed chunks, in short transactions: never within one. */
BRC_MUST_USE int brc_merge_tree_ahead(brc_merge_tree *tree, brc_error *err);
/* Writes the rest, within a write or in scratch mode. *root: the snapshot. */
BRC_MUST_USE int brc_merge_tree_put(brc_merge_tree *tree, brc_oid *root, brc_error *err);
/* What has moved from ours to the result, `root`, after it was put. */
BRC_MUST_USE int brc_merge_tree_moves(brc_merge_tree *tree, const brc_oid *root, brc_move_set *out, brc_error *err);

#endif
