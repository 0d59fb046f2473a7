/*
 * A change of the file that is prepared without a lock, and made in one short transaction.
 *
 *      work()                  reads, computes, encodes: holds no lock, so others can go on
 *      commit()                in a transaction: checks that the premises of work() still hold, and writes
 *      steps()                 in place of commit(), for a change that is too large for one transaction
 *
 * If others change the file in between, the whole change is done again after a random pause, until the time to
 * wait (brc_open_opts.wait_ms) is over. Callers that change the same thing go on one after the other, in the
 * order in which they came.
 */
#ifndef BRC_STORE_CHANGE_H
#define BRC_STORE_CHANGE_H

#include "store.h"

/* Results of a change's functions, besides BRC_OK and errors. A function that returns one has written nothing. */
enum {
    BRC_CHANGE_AGAIN = 1, /* others were first: start again from the beginning                          */
    BRC_CHANGE_WORK,      /* work() has more to do than was known; nobody was first                     */
    BRC_CHANGE_MUCH,      /* the change is too large for one transaction: call steps()                  */
    BRC_CHANGE_NONE,      /* there is nothing to change: brc_change_run() returns BRC_OK                */
    BRC_CHANGE_OTHER      /* ends the change; brc_change_run() returns this, or any larger number       */
};

typedef struct brc_file_change {
    /* The thing that is changed, a branch for example. A change of the same thing waits for overtaken changes that
     * wait already, but not for long if they make no progress. NULL: nobody waits. That suits a change that can
     * insist, because a place in the order takes a descriptor of the file. */
    const char *about;
    void *ctx;
    /* work() or steps() stores objects that nothing names before commit(), so a collection may remove them while they
     * are read: a try that misses one is made again if a collection has begun since. */
    int is_ahead;
    /* NULL: nothing is prepared. */
    int (*work)(void *ctx, brc_error *err);
    /* `insists`: others were first several times, or the time to wait is over, so commit() takes up the changes of
     * others itself, with the lock in hand, if it can; or the change is a part of the caller's transaction, and
     * work() was not called. NULL: steps() does everything. */
    int (*commit)(void *ctx, int insists, brc_error *err);
    /* Begins and ends its own transactions. `insists`: a result of BRC_CHANGE_AGAIN may end the change.
     * NULL: brc_change_run() returns BRC_CHANGE_MUCH. */
    int (*steps)(void *ctx, int insists, brc_error *err);
} brc_file_change;

/* Makes a change. Returns BRC_OK, an error, or BRC_CHANGE_AGAIN: the time to wait is over, and nothing was changed
 * (brc_change_is_late() is the error to report). Within the caller's write transaction or bulk write the change is a part
 * of that transaction, and commit() is called once, with `insists`. Must not be called within a read. */
BRC_MUST_USE int brc_change_run(brc_store *store, const brc_file_change *change, brc_error *err);
/* Fails with BRC_EBUSY because others were first. `doing` says what was tried meanwhile ("these changes were merged onto
 * branch 'main'"), `remedy` what the user can do ("they are kept; commit again"). */
BRC_MUST_USE int brc_change_is_late(const brc_store *store, const char *doing, const char *remedy, brc_error *err);

#endif
