/*
 * What two versions of one node become, over their base: members of documents one by one, the shape
 * by axis, storage apart from data, chunks as merge_chunks.h says. The rules are in
 * docs/decisions/0021.
 */
#ifndef BRC_MERGE_MERGE_ARRAY_H
#define BRC_MERGE_MERGE_ARRAY_H

#include "../history/ancestry.h"
#include "merge_chunks.h"
#include "merge_tree.h"

/* ---- merge node -------------------------------- */

typedef struct brc_merge_how {
    breccia *repo;
    int favour;                /* BRC_FAVOUR_*: conflicts are settled for this side                   */
    const char *const *paths;  /* sorted: only at and under these; npaths 0: everywhere */
    size_t npaths;
    int is_exact;              /* only at them, not under them                          */
    /* Arrays that are taken whole as ours has them where forms and chunks do not go together, whoever is favoured. */
    const char *const *whole;
    size_t nwhole;
    /* Bases are merged: what cannot be settled is unknown, and no chunk is decoded as yet. */
    int is_virtual;
    int is_trial;              /* only conflicts are asked for: nothing is stored       */
    struct brc_concat_list *concat; /* what both sides append is joined; NULL: it is not */
    brc_entry unknown;         /* a node that is                                        */
    brc_base_chunks made;      /* chunks that bases are merged into                     */
} brc_merge_how;

/* ---- merge run -------------------------------- */

/*
 * A merge of three snapshots, from what they are to what they become. It reads, decodes and computes
 * without a lock; what comes of it is written by brc_merge_tree_put(), in the caller's transaction.
 *
 *      brc_merge_run run = BRC_MERGE_RUN_INIT;
 *      run.how.repo = repo;                       and whom to favour
 *      brc_merge_find_base(&run, ours, theirs)    or run.in.base, .ours, .theirs, and moves
 *      brc_merge_work(&run)                       run.tree: conflicts
 *      brc_merge_tree_ahead(run.tree)
 *      brc_store_begin() ... brc_merge_tree_put(run.tree, &root) ... brc_store_end()
 *      brc_merge_run_dispose(&run)
 *
 * A cherry-pick is base: the commit's parent, ours: the tip, theirs: the commit. A revert is base: the
 * commit, theirs: its parent. A draft whose branch has moved is base: what it lies over, ours: the
 * new tip, theirs: what it folds to. brc_moves_along() finds the moves from one commit to another.
 */

typedef struct brc_merge_run {
    brc_merge_how how;
    brc_merge_three in;
    brc_move_set ours_moves, theirs_moves; /* from in.base; sealed and reduced, or empty   */
    brc_merge_tree *tree;
    brc_merge_ops ops;
    int has_scratch; /* its base is in memory alone, till it is disposed of */
} brc_merge_run;
#define BRC_MERGE_RUN_INIT { .how = { .made = BRC_BASE_CHUNKS_INIT } }

/* The snapshots of two commits, their base, and what has moved since. bases->n 0: they have nothing in
 * common; several: they are merged. */
BRC_MUST_USE int brc_merge_find_base(brc_merge_run *run, const brc_oid *ours, const brc_oid *theirs, brc_commit_set *bases,
                                     brc_error *err);
/* Moves from a commit to one that follows it, reduced; none where that cannot be told. `out` is empty
 * before. */
BRC_MUST_USE int brc_moves_along(brc_move_set *out, brc_store *store, const brc_oid *older, const brc_oid *newer, brc_error *err);
/* Not within a read, and best within no transaction. */
BRC_MUST_USE int brc_merge_work(brc_merge_run *run, brc_error *err);
void brc_merge_run_dispose(brc_merge_run *run);

/* ---- merge concat -------------------------------- */

/*
 * Arrays that both sides of a merge have appended to, along one axis:
 *
 *      base     | 0 .. b |
 *      ours     | 0 .. b | ours appended   |
 *      theirs   | 0 .. b | theirs appended |
 *      result   | 0 .. b | ours appended | theirs appended |
 *
 * A first merge lists them and looks no further. Then each side is laid out as the result has it
 * (merge/merge.c), with fill value where the other one appended, and a second merge takes these for the
 * sides: their shapes are one, and no element is changed by both.
 */

typedef struct brc_concat {
    char *path;              /* in ours                                           */
    int axis;
    uint64_t base;           /* lengths of the axis: of the base,                 */
    uint64_t ours, theirs;   /* of what is appended to it                         */
    brc_entry side[2];       /* ours and theirs as they are, ...                  */
    brc_entry laid_out[2];   /* ... and as the result has them; kind 0: not yet   */
} brc_concat;

typedef struct brc_concat_list {
    brc_concat *items;
    size_t n, cap;
} brc_concat_list;
void brc_concat_list_dispose(brc_concat_list *list);

#endif
