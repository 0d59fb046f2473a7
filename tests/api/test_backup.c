/* Backups: what is in them, what happens beside writers, and on bad days. */
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../src/base/file.h"
#include "../kit/fault_vfs.h"
#include "../kit/file_digest.h"
#include "../kit/scenario.h"
#include "../kit/store_kit.h"
#include "../kit/suite.h"

TEST_SUITE(backup);

enum { BIG = 1 << 16 };

static scenario t;
static char dest[128];
static fault_vfs disk;

static void commit_one(void)
{
    snprintf(dest, sizeof(dest), "%s/backup.brc", t.dir);
    scenario_numbers(&t, "/a", 64, 4, 0);
    scenario_commit(&t, "one");
}

static void backup_setup(void)
{
    scenario_start(&t);
    commit_one();
}

static void rows_setup(void)
{
    scenario_start(&t);
    scenario_inline(&t);
    commit_one();
}

static void backup_teardown(void)
{
    scenario_stop(&t);
}

static brc_backup_report backup(void)
{
    brc_backup_report report = BRC_BACKUP_REPORT_INIT;
    OK(&t, brc_backup(&report, t.repo, dest, &t.err));
    return report;
}

/* Chunks that no other array has. */
static void write_noise(const char *path, uint64_t chunks, uint64_t seed)
{
    const uint64_t shape = chunks * BIG, chunk = BIG;
    brc_array *a = scenario_array(&t, path, "uint8", 1, &shape, &chunk, NULL,
                                  "[{\"name\":\"bytes\"}]");
    uint8_t *data = malloc(shape);
    ck_assert_ptr_nonnull(data);
    model_bytes(&seed, data, shape);
    OK(&t, brc_array_write(a, NULL, data, shape, &t.err));
    free(data);
    brc_array_free(a);
}

/* ---- two files, table by table -------------------------------- */

static sqlite3 *both;

static int64_t ask_both(const char *sql)
{
    sqlite3_stmt *st = NULL;
    ck_assert_msg(sqlite3_prepare_v2(both, sql, -1, &st, NULL) == SQLITE_OK, "%s: %s", sql,
                  sqlite3_errmsg(both));
    ck_assert_int_eq(sqlite3_step(st), SQLITE_ROW);
    const int64_t n = sqlite3_column_int64(st, 0);
    sqlite3_finalize(st);
    return n;
}

static int64_t rows_that_lack(const char *table, const char *in, const char *from)
{
    char sql[400];
    const char *where = strcmp(table, "meta") == 0 ? " WHERE key<>'backup'" : "";
    snprintf(sql, sizeof(sql),
             "SELECT count(*) FROM (SELECT * FROM %s.\"%s\"%s EXCEPT SELECT * FROM %s.\"%s\"%s)",
             from, table, where, in, table, where);
    return ask_both(sql);
}

/* Every table that the file has, whatever they are. */
static int copy_table(void *ctx, int n, char **values, char **names)
{
    (void)n, (void)names;
    ++*(int *)ctx;
    ck_assert_msg(rows_that_lack(values[0], "copy", "main") == 0, "the copy lacks rows of %s",
                  values[0]);
    ck_assert_msg(rows_that_lack(values[0], "main", "copy") == 0, "the copy has more rows in %s",
                  values[0]);
    return 0;
}

static void copy_is_equal(void)
{
    char sql[200];
    int tables = 0;
    ck_assert_int_eq(sqlite3_open(t.file, &both), SQLITE_OK);
    snprintf(sql, sizeof(sql), "ATTACH '%s' AS copy", dest);
    ck_assert_int_eq(sqlite3_exec(both, sql, NULL, NULL, NULL), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(both, "SELECT name FROM main.sqlite_schema WHERE type='table'",
                                  copy_table, &tables, NULL), SQLITE_OK);
    ck_assert_int_ge(tables, 12);
    ck_assert_int_eq(sqlite3_close(both), SQLITE_OK);
    ck_assert(file_is_whole(dest));
}

/* ---- what is in it -------------------------------- */

CASE("rows", .setup = rows_setup, .teardown = backup_teardown, .timeout = 300);

TEST(a_backup_has_every_row_of_every_table)
{
    brc_merge_result merged = BRC_MERGE_RESULT_INIT;
    OK(&t, brc_ref_create(t.repo, "side", NULL, NULL, 0, &t.err));
    OK(&t, brc_ref_create(t.repo, "v1", NULL, "a tag", BRC_REF_TAG, &t.err));
    scenario_set_number(&t, "/a", 1, 70);
    scenario_commit(&t, "ours");
    OK(&t, brc_switch(t.repo, "side", 0, &t.err));
    brc_session_free(t.session);
    OK(&t, brc_session_open(&t.session, t.repo, NULL, BRC_SESSION_WRITE, &t.err));
    scenario_set_number(&t, "/a", 1, 71);
    scenario_commit(&t, "theirs");
    OK(&t, brc_merge(&merged, NULL, t.repo, "main", NULL, &t.err));
    ck_assert_int_eq(merged.result, BRC_MERGE_CONFLICT);
    OK(&t, brc_key_set(t.session, "loose/key", "bytes", 5, 0, &t.err));
    OK(&t, brc_node_move(t.session, "/a", "/b", 0, &t.err));
    write_noise("/noise", 20, 1);
    const brc_backup_report report = backup();
    ck_assert_uint_eq(report.flags, 0);
    ck_assert_uint_ge(report.bytes_copied, 20 * BIG);
    ck_assert_uint_eq(report.objects_checked, report.objects_copied);
    copy_is_equal();
}

TEST(a_second_backup_copies_what_changed)
{
    write_noise("/noise", 100, 2);
    scenario_commit(&t, "noise");
    const brc_backup_report first = backup();
    for (int i = 0; i < 3; i++) {
        scenario_set_number(&t, "/a", (uint64_t)i, 100 + i);
        if (i < 2)
            scenario_commit(&t, "more");
        const brc_backup_report next = backup();
        ck_assert_uint_eq(next.flags, BRC_BACKUP_INCREMENTAL);
        ck_assert_uint_lt(next.bytes_copied, first.bytes_copied / 50);
        ck_assert_uint_gt(next.objects_copied, 0);
        ck_assert_uint_eq(next.objects_checked, next.objects_copied);
        copy_is_equal();
    }
    const brc_backup_report none = backup();
    ck_assert_uint_eq(none.bytes_copied + none.objects_copied + none.objects_checked, 0);
}

CASE("backup", .setup = backup_setup, .teardown = backup_teardown, .timeout = 300);

/* Rows that the file loses are removed from its backup too, and rows that move lie in one place in
 * both. */
TEST(a_backup_follows_the_collection_of_garbage)
{
    brc_oid id;
    brc_gc_opts opts = BRC_GC_OPTS_INIT;
    opts.keep = "0";
    for (uint64_t round = 0; round < 4; round++) {
        char path[16];
        snprintf(path, sizeof(path), "/n%d", (int)round);
        write_noise(path, 10, round + 3);
        scenario_numbers(&t, round % 2 ? "/m" : "/k", 400, 4, (int32_t)(round + 1) * 1000);
        scenario_commit(&t, "more");
        backup();
        if (round > 0)
            OK(&t, brc_node_remove(t.session, round % 2 ? "/k" : "/m", &t.err));
        snprintf(path, sizeof(path), "/n%d", (int)round);
        OK(&t, brc_node_remove(t.session, path, &t.err));
        OK(&t, brc_session_commit(&id, t.session,
                                  &(brc_commit_opts){.size = sizeof(brc_commit_opts),
                                                     .message = "m", .author = "a",
                                                     .flags = BRC_COMMIT_AMEND},
                                  &t.err));
        OK(&t, brc_gc(t.repo, &opts, NULL, &t.err));
        backup();
        copy_is_equal();
    }
}

/* ---- beside writers -------------------------------- */

static pid_t writer_process(const char *file)
{
    const pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child != 0)
        return child;
    scenario w = {.repo = NULL};
    brc_array *a = NULL;
    brc_oid id;
    uint64_t random = 7;
    static uint8_t noise[4 * BIG];
    if (brc_open(&w.repo, file, NULL, &w.err) < 0 ||
        brc_session_open(&w.session, w.repo, NULL, BRC_SESSION_WRITE, &w.err) < 0 ||
        brc_array_open(&a, w.session, "/noise", &w.err) < 0)
        _exit(1);
    for (;;) {
        model_bytes(&random, noise, sizeof(noise));
        if (brc_array_write(a, NULL, noise, sizeof(noise), &w.err) < 0 ||
            scenario_commit_of(&w, w.session, "beside", &id) < 0)
            _exit(2);
    }
}

TEST(a_backup_ends_while_others_write_all_the_time)
{
    int status;
    write_noise("/noise", 4, 5);
    scenario_commit(&t, "noise");
    const pid_t writer = writer_process(t.file);
    for (int i = 0; i < 8; i++) {
        backup();
        ck_assert_int_eq(waitpid(writer, &status, WNOHANG), 0);
        ck_assert(file_is_whole(dest));
    }
    ck_assert_int_eq(kill(writer, SIGKILL), 0);
    ck_assert_int_eq(waitpid(writer, &status, 0), writer);
    ck_assert_int_gt(scenario_ask(&t, "SELECT count(*) FROM oplog"), 9);
    backup();
    copy_is_equal();
}

/* ---- bad days -------------------------------- */

/* In a process that is killed at its n-th write, sync or deletion. 0: it came to its end. */
static int backup_and_die(uint64_t n)
{
    int status;
    const pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        brc_open_opts opts = BRC_OPEN_OPTS_INIT;
        breccia *repo = NULL;
        opts.vfs = FAULT_VFS_NAME;
        disk.kills = 1;
        if (brc_open(&repo, t.file, &opts, NULL) < 0)
            _exit(1);
        fault_vfs_arm(&disk, FAULT_WRITE | FAULT_SYNC | FAULT_TRUNCATE | FAULT_DELETE, n, 0);
        const int rc = brc_backup(NULL, repo, dest, NULL);
        _exit(rc == BRC_OK ? 0 : 2);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    if (WIFSIGNALED(status))
        return 1;
    ck_assert_int_eq(WEXITSTATUS(status), 0);
    return 0;
}

static int look_at_dest(brc_error *err)
{
    breccia *repo = NULL;
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    opts.flags = BRC_OPEN_READONLY;
    const int rc = brc_open(&repo, dest, &opts, err);
    brc_free(repo);
    return rc;
}

static brc_oid dest_tip(void)
{
    brc_oid id;
    breccia *repo = NULL;
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    opts.flags = BRC_OPEN_READONLY;
    OK(&t, brc_open(&repo, dest, &opts, &t.err));
    OK(&t, brc_resolve(&id, repo, "main", &t.err));
    brc_free(repo);
    return id;
}

static void remove_dest(void)
{
    char journal[160];
    snprintf(journal, sizeof(journal), "%s-journal", dest);
    unlink(dest);
    unlink(journal);
}

TEST(a_killed_first_backup_cannot_be_opened_and_is_gone_on_with)
{
    int unfinished = 0;
    write_noise("/noise", 20, 6);
    scenario_commit(&t, "noise");
    fault_vfs_register(&disk);
    for (uint64_t n = 1;; n += n < 40 ? 3 : 17) {
        remove_dest();
        if (!backup_and_die(n))
            break;
        const int rc = look_at_dest(&t.err);
        ck_assert_int_ne(rc, BRC_OK);
        if (strstr(t.err.message, "not finished") != NULL) {
            ck_assert_ptr_nonnull(strstr(t.err.message, "breccia backup"));
            unfinished++;
            backup();
            copy_is_equal();
        }
    }
    ck_assert_int_gt(unfinished, 5);
    fault_vfs_unregister(&disk);
}

TEST(killed_at_any_moment_an_older_backup_stays_or_is_the_new_one)
{
    int killed = 0, stayed = 0, done = 0;
    scenario_set_number(&t, "/a", 2, 20);
    const brc_oid was = scenario_commit(&t, "two");
    backup();
    brc_buf old = store_kit_read(dest);
    write_noise("/noise", 10, 6);
    const brc_oid is = scenario_commit(&t, "noise");
    fault_vfs_register(&disk);
    for (uint64_t n = 1;; n += 2) {
        remove_dest();
        store_kit_put(dest, &old);
        if (!backup_and_die(n))
            break;
        killed++;
        ck_assert(file_is_whole(dest));
        const brc_oid now = dest_tip();
        stayed += memcmp(&now, &was, sizeof(now)) == 0;
        done += memcmp(&now, &is, sizeof(now)) == 0;
        backup();
        copy_is_equal();
    }
    ck_assert_int_gt(stayed, 5);
    ck_assert_int_eq(stayed + done, killed);
    fault_vfs_unregister(&disk);
    brc_buf_dispose(&old);
}

CASE("rows", .setup = rows_setup, .teardown = backup_teardown, .timeout = 300);

TEST(on_a_full_disk_an_older_backup_stays)
{
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    breccia *repo = NULL;
    scenario_set_number(&t, "/a", 2, 20);
    const brc_oid was = scenario_commit(&t, "two");
    backup();
    write_noise("/noise", 10, 6);
    scenario_commit(&t, "noise");
    fault_vfs_register(&disk);
    opts.vfs = FAULT_VFS_NAME;
    OK(&t, brc_open(&repo, t.file, &opts, &t.err));
    disk.has_room = 1;
    disk.room = 200000;
    ck_assert_int_eq(brc_backup(NULL, repo, dest, &t.err), BRC_ENOSPACE);
    ck_assert_ptr_nonnull(strstr(t.err.message, "backup.brc"));
    disk.has_room = 0;
    ck_assert(file_is_whole(dest));
    const brc_oid now = dest_tip();
    ck_assert_int_eq(memcmp(&now, &was, sizeof(now)), 0);
    OK(&t, brc_backup(NULL, repo, dest, &t.err));
    copy_is_equal();
    brc_free(repo);
    fault_vfs_unregister(&disk);
}

CASE("backup", .setup = backup_setup, .teardown = backup_teardown, .timeout = 300);

/* ---- what is refused -------------------------------- */

static void is_refused(int code, const char *says)
{
    brc_buf before = store_kit_read(dest);
    FAILS(&t, code, brc_backup(NULL, t.repo, dest, &t.err));
    ck_assert_msg(strstr(t.err.message, says) != NULL, "%s", t.err.message);
    brc_buf after = store_kit_read(dest);
    ck_assert_uint_eq(before.len, after.len);
    ck_assert_int_eq(memcmp(before.data, after.data, before.len), 0);
    brc_buf_dispose(&before);
    brc_buf_dispose(&after);
}

TEST(a_backup_overwrites_nothing_else)
{
    scenario other = {.repo = NULL};
    snprintf(other.file, sizeof(other.file), "%.95s", dest);
    scenario_open(&other, NULL, BRC_OPEN_CREATE);
    scenario_close(&other);
    is_refused(BRC_EEXISTS, "another repository");
    unlink(dest);
    ck_assert_int_eq(brc_file_write(dest, "notes", 5, NULL), BRC_OK);
    is_refused(BRC_EFORMAT, "not a breccia repository");
    unlink(dest);
    brc_buf all = store_kit_read(t.file);
    store_kit_put(dest, &all);
    brc_buf_dispose(&all);
    is_refused(BRC_EEXISTS, "not made by 'backup'");
    FAILS(&t, BRC_EINVAL, brc_backup(NULL, t.repo, t.file, &t.err));
    FAILS(&t, BRC_EINVAL, brc_backup(NULL, t.repo, "", &t.err));
    OK(&t, brc_begin(t.repo, &t.err));
    FAILS(&t, BRC_EMISUSE, brc_backup(NULL, t.repo, dest, &t.err));
    OK(&t, brc_end(t.repo, 0, &t.err));
}

LOOP(a_backup_that_was_changed_is_left_alone, 0, 2)
{
    scenario copy = {.repo = NULL};
    backup();
    snprintf(copy.file, sizeof(copy.file), "%.95s", dest);
    scenario_open(&copy, NULL, 0);
    if (_i == 0)
        scenario_set_number(&copy, "/a", 1, 5);
    else
        OK(&copy, brc_config_set(copy.repo, "window", "1d", &copy.err));
    scenario_close(&copy);
    is_refused(BRC_EEXISTS, "was changed since");
}

/* The file was put back to an earlier backup, and other versions were made: the later backup has
 * some that are nowhere else. */
TEST(versions_that_only_the_backup_has_are_kept)
{
    backup();
    brc_buf early = store_kit_read(dest);
    scenario_set_number(&t, "/a", 1, 5);
    scenario_commit(&t, "later");
    backup();
    scenario_close(&t);
    store_kit_put(t.file, &early);
    scenario_open(&t, NULL, 0);
    is_refused(BRC_EEXISTS, "versions that");
    scenario_set_number(&t, "/a", 1, 6);
    scenario_commit(&t, "another line");
    is_refused(BRC_EEXISTS, "versions that");
    brc_buf_dispose(&early);
}

/* A file that was put back to a backup goes on with it. */
TEST(a_file_that_was_restored_from_its_backup_goes_on_with_it)
{
    backup();
    brc_buf all = store_kit_read(dest);
    scenario_close(&t);
    store_kit_put(t.file, &all);
    brc_buf_dispose(&all);
    scenario_open(&t, NULL, 0);
    scenario_set_number(&t, "/a", 1, 6);
    scenario_commit(&t, "goes on");
    ck_assert_uint_eq(backup().flags, BRC_BACKUP_INCREMENTAL);
    copy_is_equal();
}

static void collect_all(void)
{
    scenario_no_window(&t);
    OK(&t, brc_gc(t.repo, NULL, NULL, &t.err));
}

/* Rows that had gone when the backup was made hold other objects, where the file was put back to an
 * earlier state since. Its log no longer tells that. */
TEST(rows_that_are_used_again_are_brought)
{
    scenario_close(&t);
    brc_buf before = store_kit_read(t.file);
    scenario_open(&t, NULL, 0);
    OK(&t, brc_ref_create(t.repo, "side", NULL, NULL, 0, &t.err));
    brc_session *main = t.session;
    OK(&t, brc_session_open(&t.session, t.repo, "side", BRC_SESSION_WRITE, &t.err));
    write_noise("/b", 3, 7);
    scenario_commit(&t, "garbage soon");
    brc_session_free(t.session);
    t.session = main;
    write_noise("/d", 3, 8);
    scenario_commit(&t, "kept");
    OK(&t, brc_ref_delete(t.repo, "side", BRC_DELETE_FORCE, &t.err));
    collect_all();
    backup();
    copy_is_equal();
    scenario_close(&t);
    store_kit_put(t.file, &before);
    brc_buf_dispose(&before);
    scenario_open(&t, NULL, 0);
    write_noise("/c", 2, 9);
    scenario_commit(&t, "another line");
    for (int i = 0; i < 10; i++) {
        OK(&t, brc_ref_create(t.repo, "x", NULL, NULL, BRC_REF_TAG, &t.err));
        OK(&t, brc_ref_delete(t.repo, "x", BRC_REF_TAG | BRC_DELETE_FORCE, &t.err));
    }
    scenario_sql(&t, "DELETE FROM oplog WHERE seq<(SELECT max(seq) FROM oplog)");
    ck_assert_uint_eq(backup().flags, BRC_BACKUP_INCREMENTAL);
    copy_is_equal();
}

/* A bulk write stored a row ahead and never named its objects: the row is all free. */
TEST(rows_without_objects_go_from_the_copy_too)
{
    scenario_sql_shared(&t, "INSERT INTO blob(seq, data) SELECT max(seq)+1, zeroblob(70000) FROM"
                            " blob; INSERT INTO removed SELECT 0, max(seq), '', 70000, 70000, 1, 1,"
                            " 0, row_sum('removed', 0, max(seq), '', 70000, 70000, 1, 1, 0)"
                            " FROM blob");
    write_noise("/b", 2, 7);
    scenario_commit(&t, "behind it");
    backup();
    copy_is_equal();
    collect_all();
    ck_assert_int_eq((int)scenario_ask(&t, "SELECT count(*) FROM removed WHERE bytes=70000"), 0);
    backup();
    copy_is_equal();
}

CASE("rows", .setup = rows_setup, .teardown = backup_teardown, .timeout = 300);

TEST(damage_in_the_file_is_told)
{
    write_noise("/noise", 2, 9);
    scenario_commit(&t, "noise");
    scenario_close(&t);
    scenario_sql_shared(&t, "UPDATE blob SET data=CAST(zeroblob(length(data)) AS BLOB)"
                            " WHERE length(data)>=65536");
    scenario_open(&t, NULL, 0);
    FAILS(&t, BRC_ECORRUPT, brc_backup(NULL, t.repo, dest, &t.err));
    ck_assert_ptr_nonnull(strstr(t.err.message, "2 objects that are damaged"));
    scenario_close(&t);
    scenario_folder(&t); /* the next one is whole */
    scenario_open(&t, NULL, BRC_OPEN_CREATE);
}

/* ---- copies that were made otherwise -------------------------------- */

/* `cp` reads the file from start to end while another process commits. */
TEST(a_copy_made_in_mid_write_says_so_when_it_is_opened)
{
    brc_buf before = store_kit_read(t.file);
    write_noise("/noise", 10, 9);
    scenario_commit(&t, "noise");
    brc_buf after = store_kit_read(t.file);
    ck_assert_uint_gt(after.len, before.len);
    for (size_t read = 16384; read <= before.len; read += 16384) {
        memcpy(after.data, before.data, read);
        store_kit_put(dest, &after);
        FAILS(&t, BRC_ECORRUPT, look_at_dest(&t.err));
        ck_assert_ptr_nonnull(strstr(t.err.message, "was made during a write"));
        ck_assert_ptr_nonnull(strstr(t.err.message, "breccia backup"));
    }
    brc_buf_dispose(&before);
    brc_buf_dispose(&after);
}
