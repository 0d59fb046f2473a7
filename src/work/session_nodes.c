#include "session_nodes.h"

#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../base/buf.h"
#include "../base/node_path.h"
#include "../history/tree_walk.h"
#include "bulk_write.h"
#include "session.h"

/* ==== hidden nodes ================================ */

static int take_hidden(void *ctx, const char *key, const brc_oid *id, brc_error *err)
{
    brc_hidden_nodes *nodes = ctx;
    brc_buf path = BRC_BUF_INIT;
    size_t len;
    int rc;
    if (id != NULL || !brc_document_key(key, &len))
        return BRC_OK;
    BRC_GO(brc_grow_array(&nodes->paths, &nodes->cap, nodes->n + 1, sizeof(char *), err));
    BRC_GO(brc_buf_printf(&path, err, "/%.*s", (int)len, key));
    BRC_GO(brc_buf_take_text(&path, &((char **)nodes->paths)[nodes->n], err));
    nodes->n++;
done:
    brc_buf_dispose(&path);
    return rc;
}

static int hidden_order(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

int brc_hidden_nodes_read(brc_hidden_nodes *out, brc_store *store, int64_t draft, brc_error *err)
{
    memset(out, 0, sizeof(*out));
    int rc = brc_draft_key_page(store, draft, "", NULL, SIZE_MAX >> 1, take_hidden, out, err);
    if (rc < 0)
        brc_hidden_nodes_dispose(out);
    else if (out->n > 1)
        qsort(out->paths, out->n, sizeof(char *), hidden_order);
    return rc;
}

int brc_is_hidden_node(const brc_hidden_nodes *nodes, const char *path)
{
    return nodes->n > 0 &&
           bsearch(&path, nodes->paths, nodes->n, sizeof(char *), hidden_order) != NULL;
}

void brc_hidden_nodes_dispose(brc_hidden_nodes *nodes)
{
    for (size_t i = 0; i < nodes->n; i++)
        free(((char **)nodes->paths)[i]);
    free(nodes->paths);
    memset(nodes, 0, sizeof(*nodes));
}

/* ==== node moves ================================ */

/* ---- where a node is in the base -------------------------------- */

/* Finds the path in the base of a node, or (above: 1) of its parents, by the rows of moves. Sets
 * *has to 0 if the node is new. */
static int base_path(brc_session *s, const char *path, int above, brc_buf *out, int *has,
                     brc_error *err)
{
    char *source = NULL;
    size_t len = strlen(path);
    brc_buf at = BRC_BUF_INIT;
    int rc = BRC_OK;
    out->len = 0;
    for (size_t end = len; end > 0 && source == NULL; end--) {
        if (end < len ? path[end] != '/' : above)
            continue;
        at.len = 0;
        BRC_GO(brc_buf_append(&at, path, end, err));
        BRC_GO(brc_buf_terminate(&at, err));
        BRC_GO(brc_draft_move_get(s->repo->store, s->draft.id, (const char *)at.data, &source,
                                  err));
        if (source != NULL)
            path += end;
    }
    *has = source == NULL || *source != '\0';
    if (*has && source != NULL)
        BRC_GO(brc_buf_text(out, source, err));
    if (*has)
        BRC_GO(brc_buf_text(out, path, err));
    rc = brc_buf_terminate(out, err);
done:
    free(source);
    brc_buf_dispose(&at);
    return rc;
}

/* Finds the path in the base of a node; "" if the base lacks the node. */
static int base_node(brc_session *s, const char *path, int above, brc_buf *out, brc_error *err)
{
    int has;
    brc_entry entry;
    BRC_TRY(base_path(s, path, above, out, &has, err));
    if (!has)
        return BRC_OK;
    BRC_TRY(brc_snapshot_find(s->repo->store, &s->base, (const char *)out->data, &entry, err));
    if (entry.kind != 0)
        return BRC_OK;
    out->len = 0;
    return brc_buf_terminate(out, err);
}

/* Notes that the node at the path is `source` in the base; "": it is new. */
static int set_base_node(brc_session *s, const char *path, const char *source, brc_error *err)
{
    brc_store *store = s->repo->store;
    brc_buf above = BRC_BUF_INIT;
    int rc = base_node(s, path, 1, &above, err);
    if (rc == BRC_OK && strcmp((const char *)above.data, source) == 0)
        rc = brc_draft_move_drop(store, s->draft.id, path, err);
    else if (rc == BRC_OK)
        rc = brc_draft_move_put(store, s->draft.id, path, source, err);
    brc_buf_dispose(&above);
    return rc;
}

/* ---- notes -------------------------------- */

int brc_note_new(brc_session *s, const char *path, brc_error *err)
{
    if (s->bulk != NULL) /* noted when the bulk write is adopted */
        return BRC_OK;
    return strcmp(path, "/") == 0 ? BRC_OK : set_base_node(s, path, "", err);
}

int brc_note_removed(brc_session *s, const char *path, brc_error *err)
{
    return brc_draft_move_clear(s->repo->store, s->draft.id, path, err);
}

int brc_note_moved(brc_session *s, const char *from, const char *to, brc_error *err)
{
    brc_buf source = BRC_BUF_INIT;
    int rc;
    BRC_GO(base_node(s, from, 0, &source, err));
    BRC_GO(brc_draft_move_clear(s->repo->store, s->draft.id, to, err));
    BRC_GO(brc_draft_move_rename(s->repo->store, s->draft.id, from, to, err));
    rc = set_base_node(s, to, (const char *)source.data, err);
done:
    brc_buf_dispose(&source);
    return rc;
}

static int is_at_or_under(const char *path, const char *top)
{
    size_t len = strlen(top);
    return strncmp(path, top, len) == 0 && (path[len] == '\0' || path[len] == '/');
}

/* Turns a node that came from this path into a copy: each node of the base occurs at most once. */
static int give_back(brc_session *s, const char *source, brc_error *err)
{
    brc_move *moves;
    size_t n;
    BRC_TRY(brc_draft_move_list(s->repo->store, s->draft.id, "/", &moves, &n, err));
    int rc = BRC_OK;
    for (size_t i = 0; i < n && rc == BRC_OK; i++)
        if (is_at_or_under(moves[i].from, source))
            rc = set_base_node(s, moves[i].to, "", err);
    brc_moves_free(moves, n);
    return rc;
}

int brc_note_restored(brc_session *s, const char *path, brc_error *err)
{
    brc_buf source = BRC_BUF_INIT;
    BRC_TRY(brc_note_removed(s, path, err));
    if (strcmp(path, "/") == 0)
        return BRC_OK;
    int rc = base_node(s, path, 1, &source, err);
    if (rc == BRC_OK)
        rc = strcmp((const char *)source.data, path) == 0 ? give_back(s, path, err)
                                                          : set_base_node(s, path, "", err);
    brc_buf_dispose(&source);
    return rc;
}

/* ---- for diff and commit -------------------------------- */

/* Returns the moves in the draft's rows, since its base. */
static int moves_since_base(brc_move_set *out, brc_session *s, brc_error *err)
{
    brc_move *moves;
    size_t n;
    if (s->draft.id == 0)
        return BRC_OK;
    BRC_TRY(brc_draft_move_list(s->repo->store, s->draft.id, "/", &moves, &n, err));
    int rc = BRC_OK;
    for (size_t i = 0; i < n && rc == BRC_OK; i++)
        rc = *moves[i].from != '\0' ? brc_move_set_add(out, moves[i].from, moves[i].to, err)
                                    : brc_move_set_add_made(out, moves[i].to, err);
    brc_moves_free(moves, n);
    return rc < 0 ? rc : brc_move_set_seal(out, err);
}

/* Returns the moves from the commit to the base; none if the base does not follow that commit. */
static int moves_to_base(brc_move_set *out, brc_session *s, int has, const brc_oid *commit,
                         brc_error *err)
{
    int known;
    memset(out, 0, sizeof(*out));
    return s->draft.has_base ? brc_move_set_between(out, &known, s->repo->store, has, commit,
                                                    &s->draft.base, err)
                             : BRC_OK;
}

/* Joins the moves since the base to `before`, the moves up to the base. */
static int join_since_base(brc_move_set *out, brc_session *s, const brc_move_set *before,
                           const brc_oid *snapshot, const brc_oid *root, brc_error *err)
{
    brc_move_set since = {0};
    int rc;
    BRC_GO(moves_since_base(&since, s, err));
    BRC_GO(brc_move_set_join(out, before, &since, err));
    rc = brc_move_set_reduce(out, s->repo->store, snapshot, root, err);
done:
    brc_move_set_dispose(&since);
    if (rc < 0)
        brc_move_set_dispose(out);
    return rc;
}

int brc_session_moves(brc_move_set *out, brc_session *s, int has, const brc_oid *commit,
                      const brc_oid *snapshot, const brc_oid *root, brc_error *err)
{
    brc_move_set before;
    memset(out, 0, sizeof(*out));
    int rc = moves_to_base(&before, s, has, commit, err);
    if (rc == BRC_OK)
        rc = join_since_base(out, s, &before, snapshot, root, err);
    brc_move_set_dispose(&before);
    return rc;
}

int brc_session_moves_across(brc_move_set *out, brc_session *s, const brc_oid *commit,
                             const brc_oid *snapshot, const brc_oid *root, brc_error *err)
{
    brc_move_set before = {0};
    int known, rc = BRC_OK;
    memset(out, 0, sizeof(*out));
    if (s->draft.has_base)
        rc = brc_move_set_across(&before, &known, s->repo->store, commit, &s->draft.base, err);
    if (rc == BRC_OK)
        rc = join_since_base(out, s, &before, snapshot, root, err);
    brc_move_set_dispose(&before);
    return rc;
}

/* ==== session nodes ================================ */

/* The nodes that a session shows: looks nodes up through its drafts, puts nodes into the drafts,
 * walks them. */

static int64_t top_draft(const brc_session *s)
{
    return s->bulk != NULL ? s->bulk->draft : s->draft.id;
}

/* ---- looking nodes up -------------------------------- */

/* Finds the row of one path in the draft, or in a bulk write over the draft: *said is 1 if there is
 * one. */
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

/* Copies a document that only the session's own draft has to the row of a bulk write too: the two
 * rows are independent from then on. */
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
    s->changes = s->repo->changes; /* base and draft are still up to date */
    if (s->bulk != NULL)
        BRC_TRY(s->bulk->meet(s, path, err));
    if (entry == NULL)
        return brc_draft_node_put(store, top_draft(s), path, NULL, 0, row, err);
    full = *entry;
    if (brc_oid_is_zero(&full.doc)) { /* the root of the empty snapshot gets a document */
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

/* Replaces the document. The one before must not stay: after many changes only the last is kept. */
int brc_session_put_doc(brc_session *s, const char *path, brc_entry *entry, const brc_json *doc,
                        int64_t *row, brc_error *err)
{
    brc_store *store = s->repo->store;
    brc_buf text = BRC_BUF_INIT;
    int64_t node;
    int rc;
    BRC_GO(brc_json_write(&text, doc, 0, err));
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
    BRC_GO(brc_json_write(&text, doc, 0, err));
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
