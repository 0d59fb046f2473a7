/* The keys that begin with a text. */
#ifndef BRC_ZARR_KEY_LIST_H
#define BRC_ZARR_KEY_LIST_H

#include "../array/array.h"
#include "key_shard.h"

/* ---- key arrays -------------------------------- */

/*
 * Where a key of the Zarr store view leads: a session keeps the arrays that its keys have named,
 * so that the next chunk of one costs no more than its own look-up. Each is brought up to date
 * before it is used, as every array handle is: by the counters of changes, of this handle and of
 * others.
 */

typedef struct brc_key_array {
    brc_array array;  /* its session is the one that keeps it, and it holds no reference */
    brc_key_shard shard; /* the last shard of which a part was asked for          */
    uint64_t used;
} brc_key_array;

enum { BRC_KEY_NONE, BRC_KEY_IS_LOOSE, BRC_KEY_IS_DOCUMENT, BRC_KEY_IS_CHUNK };

typedef struct brc_key_place {
    int what;
    brc_oid loose;          /* of loose bytes: their object                       */
    brc_entry entry;        /* of a document: its node                            */
    brc_key_array *array;   /* of a chunk or a shard, borrowed until the next call; also of a
                               key of the array that has no chunk                 */
    uint64_t outer[BRC_MAX_NDIM]; /* and which it is                              */
} brc_key_place;

/* Within a transaction. A chunk's place says nothing of whether there is one. */
BRC_MUST_USE int brc_key_find(brc_key_place *out, brc_session *s, const char *key, brc_error *err);
/* The array that a key or a directory of keys lies in: *out NULL if none. *rest: what follows its
 * path and a '/'. The array itself is not meant: it has a document. */
BRC_MUST_USE int brc_key_array_of(brc_key_array **out, brc_session *s, const char *key, const char **rest, brc_error *err);
/* Whether the key lies in the array. */
int brc_key_is_of(const brc_key_array *ka, const char *key);
/* What the draft says of a key: BRC_KEY_NO_ROW ... */
BRC_MUST_USE int brc_key_row(brc_session *s, const char *key, int *state, brc_oid *id, brc_error *err);
/* Whether the draft has such rows at all. */
BRC_MUST_USE int brc_key_rows_any(brc_session *s, int *any, brc_error *err);
/* Whether a node's document has a key; rows aside, only the root's may have none. */
BRC_MUST_USE int brc_key_root_is_written(brc_session *s, const brc_entry *root, int *is, brc_error *err);
/* BRC_EINVAL if no directory could have a file of this name. */
BRC_MUST_USE int brc_key_check(const char *key, brc_error *err);
/* "a/b" as the path "/a/b": 1, or 0 if no node can have it, and in *err why not. */
BRC_MUST_USE int brc_key_node_path(brc_buf *out, const char *key, size_t len, brc_error *err);

/* ---- key list -------------------------------- */

/* The directory's part of a prefix, up to and with its last '/'. */
size_t brc_key_dir_len(const char *prefix);
/* *any: 1 if a key begins with the prefix; `rows`: also one that is no node or chunk yet. */
BRC_MUST_USE int brc_keys_any(int *any, brc_session *s, const char *prefix, int rows, brc_error *err);

#endif
