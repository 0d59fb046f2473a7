/* A request, and the reply to it, apart from how both are carried. */
#ifndef BRC_SERVE_REPLY_H
#define BRC_SERVE_REPLY_H

#include "answer.h"
#include "files.h"
#include "route.h"

/* One request. */
typedef struct serve_request {
    const serve_target *target;
    const char *uri;       /* as it came                                        */
    int is_head;
    const char *range, *if_none_match, *if_range; /* headers; NULL: not given   */
    const char *token;
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
    int is_gone;           /* an error says that what there was is not there any more */
    int retry_after;       /* seconds; 0: says nothing                          */
    int64_t modified_us;   /* 0: not known                                      */
} serve_reply;

void serve_reply_dispose(serve_reply *reply);
/* Makes the reply a plain text with this status. */
void serve_reply_fail(serve_reply *reply, int status, const char *text);

/* ---- parts -------------------------------- */

/* Reads the range that counts: with If-Range, only if the client has bytes of this etag. Returns 1, or 0 if the whole
 * is asked for. */
int serve_range_counts(brc_key_range *range, const serve_request *q, const char *etag);
/* Says that the body is a part of the whole: status 206, or 416 if it is empty. */
void serve_reply_part(serve_reply *out, uint64_t start, uint64_t whole);
/* Makes of a reply with a whole body and its etag the one that is asked for: a part, or no body. */
void serve_reply_cut(serve_reply *out, const serve_request *q);

#endif
