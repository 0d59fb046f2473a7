/*
 * What two versions of one node become, over their base: members of documents one by one, the shape
 * by axis, storage apart from data, chunks as merge_chunks.h says. The rules are in
 * docs/decisions/0021.
 */
#ifndef BRC_ZARR_MERGE_NODE_H
#define BRC_ZARR_MERGE_NODE_H

#include "../history/merge_tree.h"
#include "base_chunks.h"

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
    struct brc_concat_list *concat; /* what both sides append is joined (merge_concat.h); NULL: it is not */
    brc_entry unknown;         /* a node that is                                        */
    brc_base_chunks made;      /* chunks that bases are merged into                     */
} brc_merge_how;

/* What merge_tree.h needs; `how` is borrowed. */
void brc_merge_how_ops(brc_merge_ops *out, brc_merge_how *how);

#endif
