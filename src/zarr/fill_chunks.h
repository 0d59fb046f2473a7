/* Chunks of nothing but the fill value, which a client has set: their elements are what they are
 * without the chunk. */
#ifndef BRC_ZARR_FILL_CHUNKS_H
#define BRC_ZARR_FILL_CHUNKS_H

#include "../history/node_diff.h"
#include "repo.h"

/* Takes such chunks off the counts of a change, where the other side has none in their places. What is
 * left of it may be a difference in storage alone. Within a transaction. */
BRC_MUST_USE int brc_fill_chunks_discount(brc_node_change *change, breccia *repo, brc_error *err);

#endif
