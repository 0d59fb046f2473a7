/* Rebase: a branch's commits again, on another version. */
#include <check.h>
#include <stdio.h>

#include "../../src/merge/sequence.h"
#include "../kit/fault_vfs.h"
#include "../kit/process_kit.h"
#include "../kit/scenario.h"
#include "../kit/store_kit.h"
#include "../kit/versions.h"

Suite *rebase_suite(void);

static scenario t;

/* Two commits on main, and on side, the current branch, three that change other things. */
static void rebase_setup(void)
{
    scenario_start(&t);
    scenario_numbers(&t, "/a", 8, 4, 1);
    scenario_numbers(&t, "/g/b", 8, 4, 1);
    scenario_commit(&t, "base");
    OK(&t, brc_branch_create(t.repo, "side", NULL, &t.err));
    scenario_set_number(&t, "/a", 0, 50);
    scenario_commit(&t, "main 1");
    OK(&t, brc_node_move(t.session, "/g", "/h", &t.err));
    scenario_commit(&t, "main 2");
    scenario_be_on(&t, "side");
    scenario_set_number(&t, "/a", 1, 60);
    scenario_commit(&t, "side 1");
    scenario_set_number(&t, "/g/b", 1, 61);
    scenario_commit(&t, "side 2");
    scenario_numbers(&t, "/g/n", 4, 4, 5);
    scenario_commit(&t, "side 3");
}

static void rebase_teardown(void)
{
    scenario_stop(&t);
}

static int rebase_onto(const char *onto, brc_pick_result *out)
{
    const brc_pick_result none = BRC_PICK_RESULT_INIT;
    *out = none;
    return brc_rebase(out, NULL, t.repo, onto, NULL, &t.err);
}

static int same_root(const char *a, const char *b)
{
    brc_commit *x = scenario_commit_at(&t, a), *y = scenario_commit_at(&t, b);
    const int same = scenario_same(x->root, y->root);
    brc_commit_free(x);
    brc_commit_free(y);
    return same;
}

static void check_rebased(void)
{
    static const char *const messages[] = {"side 3", "side 2", "side 1", "main 2"};
    char rev[24];
    for (int i = 0; i < 4; i++) {
        snprintf(rev, sizeof(rev), "side~%d", i);
        brc_commit *c = scenario_commit_at(&t, rev);
        ck_assert_str_eq(c->message, messages[i]);
        brc_commit_free(c);
    }
    ck_assert(scenario_same(scenario_id(&t, "side~3"), scenario_id(&t, "main")));
    scenario_be_on(&t, "side");
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 0), 50);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 1), 60);
    ck_assert_int_eq(scenario_number(&t, t.session, "/h/b", 1), 61);
    ck_assert_int_eq(scenario_number(&t, t.session, "/h/n", 3), 8);
    scenario_whole(&t);
}

START_TEST(r1_it_has_what_a_merge_has)
{
    brc_merge_result merged = BRC_MERGE_RESULT_INIT;
    brc_pick_result r;
    OK(&t, brc_branch_create(t.repo, "merged", "main", &t.err));
    scenario_be_on(&t, "merged");
    OK(&t, brc_merge(&merged, NULL, t.repo, "side", NULL, &t.err));
    scenario_be_on(&t, "side");
    OK(&t, rebase_onto("main", &r));
    ck_assert_int_eq(r.result, BRC_PICK_COMMITTED);
    ck_assert_uint_eq(r.made, 3);
    ck_assert(same_root("merged", "side"));
    check_rebased();
}
END_TEST

START_TEST(r2_undo_takes_all_of_it_back)
{
    brc_pick_result r;
    const brc_oid before = scenario_id(&t, "side");
    OK(&t, rebase_onto("main", &r));
    const brc_oid after = scenario_id(&t, "side");
    OK(&t, brc_undo(NULL, t.repo, 0, 0, &t.err));
    ck_assert(scenario_same(scenario_id(&t, "side"), before));
    OK(&t, brc_undo(NULL, t.repo, BRC_UNDO_REDO, 0, &t.err));
    ck_assert(scenario_same(scenario_id(&t, "side"), after));
    check_rebased();
}
END_TEST

/* The third of them is in conflict: the first two are not there either. */
START_TEST(r3_a_conflict_changes_nothing)
{
    brc_pick_result r;
    brc_iter *it;
    const brc_conflict *c;
    scenario_set_number(&t, "/a", 0, 70);
    const brc_oid at = scenario_commit(&t, "side 4");
    const int64_t rows = scenario_ask(&t, "SELECT count(*) FROM oplog");
    const brc_pick_result none = BRC_PICK_RESULT_INIT;
    r = none;
    OK(&t, brc_rebase(&r, &it, t.repo, "main", NULL, &t.err));
    ck_assert_int_eq(r.result, BRC_PICK_CONFLICT);
    ck_assert_uint_eq(r.conflicts, 1);
    ck_assert(scenario_same(r.at, at));
    ck_assert_int_eq(brc_conflicts_next(it, &c, &t.err), 1);
    ck_assert_str_eq(c->path, "/a");
    ck_assert_str_eq(c->kind, "chunk");
    brc_iter_free(it);
    ck_assert(scenario_same(scenario_id(&t, "side"), at));
    ck_assert_int_eq(scenario_ask(&t, "SELECT count(*) FROM oplog"), rows);
    scenario_whole(&t);
}
END_TEST

START_TEST(r4_what_is_there_is_left_out)
{
    brc_pick_result r, picked = BRC_PICK_RESULT_INIT;
    scenario_be_on(&t, "main");
    OK(&t, brc_pick(&picked, NULL, t.repo, "side~2", NULL, &t.err));
    scenario_be_on(&t, "side");
    OK(&t, rebase_onto("main", &r));
    ck_assert_uint_eq(r.made, 2);
    ck_assert_uint_eq(r.skipped, 1);
    ck_assert(scenario_same(scenario_id(&t, "side~2"), scenario_id(&t, "main")));
    scenario_whole(&t);
}
END_TEST

START_TEST(r5_what_cannot_be_is_refused)
{
    brc_pick_opts opts = BRC_PICK_OPTS_INIT;
    brc_pick_result r = BRC_PICK_RESULT_INIT;
    const brc_oid before = scenario_id(&t, "side");
    FAILS(&t, BRC_ENOTFOUND, rebase_onto("nowhere", &r));
    opts.flags = BRC_PICK_NO_COMMIT;
    FAILS(&t, BRC_EINVAL, brc_rebase(&r, NULL, t.repo, "main", &opts, &t.err));
    opts.flags = 0;
    opts.message = "one for all";
    FAILS(&t, BRC_EINVAL, brc_rebase(&r, NULL, t.repo, "main", &opts, &t.err));
    scenario_set_number(&t, "/a", 5, 5);
    FAILS(&t, BRC_ECONFLICT, rebase_onto("main", &r));
    ck_assert(scenario_same(scenario_id(&t, "side"), before));
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 5), 5);
}
END_TEST

/* ---- others meanwhile -------------------------------- */

typedef struct other {
    breccia *repo;
    int collects, done;
} other;

/* Another process is at work, whenever the rebase lets it in. */
static int others_turn(void *ctx, const char *phase, uint64_t done, uint64_t total)
{
    other *o = ctx;
    brc_gc_report report = BRC_GC_REPORT_INIT;
    (void)phase;
    (void)done;
    (void)total;
    if (o->repo == NULL || o->done >= (o->collects ? 3 : 1))
        return 0;
    o->done += o->collects ? brc_gc(o->repo, NULL, &report, NULL) == BRC_OK
                           : brc_reset(o->repo, "side~1", BRC_RESET_HARD, NULL, NULL) == BRC_OK;
    return 0;
}

static void begin_with(other *o)
{
    brc_open_opts opts = BRC_OPEN_OPTS_INIT, alone = BRC_OPEN_OPTS_INIT;
    OK(&t, brc_config_set(t.repo, "window", "0", &t.err));
    scenario_close(&t);
    opts.progress = others_turn;
    opts.progress_ctx = o;
    scenario_open(&t, &opts, 0);
    alone.wait_ms = 1;
    OK(&t, brc_open(&o->repo, t.file, &alone, &t.err));
}

static void end_with(other *o)
{
    brc_free(o->repo);
    o->repo = NULL;
    ck_assert_int_gt(o->done, 0);
}

START_TEST(r6_what_is_made_is_not_collected_meanwhile)
{
    other o = {NULL, 1, 0};
    brc_pick_result r;
    begin_with(&o);
    OK(&t, rebase_onto("main", &r));
    end_with(&o);
    check_rebased();
}
END_TEST

/* HISTORY-FACTS, scenario 18: what somebody has taken off it meanwhile does not come back. */
START_TEST(r7_a_branch_that_moved_meanwhile_is_rebased_as_it_is_then)
{
    other o = {NULL, 0, 0};
    brc_pick_result r;
    begin_with(&o);
    OK(&t, rebase_onto("main", &r));
    end_with(&o);
    ck_assert_uint_eq(r.made, 2);
    ck_assert(scenario_same(scenario_id(&t, "side~2"), scenario_id(&t, "main")));
    brc_commit *tip = scenario_commit_at(&t, "side");
    ck_assert_str_eq(tip->message, "side 2");
    brc_commit_free(tip);
    scenario_whole(&t);
}
END_TEST

/* ---- killed -------------------------------- */

static fault_vfs disk;

static int run_rebase(void *ctx)
{
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    brc_pick_result r = BRC_PICK_RESULT_INIT;
    breccia *repo;
    opts.vfs = FAULT_VFS_NAME;
    int rc = brc_open(&repo, t.file, &opts, NULL);
    if (rc < 0)
        return rc;
    fault_vfs_kill(&disk, FAULT_CHANGES, *(const uint64_t *)ctx);
    rc = brc_rebase(&r, NULL, repo, "main", NULL, NULL);
    brc_free(repo);
    return rc;
}

/* At every write: the branch is where it was, or where it was to be, and the rest can be done. */
START_TEST(r8_rebase_killed)
{
    const brc_oid before = scenario_id(&t, "side");
    brc_pick_result r;
    int as_it_was = 0, dead = 1;
    uint64_t moment;
    scenario_close(&t);
    brc_buf all = store_kit_read(t.file);
    fault_vfs_register(&disk);
    for (moment = 1; dead; moment++) {
        store_kit_put_alone(t.file, &all);
        dead = !process_survives(run_rebase, &moment);
        scenario_open(&t, NULL, 0);
        scenario_whole(&t);
        if (scenario_same(scenario_id(&t, "side"), before)) {
            as_it_was++;
            OK(&t, rebase_onto("main", &r));
        }
        check_rebased();
        scenario_close(&t);
    }
    fault_vfs_unregister(&disk);
    brc_buf_dispose(&all);
    ck_assert_int_gt(as_it_was, 10);
    scenario_open(&t, NULL, 0);
}
END_TEST

/* A branch from before main's commits, with n of its own: each writes into a group that main has
 * moved, and one moves an array. */
static void make_long(int n)
{
    OK(&t, brc_branch_create(t.repo, "long", "main~2", &t.err));
    scenario_be_on(&t, "long");
    for (int i = 0; i < n; i++) {
        if (i == 2)
            OK(&t, brc_node_move(t.session, "/a", "/g/c", &t.err));
        scenario_set_number(&t, "/g/b", (uint64_t)i % 8, 1000 + i);
        scenario_commit(&t, "one of many");
    }
}

/* The i-th of n, done again. */
static void step_of(brc_sequence *q, int i, int n)
{
    char rev[24];
    int result;
    brc_step step = {.is_last = i + 1 == n};
    snprintf(rev, sizeof(rev), "long~%d", n - 1 - i);
    brc_commit *c = scenario_commit_at(&t, rev);
    step.like = *c;
    step.change = (brc_step_change){.has_base = 1, .base = c->parents[0], .has_theirs = 1,
                                    .theirs = c->id};
    OK(&t, brc_sequence_step(q, &step, &result, &t.err));
    ck_assert_int_eq(result, BRC_STEP_DONE);
    brc_commit_free(c);
}

/* Where the two parted is looked for once, however many commits follow: what moved is told from
 * step to step. */
START_TEST(r9_what_moved_is_carried_along)
{
    const int n = 6 * (_i == 0 ? 1 : 4);
    make_long(n);
    const brc_oid main_id = scenario_id(&t, "main");
    brc_sequence q = {.repo = t.repo, .on = "long", .op = "rebase", .doing = "it is rebased"};
    OK(&t, brc_sequence_start(&q, &t.err));
    OK(&t, brc_sequence_go_to(&q, &main_id, &t.err));
    for (int i = 0; i < n; i++)
        step_of(&q, i, n);
    OK(&t, brc_sequence_end(&q, &t.err));
    ck_assert_uint_eq(q.carried.searches, 1);
    brc_sequence_dispose(&q);
    for (int i = n - 8 > 0 ? n - 8 : 0; i < n; i++)
        ck_assert_int_eq(scenario_number(&t, t.session, "/h/b", (uint64_t)i % 8), 1000 + i);
    ck_assert_int_eq(scenario_number(&t, t.session, "/h/c", 0), 50);
    scenario_whole(&t);
}
END_TEST

Suite *rebase_suite(void)
{
    Suite *s = suite_create("rebase");
    TCase *c = tcase_create("rebase");
    tcase_add_checked_fixture(c, rebase_setup, rebase_teardown);
    tcase_add_test(c, r1_it_has_what_a_merge_has);
    tcase_add_test(c, r2_undo_takes_all_of_it_back);
    tcase_add_test(c, r3_a_conflict_changes_nothing);
    tcase_add_test(c, r4_what_is_there_is_left_out);
    tcase_add_test(c, r5_what_cannot_be_is_refused);
    tcase_add_test(c, r6_what_is_made_is_not_collected_meanwhile);
    tcase_add_test(c, r7_a_branch_that_moved_meanwhile_is_rebased_as_it_is_then);
    tcase_add_loop_test(c, r9_what_moved_is_carried_along, 0, 2);
    suite_add_tcase(s, c);
    TCase *killed = tcase_create("killed");
    tcase_set_timeout(killed, 300);
    tcase_add_checked_fixture(killed, rebase_setup, rebase_teardown);
    tcase_add_test(killed, r8_rebase_killed);
    suite_add_tcase(s, killed);
    return s;
}
