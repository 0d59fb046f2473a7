/* The Zarr store view: the functions that change it. */
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "bulk_write.h"
#include "key_list.h"
#include "key_rows.h"
#include "key_value.h"
#include "node_moves.h"

/* A bulk write has rows of its own for nodes and chunks, and none for keys: where a loose key would
 * be replaced or removed, they could not say so. */
static int check_can_set(const brc_session *s, brc_error *err)
{
    if (s->mode >= BRC_SESSION_WRITE)
        return brc_bulk_check_none(s, "no key can be set or deleted", err);
    return brc_fail(err, BRC_EREADONLY, "this session cannot be changed: it was opened to read");
}

/* ---- setting -------------------------------- */

/* What the key means now, so that a chunk is decoded before anybody has to wait. Bytes that are no
 * chunk are found out again when they are placed. */
static int prepare_key(brc_put *put, brc_session *s, const char *key, brc_span data, brc_error *err)
{
    brc_key_array *ka;
    const char *rest;
    uint64_t outer[BRC_MAX_NDIM] = {0};
    size_t len;
    int inside, is = 0;
    if (brc_document_key(key, &len))
        return BRC_OK;
    BRC_TRY(brc_session_begin_read(s, err));
    int rc = brc_key_array_of(&ka, s, key, &rest, err);
    if (rc == BRC_OK && ka != NULL)
        is = brc_meta_key_parse(&ka->array.meta, rest, outer, &inside) && inside;
    brc_session_end_read(s);
    if (rc < 0 || !is)
        return rc;
    brc_error why = BRC_ERROR_INIT;
    rc = brc_put_prepare(put, &ka->array, outer, data, &why);
    if (rc > 0)
        rc = brc_put_ahead(put, &ka->array, &why);
    if (rc < 0 && err != NULL)
        *err = why;
    return rc < 0 ? rc : BRC_OK;
}

/* A chunk whose key now has other bytes is not there any more. */
static int drop_chunk_under(brc_session *s, const char *key, brc_error *err)
{
    brc_key_array *ka;
    const char *rest;
    uint64_t outer[BRC_MAX_NDIM] = {0};
    int inside, is = 0;
    BRC_TRY(brc_key_array_of(&ka, s, key, &rest, err));
    if (ka == NULL || !brc_meta_key_parse(&ka->array.meta, rest, outer, &inside) || !inside)
        return BRC_OK;
    BRC_TRY(brc_key_chunk_exists(&is, &ka->array, outer, err));
    return is ? brc_put_drop(&ka->array, outer, err) : BRC_OK;
}

/* What is below a document that is there now may have waited for it. */
static int settle_below(brc_session *s, const char *key, brc_error *err)
{
    brc_buf below = BRC_BUF_INIT;
    int rc = brc_buf_append(&below, key, strlen(key) - strlen("zarr.json"), err);
    if (rc == BRC_OK)
        rc = brc_buf_terminate(&below, err);
    if (rc == BRC_OK)
        rc = brc_keys_settle(s, (const char *)below.data, err);
    brc_buf_dispose(&below);
    return rc;
}

/* Within a change. */
static int set_key(brc_session *s, const char *key, brc_span data, brc_put *put, brc_error *err)
{
    brc_error why = BRC_ERROR_INIT;
    size_t len;
    const int is_document = brc_document_key(key, &len);
    int rc = is_document ? brc_key_place_document(s, key, data, &why)
                         : brc_key_place_chunk(s, key, data, put, &why);
    if (rc < 0) {
        if (err != NULL)
            *err = why;
        return rc;
    }
    if (rc > 0)
        return is_document ? settle_below(s, key, err) : BRC_OK;
    BRC_TRY(brc_key_check_document(s, key, data, err));
    BRC_TRY(brc_loose_put(s, key, data, err));
    return is_document ? BRC_OK : drop_chunk_under(s, key, err);
}

static int check_values(const char *const *keys, const size_t *lens, size_t n, brc_error *err)
{
    for (size_t i = 0; i < n; i++) {
        BRC_TRY(brc_key_check(keys[i], err));
        if (lens[i] > BRC_MAX_CHUNK_BYTES)
            return brc_fail(err, BRC_ELIMIT, "a value has at most 2^31-1 bytes, not %zu", lens[i]);
    }
    return BRC_OK;
}

static int set_all(brc_session *s, const char *const *keys, const void *const *data,
                   const size_t *lens, size_t n, brc_put *puts, brc_error *err)
{
    for (size_t i = 0; i < n; i++) {
        int rc = data[i] != NULL ? set_key(s, keys[i], (brc_span){data[i], lens[i]}, &puts[i], err)
                                 : brc_key_delete(s, keys[i], err);
        s->repo->changes++; /* arrays are looked at again */
        if (rc < 0)
            return rc;
    }
    return BRC_OK;
}

int brc_key_set_many(brc_session *s, const char *const *keys, const void *const *data,
                     const size_t *lens, size_t n, brc_error *err)
{
    void *puts = NULL;
    int rc;
    if (n == 0)
        return BRC_OK;
    BRC_TRY(check_can_set(s, err));
    BRC_TRY(check_values(keys, lens, n, err));
    if (n == 1 && data[0] != NULL)
        BRC_TRY(brc_key_cut_ahead(s, keys[0], (brc_span){data[0], lens[0]}, err));
    BRC_TRY(brc_new_array(&puts, n, sizeof(brc_put), err));
    for (size_t i = 0; i < n; i++)
        if (data[i] != NULL)
            BRC_GO(prepare_key((brc_put *)puts + i, s, keys[i], (brc_span){data[i], lens[i]}, err));
    for (size_t i = 0; i < n; i++)
        BRC_GO(brc_put_flush(s->repo->store, (brc_put *)puts + i, err));
    BRC_GO(brc_session_begin(s, err));
    rc = brc_session_end(s, set_all(s, keys, data, lens, n, puts, err), err);
done:
    for (size_t i = 0; i < n; i++)
        brc_put_dispose((brc_put *)puts + i);
    free(puts);
    return rc;
}

int brc_key_set(brc_session *s, const char *key, const void *data, size_t len, brc_error *err)
{
    const void *bytes = data != NULL ? data : "";
    return brc_key_set_many(s, &key, &bytes, &len, 1, err);
}

/* Within a change. */
static int set_if_new(int *set, brc_session *s, const char *key, const void *data, size_t len,
                      brc_error *err)
{
    int is;
    BRC_TRY(brc_key_exists(&is, s, key, err));
    *set = !is;
    return is ? BRC_OK : brc_key_set(s, key, data, len, err);
}

int brc_key_set_new(int *set, brc_session *s, const char *key, const void *data, size_t len,
                    brc_error *err)
{
    int is;
    *set = 0;
    BRC_TRY(check_can_set(s, err));
    BRC_TRY(check_values(&key, &len, 1, err));
    BRC_TRY(brc_key_exists(&is, s, key, err)); /* often it says enough, and nobody waits */
    if (is)
        return BRC_OK;
    BRC_TRY(brc_session_begin(s, err));
    int rc = brc_session_end(s, set_if_new(set, s, key, data, len, err), err);
    if (rc < 0)
        *set = 0;
    return rc;
}

/* ---- deleting -------------------------------- */

/* The node stays as long as something is in it, and its document has no key. */
static int hide_document(brc_session *s, const char *key, size_t len, brc_error *err)
{
    brc_store *store = s->repo->store;
    brc_entry entry, group = {.kind = BRC_GROUP};
    brc_json *plain = NULL;
    brc_buf path = BRC_BUF_INIT;
    int64_t row;
    int rc, empty;
    BRC_GO(brc_key_node_path(&path, key, len, err));
    if (rc == 0) { /* no node can be there */
        rc = brc_draft_key_drop(store, s->draft.id, key, err);
        goto done;
    }
    const char *at = (const char *)path.data;
    BRC_GO(brc_session_find(s, at, &entry, &row, err));
    if (entry.kind == 0) {
        rc = brc_draft_key_drop(store, s->draft.id, key, err);
        goto done;
    }
    BRC_GO(brc_key_node_is_empty(s, at, &entry, row, &empty, err));
    if (empty && strcmp(at, "/") != 0) {
        BRC_GO(brc_key_remove_empty(s, at, err));
        rc = brc_key_prune(s, at, err);
        goto done;
    }
    if (entry.kind == BRC_GROUP) { /* as one that nobody has written */
        BRC_GO(brc_entry_doc(store, &group, &plain, err));
        BRC_GO(brc_session_put_doc(s, at, &entry, plain, NULL, err));
    } else {
        BRC_GO(brc_session_put(s, at, &entry, NULL, err));
    }
    rc = brc_draft_key_put(store, s->draft.id, key, NULL, err);
done:
    brc_json_free(plain);
    brc_buf_dispose(&path);
    return rc;
}

/* Within a change. */
static int delete_key(brc_session *s, const char *key, brc_error *err)
{
    size_t len;
    if (brc_document_key(key, &len))
        return hide_document(s, key, len, err);
    BRC_TRY(brc_draft_key_drop(s->repo->store, s->draft.id, key, err));
    return drop_chunk_under(s, key, err);
}

int brc_key_delete(brc_session *s, const char *key, brc_error *err)
{
    int is;
    BRC_TRY(check_can_set(s, err));
    BRC_TRY(brc_key_check(key, err));
    BRC_TRY(brc_key_exists(&is, s, key, err));
    if (!is)
        return BRC_OK;
    BRC_TRY(brc_session_begin(s, err));
    return brc_session_end(s, delete_key(s, key, err), err);
}

/* Nodes whose every key begins with the prefix go whole. */
static int remove_covered(brc_session *s, const char *prefix, brc_error *err)
{
    brc_iter *it = NULL;
    const brc_node *node;
    char *paths[64];
    size_t n = 0, dir = brc_key_dir_len(prefix);
    brc_buf path = BRC_BUF_INIT;
    int kind, rc, more = 1;
    BRC_GO(brc_key_node_path(&path, prefix, dir > 0 ? dir - 1 : 0, err));
    if (rc == 0)
        goto done;
    BRC_GO(brc_node_kind(&kind, s, (const char *)path.data, err));
    while (kind == BRC_GROUP && more) {
        BRC_GO(brc_list(&it, s, (const char *)path.data, 0, err));
        while (n < 64 && (rc = brc_list_next(it, &node, err)) > 0)
            if (strncmp(node->path + 1, prefix, strlen(prefix)) == 0)
                BRC_GO(brc_dup(&paths[n++], node->path, err));
        brc_iter_free(it);
        it = NULL;
        if (rc < 0)
            goto done;
        more = n == 64;
        while (n > 0) {
            rc = brc_node_remove(s, paths[--n], err);
            free(paths[n]);
            BRC_GO(rc);
        }
    }
    rc = BRC_OK;
done:
    while (n > 0)
        free(paths[--n]);
    brc_iter_free(it);
    brc_buf_dispose(&path);
    return rc;
}

/* What is left: documents and chunks, one by one. */
static int delete_each(brc_session *s, const char *prefix, brc_error *err)
{
    brc_iter *it;
    const char *key;
    int rc;
    BRC_TRY(brc_keys_prefix(&it, s, prefix, err));
    while ((rc = brc_keys_next(it, &key, err)) > 0) {
        rc = delete_key(s, key, err);
        s->repo->changes++;
        if (rc < 0)
            break;
    }
    brc_iter_free(it);
    return rc;
}

/* A directory that is a node goes whole, with its document. */
static int remove_itself(brc_session *s, const char *prefix, brc_error *err)
{
    const size_t len = strlen(prefix);
    brc_buf path = BRC_BUF_INIT;
    int kind = 0, rc;
    if (len < 2 || prefix[len - 1] != '/')
        return BRC_OK;
    BRC_GO(brc_key_node_path(&path, prefix, len - 1, err));
    if (rc > 0)
        BRC_GO(brc_node_kind(&kind, s, (const char *)path.data, err));
    rc = kind != 0 ? brc_node_remove(s, (const char *)path.data, err) : BRC_OK;
done:
    brc_buf_dispose(&path);
    return rc;
}

static int delete_prefix(brc_session *s, const char *prefix, brc_error *err)
{
    BRC_TRY(brc_draft_key_clear_loose(s->repo->store, s->draft.id, prefix, err));
    s->repo->changes++;
    BRC_TRY(remove_itself(s, prefix, err));
    BRC_TRY(remove_covered(s, prefix, err));
    return delete_each(s, prefix, err);
}

int brc_key_delete_prefix(brc_session *s, const char *prefix, brc_error *err)
{
    int any;
    BRC_TRY(check_can_set(s, err));
    BRC_TRY(brc_keys_any(&any, s, prefix, 1, err));
    if (!any)
        return BRC_OK;
    BRC_TRY(brc_session_begin(s, err));
    return brc_session_end(s, delete_prefix(s, prefix, err), err);
}
