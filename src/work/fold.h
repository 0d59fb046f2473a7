/*
 * Folds a draft into a snapshot: the rows of the draft become edits of the maps that they lie over,
 * from the leaves up. Parts of maps that no row touches are not read.
 *
 * A draft may have millions of rows, and nobody should have to wait until all are folded. A fold
 * therefore works in one of three ways: within the caller's transaction, with a limit at which it
 * gives up; in short reads; or in short transactions that write the new nodes before anything names
 * them (fold.c). Only the first way sees a single state: with the other two, the caller checks
 * whether the draft's counter has moved meanwhile.
 */
#ifndef BRC_WORK_FOLD_H
#define BRC_WORK_FOLD_H

#include "session.h"

/* The number of rows that are folded in one transaction, or between two reads that release the lock. A commit of at
 * most this many rows is one transaction. */
#define BRC_FOLD_ROWS 8192

/* Chunk maps that were made earlier, each of a row and all rows below it. Nobody writes into a row that lies below
 * another; only the rows above can add changes. */
typedef struct brc_folded_map {
    int64_t row;
    brc_oid base, map;
} brc_folded_map;
typedef struct brc_folded {
    void *maps; /* brc_folded_map[] */
    size_t n, cap;
    int64_t collected; /* the number of the last collection of garbage when the first map was made; a later
                        * collection does not know that the maps are needed */
    /* The fold of the whole draft when its counter was `changes`. */
    int has_root;
    int64_t draft, changes;
    brc_oid root;
} brc_folded;

typedef enum brc_fold_way {
    BRC_FOLD_AT_ONCE,     /* within the caller's transaction or read             */
    BRC_FOLD_SHORT_READS, /* a read is paused after each batch                   */
    BRC_FOLD_SHORT_WRITES /* outside of any transaction: each batch is one       */
} brc_fold_way;

typedef struct brc_fold {
    brc_fold_way way;
    uint64_t most;      /* the number of rows after which the fold gives up; 0: no limit */
    brc_folded *folded; /* NULL: none */
    int is_too_much;    /* the fold gave up, with BRC_ELIMIT */
    /* Private to fold.c. */
    uint64_t rows, batch;
    int is_open;
} brc_fold;

/* A fold as a part of a change (store/change.h): what is too large for the transaction is folded ahead, and what
 * others add meanwhile is folded over the result. */
typedef struct brc_folding {
    brc_fold fold;
    brc_folded folded;
    int times; /* the number of folds ahead so far */
} brc_folding;
/* Call in work(), without a lock. */
BRC_MUST_USE int brc_folding_work(brc_folding *f, brc_session *s, brc_error *err);
/* Call the first in commit() before f->fold is used. The second returns the result of commit(), whose other steps
 * returned rc. */
void brc_folding_begin(brc_folding *f, int insists);
int brc_folding_end(const brc_folding *f, int rc);
void brc_folding_dispose(brc_folding *f);

/* Returns the snapshot that a commit would have. Writes it unless the store is in its scratch mode. `how` may be
 * NULL: at once, without a limit. */
BRC_MUST_USE int brc_session_fold(brc_session *s, brc_fold *how, brc_oid *out, brc_error *err);
/* Returns an array's chunk map with the uncommitted chunks folded in. */
BRC_MUST_USE int brc_fold_chunks(brc_store *store, const brc_entry *entry, const brc_draft_stack *rows, brc_oid *map,
                                 brc_error *err);

/* Writes the nodes of a commit of very many rows in short transactions (fold.c): the maps of large arrays and, if
 * `all`, of the whole draft as it is. `out` names what was made; what others write meanwhile is folded over that.
 * Must not be called within a transaction. */
BRC_MUST_USE int brc_fold_ahead(brc_session *s, int all, brc_folded *out, brc_error *err);
/* Repeats brc_fold_ahead() until out->has_root: the whole draft as it was at one moment, even if others write into
 * it. */
BRC_MUST_USE int brc_fold_whole(brc_session *s, brc_folded *out, brc_error *err);
void brc_folded_dispose(brc_folded *folded);

/* Tells whether a stack, or a node, has more rows than one transaction should handle. */
BRC_MUST_USE int brc_stack_is_large(brc_store *store, const brc_draft_stack *stack, int *large, brc_error *err);
BRC_MUST_USE int brc_has_many_chunks(brc_store *store, const brc_draft_node *node, int *large, brc_error *err);
/* Holds still the rows of an array from the first one with many chunks down: nobody writes into them from now on.
 * rows->n 0: the array has no such row. Uses a short transaction. */
BRC_MUST_USE int brc_hold_still(brc_session *s, const char *path, brc_entry *entry, brc_draft_stack *rows, brc_error *err);

/* For fold.c. */
BRC_MUST_USE int brc_fold_stack(brc_store *store, brc_fold *how, const brc_oid *base, const brc_draft_stack *rows,
                                brc_oid *map, brc_error *err);
BRC_MUST_USE int brc_fold_end(brc_store *store, brc_fold *how, int rc, brc_error *err);

#endif
