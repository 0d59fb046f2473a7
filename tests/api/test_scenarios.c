/*
 * Scenarios of docs/SCENARIOS.md that no other suite has from end to end; sNN is the number there.
 */
#include <check.h>
#include <string.h>

#include "../kit/scenario.h"

Suite *scenarios_suite(void);

static scenario t;

static void scenarios_setup(void)
{
    scenario_start(&t);
    scenario_numbers(&t, "/a", 8, 4, 1);
    scenario_numbers(&t, "/p/in_p", 4, 4, 1);
    scenario_numbers(&t, "/q/in_q", 4, 4, 1);
    scenario_commit(&t, "base");
    OK(&t, brc_branch_create(t.repo, "dev", NULL, &t.err));
}

static void scenarios_teardown(void)
{
    scenario_stop(&t);
}

static void be_on(const char *branch)
{
    brc_session_free(t.session);
    t.session = NULL;
    OK(&t, brc_switch(t.repo, branch, 0, &t.err));
    OK(&t, brc_session_open(&t.session, t.repo, NULL, BRC_SESSION_WRITE, &t.err));
}

static int merged_with(const char *rev, uint32_t flags)
{
    brc_merge_opts opts = BRC_MERGE_OPTS_INIT;
    brc_merge_result r = BRC_MERGE_RESULT_INIT;
    opts.flags = flags;
    OK(&t, brc_merge(&r, NULL, t.repo, rev, &opts, &t.err));
    return r.result;
}

static int reverted(const char *rev, uint32_t mainline)
{
    brc_pick_opts opts = BRC_PICK_OPTS_INIT;
    brc_pick_result r = BRC_PICK_RESULT_INIT;
    opts.mainline = mainline;
    OK(&t, brc_revert(&r, NULL, t.repo, rev, &opts, &t.err));
    return r.result;
}

static void element_is(int32_t value)
{
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 0), value);
}

/* Each side has merged the other and kept its own value: neither base is nearer. */
START_TEST(s01_bases_that_disagree_decide_nothing)
{
    scenario_set_number(&t, "/a", 0, 50);
    scenario_commit(&t, "50");
    OK(&t, brc_tag_create(t.repo, "was-main", NULL, NULL, &t.err));
    be_on("dev");
    scenario_set_number(&t, "/a", 0, 60);
    scenario_commit(&t, "60");
    OK(&t, brc_tag_create(t.repo, "was-dev", NULL, NULL, &t.err));
    ck_assert_int_eq(merged_with("was-main", BRC_MERGE_OURS), BRC_MERGE_MERGED);
    be_on("main");
    ck_assert_int_eq(merged_with("was-dev", BRC_MERGE_OURS), BRC_MERGE_MERGED);
    element_is(50);
    ck_assert_int_eq(merged_with("dev", BRC_MERGE_DRY_RUN), BRC_MERGE_CONFLICT);
    be_on("dev");
    element_is(60);
    ck_assert_int_eq(merged_with("main", BRC_MERGE_DRY_RUN), BRC_MERGE_CONFLICT);
    /* What both have is what comes out, whatever the bases say. */
    scenario_set_number(&t, "/a", 0, 50);
    scenario_commit(&t, "50 here, too");
    ck_assert_int_eq(merged_with("main", 0), BRC_MERGE_MERGED);
    element_is(50);
    scenario_whole(&t);
}
END_TEST

START_TEST(s05_groups_that_move_into_each_other_conflict)
{
    OK(&t, brc_node_move(t.session, "/p", "/q/p", &t.err));
    scenario_commit(&t, "p in q");
    be_on("dev");
    OK(&t, brc_node_move(t.session, "/q", "/p/q", &t.err));
    scenario_commit(&t, "q in p");
    ck_assert_int_eq(merged_with("main", BRC_MERGE_DRY_RUN), BRC_MERGE_CONFLICT);
    ck_assert_int_eq(merged_with("main", BRC_MERGE_OURS), BRC_MERGE_MERGED);
    scenario_number(&t, t.session, "/p/q/in_q", 0);
    scenario_number(&t, t.session, "/p/in_p", 0);
    be_on("main");
    OK(&t, brc_branch_create(t.repo, "dev-alone", "dev^1", &t.err));
    ck_assert_int_eq(merged_with("dev-alone", BRC_MERGE_DRY_RUN), BRC_MERGE_CONFLICT);
    scenario_whole(&t);
}
END_TEST

START_TEST(s16_a_merge_that_was_reverted_comes_back_by_a_second_revert)
{
    be_on("dev");
    scenario_set_number(&t, "/a", 0, 60);
    scenario_commit(&t, "60");
    be_on("main");
    scenario_set_number(&t, "/a", 7, 70);
    scenario_commit(&t, "70");
    ck_assert_int_eq(merged_with("dev", 0), BRC_MERGE_MERGED);
    element_is(60);
    ck_assert_int_eq(reverted("HEAD", 1), BRC_PICK_COMMITTED);
    element_is(1);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 7), 70);
    ck_assert_int_eq(merged_with("dev", 0), BRC_MERGE_UP_TO_DATE);
    element_is(1);
    ck_assert_int_eq(reverted("HEAD", 0), BRC_PICK_COMMITTED);
    element_is(60);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 7), 70);
    scenario_whole(&t);
}
END_TEST

Suite *scenarios_suite(void)
{
    Suite *s = suite_create("scenarios");
    TCase *c = tcase_create("scenarios");
    tcase_add_checked_fixture(c, scenarios_setup, scenarios_teardown);
    tcase_add_test(c, s01_bases_that_disagree_decide_nothing);
    tcase_add_test(c, s05_groups_that_move_into_each_other_conflict);
    tcase_add_test(c, s16_a_merge_that_was_reverted_comes_back_by_a_second_revert);
    suite_add_tcase(s, c);
    return s;
}
