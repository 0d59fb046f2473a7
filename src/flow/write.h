/*
 * Writing many chunks: gathered and hashed on the pool, looked up in the store, and
 * only what is not there yet encoded, decoded again to compare (on the pool), and
 * stored. Memory in flight is bounded by the pipe's budget.
 *
 *      list ──> fetch old ──> gather, hash ──> look up ──> encode, compare ──> store, done
 *     caller     store            pool          store           pool            store
 */
#ifndef BRC_FLOW_WRITE_H
#define BRC_FLOW_WRITE_H

#include "window.h"

/* A job has at most this many items, and about this many bytes if it has several. */
#define BRC_WRITE_ITEMS 64
#define BRC_WRITE_BYTES ((size_t)256 << 10)

typedef struct brc_write_item {
    /* set by list() */
    const brc_chain *chain; /* NULL: the stored bytes are what they are (opaque) */
    const char *spec;       /* of its encoding, which gets a number when something is stored so;
                               NULL: the canonical bytes are what is stored      */
    uint64_t digest;        /* of the encoding: brc_hash_encoding()              */
    int64_t backend;        /* the store's number for the one that it goes to, if it is new */
    uint64_t elements;      /* of the chunk                                      */
    brc_span fill; /* one element: where all are that, nothing is stored; data NULL: it is */
    uint64_t number;        /* the caller's own, as the next                     */
    void *owner;
    /* What is there already: list() sets the id where gather() needs its content, the
     * flow looks it up unless it is `found`, and fetches it. Zero: nothing. */
    brc_object old;
    int is_part;            /* list(): it is laid over what `was` names, zero: over fill value */
    brc_oid was;
    /* What is to be stored. list() sets it where all chunks come encoded. */
    brc_buf stored;
    /* It becomes no chunk: gather() is called with it, and done() as soon as that is through.
     * What list() puts into `stored` and `len` (bytes that gather() will have in `own`) stays
     * until a later item is done. */
    int is_piece;
    /* set by gather() */
    const uint8_t *data; /* canonical bytes                                      */
    size_t len;          /* how many; list() may say how many there will be, about */
    brc_buf own;         /* memory for gather() to use; kept from chunk to chunk */
    /* the flow's */
    const brc_chain *old_chain;
    int is_fill;   /* every element is the fill value: nothing is stored   */
    int is_known;  /* its content is stored already                        */
    int compares;  /* ... as `old`, and is compared with it                */
    int is_twin;   /* ... or that of an item which is about to be          */
    int is_held;   /* in the tree of what is about to be stored            */
    int is_undone; /* it is done again                                     */
    int is_recorded; /* its object's row was written ahead of the rest     */
    int as_is;     /* to be stored as the canonical bytes                  */
    brc_oid id;
    uint64_t guard;
    uint64_t checksum; /* of what is to be stored                          */
    uint64_t index[BRC_MAX_NDIM]; /* the caller's own: the chunk's; not cleared */
} brc_write_item;

typedef struct brc_write_ops {
    void *ctx;
    size_t len;    /* canonical bytes of a chunk, about: sizes jobs. 0: list() sizes them
                      itself, its cap is BRC_WRITE_ITEMS                           */
    size_t held;   /* bytes that the caller holds meanwhile: taken off the budget  */
    int encoded;   /* list() gives encoded chunks, which are kept as they are      */
    int replace;   /* item->old is stored anew, with the same content              */
    /* Caller's thread: the next items, at most cap; *n 0 at the end. BRC_WINDOW_LATER: none
     * before something that is on its way is done. */
    int (*list)(void *ctx, brc_write_item *items, size_t cap, size_t *n, brc_error *err);
    /* Any thread: sets item->data and len. Not called where `encoded`. */
    int (*gather)(void *ctx, brc_write_item *item, brc_scratch *scratch, brc_error *err);
    /* Caller's thread, in order, for every chunk: it is stored, or all fill. NULL: nothing. */
    int (*done)(void *ctx, const brc_write_item *item, brc_error *err);
    /* Any thread: puts the chunk's name before an error. NULL: nothing. */
    void (*name)(void *ctx, const brc_write_item *item, brc_error *err);
    /* Of brc_flow_prepare(): the chunk's id as it is now. */
    int (*now)(void *ctx, const brc_write_item *item, brc_oid *id, brc_error *err);
} brc_write_ops;

/* For gather(): the content of item->old appended to `into`. */
BRC_MUST_USE int brc_write_old(brc_write_item *item, brc_scratch *scratch, brc_buf *into, brc_error *err);

/* Within a write transaction of the store, or a bulk write. Calls on one pipe do not nest, but may be made
 * while the pipe reads. */
BRC_MUST_USE int brc_flow_write(brc_pipe *pipe, brc_store *store, const brc_write_ops *ops,
                                brc_error *err);

/* ---- prepared -------------------------------- */

/*
 * The same for a change that is prepared without a lock (store/change.h): everything is gathered, hashed, looked
 * up and encoded, and held in memory, for one short transaction to store. What others have changed by then is
 * found in that transaction, and made again.
 */
typedef struct brc_prepared brc_prepared;

/* Within a read: what is listed is read in it. *ops is copied; what it points to stays as it is until the end. At most
 * one at a time on a pipe, on which nothing else is written until it is freed. BRC_CHANGE_MUCH: more than is held in
 * memory. */
BRC_MUST_USE int brc_flow_prepare(brc_prepared **out, brc_pipe *pipe, brc_store *store, const brc_write_ops *ops,
                                  brc_error *err);
/* Within the transaction that is to store: finds what others have changed. BRC_CHANGE_AGAIN: something, and
 * brc_prepared_renew() makes it again; `insists`: it is made again here. */
BRC_MUST_USE int brc_prepared_check(brc_prepared *p, int insists, brc_error *err);
/* Within a read. */
BRC_MUST_USE int brc_prepared_renew(brc_prepared *p, brc_error *err);
/* In the transaction that has checked it: stores all, and calls done() for each chunk. */
BRC_MUST_USE int brc_prepared_store(brc_prepared *p, brc_error *err);
void brc_prepared_free(brc_prepared *p);

#endif
