/*
 * Folding a draft into a snapshot: its rows become edits of the maps that they lie over, from the
 * leaves up. What no row touches is not read.
 *
 * A draft may have millions of rows, and nobody should wait for as long as they take. So a fold is
 * done in one of three ways: within the caller's transaction, where it gives up at a limit; in short
 * reads; or in short transactions that write the new nodes before anything names them
 * (fold.c). Only in the first is what it sees one state: otherwise the caller looks whether
 * the draft's counter has moved meanwhile.
 */
#ifndef BRC_WORK_FOLD_H
#define BRC_WORK_FOLD_H

#include "session.h"

/* Rows that are folded in one transaction, or between two reads that let go of the lock. A commit
 * of no more is one transaction. */
#define BRC_FOLD_ROWS 8192

/* Chunk maps that were made before: those of a row with all that lies below it. Nobody writes into
 * a row that lies below another; only the rows above it can say more. */
typedef struct brc_folded_map {
    int64_t row;
    brc_oid base, map;
} brc_folded_map;
typedef struct brc_folded {
    void *maps; /* brc_folded_map[] */
    size_t n, cap;
    int64_t collected; /* the last collection of garbage, when the first of them was made: a later one
                          would not know that they are needed */
    /* The whole draft, when its counter stood so. */
    int has_root;
    int64_t draft, changes;
    brc_oid root;
} brc_folded;

typedef enum brc_fold_way {
    BRC_FOLD_AT_ONCE,     /* within the caller's transaction, or read            */
    BRC_FOLD_SHORT_READS, /* a read is paused after each batch                   */
    BRC_FOLD_SHORT_WRITES /* outside of any transaction: each batch is one       */
} brc_fold_way;

typedef struct brc_fold {
    brc_fold_way way;
    uint64_t most;      /* rows of the draft, after which it gives up; 0: it does not */
    brc_folded *folded; /* NULL: none */
    int is_too_much;    /* it gave up, and failed with BRC_ELIMIT */
    /* Its own. */
    uint64_t rows, batch;
    int is_open;
} brc_fold;

/* A fold as a part of a change (store/change.h): what is too much for its transaction is folded ahead of it, and
 * what others have added by then over that. */
typedef struct brc_folding {
    brc_fold fold;
    brc_folded folded;
    int times; /* that it was folded ahead */
} brc_folding;
/* In work(), without a lock. */
BRC_MUST_USE int brc_folding_work(brc_folding *f, brc_session *s, brc_error *err);
/* In commit(), before f->fold is used; and what commit() returns if the rest of it came to rc. */
void brc_folding_begin(brc_folding *f, int insists);
int brc_folding_end(const brc_folding *f, int rc);
void brc_folding_dispose(brc_folding *f);

/* The snapshot that a commit would have. Written where the store is not in its scratch mode. `how`
 * may be NULL: at once, without a limit. */
BRC_MUST_USE int brc_session_fold(brc_session *s, brc_fold *how, brc_oid *out, brc_error *err);
/* An array's chunk map with its uncommitted chunks in it. */
BRC_MUST_USE int brc_fold_chunks(brc_store *store, const brc_entry *entry, const brc_draft_stack *rows, brc_oid *map,
                                 brc_error *err);

/* Writes the nodes of a commit of very many rows, in short transactions (fold.c): the maps of
 * large arrays, and where `all`, of the whole draft as it is. `out` says what was made; what others
 * write meanwhile is folded over it. Never within a transaction. */
BRC_MUST_USE int brc_fold_ahead(brc_session *s, int all, brc_folded *out, brc_error *err);
/* The same until out->has_root: the whole draft as it was at one moment, though others write into it. */
BRC_MUST_USE int brc_fold_whole(brc_session *s, brc_folded *out, brc_error *err);
void brc_folded_dispose(brc_folded *folded);

/* Whether a stack, or a node, has rows that one transaction should leave alone. */
BRC_MUST_USE int brc_stack_is_large(brc_store *store, const brc_draft_stack *stack, int *large, brc_error *err);
BRC_MUST_USE int brc_has_many_chunks(brc_store *store, const brc_draft_node *node, int *large, brc_error *err);
/* Those of an array from the first with many chunks down: nobody writes into them from now on. rows->n 0:
 * it has no such row. A short transaction. */
BRC_MUST_USE int brc_hold_still(brc_session *s, const char *path, brc_entry *entry, brc_draft_stack *rows, brc_error *err);

/* For fold.c. */
BRC_MUST_USE int brc_fold_stack(brc_store *store, brc_fold *how, const brc_oid *base, const brc_draft_stack *rows,
                                brc_oid *map, brc_error *err);
BRC_MUST_USE int brc_fold_end(brc_store *store, brc_fold *how, int rc, brc_error *err);

#endif
