/* Elements of variable length: converts between their packed form (the length as a little-endian uint32, and the
 * bytes) and spans, in a table or in sequence. */
#ifndef BRC_ZARR_ELEMENT_SPAN_H
#define BRC_ZARR_ELEMENT_SPAN_H

#include "../../breccia_codec.h"
#include "../../flow/write.h"
#include "../doc/meta.h"

/* ---- span table -------------------------------- */

/* A position in packed elements. */
typedef struct brc_element_cursor {
    brc_span packed;
    size_t at;
    uint64_t number; /* of the next element */
} brc_element_cursor;

/* Returns the next element, with its length prefix; BRC_EINVAL if the bytes end within the element. */
BRC_MUST_USE int brc_element_next(brc_element_cursor *cursor, brc_span *out, brc_error *err);
/* Fails with BRC_EINVAL if bytes are left. */
BRC_MUST_USE int brc_elements_end(const brc_element_cursor *cursor, brc_error *err);

/* Points table[0..n) to the elements, with their length prefixes; BRC_EINVAL unless the bytes hold exactly n of
 * them. */
BRC_MUST_USE int brc_elements_find(brc_span *table, uint64_t n, brc_span packed, brc_error *err);
/* Appends the elements in sequence. */
BRC_MUST_USE int brc_elements_pack(brc_buf *out, const brc_span *table, uint64_t n, brc_error *err);

/* ---- element chunk -------------------------------- */

/* A chunk of elements of variable length that is about to be written, as a table of spans. */

/* Makes the item's canonical bytes, for gather(). An element to which table[0..item->elements) does not point (data
 * NULL) is the old element (item->old), or the fill value. The table is overwritten. */
BRC_MUST_USE int brc_gather_elements(brc_write_item *item, brc_span *table, const brc_meta *m,
                                     brc_scratch *scratch, brc_error *err);

#endif
