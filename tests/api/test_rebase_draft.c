/* Rebases with conflicts, which stay open: settled, gone on with, skipped, dropped. */
#include <string.h>

#include "../kit/rebase_kit.h"
#include "../kit/suite.h"

TEST_SUITE(rebase_draft);

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

/* ---- where it stops -------------------------------- */

TEST(s1_it_stops_where_the_conflict_is)
{
    brc_iter *it;
    const brc_change *change;
    brc_pick_result r = rk_rebase(&k, BRC_PICK_KEEP);
    rk_stopped_at(&k, &r, 1, 1, 0);
    ck_assert_uint_eq(r.conflicts, 2);
    scenario_look_again(&k.t);
    ck_assert_uint_eq(rk_open(&k).open, 2);
    ck_assert_int_eq(rk_number(&k, 0), 50);
    ck_assert_int_eq(rk_number(&k, 4), 60);
    ck_assert_int_eq(rk_number(&k, 6), 7);
    ck_assert_int_eq(scenario_number(&k.t, k.t.session, "/h/b", 1), 61);
    /* Uncommitted is what this commit changes, and not what was made before. */
    OK(&k.t, brc_diff(&it, k.t.repo, NULL, NULL, NULL, &k.t.err));
    ck_assert_int_eq(brc_next(it, &change, &k.t.err), 1);
    ck_assert_str_eq(change->path, "/h/b");
    ck_assert_int_eq(brc_next(it, &change, &k.t.err), 0);
    brc_iter_free(it);
    ck_assert_int_eq(rk_rows(&k), 0);
}

TEST(s2_what_is_not_settled_does_not_go_on)
{
    brc_pick_result r = rk_rebase(&k, BRC_PICK_KEEP), again = BRC_PICK_RESULT_INIT;
    brc_iter *it;
    const brc_conflict *c;
    const int64_t draft = r.draft;
    scenario_set_number(&k.t, "/a", 0, 70);
    scenario_look_again(&k.t);
    OK(&k.t, brc_continue(&again, &it, k.t.repo, NULL, &k.t.err));
    rk_stopped_at(&k, &again, 1, 1, 0);
    ck_assert_int_eq(again.draft, draft);
    ck_assert_uint_eq(again.conflicts, 1);
    ck_assert_int_eq(brc_next(it, &c, &k.t.err), 1);
    ck_assert_str_eq(c->key, "/attributes/k");
    ck_assert_int_eq(brc_next(it, &c, &k.t.err), 0);
    brc_iter_free(it);
    ck_assert_int_eq(rk_number(&k, 0), 70);
}

TEST(s3_without_keep_nothing_stays_open)
{
    const brc_pick_result r = rk_rebase(&k, 0);
    ck_assert_int_eq(r.result, BRC_PICK_CONFLICT);
    ck_assert_int_eq(r.draft, 0);
    ck_assert_uint_eq(r.made + r.skipped + r.left, 0);
    rk_nothing_is_open(&k);
    ck_assert(scenario_same(scenario_id(&k.t, "side"), k.side_tip));
}

TEST(s4_without_a_conflict_nothing_stays_open)
{
    brc_pick_opts opts = BRC_PICK_OPTS_INIT;
    brc_pick_result r = BRC_PICK_RESULT_INIT;
    opts.flags = BRC_PICK_KEEP;
    OK(&k.t, brc_reset(k.t.repo, NULL, "side~4", BRC_RESET_HARD, NULL, &k.t.err));
    OK(&k.t, brc_rebase(&r, NULL, k.t.repo, "main", &opts, &k.t.err));
    ck_assert_int_eq(r.result, BRC_PICK_COMMITTED);
    ck_assert_int_eq(r.draft, 0);
    rk_nothing_is_open(&k);
}

/* ---- to the end -------------------------------- */

TEST(e1_settled_by_hand_it_goes_on_to_the_next_and_to_the_end)
{
    rk_rebase(&k, BRC_PICK_KEEP);
    scenario_set_number(&k.t, "/a", 0, 70);
    OK(&k.t, brc_attrs_set(k.t.session, "/a", "k", "7", &k.t.err));
    scenario_look_again(&k.t);
    brc_pick_result r = rk_goes_on(&k, 0);
    rk_stopped_at(&k, &r, 3, 3, 0);
    ck_assert_uint_eq(r.conflicts, 1);
    scenario_look_again(&k.t);
    ck_assert_int_eq(rk_number(&k, 0), 70);
    ck_assert_int_eq(rk_number(&k, 2), 50);
    ck_assert_int_eq(rk_number(&k, 6), 62);
    scenario_set_number(&k.t, "/a", 2, 71);
    scenario_look_again(&k.t);
    r = rk_goes_on(&k, 0);
    ck_assert_int_eq(r.result, BRC_PICK_COMMITTED);
    ck_assert_uint_eq(r.made, 5);
    ck_assert_uint_eq(r.skipped, 0);
    ck_assert_int_eq(r.draft, 0);
    ck_assert(scenario_same(r.commit, scenario_id(&k.t, "side")));
    scenario_look_again(&k.t);
    rk_nothing_is_open(&k);
    ck_assert(scenario_same(scenario_id(&k.t, "side~5"), k.main_tip));
    rk_commit_is(&k, "side", "five", "Bob", "{}", 15000000);
    rk_commit_is(&k, "side~1", "four", "Bob", "{}", 14000000);
    rk_commit_is(&k, "side~3", "two\n\nand why", "Ada <ada@example.org>", "{\"run\":7}", 12000000);
    ck_assert_int_eq(rk_number(&k, 0), 70);
    ck_assert_int_eq(rk_number(&k, 2), 71);
    ck_assert_int_eq(rk_number(&k, 8), 64);
    ck_assert_int_eq(scenario_number(&k.t, k.t.session, "/h/b", 1), 61);
    ck_assert_int_eq(rk_rows(&k), 1);
}

/* Its commits are what they would have been without conflicts. */
TEST(e2_all_for_theirs_is_the_rebase_for_theirs)
{
    rk_rebase(&k, BRC_PICK_KEEP);
    rk_settle(&k, BRC_MERGE_THEIRS);
    scenario_look_again(&k.t);
    ck_assert_int_eq(rk_goes_on(&k, 0).result, BRC_PICK_CONFLICT);
    rk_settle(&k, BRC_MERGE_THEIRS);
    scenario_look_again(&k.t);
    const brc_oid slow = rk_goes_on(&k, 0).commit;
    OK(&k.t, brc_undo(NULL, k.t.repo, 0, 0, &k.t.err));
    ck_assert(scenario_same(scenario_id(&k.t, "side"), k.side_tip));
    const brc_oid quick = rk_rebase(&k, BRC_PICK_THEIRS).commit;
    ck_assert(scenario_same(slow, quick));
}

/* The second has something else left, and the fourth has nothing. */
TEST(e3_where_nothing_is_left_no_commit_is_made)
{
    rk_rebase(&k, BRC_PICK_KEEP);
    rk_settle(&k, BRC_MERGE_OURS);
    brc_pick_result r = rk_goes_on(&k, 0);
    rk_stopped_at(&k, &r, 3, 3, 0);
    rk_settle(&k, BRC_MERGE_OURS);
    r = rk_goes_on(&k, 0);
    ck_assert_int_eq(r.result, BRC_PICK_COMMITTED);
    ck_assert_uint_eq(r.made, 4);
    ck_assert_uint_eq(r.skipped, 1);
    scenario_look_again(&k.t);
    ck_assert(scenario_same(scenario_id(&k.t, "side~4"), k.main_tip));
    const brc_oid slow = r.commit;
    OK(&k.t, brc_undo(NULL, k.t.repo, 0, 0, &k.t.err));
    const brc_oid quick = rk_rebase(&k, BRC_PICK_OURS).commit;
    ck_assert(scenario_same(slow, quick));
}

TEST(e4_skipped_ones_are_left_out)
{
    rk_rebase(&k, BRC_PICK_KEEP);
    scenario_set_number(&k.t, "/a", 0, 70); /* goes, too */
    scenario_look_again(&k.t);
    brc_pick_result r = rk_goes_on(&k, BRC_PICK_SKIP);
    rk_stopped_at(&k, &r, 3, 2, 1);
    scenario_look_again(&k.t);
    ck_assert_int_eq(rk_number(&k, 0), 50);
    ck_assert_int_eq(scenario_number(&k.t, k.t.session, "/h/b", 1), 2);
    r = rk_goes_on(&k, BRC_PICK_SKIP);
    ck_assert_int_eq(r.result, BRC_PICK_COMMITTED);
    ck_assert_uint_eq(r.made, 3);
    ck_assert_uint_eq(r.skipped, 2);
    scenario_look_again(&k.t);
    rk_nothing_is_open(&k);
    rk_commit_is(&k, "side~1", "three", "Bob", "{}", 13000000);
    ck_assert(scenario_same(scenario_id(&k.t, "side~3"), k.main_tip));
    ck_assert_int_eq(rk_number(&k, 8), 64);
}

/* The only one it has. */
TEST(e5_when_all_are_skipped_the_branch_is_where_it_was_to_go)
{
    OK(&k.t, brc_reset(k.t.repo, NULL, "side~4", BRC_RESET_HARD, NULL, &k.t.err));
    scenario_set_number(&k.t, "/a", 2, 63);
    scenario_commit(&k.t, "alone");
    ck_assert_uint_eq(rk_rebase(&k, BRC_PICK_KEEP).left, 0);
    const brc_pick_result r = rk_goes_on(&k, BRC_PICK_SKIP);
    ck_assert_int_eq(r.result, BRC_PICK_COMMITTED);
    ck_assert_uint_eq(r.made, 1);
    ck_assert_uint_eq(r.skipped, 1);
    ck_assert(scenario_same(scenario_id(&k.t, "side~1"), k.main_tip));
    scenario_look_again(&k.t);
    rk_nothing_is_open(&k);
}

TEST(e6_aborted_it_is_as_it_was)
{
    brc_gc_report report = BRC_GC_REPORT_INIT;
    scenario_no_window(&k.t);
    OK(&k.t, brc_gc(k.t.repo, NULL, &report, &k.t.err));
    const int64_t objects = scenario_ask(&k.t, "SELECT count(*) FROM object");
    rk_rebase(&k, BRC_PICK_KEEP);
    rk_settle(&k, BRC_MERGE_THEIRS);
    rk_goes_on(&k, 0);
    scenario_set_number(&k.t, "/a", 2, 71);
    OK(&k.t, brc_abort(k.t.repo, &k.t.err));
    scenario_look_again(&k.t);
    rk_nothing_is_open(&k);
    ck_assert(scenario_same(scenario_id(&k.t, "side"), k.side_tip));
    ck_assert_int_eq(rk_number(&k, 0), 61);
    ck_assert_int_eq(rk_rows(&k), 0);
    OK(&k.t, brc_gc(k.t.repo, NULL, &report, &k.t.err));
    ck_assert_int_eq(scenario_ask(&k.t, "SELECT count(*) FROM object"), objects);
    scenario_whole(&k.t);
}

TEST(e7_undo_takes_all_of_it_back)
{
    rk_rebase(&k, BRC_PICK_KEEP);
    rk_settle(&k, BRC_MERGE_THEIRS);
    rk_goes_on(&k, 0);
    rk_settle(&k, BRC_MERGE_THEIRS);
    const brc_oid after = rk_goes_on(&k, 0).commit;
    OK(&k.t, brc_undo(NULL, k.t.repo, 0, 0, &k.t.err));
    ck_assert(scenario_same(scenario_id(&k.t, "side"), k.side_tip));
    OK(&k.t, brc_undo(NULL, k.t.repo, BRC_UNDO_REDO, 0, &k.t.err));
    ck_assert(scenario_same(scenario_id(&k.t, "side"), after));
    scenario_look_again(&k.t);
}

/* A side that was given for some paths is for what is to come, too. */
TEST(e8_sides_stay_for_the_rest)
{
    const char *path = "/a";
    brc_pick_opts opts = BRC_PICK_OPTS_INIT;
    brc_pick_result r = BRC_PICK_RESULT_INIT;
    scenario_be_on(&k.t, "main");
    OK(&k.t, brc_attrs_set(k.t.session, "/h", "k", "1", &k.t.err));
    scenario_commit(&k.t, "more");
    scenario_be_on(&k.t, "side");
    OK(&k.t, brc_reset(k.t.repo, NULL, "side~4", BRC_RESET_HARD, NULL, &k.t.err));
    OK(&k.t, brc_attrs_set(k.t.session, "/g", "k", "2", &k.t.err));
    scenario_commit(&k.t, "in conflict elsewhere");
    scenario_set_number(&k.t, "/a", 2, 63);
    scenario_commit(&k.t, "in conflict there");
    opts.flags = BRC_PICK_KEEP | BRC_PICK_THEIRS;
    opts.paths = &path;
    opts.npaths = 1;
    OK(&k.t, brc_rebase(&r, NULL, k.t.repo, "main", &opts, &k.t.err));
    ck_assert_int_eq(r.result, BRC_PICK_CONFLICT);
    ck_assert_uint_eq(r.conflicts, 1);
    rk_settle(&k, BRC_MERGE_OURS);
    scenario_look_again(&k.t);
    r = rk_goes_on(&k, 0);
    ck_assert_int_eq(r.result, BRC_PICK_COMMITTED);
    ck_assert_int_eq(rk_number(&k, 2), 63);
    scenario_look_again(&k.t);
}

/* A node that is moved to settle a conflict is moved in that commit, and the next one follows
 * it. */
TEST(e9_moves_are_followed)
{
    rk_rebase(&k, BRC_PICK_KEEP);
    rk_settle(&k, BRC_MERGE_THEIRS);
    OK(&k.t, brc_node_move(k.t.session, "/a", "/z", 0, &k.t.err));
    scenario_look_again(&k.t);
    brc_pick_result r = rk_goes_on(&k, 0);
    rk_stopped_at(&k, &r, 3, 3, 0);
    scenario_look_again(&k.t);
    ck_assert_int_eq(scenario_number(&k.t, k.t.session, "/z", 6), 62);
    rk_settle(&k, BRC_MERGE_THEIRS);
    scenario_look_again(&k.t);
    r = rk_goes_on(&k, 0);
    ck_assert_int_eq(r.result, BRC_PICK_COMMITTED);
    ck_assert_int_eq(scenario_number(&k.t, k.t.session, "/z", 2), 63);
    ck_assert_int_eq(scenario_number(&k.t, k.t.session, "/z", 8), 64);
    scenario_look_again(&k.t);
}
