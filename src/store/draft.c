/*
 * Drafts: the uncommitted changes of a branch, as rows over a base snapshot.
 *
 * A row of draft_node says what a path is now; a path without a row is what its
 * nearest ancestor's entry says. Chunks belong to a row's number and not to its path,
 * so that moving a node moves no chunk.
 */
#include <stdlib.h>
#include <string.h>

#include "db.h"

void brc_draft_nodes_free(brc_draft_node *nodes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(nodes[i].path);
        free(nodes[i].entry);
    }
    free(nodes);
}

int brc_draft_get(brc_store *store, const char *branch, int *has, int *has_base, brc_oid *base,
                  brc_error *err)
{
    sqlite3_stmt *st;
    *has = *has_base = 0;
    memset(base, 0, sizeof(*base));
    BRC_TRY(brc_stmt(store, "SELECT base FROM draft WHERE branch=?1", &st, err));
    sqlite3_bind_text(st, 1, branch, -1, SQLITE_STATIC);
    int rc = brc_step(store, st, err);
    if (rc <= 0)
        return rc;
    *has = 1;
    if (sqlite3_column_type(st, 0) != SQLITE_NULL) {
        *has_base = 1;
        rc = brc_column_id(store, st, 0, base, err);
    }
    sqlite3_reset(st);
    return rc < 0 ? rc : BRC_OK;
}

int brc_draft_start(brc_store *store, const char *branch, const brc_oid *base, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store, "INSERT INTO draft(branch, base) VALUES (?1, ?2)", &st, err));
    sqlite3_bind_text(st, 1, branch, -1, SQLITE_STATIC);
    brc_bind_id(store, st, 2, base);
    return brc_run(store, st, err);
}

/* Runs a statement whose parameters are the branch and up to two texts. */
static int draft_run(brc_store *store, const char *sql, const char *branch, const char *a,
                     const char *b, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store, sql, &st, err));
    sqlite3_bind_text(st, 1, branch, -1, SQLITE_STATIC);
    if (a != NULL)
        sqlite3_bind_text(st, 2, a, -1, SQLITE_STATIC);
    if (b != NULL)
        sqlite3_bind_text(st, 3, b, -1, SQLITE_STATIC);
    return brc_run(store, st, err);
}

int brc_draft_drop(brc_store *store, const char *branch, brc_error *err)
{
    BRC_TRY(draft_run(store,
                      "DELETE FROM draft_chunk WHERE node IN"
                      " (SELECT node FROM draft_node WHERE branch=?1)",
                      branch, NULL, NULL, err));
    BRC_TRY(draft_run(store, "DELETE FROM draft_node WHERE branch=?1", branch, NULL, NULL, err));
    return draft_run(store, "DELETE FROM draft WHERE branch=?1", branch, NULL, NULL, err);
}

int brc_draft_rename(brc_store *store, const char *from, const char *to, brc_error *err)
{
    BRC_TRY(draft_run(store, "UPDATE draft SET branch=?2 WHERE branch=?1", from, to, NULL, err));
    return draft_run(store, "UPDATE draft_node SET branch=?2 WHERE branch=?1", from, to, NULL, err);
}

static int draft_node_read(sqlite3_stmt *st, int at, brc_draft_node *out, brc_error *err)
{
    out->node = sqlite3_column_int64(st, at);
    out->entry = NULL;
    out->entry_len = 0;
    if (sqlite3_column_type(st, at + 1) == SQLITE_NULL)
        return BRC_OK;
    void *p;
    size_t len = (size_t)sqlite3_column_bytes(st, at + 1);
    BRC_TRY(brc_new(&p, len + 1, err));
    out->entry = p;
    out->entry_len = len;
    if (len > 0)
        memcpy(out->entry, sqlite3_column_blob(st, at + 1), len);
    return BRC_OK;
}

int brc_draft_node_get(brc_store *store, const char *branch, const char *path, int *found,
                       brc_draft_node *out, brc_error *err)
{
    sqlite3_stmt *st;
    *found = 0;
    memset(out, 0, sizeof(*out));
    BRC_TRY(brc_stmt(store, "SELECT node, entry FROM draft_node WHERE branch=?1 AND path=?2", &st,
                     err));
    sqlite3_bind_text(st, 1, branch, -1, SQLITE_STATIC);
    sqlite3_bind_text(st, 2, path, -1, SQLITE_STATIC);
    int rc = brc_step(store, st, err);
    if (rc <= 0)
        return rc;
    *found = 1;
    rc = draft_node_read(st, 0, out, err);
    sqlite3_reset(st);
    return rc;
}

/* The texts between which the paths under `path` are: "/a/" and "/a0", since '0'
 * follows '/'. Under the root all are. */
static int draft_range(const char *path, brc_buf *low, brc_buf *high, brc_error *err)
{
    int root = strcmp(path, "/") == 0;
    BRC_TRY(brc_buf_text(low, root ? "/" : path, err));
    BRC_TRY(brc_buf_text(low, root ? "" : "/", err));
    BRC_TRY(brc_buf_text(high, root ? "" : path, err));
    BRC_TRY(brc_buf_text(high, "0", err));
    BRC_TRY(brc_buf_terminate(low, err));
    return brc_buf_terminate(high, err);
}

/* Rows as they are read. */
typedef struct draft_rows {
    void *items; /* brc_draft_node[] */
    size_t n, cap;
} draft_rows;

static int draft_rows_add(draft_rows *rows, const char *path, brc_draft_node **out, brc_error *err)
{
    BRC_TRY(brc_grow_array(&rows->items, &rows->cap, rows->n + 1, sizeof(brc_draft_node), err));
    brc_draft_node *row = &((brc_draft_node *)rows->items)[rows->n];
    memset(row, 0, sizeof(*row));
    BRC_TRY(brc_dup(&row->path, path, err));
    rows->n++;
    *out = row;
    return BRC_OK;
}

/* The row of the path itself, if there is one. */
static int draft_rows_own(brc_store *store, const char *branch, const char *path, draft_rows *rows,
                          brc_error *err)
{
    int found;
    brc_draft_node own, *row;
    BRC_TRY(brc_draft_node_get(store, branch, path, &found, &own, err));
    if (!found)
        return BRC_OK;
    int rc = draft_rows_add(rows, path, &row, err);
    if (rc < 0) {
        free(own.entry);
        return rc;
    }
    own.path = row->path;
    *row = own;
    return BRC_OK;
}

/* Paths from `low` to before `high`: a search of the index, not a scan. */
static int draft_range_stmt(brc_store *store, const char *branch, const brc_buf *low,
                            const brc_buf *high, sqlite3_stmt **out, brc_error *err)
{
    BRC_TRY(brc_stmt(store,
                     "SELECT path, node, entry FROM draft_node WHERE branch=?1"
                     " AND path>=?2 AND path<?3 ORDER BY path",
                     out, err));
    sqlite3_bind_text(*out, 1, branch, -1, SQLITE_STATIC);
    sqlite3_bind_text(*out, 2, (const char *)low->data, -1, SQLITE_STATIC);
    sqlite3_bind_text(*out, 3, (const char *)high->data, -1, SQLITE_STATIC);
    return BRC_OK;
}

static const char *draft_row_path(sqlite3_stmt *st)
{
    const char *path = (const char *)sqlite3_column_text(st, 0);
    return path != NULL ? path : "";
}

/* Everything under `low` without its last slash. */
static int draft_rows_under(brc_store *store, const char *branch, const brc_buf *low,
                            const brc_buf *high, draft_rows *rows, brc_error *err)
{
    int rc;
    sqlite3_stmt *st;
    brc_draft_node *row;
    BRC_TRY(draft_range_stmt(store, branch, low, high, &st, err));
    while ((rc = brc_step(store, st, err)) > 0) {
        const char *path = draft_row_path(st);
        if (strcmp(path, (const char *)low->data) == 0) /* the root, of itself */
            continue;
        BRC_GO(draft_rows_add(rows, path, &row, err));
        BRC_GO(draft_node_read(st, 1, row, err));
    }
done:
    sqlite3_reset(st);
    return rc;
}

static int draft_rows_end(draft_rows *rows, int rc, brc_draft_node **out, size_t *n)
{
    if (rc < 0) {
        brc_draft_nodes_free(rows->items, rows->n);
        return rc;
    }
    *out = rows->items;
    *n = rows->n;
    return BRC_OK;
}

int brc_draft_node_list(brc_store *store, const char *branch, const char *path, int self,
                        brc_draft_node **out, size_t *n, brc_error *err)
{
    int rc;
    draft_rows rows = {0};
    brc_buf low = BRC_BUF_INIT, high = BRC_BUF_INIT;
    *out = NULL;
    *n = 0;
    BRC_GO(draft_range(path, &low, &high, err));
    if (self)
        BRC_GO(draft_rows_own(store, branch, path, &rows, err));
    rc = draft_rows_under(store, branch, &low, &high, &rows, err);
done:
    brc_buf_dispose(&low);
    brc_buf_dispose(&high);
    return draft_rows_end(&rows, rc, out, n);
}

/* The children that have rows of their own. If a row is deeper, the search goes on
 * after the child above it: "/a/x0" follows everything under "/a/x". */
static int draft_rows_children(brc_store *store, const char *branch, brc_buf *low,
                               const brc_buf *high, draft_rows *rows, brc_error *err)
{
    int rc;
    sqlite3_stmt *st;
    brc_draft_node *row;
    size_t prefix = strlen((const char *)low->data);
    BRC_TRY(draft_range_stmt(store, branch, low, high, &st, err));
    while ((rc = brc_step(store, st, err)) > 0) {
        const char *path = draft_row_path(st), *slash = NULL;
        if (strlen(path) <= prefix)
            continue;
        slash = strchr(path + prefix, '/');
        if (slash == NULL) {
            BRC_GO(draft_rows_add(rows, path, &row, err));
            BRC_GO(draft_node_read(st, 1, row, err));
            continue;
        }
        low->len = 0;
        BRC_GO(brc_buf_append(low, path, (size_t)(slash - path), err));
        BRC_GO(brc_buf_byte(low, '/' + 1, err));
        BRC_GO(brc_buf_terminate(low, err));
        BRC_GO(draft_range_stmt(store, branch, low, high, &st, err));
    }
done:
    sqlite3_reset(st);
    return rc;
}

int brc_draft_child_list(brc_store *store, const char *branch, const char *path,
                         brc_draft_node **out, size_t *n, brc_error *err)
{
    int rc;
    draft_rows rows = {0};
    brc_buf low = BRC_BUF_INIT, high = BRC_BUF_INIT;
    *out = NULL;
    *n = 0;
    BRC_GO(draft_range(path, &low, &high, err));
    rc = draft_rows_children(store, branch, &low, &high, &rows, err);
done:
    brc_buf_dispose(&low);
    brc_buf_dispose(&high);
    return draft_rows_end(&rows, rc, out, n);
}

int brc_draft_node_put(brc_store *store, const char *branch, const char *path, const void *entry,
                       size_t entry_len, int64_t *node, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store,
                     "INSERT INTO draft_node(branch, path, entry) VALUES (?1, ?2, ?3)"
                     " ON CONFLICT(branch, path) DO UPDATE SET entry=excluded.entry"
                     " RETURNING node",
                     &st, err));
    sqlite3_bind_text(st, 1, branch, -1, SQLITE_STATIC);
    sqlite3_bind_text(st, 2, path, -1, SQLITE_STATIC);
    if (entry != NULL)
        sqlite3_bind_blob64(st, 3, entry, entry_len, SQLITE_STATIC);
    int rc = brc_step(store, st, err);
    if (rc < 0)
        return rc;
    if (node != NULL)
        *node = sqlite3_column_int64(st, 0);
    sqlite3_reset(st);
    return BRC_OK;
}

int brc_draft_node_clear(brc_store *store, const char *branch, const char *path, brc_error *err)
{
    brc_draft_node *rows;
    size_t n;
    sqlite3_stmt *st;
    BRC_TRY(brc_draft_node_list(store, branch, path, 1, &rows, &n, err));
    int rc = BRC_OK;
    for (size_t i = 0; i < n && rc == BRC_OK; i++) {
        rc = brc_draft_chunk_clear(store, rows[i].node, NULL, 0, err);
        if (rc == BRC_OK)
            rc = brc_stmt(store, "DELETE FROM draft_node WHERE node=?1", &st, err);
        if (rc == BRC_OK) {
            sqlite3_bind_int64(st, 1, rows[i].node);
            rc = brc_run(store, st, err);
        }
    }
    brc_draft_nodes_free(rows, n);
    return rc;
}

static int draft_node_rename(brc_store *store, int64_t node, const char *path, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store, "UPDATE draft_node SET path=?2 WHERE node=?1", &st, err));
    sqlite3_bind_int64(st, 1, node);
    sqlite3_bind_text(st, 2, path, -1, SQLITE_STATIC);
    return brc_run(store, st, err);
}

static int draft_node_duplicate(brc_store *store, const char *branch, const brc_draft_node *row,
                                const char *path, brc_error *err)
{
    int64_t node;
    sqlite3_stmt *st;
    BRC_TRY(brc_draft_node_put(store, branch, path, row->entry, row->entry_len, &node, err));
    BRC_TRY(brc_stmt(store,
                     "INSERT INTO draft_chunk(node, key, id)"
                     " SELECT ?1, key, id FROM draft_chunk WHERE node=?2",
                     &st, err));
    sqlite3_bind_int64(st, 1, node);
    sqlite3_bind_int64(st, 2, row->node);
    return brc_run(store, st, err);
}

int brc_draft_node_move(brc_store *store, const char *branch, const char *from, const char *to,
                        int copy, brc_error *err)
{
    brc_draft_node *rows;
    size_t n;
    BRC_TRY(brc_draft_node_list(store, branch, from, 1, &rows, &n, err));
    int rc = BRC_OK;
    for (size_t i = 0; i < n && rc == BRC_OK; i++) {
        brc_buf path = BRC_BUF_INIT;
        rc = brc_buf_printf(&path, err, "%s%s", to, rows[i].path + strlen(from));
        if (rc == BRC_OK)
            rc = copy ? draft_node_duplicate(store, branch, &rows[i], (const char *)path.data, err)
                      : draft_node_rename(store, rows[i].node, (const char *)path.data, err);
        brc_buf_dispose(&path);
    }
    brc_draft_nodes_free(rows, n);
    return rc;
}

/* ---- chunks -------------------------------------------------------------------- */

static int draft_bind_key(sqlite3_stmt *st, int64_t node, const void *key, size_t key_len)
{
    sqlite3_bind_int64(st, 1, node);
    return sqlite3_bind_blob64(st, 2, key_len > 0 ? key : "", key_len, SQLITE_STATIC);
}

int brc_draft_chunk_put(brc_store *store, int64_t node, const void *key, size_t key_len,
                        const brc_oid *id, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store, "INSERT OR REPLACE INTO draft_chunk(node, key, id) VALUES (?1, ?2, ?3)",
                     &st, err));
    draft_bind_key(st, node, key, key_len);
    brc_bind_id(store, st, 3, id);
    return brc_run(store, st, err);
}

int brc_draft_chunk_get(brc_store *store, int64_t node, const void *key, size_t key_len, int *state,
                        brc_oid *id, brc_error *err)
{
    sqlite3_stmt *st;
    *state = 0;
    BRC_TRY(brc_stmt(store, "SELECT id FROM draft_chunk WHERE node=?1 AND key=?2", &st, err));
    draft_bind_key(st, node, key, key_len);
    int rc = brc_step(store, st, err);
    if (rc <= 0)
        return rc;
    *state = sqlite3_column_type(st, 0) == SQLITE_NULL ? 2 : 1;
    rc = *state == 1 ? brc_column_id(store, st, 0, id, err) : BRC_OK;
    sqlite3_reset(st);
    return rc;
}

static int draft_each_chunk_row(brc_store *store, sqlite3_stmt *st, brc_draft_chunk_fn each,
                                void *ctx, brc_error *err)
{
    int rc;
    while ((rc = brc_step(store, st, err)) > 0) {
        brc_oid id;
        int dropped = sqlite3_column_type(st, 1) == SQLITE_NULL;
        rc = dropped ? BRC_OK : brc_column_id(store, st, 1, &id, err);
        if (rc == BRC_OK)
            rc = each(ctx, sqlite3_column_blob(st, 0), (size_t)sqlite3_column_bytes(st, 0),
                      dropped ? NULL : &id, err);
        if (rc < 0)
            break;
    }
    sqlite3_reset(st);
    return rc < 0 ? rc : BRC_OK;
}

int brc_draft_chunk_each(brc_store *store, int64_t node, brc_draft_chunk_fn each, void *ctx,
                         brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(
        brc_stmt(store, "SELECT key, id FROM draft_chunk WHERE node=?1 ORDER BY key", &st, err));
    sqlite3_bind_int64(st, 1, node);
    return draft_each_chunk_row(store, st, each, ctx, err);
}

int brc_draft_chunk_page(brc_store *store, int64_t node, brc_span after, size_t most,
                         brc_draft_chunk_fn each, void *ctx, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store,
                     "SELECT key, id FROM draft_chunk WHERE node=?1 AND key>?2 ORDER BY key"
                     " LIMIT ?3",
                     &st, err));
    sqlite3_bind_int64(st, 1, node);
    if (after.data != NULL)
        sqlite3_bind_blob64(st, 2, after.data, after.len, SQLITE_STATIC);
    else
        sqlite3_bind_int(st, 2, 0); /* which comes before every blob */
    sqlite3_bind_int64(st, 3, (int64_t)most);
    return draft_each_chunk_row(store, st, each, ctx, err);
}

int brc_draft_chunk_any(brc_store *store, int64_t node, int *any, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store, "SELECT 1 FROM draft_chunk WHERE node=?1 LIMIT 1", &st, err));
    sqlite3_bind_int64(st, 1, node);
    int rc = brc_step(store, st, err);
    if (rc < 0)
        return rc;
    *any = rc > 0;
    sqlite3_reset(st);
    return BRC_OK;
}

int brc_draft_chunk_clear(brc_store *store, int64_t node, const void *key, size_t key_len,
                          brc_error *err)
{
    sqlite3_stmt *st;
    if (key == NULL) {
        BRC_TRY(brc_stmt(store, "DELETE FROM draft_chunk WHERE node=?1", &st, err));
        sqlite3_bind_int64(st, 1, node);
    } else {
        BRC_TRY(brc_stmt(store, "DELETE FROM draft_chunk WHERE node=?1 AND key=?2", &st, err));
        draft_bind_key(st, node, key, key_len);
    }
    return brc_run(store, st, err);
}
