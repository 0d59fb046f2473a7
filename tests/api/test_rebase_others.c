/* Open rebases and others: those who move the branch, write, collect, expire, end, or do damage. */
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../kit/rebase_kit.h"
#include "../kit/suite.h"

TEST_SUITE(rebase_others);

static rebase_kit k;

static void setup(void)
{
    rk_start(&k);
}

static void teardown(void)
{
    rk_stop(&k);
}

CASE("open", .setup = setup, .teardown = teardown, .timeout = 300);

/* ---- others -------------------------------- */

TEST(o1_others_do_not_end_it)
{
    brc_merge_result m = BRC_MERGE_RESULT_INIT;
    brc_pick_result r = BRC_PICK_RESULT_INIT;
    brc_pick_opts keep = BRC_PICK_OPTS_INIT, words = BRC_PICK_OPTS_INIT;
    keep.flags = BRC_PICK_KEEP;
    words.author = "Bob";
    FAILS(&k.t, BRC_EMISUSE, brc_continue(&r, NULL, k.t.repo, NULL, &k.t.err));
    FAILS(&k.t, BRC_EMISUSE, rk_continue(&r, k.t.repo, BRC_PICK_SKIP, &k.t.err));
    FAILS(&k.t, BRC_EINVAL, rk_continue(&r, k.t.repo, 2, &k.t.err));
    rk_rebase(&k, BRC_PICK_KEEP);
    FAILS(&k.t, BRC_EINVAL, brc_continue(&r, NULL, k.t.repo, &words, &k.t.err));
    ck_assert_ptr_nonnull(strstr(k.t.err.message, "a rebase keeps"));
    FAILS(&k.t, BRC_ECONFLICT, scenario_commit_of(&k.t, k.t.session, "no", NULL));
    ck_assert_ptr_nonnull(strstr(k.t.err.message, "rebase --continue"));
    FAILS(&k.t, BRC_ECONFLICT, brc_rebase(&r, NULL, k.t.repo, "main", &keep, &k.t.err));
    FAILS(&k.t, BRC_ECONFLICT, brc_pick(&r, NULL, k.t.repo, "main", NULL, &k.t.err));
    FAILS(&k.t, BRC_ECONFLICT, brc_merge(&m, NULL, k.t.repo, "main", NULL, &k.t.err));
    FAILS(&k.t, BRC_ECONFLICT, brc_reset(k.t.repo, NULL, "side~1", 0, NULL, &k.t.err));
    FAILS(&k.t, BRC_ECONFLICT, brc_switch(k.t.repo, "main", 0, &k.t.err));
    OK(&k.t, brc_begin(k.t.repo, &k.t.err));
    FAILS(&k.t, BRC_EMISUSE, brc_continue(&r, NULL, k.t.repo, NULL, &k.t.err));
    OK(&k.t, brc_end(k.t.repo, 0, &k.t.err));
    OK(&k.t, brc_abort(k.t.repo, &k.t.err));
    OK(&k.t, brc_pick(&r, NULL, k.t.repo, "main", &keep, &k.t.err));
    FAILS(&k.t, BRC_EMISUSE, rk_continue(&r, k.t.repo, BRC_PICK_SKIP, &k.t.err));
    ck_assert_ptr_nonnull(strstr(k.t.err.message, "cherry-pick --abort"));
}

static void commit_attr(scenario *t)
{
    OK(t, brc_attrs_set(t->session, "/a", "own", "1", &t->err));
}

static void change_too(scenario *t)
{
    scenario_set_number(t, "/a", 0, 88); /* side[1] did, too */
}

/* Commits of others on the branch are rebased behind the rest, as if they had been there from the
 * start. */
LOOP(o2_a_branch_that_has_moved_is_rebased_with_what_is_new, 0, 2)
{
    brc_buf attr = BRC_BUF_INIT;
    const int skips = _i == 1;
    rk_rebase(&k, BRC_PICK_KEEP);
    rk_settle(&k, BRC_MERGE_THEIRS);
    const brc_oid there = scenario_elsewhere(&k.t, "side", commit_attr);
    scenario_look_again(&k.t);
    brc_pick_result r = rk_goes_on(&k, skips ? BRC_PICK_SKIP : 0);
    ck_assert_int_eq(r.result, BRC_PICK_CONFLICT);
    ck_assert(scenario_same(r.at, k.side[3]));
    ck_assert_uint_eq(r.left, 2);
    ck_assert_uint_eq(rk_open(&k).left, 2);
    ck_assert(scenario_same(scenario_id(&k.t, "side"), there));
    rk_settle(&k, BRC_MERGE_THEIRS);
    scenario_look_again(&k.t);
    r = rk_goes_on(&k, 0);
    ck_assert_int_eq(r.result, BRC_PICK_COMMITTED);
    ck_assert_uint_eq(r.made, skips ? 5 : 6);
    ck_assert_uint_eq(r.skipped, (uint64_t)skips);
    scenario_look_again(&k.t);
    rk_nothing_is_open(&k);
    ck_assert(scenario_same(scenario_id(&k.t, skips ? "side~5" : "side~6"), k.main_tip));
    ck_assert_int_eq(rk_number(&k, 0), skips ? 50 : 61);
    ck_assert_int_eq(rk_number(&k, 8), 64);
    OK(&k.t, brc_attrs_get(&attr, k.t.session, "/a", "own", &k.t.err));
    brc_buf_dispose(&attr);
    ck_assert_int_eq(rk_rows(&k), 1);
    OK(&k.t, brc_undo(NULL, k.t.repo, 0, 0, &k.t.err));
    ck_assert(scenario_same(scenario_id(&k.t, "side"), there));
}

/* The result is that of a rebase that was begun after their commits. */
TEST(o2b_it_is_the_rebase_that_was_begun_later)
{
    brc_pick_opts opts = BRC_PICK_OPTS_INIT;
    brc_pick_result r = BRC_PICK_RESULT_INIT;
    rk_rebase(&k, BRC_PICK_KEEP);
    rk_settle(&k, BRC_MERGE_THEIRS);
    rk_goes_on(&k, 0);
    rk_settle(&k, BRC_MERGE_THEIRS);
    scenario_elsewhere(&k.t, "side", change_too);
    scenario_look_again(&k.t);
    ck_assert_int_eq(rk_goes_on(&k, 0).result, BRC_PICK_COMMITTED);
    scenario_look_again(&k.t);
    ck_assert_int_eq(rk_number(&k, 0), 88);
    const brc_oid slow = scenario_root(&k.t, "side");
    OK(&k.t, brc_undo(NULL, k.t.repo, 0, 0, &k.t.err));
    opts.flags = BRC_PICK_THEIRS;
    OK(&k.t, brc_rebase(&r, NULL, k.t.repo, "main", &opts, &k.t.err));
    ck_assert(scenario_same(slow, scenario_root(&k.t, "side")));
}

/* The commits of the target that a merge brought are there already. */
TEST(o2c_merges_on_the_branch_are_left_out)
{
    brc_merge_opts merge = BRC_MERGE_OPTS_INIT;
    brc_merge_result m = BRC_MERGE_RESULT_INIT;
    merge.flags = BRC_MERGE_THEIRS;
    OK(&k.t, brc_merge(&m, NULL, k.t.repo, "main", &merge, &k.t.err));
    OK(&k.t, brc_undo(NULL, k.t.repo, 0, 0, &k.t.err));
    rk_rebase(&k, BRC_PICK_KEEP);
    OK(&k.t, brc_undo(NULL, k.t.repo, BRC_UNDO_REDO, 0, &k.t.err));
    ck_assert(scenario_same(scenario_id(&k.t, "side"), m.commit));
    rk_settle(&k, BRC_MERGE_OURS);
    ck_assert_uint_eq(rk_goes_on(&k, 0).left, 1);
    rk_settle(&k, BRC_MERGE_OURS);
    ck_assert_int_eq(rk_goes_on(&k, 0).result, BRC_PICK_COMMITTED);
    scenario_look_again(&k.t);
    rk_nothing_is_open(&k);
}

/* Also where it comes to the very commit over which the draft lies. */
TEST(o3_undo_does_not_make_the_draft_follow)
{
    brc_pick_result r = BRC_PICK_RESULT_INIT;
    OK(&k.t, brc_reset(k.t.repo, NULL, "side~5", BRC_RESET_HARD, NULL, &k.t.err));
    scenario_set_number(&k.t, "/a", 2, 63);
    const brc_oid alone = scenario_commit(&k.t, "alone");
    char hex[65];
    for (int i = 0; i < 32; i++)
        snprintf(hex + 2 * i, 3, "%02x", alone.bytes[i]);
    hex[32] = '\0';
    OK(&k.t, brc_reset(k.t.repo, NULL, "main", BRC_RESET_HARD, NULL, &k.t.err));
    OK(&k.t, brc_reset(k.t.repo, NULL, hex, BRC_RESET_HARD, NULL, &k.t.err));
    ck_assert_uint_eq(rk_rebase(&k, BRC_PICK_KEEP).made, 0);
    rk_settle(&k, BRC_MERGE_THEIRS);
    OK(&k.t, brc_undo(NULL, k.t.repo, 0, 0, &k.t.err));
    ck_assert(scenario_same(scenario_id(&k.t, "side"), k.main_tip));
    FAILS(&k.t, BRC_ESTALE, brc_continue(&r, NULL, k.t.repo, NULL, &k.t.err));
    ck_assert_ptr_nonnull(strstr(k.t.err.message, "rebase --abort"));
    FAILS(&k.t, BRC_ESTALE, rk_continue(&r, k.t.repo, BRC_PICK_SKIP, &k.t.err));
    ck_assert_uint_eq(rk_open(&k).open, 0);
    OK(&k.t, brc_undo(NULL, k.t.repo, BRC_UNDO_REDO, 0, &k.t.err));
    ck_assert_int_eq(rk_goes_on(&k, 0).result, BRC_PICK_COMMITTED);
    scenario_look_again(&k.t);
}

TEST(o4_it_goes_along_with_its_branch)
{
    rk_rebase(&k, BRC_PICK_KEEP);
    OK(&k.t, brc_ref_rename(k.t.repo, "side", "aside", 0, &k.t.err));
    scenario_look_again(&k.t);
    rk_settle(&k, BRC_MERGE_THEIRS);
    ck_assert_uint_eq(rk_goes_on(&k, 0).made, 3);
    scenario_look_again(&k.t);
    OK(&k.t, brc_ref_rename(k.t.repo, "aside", "side", 0, &k.t.err));
    rk_settle(&k, BRC_MERGE_THEIRS);
    ck_assert_uint_eq(rk_goes_on(&k, 0).made, 5);
    scenario_look_again(&k.t);
    rk_commit_is(&k, "side", "five", "Bob", "{}", 15000000);
}

/* Nobody sees it without its branch, which may be deleted when it is not the current one. */
TEST(o5_it_comes_back_with_its_branch)
{
    OK(&k.t, brc_switch(k.t.repo, "main", 0, &k.t.err));
    OK(&k.t, brc_switch(k.t.repo, "side", 0, &k.t.err));
    rk_rebase(&k, BRC_PICK_KEEP);
    rk_settle(&k, BRC_MERGE_THEIRS);
    const int64_t draft = rk_open(&k).draft;
    OK(&k.t, brc_undo(NULL, k.t.repo, 0, 0, &k.t.err)); /* the switch */
    scenario_no_window(&k.t);
    OK(&k.t, brc_ref_delete(k.t.repo, "side", BRC_DELETE_FORCE, &k.t.err));
    scenario_look_again(&k.t);
    FAILS(&k.t, BRC_EMISUSE, brc_draft_adopt(k.t.repo, draft, &k.t.err));
    OK(&k.t, brc_gc(k.t.repo, NULL, NULL, &k.t.err));
    OK(&k.t, brc_undo(NULL, k.t.repo, 0, 0, &k.t.err));
    scenario_look_again(&k.t);
    OK(&k.t, brc_switch(k.t.repo, "side", 0, &k.t.err));
    scenario_reopen(&k.t);
    ck_assert_int_eq(rk_open(&k).draft, draft);
    ck_assert_uint_eq(rk_open(&k).conflicts, 2);
    ck_assert_uint_eq(rk_open(&k).open, 0);
    brc_pick_result r = rk_goes_on(&k, 0);
    rk_stopped_at(&k, &r, 3, 3, 0);
    scenario_look_again(&k.t);
}

static int write_there(breccia *repo)
{
    brc_session *s;
    if (brc_session_open(&s, repo, NULL, BRC_SESSION_WRITE, NULL) < 0)
        return 0;
    const int rc = brc_attrs_set(s, "/a", "late", "1", NULL);
    brc_session_free(s);
    return rc == BRC_OK;
}

/* The draft alone keeps the commits that the rebase has made so far; the branch that they go onto
 * has been deleted. */
TEST(o6_collections_keep_what_it_needs)
{
    brc_gc_report report = BRC_GC_REPORT_INIT;
    scenario_no_window(&k.t);
    rk_rebase(&k, BRC_PICK_KEEP);
    OK(&k.t, brc_ref_delete(k.t.repo, "main", BRC_DELETE_FORCE, &k.t.err));
    for (int i = 0; i < 2; i++) {
        OK(&k.t, brc_gc(k.t.repo, NULL, &report, &k.t.err));
        scenario_look_again(&k.t);
        rk_settle(&k, BRC_MERGE_THEIRS);
        OK(&k.t, brc_gc(k.t.repo, NULL, &report, &k.t.err));
        scenario_look_again(&k.t);
        rk_goes_on(&k, 0);
    }
    OK(&k.t, brc_gc(k.t.repo, NULL, &report, &k.t.err));
    scenario_look_again(&k.t);
    rk_nothing_is_open(&k);
    ck_assert(scenario_same(scenario_id(&k.t, "side~5"), k.main_tip));
    ck_assert_int_eq(rk_number(&k, 8), 64);
}

TEST(o7_what_it_makes_is_not_collected_meanwhile)
{
    other_handle o = OTHER_COLLECTS;
    rk_rebase(&k, BRC_PICK_KEEP);
    rk_settle(&k, BRC_MERGE_THEIRS);
    other_begins(&k.t, &o);
    brc_pick_result r = rk_goes_on(&k, 0);
    other_ends(&o);
    scenario_reopen(&k.t);
    rk_stopped_at(&k, &r, 3, 3, 0);
    scenario_whole(&k.t);
    rk_settle(&k, BRC_MERGE_THEIRS);
    ck_assert_int_eq(rk_goes_on(&k, 0).result, BRC_PICK_COMMITTED);
    scenario_look_again(&k.t);
}

TEST(o8_what_is_written_meanwhile_is_not_lost)
{
    other_handle o = {.act = write_there, .most = 1};
    brc_pick_result r;
    brc_buf attrs = BRC_BUF_INIT;
    rk_rebase(&k, BRC_PICK_KEEP);
    rk_settle(&k, BRC_MERGE_THEIRS);
    other_begins(&k.t, &o);
    r = rk_goes_on(&k, 0);
    other_ends(&o);
    scenario_reopen(&k.t);
    scenario_whole(&k.t);
    rk_stopped_at(&k, &r, 3, 3, 0);
    OK(&k.t, brc_attrs_get(&attrs, k.t.session, "/a", "late", &k.t.err));
    brc_buf_dispose(&attrs);
}

TEST(o9_a_branch_that_moves_meanwhile_stays_where_it_is)
{
    other_handle o = {.act = other_resets_side, .most = 1};
    brc_pick_result r = BRC_PICK_RESULT_INIT;
    const brc_oid there = scenario_id(&k.t, "side~1");
    rk_rebase(&k, BRC_PICK_KEEP);
    rk_settle(&k, BRC_MERGE_THEIRS);
    other_begins(&k.t, &o);
    FAILS(&k.t, BRC_EMISUSE, brc_continue(&r, NULL, k.t.repo, NULL, &k.t.err));
    other_ends(&o);
    scenario_reopen(&k.t);
    ck_assert(scenario_same(scenario_id(&k.t, "side"), there));
    scenario_whole(&k.t);
    rk_nothing_is_open(&k); /* a reset takes what is open along */
}

TEST(oa_history_that_expires_leaves_it_what_it_needs)
{
    brc_expire_opts rules = BRC_EXPIRE_OPTS_INIT;
    brc_gc_report report = BRC_GC_REPORT_INIT;
    scenario_no_window(&k.t);
    rk_rebase(&k, BRC_PICK_KEEP);
    rules.keep_last = 1;
    OK(&k.t, brc_expire(NULL, NULL, k.t.repo, &rules, &k.t.err));
    OK(&k.t, brc_gc(k.t.repo, NULL, &report, &k.t.err));
    scenario_look_again(&k.t);
    rk_settle(&k, BRC_MERGE_THEIRS);
    rk_goes_on(&k, 0);
    OK(&k.t, brc_expire(NULL, NULL, k.t.repo, &rules, &k.t.err));
    OK(&k.t, brc_gc(k.t.repo, NULL, &report, &k.t.err));
    scenario_look_again(&k.t);
    rk_settle(&k, BRC_MERGE_THEIRS);
    ck_assert_uint_eq(rk_goes_on(&k, 0).made, 5);
    scenario_look_again(&k.t);
    ck_assert_int_eq(rk_number(&k, 0), 61);
    ck_assert_int_eq(rk_number(&k, 2), 63);
}

/* ---- processes -------------------------------- */

static int rebase_there(breccia *repo)
{
    brc_pick_opts opts = BRC_PICK_OPTS_INIT;
    brc_pick_result r = BRC_PICK_RESULT_INIT;
    opts.flags = BRC_PICK_KEEP;
    return brc_rebase(&r, NULL, repo, "main", &opts, NULL);
}

static int settle_there(breccia *repo)
{
    uint64_t n;
    return brc_merge_settle(&n, repo, BRC_MERGE_THEIRS, NULL, 0, NULL);
}

static int go_on_there(breccia *repo)
{
    brc_pick_result r = BRC_PICK_RESULT_INIT;
    return brc_continue(&r, NULL, repo, NULL, NULL);
}

TEST(p1_processes_that_are_gone_leave_it_open)
{
    scenario_in_killed_child(&k.t, rebase_there);
    ck_assert_uint_eq(rk_open(&k).open, 2);
    scenario_in_killed_child(&k.t, settle_there);
    ck_assert_uint_eq(rk_open(&k).open, 0);
    scenario_in_killed_child(&k.t, go_on_there);
    ck_assert_uint_eq(rk_open(&k).made, 3);
    scenario_in_killed_child(&k.t, settle_there);
    scenario_in_killed_child(&k.t, go_on_there);
    rk_nothing_is_open(&k);
    rk_commit_is(&k, "side", "five", "Bob", "{}", 15000000);
}

CASE("damage", .timeout = 300);

/* ---- damage -------------------------------- */

TEST(d1_broken_plans_are_reported)
{
#define PLAN_SUM                                                                                   \
    "; UPDATE draft SET checksum=row_sum('draft', id, kind, state, branch, base, tip, other,"      \
    " plan, owner, parent, time_us, changes, parts)"
    static const char *const damages[] = {
        "UPDATE draft SET plan=json_remove(plan, '$.at')" PLAN_SUM,
        "UPDATE draft SET plan=json_remove(plan, '$.onto')" PLAN_SUM,
        "UPDATE draft SET plan=json_set(plan, '$.onto', 'x')" PLAN_SUM,
        "UPDATE draft SET plan=json_remove(plan, '$.todo')" PLAN_SUM,
        "UPDATE draft SET plan=json_set(plan, '$.todo[1]', 7)" PLAN_SUM,
        "UPDATE draft SET plan=json_set(plan, '$.todo[1]', json_array())" PLAN_SUM,
        "UPDATE draft SET plan=json_set(plan, '$.todo[1]',"
        " '00000000000000000000000000000001')" PLAN_SUM,
        "UPDATE draft SET base=tip" PLAN_SUM "; UPDATE draft SET base=NULL",
        "UPDATE draft SET plan='[]'" PLAN_SUM,
        "UPDATE draft SET plan=NULL" PLAN_SUM,
    };
    for (size_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++) {
        brc_open_state state = BRC_OPEN_STATE_INIT;
        brc_pick_result r = BRC_PICK_RESULT_INIT;
        rk_start(&k);
        rk_rebase(&k, BRC_PICK_KEEP);
        rk_settle(&k, BRC_MERGE_THEIRS);
        scenario_sql(&k.t, damages[i]);
        ck_assert_msg(scenario_faults(&k.t) > 0, "not noticed: %s", damages[i]);
        (void)!brc_merge_state(&state, NULL, k.t.repo, &k.t.err);
        ck_assert_msg(brc_continue(&r, NULL, k.t.repo, NULL, &k.t.err) < 0, "went on: %s",
                      damages[i]);
        ck_assert(scenario_same(scenario_id(&k.t, "side"), k.side_tip));
        rk_stop(&k);
    }
}
