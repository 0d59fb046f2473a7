/*
 * api_log.h - the commits of all branches in order of time, with the lanes in which they are drawn.
 */
#ifndef BRC_SERVE_API_LOG_H
#define BRC_SERVE_API_LOG_H

#include "api.h"

enum { SERVE_LANES_MOST = 256 };

/* A line of the graph, from a lane above a commit to a lane below it; -1: the commit itself. */
typedef struct serve_edge {
    int from, to;
} serve_edge;

typedef struct serve_row {
    brc_commit *commit;
    int lane, nlanes; /* the lane of the commit, and the most lanes beside it  */
    serve_edge *edges;
    size_t nedges;
} serve_row;

typedef struct serve_ref {
    char *name;
    brc_oid id;
    uint32_t flags;
} serve_ref;

typedef struct serve_rows {
    serve_row *rows;
    size_t n;
    serve_ref *refs;
    size_t nrefs;
    char *next; /* where the following rows begin, as serve_rows_read() takes it; NULL: at the end */
} serve_rows;

/* Reads the next n commits: all branches' and tags', or with the parameter "branch" those of that revision; with "filter" those
 * that have this text in message, author, id, branches or tags. The parameter "from" is `next` of the rows before. */
int serve_rows_read(serve_rows *out, serve_call *call, uint64_t n);
void serve_rows_free(serve_rows *rows);

/* Calls each() for the paths that a commit changed, up to `most`, and sets *n to their number. */
int serve_touched_by(serve_call *call, const brc_commit *commit, uint64_t *n,
                     int (*each)(void *ctx, const brc_change *change), void *ctx);

#endif
