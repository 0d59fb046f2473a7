/* A process that is stopped in the middle of a read holds its lock for as long as it is stopped:
 * that may fail others' commits, and the end of bulk writes, and nothing else. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../src/base/buf.h"
#include "../../src/work/bulk_write.h"
#include "../kit/scenario.h"
#include "../kit/store_kit.h"
#include "../kit/suite.h"

TEST_SUITE(stopped_reader);

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

static void file_start(void)
{
    reader = 0;
    scenario_start(&t);
    OK(&t, brc_attrs_set(t.session, "/", "n", "1", &t.err));
    scenario_close(&t);
}

static void start_reader(void)
{
    int status;
    reader = fork();
    ck_assert_int_ge(reader, 0);
    if (reader == 0)
        read_and_stop();
    ck_assert_int_eq(waitpid(reader, &status, WUNTRACED), reader);
    ck_assert(WIFSTOPPED(status));
}

static void stopped_start(void)
{
    file_start();
    start_reader();
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
    return scenario_commit_of(s, s->session, "now", NULL);
}

CASE("stopped", .setup = stopped_start, .teardown = stopped_stop, .timeout = 60);

/* The commit is undone, the draft is kept, and others read, who wait for nothing. */
TEST(a_stopped_reader_does_not_shut_the_file)
{
    scenario other = {.repo = NULL};
    open_with(&t, 100);
    for (int i = 0; i < 3; i++) {
        FAILS(&t, BRC_EBUSY, commit_now(&t));
        ck_assert_ptr_nonnull(strstr(t.err.message, "earlier uncommitted changes are kept"));
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

/* Up to --wait. */
TEST(a_commit_waits_for_a_reader)
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

static void reader_must_go_on(void)
{
    kill(reader, SIGCONT);
    reader_must_end_well();
}

CASE("later", .setup = file_start, .teardown = stopped_stop, .timeout = 60);

/* The size is asked for without a call that looks at the file. */
TEST(a_size_that_was_undone_is_not_described)
{
    const uint64_t six = 6, nine = 9;
    const int32_t more[3] = { 7, 8, 9 };
    open_with(&t, 100);
    brc_array *a = scenario_array(&t, "/a", "int32", 1, &six, NULL, "0", NULL);
    start_reader();
    FAILS(&t, BRC_EBUSY, brc_array_resize(a, &nine, &t.err));
    ck_assert_uint_eq(brc_array_describe(a)->shape[0], six);
    FAILS(&t, BRC_EBUSY, brc_array_append(a, 0, 3, more, sizeof(more), &t.err));
    ck_assert_uint_eq(brc_array_describe(a)->shape[0], six);
    reader_must_go_on();
    OK(&t, brc_array_append(a, 0, 3, more, sizeof(more), &t.err));
    ck_assert_uint_eq(brc_array_describe(a)->shape[0], nine);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 8), 9);
    brc_array_free(a);
    scenario_whole(&t);
}

/* ---- the end of a bulk write -------------------------------- */

/* In a child: stops before the last transaction. Ends with 0 if that was kept out, and said so. */
static void write_much_and_stop(void)
{
    char words[40];
    open_with(&t, 100);
    if (brc_bulk_begin(t.session, &t.err) < 0 ||
        brc_group_create(t.session, "/g", NULL, &t.err) < 0)
        _exit(1);
    scenario_numbers(&t, "/g/a", 10, 3, 7);
    snprintf(words, sizeof(words), "draft %lld has it", (long long)t.session->bulk->draft);
    raise(SIGSTOP);
    if (brc_bulk_end(t.session, BRC_END_KEEP, &t.err) != BRC_EBUSY)
        _exit(2);
    _exit(strstr(t.err.message, words) != NULL && strstr(t.err.message, "in use") != NULL ? 0 : 3);
}

static int64_t left_behind(void)
{
    return scenario_ask(&t, "SELECT coalesce(max(id), 0) FROM draft WHERE kind=2 AND state=1");
}

/* Nothing of it is to be seen, and nothing is lost. */
TEST(a_bulk_write_that_a_reader_keeps_out_is_kept_as_a_draft)
{
    char tree[64];
    int status;
    pid_t writer = fork();
    ck_assert_int_ge(writer, 0);
    if (writer == 0)
        write_much_and_stop();
    ck_assert_int_eq(waitpid(writer, &status, WUNTRACED), writer);
    ck_assert(WIFSTOPPED(status));
    start_reader();
    kill(writer, SIGCONT);
    ck_assert_int_eq(waitpid(writer, &status, 0), writer);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the writer: %d", status);
    reader_must_go_on();
    open_with(&t, 100);
    scenario_tree(&t, t.session, "/", 1, tree, sizeof(tree));
    ck_assert_str_eq(tree, "/ ");
    OK(&t, brc_draft_adopt(t.repo, left_behind(), &t.err));
    scenario_tree(&t, t.session, "/", 1, tree, sizeof(tree));
    ck_assert_str_eq(tree, "/ /g /g/a* ");
    ck_assert_int_eq(scenario_number(&t, t.session, "/g/a", 9), 16);
    attribute_must_be(&t, "1");
    scenario_whole(&t);
}

/* One transaction of it is in the file. */
static void begin_bulk(void)
{
    open_with(&t, 100);
    scenario_numbers(&t, "/a", 10, 3, 0);
    OK(&t, brc_bulk_start(t.session, &t.err));
    scenario_numbers(&t, "/b", 10, 3, 7);
    OK(&t, brc_store_rest(t.repo->store, 1, &t.err));
}

static void must_have_left_nothing(void)
{
    char tree[64];
    reader_must_go_on();
    OK(&t, brc_attrs_set(t.session, "/", "n", "2", &t.err)); /* the next change drops it */
    ck_assert_int_eq(left_behind(), 0);
    scenario_tree(&t, t.session, "/", 1, tree, sizeof(tree));
    ck_assert_str_eq(tree, "/ /a* ");
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 9), 9);
    scenario_whole(&t);
}

/* A session that adopts a draft must get all that was written. */
TEST(one_whose_last_part_is_not_in_the_file_is_dropped)
{
    begin_bulk();
    OK(&t, brc_group_create(t.session, "/g", NULL, &t.err));
    start_reader();
    FAILS(&t, BRC_EBUSY, brc_bulk_end_with(t.session, BRC_OK, &t.err));
    ck_assert_ptr_null(strstr(t.err.message, "draft"));
    must_have_left_nothing();
}

/* No draft is kept that nobody could adopt. */
TEST(a_rewrite_that_a_reader_keeps_out_is_dropped)
{
    brc_entry entry;
    int64_t row;
    begin_bulk();
    OK(&t, brc_session_begin(t.session, &t.err));
    OK(&t, brc_session_find(t.session, "/a", &entry, &row, &t.err));
    OK(&t, brc_bulk_replaces(t.session, "/b", "/a", &entry, row, &t.err));
    OK(&t, brc_session_end(t.session, BRC_OK, &t.err));
    OK(&t, brc_store_rest(t.repo->store, 1, &t.err));
    start_reader();
    FAILS(&t, BRC_EBUSY, brc_bulk_end_with(t.session, BRC_OK, &t.err));
    ck_assert_ptr_null(strstr(t.err.message, "draft"));
    must_have_left_nothing();
}
