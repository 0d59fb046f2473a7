/*
 * Carries requests and answers over HTTP, by libmicrohttpd: a pool of threads that wait for all
 * connections at once. What can be answered without waiting is answered there; everything else goes into a queue
 * with a bound, and the connection sleeps until a worker has the answer.
 */
#ifndef BRC_SERVE_HTTP_H
#define BRC_SERVE_HTTP_H

#include "files.h"

typedef struct serve_http serve_http;

typedef struct serve_http_opts {
    int socket;               /* which listens                                */
    const char *token;        /* the first segment of every path              */
    const char *const *hosts; /* what the header Host may be, besides names of the loopback */
    size_t nhosts;
    int any_host;             /* it may be anything                           */
    unsigned threads, workers;
    unsigned connections;     /* the most at once                             */
    unsigned queue;           /* the most requests that wait for a worker     */
    uint64_t decoded;         /* the most bytes that one request may decode   */
    unsigned seconds;         /* the most that a worker takes for one request */
} serve_http_opts;

/* Serves from now on, on threads of its own. */
BRC_MUST_USE int serve_http_start(serve_http **out, serve_files *files, const serve_http_opts *opts, brc_error *err);
/* Ends all connections. */
void serve_http_stop(serve_http *http);

#endif
