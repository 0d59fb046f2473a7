/*
 * Merges two versions of one node over their base: documents member by member, the shape by axis,
 * storage apart from data, and chunks as merge_chunks.h describes. The rules are in
 * docs/decisions/0021.
 */
#ifndef BRC_MERGE_MERGE_ARRAY_H
#define BRC_MERGE_MERGE_ARRAY_H

#include "merge_tree.h"

struct brc_base_chunks; /* merge_chunks.h */
struct brc_commit_set;  /* history/ancestry.h */

/* ---- merge node -------------------------------- */

typedef struct brc_merge_how {
    breccia *repo;
    int favour;                /* BRC_FAVOUR_*: the side for which conflicts are settled              */
    const char *const *paths;  /* sorted: conflicts are settled only at and under these; npaths 0:
                                * everywhere */
    size_t npaths;
    int is_exact;              /* conflicts are settled only at these paths, not under them */
    /* Arrays that ours provides completely, whichever side is favoured, if forms and chunks cannot
     * be merged. */
    const char *const *whole;
    size_t nwhole;
    /* Set while bases are merged: a member or chunk that cannot be settled is unknown, and no chunk
     * is decoded yet. */
    int is_virtual;
    int is_trial;              /* the caller only wants the conflicts: nothing is stored */
    struct brc_concat_list *concat; /* arrays to which both sides append are joined; NULL: they are not */
    brc_entry unknown;         /* the entry of an unknown node                          */
    struct brc_base_chunks *made; /* the chunks of merged bases; NULL: there is one base at most */
} brc_merge_how;

/* ---- merge run -------------------------------- */

/*
 * A merge of three snapshots, from the inputs to the result. It reads, decodes and computes without
 * a lock; brc_merge_tree_put() writes the result in the caller's transaction.
 *
 *      brc_merge_run run = BRC_MERGE_RUN_INIT;
 *      run.how.repo = repo;                       and the favoured side
 *      brc_merge_find_base(&run, ours, theirs)    or run.in.base, .ours, .theirs, and the moves
 *      brc_merge_work(&run)                       run.tree has the conflicts
 *      brc_merge_tree_ahead(run.tree)
 *      brc_store_begin() ... brc_merge_tree_put(run.tree, &root) ... brc_store_end()
 *      brc_merge_run_dispose(&run)
 *
 * In a cherry-pick, base is the commit's parent, ours the tip and theirs the commit. In a revert,
 * base is the commit and theirs its parent. For a draft whose branch has moved, base is the commit
 * on which the draft is based, ours the new tip and theirs the folded draft. brc_moves_along()
 * finds the moves from one commit to another.
 */

typedef struct brc_merge_run {
    brc_merge_how how;
    brc_merge_three in;
    brc_move_set ours_moves, theirs_moves; /* from in.base; sealed and reduced, or empty   */
    brc_merge_tree *tree;
    brc_merge_ops ops;
    int has_scratch; /* its base exists only in memory, until the run is disposed of */
} brc_merge_run;
#define BRC_MERGE_RUN_INIT { .how = { .repo = NULL } }

/* Finds the snapshots of two commits, their base, and the moves since the base. If bases->n is 0,
 * the commits have no common ancestor; several bases are merged. */
BRC_MUST_USE int brc_merge_find_base(brc_merge_run *run, const brc_oid *ours, const brc_oid *theirs,
                                     struct brc_commit_set *bases, brc_error *err);
/* Finds the moves from a commit to a commit that follows it, reduced; none if they cannot be
 * determined. `out` must be empty. */
BRC_MUST_USE int brc_moves_along(brc_move_set *out, brc_store *store, const brc_oid *older, const brc_oid *newer, brc_error *err);
/* Merges. Must not be called within a read, and preferably not within a transaction. */
BRC_MUST_USE int brc_merge_work(brc_merge_run *run, brc_error *err);
void brc_merge_run_dispose(brc_merge_run *run);

/* ---- merge concat -------------------------------- */

/*
 * Arrays to which both sides of a merge have appended along one axis:
 *
 *      base     | 0 .. b |
 *      ours     | 0 .. b | ours appended   |
 *      theirs   | 0 .. b | theirs appended |
 *      result   | 0 .. b | ours appended | theirs appended |
 *
 * A first merge only lists these arrays. Then each side is laid out in the shape of the result
 * (merge/merge.c), with fill value where the other side appended, and a second merge merges the
 * laid-out sides: they have the same shape, and no element is changed by both.
 */

typedef struct brc_concat {
    char *path;              /* the array's path in ours                          */
    int axis;
    uint64_t base;           /* the axis's length in the base, ...                */
    uint64_t ours, theirs;   /* ... and how much each side appended               */
    brc_entry side[2];       /* ours and theirs as they are, ...                  */
    brc_entry laid_out[2];   /* ... and laid out as in the result; kind 0: not yet laid out */
} brc_concat;

typedef struct brc_concat_list {
    brc_concat *items;
    size_t n, cap;
} brc_concat_list;
void brc_concat_list_dispose(brc_concat_list *list);

#endif
