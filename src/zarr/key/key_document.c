/*
 * Sets a node's document for a client: makes a node or changes one, with the effect of a file in a
 * directory. In a directory, bytes stay where they are whatever a document says; therefore chunks
 * that get other keys or another form from the new document become loose keys with the values that
 * they had. Chunks whose keys and form are the same stay chunks, also under other codecs: their
 * values stay, and their bytes are transcoded. What a smaller shape cuts off is removed, as by
 * brc_array_resize(). A group keeps the notes of part.h, which clients do not set.
 */
#include <stdlib.h>
#include <string.h>

#include "../../base/alloc.h"
#include "../../base/part.h"
#include "../../history/tree_walk.h"
#include "../../work/session_nodes.h"
#include "../array/chunk_cursor.h"
#include "../stored/stored_in.h"
#include "../stored/stored_out.h"
#include "key_list.h"
#include "key_rows.h"

/* ---- loose bytes -------------------------------- */

/* Bytes that are neither a node nor a chunk yet, and chunks that become such bytes. */

int brc_loose_put(brc_session *s, const char *key, brc_span data, brc_error *err)
{
    brc_oid id;
    if (data.len > BRC_MAX_CHUNK_BYTES)
        return brc_fail(err, BRC_ELIMIT, "a value has at most 2^31-1 bytes, not %zu", data.len);
    BRC_TRY(brc_store_put(s->repo->store, BRC_KIND_LOOSE,
                          data.len > 0 ? data.data : (const uint8_t *)"", data.len, &id, err));
    return brc_draft_key_put(s->repo->store, s->draft.id, key, &id, err);
}

static int loosen_one(brc_array *a, const uint64_t *outer, brc_buf *key, brc_buf *value,
                      brc_error *err)
{
    brc_buf full = BRC_BUF_INIT;
    int there, rc;
    key->len = 0;
    BRC_GO(brc_chunk_key_format(a, outer, key, err));
    BRC_GO(brc_stored_chunk(a, outer, value, &there, err));
    BRC_GO(brc_buf_printf(&full, err, "%s%s%s", a->path + 1, a->path[1] != '\0' ? "/" : "",
                          (const char *)key->data));
    if (there)
        BRC_GO(brc_loose_put(a->session, (const char *)full.data,
                             (brc_span){value->data, value->len}, err));
    rc = brc_put_drop(a, outer, err);
done:
    brc_buf_dispose(&full);
    return rc;
}

/* Turns every chunk and shard of the array into a loose key with its present value. Within a
 * change. */
static int loosen_all(brc_array *a, brc_error *err)
{
    brc_outer_cursor c;
    brc_buf key = BRC_BUF_INIT, value = BRC_BUF_INIT;
    uint64_t outer[BRC_MAX_NDIM] = {0};
    brc_oid id;
    int rc = brc_outer_cursor_start(&c, a, NULL, err);
    while (rc >= 0 && (rc = brc_outer_cursor_next(&c, outer, &id, err)) > 0) {
        rc = loosen_one(a, outer, &key, &value, err);
        if (rc >= 0)
            rc = 1;
    }
    brc_outer_cursor_end(&c);
    brc_buf_dispose(&key);
    brc_buf_dispose(&value);
    return rc;
}

static int is_beyond(const brc_meta *meta, const uint64_t *outer)
{
    for (int i = 0; i < meta->ndim; i++)
        if (outer[i] >= meta->outer.count[i])
            return 1;
    return 0;
}

/* Removes every chunk and shard outside of `meta`'s shape. Within a change. */
static int drop_chunks_beyond(brc_array *a, const brc_meta *meta, brc_error *err)
{
    brc_outer_cursor c;
    uint64_t outer[BRC_MAX_NDIM] = {0};
    brc_oid id;
    int rc = brc_outer_cursor_start(&c, a, NULL, err);
    while (rc >= 0 && (rc = brc_outer_cursor_next(&c, outer, &id, err)) > 0)
        if (is_beyond(meta, outer) && (rc = brc_put_drop(a, outer, err)) < 0)
            break;
    brc_outer_cursor_end(&c);
    return rc < 0 ? rc : BRC_OK;
}

/* ---- documents -------------------------------- */

/* The document in the bytes. */
typedef struct new_document {
    brc_json *json;
    int kind;
    brc_meta meta; /* for an array */
} new_document;

static void new_document_dispose(new_document *doc)
{
    if (doc->kind == BRC_ARRAY)
        brc_meta_dispose(&doc->meta);
    brc_json_free(doc->json);
}

static int parse_new_document(new_document *doc, brc_session *s, brc_span data, brc_error *err)
{
    int kind;
    memset(doc, 0, sizeof(*doc));
    const char *text = data.len > 0 ? (const char *)data.data : "";
    BRC_TRY(brc_json_parse_document(&doc->json, text, data.len, err));
    BRC_TRY(brc_meta_kind(doc->json, &kind, err));
    if (kind == BRC_GROUP)
        BRC_TRY(brc_meta_check_group(doc->json, err));
    else
        BRC_TRY(brc_meta_open(&doc->meta, s->repo->registry, doc->json, err));
    doc->kind = kind;
    return BRC_OK;
}

/* Tells whether an error is about the bytes, and not about the machine. */
static int is_no_document(int rc)
{
    return rc == BRC_EINVAL || rc == BRC_ECORRUPT || rc == BRC_EUNSUPPORTED || rc == BRC_ELIMIT ||
           rc == BRC_EFORMAT;
}

/* ---- replacing an array -------------------------------- */

/* Tells whether chunks have the same keys and the same elements. */
static int keeps_chunks(const brc_array *a, const brc_json *was, const new_document *doc)
{
    static const char *const members[] = { "data_type", "chunk_grid", "chunk_key_encoding" };
    const brc_meta *m = &a->meta, *n = &doc->meta;
    for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++)
        if (!brc_json_equal(brc_json_member(was, members[i]),
                            brc_json_member(doc->json, members[i])))
            return 0;
    if (m->ndim != n->ndim || m->opaque != n->opaque ||
        (m->opaque && strcmp(m->codecs_json, n->codecs_json) != 0))
        return 0;
    return memcmp(m->grid.chunk, n->grid.chunk, (size_t)m->ndim * sizeof(m->grid.chunk[0])) == 0;
}

/* Computes the shape that both documents have; 0: the new shape contains the old one. */
static int cuts_array(const brc_meta *m, const brc_meta *n, uint64_t *keep)
{
    int cuts = 0;
    for (int i = 0; i < m->ndim; i++) {
        cuts |= n->shape[i] < m->shape[i];
        keep[i] = n->shape[i] < m->shape[i] ? n->shape[i] : m->shape[i];
    }
    return cuts;
}

/* How a new document of an array changes its chunks. */
typedef struct chunks_then {
    int same; /* all stay chunks of the array */
    int cuts; /* ... as far as the new shape goes: */
    uint64_t keep[BRC_MAX_NDIM];
} chunks_then;

/* Finds that out, within a change of the array or a read. */
static int meet_document(brc_array *a, const new_document *doc, chunks_then *out, brc_error *err)
{
    brc_json *was;
    memset(out, 0, sizeof(*out));
    BRC_TRY(brc_entry_doc(brc_array_store(a), &a->entry, &was, err));
    out->same = doc->kind == BRC_ARRAY && keeps_chunks(a, was, doc);
    out->cuts = out->same && cuts_array(&a->meta, &doc->meta, out->keep);
    brc_json_free(was);
    return BRC_OK;
}

/* Turns the chunks that the new document lacks into loose keys. Afterwards the array has a row of
 * the draft, and *map is its chunk map. */
static int loosen_in_change(brc_array *a, const new_document *doc, brc_oid *map, brc_error *err)
{
    chunks_then then;
    BRC_TRY(meet_document(a, doc, &then, err));
    if (!then.same) {
        BRC_TRY(loosen_all(a, err));
        return brc_draft_row_clear(brc_array_store(a), a->row, a->path, err);
    }
    if (then.cuts) /* for an opaque array, which has not been resized */
        BRC_TRY(drop_chunks_beyond(a, &doc->meta, err));
    *map = a->entry.map;
    return BRC_OK;
}

/* Removes what a smaller shape cuts off. Chunks that cannot be decoded here keep their whole
 * content. */
static int cut_array_to(brc_array *a, const new_document *doc, brc_error *err)
{
    chunks_then then;
    BRC_TRY(brc_array_begin_read(a, err));
    int rc = meet_document(a, doc, &then, err);
    brc_array_end_read(a);
    if (rc < 0 || !then.cuts || a->meta.opaque)
        return rc;
    return brc_array_resize(a, then.keep, err);
}

static int loosen_chunks(brc_session *s, const char *path, const new_document *doc, brc_oid *map,
                         brc_error *err)
{
    brc_array *a;
    memset(map, 0, sizeof(*map));
    BRC_TRY(brc_array_open(&a, s, path, err));
    int rc = cut_array_to(a, doc, err);
    if (rc == BRC_OK)
        rc = brc_array_begin(a, err);
    if (rc == BRC_OK)
        rc = brc_array_end(a, loosen_in_change(a, doc, map, err), err);
    brc_array_free(a);
    return rc;
}

/* ---- nodes -------------------------------- */

static int has_any_chunk(brc_session *s, const char *path, int *has, brc_error *err)
{
    brc_array *a;
    brc_chunk_cursor c;
    brc_oid id;
    uint64_t index[BRC_MAX_NDIM];
    BRC_TRY(brc_array_open(&a, s, path, err));
    int rc = brc_chunk_cursor_start(&c, a, err);
    if (rc == BRC_OK)
        rc = brc_chunk_cursor_next(&c, index, &id, err);
    brc_chunk_cursor_end(&c);
    brc_array_free(a);
    *has = rc > 0;
    return rc < 0 ? rc : BRC_OK;
}

int brc_key_node_is_empty(brc_session *s, const char *path, const brc_entry *entry, int64_t row,
                          int *is, brc_error *err)
{
    brc_tree_walk *walk;
    brc_tree_node node;
    int has = 0, rc;
    if (entry->kind == BRC_ARRAY) {
        rc = has_any_chunk(s, path, &has, err);
    } else {
        BRC_TRY(brc_session_walk(&walk, s, path, entry, row, 0, err));
        rc = brc_tree_walk_next(walk, &node, err); /* the node itself */
        if (rc > 0)
            rc = brc_tree_walk_next(walk, &node, err);
        has = rc > 0;
        brc_tree_walk_free(walk);
    }
    *is = !has;
    return rc < 0 ? rc : BRC_OK;
}

static int document_row(brc_session *s, const char *path, int *state, brc_error *err)
{
    brc_buf key = BRC_BUF_INIT;
    brc_oid id;
    int rc = brc_buf_printf(&key, err, "%s%szarr.json", path + 1, path[1] != '\0' ? "/" : "");
    if (rc == BRC_OK)
        rc = brc_draft_key_get(s->repo->store, s->draft.id, (const char *)key.data, state, &id,
                               err);
    brc_buf_dispose(&key);
    return rc;
}

int brc_key_remove_empty(brc_session *s, const char *path, brc_error *err)
{
    brc_store *store = s->repo->store;
    brc_buf key = BRC_BUF_INIT;
    int rc;
    BRC_GO(brc_note_removed(s, path, err));
    BRC_GO(brc_draft_node_clear(store, s->draft.id, path, err));
    BRC_GO(brc_session_put(s, path, NULL, NULL, err));
    BRC_GO(brc_buf_printf(&key, err, "%s/zarr.json", path + 1));
    rc = brc_draft_key_drop(store, s->draft.id, (const char *)key.data, err);
done:
    brc_buf_dispose(&key);
    return rc;
}

int brc_key_prune(brc_session *s, const char *path, brc_error *err)
{
    brc_buf above = BRC_BUF_INIT;
    brc_entry entry;
    int64_t row;
    int state, is = 1, rc;
    BRC_GO(brc_buf_text(&above, path, err));
    for (;;) {
        while (above.len > 0 && above.data[above.len - 1] != '/')
            above.len--;
        if (above.len <= 1)
            break; /* the root stays */
        above.data[--above.len] = '\0';
        const char *parent = (const char *)above.data;
        BRC_GO(document_row(s, parent, &state, err));
        if (state != BRC_KEY_HIDDEN)
            break;
        BRC_GO(brc_session_find(s, parent, &entry, &row, err));
        if (entry.kind != 0)
            BRC_GO(brc_key_node_is_empty(s, parent, &entry, row, &is, err));
        if (entry.kind == 0 || !is)
            break;
        BRC_GO(brc_key_remove_empty(s, parent, err));
    }
    rc = BRC_OK;
done:
    brc_buf_dispose(&above);
    return rc;
}

/* Hides the document of a group that nobody has written: it has no key unless other bytes are
 * set. */
static int hide_group(brc_session *s, const char *path, brc_error *err)
{
    brc_buf key = BRC_BUF_INIT;
    brc_oid id;
    int state = BRC_KEY_NO_ROW;
    int rc = brc_buf_printf(&key, err, "%s%szarr.json", path + 1, path[1] != '\0' ? "/" : "");
    if (rc == BRC_OK)
        rc = brc_draft_key_get(s->repo->store, s->draft.id, (const char *)key.data, &state, &id,
                               err);
    if (rc == BRC_OK && state == BRC_KEY_NO_ROW)
        rc = brc_draft_key_put(s->repo->store, s->draft.id, (const char *)key.data, NULL, err);
    brc_buf_dispose(&key);
    return rc;
}

/* Makes missing groups above the node, without documents of their own. Returns 0 with the reason if
 * one is an array. */
static int make_parents(brc_session *s, const char *path, brc_error *err)
{
    brc_buf above = BRC_BUF_INIT;
    brc_entry entry;
    int64_t row;
    int rc = BRC_OK, written = 1;
    for (const char *at = path; at != NULL; at = strchr(at + 1, '/')) {
        above.len = 0;
        BRC_GO(brc_buf_append(&above, path, at > path ? (size_t)(at - path) : 1, err));
        BRC_GO(brc_buf_terminate(&above, err));
        const char *parent = (const char *)above.data;
        if (strcmp(parent, path) == 0)
            break;
        BRC_GO(brc_session_find(s, parent, &entry, &row, err));
        if (entry.kind == BRC_ARRAY) {
            brc_fail(err, BRC_EINVAL, "%s is an array and has no children", parent);
            brc_buf_dispose(&above);
            return 0;
        }
        if (at == path)
            BRC_GO(brc_key_root_is_written(s, &entry, &written, err));
        if (entry.kind == 0 || !written)
            BRC_GO(hide_group(s, parent, err));
        written = 1;
    }
    rc = brc_session_parents(s, path, err);
done:
    brc_buf_dispose(&above);
    return rc < 0 ? rc : 1;
}

static int keep_note(const brc_json *was, const char *name, brc_json *doc, brc_error *err)
{
    const brc_json *note = brc_json_member(brc_json_member(was, "attributes"), name);
    const brc_json *attrs = brc_json_member(doc, "attributes");
    brc_json *copy;
    if (brc_json_kind(note) != BRC_JSON_OBJECT || brc_json_member(attrs, name))
        return BRC_OK;
    if (brc_json_kind(attrs) != BRC_JSON_OBJECT)
        BRC_TRY(brc_json_set(doc, "attributes", brc_json_new_object(), err));
    BRC_TRY(brc_json_clone(&copy, note, err));
    attrs = brc_json_member(doc, "attributes");
    /* the document is the caller's to change */
    return brc_json_add((brc_json *)(uintptr_t)attrs, name, copy, err);
}

static int keep_way_back(brc_store *store, const brc_entry *group, brc_json *doc, brc_error *err)
{
    brc_json *was;
    BRC_TRY(brc_entry_doc(store, group, &was, err));
    int rc = keep_note(was, BRC_NETCDF_GROUP_NOTE, doc, err);
    if (rc == BRC_OK)
        rc = keep_note(was, BRC_HDF5_GROUP_NOTE, doc, err);
    brc_json_free(was);
    return rc;
}

/* Returns 1, or 0 with the reason if a group with children would become an array. */
static int put_node(brc_session *s, const char *path, const new_document *doc, brc_error *err)
{
    brc_store *store = s->repo->store;
    brc_entry entry;
    int64_t row;
    int empty = 1;
    BRC_TRY(brc_session_find(s, path, &entry, &row, err));
    const int was = entry.kind;
    if (was == BRC_GROUP && doc->kind == BRC_ARRAY) {
        BRC_TRY(brc_key_node_is_empty(s, path, &entry, row, &empty, err));
        if (!empty) {
            brc_fail(err, BRC_EINVAL, "%s is a group with nodes in it, and cannot become an array",
                     path);
            return 0;
        }
    }
    if (was == BRC_ARRAY)
        BRC_TRY(loosen_chunks(s, path, doc, &entry.map, err));
    if (was == BRC_GROUP && doc->kind == BRC_GROUP)
        BRC_TRY(keep_way_back(store, &entry, doc->json, err));
    if (was != doc->kind) {
        BRC_TRY(brc_note_removed(s, path, err));
        BRC_TRY(brc_draft_node_clear(store, s->draft.id, path, err));
        memset(&entry, 0, sizeof(entry));
        BRC_TRY(brc_note_new(s, path, err));
        if (doc->kind == BRC_ARRAY)
            BRC_TRY(brc_entry_take_default(s, &entry, err));
    }
    entry.kind = doc->kind;
    BRC_TRY(brc_session_put_doc(s, path, &entry, doc->json, NULL, err));
    return 1;
}

static int place_node(brc_session *s, const char *path, brc_span data, brc_error *err)
{
    new_document doc;
    int rc = parse_new_document(&doc, s, data, err);
    if (rc < 0)
        rc = is_no_document(rc) ? 0 : rc;
    else
        rc = make_parents(s, path, err);
    if (rc > 0)
        rc = put_node(s, path, &doc, err);
    new_document_dispose(&doc);
    return rc;
}

/* Tells whether the bytes are meant to be a node's document: if they are not valid, nothing set
 * later can make them so. */
static int means_document(brc_span data)
{
    static const char *const members[] = { "\"zarr_format\"", "\"node_type\"" };
    size_t at = 0;
    while (at < data.len && strchr(" \t\r\n", data.data[at]) != NULL && data.data[at] != 0)
        at++;
    int means = at < data.len && data.data[at] == '{';
    for (size_t i = 0; means && i < sizeof(members) / sizeof(members[0]); i++)
        means = memmem(data.data, data.len, members[i], strlen(members[i])) != NULL;
    return means;
}

int brc_key_check_document(brc_session *s, const char *key, brc_span data, brc_error *err)
{
    new_document doc;
    size_t len;
    if (!brc_document_key(key, &len) || !means_document(data))
        return BRC_OK;
    int rc = parse_new_document(&doc, s, data, err);
    new_document_dispose(&doc);
    if (rc < 0)
        brc_context(err, "%.300s", key);
    return rc;
}

int brc_key_place_document(brc_session *s, const char *key, brc_span data, brc_error *err)
{
    brc_buf path = BRC_BUF_INIT;
    size_t len;
    int rc;
    if (!brc_document_key(key, &len))
        return 0;
    BRC_GO(brc_key_node_path(&path, key, len, err));
    if (rc > 0)
        rc = place_node(s, (const char *)path.data, data, err);
    if (rc > 0) {
        int gone = brc_draft_key_drop(s->repo->store, s->draft.id, key, err);
        rc = gone < 0 ? gone : 1;
    }
done:
    brc_buf_dispose(&path);
    return rc;
}

int brc_key_cut_ahead(brc_session *s, const char *key, brc_span data, brc_error *err)
{
    brc_buf path = BRC_BUF_INIT;
    brc_array *a = NULL;
    new_document doc = {0};
    size_t len;
    int kind = 0, rc = BRC_OK;
    if (!brc_document_key(key, &len) || brc_store_in_write(s->repo->store))
        return BRC_OK;
    BRC_GO(brc_key_node_path(&path, key, len, err));
    if (rc > 0)
        BRC_GO(brc_node_kind(&kind, s, (const char *)path.data, err));
    rc = BRC_OK;
    if (kind != BRC_ARRAY)
        goto done;
    rc = parse_new_document(&doc, s, data, NULL);
    if (rc < 0 || doc.kind != BRC_ARRAY) {
        rc = rc < 0 && !is_no_document(rc) ? brc_fail(err, rc, "%s cannot be read", key) : BRC_OK;
        goto done;
    }
    BRC_GO(brc_array_open(&a, s, (const char *)path.data, err));
    rc = cut_array_to(a, &doc, err);
done:
    brc_array_free(a);
    new_document_dispose(&doc);
    brc_buf_dispose(&path);
    return rc;
}
