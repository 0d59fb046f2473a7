/*
 * Marking: what is reachable from refs, drafts, pins and the window of the operation log.
 *
 * Objects in a range of ids are marked (mark_set.h); commits all, in any pass. Roots that others add
 * later are found by looking again (brc_gc_mark_again): what was marked is not walked twice.
 */
#ifndef BRC_HISTORY_GC_MARK_H
#define BRC_HISTORY_GC_MARK_H

#include "../store/collect.h"
#include "../base/id_table.h"
#include "closure.h"
#include "mark_set.h"
#include "log_window.h"

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

/* `memory`: for the marks. */
BRC_MUST_USE int brc_gc_mark_new(brc_gc_mark *mark, brc_store *store, const brc_log_window *window, size_t memory,
                                 brc_error *err);
void brc_gc_mark_dispose(brc_gc_mark *mark);
/* Everything, of the ids behind `above`. In short reads. BRC_ECORRUPT: something reachable is damaged, so
 * nobody knows what hangs under it. */
BRC_MUST_USE int brc_gc_mark_all(brc_gc_mark *mark, const brc_oid *above, brc_error *err);
/* In a transaction: *same 1 if the roots are those that were followed. Else they are read here and followed
 * by brc_gc_mark_follow(), in a transaction or outside. */
BRC_MUST_USE int brc_gc_mark_look(brc_gc_mark *mark, int *same, brc_error *err);
BRC_MUST_USE int brc_gc_mark_follow(brc_gc_mark *mark, brc_error *err);
int brc_gc_mark_has_commit(const brc_gc_mark *mark, const brc_oid *id);

#endif
