/*
 * Writing many chunks: gathered and hashed on the pool, looked up in batches on
 * the caller's thread, and only what is not there yet is encoded (on the pool)
 * and handed to the store. While one batch is stored, the next is hashed. Memory
 * in flight is bounded by a budget.
 */
#ifndef BRC_CODEC_WRITE_PIPELINE_H
#define BRC_CODEC_WRITE_PIPELINE_H

#include "../base/hash.h"
#include "pipe.h"

typedef struct brc_write_item {
    /* set by next() */
    const brc_chain *chain; /* NULL: the stored bytes are what they are (opaque) */
    int64_t encoding;       /* the caller's number for it                        */
    uint64_t digest;        /* of the encoding: brc_hash_encoding()              */
    uint64_t elements;      /* of the chunk                                      */
    /* the caller's own, kept between next() and the others */
    uint64_t number;
    const brc_chain *old_chain; /* of what is there already                      */
    brc_oid old_id;
    uint64_t old_checksum, old_digest;
    int has_old;
    /* the pipeline's */
    const uint8_t *data; /* canonical bytes: set by gather()                     */
    size_t len;          /* how many                                             */
    brc_buf own;         /* memory for gather() to use; kept from chunk to chunk */
    brc_buf stored;      /* encoded; set by next() where all are encoded already */
    int is_fill;         /* every element is the fill value: nothing is stored   */
    int is_known;        /* set by find(): its content is stored already         */
    int as_is;           /* to be stored as the canonical bytes                  */
    brc_oid id;
    uint64_t guard;
    uint64_t checksum;   /* of what is to be stored                              */
    struct brc_write_item *twin; /* an earlier one of the batch with this id     */
} brc_write_item;

typedef struct brc_write_ops {
    void *ctx;
    size_t len;            /* canonical bytes of a chunk, about: sizes batches   */
    int hash;
    const uint8_t *secret;
    brc_span fill;         /* one element; data NULL: chunks are never absent    */
    int encoded;           /* next() gives encoded chunks, which are kept as they are */
    /* Caller's thread, in order. 1 with an item, 0 at the end. */
    int (*next)(void *ctx, brc_write_item *item, brc_error *err);
    /* Any thread: sets item->data and len. Not called where `encoded`. */
    int (*gather)(void *ctx, brc_write_item *item, brc_scratch *scratch, brc_error *err);
    /* Caller's thread: sets is_known in each of n items. */
    int (*find)(void *ctx, brc_write_item *const *items, size_t n, brc_error *err);
    /* Caller's thread: a new object, as_is: item->data, else item->stored. */
    int (*store)(void *ctx, const brc_write_item *item, brc_error *err);
    /* Caller's thread, in order, for every item: it is stored, or all fill. */
    int (*done)(void *ctx, const brc_write_item *item, brc_error *err);
    /* Any thread: puts the chunk's name before an error. NULL: nothing. */
    void (*name)(void *ctx, const brc_write_item *item, brc_error *err);
} brc_write_ops;

BRC_MUST_USE int brc_write_pipeline(brc_pipe *pipe, const brc_write_ops *ops, brc_error *err);

#endif
