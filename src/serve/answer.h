/* An answer to a request, and who makes it. */
#ifndef BRC_SERVE_ANSWER_H
#define BRC_SERVE_ANSWER_H

#include "../breccia.h"

/* The pairs of a URL's query: percent-decoded, valid UTF-8, without U+0000. */
typedef struct serve_query {
    size_t n;
    const char *const *names;
    const char *const *values;
} serve_query;
/* Returns the first value of that name, or NULL: not given. */
const char *serve_query_get(const serve_query *query, const char *name);

/* An answer. All zero, with a body of BRC_BUF_INIT, is an empty one. */
typedef struct serve_answer {
    int status;       /* 0: 200                                                  */
    const char *type; /* a constant: "application/json" ...                      */
    brc_buf body;
    int immutable;    /* the URL names a commit: the answer may be kept for ever */
    char etag[72];    /* without quotes; "": none                                */
    char commit[65];  /* the commit that the answer is from; "": none            */
    char headers[256]; /* lines "Name: value\n" besides those of every answer      */
} serve_answer;

/* How much work an answer may be, and for which file it is. */
typedef struct serve_limits {
    uint64_t bytes;   /* the most bytes that are decoded                         */
    uint64_t chunks;  /* the most chunks that are read                           */
    unsigned seconds; /* the call is interrupted after so long                   */
    const char *file; /* the name in URLs, without ".zarr"                       */
} serve_limits;

/* Returns the status of HTTP that suits a BRC_E* code: 404 for BRC_ENOTFOUND ... */
int serve_status(int code);

/* Answers /TOKEN/api/WHAT. An error becomes a document {"error": "..."} with the status that suits its code. Both
 * functions run on a worker's thread, with a handle that nobody else uses meanwhile. */
BRC_MUST_USE int serve_api(serve_answer *out, breccia *repo, const char *what, const serve_query *query,
                           const serve_limits *limits, brc_error *err);
/* Makes the page of a file, which also says something in a browser without JavaScript. */
BRC_MUST_USE int serve_page(serve_answer *out, breccia *repo, const serve_query *query, const serve_limits *limits,
                            brc_error *err);

#endif
