/* Answers requests for keys of Zarr. */
#ifndef BRC_SERVE_KEYS_H
#define BRC_SERVE_KEYS_H

#include "respond.h"

BRC_MUST_USE int serve_key(serve_reply *out, serve_reader *reader, const serve_request *q, brc_error *err);
#endif
