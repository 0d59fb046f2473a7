/*
 * A set of ids with a memory limit, for the ids in a range. If they become too many, the upper end
 * of the range is lowered, and the ids beyond it are forgotten and left for another pass.
 *
 * So nothing is written anywhere, however many ids there are, and within its range the set is
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
    size_t most;        /* the most ids that it holds                              */
    brc_oid above;      /* the range begins after this id                          */
    int has_end;        /* the range ends with `end`, else with the last possible id */
    brc_oid end;
    uint8_t *ids;
    size_t n, cap;
    size_t sorted;      /* number of ids that are sorted, without duplicates       */
} brc_mark_set;
/* Makes an empty set that may use about `bytes` bytes. */
void brc_mark_set_init(brc_mark_set *set, size_t id_len, size_t bytes);
void brc_mark_set_dispose(brc_mark_set *set);
/* Empties the set. Its range begins after `above` and has no end yet. */
void brc_mark_set_begin(brc_mark_set *set, const brc_oid *above);
/* Returns 1 if the id is within the range. */
int brc_mark_set_covers(const brc_mark_set *set, const brc_oid *id);
BRC_MUST_USE int brc_mark_set_add(brc_mark_set *set, const brc_oid *id, brc_error *err);
/* Returns 1 if an id within the range was added. */
int brc_mark_set_has(brc_mark_set *set, const brc_oid *id);

/* ---- log window -------------------------------- */

/* How long versions that the operation log names are kept: the setting "window". */

/* The number of log entries that stay in the window however old they are, so that a clock that
 * jumps does not empty it. */
#define BRC_WINDOW_LEAST 1000

/* The beginning of the window, and the least number of entries in it. With a window of 0, only
 * named versions are kept, and neither field selects an entry. */
typedef struct brc_log_window {
    int64_t since_us, least;
} brc_log_window;
BRC_MUST_USE int brc_window_get(brc_store *store, int64_t now_us, brc_log_window *out, brc_error *err);
/* Gets the window as text, such as "30d", "12h" or "0", and sets it. Setting also takes weeks
 * ("2w") and a number of days; NULL restores the default. */
BRC_MUST_USE int brc_window_text(brc_store *store, brc_buf *out, brc_error *err);
BRC_MUST_USE int brc_window_set(brc_store *store, const char *text, brc_error *err);
/* Reads a window of this form. */
BRC_MUST_USE int brc_window_of_text(const char *text, int64_t now_us, brc_log_window *out, brc_error *err);

/* ---- gc mark -------------------------------- */

/*
 * Marking: finds what is reachable from refs, drafts, pins and the window of the operation log.
 *
 * Objects within a range of ids are marked; commits are marked in every pass. Roots that others add
 * later are found by reading the roots again, and what was marked is not walked twice.
 */

typedef struct brc_gc_mark {
    brc_store *store;
    brc_log_range range; /* the range of the log  */
    int follows_bases; /* objects that marked ones build on are marked too */
    int has_deltas;   /* there were such objects when marking began       */
    int not_dead;     /* drafts that were left by ended processes are not roots */
    brc_closure *walk;
    brc_mark_set set;
    brc_root_drafts drafts; /* as they were when their rows were read */
    brc_roots roots;        /* roots that were read, but not followed yet */
    brc_id_table rows;      /* rows of draft_node whose chunks were followed */
    int64_t others;         /* how much others had written then       */
    uint64_t pins;          /* a digest of the pins then              */
    int is_past;            /* roots of the log and of readers are being followed */
    uint64_t past;          /* commits that only these roots reach    */
    int (*step)(void *ctx, brc_error *err); /* called now and then; NULL: nothing is called */
    void *ctx;
} brc_gc_mark;

/* ---- gc run -------------------------------- */

/*
 * Garbage collection: removes what nothing reaches, while others read and write.
 *
 *   1. A row is put in table gc. From now on, writers enter in gc_kept the objects that they store
 *      or find already stored.
 *   2. Points of logs of drafts that are older than the window are forgotten, drafts of processes that have
 *      ended are dropped, and rows of dropped drafts are deleted.
 *   3. Reachable objects are marked: all of them, or, in the order of ids, as many as memory allows.
 *   4. Commits that were not marked are removed, each before its parents.
 *   5. Objects that were not marked are removed, in the order of their ids, in short transactions.
 *      Each transaction first looks for new roots; if there are any, it ends, marks from them, and
 *      begins again.
 *      An object that others build on (store/bases.h) stays until they are gone. Marked ones keep it, except
 *      where no trace must be left: then they are stored whole.
 *   6. If memory was not enough, steps 3 and 5 are repeated for the next range of ids.
 *   7. The chunks that these objects had in other backends are dropped there, and so are chunks that
 *      no row ever named.
 *   8. Rows of stored bytes that are half empty are rewritten, and free pages are given back to the
 *      file system.
 */

typedef struct brc_gc_job {
    int64_t now_us;
    brc_log_window window;
    size_t memory;            /* bytes of memory for marks              */
    int expunge;
    int (*step)(void *ctx, brc_error *err); /* called now and then, outside of transactions */
    void *ctx;
    /* The result, or the expected result of a dry run. */
    uint64_t objects, bytes;
    uint64_t past; /* commits that only the log and readers keep */
} brc_gc_job;

#endif
