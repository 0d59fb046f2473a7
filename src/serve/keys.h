/* Answers requests for keys of Zarr. */
#ifndef BRC_SERVE_KEYS_H
#define BRC_SERVE_KEYS_H

#include "reply.h"

BRC_MUST_USE int serve_key(serve_reply *out, serve_reader *reader, const serve_request *q, brc_error *err);
/* Answers with the value of a key in format 2 or 3. */
BRC_MUST_USE int serve_value(serve_reply *out, serve_reader *reader, const serve_version *version, int format, const char *key,
                             const serve_request *q, brc_error *err);

#endif
