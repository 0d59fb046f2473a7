/* The rows of a session's changes that stay in the file: after a commit, a renamed branch, a
 * transaction that was undone. */
#include <string.h>

#include "../../src/breccia.h"
#include "../kit/scenario.h"
#include "../kit/suite.h"

TEST_SUITE(session_rows);

TEST(f22_the_current_branch_may_be_renamed)
{
    scenario t;
    const char *head;
    scenario_start(&t);
    scenario_numbers(&t, "/a", 10, 4, 0);
    scenario_commit(&t, "one");
    scenario_set_number(&t, "/a", 3, 77);
    OK(&t, brc_ref_rename(t.repo, "main", "trunk", 0, &t.err));
    OK(&t, brc_head(&head, t.repo, &t.err));
    ck_assert_str_eq(head, "trunk");
    scenario_reopen(&t);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 3), 77); /* not committed yet */
    ck_assert_int_eq(scenario_clean(&t), 0);
    scenario_commit(&t, "two");
    FAILS(&t, BRC_ENOTFOUND, brc_switch(t.repo, "main", 0, &t.err));
    scenario_whole(&t);
    scenario_stop(&t);
}

/* Rows that stayed behind would be what the next session stands on. */
TEST(f22_a_commit_leaves_no_draft)
{
    scenario t;
    scenario_start(&t);
    scenario_numbers(&t, "/a", 10, 4, 0);
    ck_assert_int_eq(scenario_ask(&t, "SELECT count(*) FROM draft"), 1);
    scenario_commit(&t, "one");
    ck_assert_int_eq(scenario_ask(&t, "SELECT count(*) FROM draft WHERE state<>3"), 0);
    ck_assert_int_eq(scenario_ask(&t, "SELECT count(*) FROM draft_node WHERE draft<>0"), 0);
    ck_assert_int_eq(scenario_ask(&t, "SELECT count(*) FROM draft_chunk"), 0);
    scenario_stop(&t);
}

#define RESTING "SELECT count(*) FROM draft WHERE kind=1 AND state=3 AND base IS NULL AND parts=0"

/* The branch's next changes take the row; a branch that goes, or gets another name, or what a
 * private session hands over, is not in its way. */
TEST(a_committed_draft_rests)
{
    scenario t;
    brc_iter *drafts;
    const brc_draft *draft;
    scenario_start(&t);
    scenario_numbers(&t, "/a", 10, 4, 0);
    OK(&t, brc_attrs_set(t.session, "/a", "k", "1", &t.err));
    OK(&t, brc_node_move(t.session, "/a", "/b", 0, &t.err));
    scenario_commit(&t, "one");
    ck_assert_int_eq(scenario_ask(&t, RESTING), 1);
    OK(&t, brc_drafts(&drafts, t.repo, &t.err));
    ck_assert_int_eq(brc_next(drafts, &draft, &t.err), 0);
    brc_iter_free(drafts);
    const int64_t before = scenario_ask(&t, "SELECT changes FROM draft");
    scenario_set_number(&t, "/b", 3, 77);
    ck_assert_int_eq(scenario_ask(&t, "SELECT count(*) FROM draft WHERE id=1 AND state=1"), 1);
    ck_assert_int_gt(scenario_ask(&t, "SELECT changes FROM draft"), before);
    scenario_commit(&t, "two");
    OK(&t, brc_ref_rename(t.repo, "main", "trunk", 0, &t.err));
    scenario_reopen(&t);
    brc_session *own = scenario_session(&t, t.repo, NULL, BRC_SESSION_PRIVATE);
    OK(&t, brc_group_create(own, "/g", NULL, &t.err));
    OK(&t, brc_session_hand_over(own, t.session, &t.err));
    brc_session_free(own);
    ck_assert_int_eq(scenario_ask(&t, "SELECT count(*) FROM draft WHERE state=1 AND kind=1"), 1);
    ck_assert_int_eq(scenario_ask(&t, RESTING), 0);
    scenario_commit(&t, "three");
    ck_assert_int_eq(scenario_ask(&t, RESTING), 1);
    OK(&t, brc_ref_create(t.repo, "other", NULL, NULL, 0, &t.err));
    OK(&t, brc_switch(t.repo, "other", 0, &t.err));
    OK(&t, brc_ref_delete(t.repo, "trunk", BRC_DELETE_FORCE, &t.err));
    ck_assert_int_eq(scenario_ask(&t, "SELECT count(*) FROM draft"), 0);
    scenario_whole(&t);
    scenario_stop(&t);
}

TEST(f22_what_a_transaction_undoes_is_not_seen)
{
    scenario t;
    brc_array *a;
    int32_t numbers[10] = { 0 }, got[10];
    uint64_t small = 5;
    scenario_start(&t);
    scenario_numbers(&t, "/a", 10, 4, 1);
    scenario_commit(&t, "one");
    OK(&t, brc_array_open(&a, t.session, "/a", &t.err));
    OK(&t, brc_begin(t.repo, &t.err));
    OK(&t, brc_array_write(a, NULL, numbers, sizeof(numbers), &t.err));
    OK(&t, brc_array_resize(a, &small, &t.err));
    OK(&t, brc_group_create(t.session, "/g", NULL, &t.err));
    OK(&t, brc_array_read(a, NULL, got, 5 * sizeof(int32_t), &t.err));
    ck_assert_int_eq(got[4], 0);
    OK(&t, brc_end(t.repo, 0, &t.err));
    OK(&t, brc_array_read(a, NULL, got, sizeof(got), &t.err));
    for (int i = 0; i < 10; i++)
        ck_assert_int_eq(got[i], i + 1);
    FAILS(&t, BRC_ENOTFOUND, brc_node_remove(t.session, "/g", &t.err));
    ck_assert_int_eq(scenario_clean(&t), 1);
    brc_array_free(a);
    scenario_stop(&t);
}
