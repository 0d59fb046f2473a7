/*
 * Reading many chunks: fetched one after the other on the caller's thread (only
 * it may touch the store), decoded on the pool meanwhile, straight into the
 * destination where a chunk lies there in one piece. Memory in flight, stored bytes and
 * decoded ones that have no destination, is bounded by a budget and not by the request:
 * what is larger than the budget goes alone. Small chunks travel several to a job.
 */
#ifndef BRC_CODEC_READ_PIPELINE_H
#define BRC_CODEC_READ_PIPELINE_H

#include "pipe.h"

typedef struct brc_read_item {
    /* set by next() */
    const brc_chain *chain; /* NULL: stored as the canonical bytes              */
    size_t stored_len, len; /* stored and canonical bytes                       */
    size_t skip;            /* of the stored bytes, before those that are decoded */
    int varies;             /* len is known when it is decoded                  */
    uint8_t *direct;        /* where all of it goes; NULL: to place()           */
    int kept;               /* is not placed: its bytes wait for the next item, which
                               is decoded after it in the same job              */
    /* the caller's own */
    uint64_t number;
    brc_oid id;
    uint64_t checksum, digest;
    int64_t blob;
    /* the pipeline's */
    size_t offset;
    brc_span before;        /* for place(): the bytes of the item before it, where that
                               was kept; else data NULL                         */
} brc_read_item;

typedef struct brc_read_ops {
    void *ctx;
    /* Caller's thread, in order. 1 with an item, 0 at the end. */
    int (*next)(void *ctx, brc_read_item *item, brc_error *err);
    /* Caller's thread, for each item in turn: the stored bytes. */
    int (*fetch)(void *ctx, const brc_read_item *item, uint8_t *into, brc_error *err);
    /* Any thread: checks stored bytes before they are decoded. */
    int (*check)(void *ctx, const brc_read_item *item, const uint8_t *stored, brc_error *err);
    /* Any thread: canonical bytes of an item without `direct`. NULL: none is. */
    int (*place)(void *ctx, const brc_read_item *item, const uint8_t *data, brc_error *err);
    /* Any thread: puts the chunk's name before an error. NULL: nothing. */
    void (*name)(void *ctx, const brc_read_item *item, brc_error *err);
    /* Any thread: 1 with the only elements of an item that place() will look at, 0 where
     * it may be any. NULL: as 0. */
    int (*box)(void *ctx, const brc_read_item *item, brc_box *out);
} brc_read_ops;

/* The error is that of the first item that failed, whatever the threads did. */
BRC_MUST_USE int brc_read_pipeline(brc_pipe *pipe, const brc_read_ops *ops, brc_error *err);

/* Releases the jobs that a pipe keeps. */
void brc_read_jobs_free(brc_pipe *pipe);

#endif
