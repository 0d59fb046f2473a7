/*
 * The collection of garbage: its rows, and what it needs of SQLite. care/gc.h has the whole.
 *
 * A collection is a row of table gc from before its first look at what is reachable until its end.
 * While there is one, every transaction that stores an object, or relies on one that is there,
 * enters it in gc_kept (brc_gc_keep); the collection looks there, in its own transactions, before
 * it removes anything.
 */
#ifndef BRC_STORE_COLLECT_H
#define BRC_STORE_COLLECT_H

#include "store.h"

/* ---- for whoever writes, within a transaction -------------------------------- */

/* The collection that runs; 0: none does. */
BRC_MUST_USE int brc_gc_running(brc_store *store, int64_t *run, brc_error *err);
/* The number of the last that has begun, ever; 0: none has. */
BRC_MUST_USE int brc_gc_last(brc_store *store, int64_t *run, brc_error *err);
/* Before the first of what is put into other backends ahead of the transaction that names it; and in that
 * transaction: whether it is there, because no collection ran meanwhile, which drops what no row names. If
 * not, it is put again. */
BRC_MUST_USE int brc_gc_puts_begin(brc_store *store, int64_t *since, brc_error *err);
BRC_MUST_USE int brc_gc_puts_stand(brc_store *store, int64_t since, int *stand, brc_error *err);
/* An object that was stored or met again, and is no commit; and one of any kind. A commit is kept with all
 * that it reaches. */
BRC_MUST_USE int brc_gc_keep(brc_store *store, const brc_oid *id, brc_error *err);
BRC_MUST_USE int brc_gc_keep_stored(brc_store *store, int kind, const brc_oid *id, brc_error *err);
/* Within a transaction or a read: BRC_ESTALE if this commit was collected. */
BRC_MUST_USE int brc_gc_commit_is_there(brc_store *store, const brc_oid *id, brc_error *err);
/* Something is about to name this commit: it must be there, and is kept. BRC_ESTALE: it was collected. */
BRC_MUST_USE int brc_gc_keep_commit(brc_store *store, const brc_oid *id, brc_error *err);

/* ---- pins: versions that a reader needs -------------------------------- */

/* A reader opens a version of this commit: as long as he has it open, it and all that it reaches stay. BRC_ESTALE:
 * it is gone. Where it is not possible to say so to others (docs/decisions/0029-*), nothing is done. */
BRC_MUST_USE int brc_pin_take(brc_store *store, const brc_oid *id, brc_error *err);
void brc_pin_let_go(brc_store *store, const brc_oid *id);
BRC_MUST_USE int brc_pins_digest(brc_store *store, uint64_t *out, brc_error *err);
/* Drops rows of table pin that processes left which are gone. */
BRC_MUST_USE int brc_pins_sweep(brc_store *store, brc_error *err);

/* ---- the row of a collection -------------------------------- */

/* While a collection of this process goes on, between these two. Else its row is one that it could not take
 * back, on a full disk. */
void brc_gc_enter(const char *owner);
void brc_gc_exit(const char *owner);

enum { BRC_GC_MARKS = 1, BRC_GC_SWEEPS = 2 };
typedef struct brc_gc_row {
    int64_t run;
    int phase;
    brc_oid position; /* up to which it has swept; zero: nothing yet */
    int was_begun;    /* by somebody who did not end it              */
} brc_gc_row;
/* Begins one, or goes on with what a process left that is gone. BRC_EBUSY: another runs. */
BRC_MUST_USE int brc_gc_begin(brc_store *store, const char *owner, int64_t now_us, brc_gc_row *out, brc_error *err);
/* Within a transaction. BRC_ESTALE: it is not this owner's any more. position NULL: as it was. */
BRC_MUST_USE int brc_gc_note(brc_store *store, const char *owner, brc_gc_row *row, int phase, const brc_oid *position,
                             brc_error *err);
/* It stops in the middle: whoever comes next goes on. */
BRC_MUST_USE int brc_gc_leave(brc_store *store, const char *owner, const brc_gc_row *row, brc_error *err);
BRC_MUST_USE int brc_gc_end(brc_store *store, const brc_gc_row *row, brc_error *err);
BRC_MUST_USE int brc_gc_is_kept(brc_store *store, int64_t run, const brc_oid *id, int *kept, brc_error *err);

/* ---- roots (collect.c) -------------------------------- */

enum {
    BRC_ROOT_COMMIT = 1, /* it must be there                                     */
    BRC_ROOT_PAST,       /* a commit that may be gone                            */
    BRC_ROOT_OBJECT,     /* nothing hangs under it                               */
    BRC_ROOT_ENTRY,      /* of a node: `entry`                                   */
    BRC_ROOT_ROW         /* the same, with the chunks of a row of draft_node     */
};
typedef struct brc_root {
    int what;
    brc_oid id;
    int64_t node;
    int64_t open; /* the open merge, rebase or the like that names it, its version of ours first; 0: none */
    size_t entry_len;
    uint8_t entry[2 + 3 * 32];
} brc_root;
typedef struct brc_roots {
    brc_root *items;
    size_t n, cap;
} brc_roots;
void brc_roots_dispose(brc_roots *roots);
/* Of the operation log: from since_us on, at least its last `least` rows; behind the row `after`, which is
 * moved on. */
typedef struct brc_log_range {
    int64_t since_us, least, after;
} brc_log_range;
/* What has a name: refs, pins, commits of drafts, and what the log names. not_dead: without drafts that
 * processes left which are gone, or BRC_NOT_DEAD_UNUSED: without those of them in which nothing is changed. */
enum { BRC_NOT_DEAD = 1, BRC_NOT_DEAD_UNUSED };
BRC_MUST_USE int brc_roots_named(brc_store *store, brc_log_range *range, int not_dead, brc_roots *out, brc_error *err);
typedef struct brc_root_draft {
    int64_t id, changes;
    int is_dropped; /* no root; not_dead: or of a process that is gone */
} brc_root_draft;
typedef struct brc_root_drafts {
    brc_root_draft *items;
    size_t n, cap;
} brc_root_drafts;
BRC_MUST_USE int brc_root_drafts_list(brc_store *store, int not_dead, brc_root_drafts *out, brc_error *err);
/* What the rows of a draft name but for its chunks. */
BRC_MUST_USE int brc_roots_of_draft(brc_store *store, int64_t draft, brc_roots *out, brc_error *err);
/* The chunks of a row of draft_node, page by page; `each` may let a bare read go (brc_store_breathe()). */
BRC_MUST_USE int brc_roots_of_row(brc_store *store, int64_t node, int (*each)(void *ctx, const brc_oid *chunk, brc_error *err),
                                  void *ctx, brc_error *err);
/* Drops what processes that are gone left uncommitted, and the rows of what was dropped: one short
 * transaction. *more: call again. */
BRC_MUST_USE int brc_drafts_sweep_step(brc_store *store, int *more, brc_error *err);

/* ---- removing (removed.c) -------------------------------- */

typedef struct brc_sweep {
    int64_t run;
    uint64_t objects, bytes; /* removed: how many, and their stored bytes */
    size_t most_bytes;       /* of the journal, after which a step ends   */
} brc_sweep;
#define BRC_SWEEP_BYTES ((size_t)8 << 20)
/* With so much room a collection gets to its end. Where there is less than it takes, steps become smaller than that
 * by far, because no step knows beforehand what its end writes. */
#define BRC_SWEEP_LEAST ((size_t)1 << 20)
#define BRC_SWEEP_SMALLEST (BRC_SWEEP_LEAST >> 5)
/* Every commit that has a derived row, those without a child among them first. */
BRC_MUST_USE int brc_sweep_commits(brc_store *store, brc_oid **out, size_t *n, brc_error *err);
/* Within a transaction: removes objects, in their order, but for those that are kept. *done: so many of
 * them are through; the rest is for another transaction. */
BRC_MUST_USE int brc_sweep_some(brc_sweep *sweep, brc_store *store, const brc_oid *ids, size_t n, size_t *done, brc_error *err);
/* Within a transaction: the object's row goes, whatever is wrong with it, and its stored bytes with it as far as
 * they are in the file. */
BRC_MUST_USE int brc_object_drop(brc_store *store, const brc_oid *id, brc_error *err);
/* Within a transaction: every derived row goes, and rows of table boundary whose commit is not there. */
BRC_MUST_USE int brc_derived_drop(brc_store *store, brc_error *err);
/* ---- what is left in other backends (removed.c) -------------------------------- */

typedef struct brc_left {
    int64_t seq, backend;
    int is_canonical; /* bytes under their canonical name; else a pack    */
    int named;        /* of a pack: an object lies in it                  */
} brc_left;
#define BRC_LEFT_AT_ONCE 64
/* What is to be dropped, if no object has it: at most `cap`, behind the number `after`. */
BRC_MUST_USE int brc_left_page(brc_store *store, int64_t after, brc_left *out, size_t cap, size_t *n, brc_error *err);
/* Drops what is not named, in a transaction: at most BRC_LEFT_AT_ONCE, all of one backend. Of packs, `named` says
 * what objects had when they were looked at, after the collection `run` had begun. *failed grows by how many the
 * backend could not remove; they stay noted, and *why says for the first of all what it said. */
BRC_MUST_USE int brc_left_drop(brc_store *store, int64_t run, brc_left *left, size_t n, size_t *failed, brc_error *why,
                               brc_error *err);

/* ---- what no row ever named, in other backends (removed.c) -------------------------------- */

/* Of a writer that was killed, or whose transaction was undone. */
typedef struct brc_stray {
    char *name;
    int is_place; /* or canonical */
} brc_stray;
typedef struct brc_strays {
    brc_stray *items;
    size_t n, cap;
    int has_more; /* there was no room for all */
} brc_strays;
#define BRC_STRAYS_MOST 8192
void brc_strays_dispose(brc_strays *strays);
/* The next number of a backend behind `after`; 0: there is none. */
BRC_MUST_USE int brc_backend_after(brc_store *store, int64_t after, int64_t *id, brc_error *err);
/* Outside of a transaction: what this backend has for this file alone, and no row names, but for what was put
 * after before_us. Nothing where it cannot say, is not known here, or is not there; if it fails, *why has its
 * error. */
BRC_MUST_USE int brc_strays_find(brc_store *store, int64_t backend, int64_t before_us, brc_strays *out, brc_error *why,
                                 brc_error *err);
/* Drops those that still have no name, in a transaction: at most BRC_LEFT_AT_ONCE. *failed and *why as above. */
BRC_MUST_USE int brc_strays_drop(brc_store *store, int64_t backend, const brc_stray *strays, size_t n, size_t *failed,
                                 brc_error *why, brc_error *err);

/* ---- what is left (removed.c) -------------------------------- */

/* The last row of table blob that objects have left in part; 0: there is none. */
BRC_MUST_USE int brc_holes_last(brc_store *store, int64_t *last, brc_error *err);
/* Rows of table blob behind `after`, up to `last`, of which objects have left half or more: at most `cap`. */
BRC_MUST_USE int brc_holes_page(brc_store *store, int64_t after, int64_t last, int64_t *out, size_t cap, size_t *n,
                                brc_error *err);
/* Within a transaction: these objects are all that is in the row; they go to a new one. *moved 0: they are
 * not, and nothing was done. */
BRC_MUST_USE int brc_row_compact(brc_store *store, int64_t seq, const brc_oid *ids, size_t n, int *moved, brc_error *err);
/* At most `pages` free pages go back to the file system, in a short transaction of its own: *left is how many
 * there still are. */
#define BRC_VACUUM_PAGES 128
BRC_MUST_USE int brc_vacuum_step(brc_store *store, int pages, int64_t *left, brc_error *err);
/* What lies behind the file's last page goes: somebody was killed before it had. */
BRC_MUST_USE int brc_tail_cut(brc_store *store, brc_error *err);
/* In WAL mode: the log goes into the file, and is empty then. *busy: it is not, somebody reads. */
BRC_MUST_USE int brc_log_fold(brc_store *store, int64_t *busy, brc_error *err);
/* From now on each commit goes into the file as soon as it is made, as far as readers let it: the file grows while there is
 * room, and not when the log has taken all of it, which could not be folded in then. */
void brc_log_fold_early(brc_store *store, int is_early);
/* The file's length. */
BRC_MUST_USE int brc_store_file_bytes(brc_store *store, uint64_t *out, brc_error *err);
/* Of the operation log's rows from before `since_us`, but the newest `least`: operations on refs that are not there any
 * more go, and the messages that deleted tags had. The log's last row stays, and says nothing of them then. */
BRC_MUST_USE int brc_oplog_expunge(brc_store *store, int64_t since_us, int64_t least, brc_error *err);
/* The specifications of encodings that no object has: types and codecs of arrays that were removed. BRC_EBUSY:
 * others write, and they are still there. */
BRC_MUST_USE int brc_encodings_expunge(brc_store *store, brc_error *err);
/* After all free pages have gone: nothing is left of what was ever removed, neither in the file nor in its
 * log. */
BRC_MUST_USE int brc_expunge(brc_store *store, brc_error *err);

#endif
