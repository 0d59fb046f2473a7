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
/* Makes a chunk map one without the chunks outside a grid of this many. Outside of a transaction it is made in short
 * ones. */
BRC_MUST_USE int brc_chunks_drop_outside(brc_store *store, int ndim, const uint64_t *grid, brc_oid *map, brc_error *err);
/* Whether one transaction can go through all that it has; and the chunks that brc_array_clean_edges() may have to
 * look at. */
BRC_MUST_USE int brc_array_has_few_chunks(brc_array *a, int *few, brc_error *err);
uint64_t brc_array_edge_chunks(brc_array *a, const uint64_t *keep, const uint64_t *shape);
/* Within a change of the array, whose shape is to be `shape`, of which `keep` was there before. Where
 * `keep` cuts a chunk along an axis that becomes longer or shorter, everything past it in stored
 * chunks becomes the fill value: padding never comes back as data. With a turn (flow/write.h) within a read
 * instead; BRC_WRITE_MUCH: these are more than should be stored together. */
BRC_MUST_USE int brc_array_clean_edges(brc_array *a, const uint64_t *keep, const uint64_t *shape, const brc_write_turn *turn,
                                       brc_error *err);

#endif
