/* The nodes that a session shows: looked up through its drafts, put into them, walked. */
#include <stdlib.h>
#include <string.h>

#include "bulk_write.h"
#include "node_moves.h"
#include "session.h"

static int64_t top_draft(const brc_session *s)
{
    return s->bulk != NULL ? s->bulk->draft : s->draft.id;
}

/* ---- looking nodes up -------------------------------- */

/* The draft's word on one path, or that of a bulk write over it: *said 1 if it has a row. */
static int find_row(brc_session *s, const char *path, int *said, brc_entry *entry, int64_t *row,
                    brc_error *err)
{
    brc_draft_node node;
    *said = 0;
    if (s->bulk != NULL && s->bulk->draft != 0)
        BRC_TRY(brc_draft_node_get(s->repo->store, s->bulk->draft, path, said, &node, err));
    if (!*said && s->draft.id != 0)
        BRC_TRY(brc_draft_node_get(s->repo->store, s->draft.id, path, said, &node, err));
    if (!*said)
        return BRC_OK;
    int rc = BRC_OK;
    memset(entry, 0, sizeof(*entry));
    *row = node.node;
    if (node.entry != NULL)
        rc = brc_entry_decode(entry, (brc_span){node.entry, node.entry_len},
                              brc_store_id_len(s->repo->store), err);
    free(node.entry);
    return rc;
}

int brc_session_find(brc_session *s, const char *path, brc_entry *out, int64_t *row, brc_error *err)
{
    brc_store *store = s->repo->store;
    brc_buf prefix = BRC_BUF_INIT;
    int rc, said = 0;
    *row = 0;
    if (s->draft.id == 0 && top_draft(s) == 0)
        return brc_snapshot_find(store, &s->base, path, out, err);
    BRC_GO(find_row(s, "/", &said, out, row, err));
    if (!said)
        BRC_GO(brc_snapshot_find(store, &s->base, "/", out, err));
    for (const char *at = path + 1; *at != '\0' && out->kind != 0;) {
        size_t len = strcspn(at, "/");
        brc_entry parent = *out;
        *row = 0;
        prefix.len = 0;
        BRC_GO(brc_buf_append(&prefix, path, (size_t)(at - path) + len, err));
        BRC_GO(brc_buf_terminate(&prefix, err));
        if (parent.kind != BRC_GROUP) {
            memset(out, 0, sizeof(*out));
            break;
        }
        BRC_GO(find_row(s, (const char *)prefix.data, &said, out, row, err));
        if (!said) {
            prefix.len = 0;
            BRC_GO(brc_buf_append(&prefix, at, len, err));
            BRC_GO(brc_buf_terminate(&prefix, err));
            BRC_GO(brc_entry_find(store, &parent, (const char *)prefix.data, out, err));
        }
        at += len + (at[len] == '/');
    }
    rc = BRC_OK;
done:
    brc_buf_dispose(&prefix);
    return rc;
}

int brc_session_need(brc_session *s, const char *path, int kind, brc_entry *out, int64_t *row,
                     brc_error *err)
{
    BRC_TRY(brc_session_find(s, path, out, row, err));
    if (out->kind == 0)
        return brc_fail(err, BRC_ENOTFOUND, "there is no node %s", path);
    if (kind != 0 && out->kind != kind)
        return brc_fail(err, BRC_EINVAL, kind == BRC_ARRAY ? "%s is a group, not an array"
                                                           : "%s is an array, not a group",
                        path);
    return BRC_OK;
}

/* A document that only the session's own draft has goes with a bulk write's row too: what becomes
 * of the one is nothing to the other. */
static int bring_document(brc_session *s, const char *path, const brc_entry *entry, int64_t node,
                          brc_error *err)
{
    brc_store *store = s->repo->store;
    brc_draft_node own = {0};
    brc_entry then;
    int found = 0, is_there = 0;
    if (s->bulk == NULL || s->draft.id == 0)
        return BRC_OK;
    BRC_TRY(brc_draft_doc_has(store, &entry->doc, &is_there, err));
    if (is_there)
        BRC_TRY(brc_draft_node_get(store, s->draft.id, path, &found, &own, err));
    if (own.entry == NULL)
        return BRC_OK;
    int rc = brc_entry_decode(&then, (brc_span){own.entry, own.entry_len},
                              brc_store_id_len(store), err);
    free(own.entry);
    if (rc < 0 || brc_oid_cmp(&then.doc, &entry->doc) != 0)
        return rc;
    return brc_draft_doc_copy(store, own.node, node, err);
}

int brc_session_put(brc_session *s, const char *path, const brc_entry *entry, int64_t *row,
                    brc_error *err)
{
    uint8_t bytes[BRC_ENTRY_MAX];
    brc_store *store = s->repo->store;
    brc_entry full;
    s->repo->changes++;
    s->changes = s->repo->changes; /* base and draft are still right */
    if (s->bulk != NULL)
        BRC_TRY(s->bulk->meet(s, path, err));
    if (entry == NULL)
        return brc_draft_node_put(store, top_draft(s), path, NULL, 0, row, err);
    full = *entry;
    if (brc_oid_is_zero(&full.doc)) { /* the empty snapshot's root gets a document */
        brc_span text;
        BRC_TRY(brc_entry_text(store, entry, &text, err));
        BRC_TRY(brc_store_put(store, BRC_KIND_DOCUMENT, text.data, text.len, &full.doc, err));
    }
    size_t len = brc_entry_encode(bytes, &full, brc_store_id_len(store));
    int64_t node;
    BRC_TRY(brc_draft_node_put(store, top_draft(s), path, bytes, len, &node, err));
    if (row != NULL)
        *row = node;
    return bring_document(s, path, &full, node, err);
}

static int drop_document(brc_session *s, const char *path, brc_error *err)
{
    int64_t ignored;
    BRC_TRY(brc_draft_node_own(s->repo->store, top_draft(s), path, &ignored, err));
    return brc_draft_doc_drop_at(s->repo->store, top_draft(s), path, err);
}

/* The document before must not stay: what was set again and again takes the place of the last. */
int brc_session_put_doc(brc_session *s, const char *path, brc_entry *entry, const brc_json *doc,
                        int64_t *row, brc_error *err)
{
    brc_store *store = s->repo->store;
    brc_buf text = BRC_BUF_INIT;
    int64_t node;
    int rc;
    BRC_GO(brc_json_write(&text, doc, err));
    BRC_GO(drop_document(s, path, err));
    entry->doc = brc_hash_object(brc_store_hash(store), BRC_KIND_DOCUMENT, text.data, text.len);
    BRC_GO(brc_session_put(s, path, entry, &node, err));
    rc = brc_draft_doc_put(store, node, &entry->doc, (brc_span){text.data, text.len}, err);
    if (rc == BRC_OK && row != NULL)
        *row = node;
done:
    brc_buf_dispose(&text);
    return rc;
}

int brc_session_put_new(brc_session *s, const char *path, brc_entry *entry, const brc_json *doc,
                        brc_error *err)
{
    brc_buf text = BRC_BUF_INIT;
    int rc;
    if (s->bulk == NULL)
        return brc_session_put_doc(s, path, entry, doc, NULL, err);
    BRC_GO(brc_json_write(&text, doc, err));
    BRC_GO(brc_store_put(s->repo->store, BRC_KIND_DOCUMENT, text.data, text.len, &entry->doc, err));
    BRC_GO(drop_document(s, path, err));
    rc = brc_session_put(s, path, entry, NULL, err);
done:
    brc_buf_dispose(&text);
    return rc;
}

static int make_plain_group(brc_session *s, const char *path, brc_error *err)
{
    brc_entry group = {.kind = BRC_GROUP};
    BRC_TRY(brc_note_new(s, path, err));
    return brc_session_put(s, path, &group, NULL, err);
}

int brc_session_parents(brc_session *s, const char *path, brc_error *err)
{
    brc_buf prefix = BRC_BUF_INIT;
    brc_entry entry;
    int64_t row;
    int rc = BRC_OK;
    if (strcmp(path, "/") == 0)
        return BRC_OK;
    for (const char *at = path; at != NULL; at = strchr(at + 1, '/')) { /* the root is the first */
        prefix.len = 0;
        BRC_GO(brc_buf_append(&prefix, path, at > path ? (size_t)(at - path) : 1, err));
        BRC_GO(brc_buf_terminate(&prefix, err));
        const char *parent = (const char *)prefix.data;
        BRC_GO(brc_session_find(s, parent, &entry, &row, err));
        if (entry.kind == BRC_ARRAY) {
            rc = brc_fail(err, BRC_EINVAL, "%s cannot exist: %s is an array and has no children",
                          path, parent);
            goto done;
        }
        if (entry.kind == 0)
            BRC_GO(make_plain_group(s, parent, err));
    }
done:
    brc_buf_dispose(&prefix);
    return rc;
}

/* ---- walking -------------------------------- */

int brc_session_walk(brc_tree_walk **out, brc_session *s, const char *path, const brc_entry *entry,
                     int64_t row, int flags, brc_error *err)
{
    const int64_t drafts[] = {s->draft.id, s->bulk != NULL ? s->bulk->draft : 0};
    return brc_tree_walk_new(out, s->repo->store, path, entry, row, drafts, flags, err);
}
