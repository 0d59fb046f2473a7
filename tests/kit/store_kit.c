/* See store_kit.h. */
#include "store_kit.h"

#include <check.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../../src/base/file.h"
#include "../../src/history/commit.h"
#include "../../src/store/db.h"
#include "folder.h"
#include "own_rows.h"
#include "reserved.h"

#define KIT_NOW 1

static void kit_folder(store_kit *k, int where)
{
    memset(k, 0, sizeof(*k));
    folder_make(k->dir, sizeof(k->dir), where);
    snprintf(k->file, sizeof(k->file), "%s/test.brc", k->dir);
    KIT_OK(k, brc_registry_new(&k->reg, &k->err));
}

void store_kit_folder(store_kit *k)
{
    kit_folder(k, FOLDER_FAST);
}

int store_kit_try(store_kit *k, uint32_t flags, int wait_ms)
{
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    opts.flags = flags;
    opts.wait_ms = wait_ms;
    memset(&k->err, 0, sizeof(k->err));
    return brc_store_open(&k->store, k->file, &opts, k->reg, KIT_NOW, &k->err);
}

void store_kit_start(store_kit *k)
{
    store_kit_folder(k);
    KIT_OK(k, store_kit_try(k, BRC_OPEN_CREATE, 0));
}

void store_kit_start_big(store_kit *k)
{
    kit_folder(k, FOLDER_DISK);
    KIT_OK(k, store_kit_try(k, BRC_OPEN_CREATE, 0));
}

void store_kit_open(store_kit *k)
{
    KIT_OK(k, store_kit_try(k, 0, 0));
}

void store_kit_close(store_kit *k)
{
    brc_store_close(k->store);
    k->store = NULL;
}

void store_kit_reopen(store_kit *k)
{
    store_kit_close(k);
    store_kit_open(k);
}

void store_kit_stop(store_kit *k)
{
    store_kit_close(k);
    brc_registry_free(k->reg);
    brc_tree_remove(k->dir);
}

void store_kit_failed(int rc, int code, const char *words, const brc_error *err, const char *file,
                      int line)
{
    ck_assert_msg(rc == code, "%s:%d: %d (%s), not %d (%s): %s", file, line, rc, brc_strerror(rc),
                  code, brc_strerror(code), rc < 0 ? err->message : "");
    ck_assert_msg(err->code == code, "%s:%d: the error says %d", file, line, err->code);
    ck_assert_msg(strstr(err->message, words) != NULL, "%s:%d: \"%s\" lacks \"%s\"", file, line,
                  err->message, words);
}

static sqlite3 *kit_connect(const store_kit *k)
{
    sqlite3 *db = NULL;
    ck_assert_int_eq(sqlite3_open(k->file, &db), SQLITE_OK);
    ck_assert_int_eq(brc_row_sum_register(db), SQLITE_OK);
    sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 0, NULL);
    return db;
}

brc_oid store_kit_commit(store_kit *k, int64_t time_us, const char *message,
                         const brc_oid *parents, size_t n)
{
    brc_commit c = { .author = "A. Uthor <a@example.org>", .message = message, .time_us = time_us,
                     .parents = parents, .nparents = n };
    KIT_OK(k, brc_commit_put(k->store, &c, NULL, &k->err));
    return c.id;
}

int64_t store_kit_draft(store_kit *k, const char *branch, const brc_oid *base)
{
    char name[80];
    brc_draft_row row = { .branch = name };
    int64_t id;
    snprintf(name, sizeof(name), "%s", branch);
    row.draft.kind = BRC_DRAFT_SHARED;
    row.draft.has_base = row.draft.has_tip = base != NULL;
    if (base != NULL)
        row.draft.base = row.draft.tip = *base;
    KIT_OK(k, brc_draft_start(k->store, &row, &id, &k->err));
    return id;
}

static void kit_change(const store_kit *k, const char *sql, int own)
{
    sqlite3 *db = kit_connect(k);
    char *message = NULL;
    if (own)
        ck_assert_msg(own_rows_for(db, sql) == SQLITE_OK, "%s", sqlite3_errmsg(db));
    ck_assert_msg(reserved_make(db, sql) == SQLITE_OK, "%s", sqlite3_errmsg(db));
    int rc = sqlite3_exec(db, sql, NULL, NULL, &message);
    ck_assert_msg(rc == SQLITE_OK, "%s: %s", sql, message);
    sqlite3_close(db);
}

void store_kit_sql(const store_kit *k, const char *sql)
{
    kit_change(k, sql, 1);
}

void store_kit_sql_shared(const store_kit *k, const char *sql)
{
    kit_change(k, sql, 0);
}

int64_t store_kit_ask(const store_kit *k, const char *sql)
{
    sqlite3 *db = kit_connect(k);
    sqlite3_stmt *st = NULL;
    ck_assert_msg(reserved_stand_in(db) == SQLITE_OK, "%s", sqlite3_errmsg(db));
    int rc = sqlite3_prepare_v2(db, sql, -1, &st, NULL);
    ck_assert_msg(rc == SQLITE_OK, "%s: %s", sql, sqlite3_errmsg(db));
    ck_assert_int_eq(sqlite3_step(st), SQLITE_ROW);
    int64_t value = sqlite3_column_int64(st, 0);
    sqlite3_finalize(st);
    sqlite3_close(db);
    return value;
}

brc_buf store_kit_read(const char *file)
{
    brc_buf out = BRC_BUF_INIT;
    ck_assert_int_eq(brc_file_read(&out, file, NULL), BRC_OK);
    return out;
}

brc_buf store_kit_bytes(const store_kit *k)
{
    return store_kit_read(k->file);
}

void store_kit_put(const char *file, const brc_buf *content)
{
    unlink(file);
    ck_assert_int_eq(brc_file_write(file, content->data, content->len, NULL), BRC_OK);
}

int store_kit_same(const char *file, const brc_buf *want)
{
    brc_buf now = store_kit_read(file);
    int same = now.len == want->len && (now.len == 0 || memcmp(now.data, want->data, now.len) == 0);
    brc_buf_dispose(&now);
    return same;
}

static const char *const beside[] = { "-journal", "-wal", "-shm" };
enum { BESIDE = sizeof(beside) / sizeof(beside[0]) };

void store_kit_put_alone(const char *file, const brc_buf *content)
{
    char name[160];
    for (size_t i = 0; i < BESIDE; i++) {
        snprintf(name, sizeof(name), "%s%s", file, beside[i]);
        unlink(name);
    }
    store_kit_put(file, content);
}

void store_kit_copy(const char *from, const char *to)
{
    brc_buf all = store_kit_read(from);
    store_kit_put_alone(to, &all);
    brc_buf_dispose(&all);
}

int store_kit_holds(const char *file, const void *bytes, size_t len)
{
    char name[160];
    int found = 0;
    for (size_t i = 0; i <= BESIDE; i++) {
        snprintf(name, sizeof(name), "%s%s", file, i < BESIDE ? beside[i] : "");
        if (brc_file_kind(name) == 0)
            continue;
        brc_buf all = store_kit_read(name);
        found |= all.len > 0 && memmem(all.data, all.len, bytes, len) != NULL;
        brc_buf_dispose(&all);
    }
    return found;
}

brc_oid store_kit_id(uint8_t seed)
{
    brc_oid id;
    memset(&id, 0, sizeof(id));
    memset(id.bytes, seed, 16);
    return id;
}

uint64_t store_kit_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

uint64_t store_kit_below(uint64_t *state, uint64_t n)
{
    return store_kit_random(state) % n;
}
