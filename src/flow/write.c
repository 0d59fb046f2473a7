/* The write flow: filling, storing, and the window that it goes through. */
#include "write_run.h"

#include "../store/collect.h"

#include <search.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define JOBS_PER_THREAD 6
/* ... and so many where all are held until the last is encoded. */
#define JOBS_TOGETHER 64
/* ... and in a bulk write: many of small chunks, whose rows are sorted. */
#define JOBS_IN_BULK 512
/* In a bulk write: what jobs hold that are finished together, decoded and encoded. */
#define BATCH_BYTES ((size_t)64 << 20)
/* Buffers up to this size are kept from one call to the next. */
#define KEPT_BYTES ((size_t)1 << 20)

/* ---- filling -------------------------------- */

/* Forgets what the item was before, but not its memory. */
static void write_clear(brc_write_item *item)
{
    brc_buf stored = item->stored, own = item->own;
    memset(item, 0, offsetof(brc_write_item, index));
    item->stored = stored;
    item->own = own;
    item->stored.len = item->own.len = 0;
}

/* What a job holds, as far as can be said when it is filled: each chunk is gathered and
 * encoded. */
static size_t write_job_bytes(const brc_write_run *run, const brc_write_job *job)
{
    size_t held = 0, guess = 0;
    for (size_t i = 0; i < job->n; i++) {
        const brc_write_item *item = &job->items[i];
        held += item->stored.cap + item->own.cap;
        guess += item->is_piece ? item->stored.cap + item->len
                                : 2 * (item->len > 0 ? item->len : run->ops->len);
    }
    return held > guess ? held : guess;
}

static int write_fetch(brc_write_run *run, brc_write_job *job, brc_error *err)
{
    brc_write_item *items[BRC_WRITE_ITEMS];
    for (size_t i = 0; i < job->n; i++)
        items[i] = &job->items[i];
    return brc_write_load_olds(run, job->n, items, err);
}

static int write_fill_job(void *ctx, brc_window_job *base, brc_error *err)
{
    brc_write_run *run = ctx;
    brc_write_job *job = (brc_write_job *)base;
    BRC_TRY(brc_store_rest(run->store, 0, err)); /* the caller's source may wait */
    for (size_t i = 0; i < run->job_items; i++)
        write_clear(&job->items[i]);
    int rc = run->ops->list(run->ops->ctx, job->items, run->job_items, &job->n, err);
    if (rc != BRC_OK)
        return rc;
    BRC_TRY(write_fetch(run, job, err));
    for (size_t i = 0; i < job->n; i++) {
        BRC_TRY(brc_backend_use(run->store, job->items[i].backend, &job->into[i], err));
        run->outside |= !brc_backend_is_inline(job->into[i]);
    }
    if (run->outside)
        BRC_TRY(brc_write_let_others(run, err));
    if (run->ops->turn == NULL) /* else the window does, behind several jobs */
        brc_store_pause_read(run->store);
    base->bytes = write_job_bytes(run, job);
    return job->n > 0;
}

/* ---- storing -------------------------------- */

/* It was there, and was collected meanwhile: it is encoded after all. What is put elsewhere goes
 * there in this transaction. */
static int write_after_all(brc_write_run *run, brc_write_job *job, brc_write_item *item,
                           brc_error *err)
{
    item->is_known = item->is_twin = 0;
    BRC_TRY(brc_write_hold(run, item, err));
    if (!item->is_held) /* an equal one of this job is */
        return BRC_OK;
    BRC_TRY(brc_write_encode_anew(run, item, err));
    return brc_backend_use(run->store, item->backend, &job->into[item - job->items], err);
}

/* What is known was found before this transaction, or in memory: in it, it must be there. */
static int write_check_known(brc_write_run *run, brc_write_job *job, brc_write_item *item,
                             brc_error *err)
{
    brc_object there = {.id = item->id}, *one = &there;
    if (item->is_piece || item->is_fill || !item->is_known || run->ops->replace ||
        brc_write_is_held(run, item))
        return BRC_OK;
    BRC_TRY(brc_objects_find(run->store, &one, 1, err));
    if (!there.found)
        return write_after_all(run, job, item, err);
    if (there.size != item->len || there.guard != item->guard)
        return brc_object_collides(run->store, &item->id, err);
    return brc_gc_keep(run->store, &item->id, err);
}

/* Before the first item of a job is stored, in the transaction that stores it. */
static int write_begin_job(brc_write_run *run, const brc_write_job *job, int *again, brc_error *err)
{
    int64_t others;
    *again = 0;
    if (!brc_store_in_bulk(run->store))
        return BRC_OK;
    BRC_TRY(brc_store_wake(run->store, err));
    BRC_TRY(brc_store_others(run->store, &others, err));
    *again = others != job->others;
    return BRC_OK;
}

static int write_needs_row(const brc_write_item *item)
{
    return brc_write_is_new(item) && !item->is_recorded;
}

/* Others have changed the file since the job was settled. */
static int write_look_again(brc_write_run *run, brc_write_job *job, brc_error *err)
{
    BRC_TRY(brc_write_still_there(run, job, err));
    for (size_t i = 0; i < job->n; i++) {
        brc_write_item *item = &job->items[i];
        int rc = write_needs_row(item) && !run->ops->replace ? brc_write_again(run, item, err)
                                                             : BRC_OK;
        if (rc == BRC_OK)
            rc = write_check_known(run, job, item, err);
        if (rc < 0)
            return brc_write_named(run, item, rc, err);
    }
    return BRC_OK;
}

/* A collection may have dropped what was put before this transaction, for no row named it then.
 * Within it, it drops nothing. */
static int write_put_again(brc_write_run *run, brc_write_job *job, brc_error *err)
{
    int stand;
    if (!run->outside)
        return BRC_OK;
    BRC_TRY(brc_gc_puts_stand(run->store, run->puts_since, &stand, err));
    for (size_t i = 0; !stand && i < job->n; i++)
        if (job->items[i].backend != 0)
            BRC_TRY(brc_backend_use(run->store, job->items[i].backend, &job->into[i], err));
    return BRC_OK;
}

static int write_finish_job(void *ctx, brc_window_job *base, brc_error *err)
{
    brc_write_run *run = ctx;
    brc_write_job *job = (brc_write_job *)base;
    int again;
    BRC_TRY(write_begin_job(run, job, &again, err));
    BRC_TRY(write_put_again(run, job, err));
    if (again)
        BRC_TRY(write_look_again(run, job, err));
    BRC_TRY(brc_write_put(job, BRC_PUT_INSIDE, err));
    for (size_t i = 0; i < job->n; i++) {
        brc_write_item *item = &job->items[i];
        if (item->is_piece)
            continue;
        if (write_needs_row(item))
            BRC_TRY(brc_write_store(run, item, &job->at[i], err));
        else if (item->is_known)
            BRC_TRY(brc_gc_keep(run->store, &item->id, err));
        brc_write_let_go(run, item);
        if (run->ops->done != NULL)
            BRC_TRY(run->ops->done(run->ops->ctx, item, err));
    }
    return BRC_OK;
}

/* ---- the flow -------------------------------- */

static void write_job_dispose(brc_window_job *base)
{
    brc_write_job *job = (brc_write_job *)base;
    for (size_t i = 0; i < BRC_WRITE_ITEMS; i++) {
        brc_buf_dispose(&job->items[i].stored);
        brc_buf_dispose(&job->items[i].own);
        brc_stored_clear(&job->at[i]);
    }
}

/* Large buffers go: what one call needed, the next may not. */
static void write_trim(brc_window *w)
{
    for (size_t i = 0; i < w->n; i++) {
        brc_write_job *job = (brc_write_job *)w->jobs[i];
        for (size_t j = 0; j < BRC_WRITE_ITEMS; j++) {
            if (job->items[j].stored.cap > KEPT_BYTES)
                brc_buf_dispose(&job->items[j].stored);
            if (job->items[j].own.cap > KEPT_BYTES)
                brc_buf_dispose(&job->items[j].own);
        }
    }
}

static void keep_item(void *item)
{
    (void)item; /* it belongs to its job */
}

static void write_pause(void *ctx)
{
    brc_store_pause_read(((brc_write_run *)ctx)->store);
}

static int write_rest(void *ctx, int now, brc_error *err)
{
    const brc_write_run *run = ctx;
    return brc_store_rest(run->store, now || run->outside, err);
}

/* The jobs of a batch, before the first is finished. */
static int write_ready(void *ctx, brc_window_job *const *jobs, size_t n, brc_error *err)
{
    brc_write_run *run = ctx;
    BRC_TRY(brc_write_put_outside(run, jobs, n, err));
    return brc_write_ahead(run, jobs, n, err);
}

int brc_flow_write(brc_pipe *pipe, brc_store *store, const brc_write_ops *ops, brc_error *err)
{
    brc_write_run run = {.ops = ops, .pipe = pipe, .store = store};
    BRC_TRY(brc_gc_last(store, &run.collected, err));
    BRC_TRY(brc_gc_puts_begin(store, &run.puts_since, err));
    size_t items = ops->len > 0 ? BRC_WRITE_BYTES / ops->len : BRC_WRITE_ITEMS;
    brc_window_ops window = {.ctx = &run, .fill = write_fill_job, .run = brc_write_run_job,
                             .settle = brc_write_settle, .finish = write_finish_job,
                             .most = JOBS_PER_THREAD * pipe->nworkers + 1};
    if (ops->turn != NULL) {
        BRC_TRY(brc_store_version(store, &run.version, err));
        window.most = JOBS_TOGETHER;
        window.pause = write_pause;
        window.together = brc_write_together;
    } else if (brc_store_in_bulk(store)) {
        window.most = ops->replace ? window.most : JOBS_IN_BULK;
        window.batch = ops->replace ? BATCH_BYTES / 4 : BATCH_BYTES;
        window.rest = write_rest;
        window.ready = write_ready;
    }
    if (items > BRC_WRITE_ITEMS)
        items = BRC_WRITE_ITEMS;
    run.job_items = items < 1 ? 1 : items;
    BRC_TRY(brc_pipe_window(pipe, &pipe->writing, JOBS_PER_THREAD, JOBS_IN_BULK,
                            sizeof(brc_write_job), write_job_dispose, err));
    size_t memory = pipe->memory > ops->held ? pipe->memory - ops->held : 0;
    int rc = brc_window_run(&pipe->writing, pipe->pool, memory, &window, err);
    tdestroy(run.held, keep_item);
    free(run.settling.objects);
    write_trim(&pipe->writing);
    return rc == BRC_WINDOW_FULL ? BRC_WRITE_MUCH : rc == BRC_WINDOW_OFF ? BRC_WRITE_ANEW : rc;
}
