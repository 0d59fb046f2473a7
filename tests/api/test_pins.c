/*
 * A reader keeps its version: what a session was opened on stays readable as long as it is open,
 * whatever others do with the branches that had it, also if they collect garbage.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../kit/scenario.h"
#include "../kit/suite.h"
#include "../kit/versions.h"

TEST_SUITE(pins);

enum { MANY = 4200, LONG = 2000 }; /* more than is marked between two pauses */

static scenario t; /* who collects */
static brc_oid old, oldest;

static char *old_hex(const brc_oid *id)
{
    static char hex[65];
    return brc_oid_format(hex, id);
}

/* Two commits on a branch that nobody will have, and one on main. */
static void pins_setup(void)
{
    scenario_start(&t);
    scenario_no_window(&t);
    scenario_numbers(&t, "/a", 64, 4, 0);
    scenario_commit(&t, "main");
    brc_session *main = t.session;
    OK(&t, brc_ref_create(t.repo, "side", NULL, NULL, 0, &t.err));
    OK(&t, brc_session_open(&t.session, t.repo, "side", BRC_SESSION_WRITE, &t.err));
    scenario_numbers(&t, "/b", LONG, 4, 50000);
    oldest = scenario_commit(&t, "one");
    scenario_set_number(&t, "/b", 0, 7);
    scenario_numbers(&t, "/c", LONG, 4, 90000);
    old = scenario_commit(&t, "two");
    brc_session_free(t.session);
    t.session = main;
    scenario_collect(&t, BRC_GC_EXPUNGE); /* what writing leaves */
}

static void pins_teardown(void)
{
    scenario_whole(&t);
    scenario_stop(&t);
}

static void forget_branch(void)
{
    OK(&t, brc_ref_delete(t.repo, "side", BRC_DELETE_FORCE, &t.err));
}

/* Another process's handle, or as good as that. */
static scenario reader_open(uint32_t flags, const char *rev, int mode)
{
    scenario r = {.repo = NULL};
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    memcpy(r.file, t.file, sizeof(r.file));
    opts.flags = flags;
    OK(&r, scenario_connect(&r.repo, r.file, &opts, &r.err));
    OK(&r, brc_session_open(&r.session, r.repo, rev, mode, &r.err));
    return r;
}

static void all_is_there(scenario *r, brc_session *s, const char *path, int32_t zeroth,
                         int32_t first)
{
    int32_t got[LONG];
    brc_array *a = scenario_array_at(r, s, path);
    OK(r, brc_array_read(a, NULL, got, sizeof(got), &r->err));
    ck_assert_int_eq(got[0], zeroth);
    for (int32_t i = 1; i < LONG; i++)
        ck_assert_int_eq(got[i], first + i);
    brc_array_free(a);
}

static void version_is_there(scenario *r)
{
    all_is_there(r, r->session, "/b", 7, 50000);
    all_is_there(r, r->session, "/c", 90000, 90000);
}

CASE("pins", .setup = pins_setup, .teardown = pins_teardown, .timeout = 120);

LOOP(a_version_stays_as_long_as_it_is_open, 0, 2)
{
    scenario r = reader_open(_i ? BRC_OPEN_READONLY : 0, "side", BRC_SESSION_AT);
    forget_branch();
    ck_assert_int_eq((int)scenario_collect(&t, BRC_GC_DRY_RUN), 0);
    ck_assert_int_eq((int)scenario_collect(&t, BRC_GC_EXPUNGE), 0);
    version_is_there(&r);
    scenario_whole(&t);
    scenario_close(&r);
    ck_assert_int_gt((int)scenario_collect(&t, BRC_GC_EXPUNGE), 2 * LONG / 4);
    ck_assert(!scenario_has_commit(&t, &old) && !scenario_has_commit(&t, &oldest));
}

/* By another name, from another folder, and by a handle that was opened again. */
LOOP(however_the_file_is_named, 0, 2)
{
    char name[120], folder[200];
    scenario r = {.repo = NULL};
    breccia *again;
    snprintf(name, sizeof(name), "%s/link.brc", t.dir);
    ck_assert_int_eq(symlink(t.file, name), 0);
    ck_assert_ptr_nonnull(getcwd(folder, sizeof(folder)));
    ck_assert_int_eq(chdir(t.dir), 0);
    OK(&r, scenario_connect(&r.repo, _i ? "link.brc" : "test.brc", NULL, &r.err));
    ck_assert_int_eq(chdir(folder), 0);
    OK(&r, brc_reopen(&again, r.repo, &r.err));
    OK(&r, brc_session_open(&r.session, _i ? r.repo : again, "side", BRC_SESSION_AT, &r.err));
    forget_branch();
    ck_assert_int_eq((int)scenario_collect(&t, BRC_GC_EXPUNGE), 0);
    version_is_there(&r);
    scenario_close(&r);
    brc_free(again);
    ck_assert_int_gt((int)scenario_collect(&t, BRC_GC_EXPUNGE), 0);
}

TEST(the_same_handle_may_collect)
{
    brc_session *one, *two;
    OK(&t, brc_session_open(&one, t.repo, "side", BRC_SESSION_AT, &t.err));
    OK(&t, brc_session_open(&two, t.repo, "side", BRC_SESSION_AT, &t.err));
    forget_branch();
    brc_session_free(one);
    ck_assert_int_eq((int)scenario_collect(&t, BRC_GC_EXPUNGE), 0);
    all_is_there(&t, two, "/c", 90000, 90000);
    brc_session_free(two);
    ck_assert_int_gt((int)scenario_collect(&t, BRC_GC_EXPUNGE), 0);
}

TEST(an_array_keeps_its_version_too)
{
    int32_t got[LONG];
    scenario r = reader_open(0, "side", BRC_SESSION_AT);
    brc_array *b = scenario_array_at(&r, r.session, "/b");
    brc_session_free(r.session);
    brc_free(r.repo);
    forget_branch();
    scenario_collect(&t, BRC_GC_EXPUNGE);
    OK(&r, brc_array_read(b, NULL, got, sizeof(got), &r.err));
    ck_assert_int_eq(got[LONG - 1], 50000 + LONG - 1);
    brc_array_free(b);
    ck_assert_int_gt((int)scenario_collect(&t, BRC_GC_EXPUNGE), 0);
}

TEST(of_two_versions_only_the_open_one_stays)
{
    scenario r = reader_open(0, old_hex(&oldest), BRC_SESSION_AT);
    forget_branch();
    ck_assert_int_gt((int)scenario_collect(&t, BRC_GC_EXPUNGE), LONG / 4);
    ck_assert(scenario_has_commit(&t, &oldest) && !scenario_has_commit(&t, &old));
    all_is_there(&r, r.session, "/b", 50000, 50000);
    scenario_close(&r);
}

TEST(changes_keep_what_they_lie_over)
{
    scenario r = reader_open(0, "side", BRC_SESSION_PRIVATE);
    OK(&r, brc_attrs_set(r.session, "/b", "n", "1", &r.err));
    OK(&t, brc_switch(t.repo, "side", 0, &t.err));
    OK(&t, brc_reset(t.repo, NULL, "main", BRC_RESET_HARD, NULL, &t.err));
    OK(&t, brc_switch(t.repo, "main", 0, &t.err));
    ck_assert_int_eq((int)scenario_collect(&t, BRC_GC_EXPUNGE), 0);
    version_is_there(&r);
    OK(&r, brc_session_discard(r.session, &r.err));
    scenario_close(&r);
    ck_assert_int_gt((int)scenario_collect(&t, BRC_GC_EXPUNGE), 0);
}

TEST(what_has_expired_stays_for_who_reads_it)
{
    brc_expire_report report = BRC_EXPIRE_REPORT_INIT;
    brc_expire_opts opts = BRC_EXPIRE_OPTS_INIT;
    scenario r = reader_open(0, old_hex(&oldest), BRC_SESSION_AT);
    opts.keep_last = 1;
    OK(&t, brc_expire(&report, NULL, t.repo, &opts, &t.err));
    scenario_collect(&t, BRC_GC_EXPUNGE);
    all_is_there(&r, r.session, "/b", 50000, 50000);
    scenario_close(&r);
    scenario_whole(&t);
}

/* ---- processes -------------------------------- */

static void await_byte(int fd)
{
    char c;
    ck_assert_int_eq((int)read(fd, &c, 1), 1);
}

/* Opens, says so, and reads when it is told to. */
static void read_when_told(const int *say, const int *hear)
{
    scenario r = reader_open(0, "side", BRC_SESSION_AT);
    if (write(say[1], "o", 1) != 1)
        _exit(2);
    await_byte(hear[0]);
    version_is_there(&r);
    scenario_close(&r);
    _exit(0);
}

LOOP(in_another_process_until_it_ends, 0, 2)
{
    int say[2], hear[2], status;
    ck_assert_int_eq(pipe(say), 0);
    ck_assert_int_eq(pipe(hear), 0);
    const pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0)
        read_when_told(say, hear);
    await_byte(say[0]);
    forget_branch();
    ck_assert_int_eq((int)scenario_collect(&t, BRC_GC_EXPUNGE), 0);
    ck_assert_int_eq((int)scenario_ask(&t, "SELECT count(*) FROM sqlite_schema WHERE name='pin'"),
                     0);
    if (_i == 0)
        ck_assert_int_eq((int)write(hear[1], "r", 1), 1);
    else
        kill(child, SIGKILL);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(_i == 0 ? WEXITSTATUS(status) : WTERMSIG(status), _i == 0 ? 0 : SIGKILL);
    ck_assert_int_gt((int)scenario_collect(&t, BRC_GC_EXPUNGE), 0);
    for (int i = 0; i < 2; i++) {
        close(say[i]);
        close(hear[i]);
    }
}

/* A child that has a copy of the handle, and does nothing with it. */
LOOP(a_fork_of_the_reader_does_not_keep_it_for_ever, 0, 2)
{
    int hear[2], status;
    scenario r = reader_open(0, "side", BRC_SESSION_AT);
    ck_assert_int_eq(pipe(hear), 0);
    const pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        if (_i) { /* or it frees its copy */
            brc_session_free(r.session);
            brc_free(r.repo);
        }
        await_byte(hear[0]);
        _exit(0);
    }
    forget_branch();
    ck_assert_int_eq((int)scenario_collect(&t, BRC_GC_EXPUNGE), 0);
    version_is_there(&r);
    scenario_close(&r);
    ck_assert_int_gt((int)scenario_collect(&t, BRC_GC_EXPUNGE), 0);
    ck_assert_int_eq((int)write(hear[1], "r", 1), 1);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    close(hear[0]);
    close(hear[1]);
}

/* ---- meanwhile -------------------------------- */

static struct {
    int at, n, is_done, is_open, disturbs;
    scenario r;
} meanwhile;

/* A new root: what the collection was about to do, it begins again, and then nobody has written. */
static void disturb_it(void)
{
    static int n;
    char json[20];
    scenario w = reader_open(0, NULL, BRC_SESSION_WRITE);
    snprintf(json, sizeof(json), "%d", ++n);
    OK(&w, brc_attrs_set(w.session, "/a", "n", json, &w.err));
    scenario_commit(&w, "disturbs");
    scenario_close(&w);
}

static int open_meanwhile(void *ctx, const char *phase, uint64_t done, uint64_t total)
{
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    scenario *r = &meanwhile.r;
    (void)ctx, (void)phase, (void)done, (void)total;
    const int now = meanwhile.n++ - meanwhile.at;
    if (now == -1 && meanwhile.disturbs)
        disturb_it();
    if (now != 0)
        return 0;
    meanwhile.is_done = 1;
    memset(r, 0, sizeof(*r));
    memcpy(r->file, t.file, sizeof(r->file));
    OK(r, scenario_connect(&r->repo, r->file, &opts, &r->err));
    const int rc = brc_session_open(&r->session, r->repo, old_hex(&old), BRC_SESSION_AT, &r->err);
    ck_assert_msg(rc == BRC_OK || rc == BRC_ENOTFOUND || rc == BRC_ESTALE, "%s", r->err.message);
    meanwhile.is_open = rc == BRC_OK;
    return 0;
}

/* At each pause of a collection: all of it, or a clear error. */
LOOP(opened_while_it_collects_it_is_whole_or_gone, 0, 2)
{
    int opened = 0, gone = 0;
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    opts.progress = open_meanwhile;
    scenario_numbers(&t, "/big", MANY, 1, 200000);
    scenario_commit(&t, "big");
    OK(&t, brc_ref_create(t.repo, "keep", "side", NULL, BRC_REF_TAG, &t.err));
    forget_branch();
    scenario_close(&t);
    scenario_open(&t, &opts, 0);
    for (int at = 0; at == 0 || meanwhile.is_done; at++) {
        memset(&meanwhile, 0, sizeof(meanwhile));
        meanwhile.at = at;
        meanwhile.disturbs = _i;
        if (gone == 0)
            OK(&t, brc_ref_delete(t.repo, "keep", BRC_REF_TAG | BRC_DELETE_FORCE, &t.err));
        scenario_collect(&t, BRC_GC_EXPUNGE);
        if (meanwhile.is_open) {
            version_is_there(&meanwhile.r);
            scenario_whole(&t);
            OK(&t, brc_ref_create(t.repo, "keep", old_hex(&old), NULL, BRC_REF_TAG, &t.err));
        }
        opened += meanwhile.is_open;
        gone += meanwhile.is_done && !meanwhile.is_open;
        if (meanwhile.is_done)
            scenario_close(&meanwhile.r);
    }
    ck_assert_int_ge(opened, 2);
    ck_assert_int_ge(gone, 1);
}

static int stop_it(void *ctx, const char *phase, uint64_t done, uint64_t total)
{
    (void)ctx, (void)phase, (void)done, (void)total;
    return scenario_ask(&t, "SELECT count(*) FROM sqlite_schema WHERE name='gc'") > 0 &&
           scenario_ask(&t, "SELECT count(*) FROM gc") > 0;
}

/* A collection was stopped in the middle, and somebody writes for longer than the reader waits. */
TEST(a_busy_writer_keeps_no_reader_out)
{
    scenario r = {.repo = NULL};
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    opts.progress = stop_it;
    scenario_close(&t);
    scenario_open(&t, &opts, 0);
    FAILS(&t, BRC_EINTERRUPT, brc_gc(t.repo, NULL, NULL, &t.err));
    scenario_close(&t);
    scenario_open(&t, NULL, 0);
    OK(&t, brc_begin(t.repo, &t.err));
    OK(&t, brc_attrs_set(t.session, "/a", "n", "1", &t.err));
    memcpy(r.file, t.file, sizeof(r.file));
    opts = (brc_open_opts)BRC_OPEN_OPTS_INIT;
    opts.wait_ms = -1;
    OK(&r, scenario_connect(&r.repo, r.file, &opts, &r.err));
    OK(&r, brc_session_open(&r.session, r.repo, "side", BRC_SESSION_AT, &r.err));
    OK(&t, brc_end(t.repo, BRC_END_KEEP, &t.err));
    forget_branch();
    scenario_collect(&t, BRC_GC_EXPUNGE);
    version_is_there(&r);
    scenario_close(&r);
}
