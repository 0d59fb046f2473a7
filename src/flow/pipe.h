/*
 * What the flows of one handle keep from one call to the next: the pool, the budget,
 * each worker's contexts and buffers, and the jobs of their windows, so that small
 * requests allocate nothing. It belongs to one caller at a time.
 */
#ifndef BRC_FLOW_PIPE_H
#define BRC_FLOW_PIPE_H

#include <stdatomic.h>

#include "../store/store.h"
#include "window.h"

typedef struct brc_pipe_worker {
    brc_scratch *scratch;
    brc_buf chunk, kept;
} brc_pipe_worker;

typedef struct brc_pipe {
    brc_pool *pool;  /* NULL: everything runs on the caller's thread            */
    size_t memory;   /* budget of bytes in flight                               */
    int no_readback; /* do not decode again what was just encoded               */
    const atomic_int *stop; /* not 0: work that has not begun is not done; NULL: never */
    unsigned nworkers;
    brc_pipe_worker *workers;
    brc_window reading, writing;
    struct brc_read_list *list; /* of the read flow: what it has looked up      */
} brc_pipe;

BRC_MUST_USE int brc_pipe_init(brc_pipe *pipe, brc_pool *pool, size_t memory, brc_error *err);
void brc_pipe_dispose(brc_pipe *pipe);
/* BRC_EINTERRUPT if the pipe is to stop: asked between two chunks. */
BRC_MUST_USE int brc_pipe_check(const brc_pipe *pipe, brc_error *err);
/* The worker's scratch, made at its first use. The caller's own thread has the index
 * brc_pipe_caller(). */
BRC_MUST_USE int brc_pipe_scratch(brc_pipe *pipe, unsigned worker, brc_scratch **out, brc_error *err);
static inline unsigned brc_pipe_caller(const brc_pipe *pipe)
{
    return pipe->nworkers - 1;
}
/* Releases a worker's memory where it is more than its part of the budget. */
void brc_pipe_trim(brc_pipe *pipe, unsigned worker);
/* The same for one of `n` equal buffers. */
void brc_pipe_trim_buf(const brc_pipe *pipe, brc_buf *buf, size_t n);
/* The window, made at its first use with `per_thread` places per thread, and at least so many. */
BRC_MUST_USE int brc_pipe_window(brc_pipe *pipe, brc_window *window, size_t per_thread, size_t least, size_t job_size,
                                 void (*dispose)(brc_window_job *job), brc_error *err);

#endif
