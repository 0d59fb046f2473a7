#include "read_pipeline.h"

#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"

/* A job carries chunks until they have this many decoded bytes. */
#define JOB_BYTES ((size_t)256 << 10)
#define JOB_ITEMS 64

typedef struct read_run read_run;

typedef struct brc_read_job {
    brc_job job; /* first: jobs are found by it */
    read_run *run;
    size_t n;
    brc_read_item items[JOB_ITEMS];
    brc_buf stored;
    size_t bytes; /* of memory that it holds */
    int busy, rc;
    brc_error error;
} read_job;

struct read_run {
    const brc_read_ops *ops;
    brc_pipe *pipe;
    brc_group *group; /* NULL: jobs run where they are submitted */
    size_t in_flight, largest; /* bytes: of all jobs that run, and of one so far */
};

/* What is stored as it is goes where it belongs at once. */
static int read_in_place(const brc_read_item *item)
{
    return item->chain == NULL && item->direct != NULL;
}

/* Memory of the worker's that it is decoded into. */
static size_t read_decoded_len(const brc_read_item *item)
{
    return item->chain != NULL && item->direct == NULL ? item->len : 0;
}

/* A kept item is handed to the next one, all others are placed. */
static int read_hand_over(const read_run *run, brc_read_item *item, const uint8_t *data,
                          brc_error *err)
{
    if (!item->kept)
        return run->ops->place(run->ops->ctx, item, data, err);
    item[1].before = (brc_span){data, item->len};
    return BRC_OK;
}

static int read_one(read_run *run, unsigned worker, const read_job *job, brc_read_item *item,
                    brc_error *err)
{
    const brc_read_ops *ops = run->ops;
    if (read_in_place(item))
        return ops->check(ops->ctx, item, item->direct, err);
    const uint8_t *stored = job->stored.data + item->offset;
    BRC_TRY(ops->check(ops->ctx, item, stored, err));
    if (item->chain == NULL)
        return item->stored_len == item->len
                   ? read_hand_over(run, item, stored, err)
                   : brc_fail(err, BRC_ECORRUPT, "%zu bytes are stored, not %zu", item->stored_len,
                              item->len);
    brc_scratch *scratch;
    BRC_TRY(brc_pipe_scratch(run->pipe, worker, &scratch, err));
    brc_span src = {stored + item->skip, item->stored_len - item->skip};
    if (item->direct != NULL) {
        brc_buf into = {item->direct, 0, item->len, item->len, 1};
        return brc_chain_decode(item->chain, scratch, src, &into, err);
    }
    brc_pipe_worker *w = &run->pipe->workers[worker];
    brc_buf *chunk = item->kept ? &w->kept : &w->chunk;
    chunk->len = 0;
    BRC_TRY(brc_buf_reserve(chunk, item->len, err));
    brc_box box;
    if (ops->box != NULL && ops->box(ops->ctx, item, &box))
        BRC_TRY(brc_chain_decode_box(item->chain, scratch, src, &box, chunk, err));
    else
        BRC_TRY(brc_chain_decode(item->chain, scratch, src, chunk, err));
    if (item->varies)
        item->len = chunk->len;
    if (chunk->len != item->len)
        return brc_fail(err, BRC_ECORRUPT, "the chunk decodes to %zu bytes, not %zu", chunk->len,
                        item->len);
    return read_hand_over(run, item, chunk->data, err);
}

static void read_job_run(brc_job *base, unsigned worker)
{
    read_job *job = (read_job *)base;
    read_run *run = job->run;
    for (size_t i = 0; i < job->n && job->rc == BRC_OK; i++) {
        job->rc = brc_pipe_check(run->pipe, &job->error);
        if (job->rc == BRC_OK)
            job->rc = read_one(run, worker, job, &job->items[i], &job->error);
        if (job->rc < 0 && job->rc != BRC_EINTERRUPT && run->ops->name != NULL)
            run->ops->name(run->ops->ctx, &job->items[i], &job->error);
    }
    brc_pipe_trim(run->pipe, worker);
}

static int read_job_result(const read_job *job, brc_error *err)
{
    if (job->rc < 0 && err != NULL)
        *err = job->error;
    return job->rc;
}

static int read_job_finish(read_run *run, read_job *job, brc_error *err)
{
    if (!job->busy)
        return BRC_OK;
    brc_group_wait(run->group, &job->job);
    job->busy = 0;
    run->in_flight -= job->bytes;
    brc_pipe_trim_buf(run->pipe, &job->stored, run->pipe->njobs);
    return read_job_result(job, err);
}

static int read_fetch(read_run *run, read_job *job, brc_read_item *item, brc_error *err)
{
    const brc_read_ops *ops = run->ops;
    int rc = BRC_OK;
    if (read_in_place(item)) {
        rc = ops->fetch(ops->ctx, item, item->direct, err);
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
    size_t bytes = 0, decoded, most = 0, kept = 0;
    int open = 0; /* the last item waits for another */
    job->n = 0;
    job->stored.len = 0;
    job->rc = BRC_OK;
    while (open || (job->n < JOB_ITEMS - 1 && bytes < JOB_BYTES)) {
        brc_read_item *item = &job->items[job->n];
        memset(item, 0, sizeof(*item));
        int rc = run->ops->next(run->ops->ctx, item, err);
        if (rc < 0)
            return rc;
        if (rc == 0)
            break;
        job->n++;
        open = item->kept && !open;
        bytes += item->len;
        decoded = read_decoded_len(item);
        most = kept + decoded > most ? kept + decoded : most;
        kept = open ? decoded : 0;
        BRC_TRY(read_fetch(run, job, item, err));
    }
    job->bytes = job->stored.cap + most;
    if (job->bytes > run->largest)
        run->largest = job->bytes;
    return job->n > 0;
}

/* Waits for the jobs from `from` on, in order: of two failures, the one of the
 * earlier chunk is told. */
static int read_finish_all(read_run *run, size_t at, brc_error *err)
{
    size_t n = run->pipe->njobs;
    for (size_t i = at > n ? at - n : 0; i < at; i++)
        BRC_TRY(read_job_finish(run, &run->pipe->jobs[i % n], err));
    return BRC_OK;
}

static void read_submit(read_run *run, read_job *job)
{
    job->run = run;
    job->job.run = read_job_run;
    job->busy = 1;
    run->in_flight += job->bytes;
    brc_group_submit(run->group, &job->job);
}

/* Waits for the job that was there before, and until there is room for one as large as
 * the largest: where one is larger than the budget, until nothing else runs. */
static int read_make_room(read_run *run, size_t at, size_t *oldest, brc_error *err)
{
    brc_pipe *pipe = run->pipe;
    if (at >= pipe->njobs)
        BRC_TRY(read_job_finish(run, &pipe->jobs[at % pipe->njobs], err));
    if (at >= pipe->njobs && *oldest <= at - pipe->njobs)
        *oldest = at - pipe->njobs + 1;
    while (run->in_flight > 0 && run->in_flight + run->largest > pipe->memory && *oldest < at)
        BRC_TRY(read_job_finish(run, &pipe->jobs[(*oldest)++ % pipe->njobs], err));
    return BRC_OK;
}

/* A small first job waits until there is a second: a request of one job is not worth
 * waking another thread, and runs here. */
static int read_all(read_run *run, brc_error *err)
{
    brc_pipe *pipe = run->pipe;
    size_t at, oldest = 0;
    read_job *first = &pipe->jobs[0];
    int more = read_job_fill(run, first, err);
    if (more < 0)
        return more;
    int waits = more > 0;
    for (at = 1; more > 0; at++) {
        read_job *job = &pipe->jobs[at % pipe->njobs];
        if (waits && first->bytes > pipe->memory / 2) {
            read_submit(run, first);
            waits = 0;
        }
        BRC_TRY(read_make_room(run, at, &oldest, err));
        more = read_job_fill(run, job, err);
        if (waits && more == 0) {
            first->run = run;
            read_job_run(&first->job, brc_group_caller(run->group));
            return read_job_result(first, err);
        }
        if (waits)
            read_submit(run, first);
        waits = 0;
        if (more < 0) {
            BRC_TRY(read_finish_all(run, at, err));
            return more;
        }
        if (more > 0)
            read_submit(run, job);
    }
    return read_finish_all(run, at, err);
}

static int read_jobs_new(brc_pipe *pipe, brc_error *err)
{
    void *p;
    if (pipe->jobs != NULL)
        return BRC_OK;
    pipe->njobs = pipe->nworkers > 1 ? 4 * (size_t)pipe->nworkers : 2;
    BRC_TRY(brc_new_array(&p, pipe->njobs, sizeof(read_job), err));
    pipe->jobs = p;
    return BRC_OK;
}

void brc_read_jobs_free(brc_pipe *pipe)
{
    for (size_t i = 0; pipe->jobs != NULL && i < pipe->njobs; i++)
        brc_buf_dispose(&pipe->jobs[i].stored);
    free(pipe->jobs);
    pipe->jobs = NULL;
}

int brc_read_pipeline(brc_pipe *pipe, const brc_read_ops *ops, brc_error *err)
{
    read_run run = {.ops = ops, .pipe = pipe};
    BRC_TRY(read_jobs_new(pipe, err));
    BRC_TRY(brc_group_new(&run.group, pipe->pool, err));
    for (size_t i = 0; i < pipe->njobs; i++)
        pipe->jobs[i].busy = 0;
    int rc = read_all(&run, err);
    brc_group_free(run.group); /* waits */
    return rc;
}
