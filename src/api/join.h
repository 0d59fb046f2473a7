/*
 * Children that are joined with their parent (join.c): what one call works with, for the two ways
 * in which it is done. Where nobody has written since they began and no chunk was written twice,
 * their rows become the parent's (join_rows.c). Else all are merged (join_merge.c), without a lock.
 */
#ifndef BRC_API_JOIN_H
#define BRC_API_JOIN_H

#include "../zarr/fold.h"
#include "../zarr/fork_keys.h"
#include "../zarr/merge_run.h"

typedef struct brc_join_child {
    brc_session *s;         /* on its draft                                             */
    brc_draft_child known;
    brc_oid fork_root;      /* the snapshot of known.fork                               */
    brc_folded folded;      /* what it is now, and when                                 */
    brc_fork_keys keys_before, keys; /* that are in no snapshot                         */
} brc_join_child;

typedef struct brc_join {
    brc_session *s; /* the parent */
    brc_store *store;
    brc_join_child *children; /* in the order in which they began */
    size_t n, cap;
    brc_clash_list clashes;
    /* Of the merge. */
    int64_t collected;      /* the last collection that had begun before                */
    brc_folded folded;      /* what the parent was                                      */
    brc_oid root;           /* what comes out                                           */
    brc_move_set moves;     /* from the first to the second                             */
    brc_fork_keys keys_before, keys;
} brc_join;

/* Each: 1, it is done; 0, it has to be done again, because others have written meanwhile. Not within a transaction.
 *
 * *apt 0: it cannot be done this way. */
BRC_MUST_USE int brc_join_rows(brc_join *j, int *apt, brc_error *err);
/* BRC_ECONFLICT: j->clashes says why. */
BRC_MUST_USE int brc_join_merge(brc_join *j, brc_error *err);

#endif
