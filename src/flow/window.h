/*
 * Runs jobs in order through a sliding window.
 *
 * A job is filled on the caller's thread, runs on the pool, and is finished on the caller's
 * thread, in the order in which jobs were filled. If jobs have a second stage, the
 * caller's thread settles each job between the stages: it does the work that only this thread may do
 * (look-ups in the store). While one job is finished the next ones run and others are filled, so
 * that the threads never all wait for one job. The window bounds the bytes that its jobs hold.
 *
 *      fill ──> run, stage 0 ──> settle ──> run, stage 1 ──> finish
 *     caller        pool         caller         pool         caller
 *
 * A request of one job runs on the caller's thread: waking another thread is not worth its cost.
 *
* If filling holds a lock that others wait for, the window fills jobs until it is full, and
 * starts again when there is room for several jobs.
 */
#ifndef BRC_FLOW_WINDOW_H
#define BRC_FLOW_WINDOW_H

#include <stdatomic.h>

#include "../base/pool.h"
#include "../store/store.h"

/* ---- window -------------------------------- */

struct brc_pipe;

/* The first member of the caller's own job structure. */
typedef struct brc_window_job {
    brc_job job;
    struct brc_window *window;
    int stage, rc, ran_here;
    int is_waiting; /* without a pool: the job runs when the window waits for it  */
    size_t bytes; /* bytes that the job holds: set by fill(), and by settle() if it changes them */
    size_t taken; /* bytes read for the job: set by fill() if there is a pause() */
    int is_over;  /* set by settle(): the job needs no second stage and no finish(), and makes
                     room for another while the jobs before it are in progress       */
    brc_error error;
} brc_window_job;

/* Result of fill(): more jobs follow, after a job in progress has been settled or finished. */
#define BRC_WINDOW_LATER 2
/* Result of a run that holds its jobs: they do not all fit into the window. */
#define BRC_WINDOW_FULL 3

typedef struct brc_window_ops {
    void *ctx;
    /* Returns 1 with a job, 0 at the end, or BRC_WINDOW_LATER. */
    int (*fill)(void *ctx, brc_window_job *job, brc_error *err);
    /* Does a stage of a job. `worker` is less than the number of the pool's threads; no other thread
     * runs with the same number at the same time. */
    int (*run)(void *ctx, brc_window_job *job, int stage, unsigned worker, brc_error *err);
    /* Gets the next jobs, in order, that have done stage 0. NULL: the jobs have one stage. */
    int (*settle)(void *ctx, brc_window_job *const *jobs, size_t n, brc_error *err);
    int (*finish)(void *ctx, brc_window_job *job, brc_error *err); /* NULL: nothing to do */
    /* Releases the lock that filling holds: called before jobs are run, finished or waited for on
     * the caller's thread, and at the end. With pause() the window fills several jobs at a time,
     * because taking the lock costs something. NULL: filling holds nothing. */
    void (*pause)(void *ctx);
    /* For finishing that holds a lock: many jobs are finished at a time, namely jobs of about `batch`
     * bytes, or half of the window, or all that are done if no other job can be filled. rest() is
     * called after these jobs, unless they were the last, and before the thread waits; `now` says that
     * the wait will be long. NULL: each job is finished once it has run. */
    size_t batch;
    int (*rest)(void *ctx, int now, brc_error *err);
    /* 1: no job is finished. The run ends when all jobs are done, and leaves them in the window's `held`. */
    int holds;
    /* Called before the jobs of a batch are finished, with all of them in order; no other job joins
     * the batch. NULL: jobs that are done meanwhile join it. */
    int (*ready)(void *ctx, brc_window_job *const *jobs, size_t n, brc_error *err);
    size_t most; /* jobs at a time; 0: as many as the window has places for       */
} brc_window_ops;

/* A window keeps its jobs, with the buffers that they hold, from one run to the next, and reuses
 * the job that was released last first. */
typedef struct brc_window {
    brc_window_job **jobs; /* all n that have been allocated, of at most cap      */
    size_t n, cap;
    size_t job_size;
    brc_window_job **free; /* the jobs that are not in use                        */
    size_t nfree;
    brc_window_job **places, **settling; /* jobs in order; NULL: the job is over  */
    size_t nplaces;
    void (*dispose)(brc_window_job *job); /* releases the memory of a job         */
    const brc_window_ops *ops;            /* of the current run                   */
    brc_window_job *const *held; /* in order: the jobs that the last run holds, until the next run */
    size_t nheld;
} brc_window;

/* Makes a window of at most `cap` jobs of job_size bytes. dispose: NULL if a job owns no memory. */
BRC_MUST_USE int brc_window_init(brc_window *w, size_t cap, size_t job_size,
                                 void (*dispose)(brc_window_job *job), brc_error *err);
void brc_window_dispose(brc_window *w);
/* Runs jobs on the pipe's threads until fill() returns 0. Returns BRC_OK or BRC_WINDOW_FULL. If several jobs fail, the
 * result is that of the earliest; jobs that are settled together fail together. */
BRC_MUST_USE int brc_window_run(brc_window *w, const struct brc_pipe *pipe, size_t memory,
                                const brc_window_ops *ops, brc_error *err);

/* ---- pipe -------------------------------- */

/*
 * A pipe keeps the state of one handle's flows from one call to the next: the pool, the budget,
 * each worker's contexts and buffers, and the jobs of the windows, so that small
 * requests allocate nothing. A pipe belongs to one caller at a time.
 */

#define BRC_PIPELINE_DEFAULT "batched"
/* The most chunks of a batch, and of a job. */
enum { BRC_PIPE_BATCH = 64 };

typedef struct brc_pipe_worker {
    brc_scratch *scratch;
    brc_buf chunk, kept, stored;
} brc_pipe_worker;

typedef struct brc_pipe {
    brc_pool *pool;  /* NULL: everything runs on the caller's thread            */
    size_t memory;   /* budget of bytes in flight                               */
    const struct brc_pipeline *pipeline; /* runs the codecs                       */
    void *pipeline_state;
    size_t most;     /* jobs at a time, unless the window holds them; 0: any number */
    size_t batch;    /* the most chunks of a job                                */
    int readback;    /* BRC_READBACK_...: which encoded chunks are decoded again to compare them */
    const atomic_int *stop; /* not 0: no further work begins; NULL: never stops */
    unsigned nworkers;
    brc_pipe_worker *workers;
    brc_window reading, writing;
    struct brc_read_list *list; /* items that the read flow has looked up       */
} brc_pipe;

/* The pipeline is one of the registry's, which must outlive the pipe. */
BRC_MUST_USE int brc_pipe_init(brc_pipe *pipe, const brc_registry *reg, brc_pool *pool,
                               const brc_pipeline_opts *opts, brc_error *err);
void brc_pipe_dispose(brc_pipe *pipe);
/* Returns BRC_EINTERRUPT if the pipe must stop; called between two chunks. */
BRC_MUST_USE int brc_pipe_check(const brc_pipe *pipe, brc_error *err);
/* Returns the worker's scratch, which is made at its first use. The index of the caller's own thread is
 * brc_pipe_caller(). */
BRC_MUST_USE int brc_pipe_scratch(brc_pipe *pipe, unsigned worker, brc_scratch **out, brc_error *err);
static inline unsigned brc_pipe_caller(const brc_pipe *pipe)
{
    return pipe->nworkers - 1;
}
/* Releases a worker's memory if it exceeds the worker's share of the budget. */
void brc_pipe_trim(brc_pipe *pipe, unsigned worker);
/* Releases the memory of one of `n` like buffers if it exceeds this buffer's share of the budget. */
void brc_pipe_trim_buf(const brc_pipe *pipe, brc_buf *buf, size_t n);
/* Makes the window at its first use, for `per_thread` jobs per thread and `least` jobs at least. */
BRC_MUST_USE int brc_pipe_window(brc_pipe *pipe, brc_window *window, size_t per_thread, size_t least, size_t job_size,
                                 void (*dispose)(brc_window_job *job), brc_error *err);

#endif
