/*
 * The collection of garbage: what nothing reaches is removed, while others read and write.
 *
 *   1. A row in table gc. From here on writers enter in gc_kept what they store or meet again.
 *   2. Drafts of processes that are gone are dropped, and rows of dropped drafts deleted.
 *   3. What is reachable is marked (gc_mark.h): all of it, or as much as memory allows, in order of
 *      the ids.
 *   4. Commits that were not marked go, each before its parents.
 *   5. Objects that were not marked go, in order of their ids, in short transactions. Each of these
 *      first looks whether there are new roots, and if so ends, has them marked and begins again.
 *   6. Where memory was not enough, 3 and 5 again, for the next range of ids.
 *   7. What these had in other backends is dropped there, and what no row ever named.
 *   8. Rows of stored bytes that are half empty are made anew; free pages go to the file system.
 */
#ifndef BRC_HISTORY_GC_RUN_H
#define BRC_HISTORY_GC_RUN_H

#include "gc_mark.h"

typedef struct brc_gc_job {
    int64_t now_us;
    brc_log_window window;
    size_t memory;            /* for marks                              */
    int expunge;
    int (*step)(void *ctx, brc_error *err); /* now and then, outside of transactions */
    void *ctx;
    /* What it did, or of a dry run would do. */
    uint64_t objects, bytes;
} brc_gc_job;

BRC_MUST_USE int brc_gc_collect(brc_gc_job *job, brc_store *store, brc_error *err);
/* Counts what would be removed, and changes nothing: exact while nobody writes. */
BRC_MUST_USE int brc_gc_count(brc_gc_job *job, brc_store *store, brc_error *err);

#endif
