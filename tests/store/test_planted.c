/*
 * Files beside the repository that are not its own: planted journals, links in their
 * place, logs. None is played back, and none deletes or writes anything.
 */
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../src/base/file.h"
#include "../kit/file_digest.h"
#include "../kit/journal_kit.h"
#include "../kit/store_kit.h"
#include "../kit/suite.h"

TEST_SUITE(planted);

static store_kit kit;
static char journal[128], victim[128];

#define OK(call) KIT_OK(&kit, call)
#define PRECIOUS "something that nobody wants to lose\n"

/* ---- the repository, and somebody else's file --------------------------------------- */

static void planted_setup(void)
{
    char dir[100];
    store_kit_folder(&kit);
    OK(store_kit_try(&kit, BRC_OPEN_CREATE, 0));
    store_kit_close(&kit);
    for (int i = 0; i < 3; i++)
        OK(journal_kit_commit(kit.file, i, &kit.err));
    snprintf(journal, sizeof(journal), "%s-journal", kit.file);
    snprintf(dir, sizeof(dir), "%s/elsewhere", kit.dir);
    OK(brc_dir_make(dir, &kit.err));
    snprintf(victim, sizeof(victim), "%s/precious.txt", dir);
    OK(brc_file_write(victim, PRECIOUS, strlen(PRECIOUS), &kit.err));
}

static void planted_teardown(void)
{
    store_kit_stop(&kit);
}

/* Refused to read and to write, with nothing touched; and readable as it stands. */
static void refused_and_untouched(const char *words)
{
    struct stat st;
    int is_file = lstat(journal, &st) == 0 && S_ISREG(st.st_mode);
    brc_buf file = store_kit_read(kit.file), planted = BRC_BUF_INIT;
    if (is_file)
        planted = store_kit_read(journal);
    KIT_FAILS(&kit, BRC_ECORRUPT, words, journal_kit_look(kit.file, BRC_OPEN_READONLY, &kit.err));
    ck_assert_ptr_nonnull(strstr(kit.err.message, "--no-recover"));
    KIT_FAILS(&kit, BRC_ECORRUPT, words, journal_kit_look(kit.file, 0, &kit.err));
    KIT_FAILS(&kit, BRC_ECORRUPT, words, journal_kit_commit(kit.file, 9, &kit.err));
    OK(journal_kit_look(kit.file, BRC_OPEN_NO_RECOVER, &kit.err));
    KIT_TRUE(store_kit_same(kit.file, &file));
    KIT_TRUE(lstat(journal, &st) == 0);
    KIT_TRUE(!is_file || store_kit_same(journal, &planted));
    brc_buf_dispose(&file);
    brc_buf_dispose(&planted);
}

static void victim_lives(void)
{
    brc_buf want = {.data = (uint8_t *)(uintptr_t)PRECIOUS, .len = strlen(PRECIOUS),
                    .flags = BRC_BUF_FIXED};
    KIT_TRUE(store_kit_same(victim, &want));
}

/* ---- a journal that names another file ------------------------------------------------ */

CASE("planted", .setup = planted_setup, .teardown = planted_teardown, .timeout = 120);

/* Hot, so that it would be played back. */
LOOP(f01_a_hot_journal_that_names_a_file_deletes_nothing, 0, 2)
{
    brc_buf made = journal_kit_header(store_kit_ask(&kit, "PRAGMA page_count"), 16384, 0);
    journal_kit_name(&made, victim, _i == 0 ? 0 : 1);
    store_kit_put(journal, &made);
    refused_and_untouched("names another file");
    victim_lives();
    brc_buf_dispose(&made);
}

/* The name may be of a file that is not there, or the journal's own database. */
LOOP(f01_whatever_file_it_names, 0, 4)
{
    const char *names[] = {"/nowhere/at/all", kit.file, journal, "relative"};
    brc_buf made = journal_kit_header(store_kit_ask(&kit, "PRAGMA page_count"), 16384, 0);
    journal_kit_name(&made, names[_i], 0);
    store_kit_put(journal, &made);
    refused_and_untouched("names another file");
    brc_buf_dispose(&made);
}

/* Cold, its first byte is zero: a writer writes over it, and when it rolls back SQLite
 * would read the name behind its own records. */
TEST(f01_a_cold_journal_that_names_a_file_deletes_nothing)
{
    brc_buf made = BRC_BUF_INIT;
    while (made.len < 200000)
        OK(brc_buf_byte(&made, 0, &kit.err));
    journal_kit_name(&made, victim, 0);
    store_kit_put(journal, &made);
    OK(journal_kit_look(kit.file, BRC_OPEN_READONLY, &kit.err));
    OK(store_kit_try(&kit, 0, -1));
    OK(brc_store_begin(kit.store, &kit.err));
    brc_oid id;
    KIT_FAILS(&kit, BRC_ECORRUPT, "names another file",
              brc_store_put(kit.store, BRC_KIND_DOCUMENT, "{}", 2, &id, &kit.err));
    OK(brc_store_end(kit.store, 0, &kit.err));
    store_kit_close(&kit);
    victim_lives();
    KIT_TRUE(store_kit_same(journal, &made));
    ck_assert(file_is_whole(kit.file));
    brc_buf_dispose(&made);
}

/* The journal that a writer really leaves behind before its first sync: it is overwritten, and
 * gone. */
TEST(f01_a_cold_journal_is_in_nobodys_way)
{
    brc_buf made = journal_kit_header(store_kit_ask(&kit, "PRAGMA page_count"), 16384, 1);
    memset(made.data, 0, 12);
    store_kit_put(journal, &made);
    OK(journal_kit_look(kit.file, BRC_OPEN_READONLY, &kit.err));
    OK(journal_kit_commit(kit.file, 7, &kit.err));
    ck_assert_int_eq(brc_file_kind(journal), 0);
    ck_assert(file_is_whole(kit.file));
    brc_buf_dispose(&made);
}

/* ---- a journal that is something else ----------------------------------------------- */

LOOP(f01_a_journal_that_is_a_link_or_no_file, 0, 6)
{
    brc_buf text = {.data = (uint8_t *)(uintptr_t)PRECIOUS, .len = strlen(PRECIOUS),
                    .flags = BRC_BUF_FIXED};
    switch (_i) {
    case 0:
        ck_assert_int_eq(symlink(victim, journal), 0);
        refused_and_untouched("is a symbolic link");
        break;
    case 1:
        ck_assert_int_eq(link(victim, journal), 0);
        refused_and_untouched("hard link");
        break;
    case 2:
        ck_assert_int_eq(mkfifo(journal, 0600), 0); /* opening it would wait for ever */
        refused_and_untouched("is not a regular file");
        break;
    case 3:
        OK(brc_dir_make(journal, &kit.err));
        refused_and_untouched("is not a regular file");
        break;
    case 4:
        ck_assert_int_eq(link(kit.file, journal), 0);
        refused_and_untouched("hard link");
        break;
    default:
        store_kit_put(journal, &text);
        refused_and_untouched("is not a rollback journal");
    }
    victim_lives();
}

/* A victim that looks cold: readers do not mind, and a writer does not write into it. */
LOOP(f01_nothing_is_written_through_a_link, 0, 4)
{
    char zeros[4096] = {0};
    brc_buf want = {.data = (uint8_t *)zeros, .len = _i < 2 ? sizeof(zeros) : 0,
                    .flags = BRC_BUF_FIXED};
    store_kit_put(victim, &want);
    ck_assert_int_eq(_i % 2 == 0 ? symlink(victim, journal) : link(victim, journal), 0);
    int rc = journal_kit_look(kit.file, BRC_OPEN_READONLY, &kit.err);
    ck_assert(rc == BRC_OK || rc == BRC_ECORRUPT);
    KIT_FAILS(&kit, BRC_ECORRUPT, "link", journal_kit_commit(kit.file, 9, &kit.err));
    KIT_TRUE(store_kit_same(victim, &want));
    ck_assert_int_eq(unlink(journal), 0);
    ck_assert(file_is_whole(kit.file));
}

/* ---- a journal with another content -------------------------------------------------- */

static void plant(brc_buf *made, const char *words)
{
    store_kit_put(journal, made);
    brc_buf_dispose(made);
    refused_and_untouched(words);
}

LOOP(f01_made_up_journals_are_refused, 0, 9)
{
    int64_t pages = store_kit_ask(&kit, "PRAGMA page_count");
    brc_buf file = store_kit_read(kit.file), made;
    switch (_i) {
    case 0: /* would cut the file to its first page */
        made = journal_kit_header(1, 16384, 0);
        plant(&made, "another state");
        break;
    case 1: /* would make it terabytes long */
        made = journal_kit_header(0x7fffffff, 16384, 0);
        plant(&made, "another state");
        break;
    case 2:
        made = journal_kit_header(pages, 16384, 1);
        plant(&made, "truncated or damaged"); /* a record is promised */
        break;
    case 3:
        made = journal_kit_header(pages, 16384, 1);
        journal_kit_page(&made, 2, file.data + 16384, 16384);
        made.data[made.len - 1] ^= 1;
        plant(&made, "truncated or damaged");
        break;
    case 4:
        made = journal_kit_header(pages, 16384, 1);
        journal_kit_page(&made, 0, file.data, 16384);
        plant(&made, "truncated or damaged");
        break;
    case 5:
        made = journal_kit_header(pages, 3, 0);
        plant(&made, "is not a rollback journal");
        break;
    case 6: /* page 1 of another file, with the counter of this one */
        made = journal_kit_header(pages, 16384, 1);
        file.data[40] ^= 1;
        journal_kit_page(&made, 1, file.data, 16384);
        plant(&made, "another state");
        break;
    case 7: /* the right page 1, of another size of page */
        made = journal_kit_header(pages, 4096, 1);
        journal_kit_page(&made, 1, file.data, 4096);
        plant(&made, "another state");
        break;
    default: /* page 1 behind a second header */
        made = journal_kit_header(pages, 16384, 1);
        journal_kit_page(&made, 2, file.data + 16384, 16384);
        journal_kit_more(&made, pages, 16384, 1);
        file.data[27] ^= 0x10;
        journal_kit_page(&made, 1, file.data, 16384);
        plant(&made, "another state");
    }
    brc_buf_dispose(&file);
}

/* Its own, made by hand: the checks above do not refuse what is right. */
LOOP(f01_a_right_journal_made_by_hand_is_played_back, 0, 2)
{
    brc_buf file = store_kit_read(kit.file);
    brc_buf made = journal_kit_header(store_kit_ask(&kit, "PRAGMA page_count"), 16384, 1);
    if (_i == 0) {
        journal_kit_page(&made, 1, file.data, 16384);
    } else {
        journal_kit_page(&made, 2, file.data + 16384, 16384);
        journal_kit_more(&made, store_kit_ask(&kit, "PRAGMA page_count"), 16384, 1);
        journal_kit_page(&made, 1, file.data, 16384);
    }
    store_kit_put(journal, &made);
    OK(journal_kit_look(kit.file, _i == 0 ? BRC_OPEN_READONLY : 0, &kit.err));
    ck_assert_int_eq(brc_file_kind(journal), 0);
    KIT_TRUE(store_kit_same(kit.file, &file));
    brc_buf_dispose(&made);
    brc_buf_dispose(&file);
}

TEST(f01_as_it_stands_nothing_is_undone)
{
    journal_kit_leave(kit.file, 0);
    brc_buf file = store_kit_read(kit.file), left = store_kit_read(journal);
    OK(store_kit_try(&kit, BRC_OPEN_NO_RECOVER, -1));
    ck_assert_int_eq(brc_store_readonly(kit.store), 1);
    KIT_FAILS(&kit, BRC_EREADONLY, "reading only", brc_store_begin(kit.store, &kit.err));
    store_kit_close(&kit);
    KIT_TRUE(store_kit_same(kit.file, &file));
    KIT_TRUE(store_kit_same(journal, &left));
    brc_buf_dispose(&file);
    brc_buf_dispose(&left);
}

/* ---- locks of this process --------------------------------------------------------------- */

/* Does another process find the file locked? SQLite's RESERVED byte. */
static int is_reserved(void)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0x40000001,
                             .l_len = 1};
        int fd = open(kit.file, O_RDWR);
        _exit(fd >= 0 && fcntl(fd, F_GETLK, &lock) == 0 ? lock.l_type != F_UNLCK : 2);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) < 2);
    return WEXITSTATUS(status);
}

/* To close any descriptor of the file would drop them. */
LOOP(f01_nothing_drops_the_locks, 0, 2)
{
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    breccia *repo, *other = NULL;
    brc_session *s;
    char alias[128];
    snprintf(alias, sizeof(alias), "%s/alias.npy", kit.dir);
    ck_assert_int_eq(symlink(kit.file, alias), 0);
    OK(brc_open(&repo, kit.file, NULL, &kit.err));
    OK(brc_session_open(&s, repo, NULL, BRC_SESSION_WRITE, &kit.err));
    OK(brc_begin(repo, &kit.err));
    ck_assert_int_eq(is_reserved(), 1);
    opts.flags = BRC_OPEN_CREATE;
    KIT_FAILS(&kit, BRC_EEXISTS, "exists", brc_open(&other, kit.file, &opts, &kit.err));
    for (uint32_t flags = 0; flags < 2; flags++) {
        opts.flags = flags;
        OK(brc_open(&other, _i == 0 ? kit.file : alias, &opts, &kit.err));
        brc_free(other);
    }
    opts.flags = BRC_OPEN_NO_RECOVER;
    OK(brc_open(&other, kit.file, &opts, &kit.err));
    brc_free(other);
    KIT_FAILS(&kit, BRC_EINVAL, "is the repository itself",
              brc_import(s, _i == 0 ? kit.file : alias, NULL, NULL, &kit.err));
    ck_assert_int_eq(is_reserved(), 1);
    OK(brc_end(repo, BRC_END_KEEP, &kit.err));
    ck_assert_int_eq(is_reserved(), 0);
    brc_session_free(s);
    brc_free(repo);
}

/* ---- a new file, names ------------------------------------------------------------------- */

LOOP(f01_a_new_file_takes_no_old_journal, 0, 2)
{
    brc_buf made = journal_kit_header(3, 16384, 0);
    if (_i == 0)
        journal_kit_name(&made, victim, 0);
    store_kit_put(journal, &made);
    ck_assert_int_eq(unlink(kit.file), 0);
    KIT_FAILS(&kit, BRC_EEXISTS, "is in the way", store_kit_try(&kit, BRC_OPEN_CREATE, 0));
    ck_assert_int_eq(brc_file_kind(kit.file), 0);
    KIT_TRUE(store_kit_same(journal, &made));
    OK(brc_file_write(kit.file, "", 0, &kit.err)); /* SQLite deletes it beside an empty file */
    KIT_FAILS(&kit, BRC_EFORMAT, "not a breccia repository", store_kit_try(&kit, 0, 0));
    KIT_TRUE(store_kit_same(journal, &made));
    victim_lives();
    brc_buf_dispose(&made);
}

/* An init that was killed: nothing of the file is believed, and nothing is cut. */
TEST(f01_a_journal_of_an_empty_file_empties_nothing)
{
    brc_buf made = journal_kit_header(0, 16384, 0), file = store_kit_read(kit.file);
    store_kit_put(journal, &made);
    KIT_FAILS(&kit, BRC_EFORMAT, "not a repository yet", journal_kit_look(kit.file, 0, &kit.err));
    KIT_FAILS(&kit, BRC_EFORMAT, "not a repository yet",
              journal_kit_look(kit.file, BRC_OPEN_READONLY, &kit.err));
    OK(journal_kit_look(kit.file, BRC_OPEN_NO_RECOVER, &kit.err));
    KIT_TRUE(store_kit_same(kit.file, &file));
    KIT_TRUE(store_kit_same(journal, &made));
    brc_buf_dispose(&made);
    brc_buf_dispose(&file);
}

TEST(f01_through_a_link_the_journal_is_the_files)
{
    char alias[128], beside[140];
    snprintf(alias, sizeof(alias), "%s/elsewhere/alias.brc", kit.dir);
    snprintf(beside, sizeof(beside), "%s-journal", alias);
    ck_assert_int_eq(symlink(kit.file, alias), 0);
    OK(brc_file_write(beside, PRECIOUS, strlen(PRECIOUS), &kit.err));
    journal_kit_leave(kit.file, 0);
    OK(journal_kit_commit(alias, 5, &kit.err));
    ck_assert_int_eq(brc_file_kind(journal), 0);
    ck_assert_int_eq(brc_file_kind(beside), 2);
    ck_assert(file_is_whole(kit.file));
}

/* ---- WAL ----------------------------------------------------------------------------------- */

static void wal_names(char wal[140], char shm[140])
{
    snprintf(wal, 140, "%s-wal", kit.file);
    snprintf(shm, 140, "%s-shm", kit.file);
}

/* A log that SQLite would take: made beside a copy in WAL mode. */
LOOP(f06_a_planted_wal_is_not_read, 0, 2)
{
    char wal[140], shm[140];
    sqlite3 *db = NULL;
    brc_buf before = store_kit_read(kit.file);
    wal_names(wal, shm);
    ck_assert_int_eq(sqlite3_open(kit.file, &db), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(db, "PRAGMA journal_mode=WAL; UPDATE meta SET value='evil' WHERE "
                                      "key='head'", NULL, NULL, NULL), SQLITE_OK);
    brc_buf log = store_kit_read(wal);
    sqlite3_close(db);
    ck_assert_uint_gt(log.len, 100);
    store_kit_put(kit.file, &before);
    store_kit_put(wal, &log);
    const char *branch;
    OK(store_kit_try(&kit, _i == 0 ? BRC_OPEN_READONLY : 0, -1));
    OK(brc_head_get(kit.store, &branch, &kit.err));
    ck_assert_str_eq(branch, "main");
    store_kit_close(&kit);
    if (_i == 1)
        OK(journal_kit_commit(kit.file, 5, &kit.err));
    else
        KIT_TRUE(store_kit_same(kit.file, &before));
    KIT_TRUE(store_kit_same(wal, &log));
    ck_assert_int_eq(brc_file_kind(shm), 0);
    brc_buf_dispose(&before);
    brc_buf_dispose(&log);
}

TEST(f06_a_file_in_wal_mode_is_refused)
{
    char wal[140], shm[140];
    wal_names(wal, shm);
    store_kit_sql(&kit, "PRAGMA journal_mode=WAL; CREATE TABLE x(a); DROP TABLE x");
    brc_buf before = store_kit_read(kit.file);
    static const uint32_t flags[] = {0, BRC_OPEN_READONLY, BRC_OPEN_NO_RECOVER};
    for (size_t i = 0; i < 3; i++)
        KIT_FAILS(&kit, BRC_EFORMAT, "PRAGMA journal_mode=DELETE",
                  store_kit_try(&kit, flags[i], -1));
    KIT_TRUE(store_kit_same(kit.file, &before));
    ck_assert_int_eq(brc_file_kind(wal), 0);
    ck_assert_int_eq(brc_file_kind(shm), 0);
    store_kit_sql(&kit, "PRAGMA journal_mode=DELETE");
    OK(journal_kit_look(kit.file, 0, &kit.err));
    brc_buf_dispose(&before);
}

/* Nor where FILE can only be read with its log, as after a copying back that was cut off. */
TEST(f06_a_log_does_not_count_where_the_file_is_unreadable)
{
    char wal[140], shm[140];
    int status;
    wal_names(wal, shm);
    const pid_t child = fork();
    if (child == 0) {
        sqlite3 *db = NULL;
        sqlite3_open(kit.file, &db);
        sqlite3_exec(db, "PRAGMA journal_mode=WAL; CREATE TABLE x(a); DROP TABLE x", NULL, NULL,
                     NULL);
        _exit(0); /* the log stays */
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    brc_buf log = store_kit_read(wal), file = store_kit_read(kit.file);
    ck_assert_uint_gt(log.len, 100);
    file.data[100] = 0x55; /* page 1 is not a page of a tree */
    store_kit_put(kit.file, &file);
    static const uint32_t flags[] = {0, BRC_OPEN_READONLY};
    for (size_t i = 0; i < 2; i++)
        KIT_FAILS(&kit, BRC_EFORMAT, "PRAGMA journal_mode=DELETE",
                  store_kit_try(&kit, flags[i], -1));
    KIT_TRUE(store_kit_same(kit.file, &file));
    KIT_TRUE(store_kit_same(wal, &log));
    brc_buf_dispose(&log);
    brc_buf_dispose(&file);
}

/* While it is open, too. */
TEST(f06_a_file_put_into_wal_mode_meanwhile)
{
    const char *branch;
    OK(store_kit_try(&kit, 0, -1));
    OK(brc_head_get(kit.store, &branch, &kit.err));
    store_kit_sql(&kit, "PRAGMA journal_mode=WAL");
    KIT_FAILS(&kit, BRC_EFORMAT, "WAL mode", brc_head_get(kit.store, &branch, &kit.err));
    KIT_FAILS(&kit, BRC_EFORMAT, "WAL mode", brc_store_begin(kit.store, &kit.err));
}

TEST(f06_another_programs_file_in_wal_mode)
{
    ck_assert_int_eq(unlink(kit.file), 0);
    store_kit_sql(&kit, "PRAGMA journal_mode=WAL; CREATE TABLE t(a)");
    KIT_FAILS(&kit, BRC_EFORMAT, "is not a breccia repository", store_kit_try(&kit, 0, -1));
}
