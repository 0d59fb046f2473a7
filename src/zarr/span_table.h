/* Elements of variable length: between their packed form (a little-endian uint32 of
 * the bytes, and the bytes) and a table of spans, one an element. */
#ifndef BRC_ZARR_SPAN_TABLE_H
#define BRC_ZARR_SPAN_TABLE_H

#include "../breccia_codec.h"

/* Points table[0..n) to the elements, count included; BRC_EINVAL where the bytes do
 * not hold exactly n of them. */
BRC_MUST_USE int brc_elements_find(brc_span *table, uint64_t n, brc_span packed, brc_error *err);
/* Appends the elements one after the other. */
BRC_MUST_USE int brc_elements_pack(brc_buf *out, const brc_span *table, uint64_t n, brc_error *err);

#endif
