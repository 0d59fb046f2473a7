/* Cherry-pick and revert: one commit's change on another branch, and back. */
#include <stdio.h>
#include <string.h>

#include "../kit/suite.h"
#include "../kit/versions.h"

TEST_SUITE(pick);

static scenario t;
static brc_oid one, two;

/* main and side part after "one"; "two" is the tip of side. */
static void pick_setup(void)
{
    scenario_start(&t);
    scenario_numbers(&t, "/a", 8, 4, 1);
    scenario_numbers(&t, "/g/b", 8, 4, 1);
    one = scenario_commit(&t, "one");
    OK(&t, brc_ref_create(t.repo, "side", NULL, NULL, 0, &t.err));
}

static void pick_teardown(void)
{
    scenario_stop(&t);
}

static brc_pick_result revert(const char *rev, uint32_t flags)
{
    brc_pick_opts opts = BRC_PICK_OPTS_INIT;
    brc_pick_result result = BRC_PICK_RESULT_INIT;
    opts.flags = BRC_PICK_REVERT | flags;
    OK(&t, brc_pick(&result, NULL, t.repo, rev, &opts, &t.err));
    return result;
}

/* ---- moves -------------------------------- */

CASE("pick", .setup = pick_setup, .teardown = pick_teardown);

/* On side the group has another name; the change of it comes to the old one, and the other way. */
TEST(c1_a_picked_change_goes_where_the_node_is)
{
    scenario_be_on(&t, "side");
    OK(&t, brc_node_move(t.session, "/g", "/h", 0, &t.err));
    scenario_commit(&t, "moved");
    scenario_set_number(&t, "/h/b", 1, 50);
    scenario_commit(&t, "in the moved one");
    scenario_be_on(&t, "main");
    scenario_set_number(&t, "/g/b", 0, 60);
    scenario_commit(&t, "in the old one");
    ck_assert_int_eq(scenario_pick(&t, "side", 0).result, BRC_PICK_COMMITTED);
    ck_assert_int_eq(scenario_number(&t, t.session, "/g/b", 1), 50);
    ck_assert_int_eq(scenario_number(&t, t.session, "/g/b", 0), 60);
    scenario_be_on(&t, "side");
    ck_assert_int_eq(scenario_pick(&t, "main~1", 0).result, BRC_PICK_COMMITTED);
    ck_assert_int_eq(scenario_number(&t, t.session, "/h/b", 0), 60);
    scenario_whole(&t);
}

TEST(c2_a_reverted_move_takes_later_changes_along)
{
    brc_commit *c;
    OK(&t, brc_node_move(t.session, "/g", "/h", 0, &t.err));
    scenario_commit(&t, "moved");
    scenario_set_number(&t, "/h/b", 1, 50);
    scenario_commit(&t, "in the moved one");
    brc_pick_result r = revert("HEAD~1", 0);
    ck_assert_int_eq(r.result, BRC_PICK_COMMITTED);
    ck_assert_int_eq(scenario_number(&t, t.session, "/g/b", 1), 50);
    OK(&t, brc_commit_read(&c, t.repo, &r.commit, &t.err));
    ck_assert_ptr_nonnull(strstr(c->message, "Revert \"moved\"\n\nThis reverts commit "));
    brc_commit_free(c);
    scenario_whole(&t);
}

/* A change of an array that was removed, and made again with the same form. */
TEST(c10_a_change_of_another_array_at_the_path_is_not_picked)
{
    scenario_be_on(&t, "side");
    scenario_set_number(&t, "/a", 7, 50);
    scenario_commit(&t, "in the old one");
    scenario_be_on(&t, "main");
    OK(&t, brc_node_remove(t.session, "/a", &t.err));
    scenario_numbers(&t, "/a", 8, 4, 1);
    scenario_set_number(&t, "/a", 0, 101); /* in another chunk: those two could be joined */
    const int32_t was = scenario_number(&t, t.session, "/a", 7);
    scenario_commit(&t, "made again");
    brc_pick_result r = scenario_pick(&t, "side", 0);
    ck_assert_int_eq(r.result, BRC_PICK_CONFLICT);
    ck_assert_uint_eq(r.conflicts, 1);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 7), was);
    scenario_whole(&t);
}

/* ---- what comes of it -------------------------------- */

TEST(c3_a_revert_of_a_revert_is_the_original)
{
    scenario_set_number(&t, "/a", 1, 50);
    OK(&t, brc_attrs_set(t.session, "/g", "k", "1", &t.err));
    OK(&t, brc_node_move(t.session, "/g/b", "/c", 0, &t.err));
    scenario_commit(&t, "two");
    ck_assert_int_eq(revert("HEAD", 0).result, BRC_PICK_COMMITTED);
    ck_assert(scenario_same(scenario_root(&t, "HEAD"), scenario_root(&t, "HEAD~2")));
    ck_assert_int_eq(revert("HEAD", 0).result, BRC_PICK_COMMITTED);
    ck_assert(scenario_same(scenario_root(&t, "HEAD"), scenario_root(&t, "HEAD~2")));
    scenario_whole(&t);
}

/* HISTORY-FACTS, scenario 17. */
TEST(c4_what_is_there_makes_no_commit)
{
    scenario_be_on(&t, "side");
    scenario_set_number(&t, "/a", 1, 50);
    two = scenario_commit(&t, "two");
    scenario_be_on(&t, "main");
    ck_assert_int_eq(scenario_pick(&t, "side", 0).result, BRC_PICK_COMMITTED);
    brc_pick_result again = scenario_pick(&t, "side", 0);
    ck_assert_int_eq(again.result, BRC_PICK_NOTHING);
    brc_oid tip;
    OK(&t, brc_resolve(&tip, t.repo, "main", &t.err));
    ck_assert(scenario_same(tip, again.commit));
}

TEST(c5_the_first_commit_is_a_change_too)
{
    char tree[64];
    scenario_set_number(&t, "/a", 1, 50);
    scenario_commit(&t, "two");
    ck_assert_int_eq(revert("HEAD", 0).result, BRC_PICK_COMMITTED);
    ck_assert_int_eq(revert("HEAD~2", 0).result, BRC_PICK_COMMITTED);
    ck_assert_str_eq(scenario_tree(&t, t.session, "/", 1, tree, sizeof(tree)), "/ ");
    ck_assert_int_eq(scenario_pick(&t, "HEAD~3", 0).result,
                     BRC_PICK_COMMITTED); /* it has no parent */
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 1), 2);
    scenario_whole(&t);
}

/* ---- uncommitted -------------------------------- */

/* The uncommitted change lies in the base of the branch's draft, and in no row of it. */
TEST(c6_what_is_uncommitted_stays)
{
    brc_gc_report report = BRC_GC_REPORT_INIT;
    brc_gc_opts now = BRC_GC_OPTS_INIT;
    scenario_be_on(&t, "side");
    scenario_set_number(&t, "/a", 1, 50);
    scenario_commit(&t, "two");
    scenario_be_on(&t, "main");
    scenario_set_number(&t, "/a", 7, 70);
    scenario_commit(&t, "three");
    ck_assert_int_eq(scenario_pick(&t, "side", BRC_PICK_NO_COMMIT).result, BRC_PICK_UNCOMMITTED);
    ck_assert(!scenario_clean(&t));
    scenario_no_window(&t);
    OK(&t, brc_gc(t.repo, &now, &report, &t.err));
    scenario_reopen(&t);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 1), 50);
    OK(&t, brc_undo(NULL, t.repo, 0, 0, &t.err));
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 1), 50);
    OK(&t, brc_undo(NULL, t.repo, BRC_UNDO_REDO, 0, &t.err));
    scenario_set_number(&t, "/a", 0, 40);
    brc_pick_opts opts = BRC_PICK_OPTS_INIT;
    brc_pick_result result = BRC_PICK_RESULT_INIT;
    FAILS(&t, BRC_ECONFLICT, brc_pick(&result, NULL, t.repo, "side", &opts, &t.err));
    scenario_commit(&t, "by hand");
    ck_assert(scenario_clean(&t));
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 1), 50);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 7), 70);
    ck_assert_int_eq(revert("HEAD", 0).result, BRC_PICK_COMMITTED);
    ck_assert(scenario_same(scenario_root(&t, "HEAD"), scenario_root(&t, "HEAD~2")));
    scenario_whole(&t);
}

TEST(c7_a_branch_that_comes_back_has_it_too)
{
    scenario_be_on(&t, "side");
    scenario_set_number(&t, "/a", 1, 50);
    scenario_commit(&t, "two");
    OK(&t, brc_ref_create(t.repo, "third", "side~1", NULL, 0, &t.err));
    scenario_be_on(&t, "third");
    ck_assert_int_eq(scenario_pick(&t, "side", BRC_PICK_NO_COMMIT).result, BRC_PICK_UNCOMMITTED);
    OK(&t, brc_ref_rename(t.repo, "third", "fourth", 0, &t.err));
    brc_session_free(t.session);
    t.session = NULL;
    OK(&t, brc_session_open(&t.session, t.repo, "fourth", BRC_SESSION_WRITE, &t.err));
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 1), 50);
    ck_assert(!scenario_clean(&t));
}

/* ---- refused -------------------------------- */

TEST(c8_what_cannot_be_is_refused)
{
    brc_pick_opts opts = BRC_PICK_OPTS_INIT;
    brc_pick_result result = BRC_PICK_RESULT_INIT;
    const char *path = "/a";
    OK(&t, brc_begin(t.repo, &t.err));
    FAILS(&t, BRC_EMISUSE, brc_pick(&result, NULL, t.repo, "side", &opts, &t.err));
    opts.flags = BRC_PICK_REVERT;
    FAILS(&t, BRC_EMISUSE, brc_pick(&result, NULL, t.repo, "side", &opts, &t.err));
    FAILS(&t, BRC_EINVAL, brc_continue(&result, NULL, t.repo, &opts, &t.err));
    opts.flags = 0;
    OK(&t, brc_end(t.repo, 0, &t.err));
    FAILS(&t, BRC_ENOTFOUND, brc_pick(&result, NULL, t.repo, "none", &opts, &t.err));
    opts.mainline = 2;
    FAILS(&t, BRC_EMISUSE, brc_pick(&result, NULL, t.repo, "side", &opts, &t.err));
    opts.mainline = 0;
    opts.flags = BRC_PICK_OURS | BRC_PICK_THEIRS;
    FAILS(&t, BRC_EINVAL, brc_pick(&result, NULL, t.repo, "side", &opts, &t.err));
    opts.flags = 1u << 20;
    FAILS(&t, BRC_EINVAL, brc_pick(&result, NULL, t.repo, "side", &opts, &t.err));
    opts.flags = 0;
    opts.paths = &path;
    opts.npaths = 1;
    FAILS(&t, BRC_EINVAL, brc_pick(&result, NULL, t.repo, "side", &opts, &t.err));
    brc_oid tip;
    OK(&t, brc_resolve(&tip, t.repo, "main", &t.err));
    ck_assert(scenario_same(tip, one));
}

/* ---- others meanwhile -------------------------------- */

TEST(c9_what_is_picked_is_not_collected_meanwhile)
{
    other_handle other = OTHER_COLLECTS;
    scenario_be_on(&t, "side");
    scenario_set_number(&t, "/a", 1, 50);
    scenario_set_number(&t, "/g/b", 1, 51);
    scenario_commit(&t, "two");
    scenario_be_on(&t, "main");
    scenario_set_number(&t, "/a", 2, 60);
    scenario_set_number(&t, "/g/b", 2, 61);
    scenario_commit(&t, "three");
    other_begins(&t, &other);
    ck_assert_int_eq(scenario_pick(&t, "side", 0).result, BRC_PICK_COMMITTED);
    other_ends(&other);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 1), 50);
    ck_assert_int_eq(scenario_number(&t, t.session, "/g/b", 2), 61);
    scenario_whole(&t);
}

/* Every call that makes a commit; without a message (NULL) each has one of its own. */
TEST(c11_no_commit_has_a_blank_message)
{
    static const char *const blank[] = {"", " ", "\t\r\n "};
    brc_oid id, tip;
    scenario_be_on(&t, "side");
    scenario_set_number(&t, "/a", 1, 50);
    scenario_commit(&t, "two");
    scenario_be_on(&t, "main");
    scenario_set_number(&t, "/a", 2, 60);
    OK(&t, brc_resolve(&tip, t.repo, "HEAD", &t.err));
    for (size_t i = 0; i < sizeof(blank) / sizeof(*blank); i++) {
        brc_commit_opts commit = BRC_COMMIT_OPTS_INIT;
        brc_merge_opts merge = BRC_MERGE_OPTS_INIT;
        brc_pick_opts opts = BRC_PICK_OPTS_INIT;
        brc_merge_result merged = BRC_MERGE_RESULT_INIT;
        brc_pick_result picked = BRC_PICK_RESULT_INIT;
        commit.message = merge.message = opts.message = blank[i];
        FAILS(&t, BRC_EINVAL, brc_session_commit(&id, t.session, &commit, &t.err));
        commit.flags = BRC_COMMIT_AMEND;
        FAILS(&t, BRC_EINVAL, brc_session_commit(&id, t.session, &commit, &t.err));
        FAILS(&t, BRC_EINVAL, brc_merge(&merged, NULL, t.repo, "side", &merge, &t.err));
        FAILS(&t, BRC_EINVAL, brc_pick(&picked, NULL, t.repo, "side", &opts, &t.err));
        FAILS(&t, BRC_EINVAL, brc_continue(&picked, NULL, t.repo, &opts, &t.err));
        opts.flags = BRC_PICK_REVERT;
        FAILS(&t, BRC_EINVAL, brc_pick(&picked, NULL, t.repo, "HEAD", &opts, &t.err));
    }
    OK(&t, brc_resolve(&id, t.repo, "HEAD", &t.err));
    ck_assert_int_eq(memcmp(&id, &tip, sizeof(id)), 0);
    scenario_commit(&t, "three");
}
