/*
 * Requests to a server that speaks the protocol of Amazon S3, many at once, by libcurl.
 *
 * libcurl is loaded when the first client is made, not linked: it brings some thirty libraries along, and
 * programs that keep their chunks elsewhere should not load these. A client belongs to one open repository,
 * and several threads may use it at once: each call has a set of connections of its own, which the next
 * call takes over.
 *
 * A request that fails for a reason that may pass (no connection, HTTP 500, 503, an answer that was cut off)
 * is sent again, up to BRC_S3_TRIES times, with growing pauses of random length. All requests can be
 * repeated: objects have random names and never change. A read that takes much longer than others is sent a
 * second time, on another connection, and the first answer counts.
 */
#ifndef BRC_BACKENDS_S3_HTTP_H
#define BRC_BACKENDS_S3_HTTP_H

#include "s3_text.h"

#define BRC_S3_TRIES 6

typedef struct brc_s3_client brc_s3_client;

typedef struct brc_s3_request {
    const char *method; /* "GET", "PUT" or "DELETE"                               */
    const char *key;    /* the object; "": the bucket                            */
    const char *query;  /* sorted and escaped; NULL: none                        */
    const uint8_t *body; /* PUT                                                  */
    uint64_t body_len;
    uint64_t from, len; /* GET: this range; len 0: everything                    */
    uint64_t most;      /* the longest good answer                               */
    int is_new;         /* PUT: only if there is no object of this name. If there is one, the request
                         * succeeds with http 412: an earlier attempt has put it, or libcurl itself,
                         * which repeats a request whose connection ends without an answer */
    /* the answer */
    brc_buf answer;     /* the caller disposes it                                */
    long http;          /* the status; 0: there was no answer                    */
    int curl;           /* libcurl's code                                        */
    int is_cut;         /* the object ends before the range does                 */
    int tries;
    char code[64];      /* the name of the server's error, "NoSuchKey"; "": none */
    char region[32];    /* the bucket's, if the server names another             */
    /* the client's own */
    int64_t due_ms;
    int running, is_hedged, is_done;
} brc_s3_request;

/* The host must live as long as the client. Fails with BRC_EUNSUPPORTED where there is no usable libcurl. */
BRC_MUST_USE int brc_s3_client_new(brc_s3_client **out, const brc_s3_config *config, const brc_backend_host *host,
                                   brc_error *err);
void brc_s3_client_free(brc_s3_client *client); /* NULL is accepted */

/* Returns whether this build can have a client at all. */
int brc_s3_is_built(void);

/* Sends all requests, at most 32 at a time, and waits for all answers. If a request fails, this call
 * succeeds all the same, and brc_s3_failed() tells. Fails if the host has no credentials, if it is stopped, or without memory. */
BRC_MUST_USE int brc_s3_run(brc_s3_client *client, size_t n, brc_s3_request *requests, brc_error *err);

/* Returns BRC_OK if the request succeeded, else an error with a sentence that names bucket, key and remedy. */
int brc_s3_failed(brc_s3_client *client, const brc_s3_request *request, brc_error *err);

#endif
