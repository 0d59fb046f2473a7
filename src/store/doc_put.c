/* Documents that come: into a draft, and with its commit among the objects. */
#include <string.h>

#include "db.h"
#include "document.h"

static int is_object(brc_store *store, const brc_oid *id, int *found, brc_error *err)
{
    brc_object o = {.id = *id}, *one = &o;
    BRC_TRY(brc_objects_find(store, &one, 1, err));
    *found = o.found && o.kind == BRC_KIND_DOCUMENT;
    return BRC_OK;
}

/* The node's draft may have documents from now on. */
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
    if (found) { /* is it the same? */
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
