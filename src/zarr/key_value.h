/* The bytes under one key of the Zarr store view: whole, in part, or only how many they are. */
#ifndef BRC_ZARR_KEY_VALUE_H
#define BRC_ZARR_KEY_VALUE_H

#include "key_arrays.h"

/* Begins a read transaction, and ends it before anything is decoded. */
BRC_MUST_USE int brc_key_value(brc_buf *out, brc_session *s, const char *key, const brc_key_range *range,
                               brc_key_info *info, brc_error *err);

/* A range as callers give it. */
BRC_MUST_USE int brc_key_range_check(const brc_key_range *range, brc_error *err);
/* What was put into out whole becomes the range. */
void brc_key_cut(brc_buf *out, const brc_key_range *range);
/* A range of the planned shard will be in `out` when the pieces have been read. Within the transaction. */
BRC_MUST_USE int brc_key_shard_part(brc_buf *out, brc_key_array *ka, const brc_key_range *range, size_t request,
                                    brc_key_pieces *pieces, brc_error *err);
/* The bytes of a document or of a loose key, appended; within a transaction. */
BRC_MUST_USE int brc_key_load_plain(brc_buf *out, brc_session *s, const brc_key_place *place, brc_error *err);
/* The bytes of a loose key's object, appended; within a transaction. */
BRC_MUST_USE int brc_loose_load(brc_buf *out, brc_store *store, const brc_oid *id, brc_error *err);

#endif
