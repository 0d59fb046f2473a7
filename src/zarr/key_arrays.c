#include "key_arrays.h"

#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../base/utf8.h"

/* Bytes of a key: those of a path, and of a chunk's indexes. */
#define KEY_MOST (BRC_PATH_MAX + 1024)
#define ARRAYS_KEPT 32

/* What a session keeps for its keys. */
typedef struct key_memory {
    brc_key_array *arrays[ARRAYS_KEPT];
    size_t n;
    uint64_t clock;
    int rows_any, rows_are_read; /* the draft has keys; as of: */
    uint64_t version, changes;
} key_memory;

static void key_array_free(brc_key_array *ka)
{
    brc_key_shard_dispose(&ka->shard);
    brc_array_release(&ka->array);
    free(ka);
}

static void key_memory_free(void *memory)
{
    key_memory *m = memory;
    for (size_t i = 0; i < m->n; i++)
        key_array_free(m->arrays[i]);
    free(m);
}

static int key_memory_of(key_memory **out, brc_session *s, brc_error *err)
{
    if (s->keys == NULL)
        BRC_TRY(brc_new(&s->keys, sizeof(key_memory), err));
    s->keys_free = key_memory_free;
    *out = s->keys;
    return BRC_OK;
}

/* ---- keys and paths -------------------------------- */

int brc_key_check(const char *key, brc_error *err)
{
    const size_t len = strlen(key);
    if (len == 0 || len > KEY_MOST)
        return brc_fail(err, BRC_EINVAL, "a key has 1 to %d bytes, not %zu", KEY_MOST, len);
    if (!brc_utf8_valid(key, len))
        return brc_fail(err, BRC_EINVAL, "a key must be valid UTF-8");
    for (const char *at = key; at != NULL;) {
        const size_t part = strcspn(at, "/");
        if (part == 0 || (part <= 2 && strncmp(at, "..", part) == 0))
            return brc_fail(err, BRC_EINVAL,
                            "'%.200s' is no key: between slashes there must be a name, not '%.*s'",
                            key, (int)part, at);
        at = at[part] == '/' ? at + part + 1 : NULL;
    }
    return BRC_OK;
}

int brc_key_node_path(brc_buf *out, const char *key, size_t len, brc_error *err)
{
    brc_error why = BRC_ERROR_INIT;
    brc_buf normal = BRC_BUF_INIT;
    int rc;
    out->len = 0;
    BRC_GO(brc_buf_byte(out, '/', err));
    BRC_GO(brc_buf_append(out, key, len, err));
    BRC_GO(brc_buf_terminate(out, err));
    rc = brc_path_normal(&normal, (const char *)out->data, &why);
    if (rc == BRC_OK && strcmp((const char *)normal.data, (const char *)out->data) != 0)
        rc = brc_fail(&why, BRC_EINVAL, "no node can have this path");
    if (rc < 0 && err != NULL)
        brc_error_copy(err, &why);
    rc = rc == BRC_OK ? 1 : rc == BRC_EINVAL || rc == BRC_ELIMIT ? 0 : rc;
done:
    brc_buf_dispose(&normal);
    return rc;
}

/* ---- rows of keys -------------------------------- */

int brc_key_rows_any(brc_session *s, int *any, brc_error *err)
{
    key_memory *m;
    *any = 0;
    if (s->draft.id == 0)
        return BRC_OK;
    BRC_TRY(key_memory_of(&m, s, err));
    if (!m->rows_are_read || m->version != s->version || m->changes != s->repo->changes) {
        m->rows_are_read = 0;
        BRC_TRY(brc_draft_key_any(s->repo->store, s->draft.id, &m->rows_any, err));
        m->version = s->version;
        m->changes = s->repo->changes;
        m->rows_are_read = 1;
    }
    *any = m->rows_any;
    return BRC_OK;
}

int brc_key_row(brc_session *s, const char *key, int *state, brc_oid *id, brc_error *err)
{
    int any;
    *state = BRC_KEY_NO_ROW;
    BRC_TRY(brc_key_rows_any(s, &any, err));
    return any ? brc_draft_key_get(s->repo->store, s->draft.id, key, state, id, err) : BRC_OK;
}

int brc_key_root_is_written(brc_session *s, const brc_entry *root, int *is, brc_error *err)
{
    uint64_t nodes;
    *is = !brc_oid_is_zero(&root->doc);
    if (*is || s->draft.id == 0)
        return BRC_OK;
    BRC_TRY(brc_draft_count(s->repo->store, s->draft.id, &nodes, err));
    *is = nodes > 0;
    return BRC_OK;
}

/* ---- arrays -------------------------------- */

/* What of a key follows an array's path and a '/'; NULL if it lies elsewhere. */
static const char *rest_of(const char *path, const char *key)
{
    const size_t len = strlen(path + 1);
    if (len == 0)
        return key;
    return strncmp(key, path + 1, len) == 0 && key[len] == '/' ? key + len + 1 : NULL;
}

int brc_key_is_of(const brc_key_array *ka, const char *key)
{
    return rest_of(ka->array.path, key) != NULL;
}

static void forget_array(key_memory *m, size_t i)
{
    key_array_free(m->arrays[i]);
    m->arrays[i] = m->arrays[--m->n];
}

/* Up to date; *gone 1 if it is no array any more. */
static int sync_kept(brc_key_array *ka, int *gone, brc_error *err)
{
    brc_error why = BRC_ERROR_INIT;
    int rc = brc_array_sync(&ka->array, &why);
    *gone = rc == BRC_ENOTFOUND || rc == BRC_EINVAL;
    if (*gone)
        return BRC_OK;
    if (rc < 0) {
        ka->array.is_read = 0;
        if (err != NULL)
            brc_error_copy(err, &why);
    }
    return rc;
}

static int find_kept(key_memory *m, const char *key, brc_key_array **out, const char **rest,
                     brc_error *err)
{
    int gone;
    *out = NULL;
    for (size_t i = 0; i < m->n;) {
        brc_key_array *ka = m->arrays[i];
        *rest = rest_of(ka->array.path, key);
        if (*rest == NULL) {
            i++;
            continue;
        }
        BRC_TRY(sync_kept(ka, &gone, err));
        if (!gone) {
            *out = ka;
            return BRC_OK;
        }
        forget_array(m, i);
    }
    return BRC_OK;
}

static int keep_array(key_memory *m, brc_session *s, const char *path, brc_key_array **out,
                      brc_error *err)
{
    void *p;
    size_t oldest = 0;
    BRC_TRY(brc_new(&p, sizeof(brc_key_array), err));
    brc_key_array *ka = p;
    ka->array.session = s;
    int rc = brc_dup(&ka->array.path, path, err);
    if (rc == BRC_OK)
        rc = brc_array_sync(&ka->array, err);
    if (rc < 0) {
        key_array_free(ka);
        return rc;
    }
    if (m->n == ARRAYS_KEPT) {
        for (size_t i = 1; i < m->n; i++)
            if (m->arrays[i]->used < m->arrays[oldest]->used)
                oldest = i;
        forget_array(m, oldest);
    }
    m->arrays[m->n++] = ka;
    *out = ka;
    return BRC_OK;
}

/* Looks at each beginning of the key that ends before a '/', shortest first, until one names
 * an array or nothing. */
static int array_at_key(key_memory *m, brc_session *s, const char *key, brc_key_array **out,
                      const char **rest, brc_error *err)
{
    brc_buf path = BRC_BUF_INIT;
    brc_entry entry;
    int64_t row;
    int rc = BRC_OK;
    for (const char *at = key;;) {
        rc = brc_key_node_path(&path, key, at > key ? (size_t)(at - key) - 1 : 0, err);
        if (rc <= 0)
            break;
        BRC_GO(brc_session_find(s, (const char *)path.data, &entry, &row, err));
        if (entry.kind == BRC_ARRAY) {
            *rest = at;
            rc = keep_array(m, s, (const char *)path.data, out, err);
            break;
        }
        const char *slash = strchr(at, '/');
        if (entry.kind == 0 || slash == NULL)
            break;
        at = slash + 1;
    }
done:
    brc_buf_dispose(&path);
    return rc < 0 ? rc : BRC_OK;
}

int brc_key_array_of(brc_key_array **out, brc_session *s, const char *key, const char **rest,
                     brc_error *err)
{
    key_memory *m;
    *out = NULL;
    BRC_TRY(key_memory_of(&m, s, err));
    BRC_TRY(find_kept(m, key, out, rest, err));
    if (*out == NULL)
        BRC_TRY(array_at_key(m, s, key, out, rest, err));
    if (*out != NULL)
        (*out)->used = ++m->clock;
    return BRC_OK;
}

/* ---- finding -------------------------------- */

static int find_document(brc_key_place *out, brc_session *s, const char *key, size_t len,
                         brc_error *err)
{
    brc_buf path = BRC_BUF_INIT;
    int64_t row;
    int is = 1, rc;
    BRC_GO(brc_key_node_path(&path, key, len, err));
    if (rc == 0)
        goto done;
    BRC_GO(brc_session_find(s, (const char *)path.data, &out->entry, &row, err));
    if (len == 0)
        BRC_GO(brc_key_root_is_written(s, &out->entry, &is, err));
    if (is && out->entry.kind != 0)
        out->what = BRC_KEY_IS_DOCUMENT;
    rc = BRC_OK;
done:
    brc_buf_dispose(&path);
    return rc;
}

int brc_key_find(brc_key_place *out, brc_session *s, const char *key, brc_error *err)
{
    size_t len;
    int state, inside;
    const char *rest;
    out->what = BRC_KEY_NONE;
    out->array = NULL;
    BRC_TRY(brc_key_row(s, key, &state, &out->loose, err));
    if (state == BRC_KEY_LOOSE)
        out->what = BRC_KEY_IS_LOOSE;
    if (state != BRC_KEY_NO_ROW)
        return BRC_OK;
    if (brc_document_key(key, &len))
        return find_document(out, s, key, len, err);
    BRC_TRY(brc_key_array_of(&out->array, s, key, &rest, err));
    if (out->array == NULL)
        return BRC_OK;
    if (brc_meta_key_parse(&out->array->array.meta, rest, out->outer, &inside) && inside)
        out->what = BRC_KEY_IS_CHUNK;
    return BRC_OK;
}
