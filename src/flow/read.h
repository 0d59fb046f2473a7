/*
 * Reading many objects: listed by the caller, looked up in batches, fetched in the order in
 * which they are stored (all on the caller's thread, because only it may use the store),
 * and on the pool checked, decoded and handed over, straight into the destination where a
 * chunk lies there in one piece. Small ones travel several to a job. Memory in flight,
 * stored bytes and decoded ones that have no destination, is bounded by the pipe's budget
 * and not by the request: what is larger goes alone.
 *
 *      list ──> look up ──> open ──> fetch ──> check, decode, place ──> done
 *     caller     store     caller    store            pool             caller
 *
 * The file is locked while jobs are filled, a few MiB at a time, and never while the caller's
 * thread decodes, hands over or waits: the caller's read is paused. So what list() reads may be
 * of a later state than what it read before. An object that was moved between look-up and fetch
 * is looked up again.
 */
#ifndef BRC_FLOW_READ_H
#define BRC_FLOW_READ_H

#include "window.h"

typedef struct brc_read_item {
    brc_object object; /* list() sets its id, or all of it with `found`          */
    uint64_t number;   /* the caller's own, and the next three too               */
    uint64_t part;
    int how;
    void *owner;
    /* set by open(); before it, the encoding's chain and the object's size */
    const brc_chain *chain; /* NULL: the stored bytes are what place() gets       */
    size_t len;             /* of what place() gets                               */
    size_t skip;            /* stored bytes before those that are decoded         */
    int varies;             /* len is known when it is decoded                    */
    uint8_t *direct;        /* where all of it goes; NULL: to place()             */
    int kept;               /* is not placed: its bytes wait for the next item, which is
                               decoded after it in the same job. With `ordered` alone. */
    /* For place() to leave something for done(): memory that is kept from item to item,
     * emptied before. What place() got of an item without chain is there until done() too. */
    brc_buf *result;
    brc_span out;
    /* the flow's own */
    brc_span stored;        /* for place(): the bytes as they are stored, unless `direct`  */
    brc_span before;        /* for place(): the bytes of the item before it, where that
                               was kept; else data NULL                           */
    size_t offset;
    int rc;
    brc_error *why;
} brc_read_item;

/* So many items are asked for first, and fetched in one transaction with their look-up. */
#define BRC_READ_FIRST 8

/* Of list(), which gives no item: there may be more, but it has looked long enough. */
#define BRC_READ_MORE 1

typedef struct brc_read_ops {
    void *ctx;
    /* done() is called in the order of list(), which is then the order of fetching.
     * Otherwise objects are fetched as they are stored, and done() follows that. */
    int ordered;
    /* Caller's thread: the next items, at most cap; *n 0 at the end, unless it returns
     * BRC_READ_MORE. They are cleared. */
    int (*list)(void *ctx, brc_read_item *items, size_t cap, size_t *n, brc_error *err);
    /* Caller's thread, the object has been found; once more where it was moved meanwhile. NULL: as
     * the encoding says. */
    int (*open)(void *ctx, brc_read_item *item, brc_error *err);
    /* Any thread: the bytes of an item without `direct`. NULL: every item has it. */
    int (*place)(void *ctx, brc_read_item *item, const uint8_t *data, brc_scratch *scratch,
                 brc_error *err);
    /* Any thread: 1 with the only elements of an item that place() will look at, 0 if
     * it may be any. NULL: as 0. */
    int (*box)(void *ctx, const brc_read_item *item, brc_box *out);
    /* Caller's thread. NULL: nothing. */
    int (*done)(void *ctx, brc_read_item *item, brc_error *err);
    /* Caller's thread, before done(): for progress. item NULL: list() has found none. NULL:
     * nothing. */
    int (*passed)(void *ctx, const brc_read_item *item, brc_error *err);
    /* Caller's thread: an item that is damaged, missing or cannot be decoded; the others
     * go on. NULL: the first failure ends the flow. */
    int (*failed)(void *ctx, const brc_read_item *item, int rc, const brc_error *why,
                  brc_error *err);
    /* Any thread: puts the chunk's name before an error. NULL: nothing. */
    void (*name)(void *ctx, const brc_read_item *item, brc_error *err);
} brc_read_ops;

/* Within a transaction of the store of either kind; a read is paused. The error is that of the
 * first item that failed, whatever the threads did. Calls on one pipe do not nest, but may be made from list()
 * of a write. */
BRC_MUST_USE int brc_flow_read(brc_pipe *pipe, brc_store *store, const brc_read_ops *ops,
                               brc_error *err);

#endif
