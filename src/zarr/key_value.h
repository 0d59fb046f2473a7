/* The bytes under one key of the Zarr store view: whole, in part, or only how many they are. */
#ifndef BRC_ZARR_KEY_VALUE_H
#define BRC_ZARR_KEY_VALUE_H

#include "key_arrays.h"

/* Begins a read transaction, and ends it before anything is decoded. */
BRC_MUST_USE int brc_key_value(brc_buf *out, brc_session *s, const char *key, const brc_key_range *range,
                               brc_key_info *info, brc_error *err);

/* The bytes of a loose key's object, appended; within a transaction. */
BRC_MUST_USE int brc_loose_load(brc_buf *out, brc_store *store, const brc_oid *id, brc_error *err);

#endif
