/*
 * Jobs in order through a sliding window.
 *
 * A job is filled on the caller's thread, runs on the pool, and is finished on the caller's
 * thread, in the order in which jobs were filled. Where there is a second stage, the
 * caller's thread settles between the two what only it may do (look-ups in the store).
 * While one job is finished the next ones run and others are filled: there is no point at
 * which everything waits. What the window holds is bounded in bytes.
 *
 *      fill ──> run, stage 0 ──> settle ──> run, stage 1 ──> finish
 *     caller        pool         caller         pool         caller
 *
 * A request of one job runs on the caller's thread: waking another is not worth it.
 *
 * Where filling holds something that others wait for, it goes on until the window is full, and
 * begins anew when there is room for several jobs.
 */
#ifndef BRC_FLOW_WINDOW_H
#define BRC_FLOW_WINDOW_H

#include <stdatomic.h>

#include "../base/pool.h"
#include "../store/store.h"

/* ---- window -------------------------------- */

/* First in the caller's own structure. */
typedef struct brc_window_job {
    brc_job job;
    struct brc_window *window;
    int stage, rc, ran_here;
    int is_waiting; /* without a pool: it runs when it is waited for              */
    size_t bytes; /* that it holds: set by fill, and by settle where it changes  */
    size_t taken; /* set by fill where there is a pause(): bytes that were read for it */
    int is_over;  /* set by settle: there is no second stage, and nothing to finish; it
                     makes room for another while those before it are on their way  */
    brc_error error;
} brc_window_job;

/* Of fill: there will be more, but not before something that is on its way has been settled
 * or finished. */
#define BRC_WINDOW_LATER 2
/* Result of a run that was to hold its jobs: they are too many to be held together. */
#define BRC_WINDOW_FULL 3

typedef struct brc_window_ops {
    void *ctx;
    /* 1; 0 at the end; BRC_WINDOW_LATER */
    int (*fill)(void *ctx, brc_window_job *job, brc_error *err);
    /* `worker` is below the number of the pool's threads, and nobody else's meanwhile. */
    int (*run)(void *ctx, brc_window_job *job, int stage, unsigned worker, brc_error *err);
    /* The next jobs in order that are through with stage 0. NULL: there is one stage. */
    int (*settle)(void *ctx, brc_window_job *const *jobs, size_t n, brc_error *err);
    int (*finish)(void *ctx, brc_window_job *job, brc_error *err); /* NULL: nothing to do */
    /* What filling holds (a lock) is let go of: called before jobs are run, finished or waited for
     * on the caller's thread, and at the end. Then several jobs are filled at a time, because
     * taking it has its price. NULL: nothing is held. */
    void (*pause)(void *ctx);
    /* Finishing holds something, and many jobs are finished at a time: those of about `batch` bytes,
     * or half of the window, or what there is where no other can be filled. rest() is called behind
     * them, unless they were the last, and before the thread waits; `now` says that much was
     * finished, or that waiting takes long. NULL: each is finished when it is through. */
    size_t batch;
    int (*rest)(void *ctx, int now, brc_error *err);
    /* Nothing is finished: the run ends when all jobs are through, and leaves them in the window's `held`. */
    int holds;
    /* Before the jobs of a batch are finished: all of them, in order; no other is finished with
     * them. NULL: those that are through meanwhile are finished with them. */
    int (*ready)(void *ctx, brc_window_job *const *jobs, size_t n, brc_error *err);
    size_t most; /* jobs at a time; 0: as many as the window has places for       */
} brc_window_ops;

/* Its jobs, with the buffers that they hold, are kept from one run to the next; the one that
 * was released last is used first. */
typedef struct brc_window {
    brc_window_job **jobs; /* those that were made: n of them                     */
    size_t n, cap;         /* how many there may be                               */
    size_t job_size;
    brc_window_job **free; /* of them                                             */
    size_t nfree;
    brc_window_job **places, **settling; /* in order; NULL: it is over            */
    size_t nplaces;
    void (*dispose)(brc_window_job *job); /* releases what a job holds            */
    const brc_window_ops *ops;            /* of the run                           */
    brc_window_job *const *held; /* in order: what the last run was to hold, until the next run */
    size_t nheld;
} brc_window;

/* dispose: NULL if a job holds nothing. */
BRC_MUST_USE int brc_window_init(brc_window *w, size_t cap, size_t job_size,
                                 void (*dispose)(brc_window_job *job), brc_error *err);
void brc_window_dispose(brc_window *w);
/* Until fill says that there are no more. Returns BRC_OK or BRC_WINDOW_FULL. Of several failures the result is that of the
 * earliest job; what is settled together fails together. pool NULL: all on the caller's thread. */
BRC_MUST_USE int brc_window_run(brc_window *w, brc_pool *pool, size_t memory,
                                const brc_window_ops *ops, brc_error *err);

/* ---- pipe -------------------------------- */

/*
 * What the flows of one handle keep from one call to the next: the pool, the budget,
 * each worker's contexts and buffers, and the jobs of their windows, so that small
 * requests allocate nothing. It belongs to one caller at a time.
 */

typedef struct brc_pipe_worker {
    brc_scratch *scratch;
    brc_buf chunk, kept;
} brc_pipe_worker;

typedef struct brc_pipe {
    brc_pool *pool;  /* NULL: everything runs on the caller's thread            */
    size_t memory;   /* budget of bytes in flight                               */
    int no_readback; /* do not decode again what was just encoded               */
    const atomic_int *stop; /* not 0: work that has not begun is not done; NULL: never */
    unsigned nworkers;
    brc_pipe_worker *workers;
    brc_window reading, writing;
    struct brc_read_list *list; /* of the read flow: what it has looked up      */
} brc_pipe;

BRC_MUST_USE int brc_pipe_init(brc_pipe *pipe, brc_pool *pool, size_t memory, brc_error *err);
void brc_pipe_dispose(brc_pipe *pipe);
/* BRC_EINTERRUPT if the pipe is to stop: asked between two chunks. */
BRC_MUST_USE int brc_pipe_check(const brc_pipe *pipe, brc_error *err);
/* The worker's scratch, made at its first use. The caller's own thread has the index
 * brc_pipe_caller(). */
BRC_MUST_USE int brc_pipe_scratch(brc_pipe *pipe, unsigned worker, brc_scratch **out, brc_error *err);
static inline unsigned brc_pipe_caller(const brc_pipe *pipe)
{
    return pipe->nworkers - 1;
}
/* Releases a worker's memory where it is more than its part of the budget. */
void brc_pipe_trim(brc_pipe *pipe, unsigned worker);
/* The same for one of `n` equal buffers. */
void brc_pipe_trim_buf(const brc_pipe *pipe, brc_buf *buf, size_t n);
/* The window, made at its first use with `per_thread` places per thread, and at least so many. */
BRC_MUST_USE int brc_pipe_window(brc_pipe *pipe, brc_window *window, size_t per_thread, size_t least, size_t job_size,
                                 void (*dispose)(brc_window_job *job), brc_error *err);

#endif
