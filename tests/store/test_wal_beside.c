/* In WAL mode, beside others: what another process, another copy of SQLite in this one, another
 * handle, or a plain open and close of the files can do while we work. See also file_lock. */
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../src/base/file.h"
#include "../../src/store/db.h"
#include "../../src/store/file_lock.h"
#include "../../src/work/session.h"
#include "../kit/late_writer.h"
#include "../kit/lock_faults.h"
#include "../kit/peer.h"
#include "../kit/scenario.h"
#include "../kit/sqlite_copy.h"
#include "../kit/store_kit.h"
#include "../kit/suite.h"

TEST_SUITE(wal_beside);

static scenario t;
static peer other;

#define WRITE_SQL "UPDATE meta SET value=value WHERE key='head'"

/* Bytes 18 and 19 of the file. */
static int mode_now(void)
{
    brc_buf all = store_kit_read(t.file);
    const int mode = all.data[18];
    brc_buf_dispose(&all);
    return mode;
}

static void log_beside_setup(void)
{
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    scenario_start(&t);
    scenario_numbers(&t, "/a", 4000, 40, 0);
    scenario_commit(&t, "first");
    OK(&t, brc_journal_set(t.repo->store, 1, &t.err));
    scenario_close(&t);
    peer_start(&other, t.file);
    opts.wait_ms = -1;
    scenario_open(&t, &opts, 0);
    scenario_set_number(&t, "/a", 2, 72);
    ck_assert_int_eq(mode_now(), 2);
}

static void log_beside_teardown(void)
{
    char wal[120];
    peer_stop(&other);
    scenario_whole(&t);
    scenario_close(&t);
    ck_assert_int_eq(mode_now(), 1); /* at rest it is one file */
    snprintf(wal, sizeof(wal), "%s-wal", t.file);
    ck_assert_int_eq(brc_file_kind(wal), 0);
    scenario_stop(&t);
}

/* Begins a change, lets the other thing happen in the middle of it, and while nobody else may
 * write, ends it. */
static void amid_a_change(void (*happens)(void))
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
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 2), 72);
}

/* ---- in this process ------------------------------------------------------------- */

static void touch_all_three(void)
{
    static const char *const endings[] = {"", "-wal", "-shm"};
    for (int i = 0; i < 3; i++) {
        char name[120];
        snprintf(name, sizeof(name), "%s%s", t.file, endings[i]);
        int fd = open(name, O_RDWR | O_CLOEXEC);
        ck_assert_int_ge(fd, 0);
        ck_assert_int_eq(close(fd), 0);
    }
}

CASE("beside", .setup = log_beside_setup, .teardown = log_beside_teardown, .timeout = 120);

TEST(a_plain_close_of_its_files_lets_no_writer_in)
{
    amid_a_change(touch_all_three);
}

/* The other handle reads the state before, and closing it neither drops our locks nor removes the
 * log. */
static void use_another_handle(void)
{
    breccia *repo;
    repo = scenario_handle(&t, -1);
    brc_session *s = scenario_session(&t, repo, NULL, BRC_SESSION_WRITE);
    ck_assert_int_eq(scenario_number(&t, s, "/a", 0), 0);
    ck_assert_int_eq(scenario_number(&t, s, "/a", 2), 72);
    FAILS(&t, BRC_EBUSY, brc_group_create(s, "/g", NULL, &t.err));
    brc_session_free(s);
    brc_free(repo);
    ck_assert_int_eq(mode_now(), 2);
}

TEST(another_handle_of_it_waits_and_its_end_drops_nothing)
{
    amid_a_change(use_another_handle);
}

#ifdef HAS_SQLITE_COPY

static void use_sqlites_copy(void)
{
    sqlite_copy c;
    sqlite3 *db;
    sqlite_copy_load(&c);
    ck_assert_int_eq(c.open(t.file, &db), SQLITE_OK);
    ck_assert_int_eq(c.exec(db, "SELECT count(*) FROM object", NULL, NULL, NULL), SQLITE_OK);
    ck_assert_int_eq(c.exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_BUSY);
    ck_assert_int_eq(c.close(db), SQLITE_OK);
    ck_assert_int_eq(mode_now(), 2);
}

TEST(another_copy_of_sqlite_finds_it_locked_and_drops_nothing)
{
    amid_a_change(use_sqlites_copy);
}

#endif

/* ---- other processes ------------------------------------------------------------- */

/* A writer keeps out writers alone, and a reader nobody. */
TEST(what_others_hold_in_wal_mode)
{
    ck_assert_int_eq(peer_sql(&other, "BEGIN IMMEDIATE; " WRITE_SQL), SQLITE_OK);
    FAILS(&t, BRC_EBUSY, brc_begin(t.repo, &t.err));
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 77), 77);
    ck_assert_int_eq(peer_sql(&other, "COMMIT; BEGIN; SELECT count(*) FROM meta"), SQLITE_OK);
    scenario_set_number(&t, "/a", 0, 70);
    ck_assert_int_eq(peer_sql(&other, WRITE_SQL), SQLITE_BUSY); /* it saw an older state */
    ck_assert_int_eq(peer_sql(&other, "COMMIT; BEGIN IMMEDIATE; " WRITE_SQL "; COMMIT"), SQLITE_OK);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 0), 70);
}

/* A handle that closes while another program reads leaves the log to the last one. */
TEST(a_reader_keeps_the_log_until_it_leaves)
{
    ck_assert_int_eq(peer_sql(&other, "BEGIN; SELECT count(*) FROM meta"), SQLITE_OK);
    scenario_close(&t);
    ck_assert_int_eq(mode_now(), 2);
    scenario_open(&t, NULL, 0);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 2), 72);
    ck_assert_int_eq(peer_sql(&other, "COMMIT"), SQLITE_OK);
}

/* ---- who waits -------------------------------------------------------------------- */

TEST(a_writer_that_waits_for_a_writer_is_seen)
{
    brc_file_lock look;
    brc_error err = BRC_ERROR_INIT;
    late_writer w;
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

/* ---- many writers of both kinds -------------------------------------------------- */

enum { WRITERS = 6, TURNS = 20 };

/* Another program's: it finds the file at rest or in WAL mode, as it happens to be. */
static int blobs_by_sqlite(int who)
{
    uint64_t random = (uint64_t)who;
    int rc = SQLITE_OK;
    for (int i = 0; rc == SQLITE_OK && i < TURNS; i++) {
        sqlite3 *db = NULL;
        rc = sqlite3_open(t.file, &db);
        sqlite3_busy_handler(db, peer_waits, &random);
        if (rc == SQLITE_OK)
            rc = sqlite3_exec(db, "BEGIN IMMEDIATE; INSERT INTO blob(data) VALUES"
                                  " (randomblob(3000)); COMMIT", NULL, NULL, NULL);
        if (rc != SQLITE_OK)
            fprintf(stderr, "writer %d, turn %d: %s\n", who, i, sqlite3_errmsg(db));
        if (i % 3 == 0)
            usleep(2000);
        sqlite3_close(db);
    }
    return rc;
}

/* Opened and closed at each turn: so the mode changes all the time. */
static int tags_by_us(int who)
{
    int rc = BRC_OK;
    for (int i = 0; rc == BRC_OK && i < TURNS; i++) {
        char name[32];
        breccia *repo = NULL;
        snprintf(name, sizeof(name), "tag%d-%d", who, i);
        rc = brc_open(&repo, t.file, NULL, &t.err);
        if (rc == BRC_OK)
            rc = brc_ref_create(repo, name, NULL, NULL, BRC_REF_TAG, &t.err);
        brc_free(repo);
        if (rc != BRC_OK)
            fprintf(stderr, "writer %d, turn %d: %s\n", who, i, t.err.message);
    }
    return rc;
}

TEST(nobody_loses_what_was_committed_while_modes_change)
{
    pid_t writers[WRITERS];
    int status;
    char sql[64];
    const int64_t last = scenario_ask(&t, "SELECT max(seq) FROM blob");
    scenario_close(&t);
    for (int i = 0; i < WRITERS; i++) {
        writers[i] = fork();
        if (writers[i] == 0)
            _exit((i % 3 == 0 ? blobs_by_sqlite(i) : tags_by_us(i)) != 0);
    }
    for (int i = 0; i < WRITERS; i++) {
        ck_assert_int_eq(waitpid(writers[i], &status, 0), writers[i]);
        ck_assert_int_eq(status, 0);
    }
    /* The other program may have been the last: it leaves the mode as it is, and we end it. */
    scenario_open(&t, NULL, 0);
    scenario_close(&t);
    ck_assert_int_eq(mode_now(), 1);
    ck_assert_int_eq(scenario_ask(&t, "SELECT count(*) FROM ref WHERE name LIKE 'tags/%'"),
                     WRITERS * 2 / 3 * TURNS);
    snprintf(sql, sizeof(sql), "SELECT count(*) FROM blob WHERE seq>%d", (int)last);
    ck_assert_int_eq(scenario_ask(&t, sql), WRITERS / 3 * TURNS);
    snprintf(sql, sizeof(sql), "DELETE FROM blob WHERE seq>%d", (int)last);
    scenario_sql_shared(&t, sql);
    scenario_open(&t, NULL, 0);
}

/* ---- left logs ------------------------------------------------------------------- */

/* In a child, which is killed with what it has committed in the log. */
static void be_killed(int number)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        scenario own = {.err = BRC_ERROR_INIT};
        memcpy(own.file, t.file, sizeof(own.file));
        scenario_open(&own, NULL, 0);
        scenario_set_number(&own, "/a", 3, number);
        kill(getpid(), SIGKILL);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFSIGNALED(status));
    ck_assert_int_eq(mode_now(), 2);
}

/* Half of them make a tag, half of them only read. */
static int come(int number)
{
    brc_error err = BRC_ERROR_INIT;
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    breccia *repo = NULL;
    char name[32];
    uint64_t checked;
    snprintf(name, sizeof(name), "came%d", number);
    opts.flags = number % 4 == 1 ? BRC_OPEN_READONLY : 0;
    int rc = brc_open(&repo, t.file, &opts, &err);
    if (rc == BRC_OK)
        rc = number % 2 == 0 ? brc_ref_create(repo, name, NULL, NULL, BRC_REF_TAG, &err)
                             : brc_fsck(repo, 0, NULL, NULL, NULL, &checked, &err);
    brc_free(repo);
    if (rc != BRC_OK)
        fprintf(stderr, "number %d: %s\n", number, err.message);
    return rc != BRC_OK;
}

TEST(many_come_at_once_to_a_left_log)
{
    enum { ROUNDS = 10, COMING = 8 };
    pid_t each[COMING];
    int go[2], status;
    char byte;
    scenario_close(&t);
    for (int round = 0; round < ROUNDS; round++) {
        be_killed(1000 + round);
        ck_assert_int_eq(pipe(go), 0);
        for (int i = 0; i < COMING; i++) {
            each[i] = fork();
            if (each[i] == 0) {
                close(go[1]);
                _exit(read(go[0], &byte, 1) != 0 || come(COMING * round + i));
            }
        }
        close(go[0]);
        close(go[1]); /* all at once */
        for (int i = 0; i < COMING; i++) {
            ck_assert_int_eq(waitpid(each[i], &status, 0), each[i]);
            ck_assert_int_eq(status, 0);
        }
        ck_assert_int_eq(mode_now(), 1);
        scenario_open(&t, NULL, BRC_OPEN_READONLY);
        ck_assert_int_eq(scenario_number(&t, t.session, "/a", 3), 1000 + round);
        scenario_close(&t);
    }
    ck_assert_int_eq(scenario_ask(&t, "SELECT count(*) FROM ref WHERE name LIKE 'tags/%'"),
                     ROUNDS * COMING / 2);
    scenario_open(&t, NULL, 0);
}

/* ---- systems without these locks ------------------------------------------------- */

static int no_such_lock(void *ctx)
{
    (void)ctx;
    return EINVAL;
}

/* A file that asks for WAL mode is written with the rollback journal; one that is in it is refused,
 * and left as it is. */
TEST(without_these_locks_there_is_no_wal_mode)
{
    breccia *repo;
    scenario_close(&t);
    lock_faults_set(no_such_lock, NULL);
    scenario_open(&t, NULL, 0);
    scenario_set_number(&t, "/a", 0, 70);
    ck_assert_int_eq(mode_now(), 1);
    scenario_close(&t);
    lock_faults_set(NULL, NULL);
    be_killed(1000);
    brc_buf before = store_kit_read(t.file);
    lock_faults_set(no_such_lock, NULL);
    FAILS(&t, BRC_EUNSUPPORTED, brc_open(&repo, t.file, NULL, &t.err));
    lock_faults_set(NULL, NULL);
    KIT_TRUE(store_kit_same(t.file, &before));
    brc_buf_dispose(&before);
    scenario_open(&t, NULL, 0);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 0), 70);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 3), 1000);
}
