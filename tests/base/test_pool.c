/* The pool: every job runs once, in order, with an index that is its thread's own. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../src/base/pool.h"
#include "../kit/sanitized.h"
#include "../kit/suite.h"

TEST_SUITE(pool);

#define OK(expr) ck_assert_int_eq((expr), BRC_OK)
#define MOST_WORKERS 8

/* The record that all jobs of one group share. */
typedef struct record {
    atomic_int inside[MOST_WORKERS]; /* jobs that run with this index now */
    atomic_int clashes;
    atomic_int started;
    unsigned threads;
} record;

typedef struct counting_job {
    brc_job job;
    record *rec;
    int order;  /* how many started before */
    int runs;
    unsigned work, result;
} counting_job;

static void count_run(brc_job *job, unsigned worker)
{
    counting_job *self = (counting_job *)job;
    record *rec = self->rec;
    if (worker >= rec->threads || atomic_fetch_add(&rec->inside[worker], 1) != 0)
        atomic_fetch_add(&rec->clashes, 1);
    self->order = atomic_fetch_add(&rec->started, 1);
    self->runs++;
    unsigned x = self->work;
    for (unsigned i = 0; i < self->work; i++)
        x = x * 1664525u + 1013904223u;
    self->result = x;
    if (worker < rec->threads)
        atomic_fetch_sub(&rec->inside[worker], 1);
}

static void submit_all(brc_group *group, record *rec, counting_job *jobs, int n)
{
    for (int i = 0; i < n; i++) {
        jobs[i].job.run = count_run;
        jobs[i].rec = rec;
        jobs[i].work = (unsigned)(i * 37 % 500);
        brc_group_submit(group, &jobs[i].job);
    }
}

/* ---- one group ------------------------------------------------------------------- */

static const unsigned sizes[] = { 0, 1, 2, 3, 8 }; /* 0: no pool at all */

EACH(every_job_runs_once, sizes)
{
    enum { N = 3000 };
    brc_pool *pool = NULL;
    brc_group *group;
    record rec;
    memset(&rec, 0, sizeof(rec));
    if (sizes[_i] > 0)
        OK(brc_pool_new(&pool, sizes[_i], NULL));
    rec.threads = brc_pool_threads(pool);
    ck_assert_uint_eq(rec.threads, sizes[_i] > 0 ? sizes[_i] : 1);
    OK(brc_group_new(&group, pool, NULL));
    ck_assert_uint_lt(brc_group_caller(group), rec.threads);
    counting_job *jobs = calloc(N, sizeof(*jobs));
    submit_all(group, &rec, jobs, N);
    brc_group_wait(group, &jobs[N / 2].job);
    ck_assert_int_eq(jobs[N / 2].runs, 1);
    brc_group_wait(group, &jobs[0].job); /* long done */
    brc_group_wait_all(group);
    for (int i = 0; i < N; i++)
        ck_assert_int_eq(jobs[i].runs, 1);
    ck_assert_int_eq(atomic_load(&rec.started), N);
    ck_assert_int_eq(atomic_load(&rec.clashes), 0);
    submit_all(group, &rec, jobs, N); /* once more, and freeing waits */
    brc_group_free(group);
    for (int i = 0; i < N; i++)
        ck_assert_int_eq(jobs[i].runs, 2);
    free(jobs);
    brc_pool_free(pool);
}

TEST(one_thread_works_in_order)
{
    enum { N = 100 };
    brc_pool *pool;
    brc_group *group;
    record rec;
    counting_job jobs[N];
    memset(&rec, 0, sizeof(rec));
    memset(jobs, 0, sizeof(jobs));
    rec.threads = 1;
    OK(brc_pool_new(&pool, 1, NULL));
    OK(brc_group_new(&group, pool, NULL));
    submit_all(group, &rec, jobs, N);
    ck_assert_int_eq(atomic_load(&rec.started), 0); /* nobody else is there */
    brc_group_wait(group, &jobs[9].job);
    ck_assert_int_eq(atomic_load(&rec.started), 10); /* and not one more */
    brc_group_wait_all(group);
    for (int i = 0; i < N; i++)
        ck_assert_int_eq(jobs[i].order, i);
    brc_group_free(group);
    brc_pool_free(pool);
}

/* ---- many sleepers --------------------------------------------------------------- */

typedef struct meeting_job {
    brc_job job;
    pthread_barrier_t *barrier;
} meeting_job;

static void meet_others(brc_job *job, unsigned worker)
{
    (void)worker;
    pthread_barrier_wait(((meeting_job *)job)->barrier);
}

/* Four jobs that end only when all four run: no fewer threads may be awake. */
TEST(all_threads_work_at_once)
{
    brc_pool *pool;
    brc_group *group;
    pthread_barrier_t barrier;
    OK(brc_pool_new(&pool, 4, NULL));
    OK(brc_group_new(&group, pool, NULL));
    pthread_barrier_init(&barrier, NULL, 4);
    for (int round = 0; round < 200; round++) {
        meeting_job jobs[4];
        memset(jobs, 0, sizeof(jobs));
        for (int i = 0; i < 4; i++) {
            jobs[i].job.run = meet_others;
            jobs[i].barrier = &barrier;
            brc_group_submit(group, &jobs[i].job);
        }
        if (round % 2 == 0)
            brc_group_wait_all(group);
        else
            for (int i = 3; i >= 0; i--)
                brc_group_wait(group, &jobs[i].job);
    }
    pthread_barrier_destroy(&barrier);
    brc_group_free(group);
    brc_pool_free(pool);
}

/* The three threads of the pool are held up: the caller does the rest alone. */
TEST(the_caller_works_too)
{
    enum { N = 50 };
    brc_pool *pool;
    brc_group *busy, *group;
    pthread_barrier_t barrier;
    meeting_job held[3];
    counting_job jobs[N];
    record rec;
    memset(held, 0, sizeof(held));
    memset(jobs, 0, sizeof(jobs));
    memset(&rec, 0, sizeof(rec));
    rec.threads = 4;
    OK(brc_pool_new(&pool, 4, NULL));
    OK(brc_group_new(&busy, pool, NULL));
    OK(brc_group_new(&group, pool, NULL));
    pthread_barrier_init(&barrier, NULL, 4);
    for (int i = 0; i < 3; i++) {
        held[i].job.run = meet_others;
        held[i].barrier = &barrier;
        brc_group_submit(busy, &held[i].job);
    }
    submit_all(group, &rec, jobs, N);
    brc_group_wait_all(group); /* runs none of the other group's: those would block */
    ck_assert_int_eq(atomic_load(&rec.started), N);
    for (int i = 0; i < N; i++)
        ck_assert_int_eq(jobs[i].order, i);
    pthread_barrier_wait(&barrier);
    brc_group_free(group);
    brc_group_free(busy);
    pthread_barrier_destroy(&barrier);
    brc_pool_free(pool);
}

/* ---- several callers --------------------------------------------------------------- */

typedef struct caller_thread {
    pthread_t thread;
    brc_pool *pool;
    int failed;
} caller_thread;

static void *use_pool(void *arg)
{
    enum { N = 40, ROUNDS = 50 };
    caller_thread *self = arg;
    for (int round = 0; round < ROUNDS; round++) {
        counting_job jobs[N];
        brc_group *group;
        record rec;
        memset(jobs, 0, sizeof(jobs));
        memset(&rec, 0, sizeof(rec));
        rec.threads = brc_pool_threads(self->pool);
        if (brc_group_new(&group, self->pool, NULL) != BRC_OK) {
            self->failed++;
            break;
        }
        submit_all(group, &rec, jobs, N);
        for (int i = 0; i < N; i++) {
            brc_group_wait(group, &jobs[i].job);
            self->failed += jobs[i].runs != 1;
        }
        brc_group_free(group);
        self->failed += atomic_load(&rec.clashes) != 0 || atomic_load(&rec.started) != N;
    }
    return NULL;
}

TEST(K7_callers_share_a_pool)
{
    caller_thread callers[5];
    brc_pool *pool;
    OK(brc_pool_new(&pool, 3, NULL));
    for (int i = 0; i < 5; i++) {
        callers[i] = (caller_thread){ .pool = pool };
        ck_assert_int_eq(pthread_create(&callers[i].thread, NULL, use_pool, &callers[i]), 0);
    }
    for (int i = 0; i < 5; i++) {
        pthread_join(callers[i].thread, NULL);
        ck_assert_int_eq(callers[i].failed, 0);
    }
    brc_pool_free(pool);
}

/* Four jobs that end only when all four run, in a child, whose parent's threads are not there; the
 * parent's group can only be freed. */
static int meet_in_child(brc_pool *pool, brc_group *parents)
{
    pthread_barrier_t barrier;
    meeting_job jobs[4];
    brc_group *group;
    memset(jobs, 0, sizeof(jobs));
    alarm(20);
    if (brc_group_new(&group, pool, NULL) != BRC_OK || pthread_barrier_init(&barrier, NULL, 4) != 0)
        return 1;
    for (int i = 0; i < 4; i++) {
        jobs[i].job.run = meet_others;
        jobs[i].barrier = &barrier;
        brc_group_submit(group, &jobs[i].job);
    }
    brc_group_wait_all(group);
    brc_group_free(group);
    brc_group_free(parents);
    brc_pool_free(pool);
    return 0;
}

LOOP(a_child_starts_threads_of_its_own, 0, CHILDREN_MAY_ALLOCATE)
{
    brc_pool *pool;
    brc_group *group;
    counting_job jobs[20];
    record rec;
    int status;
    memset(&rec, 0, sizeof(rec));
    memset(jobs, 0, sizeof(jobs));
    rec.threads = 4;
    OK(brc_pool_new(&pool, 4, NULL));
    OK(brc_group_new(&group, pool, NULL));
    submit_all(group, &rec, jobs, 20);
    pid_t child = fork();
    if (child == 0)
        _exit(meet_in_child(pool, group));
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    brc_group_free(group);
    brc_pool_free(pool);
}

TEST(pools_of_any_size)
{
    brc_pool *pool;
    brc_error err = BRC_ERROR_INIT;
    OK(brc_pool_new(&pool, 0, &err));
    ck_assert_uint_eq(brc_pool_threads(pool), (unsigned)sysconf(_SC_NPROCESSORS_ONLN));
    brc_pool_free(pool);
    ck_assert_int_eq(brc_pool_new(&pool, 4000000000u, &err), BRC_ELIMIT);
    ck_assert_ptr_null(pool);
    ck_assert_uint_eq(brc_pool_threads(NULL), 1);
    brc_pool_free(NULL);
    brc_group_free(NULL);
}
