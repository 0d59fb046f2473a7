/* The window: jobs in order, through one stage or two, in memory that is bounded. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../src/flow/window.h"
#include "../kit/suite.h"

TEST_SUITE(window);

#define OK(expr) ck_assert_int_eq((expr), BRC_OK)

typedef struct numbered_job {
    brc_window_job base;
    int number;
    int stages; /* that it has been through */
} numbered_job;

/* A run of `n` jobs, and what happened. */
typedef struct window_record {
    int n, filled, settled, finished;
    size_t bytes, held, most_held;
    int unsettled; /* fill says later where so many are; 0: never      */
    int over;      /* one of so many is finished, the others are over when settled; 0: all */
    int fail_fill, fail_first, fail_settle, fail_second, fail_finish; /* at this number; -1: none */
    atomic_int inside, most_inside, wrong;
    int pauses; /* filling holds something, until it is paused */
    size_t batch; /* finished together, and slow; 0: each for itself */
    int rests;
    size_t taken;
    int held_now, goes, in_go, most_in_go;
    int left;        /* jobs that the run has left held           */
    size_t at_a_time; /* of the pipe; 0: any number               */
    pthread_t caller;
} window_record;

/* Not on the caller's thread while it holds what it fills with. */
static void record_not_held(window_record *r)
{
    if (r->pauses && pthread_equal(pthread_self(), r->caller) && r->held_now)
        atomic_fetch_add(&r->wrong, 1);
}

static void record_pause(void *ctx)
{
    window_record *r = ctx;
    r->held_now = 0;
}

static int record_fail(int at, int number, const char *what, brc_error *err)
{
    return at == number ? brc_fail(err, BRC_EINVAL, "%s %d", what, number) : BRC_OK;
}

static int record_fill(void *ctx, brc_window_job *base, brc_error *err)
{
    window_record *r = ctx;
    numbered_job *job = (numbered_job *)base;
    if (r->filled == r->n)
        return 0;
    if (r->unsettled > 0 && r->filled - r->settled >= r->unsettled)
        return BRC_WINDOW_LATER;
    if (r->fail_fill == r->filled)
        return brc_fail(err, BRC_EINVAL, "fill %d", r->filled);
    r->goes += !r->held_now;
    r->in_go = r->held_now ? r->in_go + 1 : 1;
    r->most_in_go = r->in_go > r->most_in_go ? r->in_go : r->most_in_go;
    r->held_now = 1;
    job->number = r->filled++;
    job->stages = 0;
    base->taken = r->taken;
    base->bytes = r->bytes;
    r->held += r->bytes;
    if (r->held > r->most_held)
        r->most_held = r->held;
    return 1;
}

static int record_run(void *ctx, brc_window_job *base, int stage, unsigned worker, brc_error *err)
{
    window_record *r = ctx;
    numbered_job *job = (numbered_job *)base;
    (void)worker;
    record_not_held(r);
    int inside = atomic_fetch_add(&r->inside, 1) + 1;
    int most = atomic_load(&r->most_inside);
    while (inside > most && !atomic_compare_exchange_weak(&r->most_inside, &most, inside))
        ;
    if (job->stages++ != stage)
        atomic_fetch_add(&r->wrong, 1);
    for (volatile int i = 0; i < job->number * 7919 % 20000; i++)
        ;
    if (r->batch > 0)
        usleep(2000);
    atomic_fetch_sub(&r->inside, 1);
    return record_fail(stage == 0 ? r->fail_first : r->fail_second, job->number,
                       stage == 0 ? "first" : "second", err);
}

static int record_settle(void *ctx, brc_window_job *const *jobs, size_t n, brc_error *err)
{
    window_record *r = ctx;
    for (size_t i = 0; i < n; i++) {
        numbered_job *job = (numbered_job *)jobs[i];
        if (job->number != r->settled++ || job->stages != 1)
            atomic_fetch_add(&r->wrong, 1);
        int rc = record_fail(r->fail_settle, job->number, "settle", err);
        if (rc < 0)
            return rc;
        if (r->over > 0 && job->number % r->over > 0) {
            job->base.is_over = 1;
            r->held -= r->bytes;
        }
    }
    return BRC_OK;
}

static int record_finish(void *ctx, brc_window_job *base, brc_error *err)
{
    window_record *r = ctx;
    const numbered_job *job = (const numbered_job *)base;
    if (job->number != r->finished++ * (r->over > 0 ? r->over : 1))
        atomic_fetch_add(&r->wrong, 1);
    r->held -= r->bytes;
    return record_fail(r->fail_finish, job->number, "finish", err);
}

static int record_rest(void *ctx, int now, brc_error *err)
{
    window_record *r = ctx;
    (void)now, (void)err;
    r->rests++;
    return BRC_OK;
}

static window_record record_of(int n)
{
    return (window_record){.n = n, .bytes = 10, .taken = 1000, .fail_fill = -1, .fail_first = -1,
                           .fail_settle = -1, .fail_second = -1, .fail_finish = -1};
}

static int run_window_of(window_record *r, unsigned threads, int stages, size_t memory,
                         int holds, brc_error *err)
{
    brc_window w;
    brc_pool *pool = NULL;
    brc_window_ops ops = {.ctx = r, .fill = record_fill, .run = record_run,
                          .settle = stages == 2 ? record_settle : NULL, .finish = record_finish,
                          .pause = r->pauses ? record_pause : NULL,
                          .holds = holds, .batch = r->batch,
                          .rest = r->batch > 0 ? record_rest : NULL};
    r->caller = pthread_self();
    if (threads > 0)
        OK(brc_pool_new(&pool, threads, NULL));
    OK(brc_window_init(&w, 9, sizeof(numbered_job), NULL, NULL));
    int rc = brc_window_run(&w, &(brc_pipe){.pool = pool, .most = r->at_a_time}, memory, &ops, err);
    r->left = (int)w.nheld;
    for (size_t i = 0; i < w.nheld; i++) {
        const numbered_job *job = (const numbered_job *)w.held[i];
        if (job->number != (int)i || job->stages != stages)
            atomic_fetch_add(&r->wrong, 1);
    }
    brc_window_dispose(&w);
    brc_pool_free(pool);
    return rc;
}

static int run_window(window_record *r, unsigned threads, int stages, size_t memory, brc_error *err)
{
    return run_window_of(r, threads, stages, memory, 0, err);
}

LOOP(every_job_goes_through_in_order, 1, 3)
{
    static const int counts[] = {0, 1, 2, 3, 9, 10, 500};
    for (unsigned threads = 0; threads <= 4; threads++) {
        for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
            window_record r = record_of(counts[i]);
            OK(run_window(&r, threads, _i, 1000, NULL));
            ck_assert_int_eq(r.finished, counts[i]);
            ck_assert_int_eq(r.settled, _i == 2 ? counts[i] : 0);
            ck_assert_int_eq(r.wrong, 0);
        }
    }
}

/* A job is filled when there is room for one as large as any before, or for nothing else. */
LOOP(P7_memory_is_bounded, 1, 3)
{
    for (unsigned threads = 0; threads <= 4; threads++) {
        window_record r = record_of(200);
        OK(run_window(&r, threads, _i, 35, NULL));
        ck_assert_uint_le(r.most_held, 30);
        r = record_of(20);
        OK(run_window(&r, threads, _i, 1, NULL));
        ck_assert_uint_eq(r.most_held, 10);
        ck_assert_int_eq(r.finished, 20);
    }
}

/* A batch, and enough for two threads while the batch is finished, whatever the memory allows. */
TEST(no_more_than_batches_need_is_filled)
{
    window_record r = record_of(60);
    r.batch = 20;
    OK(run_window(&r, 2, 1, 1000, NULL));
    ck_assert_int_eq(r.finished, 60);
    ck_assert_int_gt(r.rests, 0);
    ck_assert_uint_ge(r.most_held, 50);
    ck_assert_uint_le(r.most_held, 70);
}

TEST(what_must_wait_is_filled_when_something_is_settled)
{
    for (unsigned threads = 0; threads <= 4; threads++) {
        for (int unsettled = 1; unsettled < 12; unsettled++) {
            window_record r = record_of(300);
            r.unsettled = unsettled;
            OK(run_window(&r, threads, 2, 1000, NULL));
            ck_assert_int_eq(r.finished, 300);
            ck_assert_int_eq(r.wrong, 0);
        }
    }
}

/* For nothing that is on its way would ever be settled. */
TEST(waiting_for_nothing_is_an_error)
{
    brc_error err = BRC_ERROR_INIT;
    window_record r = record_of(3);
    r.unsettled = 1;
    r.filled = 1;
    ck_assert_int_eq(run_window(&r, 2, 2, 1000, &err), BRC_EINTERNAL);
}

TEST(jobs_that_are_over_make_room_and_are_not_finished)
{
    for (unsigned threads = 0; threads <= 4; threads++) {
        for (int over = 1; over < 50; over += 6) {
            window_record r = record_of(500);
            r.over = over;
            OK(run_window(&r, threads, 2, 35, NULL));
            ck_assert_int_eq(r.settled, 500);
            ck_assert_int_eq(r.finished, (500 + over - 1) / over);
            ck_assert_int_eq(r.wrong, 0);
            ck_assert_uint_le(r.most_held, 30);
            ck_assert_uint_eq(r.held, 0);
        }
    }
}

/* Another thread would only be woken. */
LOOP(one_job_runs_where_it_is_asked_for, 1, 3)
{
    window_record r = record_of(1);
    OK(run_window(&r, 4, _i, 1000, NULL));
    ck_assert_int_eq(r.most_inside, 1);
}

TEST(the_earliest_failure_is_told)
{
    for (unsigned threads = 0; threads <= 4; threads++) {
        for (int at = 0; at < 30; at++) {
            brc_error err = BRC_ERROR_INIT;
            window_record r = record_of(40);
            r.fail_second = at;
            r.fail_first = at + 1;
            r.fail_fill = at + 2;
            ck_assert_int_eq(run_window(&r, threads, 2, 1000, &err), BRC_EINVAL);
            char want[32];
            snprintf(want, sizeof(want), "second %d", at);
            ck_assert_str_eq(err.message, want);
            ck_assert_int_eq(r.finished, at);
            r = record_of(40);
            r.fail_first = at;
            r.fail_fill = at + 1;
            ck_assert_int_eq(run_window(&r, threads, 2, 1000, &err), BRC_EINVAL);
            snprintf(want, sizeof(want), "first %d", at);
            ck_assert_str_eq(err.message, want);
            ck_assert_int_eq(r.finished, at);
        }
    }
}

TEST(a_failure_of_any_step_ends_the_run)
{
    for (unsigned threads = 0; threads <= 4; threads++) {
        for (int what = 0; what < 5; what++) {
            brc_error err = BRC_ERROR_INIT;
            window_record r = record_of(40);
            int *places[] = {&r.fail_fill, &r.fail_first, &r.fail_settle, &r.fail_second,
                             &r.fail_finish};
            *places[what] = 17;
            ck_assert_int_eq(run_window(&r, threads, 2, 1000, &err), BRC_EINVAL);
            ck_assert_ptr_nonnull(strstr(err.message, " 17"));
            if (what == 2) /* what was settled with it does not go on either */
                ck_assert_int_le(r.finished, 17);
            else
                ck_assert_int_eq(r.finished, what == 4 ? 18 : 17);
            ck_assert_int_eq(r.inside, 0);
        }
    }
}

/* The caller's thread releases the lock under which it fills before it runs, finishes or waits, and
 * several jobs are filled in one go, if they are small. */
LOOP(filling_is_paused, 1, 3)
{
    for (unsigned threads = 0; threads <= 4; threads++) {
        window_record r = record_of(500);
        r.pauses = 1;
        OK(run_window(&r, threads, _i, 1000, NULL));
        ck_assert_int_eq(r.finished, 500);
        ck_assert_int_eq(r.wrong, 0);
        ck_assert_int_eq(r.held_now, 0);
        ck_assert_int_le(r.goes, 500 / 4);
        r = record_of(50);
        r.pauses = 1;
        r.taken = (size_t)16 << 20;
        OK(run_window(&r, threads, _i, 1000, NULL));
        ck_assert_int_eq(r.wrong, 0);
        ck_assert_int_ge(r.goes, 49); /* the first two wake the threads together */
        r = record_of(60);
        r.pauses = 1;
        r.taken = (size_t)3 << 20; /* two of them are enough, but each thread needs one */
        OK(run_window(&r, threads, _i, 1000, NULL));
        ck_assert_int_eq(r.wrong, 0);
        ck_assert_int_eq(r.most_in_go, threads > 1 ? (int)threads + 1 : 2);
        r = record_of(50);
        r.pauses = 1;
        r.fail_first = 17;
        ck_assert_int_eq(run_window(&r, threads, _i, 1000, NULL), BRC_EINVAL);
        ck_assert_int_eq(r.held_now, 0);
        ck_assert_int_eq(r.finished, 17);
    }
}

/* A handle of few threads has no more jobs than those in the window. */
TEST(jobs_at_a_time_are_bounded)
{
    for (int stages = 1; stages <= 2; stages++) {
        window_record r = record_of(50);
        r.at_a_time = 2;
        OK(run_window_of(&r, 4, stages, 1000, 0, NULL));
        ck_assert_int_eq(r.finished, 50);
        ck_assert_int_le(r.most_inside, 2);
        ck_assert_int_eq(r.wrong, 0);
    }
}

/* All are through when the run ends, and none is finished; or they do not fit. */
TEST(jobs_are_held_together_or_not_at_all)
{
    for (unsigned threads = 0; threads <= 4; threads++) {
        for (int stages = 1; stages <= 2; stages++) {
            window_record r = record_of(8);
            r.at_a_time = 2; /* bounds the threads of other runs, and not what is held */
            OK(run_window_of(&r, threads, stages, 1000, 1, NULL));
            ck_assert_int_eq(r.left, 8);
            ck_assert_int_eq(r.finished, 0);
            ck_assert_int_eq(r.wrong, 0);
            r = record_of(8);
            ck_assert_int_eq(run_window_of(&r, threads, stages, 35, 1, NULL), BRC_WINDOW_FULL);
            ck_assert_int_eq(r.finished, 0);
            r = record_of(0);
            OK(run_window_of(&r, threads, stages, 1000, 1, NULL));
            ck_assert_int_eq(r.left, 0);
        }
    }
}
