/* Stored chunks of an array as items of the read pipeline. */
#ifndef BRC_ZARR_CHUNK_ITEM_H
#define BRC_ZARR_CHUNK_ITEM_H

#include "../codec/read_pipeline.h"
#include "array.h"

/* Fills in how chunk `index` is decoded, whose object was looked up. BRC_ECORRUPT and the
 * chunk's name where there is no such object, or it cannot be this chunk. */
BRC_MUST_USE int brc_chunk_item(brc_read_item *item, brc_array *a, const uint64_t *index,
                                const brc_object *object, brc_error *err);
/* The pipeline's fetch() and check(). */
BRC_MUST_USE int brc_chunk_item_fetch(brc_store *store, const brc_read_item *item, uint8_t *into, brc_error *err);
BRC_MUST_USE int brc_chunk_item_check(const brc_read_item *item, const uint8_t *stored, brc_error *err);

#endif
