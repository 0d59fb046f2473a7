/* Answers a request. */
#ifndef BRC_SERVE_RESPOND_H
#define BRC_SERVE_RESPOND_H

#include "reply.h"

/* Answers, also with a status that says what went wrong. Returns 0 if the request must wait for something and may not:
 * ask again on a thread that may; else 1. Release with serve_reply_dispose(). */
int serve_respond(serve_reply *out, serve_files *files, const serve_request *request);

#endif
