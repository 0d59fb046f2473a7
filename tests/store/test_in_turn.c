/* Who was overtaken gets on, in the order in which they came, until the time to wait is over. */
#include <check.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "../../src/store/db.h"
#include "../../src/zarr/session.h"
#include "../kit/scenario.h"

Suite *in_turn_suite(void);

/* A machine that stands still for minutes does not change what comes first. */
enum { LONG_MS = 600000, TIMES = 100, THREADS = 6 };

static scenario t;

static void in_turn_setup(void)
{
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    scenario_start(&t);
    scenario_close(&t);
    opts.wait_ms = LONG_MS;
    scenario_open(&t, &opts, 0);
}

static void in_turn_teardown(void)
{
    scenario_stop(&t);
}

static void open_to_wait(breccia **repo, int wait_ms)
{
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    opts.wait_ms = wait_ms;
    OK(&t, brc_open(repo, t.file, &opts, &t.err));
}

/* ---- how often -------------------------------- */

typedef struct overtaken {
    int times, done;
} overtaken;

static int overtaken_often(void *ctx, brc_error *err)
{
    overtaken *o = ctx;
    (void)err;
    return ++o->done > o->times;
}

START_TEST(it_is_tried_until_it_is_done)
{
    overtaken o = {TIMES, 0};
    ck_assert_int_eq(brc_in_turn(t.repo->store, "main", overtaken_often, &o, &t.err), 1);
    ck_assert_int_eq(o.done, TIMES + 1);
}
END_TEST

START_TEST(or_until_the_time_to_wait_is_over)
{
    overtaken o = {1000000, 0};
    breccia *repo;
    open_to_wait(&repo, 20);
    ck_assert_int_eq(brc_in_turn(repo->store, "main", overtaken_often, &o, &t.err), 0);
    ck_assert_int_gt(o.done, 0);
    FAILS(&t, BRC_EBUSY, brc_turn_is_over(repo->store, "it was made", "make it again", &t.err));
    ck_assert_ptr_ne(strstr(t.err.message, "0.02 s, while it was made: make it again"), NULL);
    brc_free(repo);
}
END_TEST

START_TEST(who_does_not_wait_tries_once)
{
    overtaken o = {1000000, 0};
    breccia *repo;
    open_to_wait(&repo, -1);
    ck_assert_int_eq(brc_in_turn(repo->store, "main", overtaken_often, &o, &t.err), 0);
    ck_assert_int_eq(o.done, 1);
    brc_free(repo);
}
END_TEST

static int fails(void *ctx, brc_error *err)
{
    ++*(int *)ctx;
    return brc_fail(err, BRC_ECONFLICT, "no");
}

START_TEST(an_error_ends_it)
{
    int n = 0;
    FAILS(&t, BRC_ECONFLICT, brc_in_turn(t.repo->store, "main", fails, &n, &t.err));
    ck_assert_int_eq(n, 1);
}
END_TEST

static int interrupted(void *ctx, brc_error *err)
{
    (void)err;
    brc_interrupt(ctx);
    return 0;
}

/* ---- in which order -------------------------------- */

/* How many wait now: each has a lock; the system says one, and both sides of it are asked again. */
static int locks_between(int64_t from, int64_t end)
{
    int64_t at, len;
    if (end <= from || !brc_vfs_find_lock(t.repo->store->vfs, from, end - from, &at, &len))
        return 0;
    return locks_between(from, at) + 1 + locks_between(at + len, end);
}

static int waiting(void)
{
    return locks_between(INT64_C(1) << 61, INT64_C(1) << 62);
}

typedef struct comer {
    breccia *repo;
    pthread_t thread;
    int number;
} comer;

static atomic_int order[THREADS], came;

static int note_turn(void *ctx, brc_error *err)
{
    const comer *c = ctx;
    (void)err;
    order[came++] = c->number;
    return 1;
}

static void *come(void *arg)
{
    comer *c = arg;
    brc_error err = BRC_ERROR_INIT;
    ck_assert_int_eq(brc_in_turn(c->repo->store, "main", note_turn, c, &err), 1);
    return NULL;
}

typedef struct first_comer {
    comer all[THREADS];
    int is_behind;
} first_comer;

/* Is overtaken once, and has a place then; while it has its turn the others come, one by one. */
static int let_them_come(void *ctx, brc_error *err)
{
    first_comer *f = ctx;
    (void)err;
    if (!f->is_behind) {
        f->is_behind = 1;
        return 0;
    }
    ck_assert_int_eq(waiting(), 1);
    for (int i = 0; i < THREADS; i++) {
        ck_assert_int_eq(pthread_create(&f->all[i].thread, NULL, come, &f->all[i]), 0);
        while (waiting() < i + 2)
            sched_yield();
    }
    ck_assert_int_eq(came, 0);
    return 1;
}

START_TEST(they_go_on_in_the_order_in_which_they_came)
{
    first_comer f = {.is_behind = 0};
    came = 0;
    for (int i = 0; i < THREADS; i++) {
        f.all[i].number = i;
        open_to_wait(&f.all[i].repo, LONG_MS);
    }
    ck_assert_int_eq(brc_in_turn(t.repo->store, "main", let_them_come, &f, &t.err), 1);
    for (int i = 0; i < THREADS; i++) {
        ck_assert_int_eq(pthread_join(f.all[i].thread, NULL), 0);
        brc_free(f.all[i].repo);
    }
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(order[i], i);
    ck_assert_int_eq(waiting(), 0);
}
END_TEST

/* ---- who is not waited for -------------------------------- */

typedef struct beside {
    breccia *repo;
    const char *about;
    int times;
} beside;

/* Keeps its turn until the other is done, which is on another handle. */
static int other_goes_on(void *ctx, brc_error *err)
{
    const beside *b = ctx;
    (void)err;
    if (waiting() == 0)
        return 0;
    for (int i = 0; i < b->times; i++) {
        overtaken o = {0, 0};
        ck_assert_int_eq(brc_in_turn(b->repo->store, b->about, overtaken_often, &o, &t.err), 1);
    }
    return 1;
}

/* He is waited for, but not until the time is over, and half as long each time. */
START_TEST(nobody_waits_for_long_for_one_who_does_not_get_on)
{
    beside b = {.about = "main", .times = 3};
    open_to_wait(&b.repo, 1600);
    ck_assert_int_eq(brc_in_turn(t.repo->store, "main", other_goes_on, &b, &t.err), 1);
    ck_assert_int_ne(b.repo->store->stuck_turn, 0);
    ck_assert_int_eq(b.repo->store->stuck_times, 3);
    brc_free(b.repo);
}
END_TEST

START_TEST(nobody_waits_for_another_branch)
{
    beside b = {.about = "other", .times = 3};
    open_to_wait(&b.repo, LONG_MS);
    ck_assert_int_eq(brc_in_turn(t.repo->store, "main", other_goes_on, &b, &t.err), 1);
    ck_assert_int_eq(b.repo->store->stuck_turn, 0);
    brc_free(b.repo);
}
END_TEST

START_TEST(it_can_be_interrupted)
{
    FAILS(&t, BRC_EINTERRUPT, brc_in_turn(t.repo->store, "main", interrupted, t.repo, &t.err));
    brc_interrupt_clear(t.repo);
    ck_assert_int_eq(waiting(), 0);
}
END_TEST

Suite *in_turn_suite(void)
{
    Suite *s = suite_create("in_turn");
    TCase *tc = tcase_create("in_turn");
    tcase_add_checked_fixture(tc, in_turn_setup, in_turn_teardown);
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, it_is_tried_until_it_is_done);
    tcase_add_test(tc, or_until_the_time_to_wait_is_over);
    tcase_add_test(tc, who_does_not_wait_tries_once);
    tcase_add_test(tc, an_error_ends_it);
    tcase_add_test(tc, it_can_be_interrupted);
    tcase_add_test(tc, they_go_on_in_the_order_in_which_they_came);
    tcase_add_test(tc, nobody_waits_for_long_for_one_who_does_not_get_on);
    tcase_add_test(tc, nobody_waits_for_another_branch);
    suite_add_tcase(s, tc);
    return s;
}
