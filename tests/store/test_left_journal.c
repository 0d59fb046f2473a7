/*
 * Journals that writers left: played back whenever they are the file's own, however many
 * come at once, and never over a copy of another state.
 */
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../src/base/file.h"
#include "../../src/store/db.h"
#include "../kit/file_digest.h"
#include "../kit/journal_kit.h"
#include "../kit/store_kit.h"
#include "../kit/suite.h"

TEST_SUITE(left_journal);

static store_kit kit;
static char journal[128];

#define OK(call) KIT_OK(&kit, call)

static void left_setup(void)
{
    store_kit_start(&kit);
    store_kit_close(&kit);
    for (int i = 0; i < 3; i++)
        OK(journal_kit_commit(kit.file, i, &kit.err));
    snprintf(journal, sizeof(journal), "%s-journal", kit.file);
}

static void left_teardown(void)
{
    store_kit_stop(&kit);
}

/* ---- copies put over a file that a writer was killed in --------------------------------- */

#define STATES 14

/* The kind of journal_kit_leave() whose journal lacks page 1. */
#define WITHOUT_PAGE_1 1

/* A copy that is put over the file, beside this journal, reads as the content that it had. */
static int copy_is_kept(const brc_buf *copy, const char *said, const brc_buf *left)
{
    store_kit_put(kit.file, copy);
    store_kit_put(journal, left);
    int rc = journal_kit_look(kit.file, 0, &kit.err);
    ck_assert_msg(rc == BRC_OK || rc == BRC_ECORRUPT, "%s", kit.err.message);
    if (rc == BRC_ECORRUPT) {
        ck_assert_ptr_nonnull(strstr(kit.err.message, "neither played back nor deleted"));
        KIT_TRUE(store_kit_same(kit.file, copy));
        KIT_TRUE(store_kit_same(journal, left));
        OK(journal_kit_look(kit.file, BRC_OPEN_NO_RECOVER, &kit.err));
        ck_assert_int_eq(unlink(journal), 0); /* as the sentence says */
    }
    ck_assert(file_is_whole(kit.file));
    char *now = file_digest(kit.file);
    ck_assert_str_eq(now, said);
    free(now);
    return rc == BRC_OK;
}

CASE("left_journal", .setup = left_setup, .teardown = left_teardown, .timeout = 120);

LOOP(f01_copies_put_over_a_file_with_a_left_journal, 0, 3)
{
    brc_buf copies[STATES], left;
    char *said[STATES];
    int played = 0;
    for (int i = 0; i < STATES; i++) {
        copies[i] = store_kit_read(kit.file);
        said[i] = file_digest(kit.file);
        if (i + 1 < STATES)
            OK(journal_kit_commit(kit.file, 100 + i, &kit.err));
    }
    journal_kit_leave(kit.file, _i);
    left = store_kit_read(journal);
    for (int i = 0; i < STATES; i++)
        played += copy_is_kept(&copies[i], said[i], &left);
    /* Nearly always page 1 is in the journal; the one without it is of a page that all share. */
    ck_assert_int_eq(played, _i == WITHOUT_PAGE_1 ? STATES : 1);
    for (int i = 0; i < STATES; i++) {
        brc_buf_dispose(&copies[i]);
        free(said[i]);
    }
    brc_buf_dispose(&left);
}

/* And with the file as the writer left it, it is undone. */
LOOP(f01_a_left_journal_is_played_back, 0, 4)
{
    char *before = file_digest(kit.file);
    journal_kit_leave(kit.file, _i % 2 * 2);
    OK(journal_kit_look(kit.file, _i < 2 ? BRC_OPEN_READONLY : 0, &kit.err));
    ck_assert_int_eq(brc_file_kind(journal), 0);
    char *now = file_digest(kit.file);
    ck_assert_str_eq(now, before);
    ck_assert(file_is_whole(kit.file));
    free(before);
    free(now);
}

/* A journal without page 1 may be of any state with as many pages, also the one that a writer has
 * just left: only one that changes nothing is played back. */
LOOP(f01_a_journal_without_page_1_must_change_nothing, 0, 2)
{
    brc_buf before = store_kit_read(kit.file);
    char *said = file_digest(kit.file);
    journal_kit_leave(kit.file, WITHOUT_PAGE_1);
    brc_buf file = store_kit_read(kit.file), left = store_kit_read(journal);
    const uint32_t flags = _i == 0 ? BRC_OPEN_READONLY : 0;
    KIT_FAILS(&kit, BRC_ECORRUPT, "does not hold the file's first page",
              journal_kit_look(kit.file, flags, &kit.err));
    KIT_TRUE(store_kit_same(kit.file, &file));
    KIT_TRUE(store_kit_same(journal, &left));
    store_kit_put(kit.file, &before);
    OK(journal_kit_look(kit.file, flags, &kit.err));
    ck_assert_int_eq(brc_file_kind(journal), 0);
    char *now = file_digest(kit.file);
    ck_assert_str_eq(now, said);
    free(now);
    free(said);
    brc_buf_dispose(&before);
    brc_buf_dispose(&file);
    brc_buf_dispose(&left);
}

/* The page that has the settings is half as it was and half as it was to be: whoever opens the file
 * plays the journal back before he looks at it. */
TEST(f01_a_page_of_meta_that_is_half_written)
{
    const size_t at = (size_t)(store_kit_ask(&kit, "SELECT rootpage FROM sqlite_schema"
                                                   " WHERE name='meta'") - 1) * BRC_PAGE_SIZE;
    brc_buf before = store_kit_read(kit.file);
    char *said = file_digest(kit.file);
    journal_kit_leave(kit.file, 2);
    brc_buf file = store_kit_read(kit.file), left = store_kit_read(journal);
    ck_assert_int_ne(memcmp(file.data + at, before.data + at, BRC_PAGE_SIZE), 0);
    for (size_t n = 0; n <= BRC_PAGE_SIZE; n += 512) {
        memcpy(file.data + at, before.data + at, n); /* the rest is new */
        store_kit_put(kit.file, &file);
        store_kit_put(journal, &left);
        OK(journal_kit_look(kit.file, n % 1024 == 0 ? BRC_OPEN_READONLY : 0, &kit.err));
        ck_assert_int_eq(brc_file_kind(journal), 0);
        char *now = file_digest(kit.file);
        ck_assert_str_eq(now, said);
        free(now);
    }
    free(said);
    brc_buf_dispose(&before);
    brc_buf_dispose(&file);
    brc_buf_dispose(&left);
}

/* ---- living writers, killed writers --------------------------------------------------- */

/* In a child, so that its locks are another process's; it waits to be killed. */
static pid_t hold(const char *sql, int flush)
{
    int ready[2];
    char c;
    ck_assert_int_eq(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
        sqlite3 *db = NULL;
        sqlite3_open(kit.file, &db);
        int rc = sqlite3_exec(db, sql, NULL, NULL, NULL);
        if (rc == SQLITE_OK && flush)
            rc = sqlite3_db_cacheflush(db);
        if (rc == SQLITE_OK && write(ready[1], "x", 1) == 1)
            for (;;)
                pause();
        _exit(1);
    }
    close(ready[1]);
    ck_assert_int_eq(read(ready[0], &c, 1), 1);
    close(ready[0]);
    return child;
}

static void kill_child(pid_t child)
{
    ck_assert_int_eq(kill(child, SIGKILL), 0);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
}

LOOP(f01_a_living_writers_journal_is_normal, 0, 2)
{
    pid_t child = hold("BEGIN; UPDATE meta SET value=zeroblob(150) WHERE key='secret';"
                       "INSERT INTO meta VALUES ('more', zeroblob(100000), 0)", _i);
    ck_assert_int_eq(brc_file_kind(journal), 2);
    if (_i == 0) /* it has changed nothing yet */
        OK(journal_kit_look(kit.file, BRC_OPEN_READONLY, &kit.err));
    else
        KIT_FAILS(&kit, BRC_EBUSY, "in use",
                  journal_kit_look(kit.file, BRC_OPEN_READONLY, &kit.err));
    KIT_FAILS(&kit, BRC_EBUSY, "in use", (store_kit_try(&kit, 0, -1), _i == 0)
                                             ? brc_store_begin(kit.store, &kit.err)
                                             : journal_kit_look(kit.file, 0, &kit.err));
    store_kit_close(&kit);
    kill_child(child);
    OK(journal_kit_look(kit.file, 0, &kit.err));
    ck_assert_int_eq(store_kit_ask(&kit, "SELECT length(value) FROM meta WHERE key='secret'"), 192);
}

/* Several processes come at once, to commit, to read and to write, behind a writer that
 * was killed: each must get in. */
static void all_get_in(int round)
{
    enum { COMING = 4 };
    pid_t comers[COMING];
    int status;
    for (int i = 0; i < COMING; i++) {
        comers[i] = fork();
        if (comers[i] == 0) {
            brc_open_opts opts = BRC_OPEN_OPTS_INIT;
            brc_error err = BRC_ERROR_INIT;
            opts.flags = i % 2 == 0 ? 0 : BRC_OPEN_READONLY;
            int rc = brc_store_open(&kit.store, kit.file, &opts, kit.reg, 1, &err);
            if (rc != BRC_OK)
                fprintf(stderr, "round %d: %s\n", round, err.message);
            _exit(rc != BRC_OK);
        }
    }
    for (int i = 0; i < COMING; i++) {
        ck_assert_int_eq(waitpid(comers[i], &status, 0), comers[i]);
        ck_assert_int_eq(status, 0);
    }
}

/* Whenever a writer is killed: nobody is told that the journal is not the file's. */
TEST(f01_killed_writers_are_always_undone)
{
    uint64_t random = 5;
    for (int round = 0; round < 60; round++) {
        pid_t writer = fork();
        if (writer == 0)
            for (int n = 0;; n++)
                if (journal_kit_commit(kit.file, round * 1000 + n, NULL) != BRC_OK)
                    _exit(1);
        usleep((useconds_t)(1000 + store_kit_below(&random, 9000)));
        kill_child(writer);
        all_get_in(round);
        OK(journal_kit_commit(kit.file, -1 - round, &kit.err));
    }
    ck_assert(file_is_whole(kit.file));
}

/* The same with a journal that is hot every time. */
TEST(f01_several_undo_at_once)
{
    for (int round = 0; round < 20; round++) {
        char *before = file_digest(kit.file);
        journal_kit_leave(kit.file, round % 2 * 2);
        all_get_in(round);
        char *now = file_digest(kit.file);
        ck_assert_str_eq(now, before);
        free(now);
        free(before);
    }
}
