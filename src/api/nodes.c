#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../base/sized.h"
#include "../history/tree_walk.h"
#include "../merge/open_merge.h"
#include "../store/change.h"
#include "../work/bulk_write.h"
#include "../work/fold.h"
#include "../work/session.h"
#include "../work/session_nodes.h"
#include "../zarr/doc/meta.h"
#include "../zarr/transfer.h"

/*
 * Copying nodes that have very many uncommitted chunks. A copy has chunk rows of its own, and
 * millions of them are more than one transaction may write. So those of large arrays are copied
 * ahead, some in each transaction, into a private draft that nobody else reads; the last
 * transaction takes these rows, and copies what others have written over the old ones meanwhile
 * (fold.c says why the rest is as it was). Where it fails the draft is dropped; a killed
 * process leaves it, with a dead owner.
 */

typedef struct brc_copies {
    brc_draft_copying rows;
    int64_t draft; /* that has them; 0: none was needed */
} brc_copies;

/* ==== copy ahead ================================ */

/* The row of the copy, which gets chunks in the transactions that follow. */
static int start_copy(brc_session *s, const char *path, const brc_entry *entry, brc_copies *copies,
                      int64_t *node, brc_error *err)
{
    uint8_t bytes[BRC_ENTRY_MAX];
    brc_store *store = s->repo->store;
    const size_t len = brc_entry_encode(bytes, entry, brc_store_id_len(store));
    BRC_TRY(brc_store_begin(store, err));
    int rc = copies->draft != 0
                 ? BRC_OK : brc_session_begin_beside(s, &s->draft, &copies->draft, err);
    if (rc == BRC_OK)
        rc = brc_draft_node_put(store, copies->draft, path, bytes, len, node, err);
    int ended = brc_store_end(store, rc == BRC_OK, rc == BRC_OK ? err : NULL);
    if (rc < 0 || ended < 0)
        copies->draft = copies->rows.n > 0 ? copies->draft : 0;
    return rc < 0 ? rc : ended;
}

static int copy_in_steps(brc_store *store, const brc_draft_stack *rows, int64_t into,
                         brc_error *err)
{
    brc_buf after = BRC_BUF_INIT;
    size_t n = BRC_DRAFT_COPY_STEP;
    int rc = BRC_OK;
    while (n == BRC_DRAFT_COPY_STEP && rc == BRC_OK) {
        BRC_GO(brc_store_begin(store, err));
        rc = brc_draft_chunk_copy(store, rows, into, &after, &n, err);
        int ended = brc_store_end(store, rc == BRC_OK, rc == BRC_OK ? err : NULL);
        rc = rc < 0 ? rc : ended;
    }
done:
    brc_buf_dispose(&after);
    return rc;
}

/* Of a stack only what lies over rows that were copied before; 0: none were. */
static int64_t copied_before(const brc_copies *copies, brc_draft_stack *rows)
{
    const brc_draft_copied *made = copies->rows.made;
    for (size_t i = 0; i < rows->n; i++)
        for (size_t k = 0; k < copies->rows.n; k++)
            if (made[k].row == rows->node[i]) {
                rows->n = i;
                return made[k].copy;
            }
    return 0;
}

static int copy_large(brc_session *s, const char *from, const char *to, brc_copies *copies,
                      brc_error *err)
{
    brc_entry entry;
    brc_draft_stack rows;
    void *p;
    BRC_TRY(brc_hold_still(s, from, &entry, &rows, err));
    if (rows.n == 0)
        return BRC_OK;
    const int64_t first = rows.node[0];
    int64_t node = copied_before(copies, &rows);
    if (rows.n == 0)
        return BRC_OK;
    if (node == 0)
        BRC_TRY(start_copy(s, to, &entry, copies, &node, err));
    BRC_TRY(copy_in_steps(s->repo->store, &rows, node, err));
    p = copies->rows.made;
    int rc = brc_grow_array(&p, &copies->rows.cap, copies->rows.n + 1, sizeof(brc_draft_copied),
                            err);
    copies->rows.made = p;
    if (rc == BRC_OK)
        ((brc_draft_copied *)p)[copies->rows.n++] = (brc_draft_copied){first, node};
    return rc;
}

/* Outside of a transaction: the rows at and under `from`, for a copy at `to`. */
static int copy_ahead(brc_session *s, const char *from, const char *to, brc_copies *copies,
                      brc_error *err)
{
    brc_draft_node *rows = NULL;
    brc_buf path = BRC_BUF_INIT;
    size_t n = 0;
    int rc, large;
    BRC_TRY(brc_session_begin_read(s, err));
    brc_session_end_read(s);
    BRC_GO(brc_draft_node_list(s->repo->store, s->draft.id, from, 1, &rows, &n, err));
    for (size_t i = 0; i < n; i++) {
        BRC_GO(brc_has_many_chunks(s->repo->store, &rows[i], &large, err));
        if (!large)
            continue;
        path.len = 0;
        BRC_GO(brc_buf_printf(&path, err, "%s%s", to, rows[i].path + strlen(from)));
        BRC_GO(copy_large(s, rows[i].path, (const char *)path.data, copies, err));
    }
    rc = BRC_OK;
done:
    brc_buf_dispose(&path);
    brc_draft_nodes_free(rows, n);
    return rc;
}

/* Drops what was not taken. */
/* Also where the handle was interrupted. */
static void copies_drop(brc_session *s, brc_copies *copies)
{
    brc_store *store = s->repo->store;
    const int stops = brc_store_check_interrupt(store, NULL) < 0;
    free(copies->rows.made);
    if (copies->draft != 0) {
        brc_store_interrupt_clear(store);
        if (brc_store_begin(store, NULL) == BRC_OK)
            (void)!brc_store_end(store, brc_draft_delete(store, copies->draft, NULL) == BRC_OK,
                                 NULL);
        if (stops)
            brc_store_interrupt(store);
    }
    memset(copies, 0, sizeof(*copies));
}

/* ==== nodes ================================ */

/* The hierarchy: making, listing, moving and removing nodes, and attributes. */

/* A function that changes the node at a path in normal form. */
typedef int (*node_change_fn)(brc_session *s, const char *path, const void *arg, brc_error *err);

static int change_node(brc_session *s, const char *path, node_change_fn change, const void *arg,
                       brc_error *err)
{
    brc_buf normal = BRC_BUF_INIT;
    int rc;
    BRC_GO(brc_path_normal(&normal, path, err));
    BRC_GO(brc_session_begin(s, err));
    rc = change(s, (const char *)normal.data, arg, err);
    rc = brc_session_end(s, rc, err);
done:
    brc_buf_dispose(&normal);
    return rc;
}

/* ---- looking -------------------------------- */

typedef int (*node_look_fn)(brc_session *s, const char *path, void *arg, brc_error *err);

static int look_at_node(brc_session *s, const char *path, node_look_fn look, void *arg,
                        brc_error *err)
{
    brc_buf normal = BRC_BUF_INIT;
    int rc;
    BRC_GO(brc_path_normal(&normal, path, err));
    BRC_GO(brc_session_begin_read(s, err));
    rc = look(s, (const char *)normal.data, arg, err);
    brc_session_end_read(s);
done:
    brc_buf_dispose(&normal);
    return rc;
}

static int look_kind(brc_session *s, const char *path, void *arg, brc_error *err)
{
    brc_entry entry;
    int64_t row;
    BRC_TRY(brc_session_find(s, path, &entry, &row, err));
    *(int *)arg = entry.kind;
    return BRC_OK;
}

int brc_node_kind(int *kind, brc_session *s, const char *path, brc_error *err)
{
    *kind = 0;
    return look_at_node(s, path, look_kind, kind, err);
}

static int look_doc(brc_session *s, const char *path, void *arg, brc_error *err)
{
    brc_entry entry;
    int64_t row;
    BRC_TRY(brc_session_need(s, path, 0, &entry, &row, err));
    return brc_entry_doc(s->repo->store, &entry, arg, err);
}

int brc_node_doc(brc_json **out, brc_session *s, const char *path, brc_error *err)
{
    *out = NULL;
    return look_at_node(s, path, look_doc, out, err);
}

int brc_node_json(brc_buf *out, brc_session *s, const char *path, brc_error *err)
{
    brc_json *doc;
    BRC_TRY(brc_node_doc(&doc, s, path, err));
    int rc = brc_json_write(out, doc, err);
    brc_json_free(doc);
    return rc < 0 ? rc : brc_buf_terminate(out, err);
}

int brc_attrs_get(brc_buf *out, brc_session *s, const char *path, const char *key, brc_error *err)
{
    brc_json *doc;
    BRC_TRY(brc_node_doc(&doc, s, path, err));
    const brc_json *attrs = brc_json_member(doc, "attributes");
    int rc;
    if (key != NULL) {
        const brc_json *value = brc_json_member(attrs, key);
        rc = value != NULL ? brc_json_write(out, value, err)
                           : brc_fail(err, BRC_ENOTFOUND, "%s has no attribute '%.80s'", path, key);
    } else {
        rc = brc_json_kind(attrs) == BRC_JSON_OBJECT ? brc_json_write(out, attrs, err)
                                                     : brc_buf_append(out, "{}", 2, err);
    }
    brc_json_free(doc);
    return rc < 0 ? rc : brc_buf_terminate(out, err);
}

/* ---- listing -------------------------------- */

/* A list is a walk that has begun: nothing is collected. */
typedef struct node_list {
    brc_session *session; /* whose store the walk reads */
    brc_tree_walk *walk;
    int without_itself;
    brc_node now; /* the one that was handed out */
} node_list;

static void node_list_dispose(void *state)
{
    brc_tree_walk_free(((node_list *)state)->walk);
    brc_session_unref(((node_list *)state)->session);
}

static int look_list(brc_session *s, const char *path, void *arg, brc_error *err)
{
    node_list *list = arg;
    brc_entry entry;
    int64_t row;
    BRC_TRY(brc_session_need(s, path, list->without_itself ? BRC_GROUP : 0, &entry, &row, err));
    return brc_session_walk(&list->walk, s, path, &entry, row,
                            list->without_itself ? 0 : BRC_WALK_RECURSE, err);
}

int brc_list(brc_iter **out, brc_session *s, const char *path, uint32_t flags, brc_error *err)
{
    BRC_TRY(brc_flags_check(flags, BRC_LIST_RECURSE, "brc_list()", err));
    BRC_TRY(brc_iter_new(out, BRC_ITER_NODES, sizeof(node_list), node_list_dispose, err));
    node_list *list = brc_iter_state(*out);
    list->session = brc_session_ref(s);
    list->without_itself = (flags & BRC_LIST_RECURSE) == 0;
    int rc = look_at_node(s, path, look_list, list, err);
    if (rc < 0) {
        brc_iter_free(*out);
        *out = NULL;
    }
    return rc;
}

int brc_list_next(brc_iter *it, const brc_node **out, brc_error *err)
{
    *out = NULL;
    brc_tree_node node;
    BRC_TRY(brc_iter_check(it, BRC_ITER_NODES, err));
    node_list *list = brc_iter_state(it);
    int rc = brc_tree_walk_next(list->walk, &node, err);
    if (rc > 0 && list->without_itself) {
        list->without_itself = 0;
        rc = brc_tree_walk_next(list->walk, &node, err);
    }
    if (rc > 0) {
        list->now = (brc_node){ node.path, node.entry.kind };
        *out = &list->now;
    }
    return rc;
}

/* ---- making -------------------------------- */

/* The root group takes another document only while it has no children. */
static int is_childless(brc_session *s, const brc_entry *root, int64_t row, brc_error *err)
{
    brc_tree_walk *walk;
    brc_tree_node node;
    BRC_TRY(brc_session_walk(&walk, s, "/", root, row, 0, err));
    int rc = brc_tree_walk_next(walk, &node, err); /* itself */
    if (rc > 0)
        rc = brc_tree_walk_next(walk, &node, err);
    if (rc > 0)
        rc = brc_fail(err, BRC_EEXISTS, "/ already exists and contains %s", node.path);
    brc_tree_walk_free(walk);
    return rc;
}

/* Keys below a path, or of its document, that are rows of the draft. */
static int node_keys(brc_buf *out, const char *path, const char *rest, brc_error *err)
{
    out->len = 0;
    return brc_buf_printf(out, err, "%s%s%s", path + 1, path[1] != '\0' ? "/" : "", rest);
}

/* What was below a node that goes, or is replaced. */
static int forget_keys(brc_session *s, const char *path, brc_error *err)
{
    brc_buf keys = BRC_BUF_INIT;
    int rc = node_keys(&keys, path, "", err);
    if (rc == BRC_OK)
        rc = brc_draft_key_clear(s->repo->store, s->draft.id, (const char *)keys.data, err);
    brc_buf_dispose(&keys);
    return rc;
}

static int carry_keys(brc_session *s, const char *from, const char *to, int copy, brc_error *err)
{
    brc_buf was = BRC_BUF_INIT, is = BRC_BUF_INIT;
    int rc;
    BRC_GO(node_keys(&was, from, "", err));
    BRC_GO(node_keys(&is, to, "", err));
    BRC_GO(brc_draft_key_copy(s->repo->store, s->draft.id, (const char *)was.data, s->draft.id,
                              (const char *)is.data, err));
    if (!copy)
        rc = brc_draft_key_clear(s->repo->store, s->draft.id, (const char *)was.data, err);
done:
    brc_buf_dispose(&was);
    brc_buf_dispose(&is);
    return rc;
}

static int drop_document_key(brc_session *s, const char *path, brc_error *err)
{
    brc_buf key = BRC_BUF_INIT;
    int rc = node_keys(&key, path, "zarr.json", err);
    if (rc == BRC_OK)
        rc = brc_draft_key_drop(s->repo->store, s->draft.id, (const char *)key.data, err);
    brc_buf_dispose(&key);
    return rc;
}

/* A node with this document at a path that is free. */
static int place_doc(brc_session *s, const char *path, int kind, int by_default,
                     const brc_json *doc, brc_error *err)
{
    brc_entry entry, fresh;
    int64_t row;
    memset(&fresh, 0, sizeof(fresh));
    BRC_TRY(brc_session_find(s, path, &entry, &row, err));
    if (strcmp(path, "/") == 0) {
        if (entry.kind == BRC_ARRAY)
            return brc_fail(err, BRC_EEXISTS, "/ is already an array");
        BRC_TRY(is_childless(s, &entry, row, err));
    } else if (entry.kind != 0) {
        return brc_fail(err, BRC_EEXISTS, "there is a node %s already", path);
    }
    BRC_TRY(brc_session_parents(s, path, err));
    BRC_TRY(brc_note_new(s, path, err));
    BRC_TRY(drop_document_key(s, path, err));
    fresh.kind = kind;
    if (by_default)
        BRC_TRY(brc_entry_take_default(s, &fresh, err));
    return brc_session_put_new(s, path, &fresh, doc, err);
}

static int place_group(brc_session *s, const char *path, const void *doc, brc_error *err)
{
    return place_doc(s, path, BRC_GROUP, 0, doc, err);
}

static int place_array(brc_session *s, const char *path, const void *doc, brc_error *err)
{
    return place_doc(s, path, BRC_ARRAY, 1, doc, err);
}

static int place_array_inline(brc_session *s, const char *path, const void *doc, brc_error *err)
{
    return place_doc(s, path, BRC_ARRAY, 0, doc, err);
}

int brc_group_create_doc(brc_session *s, const char *path, const brc_json *doc, brc_error *err)
{
    BRC_TRY(brc_meta_check_group(doc, err));
    return change_node(s, path, place_group, doc, err);
}

/* backend NULL: by default. */
static int create_array(brc_array **out, brc_session *s, const char *path, const brc_json *doc,
                        const char *backend, brc_error *err)
{
    brc_meta meta;
    *out = NULL;
    BRC_TRY(brc_meta_open(&meta, s->repo->registry, doc, err));
    brc_meta_dispose(&meta);
    BRC_TRY(brc_session_begin(s, err)); /* a node that cannot be opened is not made */
    int rc = change_node(s, path, backend == NULL ? place_array : place_array_inline, doc, err);
    if (rc == BRC_OK)
        rc = brc_array_open(out, s, path, err);
    if (rc == BRC_OK && backend != NULL)
        rc = brc_array_set_backend(*out, backend, err);
    rc = brc_session_end(s, rc, err);
    if (rc < 0) {
        brc_array_free(*out);
        *out = NULL;
    }
    return rc;
}

int brc_array_create_doc(brc_array **out, brc_session *s, const char *path, const brc_json *doc,
                         brc_error *err)
{
    return create_array(out, s, path, doc, NULL, err);
}

int brc_group_create(brc_session *s, const char *path, const char *attrs_json, brc_error *err)
{
    brc_json *doc;
    BRC_TRY(brc_meta_new_group(&doc, attrs_json, err));
    int rc = change_node(s, path, place_group, doc, err);
    brc_json_free(doc);
    return rc;
}

int brc_array_create(brc_array **out, brc_session *s, const char *path, const brc_array_spec *spec,
                     brc_error *err)
{
    brc_json *doc;
    const size_t known = offsetof(brc_array_spec, backend_json) + sizeof(spec->backend_json);
    *out = NULL;
    BRC_TRY(brc_new_array_doc(&doc, s, spec, err)); /* it checks the size */
    const char *backend = spec != NULL && spec->size >= known ? spec->backend_json : NULL;
    int rc = create_array(out, s, path, doc, backend, err);
    brc_json_free(doc);
    return rc;
}

/* ---- changing -------------------------------- */

typedef struct attr_change {
    const char *key;
    const brc_json *value; /* NULL: remove */
} attr_change;

static int set_attr_in(brc_json *doc, const attr_change *change, const char *path, brc_error *err)
{
    if (brc_json_kind(brc_json_member(doc, "attributes")) != BRC_JSON_OBJECT) {
        if (change->value != NULL)
            BRC_TRY(brc_json_set(doc, "attributes", brc_json_new_object(), err));
    }
    /* the document is ours: what we look up in it may be changed */
    brc_json *attrs = (brc_json *)(uintptr_t)brc_json_member(doc, "attributes");
    if (change->value != NULL) {
        brc_json *copy;
        BRC_TRY(brc_json_clone(&copy, change->value, err));
        return brc_json_set(attrs, change->key, copy, err);
    }
    if (brc_json_member(attrs, change->key) == NULL)
        return brc_fail(err, BRC_ENOTFOUND, "%s has no attribute '%.80s'", path, change->key);
    brc_json_remove(attrs, change->key);
    if (brc_json_count(attrs) == 0) /* as before the first was set */
        brc_json_remove(doc, "attributes");
    return BRC_OK;
}

static int change_attr(brc_session *s, const char *path, const void *arg, brc_error *err)
{
    brc_entry entry;
    int64_t row;
    brc_json *doc = NULL;
    int rc;
    BRC_GO(brc_session_need(s, path, 0, &entry, &row, err));
    BRC_GO(brc_entry_doc(s->repo->store, &entry, &doc, err));
    BRC_GO(set_attr_in(doc, arg, path, err));
    rc = brc_session_put_doc(s, path, &entry, doc, NULL, err);
done:
    brc_json_free(doc);
    return rc;
}

int brc_attrs_set(brc_session *s, const char *path, const char *key, const char *json,
                  brc_error *err)
{
    brc_json *value = NULL;
    if (!brc_json_name_is_valid(key))
        return brc_fail(err, BRC_EINVAL, "an attribute's name must be valid UTF-8");
    if (json != NULL) {
        int rc = brc_json_parse_nan(&value, json, strlen(json), err);
        if (rc < 0) {
            brc_context(err, "attribute '%.80s'", key);
            return rc;
        }
    }
    attr_change change = {key, value};
    int rc = change_node(s, path, change_attr, &change, err);
    brc_json_free(value);
    return rc;
}

static int remove_node(brc_session *s, const char *path, const void *arg, brc_error *err)
{
    brc_entry entry;
    int64_t row;
    (void)arg;
    if (strcmp(path, "/") == 0)
        return brc_fail(err, BRC_EINVAL, "the root node cannot be removed");
    BRC_TRY(brc_bulk_check_none(s, "no node can be removed", err));
    BRC_TRY(brc_session_need(s, path, 0, &entry, &row, err));
    BRC_TRY(brc_note_removed(s, path, err));
    BRC_TRY(forget_keys(s, path, err));
    BRC_TRY(brc_draft_node_clear(s->repo->store, s->draft.id, path, err));
    return brc_session_put(s, path, NULL, NULL, err);
}

int brc_node_remove(brc_session *s, const char *path, brc_error *err)
{
    return change_node(s, path, remove_node, NULL, err);
}

typedef struct node_transfer {
    const char *to;
    brc_copies *copies; /* NULL: it is moved */
} node_transfer;

/* What was copied ahead was taken. */
static int end_copies(brc_session *s, brc_copies *copies, brc_error *err)
{
    return copies == NULL || copies->draft == 0
               ? BRC_OK
               : brc_draft_delete(s->repo->store, copies->draft, err);
}

/* Copies of copies have twice as many rows each time: like every walk this ends at the limit. */
static int check_rows_under(brc_session *s, const char *path, brc_error *err)
{
    int more;
    brc_budget budget = brc_budget_of(s->repo->store);
    BRC_TRY(brc_draft_has_more_under(s->repo->store, s->draft.id, path, budget.max, &more, err));
    budget.used = more ? budget.max : 0;
    return brc_budget_take(&budget, err);
}

static int transfer_node(brc_session *s, const char *from, const void *arg, brc_error *err)
{
    const node_transfer *t = arg;
    const int copy = t->copies != NULL;
    brc_store *store = s->repo->store;
    brc_entry entry, there;
    int64_t row, ignored;
    size_t len = strlen(from);
    BRC_TRY(brc_bulk_check_none(s, "no node can be moved or copied", err));
    if (strcmp(from, "/") == 0)
        return brc_fail(err, BRC_EINVAL, "the root node cannot be moved or copied");
    BRC_TRY(brc_session_need(s, from, 0, &entry, &row, err));
    if (!copy)
        BRC_TRY(brc_open_merge_may_move(s, from, err));
    if (strncmp(t->to, from, len) == 0 && (t->to[len] == '/' || t->to[len] == '\0'))
        return brc_fail(err, BRC_EINVAL, "%s cannot go to %s, which is itself or under it", from,
                        t->to);
    BRC_TRY(brc_session_find(s, t->to, &there, &ignored, err));
    if (there.kind != 0)
        return brc_fail(err, BRC_EEXISTS, "there is a node %s already", t->to);
    BRC_TRY(check_rows_under(s, from, err));
    BRC_TRY(brc_session_parents(s, t->to, err));
    BRC_TRY(copy ? brc_note_new(s, t->to, err) : brc_note_moved(s, from, t->to, err));
    BRC_TRY(forget_keys(s, t->to, err));
    BRC_TRY(carry_keys(s, from, t->to, copy, err));
    /* a row that says that `to` was removed makes place */
    BRC_TRY(brc_draft_node_clear(store, s->draft.id, t->to, err));
    BRC_TRY(brc_draft_node_move(store, s->draft.id, from, t->to,
                                copy ? &t->copies->rows : NULL, err));
    BRC_TRY(end_copies(s, t->copies, err));
    if (row == 0)
        BRC_TRY(brc_session_put(s, t->to, &entry, NULL, err));
    return copy ? BRC_OK : brc_session_put(s, from, NULL, NULL, err);
}

int brc_node_move(brc_session *s, const char *from, const char *to, brc_error *err)
{
    brc_buf normal = BRC_BUF_INIT;
    int rc = brc_path_normal(&normal, to, err);
    if (rc == BRC_OK) {
        node_transfer t = {(const char *)normal.data, NULL};
        rc = change_node(s, from, transfer_node, &t, err);
    }
    brc_buf_dispose(&normal);
    return rc;
}

/* Chunks that are too many for one transaction are copied ahead of it. */
typedef struct copy_call {
    brc_session *s;
    const char *from;
    brc_copies copies;
    node_transfer t;
    int times; /* that chunks were copied ahead */
} copy_call;

static int copy_work(void *ctx, brc_error *err)
{
    copy_call *c = ctx;
    if (!c->copies.rows.is_too_much)
        return BRC_OK;
    c->times++;
    return copy_ahead(c->s, c->from, c->t.to, &c->copies, err);
}

static int copy_commit(void *ctx, int insists, brc_error *err)
{
    enum { MOST = 8192 };
    copy_call *c = ctx;
    brc_draft_copying *rows = &c->copies.rows;
    rows->most = insists ? 0 : MOST;
    rows->rows = 0;
    rows->is_too_much = 0;
    const int rc = change_node(c->s, c->from, transfer_node, &c->t, err);
    return rc >= 0 || !rows->is_too_much ? rc : c->times == 0 ? BRC_CHANGE_WORK : BRC_CHANGE_AGAIN;
}

static int copy_run(brc_session *s, const char *from, const char *to, brc_error *err)
{
    copy_call call = {.s = s, .from = from};
    const brc_file_change change = {.about = to, .ctx = &call, .work = copy_work,
                                    .commit = copy_commit};
    const int is_part = brc_store_in_write(s->repo->store);
    call.t = (node_transfer){to, &call.copies};
    const int rc = brc_change_run(s->repo->store, &change, err);
    if (rc == BRC_OK)
        call.copies.draft = 0;
    copies_drop(s, &call.copies);
    if (!is_part)
        brc_session_changed(s, rc);
    return rc;
}

int brc_node_copy(brc_session *s, const char *from, const char *to, brc_error *err)
{
    brc_buf at = BRC_BUF_INIT, normal = BRC_BUF_INIT;
    int rc;
    BRC_GO(brc_path_normal(&at, from, err));
    BRC_GO(brc_path_normal(&normal, to, err));
    rc = copy_run(s, (const char *)at.data, (const char *)normal.data, err);
done:
    brc_buf_dispose(&at);
    brc_buf_dispose(&normal);
    return rc;
}

/* ---- as it was -------------------------------- */

static int restore_node(brc_session *s, const char *path, const void *arg, brc_error *err)
{
    const char *rev = arg;
    brc_store *store = s->repo->store;
    brc_entry then, now;
    brc_oid commit, root;
    int64_t row;
    int has = 1;
    BRC_TRY(brc_bulk_check_none(s, "no node can be restored", err));
    if (rev == NULL) {
        BRC_TRY(brc_session_tip(s, &has, &commit, &root, err));
    } else {
        BRC_TRY(brc_rev_resolve(store, rev, &commit, err));
        BRC_TRY(brc_commit_root(store, &commit, &root, err));
    }
    BRC_TRY(brc_snapshot_find(store, &root, path, &then, err));
    BRC_TRY(brc_session_find(s, path, &now, &row, err));
    if (then.kind == 0 && now.kind == 0)
        return brc_fail(err, BRC_ENOTFOUND, "there is no node %s, now or then", path);
    BRC_TRY(brc_draft_node_clear(store, s->draft.id, path, err));
    BRC_TRY(forget_keys(s, path, err));
    if (then.kind != 0)
        BRC_TRY(brc_session_parents(s, path, err));
    BRC_TRY(then.kind != 0 ? brc_note_restored(s, path, err) : brc_note_removed(s, path, err));
    return brc_session_put(s, path, then.kind != 0 ? &then : NULL, NULL, err);
}

int brc_node_restore(brc_session *s, const char *path, const char *rev, brc_error *err)
{
    return change_node(s, path, restore_node, rev, err);
}
