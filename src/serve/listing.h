/* Lists of what is served: pages with a link for each name, which people and programs read, and lists in the form of
 * S3's protocol for clients that ask so. */
#ifndef BRC_SERVE_LISTING_H
#define BRC_SERVE_LISTING_H

#include "names.h"
#include "reply.h"

/* The page of a server with several files: a link to the page of each. */
BRC_MUST_USE int serve_list_files(serve_reply *out, serve_files *files, const serve_request *q, brc_error *err);
/* The directory above NAME.zarr. */
BRC_MUST_USE int serve_list_names(serve_reply *out, serve_files *files, const serve_request *q, brc_error *err);
/* A directory of keys. */
BRC_MUST_USE int serve_list_keys(serve_reply *out, serve_reader *reader, const serve_version *version, const serve_request *q,
                                 brc_error *err);
/* Adds the names in a directory of keys ("" or "a/"), each once: "b/" is a directory in it. */
BRC_MUST_USE int serve_directory(serve_names *out, const serve_version *version, int format, const char *directory,
                                 brc_error *err);

/* ---- S3 -------------------------------- */

/* Tells whether the request asks for a list in the form of S3's protocol. */
int serve_is_s3(const serve_query *query);
/* Answers such a request: a list of what is below the path and the parameter "prefix" together. */
BRC_MUST_USE int serve_list_s3(serve_reply *out, serve_files *files, const serve_request *q, brc_error *err);

#endif
