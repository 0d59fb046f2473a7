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
#ifndef BRC_ZARR_MERGE_RUN_H
#define BRC_ZARR_MERGE_RUN_H

#include "../history/merge_base.h"
#include "merge_node.h"

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

#endif
