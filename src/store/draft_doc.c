/*
 * Documents of a draft. A node whose document is changed again and again keeps the last one: its
 * row of draft_doc has the id that the node's entry names, and goes when that changes. Whoever
 * reads a document by its id finds it here where no object has it; it becomes one with the commit
 * (doc_put.c).
 */
#include <string.h>

#include "db.h"
#include "document.h"

/* The id of the document in a node's entry (docs/FORMAT.md, section 6); ?9 is the length of ids. */
#define DOC_OF_ENTRY "substr(n.entry, 3, ?9)"

static int draft_doc_stmt(brc_store *store, const char *sql, sqlite3_stmt **out, brc_error *err)
{
    BRC_TRY(brc_stmt(store, sql, out, err));
    sqlite3_bind_int64(*out, 9, (int64_t)store->id_len);
    return BRC_OK;
}

int brc_draft_docs_any(brc_store *store, int *any, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store, "SELECT 1 FROM draft_doc WHERE id>x'' LIMIT 1", &st, err));
    return brc_ask_any(store, st, any, err);
}

/* ---- one node's -------------------------------- */

int brc_draft_doc_has(brc_store *store, const brc_oid *id, int *found, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store, "SELECT 1 FROM draft_doc WHERE id=?1 LIMIT 1", &st, err));
    brc_bind_id(store, st, 1, id);
    return brc_ask_any(store, st, found, err);
}

int brc_draft_doc_get(brc_store *store, const brc_oid *id, int *found, brc_buf *out, brc_error *err)
{
    sqlite3_stmt *st;
    *found = 0;
    BRC_TRY(brc_stmt(store, "SELECT encoding, data FROM draft_doc WHERE id=?1 LIMIT 1", &st, err));
    brc_bind_id(store, st, 1, id);
    int rc = brc_step(store, st, err);
    if (rc <= 0)
        return rc;
    *found = 1;
    const int64_t encoding = sqlite3_column_int64(st, 0);
    brc_buf stored = BRC_BUF_INIT;
    rc = brc_buf_append(&stored, sqlite3_column_blob(st, 1), (size_t)sqlite3_column_bytes(st, 1),
                        err);
    sqlite3_reset(st);
    if (rc == BRC_OK)
        rc = brc_document_decode(store, encoding, (brc_span){stored.data, stored.len}, out, err);
    brc_buf_dispose(&stored);
    return rc;
}

int brc_draft_doc_drop(brc_store *store, int64_t node, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(draft_doc_stmt(store,
                           "DELETE FROM draft_doc WHERE node=?1 AND id="
                           "(SELECT " DOC_OF_ENTRY " FROM draft_node n JOIN draft d ON d.id=n.draft"
                           " WHERE n.node=?1 AND d.parts&4)",
                           &st, err));
    sqlite3_bind_int64(st, 1, node);
    return brc_run(store, st, err);
}

int brc_draft_doc_drop_at(brc_store *store, int64_t draft, const char *path, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(draft_doc_stmt(store,
                           "DELETE FROM draft_doc WHERE (id, node) IN (SELECT " DOC_OF_ENTRY
                           ", n.node FROM draft_node n WHERE n.draft=" BRC_IF_DOCS
                           " AND n.path=?2)",
                           &st, err));
    sqlite3_bind_int64(st, 1, draft);
    sqlite3_bind_text(st, 2, path, -1, SQLITE_STATIC);
    return brc_run(store, st, err);
}

int brc_draft_doc_copy(brc_store *store, int64_t from, int64_t to, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(draft_doc_stmt(store,
                           "INSERT OR REPLACE INTO draft_doc(id, node, encoding, data)"
                           " SELECT d.id, ?2, d.encoding, d.data FROM draft_node n"
                           " JOIN draft_doc d ON d.id=" DOC_OF_ENTRY " AND d.node=n.node"
                           " WHERE n.node=?1",
                           &st, err));
    sqlite3_bind_int64(st, 1, from);
    sqlite3_bind_int64(st, 2, to);
    BRC_TRY(brc_run(store, st, err));
    if (sqlite3_changes(store->db) == 0)
        return BRC_OK;
    int64_t draft;
    BRC_TRY(brc_stmt(store, "SELECT draft FROM draft_node WHERE node=?1", &st, err));
    sqlite3_bind_int64(st, 1, to);
    BRC_TRY(brc_ask_number(store, st, &draft, err));
    return brc_draft_has_part(store, draft, BRC_PART_DOCS, err);
}

/* ---- a draft's -------------------------------- */

int brc_draft_doc_next(brc_store *store, int64_t draft, brc_buf *path, brc_oid *id, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_buf_terminate(path, err));
    BRC_TRY(draft_doc_stmt(store,
                           "SELECT d.id, n.path FROM draft_node n CROSS JOIN draft_doc d"
                           " ON d.id=" DOC_OF_ENTRY " AND d.node=n.node"
                           " WHERE n.draft=" BRC_IF_DOCS " AND n.path>?2 ORDER BY n.path LIMIT 1",
                           &st, err));
    sqlite3_bind_int64(st, 1, draft);
    BRC_TRY(brc_bind_copy(store, st, 2, 1, (brc_span){path->data, path->len}, err));
    int rc = brc_step(store, st, err);
    if (rc <= 0)
        return rc;
    const char *next = (const char *)sqlite3_column_text(st, 1);
    rc = brc_column_id(store, st, 0, id, err);
    if (rc == BRC_OK && (next == NULL || strcmp(next, (const char *)path->data) <= 0)) /* no end */
        rc = brc_fail(err, BRC_ECORRUPT, "%s is damaged: uncommitted nodes are out of order; run "
                                         "'breccia fsck %s'", store->path, store->path);
    path->len = 0;
    if (rc == BRC_OK)
        rc = brc_buf_text(path, next, err);
    sqlite3_reset(st);
    return rc < 0 ? rc : 1;
}
