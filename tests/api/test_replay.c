/* Commits of private sessions whose branch has moved meanwhile. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "../kit/scenario.h"
#include "../kit/suite.h"

TEST_SUITE(replay);

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
    brc_commit_opts opts = BRC_COMMIT_OPTS_INIT;
    brc_oid none;
    brc_iter *it;
    const brc_conflict *c;
    int n = 0, rc;
    first[0] = '\0';
    opts.flags = BRC_COMMIT_DRY_RUN;
    opts.conflicts = &it;
    OK(&t, brc_session_commit(&none, s, &opts, &t.err));
    while ((rc = brc_next(it, &c, &t.err)) > 0)
        if (n++ == 0)
            snprintf(first, size, "%s %s %s", c->path, c->kind, c->key != NULL ? c->key : "");
    ck_assert_int_eq(rc, 0);
    brc_iter_free(it);
    return n;
}

/* A failure of another kind has no list. */
static void fails_without_conflicts(int code, const brc_commit_opts *opts)
{
    FAILS(&t, code, brc_session_commit(NULL, mine, opts, &t.err));
    ck_assert_ptr_null(*opts->conflicts);
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

CASE("replay", .setup = replay_setup, .teardown = replay_teardown, .timeout = 60);

/* The branch has another array at the path: that this one is of the same form says nothing. */
TEST(a_private_change_of_another_array_at_the_path_is_a_conflict)
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

/* And the other way round. */
TEST(a_private_array_in_the_place_of_one_that_changed_is_a_conflict)
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

TEST(other_failures_list_no_conflicts)
{
    brc_iter *why;
    brc_commit_opts opts = {.size = sizeof(opts), .message = "mine", .conflicts = &why};
    fails_without_conflicts(BRC_EMISUSE, &opts); /* there is nothing to commit */
    OK(&t, brc_key_set(mine, "loose", "1", 1, 0, &t.err));
    fails_without_conflicts(BRC_ECONFLICT, &opts);
    OK(&t, brc_begin(t.repo, &t.err));
    opts.flags = BRC_COMMIT_DRY_RUN;
    fails_without_conflicts(BRC_EMISUSE, &opts);
    OK(&t, brc_end(t.repo, 0, &t.err));
    OK(&t, brc_session_commit(NULL, mine, &opts, &t.err));
    brc_iter_free(why);
    opts.conflicts = NULL;
    FAILS(&t, BRC_EINVAL, brc_session_commit(NULL, mine, &opts, &t.err));
}

TEST(what_does_not_overlap_is_committed)
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

TEST(conflicts_keep_the_draft)
{
    char first[200];
    brc_oid id, theirs;
    scenario_put(&t, mine, "/a", 0, 100);
    scenario_put(&t, mine, "/a", 9, 109);
    scenario_set_number(&t, "/a", 0, 200);
    theirs = scenario_commit(&t, "theirs");
    FAILS(&t, BRC_ECONFLICT, commit_mine(0, &id));
    ck_assert_ptr_nonnull(strstr(t.err.message, "/a"));
    brc_iter *why;
    const brc_conflict *c;
    const brc_commit_opts opts = {.size = sizeof(opts), .message = "mine", .conflicts = &why};
    FAILS(&t, BRC_ECONFLICT, brc_session_commit(NULL, mine, &opts, &t.err));
    ck_assert_int_eq(brc_next(why, &c, &t.err), 1);
    ck_assert_str_eq(c->key, "c/0");
    brc_iter_free(why);
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

TEST(the_flag_gives_the_old_answer)
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

TEST(the_same_change_is_there_already)
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

TEST(an_edit_follows_a_move)
{
    brc_oid id, theirs;
    scenario_put(&t, mine, "/a", 3, 103);
    OK(&t, brc_group_create(t.session, "/g", NULL, &t.err));
    OK(&t, brc_node_move(t.session, "/a", "/g/b", 0, &t.err));
    theirs = scenario_commit(&t, "moved");
    OK(&t, commit_mine(0, &id));
    follows(&id, &theirs);
    ck_assert_int_eq(scenario_number(&t, t.session, "/g/b", 3), 103);
    ck_assert_int_eq(scenario_number(&t, mine, "/g/b", 3), 103);
}

TEST(a_removed_array_with_changes_is_a_conflict)
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

/* The changes that the branch's sessions share are merged in the same way. */
TEST(shared_changes_are_merged_too)
{
    char first[200];
    brc_oid id, theirs;
    scenario_set_number(&t, "/a", 0, 200);
    scenario_set_number(&t, "/a", 9, 209);
    scenario_put(&t, mine, "/a", 0, 100);
    scenario_put(&t, mine, "/a", 1, 101);
    OK(&t, commit_mine(0, &theirs));
    ck_assert_int_eq(conflicts_of(t.session, first, sizeof(first)), 1);
    ck_assert_str_eq(first, "/a chunk c/0");
    FAILS(&t, BRC_ECONFLICT, scenario_commit_of(&t, t.session, "shared", &id));
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 0), 200);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 9), 209);
    scenario_whole(&t);
    OK(&t, brc_node_restore(t.session, "/a", "main", &t.err));
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 0), 100);
    scenario_set_number(&t, "/a", 9, 209);
    OK(&t, scenario_commit_of(&t, t.session, "shared", &id));
    follows(&id, &theirs);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 0), 100);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 1), 101);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 9), 209);
    ck_assert(scenario_clean(&t));
}

/* The branch had no commit when the changes began. */
TEST(a_new_branch_is_raced_for)
{
    scenario fresh;
    brc_session *one;
    scenario_start(&fresh);
    OK(&fresh, brc_session_open(&one, fresh.repo, NULL, BRC_SESSION_PRIVATE, &fresh.err));
    OK(&fresh, brc_group_create(one, "/one", NULL, &fresh.err));
    OK(&fresh, brc_group_create(fresh.session, "/two", NULL, &fresh.err));
    scenario_commit(&fresh, "two");
    OK(&fresh, scenario_commit_of(&fresh, one, "one", NULL));
    char tree[200];
    ck_assert_str_eq(scenario_tree(&fresh, fresh.session, "/", 1, tree, sizeof(tree)),
                     "/ /one /two ");
    brc_session_free(one);
    scenario_whole(&fresh);
    scenario_stop(&fresh);
}

/* Two handles, one change each in turn, and each commit but the first has lost its race. */
TEST(many_in_turn)
{
    brc_session *s[2];
    breccia *other = scenario_handle(&t, 0);
    OK(&t, brc_session_open(&s[0], other, NULL, BRC_SESSION_PRIVATE, &t.err));
    s[1] = mine;
    for (int i = 0; i < 16; i += 4) {
        scenario_put(&t, s[0], "/a", (uint64_t)i, 300 + i);
        scenario_put(&t, s[1], "/a", (uint64_t)((i + 4) % 16), 400 + i); /* another chunk */
        OK(&t, scenario_commit_of(&t, s[0], "in turn", NULL));
        OK(&t, scenario_commit_of(&t, s[1], "in turn", NULL));
        ck_assert_int_eq(scenario_number(&t, t.session, "/a", (uint64_t)i), 300 + i);
        ck_assert_int_eq(scenario_number(&t, t.session, "/a", (uint64_t)((i + 4) % 16)), 400 + i);
    }
    brc_session_free(s[0]);
    brc_free(other);
}

typedef struct sweeper {
    pthread_t thread;
    atomic_int is_over, runs, rc;
    brc_error err;
} sweeper;

static void *sweep_again_and_again(void *ctx)
{
    sweeper *c = ctx;
    breccia *repo = NULL;
    int rc = scenario_connect(&repo, t.file, NULL, &c->err);
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
TEST(what_is_merged_is_not_collected_meanwhile)
{
    sweeper c = {.err = BRC_ERROR_INIT};
    scenario_no_window(&t);
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
