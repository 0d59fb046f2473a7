/*
 * Small writes: read, merged, hashed and encoded without a lock, and stored in one short
 * transaction.
 *
 * By then others may have changed what this rests on. So within the transaction each chunk that is
 * changed in part must still be what it was laid over, and what was found to be stored must still
 * be; otherwise the transaction is ended, those chunks are done again, and it is tried again. After
 * TRIES of them the last goes on within the transaction, so that a busy neighbour cannot keep it
 * from ever coming to an end. If nobody has changed the file since it was read, nothing is looked
 * at.
 */
#include "write_run.h"

#include <search.h>
#include <stdlib.h>

#define TRIES 4

/* ---- what has changed -------------------------------- */

static int id_order(const void *a, const void *b)
{
    return brc_oid_cmp(&((const brc_write_item *)a)->id, &((const brc_write_item *)b)->id);
}

static int check_old_id(const brc_write_run *run, brc_write_item *item, brc_error *err)
{
    brc_oid now;
    if (!item->is_part)
        return BRC_OK;
    BRC_TRY(run->ops->now(run->ops->ctx, item, &now, err));
    item->is_undone = brc_oid_cmp(&now, &item->was) != 0;
    item->was = now;
    return BRC_OK;
}

/* Whether it was found is of the transaction that stores it. */
static int check_hits(brc_write_run *run, brc_error *err)
{
    const brc_settling *s = &run->settling;
    BRC_TRY(brc_objects_find(run->store, s->asked, s->n, err));
    for (size_t i = 0; i < s->n; i++) {
        brc_write_item *item = s->items[i];
        const brc_object *there = &s->objects[i];
        item->is_undone |= there->found != item->is_known ||
                           (there->found &&
                            (there->size != item->len || there->guard != item->guard));
    }
    return BRC_OK;
}

/* What is done again may be another than the one that an equal item relies on. */
static void undo_items(brc_write_run *run, brc_window_job *const *jobs, size_t n, int twins)
{
    for (size_t i = 0; i < n; i++) {
        brc_write_job *job = (brc_write_job *)jobs[i];
        for (size_t j = 0; j < job->n; j++) {
            brc_write_item *item = &job->items[j];
            if (!twins && item->is_undone)
                brc_write_let_go(run, item);
            if (twins && item->is_twin && tfind(item, &run->held, id_order) == NULL)
                item->is_undone = 1;
        }
    }
}

/* 1: some items are undone. In the transaction that is to store them. */
static int find_changed(brc_write_run *run, brc_window_job *const *jobs, size_t n, brc_error *err)
{
    uint64_t version;
    brc_settling *s = &run->settling;
    int any = 0;
    BRC_TRY(brc_store_version(run->store, &version, err));
    if (version == run->version)
        return 0;
    run->version = version;
    BRC_TRY(brc_write_settling(run, n, err));
    for (size_t i = 0; i < n; i++) {
        brc_write_job *job = (brc_write_job *)jobs[i];
        for (size_t j = 0; j < job->n; j++) {
            brc_write_item *item = &job->items[j];
            BRC_TRY(check_old_id(run, item, err));
            if (item->is_undone || item->is_fill || item->is_twin)
                continue;
            s->objects[s->n] = (brc_object){.id = item->id};
            s->asked[s->n] = &s->objects[s->n];
            s->items[s->n++] = item;
        }
    }
    BRC_TRY(check_hits(run, err));
    undo_items(run, jobs, n, 0);
    undo_items(run, jobs, n, 1);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < ((brc_write_job *)jobs[i])->n; j++)
            any |= ((brc_write_job *)jobs[i])->items[j].is_undone;
    return any;
}

/* ---- doing it again -------------------------------- */

static void forget_made(brc_write_item *item)
{
    item->old = (brc_object){.id = item->was};
    item->old_chain = NULL;
    item->stored.len = item->own.len = 0;
    item->is_fill = item->is_known = item->is_twin = item->compares = item->as_is = 0;
}

static int work_on(brc_write_run *run, int stage, size_t n, brc_write_item *const *items,
                   brc_error *err)
{
    for (size_t i = 0; i < n; i++)
        BRC_TRY(brc_write_work(run, items[i], stage, brc_pipe_caller(run->pipe), err));
    return BRC_OK;
}

/* The same steps as in the flow. */
static int redo_job(brc_write_run *run, brc_write_job *job, brc_error *err)
{
    brc_write_item *items[BRC_WRITE_ITEMS];
    size_t n = 0;
    for (size_t i = 0; i < job->n; i++) {
        if (!job->items[i].is_undone)
            continue;
        items[n++] = &job->items[i];
        job->items[i].is_undone = 0;
        forget_made(&job->items[i]);
        BRC_TRY(brc_backend_use(run->store, job->items[i].backend, &job->into[i], err));
    }
    if (n == 0)
        return BRC_OK;
    BRC_TRY(brc_write_load_olds(run, n, items, err));
    brc_store_pause_read(run->store);
    BRC_TRY(work_on(run, 0, n, items, err));
    BRC_TRY(brc_write_settle_items(run, n, items, err));
    brc_store_pause_read(run->store);
    BRC_TRY(work_on(run, 1, n, items, err));
    return brc_write_put(job, BRC_PUT_ON_WORKER, err);
}

static int redo_all(brc_write_run *run, brc_window_job *const *jobs, size_t n, brc_error *err)
{
    for (size_t i = 0; i < n; i++)
        BRC_TRY(redo_job(run, (brc_write_job *)jobs[i], err));
    return BRC_OK;
}

static int redo_unlocked(brc_write_run *run, brc_window_job *const *jobs, size_t n, brc_error *err)
{
    BRC_TRY(brc_store_begin_read(run->store, err));
    int rc = redo_all(run, jobs, n, err);
    brc_store_end_read(run->store);
    return rc;
}

/* ---- the turn -------------------------------- */

int brc_write_together(void *ctx, brc_window_job *const *jobs, size_t n, brc_error *err)
{
    brc_write_run *run = ctx;
    const brc_write_turn *turn = run->ops->turn;
    for (int tries = 0;; tries++) {
        int rc = brc_write_put_outside(run, jobs, n, err);
        if (rc == BRC_OK)
            rc = turn->begin(turn->ctx, err);
        if (rc != BRC_OK)
            return rc < 0 ? rc : 0;
        rc = find_changed(run, jobs, n, err);
        if (rc > 0 && tries == TRIES)
            rc = redo_all(run, jobs, n, err);
        if (rc == BRC_OK)
            rc = turn->enter(turn->ctx, err);
        else
            turn->undo(turn->ctx);
        if (rc <= 0)
            return rc < 0 ? rc : 1;
        BRC_TRY(redo_unlocked(run, jobs, n, err));
    }
}
