/*
 * Garbage collection: its rows and its statements. care/gc.h has the algorithm.
 *
 * A collection has a row in table gc from before its first look at reachable objects until its end.
 * While that row exists, every transaction that stores an object, or relies on a stored one,
 * enters the object in gc_kept (brc_gc_keep); the collection looks there, in its own transactions,
 * before it removes an object.
 */
#ifndef BRC_STORE_COLLECT_H
#define BRC_STORE_COLLECT_H

#include "store.h"

/* ---- for writers, within a transaction -------------------------------- */

/* Finds the number of the collection that runs; 0: none runs. */
BRC_MUST_USE int brc_gc_running(brc_store *store, int64_t *run, brc_error *err);
/* Finds the number of the last collection that has begun, ever; 0: none has. */
BRC_MUST_USE int brc_gc_last(brc_store *store, int64_t *run, brc_error *err);
/* Guard bytes that are put into other backends before the transaction that names them. brc_gc_puts_begin() is
 * called before the first put. brc_gc_puts_stand(), in that transaction, stores whether the bytes still exist:
 * a collection that ran meanwhile drops bytes that no row names. If *stand is 0, the caller puts the bytes
 * again. */
BRC_MUST_USE int brc_gc_puts_begin(brc_store *store, int64_t *since, brc_error *err);
BRC_MUST_USE int brc_gc_puts_stand(brc_store *store, int64_t since, int *stand, brc_error *err);
/* Keep an object that was stored or found again: brc_gc_keep() keeps any object except a commit, and
 * brc_gc_keep_stored() an object of any kind. A commit is kept with all objects that it reaches. */
BRC_MUST_USE int brc_gc_keep(brc_store *store, const brc_oid *id, brc_error *err);
BRC_MUST_USE int brc_gc_keep_stored(brc_store *store, int kind, const brc_oid *id, brc_error *err);
/* Within a transaction or a read: fails with BRC_ESTALE if this commit was collected. */
BRC_MUST_USE int brc_gc_commit_is_there(brc_store *store, const brc_oid *id, brc_error *err);
/* Keeps a commit that the caller is about to name. BRC_ESTALE: the commit was collected. */
BRC_MUST_USE int brc_gc_keep_commit(brc_store *store, const brc_oid *id, brc_error *err);

/* ---- pins: versions that a reader needs -------------------------------- */

/* Pins a commit for a reader: the commit and all objects that it reaches stay until brc_pin_let_go(). BRC_ESTALE: the
 * commit was collected. Does nothing if the file system has no locks that tell other processes
 * (docs/decisions/0029-*). */
BRC_MUST_USE int brc_pin_take(brc_store *store, const brc_oid *id, brc_error *err);
void brc_pin_let_go(brc_store *store, const brc_oid *id);
/* Stores a digest of the pins of all processes: two digests differ if the pins do, except by chance. */
BRC_MUST_USE int brc_pins_digest(brc_store *store, uint64_t *out, brc_error *err);
/* Drops rows of table pin that processes left behind when they ended. */
BRC_MUST_USE int brc_pins_sweep(brc_store *store, brc_error *err);

/* ---- the row of a collection -------------------------------- */

/* Frame a collection of this process. A row of this owner that exists outside of these two calls is left over: the
 * process could not remove it, because the disk was full. */
void brc_gc_enter(const char *owner);
void brc_gc_exit(const char *owner);

enum { BRC_GC_MARKS = 1, BRC_GC_SWEEPS = 2 };
typedef struct brc_gc_row {
    int64_t run;
    int phase;
    brc_oid position; /* the last id that was swept; zero: none yet  */
    int was_begun;    /* the collection goes on with another's work  */
} brc_gc_row;
/* Begins a collection, or goes on with one that a process left when it ended. BRC_EBUSY: another collection runs. */
BRC_MUST_USE int brc_gc_begin(brc_store *store, const char *owner, int64_t now_us, brc_gc_row *out, brc_error *err);
/* Within a transaction: notes the collection's phase and position; position NULL: keeps it. BRC_ESTALE: the row
 * belongs to another owner now. */
BRC_MUST_USE int brc_gc_note(brc_store *store, const char *owner, brc_gc_row *row, int phase, const brc_oid *position,
                             brc_error *err);
/* Stops a collection in the middle: the next one goes on with it. */
BRC_MUST_USE int brc_gc_leave(brc_store *store, const char *owner, const brc_gc_row *row, brc_error *err);
BRC_MUST_USE int brc_gc_end(brc_store *store, const brc_gc_row *row, brc_error *err);
BRC_MUST_USE int brc_gc_is_kept(brc_store *store, int64_t run, const brc_oid *id, int *kept, brc_error *err);

/* ---- roots (collect.c) -------------------------------- */

enum {
    BRC_ROOT_COMMIT = 1, /* a commit that must exist                             */
    BRC_ROOT_PAST,       /* a commit that may have been collected               */
    BRC_ROOT_OBJECT,     /* an object without references                         */
    BRC_ROOT_ENTRY,      /* a node's entry: `entry`                              */
    BRC_ROOT_ROW         /* a node's entry with the chunks of a draft_node row   */
};
typedef struct brc_root {
    int what;
    brc_oid id;
    int64_t node;
    int64_t open; /* the open merge, rebase or the like that names the root, its version of ours first; 0: none */
    size_t entry_len;
    uint8_t entry[2 + 3 * 32];
} brc_root;
typedef struct brc_roots {
    brc_root *items;
    size_t n, cap;
} brc_roots;
void brc_roots_dispose(brc_roots *roots);
/* The rows of the operation log that count as roots: from since_us on, and at least the last `least` rows.
 * A call reads on after the row `after`, and moves `after` on. */
typedef struct brc_log_range {
    int64_t since_us, least, after;
} brc_log_range;
/* Lists the roots that have a name: refs, pins, commits of drafts, and the targets in the log. BRC_NOT_DEAD leaves
 * out drafts of processes that have ended, BRC_NOT_DEAD_UNUSED only such drafts in which nothing is changed. */
enum { BRC_NOT_DEAD = 1, BRC_NOT_DEAD_UNUSED };
BRC_MUST_USE int brc_roots_named(brc_store *store, brc_log_range *range, int not_dead, brc_roots *out, brc_error *err);
typedef struct brc_root_draft {
    int64_t id, changes;
    int is_dropped; /* not a root: dropped, or left out by not_dead */
} brc_root_draft;
typedef struct brc_root_drafts {
    brc_root_draft *items;
    size_t n, cap;
} brc_root_drafts;
BRC_MUST_USE int brc_root_drafts_list(brc_store *store, int not_dead, brc_root_drafts *out, brc_error *err);
/* Lists the objects that the rows of a draft name, except its chunks. */
BRC_MUST_USE int brc_roots_of_draft(brc_store *store, int64_t draft, brc_roots *out, brc_error *err);
/* Calls each() with the chunks of a row of draft_node, page by page; `each` may pause a read (brc_store_breathe()). */
BRC_MUST_USE int brc_roots_of_row(brc_store *store, int64_t node, int (*each)(void *ctx, const brc_oid *chunk, brc_error *err),
                                  void *ctx, brc_error *err);
/* Drops drafts of processes that have ended, and rows of drafts that were dropped, in one short
 * transaction. *more is 1 if the caller must call it again. */
BRC_MUST_USE int brc_drafts_sweep_step(brc_store *store, int *more, brc_error *err);

/* ---- removing (sweep.c) -------------------------------- */

typedef struct brc_sweep {
    int64_t run;
    uint64_t objects, bytes; /* number and stored bytes of removed objects */
    size_t most_bytes;       /* bytes of journal after which a step ends  */
    void *bases;             /* brc_oid[nbases], of malloc(): objects that stayed because others build on them */
    size_t nbases, bases_cap;
} brc_sweep;
#define BRC_SWEEP_BYTES ((size_t)8 << 20)
/* The free space with which a collection gets to its end. When space runs out, steps shrink to the smallest size,
 * far below this one, because a step does not know beforehand how much its end writes. */
#define BRC_SWEEP_LEAST ((size_t)1 << 20)
#define BRC_SWEEP_SMALLEST (BRC_SWEEP_LEAST >> 5)
/* Lists every commit that has a derived row, commits without a child in the list first. */
BRC_MUST_USE int brc_sweep_commits(brc_store *store, brc_oid **out, size_t *n, brc_error *err);
/* Within a transaction: removes objects in the given order, except kept ones. *done: the number of ids that were
 * handled; the rest is for another transaction. */
BRC_MUST_USE int brc_sweep_some(brc_sweep *sweep, brc_store *store, const brc_oid *ids, size_t n, size_t *done, brc_error *err);
/* Within a transaction: removes the object's row, even a damaged one, and its stored bytes if they lie in the
 * file. */
BRC_MUST_USE int brc_object_drop(brc_store *store, const brc_oid *id, brc_error *err);
/* Within a transaction: removes every derived row, and rows of table boundary whose commit does not exist. */
BRC_MUST_USE int brc_derived_drop(brc_store *store, brc_error *err);

/* ---- free pages and traces in the file (sweep.c) -------------------------------- */

/* Gives at most `pages` free pages back to the file system, in a short transaction of its own: *left is how many
 * remain. */
#define BRC_VACUUM_PAGES 128
BRC_MUST_USE int brc_vacuum_step(brc_store *store, int pages, int64_t *left, brc_error *err);
/* Cuts off bytes after the file's last page. A process leaves such bytes if it is killed before it cuts them off. */
BRC_MUST_USE int brc_tail_cut(brc_store *store, brc_error *err);
/* In WAL mode: copies the log into the file and empties it. *busy is not 0 if a reader prevented that. */
BRC_MUST_USE int brc_log_fold(brc_store *store, int64_t *busy, brc_error *err);
/* Makes each commit go into the file as soon as it is made, if readers permit, so that the file grows while there is
 * space. A log that has taken all the space could not be copied into the file. */
void brc_log_fold_early(brc_store *store, int is_early);
/* Sets *out to the file's length in bytes. */
BRC_MUST_USE int brc_store_file_bytes(brc_store *store, uint64_t *out, brc_error *err);
/* Estimates the length that the file would have after a collection that frees these bytes: its free pages leave, and
 * the first collection makes its own tables. */
BRC_MUST_USE int brc_collect_leaves(brc_store *store, uint64_t freed, uint64_t *out, brc_error *err);
/* Removes operations on refs that do not exist any more, and the messages of deleted tags, from the operation log's
 * rows before `since_us`, except its newest `least` rows. The log's last row stays, without such data. */
BRC_MUST_USE int brc_oplog_expunge(brc_store *store, int64_t since_us, int64_t least, brc_error *err);
/* Removes the specifications of encodings that no object has: data types and codecs of arrays that were removed.
 * BRC_EBUSY: others write, and nothing was removed. */
BRC_MUST_USE int brc_encodings_expunge(brc_store *store, brc_error *err);
/* Called after all free pages were given back: copies the log into the file and empties it, so that no trace of removed
 * data is left in either. BRC_EBUSY: another process reads. */
BRC_MUST_USE int brc_expunge(brc_store *store, brc_error *err);

#endif
