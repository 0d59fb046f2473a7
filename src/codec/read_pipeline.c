#include "read_pipeline.h"

#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"

/* A job carries chunks until they have this many decoded bytes. */
#define JOB_BYTES ((size_t)256 << 10)
#define JOB_ITEMS 64

typedef struct read_run read_run;

typedef struct read_job {
    brc_job job; /* first: jobs are found by it */
    read_run *run;
    size_t n;
    brc_read_item items[JOB_ITEMS];
    brc_buf stored;
    size_t bytes; /* of memory that it holds */
    int busy, rc;
    brc_error error;
} read_job;

typedef struct read_worker {
    brc_scratch *scratch;
    brc_buf chunk;
} read_worker;

struct read_run {
    const brc_read_ops *ops;
    brc_group *group;
    read_job *jobs;
    size_t njobs;
    read_worker *workers;
    unsigned nworkers;
    size_t memory, in_flight;
};

static int read_one(read_run *run, read_worker *w, const read_job *job, const brc_read_item *item,
                    brc_error *err)
{
    const brc_read_ops *ops = run->ops;
    const uint8_t *stored = job->stored.data + item->offset;
    BRC_TRY(ops->check(ops->ctx, item, stored, err));
    if (item->chain == NULL) {
        if (item->direct == NULL)
            return ops->place(ops->ctx, item, stored, err);
        memcpy(item->direct, stored, item->len);
        return BRC_OK;
    }
    if (w->scratch == NULL)
        BRC_TRY(brc_scratch_new(&w->scratch, err));
    brc_span src = {stored, item->stored_len};
    if (item->direct != NULL) {
        brc_buf into = {item->direct, 0, item->len, item->len, 1};
        return brc_chain_decode(item->chain, w->scratch, src, &into, err);
    }
    w->chunk.len = 0;
    w->chunk.limit = 0;
    BRC_TRY(brc_buf_reserve(&w->chunk, item->len, err));
    BRC_TRY(brc_chain_decode(item->chain, w->scratch, src, &w->chunk, err));
    return ops->place(ops->ctx, item, w->chunk.data, err);
}

static void read_job_run(brc_job *base, unsigned worker)
{
    read_job *job = (read_job *)base;
    read_run *run = job->run;
    for (size_t i = 0; i < job->n && job->rc == BRC_OK; i++) {
        job->rc = read_one(run, &run->workers[worker], job, &job->items[i], &job->error);
        if (job->rc < 0 && run->ops->name != NULL)
            run->ops->name(run->ops->ctx, &job->items[i], &job->error);
    }
}

static int read_job_finish(read_run *run, read_job *job, brc_error *err)
{
    if (!job->busy)
        return BRC_OK;
    brc_group_wait(run->group, &job->job);
    job->busy = 0;
    run->in_flight -= job->bytes;
    if (job->rc < 0 && err != NULL)
        *err = job->error;
    return job->rc;
}

static int read_fetch(read_run *run, read_job *job, brc_read_item *item, brc_error *err)
{
    const brc_read_ops *ops = run->ops;
    int rc = BRC_OK;
    /* What is stored as it is goes where it belongs at once. */
    if (item->chain == NULL && item->direct != NULL) {
        rc = ops->fetch(ops->ctx, item, item->direct, err);
        if (rc == BRC_OK)
            rc = ops->check(ops->ctx, item, item->direct, err);
        job->n--;
    } else {
        rc = brc_buf_reserve(&job->stored, item->stored_len + 1, err);
        if (rc == BRC_OK)
            rc = ops->fetch(ops->ctx, item, job->stored.data + job->stored.len, err);
        item->offset = job->stored.len;
        job->stored.len += item->stored_len;
    }
    if (rc < 0 && ops->name != NULL)
        ops->name(ops->ctx, item, err);
    return rc;
}

/* 1 where the job holds something, 0 at the end. */
static int read_job_fill(read_run *run, read_job *job, brc_error *err)
{
    size_t bytes = 0;
    job->n = 0;
    job->stored.len = 0;
    job->rc = BRC_OK;
    while (job->n < JOB_ITEMS && bytes < JOB_BYTES) {
        brc_read_item *item = &job->items[job->n];
        memset(item, 0, sizeof(*item));
        int rc = run->ops->next(run->ops->ctx, item, err);
        if (rc < 0)
            return rc;
        if (rc == 0)
            break;
        job->n++;
        bytes += item->len;
        BRC_TRY(read_fetch(run, job, item, err));
    }
    job->bytes = job->stored.cap;
    return bytes > 0 || job->n > 0;
}

static int read_all(read_run *run, brc_error *err)
{
    int rc = 1;
    size_t at = 0, oldest = 0;
    for (; rc > 0; at++) {
        read_job *job = &run->jobs[at % run->njobs];
        BRC_TRY(read_job_finish(run, job, err));
        while (run->in_flight > run->memory && oldest < at)
            BRC_TRY(read_job_finish(run, &run->jobs[oldest++ % run->njobs], err));
        rc = read_job_fill(run, job, err);
        if (rc < 0) {
            /* Of two failures, the one of the earlier chunk is told. */
            for (size_t i = at > run->njobs ? at - run->njobs : 0; i < at; i++)
                BRC_TRY(read_job_finish(run, &run->jobs[i % run->njobs], err));
            return rc;
        }
        if (job->n == 0)
            continue;
        job->run = run;
        job->job.run = read_job_run;
        job->busy = 1;
        run->in_flight += job->bytes;
        brc_group_submit(run->group, &job->job);
    }
    for (size_t i = at > run->njobs ? at - run->njobs : 0; i < at; i++)
        BRC_TRY(read_job_finish(run, &run->jobs[i % run->njobs], err));
    return BRC_OK;
}

int brc_read_pipeline(const brc_read_ops *ops, brc_pool *pool, size_t memory, brc_error *err)
{
    read_run run = {.ops = ops, .memory = memory};
    void *p;
    int rc;
    run.nworkers = brc_pool_threads(pool);
    run.njobs = run.nworkers > 1 ? 4 * (size_t)run.nworkers : 1;
    BRC_GO(brc_group_new(&run.group, pool, err));
    BRC_GO(brc_new_array(&p, run.njobs, sizeof(read_job), err));
    run.jobs = p;
    BRC_GO(brc_new_array(&p, run.nworkers, sizeof(read_worker), err));
    run.workers = p;
    rc = read_all(&run, err);
done:
    brc_group_free(run.group); /* waits */
    for (size_t i = 0; run.jobs != NULL && i < run.njobs; i++)
        brc_buf_dispose(&run.jobs[i].stored);
    for (unsigned i = 0; run.workers != NULL && i < run.nworkers; i++) {
        brc_scratch_free(run.workers[i].scratch);
        brc_buf_dispose(&run.workers[i].chunk);
    }
    free(run.jobs);
    free(run.workers);
    return rc;
}
