/* Keys that are rows of the draft: bytes that are no node or chunk yet, and documents of nodes that have
 * no key. */
#ifndef BRC_ZARR_KEY_ROWS_H
#define BRC_ZARR_KEY_ROWS_H

#include "../../work/session.h"
#include "../doc/meta.h"

/* Within a change of the session. The key holds these bytes, whatever node or chunk it names. */
BRC_MUST_USE int brc_loose_put(brc_session *s, const char *key, brc_span data, brc_error *err);
/* Every chunk and shard of the array becomes a loose key with the values that it has now. Within a change. */
BRC_MUST_USE int brc_loose_chunks(brc_array *a, brc_error *err);
/* Removes every chunk and shard that lies outside of `meta`'s shape. Within a change. */
BRC_MUST_USE int brc_drop_chunks_beyond(brc_array *a, const brc_meta *meta, brc_error *err);

/* Where these bytes are a document of the array that is there, with a smaller shape: what it cuts off goes, before
 * the document is set, and nobody waits while chunks are cleared. Within a transaction it does nothing. */
BRC_MUST_USE int brc_key_cut_ahead(brc_session *s, const char *key, brc_span data, brc_error *err);

/* Makes a node of the bytes at "PATH/zarr.json", or changes the node there: 1; 0 with the reason in
 * `err` where they can be none now. Within a change of the session. */
BRC_MUST_USE int brc_key_place_document(brc_session *s, const char *key, brc_span data, brc_error *err);
/* Refuses bytes that are meant to be a document and can never be one. */
BRC_MUST_USE int brc_key_check_document(brc_session *s, const char *key, brc_span data, brc_error *err);
/* Whether neither a node nor a chunk is in a node; within a transaction. */
BRC_MUST_USE int brc_key_node_is_empty(brc_session *s, const char *path, const brc_entry *entry, int64_t row, int *is,
                                       brc_error *err);
/* Removes an empty node with its document's key; other keys below it stay. Within a change. */
BRC_MUST_USE int brc_key_remove_empty(brc_session *s, const char *path, brc_error *err);
/* Removes the groups above a path whose documents have no key, as far up as nothing else is in them.
 * Within a change. */
BRC_MUST_USE int brc_key_prune(brc_session *s, const char *path, brc_error *err);

/* Loose keys that begin with the prefix become nodes and chunks where they can now. Within a change. */
BRC_MUST_USE int brc_keys_settle(brc_session *s, const char *prefix, brc_error *err);
/* After a draft was adopted: no key may be loose that names a chunk, for one side set either.
 * BRC_ECONFLICT, and `draft` is named. Within a write. */
BRC_MUST_USE int brc_keys_check_adopted(brc_session *s, int64_t draft, brc_error *err);
/* The same for all of them; what is left is refused by name: BRC_ECONFLICT. */
BRC_MUST_USE int brc_keys_ready(brc_session *s, brc_error *err);

#endif
