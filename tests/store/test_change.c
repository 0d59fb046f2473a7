/* Changes: what is kept of them, and that whoever was overtaken gets on, in the order of arrival,
 * until the time to wait is over. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "../../src/store/change.h"
#include "../../src/store/db.h"
#include "../../src/work/session.h"
#include "../kit/scenario.h"
#include "../kit/suite.h"

TEST_SUITE(change);

/* A machine that stands still for minutes does not change what comes first. */
enum { LONG_MS = 600000, TIMES = 100, THREADS = 6 };

static scenario t;

static void change_setup(void)
{
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    scenario_start(&t);
    scenario_close(&t);
    opts.wait_ms = LONG_MS;
    scenario_open(&t, &opts, 0);
}

static void change_teardown(void)
{
    scenario_stop(&t);
}

/* ---- how often -------------------------------- */

/* A change of which others are first so many times. */
typedef struct overtaken {
    int times, done, insisted;
} overtaken;

static int overtaken_often(void *ctx, int insists, brc_error *err)
{
    overtaken *o = ctx;
    (void)err;
    o->insisted += insists;
    return ++o->done > o->times ? BRC_OK : BRC_CHANGE_AGAIN;
}

static int run(breccia *repo, const char *about,
               int (*steps)(void *ctx, int insists, brc_error *err), void *ctx)
{
    const brc_file_change change = {.about = about, .ctx = ctx, .steps = steps};
    return brc_change_run(repo->store, &change, &t.err);
}

CASE("change", .setup = change_setup, .teardown = change_teardown, .timeout = 120);

TEST(it_is_tried_until_it_is_done)
{
    overtaken o = {TIMES, 0, 0};
    ck_assert_int_eq(run(t.repo, "main", overtaken_often, &o), BRC_OK);
    ck_assert_int_eq(o.done, TIMES + 1);
}

TEST(or_until_the_time_to_wait_is_over)
{
    overtaken o = {1000000, 0, 0};
    breccia *repo;
    repo = scenario_handle(&t, 20);
    ck_assert_int_eq(run(repo, "main", overtaken_often, &o), BRC_CHANGE_AGAIN);
    ck_assert_int_gt(o.insisted, 0);
    FAILS(&t, BRC_EBUSY, brc_change_is_late(repo->store, "it was made", "make it again", &t.err));
    ck_assert_ptr_ne(strstr(t.err.message, "0.02 s, while it was made: make it again"), NULL);
    brc_free(repo);
}

TEST(whoever_does_not_wait_insists_at_once)
{
    overtaken o = {1000000, 0, 0};
    breccia *repo;
    repo = scenario_handle(&t, -1);
    ck_assert_int_eq(run(repo, "main", overtaken_often, &o), BRC_CHANGE_AGAIN);
    ck_assert_int_eq(o.done, 2);
    ck_assert_int_eq(o.insisted, 1);
    brc_free(repo);
}

/* Others may be first four times. */
TEST(it_insists_when_others_were_first_several_times)
{
    overtaken o = {TIMES, 0, 0};
    ck_assert_int_eq(run(t.repo, NULL, overtaken_often, &o), BRC_OK);
    ck_assert_int_eq(o.insisted, TIMES + 1 - 4);
}

static int fails(void *ctx, int insists, brc_error *err)
{
    *(int *)ctx += 1 + insists;
    return brc_fail(err, BRC_ECONFLICT, "no");
}

TEST(an_error_ends_it)
{
    int n = 0;
    FAILS(&t, BRC_ECONFLICT, run(t.repo, "main", fails, &n));
    ck_assert_int_eq(n, 1);
}

static int interrupted(void *ctx, int insists, brc_error *err)
{
    (void)insists, (void)err;
    brc_interrupt(ctx, 1);
    return BRC_CHANGE_AGAIN;
}

/* ---- the parts -------------------------------- */

/* The result that each part gives, from the first call to the last, and the calls in order: w, c,
 * s, and where it insists C and S. */
typedef struct parts {
    const int *returns;
    char calls[16];
    size_t n;
} parts;

static int part_called(parts *p, char call)
{
    ck_assert_uint_lt(p->n, sizeof(p->calls) - 1);
    p->calls[p->n] = call;
    return p->returns[p->n++];
}

static int part_work(void *ctx, brc_error *err)
{
    (void)err;
    ck_assert(!brc_store_in_write(t.repo->store));
    return part_called(ctx, 'w');
}

/* Writes a row, which is there only if the transaction was kept. */
static int part_commit(void *ctx, int insists, brc_error *err)
{
    ck_assert(brc_store_in_write(t.repo->store));
    OK(&t, brc_meta_put(t.repo->store, "test.made", "yes", 3, 1, err));
    return part_called(ctx, insists ? 'C' : 'c');
}

static int part_steps(void *ctx, int insists, brc_error *err)
{
    (void)err;
    ck_assert(!brc_store_in_write(t.repo->store));
    return part_called(ctx, insists ? 'S' : 's');
}

typedef struct parts_case {
    int returns[8];
    const char *calls;
    int result, is_kept;
} parts_case;

static const parts_case parts_cases[] = {
    {{BRC_OK, BRC_OK}, "wc", BRC_OK, 1},
    {{BRC_OK, BRC_CHANGE_AGAIN, BRC_OK, BRC_OK}, "wcwc", BRC_OK, 1},
    {{BRC_CHANGE_AGAIN, BRC_OK, BRC_OK}, "wwc", BRC_OK, 1},
    {{BRC_OK, BRC_CHANGE_WORK, BRC_OK, BRC_OK}, "wcwc", BRC_OK, 1},
    {{BRC_CHANGE_NONE}, "w", BRC_OK, 0},
    {{BRC_OK, BRC_CHANGE_NONE}, "wc", BRC_OK, 0},
    {{BRC_CHANGE_OTHER}, "w", BRC_CHANGE_OTHER, 0},
    {{BRC_OK, BRC_CHANGE_OTHER + 1}, "wc", BRC_CHANGE_OTHER + 1, 0},
    {{BRC_CHANGE_MUCH, BRC_OK}, "ws", BRC_OK, 0},
    {{BRC_OK, BRC_CHANGE_MUCH, BRC_OK}, "wcs", BRC_OK, 0},
    {{BRC_CHANGE_MUCH, BRC_CHANGE_AGAIN, BRC_OK, BRC_OK}, "wswc", BRC_OK, 1},
    {{BRC_OK, BRC_ECONFLICT}, "wc", BRC_ECONFLICT, 0},
    {{BRC_ECONFLICT}, "w", BRC_ECONFLICT, 0},
};

static int is_made(void)
{
    brc_buf value = BRC_BUF_INIT;
    const int is = brc_meta_find(t.repo->store, "test.made", &value, &t.err);
    ck_assert_int_ge(is, 0);
    brc_buf_dispose(&value);
    return is;
}

EACH(only_what_is_done_is_kept, parts_cases)
{
    const parts_case *c = &parts_cases[_i];
    parts p = {.returns = c->returns};
    const brc_file_change change = {.about = "main", .ctx = &p, .work = part_work,
                                    .commit = part_commit, .steps = part_steps};
    ck_assert_int_eq(brc_change_run(t.repo->store, &change, &t.err), c->result);
    ck_assert_str_eq(p.calls, c->calls);
    ck_assert_int_eq(is_made(), c->is_kept);
}

/* The change ends with the caller's transaction, and nobody else can be first. */
TEST(within_a_transaction_it_is_a_part_of_that)
{
    static const int ok[] = {BRC_OK};
    for (int keep = 0; keep < 2; keep++) {
        parts p = {.returns = ok};
        const brc_file_change change = {.about = "main", .ctx = &p, .work = part_work,
                                        .commit = part_commit, .steps = part_steps};
        OK(&t, brc_store_begin(t.repo->store, &t.err));
        ck_assert(!is_made());
        OK(&t, brc_change_run(t.repo->store, &change, &t.err));
        OK(&t, brc_store_end(t.repo->store, keep, &t.err));
        ck_assert_str_eq(p.calls, "C");
        ck_assert_int_eq(is_made(), keep);
    }
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

static int note_turn(void *ctx, int insists, brc_error *err)
{
    const comer *c = ctx;
    (void)insists, (void)err;
    order[came++] = c->number;
    return BRC_OK;
}

static void *come(void *arg)
{
    comer *c = arg;
    brc_error err = BRC_ERROR_INIT;
    const brc_file_change change = {.about = "main", .ctx = c, .steps = note_turn};
    ck_assert_int_eq(brc_change_run(c->repo->store, &change, &err), BRC_OK);
    return NULL;
}

typedef struct first_comer {
    comer all[THREADS];
    int is_behind;
} first_comer;

/* Is overtaken once, and has a place then; while it has its turn the others come, one by one. */
static int let_them_come(void *ctx, int insists, brc_error *err)
{
    first_comer *f = ctx;
    (void)insists, (void)err;
    if (!f->is_behind) {
        f->is_behind = 1;
        return BRC_CHANGE_AGAIN;
    }
    ck_assert_int_eq(waiting(), 1);
    for (int i = 0; i < THREADS; i++) {
        ck_assert_int_eq(pthread_create(&f->all[i].thread, NULL, come, &f->all[i]), 0);
        while (waiting() < i + 2)
            sched_yield();
    }
    ck_assert_int_eq(came, 0);
    return BRC_OK;
}

TEST(they_go_on_in_the_order_in_which_they_came)
{
    first_comer f = {.is_behind = 0};
    came = 0;
    for (int i = 0; i < THREADS; i++) {
        f.all[i].number = i;
        f.all[i].repo = scenario_handle(&t, LONG_MS);
    }
    ck_assert_int_eq(run(t.repo, "main", let_them_come, &f), BRC_OK);
    for (int i = 0; i < THREADS; i++) {
        ck_assert_int_eq(pthread_join(f.all[i].thread, NULL), 0);
        brc_free(f.all[i].repo);
    }
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(order[i], i);
    ck_assert_int_eq(waiting(), 0);
}

/* ---- who is not waited for -------------------------------- */

typedef struct beside {
    breccia *repo;
    const char *about;
    int times;
} beside;

/* Keeps its turn until the other is done, which is on another handle. */
static int other_goes_on(void *ctx, int insists, brc_error *err)
{
    const beside *b = ctx;
    (void)insists, (void)err;
    if (waiting() == 0)
        return BRC_CHANGE_AGAIN;
    for (int i = 0; i < b->times; i++) {
        overtaken o = {0, 0, 0};
        ck_assert_int_eq(run(b->repo, b->about, overtaken_often, &o), BRC_OK);
    }
    return BRC_OK;
}

/* He is waited for, but not until the time is over, and half as long each time. */
TEST(nobody_waits_for_long_for_one_who_does_not_get_on)
{
    beside b = {.about = "main", .times = 3};
    b.repo = scenario_handle(&t, 1600);
    ck_assert_int_eq(run(t.repo, "main", other_goes_on, &b), BRC_OK);
    ck_assert_int_ne(b.repo->store->stuck_turn, 0);
    ck_assert_int_eq(b.repo->store->stuck_times, 3);
    brc_free(b.repo);
}

TEST(nobody_waits_for_another_branch)
{
    beside b = {.about = "other", .times = 3};
    b.repo = scenario_handle(&t, LONG_MS);
    ck_assert_int_eq(run(t.repo, "main", other_goes_on, &b), BRC_OK);
    ck_assert_int_eq(b.repo->store->stuck_turn, 0);
    brc_free(b.repo);
}

TEST(it_can_be_interrupted)
{
    FAILS(&t, BRC_EINTERRUPT, run(t.repo, "main", interrupted, t.repo));
    brc_interrupt(t.repo, 0);
    ck_assert_int_eq(waiting(), 0);
}
