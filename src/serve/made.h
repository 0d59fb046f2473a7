/*
 * Documents that the file does not have as they are asked for, since they are made from others. What was made once
 * is kept, because a version never changes.
 */
#ifndef BRC_SERVE_MADE_H
#define BRC_SERVE_MADE_H

#include "names.h"
#include "reply.h"

/* The most nodes of a group whose documents are copied into its own. */
enum { SERVE_CONSOLIDATED_MOST = 10000 };

/* Answers with the document `key`: in format 3 a group's zarr.json with consolidated metadata, in format 2 a .zgroup,
 * .zarray, .zattrs or .zmetadata. Returns 0 if it is another key, or the zarr.json of something else than a group; then nothing
 * was done. */
BRC_MUST_USE int serve_made_document(serve_reply *out, serve_reader *reader, const serve_version *version, int format,
                                     const char *key, const serve_request *q, brc_error *err);
/* Finds what a chunk's key of format 2 is called in the file, with a NUL. BRC_ENOTFOUND: it is not a chunk's key. */
BRC_MUST_USE int serve_key_of_v2(brc_buf *out, const serve_version *version, const char *key, brc_error *err);
/* Adds the names that a directory of keys has in format 2; "" or "a/". */
BRC_MUST_USE int serve_list_v2(serve_names *out, const serve_version *version, const char *directory, brc_error *err);

/* ---- what was made -------------------------------- */

typedef struct serve_cache serve_cache;
BRC_MUST_USE int serve_cache_new(serve_cache **out, size_t bytes, brc_error *err);
void serve_cache_free(serve_cache *cache);
/* Appends what is kept under a name. Returns 1, 0 if there is nothing, or an error. */
BRC_MUST_USE int serve_cache_get(brc_buf *out, serve_cache *cache, const char *name, brc_error *err);
/* Keeps a copy, unless it is too long or there is no memory. */
void serve_cache_put(serve_cache *cache, const char *name, const brc_buf *value);

#endif
