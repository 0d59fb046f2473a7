/*
 * Merges three versions of a hierarchy into one.
 *
 * The input is three snapshots, base, ours and theirs, and the moves from the base to each of the
 * other two. The output is a set of changes to OURS, which become a snapshot, and a list of
 * conflicts. This file knows nothing of refs, commits or drafts: a cherry-pick takes a commit's
 * parent as the base and the commit as theirs, and a revert the other way round.
 *
 * A node is identified by its path in the base, wherever it is now: its contents and its place are
 * merged separately. Its place is its parent node and its name. So an edit follows the other side's
 * move of the node, and a node that is put into a group goes where the group goes. A node that the
 * base does not have is new, and new nodes of both sides at the same place are one node.
 *
 * Only nodes that theirs changed are visited; a node that ours did not change is taken whole, as
 * one entry. A node in conflict stays as ours has it, so that a file is complete at every moment of
 * a merge.
 *
 * The layer above, which knows arrays, merges two versions of one node: see brc_merge_ops.
 */
#ifndef BRC_MERGE_MERGE_TREE_H
#define BRC_MERGE_MERGE_TREE_H

#include "../base/alloc.h"
#include "../history/merge_list.h"
#include "../history/moves.h"
#include "../history/tree_walk.h"

/* ---- merge tree -------------------------------- */

typedef struct brc_merge_three {
    brc_oid base, ours, theirs;        /* snapshots; zero: the empty snapshot           */
    const brc_move_set *ours_moves;    /* moves from the base, reduced; NULL: none      */
    const brc_move_set *theirs_moves;
} brc_merge_three;

/* A node that both sides have, of the same kind. Both sides changed it, or theirs changed it and
 * something under it must be examined. */
typedef struct brc_merge_place {
    const char *path;             /* its path in ours                                   */
    brc_entry base, ours, theirs; /* base.kind 0: both sides made the node, or the base has another kind */
} brc_merge_place;

/* The merged node: a document, storage options and, for an array, chunks. */
typedef struct brc_merged_node {
    brc_oid doc, storage;
    brc_buf text; /* the text of a document that is not stored yet; len 0: `doc` is the document */
    brc_oid map;  /* of an array: the map to which `edits` are applied                  */
    void *edits;  /* brc_edit[], sorted by key                                          */
    size_t nedits, cap;
    brc_arena arena; /* memory of their keys and values                                 */
} brc_merged_node;
/* Adds the next edit; id zero: the chunk is absent. */
BRC_MUST_USE int brc_merged_chunk(brc_merged_node *node, brc_span key, const brc_oid *id, size_t id_len, brc_error *err);

enum { BRC_FAVOUR_NONE = 0, BRC_FAVOUR_OURS = 1, BRC_FAVOUR_THEIRS = 2 };

typedef struct brc_merge_ops {
    void *ctx;
    /* Merges a node: changes `out`, which describes ours, where the result differs. Conflicts are
     * added to the list under place->path. */
    int (*node)(void *ctx, const brc_merge_place *place, brc_merged_node *out, brc_clash_list *clashes, brc_error *err);
    /* Sets *same to 1 if two versions of one node differ only in how they are stored; of groups,
     * only the groups' own documents count. */
    int (*same)(void *ctx, const brc_entry *a, const brc_entry *b, int *same, brc_error *err);
    /* Returns the favoured side at a path; conflicts there are settled for that side. */
    int (*favour)(void *ctx, const char *path);
    /* If not NULL, a node in conflict becomes this entry instead of ours. Used for merge bases. */
    const brc_entry *unknown;
} brc_merge_ops;

typedef struct brc_merge_tree brc_merge_tree;

/* Plans the merge; only reads. */
BRC_MUST_USE int brc_merge_tree_new(brc_merge_tree **out, brc_store *store, const brc_merge_three *input,
                                    const brc_merge_ops *ops, brc_error *err);
void brc_merge_tree_free(brc_merge_tree *tree);
/* Returns the conflicts, sorted by path. The layer above may take them out of the list. */
brc_clash_list *brc_merge_tree_clashes(brc_merge_tree *tree);
/* Writes the maps of arrays with many changed chunks in short transactions, and therefore must not
 * be called within one. */
BRC_MUST_USE int brc_merge_tree_ahead(brc_merge_tree *tree, brc_error *err);
/* Writes the rest, within a write or in scratch mode. *root is the snapshot. */
BRC_MUST_USE int brc_merge_tree_put(brc_merge_tree *tree, brc_oid *root, brc_error *err);
/* Finds the moves from ours to the result `root`, after it was put. */
BRC_MUST_USE int brc_merge_tree_moves(brc_merge_tree *tree, const brc_oid *root, brc_move_set *out, brc_error *err);

/* ---- merge spots -------------------------------- */

/*
 * The places of a merge's result, as far as they have been examined: an overlay of the snapshot of
 * ours. Only for the files of this header.
 *
 * A spot is one node. A spot of ours is found by its path in ours, which never changes; its parent
 * and name say where it is in the result. A new spot is found by its path in theirs.
 */

typedef struct brc_spot {
    const char *ours;         /* its path in ours; NULL: it is new                     */
    const char *theirs;       /* of a new or moved spot: its path in theirs            */
    struct brc_spot *was;     /* its parent in ours                                    */
    struct brc_spot *parent;  /* its parent in the result; NULL: it is the root        */
    const char *was_name, *name;
    brc_entry before;         /* its entry in ours                                     */
    brc_entry entry;          /* its entry in the result, apart from the nodes under it */
    brc_merged_node *merged;  /* the merged contents, which belong to `entry`; NULL: none */
    int removed;
    int is_made;              /* theirs has replaced the node of ours by another node */
    int is_op;                /* it is new, or theirs has moved it                     */
    brc_entry clash_base;     /* of an op: the base's entry for a conflict             */
    struct brc_spot *wish;    /* of an op: its parent in theirs                        */
    const char *wish_name;
    struct brc_spot *next;    /* the spot that was made before this one                */
    size_t depth;             /* used while the result is written                      */
    void *edits;              /* brc_edit[]: edits of its children                     */
    size_t nedits, cap;
} brc_spot;

/* A node to be examined: its paths in the three versions; NULL: the version does not have it. */
typedef struct brc_tri {
    const char *b, *o, *t;
    brc_entry eb, eo, et;
    int made_by;       /* BRC_FAVOUR_*: the side that has replaced the base's node by another */
    brc_spot *above;   /* of a new node: its parent in the result */
    const char *name;
} brc_tri;

/* A node whose two versions are merged after all nodes have been visited, because that may need
 * decoding. */
typedef struct brc_later {
    brc_merge_place place;
    brc_spot *spot;
} brc_later;

struct brc_merge_tree {
    brc_store *store;
    brc_merge_three in;
    const brc_merge_ops *ops;
    brc_budget budget;
    brc_arena arena;   /* memory of spots and texts */
    brc_spot *spots;   /* newest first */
    brc_spot *root;
    size_t nspots, nops;
    void *by_ours, *by_theirs; /* trees for tsearch */
    brc_clash_list clashes;
    void *due;         /* brc_tri[]: nodes still to be visited */
    size_t ndue, due_cap;
    void *later;       /* brc_later[]: nodes whose contents both sides have changed */
    size_t nlater, later_cap;
    brc_move_set none;
};

BRC_MUST_USE int brc_merge_text(brc_merge_tree *m, const char *text, size_t len, const char **out, brc_error *err);
/* Return the last name of a path, and the path above it. */
const char *brc_merge_name(const char *path);
BRC_MUST_USE int brc_merge_above(brc_merge_tree *m, const char *path, const char **out, brc_error *err);

BRC_MUST_USE int brc_spots_start(brc_merge_tree *m, brc_error *err);
void brc_spots_free(brc_merge_tree *m);
/* Finds the spot of a node of ours; NULL if ours does not have it. */
BRC_MUST_USE int brc_spot_of_ours(brc_merge_tree *m, const char *path, brc_spot **out, brc_error *err);
/* Makes a spot for the node with this name under a spot of ours, if there is one. */
BRC_MUST_USE int brc_spot_show(brc_merge_tree *m, brc_spot *parent, const char *name, brc_error *err);
/* Returns its path in the result. */
BRC_MUST_USE int brc_spot_path(const brc_spot *spot, brc_buf *out, brc_error *err);
int brc_merge_favours(const brc_merge_tree *m, const char *path);

/* ---- merge moves -------------------------------- */

/* Moves of the nodes of a merge. For merge_tree.c and merge_walk.c. */

/* Finds the spot of the node at a path of theirs; NULL if the result does not have it. */
BRC_MUST_USE int brc_merge_spot_of_theirs(brc_merge_tree *m, const char *path, brc_spot **out, brc_error *err);

/* ---- merge walk -------------------------------- */

/* The visits of a merge: which nodes must be examined, and what each becomes. For merge_tree.c. */

/* Visits everything that theirs has changed; afterwards each op has its wish. */
BRC_MUST_USE int brc_merge_walk(brc_merge_tree *m, brc_error *err);
/* Merges the contents of nodes that both sides have changed. Must not be called within a read. */
BRC_MUST_USE int brc_merge_contents(brc_merge_tree *m, brc_error *err);

#endif
