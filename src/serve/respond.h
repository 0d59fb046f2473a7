/* Answers a request, apart from how both are carried. */
#ifndef BRC_SERVE_RESPOND_H
#define BRC_SERVE_RESPOND_H

#include "answer.h"
#include "files.h"
#include "route.h"

/* One request. */
typedef struct serve_request {
    const serve_target *target;
    int is_head;
    const char *range, *if_none_match, *if_range; /* headers; NULL: not given   */
    const char *prefix;    /* "/TOKEN"                                          */
    serve_limits limits;
    int may_wait;          /* 0: on a thread that answers others too            */
    /* Told which reader works for the request, and NULL when it no longer does. */
    void (*on_reader)(void *ctx, serve_reader *reader);
    void *ctx;
} serve_request;

typedef struct serve_reply {
    serve_answer answer;
    brc_buf location;      /* Content-Location, or of a redirection Location; empty: none */
    uint64_t start, whole; /* of status 206: where the body begins, and the length of the whole; of 416 the latter */
    uint64_t length;       /* of the body that the answer to HEAD leaves out    */
    int has_ranges;        /* parts may be asked for                            */
    int retry_after;       /* seconds; 0: says nothing                          */
    int64_t modified_us;   /* 0: not known                                      */
} serve_reply;

/* Answers, also with a status that says what went wrong. Returns 0 if the request must wait for something and may not:
 * ask again on a thread that may; else 1. Release with serve_reply_dispose(). */
int serve_respond(serve_reply *out, serve_files *files, const serve_request *request);
void serve_reply_dispose(serve_reply *reply);
/* Makes the reply a plain text with this status. */
void serve_reply_fail(serve_reply *reply, int status, const char *text);

#endif
