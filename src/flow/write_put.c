/*
 * Writing: what is new goes into its backend, before the transaction whose rows name it. So nobody
 * waits for a slow backend, and what a row names is durable. Only the file itself is put into
 * within the transaction, and another backend where a program has begun it.
 */
#include "write_run.h"

void brc_write_describe(const brc_write_item *item, brc_stored *out)
{
    brc_span stored = item->as_is ? (brc_span){item->data, item->len}
                                  : (brc_span){item->stored.data, item->stored.len};
    brc_stored_clear(out); /* of what was put, and is done again */
    *out = (brc_stored){.size = sizeof(*out),
                        .id = item->id,
                        .sum = item->checksum,
                        .len = stored.len,
                        .data = stored.len > 0 ? stored.data : (const uint8_t *)""};
}

/* The new items from the i-th on that go to the same backend, all at once. */
static int write_put_with(brc_write_job *job, size_t i, brc_error *err)
{
    brc_stored *put[BRC_WRITE_ITEMS] = {NULL};
    size_t n = 0;
    brc_store_backend *into = job->into[i];
    for (; i < job->n; i++) {
        if (job->into[i] != into || !brc_write_is_new(&job->items[i]))
            continue;
        job->into[i] = NULL;
        brc_write_describe(&job->items[i], &job->at[i]);
        put[n++] = &job->at[i];
    }
    return brc_backend_put(into, n, put, err);
}

static int puts_now(const brc_store_backend *into, int who)
{
    if (who == BRC_PUT_INSIDE)
        return 1;
    return who == BRC_PUT_ON_WORKER ? brc_backend_on_workers(into) : !brc_backend_is_inline(into);
}

int brc_write_put(brc_write_job *job, int who, brc_error *err)
{
    for (size_t i = 0; i < job->n; i++)
        if (job->into[i] != NULL && brc_write_is_new(&job->items[i]) &&
            puts_now(job->into[i], who))
            BRC_TRY(write_put_with(job, i, err));
    return BRC_OK;
}

/* That costs nothing the second time. */
static int write_flush_job(const brc_write_run *run, const brc_write_job *job, brc_error *err)
{
    brc_store_backend *into;
    for (size_t i = 0; i < job->n; i++) {
        if (job->items[i].backend == 0 || !brc_write_is_new(&job->items[i]))
            continue;
        BRC_TRY(brc_backend_use(run->store, job->items[i].backend, &into, err));
        BRC_TRY(brc_backend_flush_puts(into, err));
    }
    return BRC_OK;
}

int brc_write_let_others(const brc_write_run *run, brc_error *err)
{
    brc_store_pause_read(run->store);
    return run->outside ? brc_store_rest(run->store, 1, err) : BRC_OK;
}

int brc_write_put_outside(const brc_write_run *run, brc_window_job *const *jobs, size_t n,
                          brc_error *err)
{
    if (!run->outside)
        return BRC_OK;
    BRC_TRY(brc_write_let_others(run, err));
    for (size_t i = 0; i < n; i++)
        BRC_TRY(brc_write_put((brc_write_job *)jobs[i], BRC_PUT_OUTSIDE, err));
    for (size_t i = 0; i < n; i++)
        BRC_TRY(write_flush_job(run, (brc_write_job *)jobs[i], err));
    return BRC_OK;
}
