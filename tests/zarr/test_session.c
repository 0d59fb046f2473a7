/* Sessions: what they see, what they change, committing, switching, resetting, and
 * several of them at once. */
#include <stdio.h>
#include <string.h>

#include "../../src/breccia.h"
#include "../kit/scenario.h"
#include "../kit/suite.h"
#include "../kit/versions.h"

TEST_SUITE(session);

static int commit_code(scenario *t, const char *message, uint32_t flags, brc_oid *id)
{
    brc_commit_opts opts = BRC_COMMIT_OPTS_INIT;
    opts.message = message;
    opts.flags = flags;
    return brc_session_commit(id, t->session, &opts, &t->err);
}

static int same_id(const brc_oid *a, const brc_oid *b)
{
    return memcmp(a, b, sizeof(*a)) == 0;
}

static int kind_at(scenario *t, brc_session *s, const char *path)
{
    int kind;
    OK(t, brc_node_kind(&kind, s, path, &t->err));
    return kind;
}

/* ---- modes -------------------------------- */

TEST(modes_see_what_they_should)
{
    scenario t;
    scenario_start(&t);
    scenario_numbers(&t, "/a", 10, 4, 0);
    scenario_commit(&t, "one");
    scenario_set_number(&t, "/a", 3, 33);
    brc_session *at = scenario_session(&t, t.repo, "main", BRC_SESSION_AT);
    brc_session *head = scenario_session(&t, t.repo, NULL, BRC_SESSION_AT);
    brc_session *view = scenario_session(&t, t.repo, "main", BRC_SESSION_VIEW);
    ck_assert_int_eq(scenario_number(&t, at, "/a", 3), 3);
    ck_assert_int_eq(scenario_number(&t, head, "/a", 3), 3);
    ck_assert_int_eq(scenario_number(&t, view, "/a", 3), 33);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 3), 33);
    /* a committed version never changes under a session; a branch does */
    scenario_commit(&t, "two");
    scenario_set_number(&t, "/a", 3, 44);
    ck_assert_int_eq(scenario_number(&t, at, "/a", 3), 3);
    ck_assert_int_eq(scenario_number(&t, view, "/a", 3), 44);
    FAILS(&t, BRC_EREADONLY, brc_group_create(at, "/g", NULL, &t.err));
    FAILS(&t, BRC_EREADONLY, brc_group_create(view, "/g", NULL, &t.err));
    FAILS(&t, BRC_EREADONLY, brc_session_discard(view, &t.err));
    brc_session_free(at);
    brc_session_free(head);
    brc_session_free(view);
    scenario_stop(&t);
}

TEST(opening_refuses_what_is_not_there)
{
    scenario t;
    scenario_start(&t);
    scenario_session_fails(&t, BRC_ENOTFOUND, NULL, BRC_SESSION_AT); /* no commit yet */
    scenario_session_fails(&t, BRC_ENOTFOUND, "nothing", BRC_SESSION_AT);
    scenario_session_fails(&t, BRC_ENOTFOUND, "nothing", BRC_SESSION_VIEW);
    scenario_session_fails(&t, BRC_EINVAL, NULL, 4);
    scenario_session_fails(&t, BRC_EINVAL, NULL, -1);
    scenario_numbers(&t, "/a", 4, 4, 0);
    scenario_commit(&t, "one");
    OK(&t, brc_ref_create(t.repo, "v1", NULL, "first", BRC_REF_TAG, &t.err));
    brc_session *s = scenario_session(&t, t.repo, "v1", BRC_SESSION_AT);
    ck_assert_int_eq(scenario_number(&t, s, "/a", 2), 2);
    brc_session_free(s);
    scenario_session_fails(&t, BRC_ENOTFOUND, "v1", BRC_SESSION_WRITE); /* a tag is not a branch */
    scenario_close(&t);
    scenario_open(&t, NULL, BRC_OPEN_READONLY);
    scenario_session_fails(&t, BRC_EREADONLY, NULL, BRC_SESSION_WRITE);
    scenario_stop(&t);
}

TEST(uncommitted_changes_survive_reopening)
{
    scenario t;
    char tree[256];
    scenario_start(&t);
    scenario_numbers(&t, "/a", 10, 4, 0);
    scenario_numbers(&t, "/gone", 4, 4, 0);
    scenario_commit(&t, "one");
    scenario_set_number(&t, "/a", 9, 99);
    OK(&t, brc_node_remove(t.session, "/gone", &t.err));
    OK(&t, brc_group_create(t.session, "/g/h", "{\"k\":1}", &t.err));
    scenario_reopen(&t);
    ck_assert_int_eq(scenario_clean(&t), 0);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 9), 99);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 0), 0);
    ck_assert_str_eq(scenario_tree(&t, t.session, "/", 1, tree, sizeof(tree)), "/ /a* /g /g/h ");
    scenario_commit(&t, "two");
    scenario_reopen(&t);
    ck_assert_int_eq(scenario_clean(&t), 1);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 9), 99);
    scenario_whole(&t);
    scenario_stop(&t);
}

/* ---- committing -------------------------------- */

TEST(committing_needs_something_to_commit)
{
    scenario t;
    brc_oid id, zero;
    scenario_start(&t);
    memset(&zero, 0, sizeof(zero));
    FAILS(&t, BRC_EMISUSE, commit_code(&t, "nothing", 0, &id));
    ck_assert(same_id(&id, &zero));
    FAILS(&t, BRC_EMISUSE, commit_code(&t, "nothing to amend", BRC_COMMIT_AMEND, &id));
    OK(&t, commit_code(&t, "empty", BRC_COMMIT_ALLOW_EMPTY, &id));
    FAILS(&t, BRC_EMISUSE, commit_code(&t, "nothing", 0, &id));
    scenario_numbers(&t, "/a", 4, 4, 0);
    FAILS(&t, BRC_EINVAL, commit_code(&t, NULL, 0, &id));
    ck_assert_int_eq(scenario_clean(&t), 0);
    OK(&t, commit_code(&t, "one", 0, &id));
    ck_assert_int_eq(scenario_clean(&t), 1);
    FAILS(&t, BRC_EMISUSE, commit_code(&t, "again", 0, &id));
    scenario_stop(&t);
}

TEST(B28_change_and_change_back_is_clean)
{
    scenario t;
    brc_oid id;
    scenario_start(&t);
    scenario_numbers(&t, "/a", 10, 4, 0);
    OK(&t, brc_group_create(t.session, "/g", NULL, &t.err));
    scenario_commit(&t, "one");
    scenario_set_number(&t, "/a", 3, 33);
    ck_assert_int_eq(scenario_clean(&t), 0);
    scenario_set_number(&t, "/a", 3, 3);
    ck_assert_int_eq(scenario_clean(&t), 1);
    OK(&t, brc_attrs_set(t.session, "/g", "k", "[1, 2]", &t.err));
    ck_assert_int_eq(scenario_clean(&t), 0);
    OK(&t, brc_attrs_set(t.session, "/g", "k", NULL, &t.err));
    OK(&t, brc_node_move(t.session, "/g", "/h", 0, &t.err));
    ck_assert_int_eq(scenario_clean(&t), 0);
    OK(&t, brc_node_move(t.session, "/h", "/g", 0, &t.err));
    OK(&t, brc_group_create(t.session, "/new/deep", NULL, &t.err));
    OK(&t, brc_node_remove(t.session, "/new", &t.err));
    FAILS(&t, BRC_EMISUSE, commit_code(&t, "nothing", 0, &id));
    ck_assert_int_eq(scenario_clean(&t), 1);
    OK(&t, brc_ref_create(t.repo, "other", NULL, NULL, 0, &t.err));
    OK(&t, brc_switch(t.repo, "other", 0, &t.err)); /* clean: nothing is in the way */
    scenario_stop(&t);
}

TEST(amending_replaces_the_tip)
{
    scenario t;
    brc_oid first, second, amended;
    brc_commit_opts opts = BRC_COMMIT_OPTS_INIT;
    brc_commit *commit;
    scenario_start(&t);
    scenario_numbers(&t, "/a", 4, 4, 0);
    first = scenario_commit(&t, "one");
    scenario_set_number(&t, "/a", 0, 7);
    opts.message = "two";
    opts.author = "Ada";
    opts.meta_json = " { \"run\" : 18446744073709551615 } ";
    opts.time_us = 1234567;
    OK(&t, brc_session_commit(&second, t.session, &opts, &t.err));
    OK(&t, brc_commit_read(&commit, t.repo, &second, &t.err));
    ck_assert_int_eq(commit->time_us, 1234567);
    ck_assert_str_eq(commit->meta_json, "{\"run\":18446744073709551615}");
    brc_commit_free(commit);

    scenario_set_number(&t, "/a", 0, 8);
    memset(&opts, 0, sizeof(opts));
    opts.size = sizeof(opts);
    opts.flags = BRC_COMMIT_AMEND;
    OK(&t, brc_session_commit(&amended, t.session, &opts, &t.err));
    OK(&t, brc_commit_read(&commit, t.repo, &amended, &t.err));
    ck_assert_str_eq(commit->message, "two");
    ck_assert_str_eq(commit->author, "Ada");
    ck_assert_str_eq(commit->meta_json, "{\"run\":18446744073709551615}");
    ck_assert_uint_eq(commit->nparents, 1);
    ck_assert(same_id(&commit->parents[0], &first));
    brc_commit_free(commit);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 0), 8);
    brc_oid tip = scenario_id(&t, "main");
    ck_assert(same_id(&tip, &amended));
    OK(&t, brc_commit_read(&commit, t.repo, &second, &t.err)); /* nothing is lost */
    brc_commit_free(commit);

    opts.message = "better words";
    OK(&t, brc_session_commit(&amended, t.session, &opts, &t.err)); /* without a change */
    opts.meta_json = "[]";
    FAILS(&t, BRC_EINVAL, brc_session_commit(&amended, t.session, &opts, &t.err));
    scenario_stop(&t);
}

TEST(two_handles_share_the_uncommitted_changes)
{
    scenario t, u;
    brc_oid id;
    scenario_start(&t);
    scenario_numbers(&t, "/a", 10, 4, 0);
    scenario_commit(&t, "one");
    u = t;
    scenario_open(&u, NULL, 0);
    scenario_set_number(&t, "/a", 1, 11);
    ck_assert_int_eq(scenario_number(&u, u.session, "/a", 1), 11);
    scenario_set_number(&u, "/a", 9, 99);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 9), 99);
    scenario_commit(&u, "both");
    /* the other one goes on from there, with nothing left to commit */
    ck_assert_int_eq(scenario_clean(&t), 1);
    FAILS(&t, BRC_EMISUSE, commit_code(&t, "mine", 0, &id));
    scenario_set_number(&t, "/a", 0, 5);
    scenario_commit(&t, "mine");
    ck_assert_int_eq(scenario_number(&u, u.session, "/a", 0), 5);
    ck_assert_int_eq(scenario_number(&u, u.session, "/a", 9), 99);
    scenario_close(&u);
    scenario_stop(&t);
}

TEST(a_branch_that_moved_is_stale)
{
    scenario t, u;
    scenario_start(&t);
    scenario_numbers(&t, "/a", 10, 4, 0);
    brc_oid first = scenario_commit(&t, "one");
    scenario_set_number(&t, "/a", 0, 1);
    brc_oid second = scenario_commit(&t, "two");
    u = t;
    scenario_open(&u, NULL, 0);
    scenario_set_number(&u, "/a", 0, 2);
    brc_oid third = scenario_commit(&u, "three");
    FAILS(&t, BRC_ESTALE, brc_reset(t.repo, NULL, "main~1", BRC_RESET_HARD, &second, &t.err));
    brc_oid tip = scenario_id(&t, "main");
    ck_assert(same_id(&tip, &third));
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 0), 2);
    OK(&t, brc_reset(t.repo, NULL, "main~2", BRC_RESET_HARD, &third, &t.err));
    tip = scenario_id(&u, "main");
    ck_assert(same_id(&tip, &first));
    ck_assert_int_eq(scenario_number(&u, u.session, "/a", 0), 0);
    scenario_close(&u);
    scenario_stop(&t);
}

/* ---- switching and resetting -------------------------------- */

TEST(switching_refuses_to_lose_changes)
{
    scenario t;
    const char *head;
    scenario_start(&t);
    scenario_numbers(&t, "/a", 10, 4, 0);
    scenario_commit(&t, "one");
    OK(&t, brc_ref_create(t.repo, "dev", NULL, NULL, 0, &t.err));
    scenario_set_number(&t, "/a", 0, 7);
    FAILS(&t, BRC_ECONFLICT, brc_switch(t.repo, "dev", 0, &t.err));
    OK(&t, brc_head(&head, t.repo, &t.err));
    ck_assert_str_eq(head, "main");
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 0), 7);
    FAILS(&t, BRC_ENOTFOUND, brc_switch(t.repo, "nothing", BRC_SWITCH_DISCARD, &t.err));
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 0), 7);
    OK(&t, brc_switch(t.repo, "dev", BRC_SWITCH_DISCARD, &t.err));
    OK(&t, brc_head(&head, t.repo, &t.err));
    ck_assert_str_eq(head, "dev");
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 0), 0); /* main, as committed */
    brc_session *dev = scenario_session(&t, t.repo, NULL, BRC_SESSION_WRITE);
    OK(&t, brc_group_create(dev, "/d", NULL, &t.err));
    ck_assert_int_eq(kind_at(&t, dev, "/d"), BRC_GROUP);
    ck_assert_int_eq(kind_at(&t, t.session, "/d"), 0); /* the session stays with main */
    brc_session_free(dev);
    scenario_stop(&t);
}

static const char *head_of(scenario *t)
{
    const char *head;
    OK(t, brc_head(&head, t->repo, &t->err));
    return head;
}

static int first_number(scenario *t)
{
    brc_session *s = scenario_session(t, t->repo, NULL, BRC_SESSION_VIEW);
    int value = scenario_number(t, s, "/a", 0);
    brc_session_free(s);
    return value;
}

/* Changes may go along to a branch at the same commit, and an undo takes them back. */
TEST(switching_carries_changes)
{
    int64_t operation;
    scenario t;
    scenario_start(&t);
    scenario_numbers(&t, "/a", 10, 4, 0);
    scenario_commit(&t, "one");
    OK(&t, brc_ref_create(t.repo, "behind", NULL, NULL, 0, &t.err));
    scenario_set_number(&t, "/a", 0, 6);
    scenario_commit(&t, "two");
    scenario_set_number(&t, "/a", 0, 7);
    FAILS(&t, BRC_ECONFLICT, brc_switch(t.repo, "behind", BRC_SWITCH_CARRY, &t.err));
    ck_assert_int_eq(first_number(&t), 7);
    OK(&t, brc_begin(t.repo, &t.err));
    OK(&t, brc_ref_create(t.repo, "new", NULL, NULL, 0, &t.err));
    OK(&t, brc_switch(t.repo, "new", BRC_SWITCH_CARRY, &t.err));
    OK(&t, brc_end(t.repo, BRC_END_KEEP, &t.err));
    ck_assert_str_eq(head_of(&t), "new");
    ck_assert_int_eq(first_number(&t), 7);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 0), 6); /* of main, still */
    OK(&t, brc_undo(&operation, t.repo, 0, 0, &t.err));
    ck_assert_str_eq(head_of(&t), "main");
    ck_assert_int_eq(first_number(&t), 7);
    FAILS(&t, BRC_ENOTFOUND, brc_switch(t.repo, "new", 0, &t.err));
    OK(&t, brc_undo(&operation, t.repo, BRC_UNDO_REDO, 0, &t.err));
    ck_assert_str_eq(head_of(&t), "new");
    ck_assert_int_eq(first_number(&t), 7);
    OK(&t, brc_switch(t.repo, "main", BRC_SWITCH_DISCARD, &t.err));
    ck_assert_int_eq(first_number(&t), 6);
    scenario_stop(&t);
}

TEST(reset_keeps_changes_unless_hard)
{
    scenario t;
    scenario_start(&t);
    scenario_numbers(&t, "/a", 10, 4, 0);
    brc_oid first = scenario_commit(&t, "one");
    scenario_set_number(&t, "/a", 0, 7);
    scenario_commit(&t, "two");
    scenario_set_number(&t, "/a", 9, 8);
    OK(&t, brc_reset(t.repo, NULL, "main~1", 0, NULL, &t.err));
    ck_assert_int_eq(scenario_clean(&t), 0);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 0), 7);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 9), 8);
    brc_oid both = scenario_commit(&t, "both");
    brc_commit *commit;
    OK(&t, brc_commit_read(&commit, t.repo, &both, &t.err));
    ck_assert(same_id(&commit->parents[0], &first));
    brc_commit_free(commit);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 0), 7);

    scenario_set_number(&t, "/a", 1, 9);
    OK(&t, brc_reset(t.repo, NULL, "HEAD", BRC_RESET_HARD, NULL, &t.err));
    ck_assert_int_eq(scenario_clean(&t), 1);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 1), 1);
    OK(&t, brc_reset(t.repo, NULL, "main~1", BRC_RESET_HARD, &both, &t.err));
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 0), 0);
    ck_assert_int_eq(scenario_clean(&t), 1);
    FAILS(&t, BRC_ENOTFOUND, brc_reset(t.repo, NULL, "main~1", BRC_RESET_HARD, NULL, &t.err));
    scenario_whole(&t);
    scenario_stop(&t);
}

TEST(discard_drops_every_change)
{
    scenario t;
    char tree[256];
    scenario_start(&t);
    scenario_numbers(&t, "/a", 10, 4, 0);
    OK(&t, brc_session_discard(t.session, &t.err)); /* back to nothing */
    ck_assert_str_eq(scenario_tree(&t, t.session, "/", 1, tree, sizeof(tree)), "/ ");
    scenario_numbers(&t, "/a", 10, 4, 0);
    scenario_commit(&t, "one");
    scenario_set_number(&t, "/a", 3, 7);
    OK(&t, brc_node_move(t.session, "/a", "/b", 0, &t.err));
    OK(&t, brc_session_discard(t.session, &t.err));
    ck_assert_int_eq(scenario_clean(&t), 1);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 3), 3);
    ck_assert_int_eq(kind_at(&t, t.session, "/b"), 0);
    OK(&t, brc_session_discard(t.session, &t.err)); /* with nothing to drop it succeeds */
    scenario_stop(&t);
}

TEST(branches_have_changes_of_their_own)
{
    scenario t;
    scenario_start(&t);
    scenario_numbers(&t, "/a", 10, 4, 0);
    scenario_commit(&t, "one");
    OK(&t, brc_ref_create(t.repo, "dev", NULL, NULL, 0, &t.err));
    brc_session *dev = scenario_session(&t, t.repo, "dev", BRC_SESSION_WRITE);
    brc_session *main_session = t.session;
    scenario_set_number(&t, "/a", 0, 1);
    t.session = dev;
    scenario_set_number(&t, "/a", 0, 2);
    ck_assert_int_eq(scenario_number(&t, main_session, "/a", 0), 1);
    ck_assert_int_eq(scenario_number(&t, dev, "/a", 0), 2);
    scenario_commit(&t, "on dev");
    ck_assert_int_eq(scenario_number(&t, main_session, "/a", 0), 1);
    t.session = main_session;
    ck_assert_int_eq(scenario_clean(&t), 0);
    OK(&t, brc_session_discard(t.session, &t.err));
    ck_assert_int_eq(scenario_number(&t, main_session, "/a", 0), 0);
    ck_assert_int_eq(scenario_number(&t, dev, "/a", 0), 2);
    brc_session_free(dev);
    scenario_stop(&t);
}

TEST(a_branch_may_go_away_under_a_session)
{
    scenario t;
    int kind, clean;
    scenario_start(&t);
    scenario_numbers(&t, "/a", 10, 4, 0);
    scenario_commit(&t, "one");
    OK(&t, brc_ref_create(t.repo, "dev", NULL, NULL, 0, &t.err));
    brc_session *dev = scenario_session(&t, t.repo, "dev", BRC_SESSION_WRITE);
    OK(&t, brc_group_create(dev, "/g", NULL, &t.err));
    OK(&t, brc_ref_rename(t.repo, "dev", "next", 0, &t.err));
    FAILS(&t, BRC_ENOTFOUND, brc_node_kind(&kind, dev, "/a", &t.err));
    FAILS(&t, BRC_ENOTFOUND, brc_group_create(dev, "/h", NULL, &t.err));
    FAILS(&t, BRC_ENOTFOUND, brc_session_clean(&clean, dev, &t.err));
    brc_session_free(dev);
    dev = scenario_session(&t, t.repo, "next", BRC_SESSION_WRITE); /* the changes went along */
    ck_assert_int_eq(kind_at(&t, dev, "/g"), BRC_GROUP);
    FAILS(&t, BRC_EMISUSE, brc_ref_delete(t.repo, "next", 0, &t.err));
    OK(&t, brc_ref_delete(t.repo, "next", BRC_DELETE_FORCE, &t.err));
    FAILS(&t, BRC_ENOTFOUND, brc_group_create(dev, "/h", NULL, &t.err));
    brc_session_free(dev);
    ck_assert_int_eq(scenario_clean(&t), 1);
    scenario_stop(&t);
}

/* ---- handles -------------------------------- */

TEST(handles_are_freed_in_any_order)
{
    /* repository, session, array, iterator: every order of 4 */
    for (int order = 0; order < 24; order++) {
        scenario t;
        brc_array *a;
        brc_iter *log;
        int left[4] = { 0, 1, 2, 3 }, n = order;
        scenario_start(&t);
        scenario_numbers(&t, "/a", 10, 4, 0);
        scenario_commit(&t, "one");
        OK(&t, brc_array_open(&a, t.session, "/a", &t.err));
        OK(&t, brc_log(&log, t.repo, NULL, NULL, &t.err));
        for (int i = 4; i > 0; i--) {
            int at = n % i, what = left[at];
            n /= i;
            memmove(left + at, left + at + 1, (size_t)(3 - at) * sizeof(*left));
            if (what == 0)
                brc_free(t.repo);
            else if (what == 1)
                brc_session_free(t.session);
            else if (what == 2)
                brc_array_free(a);
            else
                brc_iter_free(log);
        }
        t.repo = NULL;
        t.session = NULL;
        scenario_stop(&t);
    }
    brc_free(NULL);
    brc_session_free(NULL);
    brc_array_free(NULL);
    brc_iter_free(NULL);
    brc_commit_free(NULL);
    brc_pool_free(NULL);
    brc_registry_free(NULL);
    brc_buf_dispose(NULL);
}

TEST(an_array_outlives_its_repository_handle)
{
    scenario t;
    brc_array *a;
    int32_t got[10];
    scenario_start(&t);
    scenario_numbers(&t, "/a", 10, 4, 5);
    OK(&t, brc_array_open(&a, t.session, "/a", &t.err));
    scenario_close(&t);
    OK(&t, brc_array_read(a, NULL, got, sizeof(got), &t.err));
    ck_assert_int_eq(got[9], 14);
    brc_array_free(a);
    scenario_stop(&t);
}

TEST(an_iterator_stays_at_its_end)
{
    scenario t;
    brc_iter *it;
    const brc_ref *ref;
    scenario_start(&t);
    OK(&t, brc_refs(&it, t.repo, &t.err));
    FAILS(&t, BRC_EMISUSE, brc_next(NULL, &ref, &t.err));
    ck_assert_int_eq(brc_next(it, &ref, &t.err), 1);
    ck_assert_str_eq(ref->name, "main");
    ck_assert_uint_eq(ref->flags, BRC_REF_CURRENT | BRC_REF_UNBORN);
    ck_assert_int_eq(brc_next(it, &ref, &t.err), 0);
    ck_assert_ptr_null(ref);
    ck_assert_int_eq(brc_next(it, &ref, &t.err), 0);
    brc_iter_free(it);
    scenario_stop(&t);
}

/* ---- transactions -------------------------------- */

TEST(begin_and_end_make_one_transaction)
{
    scenario t;
    char tree[256];
    scenario_start(&t);
    scenario_numbers(&t, "/a", 10, 4, 0);
    scenario_commit(&t, "one");
    OK(&t, brc_begin(t.repo, &t.err));
    OK(&t, brc_begin(t.repo, &t.err)); /* pairs nest */
    scenario_set_number(&t, "/a", 0, 7);
    OK(&t, brc_group_create(t.session, "/g", NULL, &t.err));
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 0), 7);
    scenario_commit(&t, "two");
    OK(&t, brc_ref_create(t.repo, "dev", NULL, NULL, 0, &t.err));
    OK(&t, brc_end(t.repo, BRC_END_KEEP, &t.err));
    OK(&t, brc_end(t.repo, 0, &t.err)); /* undoes them all */
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 0), 0);
    ck_assert_int_eq(scenario_clean(&t), 1);
    ck_assert_str_eq(scenario_tree(&t, t.session, "/", 0, tree, sizeof(tree)), "/a* ");
    scenario_session_fails(&t, BRC_ENOTFOUND, "dev", BRC_SESSION_VIEW);
    FAILS(&t, BRC_EMISUSE, brc_end(t.repo, BRC_END_KEEP, &t.err));

    OK(&t, brc_begin(t.repo, &t.err));
    scenario_set_number(&t, "/a", 0, 8);
    scenario_commit(&t, "three");
    OK(&t, brc_end(t.repo, BRC_END_KEEP, &t.err));
    scenario_reopen(&t);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 0), 8);
    scenario_whole(&t);
    scenario_stop(&t);
}

TEST(a_failed_step_undoes_the_transaction)
{
    scenario t;
    scenario_start(&t);
    scenario_numbers(&t, "/a", 10, 4, 0);
    scenario_commit(&t, "one");
    OK(&t, brc_begin(t.repo, &t.err));
    scenario_set_number(&t, "/a", 0, 7);
    FAILS(&t, BRC_EEXISTS, brc_group_create(t.session, "/a", NULL, &t.err));
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 1), 1); /* reading is all right */
    FAILS(&t, BRC_EMISUSE, brc_end(t.repo, BRC_END_KEEP, &t.err));
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 0), 0);
    /* and the session goes on: what it changes now is there for others */
    scenario_set_number(&t, "/a", 0, 9);
    brc_session *view = scenario_session(&t, t.repo, NULL, BRC_SESSION_VIEW);
    ck_assert_int_eq(scenario_number(&t, view, "/a", 0), 9);
    brc_session_free(view);
    scenario_reopen(&t);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 0), 9);
    ck_assert_int_eq(scenario_clean(&t), 0);
    scenario_stop(&t);
}

TEST(an_unfinished_transaction_is_undone_at_the_end)
{
    scenario t;
    scenario_start(&t);
    scenario_numbers(&t, "/a", 10, 4, 0);
    OK(&t, brc_begin(t.repo, &t.err));
    scenario_set_number(&t, "/a", 0, 7);
    scenario_reopen(&t);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 0), 0);
    scenario_whole(&t);
    scenario_stop(&t);
}

TEST(a_busy_file_is_waited_for_or_refused)
{
    scenario t, u;
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    scenario_start(&t);
    scenario_numbers(&t, "/a", 10, 4, 0);
    u = t;
    opts.wait_ms = -1;
    scenario_open(&u, &opts, 0);
    OK(&t, brc_begin(t.repo, &t.err));
    FAILS(&u, BRC_EBUSY, brc_group_create(u.session, "/g", NULL, &u.err));
    OK(&t, brc_end(t.repo, 0, &t.err));
    OK(&u, brc_group_create(u.session, "/g", NULL, &u.err));
    scenario_close(&u);
    scenario_stop(&t);
}

TEST(an_interrupted_repository_stays_interrupted_until_it_is_cleared)
{
    scenario t;
    int kind;
    scenario_start(&t);
    scenario_numbers(&t, "/a", 10, 4, 0);
    brc_interrupt(t.repo, 1);
    FAILS(&t, BRC_EINTERRUPT, brc_group_create(t.session, "/g", NULL, &t.err));
    FAILS(&t, BRC_EINTERRUPT, brc_node_kind(&kind, t.session, "/a", &t.err));
    brc_interrupt(t.repo, 0);
    ck_assert_int_eq(kind_at(&t, t.session, "/a"), BRC_ARRAY);
    OK(&t, brc_group_create(t.session, "/h", NULL, &t.err));
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 9), 9);
    brc_interrupt(t.repo, 1);
    FAILS(&t, BRC_EINTERRUPT, brc_group_create(t.session, "/g", NULL, &t.err));
    scenario_reopen(&t);
    ck_assert_int_eq(kind_at(&t, t.session, "/h"), BRC_GROUP);
    ck_assert_int_eq(kind_at(&t, t.session, "/g"), 0);
    scenario_stop(&t);
}

TEST(opening_a_file_refuses_what_it_should)
{
    scenario t;
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    breccia *repo = (breccia *)&t;
    char name[128];
    scenario_start(&t);
    opts.flags = BRC_OPEN_CREATE;
    FAILS(&t, BRC_EEXISTS, brc_open(&repo, t.file, &opts, &t.err));
    ck_assert_ptr_null(repo);
    opts.flags = BRC_OPEN_CREATE | BRC_OPEN_READONLY;
    FAILS(&t, BRC_EINVAL, brc_open(&repo, t.file, &opts, &t.err));
    opts.flags = 1u << 20;
    FAILS(&t, BRC_EINVAL, brc_open(&repo, t.file, &opts, &t.err));
    FAILS(&t, BRC_EINVAL, brc_open(&repo, "", NULL, &t.err));
    FAILS(&t, BRC_EINVAL, brc_open(&repo, NULL, NULL, &t.err));
    snprintf(name, sizeof(name), "%s/none.brc", t.dir);
    FAILS(&t, BRC_ENOTFOUND, brc_open(&repo, name, NULL, &t.err));
    FAILS(&t, BRC_EFORMAT, brc_open(&repo, t.dir, NULL, &t.err));
    opts.flags = BRC_OPEN_CREATE;
    opts.hash = "md5";
    ck_assert_int_lt(brc_open(&repo, name, &opts, &t.err), 0);
    FAILS(&t, BRC_ENOTFOUND, brc_open(&repo, name, NULL, &t.err)); /* nothing was left behind */
    FILE *f = fopen(name, "w");
    ck_assert_ptr_nonnull(f);
    for (int i = 0; i < 500; i++)
        fputs("this is not a repository\n", f);
    fclose(f);
    FAILS(&t, BRC_EFORMAT, brc_open(&repo, name, NULL, &t.err));
    scenario_stop(&t);
}
