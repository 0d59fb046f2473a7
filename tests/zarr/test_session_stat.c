/* The state that a session reports of itself, and sessions on any revision. */
#include <string.h>

#include "../../src/breccia.h"
#include "../kit/scenario.h"
#include "../kit/suite.h"

TEST_SUITE(session_stat);

static brc_session_info stat_of(scenario *t, brc_session *s)
{
    brc_session_info info = BRC_SESSION_INFO_INIT;
    OK(t, brc_session_stat(&info, s, &t->err));
    return info;
}

static int same_state(const brc_session_info *a, const brc_session_info *b)
{
    return memcmp(&a->commit, &b->commit, sizeof(a->commit)) == 0 && a->draft == b->draft &&
           a->changes == b->changes;
}

TEST(a_session_says_what_it_shows)
{
    scenario t;
    scenario_start(&t);
    brc_session_info before = stat_of(&t, t.session), now;
    ck_assert(!before.has_commit && before.draft == 0 && before.mode == BRC_SESSION_WRITE);
    scenario_numbers(&t, "/a", 10, 4, 0);
    const brc_oid one = scenario_commit(&t, "one");
    before = stat_of(&t, t.session);
    ck_assert(before.has_commit && before.draft == 0 && before.changes == 0);
    ck_assert_mem_eq(&before.commit, &one, sizeof(one));
    brc_session *view = scenario_session(&t, t.repo, "main", BRC_SESSION_VIEW);
    brc_session *at = scenario_session(&t, t.repo, "main", BRC_SESSION_AT);
    for (int i = 0; i < 3; i++) {
        scenario_set_number(&t, "/a", 3, 30 + i);
        now = stat_of(&t, t.session);
        ck_assert(!same_state(&now, &before) && now.draft != 0);
        ck_assert_mem_eq(&now.commit, &one, sizeof(one));
        before = stat_of(&t, view);
        ck_assert(same_state(&now, &before) && before.mode == BRC_SESSION_VIEW);
    }
    scenario_commit(&t, "two");
    now = stat_of(&t, at);
    ck_assert(now.mode == BRC_SESSION_AT && now.draft == 0);
    ck_assert_mem_eq(&now.commit, &one, sizeof(one));
    scenario_set_number(&t, "/a", 3, 30); /* the branch's draft is used again */
    now = stat_of(&t, view);
    ck_assert(!same_state(&now, &before));
    before.size = 4;
    FAILS(&t, BRC_EINVAL, brc_session_stat(&before, view, &t.err));
    brc_session_free(view);
    brc_session_free(at);
    scenario_stop(&t);
}

TEST(any_revision_can_be_opened)
{
    static const int modes[] = { BRC_SESSION_VIEW, BRC_SESSION_WRITE };
    static const char *const fixed[] = { "v1", "main~1", "HEAD~1" };
    scenario t;
    scenario_start(&t);
    scenario_numbers(&t, "/a", 10, 4, 0);
    const brc_oid one = scenario_commit(&t, "one");
    OK(&t, brc_ref_create(t.repo, "v1", NULL, "first", BRC_REF_TAG, &t.err));
    scenario_set_number(&t, "/a", 3, 33);
    scenario_commit(&t, "two");
    for (size_t m = 0; m < 2; m++) {
        const int mode = modes[m] | BRC_SESSION_ANY_REV;
        brc_session *s = scenario_session(&t, t.repo, "main", mode);
        brc_session *head = scenario_session(&t, t.repo, NULL, mode);
        ck_assert_int_eq(stat_of(&t, s).mode, modes[m]);
        ck_assert_int_eq(stat_of(&t, head).mode, modes[m]);
        brc_session_free(s);
        brc_session_free(head);
        for (size_t i = 0; i < 3; i++) {
            s = scenario_session(&t, t.repo, fixed[i], mode);
            const brc_session_info info = stat_of(&t, s);
            ck_assert_int_eq(info.mode, BRC_SESSION_AT);
            ck_assert_mem_eq(&info.commit, &one, sizeof(one));
            ck_assert_int_eq(scenario_number(&t, s, "/a", 3), 3);
            FAILS(&t, BRC_EREADONLY, brc_group_create(s, "/g", NULL, &t.err));
            brc_session_free(s);
        }
        scenario_session_fails(&t, BRC_ENOTFOUND, "nothing", mode);
        ck_assert_ptr_nonnull(strstr(t.err.message, "nothing"));
    }
    scenario_session_fails(&t, BRC_EINVAL, "main", BRC_SESSION_AT | BRC_SESSION_ANY_REV);
    scenario_session_fails(&t, BRC_EINVAL, "main", BRC_SESSION_PRIVATE | BRC_SESSION_ANY_REV);
    scenario_stop(&t);
}

/* A view of commits has what is committed, however it came about and whatever is uncommitted. */
LOOP(a_view_of_commits_shows_no_draft_and_follows_the_branch, 0, 2)
{
    scenario t;
    brc_session *view, *working, *own;
    brc_session_info info = BRC_SESSION_INFO_INIT;
    const int mode = BRC_SESSION_VIEW | BRC_SESSION_COMMITS | (_i ? BRC_SESSION_ANY_REV : 0);
    scenario_start(&t);
    scenario_numbers(&t, "/a", 10, 4, 0);
    scenario_commit(&t, "one");
    OK(&t, brc_session_open(&view, t.repo, "main", mode, &t.err));
    OK(&t, brc_session_open(&working, t.repo, "main", BRC_SESSION_VIEW, &t.err));
    scenario_set_number(&t, "/a", 0, 7);
    ck_assert_int_eq(scenario_number(&t, view, "/a", 0), 0);
    ck_assert_int_eq(scenario_number(&t, working, "/a", 0), 7);
    OK(&t, brc_session_open(&own, t.repo, "main", BRC_SESSION_PRIVATE, &t.err));
    brc_array *a = scenario_array_at(&t, own, "/a");
    const int32_t nine = 9;
    brc_sel sel = BRC_SEL_INIT;
    OK(&t, brc_sel_parse(&sel, a, "[5]", &t.err));
    OK(&t, brc_array_write(a, &sel, &nine, sizeof(nine), &t.err));
    brc_array_free(a);
    brc_oid id;
    OK(&t, scenario_commit_of(&t, own, "beneath the draft", &id));
    brc_session_free(own);
    ck_assert_int_eq(scenario_number(&t, view, "/a", 5), 9);
    ck_assert_int_eq(scenario_number(&t, view, "/a", 0), 0);
    ck_assert_int_eq(scenario_number(&t, working, "/a", 5), 5); /* hidden by the draft */
    OK(&t, brc_session_stat(&info, view, &t.err));
    ck_assert_int_eq((int)info.draft, 0);
    ck_assert_mem_eq(&info.commit, &id, sizeof(id));
    scenario_commit(&t, "merged");
    ck_assert_int_eq(scenario_number(&t, view, "/a", 0), 7);
    ck_assert_int_eq(scenario_number(&t, view, "/a", 5), 9);
    FAILS(&t, BRC_EREADONLY, brc_key_set(view, "k", "", 0, 0, &t.err));
    brc_session_free(view);
    brc_session_free(working);
    FAILS(&t, BRC_EINVAL, brc_session_open(&view, t.repo, "main",
                                           BRC_SESSION_WRITE | BRC_SESSION_COMMITS, &t.err));
    FAILS(&t, BRC_EINVAL, brc_session_open(&view, t.repo, "main",
                                           BRC_SESSION_PRIVATE | BRC_SESSION_ANY_REV, &t.err));
    scenario_stop(&t);
}
