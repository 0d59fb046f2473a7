/* See copy_tables.h. */
#include "copy_tables.h"

#include <string.h>

#define TABLE(name, key, nkeys, values, where, reserved)                                           \
    {                                                                                              \
        name, "SELECT * FROM " name " ORDER BY " key,                                              \
            "INSERT OR REPLACE INTO " name " VALUES (" values ")",                                 \
            "DELETE FROM " name " WHERE " where, "SELECT 1 FROM " name " WHERE " where, nkeys,     \
            reserved                                                                               \
    }

#define V3 "?1,?2,?3"
#define V5 V3 ",?4,?5"
#define V6 V5 ",?6"
#define V7 V6 ",?7"
#define V9 V7 ",?8,?9"
#define V10 V9 ",?10"
#define V11 V10 ",?11"
#define V14 V11 ",?12,?13,?14"

const brc_table brc_table_object = TABLE("object", "id", 1, V10, "id=?1", 0);
const brc_table brc_table_removed =
    TABLE("removed", "backend, place, name", 3, V9, "backend=?1 AND place=?2 AND name=?3", 0);

/* The row that makes a file a backup is not copied. */
static const brc_table table_meta = {
    "meta", "SELECT * FROM meta WHERE key<>'backup' ORDER BY key",
    "INSERT OR REPLACE INTO meta VALUES (" V3 ")", "DELETE FROM meta WHERE key=?1",
    "SELECT 1 FROM meta WHERE key=?1", 1, 0};
static const brc_table table_encoding = TABLE("encoding", "id", 1, "?1,?2", "id=?1", 0);
static const brc_table table_ref = TABLE("ref", "name", 1, "?1,?2,?3,?4", "name=?1", 0);
static const brc_table table_oplog = TABLE("oplog", "seq", 1, V11, "seq=?1", 0);
static const brc_table table_draft = TABLE("draft", "id", 1, V14, "id=?1", 0);
static const brc_table table_draft_node = TABLE("draft_node", "node", 1, V7, "node=?1", 0);
static const brc_table table_draft_chunk =
    TABLE("draft_chunk", "node, key", 2, "?1,?2,?3,?4", "node=?1 AND key=?2", 0);
static const brc_table table_draft_doc =
    TABLE("draft_doc", "id, node", 2, "?1,?2,?3,?4", "id=?1 AND node=?2", 0);
static const brc_table table_commit_info = TABLE("commit_info", "id", 1, V6, "id=?1", 0);
static const brc_table table_node_total = TABLE("node_total", "id", 1, V6, "id=?1", 0);
static const brc_table table_delta = TABLE("delta", "id", 1, "?1,?2", "id=?1", 1);
static const brc_table table_backend = TABLE("backend", "id", 1, V3, "id=?1", 1);
static const brc_table table_place = TABLE("place", "seq", 1, V6, "seq=?1", 1);
static const brc_table table_boundary = TABLE("boundary", "id", 1, "?1,?2,?3,?4", "id=?1", 1);
static const brc_table table_draft_key =
    TABLE("draft_key", "draft, key", 2, "?1,?2,?3,?4", "draft=?1 AND key=?2", 1);
static const brc_table table_draft_move =
    TABLE("draft_move", "draft, path", 2, "?1,?2,?3,?4", "draft=?1 AND path=?2", 1);
static const brc_table table_conflict =
    TABLE("conflict", "draft, path, member, key", 4, V9,
          "draft=?1 AND path=?2 AND member=?3 AND key=?4", 1);
static const brc_table table_pin = TABLE("pin", "id", 1, V5, "id=?1", 1);
static const brc_table table_gc = TABLE("gc", "run", 1, V6, "run=?1", 1);
static const brc_table table_gc_kept =
    TABLE("gc_kept", "run, id", 2, "?1,?2", "run=?1 AND id=?2", 1);
static const brc_table table_encoded =
    TABLE("encoded", "id, encoding", 2, V5, "id=?1 AND encoding=?2", 1);
static const brc_table table_chunk_stats =
    TABLE("chunk_stats", "id, form", 2, "?1,?2,?3,?4", "id=?1 AND form=?2", 1);
/* SQLite's own table with the numbers of tables with AUTOINCREMENT. */
static const brc_table table_sequence = {
    "sqlite_sequence", "SELECT name, seq FROM sqlite_sequence ORDER BY name",
    "INSERT INTO sqlite_sequence(name, seq) VALUES (?1, ?2)",
    "DELETE FROM sqlite_sequence WHERE name=?1", "SELECT 1 FROM sqlite_sequence WHERE name=?1", 1,
    0};

const brc_table *const brc_backup_tables[] = {
    &table_meta,       &table_encoding,   &brc_table_object,  &brc_table_removed, &table_ref,
    &table_oplog,      &table_draft,      &table_draft_node,  &table_draft_chunk,
    &table_draft_doc,  &table_commit_info, &table_node_total, &table_delta,     &table_backend,
    &table_place,      &table_boundary,   &table_draft_key,   &table_draft_move,
    &table_conflict,   &table_pin,        &table_gc,          &table_gc_kept,   &table_encoded,
    &table_chunk_stats, &table_sequence,  NULL};

/* ---- rows -------------------------------- */

/* Returns a type's rank in SQLite's order of values: NULL, numbers, text, blobs. No key is a
 * float. */
static int kind_order(int type)
{
    return type == SQLITE_NULL ? 0 : type == SQLITE_INTEGER ? 1 : type == SQLITE_TEXT ? 2 : 3;
}

static int bytes_compare(sqlite3_stmt *a, sqlite3_stmt *b, int column)
{
    const void *x = sqlite3_column_blob(a, column), *y = sqlite3_column_blob(b, column);
    const size_t m = (size_t)sqlite3_column_bytes(a, column);
    const size_t n = (size_t)sqlite3_column_bytes(b, column);
    const size_t least = m < n ? m : n;
    const int order = least > 0 ? memcmp(x, y, least) : 0;
    return order != 0 ? order : (m > n) - (m < n);
}

static int value_compare(sqlite3_stmt *a, sqlite3_stmt *b, int column)
{
    const int x = sqlite3_column_type(a, column), y = sqlite3_column_type(b, column);
    if (x != y)
        return kind_order(x) - kind_order(y);
    if (x == SQLITE_NULL)
        return 0;
    if (x != SQLITE_INTEGER)
        return bytes_compare(a, b, column);
    const int64_t m = sqlite3_column_int64(a, column), n = sqlite3_column_int64(b, column);
    return (m > n) - (m < n);
}

/* Compares two rows by the first of `n` columns that differs. */
static int row_compare(sqlite3_stmt *a, sqlite3_stmt *b, int n)
{
    int order = 0;
    for (int i = 0; i < n && order == 0; i++)
        order = value_compare(a, b, i);
    return order;
}

int brc_row_bind(brc_store *store, const char *sql, sqlite3_stmt *row, int n, sqlite3_stmt **out,
                 brc_error *err)
{
    BRC_TRY(brc_stmt(store, sql, out, err));
    for (int i = 0; i < n; i++)
        if (sqlite3_bind_value(*out, i + 1, sqlite3_column_value(row, i)) != SQLITE_OK) {
            sqlite3_clear_bindings(*out);
            return brc_nomem(err);
        }
    return BRC_OK;
}

static int run_with(brc_store *to, const char *sql, sqlite3_stmt *row, int n, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_row_bind(to, sql, row, n, &st, err));
    return brc_run(to, st, err);
}

int brc_table_put(brc_store *to, const brc_table *table, sqlite3_stmt *row, brc_error *err)
{
    return run_with(to, table->put, row, sqlite3_column_count(row), err);
}

/* ---- two tables -------------------------------- */

typedef struct table_walk {
    brc_store *to, *from;
    const brc_table *table;
    sqlite3_stmt *source, *copy;
    int has_source, has_copy; /* 1: the statement stands at a row; negative: failure */
    brc_differs_fn differs;
    void *ctx;
} table_walk;

static int mend_row(const table_walk *w, sqlite3_stmt *source, sqlite3_stmt *copy, brc_error *err)
{
    if (w->differs != NULL)
        BRC_TRY(w->differs(w->ctx, source, copy, err));
    if (copy != NULL)
        BRC_TRY(run_with(w->to, w->table->drop, copy, w->table->nkeys, err));
    return source != NULL ? brc_table_put(w->to, w->table, source, err) : BRC_OK;
}

/* Deletes the copy's row unless the source has it too. SQLite does not promise that a walk leaves
 * out rows that were put meanwhile: a row that the source has is such a row. */
static int drop_absent(const table_walk *w, brc_error *err)
{
    int any = 0;
    sqlite3_stmt *st;
    if (w->source != NULL) {
        BRC_TRY(brc_row_bind(w->from, w->table->has, w->copy, w->table->nkeys, &st, err));
        BRC_TRY(brc_ask_any(w->from, st, &any, err));
    }
    return any ? BRC_OK : mend_row(w, NULL, w->copy, err);
}

static int walk_step(table_walk *w, brc_error *err)
{
    int order = 1, rc = BRC_OK;
    if (w->has_source && w->has_copy)
        order = row_compare(w->source, w->copy, w->table->nkeys);
    else if (w->has_source)
        order = -1;
    if (order < 0)
        rc = mend_row(w, w->source, NULL, err);
    else if (order > 0)
        rc = drop_absent(w, err);
    else if (row_compare(w->source, w->copy, sqlite3_column_count(w->source)) != 0)
        rc = mend_row(w, w->source, w->copy, err);
    if (rc == BRC_OK && order <= 0)
        rc = w->has_source = brc_step(w->from, w->source, err);
    if (rc >= 0 && order >= 0)
        rc = w->has_copy = brc_step(w->to, w->copy, err);
    return rc < 0 ? rc : BRC_OK;
}

static int walk_tables(table_walk *w, brc_error *err)
{
    if (w->source != NULL)
        BRC_TRY(w->has_source = brc_step(w->from, w->source, err));
    BRC_TRY(w->has_copy = brc_step(w->to, w->copy, err));
    while (w->has_source || w->has_copy)
        BRC_TRY(walk_step(w, err));
    return BRC_OK;
}

/* Stores which of the files have the table. Creates it in the copy if the source has it. */
static int table_there(brc_store *to, brc_store *from, const brc_table *table, int *in_from,
                       int *in_to, brc_error *err)
{
    *in_from = *in_to = 1;
    if (!table->is_reserved)
        return BRC_OK;
    BRC_TRY(brc_schema_has(from, table->name, in_from, err));
    if (*in_from)
        return brc_schema_need(to, table->name, err);
    return brc_schema_has(to, table->name, in_to, err);
}

int brc_table_sync(brc_store *to, brc_store *from, const brc_table *table, brc_differs_fn differs,
                   void *ctx, brc_error *err)
{
    int in_from, in_to;
    table_walk w = {.to = to, .from = from, .table = table, .differs = differs, .ctx = ctx};
    BRC_TRY(table_there(to, from, table, &in_from, &in_to, err));
    if (!in_to)
        return BRC_OK;
    if (in_from)
        BRC_TRY(brc_stmt(from, table->list, &w.source, err));
    BRC_TRY(brc_stmt(to, table->list, &w.copy, err));
    int rc = walk_tables(&w, err);
    if (w.source != NULL)
        sqlite3_reset(w.source);
    sqlite3_reset(w.copy);
    return rc;
}
