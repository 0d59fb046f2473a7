/* The Zarr store view: a repository as the keys and values of a Zarr directory. */
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../base/iter.h"
#include "../base/node_path.h"
#include "outer_cursor.h"
#include "stored_chunk.h"
#include "transfer.h"

static int no_such_key(const char *key, brc_error *err)
{
    return brc_fail(err, BRC_ENOTFOUND, "there is no key '%.200s'", key);
}

/* The chunk that `rest` names in the array at `path`. */
static int chunk_value(brc_session *s, const char *path, const char *rest, const char *key,
                       brc_buf *out, brc_error *err)
{
    brc_array *a;
    uint64_t index[BRC_MAX_NDIM];
    int inside, there, rc;
    BRC_TRY(brc_array_open(&a, s, path, err));
    if (!brc_chunk_key_parse(a, rest, index, &inside) || !inside) {
        rc = no_such_key(key, err);
        goto done;
    }
    BRC_GO(brc_array_begin_read(a, err));
    rc = brc_stored_chunk(a, index, out, &there, err);
    if (rc == BRC_OK && !there)
        rc = no_such_key(key, err);
    brc_array_end_read(a);
done:
    brc_array_free(a);
    return rc;
}

/* Calls for each beginning of the key that ends before a '/', shortest first, until
 * one names an array. */
static int find_chunk(brc_session *s, const char *key, brc_buf *out, brc_error *err)
{
    brc_buf path = BRC_BUF_INIT;
    int rc = BRC_OK, kind = 0;
    const char *at = key;
    for (; kind != BRC_ARRAY; at += strcspn(at, "/") + 1) {
        if (at > key && at[-1] == '\0')
            break;
        path.len = 0;
        BRC_GO(brc_buf_byte(&path, '/', err));
        BRC_GO(brc_buf_append(&path, key, at > key ? (size_t)(at - key) - 1 : 0, err));
        BRC_GO(brc_buf_terminate(&path, err));
        brc_error ignored = BRC_ERROR_INIT;
        rc = brc_node_kind(&kind, s, (const char *)path.data, &ignored);
        if (rc == BRC_EINVAL || (rc == BRC_OK && kind == 0))
            break;
        if (rc < 0) {
            if (err != NULL)
                *err = ignored;
            goto done;
        }
        if (kind == BRC_ARRAY) {
            rc = chunk_value(s, (const char *)path.data, at, key, out, err);
            goto done;
        }
    }
    rc = no_such_key(key, err);
done:
    brc_buf_dispose(&path);
    return rc;
}

static int document_value(brc_session *s, const char *key, size_t path_len, brc_buf *out,
                          brc_error *err)
{
    brc_buf path = BRC_BUF_INIT;
    brc_json *doc = NULL;
    int rc;
    BRC_GO(brc_buf_byte(&path, '/', err));
    BRC_GO(brc_buf_append(&path, key, path_len, err));
    BRC_GO(brc_buf_terminate(&path, err));
    rc = brc_node_doc(&doc, s, (const char *)path.data, err);
    if (rc == BRC_ENOTFOUND || rc == BRC_EINVAL)
        rc = no_such_key(key, err);
    if (rc == BRC_OK)
        rc = brc_json_write_pretty(out, doc, err);
done:
    brc_json_free(doc);
    brc_buf_dispose(&path);
    return rc;
}

int brc_key_get(brc_buf *out, brc_session *s, const char *key, brc_error *err)
{
    size_t len;
    out->len = 0;
    if (brc_document_key(key, &len))
        return document_value(s, key, len, out, err);
    return find_chunk(s, key, out, err);
}

/* ---- all keys -------------------------------- */

/* So many keys are held, whatever an array has. */
#define KEY_BATCH 512

/* The nodes in order, and the next keys of one of them. */
typedef struct key_list {
    brc_session *session;
    brc_iter *nodes;
    brc_array *array;        /* whose chunks come; NULL: none                     */
    brc_outer_cursor cursor; /* among them, of the array as it was then:          */
    int has_cursor, ndim;
    uint64_t version, changes;
    int any;                 /* keys have been given, the last one that of:       */
    uint64_t last[BRC_MAX_NDIM];
    void *items;             /* char *[]                                          */
    size_t n, cap, at;
} key_list;

static void close_cursor(key_list *list)
{
    if (list->has_cursor)
        brc_outer_cursor_end(&list->cursor);
    list->has_cursor = 0;
}

static void close_array(key_list *list)
{
    close_cursor(list);
    brc_array_free(list->array);
    list->array = NULL;
    list->any = 0;
}

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
    close_array(list);
    brc_iter_free(list->nodes);
    brc_session_unref(list->session);
}

/* "/a/b" and "c/0" as "a/b/c/0". */
static int key_add(key_list *list, const char *path, const char *rest, brc_error *err)
{
    brc_buf text = BRC_BUF_INIT;
    BRC_TRY(brc_grow_array(&list->items, &list->cap, list->n + 1, sizeof(char *), err));
    int rc = brc_buf_printf(&text, err, "%s%s%s", path + 1, path[1] != '\0' ? "/" : "", rest);
    if (rc == BRC_OK)
        rc = brc_buf_take_text(&text, &((char **)list->items)[list->n], err);
    brc_buf_dispose(&text);
    list->n += rc == BRC_OK;
    return rc;
}

/* After a change the cursor starts anew; what has been given is passed over. */
static int follow_array(key_list *list, brc_error *err)
{
    const brc_array *a = list->array;
    if (list->has_cursor && a->version == list->version && a->changes == list->changes)
        return BRC_OK;
    close_cursor(list);
    list->has_cursor = 1;
    list->version = a->version;
    list->changes = a->changes;
    return brc_outer_cursor_start(&list->cursor, a, err);
}

/* 1 with the place of the next chunk or shard, 0 at the end. */
static int next_place(key_list *list, uint64_t *index, brc_error *err)
{
    brc_oid id;
    int rc;
    do
        rc = brc_outer_cursor_next(&list->cursor, index, &id, err);
    while (rc > 0 && list->any && brc_index_order(list->ndim, index, list->last) <= 0);
    if (rc > 0)
        memcpy(list->last, index, sizeof(*index) * (size_t)list->ndim);
    list->any |= rc > 0;
    return rc;
}

/* Within a transaction. 0 where these were the last. */
static int keys_of_chunks(key_list *list, brc_error *err)
{
    const brc_array *a = list->array;
    brc_buf key = BRC_BUF_INIT;
    uint64_t index[BRC_MAX_NDIM] = {0};
    int rc;
    BRC_GO(follow_array(list, err));
    while (list->n < KEY_BATCH && (rc = next_place(list, index, err)) > 0) {
        key.len = 0;
        BRC_GO(brc_chunk_key_format(a, index, &key, err));
        BRC_GO(key_add(list, a->path, (const char *)key.data, err));
    }
    if (rc == BRC_OK && list->n == KEY_BATCH)
        rc = 1;
done:
    brc_buf_dispose(&key);
    return rc;
}

/* An array that is gone, or is another one now, has no further keys. */
static int keys_of_array(key_list *list, brc_error *err)
{
    brc_error why = BRC_ERROR_INIT;
    int rc = brc_array_begin_read(list->array, &why);
    if (rc == BRC_OK) {
        rc = list->array->meta.ndim == list->ndim ? keys_of_chunks(list, &why) : 0;
        brc_array_end_read(list->array);
    } else if (rc == BRC_ENOTFOUND) {
        rc = 0;
    }
    if (rc < 0 && err != NULL)
        *err = why;
    if (rc <= 0)
        close_array(list);
    return rc;
}

int brc_keys(brc_iter **out, brc_session *s, const char *path, brc_error *err)
{
    BRC_TRY(brc_iter_new(out, BRC_ITER_KEYS, sizeof(key_list), key_list_dispose, err));
    key_list *list = brc_iter_state(*out);
    list->session = brc_session_ref(s);
    int rc = brc_list(&list->nodes, s, path, 1, err);
    if (rc < 0) {
        brc_iter_free(*out);
        *out = NULL;
    }
    return rc;
}

/* 1 with the key of the next node, whose chunks come next; 0 at the end. */
static int key_of_next_node(key_list *list, brc_error *err)
{
    brc_node node;
    int rc = brc_list_next(list->nodes, &node, err);
    if (rc <= 0)
        return rc;
    BRC_TRY(key_add(list, node.path, "zarr.json", err));
    if (node.kind != BRC_ARRAY)
        return 1;
    BRC_TRY(brc_array_open(&list->array, list->session, node.path, err));
    list->ndim = list->array->meta.ndim;
    return 1;
}

int brc_keys_next(brc_iter *it, const char **key, brc_error *err)
{
    BRC_TRY(brc_iter_check(it, BRC_ITER_KEYS, err));
    key_list *list = brc_iter_state(it);
    while (list->at == list->n) {
        key_list_clear(list);
        int rc = list->array != NULL ? keys_of_array(list, err) : 2;
        if (rc < 0)
            return rc;
        if (rc == 2 && (rc = key_of_next_node(list, err)) <= 0)
            return rc;
    }
    *key = ((char **)list->items)[list->at++];
    return 1;
}
