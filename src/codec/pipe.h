/*
 * What the pipelines keep from one call to the next: the pool, the budget, and
 * each worker's contexts and buffers, so that small requests allocate nothing.
 * It belongs to one caller at a time.
 */
#ifndef BRC_CODEC_PIPE_H
#define BRC_CODEC_PIPE_H

#include <stdatomic.h>

#include "../base/pool.h"
#include "chain.h"

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
    struct brc_read_job *jobs; /* of the read pipeline, with their buffers      */
    size_t njobs;
} brc_pipe;

BRC_MUST_USE int brc_pipe_init(brc_pipe *pipe, brc_pool *pool, size_t memory, brc_error *err);
void brc_pipe_dispose(brc_pipe *pipe);
/* BRC_EINTERRUPT where the pipe is to stop: asked between two chunks. */
BRC_MUST_USE int brc_pipe_check(const brc_pipe *pipe, brc_error *err);
/* The worker's scratch, made at its first use. */
BRC_MUST_USE int brc_pipe_scratch(brc_pipe *pipe, unsigned worker, brc_scratch **out, brc_error *err);
/* Releases a worker's memory where it is more than its part of the budget. */
void brc_pipe_trim(brc_pipe *pipe, unsigned worker);
/* The same for one of `n` buffers of equal rights. */
void brc_pipe_trim_buf(const brc_pipe *pipe, brc_buf *buf, size_t n);

#endif
