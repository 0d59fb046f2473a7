/* Rebase: a branch's commits again, on another version. */
#include <stdio.h>

#include "../../src/merge/steps.h"
#include "../kit/fault_vfs.h"
#include "../kit/process_kit.h"
#include "../kit/scenario.h"
#include "../kit/store_kit.h"
#include "../kit/suite.h"
#include "../kit/versions.h"

TEST_SUITE(rebase);

static scenario t;

/* Two commits on main, and on side, the current branch, three that change other things. */
static void rebase_setup(void)
{
    scenario_start(&t);
    scenario_numbers(&t, "/a", 8, 4, 1);
    scenario_numbers(&t, "/g/b", 8, 4, 1);
    scenario_commit(&t, "base");
    OK(&t, brc_ref_create(t.repo, "side", NULL, NULL, 0, &t.err));
    scenario_set_number(&t, "/a", 0, 50);
    scenario_commit(&t, "main 1");
    OK(&t, brc_node_move(t.session, "/g", "/h", 0, &t.err));
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

CASE("rebase", .setup = rebase_setup, .teardown = rebase_teardown);

TEST(r1_it_has_what_a_merge_has)
{
    brc_merge_result merged = BRC_MERGE_RESULT_INIT;
    brc_pick_result r;
    OK(&t, brc_ref_create(t.repo, "merged", "main", NULL, 0, &t.err));
    scenario_be_on(&t, "merged");
    OK(&t, brc_merge(&merged, NULL, t.repo, "side", NULL, &t.err));
    scenario_be_on(&t, "side");
    OK(&t, rebase_onto("main", &r));
    ck_assert_int_eq(r.result, BRC_PICK_COMMITTED);
    ck_assert_uint_eq(r.made, 3);
    ck_assert(same_root("merged", "side"));
    check_rebased();
}

TEST(r2_undo_takes_all_of_it_back)
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

/* The third of them is in conflict: the first two are not there either. */
TEST(r3_a_conflict_changes_nothing)
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
    ck_assert_int_eq(brc_next(it, &c, &t.err), 1);
    ck_assert_str_eq(c->path, "/a");
    ck_assert_str_eq(c->kind, "chunk");
    brc_iter_free(it);
    ck_assert(scenario_same(scenario_id(&t, "side"), at));
    ck_assert_int_eq(scenario_ask(&t, "SELECT count(*) FROM oplog"), rows);
    scenario_whole(&t);
}

TEST(r4_what_is_there_is_left_out)
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

TEST(r5_what_cannot_be_is_refused)
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

/* ---- others meanwhile -------------------------------- */

TEST(r6_what_is_made_is_not_collected_meanwhile)
{
    other_handle o = OTHER_COLLECTS;
    brc_pick_result r;
    other_begins(&t, &o);
    OK(&t, rebase_onto("main", &r));
    other_ends(&o);
    check_rebased();
}

/* HISTORY-FACTS, scenario 18: what somebody has taken off it meanwhile does not come back. */
TEST(r7_a_branch_that_moved_meanwhile_is_rebased_as_it_is_then)
{
    other_handle o = {.act = other_resets_side, .most = 1};
    brc_pick_result r;
    other_begins(&t, &o);
    OK(&t, rebase_onto("main", &r));
    other_ends(&o);
    ck_assert_uint_eq(r.made, 2);
    ck_assert(scenario_same(scenario_id(&t, "side~2"), scenario_id(&t, "main")));
    brc_commit *tip = scenario_commit_at(&t, "side");
    ck_assert_str_eq(tip->message, "side 2");
    brc_commit_free(tip);
    scenario_whole(&t);
}

/* ---- killed -------------------------------- */

static fault_vfs disk;

static int run_rebase(void *ctx)
{
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    brc_pick_result r = BRC_PICK_RESULT_INIT;
    breccia *repo;
    opts.vfs = FAULT_VFS_NAME;
    int rc = scenario_connect(&repo, t.file, &opts, NULL);
    if (rc < 0)
        return rc;
    fault_vfs_kill(&disk, FAULT_CHANGES, *(const uint64_t *)ctx);
    rc = brc_rebase(&r, NULL, repo, "main", NULL, NULL);
    brc_free(repo);
    return rc;
}

CASE("killed", .setup = rebase_setup, .teardown = rebase_teardown, .timeout = 300);

/* At every write: the branch is where it was, or where it was to be, and the rest can be done. */
TEST(r8_rebase_killed)
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

/* A branch from before main's commits, with n of its own: each writes into a group that main has
 * moved, and one moves an array. */
static void make_long(int n)
{
    OK(&t, brc_ref_create(t.repo, "long", "main~2", NULL, 0, &t.err));
    scenario_be_on(&t, "long");
    for (int i = 0; i < n; i++) {
        if (i == 2)
            OK(&t, brc_node_move(t.session, "/a", "/g/c", 0, &t.err));
        scenario_set_number(&t, "/g/b", (uint64_t)i % 8, 1000 + i);
        scenario_commit(&t, "one of many");
    }
}

CASE("rebase");

/* Where the two parted is looked for once, however many commits follow: what moved is told from
 * step to step. */
LOOP(r9_what_moved_is_carried_along, 0, 2)
{
    const int n = 6 * (_i == 0 ? 1 : 4);
    make_long(n);
    const brc_oid main_id = scenario_id(&t, "main");
    brc_steps q = {.repo = t.repo, .on = "long", .op = "rebase", .doing = "it is rebased",
                   .is_rebase = 1, .onto = main_id};
    OK(&t, brc_steps_start(&q, &t.err));
    OK(&t, brc_steps_add_line(&q, &q.tip, &main_id, &t.err));
    OK(&t, brc_steps_go_to(&q, &main_id, &t.err));
    OK(&t, brc_steps_run(&q, &t.err));
    ck_assert_uint_eq(q.result.made, (uint64_t)n);
    ck_assert_uint_eq(q.carried.searches, 1);
    brc_steps_dispose(&q);
    for (int i = n - 8 > 0 ? n - 8 : 0; i < n; i++)
        ck_assert_int_eq(scenario_number(&t, t.session, "/h/b", (uint64_t)i % 8), 1000 + i);
    ck_assert_int_eq(scenario_number(&t, t.session, "/h/c", 0), 50);
    scenario_whole(&t);
}
