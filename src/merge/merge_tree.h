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
#ifndef BRC_MERGE_MERGE_TREE_H
#define BRC_MERGE_MERGE_TREE_H

#include "../base/alloc.h"
#include "../history/merge_list.h"
#include "../history/moves.h"
#include "../history/tree_walk.h"

/* ---- merge tree -------------------------------- */

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

/* ---- merge spots -------------------------------- */

/*
 * The places of a merge's result, as far as they were looked at: an overlay of our snapshot. For
 * the files of this header alone.
 *
 * A spot is one node. Those that ours has are found by their path there, which never changes; where
 * they are in the result is what parent and name say. A new one is found by its path in theirs.
 */

typedef struct brc_spot {
    const char *ours;         /* its path in ours; NULL: it is new                     */
    const char *theirs;       /* of a new or moved one: its path there                 */
    struct brc_spot *was;     /* its parent in ours                                    */
    struct brc_spot *parent;  /* in the result; NULL: the root                         */
    const char *was_name, *name;
    brc_entry before;         /* as ours has it                                        */
    brc_entry entry;          /* what it becomes, but for what is under it             */
    brc_merged_node *merged;  /* and this of it; NULL: no more than that               */
    int removed;
    int is_made;              /* theirs has come in the place of ours, as another node */
    int is_op;                /* it is new, or moved by theirs                         */
    brc_entry clash_base;     /* of an op: what a conflict says of it                  */
    struct brc_spot *wish;    /* of an op: where theirs has it                         */
    const char *wish_name;
    struct brc_spot *next;    /* the one that was made before it                       */
    size_t depth;             /* while it is written                                   */
    void *edits;              /* brc_edit[]: of its children                           */
    size_t nedits, cap;
} brc_spot;

/* One node, to be looked at. Paths in the three versions; NULL: it is not there. */
typedef struct brc_tri {
    const char *b, *o, *t;
    brc_entry eb, eo, et;
    int made_by;       /* BRC_FAVOUR_*: whose is another node than the base's, at its place */
    brc_spot *above;   /* its parent in the result, where it is new there */
    const char *name;
} brc_tri;

/* What two versions of a node become is worked out when all have been visited: that may decode. */
typedef struct brc_later {
    brc_merge_place place;
    brc_spot *spot;
} brc_later;

struct brc_merge_tree {
    brc_store *store;
    brc_merge_three in;
    const brc_merge_ops *ops;
    brc_budget budget;
    brc_arena arena;   /* spots and texts */
    brc_spot *spots;   /* the newest first */
    brc_spot *root;
    size_t nspots, nops;
    void *by_ours, *by_theirs; /* tsearch */
    brc_clash_list clashes;
    void *due;         /* brc_tri[]: still to be visited */
    size_t ndue, due_cap;
    void *later;       /* brc_later[]: contents that both sides have changed */
    size_t nlater, later_cap;
    brc_move_set none;
};

BRC_MUST_USE int brc_merge_text(brc_merge_tree *m, const char *text, size_t len, const char **out, brc_error *err);
/* The last name of a path, and the path above it. */
const char *brc_merge_name(const char *path);
BRC_MUST_USE int brc_merge_above(brc_merge_tree *m, const char *path, const char **out, brc_error *err);

BRC_MUST_USE int brc_spots_start(brc_merge_tree *m, brc_error *err);
void brc_spots_free(brc_merge_tree *m);
/* The spot of a node that ours has; NULL: it does not have it. */
BRC_MUST_USE int brc_spot_of_ours(brc_merge_tree *m, const char *path, brc_spot **out, brc_error *err);
/* What is at the name under a spot that ours has becomes a spot, if there is something. */
BRC_MUST_USE int brc_spot_show(brc_merge_tree *m, brc_spot *parent, const char *name, brc_error *err);
/* Where it is in the result. */
BRC_MUST_USE int brc_spot_path(const brc_spot *spot, brc_buf *out, brc_error *err);
int brc_merge_favours(const brc_merge_tree *m, const char *path);

/* ---- merge moves -------------------------------- */

/* What moves say about the nodes of a merge. For its own files. */

/* The spot of the node at a path of theirs; NULL: the result does not have it. */
BRC_MUST_USE int brc_merge_spot_of_theirs(brc_merge_tree *m, const char *path, brc_spot **out, brc_error *err);

/* ---- merge walk -------------------------------- */

/* The visits of a merge: which nodes are to be looked at, and what becomes of each. For
 * merge_tree.c. */

/* Visits everything that theirs has changed; afterwards ops know where they wish to be. */
BRC_MUST_USE int brc_merge_walk(brc_merge_tree *m, brc_error *err);
/* And merges the contents of nodes that both have changed: not within a read. */
BRC_MUST_USE int brc_merge_contents(brc_merge_tree *m, brc_error *err);

#endif
