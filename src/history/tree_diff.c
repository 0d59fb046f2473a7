/*
 * Both sides are walked at once, with a list of the places that are still to be visited:
 * a deep hierarchy takes no stack. A node on one side alone is walked as if the other
 * side were empty.
 *
 * A node that is known to have moved is a place of its own, with its own path on either side; what
 * is under it is compared by name, as everywhere. The walk by name leaves out both ends of every
 * move, and what else is there, in the newer or the older version, is a place too. So each node
 * of either side is in one place, whatever the moves say.
 */
#include "tree_diff.h"

#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "budget.h"
#include "moves.h"

/* A place where the two sides' entries differ: kind 0 if a side has no node. */
typedef struct diff_place {
    char *path;               /* in the newer version; may be NULL where that has no node */
    char *from;               /* in the older one, likewise                               */
    size_t depth, from_depth; /* names in them                                            */
    int moved;
    brc_entry a, b;
} diff_place;

typedef struct diff_walk {
    brc_tree_diff *out;
    brc_store *store;
    brc_budget budget;
    const brc_move_set *moves;
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

static int change_add(diff_walk *w, const diff_place *place, int what, const brc_entry *a,
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
    BRC_TRY(brc_dup(&c->path, what == BRC_REMOVED ? place->from : place->path, err));
    c->what = what;
    c->a = *a;
    c->b = *b;
    out->n++;
    if (what == BRC_MOVED)
        BRC_TRY(brc_dup(&c->from, place->from, err));
    BRC_TRY(brc_node_diff(c, w->store, err));
    if (what == BRC_CHANGED && !brc_node_differs(c)) { /* only what is under it differs */
        brc_node_change_dispose(c);
        out->n--;
    }
    return BRC_OK;
}

/* ---- places -------------------------------- */

static void place_dispose(diff_place *place)
{
    free(place->path);
    free(place->from);
}

static int place_dup(char **out, const char *path, brc_error *err)
{
    *out = NULL;
    return path != NULL ? brc_dup(out, path, err) : BRC_OK;
}

static int place_add(diff_walk *w, const diff_place *place, brc_error *err)
{
    BRC_TRY(brc_grow_array(&w->places, &w->cap, w->n + 1, sizeof(diff_place), err));
    diff_place *p = &((diff_place *)w->places)[w->n];
    *p = *place;
    p->from = NULL;
    int rc = place_dup(&p->path, place->path, err);
    if (rc == BRC_OK)
        rc = place_dup(&p->from, place->from, err);
    if (rc < 0)
        place_dispose(p);
    else
        w->n++;
    return rc;
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

/* Both versions have both ends of a move, so each is met on its side. */
static int is_end_of_move(const diff_walk *w, const diff_place *place)
{
    if (w->moves == NULL)
        return 0;
    return (place->path != NULL && brc_move_of_to(w->moves, place->path) != NULL) ||
           (place->from != NULL && brc_move_of_from(w->moves, place->from) != NULL);
}

static int place_from_map(void *ctx, brc_span key, brc_span a, brc_span b, brc_error *err)
{
    diff_walk *w = ctx;
    size_t id_len = brc_store_id_len(w->store);
    brc_buf path = BRC_BUF_INIT, from = BRC_BUF_INIT;
    const brc_span name = { key.data, key.len - 1 };
    diff_place place;
    int rc = BRC_OK;
    memset(&place, 0, sizeof(place));
    if (a.data != NULL) {
        place.from_depth = w->above->from_depth + 1;
        BRC_GO(brc_child_decode(&place.a, key, a, id_len, err));
        BRC_GO(child_path(&from, w->above->from, place.from_depth, name, err));
        place.from = (char *)from.data;
    }
    if (b.data != NULL) {
        place.depth = w->above->depth + 1;
        BRC_GO(brc_child_decode(&place.b, key, b, id_len, err));
        BRC_GO(child_path(&path, w->above->path, place.depth, name, err));
        place.path = (char *)path.data;
    }
    rc = is_end_of_move(w, &place) ? BRC_OK : place_add(w, &place, err);
done:
    brc_buf_dispose(&path);
    brc_buf_dispose(&from);
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
    if (brc_entry_equal(a, b) && !place->moved)
        return BRC_OK;
    BRC_TRY(brc_budget_take(&w->budget, err));
    if (a->kind == b->kind)
        BRC_TRY(change_add(w, place, place->moved ? BRC_MOVED : BRC_CHANGED, a, b, err));
    if (a->kind != b->kind && a->kind != 0)
        BRC_TRY(change_add(w, place, BRC_REMOVED, a, &none, err));
    if (a->kind != b->kind && b->kind != 0)
        BRC_TRY(change_add(w, place, BRC_ADDED, &none, b, err));
    return place_children(w, place, err);
}

static int diff_walk_run(diff_walk *w, brc_error *err)
{
    int rc = BRC_OK;
    while (w->n > 0 && rc == BRC_OK) {
        diff_place place = ((diff_place *)w->places)[--w->n];
        rc = place_visit(w, &place, err);
        brc_store_breathe(w->store);
        place_dispose(&place);
    }
    return rc;
}

static void diff_walk_dispose(diff_walk *w)
{
    while (w->n > 0)
        place_dispose(&((diff_place *)w->places)[--w->n]);
    free(w->places);
}

/* ---- moves that are known -------------------------------- */

static size_t names_in(const char *path)
{
    size_t n = 0;
    for (const char *at = path; *at != '\0'; at++)
        n += *at == '/' && at[1] != '\0';
    return n;
}

/* A path that is NULL: that side has no node. */
static int place_find(diff_walk *w, const brc_oid *a, const char *from, const brc_oid *b,
                      const char *path, int moved, brc_error *err)
{
    diff_place place;
    memset(&place, 0, sizeof(place));
    place.moved = moved;
    place.path = (char *)(uintptr_t)path; /* only to be copied */
    place.from = (char *)(uintptr_t)from;
    if (from != NULL) {
        place.from_depth = names_in(from);
        BRC_TRY(brc_snapshot_find(w->store, a, from, &place.a, err));
    }
    if (path != NULL) {
        place.depth = names_in(path);
        BRC_TRY(brc_snapshot_find(w->store, b, path, &place.b, err));
    }
    return place_add(w, &place, err);
}

/* What else is where the node was: where the walk by name would have met it. */
static int place_left(diff_walk *w, const brc_move *move, const brc_oid *b, brc_buf *now,
                      brc_buf *back, brc_error *err)
{
    BRC_TRY(brc_move_target(now, w->moves, move->from, 1, err));
    const char *path = (const char *)now->data;
    BRC_TRY(brc_move_source(back, w->moves, path, 0, err));
    if (strcmp((const char *)back->data, move->from) != 0 || brc_move_of_to(w->moves, path) != NULL)
        return BRC_OK;
    return place_find(w, NULL, NULL, b, path, 0, err);
}

/* And what was where it is. */
static int place_taken(diff_walk *w, const brc_move *move, const brc_oid *a, brc_buf *then,
                       brc_buf *back, brc_error *err)
{
    BRC_TRY(brc_move_source(then, w->moves, move->to, 1, err));
    const char *path = (const char *)then->data;
    BRC_TRY(brc_move_target(back, w->moves, path, 0, err));
    if (strcmp((const char *)back->data, move->to) != 0 || brc_move_of_from(w->moves, path) != NULL)
        return BRC_OK;
    return place_find(w, a, path, NULL, NULL, 0, err);
}

static int place_moves(diff_walk *w, const brc_oid *a, const brc_oid *b, brc_error *err)
{
    brc_buf there = BRC_BUF_INIT, back = BRC_BUF_INIT;
    int rc = BRC_OK;
    for (size_t i = 0; w->moves != NULL && i < w->moves->n; i++) {
        const brc_move *move = &w->moves->items[i];
        BRC_GO(place_find(w, a, move->from, b, move->to, 1, err));
        BRC_GO(place_left(w, move, b, &there, &back, err));
        BRC_GO(place_taken(w, move, a, &there, &back, err));
    }
done:
    brc_buf_dispose(&there);
    brc_buf_dispose(&back);
    return rc;
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

/* A diff of a part knows the moves within it; what came from elsewhere is new there. */
static int moves_within(brc_move_set *out, const brc_move_set *moves, const char *path,
                        brc_error *err)
{
    size_t len = strlen(path);
    for (size_t i = 0; i < moves->n; i++) {
        const brc_move *move = &moves->items[i];
        if (strncmp(move->from, path, len) == 0 && move->from[len] == '/' &&
            strncmp(move->to, path, len) == 0 && move->to[len] == '/')
            BRC_TRY(brc_move_set_add(out, move->from, move->to, err));
    }
    return brc_move_set_seal(out, err);
}

int brc_tree_diff_run(brc_tree_diff *out, brc_store *store, const brc_oid *a, const brc_oid *b,
                      const char *path, const brc_move_set *moves, brc_error *err)
{
    brc_move_set within = {0};
    diff_walk w = { .out = out, .store = store, .budget = brc_budget_of(store), .moves = moves };
    memset(out, 0, sizeof(*out));
    const char *at = path != NULL ? path : "/";
    int rc;
    if (moves != NULL && strcmp(at, "/") != 0) {
        BRC_GO(moves_within(&within, moves, at, err));
        w.moves = &within;
    }
    BRC_GO(place_find(&w, a, at, b, at, 0, err));
    BRC_GO(place_moves(&w, a, b, err));
    BRC_GO(diff_walk_run(&w, err));
    if (out->n > 1)
        qsort(out->changes, out->n, sizeof(*out->changes), change_order);
    BRC_GO(brc_moves_find(out->changes, out->n, err));
    drop_told(out);
done:
    diff_walk_dispose(&w);
    brc_move_set_dispose(&within);
    if (rc < 0)
        brc_tree_diff_dispose(out);
    return rc;
}
