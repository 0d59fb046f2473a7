/* Elements in which two versions of an array differ. */
#ifndef BRC_ZARR_ELEMENT_DIFF_H
#define BRC_ZARR_ELEMENT_DIFF_H

#include "../history/tree_diff.h"
#include "repo.h"

typedef struct brc_element_diff {
    int known;          /* 0: shapes or types differ so that it cannot be said    */
    uint64_t elements;
    double max_abs;     /* NaN: the elements are no numbers                       */
    int ndim;
    uint64_t first[BRC_MAX_NDIM], last[BRC_MAX_NDIM];
} brc_element_diff;

/* Compares bits, within what both shapes hold; padding never counts. */
BRC_MUST_USE int brc_element_diff_run(brc_element_diff *out, breccia *repo, const brc_node_change *change, brc_error *err);

#endif
