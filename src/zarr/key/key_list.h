/* Finds and lists the keys of the Zarr store view. */
#ifndef BRC_ZARR_KEY_LIST_H
#define BRC_ZARR_KEY_LIST_H

#include "../array/array.h"
#include "../stored/stored_out.h"

/* ---- key arrays -------------------------------- */

/*
 * The array that a key of the Zarr store view names. A session keeps the arrays that its keys have
 * named, so that the next chunk of an array costs only its own look-up. Each array is brought up to
 * date before use, like every array handle, by the counters of changes of this handle and of
 * others.
 */

typedef struct brc_key_array {
    brc_array array;  /* belongs to the session that keeps it, and holds no reference to that session */
    brc_shard_plan shard; /* the last shard of which a part was requested          */
    uint64_t used;
} brc_key_array;

enum { BRC_KEY_NONE, BRC_KEY_IS_LOOSE, BRC_KEY_IS_DOCUMENT, BRC_KEY_IS_CHUNK };

typedef struct brc_key_place {
    int what;
    brc_oid loose;          /* for loose bytes: their object                      */
    brc_entry entry;        /* for a document: its node                           */
    brc_key_array *array;   /* for a chunk or a shard: its array, borrowed until the next call; also for a key of
                             * the array that has no chunk */
    uint64_t outer[BRC_MAX_NDIM]; /* and the index of the chunk or shard          */
} brc_key_place;

/* Finds what a key names, within a transaction. A valid index does not mean that the chunk exists. */
BRC_MUST_USE int brc_key_find(brc_key_place *out, brc_session *s, const char *key, brc_error *err);
/* Finds the array that contains a key or a directory of keys: *out NULL if there is none. *rest: the key after the
 * array's path and a '/'. The path of the array itself does not count: the array has a document. */
BRC_MUST_USE int brc_key_array_of(brc_key_array **out, brc_session *s, const char *key, const char **rest, brc_error *err);
/* Tells whether the key lies in the array. */
int brc_key_is_of(const brc_key_array *ka, const char *key);
/* Reads the draft's row of a key: BRC_KEY_NO_ROW ... */
BRC_MUST_USE int brc_key_row(brc_session *s, const char *key, int *state, brc_oid *id, brc_error *err);
/* Tells whether the draft has such rows at all. */
BRC_MUST_USE int brc_key_rows_any(brc_session *s, int *any, brc_error *err);
/* Tells whether a node's document has a key; apart from rows, only the root's may have none. */
BRC_MUST_USE int brc_key_root_is_written(brc_session *s, const brc_entry *root, int *is, brc_error *err);
/* Fails with BRC_EINVAL if no directory could have a file of this name. */
BRC_MUST_USE int brc_key_check(const char *key, brc_error *err);
/* Converts "a/b" to the path "/a/b". Returns 1, or 0 with the reason in *err if it is not a valid path of a
 * node. */
BRC_MUST_USE int brc_key_node_path(brc_buf *out, const char *key, size_t len, brc_error *err);

/* ---- key list -------------------------------- */

/* Returns the length of the prefix's directory part, up to and including its last '/'. */
size_t brc_key_dir_len(const char *prefix);
/* Sets *exists to 1 if the key exists, else to 0. */
BRC_MUST_USE int brc_key_exists(int *exists, brc_session *s, const char *key, brc_error *err);
/* Sets *any to 1 if a key begins with the prefix. `rows`: keys that are neither a node nor a chunk yet count too. */
BRC_MUST_USE int brc_keys_any(int *any, brc_session *s, const char *prefix, int rows, brc_error *err);

#endif
