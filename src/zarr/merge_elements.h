/* The chunks of an array in a merge of versions: merge_chunks.h, with its answers as changes of the
 * array's map, and conflicts. For merge_array.c. */
#ifndef BRC_ZARR_MERGE_ELEMENTS_H
#define BRC_ZARR_MERGE_ELEMENTS_H

#include "merge_member.h"

/* *apart: the form of the one and the chunks of the other do not go together; nothing was done. */
BRC_MUST_USE int brc_merge_elements(brc_member_merge *m, const brc_node_docs *docs, brc_merged_node *out, int *apart,
                                    brc_error *err);

#endif
