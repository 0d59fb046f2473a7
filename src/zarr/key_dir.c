/* What a directory of keys has in it: the next part of every key below it, each once. */
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../base/iter.h"
#include "key_chunks.h"
#include "key_list.h"

#define NAME_BATCH 512

typedef struct key_dir {
    brc_session *session;
    char *above;           /* the directory as keys begin: "" or "a/"             */
    brc_iter *nodes;       /* children of a group; NULL: there are no more        */
    int has_document;
    brc_key_chunks chunks; /* of the array that it lies in                        */
    char *array;           /* its part of `above`                                 */
    int rows;              /* the draft's rows are still to come                  */
    char *from;            /* where they go on; NULL: at the first                */
    void *items;           /* char *[]: 'd' or 'f', and the name                  */
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
        brc_key_chunks_close(&dir->chunks);
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
    int rc = brc_buf_byte(&text, is_dir ? 'd' : 'f', err);
    if (rc == BRC_OK)
        rc = brc_buf_append(&text, name, len, err);
    if (rc == BRC_OK)
        rc = brc_buf_take_text(&text, &((char **)dir->items)[dir->n], err);
    brc_buf_dispose(&text);
    dir->n += rc == BRC_OK;
    return rc;
}

/* ---- nodes and chunks -------------------------------- */

/* A group whose document has no key is a directory only by what is in it. */
static int add_child(key_dir *dir, const brc_node *node, brc_error *err)
{
    int is;
    brc_buf below = BRC_BUF_INIT;
    const char *name = strrchr(node->path, '/') + 1;
    int rc = brc_key_document_is_there(&is, dir->session, node->path, err);
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
    while (dir->n < NAME_BATCH && (rc = brc_list_next(dir->nodes, &node, err)) > 0)
        BRC_TRY(add_child(dir, node, err));
    if (rc != 0)
        return rc;
    brc_iter_free(dir->nodes);
    dir->nodes = NULL;
    return BRC_OK;
}

/* How many indexes the text has: numbers, each with a separator or the end behind it. */
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

/* Within a transaction: the next names; 0 at the end. */
static int add_chunk_names(key_dir *dir, brc_error *err)
{
    brc_buf key = BRC_BUF_INIT;
    const size_t above = strlen(dir->chunks.prefix);
    int has, rc = 1;
    while (dir->n < NAME_BATCH && (rc = brc_key_chunks_next(&dir->chunks, &key, err)) > 0) {
        const char *name = (const char *)key.data + above;
        const size_t len = strcspn(name, "/");
        BRC_GO(chunk_has_row(dir, (const char *)key.data, &has, err));
        if (has)
            continue;
        BRC_GO(dir_add(dir, name, len, name[len] == '/', err));
        if (name[len] == '/')
            brc_key_chunks_skip(&dir->chunks, indexes_in((const char *)key.data, above + len));
        rc = 1;
    }
done:
    brc_buf_dispose(&key);
    return rc;
}

static int names_of_chunks(key_dir *dir, brc_error *err)
{
    int rc = brc_key_chunks_begin(&dir->chunks, err);
    if (rc > 0) {
        rc = add_chunk_names(dir, err);
        brc_key_chunks_end(&dir->chunks);
    }
    if (rc <= 0)
        brc_key_chunks_close(&dir->chunks);
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
    next->found = id != NULL ? 1 : 2; /* a hidden document is no name */
    next->is_dir = rest[len] == '/';
    next->name.len = 0;
    int rc = brc_buf_append(&next->name, rest, len, err);
    if (rc == BRC_OK)
        rc = brc_buf_terminate(&next->name, err);
    /* '0' follows '/': it goes on behind all that is further down. */
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

/* Whether a name has come already, with a node or with chunks. */
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

/* The array that the directory is, or lies in. */
static int start_chunks(key_dir *dir, const char *path, const char *rest, brc_error *err)
{
    const size_t len = strlen(dir->above) - strlen(rest);
    BRC_TRY(brc_dup_n(&dir->array, dir->above, len, err));
    return brc_key_chunks_open(&dir->chunks, dir->session, path, rest, err);
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
        BRC_GO(brc_key_document_is_there(&dir->has_document, s, (const char *)path.data, err));
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

int brc_keys_dir(brc_iter **out, brc_session *s, const char *name, brc_error *err)
{
    const size_t len = strlen(name);
    brc_buf above = BRC_BUF_INIT;
    int rc;
    BRC_TRY(brc_iter_new(out, BRC_ITER_KEY_DIR, sizeof(key_dir), dir_dispose, err));
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

int brc_keys_dir_next(brc_iter *it, const char **name, int *is_dir, brc_error *err)
{
    BRC_TRY(brc_iter_check(it, BRC_ITER_KEY_DIR, err));
    key_dir *dir = brc_iter_state(it);
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
    const char *item = ((char **)dir->items)[dir->at++];
    *is_dir = item[0] == 'd';
    *name = item + 1;
    return 1;
}
