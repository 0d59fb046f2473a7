/* A draft's own row, which tells which tables have rows of the draft, so that a commit looks only
 * there (schema/durable.sql, column `parts`), how often the draft was changed, and which rows
 * savepoints have saved. The lowest layer of drafts: all others add such rows. */
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "collect.h"
#include "db.h"
#include "encoding.h"

/* ==== draft part ================================ */

int brc_draft_has_part(brc_store *store, int64_t draft, int part, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store,
                     "UPDATE draft SET parts=parts|?2, checksum=row_sum('draft', id, kind, state,"
                     " branch, base, tip, other, plan, owner, parent, time_us, changes, parts|?2)"
                     " WHERE id=?1 AND parts&?2=0",
                     &st, err));
    sqlite3_bind_int64(st, 1, draft);
    sqlite3_bind_int(st, 2, part);
    return brc_run(store, st, err);
}

int brc_draft_touch(brc_store *store, int64_t draft, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store,
                     "UPDATE draft SET changes=changes+1, checksum=row_sum('draft', id, kind,"
                     " state, branch, base, tip, other, plan, owner, parent, time_us, changes+1,"
                     " parts) WHERE id=?1",
                     &st, err));
    sqlite3_bind_int64(st, 1, draft);
    return brc_run(store, st, err);
}

/* ---- savepoints: which rows are as one found them -------------------------------- */

int brc_draft_level(brc_store *store, int64_t draft, int64_t *level, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store,
                     "SELECT max(s.id) FROM " BRC_SAVES_OF,
                     &st, err));
    sqlite3_bind_int64(st, 1, draft);
    return brc_ask_number(store, st, level, err);
}

int brc_draft_part_keeper(brc_store *store, int64_t draft, int part, int64_t *save, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_draft_level(store, draft, save, err));
    if (*save == 0)
        return BRC_OK;
    BRC_TRY(brc_stmt(store, "SELECT id FROM draft WHERE id=?1 AND parts&?2=0", &st, err));
    sqlite3_bind_int64(st, 1, *save);
    sqlite3_bind_int(st, 2, part);
    return brc_ask_number(store, st, save, err);
}

int brc_draft_keeper(brc_store *store, int64_t draft, int64_t level, int64_t *save, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store,
                     "SELECT min(s.id) FROM " BRC_SAVES_OF " AND s.id>?2",
                     &st, err));
    sqlite3_bind_int64(st, 1, draft);
    sqlite3_bind_int64(st, 2, level);
    return brc_ask_number(store, st, save, err);
}

int brc_draft_row_level(brc_store *store, int64_t node, int64_t *draft, int64_t *level,
                        brc_error *err)
{
    sqlite3_stmt *st;
    *draft = *level = 0;
    BRC_TRY(brc_stmt(store, "SELECT draft, level FROM draft_node WHERE node=?1", &st, err));
    sqlite3_bind_int64(st, 1, node);
    int rc = brc_step(store, st, err);
    if (rc <= 0)
        return rc;
    *draft = sqlite3_column_int64(st, 0);
    *level = sqlite3_column_int64(st, 1);
    sqlite3_reset(st);
    return BRC_OK;
}

int brc_draft_row_is_frozen(brc_store *store, int64_t node, int *is, brc_error *err)
{
    int64_t draft, level, save;
    BRC_TRY(brc_draft_row_level(store, node, &draft, &level, err));
    BRC_TRY(brc_draft_keeper(store, draft, level, &save, err));
    *is = save != 0;
    return BRC_OK;
}

int brc_draft_row_to(brc_store *store, int64_t node, int64_t draft, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store,
                     "UPDATE draft_node SET draft=?2, checksum=row_sum('draft_node', node, ?2,"
                     " path, below, level, entry) WHERE node=?1",
                     &st, err));
    sqlite3_bind_int64(st, 1, node);
    sqlite3_bind_int64(st, 2, draft);
    return brc_run(store, st, err);
}

/* ==== draft number ================================ */

/*
 * Deleting rows of draft_node. Commits and copies of very many rows remember a row's number between
 * their transactions: meanwhile the draft may have been dropped, and no other node must get the
 * number. SQLite gives a new row the number after the largest. So the row with the largest number
 * is only emptied: it then belongs to no draft (0), and is deleted when a later row has taken its
 * place.
 */

static int run_on_node(brc_store *store, const char *sql, int64_t node, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store, sql, &st, err));
    sqlite3_bind_int64(st, 1, node);
    return brc_run(store, st, err);
}

int brc_draft_row_delete(brc_store *store, int64_t node, brc_error *err)
{
    BRC_TRY(run_on_node(store,
                        "UPDATE draft_node SET draft=0, path=NULL, below=NULL, level=0, entry=NULL,"
                        " checksum=row_sum('draft_node', node, 0, NULL, NULL, 0, NULL)"
                        " WHERE node=?1 AND node=(SELECT max(node) FROM draft_node)",
                        node, err));
    if (sqlite3_changes(store->db) == 0)
        return run_on_node(store, "DELETE FROM draft_node WHERE node=?1", node, err);
    return run_on_node(store, "DELETE FROM draft_node WHERE draft=0 AND node<?1", node, err);
}

/* ==== draft doc ================================ */

/*
 * Documents of a draft. A node whose document is changed again and again keeps only the last one:
 * its row of draft_doc has the id that the node's entry names, and is deleted when the entry
 * changes. A reader that looks for a document by its id finds it here if it is not an object yet;
 * the commit makes it an object (draft_node.c).
 */

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
    /* otherwise the search would not end */
    if (rc == BRC_OK && (next == NULL || strcmp(next, (const char *)path->data) <= 0))
        rc = brc_fail(err, BRC_ECORRUPT, "%s is damaged: uncommitted nodes are out of order; run "
                                         "'breccia fsck %s'", store->path, store->path);
    path->len = 0;
    if (rc == BRC_OK)
        rc = brc_buf_text(path, next, err);
    sqlite3_reset(st);
    return rc < 0 ? rc : 1;
}

/* ==== draft key ================================ */

/* Keys of a draft: bytes under a key of a Zarr store that do not belong to a node or chunk yet, and
 * documents of nodes that have no key (docs/FORMAT.md). */

#define KEY_OK "checksum IS row_sum('draft_key', draft, key, id)"

static const char key_row[] = "an uncommitted key";

/* Stores whether the file has the table: a file that never had such a key lacks it. */
static int has_keys(brc_store *store, int *there, brc_error *err)
{
    return brc_schema_has(store, "draft_key", there, err);
}

/* Called before a change of a draft's keys: if it is the first since the newest savepoint, copies
 * all keys to that. */
static int keys_change(brc_store *store, int64_t draft, brc_error *err)
{
    int64_t save;
    BRC_TRY(brc_draft_part_keeper(store, draft, BRC_PART_KEYS, &save, err));
    return save == 0 ? BRC_OK : brc_draft_keys_keep(store, draft, save, err);
}

int brc_draft_key_get(brc_store *store, int64_t draft, const char *key, int *state, brc_oid *id,
                      brc_error *err)
{
    int there;
    sqlite3_stmt *st;
    *state = BRC_KEY_NO_ROW;
    BRC_TRY(has_keys(store, &there, err));
    if (!there)
        return BRC_OK;
    BRC_TRY(brc_stmt(store, "SELECT id, " KEY_OK " FROM draft_key WHERE draft=" BRC_IF_KEYS
                            " AND key=?2", &st, err));
    sqlite3_bind_int64(st, 1, draft);
    sqlite3_bind_text(st, 2, key, -1, SQLITE_STATIC);
    int rc = brc_step(store, st, err);
    if (rc <= 0)
        return rc;
    *state = sqlite3_column_type(st, 0) == SQLITE_NULL ? BRC_KEY_HIDDEN : BRC_KEY_LOOSE;
    rc = brc_row_check(store, st, 1, key_row, err);
    if (rc == BRC_OK && *state == BRC_KEY_LOOSE)
        rc = brc_column_id(store, st, 0, id, err);
    sqlite3_reset(st);
    return rc;
}

int brc_draft_key_any(brc_store *store, int64_t draft, int *any, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(has_keys(store, any, err));
    if (!*any)
        return BRC_OK;
    BRC_TRY(brc_stmt(store, "SELECT 1 FROM draft_key WHERE draft=" BRC_IF_KEYS " LIMIT 1", &st,
                     err));
    sqlite3_bind_int64(st, 1, draft);
    return brc_ask_any(store, st, any, err);
}

int brc_draft_key_put(brc_store *store, int64_t draft, const char *key, const brc_oid *id,
                      brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(keys_change(store, draft, err));
    BRC_TRY(brc_draft_has_part(store, draft, BRC_PART_KEYS, err));
    BRC_TRY(brc_schema_need(store, "draft_key", err));
    BRC_TRY(brc_stmt(store,
                     "INSERT OR REPLACE INTO draft_key(draft, key, id, checksum)"
                     " VALUES (?1, ?2, ?3, row_sum('draft_key', ?1, ?2, ?3))",
                     &st, err));
    sqlite3_bind_int64(st, 1, draft);
    sqlite3_bind_text(st, 2, key, -1, SQLITE_STATIC);
    brc_bind_id(store, st, 3, id);
    BRC_TRY(brc_run(store, st, err));
    return id != NULL ? brc_gc_keep(store, id, err) : BRC_OK;
}

int brc_draft_key_drop(brc_store *store, int64_t draft, const char *key, brc_error *err)
{
    int there;
    sqlite3_stmt *st;
    BRC_TRY(keys_change(store, draft, err));
    BRC_TRY(has_keys(store, &there, err));
    if (!there)
        return BRC_OK;
    BRC_TRY(brc_stmt(store, "DELETE FROM draft_key WHERE draft=" BRC_IF_KEYS " AND key=?2", &st,
                     err));
    sqlite3_bind_int64(st, 1, draft);
    sqlite3_bind_text(st, 2, key, -1, SQLITE_STATIC);
    return brc_run(store, st, err);
}

/* Finds the first text after all texts that begin with the prefix; empty: there is none. */
static int behind_prefix(brc_buf *out, const char *prefix, brc_error *err)
{
    out->len = 0;
    BRC_TRY(brc_buf_text(out, prefix, err));
    while (out->len > 0 && out->data[out->len - 1] == 0xff)
        out->len--;
    if (out->len > 0)
        out->data[out->len - 1]++;
    return BRC_OK;
}

static int each_key_row(brc_store *store, sqlite3_stmt *st, brc_draft_key_fn each, void *ctx,
                        brc_error *err)
{
    int rc;
    while ((rc = brc_step(store, st, err)) > 0) {
        brc_oid id;
        const int hidden = sqlite3_column_type(st, 1) == SQLITE_NULL;
        const char *key = (const char *)sqlite3_column_text(st, 0);
        rc = brc_row_check(store, st, 2, key_row, err);
        if (rc == BRC_OK && !hidden)
            rc = brc_column_id(store, st, 1, &id, err);
        if (rc == BRC_OK)
            rc = each(ctx, key != NULL ? key : "", hidden ? NULL : &id, err);
        if (rc < 0)
            break;
    }
    sqlite3_reset(st);
    return rc < 0 ? rc : BRC_OK;
}

int brc_draft_key_page(brc_store *store, int64_t draft, const char *prefix, const char *from,
                       size_t most, brc_draft_key_fn each, void *ctx, brc_error *err)
{
    sqlite3_stmt *st;
    brc_buf high = BRC_BUF_INIT;
    int rc, there;
    BRC_TRY(has_keys(store, &there, err));
    if (!there)
        return BRC_OK;
    BRC_GO(behind_prefix(&high, prefix, err));
    BRC_GO(brc_stmt(store,
                    "SELECT key, id, " KEY_OK " FROM draft_key WHERE draft=" BRC_IF_KEYS
                    " AND key>=?2 AND key>=?3 AND (?4 IS NULL OR key<?4) ORDER BY key LIMIT ?5",
                    &st, err));
    sqlite3_bind_int64(st, 1, draft);
    sqlite3_bind_text(st, 2, prefix, -1, SQLITE_STATIC);
    sqlite3_bind_text(st, 3, from != NULL ? from : "", -1, SQLITE_STATIC);
    if (high.len > 0)
        sqlite3_bind_text(st, 4, (const char *)high.data, (int)high.len, SQLITE_STATIC);
    sqlite3_bind_int64(st, 5, (int64_t)most);
    rc = each_key_row(store, st, each, ctx, err);
done:
    brc_buf_dispose(&high);
    return rc;
}

/* Prepares a statement on the keys that begin with the prefix. */
static int prefix_stmt(brc_store *store, const char *sql, int64_t draft, const char *prefix,
                       brc_buf *high, sqlite3_stmt **st, brc_error *err)
{
    BRC_TRY(behind_prefix(high, prefix, err));
    BRC_TRY(brc_stmt(store, sql, st, err));
    sqlite3_bind_int64(*st, 1, draft);
    sqlite3_bind_text(*st, 2, prefix, -1, SQLITE_STATIC);
    if (high->len > 0)
        sqlite3_bind_text(*st, 3, (const char *)high->data, (int)high->len, SQLITE_STATIC);
    return BRC_OK;
}

static int clear_keys(brc_store *store, int64_t draft, const char *prefix, const char *sql,
                      brc_error *err)
{
    int there;
    sqlite3_stmt *st;
    brc_buf high = BRC_BUF_INIT;
    BRC_TRY(keys_change(store, draft, err));
    BRC_TRY(has_keys(store, &there, err));
    if (!there)
        return BRC_OK;
    int rc = prefix_stmt(store, sql, draft, prefix, &high, &st, err);
    if (rc == BRC_OK)
        rc = brc_run(store, st, err);
    brc_buf_dispose(&high);
    return rc;
}

int brc_draft_key_clear_loose(brc_store *store, int64_t draft, const char *prefix, brc_error *err)
{
    return clear_keys(store, draft, prefix,
                      "DELETE FROM draft_key WHERE draft=" BRC_IF_KEYS " AND key>=?2"
                      " AND (?3 IS NULL OR key<?3) AND id IS NOT NULL"
                      " AND key NOT LIKE '%zarr.json'",
                      err);
}

int brc_draft_key_clear(brc_store *store, int64_t draft, const char *prefix, brc_error *err)
{
    return clear_keys(store, draft, prefix,
                      "DELETE FROM draft_key WHERE draft=" BRC_IF_KEYS " AND key>=?2"
                      " AND (?3 IS NULL OR key<?3)",
                      err);
}

int brc_draft_key_copy(brc_store *store, int64_t draft, const char *from, int64_t to_draft,
                       const char *to, brc_error *err)
{
    sqlite3_stmt *st;
    int any = 0;
    brc_buf high = BRC_BUF_INIT;
    BRC_TRY(brc_draft_key_any(store, draft, &any, err));
    if (!any)
        return BRC_OK;
    BRC_TRY(keys_change(store, to_draft, err));
    BRC_TRY(brc_draft_has_part(store, to_draft, BRC_PART_KEYS, err));
    int rc = prefix_stmt(store,
                         "INSERT OR REPLACE INTO draft_key(draft, key, id, checksum)"
                         " SELECT ?5, ?4 || substr(key, length(?2)+1), id,"
                         " row_sum('draft_key', ?5, ?4 || substr(key, length(?2)+1), id)"
                         " FROM draft_key WHERE draft=" BRC_IF_KEYS
                         " AND key>=?2 AND (?3 IS NULL OR key<?3)",
                         draft, from, &high, &st, err);
    if (rc == BRC_OK) {
        sqlite3_bind_text(st, 4, to, -1, SQLITE_STATIC);
        sqlite3_bind_int64(st, 5, to_draft);
        rc = brc_run(store, st, err);
    }
    brc_buf_dispose(&high);
    return rc;
}

int brc_draft_keys_keep(brc_store *store, int64_t draft, int64_t save, brc_error *err)
{
    BRC_TRY(brc_draft_key_copy(store, draft, "", save, "", err));
    BRC_TRY(brc_draft_touch(store, save, err));
    return brc_draft_has_part(store, save, BRC_PART_KEYS, err); /* even if the draft has no keys */
}

int brc_draft_keys_meet(brc_store *store, int64_t a, int64_t b, brc_buf *key, brc_error *err)
{
    int there;
    sqlite3_stmt *st;
    BRC_TRY(has_keys(store, &there, err));
    if (!there)
        return 0;
    BRC_TRY(brc_stmt(store,
                     "SELECT x.key FROM draft_key x JOIN draft_key y ON y.draft=?2 AND y.key=x.key"
                     " WHERE x.draft=" BRC_IF_KEYS " AND x.id IS NOT y.id"
                     " ORDER BY x.key LIMIT 1",
                     &st, err));
    sqlite3_bind_int64(st, 1, a);
    sqlite3_bind_int64(st, 2, b);
    int rc = brc_step(store, st, err);
    if (rc <= 0)
        return rc;
    const char *text = (const char *)sqlite3_column_text(st, 0);
    rc = brc_buf_text(key, text != NULL ? text : "", err);
    if (rc == BRC_OK)
        rc = brc_buf_terminate(key, err);
    sqlite3_reset(st);
    return rc < 0 ? rc : 1;
}

/* ==== draft chunk ================================ */

/*
 * Chunks of a draft: the chunks of an array that were written or dropped since the base. They
 * belong to the number of a row of draft_node. That row may lie on others (draft_stack.c): a key's
 * value is that of the uppermost row that has the key, even if the row says that the chunk was
 * dropped.
 */

#define CHUNK_OK "checksum IS row_sum('draft_chunk', node, key, id)"

/* The number of a stack's keys that are read at a time. */
enum { STACK_PAGE = 1024 };

static const char chunk_row[] = "an uncommitted chunk";

static int draft_bind_key(sqlite3_stmt *st, int64_t node, const void *key, size_t key_len)
{
    sqlite3_bind_int64(st, 1, node);
    return sqlite3_bind_blob64(st, 2, key_len > 0 ? key : "", key_len, SQLITE_STATIC);
}

int brc_draft_chunk_put(brc_store *store, int64_t node, const void *key, size_t key_len,
                        const brc_oid *id, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store,
                     "INSERT OR REPLACE INTO draft_chunk(node, key, id, checksum)"
                     " VALUES (?1, ?2, ?3, row_sum('draft_chunk', ?1, ?2, ?3))",
                     &st, err));
    draft_bind_key(st, node, key, key_len);
    brc_bind_id(store, st, 3, id);
    BRC_TRY(brc_run(store, st, err));
    return id != NULL ? brc_gc_keep(store, id, err) : BRC_OK;
}

static int chunk_of_row(brc_store *store, int64_t node, const void *key, size_t key_len, int *state,
                        brc_oid *id, brc_error *err)
{
    sqlite3_stmt *st;
    *state = 0;
    BRC_TRY(brc_stmt(store, "SELECT id, " CHUNK_OK " FROM draft_chunk WHERE node=?1 AND key=?2",
                     &st, err));
    draft_bind_key(st, node, key, key_len);
    int rc = brc_step(store, st, err);
    if (rc <= 0)
        return rc;
    *state = sqlite3_column_type(st, 0) == SQLITE_NULL ? 2 : 1;
    rc = brc_row_check(store, st, 1, chunk_row, err);
    if (rc == BRC_OK && *state == 1)
        rc = brc_column_id(store, st, 0, id, err);
    sqlite3_reset(st);
    return rc;
}

int brc_draft_chunk_get(brc_store *store, const brc_draft_stack *stack, const void *key,
                        size_t key_len, int *state, brc_oid *id, brc_error *err)
{
    *state = 0;
    for (size_t i = 0; i < stack->n && *state == 0; i++)
        BRC_TRY(chunk_of_row(store, stack->node[i], key, key_len, state, id, err));
    return BRC_OK;
}

/* ---- in order -------------------------------- */

static int draft_each_chunk_row(brc_store *store, sqlite3_stmt *st, brc_draft_chunk_fn each,
                                void *ctx, brc_error *err)
{
    int rc;
    while ((rc = brc_step(store, st, err)) > 0) {
        brc_oid id;
        int dropped = sqlite3_column_type(st, 1) == SQLITE_NULL;
        rc = brc_row_check(store, st, 2, chunk_row, err);
        if (rc == BRC_OK && !dropped)
            rc = brc_column_id(store, st, 1, &id, err);
        if (rc == BRC_OK)
            rc = each(ctx, sqlite3_column_blob(st, 0), (size_t)sqlite3_column_bytes(st, 0),
                      dropped ? NULL : &id, err);
        if (rc < 0)
            break;
    }
    sqlite3_reset(st);
    return rc < 0 ? rc : BRC_OK;
}

static int page_of_row(brc_store *store, int64_t node, brc_span after, size_t most,
                       brc_draft_chunk_fn each, void *ctx, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store,
                     "SELECT key, id, " CHUNK_OK " FROM draft_chunk WHERE node=?1 AND key>?2"
                     " ORDER BY key LIMIT ?3",
                     &st, err));
    sqlite3_bind_int64(st, 1, node);
    if (after.data != NULL)
        sqlite3_bind_blob64(st, 2, after.data, after.len, SQLITE_STATIC);
    else
        sqlite3_bind_int(st, 2, 0); /* a number, which comes before every blob */
    sqlite3_bind_int64(st, 3, (int64_t)most);
    return draft_each_chunk_row(store, st, each, ctx, err);
}

/* A chunk of one row of a stack. */
typedef struct stacked_chunk {
    brc_span key;
    size_t level; /* 0: the uppermost */
    int dropped;
    brc_oid id;
} stacked_chunk;

typedef struct stacked_page {
    brc_arena arena;
    size_t level, n, cap;
    void *chunks; /* stacked_chunk[] */
} stacked_page;

static int stack_take(void *ctx, const uint8_t *key, size_t key_len, const brc_oid *id,
                      brc_error *err)
{
    stacked_page *page = ctx;
    uint8_t *copy;
    BRC_TRY(brc_grow_array(&page->chunks, &page->cap, page->n + 1, sizeof(stacked_chunk), err));
    BRC_TRY(brc_arena_copy(&page->arena, key, key_len, &copy, err));
    stacked_chunk *c = &((stacked_chunk *)page->chunks)[page->n++];
    memset(c, 0, sizeof(*c));
    c->key = (brc_span){copy, key_len};
    c->level = page->level;
    c->dropped = id == NULL;
    if (id != NULL)
        c->id = *id;
    return BRC_OK;
}

static int stacked_key_order(brc_span a, brc_span b)
{
    size_t min = a.len < b.len ? a.len : b.len;
    int order = min > 0 ? memcmp(a.data, b.data, min) : 0;
    return order != 0 ? order : (a.len > b.len) - (a.len < b.len);
}

static int stacked_order(const void *a, const void *b)
{
    const stacked_chunk *x = a, *y = b;
    int order = stacked_key_order(x->key, y->key);
    return order != 0 ? order : (x->level > y->level) - (x->level < y->level);
}

/* Reads the first `most` keys of each row, among which are the first `most` keys of the stack. */
static int stack_page(brc_store *store, const brc_draft_stack *stack, brc_span after, size_t most,
                      stacked_page *page, brc_error *err)
{
    size_t kept = 0;
    page->n = 0;
    for (page->level = 0; page->level < stack->n; page->level++)
        BRC_TRY(page_of_row(store, stack->node[page->level], after, most, stack_take, page, err));
    stacked_chunk *chunks = page->chunks;
    if (page->n > 1)
        qsort(chunks, page->n, sizeof(*chunks), stacked_order);
    for (size_t i = 0; i < page->n && kept < most; i++)
        if (kept == 0 || stacked_key_order(chunks[kept - 1].key, chunks[i].key) != 0)
            chunks[kept++] = chunks[i];
    page->n = kept;
    return BRC_OK;
}

/* Reads the keys after `after` in pages of at most `most`: the first page, or all of them. */
static int stack_pages(brc_store *store, const brc_draft_stack *stack, brc_span after, size_t most,
                       int all, brc_draft_chunk_fn each, void *ctx, brc_error *err)
{
    stacked_page page = {.arena = BRC_ARENA_INIT};
    int rc;
    do {
        brc_arena old = page.arena; /* `after` is in it */
        page.arena = (brc_arena)BRC_ARENA_INIT;
        rc = stack_page(store, stack, after, most, &page, err);
        brc_arena_dispose(&old);
        const stacked_chunk *chunks = page.chunks;
        for (size_t i = 0; i < page.n && rc == BRC_OK; i++)
            rc = each(ctx, chunks[i].key.data, chunks[i].key.len,
                      chunks[i].dropped ? NULL : &chunks[i].id, err);
        if (rc == BRC_OK && page.n > 0)
            after = chunks[page.n - 1].key;
    } while (all && rc == BRC_OK && page.n == most);
    brc_arena_dispose(&page.arena);
    free(page.chunks);
    return rc;
}

/* Passes a page of one row on to the caller's function, and keeps its last key. */
typedef struct row_page {
    brc_draft_chunk_fn each;
    void *ctx;
    size_t n;
    brc_buf last;
} row_page;

static int row_page_take(void *ctx, const uint8_t *key, size_t key_len, const brc_oid *id,
                         brc_error *err)
{
    row_page *page = ctx;
    page->n++;
    page->last.len = 0;
    BRC_TRY(brc_buf_append(&page->last, key, key_len, err));
    return page->each(page->ctx, key, key_len, id, err);
}

/* Reads a row's chunks page by page, so that no statement runs long, however many there are. */
static int row_pages(brc_store *store, int64_t node, brc_draft_chunk_fn each, void *ctx,
                     brc_error *err)
{
    row_page page = {.each = each, .ctx = ctx, .last = BRC_BUF_INIT};
    brc_buf after = BRC_BUF_INIT;
    int rc;
    do {
        const brc_span from = {after.len > 0 || page.n > 0 ? after.data : NULL, after.len};
        page.n = 0;
        rc = page_of_row(store, node, from, STACK_PAGE, row_page_take, &page, err);
        const brc_buf swap = after;
        after = page.last;
        page.last = swap;
    } while (rc == BRC_OK && page.n == STACK_PAGE);
    brc_buf_dispose(&page.last);
    brc_buf_dispose(&after);
    return rc;
}

int brc_draft_chunk_each(brc_store *store, const brc_draft_stack *stack, brc_draft_chunk_fn each,
                         void *ctx, brc_error *err)
{
    const brc_span start = {NULL, 0};
    return stack->n == 1 ? row_pages(store, stack->node[0], each, ctx, err)
                         : stack_pages(store, stack, start, STACK_PAGE, 1, each, ctx, err);
}

int brc_draft_chunk_page(brc_store *store, const brc_draft_stack *stack, brc_span after,
                         size_t most, brc_draft_chunk_fn each, void *ctx, brc_error *err)
{
    return stack->n == 1 ? page_of_row(store, stack->node[0], after, most, each, ctx, err)
                         : stack_pages(store, stack, after, most, 0, each, ctx, err);
}

typedef struct chunk_copy {
    brc_store *store;
    int64_t into;
    brc_buf *after;
    size_t n;
} chunk_copy;

static int copy_chunk(void *ctx, const uint8_t *key, size_t key_len, const brc_oid *id,
                      brc_error *err)
{
    chunk_copy *c = ctx;
    c->n++;
    c->after->len = 0;
    BRC_TRY(brc_buf_append(c->after, key, key_len, err));
    return brc_draft_chunk_put(c->store, c->into, c->after->data, c->after->len, id, err);
}

int brc_draft_chunk_copy(brc_store *store, const brc_draft_stack *stack, int64_t into,
                         brc_buf *after, size_t *n, brc_error *err)
{
    chunk_copy c = {store, into, after, 0};
    brc_buf from = BRC_BUF_INIT;
    int rc;
    BRC_GO(brc_buf_append(&from, after->data, after->len, err));
    const brc_span start = {after->len > 0 ? from.data : NULL, from.len};
    rc = brc_draft_chunk_page(store, stack, start, BRC_DRAFT_COPY_STEP, copy_chunk, &c, err);
    *n = c.n;
done:
    brc_buf_dispose(&from);
    return rc;
}

int brc_draft_chunk_any(brc_store *store, const brc_draft_stack *stack, int *any, brc_error *err)
{
    sqlite3_stmt *st;
    *any = 0;
    for (size_t i = 0; i < stack->n && !*any; i++) {
        BRC_TRY(brc_stmt(store, "SELECT 1 FROM draft_chunk WHERE node=?1 LIMIT 1", &st, err));
        sqlite3_bind_int64(st, 1, stack->node[i]);
        BRC_TRY(brc_ask_any(store, st, any, err));
    }
    return BRC_OK;
}

int brc_draft_chunk_clear(brc_store *store, int64_t node, const void *key, size_t key_len,
                          brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store, "DELETE FROM draft_chunk WHERE node=?1 AND key=?2", &st, err));
    draft_bind_key(st, node, key, key_len);
    return brc_run(store, st, err);
}
