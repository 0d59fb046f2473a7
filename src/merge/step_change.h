/*
 * The change of another commit, as a merge: ours is where the change is applied, and base and
 * theirs are the versions between which it is.
 *
 *      brc_store_begin_read()
 *      brc_step_change_read(&run, &change, &ours)
 *      brc_store_end_read()
 *      brc_merge_work(&run)                 merge_array.h
 */
#ifndef BRC_MERGE_STEP_CHANGE_H
#define BRC_MERGE_STEP_CHANGE_H

#include "merge_array.h"

typedef struct brc_step_change {
    int has_base, has_theirs;
    brc_oid base, theirs; /* commits; none: the empty snapshot                     */
    int is_back;          /* theirs comes before base: the change is taken back    */
} brc_step_change;

/* For a series of changes: the moves from the last change's base to where it was applied. Those of
 * the next change are derived from them, without a search through all commits made meanwhile. Must
 * be { 0 } before the first. */
typedef struct brc_moves_carried {
    int is_known;
    brc_oid from, to;   /* commits                                        */
    brc_move_set moves;
    size_t searches;    /* how often the moves were found from the common ancestor */
} brc_moves_carried;
void brc_moves_carried_dispose(brc_moves_carried *carried);

/* Reads the snapshots and moves of a change. run->how.repo must be set. If `ours` is NULL, there is
 * no commit yet; if `carried` is NULL, it is the only change. Must be called within a read. */
BRC_MUST_USE int brc_step_change_read(brc_merge_run *run, const brc_step_change *change, const brc_oid *ours,
                                      brc_moves_carried *carried, brc_error *err);

#endif
