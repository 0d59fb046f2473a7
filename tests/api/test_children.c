/* Sessions of many processes: tokens, and children that begin with what their parent shows. */
#include <check.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../kit/children_kit.h"

Suite *children_suite(void);

static scenario t;

static void children_setup(void)
{
    scenario_start(&t);
    scenario_numbers(&t, "/a", 64, 16, 0);
    scenario_commit(&t, "first");
}

static void children_teardown(void)
{
    scenario_whole(&t);
    scenario_stop(&t);
}

static void need(brc_session *s, uint64_t i, int32_t value)
{
    ck_assert_int_eq(scenario_number(&t, s, "/a", i), value);
}

static void fill(brc_session *s, uint64_t from, uint64_t n, int32_t value)
{
    OK(&t, kit_fill(&t, s, "/a", from, n, value));
}

/* ---- tokens -------------------------------- */

static int write_ten(scenario *w, brc_session *s, void *ctx)
{
    (void)ctx;
    return kit_fill(w, s, "/a", 10, 10, 100);
}

static int write_and_be_killed(scenario *w, brc_session *s, void *ctx)
{
    (void)ctx;
    if (kit_fill(w, s, "/a", 20, 4, 200) == BRC_OK)
        raise(SIGKILL);
    return BRC_EIO;
}

START_TEST(another_process_writes_into_the_draft_of_a_token)
{
    brc_oid id;
    int status;
    brc_session *s = kit_private(&t, NULL);
    fill(s, 0, 5, 50);
    char *token = kit_token(&t, s);
    kit_worker_ends(kit_worker(&t, token, write_ten, NULL), BRC_OK);
    need(s, 0, 50);
    need(s, 10, 100);
    need(s, 20, 20);
    const pid_t pid = kit_worker(&t, token, write_and_be_killed, NULL);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    ck_assert_str_eq(kit_drafts(&t, t.repo), "1/0 alive ours; ");
    OK(&t, brc_gc(t.repo, NULL, NULL, &t.err));
    need(s, 23, 200);
    OK(&t, kit_commit(&t, s, &id));
    need(t.session, 23, 200);
    brc_session_free(s);
    free(token);
}
END_TEST

/* ---- children -------------------------------- */

START_TEST(a_child_begins_with_what_is_uncommitted)
{
    brc_oid id;
    int clean;
    brc_session *s = kit_private(&t, NULL);
    fill(s, 0, 5, 50);
    OK(&t, brc_attrs_set(s, "/a", "unit", "\"m\"", &t.err));
    OK(&t, brc_node_move(s, "/a", "/b", &t.err));
    brc_session *one = kit_fork(&t, s), *two = kit_fork(&t, s);
    ck_assert_str_eq(kit_drafts(&t, t.repo), "0/0 alive ours; 0/1 alive ours; 0/1 alive ours; ");
    ck_assert_int_eq(scenario_number(&t, one, "/b", 4), 50);
    ck_assert_int_eq(scenario_number(&t, two, "/b", 5), 5);
    ck_assert_int_eq(scenario_number(&t, s, "/b", 4), 50);
    OK(&t, kit_fill(&t, one, "/b", 0, 1, 1));
    OK(&t, kit_fill(&t, s, "/b", 0, 1, 2));
    ck_assert_int_eq(scenario_number(&t, one, "/b", 0), 1);
    ck_assert_int_eq(scenario_number(&t, two, "/b", 0), 50);
    ck_assert_int_eq(scenario_number(&t, s, "/b", 0), 2);
    OK(&t, brc_session_clean(&clean, two, &t.err));
    ck_assert_int_eq(clean, 0);
    FAILS(&t, BRC_EMISUSE, kit_commit(&t, one, &id));
    brc_session *three = kit_fork(&t, one);
    ck_assert_int_eq(scenario_number(&t, three, "/b", 0), 1);
    ck_assert_int_eq(scenario_number(&t, three, "/b", 1), 50);
    OK(&t, brc_session_discard(one, &t.err));
    ck_assert_int_eq(scenario_number(&t, one, "/b", 0), 50);
    ck_assert_int_eq(scenario_number(&t, three, "/b", 0), 1);
    OK(&t, kit_commit(&t, s, &id));
    ck_assert_int_eq(scenario_number(&t, t.session, "/b", 0), 2);
    ck_assert_int_eq(scenario_number(&t, three, "/b", 0), 1);
    brc_session_free(s);
    brc_session_free(one);
    brc_session_free(two);
    brc_session_free(three);
}
END_TEST

Suite *children_suite(void)
{
    Suite *s = suite_create("children");
    TCase *tc = tcase_create("children");
    tcase_add_checked_fixture(tc, children_setup, children_teardown);
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, another_process_writes_into_the_draft_of_a_token);
    tcase_add_test(tc, a_child_begins_with_what_is_uncommitted);
    suite_add_tcase(s, tc);
    return s;
}
