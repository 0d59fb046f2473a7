/* Reads and writes single chunks as the array's codecs store them. */
#ifndef BRC_ZARR_STORED_H
#define BRC_ZARR_STORED_H

#include "../array/array.h"
#include "../transfer.h"

/* Appends the value of a chunk's or a shard's key; *there is 0 if there is none. Passes stored bytes on if they are
 * encoded with the array's codecs, otherwise transcodes them. */
BRC_MUST_USE int brc_stored_chunk(brc_array *a, const uint64_t *outer, brc_buf *out, int *there, brc_error *err);

/* Returns, for progress, the approximate decoded bytes of a whole chunk and of the whole array. */
void brc_stored_bytes(const brc_array *a, uint64_t *chunk, uint64_t *all);

/* Sorts n indexes of `width` numbers in row-major order. */
void brc_sort_indexes(uint64_t *indexes, size_t n, size_t width);

#endif
