/* One chunk at a time, as the array's codecs say that it is stored. */
#ifndef BRC_ZARR_STORED_CHUNK_H
#define BRC_ZARR_STORED_CHUNK_H

#include "array.h"
#include "transfer.h"

/* The value of a chunk's key, a shard's too; *there 0 if it has none. Stored bytes
 * are passed on where they are encoded as the array says, else transcoded. */
BRC_MUST_USE int brc_stored_chunk(brc_array *a, const uint64_t *outer, brc_buf *out, int *there, brc_error *err);

/* For progress: decoded bytes of a whole chunk, about, and of the whole array. */
void brc_stored_bytes(const brc_array *a, uint64_t *chunk, uint64_t *all);

/* brc_array_put_recoded() where chunks are cut as `from` says: within a change. */
BRC_MUST_USE int brc_put_same_grid(brc_array *a, brc_meta *from, const brc_chunk_source *source, brc_error *err);

/* Sorts n indexes of `width` numbers in row-major order. */
void brc_sort_indexes(uint64_t *indexes, size_t n, size_t width);

#endif
