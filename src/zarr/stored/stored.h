/* One chunk at a time, as the array's codecs say that it is stored. */
#ifndef BRC_ZARR_STORED_H
#define BRC_ZARR_STORED_H

#include "../array/array.h"
#include "../transfer.h"

/* The value of a chunk's key, a shard's too; *there 0 if it has none. Stored bytes
 * are passed on where they are encoded as the array says, else transcoded. */
BRC_MUST_USE int brc_stored_chunk(brc_array *a, const uint64_t *outer, brc_buf *out, int *there, brc_error *err);

/* For progress: decoded bytes of a whole chunk, about, and of the whole array. */
void brc_stored_bytes(const brc_array *a, uint64_t *chunk, uint64_t *all);

/* Sorts n indexes of `width` numbers in row-major order. */
void brc_sort_indexes(uint64_t *indexes, size_t n, size_t width);

#endif
