/*
 * api.h - one question about a repository, while it is answered.
 */
#ifndef BRC_SERVE_API_H
#define BRC_SERVE_API_H

#include "answer.h"
#include "api_json.h"

#define SERVE_TRY(call)       \
    do {                      \
        const int rc_ = (call); \
        if (rc_ < 0)          \
            return rc_;       \
    } while (0)

/* The revision of uncommitted changes of the current branch. No ref can have such a name. */
#define SERVE_UNCOMMITTED ":uncommitted"

enum { SERVE_BUSY_MS = 1000 }; /* after which side dishes of an answer are left out */

typedef struct serve_call {
    serve_answer *out;
    breccia *repo;
    const serve_query *query;
    const serve_limits *limits;
    brc_error *err;
    serve_json json;      /* of out->body                                      */
    brc_session *session; /* of serve_open_version()                           */
    brc_array *array;     /* of serve_open_array()                             */
    brc_iter *iter;       /* freed at the end                                  */
    int64_t begun_ms;
} serve_call;

/* Begins and ends a call: what it opened is freed. The end stops the clock of serve_api(). */
void serve_call_begin(serve_call *call, serve_answer *out, breccia *repo, const serve_query *query,
                      const serve_limits *limits, brc_error *err);
void serve_call_end(serve_call *call);

/* Returns the server's limits, or those of the page where they are narrower: a picture must come at once. */
serve_limits serve_page_limits(const serve_limits *limits);
/* Returns the milliseconds since the call began. */
int64_t serve_elapsed_ms(const serve_call *call);
/* Returns a parameter, or NULL if it was not given or is empty. */
const char *serve_param(const serve_call *call, const char *name);
/* Reads a parameter that is a whole number; *out stays as it is if it was not given. */
int serve_uint_param(const serve_call *call, const char *name, uint64_t low, uint64_t high, uint64_t *out);
/* Reads the parameter "path"; NULL: "/". */
const char *serve_path_param(const serve_call *call);

/* Opens the version that `rev` names: NULL is the current branch's commit, or its uncommitted changes before the first. */
int serve_session(brc_session **out, serve_call *call, const char *rev);
/* Opens the version of the parameter "rev", and notes its commit in the answer. */
int serve_open_version(serve_call *call);
/* Opens the array at `path` in the version. */
int serve_open_array(serve_call *call, const char *path);
void serve_drop_iter(serve_call *call);
/* Writes "commit", and whether uncommitted changes show. */
void serve_put_version(serve_call *call);

/* Returns the bytes of an element as brc_read() gives it; `item` is brc_array_info.item_size. */
size_t serve_element_bytes(const uint8_t *element, size_t item);

/* ---- what is answered; each writes the members of an open object -------------------------------- */

int serve_summary(serve_call *call);
int serve_sound(serve_call *call);
int serve_tree(serve_call *call);
int serve_node(serve_call *call);
int serve_log(serve_call *call);
int serve_touched(serve_call *call);
int serve_chunks(serve_call *call);
int serve_diff(serve_call *call);
int serve_history(serve_call *call);
int serve_blame(serve_call *call);
int serve_sizes(serve_call *call);
int serve_stats(serve_call *call);
/* Answers as a whole, as bytes or JSON. */
int serve_slice(serve_call *call);

#endif
