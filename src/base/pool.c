#include "pool.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "alloc.h"

/* ==== lock ================================ */

struct brc_lock {
    pthread_mutex_t mutex;
};

int brc_lock_new(brc_lock **out, brc_error *err)
{
    void *p;
    *out = NULL;
    BRC_TRY(brc_new(&p, sizeof(brc_lock), err));
    brc_lock *lock = p;
    int errnum = pthread_mutex_init(&lock->mutex, NULL);
    if (errnum != 0) {
        free(lock);
        return brc_fail_os(err, errnum, "cannot make", "a lock");
    }
    *out = lock;
    return BRC_OK;
}

void brc_lock_free(brc_lock *lock)
{
    if (lock == NULL)
        return;
    pthread_mutex_destroy(&lock->mutex);
    free(lock);
}

void brc_lock_enter(brc_lock *lock)
{
    pthread_mutex_lock(&lock->mutex);
}

void brc_lock_leave(brc_lock *lock)
{
    pthread_mutex_unlock(&lock->mutex);
}

void brc_at_fork(void (*before)(void), void (*after)(void))
{
    (void)!pthread_atfork(before, after, after);
}

/* ==== pool ================================ */

/*
 * The pool: one queue, one mutex, threads that sleep when there is nothing to do.
 *
 * The queue is first in, first out over all groups. A pool thread takes the first job;
 * a caller that waits takes the first one of its own group, so that it never works on
 * a job that another thread waits for. Everything below `mutex` in the structures, and
 * a job's fields, change under the pool's mutex alone.
 *
 * After fork() the pool works in the child too, with threads of its own, which its first new
 * group starts; groups that the parent made are only freed there.
 *
 * Worker indexes: 0 to n-2 are the pool's threads, n-1 is the caller of a group.
 */

#define MOST_THREADS 1024

enum { JOB_IDLE = 0, JOB_QUEUED, JOB_RUNNING, JOB_DONE };

typedef struct pool_thread {
    pthread_t thread;
    brc_pool *pool;
    unsigned index;
} pool_thread;

struct brc_pool {
    _Atomic(pid_t) process; /* that has the threads; -N: process N is starting them */
    pool_thread *workers; /* nthreads - 1 of them                              */
    unsigned nthreads, started;
    pthread_mutex_t mutex;
    pthread_cond_t work; /* a job has come, or `stop`                          */
    brc_job *first, **last;
    unsigned asleep; /* workers that wait for `work`                           */
    int stop;
};

struct brc_group {
    brc_pool *pool;
    pid_t process;       /* that made the group                                 */
    int own_pool;        /* made for this group alone                           */
    pthread_cond_t done; /* under the pool's mutex: the caller waits for this   */
    size_t pending;      /* jobs that are not done                              */
    int asleep;          /* the caller waits for `done`                         */
    const brc_job *awaited; /* the job that it waits for; NULL: all             */
};

/* ---- the queue --------------------------------------------------------------- */

static void queue_job(brc_pool *pool, brc_job *job)
{
    job->next = NULL;
    job->state = JOB_QUEUED;
    *pool->last = job;
    pool->last = &job->next;
}

/* Takes the first job of `group` (NULL: of any) out of the queue. Returns NULL if there is none. */
static brc_job *take_job(brc_pool *pool, const brc_group *group)
{
    brc_job **place = &pool->first;
    while (*place && group && (*place)->group != group)
        place = &(*place)->next;
    brc_job *job = *place;
    if (!job)
        return NULL;
    *place = job->next;
    if (pool->last == &job->next)
        pool->last = place;
    job->state = JOB_RUNNING;
    return job;
}

/* Runs a job. Called with the mutex held, which is released while the job runs. Once the job is
 * done and the mutex free, the job's memory may be gone. */
static void run_job(brc_pool *pool, brc_job *job, unsigned worker)
{
    brc_group *group = job->group;
    pthread_mutex_unlock(&pool->mutex);
    job->run(job, worker);
    pthread_mutex_lock(&pool->mutex);
    job->state = JOB_DONE;
    group->pending--;
    if (group->asleep && (group->awaited == job || group->pending == 0))
        pthread_cond_signal(&group->done);
}

static void *pool_thread_main(void *arg)
{
    const pool_thread *self = arg;
    brc_pool *pool = self->pool;
    pthread_mutex_lock(&pool->mutex);
    for (;;) {
        brc_job *job = take_job(pool, NULL);
        if (job) {
            run_job(pool, job, self->index);
        } else if (pool->stop) {
            break;
        } else {
            pool->asleep++;
            pthread_cond_wait(&pool->work, &pool->mutex);
            pool->asleep--;
        }
    }
    pthread_mutex_unlock(&pool->mutex);
    return NULL;
}

/* ---- the pool ------------------------------------------------------------------ */

static int start_workers(brc_pool *pool, brc_error *err)
{
    /* Signals go to the program's own threads. */
    sigset_t all, before;
    sigfillset(&all);
    int masked = pthread_sigmask(SIG_SETMASK, &all, &before) == 0;
    int rc = BRC_OK;
    while (rc == BRC_OK && pool->started + 1 < pool->nthreads) {
        pool_thread *worker = &pool->workers[pool->started];
        worker->pool = pool;
        worker->index = pool->started;
        int errnum = pthread_create(&worker->thread, NULL, pool_thread_main, worker);
        if (errnum != 0)
            rc = brc_fail_os(err, errnum, "cannot start", "a worker thread");
        else
            pool->started++;
    }
    if (masked)
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc;
}

static int init_pool_locks(brc_pool *pool, brc_error *err)
{
    int errnum = pthread_mutex_init(&pool->mutex, NULL);
    if (errnum == 0) {
        errnum = pthread_cond_init(&pool->work, NULL);
        if (errnum != 0)
            pthread_mutex_destroy(&pool->mutex);
    }
    return errnum == 0 ? BRC_OK : brc_fail_os(err, errnum, "cannot make", "a lock");
}

int brc_pool_new(brc_pool **out, unsigned threads, brc_error *err)
{
    *out = NULL;
    if (threads == 0) {
        long cores = sysconf(_SC_NPROCESSORS_ONLN);
        threads = cores < 1 ? 1 : cores > MOST_THREADS ? MOST_THREADS : (unsigned)cores;
    }
    if (threads > MOST_THREADS)
        return brc_fail(err, BRC_ELIMIT, "%u threads are too many: a pool has at most %d", threads,
                        MOST_THREADS);
    void *memory, *workers;
    BRC_TRY(brc_new(&memory, sizeof(brc_pool), err));
    brc_pool *pool = memory;
    int rc = brc_new_array(&workers, threads - 1, sizeof(pool_thread), err);
    if (rc == BRC_OK)
        rc = init_pool_locks(pool, err);
    if (rc < 0) {
        free(workers);
        free(pool);
        return rc;
    }
    atomic_init(&pool->process, getpid());
    pool->workers = workers;
    pool->nthreads = threads;
    pool->last = &pool->first;
    rc = start_workers(pool, err);
    if (rc < 0)
        brc_pool_free(pool);
    else
        *out = pool;
    return rc;
}

/* Returns whether the pool is still the parent's. After fork() a child has the parent's memory
 * without its threads: locks may be held forever, and jobs are never done. */
static int is_of_parent(brc_pool *pool)
{
    return atomic_load(&pool->process) != getpid();
}

/* Rebuilds the pool in a child without waiting, because the parent's threads do not exist here. A
 * pool with fewer threads than it should have is slower, but works. */
static int rebuild_pool(brc_pool *pool, brc_error *err)
{
    pool->first = NULL;
    pool->last = &pool->first;
    pool->started = pool->asleep = 0;
    pool->stop = 0;
    BRC_TRY(init_pool_locks(pool, err));
    (void)!start_workers(pool, NULL);
    return BRC_OK;
}

/* Makes the pool this process's own. In a child the first user restarts the pool; others wait for
 * this. */
static int pool_for_process(brc_pool *pool, brc_error *err)
{
    const pid_t own = getpid();
    pid_t seen = atomic_load(&pool->process);
    while (seen != own) {
        if (seen == -own) {
            sched_yield();
            seen = atomic_load(&pool->process);
        } else if (atomic_compare_exchange_weak(&pool->process, &seen, -own)) {
            int rc = rebuild_pool(pool, err);
            atomic_store(&pool->process, rc == BRC_OK ? own : 0);
            return rc;
        }
    }
    return BRC_OK;
}

void brc_pool_free(brc_pool *pool)
{
    if (!pool)
        return;
    if (is_of_parent(pool)) {
        free(pool->workers);
        free(pool);
        return;
    }
    pthread_mutex_lock(&pool->mutex);
    pool->stop = 1;
    pthread_cond_broadcast(&pool->work);
    pthread_mutex_unlock(&pool->mutex);
    for (unsigned i = 0; i < pool->started; i++)
        pthread_join(pool->workers[i].thread, NULL);
    pthread_cond_destroy(&pool->work);
    pthread_mutex_destroy(&pool->mutex);
    free(pool->workers);
    free(pool);
}

unsigned brc_pool_threads(const brc_pool *pool)
{
    return pool ? pool->nthreads : 1;
}

/* ---- groups ---------------------------------------------------------------------- */

int brc_group_new(brc_group **out, brc_pool *pool, brc_error *err)
{
    void *memory;
    *out = NULL;
    BRC_TRY(brc_new(&memory, sizeof(brc_group), err));
    brc_group *group = memory;
    group->pool = pool;
    group->process = getpid();
    int rc = pool ? pool_for_process(pool, err) : BRC_OK;
    if (rc < 0) {
        free(group);
        return rc;
    }
    if (!pool) {
        rc = brc_pool_new(&group->pool, 1, err);
        if (rc < 0) {
            free(group);
            return rc;
        }
        group->own_pool = 1;
    }
    int errnum = pthread_cond_init(&group->done, NULL);
    if (errnum != 0) {
        if (group->own_pool)
            brc_pool_free(group->pool);
        free(group);
        return brc_fail_os(err, errnum, "cannot make", "a lock");
    }
    *out = group;
    return BRC_OK;
}

void brc_group_free(brc_group *group)
{
    if (!group)
        return;
    if (group->process != getpid()) { /* its jobs are the parent's */
        if (group->own_pool)
            brc_pool_free(group->pool);
        free(group);
        return;
    }
    brc_group_wait_all(group);
    pthread_cond_destroy(&group->done);
    if (group->own_pool)
        brc_pool_free(group->pool);
    free(group);
}

void brc_group_submit(brc_group *group, brc_job *job)
{
    brc_pool *pool = group->pool;
    pthread_mutex_lock(&pool->mutex);
    job->group = group;
    group->pending++;
    queue_job(pool, job);
    if (pool->asleep > 0)
        pthread_cond_signal(&pool->work);
    pthread_mutex_unlock(&pool->mutex);
}

/* Works on the group, or sleeps until `awaited` (NULL: every job) may be done. Called with the
 * mutex held. */
static void work_or_sleep(brc_group *group, const brc_job *awaited)
{
    brc_job *job = take_job(group->pool, group);
    if (job) {
        run_job(group->pool, job, brc_group_caller(group));
        return;
    }
    group->asleep = 1;
    group->awaited = awaited;
    pthread_cond_wait(&group->done, &group->pool->mutex);
    group->asleep = 0;
}

void brc_group_wait(brc_group *group, brc_job *job)
{
    pthread_mutex_lock(&group->pool->mutex);
    while (job->state == JOB_QUEUED || job->state == JOB_RUNNING)
        work_or_sleep(group, job);
    pthread_mutex_unlock(&group->pool->mutex);
}

void brc_group_wait_all(brc_group *group)
{
    pthread_mutex_lock(&group->pool->mutex);
    while (group->pending > 0)
        work_or_sleep(group, NULL);
    pthread_mutex_unlock(&group->pool->mutex);
}

int brc_group_is_done(brc_group *group, const brc_job *job)
{
    pthread_mutex_lock(&group->pool->mutex);
    int done = job->state == JOB_DONE;
    pthread_mutex_unlock(&group->pool->mutex);
    return done;
}

unsigned brc_group_caller(const brc_group *group)
{
    return group->pool->nthreads - 1;
}
