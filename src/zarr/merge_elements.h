/* The chunks of an array in a merge of versions: merge_chunks.h, with its answers as changes of the
 * array's map, and conflicts. For merge_array.c. */
#ifndef BRC_ZARR_MERGE_ELEMENTS_H
#define BRC_ZARR_MERGE_ELEMENTS_H

#include "merge_member.h"

/* *apart: the form of the one and the chunks of the other do not go together; nothing was done.
 * *lost: the side that the result must not lose, which is the one that is favoured or else ours, has changed elements that
 * the merged document's shape does not have: it is to be done again with a shape that has them. Not `tells`: conflicts are
 * not told, for they have been. */
BRC_MUST_USE int brc_merge_elements(brc_member_merge *m, const brc_node_docs *docs, brc_merged_node *out, int tells, int *lost,
                                    int *apart, brc_error *err);

#endif
