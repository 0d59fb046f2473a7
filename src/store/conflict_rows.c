/* Rows of table `conflict`: what an open merge leaves to decide. */
#include "db.h"

static void bind_span(sqlite3_stmt *st, int column, brc_span value)
{
    if (value.data == NULL)
        sqlite3_bind_null(st, column);
    else if (value.len == 0)
        sqlite3_bind_blob(st, column, "", 0, SQLITE_STATIC);
    else
        sqlite3_bind_blob64(st, column, value.data, value.len, SQLITE_STATIC);
}

int brc_conflict_put(brc_store *store, int64_t draft, const brc_conflict_row *row, brc_error *err)
{
    sqlite3_stmt *st;
    const brc_span key = {row->key.data != NULL ? row->key.data : (const void *)"", row->key.len};
    BRC_TRY(brc_stmt(store,
                     "INSERT OR REPLACE INTO conflict(draft, path, member, key, base, ours, theirs,"
                     " state, checksum) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8,"
                     " row_sum('conflict', ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8))",
                     &st, err));
    sqlite3_bind_int64(st, 1, draft);
    sqlite3_bind_text(st, 2, row->path, -1, SQLITE_STATIC);
    sqlite3_bind_text(st, 3, row->member, -1, SQLITE_STATIC);
    bind_span(st, 4, key);
    bind_span(st, 5, row->base);
    bind_span(st, 6, row->ours);
    bind_span(st, 7, row->theirs);
    sqlite3_bind_int(st, 8, row->state);
    return brc_run(store, st, err);
}

/* A value that is there has data, also where it is empty. */
static brc_span span_of(sqlite3_stmt *st, int column)
{
    brc_span out = {NULL, 0};
    if (sqlite3_column_type(st, column) == SQLITE_NULL)
        return out;
    out.data = sqlite3_column_blob(st, column);
    out.len = (size_t)sqlite3_column_bytes(st, column);
    if (out.data == NULL)
        out.data = (const void *)"";
    return out;
}

static int read_conflict(brc_store *store, sqlite3_stmt *st, brc_conflict_row *out, brc_error *err)
{
    BRC_TRY(brc_row_check(store, st, 7, "a conflict of the open merge", err));
    out->path = (const char *)sqlite3_column_text(st, 0);
    out->member = (const char *)sqlite3_column_text(st, 1);
    out->state = sqlite3_column_int(st, 6);
    if (out->path == NULL || out->member == NULL || out->state < 0 || out->state > 3)
        return brc_fail(err, BRC_ECORRUPT,
                        "%s is damaged: a conflict of the open merge has no place; run 'breccia "
                        "fsck'",
                        store->path);
    out->key = span_of(st, 2);
    out->base = span_of(st, 3);
    out->ours = span_of(st, 4);
    out->theirs = span_of(st, 5);
    return BRC_OK;
}

int brc_conflict_each(brc_store *store, int64_t draft, brc_conflict_fn each, void *ctx,
                      brc_error *err)
{
    int rc, there;
    sqlite3_stmt *st;
    brc_conflict_row row;
    BRC_TRY(brc_schema_has(store, "conflict", &there, err));
    if (!there)
        return BRC_OK;
    BRC_TRY(brc_stmt(store,
                     "SELECT path, member, key, base, ours, theirs, state, checksum IS"
                     " row_sum('conflict', draft, path, member, key, base, ours, theirs, state)"
                     " FROM conflict WHERE draft=?1 ORDER BY path, member, key",
                     &st, err));
    sqlite3_bind_int64(st, 1, draft);
    while ((rc = brc_step(store, st, err)) > 0) {
        rc = read_conflict(store, st, &row, err);
        if (rc == BRC_OK)
            rc = each(ctx, &row, err);
        if (rc < 0)
            break;
    }
    sqlite3_reset(st);
    return rc;
}
