/* Files that ask for WAL mode: when they are in it, what is read of a log that was left, who may be
 * beside whom, and that at rest there is one file. */
#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../src/base/file.h"
#include "../../src/store/db.h"
#include "../kit/file_digest.h"
#include "../kit/journal_kit.h"
#include "../kit/store_kit.h"
#include "../kit/suite.h"

TEST_SUITE(wal);

static store_kit kit;
static char wal[140], shm[140];

#define OK(call) KIT_OK(&kit, call)

static void wal_teardown(void)
{
    store_kit_stop(&kit);
}

/* Bytes 18 and 19 of the file. */
static int mode_of(const char *file)
{
    brc_buf all = store_kit_read(file);
    int mode = all.data[18] == all.data[19] ? all.data[18] : -1;
    brc_buf_dispose(&all);
    return mode;
}

static void at_rest(void)
{
    ck_assert_int_eq(mode_of(kit.file), 1);
    ck_assert_int_eq(brc_file_kind(wal), 0);
    ck_assert_int_eq(brc_file_kind(shm), 0);
}

/* A change of the file through our store. */
static void change(brc_store *store, const char *value)
{
    OK(brc_store_begin(store, &kit.err));
    OK(brc_meta_put(store, "config.test", value, strlen(value), 1, &kit.err));
    OK(brc_store_end(store, 1, &kit.err));
}

static void wal_setup(void)
{
    store_kit_start(&kit);
    change(kit.store, "main");
    OK(brc_journal_set(kit.store, 1, &kit.err));
    store_kit_close(&kit);
    for (int i = 0; i < 3; i++)
        OK(journal_kit_commit(kit.file, i, &kit.err));
    snprintf(wal, sizeof(wal), "%s-wal", kit.file);
    snprintf(shm, sizeof(shm), "%s-shm", kit.file);
}

static brc_store *open_more(uint32_t flags)
{
    brc_store *store;
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    opts.flags = flags;
    opts.wait_ms = -1;
    OK(brc_store_open(&store, kit.file, &opts, kit.reg, 1, &kit.err));
    return store;
}

static int value_get(brc_store *store, char *out)
{
    brc_buf value = BRC_BUF_INIT;
    int rc = brc_meta_get(store, "config.test", &value, &kit.err);
    if (rc == BRC_OK)
        snprintf(out, 40, "%s", (const char *)value.data);
    brc_buf_dispose(&value);
    return rc;
}

static void value_is(brc_store *store, const char *want)
{
    char value[40];
    OK(value_get(store, value));
    ck_assert_str_eq(value, want);
}

CASE("wal", .setup = wal_setup, .teardown = wal_teardown, .timeout = 120);

/* ---- when a file is in WAL mode ------------------------------------------------------ */

TEST(at_rest_it_is_one_file)
{
    at_rest();
    OK(store_kit_try(&kit, 0, -1));
    value_is(kit.store, "main");
    at_rest(); /* who only reads leaves it alone */
    change(kit.store, "side"); /* what changes nothing a newer SQLite does not write */
    ck_assert_int_eq(mode_of(kit.file), 2);
    ck_assert_int_eq(brc_file_kind(wal), 2);
    ck_assert_uint_gt(brc_store_log_bytes(kit.store), 0);
    store_kit_close(&kit);
    at_rest();
    ck_assert(file_is_whole(kit.file));
}

/* The last handle to close, a reader too, makes it one file. */
LOOP(the_last_one_folds_the_log_in, 0, 3)
{
    brc_store *a = open_more(0), *b = open_more(BRC_OPEN_READONLY), *c = open_more(0);
    change(a, "side");
    value_is(b, "side");
    change(c, "other");
    brc_store *order[] = {a, b, c};
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(mode_of(kit.file), 2);
        brc_store_close(order[(i + _i) % 3]);
    }
    at_rest();
    OK(store_kit_try(&kit, 0, -1));
    value_is(kit.store, "other");
}

/* Many that end at the same time: one of them is the last. */
TEST(several_close_at_once)
{
    enum { PROCESSES = 6 };
    for (int round = 0; round < 8; round++) {
        pid_t comers[PROCESSES];
        int status;
        for (int i = 0; i < PROCESSES; i++) {
            comers[i] = fork();
            if (comers[i] == 0)
                _exit(journal_kit_commit(kit.file, round * 10 + i, NULL) != BRC_OK &&
                      journal_kit_commit(kit.file, round * 10 + i, &kit.err) != BRC_ESTALE);
        }
        for (int i = 0; i < PROCESSES; i++)
            ck_assert_int_eq(waitpid(comers[i], &status, 0), comers[i]);
        at_rest();
    }
    ck_assert(file_is_whole(kit.file));
}

TEST(a_reader_and_a_writer_go_on_side_by_side)
{
    brc_store *reader = open_more(BRC_OPEN_READONLY), *writer = open_more(0);
    OK(brc_store_begin_read(reader, &kit.err));
    value_is(reader, "main");
    /* in the way of WAL mode, and of a commit without */
    OK(brc_store_begin(writer, &kit.err));
    ck_assert_int_eq(mode_of(kit.file), 1);
    OK(brc_store_end(writer, 0, &kit.err));
    brc_store_end_read(reader);
    change(writer, "main");
    ck_assert_int_eq(mode_of(kit.file), 2);
    OK(brc_store_begin_read(reader, &kit.err));
    value_is(reader, "main");
    change(writer, "side");
    value_is(reader, "main"); /* its state stays */
    brc_store_end_read(reader);
    value_is(reader, "side");
    OK(brc_store_begin(writer, &kit.err));
    OK(brc_meta_put(writer, "config.test", "main", 4, 1, &kit.err));
    value_is(reader, "side");
    brc_store *second = open_more(0);
    KIT_FAILS(&kit, BRC_EBUSY, "in use", brc_store_begin(second, &kit.err));
    OK(brc_store_end(writer, 1, &kit.err));
    change(second, "third");
    value_is(reader, "third");
    brc_store_close(second);
    brc_store_close(writer);
    brc_store_close(reader);
    at_rest();
}

/* The first write reads the setting, within a transaction of SQLite that ends before the write. */
TEST(a_read_after_the_first_write_sees_one_state)
{
    brc_store *a = open_more(0), *b = open_more(0);
    change(a, "main");
    OK(brc_store_begin_read(a, &kit.err));
    value_is(a, "main");
    change(b, "side");
    value_is(a, "main");
    brc_store_end_read(a);
    value_is(a, "side");
    brc_store_close(a);
    brc_store_close(b);
    at_rest();
}

TEST(the_setting_can_be_taken_back)
{
    int asks;
    brc_store *a = open_more(0), *b = open_more(0);
    change(a, "main");
    value_is(b, "main");
    KIT_FAILS(&kit, BRC_EBUSY, "no other process", brc_journal_set(b, 0, &kit.err));
    OK(brc_journal_get(b, &asks, &kit.err));
    ck_assert_int_eq(asks, 1);
    brc_store_close(a);
    OK(brc_journal_set(b, 0, &kit.err));
    at_rest();
    change(b, "main");
    at_rest();
    brc_store_close(b);
    at_rest();
    ck_assert(file_is_whole(kit.file));
}

/* Where the setting went while another handle remembers it, that one looks again. */
TEST(who_remembers_the_setting_asks_again)
{
    brc_store *a = open_more(0), *b = open_more(0);
    OK(brc_journal_set(b, 0, &kit.err));
    change(a, "side");
    at_rest();
    OK(brc_journal_set(b, 1, &kit.err));
    change(b, "main");
    ck_assert_int_eq(mode_of(kit.file), 2);
    value_is(a, "main"); /* opened before, and follows */
    change(a, "side");
    brc_store_close(a);
    brc_store_close(b);
    at_rest();
}

/* ---- a log that a killed process left ------------------------------------------------ */

/* Changes the file in a child, which is killed with the log as it is. */
static void leave_log(int changes, int half)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        char branch[20];
        brc_store *store = open_more(0);
        for (int i = 0; i < changes; i++) {
            snprintf(branch, sizeof(branch), "left%d", i);
            change(store, branch);
        }
        if (half && brc_store_begin(store, NULL) == BRC_OK)
            (void)!brc_meta_put(store, "config.test", "half", 4, 1, NULL);
        kill(getpid(), SIGKILL);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(mode_of(kit.file), 2);
}

LOOP(a_left_log_is_read, 0, 4)
{
    leave_log(5, _i % 2);
    OK(store_kit_try(&kit, _i < 2 ? BRC_OPEN_READONLY : 0, -1));
    value_is(kit.store, "left4");
    store_kit_close(&kit);
    at_rest();
    ck_assert(file_is_whole(kit.file));
}

TEST(several_read_a_left_log_at_once)
{
    enum { COMING = 4 };
    for (int round = 0; round < 10; round++) {
        pid_t comers[COMING];
        int status;
        leave_log(3, round % 2);
        for (int i = 0; i < COMING; i++) {
            comers[i] = fork();
            if (comers[i] == 0) {
                brc_open_opts opts = BRC_OPEN_OPTS_INIT;
                char value[40] = "";
                opts.flags = i % 2 == 0 ? 0 : BRC_OPEN_READONLY;
                int rc = brc_store_open(&kit.store, kit.file, &opts, kit.reg, 1, &kit.err);
                if (rc == BRC_OK)
                    rc = value_get(kit.store, value);
                if (rc != BRC_OK)
                    fprintf(stderr, "round %d: %s\n", round, kit.err.message);
                int wrong = rc != BRC_OK || strcmp(value, "left2") != 0;
                brc_store_close(kit.store);
                _exit(wrong);
            }
        }
        for (int i = 0; i < COMING; i++) {
            ck_assert_int_eq(waitpid(comers[i], &status, 0), comers[i]);
            ck_assert_int_eq(status, 0);
        }
        at_rest();
    }
    ck_assert(file_is_whole(kit.file));
}

/* A log that is refused is left as it was, and --no-recover shows the file without it. */
static void is_refused(int code, const char *words)
{
    brc_buf file = store_kit_read(kit.file), log = store_kit_read(wal);
    for (uint32_t flags = 0; flags <= BRC_OPEN_READONLY; flags++)
        KIT_FAILS(&kit, code, words, store_kit_try(&kit, flags, -1));
    KIT_TRUE(store_kit_same(kit.file, &file));
    KIT_TRUE(store_kit_same(wal, &log));
    OK(store_kit_try(&kit, BRC_OPEN_NO_RECOVER, -1));
    store_kit_close(&kit);
    KIT_TRUE(store_kit_same(kit.file, &file));
    KIT_TRUE(store_kit_same(wal, &log));
    brc_buf_dispose(&file);
    brc_buf_dispose(&log);
}

/* Every frame but those of the last transaction: behind one that is damaged another one follows. */
TEST(a_damaged_log_is_refused)
{
    enum { FRAME = 24 + BRC_PAGE_SIZE };
    leave_log(4, 0);
    brc_buf log = store_kit_read(wal);
    size_t frames = (log.len - 32) / FRAME;
    ck_assert_uint_ge(frames, 4);
    for (size_t i = 0; i + 1 < frames; i++) {
        size_t at = 32 + i * FRAME + 24 + 1000 * (i + 1);
        log.data[at] ^= 0x10;
        store_kit_put(wal, &log);
        is_refused(BRC_ECORRUPT, "is damaged");
        log.data[at] ^= 0x10;
    }
    log.data[9] ^= 0x10; /* the header */
    store_kit_put(wal, &log);
    is_refused(BRC_ECORRUPT, "-wal");
    log.data[9] ^= 0x10;
    log.data[32 + (frames - 1) * FRAME + 50] ^= 0x10; /* the last: as if it was not synced */
    store_kit_put(wal, &log);
    OK(store_kit_try(&kit, 0, -1));
    value_is(kit.store, "left2");
    brc_buf_dispose(&log);
}

/* A copy of the file as it was in WAL mode long before, put in its place. */
TEST(a_log_of_another_state_is_refused)
{
    leave_log(1, 0);
    brc_buf old = store_kit_read(kit.file);
    OK(journal_kit_commit(kit.file, 1, &kit.err));
    for (int i = 0; i < 3; i++)
        OK(journal_kit_commit(kit.file, 10 + i, &kit.err));
    at_rest();
    pid_t child = fork(); /* a log with page 1 in it */
    if (child == 0) {
        brc_store *store = open_more(0);
        (void)!brc_store_begin(store, NULL);
        (void)!brc_exec(store, "INSERT INTO blob(data) VALUES (randomblob(300000))", NULL);
        (void)!brc_store_end(store, 1, NULL);
        kill(getpid(), SIGKILL);
    }
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    store_kit_put(kit.file, &old);
    is_refused(BRC_ECORRUPT, "another state");
    brc_buf_dispose(&old);
}

/* A copy of the file at rest has nothing to do with the log beside it. */
TEST(a_copy_at_rest_does_not_read_the_log)
{
    brc_buf old = store_kit_read(kit.file);
    leave_log(3, 0);
    store_kit_put(kit.file, &old);
    brc_buf log = store_kit_read(wal);
    OK(store_kit_try(&kit, 0, -1));
    value_is(kit.store, "main");
    change(kit.store, "side"); /* and stays out of WAL mode */
    ck_assert_int_eq(mode_of(kit.file), 1);
    OK(brc_journal_set(kit.store, 0, &kit.err));
    KIT_FAILS(&kit, BRC_EEXISTS, "in the way", brc_journal_set(kit.store, 1, &kit.err));
    store_kit_close(&kit);
    KIT_TRUE(store_kit_same(wal, &log));
    ck_assert_int_eq(unlink(wal), 0);
    ck_assert(file_is_whole(kit.file));
    brc_buf_dispose(&old);
    brc_buf_dispose(&log);
}

/* ---- planted ------------------------------------------------------------------------- */

/* The setting in a log does not count: the file itself must have it. */
TEST(a_log_cannot_ask_for_itself)
{
    OK(store_kit_try(&kit, 0, -1));
    OK(brc_journal_set(kit.store, 0, &kit.err));
    store_kit_close(&kit);
    pid_t child = fork();
    if (child == 0) {
        store_kit_sql(&kit, "PRAGMA journal_mode=WAL");
        sqlite3 *db = NULL;
        sqlite3_open(kit.file, &db);
        brc_row_sum_register(db);
        sqlite3_exec(db, "INSERT INTO meta VALUES ('journal', 'wal',"
                         " row_sum('meta', 'journal', 'wal'))", NULL, NULL, NULL);
        kill(getpid(), SIGKILL);
    }
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    ck_assert_int_eq(brc_file_kind(wal), 2);
    brc_buf file = store_kit_read(kit.file), log = store_kit_read(wal);
    static const uint32_t flags[] = {0, BRC_OPEN_READONLY, BRC_OPEN_NO_RECOVER};
    for (size_t i = 0; i < 3; i++)
        KIT_FAILS(&kit, BRC_EFORMAT, "by another program", store_kit_try(&kit, flags[i], -1));
    KIT_TRUE(store_kit_same(kit.file, &file));
    KIT_TRUE(store_kit_same(wal, &log));
    brc_buf_dispose(&file);
    brc_buf_dispose(&log);
}

/* Links in the names of the log and of shared memory: what they lead to stays as it is. */
LOOP(links_are_not_followed, 0, 4)
{
    char target[140];
    const char *name = _i % 2 == 0 ? wal : shm;
    snprintf(target, sizeof(target), "%s/precious", kit.dir);
    leave_log(2, 0);
    OK(brc_file_write(target, "precious", 8, NULL));
    unlink(name);
    ck_assert_int_eq(_i < 2 ? symlink(target, name) : link(target, name), 0);
    brc_buf file = store_kit_read(kit.file), there = store_kit_read(target);
    for (uint32_t flags = 0; flags <= BRC_OPEN_READONLY; flags++)
        ck_assert_int_ne(store_kit_try(&kit, flags, -1), BRC_OK);
    ck_assert_ptr_nonnull(strstr(kit.err.message, _i % 2 == 0 ? "-wal" : "-shm"));
    KIT_TRUE(store_kit_same(kit.file, &file));
    KIT_TRUE(store_kit_same(target, &there));
    brc_buf_dispose(&file);
    brc_buf_dispose(&there);
}

/* ---- where nothing may be written ---------------------------------------------------- */

/* Runs `look` as an ordinary user, since root may write everywhere. */
static int as_nobody(int (*look)(void))
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        if (geteuid() == 0 && setuid(65534) != 0)
            _exit(99);
        _exit(look());
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int look_readonly(void)
{
    char value[40];
    int rc = store_kit_try(&kit, BRC_OPEN_READONLY, -1);
    if (rc == BRC_OK)
        rc = value_get(kit.store, value);
    if (rc != BRC_OK) {
        fprintf(stderr, "%s\n", kit.err.message);
        return rc == BRC_EREADONLY || rc == BRC_EIO ? 50 : 60;
    }
    int n = value[0] == 'l' ? 1 : 0; /* left..., or main */
    store_kit_close(&kit);
    return n;
}

TEST(a_folder_that_may_not_be_written)
{
    chmod(kit.file, 0444);
    chmod(kit.dir, 0555);
    ck_assert_int_eq(as_nobody(look_readonly), 0); /* at rest */
    chmod(kit.dir, 0755);
    chmod(kit.file, 0644);
    leave_log(2, 0);
    chmod(wal, 0444);
    chmod(shm, 0444);
    chmod(kit.file, 0444);
    chmod(kit.dir, 0555);
    ck_assert_int_eq(as_nobody(look_readonly), 1); /* the log is read, and nothing is written */
    chmod(kit.dir, 0755);
    unlink(shm);
    chmod(kit.dir, 0555);
    ck_assert_int_eq(as_nobody(look_readonly), 50); /* one sentence */
    chmod(kit.dir, 0755);
    unlink(wal);
    chmod(kit.dir, 0555);
    ck_assert_int_eq(as_nobody(look_readonly), 0); /* killed just before it was at rest */
    chmod(kit.dir, 0755);
    chmod(kit.file, 0644);
}

TEST(a_living_writer_in_such_a_folder)
{
    chmod(kit.dir, 0755);
    OK(store_kit_try(&kit, 0, -1));
    change(kit.store, "left");
    brc_store *writer = kit.store;
    kit.store = NULL;
    chmod(wal, 0444);
    chmod(shm, 0444);
    ck_assert_int_eq(as_nobody(look_readonly), 1);
    brc_store_close(writer);
    at_rest();
}

/* ---- everybody else's locks ---------------------------------------------------------- */

/* A plain open and close of all three files, in the middle of a write. */
TEST(a_plain_close_drops_nothing)
{
    brc_store *a = open_more(0), *b;
    change(a, "main");
    OK(brc_store_begin(a, &kit.err));
    OK(brc_meta_put(a, "config.test", "side", 4, 1, &kit.err));
    const char *names[] = {kit.file, wal, shm};
    for (int i = 0; i < 3; i++)
        close(open(names[i], O_RDONLY));
    b = open_more(0);
    KIT_FAILS(&kit, BRC_EBUSY, "in use", brc_store_begin(b, &kit.err));
    pid_t child = fork();
    if (child == 0) {
        sqlite3 *db = NULL;
        sqlite3_open(kit.file, &db);
        _exit(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL));
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(WEXITSTATUS(status), SQLITE_BUSY);
    OK(brc_store_end(a, 1, &kit.err));
    value_is(b, "side");
    brc_store_close(b);
    brc_store_close(a);
    at_rest();
}

/* Both ways: SQLite with its own VFS reads what we commit, and we what it does. */
TEST(another_sqlite_beside_us)
{
    brc_store *a = open_more(0);
    change(a, "one");
    ck_assert_int_eq(store_kit_ask(&kit, "SELECT value='one' FROM meta"
                                         " WHERE key='config.test'"), 1);
    sqlite3 *db = NULL;
    ck_assert_int_eq(sqlite3_open(kit.file, &db), SQLITE_OK);
    brc_row_sum_register(db);
    ck_assert_int_eq(sqlite3_exec(db, "BEGIN IMMEDIATE; UPDATE meta SET value='two',"
                                      " checksum=row_sum('meta', key, 'two')"
                                      " WHERE key='config.test'",
                                  NULL, NULL, NULL), SQLITE_OK);
    KIT_FAILS(&kit, BRC_EBUSY, "in use", brc_store_begin(a, &kit.err));
    value_is(a, "one");
    ck_assert_int_eq(sqlite3_exec(db, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
    value_is(a, "two");
    sqlite3_close(db);
    change(a, "three");
    brc_store_close(a);
    at_rest();
}

/* Nobody checkpoints while somebody else writes. */
TEST(a_checkpoint_takes_the_writers_lock)
{
    brc_store *a = open_more(0), *b = open_more(0);
    change(a, "main");
    change(b, "main");
    OK(brc_store_begin(b, &kit.err));
    ck_assert_int_eq(sqlite3_wal_checkpoint_v2(a->db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL),
                     SQLITE_BUSY);
    OK(brc_store_end(b, 0, &kit.err));
    ck_assert_int_eq(sqlite3_wal_checkpoint_v2(a->db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL),
                     SQLITE_OK);
    change(b, "side"); /* and gives it back */
    brc_store_close(a);
    brc_store_close(b);
    at_rest();
}

/* The log does not grow without end. */
TEST(a_long_log_is_copied_back)
{
    brc_store *a = open_more(0);
    for (int i = 0; i < 60; i++) {
        OK(brc_store_begin(a, &kit.err));
        OK(brc_exec(a, "INSERT INTO blob(data) VALUES (randomblob(2000000))", &kit.err));
        OK(brc_store_end(a, 1, &kit.err));
        ck_assert_uint_lt(brc_store_log_bytes(a), 40 << 20);
    }
    brc_store_close(a);
    at_rest();
}

TEST(a_child_leaves_its_parents_locks)
{
    brc_store *a = open_more(0);
    change(a, "main");
    OK(brc_store_begin(a, &kit.err));
    OK(brc_meta_put(a, "config.test", "side", 4, 1, &kit.err));
    pid_t child = fork();
    if (child == 0) {
        int rc = brc_store_begin(a, &kit.err) == BRC_EMISUSE ? 0 : 1;
        brc_store_close(a);
        brc_store *own = open_more(0);
        value_is(own, "main");
        rc |= brc_store_begin(own, &kit.err) == BRC_EBUSY ? 0 : 2;
        brc_store_close(own);
        _exit(rc);
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    OK(brc_store_end(a, 1, &kit.err));
    value_is(a, "side");
    brc_store_close(a);
    at_rest();
}

/* Whenever a writer is killed: nothing that was acknowledged is lost. */
TEST(killed_writers_lose_nothing)
{
    uint64_t random = 9;
    for (int round = 0; round < 40; round++) {
        int said[2], last = -1, n;
        ck_assert_int_eq(pipe(said), 0);
        pid_t writer = fork();
        if (writer == 0) {
            brc_store *store = open_more(0);
            for (n = 0;; n++) {
                char branch[20];
                snprintf(branch, sizeof(branch), "b%d", n);
                change(store, branch);
                if (write(said[1], &n, sizeof(n)) != sizeof(n))
                    _exit(1);
            }
        }
        close(said[1]);
        usleep((useconds_t)(2000 + store_kit_below(&random, 15000)));
        kill(writer, SIGKILL);
        ck_assert_int_eq(waitpid(writer, NULL, 0), writer);
        while (read(said[0], &n, sizeof(n)) == sizeof(n))
            last = n;
        close(said[0]);
        char value[40];
        OK(store_kit_try(&kit, round % 2 == 0 ? 0 : BRC_OPEN_READONLY, -1));
        OK(value_get(kit.store, value));
        if (last >= 0)
            ck_assert_int_ge(strtol(value + 1, NULL, 10), last);
        store_kit_close(&kit);
        at_rest();
    }
    ck_assert(file_is_whole(kit.file));
}
