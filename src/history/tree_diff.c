#include "tree_diff.h"

#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "doc_diff.h"

/* A place where the two sides' entries differ. */
typedef struct diff_pair {
    char *name;
    brc_entry a, b;
} diff_pair;

typedef struct diff_pairs {
    brc_store *store;
    void *items; /* diff_pair[] */
    size_t n, cap;
} diff_pairs;

static void pairs_dispose(diff_pairs *pairs)
{
    for (size_t i = 0; i < pairs->n; i++)
        free(((diff_pair *)pairs->items)[i].name);
    free(pairs->items);
}

static void node_change_dispose(brc_node_change *c)
{
    for (size_t i = 0; i < c->nmetadata; i++)
        free(c->metadata[i]);
    free(c->metadata);
    free(c->path);
    free(c->from);
}

void brc_tree_diff_dispose(brc_tree_diff *diff)
{
    for (size_t i = 0; i < diff->n; i++)
        node_change_dispose(&diff->changes[i]);
    free(diff->changes);
    memset(diff, 0, sizeof(*diff));
}

static int change_add(brc_tree_diff *out, const char *path, int what, const brc_entry *a,
                      const brc_entry *b, brc_node_change **change, brc_error *err)
{
    void *p = out->changes;
    int rc = brc_grow_array(&p, &out->cap, out->n + 1, sizeof(*out->changes), err);
    out->changes = p;
    if (rc < 0)
        return rc;
    brc_node_change *c = &out->changes[out->n];
    memset(c, 0, sizeof(*c));
    BRC_TRY(brc_dup(&c->path, path, err));
    c->what = what;
    c->a = *a;
    c->b = *b;
    out->n++;
    if (change != NULL)
        *change = c;
    return BRC_OK;
}

/* ---- one node on both sides ------------------------------------------------------ */

static int count_chunk_change(void *ctx, brc_span key, brc_span a, brc_span b, brc_error *err)
{
    brc_node_change *c = ctx;
    (void)key;
    (void)err;
    if (a.data == NULL)
        c->chunks_added++;
    else if (b.data == NULL)
        c->chunks_removed++;
    else
        c->chunks_changed++;
    return BRC_OK;
}

static int chunks_diff(brc_store *store, brc_node_change *c, brc_error *err)
{
    if (!c->rechunked)
        return brc_map_diff(store, &c->a.map, &c->b.map, count_chunk_change, c, err);
    BRC_TRY(brc_map_count(store, &c->a.map, &c->chunks_removed, err));
    return brc_map_count(store, &c->b.map, &c->chunks_added, err);
}

static int docs_diff(brc_store *store, const brc_entry *a, const brc_entry *b, brc_pointers *out,
                     brc_error *err)
{
    brc_json *x = NULL, *y = NULL;
    int rc = brc_entry_doc(store, a, &x, err);
    if (rc == BRC_OK)
        rc = brc_entry_doc(store, b, &y, err);
    if (rc == BRC_OK)
        rc = brc_doc_diff(out, x, y, err);
    brc_json_free(x);
    brc_json_free(y);
    return rc;
}

static int pointers_hold(const brc_pointers *pointers, const char *pointer)
{
    for (size_t i = 0; i < pointers->n; i++)
        if (strcmp(pointers->items[i], pointer) == 0)
            return 1;
    return 0;
}

static int metadata_diff(brc_store *store, const brc_entry *a, const brc_entry *b,
                         brc_pointers *out, brc_error *err)
{
    if (brc_oid_cmp(&a->doc, &b->doc) != 0)
        BRC_TRY(docs_diff(store, a, b, out, err));
    if (brc_oid_cmp(&a->storage, &b->storage) == 0)
        return BRC_OK;
    void *p = out->items;
    BRC_TRY(brc_grow_array(&p, &out->cap, out->n + 1, sizeof(char *), err));
    out->items = p;
    BRC_TRY(brc_dup(&out->items[out->n], "/storage", err));
    out->n++;
    return BRC_OK;
}

static int node_diff(brc_tree_diff *out, brc_store *store, const char *path, const brc_entry *a,
                     const brc_entry *b, brc_error *err)
{
    brc_pointers pointers = {0};
    brc_node_change *c;
    int rc;
    BRC_GO(metadata_diff(store, a, b, &pointers, err));
    BRC_GO(change_add(out, path, BRC_CHANGED, a, b, &c, err));
    c->rechunked =
        pointers_hold(&pointers, "/chunk_grid") || pointers_hold(&pointers, "/data_type");
    c->storage_only =
        pointers.n > 0 && pointers.n == (size_t)pointers_hold(&pointers, "/codecs") +
                                            (size_t)pointers_hold(&pointers, "/storage");
    c->metadata = pointers.items;
    c->nmetadata = pointers.n;
    pointers = (brc_pointers){0};
    if (a->kind == BRC_ARRAY)
        BRC_GO(chunks_diff(store, c, err));
    uint64_t chunks = c->chunks_added + c->chunks_removed + c->chunks_changed;
    if (chunks > 0)
        c->storage_only = 0;
    if (c->nmetadata == 0 && chunks == 0) { /* only what is under it differs */
        node_change_dispose(c);
        out->n--;
    }
done:
    brc_pointers_dispose(&pointers);
    return rc;
}

/* ---- hierarchies ------------------------------------------------------------------ */

static int collect_pair(void *ctx, brc_span key, brc_span a, brc_span b, brc_error *err)
{
    diff_pairs *pairs = ctx;
    size_t id_len = brc_store_id_len(pairs->store);
    if (key.len == 0 || key.data[key.len - 1] != 0)
        return brc_fail(err, BRC_ECORRUPT, "a child's name is damaged; run 'breccia fsck'");
    BRC_TRY(brc_grow_array(&pairs->items, &pairs->cap, pairs->n + 1, sizeof(diff_pair), err));
    diff_pair *p = &((diff_pair *)pairs->items)[pairs->n];
    memset(p, 0, sizeof(*p));
    if (a.data != NULL)
        BRC_TRY(brc_entry_decode(&p->a, a, id_len, err));
    if (b.data != NULL)
        BRC_TRY(brc_entry_decode(&p->b, b, id_len, err));
    BRC_TRY(brc_dup_n(&p->name, (const char *)key.data, key.len - 1, err));
    pairs->n++;
    return BRC_OK;
}

static int child_path(brc_buf *out, const char *path, const char *name, brc_error *err)
{
    return brc_buf_printf(out, err, "%s/%s", strcmp(path, "/") == 0 ? "" : path, name);
}

static int pair_diff(brc_tree_diff *out, brc_store *store, const char *path, const brc_entry *a,
                     const brc_entry *b, brc_error *err);

static int children_diff(brc_tree_diff *out, brc_store *store, const char *path, const brc_oid *a,
                         const brc_oid *b, brc_error *err)
{
    diff_pairs pairs = {.store = store};
    int rc = brc_map_diff(store, a, b, collect_pair, &pairs, err);
    for (size_t i = 0; i < pairs.n && rc == BRC_OK; i++) {
        const diff_pair *p = &((diff_pair *)pairs.items)[i];
        brc_buf child = BRC_BUF_INIT;
        rc = child_path(&child, path, p->name, err);
        if (rc == BRC_OK)
            rc = pair_diff(out, store, (const char *)child.data, &p->a, &p->b, err);
        brc_buf_dispose(&child);
    }
    pairs_dispose(&pairs);
    return rc;
}

static int pair_diff(brc_tree_diff *out, brc_store *store, const char *path, const brc_entry *a,
                     const brc_entry *b, brc_error *err)
{
    static const brc_entry none;
    if (brc_entry_equal(a, b))
        return BRC_OK;
    if (a->kind != b->kind) {
        if (a->kind != 0)
            BRC_TRY(change_add(out, path, BRC_REMOVED, a, &none, NULL, err));
        return b->kind != 0 ? change_add(out, path, BRC_ADDED, &none, b, NULL, err) : BRC_OK;
    }
    BRC_TRY(node_diff(out, store, path, a, b, err));
    if (a->kind == BRC_GROUP && brc_oid_cmp(&a->map, &b->map) != 0)
        return children_diff(out, store, path, &a->map, &b->map, err);
    return BRC_OK;
}

/* ---- what is under added and removed nodes, and moves ------------------------------- */

static int expand_children(brc_tree_diff *diff, brc_store *store, const char *path, int what,
                           const brc_entry *entry, brc_error *err)
{
    brc_oid none;
    memset(&none, 0, sizeof(none));
    diff_pairs pairs = {.store = store};
    int rc = BRC_OK;
    if (entry->kind == BRC_GROUP)
        rc = brc_map_diff(store, what == BRC_ADDED ? &none : &entry->map,
                          what == BRC_ADDED ? &entry->map : &none, collect_pair, &pairs, err);
    for (size_t i = 0; i < pairs.n && rc == BRC_OK; i++) {
        const diff_pair *p = &((diff_pair *)pairs.items)[i];
        brc_buf child = BRC_BUF_INIT;
        rc = child_path(&child, path, p->name, err);
        if (rc == BRC_OK)
            rc = change_add(diff, (const char *)child.data, what, &p->a, &p->b, NULL, err);
        if (rc == BRC_OK)
            rc = expand_children(diff, store, (const char *)child.data, what,
                                 what == BRC_ADDED ? &p->b : &p->a, err);
        brc_buf_dispose(&child);
    }
    pairs_dispose(&pairs);
    return rc;
}

static int expand_all(brc_tree_diff *diff, brc_store *store, brc_error *err)
{
    size_t n = diff->n; /* expanding appends */
    for (size_t i = 0; i < n; i++) {
        int what = diff->changes[i].what;
        if (what != BRC_ADDED && what != BRC_REMOVED)
            continue;
        brc_entry entry = what == BRC_ADDED ? diff->changes[i].b : diff->changes[i].a;
        char *path;
        BRC_TRY(brc_dup(&path, diff->changes[i].path, err));
        int rc = expand_children(diff, store, path, what, &entry, err);
        free(path);
        if (rc < 0)
            return rc;
    }
    for (size_t i = 0; i < diff->n; i++) {
        brc_node_change *c = &diff->changes[i];
        if (c->what == BRC_ADDED && c->b.kind == BRC_ARRAY)
            BRC_TRY(brc_map_count(store, &c->b.map, &c->chunks_added, err));
        if (c->what == BRC_REMOVED && c->a.kind == BRC_ARRAY)
            BRC_TRY(brc_map_count(store, &c->a.map, &c->chunks_removed, err));
    }
    return BRC_OK;
}

static int change_order(const void *a, const void *b)
{
    const brc_node_change *x = a, *y = b;
    int order = strcmp(x->path, y->path);
    return order != 0 ? order : (y->what == BRC_REMOVED) - (x->what == BRC_REMOVED);
}

/* What lies under a moved node has moved with it, and is not told again. */
static void told_under(brc_tree_diff *diff, const char *path, int what)
{
    size_t len = strlen(path);
    for (size_t i = 0; i < diff->n; i++) {
        brc_node_change *c = &diff->changes[i];
        if (c->what == what && strncmp(c->path, path, len) == 0 && c->path[len] == '/')
            c->what = 0;
    }
}

/* Sorted by path, so that the top of what moved is met first. */
static int find_moves(brc_tree_diff *diff, brc_error *err)
{
    for (size_t i = 0; i < diff->n; i++) {
        brc_node_change *to = &diff->changes[i];
        for (size_t j = 0; j < diff->n && to->what == BRC_ADDED; j++) {
            brc_node_change *from = &diff->changes[j];
            if (from->what != BRC_REMOVED || !brc_entry_equal(&from->a, &to->b))
                continue;
            BRC_TRY(brc_dup(&to->from, from->path, err));
            to->what = BRC_MOVED;
            to->a = from->a;
            to->chunks_added = 0;
            from->what = 0; /* told by the other */
            told_under(diff, to->path, BRC_ADDED);
            told_under(diff, from->path, BRC_REMOVED);
        }
    }
    return BRC_OK;
}

static void drop_told(brc_tree_diff *diff)
{
    size_t kept = 0;
    for (size_t i = 0; i < diff->n; i++) {
        if (diff->changes[i].what == 0)
            node_change_dispose(&diff->changes[i]);
        else
            diff->changes[kept++] = diff->changes[i];
    }
    diff->n = kept;
}

int brc_tree_diff_run(brc_tree_diff *out, brc_store *store, const brc_oid *a, const brc_oid *b,
                      const char *path, brc_error *err)
{
    brc_entry x, y;
    memset(out, 0, sizeof(*out));
    const char *at = path != NULL ? path : "/";
    int rc;
    BRC_GO(brc_snapshot_find(store, a, at, &x, err));
    BRC_GO(brc_snapshot_find(store, b, at, &y, err));
    BRC_GO(pair_diff(out, store, at, &x, &y, err));
    BRC_GO(expand_all(out, store, err));
    if (out->n > 1)
        qsort(out->changes, out->n, sizeof(*out->changes), change_order);
    BRC_GO(find_moves(out, err));
    drop_told(out);
done:
    if (rc < 0)
        brc_tree_diff_dispose(out);
    return rc;
}
