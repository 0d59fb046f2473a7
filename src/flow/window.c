#include "window.h"

#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../base/process.h"
#include "../breccia_pipeline.h"

/* ==== pipe ================================ */

/* Finds the pipeline, and makes its state. */
static int pipe_choose(brc_pipe *pipe, const brc_registry *reg, const char *text, brc_error *err)
{
    brc_json *spec;
    const brc_json *config;
    const char *name;
    BRC_TRY(brc_spec_read(&spec, text != NULL ? text : BRC_PIPELINE_DEFAULT, err));
    int rc = brc_spec_parse("pipeline", spec, &name, &config, err);
    if (rc == BRC_OK)
        rc = brc_registry_pipeline(&pipe->pipeline, reg, name, err);
    if (rc == BRC_OK && pipe->pipeline->open != NULL)
        rc = pipe->pipeline->open(pipe->pipeline->ctx, &pipe->pipeline_state, config, err);
    else if (rc == BRC_OK && config != NULL)
        rc = brc_json_allow(config, NULL, 0, err);
    if (rc == BRC_EINVAL && pipe->pipeline != NULL)
        brc_context(err, "the pipeline \"%.80s\"", name);
    if (rc < 0)
        pipe->pipeline = NULL;
    brc_json_free(spec);
    return rc;
}

int brc_pipe_init(brc_pipe *pipe, const brc_registry *reg, brc_pool *pool,
                  const brc_pipeline_opts *opts, brc_error *err)
{
    void *p;
    memset(pipe, 0, sizeof(*pipe));
    BRC_TRY(pipe_choose(pipe, reg, opts->pipeline, err));
    const int on_caller = pipe->pipeline->flags & BRC_PIPELINE_CALLER || opts->threads == 1;
    pipe->pool = on_caller ? NULL : pool;
    pipe->memory = opts->memory;
    pipe->most = !on_caller && opts->threads < brc_pool_threads(pool) ? opts->threads : 0;
    pipe->batch = pipe->pipeline->flags & BRC_PIPELINE_CALLER ? 1 : opts->batch;
    if (pipe->batch == 0 || pipe->batch > BRC_PIPE_BATCH)
        pipe->batch = BRC_PIPE_BATCH;
    pipe->nworkers = brc_pool_threads(pipe->pool);
    int rc = brc_new_array(&p, pipe->nworkers, sizeof(brc_pipe_worker), err);
    if (rc < 0)
        brc_pipe_dispose(pipe);
    else
        pipe->workers = p;
    return rc;
}

void brc_pipe_dispose(brc_pipe *pipe)
{
    for (unsigned i = 0; pipe->workers != NULL && i < pipe->nworkers; i++) {
        brc_scratch_free(pipe->workers[i].scratch);
        brc_buf_dispose(&pipe->workers[i].chunk);
        brc_buf_dispose(&pipe->workers[i].kept);
        brc_buf_dispose(&pipe->workers[i].stored);
    }
    free(pipe->workers);
    brc_window_dispose(&pipe->reading);
    brc_window_dispose(&pipe->writing);
    free(pipe->list);
    if (pipe->pipeline != NULL && pipe->pipeline->close != NULL)
        pipe->pipeline->close(pipe->pipeline->ctx, pipe->pipeline_state);
    memset(pipe, 0, sizeof(*pipe));
}

int brc_pipe_check(const brc_pipe *pipe, brc_error *err)
{
    return pipe->stop != NULL && atomic_load(pipe->stop)
               ? brc_fail(err, BRC_EINTERRUPT, "interrupted")
               : BRC_OK;
}

int brc_pipe_scratch(brc_pipe *pipe, unsigned worker, brc_scratch **out, brc_error *err)
{
    brc_pipe_worker *w = &pipe->workers[worker];
    if (w->scratch == NULL) {
        BRC_TRY(brc_scratch_new(&w->scratch, err));
        brc_scratch_use(w->scratch, pipe->pipeline, pipe->pipeline_state);
    }
    *out = w->scratch;
    return BRC_OK;
}

/* Half of the budget may stay allocated for the next call, beside the bytes in flight then. */
void brc_pipe_trim_buf(const brc_pipe *pipe, brc_buf *buf, size_t n)
{
    if (buf->cap > pipe->memory / 2 / n)
        brc_buf_dispose(buf);
}

/* The codecs' scratch is as large as the chunks that were decoded. */
void brc_pipe_trim(brc_pipe *pipe, unsigned worker)
{
    brc_pipe_worker *w = &pipe->workers[worker];
    size_t held = w->chunk.cap + w->kept.cap;
    brc_pipe_trim_buf(pipe, &w->chunk, 2 * (size_t)pipe->nworkers);
    brc_pipe_trim_buf(pipe, &w->kept, 2 * (size_t)pipe->nworkers);
    brc_pipe_trim_buf(pipe, &w->stored, 2 * (size_t)pipe->nworkers);
    if (w->chunk.cap + w->kept.cap < held) {
        brc_scratch_free(w->scratch);
        w->scratch = NULL;
    }
}

int brc_pipe_window(brc_pipe *pipe, brc_window *window, size_t per_thread, size_t least,
                    size_t job_size, void (*dispose)(brc_window_job *job), brc_error *err)
{
    const size_t cap = per_thread * pipe->nworkers + 1;
    if (window->jobs != NULL)
        return BRC_OK;
    return brc_window_init(window, cap > least ? cap : least, job_size, dispose, err);
}

/* ==== window ================================ */

/* Places per job: jobs that are over keep theirs while the jobs before them are in progress. */
#define PLACES_PER_JOB 4
/* If filling holds a lock: about the least and the most bytes that are read in one go. */
#define TAKE_LEAST ((size_t)2 << 20)
#define TAKE_MOST ((size_t)4 << 20)
/* The most that is read in one go to give each thread a job, and one that waits. */
#define TAKE_LARGE ((size_t)16 << 20)

/* Jobs are numbered as they are filled; job i lies in place i % nplaces. Of the jobs in the
 * window, [head, mid) are in the last stage and [mid, tail) in the first of two. */
typedef struct window_run {
    brc_window *w;
    brc_pool *pool;
    brc_group *group; /* made for the second job; NULL: jobs run where they are submitted */
    size_t memory, in_flight, largest; /* bytes: the budget, of all jobs, of the largest */
    size_t head, mid, tail;
    int more;        /* fill has not reached the end                             */
    int later;       /* fill waits for a job to be settled or finished           */
    int filling;     /* the lock that pause() releases is held                   */
    size_t taken;    /* bytes read since filling began                           */
    size_t begun_at; /* the tail when filling began                              */
    size_t taken_before;
    int finishing;   /* in the middle of a batch                                 */
    size_t ready;    /* where the batch ends, if there is a ready()              */
    size_t cap;      /* jobs at a time                                            */
    int is_held;     /* all jobs are done, and are held                           */
    int64_t waited;  /* how long the thread waited last, in ns                   */
    int failed;      /* code of a failed fill, reported after the jobs before it */
    brc_error error; /* the error of `failed`                                    */
} window_run;

static brc_window_job **place_at(const window_run *run, size_t i)
{
    return &run->w->places[i % run->w->nplaces];
}

static brc_window_job *job_at(const window_run *run, size_t i)
{
    return *place_at(run, i);
}

static void window_job_run(brc_job *base, unsigned worker)
{
    brc_window_job *job = (brc_window_job *)base;
    const brc_window_ops *ops = job->window->ops;
    job->rc = ops->run(ops->ctx, job, job->stage, worker, &job->error);
}

static void window_submit(window_run *run, brc_window_job *job, int stage)
{
    job->stage = stage;
    job->job.run = window_job_run;
    job->ran_here = run->group == NULL;
    job->is_waiting = job->ran_here && run->w->ops->pause != NULL;
    if (run->group != NULL)
        brc_group_submit(run->group, &job->job);
    else if (!job->is_waiting)
        window_job_run(&job->job, brc_pool_threads(run->pool) - 1);
}

static int window_is_done(const window_run *run, brc_window_job *job)
{
    if (job != NULL && job->is_waiting)
        return 0;
    return job == NULL || job->ran_here || brc_group_is_done(run->group, &job->job);
}

static void window_wait(window_run *run, brc_window_job *job)
{
    if (job->is_waiting)
        window_job_run(&job->job, brc_pool_threads(run->pool) - 1);
    else if (!job->ran_here)
        brc_group_wait(run->group, &job->job);
    job->is_waiting = 0;
}

static void window_pause(window_run *run)
{
    if (run->filling)
        run->w->ops->pause(run->w->ops->ctx);
    run->filling = 0;
    run->taken_before += run->taken;
    run->taken = 0;
}

/* ---- the three steps on the caller's thread -------------------------------- */

/* Returns a free job, which stays in the list of free jobs. */
static int window_job(window_run *run, brc_window_job **out, brc_error *err)
{
    brc_window *w = run->w;
    void *p;
    if (w->nfree == 0) {
        BRC_TRY(brc_new(&p, w->job_size, err));
        w->free[w->nfree++] = w->jobs[w->n++] = p;
    }
    *out = w->free[w->nfree - 1];
    (*out)->window = w;
    (*out)->rc = BRC_OK;
    (*out)->bytes = (*out)->taken = 0;
    (*out)->is_over = 0;
    return BRC_OK;
}

static void window_release(window_run *run, size_t i)
{
    brc_window_job **place = place_at(run, i);
    run->in_flight -= (*place)->bytes;
    run->w->free[run->w->nfree++] = *place;
    *place = NULL;
}

/* Fills one more job, which is not submitted yet. Returns 1, or 0 without one. A failure is
 * reported after the jobs before it are finished. */
static int window_fill(window_run *run)
{
    brc_window_job *job = NULL;
    const brc_window_ops *ops = run->w->ops;
    int rc = window_job(run, &job, &run->error);
    if (rc == BRC_OK)
        rc = ops->fill(ops->ctx, job, &run->error);
    if (rc == BRC_WINDOW_LATER && run->head == run->tail)
        rc = brc_fail(&run->error, BRC_EINTERNAL, "a flow waits for nothing");
    if (rc == BRC_WINDOW_LATER) {
        run->later = 1;
        return 0;
    }
    if (rc < 0)
        run->failed = rc;
    if (rc <= 0) {
        run->more = 0;
        return 0;
    }
    run->in_flight += job->bytes;
    run->taken += job->taken;
    if (job->bytes > run->largest)
        run->largest = job->bytes;
    run->w->nfree--;
    *place_at(run, run->tail++) = job;
    return 1;
}

/* Drops the jobs from `at` on. The jobs before are finished first, because they may have failed
 * too. */
static void window_cut(window_run *run, size_t at, int rc)
{
    run->tail = at;
    run->more = 0;
    run->failed = rc;
}

/* Settles the jobs that have done the first stage, up to the first that has not. */
static void window_settle(window_run *run)
{
    const brc_window_ops *ops = run->w->ops;
    size_t n = 0;
    run->later = 0;
    while (run->mid + n < run->tail && window_is_done(run, job_at(run, run->mid + n))) {
        brc_window_job *job = job_at(run, run->mid + n);
        if (job->rc < 0) {
            run->error = job->error;
            window_cut(run, run->mid + n, job->rc);
            break;
        }
        run->in_flight -= job->bytes;
        run->w->settling[n++] = job;
    }
    int rc = n > 0 ? ops->settle(ops->ctx, run->w->settling, n, &run->error) : BRC_OK;
    if (rc < 0) {
        window_cut(run, run->mid, rc);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        brc_window_job *job = run->w->settling[i];
        run->in_flight += job->bytes;
        if (job->is_over)
            window_release(run, run->mid + i);
        else
            window_submit(run, job, 1);
    }
    run->mid += n;
}

static int window_result(const brc_window_job *job, brc_error *err)
{
    if (job->rc < 0 && err != NULL)
        brc_error_copy(err, &job->error);
    return job->rc;
}

static int window_finish(window_run *run, brc_error *err)
{
    brc_window_job *job = job_at(run, run->head);
    const brc_window_ops *ops = run->w->ops;
    run->finishing = 1;
    if (job == NULL) {
        run->head++;
        return BRC_OK;
    }
    BRC_TRY(window_result(job, err));
    if (ops->finish != NULL)
        BRC_TRY(ops->finish(ops->ctx, job, err));
    window_release(run, run->head++);
    run->later = 0;
    return BRC_OK;
}

/* ---- the run -------------------------------- */

/* Returns whether the jobs in progress are a batch and enough for all threads while the batch is
 * finished: filling more of them would only take memory. */
static int window_has_enough(const window_run *run, size_t n)
{
    const size_t batch = run->w->ops->batch, meanwhile = 2 * (size_t)brc_pool_threads(run->pool);
    return batch > 0 && n > meanwhile && run->in_flight > batch &&
           (run->in_flight - batch) / meanwhile >= run->largest;
}

/* Returns whether the window has room for a job as large as the largest so far. A job larger than
 * the budget has room when the window is empty. */
static int window_has_room(const window_run *run)
{
    const size_t n = run->w->n - run->w->nfree;
    if (window_has_enough(run, n))
        return 0;
    return run->more && !run->later && n < run->cap &&
           run->tail - run->head < run->w->nplaces &&
           (n == 0 || run->in_flight + run->largest <= run->memory);
}

/* Returns how many jobs to fill in one go at least, where filling holds a lock. */
static size_t window_fill_least(const window_run *run)
{
    const size_t taken = run->taken_before / (run->tail > 0 ? run->tail : 1) + 1;
    const size_t want = (TAKE_LEAST + taken - 1) / taken;
    size_t most = run->cap;
    if (run->largest > 0 && run->memory / run->largest < most)
        most = run->memory / run->largest;
    if (brc_pool_threads(run->pool) > 1)
        most /= 2; /* the other threads run the other half */
    return want < most ? want : most > 0 ? most : 1;
}

static int window_may_fill(const window_run *run)
{
    const size_t n = run->w->n - run->w->nfree;
    if (!window_has_room(run))
        return 0;
    if (run->filling)
        return run->taken < TAKE_MOST ||
               (run->taken < TAKE_LARGE &&
                run->tail - run->begun_at <= brc_pool_threads(run->pool));
    if (run->w->ops->pause == NULL || n == 0)
        return 1;
    const size_t least = window_fill_least(run);
    return run->cap - n >= least &&
           (run->memory - run->in_flight) / (run->largest > 0 ? run->largest : 1) >= least;
}

/* Makes the group of jobs at the second job, which is worth waking threads for. */
static int window_wake(window_run *run, brc_error *err)
{
    if (run->group != NULL || brc_pool_threads(run->pool) < 2)
        return BRC_OK;
    return brc_group_new(&run->group, run->pool, err);
}

static int window_fill_next(window_run *run, brc_error *err)
{
    BRC_TRY(window_wake(run, err));
    if (!run->filling)
        run->begun_at = run->tail;
    run->filling = run->w->ops->pause != NULL;
    if (window_fill(run))
        window_submit(run, job_at(run, run->tail - 1), 0);
    if (run->w->ops->settle == NULL)
        run->mid = run->tail;
    return BRC_OK;
}

/* Returns whether the jobs that are done make a batch, or nothing else is left to do. */
static int window_has_batch(const window_run *run, int may_fill)
{
    const brc_window_ops *ops = run->w->ops;
    size_t i = run->head, n = 0, bytes = 0;
    if (ops->rest == NULL || run->finishing || run->later)
        return 1;
    for (; i < run->mid && window_is_done(run, job_at(run, i)); i++) {
        const brc_window_job *job = job_at(run, i);
        n += job != NULL;
        bytes += job != NULL ? job->bytes : 0;
        if (job != NULL && job->rc < 0)
            return 1;
    }
    return bytes >= ops->batch || bytes >= run->memory / 2 || n >= run->cap / 2 ||
           (i == run->tail && !may_fill);
}

/* Ends the batch before the first job that is not done or has failed, and calls ready() with it. */
static int window_make_ready(window_run *run, brc_error *err)
{
    const brc_window_ops *ops = run->w->ops;
    size_t n = 0;
    run->ready = run->head;
    while (run->ready < run->mid && window_is_done(run, job_at(run, run->ready))) {
        brc_window_job *job = job_at(run, run->ready);
        if (job != NULL && job->rc < 0)
            break;
        run->ready++;
        if (job != NULL)
            run->w->settling[n++] = job;
    }
    return n > 0 ? ops->ready(ops->ctx, run->w->settling, n, err) : BRC_OK;
}

/* Finishes the next job of a batch. */
static int window_finish_next(window_run *run, brc_error *err)
{
    if (run->w->ops->ready != NULL && !run->finishing)
        BRC_TRY(window_make_ready(run, err));
    return window_finish(run, err);
}

/* Returns whether the batch that ready() was called with is finished. */
static int window_is_ready(const window_run *run)
{
    return run->w->ops->ready != NULL && run->finishing && run->head == run->ready;
}

/* Ends the batch that was being finished, and rests. */
static int window_end_batch(window_run *run, brc_error *err)
{
    const brc_window_ops *ops = run->w->ops;
    run->finishing = 0;
    return ops->rest != NULL ? ops->rest(ops->ctx, 0, err) : BRC_OK;
}

#define LONG_WAIT_NS INT64_C(10000000)

/* Waits for the first job in progress. */
static int window_wait_next(window_run *run, brc_error *err)
{
    const brc_window_ops *ops = run->w->ops;
    size_t i = run->head;
    while (i + 1 < run->tail && window_is_done(run, job_at(run, i)))
        i++;
    if (job_at(run, i) == NULL)
        return BRC_OK;
    if (ops->rest == NULL) {
        window_wait(run, job_at(run, i));
        return BRC_OK;
    }
    BRC_TRY(ops->rest(ops->ctx, run->waited >= LONG_WAIT_NS, err));
    const int64_t since = brc_monotonic_ns();
    window_wait(run, job_at(run, i));
    run->waited = brc_monotonic_ns() - since;
    return BRC_OK;
}

/* Holds all jobs once they are done and another cannot be filled; then returns 1, otherwise 0. If
 * more jobs were to come, the window is full. */
static int window_hold(window_run *run, int may_fill, brc_error *err)
{
    size_t n = 0;
    for (size_t i = run->head; i < run->tail; i++) {
        brc_window_job *job = job_at(run, i);
        if (i >= run->mid || !window_is_done(run, job) || may_fill)
            return 0;
        if (job != NULL) {
            BRC_TRY(window_result(job, err));
            run->w->settling[n++] = job;
        }
    }
    run->w->held = run->w->settling;
    run->w->nheld = n;
    return 1;
}

/* Does one step: finishes, settles, fills or waits. Finishing goes before filling, because it frees
 * memory, unless filling has begun; the thread waits only if nothing else is left to do. */
static int window_step(window_run *run, brc_error *err)
{
    const int may_fill = window_may_fill(run);
    if (!may_fill || !run->filling) {
        window_pause(run);
        if (window_is_ready(run))
            BRC_TRY(window_end_batch(run, err));
        if (run->head < run->mid && window_is_done(run, job_at(run, run->head))) {
            if (run->w->ops->holds)
                run->is_held = window_hold(run, may_fill, err);
            else if (window_has_batch(run, may_fill))
                return window_finish_next(run, err);
            if (run->is_held)
                return run->is_held < 0 ? run->is_held : BRC_OK;
        } else if (run->finishing) {
            BRC_TRY(window_end_batch(run, err));
        }
        if (run->mid < run->tail && window_is_done(run, job_at(run, run->mid))) {
            window_settle(run);
            return BRC_OK;
        }
    }
    if (may_fill)
        return window_fill_next(run, err);
    return run->head < run->tail ? window_wait_next(run, err) : BRC_OK;
}

/* Fills the first jobs and submits them: the first is held back until there is a second one. */
static int window_start(window_run *run, brc_error *err)
{
    run->filling = run->w->ops->pause != NULL;
    if (!window_fill(run))
        return BRC_OK;
    if (brc_pool_threads(run->pool) > 1 && window_has_room(run) && window_fill(run))
        BRC_TRY(window_wake(run, err));
    if (run->w->ops->settle == NULL)
        run->mid = run->tail;
    for (size_t i = 0; i < run->tail; i++)
        window_submit(run, job_at(run, i), 0);
    return BRC_OK;
}

static int window_run_all(window_run *run, brc_error *err)
{
    BRC_TRY(window_start(run, err));
    while (!run->is_held && (run->more || run->head < run->tail))
        BRC_TRY(window_step(run, err));
    if (run->failed < 0 && err != NULL)
        brc_error_copy(err, &run->error);
    return run->failed < 0 ? run->failed : run->more ? BRC_WINDOW_FULL : BRC_OK;
}

int brc_window_run(brc_window *w, const brc_pipe *pipe, size_t memory, const brc_window_ops *ops,
                   brc_error *err)
{
    window_run run = {.w = w, .pool = pipe->pool, .memory = memory, .more = 1, .cap = w->cap};
    if (ops->most > 0 && ops->most < run.cap)
        run.cap = ops->most;
    if (pipe->most > 0 && pipe->most < run.cap && !ops->holds) /* jobs that are held are done */
        run.cap = pipe->most;
    w->ops = ops;
    w->nheld = w->nfree = 0;
    for (size_t i = w->n; i-- > 0;) /* a failed run leaves some in their places */
        w->free[w->nfree++] = w->jobs[i];
    int rc = window_run_all(&run, err);
    window_pause(&run);
    brc_group_free(run.group); /* waits for the jobs */
    return rc;
}

int brc_window_init(brc_window *w, size_t cap, size_t job_size,
                    void (*dispose)(brc_window_job *job), brc_error *err)
{
    void *p;
    const size_t nplaces = cap * PLACES_PER_JOB;
    BRC_TRY(brc_new_array(&p, 3 * cap + nplaces, sizeof(brc_window_job *), err));
    *w = (brc_window){.jobs = p, .cap = cap, .job_size = job_size, .dispose = dispose};
    w->free = w->jobs + cap;
    w->settling = w->free + cap;
    w->places = w->settling + cap;
    w->nplaces = nplaces;
    return BRC_OK;
}

void brc_window_dispose(brc_window *w)
{
    for (size_t i = 0; i < w->n; i++) {
        if (w->dispose != NULL)
            w->dispose(w->jobs[i]);
        free(w->jobs[i]);
    }
    free(w->jobs);
    memset(w, 0, sizeof(*w));
}
