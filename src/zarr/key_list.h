/* The keys that begin with a text. */
#ifndef BRC_ZARR_KEY_LIST_H
#define BRC_ZARR_KEY_LIST_H

#include "key_arrays.h"

/* The directory's part of a prefix, up to and with its last '/'. */
size_t brc_key_dir_len(const char *prefix);
/* *any: 1 if a key begins with the prefix; `rows`: also one that is no node or chunk yet. */
BRC_MUST_USE int brc_keys_any(int *any, brc_session *s, const char *prefix, int rows, brc_error *err);
/* Whether a node's document has a key; within a transaction or not. */
BRC_MUST_USE int brc_key_document_is_there(int *is, brc_session *s, const char *path, brc_error *err);

#endif
