/*
 * A cache of chunks that lie on servers: a file of its own, in breccia's format, that several processes and
 * repositories may share.
 *
 * The cache is never in the way: where the file is damaged, locked, full or missing, everything is a miss, and no call
 * fails for the cache. Bytes are given out only if they match the checksum in the repository's own row.
 *
 * An entry is found by a hash of the backend's specification and of what the repository's row says of the stored bytes:
 * id, encoding, checksum and length. So a chunk stays where another pack takes it in; and bytes of one server, bucket
 * and prefix are never given to a repository that names another one.
 *
 * Entries are objects whose ids are these hashes. The feature "chunk-cache" in the file keeps the file from being
 * opened as a repository, and a repository from being used as a cache.
 */
#ifndef BRC_STORE_CHUNK_CACHE_H
#define BRC_STORE_CHUNK_CACHE_H

#include "store.h"

/* For brc_store_open(): opens a cache, or, with BRC_OPEN_CREATE, makes one. */
#define BRC_OPEN_CHUNK_CACHE 0x20000000u
/* The word in meta 'must-understand' of such a file. */
#define BRC_FEATURE_CHUNK_CACHE "chunk-cache"

#define BRC_CHUNK_CACHE_BYTES ((uint64_t)1 << 30) /* the budget where none is given */

/* Makes a store, which was just opened, use the cache in the file `path`; the first look-up opens the file or makes it.
 * `budget` is in bytes; 0: BRC_CHUNK_CACHE_BYTES. Closing the store writes what was kept. */
BRC_MUST_USE int brc_store_use_cache(brc_store *store, const char *path, uint64_t budget, brc_error *err);

#endif
