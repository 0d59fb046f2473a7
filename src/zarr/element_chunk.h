/* A chunk of elements of variable length that is about to be written, as a table of spans. */
#ifndef BRC_ZARR_ELEMENT_CHUNK_H
#define BRC_ZARR_ELEMENT_CHUNK_H

#include "../flow/write.h"
#include "meta.h"

/* For gather(): the item's canonical bytes. Where table[0..item->elements) points nowhere
 * (data NULL) an element is what was there (item->old), or the fill value. The table is spent. */
BRC_MUST_USE int brc_gather_elements(brc_write_item *item, brc_span *table, const brc_meta *m,
                                     brc_scratch *scratch, brc_error *err);

#endif
