/*
 * What another commit changed, as a merge: ours is where it is to be done, base and theirs are the
 * versions between which the change lies.
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
    int is_back;          /* theirs comes before base: a change is taken back      */
} brc_step_change;

/* Of changes that are done again one after the other: what moved from one's base to where it was done. The next one's is
 * told from it, and not by a search through all commits that were made by then. { 0 } before the first. */
typedef struct brc_moves_carried {
    int is_known;
    brc_oid from, to;   /* commits                                        */
    brc_move_set moves;
    size_t searches;    /* so often it was told from where the two parted */
} brc_moves_carried;
void brc_moves_carried_dispose(brc_moves_carried *carried);

/* Within a read: snapshots, and what moved. run->how.repo is set; ours NULL: there is no commit yet; carried NULL: it is
 * the only change. */
BRC_MUST_USE int brc_step_change_read(brc_merge_run *run, const brc_step_change *change, const brc_oid *ours,
                                      brc_moves_carried *carried, brc_error *err);

#endif
