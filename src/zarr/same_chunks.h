/*
 * Chunks that two versions store differently, but whose elements are the same: a chunk of nothing but the
 * fill value, which a client has set, beside none; and chunks that differ only in their padding, which is
 * what a chunk holds beyond the array's end.
 */
#ifndef BRC_ZARR_SAME_CHUNKS_H
#define BRC_ZARR_SAME_CHUNKS_H

#include "../history/node_diff.h"
#include "repo.h"

/* Takes such chunks off the counts of a change. What is left of the change may be a difference in storage alone.
 * Decodes only chunks that the array's end cuts, of those that differ; chunks that cannot be decoded here, or that
 * are cut into other chunks, are compared by their ids. Within a read. */
BRC_MUST_USE int brc_same_chunks_discount(brc_node_change *change, breccia *repo, brc_error *err);

#endif
