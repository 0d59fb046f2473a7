/*
 * The collection of garbage on bad days: killed at each write, sync, truncation and deletion; on a
 * disk that is full; with little memory. Nothing that has a name is lost, the file is whole, and
 * the next collection ends where an undisturbed one does.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../kit/effort.h"
#include "../kit/fault_vfs.h"
#include "../kit/process_kit.h"
#include "../kit/sanitized.h"
#include "../kit/scenario.h"
#include "../kit/store_kit.h"
#include "../kit/suite.h"

TEST_SUITE(gc_faults);

enum { BIG = 1 << 16 };

static scenario base, work;
static fault_vfs disk;
static brc_buf left; /* what an undisturbed collection leaves */
static const char secret[] = "what nobody is to find in the file any more";

/* ---- a file with garbage of every kind -------------------------------- */

static void write_noise(scenario *t, const char *path, uint64_t chunks, uint64_t seed)
{
    const uint64_t shape = chunks * BIG, chunk = BIG;
    brc_array *a = scenario_array(t, path, "uint8", 1, &shape, &chunk, NULL,
                                  "[{\"name\":\"bytes\"}]");
    uint8_t *data = malloc(shape);
    ck_assert_ptr_nonnull(data);
    model_bytes(&seed, data, shape);
    if (path[1] == 'n')
        memcpy(data + 1000, secret, sizeof(secret));
    OK(t, brc_array_write(a, NULL, data, shape, &t->err));
    free(data);
    brc_array_free(a);
}

/* Rows of stored bytes of which little is needed; large chunks; several commits. */
static void leave_deleted_side(scenario *t, uint64_t noise)
{
    brc_session *main = t->session;
    OK(t, brc_ref_create(t->repo, "side", NULL, NULL, 0, &t->err));
    OK(t, brc_session_open(&t->session, t->repo, "side", BRC_SESSION_WRITE, &t->err));
    scenario_numbers(t, "/m", 1024, 4, 70000);
    scenario_commit(t, "many");
    write_noise(t, "/noise", noise, 1);
    scenario_commit(t, "noise");
    brc_session_free(t->session);
    t->session = main;
    scenario_numbers(t, "/few", 40, 4, 70000);
    write_noise(t, "/kept", noise / 2, 2); /* which moves when pages are given back */
    scenario_commit(t, "few of them");
    OK(t, brc_ref_delete(t->repo, "side", BRC_DELETE_FORCE, &t->err));
}

static void leave_dead_draft(const char *file)
{
    int status;
    const pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        scenario t = {.repo = NULL};
        snprintf(t.file, sizeof(t.file), "%s", file);
        if (scenario_connect(&t.repo, t.file, NULL, &t.err) < 0 ||
            brc_session_open(&t.session, t.repo, NULL, BRC_SESSION_PRIVATE, &t.err) < 0)
            _exit(1);
        scenario_numbers(&t, "/left", 1000, 4, 5000);
        _exit(0);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
}

static void make_base(scenario *t, uint64_t noise)
{
    scenario_start(t);
    scenario_no_window(t);
    scenario_numbers(t, "/a", 64, 4, 0);
    scenario_commit(t, "main");
    leave_deleted_side(t, noise);
    leave_dead_draft(t->file);
    scenario_set_number(t, "/a", 1, 77);
    scenario_set_number(t, "/a", 1, 78); /* the chunk with 77 is garbage */
}

/* ---- one run -------------------------------- */

static void copy_base(void)
{
    store_kit_copy(base.file, work.file);
}

static int collect_work(uint32_t flags)
{
    brc_gc_opts opts = BRC_GC_OPTS_INIT;
    opts.flags = flags;
    return brc_gc(work.repo, &opts, NULL, &work.err);
}

static void what_is_left(brc_buf *out)
{
    scenario_rows(&work, "SELECT hex(id), kind FROM object ORDER BY id", out);
}

static void values_are_there(void)
{
    for (uint64_t i = 0; i < 64; i++)
        ck_assert_int_eq(scenario_number(&work, work.session, "/a", i),
                         i == 1 ? 78 : (int32_t)i);
    for (uint64_t i = 0; i < 40; i++)
        ck_assert_int_eq(scenario_number(&work, work.session, "/few", i), 70000 + (int32_t)i);
}

/* All is there, and the next one does the rest. */
static void is_ended_by_the_next(uint32_t flags)
{
    brc_buf now = BRC_BUF_INIT;
    values_are_there();
    scenario_whole(&work);
    OK(&work, collect_work(flags));
    values_are_there();
    scenario_whole(&work);
    what_is_left(&now);
    ck_assert_str_eq((char *)now.data, (char *)left.data);
    ck_assert_int_eq((int)scenario_ask(&work, "SELECT (SELECT count(*) FROM gc) +"
                                              " (SELECT count(*) FROM gc_kept) +"
                                              " (SELECT count(*) FROM draft WHERE kind=2)"), 0);
    ck_assert_int_eq((int)scenario_ask(&work, "PRAGMA freelist_count"), 0);
    (void)scenario_unused(&work);
    if (flags & BRC_GC_EXPUNGE)
        ck_assert(!store_kit_holds(work.file, secret, sizeof(secret)));
    brc_buf_dispose(&now);
}

static void set_journal(int wal)
{
    scenario_open_vfs(&work, NULL);
    OK(&work, brc_config_set(work.repo, "journal", wal ? "wal" : "rollback", &work.err));
    scenario_close(&work);
    store_kit_copy(work.file, base.file);
}

static void faults_begin(uint64_t noise, int wal)
{
    make_base(&base, noise);
    scenario_close(&base);
    fault_vfs_register(&disk);
    work = base;
    snprintf(work.file, sizeof(work.file), "%s/work.brc", base.dir);
    copy_base();
    set_journal(wal);
    copy_base();
    scenario_open_vfs(&work, NULL);
    left = (brc_buf)BRC_BUF_INIT;
    OK(&work, collect_work(0));
    what_is_left(&left);
    scenario_close(&work);
}

static void faults_end(void)
{
    brc_buf_dispose(&left);
    fault_vfs_unregister(&disk);
    scenario_stop(&base);
}

/* ---- killed -------------------------------- */

typedef struct victim {
    uint32_t flags;
    unsigned kinds;
    uint64_t moment;
} victim;

static int run_victim(void *ctx)
{
    const victim *v = ctx;
    scenario_open_vfs(&work, FAULT_VFS_NAME);
    fault_vfs_kill(&disk, v->kinds, v->moment);
    const int rc = collect_work(v->flags);
    scenario_close(&work);
    return rc;
}

/* 0: there are not so many moments. */
static int collect_and_die(uint32_t flags, unsigned kinds, uint64_t n)
{
    victim v = {flags, kinds, n};
    copy_base();
    return !process_survives(run_victim, &v);
}

CASE("faults", .timeout = 300);

LOOP(killed_at_any_moment_it_is_gone_on_with, 0, 4)
{
    const uint64_t each = effort_step(8, 16);
    const uint32_t flags = _i / 2 ? BRC_GC_EXPUNGE : 0;
    uint64_t n = 1 + (uint64_t)_i % each, killed = 0;
    faults_begin(2, _i % 2);
    for (; collect_and_die(flags, FAULT_CHANGES, n); n += each, killed++) {
        scenario_open_vfs(&work, NULL);
        is_ended_by_the_next(flags);
        scenario_close(&work);
    }
    ck_assert_uint_ge(killed, 100 / each);
    faults_end();
}

/* Behind a commit that gives pages back: the file is longer than it says, with what was to go. */
TEST(a_file_that_was_not_cut_is_cut_by_the_next)
{
    uint64_t n = 1;
    faults_begin(2, 0);
    for (; collect_and_die(BRC_GC_EXPUNGE, FAULT_TRUNCATE, n); n++) {
        scenario_open_vfs(&work, NULL);
        is_ended_by_the_next(BRC_GC_EXPUNGE);
        scenario_close(&work);
    }
    ck_assert_uint_gt(n, 1);
    faults_end();
}

/* ---- a full disk -------------------------------- */

static const int64_t rooms[] = {
    0, 16 << 10, 64 << 10, 128 << 10, 256 << 10, 512 << 10, 1 << 20, 2 << 20, 8 << 20,
};
enum { ROOMS = sizeof(rooms) / sizeof(rooms[0]), HALF = 1 << 19 };

static void collect_in_room(int64_t room)
{
    copy_base();
    scenario_open_vfs(&work, FAULT_VFS_NAME);
    disk.has_room = 1;
    disk.room = room;
    const int rc = collect_work(0);
    if (rc != BRC_OK) {
        ck_assert_msg(rc == BRC_ENOSPACE, "%s", work.err.message);
        ck_assert_ptr_nonnull(strstr(work.err.message, " 1048576 bytes"));
        ck_assert_ptr_nonnull(strstr(work.err.message, work.file));
    }
    ck_assert_msg(rc == BRC_OK || room < HALF, "with %lld bytes: %s", (long long)room,
                  work.err.message);
    values_are_there();
    disk.has_room = 0;
    is_ended_by_the_next(0);
    scenario_close(&work);
}

LOOP(on_a_full_disk_it_gets_on_or_says_what_it_needs, 0, 2)
{
    faults_begin(300, _i);
    for (int i = 0; i < ROOMS; i++)
        collect_in_room(rooms[i]);
    faults_end();
}

CASE("room", .timeout = 300);

/* docs/CLI.md promises it for twice as much, which is enough however the pages of the file happen
 * to lie, and whatever has come into a log before there was no more room. */
LOOP(with_half_of_what_it_says_it_gets_to_its_end, 0, 4)
{
    faults_begin(300, _i % 2);
    collect_in_room(HALF);
    collect_in_room(2 * HALF);
    faults_end();
}

CASE("faults");

/* From some moment on nothing can be written. */
TEST(the_disk_may_fill_at_any_moment)
{
    const uint64_t each = effort_step(4, 16);
    uint64_t n = 1;
    faults_begin(2, 0);
    for (int hits = 1; hits > 0; n += each) {
        copy_base();
        scenario_open_vfs(&work, FAULT_VFS_NAME);
        fault_vfs_arm(&disk, FAULT_FULL, n, 1);
        const int rc = collect_work(0);
        hits = disk.hits;
        fault_vfs_disarm(&disk);
        ck_assert_msg(rc == (hits > 0 ? BRC_ENOSPACE : BRC_OK), "%d: %s", (int)n,
                      work.err.message);
        is_ended_by_the_next(0);
        scenario_close(&work);
    }
    ck_assert_uint_gt(n, 50); /* joined writes */
    faults_end();
}

/* ---- little memory -------------------------------- */

enum { HAS_LIMITS = !KIT_SANITIZED }; /* they reserve address space without end */

/* `more` bytes than the process has now. */
static void limit_memory(size_t more)
{
    FILE *f = fopen("/proc/self/statm", "r");
    unsigned long long pages = 0;
    if (f == NULL || !HAS_LIMITS)
        return;
    const int n = fscanf(f, "%llu", &pages);
    fclose(f);
    const rlim_t most = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + more;
    const struct rlimit limit = {most, most};
    if (n != 1 || setrlimit(RLIMIT_AS, &limit) < 0)
        _exit(2);
}

/* In a process that has 12 MiB for all of it: 120 bytes for each object would be too many. */
static void collect_in_little(const char *file)
{
    scenario t = {.repo = NULL};
    brc_gc_opts opts = BRC_GC_OPTS_INIT;
    brc_gc_report report = BRC_GC_REPORT_INIT;
    opts.memory = 1 << 20;
    if (scenario_connect(&t.repo, file, NULL, &t.err) < 0)
        _exit(3);
    limit_memory(12 << 20);
    if (brc_gc(t.repo, &opts, &report, &t.err) < 0) {
        fprintf(stderr, "%s\n", t.err.message);
        _exit(4);
    }
    _exit(report.objects_removed < 50000 ? 5 : 0);
}

TEST(memory_does_not_grow_with_the_number_of_objects)
{
    int status;
    scenario_start(&base);
    scenario_no_window(&base);
    scenario_numbers(&base, "/a", 50000, 1, 0);
    scenario_commit(&base, "main");
    scenario_numbers(&base, "/b", 50000, 1, 1000000);
    OK(&base, brc_session_discard(base.session, &base.err));
    scenario_close(&base);
    const pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0)
        collect_in_little(base.file);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status));
    ck_assert_int_eq(WEXITSTATUS(status), 0);
    scenario_open(&base, NULL, 0);
    ck_assert_int_eq(scenario_number(&base, base.session, "/a", 49999), 49999);
    scenario_whole(&base);
    scenario_stop(&base);
}
