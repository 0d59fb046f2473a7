/* What a new shape leaves behind: chunks outside it, and elements past the end in chunks that the
 * end cuts. */
#ifndef BRC_ZARR_ARRAY_SHRINK_H
#define BRC_ZARR_ARRAY_SHRINK_H

#include "array.h"

/* Before the array grows to this shape: drops chunks of its shards that lie beyond its grid, where nothing
 * was. Within a change. */
BRC_MUST_USE int brc_array_drop_beyond(brc_array *a, const uint64_t *shape, brc_error *err);
/* Whether that is short. */
int brc_array_has_few_beyond(const brc_array *a, const uint64_t *shape);
/* Makes a chunk map one without the chunks outside a grid of this many. */
BRC_MUST_USE int brc_chunks_drop_outside(brc_store *store, int ndim, const uint64_t *grid, brc_oid *map, brc_error *err);
/* Within a change of the array, whose shape is to be `shape`, of which `keep` was there before. Where
 * `keep` cuts a chunk along an axis that becomes longer or shorter, everything past it in stored
 * chunks becomes the fill value: padding never comes back as data. With a turn (flow/write.h) within a read
 * instead; BRC_WRITE_MUCH: these are more than should be stored together. */
BRC_MUST_USE int brc_array_clean_edges(brc_array *a, const uint64_t *keep, const uint64_t *shape, const brc_write_turn *turn,
                                       brc_error *err);

#endif
