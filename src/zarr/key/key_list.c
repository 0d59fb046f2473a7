#include "key_list.h"

#include <stdlib.h>
#include <string.h>

#include "../../base/alloc.h"
#include "../../base/sized.h"
#include "../../base/buf.h"
#include "../array/chunk_cursor.h"

/*
 * Lists the chunk keys of one array that begin with a prefix, in order. Keys are looked up on
 * demand: the array may be changed meanwhile, and what is written after the position of the list is
 * listed.
 */

typedef struct brc_key_chunks {
    brc_array *array;        /* NULL: not open                                    */
    char *prefix;            /* the prefix of the keys, within the array          */
    int ndim;
    int nfixed;              /* the prefix fixes these leading indexes:           */
    uint64_t fixed[BRC_MAX_NDIM];
    brc_outer_cursor cursor; /* of the array as it was then:                      */
    int has_cursor;
    uint64_t version, changes;
    int any;                 /* a position has been reached:                      */
    uint64_t last[BRC_MAX_NDIM];
} brc_key_chunks;

static void key_chunks_close(brc_key_chunks *c);
static int key_document_is_there(int *is, brc_session *s, const char *path, brc_error *err);

/* ==== key chunks ================================ */

/* Reads the indexes that the prefix has in full: each is a number and the separator. The comparison
 * of texts handles everything that is not a chunk key. */
static void read_fixed(brc_key_chunks *c)
{
    const brc_meta *m = &c->array->meta;
    const char *at = c->prefix;
    c->nfixed = 0;
    if (!m->v2_keys) {
        if (at[0] != 'c' || at[1] != m->separator)
            return;
        at += 2;
    }
    while (c->nfixed < c->ndim) {
        uint64_t value = 0;
        const char *digit = at;
        for (; *digit >= '0' && *digit <= '9'; digit++)
            if (!brc_mul_u64(value, 10, &value) ||
                !brc_add_u64(value, (uint64_t)(*digit - '0'), &value))
                return;
        if (digit == at || *digit != m->separator)
            return;
        c->fixed[c->nfixed++] = value;
        at = digit + 1;
    }
}

/* Opens the list of the array's keys that begin with `prefix`, in the form of
 * brc_chunk_key_format(). BRC_ENOTFOUND: the path has no array. */
static int key_chunks_open(brc_key_chunks *c, brc_session *s, const char *path,
                           const char *prefix, brc_error *err)
{
    memset(c, 0, sizeof(*c));
    BRC_TRY(brc_array_open(&c->array, s, path, err));
    int rc = brc_dup(&c->prefix, prefix, err);
    if (rc < 0) {
        key_chunks_close(c);
        return rc;
    }
    c->ndim = c->array->meta.ndim;
    read_fixed(c);
    return BRC_OK;
}

static void close_cursor(brc_key_chunks *c)
{
    if (c->has_cursor)
        brc_outer_cursor_end(&c->cursor);
    c->has_cursor = 0;
}

static void key_chunks_close(brc_key_chunks *c)
{
    close_cursor(c);
    brc_array_free(c->array);
    free(c->prefix);
    memset(c, 0, sizeof(*c));
}

/* Begins a read transaction for some steps. Returns 1, or 0 if the array is gone or was
 * replaced. */
static int key_chunks_begin(brc_key_chunks *c, brc_error *err)
{
    brc_error why = BRC_ERROR_INIT;
    int rc = brc_array_begin_read(c->array, &why);
    if (rc == BRC_ENOTFOUND || rc == BRC_EINVAL)
        return 0;
    if (rc < 0) {
        if (err != NULL)
            brc_error_copy(err, &why);
        return rc;
    }
    if (c->array->meta.ndim == c->ndim)
        return 1;
    brc_array_end_read(c->array);
    return 0;
}

static void key_chunks_end(brc_key_chunks *c)
{
    brc_array_end_read(c->array);
}

/* Restarts the cursor at its position after a change. */
static int follow_array(brc_key_chunks *c, brc_error *err)
{
    const brc_array *a = c->array;
    uint64_t from[BRC_MAX_NDIM] = {0};
    if (c->has_cursor && a->version == c->version && a->changes == c->changes)
        return BRC_OK;
    close_cursor(c);
    if (c->any)
        memcpy(from, c->last, sizeof(from));
    if (c->any && a->meta.nlevels > 0 && c->ndim > 1 && from[1] == UINT64_MAX)
        from[0]++; /* the row is done */
    if (!c->any)
        memcpy(from, c->fixed, (size_t)c->nfixed * sizeof(*from));
    c->has_cursor = 1;
    c->version = a->version;
    c->changes = a->changes;
    return brc_outer_cursor_start(&c->cursor, a, from, err);
}

/* Returns 0 if the index is after all those with the prefix's indexes. */
static int is_within(const brc_key_chunks *c, const uint64_t *index)
{
    return brc_index_order(c->nfixed, index, c->fixed) <= 0;
}

/* Returns 1 with the next key in `key`, 0 at the end. */
static int key_chunks_next(brc_key_chunks *c, brc_buf *key, brc_error *err)
{
    uint64_t index[BRC_MAX_NDIM] = {0};
    brc_oid id;
    int rc;
    BRC_TRY(follow_array(c, err));
    while ((rc = brc_outer_cursor_next(&c->cursor, index, &id, err)) > 0) {
        if (c->any && brc_index_order(c->ndim, index, c->last) <= 0)
            continue;
        if (!is_within(c, index))
            return 0;
        memcpy(c->last, index, sizeof(index));
        c->any = 1;
        key->len = 0;
        BRC_TRY(brc_chunk_key_format(c->array, index, key, err));
        if (strncmp((const char *)key->data, c->prefix, strlen(c->prefix)) == 0)
            return 1;
    }
    return rc;
}

/* Skips all keys that have the first `n` indexes of the last key. */
static void key_chunks_skip(brc_key_chunks *c, int n)
{
    if (n >= c->ndim)
        return;
    for (int i = n; i < c->ndim; i++)
        c->last[i] = UINT64_MAX;
    /* shards of one row are sorted in memory, and skipped one by one */
    if (c->array->meta.nlevels == 0 || n == 1)
        close_cursor(c);
}

/* ==== key arrays ================================ */

/* The most bytes of a key: those of a path, and of a chunk's indexes. */
#define KEY_MOST (BRC_PATH_MAX + 1024)
#define ARRAYS_KEPT 32

/* The state that a session keeps for its keys. */
typedef struct key_memory {
    brc_key_array *arrays[ARRAYS_KEPT];
    size_t n;
    uint64_t clock;
    int rows_any, rows_are_read; /* the draft has keys; as of: */
    uint64_t version, changes;
} key_memory;

static void key_array_free(brc_key_array *ka)
{
    brc_shard_plan_dispose(&ka->shard);
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
                            "'%.200s' is not a valid key: a name must stand between slashes, not "
                            "'%.*s'",
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
        rc = brc_fail(&why, BRC_EINVAL, "this is not a valid path of a node");
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

/* Returns the part of a key after an array's path and a '/'; NULL if the key is elsewhere. */
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

/* Brings the array up to date; *gone is 1 if the node is no longer an array. */
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

/* Tries each part of the key that ends before a '/', shortest first, until one names an array or
 * nothing. */
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

/* ==== key dir ================================ */

/* Lists a directory of keys: the next part of every key below it, each once. */

#define NAME_BATCH 512

typedef struct key_dir {
    brc_session *session;
    char *above;           /* the directory as keys begin with it: "" or "a/"     */
    brc_iter *nodes;       /* children of a group; NULL: no more                  */
    int has_document;
    brc_key_chunks chunks; /* of the array that contains it                       */
    char *array;           /* the array's part of `above`                         */
    int rows;              /* the draft's rows are still to come                  */
    char *from;            /* where the rows continue; NULL: at the first         */
    void *items;           /* char *[]: a name, with a '/' behind a directory's   */
    size_t n, cap, at;
} key_dir;

static void dir_clear(key_dir *dir)
{
    for (size_t i = 0; i < dir->n; i++)
        free(((char **)dir->items)[i]);
    dir->n = dir->at = 0;
}

static void dir_dispose(void *state)
{
    key_dir *dir = state;
    dir_clear(dir);
    free(dir->items);
    if (dir->chunks.array != NULL)
        key_chunks_close(&dir->chunks);
    brc_iter_free(dir->nodes);
    free(dir->above);
    free(dir->array);
    free(dir->from);
    brc_session_unref(dir->session);
}

static int dir_add(key_dir *dir, const char *name, size_t len, int is_dir, brc_error *err)
{
    brc_buf text = BRC_BUF_INIT;
    BRC_TRY(brc_grow_array(&dir->items, &dir->cap, dir->n + 1, sizeof(char *), err));
    int rc = brc_buf_append(&text, name, len, err);
    if (rc == BRC_OK && is_dir)
        rc = brc_buf_byte(&text, '/', err);
    if (rc == BRC_OK)
        rc = brc_buf_take_text(&text, &((char **)dir->items)[dir->n], err);
    brc_buf_dispose(&text);
    dir->n += rc == BRC_OK;
    return rc;
}

/* ---- nodes and chunks -------------------------------- */

/* Adds a child. A group whose document has no key is a directory only if something is in it. */
static int add_child(key_dir *dir, const brc_node *node, brc_error *err)
{
    int is;
    brc_buf below = BRC_BUF_INIT;
    const char *name = strrchr(node->path, '/') + 1;
    int rc = key_document_is_there(&is, dir->session, node->path, err);
    if (rc == BRC_OK && !is)
        rc = brc_buf_printf(&below, err, "%s/", node->path + 1);
    if (rc == BRC_OK && !is)
        rc = brc_keys_any(&is, dir->session, (const char *)below.data, 1, err);
    if (rc == BRC_OK && is)
        rc = dir_add(dir, name, strlen(name), 1, err);
    brc_buf_dispose(&below);
    return rc;
}

static int names_of_nodes(key_dir *dir, brc_error *err)
{
    const brc_node *node;
    int rc = 1;
    while (dir->n < NAME_BATCH && (rc = brc_next(dir->nodes, &node, err)) > 0)
        BRC_TRY(add_child(dir, node, err));
    if (rc != 0)
        return rc;
    brc_iter_free(dir->nodes);
    dir->nodes = NULL;
    return BRC_OK;
}

/* Counts the indexes in the text: numbers, each followed by a separator or the end. */
static int indexes_in(const char *text, size_t len)
{
    int n = 0;
    for (size_t i = 0; i < len; i++)
        n += text[i] >= '0' && text[i] <= '9' &&
             (i + 1 == len || text[i + 1] < '0' || text[i + 1] > '9');
    return n;
}

static int chunk_has_row(const key_dir *dir, const char *key, int *has, brc_error *err)
{
    brc_buf full = BRC_BUF_INIT;
    brc_oid id;
    int state = BRC_KEY_NO_ROW;
    int rc = brc_key_rows_any(dir->session, has, err);
    if (rc < 0 || !*has)
        return rc;
    rc = brc_buf_printf(&full, err, "%s%s", dir->array, key);
    if (rc == BRC_OK)
        rc = brc_key_row(dir->session, (const char *)full.data, &state, &id, err);
    *has = state != BRC_KEY_NO_ROW;
    brc_buf_dispose(&full);
    return rc;
}

/* Adds the next names, within a transaction; 0 at the end. */
static int add_chunk_names(key_dir *dir, brc_error *err)
{
    brc_buf key = BRC_BUF_INIT;
    const size_t above = strlen(dir->chunks.prefix);
    int has, rc = 1;
    while (dir->n < NAME_BATCH && (rc = key_chunks_next(&dir->chunks, &key, err)) > 0) {
        const char *name = (const char *)key.data + above;
        const size_t len = strcspn(name, "/");
        BRC_GO(chunk_has_row(dir, (const char *)key.data, &has, err));
        if (has)
            continue;
        BRC_GO(dir_add(dir, name, len, name[len] == '/', err));
        if (name[len] == '/')
            key_chunks_skip(&dir->chunks, indexes_in((const char *)key.data, above + len));
        rc = 1;
    }
done:
    brc_buf_dispose(&key);
    return rc;
}

static int names_of_chunks(key_dir *dir, brc_error *err)
{
    int rc = key_chunks_begin(&dir->chunks, err);
    if (rc > 0) {
        rc = add_chunk_names(dir, err);
        key_chunks_end(&dir->chunks);
    }
    if (rc <= 0)
        key_chunks_close(&dir->chunks);
    return rc < 0 ? rc : BRC_OK;
}

/* ---- rows -------------------------------- */

typedef struct row_name {
    key_dir *dir;
    int found, is_dir;
    brc_buf name; /* of the next key, within the directory, up to its next '/' */
} row_name;

static int take_row_name(void *ctx, const char *key, const brc_oid *id, brc_error *err)
{
    row_name *next = ctx;
    const char *rest = key + strlen(next->dir->above);
    const size_t len = strcspn(rest, "/");
    brc_buf from = BRC_BUF_INIT;
    next->found = id != NULL ? 1 : 2; /* a hidden document has no name */
    next->is_dir = rest[len] == '/';
    next->name.len = 0;
    int rc = brc_buf_append(&next->name, rest, len, err);
    if (rc == BRC_OK)
        rc = brc_buf_terminate(&next->name, err);
    /* '0' follows '/': continues after everything further down */
    if (rc == BRC_OK && next->is_dir && id != NULL)
        rc = brc_buf_printf(&from, err, "%s%.*s0", next->dir->above, (int)len, rest);
    else if (rc == BRC_OK)
        rc = brc_buf_printf(&from, err, "%s\x01", key);
    free(next->dir->from);
    next->dir->from = NULL;
    if (rc == BRC_OK)
        rc = brc_buf_take_text(&from, &next->dir->from, err);
    brc_buf_dispose(&from);
    return rc;
}

/* Tells whether a name was listed before, with a node or with chunks. */
static int has_come(const key_dir *dir, const row_name *next, int *has, brc_error *err)
{
    brc_buf below = BRC_BUF_INIT;
    int kind = 0, rc;
    *has = 0;
    if (!next->is_dir)
        return BRC_OK;
    BRC_GO(brc_buf_printf(&below, err, "%s%s", dir->above, (const char *)next->name.data));
    brc_error ignored = BRC_ERROR_INIT;
    rc = brc_node_kind(&kind, dir->session, (const char *)below.data, &ignored);
    *has = rc == BRC_OK && kind != 0;
    BRC_GO(brc_buf_printf(&below, err, "/"));
    if (!*has)
        BRC_GO(brc_keys_any(has, dir->session, (const char *)below.data, 0, err));
    rc = BRC_OK;
done:
    brc_buf_dispose(&below);
    return rc;
}

static int next_row_name(key_dir *dir, row_name *next, brc_error *err)
{
    brc_session *s = dir->session;
    int any;
    next->found = 0;
    BRC_TRY(brc_session_begin_read(s, err));
    int rc = brc_key_rows_any(s, &any, err);
    if (rc == BRC_OK && any)
        rc = brc_draft_key_page(s->repo->store, s->draft.id, dir->above, dir->from, 1,
                                take_row_name, next, err);
    brc_session_end_read(s);
    return rc;
}

static int names_of_rows(key_dir *dir, brc_error *err)
{
    row_name next = {.dir = dir};
    int has = 1, rc = BRC_OK;
    while (dir->n < NAME_BATCH && dir->rows) {
        BRC_GO(next_row_name(dir, &next, err));
        dir->rows = next.found != 0;
        if (next.found != 1)
            continue;
        BRC_GO(has_come(dir, &next, &has, err));
        if (!has)
            BRC_GO(dir_add(dir, (const char *)next.name.data, next.name.len, next.is_dir, err));
    }
done:
    brc_buf_dispose(&next.name);
    return rc;
}

/* ---- the list -------------------------------- */

/* Starts the chunks of the array that the directory is, or lies in. */
static int start_chunks(key_dir *dir, const char *path, const char *rest, brc_error *err)
{
    const size_t len = strlen(dir->above) - strlen(rest);
    BRC_TRY(brc_dup_n(&dir->array, dir->above, len, err));
    return key_chunks_open(&dir->chunks, dir->session, path, rest, err);
}

static int start_dir(key_dir *dir, brc_error *err)
{
    brc_session *s = dir->session;
    const size_t len = strlen(dir->above);
    brc_buf path = BRC_BUF_INIT;
    brc_key_array *ka = NULL;
    brc_entry entry = {0};
    const char *rest;
    int64_t row;
    int rc;
    BRC_TRY(brc_session_begin_read(s, err));
    BRC_GO(brc_key_node_path(&path, dir->above, len > 0 ? len - 1 : 0, err));
    if (rc > 0)
        BRC_GO(brc_session_find(s, (const char *)path.data, &entry, &row, err));
    if (entry.kind != 0)
        BRC_GO(key_document_is_there(&dir->has_document, s, (const char *)path.data, err));
    if (entry.kind == BRC_GROUP)
        BRC_GO(brc_list(&dir->nodes, s, (const char *)path.data, 0, err));
    else
        BRC_GO(brc_key_array_of(&ka, s, dir->above, &rest, err));
    rc = ka != NULL ? start_chunks(dir, ka->array.path, rest, err) : BRC_OK;
done:
    brc_session_end_read(s);
    brc_buf_dispose(&path);
    return rc;
}

static int dir_next(void *state, const void **out, brc_error *err)
{
    key_dir *dir = state;
    while (dir->at == dir->n) {
        dir_clear(dir);
        if (dir->has_document) {
            dir->has_document = 0;
            BRC_TRY(dir_add(dir, "zarr.json", strlen("zarr.json"), 0, err));
        } else if (dir->nodes != NULL) {
            BRC_TRY(names_of_nodes(dir, err));
        } else if (dir->chunks.array != NULL) {
            BRC_TRY(names_of_chunks(dir, err));
        } else if (dir->rows) {
            BRC_TRY(names_of_rows(dir, err));
        } else {
            return 0;
        }
    }
    *out = ((char **)dir->items)[dir->at++];
    return 1;
}

static int key_dir_new(brc_iter **out, brc_session *s, const char *name, brc_error *err)
{
    const size_t len = strlen(name);
    brc_buf above = BRC_BUF_INIT;
    int rc;
    BRC_TRY(brc_iter_new(out, dir_next, sizeof(key_dir), dir_dispose, err));
    key_dir *dir = brc_iter_state(*out);
    dir->session = brc_session_ref(s);
    dir->rows = 1;
    BRC_GO(brc_buf_printf(&above, err, "%s%s", name, len > 0 && name[len - 1] != '/' ? "/" : ""));
    BRC_GO(brc_buf_take_text(&above, &dir->above, err));
    rc = start_dir(dir, err);
done:
    brc_buf_dispose(&above);
    if (rc < 0) {
        brc_iter_free(*out);
        *out = NULL;
    }
    return rc;
}

/* ==== key list ================================ */

/* The most keys that are held in memory, whatever an array has. */
#define KEY_BATCH 512

/* Lists nodes in order, each with its chunks, and then the keys that are neither a node nor a chunk
 * yet. */
typedef struct key_list {
    brc_session *session;
    char *prefix;
    int rows;              /* the draft's rows are still to be listed */
    brc_iter *nodes;       /* NULL: no more                                       */
    brc_key_chunks chunks; /* of the last node, if it is an array                 */
    char *above;           /* its path with a '/', as in a key                    */
    char *from;            /* where the rows continue; NULL: at the first         */
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
        key_chunks_close(&list->chunks);
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

/* Tells whether a row of the draft overrides a key of nodes and chunks. */
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
        rc = key_chunks_next(&list->chunks, &key, err);
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

/* Returns 0 after the last keys. */
static int keys_of_array(key_list *list, brc_error *err)
{
    int rc = key_chunks_begin(&list->chunks, err);
    if (rc > 0) {
        rc = add_chunk_keys(list, err);
        key_chunks_end(&list->chunks);
    }
    if (rc <= 0)
        key_chunks_close(&list->chunks);
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

/* Tells whether a node's document has a key; within a transaction or not. */
static int key_document_is_there(int *is, brc_session *s, const char *path, brc_error *err)
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

/* Opens the chunks of an array, if their keys may begin with the prefix. */
static int open_chunks(key_list *list, const char *path, brc_error *err)
{
    brc_error why = BRC_ERROR_INIT;
    const size_t above = strlen(list->above), len = strlen(list->prefix);
    const char *rest = len > above ? list->prefix + above : "";
    if (!begins_alike(list->above, list->prefix))
        return BRC_OK;
    int rc = key_chunks_open(&list->chunks, list->session, path, rest, &why);
    if (rc == BRC_ENOTFOUND || rc == BRC_EINVAL) /* it has just been removed */
        return BRC_OK;
    if (rc < 0 && err != NULL)
        brc_error_copy(err, &why);
    return rc;
}

/* Returns 1 with the next node, whose chunks come next; 0 at the end. */
static int key_of_next_node(key_list *list, brc_error *err)
{
    const brc_node *node;
    int is;
    int rc = brc_next(list->nodes, &node, err);
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
    BRC_GO(key_document_is_there(&is, list->session, node->path, err));
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
    BRC_GO(brc_buf_printf(&from, err, "%s\x01", key)); /* no key lies between the two */
    free(list->from);
    list->from = NULL;
    BRC_GO(brc_buf_take_text(&from, &list->from, err));
    rc = id != NULL ? key_add(list, "", key, err) : BRC_OK;
done:
    brc_buf_dispose(&from);
    return rc;
}

/* Lists rows, and keeps its position in `from`, so that a page without keys is not taken for the
 * end. */
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

/* Starts the nodes of a prefix: those in its directory, or the array that contains it. */
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

/* Adds something to the list. Returns 1, or 0 at the end. */
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

static int key_next(void *state, const void **out, brc_error *err)
{
    key_list *list = state;
    while (list->at == list->n) {
        key_list_clear(list);
        int rc = fill_list(list, err);
        if (rc <= 0)
            return rc;
    }
    *out = ((char **)list->items)[list->at++];
    return 1;
}

static int key_list_new(brc_iter **out, brc_session *s, const char *prefix, int only_rows,
                        brc_error *err)
{
    BRC_TRY(brc_iter_new(out, key_next, sizeof(key_list), key_list_dispose, err));
    key_list *list = brc_iter_state(*out);
    list->session = brc_session_ref(s);
    list->rows = 1;
    int rc = brc_dup(&list->prefix, prefix, err);
    if (rc == BRC_OK && !only_rows)
        rc = start_nodes(list, err);
    if (rc < 0) {
        brc_iter_free(*out);
        *out = NULL;
    }
    return rc;
}

int brc_keys(brc_iter **out, brc_session *s, const char *prefix, uint32_t flags, brc_error *err)
{
    *out = NULL;
    BRC_TRY(brc_flags_check(flags, BRC_KEYS_DIR | BRC_KEYS_LOOSE, "brc_keys()", err));
    if (flags == (BRC_KEYS_DIR | BRC_KEYS_LOOSE))
        return brc_fail(err, BRC_EINVAL, "keys are listed by directory or loose, not both");
    return (flags & BRC_KEYS_DIR) != 0
               ? key_dir_new(out, s, prefix, err)
               : key_list_new(out, s, prefix, (flags & BRC_KEYS_LOOSE) != 0, err);
}

int brc_keys_any(int *any, brc_session *s, const char *prefix, int rows, brc_error *err)
{
    brc_iter *it;
    const char *key;
    *any = 0;
    BRC_TRY(key_list_new(&it, s, prefix, 0, err));
    ((key_list *)brc_iter_state(it))->rows = rows;
    int rc = brc_next(it, &key, err);
    brc_iter_free(it);
    *any = rc > 0;
    return rc < 0 ? rc : BRC_OK;
}
