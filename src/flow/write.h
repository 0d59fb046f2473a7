/*
 * Writes many chunks. The pool gathers and hashes them, the caller's thread looks them up in the
 * store, and the chunks that are not stored yet are encoded, decoded again to compare (on the pool),
 * and stored. The pipe's budget bounds the memory in flight.
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
    /* Set by list(). */
    const brc_chain *chain; /* NULL: the stored bytes are the content (opaque)   */
    const char *spec;       /* of the encoding, which gets a number when a chunk is stored with it;
                               NULL: the canonical bytes are stored              */
    uint64_t digest;        /* brc_hash_encoding() of the encoding               */
    int64_t backend;        /* the store's number for the backend of a new object */
    uint64_t elements;      /* of the chunk                                      */
    brc_span fill; /* one element: a chunk that is all fill is not stored; data NULL: every chunk is stored */
    uint64_t number;        /* for the caller's use, as is `owner`               */
    void *owner;
    /* The object that is stored already: list() sets the id where gather() needs the content; the
     * flow looks the object up unless it is `found`, and fetches it. Zero: no object. */
    brc_object old;
    int keeps;              /* list(), with `replace`: the stored bytes stay as they are, and are only put
                               elsewhere: their codec need not be known           */
    int is_part;            /* list(): the item changes a part of the chunk `was`; zero: of fill values */
    brc_oid was;
    /* With `replace`, list(): the object is stored as a difference from this one, if that saves enough. Zero: it is
     * encoded by the chain. */
    brc_oid base;
    uint64_t most_depth;    /* list(): then the most differences up to an object that is stored whole */
    /* The encoded chunk. list() sets it where all chunks come encoded, or this one; or sets `loads`, and load() does. */
    brc_buf stored;
    int loads;
    /* list(): `stored` was read from `offset` of the place `place` (terminated) in the backend with this number, and
     * stays there: the chunk comes encoded, and nothing is put. 0: it does not, and `place` is the flow's: where
     * `old` lies, for errors; empty: in the file. */
    int64_t lies;
    uint64_t offset;
    brc_buf place;
    /* The item does not become a chunk: the flow calls gather() with it, and done() soon after.
     * `stored` and `len` (the bytes that gather() will have in `own`), which list() sets, stay
     * until a later item is done. */
    int is_piece;
    /* Set by gather(). */
    const uint8_t *data; /* canonical bytes                                      */
    size_t len;          /* of `data`; list() may set an estimate                */
    brc_buf own;         /* memory for gather() to use; kept from chunk to chunk */
    /* The flow's own. */
    const brc_chain *old_chain;
    struct brc_bases *old_bases; /* of an old object that is stored as a difference  */
    struct brc_bases *base_of;   /* `base`, with what it builds on itself            */
    int is_fill;   /* every element is the fill value: nothing is stored   */
    int is_known;  /* the content is stored already, or will be            */
    int compares;  /* known: the content is compared with that of `old`    */
    int is_twin;   /* known: an equal item is about to be stored           */
    int is_held;   /* in the tree of items that are about to be stored     */
    int is_undone; /* the item must be done again                          */
    int is_recorded; /* the object's row was written ahead of the rest     */
    int is_ahead;  /* `stored` was encoded together with other items       */
    int as_is;     /* the canonical bytes are stored                       */
    int stays;     /* with `replace`: the object stays as it is stored, because it gains nothing, was left or
                      was removed meanwhile                                */
    brc_oid id;
    uint64_t guard;
    uint64_t checksum; /* of the bytes to store                            */
    uint64_t index[BRC_MAX_NDIM]; /* for the caller's use: the chunk's index; not cleared */
} brc_write_item;

typedef struct brc_write_ops {
    void *ctx;
    size_t len;    /* canonical bytes of a chunk, about: sizes the jobs. 0: list() sizes them
                      itself, its cap is BRC_WRITE_ITEMS                           */
    size_t held;   /* bytes that the caller holds meanwhile: taken off the budget  */
    int encoded;   /* list() gives encoded chunks, which are stored as they are    */
    int replace;   /* item->old is stored again with the same content, unless it is gone by then */
    /* Caller's thread: sets the next items, at most cap; *n is 0 at the end. BRC_WINDOW_LATER: the
     * next item needs an item in progress to be done first. */
    int (*list)(void *ctx, brc_write_item *items, size_t cap, size_t *n, brc_error *err);
    /* Any thread, before anything else is done with an item that `loads`: sets item->stored. */
    int (*load)(void *ctx, brc_write_item *item, brc_error *err);
    /* Any thread: sets item->data and len. Not called where `encoded`. */
    int (*gather)(void *ctx, brc_write_item *item, brc_scratch *scratch, brc_error *err);
    /* Caller's thread, in order, for every chunk that is stored or all fill. NULL: not called. */
    int (*done)(void *ctx, const brc_write_item *item, brc_error *err);
    /* Any thread: puts the chunk's name before an error. NULL: errors stay as they are. */
    void (*name)(void *ctx, const brc_write_item *item, brc_error *err);
    /* Any thread, with `replace`: says whether the write goes on (1) although an object cannot be read, for
     * the reason `why`; the object then stays as it is. NULL: it does not. It is not asked about a server that
     * cannot be reached, which ends the write. */
    int (*leave)(void *ctx, const brc_write_item *item, const brc_error *why);
    /* For brc_flow_prepare(): sets *id to the chunk's present id. */
    int (*now)(void *ctx, const brc_write_item *item, brc_oid *id, brc_error *err);
} brc_write_ops;

/* For gather(): appends the content of item->old to `into`. */
BRC_MUST_USE int brc_write_old(brc_write_item *item, brc_scratch *scratch, brc_buf *into, brc_error *err);

/* Writes the chunks that list() gives. Requires a write transaction of the store, or a bulk write. The caller may
 * write while the pipe reads; writes on one pipe must not nest. */
BRC_MUST_USE int brc_flow_write(brc_pipe *pipe, brc_store *store, const brc_write_ops *ops,
                                brc_error *err);

/* Fails with BRC_ECOLLISION unless the stored object `there`, which was found under the id of `mine`, has the same
 * content: its length, its guard and, because two short contents can be made to have one hash and guard, the bytes of
 * a content of at most BRC_COMPARE_MAX. Within a transaction. */
BRC_MUST_USE int brc_flow_check_same(brc_pipe *pipe, brc_store *store, const brc_object *mine, brc_span short_content,
                                     const brc_object *there, brc_error *err);

/* ---- prepared -------------------------------- */

/*
 * Writing for a change that is prepared without a lock (store/change.h): every chunk is gathered, hashed, looked
 * up, encoded and held in memory, for one short transaction to store. That transaction finds the chunks that
 * others have changed by then, and those are made again.
 */
typedef struct brc_prepared brc_prepared;

/* Prepares the chunks that list() gives, within a read of the store. Copies *ops; the caller keeps the data that ops
 * point to unchanged until brc_prepared_free(). A pipe has one prepared write at most, and writes nothing else until
 * that is freed. Returns BRC_CHANGE_MUCH if the chunks do not fit into memory. */
BRC_MUST_USE int brc_flow_prepare(brc_prepared **out, brc_pipe *pipe, brc_store *store, const brc_write_ops *ops,
                                  brc_error *err);
/* Finds the chunks that others have changed, within the transaction that will store. With `insists` makes them again
 * at once; otherwise returns BRC_CHANGE_AGAIN if there are any, and brc_prepared_renew() makes them again. */
BRC_MUST_USE int brc_prepared_check(brc_prepared *p, int insists, brc_error *err);
/* Makes the chunks that brc_prepared_check() found again, within a read. */
BRC_MUST_USE int brc_prepared_renew(brc_prepared *p, brc_error *err);
/* Stores all chunks and calls done() for each, in the transaction in which brc_prepared_check() succeeded. */
BRC_MUST_USE int brc_prepared_store(brc_prepared *p, brc_error *err);
void brc_prepared_free(brc_prepared *p);

#endif
