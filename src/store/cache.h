/*
 * Small objects in memory, by id. The least recently used objects are dropped when the bytes
 * held exceed the limit. Pinned objects stay until they are dropped together; they are kept in a
 * list of their own, so that making room never visits them, and do not count against the limit.
 */
#ifndef BRC_STORE_CACHE_H
#define BRC_STORE_CACHE_H

#include <stdatomic.h>

#include "../base/hash.h"

/* ---- cache -------------------------------- */

/* An object's bytes, which never change: several threads' caches may hold them. */
typedef struct brc_blob {
    atomic_size_t refs;
    size_t len;
    uint8_t data[];
} brc_blob;

BRC_MUST_USE int brc_blob_new(brc_blob **out, const void *data, size_t len, brc_error *err);
void brc_blob_unref(brc_blob *blob);

typedef struct brc_cached {
    struct brc_cached *next_in_bucket, *newer, *older;
    brc_oid id;
    int kind;
    int pinned;
    brc_blob *blob;
} brc_cached;

typedef struct brc_cache_list {
    brc_cached *newest, *oldest;
} brc_cache_list;

typedef struct brc_cache {
    brc_cached **buckets;
    size_t nbuckets, count;
    size_t bytes, limit; /* of those that are not pinned */
    brc_cache_list used, pinned;
} brc_cache;

void brc_cache_init(brc_cache *cache, size_t limit);
void brc_cache_dispose(brc_cache *cache);
/* Returns the cached object, valid until the next add, or NULL if it is not cached. */
const brc_cached *brc_cache_find(brc_cache *cache, const brc_oid *id);
/* Adds a copy of data; an entry that exists already stays as it is, pinned or not. */
BRC_MUST_USE int brc_cache_add(brc_cache *cache, const brc_oid *id, int kind, const void *data,
                               size_t len, int pinned, const brc_cached **out, brc_error *err);
/* Adds bytes that another cache may hold too, without copying them. */
BRC_MUST_USE int brc_cache_add_blob(brc_cache *cache, const brc_oid *id, int kind, brc_blob *blob,
                                    int pinned, const brc_cached **out, brc_error *err);
void brc_cache_drop_pinned(brc_cache *cache);
/* Forgets everything that is not pinned. */
void brc_cache_clear(brc_cache *cache);

/* ---- shared -------------------------------- */

/*
 * The registry and the cache of small objects that all handles of one file share, each on a thread
 * of its own. Objects never change and are named by their content, so an object that one handle
 * has read and checked is valid for all others.
 *
 * Invariant: only objects that are committed to the file are here, because a handle that finds an
 * object in memory does not store it again.
 */

typedef struct brc_shared brc_shared;

/* Makes a shared part with one reference. `own`: a registry that is freed with it, or NULL. */
BRC_MUST_USE int brc_shared_new(brc_shared **out, brc_registry *own, brc_error *err);
brc_shared *brc_shared_ref(brc_shared *shared);
void brc_shared_unref(brc_shared *shared); /* NULL is accepted */
/* Returns 1 with a reference to the object's bytes, else 0, also for shared NULL. While there is only one
 * handle, nothing is kept here. */
int brc_shared_find(brc_shared *shared, const brc_oid *id, int kind, brc_blob **out);
/* Adds an object's bytes; does nothing if memory runs out. */
void brc_shared_add(brc_shared *shared, const brc_oid *id, int kind, brc_blob *blob);

#endif
