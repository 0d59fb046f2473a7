/* Keys that are rows of the draft: bytes that are neither a node nor a chunk yet, and documents of nodes that have
 * no key. */
#ifndef BRC_ZARR_KEY_ROWS_H
#define BRC_ZARR_KEY_ROWS_H

#include "../../work/session.h"

/* Sets these bytes under the key, whatever node or chunk it names. Within a change of the session. */
BRC_MUST_USE int brc_loose_put(brc_session *s, const char *key, brc_span data, brc_error *err);
/* Appends the bytes of a loose key's object; within a transaction. */
BRC_MUST_USE int brc_loose_load(brc_buf *out, brc_store *store, const brc_oid *id, brc_error *err);

/* Cuts the array ahead if these bytes are a document of the existing array with a smaller shape: removes what the
 * new shape cuts off before the document is set, so that nobody waits while chunks are cleared. Does nothing within
 * a transaction. */
BRC_MUST_USE int brc_key_cut_ahead(brc_session *s, const char *key, brc_span data, brc_error *err);

/* Makes a node of the bytes at "PATH/zarr.json", or changes the existing node. Returns 1, or 0 with the reason in
 * `err` if the bytes cannot be its document now. Within a change of the session. */
BRC_MUST_USE int brc_key_place_document(brc_session *s, const char *key, brc_span data, brc_error *err);
/* Refuses bytes that are meant to be a document and can never become one. */
BRC_MUST_USE int brc_key_check_document(brc_session *s, const char *key, brc_span data, brc_error *err);
/* Tells whether a node contains neither a node nor a chunk; within a transaction. */
BRC_MUST_USE int brc_key_node_is_empty(brc_session *s, const char *path, const brc_entry *entry, int64_t row, int *is,
                                       brc_error *err);
/* Removes an empty node with its document's key; other keys below it stay. Within a change. */
BRC_MUST_USE int brc_key_remove_empty(brc_session *s, const char *path, brc_error *err);
/* Removes the groups above a path whose documents have no key, up to the first that contains something else. Within
 * a change. */
BRC_MUST_USE int brc_key_prune(brc_session *s, const char *path, brc_error *err);

/* Turns loose keys that begin with the prefix into nodes and chunks, as far as possible now. Within a change. */
BRC_MUST_USE int brc_keys_settle(brc_session *s, const char *prefix, brc_error *err);
/* Fails with BRC_ECONFLICT, naming `draft`, if a loose key names a chunk after a draft was adopted, because each
 * side then set a part of it. Within a write. */
BRC_MUST_USE int brc_keys_check_adopted(brc_session *s, int64_t draft, brc_error *err);
/* Turns all loose keys into nodes and chunks; refuses by name, with BRC_ECONFLICT, one that is left. */
BRC_MUST_USE int brc_keys_ready(brc_session *s, brc_error *err);

#endif
