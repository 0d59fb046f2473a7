/* Loose keys that become nodes and chunks, and what a commit refuses. */
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "key_rows.h"
#include "key_value.h"
#include "outer_cursor.h"

typedef struct key_names {
    void *keys; /* char *[] */
    size_t n, cap;
    int hidden; /* also those without bytes */
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

/* The array's own document has a key: no row says something else. */
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

int brc_key_place_chunk(brc_session *s, const char *key, brc_span data, brc_put *put,
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
        brc_fail(err, BRC_EINVAL, "the array's zarr.json is not there");
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
                   : brc_key_place_chunk(s, key, data, &put, err);
done:
    brc_put_dispose(&put);
    brc_buf_dispose(&value);
    return rc;
}

/* Documents first, groups before what is in them; then chunks. */
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

/* ---- what an adoption refuses -------------------------------- */

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
    return brc_key_chunk_exists(is, &ka->array, outer, err);
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

/* ---- what a commit refuses -------------------------------- */

/* " (and 'b', 'c' and 7 others)": of the names but the first. */
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

/* Whether a key is a document of Zarr format 2. */
static int is_of_format_2(const char *key)
{
    static const char *const names[] = {".zgroup", ".zarray", ".zattrs", ".zmetadata"};
    const char *slash = strrchr(key, '/');
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (strcmp(slash != NULL ? slash + 1 : key, names[i]) == 0)
            return 1;
    return 0;
}

/* A document that is refused is why its chunks are: it is named first. */
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

/* Why it is still loose: it is tried once more. */
static int refuse_keys(brc_session *s, const key_names *names, brc_error *err)
{
    document_first(names);
    brc_error why = BRC_ERROR_INIT;
    const char *key = ((char **)names->keys)[0];
    brc_buf others = BRC_BUF_INIT;
    const char *remedy = is_of_format_2(key) ? "write Zarr format 3 (2 can be imported)"
                                             : "set what is missing, or delete it";
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
                      "the key '%.100s'%s is no node or chunk, and no commit can have it: %s "
                      "(%.160s)",
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
