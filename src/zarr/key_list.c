#include "key_list.h"

#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../base/iter.h"
#include "key_chunks.h"

/* So many keys are held, whatever an array has. */
#define KEY_BATCH 512

/* Nodes in order, each with its chunks, and then what is no node or chunk yet. */
typedef struct key_list {
    brc_session *session;
    char *prefix;
    int rows;              /* the last are asked for, too; else they have come   */
    brc_iter *nodes;       /* NULL: there are no more                             */
    brc_key_chunks chunks; /* of the node that was given last, if it is an array  */
    char *above;           /* its path with a '/', as in a key                    */
    char *from;            /* where the rows go on; NULL: at the first            */
    void *items;           /* char *[]                                            */
    size_t n, cap, at;
} key_list;

static void key_list_clear(key_list *list)
{
    for (size_t i = 0; i < list->n; i++)
        free(((char **)list->items)[i]);
    list->n = list->at = 0;
}

static void key_list_dispose(void *state)
{
    key_list *list = state;
    key_list_clear(list);
    free(list->items);
    if (list->chunks.array != NULL)
        brc_key_chunks_close(&list->chunks);
    brc_iter_free(list->nodes);
    free(list->prefix);
    free(list->above);
    free(list->from);
    brc_session_unref(list->session);
}

static int key_add(key_list *list, const char *above, const char *rest, brc_error *err)
{
    brc_buf text = BRC_BUF_INIT;
    BRC_TRY(brc_grow_array(&list->items, &list->cap, list->n + 1, sizeof(char *), err));
    int rc = brc_buf_printf(&text, err, "%s%s", above, rest);
    if (rc == BRC_OK)
        rc = brc_buf_take_text(&text, &((char **)list->items)[list->n], err);
    brc_buf_dispose(&text);
    list->n += rc == BRC_OK;
    return rc;
}

/* Whether the draft says something else of a key than nodes and chunks do. */
static int has_row(brc_session *s, const char *above, const char *rest, int *has, brc_error *err)
{
    brc_oid id;
    int any, state = BRC_KEY_NO_ROW;
    brc_buf key = BRC_BUF_INIT;
    *has = 0;
    BRC_TRY(brc_key_rows_any(s, &any, err));
    if (!any)
        return BRC_OK;
    int rc = brc_buf_printf(&key, err, "%s%s", above, rest);
    if (rc == BRC_OK)
        rc = brc_key_row(s, (const char *)key.data, &state, &id, err);
    *has = state != BRC_KEY_NO_ROW;
    brc_buf_dispose(&key);
    return rc;
}

/* ---- chunks -------------------------------- */

static int add_chunk_keys(key_list *list, brc_error *err)
{
    brc_buf key = BRC_BUF_INIT;
    int has, rc = 1;
    while (list->n < KEY_BATCH && rc > 0) {
        rc = brc_key_chunks_next(&list->chunks, &key, err);
        if (rc <= 0)
            break;
        const char *rest = (const char *)key.data;
        BRC_GO(has_row(list->session, list->above, rest, &has, err));
        if (!has)
            BRC_GO(key_add(list, list->above, rest, err));
        rc = 1;
    }
done:
    brc_buf_dispose(&key);
    return rc;
}

/* 0 where these were the last. */
static int keys_of_array(key_list *list, brc_error *err)
{
    int rc = brc_key_chunks_begin(&list->chunks, err);
    if (rc > 0) {
        rc = add_chunk_keys(list, err);
        brc_key_chunks_end(&list->chunks);
    }
    if (rc <= 0)
        brc_key_chunks_close(&list->chunks);
    return rc;
}

/* ---- nodes -------------------------------- */

size_t brc_key_dir_len(const char *prefix)
{
    const char *slash = strrchr(prefix, '/');
    return slash != NULL ? (size_t)(slash - prefix) + 1 : 0;
}

static int look_at_document(int *is, brc_session *s, const char *path, brc_error *err)
{
    brc_entry entry;
    int64_t row;
    int has;
    *is = 0;
    BRC_TRY(has_row(s, path + 1, path[1] != '\0' ? "/zarr.json" : "zarr.json", &has, err));
    if (has)
        return BRC_OK;
    *is = 1;
    if (path[1] != '\0')
        return BRC_OK;
    BRC_TRY(brc_session_find(s, path, &entry, &row, err));
    return brc_key_root_is_written(s, &entry, is, err);
}

int brc_key_document_is_there(int *is, brc_session *s, const char *path, brc_error *err)
{
    BRC_TRY(brc_session_begin_read(s, err));
    int rc = look_at_document(is, s, path, err);
    brc_session_end_read(s);
    return rc;
}

static int begins_alike(const char *text, const char *prefix)
{
    const size_t a = strlen(text), b = strlen(prefix);
    return strncmp(text, prefix, a < b ? a : b) == 0;
}

/* An array whose chunks may begin with the prefix. */
static int open_chunks(key_list *list, const char *path, brc_error *err)
{
    brc_error why = BRC_ERROR_INIT;
    const size_t above = strlen(list->above), len = strlen(list->prefix);
    const char *rest = len > above ? list->prefix + above : "";
    if (!begins_alike(list->above, list->prefix))
        return BRC_OK;
    int rc = brc_key_chunks_open(&list->chunks, list->session, path, rest, &why);
    if (rc == BRC_ENOTFOUND || rc == BRC_EINVAL) /* it has just gone */
        return BRC_OK;
    if (rc < 0 && err != NULL)
        brc_error_copy(err, &why);
    return rc;
}

/* 1 with the next node, whose chunks come next; 0 at the end. */
static int key_of_next_node(key_list *list, brc_error *err)
{
    const brc_node *node;
    int is;
    int rc = brc_list_next(list->nodes, &node, err);
    if (rc == 0) {
        brc_iter_free(list->nodes);
        list->nodes = NULL;
    }
    if (rc <= 0)
        return rc;
    brc_buf above = BRC_BUF_INIT;
    BRC_GO(brc_buf_printf(&above, err, "%s%s", node->path + 1, node->path[1] != '\0' ? "/" : ""));
    free(list->above);
    list->above = NULL;
    BRC_GO(brc_buf_take_text(&above, &list->above, err));
    BRC_GO(brc_key_document_is_there(&is, list->session, node->path, err));
    if (is)
        BRC_GO(key_add(list, list->above, "zarr.json", err));
    if (list->n > 0 && strncmp(((char **)list->items)[0], list->prefix, strlen(list->prefix)) != 0)
        key_list_clear(list);
    if (node->kind == BRC_ARRAY)
        BRC_GO(open_chunks(list, node->path, err));
    rc = 1;
done:
    brc_buf_dispose(&above);
    return rc;
}

/* ---- rows -------------------------------- */

static int add_row(void *ctx, const char *key, const brc_oid *id, brc_error *err)
{
    key_list *list = ctx;
    brc_buf from = BRC_BUF_INIT;
    int rc;
    BRC_GO(brc_buf_printf(&from, err, "%s\x01", key)); /* nothing lies between the two */
    free(list->from);
    list->from = NULL;
    BRC_GO(brc_buf_take_text(&from, &list->from, err));
    rc = id != NULL ? key_add(list, "", key, err) : BRC_OK;
done:
    brc_buf_dispose(&from);
    return rc;
}

/* Keeps the rows that it has seen in `from`, so that a page without keys is not the end. */
static int keys_of_rows(key_list *list, brc_error *err)
{
    brc_session *s = list->session;
    BRC_TRY(brc_session_begin_read(s, err));
    int any, rc = brc_key_rows_any(s, &any, err);
    brc_buf before = BRC_BUF_INIT;
    if (rc == BRC_OK && list->from != NULL)
        rc = brc_buf_text(&before, list->from, err);
    if (rc == BRC_OK && any)
        rc = brc_draft_key_page(s->repo->store, s->draft.id, list->prefix, list->from, KEY_BATCH,
                                add_row, list, err);
    brc_session_end_read(s);
    const size_t len = list->from != NULL ? strlen(list->from) : 0;
    list->rows = rc == BRC_OK && any && len > 0 &&
                 (len != before.len || memcmp(list->from, before.data, len) != 0);
    brc_buf_dispose(&before);
    return rc;
}

/* ---- the lists -------------------------------- */

/* Where the nodes of a prefix are: from its directory on, or an array that it lies in. */
static int start_nodes(key_list *list, brc_error *err)
{
    brc_session *s = list->session;
    const size_t dir = brc_key_dir_len(list->prefix);
    brc_buf path = BRC_BUF_INIT;
    brc_key_array *ka = NULL;
    brc_entry entry = {0};
    const char *rest;
    int64_t row;
    int rc, open = 0;
    BRC_TRY(brc_session_begin_read(s, err));
    BRC_GO(brc_key_node_path(&path, list->prefix, dir > 0 ? dir - 1 : 0, err));
    if (rc > 0)
        BRC_GO(brc_session_find(s, (const char *)path.data, &entry, &row, err));
    if (entry.kind == 0)
        BRC_GO(brc_key_array_of(&ka, s, list->prefix, &rest, err));
    open = entry.kind != 0 || ka != NULL;
    if (ka != NULL) {
        path.len = 0;
        BRC_GO(brc_buf_text(&path, ka->array.path, err));
        BRC_GO(brc_buf_terminate(&path, err));
    }
    rc = open ? brc_list(&list->nodes, s, (const char *)path.data, BRC_LIST_RECURSE, err) : BRC_OK;
done:
    brc_session_end_read(s);
    brc_buf_dispose(&path);
    return rc;
}

int brc_keys_prefix(brc_iter **out, brc_session *s, const char *prefix, brc_error *err)
{
    BRC_TRY(brc_iter_new(out, BRC_ITER_KEYS, sizeof(key_list), key_list_dispose, err));
    key_list *list = brc_iter_state(*out);
    list->session = brc_session_ref(s);
    list->rows = 1;
    int rc = brc_dup(&list->prefix, prefix, err);
    if (rc == BRC_OK)
        rc = start_nodes(list, err);
    if (rc < 0) {
        brc_iter_free(*out);
        *out = NULL;
    }
    return rc;
}

int brc_keys_loose(brc_iter **out, brc_session *s, brc_error *err)
{
    BRC_TRY(brc_iter_new(out, BRC_ITER_KEYS, sizeof(key_list), key_list_dispose, err));
    key_list *list = brc_iter_state(*out);
    list->session = brc_session_ref(s);
    list->rows = 1;
    int rc = brc_dup(&list->prefix, "", err);
    if (rc < 0) {
        brc_iter_free(*out);
        *out = NULL;
    }
    return rc;
}

int brc_keys(brc_iter **out, brc_session *s, const char *path, brc_error *err)
{
    int kind;
    brc_buf prefix = BRC_BUF_INIT;
    *out = NULL;
    BRC_TRY(brc_path_normal(&prefix, path, err));
    int rc = brc_node_kind(&kind, s, path, err);
    if (rc == BRC_OK && kind == 0)
        rc = brc_fail(err, BRC_ENOTFOUND, "there is no node %s", (const char *)prefix.data);
    if (rc == BRC_OK && prefix.len > 1)
        rc = brc_buf_byte(&prefix, '/', err);
    if (rc == BRC_OK)
        rc = brc_buf_terminate(&prefix, err);
    if (rc == BRC_OK)
        rc = brc_keys_prefix(out, s, (const char *)prefix.data + 1, err);
    brc_buf_dispose(&prefix);
    return rc;
}

/* Something more for the list: 1, or 0 at the end. */
static int fill_list(key_list *list, brc_error *err)
{
    if (list->chunks.array != NULL) {
        int rc = keys_of_array(list, err);
        return rc < 0 ? rc : 1;
    }
    if (list->nodes != NULL) {
        int rc = key_of_next_node(list, err);
        return rc < 0 ? rc : 1;
    }
    if (!list->rows)
        return 0;
    int rc = keys_of_rows(list, err);
    return rc < 0 ? rc : 1;
}

int brc_keys_next(brc_iter *it, const char **key, brc_error *err)
{
    BRC_TRY(brc_iter_check(it, BRC_ITER_KEYS, err));
    key_list *list = brc_iter_state(it);
    while (list->at == list->n) {
        key_list_clear(list);
        int rc = fill_list(list, err);
        if (rc <= 0)
            return rc;
    }
    *key = ((char **)list->items)[list->at++];
    return 1;
}

int brc_keys_any(int *any, brc_session *s, const char *prefix, int rows, brc_error *err)
{
    brc_iter *it;
    const char *key;
    *any = 0;
    BRC_TRY(brc_keys_prefix(&it, s, prefix, err));
    ((key_list *)brc_iter_state(it))->rows = rows;
    int rc = brc_keys_next(it, &key, err);
    brc_iter_free(it);
    *any = rc > 0;
    return rc < 0 ? rc : BRC_OK;
}
