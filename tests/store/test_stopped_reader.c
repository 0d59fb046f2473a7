/* A process that is stopped in the middle of a read holds its lock for as long as it is stopped:
 * that may fail others' commits, and nothing else. */
#include <check.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../src/base/buf.h"
#include "../../src/store/store.h"
#include "../kit/scenario.h"
#include "../kit/store_kit.h"

Suite *stopped_reader_suite(void);

static scenario t;
static pid_t reader;

/* In a child: stops while the file is locked, and ends when it goes on. */
static void read_and_stop(void)
{
    store_kit kit = {.store = NULL};
    brc_oid id;
    int has;
    memcpy(kit.file, t.file, sizeof(kit.file));
    if (brc_registry_new(&kit.reg, &kit.err) < 0 || store_kit_try(&kit, 0, 0) < 0 ||
        brc_store_begin_read(kit.store, &kit.err) < 0 ||
        brc_ref_get(kit.store, "heads/main", &has, &id, &kit.err) < 0)
        _exit(1);
    raise(SIGSTOP);
    brc_store_end_read(kit.store);
    _exit(0);
}

static void stopped_start(void)
{
    int status;
    scenario_start(&t);
    OK(&t, brc_attrs_set(t.session, "/", "n", "1", &t.err));
    scenario_close(&t);
    reader = fork();
    ck_assert_int_ge(reader, 0);
    if (reader == 0)
        read_and_stop();
    ck_assert_int_eq(waitpid(reader, &status, WUNTRACED), reader);
    ck_assert(WIFSTOPPED(status));
}

static void open_with(scenario *s, int wait_ms)
{
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    opts.wait_ms = wait_ms;
    memcpy(s->file, t.file, sizeof(s->file));
    scenario_open(s, &opts, 0);
}

static void reader_must_end_well(void)
{
    int status;
    ck_assert_int_eq(waitpid(reader, &status, 0), reader);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    reader = 0;
}

static void stopped_stop(void)
{
    if (reader > 0) {
        kill(reader, SIGKILL);
        waitpid(reader, NULL, 0);
    }
    scenario_stop(&t);
}

static void attribute_must_be(scenario *s, const char *value)
{
    brc_buf text = BRC_BUF_INIT;
    OK(s, brc_attrs_get(&text, s->session, "/", "n", &s->err));
    ck_assert_str_eq((const char *)text.data, value);
    brc_buf_dispose(&text);
}

static int commit_now(scenario *s)
{
    brc_oid id;
    brc_commit_opts opts = BRC_COMMIT_OPTS_INIT;
    opts.message = "now";
    return brc_session_commit(&id, s->session, &opts, &s->err);
}

/* The commit is undone, the draft is kept, and others read, who wait for nothing. */
START_TEST(a_stopped_reader_does_not_shut_the_file)
{
    scenario other = {.repo = NULL};
    open_with(&t, 100);
    for (int i = 0; i < 3; i++) {
        FAILS(&t, BRC_EBUSY, commit_now(&t));
        ck_assert_ptr_nonnull(strstr(t.err.message, "what was uncommitted before is kept"));
        ck_assert_ptr_nonnull(strstr(t.err.message, "--wait"));
        FAILS(&t, BRC_EBUSY, brc_attrs_set(t.session, "/", "n", "2", &t.err));
        open_with(&other, -1);
        attribute_must_be(&other, "1");
        scenario_close(&other);
        attribute_must_be(&t, "1");
        ck_assert_int_eq(scenario_clean(&t), 0);
    }
    kill(reader, SIGCONT);
    reader_must_end_well();
    OK(&t, commit_now(&t));
    ck_assert_int_eq(scenario_clean(&t), 1);
    scenario_whole(&t);
}
END_TEST

/* Up to --wait. */
START_TEST(a_commit_waits_for_a_reader)
{
    open_with(&t, 20000);
    pid_t helper = fork();
    ck_assert_int_ge(helper, 0);
    if (helper == 0) {
        usleep(200000);
        _exit(kill(reader, SIGCONT) != 0);
    }
    OK(&t, commit_now(&t));
    ck_assert_int_eq(waitpid(helper, NULL, 0), helper);
    reader_must_end_well();
    ck_assert_int_eq(scenario_clean(&t), 1);
}
END_TEST

Suite *stopped_reader_suite(void)
{
    Suite *suite = suite_create("stopped_reader");
    TCase *tc = tcase_create("stopped");
    tcase_set_timeout(tc, 60);
    tcase_add_checked_fixture(tc, stopped_start, stopped_stop);
    tcase_add_test(tc, a_stopped_reader_does_not_shut_the_file);
    tcase_add_test(tc, a_commit_waits_for_a_reader);
    suite_add_tcase(suite, tc);
    return suite;
}
