/*
 * Moves of a draft: a row of draft_move says of the node at a path where it is in the draft's base.
 * It holds for what is under the path too, down to the next row. A row whose source is empty says
 * that the base does not have the node, although its path would say so.
 */
#include <stdlib.h>
#include <string.h>

#include "../base/node_path.h"
#include "db.h"

#define MOVE_SUM "row_sum('draft_move', draft, path, source)"

/* A file in which nothing was moved lacks the table. */
static int has_moves(brc_store *store, int *there, brc_error *err)
{
    return brc_schema_has(store, "draft_move", there, err);
}

void brc_moves_free(brc_move *moves, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(moves[i].to);
        free(moves[i].from);
    }
    free(moves);
}

static int move_source_check(const char *source, brc_error *err)
{
    if (*source == '\0')
        return BRC_OK;
    BRC_TRY(brc_path_is_normal(source, err));
    return source[1] != '\0' ? BRC_OK
                             : brc_fail(err, BRC_ECORRUPT, "the root node cannot have been moved");
}

/* Columns: path, source, and whether the checksum is right. The path is one that is asked for. */
static int move_row_source(brc_store *store, sqlite3_stmt *st, char **out, brc_error *err)
{
    const char *source = (const char *)sqlite3_column_text(st, 1);
    BRC_TRY(brc_row_check(store, st, 2, "an uncommitted move", err));
    if (source == NULL || (size_t)sqlite3_column_bytes(st, 1) != strlen(source))
        return brc_fail(err, BRC_ECORRUPT, "%s: an uncommitted move is damaged: it is not text",
                        brc_store_path(store));
    BRC_TRY(move_source_check(source, err));
    return brc_dup(out, source, err);
}

static int move_row_add(brc_store *store, sqlite3_stmt *st, void **rows, size_t *n, size_t *cap,
                        brc_error *err)
{
    const char *path = (const char *)sqlite3_column_text(st, 0);
    BRC_TRY(brc_grow_array(rows, cap, *n + 1, sizeof(brc_move), err));
    brc_move *row = &((brc_move *)*rows)[*n];
    memset(row, 0, sizeof(*row));
    BRC_TRY(brc_path_is_normal(path != NULL ? path : "", err));
    BRC_TRY(brc_dup(&row->to, path, err));
    ++*n;
    return move_row_source(store, st, &row->from, err);
}

int brc_draft_move_get(brc_store *store, int64_t draft, const char *path, char **source,
                       brc_error *err)
{
    int there;
    sqlite3_stmt *st;
    *source = NULL;
    BRC_TRY(has_moves(store, &there, err));
    if (!there)
        return BRC_OK;
    BRC_TRY(brc_stmt(store, "SELECT path, source, checksum IS " MOVE_SUM " FROM draft_move"
                            " WHERE draft=" BRC_IF_MOVES " AND path=?2", &st, err));
    sqlite3_bind_int64(st, 1, draft);
    sqlite3_bind_text(st, 2, path, -1, SQLITE_STATIC);
    int rc = brc_step(store, st, err);
    if (rc <= 0)
        return rc;
    rc = move_row_source(store, st, source, err);
    sqlite3_reset(st);
    return rc;
}

/* The rows of one statement, which ends. */
static int move_rows_read(brc_store *store, sqlite3_stmt *st, brc_move **rows, size_t *n,
                          size_t *cap, brc_error *err)
{
    int rc;
    void *p = *rows;
    while ((rc = brc_step(store, st, err)) > 0) {
        rc = move_row_add(store, st, &p, n, cap, err);
        if (rc < 0)
            break;
    }
    *rows = p;
    sqlite3_reset(st);
    return rc;
}

int brc_draft_move_list(brc_store *store, int64_t draft, const char *path, brc_move **out,
                        size_t *n, brc_error *err)
{
    int rc, there;
    size_t cap = 0;
    sqlite3_stmt *st;
    brc_buf low = BRC_BUF_INIT, high = BRC_BUF_INIT;
    *out = NULL;
    *n = 0;
    BRC_TRY(has_moves(store, &there, err));
    if (!there)
        return BRC_OK;
    BRC_GO(brc_draft_range(path, &low, &high, err));
    BRC_GO(brc_stmt(store, "SELECT path, source, checksum IS " MOVE_SUM " FROM draft_move"
                           " WHERE draft=" BRC_IF_MOVES " AND path=?2", &st, err));
    sqlite3_bind_int64(st, 1, draft);
    sqlite3_bind_text(st, 2, path, -1, SQLITE_STATIC);
    BRC_GO(move_rows_read(store, st, out, n, &cap, err));
    BRC_GO(brc_stmt(store, "SELECT path, source, checksum IS " MOVE_SUM " FROM draft_move"
                           " WHERE draft=" BRC_IF_MOVES " AND path>=?2 AND path<?3"
                           " ORDER BY path", &st, err));
    sqlite3_bind_int64(st, 1, draft);
    sqlite3_bind_text(st, 2, (const char *)low.data, -1, SQLITE_STATIC);
    sqlite3_bind_text(st, 3, (const char *)high.data, -1, SQLITE_STATIC);
    rc = move_rows_read(store, st, out, n, &cap, err);
done:
    brc_buf_dispose(&low);
    brc_buf_dispose(&high);
    if (rc < 0) {
        brc_moves_free(*out, *n);
        *out = NULL;
        *n = 0;
    }
    return rc;
}

/* As with its keys. */
static int moves_change(brc_store *store, int64_t draft, brc_error *err)
{
    int64_t save;
    BRC_TRY(brc_draft_part_keeper(store, draft, BRC_PART_MOVES, &save, err));
    return save == 0 ? BRC_OK : brc_draft_moves_keep(store, draft, save, err);
}

int brc_draft_move_put(brc_store *store, int64_t draft, const char *path, const char *source,
                       brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(moves_change(store, draft, err));
    BRC_TRY(brc_draft_has_part(store, draft, BRC_PART_MOVES, err));
    BRC_TRY(brc_schema_need(store, "draft_move", err));
    BRC_TRY(brc_stmt(store,
                     "INSERT OR REPLACE INTO draft_move(draft, path, source, checksum)"
                     " VALUES (?1, ?2, ?3, row_sum('draft_move', ?1, ?2, ?3))",
                     &st, err));
    sqlite3_bind_int64(st, 1, draft);
    sqlite3_bind_text(st, 2, path, -1, SQLITE_STATIC);
    sqlite3_bind_text(st, 3, source, -1, SQLITE_STATIC);
    return brc_run(store, st, err);
}

int brc_draft_move_drop(brc_store *store, int64_t draft, const char *path, brc_error *err)
{
    int there;
    sqlite3_stmt *st;
    BRC_TRY(moves_change(store, draft, err));
    BRC_TRY(has_moves(store, &there, err));
    if (!there)
        return BRC_OK;
    BRC_TRY(brc_stmt(store, "DELETE FROM draft_move WHERE draft=" BRC_IF_MOVES " AND path=?2", &st,
                     err));
    sqlite3_bind_int64(st, 1, draft);
    sqlite3_bind_text(st, 2, path, -1, SQLITE_STATIC);
    return brc_run(store, st, err);
}

int brc_draft_move_clear(brc_store *store, int64_t draft, const char *path, brc_error *err)
{
    int rc, there;
    sqlite3_stmt *st;
    brc_buf low = BRC_BUF_INIT, high = BRC_BUF_INIT;
    BRC_TRY(brc_draft_move_drop(store, draft, path, err));
    BRC_TRY(has_moves(store, &there, err));
    if (!there)
        return BRC_OK;
    BRC_GO(brc_draft_range(path, &low, &high, err));
    BRC_GO(brc_stmt(store, "DELETE FROM draft_move WHERE draft=" BRC_IF_MOVES " AND path>=?2"
                           " AND path<?3", &st, err));
    sqlite3_bind_int64(st, 1, draft);
    sqlite3_bind_text(st, 2, (const char *)low.data, -1, SQLITE_STATIC);
    sqlite3_bind_text(st, 3, (const char *)high.data, -1, SQLITE_STATIC);
    rc = brc_run(store, st, err);
done:
    brc_buf_dispose(&low);
    brc_buf_dispose(&high);
    return rc;
}

int brc_draft_move_rename(brc_store *store, int64_t draft, const char *from, const char *to,
                          brc_error *err)
{
    int rc;
    size_t n;
    brc_move *rows;
    brc_buf path = BRC_BUF_INIT;
    BRC_TRY(brc_draft_move_list(store, draft, from, &rows, &n, err)); /* checked: none is damaged */
    rc = brc_draft_move_clear(store, draft, from, err);
    for (size_t i = 0; i < n && rc == BRC_OK; i++) {
        path.len = 0;
        BRC_GO(brc_buf_printf(&path, err, "%s%s", to, rows[i].to + strlen(from)));
        BRC_GO(brc_buf_terminate(&path, err));
        rc = brc_draft_move_put(store, draft, (const char *)path.data, rows[i].from, err);
    }
done:
    brc_buf_dispose(&path);
    brc_moves_free(rows, n);
    return rc;
}

int brc_draft_moves_keep(brc_store *store, int64_t draft, int64_t save, brc_error *err)
{
    size_t n;
    brc_move *moves;
    BRC_TRY(brc_draft_move_list(store, draft, "/", &moves, &n, err));
    int rc = brc_draft_touch(store, save, err);
    if (rc == BRC_OK)
        rc = brc_draft_has_part(store, save, BRC_PART_MOVES, err); /* also where there are none */
    for (size_t i = 0; i < n && rc == BRC_OK; i++)
        rc = brc_draft_move_put(store, save, moves[i].to, moves[i].from, err);
    brc_moves_free(moves, n);
    return rc;
}
