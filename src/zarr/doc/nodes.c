#include "nodes.h"

#include <stdlib.h>
#include <string.h>

#include "../../base/alloc.h"
#include "../../base/sized.h"
#include "../../history/commit.h"
#include "../../history/tree_walk.h"
#include "../../work/bulk_write.h"
#include "../../work/session_nodes.h"
#include "../array/array.h"
#include "../transfer.h"
#include "meta.h"

/* The hierarchy: makes, lists, changes and restores nodes, and their attributes. */

int brc_node_change(brc_session *s, const char *path, brc_node_change_fn change, const void *arg,
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
    int rc = brc_json_write(out, doc, 0, err);
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
        rc = value != NULL ? brc_json_write(out, value, 0, err)
                           : brc_fail(err, BRC_ENOTFOUND, "%s has no attribute '%.80s'", path, key);
    } else {
        rc = brc_json_kind(attrs) == BRC_JSON_OBJECT ? brc_json_write(out, attrs, 0, err)
                                                     : brc_buf_append(out, "{}", 2, err);
    }
    brc_json_free(doc);
    return rc < 0 ? rc : brc_buf_terminate(out, err);
}

/* ---- listing -------------------------------- */

/* A list is a walk that has begun: nothing is collected in memory. */
typedef struct node_list {
    brc_session *session; /* the session whose store the walk reads */
    brc_tree_walk *walk;
    int without_itself;
    brc_node now; /* the node that was handed out */
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

static int node_next(void *state, const void **out, brc_error *err)
{
    brc_tree_node node;
    node_list *list = state;
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

int brc_list(brc_iter **out, brc_session *s, const char *path, uint32_t flags, brc_error *err)
{
    BRC_TRY(brc_flags_check(flags, BRC_LIST_RECURSE, "brc_list()", err));
    BRC_TRY(brc_iter_new(out, node_next, sizeof(node_list), node_list_dispose, err));
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

/* ---- making -------------------------------- */

/* Tells whether the root group may take another document: only while it has no children. */
static int is_childless(brc_session *s, const brc_entry *root, int64_t row, brc_error *err)
{
    brc_tree_walk *walk;
    brc_tree_node node;
    BRC_TRY(brc_session_walk(&walk, s, "/", root, row, 0, err));
    int rc = brc_tree_walk_next(walk, &node, err); /* the root itself */
    if (rc > 0)
        rc = brc_tree_walk_next(walk, &node, err);
    if (rc > 0)
        rc = brc_fail(err, BRC_EEXISTS, "/ already exists and contains %s", node.path);
    brc_tree_walk_free(walk);
    return rc;
}

/* Makes the prefix of keys below a path, or of its document, that are rows of the draft. */
static int node_keys(brc_buf *out, const char *path, const char *rest, brc_error *err)
{
    out->len = 0;
    return brc_buf_printf(out, err, "%s%s%s", path + 1, path[1] != '\0' ? "/" : "", rest);
}

/* Forgets the keys below a node that is removed or replaced. */
int brc_node_forget_keys(brc_session *s, const char *path, brc_error *err)
{
    brc_buf keys = BRC_BUF_INIT;
    int rc = node_keys(&keys, path, "", err);
    if (rc == BRC_OK)
        rc = brc_draft_key_clear(s->repo->store, s->draft.id, (const char *)keys.data, err);
    brc_buf_dispose(&keys);
    return rc;
}

int brc_node_carry_keys(brc_session *s, const char *from, const char *to, int copy, brc_error *err)
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

/* Makes a node with this document at a free path. */
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
    return brc_node_change(s, path, place_group, doc, err);
}

/* backend NULL: the default. */
static int create_array(brc_array **out, brc_session *s, const char *path, const brc_json *doc,
                        const char *backend, brc_error *err)
{
    brc_meta meta;
    *out = NULL;
    BRC_TRY(brc_meta_open(&meta, s->repo->registry, doc, err));
    brc_meta_dispose(&meta);
    BRC_TRY(brc_session_begin(s, err)); /* a node that cannot be opened is not created */
    int rc = brc_node_change(s, path, backend == NULL ? place_array : place_array_inline, doc, err);
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
    int rc = brc_node_change(s, path, place_group, doc, err);
    brc_json_free(doc);
    return rc;
}

int brc_array_create(brc_array **out, brc_session *s, const char *path, const brc_array_spec *spec,
                     brc_error *err)
{
    brc_json *doc;
    const size_t known = offsetof(brc_array_spec, backend_json) + sizeof(spec->backend_json);
    *out = NULL;
    BRC_TRY(brc_new_array_doc(&doc, s, spec, err)); /* checks the size */
    const char *backend = spec != NULL && spec->size >= known ? spec->backend_json : NULL;
    int rc = create_array(out, s, path, doc, backend, err);
    brc_json_free(doc);
    return rc;
}

/* ---- changing -------------------------------- */

typedef struct attr_change {
    const char *key;
    const brc_json *value; /* NULL: remove the attribute */
} attr_change;

static int set_attr_in(brc_json *doc, const attr_change *change, const char *path, brc_error *err)
{
    if (brc_json_kind(brc_json_member(doc, "attributes")) != BRC_JSON_OBJECT) {
        if (change->value != NULL)
            BRC_TRY(brc_json_set(doc, "attributes", brc_json_new_object(), err));
    }
    /* the document belongs to this function, so what it looks up may be changed */
    brc_json *attrs = (brc_json *)(uintptr_t)brc_json_member(doc, "attributes");
    if (change->value != NULL) {
        brc_json *copy;
        BRC_TRY(brc_json_clone(&copy, change->value, err));
        return brc_json_set(attrs, change->key, copy, err);
    }
    if (brc_json_member(attrs, change->key) == NULL)
        return brc_fail(err, BRC_ENOTFOUND, "%s has no attribute '%.80s'", path, change->key);
    brc_json_remove(attrs, change->key);
    if (brc_json_count(attrs) == 0) /* as before the first attribute was set */
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
        int rc = brc_json_parse(&value, json, strlen(json), BRC_JSON_NAN, err);
        if (rc < 0) {
            brc_context(err, "attribute '%.80s'", key);
            return rc;
        }
    }
    attr_change change = {key, value};
    int rc = brc_node_change(s, path, change_attr, &change, err);
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
    BRC_TRY(brc_node_forget_keys(s, path, err));
    BRC_TRY(brc_draft_node_clear(s->repo->store, s->draft.id, path, err));
    return brc_session_put(s, path, NULL, NULL, err);
}

int brc_node_remove(brc_session *s, const char *path, brc_error *err)
{
    return brc_node_change(s, path, remove_node, NULL, err);
}

/* ---- restoring -------------------------------- */

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
    BRC_TRY(brc_node_forget_keys(s, path, err));
    if (then.kind != 0)
        BRC_TRY(brc_session_parents(s, path, err));
    BRC_TRY(then.kind != 0 ? brc_note_restored(s, path, err) : brc_note_removed(s, path, err));
    return brc_session_put(s, path, then.kind != 0 ? &then : NULL, NULL, err);
}

int brc_node_restore(brc_session *s, const char *path, const char *rev, brc_error *err)
{
    return brc_node_change(s, path, restore_node, rev, err);
}
