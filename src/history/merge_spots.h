/*
 * The places of a merge's result, as far as they were looked at: an overlay of our snapshot. For
 * merge_tree.h's own files.
 *
 * A spot is one node. Those that ours has are found by their path there, which never changes; where
 * they are in the result is what parent and name say. A new one is found by its path in theirs.
 */
#ifndef BRC_HISTORY_MERGE_SPOTS_H
#define BRC_HISTORY_MERGE_SPOTS_H

#include "budget.h"
#include "merge_tree.h"

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
/* "/" and "a" to "/a", of this tree's memory. */
BRC_MUST_USE int brc_merge_join(brc_merge_tree *m, const char *path, const char *name, const char **out, brc_error *err);
/* The last name of a path, and the path above it. */
const char *brc_merge_name(const char *path);
BRC_MUST_USE int brc_merge_above(brc_merge_tree *m, const char *path, const char **out, brc_error *err);

BRC_MUST_USE int brc_spots_start(brc_merge_tree *m, brc_error *err);
void brc_spots_free(brc_merge_tree *m);
/* The spot of a node that ours has; NULL: it does not have it. */
BRC_MUST_USE int brc_spot_of_ours(brc_merge_tree *m, const char *path, brc_spot **out, brc_error *err);
/* A new node of theirs. */
BRC_MUST_USE int brc_spot_new(brc_merge_tree *m, const char *theirs, brc_spot **out, brc_error *err);
/* One of ours is what theirs has made there too. */
BRC_MUST_USE int brc_spot_is_theirs(brc_merge_tree *m, brc_spot *spot, const char *theirs, brc_error *err);
brc_spot *brc_spot_of_theirs(const brc_merge_tree *m, const char *path);
/* What is at the name under a spot that ours has becomes a spot, if there is something. */
BRC_MUST_USE int brc_spot_show(brc_merge_tree *m, brc_spot *parent, const char *name, brc_error *err);
/* Where it is in the result. */
BRC_MUST_USE int brc_spot_path(const brc_spot *spot, brc_buf *out, brc_error *err);
int brc_merge_favours(const brc_merge_tree *m, const char *path);
/* A spot for `merged`. */
BRC_MUST_USE int brc_spot_merged(brc_spot *spot, brc_error *err);

#endif
