/* One handle a thread: brc_reopen(), drafts that several handles share, children of fork(). */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../src/store/db.h"
#include "../../src/work/session.h"
#include "../kit/sanitized.h"
#include "../kit/scenario.h"
#include "../kit/suite.h"

TEST_SUITE(reopen);

#define THREADS 8
#define NODES 40

static scenario t;
static brc_pool *pool;

static void reopen_setup(void)
{
    char path[32];
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    scenario_start(&t);
    for (int i = 0; i < NODES; i++) {
        snprintf(path, sizeof(path), "/g%d/a", i);
        scenario_numbers(&t, path, 100, 10, i);
    }
    scenario_commit(&t, "first");
    scenario_close(&t);
    ck_assert_int_eq(brc_pool_new(&pool, 3, &t.err), BRC_OK);
    opts.pool = pool;
    scenario_open(&t, &opts, 0);
}

static void reopen_teardown(void)
{
    scenario_stop(&t);
    brc_pool_free(pool);
}

/* ---- threads -------------------------------- */

typedef struct worker {
    pthread_t thread;
    int number, wrong;
} worker;

static atomic_int stop_writing;

/* 0 if every array of the committed version is what it was. */
static int read_everything(breccia *repo)
{
    brc_error err = BRC_ERROR_INIT;
    brc_session *s;
    char path[32];
    int wrong = brc_session_open(&s, repo, "main~0", BRC_SESSION_AT, &err) != BRC_OK;
    for (int i = 0; i < NODES && wrong == 0; i++) {
        brc_array *a;
        int32_t got[100];
        snprintf(path, sizeof(path), "/g%d/a", i);
        wrong += brc_array_open(&a, s, path, &err) != BRC_OK;
        if (wrong != 0)
            break;
        wrong += brc_array_read(a, NULL, got, sizeof(got), &err) != BRC_OK || got[50] != 50 + i;
        brc_array_free(a);
    }
    if (wrong != 0)
        fprintf(stderr, "%s\n", err.message);
    brc_session_free(s);
    return wrong;
}

/* Reopens the first handle, while that works, and then the one that it has itself. */
static void *work(void *arg)
{
    worker *w = arg;
    brc_error err = BRC_ERROR_INIT;
    breccia *repo, *again;
    for (int i = 0; i < 3 && w->wrong == 0; i++) {
        if (brc_reopen(&repo, t.repo, &err) != BRC_OK) {
            fprintf(stderr, "%s\n", err.message);
            w->wrong++;
            break;
        }
        w->wrong += read_everything(repo);
        w->wrong += brc_reopen(&again, repo, &err) != BRC_OK;
        if (i % 2 == 0) { /* in either order */
            brc_free(repo);
            w->wrong += read_everything(again);
            brc_free(again);
        } else {
            brc_free(again);
            w->wrong += read_everything(repo);
            brc_free(repo);
        }
    }
    return NULL;
}

static void *write_meanwhile(void *arg)
{
    worker *w = arg;
    brc_error err = BRC_ERROR_INIT;
    brc_array *a;
    int32_t got[100];
    w->wrong += brc_array_open(&a, t.session, "/g7/a", &err) != BRC_OK;
    for (int32_t i = 0; w->wrong == 0 && !atomic_load(&stop_writing); i++) {
        w->wrong += brc_array_write(a, NULL, got, sizeof(got), &err) != BRC_OK;
        for (int k = 0; k < 100; k++)
            got[k] = i;
        w->wrong += brc_array_write(a, NULL, got, sizeof(got), &err) != BRC_OK;
        w->wrong += brc_array_read(a, NULL, got, sizeof(got), &err) != BRC_OK || got[3] != i;
    }
    brc_array_free(a);
    return NULL;
}

CASE("reopen", .setup = reopen_setup, .teardown = reopen_teardown, .timeout = 240);

TEST(threads_reopen_a_handle_that_works)
{
    worker workers[THREADS + 1];
    memset(workers, 0, sizeof(workers));
    atomic_store(&stop_writing, 0);
    ck_assert_int_eq(pthread_create(&workers[THREADS].thread, NULL, write_meanwhile,
                                    &workers[THREADS]),
                     0);
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(workers[i].thread, NULL);
    atomic_store(&stop_writing, 1);
    pthread_join(workers[THREADS].thread, NULL);
    for (int i = 0; i <= THREADS; i++)
        ck_assert_int_eq(workers[i].wrong, 0);
    scenario_whole(&t);
}

TEST(the_first_handle_may_go_first)
{
    breccia *repo;
    OK(&t, brc_reopen(&repo, t.repo, &t.err));
    scenario_close(&t);
    ck_assert_int_eq(read_everything(repo), 0);
    brc_free(repo);
    scenario_open(&t, NULL, 0);
}

TEST(a_handle_has_the_options_of_the_first)
{
    breccia *repo;
    brc_session *s;
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    scenario_close(&t);
    opts.flags = BRC_OPEN_READONLY;
    breccia *first;
    OK(&t, brc_open(&first, t.file, &opts, &t.err));
    OK(&t, brc_reopen(&repo, first, &t.err));
    FAILS(&t, BRC_EREADONLY, brc_session_open(&s, repo, NULL, BRC_SESSION_WRITE, &t.err));
    brc_free(first);
    brc_free(repo);
    scenario_open(&t, NULL, 0);
}

/* An interruption stops the calls of one handle, and of no other. */
TEST(an_interruption_is_of_one_handle)
{
    breccia *repo;
    OK(&t, brc_reopen(&repo, t.repo, &t.err));
    brc_interrupt(repo, 1);
    brc_session *s;
    int32_t got[100];
    brc_array *a = scenario_array_at(&t, t.session, "/g1/a");
    OK(&t, brc_array_read(a, NULL, got, sizeof(got), &t.err));
    FAILS(&t, BRC_EINTERRUPT, brc_session_open(&s, repo, NULL, BRC_SESSION_WRITE, &t.err));
    brc_interrupt(repo, 0);
    ck_assert_int_eq(read_everything(repo), 0);
    brc_interrupt(t.repo, 1);
    ck_assert_int_eq(read_everything(repo), 0);
    FAILS(&t, BRC_EINTERRUPT, brc_array_read(a, NULL, got, sizeof(got), &t.err));
    brc_interrupt(t.repo, 0);
    OK(&t, brc_array_read(a, NULL, got, sizeof(got), &t.err));
    brc_array_free(a);
    brc_free(repo);
}

TEST(a_file_that_was_replaced_is_not_the_same)
{
    breccia *repo;
    char other[160], kept[160];
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    snprintf(other, sizeof(other), "%s/other.brc", t.dir);
    snprintf(kept, sizeof(kept), "%s/kept.brc", t.dir);
    opts.flags = BRC_OPEN_CREATE;
    OK(&t, brc_open(&repo, other, &opts, &t.err));
    brc_free(repo);
    ck_assert_int_eq(rename(t.file, kept), 0);
    FAILS(&t, BRC_ENOTFOUND, brc_reopen(&repo, t.repo, &t.err));
    ck_assert_int_eq(rename(other, t.file), 0);
    FAILS(&t, BRC_ESTALE, brc_reopen(&repo, t.repo, &t.err));
    ck_assert_ptr_null(repo);
    ck_assert_int_eq(rename(kept, t.file), 0);
    OK(&t, brc_reopen(&repo, t.repo, &t.err));
    brc_free(repo);
}

/* Other handles see nothing that a transaction has added and read before it is committed: an
 * object that is found in memory is not stored again. The document of a group that is never there
 * becomes that of one that is. */
TEST(what_is_undone_is_not_shared)
{
    static const char attributes[] = "{\"never\":\"seen\"}";
    breccia *repo;
    brc_oid id;
    brc_commit_opts opts = BRC_COMMIT_OPTS_INIT;
    brc_buf text = BRC_BUF_INIT;
    OK(&t, brc_group_create(t.session, "/there", NULL, &t.err));
    scenario_commit(&t, "second");
    OK(&t, brc_reopen(&repo, t.repo, &t.err)); /* so that they share */
    OK(&t, brc_begin(t.repo, &t.err));
    OK(&t, brc_group_create(t.session, "/new", attributes, &t.err));
    opts.message = "never";
    OK(&t, brc_session_commit(&id, t.session, &opts, &t.err)); /* its document is an object now */
    brc_cache_clear(&t.repo->store->cache); /* as if it had become full */
    OK(&t, brc_attrs_get(&text, t.session, "/new", "never", &t.err));
    OK(&t, brc_end(t.repo, 0, &t.err));
    brc_session *s = scenario_session(&t, repo, NULL, BRC_SESSION_WRITE);
    OK(&t, brc_attrs_set(s, "/there", "never", "\"seen\"", &t.err));
    brc_cache_clear(&repo->store->cache);
    OK(&t, brc_attrs_get(&text, s, "/there", "never", &t.err));
    opts.message = "third";
    OK(&t, brc_session_commit(&id, s, &opts, &t.err));
    brc_session_free(s);
    brc_free(repo);
    scenario_whole(&t);
    scenario_reopen(&t); /* which has nothing in memory */
    text.len = 0;
    OK(&t, brc_attrs_get(&text, t.session, "/there", "never", &t.err));
    ck_assert_str_eq((char *)text.data, "\"seen\"");
    brc_buf_dispose(&text);
}

/* ---- drafts -------------------------------- */

TEST(a_private_draft_opens_from_every_handle)
{
    breccia *repo;
    brc_session *mine, *theirs;
    brc_buf token = BRC_BUF_INIT;
    int kind, clean;
    OK(&t, brc_reopen(&repo, t.repo, &t.err));
    FAILS(&t, BRC_EMISUSE, brc_session_token(&token, t.session, &t.err));
    OK(&t, brc_session_open(&mine, t.repo, NULL, BRC_SESSION_PRIVATE, &t.err));
    const int64_t id = scenario_draft(&t, mine), again = scenario_draft(&t, mine);
    ck_assert_int_eq(id, again);
    OK(&t, scenario_draft_open(&theirs, repo, id, &t.err));
    OK(&t, brc_group_create(mine, "/m", NULL, &t.err));
    OK(&t, brc_node_kind(&kind, theirs, "/m", &t.err));
    ck_assert_int_eq(kind, BRC_GROUP);
    OK(&t, brc_group_create(theirs, "/m/t", NULL, &t.err));
    OK(&t, brc_node_kind(&kind, mine, "/m/t", &t.err));
    ck_assert_int_eq(kind, BRC_GROUP);
    OK(&t, brc_node_kind(&kind, t.session, "/m", &t.err)); /* the branch does not see it */
    ck_assert_int_eq(kind, 0);
    OK(&t, scenario_commit_of(&t, theirs, "both", NULL));
    OK(&t, brc_session_clean(&clean, mine, &t.err));
    ck_assert_int_eq(clean, 1);
    OK(&t, brc_node_kind(&kind, mine, "/m/t", &t.err));
    ck_assert_int_eq(kind, BRC_GROUP);
    brc_session_free(mine); /* it has no change in it, and is in use */
    OK(&t, brc_group_create(theirs, "/later", NULL, &t.err));
    brc_session_free(theirs);
    brc_free(repo);
    FAILS(&t, BRC_ENOTFOUND, scenario_draft_open(&theirs, t.repo, id + 1000, &t.err));
    FAILS(&t, BRC_EINVAL, brc_session_open(&theirs, t.repo, "0", BRC_SESSION_TOKEN, &t.err));
    FAILS(&t, BRC_EINVAL, brc_session_open(&theirs, t.repo, "12x", BRC_SESSION_TOKEN, &t.err));
    FAILS(&t, BRC_EINVAL, brc_session_open(&theirs, t.repo, "99999999999999999999",
                                           BRC_SESSION_TOKEN, &t.err));
}

static int in_child(int (*run)(int64_t), int64_t number)
{
    int status;
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        alarm(60); /* for the case that it waits for what will not come */
        _exit(run(number));
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    return status;
}

static int open_the_parents_draft(int64_t id)
{
    breccia *repo;
    brc_session *s;
    return brc_open(&repo, t.file, NULL, &t.err) != BRC_OK ||
           scenario_draft_open(&s, repo, id, &t.err) != BRC_EBUSY;
}

LOOP(a_draft_of_another_process_is_not_opened, 0, CHILDREN_MAY_ALLOCATE)
{
    brc_session *mine = scenario_session(&t, t.repo, NULL, BRC_SESSION_PRIVATE);
    const int64_t id = scenario_draft(&t, mine);
    ck_assert_int_eq(in_child(open_the_parents_draft, id), 0);
    brc_session_free(mine);
}

/* ---- children -------------------------------- */

static int use_the_pool(int64_t unused)
{
    breccia *repo, *again;
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    brc_array *a;
    brc_session *s;
    int32_t got[100];
    (void)unused;
    opts.pool = pool;
    if (brc_reopen(&repo, t.repo, &t.err) != BRC_EMISUSE)
        return 1;
    if (brc_open(&repo, t.file, &opts, &t.err) != BRC_OK || read_everything(repo) != 0)
        return 2;
    if (brc_session_open(&s, repo, NULL, BRC_SESSION_PRIVATE, &t.err) != BRC_OK ||
        brc_array_open(&a, s, "/g1/a", &t.err) != BRC_OK)
        return 3;
    for (int i = 0; i < 100; i++)
        got[i] = i;
    if (brc_array_write(a, NULL, got, sizeof(got), &t.err) != BRC_OK ||
        brc_array_read(a, NULL, got, sizeof(got), &t.err) != BRC_OK || got[99] != 99)
        return 4;
    brc_array_free(a);
    brc_session_free(s);
    if (brc_reopen(&again, repo, &t.err) != BRC_OK || read_everything(again) != 0)
        return 5;
    brc_free(repo);
    brc_free(again);
    brc_session_free(t.session);
    brc_free(t.repo);
    brc_pool_free(pool);
    return 0;
}

LOOP(a_child_has_a_pool_with_threads_of_its_own, 0, CHILDREN_MAY_ALLOCATE)
{
    ck_assert_int_eq(read_everything(t.repo), 0); /* the threads have worked */
    ck_assert_int_eq(in_child(use_the_pool, 0), 0);
    ck_assert_int_eq(read_everything(t.repo), 0);
}

/* Forked while other threads are anywhere in the library, and in SQLite. */
LOOP(children_of_a_busy_parent, 0, CHILDREN_MAY_ALLOCATE)
{
    worker workers[4];
    memset(workers, 0, sizeof(workers));
    for (int round = 0; round < 6; round++) {
        for (int i = 0; i < 4; i++)
            ck_assert_int_eq(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
        for (int i = 0; i < 5; i++) {
            int status = in_child(use_the_pool, 0);
            ck_assert_msg(status == 0, "%d", status);
        }
        for (int i = 0; i < 4; i++) {
            pthread_join(workers[i].thread, NULL);
            ck_assert_int_eq(workers[i].wrong, 0);
        }
    }
}
