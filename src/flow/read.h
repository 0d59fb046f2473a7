/*
 * Reads many objects. The caller lists the objects; the flow looks them up in batches and fetches
* them in the order in which they are stored. Both run on the caller's thread, because only this thread
 * may use the store. The pool checks the bytes, decodes them and hands them over, straight into the
 * destination if a chunk lies there in one piece. One job carries several small objects. The
 * pipe's budget bounds the memory in flight (stored bytes, and decoded bytes without a destination),
 * whatever the size of the request; an object larger than the budget travels alone.
 *
 *      list ──> look up ──> open ──> fetch ──> check, decode, place ──> done
 *     caller     store     caller    store            pool             caller
 *
 * The file is locked while jobs are filled, a few MiB at a time, and never while the caller's
 * thread decodes, hands over or waits: the flow pauses the caller's read. So two calls of list()
 * may see different states of the file, the second a later one. An object that was moved between
 * look-up and fetch is looked up again.
 */
#ifndef BRC_FLOW_READ_H
#define BRC_FLOW_READ_H

#include "window.h"

typedef struct brc_read_item {
    brc_object object; /* list() sets the id alone, or all fields and `found`    */
    uint64_t number;   /* for the caller's use, as are the next three fields     */
    uint64_t part;
    int how;
    void *owner;
    /* Set by open(); the flow presets the encoding's chain and the object's size. */
    const brc_chain *chain; /* NULL: place() gets the stored bytes                */
    size_t len;             /* of the bytes that place() gets                     */
    size_t skip;            /* stored bytes before the first that is decoded      */
    int varies;             /* len is known only after decoding                   */
    size_t makes;           /* bytes of memory that place() takes, beside `len`   */
    uint8_t *direct;        /* destination of the whole object; NULL: place()     */
    int kept;               /* 1: the item is not placed; its bytes wait for the next item, which
                               the same job decodes next. Only with `ordered`.    */
    /* Memory in which place() leaves a result for done(). The flow empties it before each item
     * and reuses it. The data that place() got for an item without a chain also stays valid until done(). */
    brc_buf *result;
    brc_span out;
    /* The flow's own. */
    brc_span stored;        /* for place(): the bytes as they are stored, unless `direct`  */
    brc_span before;        /* for place(): the bytes of the previous item, if it was
                               kept; else data NULL                               */
    struct brc_bases *bases; /* of an object that is stored as a difference; `object` is then as if it was
                               stored whole and unencoded                          */
    size_t offset;
    brc_span decoded;       /* the bytes of an item that was decoded with others, before it is placed; else data
                               NULL                                               */
    int is_verified;        /* its stored bytes were compared with their checksum   */
    int is_taken;           /* take_many() placed it                                */
    int rc;
    brc_error *why;
} brc_read_item;

/* Items of the first call of list(); they are fetched in the transaction that looks them up. */
#define BRC_READ_FIRST 8

/* Result of list() without an item: the list may go on, but list() has searched long enough for now. */
#define BRC_READ_MORE 1

typedef struct brc_read_ops {
    void *ctx;
    /* 1: objects are fetched, and done() is called, in the order of list(). 0: in the order in
     * which the objects are stored. */
    int ordered;
    /* Caller's thread: sets the next items, at most cap, which the flow has cleared. *n is 0 at the
     * end, unless list() returns BRC_READ_MORE. */
    int (*list)(void *ctx, brc_read_item *items, size_t cap, size_t *n, brc_error *err);
    /* Caller's thread: prepares an item whose object was found; called once more if the object was
     * moved meanwhile. NULL: the item is decoded as its encoding says. */
    int (*open)(void *ctx, brc_read_item *item, brc_error *err);
    /* Any thread: takes the bytes of an item without `direct`. NULL: every item has a `direct`. */
    int (*place)(void *ctx, brc_read_item *item, const uint8_t *data, brc_scratch *scratch,
                 brc_error *err);
    /* Any thread: decodes the stored bytes of an item and places it, and returns 1; or returns 0, and the flow does
     * both. For memory that the flow cannot decode into. NULL: as 0. */
    int (*take)(void *ctx, brc_read_item *item, brc_span stored, brc_scratch *scratch, brc_error *err);
    /* Any thread: does the same for items of one chain and one owner together, at most BRC_PIPE_BATCH, and sets `is_taken` of those
     * that it placed. The others come again, one by one, so it may leave out whatever fails. NULL: they all do. */
    void (*take_many)(void *ctx, size_t n, brc_read_item *items, const brc_span *stored, brc_scratch *scratch);
    /* Any thread: returns 1 with the box of elements that place() will look at, or 0 if place() may
     * look at all of them. NULL: as 0. */
    int (*box)(void *ctx, const brc_read_item *item, brc_box *out);
    /* Caller's thread: called after an item was placed. NULL: not called. */
    int (*done)(void *ctx, brc_read_item *item, brc_error *err);
    /* Caller's thread, before done(): for progress. item NULL: list() has found no item yet. NULL:
     * not called. */
    int (*passed)(void *ctx, const brc_read_item *item, brc_error *err);
    /* Caller's thread: reports an item that is damaged, missing or cannot be decoded; the flow goes
     * on with the others. NULL: the first failure ends the flow. */
    int (*failed)(void *ctx, const brc_read_item *item, int rc, const brc_error *why,
                  brc_error *err);
    /* Any thread: puts the chunk's name before an error. NULL: errors stay as they are. */
    void (*name)(void *ctx, const brc_read_item *item, brc_error *err);
} brc_read_ops;

/* Reads the objects that list() gives. Requires a transaction of the store, a read or a write; a read is
 * paused meanwhile. If several items fail, the error is always that of the first, in whatever order the
 * threads ran. Calls on one pipe must not nest, except that list() of a write may read. */
BRC_MUST_USE int brc_flow_read(brc_pipe *pipe, brc_store *store, const brc_read_ops *ops,
                               brc_error *err);

#endif
