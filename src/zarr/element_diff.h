/* Elements in which two versions of an array differ. */
#ifndef BRC_ZARR_ELEMENT_DIFF_H
#define BRC_ZARR_ELEMENT_DIFF_H

#include "../history/tree_diff.h"
#include "../nd/compare_elements.h"
#include "repo.h"

typedef struct brc_element_diff {
    int known;               /* the rest is known                                 */
    const char *why;         /* where not: why the two cannot be compared, a clause;
                                NULL: there is no array                           */
    uint64_t added, removed; /* elements that only b's shape has, or only a's;
                                2^64-1 stands for more too                        */
    brc_tally tally;         /* of those that both have                           */
} brc_element_diff;

/* Compares bits, within what both shapes hold; padding never counts. An absent chunk
 * is its own version's fill value. If the node was added or removed, all its elements
 * were. Within a transaction; on the repository's pool and within its budget, except
 * that a pair of chunks, or one of chunks that are cut otherwise, is decoded whole.
 * The result does not depend on either. */
BRC_MUST_USE int brc_element_diff_run(brc_element_diff *out, breccia *repo, const brc_node_change *change, brc_error *err);

#endif
