/* One chunk at a time: as the array's codecs say it is stored; and what writers of
 * every kind do with a new one. */
#ifndef BRC_ZARR_STORED_CHUNK_H
#define BRC_ZARR_STORED_CHUNK_H

#include "../codec/write_pipeline.h"
#include "array.h"

/* The stored bytes where they are encoded as the array says, else transcoded. */
BRC_MUST_USE int brc_stored_chunk(brc_array *a, const brc_oid *id, brc_buf *out, brc_error *err);

/* The pipeline's find() and store() for chunks of this array. */
BRC_MUST_USE int brc_find_items(brc_array *a, brc_write_item *const *items, size_t n, brc_error *err);
BRC_MUST_USE int brc_store_item(brc_array *a, const brc_write_item *item, int64_t encoding, brc_error *err);

#endif
