/*
 * Chunks whose codecs or data type were not known when they were stored.
 *
 * The object of such a chunk is a mark and the bytes that came from the Zarr store:
 *
 *     | mark, 16 bytes | the encoded chunk ... |
 *
 * The mark keeps it from being taken for the same bytes of a chunk that could be decoded,
 * whichever came first. Either all chunks of an array are opaque, or none. Where the codecs
 * that are not known may be ignored (meta_ignore.c), they are decoded on reading.
 */
#ifndef BRC_ZARR_OPAQUE_H
#define BRC_ZARR_OPAQUE_H

#include "meta.h"
#include "../store/store.h"

#define BRC_OPAQUE_SPEC "{\"opaque\":true}" /* in store.encoding */

/* Makes an opaque chunk's object of its bytes. */
BRC_MUST_USE int brc_opaque_mark(brc_buf *out, brc_error *err);

/* An array that can be decoded now, but whose chunks were stored when it could not,
 * is made opaque: also its grid may be another one. `row`: of the draft, or 0. */
BRC_MUST_USE int brc_opaque_settle(brc_store *store, brc_meta *meta, const brc_oid *map, const brc_draft_stack *rows,
                                   brc_error *err);

/* How many bytes of an opaque array's object come before those that a Zarr store would
 * hold. BRC_EUNSUPPORTED if it holds none of these. */
BRC_MUST_USE int brc_opaque_skip(brc_store *store, const brc_meta *meta, const uint64_t *index,
                                 const brc_object *object, size_t *skip, brc_error *err);

/* BRC_ECORRUPT if bytes before which something stands do not begin with the mark. */
BRC_MUST_USE int brc_opaque_check(const uint8_t *stored, brc_error *err);

#endif
