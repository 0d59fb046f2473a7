/* Stores documents: first in a draft, and as objects with its commit. */
#include <stdlib.h>
#include <string.h>

#include "db.h"
#include "encoding.h"

/* ==== doc put ================================ */

static int is_object(brc_store *store, const brc_oid *id, int *found, brc_error *err)
{
    brc_object o = {.id = *id}, *one = &o;
    BRC_TRY(brc_objects_find(store, &one, 1, err));
    *found = o.found && o.kind == BRC_KIND_DOCUMENT;
    return BRC_OK;
}

/* Marks that the node's draft may have documents. */
static int note_docs(brc_store *store, int64_t node, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store, "SELECT draft FROM draft_node WHERE node=?1", &st, err));
    sqlite3_bind_int64(st, 1, node);
    int rc = brc_step(store, st, err);
    if (rc <= 0)
        return rc;
    const int64_t draft = sqlite3_column_int64(st, 0);
    sqlite3_reset(st);
    return brc_draft_has_part(store, draft, BRC_PART_DOCS, err);
}

int brc_draft_doc_put(brc_store *store, int64_t node, const brc_oid *id, brc_span text,
                      brc_error *err)
{
    brc_oid same;
    sqlite3_stmt *st;
    brc_buf encoded = BRC_BUF_INIT;
    int64_t encoding;
    int rc, found;
    BRC_GO(is_object(store, id, &found, err));
    if (found) { /* compares the contents */
        rc = brc_store_put(store, BRC_KIND_DOCUMENT, text.data, text.len, &same, err);
        goto done;
    }
    BRC_GO(note_docs(store, node, err));
    BRC_GO(brc_document_encode(store, text, &encoded, &encoding, err));
    BRC_GO(brc_stmt(store,
                    "INSERT OR REPLACE INTO draft_doc(id, node, encoding, data)"
                    " VALUES (?1, ?2, ?3, ?4)",
                    &st, err));
    brc_bind_id(store, st, 1, id);
    sqlite3_bind_int64(st, 2, node);
    sqlite3_bind_int64(st, 3, encoding);
    sqlite3_bind_blob64(st, 4, encoding != 0 ? encoded.data : text.data,
                        encoding != 0 ? encoded.len : text.len, SQLITE_STATIC);
    rc = brc_run(store, st, err);
done:
    brc_buf_dispose(&encoded);
    return rc;
}

static int draft_doc_store(brc_store *store, const brc_oid *id, brc_error *err)
{
    brc_oid same;
    brc_span text;
    brc_buf copy = BRC_BUF_INIT;
    BRC_TRY(brc_store_get(store, BRC_KIND_DOCUMENT, id, &text, err));
    int rc = brc_buf_append(&copy, text.data, text.len, err);
    if (rc == BRC_OK)
        rc = brc_store_put(store, BRC_KIND_DOCUMENT, copy.data, copy.len, &same, err);
    brc_buf_dispose(&copy);
    return rc;
}

int brc_draft_docs_store(brc_store *store, int64_t draft, brc_buf *path, size_t most, int *more,
                         brc_error *err)
{
    brc_oid id;
    brc_span text;
    int rc = 1;
    for (size_t i = 0; i < most && rc > 0; i++) {
        rc = brc_draft_doc_next(store, draft, path, &id, err);
        if (rc <= 0)
            break;
        BRC_TRY(store->scratch ? brc_store_get(store, BRC_KIND_DOCUMENT, &id, &text, err)
                               : draft_doc_store(store, &id, err));
    }
    *more = rc > 0;
    return rc < 0 ? rc : BRC_OK;
}

/* ==== draft node ================================ */

/*
 * Nodes of a draft: a row of draft_node has the current entry of a path; a path without a row is
 * looked up under the entry of its nearest ancestor that has one. Chunks belong to a row's number
 * and not to its path, so that moving a node moves no chunk.
 */

#define NODE_SUM "row_sum('draft_node', node, draft, path, below, level, entry)"

void brc_draft_nodes_free(brc_draft_node *nodes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(nodes[i].path);
        free(nodes[i].entry);
    }
    free(nodes);
}

/* Reads the columns from `at` on: node, entry, and whether the checksum is right. */
static int draft_node_read(brc_store *store, sqlite3_stmt *st, int at, brc_draft_node *out,
                           brc_error *err)
{
    BRC_TRY(brc_row_check(store, st, at + 2, "an uncommitted node", err));
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

int brc_draft_node_get(brc_store *store, int64_t draft, const char *path, int *found,
                       brc_draft_node *out, brc_error *err)
{
    sqlite3_stmt *st;
    *found = 0;
    memset(out, 0, sizeof(*out));
    BRC_TRY(brc_stmt(store, "SELECT node, entry, checksum IS " NODE_SUM " FROM draft_node"
                     " WHERE draft=?1 AND path=?2", &st,
                     err));
    sqlite3_bind_int64(st, 1, draft);
    sqlite3_bind_text(st, 2, path, -1, SQLITE_STATIC);
    int rc = brc_step(store, st, err);
    if (rc <= 0)
        return rc;
    *found = 1;
    rc = draft_node_read(store, st, 0, out, err);
    sqlite3_reset(st);
    return rc;
}

int brc_draft_range(const char *path, brc_buf *low, brc_buf *high, brc_error *err)
{
    int root = strcmp(path, "/") == 0;
    BRC_TRY(brc_buf_text(low, root ? "/" : path, err));
    BRC_TRY(brc_buf_text(low, root ? "" : "/", err));
    BRC_TRY(brc_buf_text(high, root ? "" : path, err));
    BRC_TRY(brc_buf_text(high, "0", err));
    BRC_TRY(brc_buf_terminate(low, err));
    return brc_buf_terminate(high, err);
}

static int draft_rows_add(brc_draft_rows *rows, const char *path, brc_draft_node **out,
                          brc_error *err)
{
    BRC_TRY(brc_grow_array(&rows->nodes, &rows->cap, rows->n + 1, sizeof(brc_draft_node), err));
    brc_draft_node *row = &((brc_draft_node *)rows->nodes)[rows->n];
    memset(row, 0, sizeof(*row));
    BRC_TRY(brc_dup(&row->path, path, err));
    rows->n++;
    *out = row;
    return BRC_OK;
}

/* Adds the row of the path itself, if there is one. */
static int draft_rows_own(brc_store *store, int64_t draft, const char *path, brc_draft_rows *rows,
                          brc_error *err)
{
    int found;
    brc_draft_node own, *row;
    BRC_TRY(brc_draft_node_get(store, draft, path, &found, &own, err));
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

/* Prepares a search of the index for paths from `low` to before `high`. */
static int draft_range_stmt(brc_store *store, int64_t draft, const brc_buf *low,
                            const brc_buf *high, sqlite3_stmt **out, brc_error *err)
{
    BRC_TRY(brc_stmt(store,
                     "SELECT path, node, entry, checksum IS " NODE_SUM " FROM draft_node"
                     " WHERE draft=?1 AND path>=?2 AND path<?3 ORDER BY path",
                     out, err));
    sqlite3_bind_int64(*out, 1, draft);
    sqlite3_bind_text(*out, 2, (const char *)low->data, -1, SQLITE_STATIC);
    sqlite3_bind_text(*out, 3, (const char *)high->data, -1, SQLITE_STATIC);
    return BRC_OK;
}

static const char *draft_row_path(sqlite3_stmt *st)
{
    const char *path = (const char *)sqlite3_column_text(st, 0);
    return path != NULL ? path : "";
}

/* Checks that a row is under `path`: a damaged index may lead to another row, which is valid by
 * itself. */
static int draft_row_is_under(const brc_store *store, const char *path, const brc_buf *low,
                              brc_error *err)
{
    const char *above = (const char *)low->data;
    if (strncmp(path, above, strlen(above)) == 0)
        return BRC_OK;
    return brc_fail(err, BRC_ECORRUPT,
                    "%s is damaged: the index of uncommitted nodes leads to another row; run "
                    "'breccia fsck'",
                    store->path);
}

/* Adds all rows under the path that `low` is without its last slash. */
static int draft_rows_under(brc_store *store, int64_t draft, const brc_buf *low,
                            const brc_buf *high, brc_draft_rows *rows, brc_error *err)
{
    int rc;
    sqlite3_stmt *st;
    brc_draft_node *row;
    BRC_TRY(draft_range_stmt(store, draft, low, high, &st, err));
    while ((rc = brc_step(store, st, err)) > 0) {
        const char *path = draft_row_path(st);
        BRC_GO(draft_row_is_under(store, path, low, err));
        if (strcmp(path, (const char *)low->data) == 0) /* the root is not a child of itself */
            continue;
        BRC_GO(draft_rows_add(rows, path, &row, err));
        BRC_GO(draft_node_read(store, st, 1, row, err));
    }
done:
    sqlite3_reset(st);
    return rc;
}

static int draft_rows_end(brc_draft_rows *rows, int rc, brc_draft_node **out, size_t *n)
{
    if (rc < 0) {
        brc_draft_nodes_free(rows->nodes, rows->n);
        return rc;
    }
    *out = rows->nodes;
    *n = rows->n;
    return BRC_OK;
}

int brc_draft_node_list(brc_store *store, int64_t draft, const char *path, int self,
                        brc_draft_node **out, size_t *n, brc_error *err)
{
    int rc;
    brc_draft_rows rows = {0};
    brc_buf low = BRC_BUF_INIT, high = BRC_BUF_INIT;
    *out = NULL;
    *n = 0;
    BRC_GO(brc_draft_range(path, &low, &high, err));
    if (self)
        BRC_GO(draft_rows_own(store, draft, path, &rows, err));
    rc = draft_rows_under(store, draft, &low, &high, &rows, err);
done:
    brc_buf_dispose(&low);
    brc_buf_dispose(&high);
    return draft_rows_end(&rows, rc, out, n);
}

int brc_draft_has_more_under(brc_store *store, int64_t draft, const char *path, uint64_t most,
                             int *has, brc_error *err)
{
    sqlite3_stmt *st;
    brc_buf low = BRC_BUF_INIT, high = BRC_BUF_INIT;
    int rc;
    *has = 0;
    BRC_GO(brc_draft_range(path, &low, &high, err));
    BRC_GO(brc_stmt(store,
                    "SELECT 1 FROM draft_node WHERE draft=?1 AND path>=?2 AND path<?3"
                    " LIMIT 1 OFFSET ?4",
                    &st, err));
    sqlite3_bind_int64(st, 1, draft);
    sqlite3_bind_text(st, 2, (const char *)low.data, -1, SQLITE_STATIC);
    sqlite3_bind_text(st, 3, (const char *)high.data, -1, SQLITE_STATIC);
    sqlite3_bind_int64(st, 4, most < INT64_MAX ? (int64_t)most : INT64_MAX);
    rc = brc_ask_any(store, st, has, err);
done:
    brc_buf_dispose(&low);
    brc_buf_dispose(&high);
    return rc;
}

/* Reads a path, which must be text: the next page binds it as it was read. */
static int page_path(brc_store *store, sqlite3_stmt *st, const char **out, brc_error *err)
{
    *out = draft_row_path(st);
    if (strlen(*out) == (size_t)sqlite3_column_bytes(st, 0))
        return BRC_OK;
    return brc_fail(err, BRC_ECORRUPT, "%s: an uncommitted node is damaged: its path is not text",
                    store->path);
}

int brc_draft_node_page(brc_store *store, int64_t draft, brc_draft_rows *rows, size_t most,
                        brc_error *err)
{
    int rc;
    sqlite3_stmt *st;
    const char *path;
    brc_draft_node *row = rows->nodes;
    BRC_TRY(brc_stmt(store,
                     "SELECT path, node, entry, checksum IS " NODE_SUM " FROM draft_node"
                     " WHERE draft=?1 AND path>?2 AND path<'0' ORDER BY path LIMIT ?3",
                     &st, err));
    sqlite3_bind_int64(st, 1, draft);
    const char *after = rows->n > 0 ? row[rows->n - 1].path : "";
    BRC_TRY(brc_bind_copy(store, st, 2, 1, (brc_span){(const uint8_t *)after, strlen(after)}, err));
    sqlite3_bind_int64(st, 3, (int64_t)most);
    while ((rc = brc_step(store, st, err)) > 0) {
        BRC_GO(page_path(store, st, &path, err));
        BRC_GO(draft_rows_add(rows, path, &row, err));
        BRC_GO(draft_node_read(store, st, 1, row, err));
    }
done:
    sqlite3_reset(st);
    return rc;
}

/* Adds the children that have rows of their own. If a row is deeper, the search goes on
 * after the child above it: "/a/x0" follows everything under "/a/x". */
static int draft_rows_children(brc_store *store, int64_t draft, brc_buf *low,
                               const brc_buf *high, brc_draft_rows *rows, brc_error *err)
{
    int rc;
    sqlite3_stmt *st;
    brc_draft_node *row;
    size_t prefix = strlen((const char *)low->data);
    BRC_TRY(draft_range_stmt(store, draft, low, high, &st, err));
    while ((rc = brc_step(store, st, err)) > 0) {
        const char *path = draft_row_path(st), *slash = NULL;
        if (strlen(path) <= prefix)
            continue;
        slash = strchr(path + prefix, '/');
        if (slash == NULL) {
            BRC_GO(draft_rows_add(rows, path, &row, err));
            BRC_GO(draft_node_read(store, st, 1, row, err));
            continue;
        }
        low->len = 0;
        BRC_GO(brc_buf_append(low, path, (size_t)(slash - path), err));
        BRC_GO(brc_buf_byte(low, '/' + 1, err));
        BRC_GO(brc_buf_terminate(low, err));
        BRC_GO(draft_range_stmt(store, draft, low, high, &st, err));
    }
done:
    sqlite3_reset(st);
    return rc;
}

int brc_draft_child_list(brc_store *store, int64_t draft, const char *path,
                         brc_draft_node **out, size_t *n, brc_error *err)
{
    int rc;
    brc_draft_rows rows = {0};
    brc_buf low = BRC_BUF_INIT, high = BRC_BUF_INIT;
    *out = NULL;
    *n = 0;
    BRC_GO(brc_draft_range(path, &low, &high, err));
    rc = draft_rows_children(store, draft, &low, &high, &rows, err);
done:
    brc_buf_dispose(&low);
    brc_buf_dispose(&high);
    return draft_rows_end(&rows, rc, out, n);
}

/* Writes the row's checksum, after its other columns. */
static int draft_node_seal(brc_store *store, int64_t node, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store, "UPDATE draft_node SET checksum=" NODE_SUM " WHERE node=?1", &st, err));
    sqlite3_bind_int64(st, 1, node);
    return brc_run(store, st, err);
}

int brc_draft_node_put(brc_store *store, int64_t draft, const char *path, const void *entry,
                       size_t entry_len, int64_t *node, brc_error *err)
{
    sqlite3_stmt *st;
    int64_t save;
    BRC_TRY(brc_draft_node_own(store, draft, path, &save, err));
    BRC_TRY(brc_stmt(store,
                     "INSERT INTO draft_node(draft, path, level, entry, checksum)"
                     " VALUES (?1, ?2, ?4, ?3, 0)"
                     " ON CONFLICT(draft, path) DO UPDATE SET entry=excluded.entry"
                     " RETURNING node",
                     &st, err));
    sqlite3_bind_int64(st, 1, draft);
    sqlite3_bind_text(st, 2, path, -1, SQLITE_STATIC);
    if (entry != NULL)
        sqlite3_bind_blob64(st, 3, entry, entry_len, SQLITE_STATIC);
    sqlite3_bind_int64(st, 4, save);
    int64_t number;
    BRC_TRY(brc_ask_number(store, st, &number, err));
    if (node != NULL)
        *node = number;
    return draft_node_seal(store, number, err);
}

int brc_draft_node_clear(brc_store *store, int64_t draft, const char *path, brc_error *err)
{
    brc_draft_node *rows;
    size_t n;
    BRC_TRY(brc_draft_node_list(store, draft, path, 1, &rows, &n, err));
    int rc = BRC_OK;
    for (size_t i = 0; i < n && rc == BRC_OK; i++)
        rc = brc_draft_row_drop(store, rows[i].node, err);
    brc_draft_nodes_free(rows, n);
    return rc;
}

static int draft_node_rename(brc_store *store, int64_t node, const char *path, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store,
                     "UPDATE draft_node SET path=?2, checksum=row_sum('draft_node', node, draft,"
                     " ?2, below, level, entry) WHERE node=?1",
                     &st, err));
    sqlite3_bind_int64(st, 1, node);
    sqlite3_bind_text(st, 2, path, -1, SQLITE_STATIC);
    return brc_run(store, st, err);
}

/* Adds a row like another, without a path and chunks. */
static int draft_row_duplicate(brc_store *store, int64_t draft, int64_t from, int64_t *node,
                               brc_error *err)
{
    sqlite3_stmt *st;
    int64_t save;
    BRC_TRY(brc_draft_level(store, draft, &save, err));
    BRC_TRY(brc_stmt(store,
                     "INSERT INTO draft_node(draft, path, level, entry, checksum)"
                     " SELECT draft, NULL, ?2, entry, 0 FROM draft_node WHERE node=?1"
                     " RETURNING node",
                     &st, err));
    sqlite3_bind_int64(st, 1, from);
    sqlite3_bind_int64(st, 2, save);
    return brc_ask_number(store, st, node, err);
}

/* Cuts a row's stack down to the rows over one that was copied before; *copy: that copy, or 0. */
static void take_copied(const brc_draft_copying *c, brc_draft_stack *stack, int64_t *copy)
{
    const brc_draft_copied *made = c->made;
    *copy = 0;
    for (size_t i = 0; i < stack->n; i++)
        for (size_t k = 0; k < c->n; k++)
            if (made[k].row == stack->node[i]) {
                stack->n = i;
                *copy = made[k].copy;
                return;
            }
}

static int copy_chunks(brc_store *store, const brc_draft_stack *stack, int64_t into,
                       brc_draft_copying *c, brc_error *err)
{
    brc_buf after = BRC_BUF_INIT;
    size_t n = BRC_DRAFT_COPY_STEP;
    int rc = BRC_OK;
    while (stack->n > 0 && n == BRC_DRAFT_COPY_STEP && rc == BRC_OK) {
        rc = brc_draft_chunk_copy(store, stack, into, &after, &n, err);
        c->rows += n;
        c->is_too_much = c->most > 0 && c->rows > c->most;
        if (rc == BRC_OK && c->is_too_much)
            rc = brc_fail(err, BRC_ELIMIT, "the uncommitted chunks are too many for one "
                                           "transaction");
    }
    brc_buf_dispose(&after);
    return rc;
}

/* Copies a row with its whole stack to one new row. */
static int draft_node_duplicate(brc_store *store, int64_t draft, const brc_draft_node *row,
                                const char *path, brc_draft_copying *c, brc_error *err)
{
    brc_draft_stack stack, own = {.n = 1};
    int64_t node;
    BRC_TRY(brc_draft_stack_get(store, row->node, &stack, err));
    take_copied(c, &stack, &node);
    own.node[0] = node;
    if (node != 0)
        BRC_TRY(brc_draft_row_give(store, &own, draft, row->entry, row->entry_len, err));
    else
        BRC_TRY(draft_row_duplicate(store, draft, row->node, &node, err));
    BRC_TRY(copy_chunks(store, &stack, node, c, err));
    BRC_TRY(brc_draft_doc_copy(store, row->node, node, err));
    return draft_node_rename(store, node, path, err);
}

/* Gives the row of a path another path; if a savepoint has saved the row, a row like it gets that
 * path. */
static int rename_row(brc_store *store, int64_t draft, const brc_draft_node *row, const char *path,
                    brc_error *err)
{
    brc_draft_node own;
    int64_t save;
    int found;
    BRC_TRY(brc_draft_node_own(store, draft, row->path, &save, err));
    if (save == 0)
        return draft_node_rename(store, row->node, path, err);
    BRC_TRY(brc_draft_node_get(store, draft, row->path, &found, &own, err));
    free(own.entry);
    return draft_node_rename(store, own.node, path, err);
}

int brc_draft_node_move(brc_store *store, int64_t draft, const char *from, const char *to,
                        brc_draft_copying *copying, brc_error *err)
{
    brc_draft_node *rows;
    size_t n;
    BRC_TRY(brc_draft_node_list(store, draft, from, 1, &rows, &n, err));
    int rc = BRC_OK;
    for (size_t i = 0; i < n && rc == BRC_OK; i++) {
        brc_buf path = BRC_BUF_INIT;
        rc = brc_buf_printf(&path, err, "%s%s", to, rows[i].path + strlen(from));
        const char *text = (const char *)path.data;
        if (rc == BRC_OK)
            rc = copying != NULL
                     ? draft_node_duplicate(store, draft, &rows[i], text, copying, err)
                     : rename_row(store, draft, &rows[i], text, err);
        brc_buf_dispose(&path);
    }
    brc_draft_nodes_free(rows, n);
    return rc;
}

/* Gives the draft the documents of a node that belongs to another draft. */
static int give_docs(brc_store *store, int64_t node, int64_t draft, brc_error *err)
{
    sqlite3_stmt *st;
    int any;
    BRC_TRY(brc_stmt(store,
                     "SELECT 1 FROM draft_node n JOIN draft d ON d.id=n.draft"
                     " WHERE n.node=?1 AND d.parts&4",
                     &st, err));
    sqlite3_bind_int64(st, 1, node);
    BRC_TRY(brc_ask_any(store, st, &any, err));
    return any ? brc_draft_has_part(store, draft, BRC_PART_DOCS, err) : BRC_OK;
}

int brc_draft_row_give(brc_store *store, const brc_draft_stack *stack, int64_t draft,
                       const void *entry, size_t entry_len, brc_error *err)
{
    sqlite3_stmt *st;
    int64_t save;
    if (stack->n > 0)
        BRC_TRY(give_docs(store, stack->node[0], draft, err));
    BRC_TRY(brc_draft_level(store, draft, &save, err));
    for (size_t i = 0; i < stack->n; i++) {
        BRC_TRY(brc_stmt(store,
                         "UPDATE draft_node SET draft=?2, entry=?3, level=?4, checksum="
                         "row_sum('draft_node', node, ?2, path, below, ?4, ?3) WHERE node=?1",
                         &st, err));
        sqlite3_bind_int64(st, 4, save);
        sqlite3_bind_int64(st, 1, stack->node[i]);
        sqlite3_bind_int64(st, 2, draft);
        if (i == 0 && entry != NULL)
            sqlite3_bind_blob64(st, 3, entry, entry_len, SQLITE_STATIC);
        BRC_TRY(brc_run(store, st, err));
    }
    return BRC_OK;
}
