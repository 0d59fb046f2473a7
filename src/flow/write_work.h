/*
* A write flow in progress, for its two files:
 *
 *      write_work.c   on the pool: items are gathered, hashed, encoded, compared, and put into backends
 *      write.c        on the caller's thread: items are listed, fetched, looked up and stored
 */
#ifndef BRC_FLOW_WRITE_WORK_H
#define BRC_FLOW_WRITE_WORK_H

#include "../store/bases.h"
#include "write.h"

typedef struct brc_write_job {
    brc_window_job base; /* first, because the window casts to and from it */
    size_t n;
    int64_t others; /* in a bulk write: brc_store_others() when the job was settled */
    brc_write_item items[BRC_WRITE_ITEMS];
    brc_stored at[BRC_WRITE_ITEMS];          /* where a new item's bytes were put */
    brc_store_backend *into[BRC_WRITE_ITEMS]; /* NULL: the item was put already    */
} brc_write_job;

/* Items that are looked up together. */
typedef struct brc_settling {
    brc_object *objects; /* cap objects; the two lists follow in the same memory */
    brc_object **asked;
    brc_write_item **items;
    size_t n, cap;
} brc_settling;

typedef struct brc_write_run {
    const brc_write_ops *ops;
    brc_pipe *pipe;
    brc_store *store;
    size_t job_items;
    void *held; /* tree of tsearch(): items that are about to be stored, by id */
    brc_settling settling;
    int outside;      /* some item goes to another backend than the file  */
    int is_slow;      /* some item goes to one that nobody should wait for */
    brc_ahead ahead;  /* old objects that lie far away, fetched together  */
    int64_t collected; /* brc_gc_last() when the run began                */
    int64_t puts_since; /* for brc_gc_puts_stand()                        */
    int is_prepared;  /* jobs are held for brc_prepared_store()           */
    uint64_t version; /* of the store, when the jobs were read or checked */
} brc_write_run;

/* ---- write_work.c -------------------------------- */

/* Puts the item's name before an error. Returns rc. */
int brc_write_named(const brc_write_run *run, const brc_write_item *item, int rc, brc_error *err);
/* Returns BRC_OK if the item is left as it is in spite of this error, else the error. */
BRC_MUST_USE int brc_write_leave(const brc_write_run *run, brc_write_item *item, int rc, brc_error *why, brc_error *err);
/* Does a stage of one item. Stage 0 makes the canonical bytes, tests whether they are all fill, and hashes them;
 * stage 1 encodes a new item and decodes it again, or compares a known one. */
BRC_MUST_USE int brc_write_work(brc_write_run *run, brc_write_item *item, int stage, unsigned worker, brc_error *err);
/* Compares the item with the object that has the same id; item->stored has the object's stored bytes. */
BRC_MUST_USE int brc_write_compare(brc_write_run *run, unsigned worker, brc_write_item *item, brc_error *err);
/* Does the second stage of an item that was known and has been collected since, on the caller's thread. */
BRC_MUST_USE int brc_write_encode_anew(brc_write_run *run, brc_write_item *item, brc_error *err);
/* Does a stage of a job, as the window's run(). */
BRC_MUST_USE int brc_write_run_job(void *run, brc_window_job *job, int stage, unsigned worker, brc_error *err);

/* Returns whether list() has given the item's encoded bytes. */
static inline int brc_write_is_encoded(const brc_write_run *run, const brc_write_item *item)
{
    return run->ops->encoded || item->lies != 0;
}

/* Returns the number of the backend that a new item's bytes are in. */
static inline int64_t brc_write_backend(const brc_write_item *item)
{
    return item->lies != 0 ? item->lies : item->backend;
}

/* A chunk that does not shrink by 3 % is stored as it is. */
static inline int brc_write_is_worthwhile(size_t stored, size_t len)
{
    return stored <= len - len / 100 * 3;
}

static inline int brc_write_is_new(const brc_write_item *item)
{
    return !item->is_piece && !item->is_fill && !item->is_known && !item->stays;
}

/* ---- write_work.c: the old object -------------------------------- */

/* Fetches the stored bytes of item->old, which was found, for brc_write_old(). `ahead` may have them already; NULL: none
 * are there. */
BRC_MUST_USE int brc_write_fetch_old(brc_store *store, brc_write_item *item, const brc_ahead *ahead, brc_error *err);
/* Fetches the stored bytes of item->old as they are. */
BRC_MUST_USE int brc_write_load_stored(brc_store *store, brc_write_item *item, const brc_ahead *ahead, brc_error *err);
/* Frees what was fetched of objects that are stored as differences. */
void brc_write_forget_old(brc_write_item *item);

/* ---- write_work.c: putting into backends -------------------------------- */

/* Describes the bytes that an item puts into its backend. */
void brc_write_describe(const brc_write_item *item, brc_stored *out);
/* Puts the job's new items that were not put yet into their backends, before the rows that name them. A worker
 * puts into the backends that allow workers; the caller's thread puts outside of a transaction into all backends
 * except the file, and the rest within the transaction. */
enum { BRC_PUT_ON_WORKER, BRC_PUT_OUTSIDE, BRC_PUT_INSIDE };
BRC_MUST_USE int brc_write_put(brc_write_job *job, int who, brc_error *err);
/* Puts the items of these jobs that go outside of the file, and makes them durable. An open transaction ends first if
 * some go to a slow backend, or others wait. */
BRC_MUST_USE int brc_write_put_outside(const brc_write_run *run, brc_window_job *const *jobs, size_t n, brc_error *err);
/* Releases the file's lock before any thread asks a backend: one that is slow, or any if others wait. */
BRC_MUST_USE int brc_write_let_others(const brc_write_run *run, brc_error *err);

#endif
