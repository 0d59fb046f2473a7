/*
 * A change of the file that is prepared without a lock, and made in one short transaction.
 *
 *      work()                  reads, computes, encodes: holds no lock, and others go on
 *      commit()                in a transaction: checks that what work() relied on still holds, and writes
 *      steps()                 in place of commit(), for what is too much for one transaction
 *
 * Others may change the file in between. Then all is done again, at a random moment, until the time to wait
 * (brc_open_opts.wait_ms) is over; and callers that change the same thing go on one after the other, in the
 * order in which they came.
 */
#ifndef BRC_STORE_CHANGE_H
#define BRC_STORE_CHANGE_H

#include "store.h"

/* What the functions of a change return, besides BRC_OK and errors. Nothing is written then. */
enum {
    BRC_CHANGE_AGAIN = 1, /* others were first: from the beginning                                      */
    BRC_CHANGE_WORK,      /* work() has more to do than was known; nobody was first                     */
    BRC_CHANGE_MUCH,      /* the change is too much for one transaction: steps()                        */
    BRC_CHANGE_NONE,      /* there is nothing to change: brc_change_run() returns BRC_OK                */
    BRC_CHANGE_OTHER      /* ends the change; brc_change_run() returns it, as it does each larger number */
};

typedef struct brc_file_change {
    /* What is changed, a branch for example. A change of the same thing waits for those that were overtaken and wait
     * already, but not for long if they do not get on. NULL: nobody waits; that suits a change that can insist, as a
     * place in the order takes a descriptor of the file. */
    const char *about;
    void *ctx;
    /* NULL: nothing is prepared. */
    int (*work)(void *ctx, brc_error *err);
    /* `insists`: others were first several times, or the time to wait is over, so what others have changed is
     * met here, with the lock in hand, if that can be done; or the change is a part of the caller's transaction,
     * and work() was not called. NULL: it is all done in steps(). */
    int (*commit)(void *ctx, int insists, brc_error *err);
    /* Begins and ends its own transactions. `insists`: BRC_CHANGE_AGAIN, if it is returned, may end the change.
     * NULL: BRC_CHANGE_MUCH is what brc_change_run() returns. */
    int (*steps)(void *ctx, int insists, brc_error *err);
} brc_file_change;

/* Returns BRC_OK, an error, or BRC_CHANGE_AGAIN: the time to wait is over, and nothing was changed (brc_change_is_late() is the
 * error to report). Within a write transaction or a bulk write of the caller's the change is a part of it: commit() is
 * called once, insisting. Not within a read. */
BRC_MUST_USE int brc_change_run(brc_store *store, const brc_file_change *change, brc_error *err);
/* BRC_EBUSY: others were first, while something was done ("these changes were merged onto branch 'main'"), and what to
 * do ("they are kept; commit again"). */
BRC_MUST_USE int brc_change_is_late(const brc_store *store, const char *doing, const char *remedy, brc_error *err);

#endif
