/* Stored chunks of an array as items of the read flow. */
#ifndef BRC_ZARR_CHUNK_ITEM_H
#define BRC_ZARR_CHUNK_ITEM_H

#include "../flow/read.h"
#include "array.h"

/* Fills in how chunk `index` is decoded, whose object was found. BRC_ECORRUPT if the
 * object cannot be this chunk. */
BRC_MUST_USE int brc_chunk_item(brc_read_item *item, brc_array *a, const uint64_t *index, brc_error *err);
/* The same by what an array's document means alone. `index` is within its grid. */
BRC_MUST_USE int brc_chunk_item_of(brc_read_item *item, brc_store *store, brc_meta *m, const uint64_t *index, brc_error *err);

#endif
