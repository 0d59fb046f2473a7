/*
 * A write flow in progress, for the two files that it is made of:
 *
 *      write_work.c   on the pool: items are gathered, hashed, encoded, compared, and put into backends
 *      write.c        on the caller's thread: items are listed, fetched, looked up and stored
 */
#ifndef BRC_FLOW_WRITE_WORK_H
#define BRC_FLOW_WRITE_WORK_H

#include "write.h"

typedef struct brc_write_job {
    brc_window_job base; /* first: jobs are found by it */
    size_t n;
    int64_t others; /* in a bulk write: what had been changed when it was settled */
    brc_write_item items[BRC_WRITE_ITEMS];
    brc_stored at[BRC_WRITE_ITEMS];          /* where what is new was put */
    brc_store_backend *into[BRC_WRITE_ITEMS]; /* NULL: it was put already  */
} brc_write_job;

/* What is looked up together. */
typedef struct brc_settling {
    brc_object *objects; /* cap of them, and behind them the two lists */
    brc_object **asked;
    brc_write_item **items;
    size_t n, cap;
} brc_settling;

typedef struct brc_write_run {
    const brc_write_ops *ops;
    brc_pipe *pipe;
    brc_store *store;
    size_t job_items;
    void *held; /* of tsearch(): items that are about to be stored, by id */
    brc_settling settling;
    int outside;      /* something goes to another backend than the file */
    int64_t collected; /* the last collection of garbage, when it began */
    int64_t puts_since; /* whether what was put stands: brc_gc_puts_stand() */
    int is_prepared;  /* jobs are held, for brc_prepared_store()          */
    uint64_t version; /* ... of the store, when they were read or checked */
} brc_write_run;

/* ---- write_work.c -------------------------------- */

/* Puts the item's name before an error; rc again. */
int brc_write_named(const brc_write_run *run, const brc_write_item *item, int rc, brc_error *err);
/* A stage of one item. 0: canonical bytes, whether they are all fill, and their id; 1: what is new is
 * encoded, and decoded again, what is there is compared. */
BRC_MUST_USE int brc_write_work(brc_write_run *run, brc_write_item *item, int stage, unsigned worker, brc_error *err);
/* The content that is there under this id, whose stored bytes were fetched. */
BRC_MUST_USE int brc_write_compare(brc_write_run *run, unsigned worker, brc_write_item *item, brc_error *err);
/* What was known is not there any more: its second stage, on the caller's thread. */
BRC_MUST_USE int brc_write_encode_anew(brc_write_run *run, brc_write_item *item, brc_error *err);
/* A stage of a job: what the window runs. */
BRC_MUST_USE int brc_write_run_job(void *run, brc_window_job *job, int stage, unsigned worker, brc_error *err);

static inline int brc_write_is_new(const brc_write_item *item)
{
    return !item->is_piece && !item->is_fill && !item->is_known;
}

/* ---- write_work.c -------------------------------- */

/* What one item puts into its backend. */
void brc_write_describe(const brc_write_item *item, brc_stored *out);
/* What is new goes into its backend, where it is not there yet; rows that name it follow. Who puts: a
 * worker, where the backend says that one may; the caller's thread outside of a transaction, all but
 * what goes into the file; or within it, the rest. */
enum { BRC_PUT_ON_WORKER, BRC_PUT_OUTSIDE, BRC_PUT_INSIDE };
BRC_MUST_USE int brc_write_put(brc_write_job *job, int who, brc_error *err);
/* Outside of a transaction, which ends if one is open: all of these jobs' is put, and durable. */
BRC_MUST_USE int brc_write_put_outside(const brc_write_run *run, brc_window_job *const *jobs, size_t n, brc_error *err);
/* A backend may be asked soon, on whatever thread, and take its time: nothing is locked then. */
BRC_MUST_USE int brc_write_let_others(const brc_write_run *run, brc_error *err);

#endif
