/*
 * Both sides are walked at once, with a list of the places that are still to be visited:
 * a deep hierarchy takes no stack. A node on one side alone is walked as if the other
 * side were empty.
 */
#include "tree_diff.h"

#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "budget.h"
#include "moves.h"

/* A place where the two sides' entries differ: kind 0 if a side has no node. */
typedef struct diff_place {
    char *path;
    size_t depth; /* names in the path */
    brc_entry a, b;
} diff_place;

typedef struct diff_walk {
    brc_tree_diff *out;
    brc_store *store;
    brc_budget budget;
    void *places; /* diff_place[]: still to be visited */
    size_t n, cap;
    const diff_place *above; /* whose children are being listed */
} diff_walk;

void brc_tree_diff_dispose(brc_tree_diff *diff)
{
    for (size_t i = 0; i < diff->n; i++)
        brc_node_change_dispose(&diff->changes[i]);
    free(diff->changes);
    memset(diff, 0, sizeof(*diff));
}

/* ---- changes -------------------------------- */

static int change_add(diff_walk *w, const char *path, int what, const brc_entry *a,
                      const brc_entry *b, brc_error *err)
{
    brc_tree_diff *out = w->out;
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
    BRC_TRY(brc_node_diff(c, w->store, err));
    if (what == BRC_CHANGED && !brc_node_differs(c)) { /* only what is under it differs */
        brc_node_change_dispose(c);
        out->n--;
    }
    return BRC_OK;
}

/* ---- places -------------------------------- */

static int place_add(diff_walk *w, const char *path, size_t depth, const brc_entry *a,
                     const brc_entry *b, brc_error *err)
{
    BRC_TRY(brc_grow_array(&w->places, &w->cap, w->n + 1, sizeof(diff_place), err));
    diff_place *p = &((diff_place *)w->places)[w->n];
    *p = (diff_place){ NULL, depth, *a, *b };
    BRC_TRY(brc_dup(&p->path, path, err));
    w->n++;
    return BRC_OK;
}

static int child_path(brc_buf *out, const char *path, size_t depth, brc_span name, brc_error *err)
{
    BRC_TRY(brc_buf_printf(out, err, "%s/%.*s", strcmp(path, "/") == 0 ? "" : path, (int)name.len,
                           (const char *)name.data));
    if (depth > BRC_DEPTH_MAX || out->len > BRC_PATH_MAX)
        return brc_fail(err, BRC_ECORRUPT,
                        "%.300s... is damaged: it has more than %d names or %d bytes, the limits "
                        "of a path",
                        path, BRC_DEPTH_MAX, BRC_PATH_MAX);
    return brc_buf_terminate(out, err);
}

static int place_from_map(void *ctx, brc_span key, brc_span a, brc_span b, brc_error *err)
{
    diff_walk *w = ctx;
    size_t id_len = brc_store_id_len(w->store), depth = w->above->depth + 1;
    brc_entry x, y;
    brc_buf path = BRC_BUF_INIT;
    int rc;
    memset(&x, 0, sizeof(x));
    memset(&y, 0, sizeof(y));
    if (a.data != NULL)
        BRC_GO(brc_child_decode(&x, key, a, id_len, err));
    if (b.data != NULL)
        BRC_GO(brc_child_decode(&y, key, b, id_len, err));
    BRC_GO(child_path(&path, w->above->path, depth, (brc_span){ key.data, key.len - 1 }, err));
    rc = place_add(w, (const char *)path.data, depth, &x, &y, err);
done:
    brc_buf_dispose(&path);
    return rc;
}

/* The children that differ; an array has none. */
static int place_children(diff_walk *w, const diff_place *place, brc_error *err)
{
    brc_oid a, b;
    memset(&a, 0, sizeof(a));
    memset(&b, 0, sizeof(b));
    if (place->a.kind == BRC_GROUP)
        a = place->a.map;
    if (place->b.kind == BRC_GROUP)
        b = place->b.map;
    w->above = place;
    return brc_map_diff(w->store, &a, &b, place_from_map, w, err);
}

static int place_visit(diff_walk *w, const diff_place *place, brc_error *err)
{
    static const brc_entry none;
    const brc_entry *a = &place->a, *b = &place->b;
    if (brc_entry_equal(a, b))
        return BRC_OK;
    BRC_TRY(brc_budget_take(&w->budget, err));
    if (a->kind == b->kind)
        BRC_TRY(change_add(w, place->path, BRC_CHANGED, a, b, err));
    if (a->kind != b->kind && a->kind != 0)
        BRC_TRY(change_add(w, place->path, BRC_REMOVED, a, &none, err));
    if (a->kind != b->kind && b->kind != 0)
        BRC_TRY(change_add(w, place->path, BRC_ADDED, &none, b, err));
    return place_children(w, place, err);
}

static int diff_walk_run(diff_walk *w, brc_error *err)
{
    int rc = BRC_OK;
    while (w->n > 0 && rc == BRC_OK) {
        diff_place place = ((diff_place *)w->places)[--w->n];
        rc = place_visit(w, &place, err);
        free(place.path);
    }
    return rc;
}

static void diff_walk_dispose(diff_walk *w)
{
    while (w->n > 0)
        free(((diff_place *)w->places)[--w->n].path);
    free(w->places);
}

/* ---- all -------------------------------- */

static int change_order(const void *a, const void *b)
{
    const brc_node_change *x = a, *y = b;
    int order = strcmp(x->path, y->path);
    return order != 0 ? order : (y->what == BRC_REMOVED) - (x->what == BRC_REMOVED);
}

static void drop_told(brc_tree_diff *diff)
{
    size_t kept = 0;
    for (size_t i = 0; i < diff->n; i++) {
        if (diff->changes[i].what == 0)
            brc_node_change_dispose(&diff->changes[i]);
        else
            diff->changes[kept++] = diff->changes[i];
    }
    diff->n = kept;
}

static size_t names_in(const char *path)
{
    size_t n = 0;
    for (const char *at = path; *at != '\0'; at++)
        n += *at == '/' && at[1] != '\0';
    return n;
}

int brc_tree_diff_run(brc_tree_diff *out, brc_store *store, const brc_oid *a, const brc_oid *b,
                      const char *path, brc_error *err)
{
    brc_entry x, y;
    diff_walk w = { .out = out, .store = store, .budget = brc_budget_of(store) };
    memset(out, 0, sizeof(*out));
    const char *at = path != NULL ? path : "/";
    int rc;
    BRC_GO(brc_snapshot_find(store, a, at, &x, err));
    BRC_GO(brc_snapshot_find(store, b, at, &y, err));
    BRC_GO(place_add(&w, at, names_in(at), &x, &y, err));
    BRC_GO(diff_walk_run(&w, err));
    if (out->n > 1)
        qsort(out->changes, out->n, sizeof(*out->changes), change_order);
    BRC_GO(brc_moves_find(out->changes, out->n, err));
    drop_told(out);
done:
    diff_walk_dispose(&w);
    if (rc < 0)
        brc_tree_diff_dispose(out);
    return rc;
}
