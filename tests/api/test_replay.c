/* Commits of private sessions whose branch has moved meanwhile. */
#include <check.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "../kit/scenario.h"

Suite *replay_suite(void);

enum { ROUNDS = 150 }; /* with collections beside them */

static scenario t;
static brc_session *mine;

/* /a with 16 numbers in chunks of 4, committed; `mine` begins there. */
static void replay_setup(void)
{
    scenario_start(&t);
    scenario_numbers(&t, "/a", 16, 4, 0);
    scenario_commit(&t, "first");
    OK(&t, brc_session_open(&mine, t.repo, NULL, BRC_SESSION_PRIVATE, &t.err));
}

static void replay_teardown(void)
{
    brc_session_free(mine);
    scenario_whole(&t);
    scenario_stop(&t);
}

static int commit_mine(uint32_t flags, brc_oid *id)
{
    brc_commit_opts opts = BRC_COMMIT_OPTS_INIT;
    opts.message = "mine";
    opts.flags = flags;
    return brc_session_commit(id, mine, &opts, &t.err);
}

static int conflicts_of(brc_session *s, char *first, size_t size)
{
    brc_iter *it;
    const brc_conflict *c;
    int n = 0, rc;
    first[0] = '\0';
    OK(&t, brc_session_conflicts(&it, s, &t.err));
    while ((rc = brc_conflicts_next(it, &c, &t.err)) > 0)
        if (n++ == 0)
            snprintf(first, size, "%s %s %s", c->path, c->kind, c->key != NULL ? c->key : "");
    ck_assert_int_eq(rc, 0);
    brc_iter_free(it);
    return n;
}

static int conflicts_of_mine(char *first, size_t size)
{
    return conflicts_of(mine, first, size);
}

/* The branch's tip is this commit, with this one parent. */
static void follows(const brc_oid *id, const brc_oid *parent)
{
    brc_oid tip;
    brc_commit *commit;
    OK(&t, brc_resolve(&tip, t.repo, "main", &t.err));
    ck_assert_mem_eq(&tip, id, sizeof(tip));
    OK(&t, brc_commit_read(&commit, t.repo, id, &t.err));
    ck_assert_uint_eq(commit->nparents, 1);
    ck_assert_mem_eq(&commit->parents[0], parent, sizeof(*parent));
    brc_commit_free(commit);
}

/* The branch has another array at the path: that this one is of the same form says nothing. */
START_TEST(a_private_change_of_another_array_at_the_path_is_a_conflict)
{
    char first[128];
    brc_oid id;
    scenario_put(&t, mine, "/a", 15, 7);
    OK(&t, brc_node_remove(t.session, "/a", &t.err));
    scenario_numbers(&t, "/a", 16, 4, 100);
    scenario_commit(&t, "made again");
    ck_assert_int_eq(commit_mine(0, &id), BRC_ECONFLICT);
    ck_assert_int_eq(conflicts_of_mine(first, sizeof(first)), 1);
    ck_assert_str_eq(first, "/a replaced ");
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 15), 115);
}
END_TEST

/* And the other way round. */
START_TEST(a_private_array_in_the_place_of_one_that_changed_is_a_conflict)
{
    char first[128];
    brc_oid id;
    brc_session *shared = t.session;
    OK(&t, brc_node_remove(mine, "/a", &t.err));
    t.session = mine;
    scenario_numbers(&t, "/a", 16, 4, 100);
    t.session = shared;
    scenario_set_number(&t, "/a", 15, 7);
    scenario_commit(&t, "changed");
    ck_assert_int_eq(commit_mine(0, &id), BRC_ECONFLICT);
    ck_assert_int_eq(conflicts_of_mine(first, sizeof(first)), 1);
    ck_assert_str_eq(first, "/a replaced ");
}
END_TEST

START_TEST(what_does_not_overlap_is_committed)
{
    char first[200];
    brc_oid id, theirs;
    scenario_put(&t, mine, "/a", 0, 100);
    OK(&t, brc_group_create(mine, "/mine", NULL, &t.err));
    OK(&t, brc_attrs_set(mine, "/a", "one", "1", &t.err));
    scenario_set_number(&t, "/a", 5, 105);
    OK(&t, brc_group_create(t.session, "/theirs", NULL, &t.err));
    OK(&t, brc_attrs_set(t.session, "/a", "two", "2", &t.err));
    theirs = scenario_commit(&t, "theirs");
    ck_assert_int_eq(conflicts_of_mine(first, sizeof(first)), 0);
    OK(&t, commit_mine(0, &id));
    follows(&id, &theirs);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 0), 100);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 5), 105);
    char tree[200];
    scenario_tree(&t, t.session, "/", 1, tree, sizeof(tree));
    ck_assert_str_eq(tree, "/ /a* /mine /theirs ");
    int clean;
    OK(&t, brc_session_clean(&clean, mine, &t.err));
    ck_assert_int_eq(clean, 1);
    scenario_put(&t, mine, "/a", 1, 101); /* it goes on from there */
    brc_oid next;
    OK(&t, commit_mine(0, &next));
    follows(&next, &id);
}
END_TEST

START_TEST(conflicts_keep_the_draft)
{
    char first[200];
    brc_oid id, theirs;
    scenario_put(&t, mine, "/a", 0, 100);
    scenario_put(&t, mine, "/a", 9, 109);
    scenario_set_number(&t, "/a", 0, 200);
    theirs = scenario_commit(&t, "theirs");
    FAILS(&t, BRC_ECONFLICT, commit_mine(0, &id));
    ck_assert_ptr_nonnull(strstr(t.err.message, "/a"));
    ck_assert_int_eq(conflicts_of_mine(first, sizeof(first)), 1);
    ck_assert_str_eq(first, "/a chunk c/0");
    ck_assert_int_eq(scenario_number(&t, mine, "/a", 0), 100);
    ck_assert_int_eq(scenario_number(&t, mine, "/a", 9), 109);
    OK(&t, brc_resolve(&id, t.repo, "main", &t.err));
    ck_assert_mem_eq(&id, &theirs, sizeof(id));
    scenario_put(&t, mine, "/a", 0, 200); /* settled: both say the same now */
    OK(&t, commit_mine(0, &id));
    follows(&id, &theirs);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 0), 200);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 9), 109);
}
END_TEST

START_TEST(the_flag_gives_the_old_answer)
{
    brc_oid id;
    scenario_put(&t, mine, "/a", 0, 100);
    scenario_set_number(&t, "/a", 5, 105);
    scenario_commit(&t, "theirs");
    FAILS(&t, BRC_ESTALE, commit_mine(BRC_COMMIT_NO_MERGE, &id));
    FAILS(&t, BRC_ESTALE, commit_mine(BRC_COMMIT_AMEND, &id));
    OK(&t, brc_begin(t.repo, &t.err));
    FAILS(&t, BRC_ESTALE, commit_mine(0, &id));
    OK(&t, brc_end(t.repo, 0, &t.err));
    ck_assert_int_eq(scenario_number(&t, mine, "/a", 0), 100);
    OK(&t, commit_mine(0, &id));
}
END_TEST

START_TEST(the_same_change_is_there_already)
{
    brc_oid id, theirs;
    int clean;
    scenario_put(&t, mine, "/a", 3, 103);
    scenario_set_number(&t, "/a", 3, 103);
    theirs = scenario_commit(&t, "theirs");
    OK(&t, commit_mine(0, &id));
    ck_assert_mem_eq(&id, &theirs, sizeof(id));
    OK(&t, brc_session_clean(&clean, mine, &t.err));
    ck_assert_int_eq(clean, 1);
}
END_TEST

START_TEST(an_edit_follows_a_move)
{
    brc_oid id, theirs;
    scenario_put(&t, mine, "/a", 3, 103);
    OK(&t, brc_group_create(t.session, "/g", NULL, &t.err));
    OK(&t, brc_node_move(t.session, "/a", "/g/b", &t.err));
    theirs = scenario_commit(&t, "moved");
    OK(&t, commit_mine(0, &id));
    follows(&id, &theirs);
    ck_assert_int_eq(scenario_number(&t, t.session, "/g/b", 3), 103);
    ck_assert_int_eq(scenario_number(&t, mine, "/g/b", 3), 103);
}
END_TEST

START_TEST(a_removed_array_with_changes_is_a_conflict)
{
    char first[200];
    brc_oid id;
    scenario_put(&t, mine, "/a", 3, 103);
    OK(&t, brc_node_remove(t.session, "/a", &t.err));
    scenario_commit(&t, "removed");
    FAILS(&t, BRC_ECONFLICT, commit_mine(0, &id));
    ck_assert_int_eq(conflicts_of_mine(first, sizeof(first)), 1);
    ck_assert_str_eq(first, "/a deleted ");
    ck_assert_int_eq(scenario_number(&t, mine, "/a", 3), 103);
}
END_TEST

/* What the branch's sessions share is merged in the same way. */
START_TEST(shared_changes_are_merged_too)
{
    char first[200];
    brc_oid id, theirs;
    brc_commit_opts opts = BRC_COMMIT_OPTS_INIT;
    opts.message = "shared";
    scenario_set_number(&t, "/a", 0, 200);
    scenario_set_number(&t, "/a", 9, 209);
    scenario_put(&t, mine, "/a", 0, 100);
    scenario_put(&t, mine, "/a", 1, 101);
    OK(&t, commit_mine(0, &theirs));
    ck_assert_int_eq(conflicts_of(t.session, first, sizeof(first)), 1);
    ck_assert_str_eq(first, "/a chunk c/0");
    FAILS(&t, BRC_ECONFLICT, brc_session_commit(&id, t.session, &opts, &t.err));
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 0), 200);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 9), 209);
    scenario_whole(&t);
    OK(&t, brc_node_restore(t.session, "/a", "main", &t.err));
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 0), 100);
    scenario_set_number(&t, "/a", 9, 209);
    OK(&t, brc_session_commit(&id, t.session, &opts, &t.err));
    follows(&id, &theirs);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 0), 100);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 1), 101);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 9), 209);
    ck_assert(scenario_clean(&t));
}
END_TEST

/* The branch had no commit when the changes began. */
START_TEST(a_new_branch_is_raced_for)
{
    scenario fresh;
    brc_session *one;
    brc_oid id;
    brc_commit_opts opts = BRC_COMMIT_OPTS_INIT;
    opts.message = "one";
    scenario_start(&fresh);
    OK(&fresh, brc_session_open(&one, fresh.repo, NULL, BRC_SESSION_PRIVATE, &fresh.err));
    OK(&fresh, brc_group_create(one, "/one", NULL, &fresh.err));
    OK(&fresh, brc_group_create(fresh.session, "/two", NULL, &fresh.err));
    scenario_commit(&fresh, "two");
    OK(&fresh, brc_session_commit(&id, one, &opts, &fresh.err));
    char tree[200];
    ck_assert_str_eq(scenario_tree(&fresh, fresh.session, "/", 1, tree, sizeof(tree)),
                     "/ /one /two ");
    brc_session_free(one);
    scenario_whole(&fresh);
    scenario_stop(&fresh);
}
END_TEST

/* Two handles, one change each in turn, and each commit but the first has lost its race. */
START_TEST(many_in_turn)
{
    breccia *other;
    brc_session *s[2];
    brc_oid id;
    brc_commit_opts opts = BRC_COMMIT_OPTS_INIT;
    opts.message = "in turn";
    OK(&t, brc_open(&other, t.file, NULL, &t.err));
    OK(&t, brc_session_open(&s[0], other, NULL, BRC_SESSION_PRIVATE, &t.err));
    s[1] = mine;
    for (int i = 0; i < 16; i += 4) {
        scenario_put(&t, s[0], "/a", (uint64_t)i, 300 + i);
        scenario_put(&t, s[1], "/a", (uint64_t)((i + 4) % 16), 400 + i); /* another chunk */
        OK(&t, brc_session_commit(&id, s[0], &opts, &t.err));
        OK(&t, brc_session_commit(&id, s[1], &opts, &t.err));
        ck_assert_int_eq(scenario_number(&t, t.session, "/a", (uint64_t)i), 300 + i);
        ck_assert_int_eq(scenario_number(&t, t.session, "/a", (uint64_t)((i + 4) % 16)), 400 + i);
    }
    brc_session_free(s[0]);
    brc_free(other);
}
END_TEST

typedef struct sweeper {
    pthread_t thread;
    atomic_int is_over, runs, rc;
    brc_error err;
} sweeper;

static void *sweep_again_and_again(void *ctx)
{
    sweeper *c = ctx;
    breccia *repo = NULL;
    int rc = brc_open(&repo, t.file, NULL, &c->err);
    while (rc == BRC_OK && !atomic_load(&c->is_over)) {
        rc = brc_gc(repo, NULL, NULL, &c->err);
        atomic_fetch_add(&c->runs, 1);
    }
    atomic_store(&c->rc, rc);
    brc_free(repo);
    return NULL;
}

/* Merged chunks have no name before the commit has: if a collection has begun meanwhile, they are
 * merged again. */
START_TEST(what_is_merged_is_not_collected_meanwhile)
{
    sweeper c = {.err = BRC_ERROR_INIT};
    OK(&t, brc_config_set(t.repo, "window", "0", &t.err));
    ck_assert_int_eq(pthread_create(&c.thread, NULL, sweep_again_and_again, &c), 0);
    for (int32_t i = 0; i < ROUNDS || atomic_load(&c.runs) < 2; i++) {
        brc_oid id;
        scenario_put(&t, mine, "/a", 0, 1000 + i);
        scenario_put(&t, t.session, "/a", 1, 2000 + i); /* the same chunk */
        scenario_commit(&t, "theirs");
        OK(&t, commit_mine(0, &id));
        ck_assert_int_eq(scenario_number(&t, t.session, "/a", 0), 1000 + i);
        ck_assert_int_eq(scenario_number(&t, t.session, "/a", 1), 2000 + i);
    }
    atomic_store(&c.is_over, 1);
    pthread_join(c.thread, NULL);
    ck_assert_msg(atomic_load(&c.rc) == BRC_OK, "%s", c.err.message);
}
END_TEST

Suite *replay_suite(void)
{
    Suite *s = suite_create("replay");
    TCase *tc = tcase_create("replay");
    tcase_add_checked_fixture(tc, replay_setup, replay_teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, a_private_change_of_another_array_at_the_path_is_a_conflict);
    tcase_add_test(tc, a_private_array_in_the_place_of_one_that_changed_is_a_conflict);
    tcase_add_test(tc, what_does_not_overlap_is_committed);
    tcase_add_test(tc, conflicts_keep_the_draft);
    tcase_add_test(tc, the_flag_gives_the_old_answer);
    tcase_add_test(tc, the_same_change_is_there_already);
    tcase_add_test(tc, an_edit_follows_a_move);
    tcase_add_test(tc, a_removed_array_with_changes_is_a_conflict);
    tcase_add_test(tc, shared_changes_are_merged_too);
    tcase_add_test(tc, a_new_branch_is_raced_for);
    tcase_add_test(tc, many_in_turn);
    tcase_add_test(tc, what_is_merged_is_not_collected_meanwhile);
    suite_add_tcase(s, tc);
    return s;
}
