/* Savepoints while something else is open: a rebase that has stopped at a conflict, whose draft
 * they are of, and a collection of another process, which goes on between each two steps. */
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../kit/ios.h"
#include "../kit/lock_faults.h"
#include "../kit/rebase_kit.h"
#include "../kit/savepoint_kit.h"
#include "../kit/suite.h"

TEST_SUITE(savepoint_beside);

/* ---- an open rebase -------------------------------- */

static rebase_kit rk;

static void open_rebase_setup(void)
{
    rk_start(&rk);
}

static void open_rebase_teardown(void)
{
    scenario_whole(&rk.t);
    rk_stop(&rk);
}

static uint64_t conflicts_left(void)
{
    return rk_open(&rk).open;
}

CASE("rebase", .setup = open_rebase_setup, .teardown = open_rebase_teardown);

/* The change that settled a conflict by hand is taken back, and the rebase is as open as it was. */
TEST(a_rollback_opens_a_conflict_again)
{
    rk_rebase(&rk, BRC_PICK_KEEP);
    const uint64_t before = conflicts_left();
    ck_assert_uint_gt(before, 0);
    sp_save(&rk.t, "x");
    for (int i = 0; i < 2; i++) {
        scenario_set_number(&rk.t, "/a", 0, 70 + i);
        OK(&rk.t, brc_attrs_set(rk.t.session, "/a", "k", "7", &rk.t.err));
        ck_assert_uint_eq(conflicts_left(), 0);
        scenario_whole(&rk.t);
        sp_back(&rk.t, "x");
        ck_assert_uint_eq(conflicts_left(), before);
        ck_assert_int_eq(rk_number(&rk, 0), 50);
        scenario_whole(&rk.t);
    }
    rk_settle(&rk, BRC_MERGE_OURS); /* not by the session */
    FAILS(&rk.t, BRC_ECONFLICT, brc_savepoint(rk.t.session, BRC_SAVEPOINT_ROLLBACK, "x",
                                              &rk.t.err));
    sp_release(&rk.t, "x");
    ck_assert_uint_eq(conflicts_left(), 0);
    ck_assert_int_eq(rk_goes_on(&rk, 0).result, BRC_PICK_CONFLICT); /* the next one */
}

static int64_t saves_of_all(void)
{
    return scenario_ask(&rk.t, "SELECT count(*) FROM draft WHERE parent IS NOT NULL AND state=1");
}

/* Savepoints end with the step for which they were made. */
LOOP(a_rebase_that_goes_on_or_is_dropped_ends_them, 0, 2)
{
    rk_rebase(&rk, BRC_PICK_KEEP);
    sp_save(&rk.t, "x");
    rk_settle(&rk, BRC_MERGE_THEIRS);
    sp_save(&rk.t, "y");
    scenario_set_number(&rk.t, "/h/b", 3, 99);
    if (_i == 0) {
        ck_assert_int_eq(rk_goes_on(&rk, 0).result, BRC_PICK_CONFLICT); /* the next one */
        ck_assert_int_eq(scenario_number(&rk.t, rk.t.session, "/h/b", 3), 99);
    } else {
        OK(&rk.t, brc_abort(rk.t.repo, &rk.t.err));
        rk_nothing_is_open(&rk);
    }
    ck_assert_int_eq(saves_of_all(), 0);
    FAILS(&rk.t, BRC_ENOTFOUND, brc_savepoint(rk.t.session, BRC_SAVEPOINT_ROLLBACK, "x",
                                              &rk.t.err));
    scenario_whole(&rk.t);
    if (_i == 0) {
        rk_settle(&rk, BRC_MERGE_THEIRS);
        ck_assert_int_eq(rk_goes_on(&rk, 0).result, BRC_PICK_COMMITTED);
        ck_assert_int_eq(scenario_number(&rk.t, rk.t.session, "/h/b", 3), 99);
    }
}

/* ---- a running collection -------------------------------- */

static scenario t;

static void gc_beside_setup(void)
{
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    sp_start(&t);
    scenario_close(&t);
    opts.wait_ms = -1; /* the collection holds its lock while it lets us go on */
    scenario_open(&t, &opts, 0);
}

static void gc_beside_teardown(void)
{
    lock_faults_set(NULL, NULL);
    sp_stop(&t);
}

static struct {
    int tell, hear; /* pipes of the collection to us, and back */
    int locks, each, first;
} turns;

/* In the collection's process: at some of its locks we are let go on. */
static int give_turn(void *ctx)
{
    char byte = 'x';
    (void)ctx;
    if (++turns.locks % turns.each == turns.first &&
        (write(turns.tell, &byte, 1) != 1 || read(turns.hear, &byte, 1) != 1))
        _exit(3);
    return 0;
}

static void collect_in_turns(int tell, int hear)
{
    scenario own = {.err = BRC_ERROR_INIT};
    brc_gc_opts how = BRC_GC_OPTS_INIT;
    brc_gc_report report = BRC_GC_REPORT_INIT;
    memcpy(own.file, t.file, sizeof(own.file));
    scenario_open(&own, NULL, 0);
    turns.tell = tell;
    turns.hear = hear;
    turns.locks = 0;
    lock_faults_set(give_turn, NULL);
    const int rc = brc_gc(own.repo, &how, &report, &own.err);
    lock_faults_set(NULL, NULL);
    _exit(rc != BRC_OK);
}

static int put_one(const char *path, uint64_t i, int32_t value)
{
    brc_array *a;
    brc_sel sel = BRC_SEL_INIT;
    int rc = brc_array_open(&a, t.session, path, &t.err);
    if (rc < 0)
        return rc;
    sel_all(&sel, a);
    sel.start[0] = i;
    sel.count[0] = 1;
    rc = brc_array_write(a, &sel, &value, sizeof(value), &t.err);
    brc_array_free(a);
    return rc;
}

enum { STEPS = 12 };

/* While the collection goes on, a savepoint alone knows the objects of the state that is
 * restored. */
static int take_step(int step, int round)
{
    const int32_t n = 1000 * round;
    switch (step) {
    case 0: return put_one("/a", 0, n + 70);
    case 1: return brc_savepoint(t.session, BRC_SAVEPOINT_SET, "x", &t.err);
    case 2: return put_one("/a", 0, n + 71);
    case 3: return brc_attrs_set(t.session, "/n", "unit", "\"m\"", &t.err);
    case 4: return brc_savepoint(t.session, BRC_SAVEPOINT_SET, "y", &t.err);
    case 5: return put_one("/a", 0, n + 72);
    case 6: return brc_node_remove(t.session, "/g", &t.err);
    case 7: return brc_savepoint(t.session, BRC_SAVEPOINT_ROLLBACK, "y", &t.err);
    case 8: return brc_savepoint(t.session, BRC_SAVEPOINT_RELEASE, "y", &t.err);
    case 9: return brc_savepoint(t.session, BRC_SAVEPOINT_ROLLBACK, "x", &t.err);
    case 10: return put_one("/a", 2, n + 5);
    case 11: return brc_savepoint(t.session, BRC_SAVEPOINT_RELEASE, "x", &t.err);
    default: return scenario_commit_of(&t, t.session, "round", NULL);
    }
}

static void try_step(int *step, int round)
{
    if (*step > STEPS)
        return;
    const int rc = take_step(*step, round);
    ck_assert_msg(rc == BRC_OK || rc == BRC_EBUSY, "step %d: %s", *step, t.err.message);
    *step += rc == BRC_OK;
}

/* How many steps were taken while it ran. */
static int steps_beside_gc(int *step, int round)
{
    int tell[2], hear[2], status;
    char byte;
    const int before = *step;
    ck_assert_int_eq(pipe(tell), 0);
    ck_assert_int_eq(pipe(hear), 0);
    pid_t pid = fork();
    if (pid == 0) {
        close(tell[0]);
        close(hear[1]);
        collect_in_turns(tell[1], hear[0]);
    }
    close(tell[1]);
    close(hear[0]);
    while (read(tell[0], &byte, 1) == 1) {
        try_step(step, round);
        ck_assert_int_eq(write(hear[1], &byte, 1), 1);
    }
    close(tell[0]);
    close(hear[1]);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    return *step - before;
}

CASE("gc", .setup = gc_beside_setup, .teardown = gc_beside_teardown, .timeout = 120);

TEST(nothing_of_a_savepoint_is_collected)
{
    int taken = 0;
    for (int round = 0; round < 12; round++) {
        turns.each = 1 + round % 4;
        turns.first = round % turns.each;
        for (int step = 0; step <= STEPS;) {
            int more = steps_beside_gc(&step, round);
            taken += more;
            scenario_whole(&t);
            try_step(&step, round); /* and between two of them */
        }
        ck_assert_int_eq(sp_number(&t, "/a", 0), 1000 * round + 70);
        ck_assert_int_eq(sp_number(&t, "/a", 2), 1000 * round + 5);
        ck_assert_int_eq(sp_number(&t, "/n", 1), 201);
        ck_assert_int_eq(sp_number(&t, "/g/b", 1), 101);
        scenario_whole(&t);
    }
    ck_assert_int_gt(taken, STEPS);
}
