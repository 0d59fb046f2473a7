/* Several processes commit to one file at once: each of them gets its turn, and every
 * commit is there. How long they wait is measured by `make bench BENCH=contention`. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../../src/store/db.h"
#include "../kit/file_digest.h"
#include "../kit/store_kit.h"
#include "../kit/suite.h"

TEST_SUITE(contention);

#define COMMITTERS 8
#define COMMITS 20

static store_kit kit;

#define OK(call) KIT_OK(&kit, call)

static void crowd_setup(void)
{
    breccia *repo;
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    brc_commit_opts commit = BRC_COMMIT_OPTS_INIT;
    char name[32];
    commit.message = "first";
    store_kit_folder(&kit);
    opts.flags = BRC_OPEN_CREATE;
    OK(brc_open(&repo, kit.file, &opts, &kit.err));
    brc_session *s;
    brc_oid id;
    OK(brc_session_open(&s, repo, NULL, BRC_SESSION_WRITE, &kit.err));
    OK(brc_attrs_set(s, "/", "n", "0", &kit.err));
    OK(brc_session_commit(&id, s, &commit, &kit.err));
    for (int i = 0; i < COMMITTERS; i++) {
        snprintf(name, sizeof(name), "branch%d", i);
        OK(brc_ref_create(repo, name, NULL, NULL, 0, &kit.err));
    }
    brc_session_free(s);
    brc_free(repo);
}

static void crowd_teardown(void)
{
    store_kit_stop(&kit);
}

/* Commits to its own branch, one after the other without a pause. */
static int commit_to_branch(int who, brc_error *err)
{
    breccia *repo = NULL;
    brc_session *s = NULL;
    brc_oid id;
    brc_commit_opts commit = BRC_COMMIT_OPTS_INIT;
    char branch[32], value[32];
    commit.message = "next";
    snprintf(branch, sizeof(branch), "branch%d", who);
    int rc = brc_open(&repo, kit.file, NULL, err);
    if (rc == BRC_OK)
        rc = brc_session_open(&s, repo, branch, BRC_SESSION_WRITE, err);
    for (int i = 1; rc == BRC_OK && i <= COMMITS; i++) {
        snprintf(value, sizeof(value), "%d", i);
        rc = brc_attrs_set(s, "/", "n", value, err);
        if (rc == BRC_OK)
            rc = brc_session_commit(&id, s, &commit, err);
    }
    brc_session_free(s);
    brc_free(repo);
    return rc;
}

static int count_commits(const char *branch)
{
    breccia *repo;
    brc_iter *it;
    const brc_commit *commit;
    int n = 0, rc;
    OK(brc_open(&repo, kit.file, NULL, &kit.err));
    OK(brc_log(&it, repo, branch, NULL, &kit.err));
    while ((rc = brc_next(it, &commit, &kit.err)) > 0)
        n++;
    OK(rc);
    brc_iter_free(it);
    brc_free(repo);
    return n;
}

CASE("contention", .setup = crowd_setup, .teardown = crowd_teardown, .timeout = 120);

TEST(f20_every_committer_gets_its_turn)
{
    pid_t committers[COMMITTERS];
    int status;
    char branch[32];
    for (int i = 0; i < COMMITTERS; i++) {
        committers[i] = fork();
        if (committers[i] == 0) {
            brc_error err = BRC_ERROR_INIT;
            int rc = commit_to_branch(i, &err);
            if (rc != BRC_OK)
                fprintf(stderr, "committer %d: %s\n", i, err.message);
            _exit(rc != BRC_OK);
        }
    }
    for (int i = 0; i < COMMITTERS; i++) {
        ck_assert_int_eq(waitpid(committers[i], &status, 0), committers[i]);
        ck_assert_int_eq(status, 0);
    }
    for (int i = 0; i < COMMITTERS; i++) {
        snprintf(branch, sizeof(branch), "branch%d", i);
        ck_assert_int_eq(count_commits(branch), COMMITS + 1);
    }
    ck_assert(file_is_whole(kit.file));
}

static int64_t clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Its pauses add up to the wait that was asked for, on the clock, and it asks often: also
 * behind a wait of seconds, where pauses that double would be seconds long. */
TEST(f20_it_asks_often_and_until_the_wait_is_over)
{
    brc_store store;
    int tries = 0;
    memset(&store, 0, sizeof(store));
    store.wait_ms = 300;
    OK(brc_vfs_new(&store.vfs, kit.file, NULL, &kit.err));
    int64_t start = clock_ns();
    while (brc_db_busy(&store, tries))
        tries++;
    ck_assert_int_ge(clock_ns() - start, 300 * INT64_C(1000000));
    ck_assert_int_ge(tries, 20); /* 5 with pauses of 64 ms */
    store.wait_ms = 0;
    ck_assert_int_eq(brc_db_busy(&store, 0), 0);
    store.wait_ms = 60000;
    ck_assert_int_eq(brc_db_busy(&store, 0), 1);
    atomic_store(&store.interrupted, 1);
    ck_assert_int_eq(brc_db_busy(&store, 1), 0);
    brc_vfs_free(store.vfs);
}
