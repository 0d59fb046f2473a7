/*
 * The connection, with the precautions that a file from a stranger needs.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "db.h"
#include "derived.sql.h"
#include "durable.sql.h"
#include "reserved.sql.h"

/* ==== connect ================================ */

static void db_harden(sqlite3 *db)
{
    static const int off[] = {SQLITE_DBCONFIG_TRUSTED_SCHEMA, SQLITE_DBCONFIG_ENABLE_TRIGGER,
                              SQLITE_DBCONFIG_ENABLE_VIEW, SQLITE_DBCONFIG_DQS_DDL,
                              SQLITE_DBCONFIG_DQS_DML, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION};
    for (size_t i = 0; i < sizeof(off) / sizeof(off[0]); i++)
        sqlite3_db_config(db, off[i], 0, NULL);
    sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_limit(db, SQLITE_LIMIT_SQL_LENGTH, 65536);
    sqlite3_limit(db, SQLITE_LIMIT_EXPR_DEPTH, 100);
    sqlite3_limit(db, SQLITE_LIMIT_ATTACHED, 0);
    sqlite3_limit(db, SQLITE_LIMIT_TRIGGER_DEPTH, 1);
    sqlite3_limit(db, SQLITE_LIMIT_WORKER_THREADS, 0);
    sqlite3_limit(db, SQLITE_LIMIT_LENGTH, 0x7fffffff);
}

/* Applies the settings that must hold before the first page is read. FAST: deleted bytes are
 * overwritten if their page is written anyway, so gc can remove all traces. */
static int db_settings(brc_store *store, brc_error *err)
{
    return brc_exec(store,
                    "PRAGMA mmap_size=0; PRAGMA cell_size_check=ON; PRAGMA secure_delete=FAST;"
                    "PRAGMA temp_store=MEMORY;" BRC_SPILL,
                    err);
}

int brc_db_settle(brc_store *store, brc_error *err)
{
    /* Nodes have a cache of their own, so SQLite's page cache can be small. EXTRA:
     * with FULL the folder is not synced when the journal is deleted, and a journal
     * that reappears after a loss of power would undo an acknowledged commit. */
    return brc_exec(store, "PRAGMA synchronous=EXTRA;" BRC_PAGE_CACHE, err);
}

static int note_log(void *ctx, sqlite3 *db, const char *name, int pages)
{
    (void)db, (void)name;
    ((brc_store *)ctx)->log_pages = pages;
    return SQLITE_OK;
}

int brc_db_connect(brc_store *store, int flags, unsigned how, brc_error *err)
{
    int rc = brc_vfs_connect(store->vfs, &store->db, flags, how);
    if (rc != SQLITE_OK)
        return brc_fail_db(store, rc, "open it", err);
    sqlite3_extended_result_codes(store->db, 1);
    db_harden(store->db);
    rc = brc_row_sum_register(store->db);
    if (rc != SQLITE_OK)
        return brc_fail_db(store, rc, "open it", err);
    sqlite3_busy_handler(store->db, brc_db_busy, store);
    sqlite3_commit_hook(store->db, brc_refuses_commit, store);
    sqlite3_wal_hook(store->db, note_log, store); /* in place of SQLite's own checkpoints */
    store->log_pages = 0;
    brc_schema_forget(store);
    return db_settings(store, err);
}

void brc_db_disconnect(brc_store *store)
{
    brc_reader_close(store);
    for (size_t i = 0; i < store->nstatements; i++)
        sqlite3_finalize(store->statements[i].stmt);
    free(store->statements);
    store->statements = NULL;
    store->nstatements = store->statements_cap = 0;
    sqlite3_close(store->db);
    store->db = NULL;
}

/* ==== schema ================================ */

/*
 * The schema: made from the embedded text, and compared with it on every opening.
 *
 * SQLite runs code in a file's schema (views, triggers, generated columns), so a file
 * is refused unless its schema is breccia's, byte for byte. SQLite keeps
 * the text of a CREATE statement as it was given, without the semicolon. Reserved tables
 * may be missing, and a new file has none of them.
 */

static const struct {
    const char *text;
    int is_made; /* whether a new file gets these tables */
} schema_texts[] = {{brc_sql_durable, 1}, {brc_sql_derived, 1}, {brc_sql_reserved, 0}};

/* Finds the next statement at or after *at: from a line that starts with CREATE to the
 * semicolon that ends a line. Returns 0 if there is none. */
static int schema_next(const char **at, const char **start, size_t *len)
{
    const char *p = *at;
    while (strncmp(p, "CREATE ", 7) != 0) {
        p = strchr(p, '\n');
        if (p == NULL)
            return 0;
        p++;
    }
    const char *end = strchr(p, ';');
    while (end != NULL && end[1] != '\n')
        end = strchr(end + 1, ';');
    if (end == NULL)
        return 0;
    *start = p;
    *len = (size_t)(end - p);
    *at = end + 2;
    return 1;
}

int brc_schema_create(brc_store *store, brc_error *err)
{
    char head[128];
    snprintf(head, sizeof(head), "PRAGMA application_id=%d; PRAGMA user_version=%d;",
             BRC_APPLICATION_ID, BRC_FORMAT);
    BRC_TRY(brc_exec(store, head, err));
    for (size_t i = 0; i < sizeof(schema_texts) / sizeof(schema_texts[0]); i++)
        if (schema_texts[i].is_made)
            BRC_TRY(brc_exec(store, schema_texts[i].text, err));
    return BRC_OK;
}

static int schema_is_unsafe(brc_store *store, const char *name, brc_error *err)
{
    return brc_fail(err, BRC_EFORMAT,
                    "%s is not a safe repository: its schema differs from that of this format at "
                    "'%s'; it was not opened",
                    store->path, name);
}

#define STATEMENTS_MAX 64

typedef struct schema_statement {
    const char *sql;
    size_t len;
    int is_made, met; /* met: the file has the table */
} schema_statement;

static size_t schema_list(schema_statement list[STATEMENTS_MAX])
{
    size_t n = 0;
    for (size_t i = 0; i < sizeof(schema_texts) / sizeof(schema_texts[0]); i++) {
        const char *at = schema_texts[i].text;
        while (n < STATEMENTS_MAX && schema_next(&at, &list[n].sql, &list[n].len)) {
            list[n].is_made = schema_texts[i].is_made;
            list[n++].met = 0;
        }
    }
    return n;
}

/* Returns 1 if the text is that of a statement that was not met yet. */
static int schema_meets(schema_statement *list, size_t n, const char *sql, size_t len)
{
    for (size_t i = 0; i < n; i++)
        if (!list[i].met && list[i].len == len && memcmp(list[i].sql, sql, len) == 0)
            return list[i].met = 1;
    return 0;
}

static int schema_pragma(brc_store *store, const char *sql, int64_t *out, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store, sql, &st, err));
    return brc_ask_number(store, st, out, err);
}

/* ---- reserved tables -------------------------------- */

static const char *const reserved_names[] = {"delta", "backend", "place", "boundary", "draft_key",
                                             "draft_move", "conflict", "pin", "gc", "gc_kept",
                                             "encoded", "hole", "chunk_stats"};

/* Returns the bit of a reserved table; 0 for any other table. */
static uint32_t reserved_bit(const char *name)
{
    for (size_t i = 0; name != NULL && i < sizeof(reserved_names) / sizeof(reserved_names[0]); i++)
        if (strcmp(reserved_names[i], name) == 0)
            return UINT32_C(1) << i;
    return 0;
}

static int schema_version(brc_store *store, int64_t *out, brc_error *err)
{
    return schema_pragma(store, "PRAGMA schema_version", out, err);
}

static int reserved_find(brc_store *store, uint32_t *there, brc_error *err)
{
    int rc;
    sqlite3_stmt *st;
    *there = 0;
    BRC_TRY(brc_stmt(store, "SELECT name FROM sqlite_schema", &st, err));
    while ((rc = brc_step(store, st, err)) > 0)
        *there |= reserved_bit((const char *)sqlite3_column_text(st, 0));
    return rc;
}

/* Tables are created and never dropped, except `hole`, so the schema is read again only if its
 * version has changed. The version is read first, so that it is never newer than the tables
 * found. */
int brc_schema_has(brc_store *store, const char *table, int *there, brc_error *err)
{
    int64_t version;
    const uint32_t bit = reserved_bit(table);
    if ((store->reserved.there & bit) == 0 || bit == reserved_bit("hole")) {
        BRC_TRY(schema_version(store, &version, err));
        if (version != store->reserved.version)
            BRC_TRY(reserved_find(store, &store->reserved.there, err));
        store->reserved.version = version;
    }
    *there = (store->reserved.there & bit) != 0;
    return BRC_OK;
}

/* Returns 1 for a statement that creates this table, or an index of it whose name begins with the
 * table's. */
static int creates(const char *sql, const char *table)
{
    static const char a_table[] = "CREATE TABLE ", an_index[] = "CREATE INDEX ";
    const int is_index = strncmp(sql, an_index, sizeof(an_index) - 1) == 0;
    const size_t len = strlen(table);
    if (!is_index && strncmp(sql, a_table, sizeof(a_table) - 1) != 0)
        return 0;
    sql += is_index ? sizeof(an_index) - 1 : sizeof(a_table) - 1;
    return strncmp(sql, table, len) == 0 && sql[len] == (is_index ? '_' : '(');
}

/* Appends the statements that create this table, if it is in this part of the schema. */
static int schema_append(brc_buf *out, const char *at, const char *table, brc_error *err)
{
    const char *sql;
    size_t len;
    int rc = BRC_OK;
    while (rc == BRC_OK && schema_next(&at, &sql, &len)) {
        if (!creates(sql, table))
            continue;
        rc = brc_buf_append(out, sql, len, err);
        if (rc == BRC_OK)
            rc = brc_buf_byte(out, ';', err);
    }
    return rc;
}

int brc_schema_add(brc_store *store, const char *table, brc_error *err)
{
    brc_buf text = BRC_BUF_INIT;
    int rc = BRC_OK;
    for (size_t i = 0; i < sizeof(schema_texts) / sizeof(schema_texts[0]) && rc == BRC_OK; i++)
        rc = schema_append(&text, schema_texts[i].text, table, err);
    if (rc == BRC_OK)
        rc = brc_buf_terminate(&text, err);
    if (rc == BRC_OK)
        rc = brc_bulk_resume(store, NULL, err);
    if (rc == BRC_OK)
        rc = brc_exec(store, (const char *)text.data, err);
    brc_buf_dispose(&text);
    return rc;
}

int brc_schema_need(brc_store *store, const char *table, brc_error *err)
{
    int there;
    BRC_TRY(brc_schema_has(store, table, &there, err));
    return there ? BRC_OK : brc_schema_add(store, table, err);
}

int brc_schema_is_old(const brc_store *store)
{
    return (store->reserved.there & reserved_bit("hole")) != 0;
}

void brc_schema_forget(brc_store *store)
{
    store->reserved.there = 0;
    store->reserved.version = -1;
}

/* ---- the check at each opening -------------------------------- */

/* Table removed may be missing in a file that still has table hole, its predecessor. */
static int schema_is_whole(const brc_store *store, const schema_statement *list, size_t n)
{
    static const char removed[] = "CREATE TABLE removed(";
    for (size_t i = 0; i < n; i++)
        if (list[i].is_made && !list[i].met &&
            !(brc_schema_is_old(store) && strncmp(list[i].sql, removed, sizeof(removed) - 1) == 0))
            return 0;
    return 1;
}

static int row_is(sqlite3_stmt *rows, int column, const char *text)
{
    const char *found = (const char *)sqlite3_column_text(rows, column);
    return found != NULL && (size_t)sqlite3_column_bytes(rows, column) == strlen(text) &&
           memcmp(found, text, strlen(text)) == 0;
}

/* Returns 1 for indexes of constraints, which have no text and follow from their tables, and for
 * sqlite_sequence, which SQLite creates for AUTOINCREMENT. */
static int follows_from_others(sqlite3_stmt *rows)
{
    if (row_is(rows, 2, "index"))
        return sqlite3_column_type(rows, 1) == SQLITE_NULL;
    return row_is(rows, 0, "sqlite_sequence") && row_is(rows, 2, "table") &&
           row_is(rows, 1, "CREATE TABLE sqlite_sequence(name,seq)");
}

/* Compares the schema's statements in any order: VACUUM puts indexes after all tables. */
static int schema_compare(brc_store *store, sqlite3_stmt *rows, brc_error *err)
{
    int rc;
    schema_statement list[STATEMENTS_MAX];
    size_t n = schema_list(list);
    while ((rc = brc_step(store, rows, err)) > 0) {
        const char *name = (const char *)sqlite3_column_text(rows, 0);
        const char *sql = (const char *)sqlite3_column_text(rows, 1);
        if (follows_from_others(rows))
            continue;
        if (sql == NULL || !schema_meets(list, n, sql, (size_t)sqlite3_column_bytes(rows, 1)))
            return schema_is_unsafe(store, name != NULL ? name : "?", err);
        store->reserved.there |= reserved_bit(name);
    }
    return rc < 0 || schema_is_whole(store, list, n) ? rc : schema_is_unsafe(store, "its end", err);
}

int brc_schema_check(brc_store *store, brc_error *err)
{
    int64_t id = 0, format = 0;
    sqlite3_stmt *rows;
    BRC_TRY(schema_pragma(store, "PRAGMA application_id", &id, err));
    if (id != BRC_APPLICATION_ID)
        return brc_fail(err, BRC_EFORMAT,
                        BRC_NOT_A_REPOSITORY, store->path);
    BRC_TRY(schema_pragma(store, "PRAGMA user_version", &format, err));
    if (format == 1)
        return brc_fail(err, BRC_EFORMAT,
                        "%s has format 1, which was given up before the first release: export it "
                        "with breccia as of its commit " BRC_LAST_OF_FORMAT_1
                        " and import it into a new one",
                        store->path);
    if (format != BRC_FORMAT)
        return brc_fail(err, BRC_EFORMAT,
                        "%s has format %lld, and this breccia reads format %d: use a newer one",
                        store->path, (long long)format, BRC_FORMAT);
    brc_schema_forget(store);
    BRC_TRY(brc_stmt(store, "SELECT name, sql, type FROM sqlite_schema", &rows, err));
    int rc = schema_compare(store, rows, err);
    sqlite3_reset(rows);
    /* A statement from before the schema was read would be prepared again. */
    return rc < 0 ? rc : schema_version(store, &store->reserved.version, err);
}
