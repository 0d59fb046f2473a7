/* Our locks beside everybody's: what another process, another copy of SQLite in this one, another
 * handle, or a plain open and close of the file can do while we work. */
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../src/base/buf.h"
#include "../../src/store/db.h"
#include "../../src/store/file_lock.h"
#include "../../src/work/session.h"
#include "../kit/journal_kit.h"
#include "../kit/late_writer.h"
#include "../kit/lock_faults.h"
#include "../kit/peer.h"
#include "../kit/scenario.h"
#include "../kit/sqlite_copy.h"
#include "../kit/store_kit.h"
#include "../kit/suite.h"

TEST_SUITE(file_lock);

static scenario t;
static peer other;

#define WRITE_SQL "UPDATE meta SET value=value WHERE key='head'"

static void beside_setup(void)
{
    scenario_start(&t);
    scenario_numbers(&t, "/a", 4000, 40, 0);
    scenario_commit(&t, "first");
    scenario_close(&t);
    peer_start(&other, t.file);
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    opts.wait_ms = -1;
    scenario_open(&t, &opts, 0);
}

static void beside_teardown(void)
{
    peer_stop(&other);
    scenario_whole(&t);
    scenario_stop(&t);
}

/* Begins a change, lets the other thing happen in the middle of it, and while nobody else gets in,
 * ends it. */
static void in_the_middle(void (*happens)(void))
{
    OK(&t, brc_begin(t.repo, &t.err));
    scenario_set_number(&t, "/a", 0, 70);
    ck_assert_int_eq(peer_sql(&other, "BEGIN IMMEDIATE"), SQLITE_BUSY);
    happens();
    ck_assert_int_eq(peer_sql(&other, "BEGIN IMMEDIATE"), SQLITE_BUSY);
    scenario_set_number(&t, "/a", 1, 71);
    OK(&t, brc_end(t.repo, BRC_END_KEEP, &t.err));
    ck_assert_int_eq(peer_sql(&other, "BEGIN IMMEDIATE; " WRITE_SQL "; COMMIT"), SQLITE_OK);
    scenario_reopen(&t);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 0), 70);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 1), 71);
}

/* ---- in this process ------------------------------------------------------------- */

static void open_and_close(void)
{
    int fd = open(t.file, O_RDONLY | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(close(fd), 0);
}

CASE("beside", .setup = beside_setup, .teardown = beside_teardown, .timeout = 120);

TEST(a_plain_close_lets_no_writer_in)
{
    in_the_middle(open_and_close);
}

static void open_another_handle(void)
{
    breccia *repo;
    repo = scenario_handle(&t, -1);
    brc_session *s = scenario_session(&t, repo, NULL, BRC_SESSION_WRITE);
    ck_assert_int_eq(scenario_number(&t, s, "/a", 0), 0);
    FAILS(&t, BRC_EBUSY, brc_group_create(s, "/g", NULL, &t.err));
    brc_session_free(s);
    brc_free(repo);
}

TEST(another_handle_waits_and_its_end_drops_nothing)
{
    in_the_middle(open_another_handle);
}

#ifdef HAS_SQLITE_COPY

static void use_another_copy(void)
{
    sqlite_copy c;
    sqlite3 *db;
    sqlite_copy_load(&c);
    ck_assert_int_eq(c.open(t.file, &db), SQLITE_OK);
    ck_assert_int_eq(c.exec(db, "SELECT count(*) FROM object", NULL, NULL, NULL), SQLITE_OK);
    ck_assert_int_eq(c.exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_BUSY);
    ck_assert_int_eq(c.close(db), SQLITE_OK);
}

TEST(another_copy_of_sqlite_is_shut_out_and_drops_nothing)
{
    in_the_middle(use_another_copy);
}

#endif

/* The same copy of SQLite, with its own locks: those of a process shut out a description's. */
TEST(a_connection_beside_ours_is_met_like_a_process)
{
    sqlite3 *db;
    ck_assert_int_eq(sqlite3_open(t.file, &db), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    FAILS(&t, BRC_EBUSY, brc_begin(t.repo, &t.err));
    ck_assert_int_eq(sqlite3_exec(db, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
    OK(&t, brc_begin(t.repo, &t.err));
    ck_assert_int_eq(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_BUSY);
    OK(&t, brc_end(t.repo, BRC_END_KEEP, &t.err));
    sqlite3_close(db);
}

/* ---- other processes ------------------------------------------------------------- */

TEST(what_others_hold_holds)
{
    ck_assert_int_eq(peer_sql(&other, "BEGIN IMMEDIATE; " WRITE_SQL), SQLITE_OK);
    FAILS(&t, BRC_EBUSY, brc_begin(t.repo, &t.err));
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 77), 77);
    ck_assert_int_eq(peer_sql(&other, "COMMIT; BEGIN EXCLUSIVE"), SQLITE_OK);
    int kind;
    FAILS(&t, BRC_EBUSY, brc_node_kind(&kind, t.session, "/a", &t.err));
    ck_assert_int_eq(peer_sql(&other, "COMMIT; BEGIN; SELECT count(*) FROM meta"), SQLITE_OK);
    OK(&t, brc_begin(t.repo, &t.err));
    scenario_set_number(&t, "/a", 0, 70);
    FAILS(&t, BRC_EBUSY, brc_end(t.repo, BRC_END_KEEP, &t.err));
    ck_assert_int_eq(peer_sql(&other, "COMMIT"), SQLITE_OK);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 0), 0);
    scenario_set_number(&t, "/a", 0, 70);
}

/* A commit of ours that waits for a reader lets no new one in, and goes on when it leaves. */
TEST(a_reader_is_waited_for)
{
    ck_assert_int_eq(peer_sql(&other, "BEGIN; SELECT count(*) FROM meta"), SQLITE_OK);
    scenario_close(&t);
    pid_t child = fork();
    if (child == 0) {
        brc_error err = BRC_ERROR_INIT;
        _exit(journal_kit_commit(t.file, 1, &err) != BRC_OK);
    }
    int status;
    usleep(200000);
    ck_assert_int_eq(waitpid(child, &status, WNOHANG), 0);
    ck_assert_int_eq(peer_sql(&other, "COMMIT"), SQLITE_OK);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    scenario_open(&t, NULL, 0);
}

/* ---- many writers of both kinds -------------------------------------------------- */

enum { WRITERS = 8, TURNS = 25 };

static int write_with_sqlite(int who)
{
    uint64_t random = (uint64_t)who;
    sqlite3 *db;
    int rc = sqlite3_open(t.file, &db);
    sqlite3_busy_handler(db, peer_waits, &random);
    for (int i = 0; rc == SQLITE_OK && i < TURNS; i++)
        rc = sqlite3_exec(db, "BEGIN IMMEDIATE; INSERT INTO blob(data) VALUES (randomblob(3000));"
                              "COMMIT", NULL, NULL, NULL);
    return rc;
}

/* The file is opened and closed in the middle of each transaction. */
static int write_with_ours(int who)
{
    char name[32];
    breccia *repo;
    int rc = brc_open(&repo, t.file, NULL, &t.err);
    for (int i = 0; rc == BRC_OK && i < TURNS; i++) {
        snprintf(name, sizeof(name), "tag%d-%d", who, i);
        rc = brc_begin(repo, &t.err);
        if (rc == BRC_OK)
            rc = brc_ref_create(repo, name, NULL, NULL, BRC_REF_TAG, &t.err);
        open_and_close();
        int end = brc_end(repo, rc == BRC_OK ? BRC_END_KEEP : 0, &t.err);
        rc = rc == BRC_OK ? end : rc;
    }
    if (rc != BRC_OK)
        fprintf(stderr, "writer %d: %s\n", who, t.err.message);
    return rc;
}

TEST(nobody_loses_what_was_committed)
{
    pid_t writers[WRITERS];
    int status;
    int64_t last = scenario_ask(&t, "SELECT max(seq) FROM blob");
    scenario_close(&t);
    for (int i = 0; i < WRITERS; i++) {
        writers[i] = fork();
        if (writers[i] == 0)
            _exit((i % 2 ? write_with_sqlite(i) : write_with_ours(i)) != 0);
    }
    for (int i = 0; i < WRITERS; i++) {
        ck_assert_int_eq(waitpid(writers[i], &status, 0), writers[i]);
        ck_assert_int_eq(status, 0);
    }
    ck_assert_int_eq(scenario_ask(&t, "SELECT count(*) FROM ref WHERE name LIKE 'tags/%'"),
                     WRITERS / 2 * TURNS);
    char sql[64];
    snprintf(sql, sizeof(sql), "SELECT count(*) FROM blob WHERE seq>%d", (int)last);
    ck_assert_int_eq(scenario_ask(&t, sql), WRITERS / 2 * TURNS);
    snprintf(sql, sizeof(sql), "DELETE FROM blob WHERE seq>%d", (int)last);
    scenario_sql_shared(&t, sql);
    scenario_open(&t, NULL, 0);
}

/* ---- SQLite's rules, step by step ------------------------------------------------ */

enum { ACTORS = 3, PEER = 2 }; /* two descriptions of this process, and the other process */

typedef struct rules {
    int level[ACTORS], reserved[ACTORS]; /* the byte: who came by way of RESERVED */
} rules;

static int highest_of_others(const rules *r, int who)
{
    int most = 0;
    for (int i = 0; i < ACTORS; i++)
        if (i != who && r->level[i] > most)
            most = r->level[i];
    return most;
}

static int others_reserved(const rules *r, int who)
{
    int any = 0;
    for (int i = 0; i < ACTORS; i++)
        any |= i != who && r->reserved[i];
    return any;
}

static int rules_lock(rules *r, int who, int level)
{
    int others = highest_of_others(r, who);
    if (level <= r->level[who])
        return SQLITE_OK;
    if (level == SQLITE_LOCK_SHARED && others >= SQLITE_LOCK_PENDING)
        return SQLITE_BUSY;
    if (level == SQLITE_LOCK_RESERVED && others_reserved(r, who))
        return SQLITE_BUSY;
    r->reserved[who] |= level == SQLITE_LOCK_RESERVED;
    if (level == SQLITE_LOCK_EXCLUSIVE) {
        if (r->level[who] < SQLITE_LOCK_PENDING && others >= SQLITE_LOCK_PENDING)
            return SQLITE_BUSY;
        r->level[who] = SQLITE_LOCK_PENDING;
        if (others >= SQLITE_LOCK_SHARED)
            return SQLITE_BUSY;
    }
    r->level[who] = level;
    return SQLITE_OK;
}

static void rules_unlock(rules *r, int who, int level)
{
    if (r->level[who] <= level)
        return;
    r->level[who] = level;
    r->reserved[who] = 0;
}

static void do_lock(rules *r, brc_file_lock *ours, int who, int level)
{
    int want = rules_lock(r, who, level);
    int got = who == PEER ? peer_lock(&other, level) : brc_file_lock_raise(&ours[who], level);
    ck_assert_int_eq(got, want);
}

static void do_unlock(rules *r, brc_file_lock *ours, int who, int level)
{
    rules_unlock(r, who, level);
    ck_assert_int_eq(who == PEER ? peer_unlock(&other, level)
                                 : brc_file_lock_lower(&ours[who], level), SQLITE_OK);
}

static void do_ask(const rules *r, const brc_file_lock *ours, int who)
{
    int got;
    ck_assert_int_eq(who == PEER ? peer_reserved(&other, &got)
                                 : brc_file_lock_reserved(&ours[who], &got), SQLITE_OK);
    ck_assert_int_eq(got, r->level[who] > SQLITE_LOCK_SHARED || others_reserved(r, who));
}

/* EXCLUSIVE without RESERVED is how a hot journal is played back. Which of SQLite's versions take
 * PENDING on that way differs, so the other process comes by RESERVED. */
TEST(they_follow_sqlites_rules)
{
    uint64_t random = 9;
    int busy = 0, exclusive = 0;
    rules r;
    brc_file_lock ours[PEER];
    memset(&r, 0, sizeof(r));
    for (int i = 0; i < PEER; i++)
        ck_assert_int_eq(brc_file_lock_open(&ours[i], t.file, 1), SQLITE_OK);
    for (int step = 0; step < 20000; step++) {
        int who = (int)scenario_below(&random, ACTORS), what = (int)scenario_below(&random, 8);
        if (what < 5) {
            int level = r.level[who] == SQLITE_LOCK_NONE ? SQLITE_LOCK_SHARED
                        : r.level[who] > SQLITE_LOCK_SHARED || (who != PEER && what < 2)
                            ? SQLITE_LOCK_EXCLUSIVE : SQLITE_LOCK_RESERVED;
            int had = r.level[who];
            do_lock(&r, ours, who, level);
            busy += r.level[who] == had;
            exclusive += r.level[who] == SQLITE_LOCK_EXCLUSIVE;
        } else if (what < 7) {
            do_unlock(&r, ours, who, what == 5 ? SQLITE_LOCK_NONE : SQLITE_LOCK_SHARED);
        } else {
            do_ask(&r, ours, who);
        }
        if (step % 16 == 0)
            open_and_close();
    }
    ck_assert_int_gt(busy, 1000);
    ck_assert_int_gt(exclusive, 100);
    for (int i = 0; i < PEER; i++)
        brc_file_lock_close(&ours[i]);
    do_unlock(&r, ours, PEER, SQLITE_LOCK_NONE);
}

/* ---- who waits -------------------------------------------------------------------- */

TEST(who_waits_is_seen_until_it_recalls_or_lets_go)
{
    brc_file_lock a, b;
    ck_assert_int_eq(brc_file_lock_open(&a, t.file, 1), SQLITE_OK);
    ck_assert_int_eq(brc_file_lock_open(&b, t.file, 0), SQLITE_OK); /* to read */
    ck_assert_int_eq(brc_file_lock_is_awaited(&a), 0);
    brc_file_lock_announce(&b);
    ck_assert_int_eq(brc_file_lock_is_awaited(&a), 1);
    ck_assert_int_eq(brc_file_lock_is_awaited(&b), 0); /* by others than itself */
    brc_file_lock_recall(&b);
    ck_assert_int_eq(brc_file_lock_is_awaited(&a), 0);
    brc_file_lock_announce(&b);
    ck_assert_int_eq(brc_file_lock_raise(&b, SQLITE_LOCK_SHARED), SQLITE_OK);
    ck_assert_int_eq(brc_file_lock_is_awaited(&a), 1);
    ck_assert_int_eq(brc_file_lock_lower(&b, SQLITE_LOCK_NONE), SQLITE_OK);
    ck_assert_int_eq(brc_file_lock_is_awaited(&a), 0);
    brc_file_lock_announce(&b);
    brc_file_lock_close(&b);
    ck_assert_int_eq(brc_file_lock_is_awaited(&a), 0);
    ck_assert_int_eq(brc_file_lock_raise(&a, SQLITE_LOCK_SHARED), SQLITE_OK); /* it locks nothing */
    brc_file_lock_close(&a);
    ck_assert_int_eq(brc_file_lock_is_awaited(&a), 1); /* it cannot be told */
}

TEST(a_writer_that_waits_is_seen)
{
    brc_file_lock look;
    brc_error err = BRC_ERROR_INIT;
    late_writer w;
    scenario_reopen(&t); /* who waits reads again and again: our end waits for that */
    ck_assert_int_eq(brc_file_lock_open(&look, t.file, 0), SQLITE_OK);
    OK(&t, brc_begin(t.repo, &t.err));
    scenario_set_number(&t, "/a", 0, 70);
    ck_assert_int_eq(late_writer_now(t.file, 1, &err), BRC_EBUSY);
    ck_assert_int_eq(brc_file_lock_is_awaited(&look), 0); /* it gave up */
    late_writer_start(&w, t.file);
    while (!brc_file_lock_is_awaited(&look) && !atomic_load(&w.is_over))
        usleep(1000);
    OK(&t, brc_end(t.repo, BRC_END_KEEP, &t.err));
    late_writer_join(&w);
    ck_assert_int_eq(brc_file_lock_is_awaited(&look), 0);
    brc_file_lock_close(&look);
}

/* SQLite begins a transaction again from no lock, and an announcement goes with the last one. */
TEST(who_tries_again_is_still_seen)
{
    brc_file_lock look;
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    opts.wait_ms = 60000;
    scenario_close(&t);
    scenario_open(&t, &opts, 0);
    ck_assert_int_eq(brc_file_lock_open(&look, t.file, 0), SQLITE_OK);
    for (int tries = 0; tries < 3; tries++) {
        ck_assert_int_eq(brc_db_busy(t.repo->store, tries), 1);
        ck_assert_int_eq(brc_file_lock_is_awaited(&look), 1);
        ck_assert_int_eq(scenario_number(&t, t.session, "/a", 77), 77); /* locks, and lets go */
        ck_assert_int_eq(brc_file_lock_is_awaited(&look), 0);
    }
    brc_file_lock_close(&look);
}

/* A waiter that has given up holds no lock, which would show that it waits. */
TEST(who_has_given_up_is_not_waited_for)
{
    brc_file_lock look;
    ck_assert_int_eq(brc_file_lock_open(&look, t.file, 0), SQLITE_OK);
    ck_assert_int_eq(peer_sql(&other, "BEGIN EXCLUSIVE"), SQLITE_OK);
    FAILS(&t, BRC_EBUSY, brc_begin(t.repo, &t.err));
    ck_assert_int_eq(brc_file_lock_is_awaited(&look), 0);
    ck_assert_int_eq(peer_sql(&other, "COMMIT"), SQLITE_OK);
    brc_file_lock_close(&look);
}

/* ---- the descriptor -------------------------------------------------------------- */

/* Where a program has closed its standard streams, its prints must not go into the file. */
TEST(it_is_none_of_the_standard_streams)
{
    brc_file_lock lock;
    int kept = dup(STDIN_FILENO);
    ck_assert_int_ge(kept, 0);
    close(STDIN_FILENO);
    int rc = brc_file_lock_open(&lock, t.file, 1);
    int is_free = fcntl(STDIN_FILENO, F_GETFD) < 0;
    ck_assert_int_eq(dup2(kept, STDIN_FILENO), STDIN_FILENO);
    close(kept);
    ck_assert_int_eq(rc, SQLITE_OK);
    ck_assert(is_free);
    ck_assert_int_gt(lock.fd, STDERR_FILENO);
    ck_assert_int_eq(fcntl(lock.fd, F_GETFD), FD_CLOEXEC);
    brc_file_lock_close(&lock);
}

/* A process that is killed has no time to unlock: its child, which gave its copy back, must not
 * hold what it held. */
TEST(a_child_that_left_keeps_no_lock_of_its_dead_parent)
{
    brc_file_lock lock;
    int ready[2], go[2], status;
    char byte = 0;
    ck_assert_int_eq(pipe(ready), 0);
    ck_assert_int_eq(pipe(go), 0);
    ck_assert_int_eq(brc_file_lock_open(&lock, t.file, 1), SQLITE_OK);
    ck_assert_int_eq(brc_file_lock_raise(&lock, SQLITE_LOCK_SHARED), SQLITE_OK);
    ck_assert_int_eq(brc_file_lock_raise(&lock, SQLITE_LOCK_RESERVED), SQLITE_OK);
    pid_t child = fork();
    if (child == 0) {
        close(go[1]);
        brc_file_lock_leave(&lock);
        _exit(write(ready[1], &byte, 1) != 1 || read(go[0], &byte, 1) != 0);
    }
    ck_assert_int_eq(read(ready[0], &byte, 1), 1);
    ck_assert_int_eq(peer_sql(&other, "BEGIN IMMEDIATE"), SQLITE_BUSY);
    close(lock.fd);
    ck_assert_int_eq(peer_sql(&other, "BEGIN EXCLUSIVE; COMMIT"), SQLITE_OK);
    close(go[0]);
    close(go[1]);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    close(ready[0]);
    close(ready[1]);
}

static char another_file[128];
static sqlite3_vfs *unix_vfs;

static int open_and_replace(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags,
                            int *out)
{
    (void)vfs;
    int rc = unix_vfs->xOpen(unix_vfs, name, file, flags, out);
    if (rc == SQLITE_OK && (flags & SQLITE_OPEN_MAIN_DB))
        ck_assert_int_eq(rename(another_file, name), 0);
    return rc;
}

/* An open that went on would lock one file and write another. */
TEST(a_file_that_is_replaced_while_it_is_opened_is_refused)
{
    static sqlite3_vfs vfs;
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    breccia *repo;
    brc_buf content = store_kit_read(t.file);
    snprintf(another_file, sizeof(another_file), "%s/another.brc", t.dir);
    store_kit_put(another_file, &content);
    brc_buf_dispose(&content);
    unix_vfs = sqlite3_vfs_find("unix");
    vfs = *unix_vfs;
    vfs.pNext = NULL;
    vfs.zName = "breccia-replaces";
    vfs.xOpen = open_and_replace;
    sqlite3_vfs_register(&vfs, 0);
    opts.vfs = vfs.zName;
    opts.wait_ms = -1;
    FAILS(&t, BRC_EBUSY, brc_open(&repo, t.file, &opts, &t.err));
    ck_assert_ptr_nonnull(strstr(t.err.message, "was replaced by another file"));
    sqlite3_vfs_unregister(&vfs);
    scenario_reopen(&t);
}

/* ---- hot journals ---------------------------------------------------------------- */

/* Half of them make a tag, half of them only read. */
static int recover(int number, int is_writer)
{
    brc_error err = BRC_ERROR_INIT;
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    breccia *repo = NULL;
    char name[32];
    uint64_t checked;
    snprintf(name, sizeof(name), "tag%d", number);
    opts.flags = !is_writer && number % 4 == 1 ? BRC_OPEN_READONLY : 0;
    int rc = brc_open(&repo, t.file, &opts, &err);
    if (rc == BRC_OK)
        rc = is_writer ? brc_ref_create(repo, name, NULL, NULL, BRC_REF_TAG, &err)
                       : brc_fsck(repo, 0, NULL, NULL, NULL, &checked, &err);
    brc_free(repo);
    if (rc != BRC_OK)
        fprintf(stderr, "recoverer %d: %s\n", number, err.message);
    return rc != BRC_OK;
}

static void recover_at_once(int how, int first)
{
    enum { RECOVERERS = 8 };
    pid_t each[RECOVERERS];
    int go[2], status;
    char byte;
    journal_kit_leave(t.file, how);
    ck_assert_int_eq(pipe(go), 0);
    for (int i = 0; i < RECOVERERS; i++) {
        each[i] = fork();
        if (each[i] == 0) {
            close(go[1]);
            _exit(read(go[0], &byte, 1) != 0 || recover(first + i, i % 2 == 0));
        }
    }
    close(go[0]);
    close(go[1]); /* all at once */
    for (int i = 0; i < RECOVERERS; i++) {
        ck_assert_int_eq(waitpid(each[i], &status, 0), each[i]);
        ck_assert_int_eq(status, 0);
    }
}

TEST(many_come_to_a_killed_writers_file)
{
    scenario_close(&t);
    /* Without page 1 a journal is not played back: suite left_journal. */
    for (int how = 0; how < 3; how += 2)
        for (int again = 0; again < 5; again++)
            recover_at_once(how, 100 * how + 10 * again);
    scenario_open(&t, NULL, 0);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 77), 77);
    ck_assert_int_eq(scenario_ask(&t, "SELECT count(*) FROM ref WHERE name LIKE 'tags/%'"),
                     2 * 5 * 4);
}

/* ---- systems without them -------------------------------------------------------- */

static int not_known(void *ctx)
{
    (void)ctx;
    return EINVAL;
}

/* The locks of the VFS below are used, and the file is not opened beside it. */
TEST(without_them_the_locks_are_sqlites)
{
    scenario_close(&t);
    lock_faults_set(not_known, NULL);
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    opts.wait_ms = -1;
    scenario_open(&t, &opts, 0);
    in_the_middle(open_another_handle);
    ck_assert_int_eq(peer_sql(&other, "BEGIN EXCLUSIVE"), SQLITE_OK);
    FAILS(&t, BRC_EBUSY, brc_begin(t.repo, &t.err));
    ck_assert_int_eq(peer_sql(&other, "COMMIT"), SQLITE_OK);
    lock_faults_set(NULL, NULL);
    scenario_reopen(&t);
}
