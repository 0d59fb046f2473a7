/* Cherry-pick and revert: one commit's change on another branch, and back. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "../kit/versions.h"

Suite *pick_suite(void);

static scenario t;
static brc_oid one, two;

/* main and side part after "one"; "two" is the tip of side. */
static void pick_setup(void)
{
    scenario_start(&t);
    scenario_numbers(&t, "/a", 8, 4, 1);
    scenario_numbers(&t, "/g/b", 8, 4, 1);
    one = scenario_commit(&t, "one");
    OK(&t, brc_branch_create(t.repo, "side", NULL, &t.err));
}

static void pick_teardown(void)
{
    scenario_stop(&t);
}

static brc_pick_result pick(const char *rev, uint32_t flags)
{
    brc_pick_opts opts = BRC_PICK_OPTS_INIT;
    brc_pick_result result = BRC_PICK_RESULT_INIT;
    opts.flags = flags;
    OK(&t, brc_pick(&result, NULL, t.repo, rev, &opts, &t.err));
    return result;
}

static brc_pick_result revert(const char *rev, uint32_t flags)
{
    brc_pick_opts opts = BRC_PICK_OPTS_INIT;
    brc_pick_result result = BRC_PICK_RESULT_INIT;
    opts.flags = flags;
    OK(&t, brc_revert(&result, NULL, t.repo, rev, &opts, &t.err));
    return result;
}

/* ---- moves -------------------------------- */

/* On side the group has another name; the change of it comes to the old one, and the other way. */
START_TEST(c1_a_picked_change_goes_where_the_node_is)
{
    scenario_be_on(&t, "side");
    OK(&t, brc_node_move(t.session, "/g", "/h", &t.err));
    scenario_commit(&t, "moved");
    scenario_set_number(&t, "/h/b", 1, 50);
    scenario_commit(&t, "in the moved one");
    scenario_be_on(&t, "main");
    scenario_set_number(&t, "/g/b", 0, 60);
    scenario_commit(&t, "in the old one");
    ck_assert_int_eq(pick("side", 0).result, BRC_PICK_COMMITTED);
    ck_assert_int_eq(scenario_number(&t, t.session, "/g/b", 1), 50);
    ck_assert_int_eq(scenario_number(&t, t.session, "/g/b", 0), 60);
    scenario_be_on(&t, "side");
    ck_assert_int_eq(pick("main~1", 0).result, BRC_PICK_COMMITTED);
    ck_assert_int_eq(scenario_number(&t, t.session, "/h/b", 0), 60);
    scenario_whole(&t);
}
END_TEST

START_TEST(c2_a_reverted_move_takes_later_changes_along)
{
    brc_commit *c;
    OK(&t, brc_node_move(t.session, "/g", "/h", &t.err));
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
END_TEST

/* A change of an array that was removed, and made again with the same form. */
START_TEST(c10_a_change_of_another_array_at_the_path_is_not_picked)
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
    brc_pick_result r = pick("side", 0);
    ck_assert_int_eq(r.result, BRC_PICK_CONFLICT);
    ck_assert_uint_eq(r.conflicts, 1);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 7), was);
    scenario_whole(&t);
}
END_TEST

/* ---- what comes of it -------------------------------- */

START_TEST(c3_a_revert_of_a_revert_is_the_original)
{
    scenario_set_number(&t, "/a", 1, 50);
    OK(&t, brc_attrs_set(t.session, "/g", "k", "1", &t.err));
    OK(&t, brc_node_move(t.session, "/g/b", "/c", &t.err));
    scenario_commit(&t, "two");
    ck_assert_int_eq(revert("HEAD", 0).result, BRC_PICK_COMMITTED);
    ck_assert(scenario_same(scenario_root(&t, "HEAD"), scenario_root(&t, "HEAD~2")));
    ck_assert_int_eq(revert("HEAD", 0).result, BRC_PICK_COMMITTED);
    ck_assert(scenario_same(scenario_root(&t, "HEAD"), scenario_root(&t, "HEAD~2")));
    scenario_whole(&t);
}
END_TEST

/* HISTORY-FACTS, scenario 17. */
START_TEST(c4_what_is_there_makes_no_commit)
{
    scenario_be_on(&t, "side");
    scenario_set_number(&t, "/a", 1, 50);
    two = scenario_commit(&t, "two");
    scenario_be_on(&t, "main");
    ck_assert_int_eq(pick("side", 0).result, BRC_PICK_COMMITTED);
    brc_pick_result again = pick("side", 0);
    ck_assert_int_eq(again.result, BRC_PICK_NOTHING);
    brc_oid tip;
    OK(&t, brc_resolve(&tip, t.repo, "main", &t.err));
    ck_assert(scenario_same(tip, again.commit));
}
END_TEST

START_TEST(c5_the_first_commit_is_a_change_too)
{
    char tree[64];
    scenario_set_number(&t, "/a", 1, 50);
    scenario_commit(&t, "two");
    ck_assert_int_eq(revert("HEAD", 0).result, BRC_PICK_COMMITTED);
    ck_assert_int_eq(revert("HEAD~2", 0).result, BRC_PICK_COMMITTED);
    ck_assert_str_eq(scenario_tree(&t, t.session, "/", 1, tree, sizeof(tree)), "/ ");
    ck_assert_int_eq(pick("HEAD~3", 0).result, BRC_PICK_COMMITTED); /* it has no parent */
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 1), 2);
    scenario_whole(&t);
}
END_TEST

/* ---- uncommitted -------------------------------- */

/* What is uncommitted lies in the base of the branch's draft, and in no row of it. */
START_TEST(c6_what_is_uncommitted_stays)
{
    brc_gc_report report = BRC_GC_REPORT_INIT;
    brc_gc_opts now = BRC_GC_OPTS_INIT;
    scenario_be_on(&t, "side");
    scenario_set_number(&t, "/a", 1, 50);
    scenario_commit(&t, "two");
    scenario_be_on(&t, "main");
    scenario_set_number(&t, "/a", 7, 70);
    scenario_commit(&t, "three");
    ck_assert_int_eq(pick("side", BRC_PICK_NO_COMMIT).result, BRC_PICK_UNCOMMITTED);
    ck_assert(!scenario_clean(&t));
    OK(&t, brc_config_set(t.repo, "window", "0", &t.err));
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
END_TEST

START_TEST(c7_a_branch_that_comes_back_has_it_too)
{
    scenario_be_on(&t, "side");
    scenario_set_number(&t, "/a", 1, 50);
    scenario_commit(&t, "two");
    OK(&t, brc_branch_create(t.repo, "third", "side~1", &t.err));
    scenario_be_on(&t, "third");
    ck_assert_int_eq(pick("side", BRC_PICK_NO_COMMIT).result, BRC_PICK_UNCOMMITTED);
    OK(&t, brc_branch_rename(t.repo, "third", "fourth", &t.err));
    brc_session_free(t.session);
    t.session = NULL;
    OK(&t, brc_session_open(&t.session, t.repo, "fourth", BRC_SESSION_WRITE, &t.err));
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 1), 50);
    ck_assert(!scenario_clean(&t));
}
END_TEST

/* ---- refused -------------------------------- */

START_TEST(c8_what_cannot_be_is_refused)
{
    brc_pick_opts opts = BRC_PICK_OPTS_INIT;
    brc_pick_result result = BRC_PICK_RESULT_INIT;
    const char *path = "/a";
    OK(&t, brc_begin(t.repo, &t.err));
    FAILS(&t, BRC_EMISUSE, brc_pick(&result, NULL, t.repo, "side", &opts, &t.err));
    FAILS(&t, BRC_EMISUSE, brc_revert(&result, NULL, t.repo, "side", &opts, &t.err));
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
END_TEST

/* ---- others meanwhile -------------------------------- */

typedef struct meddler {
    breccia *repo;
    int runs;
} meddler;

/* Another process collects garbage, whenever it can. */
static int meddle(void *ctx, const char *phase, uint64_t done, uint64_t total)
{
    meddler *m = ctx;
    brc_gc_report report = BRC_GC_REPORT_INIT;
    (void)phase;
    (void)done;
    (void)total;
    if (m->repo != NULL && m->runs < 3)
        m->runs += brc_gc(m->repo, NULL, &report, NULL) == BRC_OK;
    return 0;
}

START_TEST(c9_what_is_picked_is_not_collected_meanwhile)
{
    meddler m = {NULL, 0};
    brc_open_opts opts = BRC_OPEN_OPTS_INIT, alone = BRC_OPEN_OPTS_INIT;
    scenario_be_on(&t, "side");
    scenario_set_number(&t, "/a", 1, 50);
    scenario_set_number(&t, "/g/b", 1, 51);
    scenario_commit(&t, "two");
    scenario_be_on(&t, "main");
    scenario_set_number(&t, "/a", 2, 60);
    scenario_set_number(&t, "/g/b", 2, 61);
    scenario_commit(&t, "three");
    OK(&t, brc_config_set(t.repo, "window", "0", &t.err));
    scenario_close(&t);
    opts.progress = meddle;
    opts.progress_ctx = &m;
    scenario_open(&t, &opts, 0);
    alone.wait_ms = 1;
    OK(&t, brc_open(&m.repo, t.file, &alone, &t.err));
    ck_assert_int_eq(pick("side", 0).result, BRC_PICK_COMMITTED);
    brc_free(m.repo);
    m.repo = NULL;
    ck_assert_int_gt(m.runs, 0);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 1), 50);
    ck_assert_int_eq(scenario_number(&t, t.session, "/g/b", 2), 61);
    scenario_whole(&t);
}
END_TEST

/* Every call that makes a commit; NULL is no message, and each has one of its own then. */
START_TEST(c11_no_commit_has_a_blank_message)
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
        FAILS(&t, BRC_EINVAL, brc_merge_continue(&merged, NULL, t.repo, &merge, &t.err));
        FAILS(&t, BRC_EINVAL, brc_pick(&picked, NULL, t.repo, "side", &opts, &t.err));
        FAILS(&t, BRC_EINVAL, brc_revert(&picked, NULL, t.repo, "HEAD", &opts, &t.err));
        FAILS(&t, BRC_EINVAL, brc_pick_continue(&picked, NULL, t.repo, &opts, &t.err));
    }
    OK(&t, brc_resolve(&id, t.repo, "HEAD", &t.err));
    ck_assert_int_eq(memcmp(&id, &tip, sizeof(id)), 0);
    scenario_commit(&t, "three");
}
END_TEST

Suite *pick_suite(void)
{
    Suite *s = suite_create("pick");
    TCase *c = tcase_create("pick");
    tcase_add_checked_fixture(c, pick_setup, pick_teardown);
    tcase_add_test(c, c10_a_change_of_another_array_at_the_path_is_not_picked);
    tcase_add_test(c, c11_no_commit_has_a_blank_message);
    tcase_add_test(c, c1_a_picked_change_goes_where_the_node_is);
    tcase_add_test(c, c2_a_reverted_move_takes_later_changes_along);
    tcase_add_test(c, c3_a_revert_of_a_revert_is_the_original);
    tcase_add_test(c, c4_what_is_there_makes_no_commit);
    tcase_add_test(c, c5_the_first_commit_is_a_change_too);
    tcase_add_test(c, c6_what_is_uncommitted_stays);
    tcase_add_test(c, c7_a_branch_that_comes_back_has_it_too);
    tcase_add_test(c, c8_what_cannot_be_is_refused);
    tcase_add_test(c, c9_what_is_picked_is_not_collected_meanwhile);
    suite_add_tcase(s, c);
    return s;
}
