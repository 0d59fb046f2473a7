/*
 * A set of ids within a limit of memory: those of a range. Where they become too many, the upper
 * end of the range comes down, and the ids beyond it are forgotten: they are for another pass.
 *
 * So nothing is written anywhere, however many there are, and what the set says of its range is
 * exact.
 */
#ifndef BRC_CARE_GC_H
#define BRC_CARE_GC_H

#include "../base/error.h"
#include "../base/hash.h"
#include "../history/closure.h"
#include "../store/collect.h"
#include "../store/store.h"

/* ---- mark set -------------------------------- */

typedef struct brc_mark_set {
    size_t id_len;
    size_t most;        /* ids that are held                                       */
    brc_oid above;      /* the range begins behind this one                        */
    int has_end;        /* and ends with `end`, else with the last there can be    */
    brc_oid end;
    uint8_t *ids;
    size_t n, cap;
    size_t sorted;      /* so many are in order, each once                         */
} brc_mark_set;

/* ---- log window -------------------------------- */

/* How long what the operation log names is kept: setting "window". */

/* Entries of the log that stay in the window however old they are, so that a clock that jumps empties
 * nothing. */
#define BRC_WINDOW_LEAST 1000

/* From which time on, and how many entries at least. Where the window is 0, only what has a name is
 * kept: then both say "none". */
typedef struct brc_log_window {
    int64_t since_us, least;
} brc_log_window;
BRC_MUST_USE int brc_window_get(brc_store *store, int64_t now_us, brc_log_window *out, brc_error *err);
/* The window that `text` says, as brc_window_set() takes it, whatever is set. */
BRC_MUST_USE int brc_window_of(const char *text, int64_t now_us, brc_log_window *out, brc_error *err);
/* As text: "30d", "12h", "0". Set takes these, weeks ("2w") and a number of days; NULL: the default. */
BRC_MUST_USE int brc_window_text(brc_store *store, brc_buf *out, brc_error *err);
BRC_MUST_USE int brc_window_set(brc_store *store, const char *text, brc_error *err);

/* ---- gc mark -------------------------------- */

/*
 * Marking: what is reachable from refs, drafts, pins and the window of the operation log.
 *
 * Objects in a range of ids are marked; commits all, in any pass. Roots that others add
 * later are found by looking again (brc_gc_mark_again): what was marked is not walked twice.
 */

typedef struct brc_gc_mark {
    brc_store *store;
    brc_log_range range; /* of the log            */
    int not_dead;     /* drafts that processes left which are gone are no roots */
    brc_closure *walk;
    brc_mark_set set;
    brc_root_drafts drafts; /* as they were when their rows were read */
    brc_roots roots;        /* that were read, and not yet followed   */
    brc_id_table rows;      /* rows of draft_node whose chunks were   */
    int64_t others;         /* what others had written then           */
    uint64_t pins;          /* and which versions they had open       */
    int (*step)(void *ctx, brc_error *err); /* now and then; NULL: nothing is called */
    void *ctx;
} brc_gc_mark;

/* ---- gc run -------------------------------- */

/*
 * The collection of garbage: what nothing reaches is removed, while others read and write.
 *
 *   1. A row in table gc. From here on writers enter in gc_kept what they store or meet again.
 *   2. Drafts of processes that are gone are dropped, and rows of dropped drafts deleted.
 *   3. What is reachable is marked (gc.h): all of it, or as much as memory allows, in order of
 *      the ids.
 *   4. Commits that were not marked go, each before its parents.
 *   5. Objects that were not marked go, in order of their ids, in short transactions. Each of these
 *      first looks whether there are new roots, and if so ends, has them marked and begins again.
 *   6. Where memory was not enough, 3 and 5 again, for the next range of ids.
 *   7. What these had in other backends is dropped there, and what no row ever named.
 *   8. Rows of stored bytes that are half empty are made anew; free pages go to the file system.
 */

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
