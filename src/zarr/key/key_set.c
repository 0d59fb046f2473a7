/* Sets and deletes keys of the Zarr store view, turns loose keys into nodes and chunks, and refuses
 * commits with loose keys. */
#include <stdlib.h>
#include <string.h>

#include "../../base/alloc.h"
#include "../../base/sized.h"
#include "../../work/bulk_write.h"
#include "../../work/session_nodes.h"
#include "../array/chunk_cursor.h"
#include "../stored/stored_in.h"
#include "../stored/stored_out.h"
#include "key_list.h"
#include "key_rows.h"

/* ==== key settle ================================ */

typedef struct key_names {
    void *keys; /* char *[] */
    size_t n, cap;
    int hidden; /* also keys without bytes */
} key_names;

static void key_names_dispose(key_names *names)
{
    for (size_t i = 0; i < names->n; i++)
        free(((char **)names->keys)[i]);
    free(names->keys);
}

static int take_name(void *ctx, const char *key, const brc_oid *id, brc_error *err)
{
    key_names *names = ctx;
    if ((id == NULL) != names->hidden)
        return BRC_OK;
    BRC_TRY(brc_grow_array(&names->keys, &names->cap, names->n + 1, sizeof(char *), err));
    BRC_TRY(brc_dup(&((char **)names->keys)[names->n], key, err));
    names->n++;
    return BRC_OK;
}

static int read_names(key_names *names, brc_store *store, int64_t draft, const char *prefix,
                      brc_error *err)
{
    return brc_draft_key_page(store, draft, prefix, NULL, SIZE_MAX >> 1, take_name, names, err);
}

/* Tells whether the array's own document has a key: no row overrides it. */
static int document_is_key(brc_session *s, const brc_array *a, int *is, brc_error *err)
{
    brc_buf key = BRC_BUF_INIT;
    brc_oid id;
    int state = BRC_KEY_NO_ROW;
    int rc = brc_buf_printf(&key, err, "%s%szarr.json", a->path + 1, a->path[1] != '\0' ? "/" : "");
    if (rc == BRC_OK)
        rc = brc_key_row(s, (const char *)key.data, &state, &id, err);
    *is = state == BRC_KEY_NO_ROW;
    brc_buf_dispose(&key);
    return rc;
}

/* Stores a chunk if the key belongs to an array whose document has a key. Returns 1, or 0 with the
 * reason. `put` is prepared for these bytes, or is empty. Within a change of the session. */
static int key_place_chunk(brc_session *s, const char *key, brc_span data, brc_put *put,
                           brc_error *err)
{
    brc_key_array *ka;
    const char *rest;
    uint64_t outer[BRC_MAX_NDIM] = {0};
    int inside, is, rc;
    BRC_TRY(brc_key_array_of(&ka, s, key, &rest, err));
    brc_fail(err, BRC_EINVAL, "no array has a chunk of this key");
    if (ka == NULL)
        return 0;
    brc_array *a = &ka->array;
    if (!brc_meta_key_parse(&a->meta, rest, outer, &inside) || !inside)
        return 0;
    BRC_TRY(document_is_key(s, a, &is, err));
    if (!is) {
        brc_fail(err, BRC_EINVAL, "the array's zarr.json is missing");
        return 0;
    }
    if (!put->is_ready || brc_oid_cmp(&put->doc, &a->meta_doc) != 0 ||
        memcmp(put->outer, outer, (size_t)a->meta.ndim * sizeof(*outer)) != 0) {
        rc = brc_put_prepare(put, a, outer, data, err);
        if (rc <= 0)
            return rc;
    }
    BRC_TRY(brc_put_store(put, a, err));
    BRC_TRY(brc_draft_key_drop(s->repo->store, s->draft.id, key, err));
    return 1;
}

static int settle_one(brc_session *s, const char *key, int documents, brc_error *err)
{
    brc_buf value = BRC_BUF_INIT;
    brc_put put = {0};
    brc_oid id;
    size_t len;
    int state, rc;
    if (documents != brc_document_key(key, &len))
        return 0;
    BRC_TRY(brc_draft_key_get(s->repo->store, s->draft.id, key, &state, &id, err));
    if (state != BRC_KEY_LOOSE)
        return 0;
    BRC_GO(brc_loose_load(&value, s->repo->store, &id, err));
    const brc_span data = {value.data, value.len};
    rc = documents ? brc_key_place_document(s, key, data, err)
                   : key_place_chunk(s, key, data, &put, err);
done:
    brc_put_dispose(&put);
    brc_buf_dispose(&value);
    return rc;
}

/* Places documents first, groups before their contents; then chunks. */
int brc_keys_settle(brc_session *s, const char *prefix, brc_error *err)
{
    key_names names = {0};
    brc_error why = BRC_ERROR_INIT;
    int any, rc;
    BRC_TRY(brc_draft_key_any(s->repo->store, s->draft.id, &any, err));
    if (!any)
        return BRC_OK;
    BRC_GO(read_names(&names, s->repo->store, s->draft.id, prefix, err));
    for (int documents = 1; documents >= 0; documents--)
        for (size_t i = 0; i < names.n; i++) {
            rc = settle_one(s, ((char **)names.keys)[i], documents, &why);
            if (rc < 0) {
                if (err != NULL)
                    *err = why;
                goto done;
            }
        }
    rc = BRC_OK;
done:
    key_names_dispose(&names);
    return rc;
}

/* ---- refusals of an adoption -------------------------------- */

static int is_chunk_too(brc_session *s, const char *key, int *is, brc_error *err)
{
    brc_key_array *ka;
    const char *rest;
    uint64_t outer[BRC_MAX_NDIM] = {0};
    size_t len;
    int inside;
    *is = 0;
    if (brc_document_key(key, &len))
        return BRC_OK;
    BRC_TRY(brc_key_array_of(&ka, s, key, &rest, err));
    if (ka == NULL || !brc_meta_key_parse(&ka->array.meta, rest, outer, &inside) || !inside)
        return BRC_OK;
    return brc_stored_exists(is, &ka->array, outer, err);
}

int brc_keys_check_adopted(brc_session *s, int64_t draft, brc_error *err)
{
    key_names names = {0};
    int any, is, rc;
    BRC_TRY(brc_session_begin_read(s, err));
    BRC_GO(brc_key_rows_any(s, &any, err));
    if (any)
        BRC_GO(read_names(&names, s->repo->store, s->draft.id, "", err));
    for (size_t i = 0; i < names.n; i++) {
        const char *key = ((char **)names.keys)[i];
        BRC_GO(is_chunk_too(s, key, &is, err));
        if (is) {
            rc = brc_fail(err, BRC_ECONFLICT,
                          "one side has written the chunk '%.200s', and the other has set other "
                          "bytes under its key; draft %lld is kept: commit or drop the other "
                          "changes, or drop it",
                          key, (long long)draft);
            goto done;
        }
    }
done:
    brc_session_end_read(s);
    key_names_dispose(&names);
    return rc;
}

/* ---- refusals of a commit -------------------------------- */

/* Appends " (and 'b', 'c' and 7 others)", for all names but the first. */
static int name_others(brc_buf *out, const key_names *names, brc_error *err)
{
    enum { NAMED = 3 };
    const size_t others = names->n - 1, named = others < NAMED ? others : NAMED;
    BRC_TRY(brc_buf_text(out, others > 0 ? " (and " : "", err));
    for (size_t i = 0; i < named; i++)
        BRC_TRY(brc_buf_printf(out, err, "%s'%.60s'", i > 0 ? ", " : "",
                               ((char **)names->keys)[i + 1]));
    if (others > named)
        BRC_TRY(brc_buf_printf(out, err, " and %zu others", others - named));
    BRC_TRY(brc_buf_text(out, others > 0 ? ")" : "", err));
    return brc_buf_terminate(out, err);
}

/* Tells whether a key is a document of Zarr format 2. */
static int is_of_format_2(const char *key)
{
    static const char *const names[] = {".zgroup", ".zarray", ".zattrs", ".zmetadata"};
    const char *slash = strrchr(key, '/');
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (strcmp(slash != NULL ? slash + 1 : key, names[i]) == 0)
            return 1;
    return 0;
}

/* Moves a document to the front: a refused document is the reason why its chunks are refused. */
static void document_first(const key_names *names)
{
    char **keys = names->keys;
    size_t len;
    for (size_t i = 0; i < names->n; i++)
        if (brc_document_key(keys[i], &len)) {
            char *key = keys[i];
            memmove(keys + 1, keys, i * sizeof(*keys));
            keys[0] = key;
            return;
        }
}

/* Fails with the reason why a key is still loose, by trying it once more. */
static int refuse_keys(brc_session *s, const key_names *names, brc_error *err)
{
    document_first(names);
    brc_error why = BRC_ERROR_INIT;
    const char *key = ((char **)names->keys)[0];
    brc_buf others = BRC_BUF_INIT;
    const char *remedy = is_of_format_2(key) ? "write Zarr format 3 (2 can be imported)"
                                             : "set the missing keys, or delete it";
    size_t len;
    int rc = settle_one(s, key, brc_document_key(key, &len), &why);
    if (rc < 0) {
        if (err != NULL)
            *err = why;
        return rc;
    }
    rc = name_others(&others, names, err);
    if (rc == BRC_OK)
        rc = brc_fail(err, BRC_ECONFLICT,
                      "the key '%.100s'%s is neither a node nor a chunk, and cannot be committed: "
                      "%s (%.160s)",
                      key, (const char *)others.data, remedy, why.message);
    brc_buf_dispose(&others);
    return rc;
}

static int check_hidden_array(brc_session *s, const char *path, brc_error *err)
{
    brc_entry entry;
    brc_array *a;
    brc_outer_cursor c;
    brc_oid id;
    uint64_t outer[BRC_MAX_NDIM];
    int64_t row;
    BRC_TRY(brc_session_find(s, path, &entry, &row, err));
    if (entry.kind != BRC_ARRAY)
        return BRC_OK;
    BRC_TRY(brc_array_open(&a, s, path, err));
    int rc = brc_outer_cursor_start(&c, a, NULL, err);
    if (rc == BRC_OK)
        rc = brc_outer_cursor_next(&c, outer, &id, err);
    brc_outer_cursor_end(&c);
    brc_array_free(a);
    if (rc <= 0)
        return rc;
    return brc_fail(err, BRC_ECONFLICT,
                    "the key '%s/zarr.json' was deleted, but chunks of the array are there: delete "
                    "these, or set the document again",
                    path + 1);
}

int brc_keys_ready(brc_session *s, brc_error *err)
{
    key_names names = {0};
    brc_hidden_nodes hidden = {0};
    int any, rc;
    if (s->draft.id == 0)
        return BRC_OK;
    BRC_TRY(brc_draft_key_any(s->repo->store, s->draft.id, &any, err));
    if (!any)
        return BRC_OK;
    BRC_GO(brc_keys_settle(s, "", err));
    BRC_GO(read_names(&names, s->repo->store, s->draft.id, "", err));
    if (names.n > 0)
        BRC_GO(refuse_keys(s, &names, err));
    BRC_GO(brc_hidden_nodes_read(&hidden, s->repo->store, s->draft.id, err));
    for (size_t i = 0; i < hidden.n && rc == BRC_OK; i++)
        rc = check_hidden_array(s, ((char **)hidden.paths)[i], err);
done:
    key_names_dispose(&names);
    brc_hidden_nodes_dispose(&hidden);
    return rc;
}

/* ==== key set ================================ */

/* The Zarr store view: the functions that change it. */

/* Refuses to set keys in a bulk write, whose draft has rows for nodes and chunks, but none for
 * keys: those rows could not say that a loose key was replaced or removed. */
static int check_can_set(const brc_session *s, brc_error *err)
{
    if (s->mode >= BRC_SESSION_WRITE)
        return brc_bulk_check_none(s, "no key can be set or deleted", err);
    return brc_fail(err, BRC_EREADONLY, "this session cannot be changed: it was opened to read");
}

/* ---- setting -------------------------------- */

/* Finds what the key means now, so that a chunk is decoded before anybody has to wait. Bytes that
 * are not a valid chunk are found out again when they are placed. */
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

/* Drops the chunk of a key that now has other bytes. */
static int drop_chunk_under(brc_session *s, const char *key, brc_error *err)
{
    brc_key_array *ka;
    const char *rest;
    uint64_t outer[BRC_MAX_NDIM] = {0};
    int inside, is = 0;
    BRC_TRY(brc_key_array_of(&ka, s, key, &rest, err));
    if (ka == NULL || !brc_meta_key_parse(&ka->array.meta, rest, outer, &inside) || !inside)
        return BRC_OK;
    BRC_TRY(brc_stored_exists(&is, &ka->array, outer, err));
    return is ? brc_put_drop(&ka->array, outer, err) : BRC_OK;
}

/* Settles keys below a document that exists now and for which they may have waited. */
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

/* Sets a key within a change. */
static int set_key(brc_session *s, const char *key, brc_span data, brc_put *put, brc_error *err)
{
    brc_error why = BRC_ERROR_INIT;
    size_t len;
    const int is_document = brc_document_key(key, &len);
    int rc = is_document ? brc_key_place_document(s, key, data, &why)
                         : key_place_chunk(s, key, data, put, &why);
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
                                 : brc_key_delete(s, keys[i], 0, err);
        s->repo->changes++; /* makes arrays check again */
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

static int set_one(brc_session *s, const char *key, const void *data, size_t len, brc_error *err)
{
    const void *bytes = data != NULL ? data : "";
    return brc_key_set_many(s, &key, &bytes, &len, 1, err);
}

static int check_is_new(brc_session *s, const char *key, brc_error *err)
{
    int is;
    BRC_TRY(brc_key_exists(&is, s, key, err));
    return is ? brc_fail(err, BRC_EEXISTS, "the key '%.200s' already exists", key) : BRC_OK;
}

/* Sets a key within a change, if it is absent. */
static int set_if_new(brc_session *s, const char *key, const void *data, size_t len,
                      brc_error *err)
{
    BRC_TRY(check_is_new(s, key, err));
    return set_one(s, key, data, len, err);
}

int brc_key_set(brc_session *s, const char *key, const void *data, size_t len, uint32_t flags,
                brc_error *err)
{
    BRC_TRY(brc_flags_check(flags, BRC_KEY_NEW, "brc_key_set()", err));
    if (flags == 0)
        return set_one(s, key, data, len, err);
    BRC_TRY(check_can_set(s, err));
    BRC_TRY(check_values(&key, &len, 1, err));
    BRC_TRY(check_is_new(s, key, err)); /* often this is enough, and nobody waits */
    BRC_TRY(brc_session_begin(s, err));
    return brc_session_end(s, set_if_new(s, key, data, len, err), err);
}

/* Sets a key within a change, if it is absent. */
/* ---- deleting -------------------------------- */

/* Hides a document. The node stays as long as something is in it, and its document has no key. */
static int hide_document(brc_session *s, const char *key, size_t len, brc_error *err)
{
    brc_store *store = s->repo->store;
    brc_entry entry, group = {.kind = BRC_GROUP};
    brc_json *plain = NULL;
    brc_buf path = BRC_BUF_INIT;
    int64_t row;
    int rc, empty;
    BRC_GO(brc_key_node_path(&path, key, len, err));
    if (rc == 0) { /* not a valid path of a node */
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
    if (entry.kind == BRC_GROUP) { /* like a group that nobody has written */
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

/* Deletes a key within a change. */
static int delete_key(brc_session *s, const char *key, brc_error *err)
{
    size_t len;
    if (brc_document_key(key, &len))
        return hide_document(s, key, len, err);
    BRC_TRY(brc_draft_key_drop(s->repo->store, s->draft.id, key, err));
    return drop_chunk_under(s, key, err);
}

static int delete_one(brc_session *s, const char *key, brc_error *err)
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

/* Removes whole nodes all of whose keys begin with the prefix. */
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
        while (n < 64 && (rc = brc_next(it, &node, err)) > 0)
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

/* Removes the remaining documents and chunks one by one. */
static int delete_each(brc_session *s, const char *prefix, brc_error *err)
{
    brc_iter *it;
    const char *key;
    int rc;
    BRC_TRY(brc_keys(&it, s, prefix, 0, err));
    while ((rc = brc_next(it, &key, err)) > 0) {
        rc = delete_key(s, key, err);
        s->repo->changes++;
        if (rc < 0)
            break;
    }
    brc_iter_free(it);
    return rc;
}

/* Removes a directory that is a node as a whole, with its document. */
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

static int delete_all(brc_session *s, const char *prefix, brc_error *err)
{
    int any;
    BRC_TRY(check_can_set(s, err));
    BRC_TRY(brc_keys_any(&any, s, prefix, 1, err));
    if (!any)
        return BRC_OK;
    BRC_TRY(brc_session_begin(s, err));
    return brc_session_end(s, delete_prefix(s, prefix, err), err);
}

int brc_key_delete(brc_session *s, const char *key, uint32_t flags, brc_error *err)
{
    BRC_TRY(brc_flags_check(flags, BRC_KEY_PREFIX, "brc_key_delete()", err));
    return flags != 0 ? delete_all(s, key, err) : delete_one(s, key, err);
}
