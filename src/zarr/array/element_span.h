/* Elements of variable length: between their packed form (a little-endian uint32 of
 * the bytes, and the bytes) and spans, in a table or one after the other. */
#ifndef BRC_ZARR_ELEMENT_SPAN_H
#define BRC_ZARR_ELEMENT_SPAN_H

#include "../../breccia_codec.h"
#include "../../flow/write.h"
#include "../doc/meta.h"

/* ---- span table -------------------------------- */

/* A place in packed elements. */
typedef struct brc_element_cursor {
    brc_span packed;
    size_t at;
    uint64_t number; /* of the element that comes next */
} brc_element_cursor;

/* The next element, count included; BRC_EINVAL if the bytes end before it does. */
BRC_MUST_USE int brc_element_next(brc_element_cursor *cursor, brc_span *out, brc_error *err);
/* BRC_EINVAL if bytes are left. */
BRC_MUST_USE int brc_elements_end(const brc_element_cursor *cursor, brc_error *err);

/* Points table[0..n) to the elements, count included; BRC_EINVAL if the bytes do
 * not hold exactly n of them. */
BRC_MUST_USE int brc_elements_find(brc_span *table, uint64_t n, brc_span packed, brc_error *err);
/* Appends the elements one after the other. */
BRC_MUST_USE int brc_elements_pack(brc_buf *out, const brc_span *table, uint64_t n, brc_error *err);

/* ---- element chunk -------------------------------- */

/* A chunk of elements of variable length that is about to be written, as a table of spans. */

/* For gather(): the item's canonical bytes. Where table[0..item->elements) points nowhere
 * (data NULL) an element is what was there (item->old), or the fill value. The table is spent. */
BRC_MUST_USE int brc_gather_elements(brc_write_item *item, brc_span *table, const brc_meta *m,
                                     brc_scratch *scratch, brc_error *err);

#endif
