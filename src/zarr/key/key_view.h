/* Reads the bytes under one key of the Zarr store view, whole or in part, or only their number. */
#ifndef BRC_ZARR_KEY_VIEW_H
#define BRC_ZARR_KEY_VIEW_H

#include "key_list.h"

/* Appends the bytes of a loose key's object; within a transaction. */
BRC_MUST_USE int brc_loose_load(brc_buf *out, brc_store *store, const brc_oid *id, brc_error *err);

#endif
