/* Waiting for the lock that a transaction needs. */
#include "db.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../base/buf.h"
#include "../base/hash.h"
#include "../base/process.h"

/* ==== lock wait ================================ */

/* Returns a time up to `most`, evenly distributed: xorshift. */
static int64_t random_pause_ns(brc_store *store, int64_t most)
{
    uint64_t x = store->jitter;
    if (x == 0)
        x = (uint64_t)brc_monotonic_ns() ^ (uint64_t)(uintptr_t)store << 20 ^ 1;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    store->jitter = x;
    return (int64_t)(x % (uint64_t)most) + 1;
}

/* Returns the longest pause before the next try. The lock goes to a connection that asks
 * while it is free, and a busy writer frees it only for moments. So all ask at random times,
 * and a connection that has waited asks more often than one that has just come. During a
 * long transaction all ask less often. */
static int64_t longest_pause_ns(int64_t waited)
{
    enum { US = 1000, MS = 1000 * US };
    return waited < 20 * (int64_t)MS ? 2 * MS : waited < 3000 * (int64_t)MS ? 500 * US : 5 * MS;
}

static void pause_ns(int64_t ns)
{
    nanosleep(&(struct timespec){ns / 1000000000, ns % 1000000000}, NULL);
}

void brc_pause_at_random(brc_store *store, int64_t most_ns)
{
    pause_ns(random_pause_ns(store, most_ns));
}

/* A connection that has just committed asks again first and would get the lock each
 * time. If other writers were met recently, gives them a moment to take it. */
void brc_wait_turn(brc_store *store)
{
    enum { LATELY = 2000000000, MOMENT = 1000000 };
    if (store->crowded_at == 0)
        return;
    int64_t now = brc_monotonic_ns();
    if (now - store->crowded_at < LATELY && now - store->committed_at < MOMENT)
        pause_ns(MOMENT / 2 + random_pause_ns(store, MOMENT));
}

int brc_db_busy(void *ctx, int tries)
{
    brc_store *store = ctx;
    int64_t now = brc_monotonic_ns(), left;
    store->crowded_at = now;
    if (tries == 0)
        store->wait_since = now;
    left = store->wait_ms * INT64_C(1000000) - (now - store->wait_since);
    if (left <= 0 || atomic_load(&store->interrupted)) {
        brc_vfs_recall(store->vfs);
        return 0;
    }
    /* The wait is announced each time: to begin again, SQLite releases all its locks, and this one
     * too. */
    brc_vfs_announce(store->vfs);
    int64_t pause = random_pause_ns(store, longest_pause_ns(now - store->wait_since));
    if (pause > left)
        pause = left;
    pause_ns(pause);
    return 1;
}

void brc_wait_committed(brc_store *store)
{
    if (store->crowded_at != 0)
        store->committed_at = brc_monotonic_ns();
}

/* ==== row sum ================================ */

/*
 * The sum covers the table's name, then for each column
 *
 *   NULL     u8 0
 *   INTEGER  u8 1, i64be
 *   REAL     u8 2, the IEEE 754 bits as u64be
 *   TEXT     u8 3, u64be bytes, the bytes in UTF-8
 *   BLOB     u8 4, u64be bytes, the bytes
 *
 * The table's name is a TEXT. The sum is the low 32 bits of the XXH3-64, as a signed number:
 * four bytes in the row.
 */
static int sum_number(brc_buf *out, int tag, uint64_t value)
{
    uint8_t bytes[9] = { (uint8_t)tag };
    for (int i = 0; i < 8; i++)
        bytes[1 + i] = (uint8_t)(value >> (56 - 8 * i));
    return brc_buf_append(out, bytes, sizeof(bytes), NULL);
}

static int sum_bytes(brc_buf *out, int tag, const void *data, size_t len)
{
    int rc = sum_number(out, tag, len);
    return rc == BRC_OK && len > 0 ? brc_buf_append(out, data, len, NULL) : rc;
}

static int sum_real(brc_buf *out, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return sum_number(out, 2, bits);
}

static int sum_value(brc_buf *out, sqlite3_value *value)
{
    switch (sqlite3_value_type(value)) {
    case SQLITE_INTEGER:
        return sum_number(out, 1, (uint64_t)sqlite3_value_int64(value));
    case SQLITE_FLOAT:
        return sum_real(out, sqlite3_value_double(value));
    case SQLITE_TEXT: { /* the text first: it may have to be converted */
        const void *text = sqlite3_value_text(value);
        return text ? sum_bytes(out, 3, text, (size_t)sqlite3_value_bytes(value)) : BRC_ENOMEM;
    }
    case SQLITE_BLOB: {
        const void *blob = sqlite3_value_blob(value);
        return sum_bytes(out, 4, blob, (size_t)sqlite3_value_bytes(value));
    }
    default:
        return brc_buf_append(out, "", 1, NULL);
    }
}

static void row_sum(sqlite3_context *context, int n, sqlite3_value **values)
{
    brc_buf *row = sqlite3_user_data(context);
    row->len = 0;
    for (int i = 0; i < n; i++)
        if (sum_value(row, values[i]) < 0) {
            sqlite3_result_error_nomem(context);
            return;
        }
    sqlite3_result_int64(context, (int32_t)(uint32_t)brc_hash_bytes(row->data, row->len));
}

static void row_free(void *row)
{
    brc_buf_dispose(row);
    free(row);
}

int brc_row_sum_register(sqlite3 *db)
{
    brc_buf *row = calloc(1, sizeof(*row));
    if (!row)
        return SQLITE_NOMEM;
    return sqlite3_create_function_v2(db, "row_sum", -1,
                                      SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_DIRECTONLY, row,
                                      row_sum, NULL, NULL, row_free);
}

/* ==== db ================================ */

/*
 * The connection: its statements, and SQLite's errors in our words. Opening is in open.c,
 * transactions are in transaction.c.
 */

/* ---- errors ------------------------------------------------------------------ */

static int db_code(int primary)
{
    switch (primary) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return BRC_EBUSY;
    case SQLITE_CORRUPT:
    case SQLITE_CONSTRAINT: /* only rows that are damaged lead to such a row */
    case SQLITE_MISMATCH:
        return BRC_ECORRUPT;
    case SQLITE_NOTADB:
        return BRC_EFORMAT;
    case SQLITE_FULL:
        return BRC_ENOSPACE;
    case SQLITE_READONLY:
    case SQLITE_PERM:
        return BRC_EREADONLY;
    case SQLITE_NOMEM:
        return BRC_ENOMEM;
    case SQLITE_INTERRUPT:
        return BRC_EINTERRUPT;
    case SQLITE_TOOBIG:
        return BRC_ELIMIT;
    default:
        return BRC_EIO;
    }
}

/* Fails with the remedy for damage: fsck, but not while fsck itself runs or if the file
 * cannot even be opened. */
static void fail_damaged(brc_store *store, const char *what, brc_error *err)
{
    uint64_t is, should_be;
    if (brc_vfs_is_cut_short(store->vfs, &is, &should_be))
        brc_fail(err, BRC_ECORRUPT,
                 "%s is truncated: it has %llu bytes and its header says %llu; restore it from a "
                 "copy", store->path, (unsigned long long)is, (unsigned long long)should_be);
    else if (!store->is_open)
        brc_fail(err, BRC_ECORRUPT,
                 "%s is damaged (%s) and cannot be opened: restore it from a backup", store->path,
                 what);
    else if (store->is_checked)
        brc_fail(err, BRC_ECORRUPT, "%s is damaged (%s): restore it from a backup", store->path,
                 what);
    else
        brc_fail(err, BRC_ECORRUPT, "%s is damaged (%s): run 'breccia fsck %s'", store->path, what,
                 store->path);
}

static void fail_readonly(const char *path, int sqlite_rc, brc_error *err)
{
    if (sqlite_rc == SQLITE_READONLY_ROLLBACK)
        brc_fail(err, BRC_EREADONLY,
                 "%s was left in the middle of a write, which must be undone, and you may not "
                 "write to the file: open it as a user who may, or read it as it is with "
                 "--no-recover", path);
    else if (sqlite_rc == SQLITE_READONLY_DBMOVED)
        brc_fail(err, BRC_EREADONLY,
                 "%s was moved, or another file took its place, after it was opened: open it again "
                 "where it is now", path);
    else
        brc_fail(err, BRC_EREADONLY, "%s cannot be written: %s", path, sqlite3_errstr(sqlite_rc));
}

/* Returns 1 if a table has no number left: AUTOINCREMENT then fails with SQLITE_FULL, too. Only
 * damage uses the numbers up. */
static int numbers_used_up(brc_store *store)
{
    sqlite3_stmt *st;
    if (store->db == NULL ||
        sqlite3_prepare_v2(store->db,
                           "SELECT 1 FROM (SELECT max(seq) AS n FROM sqlite_sequence UNION ALL"
                           " SELECT max(seq) FROM blob UNION ALL SELECT max(seq) FROM oplog"
                           " UNION ALL SELECT max(id) FROM draft UNION ALL SELECT max(node)"
                           " FROM draft_node) WHERE n>=9223372036854775806 LIMIT 1",
                           -1, &st, NULL) != SQLITE_OK)
        return 0;
    int rc = sqlite3_step(st);
    sqlite3_finalize(st);
    return rc == SQLITE_ROW;
}

/* Fails with SQLite's error, but tells too many open files from a failing disk: they have another
 * remedy. */
static void fail_other(const brc_store *store, int sqlite_rc, const char *what, brc_error *err)
{
    const int code = db_code(sqlite_rc & 0xff), is_open = (sqlite_rc & 0xff) == SQLITE_CANTOPEN;
    const int system = is_open && store->db != NULL ? sqlite3_system_errno(store->db) : 0;
    if (system == EMFILE || system == ENFILE)
        (void)brc_fail_os(err, system, "cannot open", store->path);
    else
        brc_fail(err, code, "%s: cannot %s: %s", store->path, what,
                 store->db != NULL ? sqlite3_errmsg(store->db) : sqlite3_errstr(sqlite_rc));
}

int brc_fail_db(brc_store *store, int sqlite_rc, const char *what, brc_error *err)
{
    int code = sqlite_rc == BRC_VFS_REFUSED ? brc_vfs_refusal(store->vfs, err) : BRC_OK;
    int extended = store->db != NULL ? sqlite3_extended_errcode(store->db) : sqlite_rc;
    const char *path = store->path;

    if (code != BRC_OK)
        return code;
    code = db_code(sqlite_rc & 0xff);
    if (sqlite_rc == SQLITE_CONSTRAINT_COMMITHOOK)
        return brc_fail(err, BRC_ENOMEM,
                        "%s: memory ran out while a step was undone, so the whole change was "
                        "undone; try again",
                        path);
    if (code == BRC_ENOSPACE && numbers_used_up(store))
        return brc_fail(err, BRC_ECORRUPT,
                        "%s is damaged: the numbers of its rows are used up; run 'breccia fsck'",
                        path);
    if (code == BRC_EBUSY)
        brc_fail(err, code, "%s is in use by another process (waited %g s); try again, or wait "
                            "longer with --wait", path, store->wait_ms / 1000.0);
    else if (code == BRC_ENOSPACE)
        brc_fail(err, code, "no space is left for %s: free some and try again; nothing was changed",
                 path);
    else if (code == BRC_EFORMAT)
        brc_fail(err, code, BRC_NOT_A_REPOSITORY, path);
    else if (code == BRC_EREADONLY)
        fail_readonly(path, sqlite_rc, err);
    else if (code == BRC_ECORRUPT)
        fail_damaged(store, what, err);
    else if (code == BRC_EINTERRUPT)
        brc_fail(err, code, "interrupted; %s is as it was", path);
    else if (code == BRC_ENOMEM)
        brc_nomem(err);
    else if (code == BRC_ELIMIT)
        brc_fail(err, code,
                 "%s: one stored value is larger than SQLite's limit; use smaller chunks", path);
    else
        fail_other(store, sqlite_rc, what, err);
    brc_error_source(err, "sqlite", extended);
    return code;
}

/* ---- statements ---------------------------------------------------------------- */

/* A child has its parent's memory, but not its parent's locks: any change that it made to the file
 * could destroy the parent's. */
int brc_store_check_process(const brc_store *store, brc_error *err)
{
    if (!brc_store_is_forked(store))
        return BRC_OK;
    return brc_fail(err, BRC_EMISUSE,
                    "%s was opened before fork(), by the parent process: open it again",
                    store->path);
}

int brc_store_is_forked(const brc_store *store)
{
    return store->process != getpid();
}

int brc_bulk_resume(brc_store *store, sqlite3_stmt *stmt, brc_error *err)
{
    if (!store->bulk.on || store->bulk.is_open || store->write_depth == 0 ||
        (stmt != NULL && sqlite3_stmt_readonly(stmt)))
        return BRC_OK;
    return store->bulk.open(store, err);
}

int brc_stmt(brc_store *store, const char *sql, sqlite3_stmt **out, brc_error *err)
{
    *out = NULL;
    BRC_TRY(brc_store_check_process(store, err));
    BRC_TRY(brc_read_resume(store, err));
    for (size_t i = 0; i < store->nstatements; i++) {
        if (store->statements[i].sql == sql) {
            *out = store->statements[i].stmt;
            sqlite3_reset(*out);
            sqlite3_clear_bindings(*out);
            return brc_bulk_resume(store, *out, err);
        }
    }
    BRC_TRY(brc_grow_array((void **)&store->statements, &store->statements_cap,
                           store->nstatements + 1, sizeof(*store->statements), err));
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v3(store->db, sql, -1, SQLITE_PREPARE_PERSISTENT, &stmt, NULL);
    if (rc != SQLITE_OK)
        return brc_fail_db(store, rc, "prepare a statement", err);
    store->statements[store->nstatements].sql = sql;
    store->statements[store->nstatements++].stmt = stmt;
    *out = stmt;
    return brc_bulk_resume(store, stmt, err);
}

/* Every loop over rows calls this function, so that each can be interrupted. */
int brc_step(brc_store *store, sqlite3_stmt *stmt, brc_error *err)
{
    int stop = brc_store_check_interrupt(store, err);
    if (stop < 0) {
        sqlite3_reset(stmt);
        return stop;
    }
    int rc = sqlite3_step(stmt);
    if (rc == SQLITE_ROW)
        return 1;
    if (rc == SQLITE_DONE) {
        sqlite3_reset(stmt);
        return 0;
    }
    int code = brc_fail_db(store, rc, "read or write it", err);
    sqlite3_reset(stmt);
    return code;
}

int brc_run(brc_store *store, sqlite3_stmt *stmt, brc_error *err)
{
    int rc = brc_step(store, stmt, err);
    if (rc > 0)
        sqlite3_reset(stmt);
    return rc < 0 ? rc : BRC_OK;
}

int brc_ask_any(brc_store *store, sqlite3_stmt *stmt, int *any, brc_error *err)
{
    const int rc = brc_step(store, stmt, err);
    *any = rc > 0;
    sqlite3_reset(stmt);
    return rc < 0 ? rc : BRC_OK;
}

int brc_ask_number(brc_store *store, sqlite3_stmt *stmt, int64_t *out, brc_error *err)
{
    const int rc = brc_step(store, stmt, err);
    *out = rc > 0 ? sqlite3_column_int64(stmt, 0) : 0;
    sqlite3_reset(stmt);
    return rc < 0 ? rc : BRC_OK;
}

int64_t brc_store_changes(const brc_store *store)
{
    return (int64_t)((unsigned)sqlite3_total_changes(store->db) - (unsigned)store->changes_before);
}

/* If the schema has changed since a statement was prepared, sqlite3_step() undoes what the
 * statement has begun, prepares it again and runs it. If memory runs out while it undoes that,
 * SQLite rolls the whole transaction back without a word, and runs the statement outside of it,
 * where it would be committed by itself. */
int brc_refuses_commit(void *store)
{
    return ((const brc_store *)store)->is_writing;
}

int brc_exec(brc_store *store, const char *sql, brc_error *err)
{
    BRC_TRY(brc_store_check_process(store, err));
    int rc = sqlite3_exec(store->db, sql, NULL, NULL, NULL);
    return rc == SQLITE_OK ? BRC_OK : brc_fail_db(store, rc, "read or write it", err);
}

/* ---- the transaction of a read ------------------------------------------------- */

void brc_end_leftover(brc_store *store)
{
    store->is_writing = 0;
    if (!sqlite3_get_autocommit(store->db))
        sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
}

int brc_read_resume(brc_store *store, brc_error *err)
{
    sqlite3_stmt *st;
    const int rests = store->bulk.on && store->write_depth > 0; /* as a paused read does */
    if (store->is_reading || store->bulk.is_open ||
        (!rests && (store->read_depth == 0 || store->write_depth > 0)))
        return BRC_OK;
    brc_end_leftover(store);
    store->is_reading = 1;
    store->reading_since = brc_monotonic_ns();
    int rc = brc_stmt(store, "BEGIN", &st, err);
    if (rc == BRC_OK)
        rc = brc_run(store, st, err);
    if (rc < 0)
        store->is_reading = 0;
    return rc;
}

/* ---- values -------------------------------------------------------------------- */

void brc_reader_close(brc_store *store)
{
    sqlite3_blob_close(store->reader);
    store->reader = NULL;
}

void brc_bind_id(brc_store *store, sqlite3_stmt *stmt, int column, const brc_oid *id)
{
    if (id == NULL)
        sqlite3_bind_null(stmt, column);
    else
        sqlite3_bind_blob(stmt, column, id->bytes, (int)store->id_len, SQLITE_STATIC);
}

int brc_bind_copy(brc_store *store, sqlite3_stmt *stmt, int column, int is_text, brc_span value,
                  brc_error *err)
{
    const void *data = value.len > 0 ? (const void *)value.data : "";
    int rc = is_text ? sqlite3_bind_text64(stmt, column, data, value.len, SQLITE_TRANSIENT,
                                           SQLITE_UTF8)
                     : sqlite3_bind_blob64(stmt, column, data, value.len, SQLITE_TRANSIENT);
    return rc == SQLITE_OK ? BRC_OK : brc_fail_db(store, rc, sqlite3_errmsg(store->db), err);
}

int brc_row_check(brc_store *store, sqlite3_stmt *stmt, int column, const char *what,
                  brc_error *err)
{
    if (sqlite3_column_int(stmt, column) == 1)
        return BRC_OK;
    return brc_fail(err, BRC_ECORRUPT,
                    "%s is damaged: the row of %s does not match its checksum; run 'breccia fsck'",
                    store->path, what);
}

int brc_row_text(brc_store *store, const char *sql, int64_t number, const char *what, brc_buf *out,
                 brc_error *err)
{
    sqlite3_stmt *st;
    char label[64];
    snprintf(label, sizeof(label), "%s %lld", what, (long long)number);
    BRC_TRY(brc_stmt(store, sql, &st, err));
    sqlite3_bind_int64(st, 1, number);
    int rc = brc_step(store, st, err);
    if (rc < 0)
        return rc;
    if (rc == 0)
        return brc_fail(err, BRC_ECORRUPT, "%s is damaged: %s is missing", store->path, label);
    const char *text = (const char *)sqlite3_column_text(st, 0);
    const size_t len = (size_t)sqlite3_column_bytes(st, 0);
    if (text == NULL || sqlite3_column_type(st, 0) != SQLITE_TEXT || strlen(text) != len)
        rc = brc_fail(err, BRC_ECORRUPT, "%s is damaged: %s is not text", store->path, label);
    else
        rc = sqlite3_column_count(st) > 1 ? brc_row_check(store, st, 1, label, err) : BRC_OK;
    if (rc == BRC_OK)
        rc = brc_buf_append(out, text, len, err);
    sqlite3_reset(st);
    return rc == BRC_OK ? brc_buf_terminate(out, err) : rc;
}

int brc_column_id(brc_store *store, sqlite3_stmt *stmt, int column, brc_oid *out, brc_error *err)
{
    memset(out, 0, sizeof(*out));
    if (sqlite3_column_type(stmt, column) != SQLITE_BLOB ||
        (size_t)sqlite3_column_bytes(stmt, column) != store->id_len)
        return brc_fail(err, BRC_ECORRUPT, "%s is damaged: an id is malformed", store->path);
    memcpy(out->bytes, sqlite3_column_blob(stmt, column), store->id_len);
    return BRC_OK;
}

/* ---- the page cache -------------------------------- */

static void store_page_cache(brc_store *store, int large)
{
    if (store->large_page_cache == large)
        return;
    sqlite3_exec(store->db, large ? BRC_PAGE_CACHE_MANY : BRC_PAGE_CACHE, NULL, NULL, NULL);
    store->large_page_cache = large;
}

/* Large objects go through a small page cache at the disk's speed, because its pages are
 * used again while they are hot. Many small objects are mostly rows of the hash index,
 * which use the index's pages in random order: these pages are better kept in memory. */
void brc_store_inserted(brc_store *store, uint64_t bytes)
{
    enum { MANY = 4096, SMALL = 16384 };
    store->inserted++;
    store->inserted_bytes += bytes;
    if (store->bulk.inserted + store->inserted >= MANY &&
        store->inserted_bytes / store->inserted <= SMALL)
        store_page_cache(store, 1);
}

/* Makes the page cache small again, except between two batches of a bulk write. */
void brc_page_cache_reset(brc_store *store)
{
    store->bulk.inserted = store->bulk.on ? store->bulk.inserted + store->inserted : 0;
    store->inserted = store->inserted_bytes = 0;
    if (!store->bulk.on)
        store_page_cache(store, store->walks > 0);
}

void brc_store_walk_begin(brc_store *store)
{
    store->walks++;
    store_page_cache(store, 1);
}

void brc_store_walk_end(brc_store *store)
{
    if (--store->walks == 0 && store->write_depth == 0 && !store->bulk.on)
        store_page_cache(store, 0);
}

/* ---- interruption --------------------------------------------------------- */

void brc_store_interrupt(brc_store *store)
{
    atomic_store(&store->interrupted, 1);
    sqlite3_interrupt(store->db);
}

void brc_store_interrupt_clear(brc_store *store)
{
    atomic_store(&store->interrupted, 0);
}

const atomic_int *brc_store_interrupted(const brc_store *store)
{
    return &store->interrupted;
}

int brc_store_check_interrupt(brc_store *store, brc_error *err)
{
    if (atomic_load(&store->interrupted))
        return brc_fail(err, BRC_EINTERRUPT, "interrupted; %s is as it was", store->path);
    return BRC_OK;
}
