/* Lists of what is served: pages with a link for each name, which people and programs read. */
#ifndef BRC_SERVE_LISTING_H
#define BRC_SERVE_LISTING_H

#include "respond.h"

/* The page of a server with several files: a link to the page of each. */
BRC_MUST_USE int serve_list_files(serve_reply *out, serve_files *files, const serve_request *q, brc_error *err);
/* The directory above NAME.zarr. */
BRC_MUST_USE int serve_list_names(serve_reply *out, serve_files *files, const serve_request *q, brc_error *err);
/* A directory of keys. */
BRC_MUST_USE int serve_list_keys(serve_reply *out, const serve_version *version, const serve_request *q, brc_error *err);

#endif
