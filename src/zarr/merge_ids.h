/* Chunk maps three ways, by ids alone: what merges of bases need. For merge_array.c. */
#ifndef BRC_ZARR_MERGE_IDS_H
#define BRC_ZARR_MERGE_IDS_H

#include "merge_member.h"

/* A chunk that both sides changed is merged when somebody asks for it: base_chunks.h. */
BRC_MUST_USE int brc_merge_ids(brc_member_merge *m, const brc_node_docs *docs, brc_merged_node *out, brc_error *err);

#endif
