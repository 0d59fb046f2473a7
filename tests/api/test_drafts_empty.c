/* Drafts in which nothing is: they go with what was in them, and those of dead processes keep
 * nothing. */
#include "../kit/drafts_kit.h"
#include "../kit/suite.h"

TEST_SUITE(drafts_empty);

SCENARIO_NUMBERS_FIXTURE(t, 8, 4)

/* ---- drafts that end with the commit -------------------------------- */

CASE("drafts_empty", .setup = t_numbers, .teardown = t_stop);

/* In the transaction of the commit itself: so there is no race that could leave it behind. */
TEST(a_draft_goes_with_what_was_in_it)
{
    brc_oid id;
    brc_session *mine = scenario_session(&t, t.repo, NULL, BRC_SESSION_PRIVATE);
    for (int i = 0; i < 3; i++) { /* a commit, one that is merged onto the tip, and none */
        scenario_put(&t, mine, "/a", 0, 10 + i);
        if (i == 1) {
            scenario_put(&t, t.session, "/a", 3, 99);
            scenario_commit(&t, "theirs");
        }
        ck_assert_int_eq(scenario_ask(&t, "SELECT count(*) FROM draft WHERE kind=2"), 1);
        if (i < 2)
            OK(&t, scenario_commit_of(&t, mine, "mine", &id));
        else
            OK(&t, brc_session_discard(mine, &t.err));
        ck_assert_int_eq(scenario_ask(&t, "SELECT count(*) FROM draft WHERE kind=2"), 0);
        ck_assert_int_eq(scenario_is_clean(&t, mine), 1);
        ck_assert_int_eq(scenario_number(&t, mine, "/a", 0), i < 2 ? 10 + i : 11);
    }
    brc_session_free(mine);
}

/* A transaction that is undone brings it back, with what was in it. */
TEST(or_with_the_transaction_of_which_the_commit_is_a_part)
{
    brc_oid id;
    brc_session *mine = scenario_session(&t, t.repo, NULL, BRC_SESSION_PRIVATE);
    for (int keep = 0; keep < 2; keep++) {
        const uint32_t how = keep ? BRC_END_KEEP : 0;
        scenario_put(&t, mine, "/a", 0, 20);
        OK(&t, brc_begin(t.repo, &t.err));
        OK(&t, scenario_commit_of(&t, mine, "mine", &id));
        ck_assert_int_eq(scenario_is_clean(&t, mine), 1);
        OK(&t, brc_end(t.repo, how, &t.err));
        ck_assert_str_eq(drafts_list(&t, t.repo), keep ? "" : "main alive ours 1; ");
        ck_assert_int_eq(scenario_number(&t, mine, "/a", 0), 20);
        ck_assert_int_eq(scenario_is_clean(&t, mine), keep);
    }
    OK(&t, brc_begin(t.repo, &t.err)); /* what comes behind the commit stays */
    scenario_put(&t, mine, "/a", 1, 21);
    OK(&t, scenario_commit_of(&t, mine, "one", &id));
    scenario_put(&t, mine, "/a", 1, 22);
    OK(&t, brc_end(t.repo, BRC_END_KEEP, &t.err));
    ck_assert_str_eq(drafts_list(&t, t.repo), "main alive ours 1; ");
    OK(&t, scenario_commit_of(&t, mine, "two", &id));
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 1), 22);
    brc_session_free(mine);
}

/* Its number was given out. */
TEST(but_not_one_that_others_may_work_in)
{
    brc_oid id;
    brc_session *mine = scenario_session(&t, t.repo, NULL, BRC_SESSION_PRIVATE), *again;
    const int64_t number = scenario_draft(&t, mine);
    scenario_put(&t, mine, "/a", 0, 30);
    OK(&t, scenario_commit_of(&t, mine, "mine", &id));
    OK(&t, scenario_draft_open(&again, t.repo, number, &t.err));
    scenario_put(&t, again, "/a", 1, 31);
    ck_assert_int_eq(scenario_number(&t, mine, "/a", 1), 31);
    brc_session_free(again);
    OK(&t, scenario_commit_of(&t, mine, "theirs", &id));
    brc_session_free(mine);
    OK(&t, brc_draft_drop(t.repo, number, &t.err));
}

/* ---- what the dead left -------------------------------- */

/* An empty draft of a process that has ended, over what main was by then. */
static void leave_an_empty_draft(void)
{
    scenario_close(&t);
    drafts_leave(&t, 70);
    scenario_sql(&t, "DELETE FROM draft_chunk; DELETE FROM draft_node");
    scenario_open(&t, NULL, 0);
    ck_assert_str_eq(drafts_list(&t, t.repo), "main dead 0; ");
}

TEST(an_empty_draft_of_a_dead_process_keeps_no_version)
{
    brc_expire_opts opts = BRC_EXPIRE_OPTS_INIT;
    brc_expire_report report = BRC_EXPIRE_REPORT_INIT;
    leave_an_empty_draft();
    for (int i = 0; i < 3; i++) {
        scenario_put(&t, t.session, "/a", 0, 40 + i);
        scenario_commit(&t, "one more");
    }
    opts.keep_last = 1;
    opts.flags = BRC_EXPIRE_DRY_RUN;
    OK(&t, brc_expire(&report, NULL, t.repo, &opts, &t.err));
    ck_assert_uint_eq(report.kept, 1);
    ck_assert_str_eq(drafts_list(&t, t.repo), "main dead stale 0; ");
    opts.flags = 0;
    OK(&t, brc_expire(&report, NULL, t.repo, &opts, &t.err));
    ck_assert_uint_eq(report.kept, 1);
    ck_assert_str_eq(drafts_list(&t, t.repo), "");
}

/* One with changes does: they can be adopted. */
TEST(but_one_with_changes_does)
{
    brc_expire_opts opts = BRC_EXPIRE_OPTS_INIT;
    brc_expire_report report = BRC_EXPIRE_REPORT_INIT;
    drafts_leave_behind(&t, 70, 0);
    scenario_put(&t, t.session, "/a", 0, 41);
    scenario_commit(&t, "one more");
    opts.keep_last = 1;
    OK(&t, brc_expire(&report, NULL, t.repo, &opts, &t.err));
    ck_assert_uint_eq(report.kept, 2);
    ck_assert_str_eq(drafts_list(&t, t.repo), "main dead stale 1; ");
    OK(&t, brc_draft_drop(t.repo, drafts_last(&t, t.repo), &t.err));
}

TEST(nor_does_it_keep_a_branch)
{
    OK(&t, brc_ref_create(t.repo, "side", "main", NULL, 0, &t.err));
    leave_an_empty_draft();
    OK(&t, brc_switch(t.repo, "side", 0, &t.err));
    OK(&t, brc_ref_delete(t.repo, "main", 0, &t.err));
    ck_assert_str_eq(drafts_list(&t, t.repo), "");
}

/* Nothing is in it yet, but its number is known, and others may open it. */
TEST(expire_leaves_empty_drafts_of_the_living)
{
    brc_oid id;
    brc_session *again, *mine = scenario_session(&t, t.repo, NULL, BRC_SESSION_PRIVATE);
    brc_expire_opts opts = BRC_EXPIRE_OPTS_INIT;
    opts.keep_last = 1;
    const int64_t number = scenario_draft(&t, mine);
    OK(&t, brc_expire(NULL, NULL, t.repo, &opts, &t.err));
    OK(&t, scenario_draft_open(&again, t.repo, number, &t.err));
    scenario_put(&t, again, "/a", 1, 31);
    ck_assert_int_eq(scenario_number(&t, mine, "/a", 1), 31);
    brc_session_free(again);
    OK(&t, scenario_commit_of(&t, mine, "mine", &id));
    brc_session_free(mine);
    OK(&t, brc_draft_drop(t.repo, number, &t.err));
}
