/* See consolidated.h. */
#include "consolidated.h"

#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../base/node_path.h"

#define COPIES_MOST ((size_t)2 * BRC_JSON_MAX_VALUES) /* in groups within groups */

static brc_copied_node *nodes_of(const brc_consolidated *c)
{
    return c->nodes;
}

/* ---- reading -------------------------------- */

typedef struct copies_reader {
    brc_consolidated *into;
    int version;
    const char *base; /* the group's path */
    brc_import_notes *notes;
} copies_reader;

/* Whether files can have these names: none that leads elsewhere. */
static int is_path_within(const char *path)
{
    if (strstr(path, BRC_JSON_NUL))
        return 0;
    for (const char *at = path;; at++) {
        size_t len = strcspn(at, "/");
        if (len == 0 || (len <= 2 && brc_name_is_dots(at, len)) ||
            (len == strlen("zarr.json") && strncmp(at, "zarr.json", len) == 0))
            return 0;
        at += len;
        if (*at == '\0')
            return 1;
    }
}

/* The node of the path's first `len` bytes, under the group. */
static int add_copied(brc_copied_node **out, const copies_reader *r, const char *inner, size_t len,
                    brc_error *err)
{
    brc_consolidated *c = r->into;
    const size_t above = strlen(r->base), gap = above > 0 && len > 0;
    char *path = brc_arena_take(&c->arena, above + gap + len + 1);
    if (!path)
        return brc_nomem(err);
    memcpy(path, r->base, above + 1);
    if (gap)
        path[above] = '/';
    if (len > 0)
        memcpy(path + above + gap, inner, len);
    path[above + gap + len] = '\0';
    BRC_TRY(brc_grow_array(&c->nodes, &c->cap, c->n + 1, sizeof(**out), err));
    *out = &nodes_of(c)[c->n++];
    **out = (brc_copied_node){ .path = path };
    return BRC_OK;
}

static int read_copies(const copies_reader *r, const brc_json *copies, const char *above,
                       brc_error *err);

/* A group's copy may have copies itself. */
static int read_copy3(const copies_reader *r, const char *inner, const brc_json *copy,
                      brc_error *err)
{
    static const char *const types[] = { "array", "group" };
    const brc_json *more = brc_json_member(copy, "consolidated_metadata");
    brc_copied_node *node;
    if (brc_json_choice(brc_json_member(copy, "node_type"), types, 2) < 0 ||
        strcmp(brc_json_literal(brc_json_member(copy, "zarr_format")), "3") != 0)
        return brc_first_names_add(&r->notes->passed, inner, err);
    BRC_TRY(add_copied(&node, r, inner, strlen(inner), err));
    node->v3 = copy;
    return read_copies(r, brc_json_member(more, "metadata"), inner, err);
}

static int read_copy2(const copies_reader *r, const char *inner, const brc_json *copy,
                      brc_error *err)
{
    const char *slash = strrchr(inner, '/'), *file = slash ? slash + 1 : inner;
    const size_t len = slash ? (size_t)(slash - inner) : 0;
    const int is_array = strcmp(file, ".zarray") == 0, is_group = strcmp(file, ".zgroup") == 0;
    brc_copied_node *node;
    if (!is_array && !is_group && strcmp(file, ".zattrs") != 0)
        return brc_first_names_add(&r->notes->passed, inner, err);
    BRC_TRY(add_copied(&node, r, inner, len, err));
    *(is_array ? &node->zarray : is_group ? &node->zgroup : &node->zattrs) = copy;
    return BRC_OK;
}

static int read_copies(const copies_reader *r, const brc_json *copies, const char *above,
                       brc_error *err)
{
    for (const brc_json *v = brc_json_first(copies); v; v = brc_json_next(v)) {
        const char *name = brc_json_own_name(v);
        char *inner = NULL;
        int rc;
        if (!name)
            return BRC_OK; /* a list */
        if (*above)
            BRC_TRY(brc_node_join(&inner, above, name, err));
        const char *path = inner ? inner : name;
        if (!is_path_within(path) || brc_json_kind(v) != BRC_JSON_OBJECT)
            rc = brc_first_names_add(&r->notes->passed, path, err);
        else
            rc = r->version == 3 ? read_copy3(r, path, v, err) : read_copy2(r, path, v, err);
        free(inner);
        if (rc < 0)
            return rc;
    }
    return BRC_OK;
}

static int copies_order(const void *a, const void *b)
{
    return brc_path_order(((const brc_copied_node *)a)->path, ((const brc_copied_node *)b)->path);
}

/* The parts of a node become one. */
static void join_parts(brc_consolidated *c)
{
    brc_copied_node *nodes = c->nodes;
    size_t n = 0;
    if (c->n > 1)
        qsort(nodes, c->n, sizeof(*nodes), copies_order);
    for (size_t i = 0; i < c->n; i++) {
        brc_copied_node *last = n > 0 ? &nodes[n - 1] : NULL;
        if (!last || strcmp(last->path, nodes[i].path) != 0) {
            nodes[n++] = nodes[i];
            continue;
        }
        last->v3 = last->v3 ? last->v3 : nodes[i].v3;
        last->zarray = last->zarray ? last->zarray : nodes[i].zarray;
        last->zgroup = last->zgroup ? last->zgroup : nodes[i].zgroup;
        last->zattrs = last->zattrs ? last->zattrs : nodes[i].zattrs;
    }
    c->n = n;
}

int brc_consolidated_unread(brc_import_notes *notes, const char *path, brc_error *err)
{
    return brc_first_names_add(&notes->unread, *path ? path : "/", err);
}

/* null is how zarr-python says that there are none. */
static int note_other_form(const brc_json *value, const char *path, brc_import_notes *notes,
                      brc_error *err)
{
    if (brc_json_kind(value) == BRC_JSON_NULL ||
        brc_json_kind(brc_json_member(value, "metadata")) == BRC_JSON_OBJECT)
        return BRC_OK;
    return brc_consolidated_unread(notes, path, err);
}

int brc_consolidated_push(brc_consolidated **chain, brc_json *value, int version, const char *path,
                          brc_import_notes *notes, brc_error *err)
{
    brc_consolidated *c;
    int rc = brc_new((void **)&c, sizeof(*c), err);
    if (rc < 0) {
        brc_json_free(value);
        return rc;
    }
    c->value = value;
    c->outer = *chain;
    *chain = c;
    const copies_reader r = { c, version, path, notes };
    rc = note_other_form(value, path, notes, err);
    if (rc == BRC_OK)
        rc = read_copies(&r, brc_json_member(value, "metadata"), "", err);
    c->total = c->n + (c->outer ? c->outer->total : 0);
    if (rc == BRC_OK && c->outer && c->total > COPIES_MOST)
        rc = brc_fail(err, BRC_ELIMIT,
                      "%.300s: groups within groups have more than %zu documents in their "
                      "consolidated metadata: import it in parts",
                      path, COPIES_MOST);
    if (rc < 0)
        brc_consolidated_pop(chain);
    else
        join_parts(c);
    return rc;
}

void brc_consolidated_pop(brc_consolidated **chain)
{
    brc_consolidated *c = *chain;
    if (!c)
        return;
    *chain = c->outer;
    brc_arena_dispose(&c->arena);
    brc_json_free(c->value);
    free(c->nodes);
    free(c);
}

/* ---- looking up -------------------------------- */

/* The first node that does not come before the path. */
static size_t copy_place(const brc_consolidated *c, const char *path)
{
    size_t low = 0, high = c->n;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (brc_path_order(nodes_of(c)[mid].path, path) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

brc_copied_node *brc_consolidated_find(const brc_consolidated *chain, const char *path)
{
    for (const brc_consolidated *c = chain; c; c = c->outer) {
        size_t at = copy_place(c, path);
        if (at < c->n && strcmp(nodes_of(c)[at].path, path) == 0)
            return &nodes_of(c)[at];
    }
    return NULL;
}

/* 1 if the node is in the folder or below. */
static int is_below(const char *path, const char *dir, size_t len)
{
    return *path && (len == 0 || (strncmp(path, dir, len) == 0 && path[len] == '/'));
}

/* Whether the first `len` bytes of `path` are the way to a copy in one of those within `end`. */
static int is_in_inner(const brc_consolidated *chain, const brc_consolidated *end,
                       const char *path, size_t len, brc_buf *text, int *is, brc_error *err)
{
    *is = 0;
    if (chain == end)
        return BRC_OK;
    text->len = 0;
    BRC_TRY(brc_buf_append(text, path, len, err));
    BRC_TRY(brc_buf_terminate(text, err));
    const char *wanted = (const char *)text->data;
    for (const brc_consolidated *c = chain; c != end && !*is; c = c->outer) {
        size_t at = copy_place(c, wanted);
        *is = at < c->n && (strcmp(nodes_of(c)[at].path, wanted) == 0 ||
                            is_below(nodes_of(c)[at].path, wanted, len));
    }
    return BRC_OK;
}

typedef struct copies_walk {
    const brc_consolidated *chain;
    const char *dir;
    brc_buf text;
    int (*each)(void *ctx, const char *name, brc_error *err);
    void *ctx;
} copies_walk;

static int each_of_one(copies_walk *w, const brc_consolidated *c, brc_error *err)
{
    const size_t len = strlen(w->dir), skip = len + (len > 0);
    const char *last = NULL;
    size_t last_len = 0;
    for (size_t i = copy_place(c, w->dir); i < c->n; i++) {
        const char *path = nodes_of(c)[i].path;
        char *name;
        int known;
        if (strcmp(path, w->dir) == 0)
            continue;
        if (!is_below(path, w->dir, len))
            break;
        const size_t name_len = strcspn(path + skip, "/");
        if (last && name_len == last_len && memcmp(last, path + skip, name_len) == 0)
            continue;
        last = path + skip;
        last_len = name_len;
        BRC_TRY(is_in_inner(w->chain, c, path, skip + name_len, &w->text, &known, err));
        if (known)
            continue;
        BRC_TRY(brc_dup_n(&name, last, last_len, err));
        int rc = w->each(w->ctx, name, err);
        free(name);
        if (rc < 0)
            return rc;
    }
    return BRC_OK;
}

int brc_consolidated_each(const brc_consolidated *chain, const char *dir,
                          int (*each)(void *ctx, const char *name, brc_error *err), void *ctx,
                          brc_error *err)
{
    copies_walk w = { chain, dir, BRC_BUF_INIT, each, ctx };
    int rc = BRC_OK;
    for (const brc_consolidated *c = chain; c && rc == BRC_OK; c = c->outer)
        rc = each_of_one(&w, c, err);
    brc_buf_dispose(&w.text);
    return rc;
}

/* ---- what there is to say -------------------------------- */

int brc_copy_differs(int *differs, const brc_json *doc, const brc_json *copy, brc_error *err)
{
    brc_json *own = NULL, *other = NULL;
    int rc = BRC_OK;
    if (!doc || !copy)
        return BRC_OK;
    BRC_GO(brc_json_clone(&own, doc, err));
    BRC_GO(brc_json_clone(&other, copy, err));
    brc_json_remove(own, "consolidated_metadata");
    brc_json_remove(other, "consolidated_metadata");
    *differs |= !brc_json_equal(own, other);
done:
    brc_json_free(own);
    brc_json_free(other);
    return rc;
}

static int write_note(const brc_first_names *names, const char *source, const char *what,
                      brc_buf *warnings, brc_error *err)
{
    if (names->n == 0)
        return BRC_OK;
    BRC_TRY(brc_buf_printf(warnings, err, "%s: %s (%llu in all): ", source, what,
                           (unsigned long long)names->n));
    BRC_TRY(brc_first_names_write(names, warnings, err));
    return brc_buf_byte(warnings, '\n', err);
}

int brc_import_notes_write(const brc_import_notes *notes, const char *source, brc_buf *warnings,
                           brc_error *err)
{
    if (!warnings)
        return BRC_OK;
    BRC_TRY(write_note(&notes->differ, source,
                       "documents that differ from the consolidated metadata are imported in place "
                       "of it",
                       warnings, err));
    BRC_TRY(write_note(&notes->passed, source,
                       "entries of the consolidated metadata that describe no possible node are "
                       "left out",
                       warnings, err));
    BRC_TRY(write_note(&notes->unread, source,
                       "consolidated metadata that is not valid is left out", warnings, err));
    BRC_TRY(write_note(&notes->chunks, source, "chunks that belong to no array are left out",
                       warnings, err));
    return brc_buf_terminate(warnings, err);
}

int brc_is_like_chunk(const char *name, size_t len)
{
    size_t at = len > 0 && name[0] == 'c' && (len == 1 || name[1] == '.');
    while (at < len && (name[at] == '.' || (name[at] >= '0' && name[at] <= '9')))
        at++;
    return len > 0 && at == len && !brc_name_is_dots(name, len);
}

int brc_import_notes_barren(const brc_import_notes *notes, brc_error *err)
{
    return brc_fail(err, BRC_EINVAL,
                    "it has chunks (%.*s%s), but no document of an array: nothing is imported",
                    (int)notes->chunks.text.len, (const char *)notes->chunks.text.data,
                    notes->chunks.n > 5 ? " ..." : "");
}

void brc_import_notes_dispose(brc_import_notes *notes)
{
    brc_first_names_dispose(&notes->differ);
    brc_first_names_dispose(&notes->passed);
    brc_first_names_dispose(&notes->unread);
    brc_first_names_dispose(&notes->chunks);
}
