/* Two versions of an array, over their base, become one. For merge_node.c. */
#ifndef BRC_ZARR_MERGE_ARRAY_H
#define BRC_ZARR_MERGE_ARRAY_H

#include "merge_member.h"

BRC_MUST_USE int brc_merge_array(brc_member_merge *m, brc_node_docs *docs, brc_merged_node *out, brc_error *err);

#endif
