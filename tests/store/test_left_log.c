/*
 * Logs that writers in WAL mode left: read whenever they are the file's own, however many come at
 * once and whatever a killed process had copied back, and never over a copy of another state.
 */
#include <signal.h>
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

TEST_SUITE(left_log);

static store_kit kit;
static char wal[140], shm[140];

#define OK(call) KIT_OK(&kit, call)

static void log_setup(void)
{
    store_kit_start(&kit);
    OK(brc_store_begin(kit.store, &kit.err));
    OK(brc_meta_put(kit.store, "config.test", "before", 6, 1, &kit.err));
    OK(brc_store_end(kit.store, 1, &kit.err));
    OK(brc_journal_set(kit.store, 1, &kit.err));
    store_kit_close(&kit);
    for (int i = 0; i < 3; i++)
        OK(journal_kit_commit(kit.file, i, &kit.err));
    snprintf(wal, sizeof(wal), "%s-wal", kit.file);
    snprintf(shm, sizeof(shm), "%s-shm", kit.file);
}

static void log_teardown(void)
{
    store_kit_stop(&kit);
}

/* In a child, which is killed with the log as it is: some changes, and one that touches page 1. */
static void leave_changes(const char *value, int n, int grows)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        OK(store_kit_try(&kit, 0, -1));
        for (int i = 0; i < n; i++) {
            OK(brc_store_begin(kit.store, &kit.err));
            OK(brc_meta_put(kit.store, "config.test", value, strlen(value), 1, &kit.err));
            if (grows && i == 0)
                OK(brc_exec(kit.store, "INSERT INTO blob(data) VALUES (randomblob(90000));"
                                       "DELETE FROM blob WHERE seq=(SELECT max(seq) FROM blob)",
                            &kit.err));
            OK(brc_store_end(kit.store, 1, &kit.err));
        }
        kill(getpid(), SIGKILL);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void value_must_be(const char *want)
{
    brc_buf value = BRC_BUF_INIT;
    OK(brc_meta_get(kit.store, "config.test", &value, &kit.err));
    ck_assert_str_eq((const char *)value.data, want);
    brc_buf_dispose(&value);
}

/* Where the log has this page last; 0: nowhere. */
static size_t newest_page(const brc_buf *log, uint32_t number)
{
    const size_t frame = 24 + BRC_PAGE_SIZE;
    size_t found = 0;
    for (size_t at = 32; at + frame <= log->len; at += frame) {
        const uint8_t *n = log->data + at;
        if (((uint32_t)n[0] << 24 | (uint32_t)n[1] << 16 | (uint32_t)n[2] << 8 | n[3]) == number)
            found = at + 24;
    }
    return found;
}

static void must_show(const char *value)
{
    for (uint32_t flags = 0; flags <= BRC_OPEN_READONLY; flags++) {
        OK(store_kit_try(&kit, flags, -1));
        value_must_be(value);
        store_kit_close(&kit);
    }
    ck_assert(file_is_whole(kit.file));
}

/* ---- copies put over a file that a writer was killed in --------------------------- */

#define STATES 12

/* At rest and in WAL mode by turns, each of a later time than the one before; but for the log, none
 * has a value of its own. */
static void make_copies(brc_buf *copies)
{
    char value[20];
    for (int i = 0; i < STATES; i++) {
        snprintf(value, sizeof(value), "copy %d", i);
        if (i % 2) {
            leave_changes(value, 1, 1);
            copies[i] = store_kit_read(kit.file);
        }
        OK(journal_kit_commit(kit.file, 100 + i, &kit.err)); /* copies the log back */
        if (i % 2 == 0)
            copies[i] = store_kit_read(kit.file);
    }
}

/* Copy number i beside this log: it shows what it is, or it is refused, and stays what it was. */
static void copy_is_whole(const brc_buf *copy, const brc_buf *log)
{
    const int in_wal = copy->data[18] == 2;
    store_kit_put(kit.file, copy);
    store_kit_put(wal, log);
    unlink(shm);
    int rc = journal_kit_look(kit.file, BRC_OPEN_READONLY, &kit.err);
    if (in_wal) {
        ck_assert_int_eq(rc, BRC_ECORRUPT);
        ck_assert_ptr_nonnull(strstr(kit.err.message, "another state"));
        OK(journal_kit_look(kit.file, BRC_OPEN_NO_RECOVER, &kit.err));
    } else {
        ck_assert_msg(rc == BRC_OK, "%s", kit.err.message);
    }
    KIT_TRUE(store_kit_same(kit.file, copy));
    KIT_TRUE(store_kit_same(wal, log));
}

CASE("left_log", .setup = log_setup, .teardown = log_teardown, .timeout = 120);

LOOP(copies_put_over_a_file_with_a_left_log, 0, 3)
{
    brc_buf copies[STATES];
    make_copies(copies);
    leave_changes("left", 1 + _i, 1);
    brc_buf own = store_kit_read(kit.file), log = store_kit_read(wal);
    for (int i = 0; i < STATES; i++)
        copy_is_whole(&copies[i], &log);
    store_kit_put(kit.file, &own);
    must_show("left");
    for (int i = 0; i < STATES; i++)
        brc_buf_dispose(&copies[i]);
    brc_buf_dispose(&own);
    brc_buf_dispose(&log);
}

/* The pages of the log, as it has them last, go into the file one by one. */
TEST(a_copy_of_any_moment_of_copying_back_is_read)
{
    leave_changes("left", 3, 1);
    brc_buf file = store_kit_read(kit.file), log = store_kit_read(wal);
    uint32_t copied = 0;
    for (uint32_t number = 1; number <= file.len / BRC_PAGE_SIZE; number++) {
        const size_t page = newest_page(&log, number);
        if (page == 0)
            continue;
        memcpy(file.data + (size_t)(number - 1) * BRC_PAGE_SIZE, log.data + page, BRC_PAGE_SIZE);
        store_kit_put(kit.file, &file);
        store_kit_put(wal, &log);
        unlink(shm);
        must_show("left");
        copied++;
    }
    ck_assert_uint_gt(copied, 2);
    brc_buf_dispose(&file);
    brc_buf_dispose(&log);
}

/* ---- a page of `meta` that is half copied back -------------------------------- */

enum { SECTOR = 512 };

/* So full that a value which becomes longer moves the others. */
static void fill_meta(void)
{
    char value[3501];
    memset(value, 'v', sizeof(value) - 1);
    value[sizeof(value) - 1] = '\0';
    OK(store_kit_try(&kit, 0, -1));
    OK(brc_store_begin(kit.store, &kit.err));
    OK(brc_meta_put(kit.store, "config.a", value, 3500, 1, &kit.err));
    OK(brc_meta_put(kit.store, "config.test", value, 3500, 1, &kit.err));
    OK(brc_meta_put(kit.store, "config.z", value, 3500, 1, &kit.err));
    OK(brc_meta_put(kit.store, "zz", value, 3500, 1, &kit.err));
    OK(brc_store_end(kit.store, 1, &kit.err));
    store_kit_close(&kit);
}

LOOP(a_page_of_meta_that_is_half_copied_back, 0, 6)
{
    char value[3900] = "";
    static const size_t lengths[] = {0, 1, 6, 60, 3600, 3899};
    if (lengths[_i] > 1000)
        fill_meta();
    memset(value, 'x', lengths[_i]);
    const uint32_t number = (uint32_t)store_kit_ask(
        &kit, "SELECT rootpage FROM sqlite_schema WHERE name='meta'");
    leave_changes(value, 2, 0);
    brc_buf file = store_kit_read(kit.file), log = store_kit_read(wal);
    const size_t page = newest_page(&log, number), at = (size_t)(number - 1) * BRC_PAGE_SIZE;
    ck_assert_uint_ne(page, 0);
    for (size_t n = 0; n <= BRC_PAGE_SIZE; n += SECTOR) { /* the beginning is new, or the end */
        for (int end = 0; end < 2; end++) {
            brc_buf torn = BRC_BUF_INIT;
            OK(brc_buf_append(&torn, file.data, file.len, &kit.err));
            memcpy(torn.data + at + (end ? n : 0), log.data + page + (end ? n : 0),
                   end ? BRC_PAGE_SIZE - n : n);
            store_kit_put(kit.file, &torn);
            store_kit_put(wal, &log);
            unlink(shm);
            must_show(value);
            brc_buf_dispose(&torn);
        }
    }
    brc_buf_dispose(&file);
    brc_buf_dispose(&log);
}

/* Pointers to the cells of a leaf; the one whose key this is. */
static size_t cell_of(const uint8_t *page, const char *key)
{
    const size_t cells = (size_t)page[3] << 8 | page[4];
    for (size_t i = 0; i < cells; i++) {
        const uint8_t *cell = page + ((size_t)page[8 + 2 * i] << 8 | page[9 + 2 * i]);
        for (size_t skip = 1; skip < 12; skip++)
            if (memcmp(cell + skip, key, strlen(key)) == 0)
                return i;
    }
    ck_abort_msg("there is no %s", key);
    return 0;
}

/* In the file the wish is not found, though all else is as it was: another row is in its place, or
 * the rows are in no order. The log has all of it. */
LOOP(a_wish_that_a_torn_page_hides_is_in_the_log, 0, 2)
{
    const uint32_t number = (uint32_t)store_kit_ask(
        &kit, "SELECT rootpage FROM sqlite_schema WHERE name='meta'");
    leave_changes("left", 2, 0);
    brc_buf file = store_kit_read(kit.file);
    uint8_t *page = file.data + (size_t)(number - 1) * BRC_PAGE_SIZE, pointer[2];
    const size_t i = cell_of(page, "journal");
    ck_assert_uint_gt(i, 0);
    if (_i == 0) {
        uint8_t *cell = page + ((size_t)page[8 + 2 * i] << 8 | page[9 + 2 * i]);
        while (memcmp(cell, "journal", 7) != 0)
            cell++;
        cell[6] = 'k';
    } else {
        memcpy(pointer, page + 8, 2);
        memcpy(page + 8, page + 8 + 2 * i, 2);
        memcpy(page + 8 + 2 * i, pointer, 2);
    }
    store_kit_put(kit.file, &file);
    must_show("left");
    brc_buf_dispose(&file);
}
