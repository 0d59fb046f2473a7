/* A handle after fork(): the child may not use it, and cannot harm what its parent does. */
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../src/codec/registry.h"
#include "../../src/store/store.h"
#include "../kit/peer.h"
#include "../kit/scenario.h"
#include "../kit/suite.h"

TEST_SUITE(fork);

SCENARIO_FIXTURE(t)

static void fork_setup(void)
{
    scenario_start(&t);
    scenario_numbers(&t, "/a", 4000, 40, 0); /* the threads have worked */
    scenario_commit(&t, "first");
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 77), 77);
}

/* Runs it in a child; its answer must be 0, and come. */
static void in_child(int (*run)(void))
{
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        alarm(60); /* for the case that it waits for what will not come */
        _exit(run());
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
}

/* How many of the calls did not say BRC_EMISUSE. */
static int use_the_handle(void)
{
    int kind, clean, wrong = 0;
    brc_session *s;
    brc_iter *it;
    brc_array *a;
    const char *head;
    brc_stats stats = BRC_STATS_INIT;
    wrong += brc_node_kind(&kind, t.session, "/a", &t.err) != BRC_EMISUSE;
    wrong += strstr(t.err.message, "open it again") == NULL;
    wrong += brc_group_create(t.session, "/child", NULL, &t.err) != BRC_EMISUSE;
    wrong += scenario_commit_of(&t, t.session, "the child's", NULL) != BRC_EMISUSE;
    wrong += brc_session_clean(&clean, t.session, &t.err) != BRC_EMISUSE;
    wrong += brc_session_open(&s, t.repo, NULL, BRC_SESSION_WRITE, &t.err) != BRC_EMISUSE;
    wrong += brc_array_open(&a, t.session, "/a", &t.err) != BRC_EMISUSE;
    wrong += brc_refs(&it, t.repo, &t.err) != BRC_EMISUSE;
    wrong += brc_head(&head, t.repo, &t.err) != BRC_EMISUSE;
    wrong += brc_stat(t.repo, &stats, &t.err) != BRC_EMISUSE;
    wrong += brc_begin(t.repo, &t.err) != BRC_EMISUSE;
    wrong += brc_end(t.repo, BRC_END_KEEP, &t.err) != BRC_EMISUSE;
    wrong += brc_end(t.repo, 0, &t.err) != BRC_OK;
    return wrong;
}

static int use_and_free_the_handle(void)
{
    int wrong = use_the_handle();
    brc_session_free(t.session);
    brc_free(t.repo);
    return wrong;
}

CASE("fork", .setup = fork_setup, .teardown = t_stop, .timeout = 120);

TEST(a_child_in_a_transaction_does_not_undo_it)
{
    OK(&t, brc_begin(t.repo, &t.err));
    scenario_set_number(&t, "/a", 0, 70);
    in_child(use_and_free_the_handle);
    OK(&t, brc_group_create(t.session, "/parent", NULL, &t.err));
    OK(&t, brc_end(t.repo, BRC_END_KEEP, &t.err));
    scenario_reopen(&t);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 0), 70);
    int kind;
    OK(&t, brc_node_kind(&kind, t.session, "/parent", &t.err));
    ck_assert_int_eq(kind, BRC_GROUP);
    OK(&t, brc_node_kind(&kind, t.session, "/child", &t.err));
    ck_assert_int_eq(kind, 0);
}

TEST(a_child_outside_a_transaction_is_refused_too)
{
    in_child(use_the_handle);
    in_child(use_and_free_the_handle);
    scenario_set_number(&t, "/a", 0, 70);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 0), 70);
}

static int open_again(void)
{
    breccia *repo;
    brc_session *s;
    int rc = brc_open(&repo, t.file, NULL, &t.err);
    if (rc == BRC_OK)
        rc = brc_session_open(&s, repo, NULL, BRC_SESSION_WRITE, &t.err);
    if (rc == BRC_OK && scenario_number(&t, s, "/a", 3999) != 3999)
        rc = -100;
    if (rc == BRC_OK)
        rc = brc_group_create(s, "/child", NULL, &t.err);
    if (rc == BRC_OK) {
        brc_session_free(s);
        brc_free(repo);
    }
    return rc != BRC_OK;
}

TEST(a_child_opens_the_file_for_itself)
{
    in_child(open_again);
    int kind;
    OK(&t, brc_node_kind(&kind, t.session, "/child", &t.err));
    ck_assert_int_eq(kind, BRC_GROUP);
}

/* The child's SQLite has its parent's memory, where it could read that the file is locked; what
 * it opens for itself has locks of its own. */
static int open_again_beside_the_parent(void)
{
    breccia *repo;
    brc_session *s;
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    opts.wait_ms = -1;
    if (brc_open(&repo, t.file, &opts, &t.err) != BRC_OK ||
        brc_session_open(&s, repo, NULL, BRC_SESSION_WRITE, &t.err) != BRC_OK)
        return 1;
    int wrong = scenario_number(&t, s, "/a", 0) != 0;
    wrong += brc_group_create(s, "/child", NULL, &t.err) != BRC_EBUSY;
    brc_session_free(s);
    brc_free(repo);
    wrong += brc_open(&repo, t.file, &opts, &t.err) != BRC_OK;
    wrong += brc_session_open(&s, repo, NULL, BRC_SESSION_WRITE, &t.err) != BRC_OK;
    wrong += brc_group_create(s, "/child", NULL, &t.err) != BRC_EBUSY;
    brc_session_free(s);
    brc_free(repo);
    brc_session_free(t.session); /* which gives its copy of the parent's description back */
    brc_free(t.repo);
    wrong += brc_open(&repo, t.file, &opts, &t.err) != BRC_OK;
    wrong += brc_session_open(&s, repo, NULL, BRC_SESSION_WRITE, &t.err) != BRC_OK;
    wrong += brc_group_create(s, "/child", NULL, &t.err) != BRC_EBUSY;
    return wrong;
}

TEST(a_child_that_opens_the_file_in_a_transaction_meets_its_locks)
{
    OK(&t, brc_begin(t.repo, &t.err));
    scenario_set_number(&t, "/a", 0, 70);
    in_child(open_again_beside_the_parent);
    scenario_set_number(&t, "/a", 1, 71);
    OK(&t, brc_end(t.repo, BRC_END_KEEP, &t.err));
    scenario_reopen(&t);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 0), 70);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 1), 71);
}

static int read_until_told(int ready, int go)
{
    brc_registry *reg;
    brc_store *store;
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    const char *head;
    char byte = 0;
    if (brc_registry_new(&reg, &t.err) != BRC_OK ||
        brc_store_open(&store, t.file, &opts, reg, 0, &t.err) != BRC_OK ||
        brc_store_begin_read(store, &t.err) != BRC_OK ||
        brc_head_get(store, &head, &t.err) != BRC_OK)
        return 1;
    return write(ready, &byte, 1) != 1 || read(go, &byte, 1) != 0;
}

/* The lock of the parent's process is not enough. */
TEST(a_child_that_reads_in_its_parents_transaction_has_a_lock)
{
    int ready[2], go[2], status;
    char byte;
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    opts.wait_ms = -1;
    scenario_close(&t);
    scenario_open(&t, &opts, 0);
    ck_assert_int_eq(pipe(ready), 0);
    ck_assert_int_eq(pipe(go), 0);
    OK(&t, brc_begin(t.repo, &t.err));
    scenario_set_number(&t, "/a", 0, 70);
    pid_t child = fork();
    if (child == 0) {
        close(go[1]);
        _exit(read_until_told(ready[1], go[0]));
    }
    close(ready[1]);
    ck_assert_int_eq(read(ready[0], &byte, 1), 1);
    FAILS(&t, BRC_EBUSY, brc_end(t.repo, BRC_END_KEEP, &t.err));
    close(go[0]);
    close(go[1]);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    close(ready[0]);
    scenario_set_number(&t, "/a", 0, 70);
}

/* The parent's locks end with its transaction and its handle, also while a child that it forked
 * lives on with a copy of the description. */
TEST(a_child_that_lives_on_holds_no_locks)
{
    int answer[2], go[2], status;
    char byte = 0;
    peer other;
    scenario_close(&t);
    peer_start(&other, t.file);
    scenario_open(&t, NULL, 0);
    OK(&t, brc_begin(t.repo, &t.err));
    ck_assert_int_eq(pipe(answer), 0);
    ck_assert_int_eq(pipe(go), 0);
    pid_t child = fork();
    if (child == 0) { /* it lives on, with its copy of the description */
        close(go[1]);
        _exit(write(answer[1], &byte, 1) != 1 || read(go[0], &byte, 1) != 0);
    }
    ck_assert_int_eq(read(answer[0], &byte, 1), 1);
    ck_assert_int_eq(peer_sql(&other, "BEGIN IMMEDIATE"), SQLITE_BUSY);
    OK(&t, brc_end(t.repo, BRC_END_KEEP, &t.err));
    ck_assert_int_eq(peer_sql(&other, "BEGIN IMMEDIATE; COMMIT"), SQLITE_OK);
    OK(&t, brc_begin(t.repo, &t.err));
    scenario_close(&t);
    ck_assert_int_eq(peer_sql(&other, "BEGIN EXCLUSIVE; COMMIT"), SQLITE_OK);
    close(go[0]);
    close(go[1]);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    close(answer[0]);
    close(answer[1]);
    peer_stop(&other);
    scenario_open(&t, NULL, 0);
}

/* Dies in a transaction, and leaves a child behind that has freed the handle. */
static int begin_and_die(const int *ready, const int *go)
{
    breccia *repo;
    char byte = 0;
    if (brc_open(&repo, t.file, NULL, &t.err) != BRC_OK || brc_begin(repo, &t.err) != BRC_OK)
        return 1;
    pid_t child = fork();
    if (child == 0) {
        brc_free(repo);
        close(go[1]);
        _exit(write(ready[1], &byte, 1) != 1 || read(go[0], &byte, 1) != 0);
    }
    return read(ready[0], &byte, 1) != 1;
}

TEST(a_child_that_freed_the_handle_keeps_no_lock_of_its_dead_parent)
{
    int ready[2], go[2], status;
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    opts.wait_ms = -1;
    scenario_close(&t);
    ck_assert_int_eq(pipe(ready), 0);
    ck_assert_int_eq(pipe(go), 0);
    pid_t parent = fork();
    if (parent == 0)
        _exit(begin_and_die(ready, go));
    ck_assert_int_eq(waitpid(parent, &status, 0), parent);
    ck_assert_int_eq(status, 0);
    scenario_open(&t, &opts, 0);
    scenario_set_number(&t, "/a", 0, 70);
    for (int i = 0; i < 2; i++) {
        close(ready[i]);
        close(go[i]);
    }
}
