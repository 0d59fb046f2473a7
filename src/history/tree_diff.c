#include "tree_diff.h"

#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../base/node_path.h"
#include "tree_walk.h"

static int moves_find(brc_node_change *changes, size_t n, brc_error *err);

/* ==== doc diff ================================ */

void brc_pointers_dispose(brc_pointers *pointers)
{
    for (size_t i = 0; i < pointers->n; i++)
        free(pointers->items[i]);
    free(pointers->items);
    memset(pointers, 0, sizeof(*pointers));
}

static int pointer_add(brc_pointers *out, const char *base, const char *name, brc_error *err)
{
    brc_buf text = BRC_BUF_INIT;
    void *p = out->items;
    int rc;
    BRC_GO(brc_grow_array(&p, &out->cap, out->n + 1, sizeof(char *), err));
    out->items = p;
    BRC_GO(brc_buf_text(&text, base, err));
    BRC_GO(brc_json_pointer_step(&text, name, err));
    BRC_GO(brc_buf_take_text(&text, &out->items[out->n], err));
    out->n++;
done:
    brc_buf_dispose(&text);
    return rc;
}

/* Says whether an absent member would mean the same: an empty "attributes" or
 * "storage_transformers". */
static int member_says_nothing(const brc_json *value)
{
    int kind = brc_json_kind(value);
    return kind == BRC_JSON_ABSENT || kind == BRC_JSON_NULL ||
           ((kind == BRC_JSON_OBJECT || kind == BRC_JSON_ARRAY) && brc_json_count(value) == 0);
}

/* Says whether a value has named members. Documents from strangers are not checked yet, and an
 * array's items have no names. */
static int has_members(const brc_json *value)
{
    int kind = brc_json_kind(value);
    return kind == BRC_JSON_OBJECT || kind == BRC_JSON_ABSENT;
}

static int members_diff(brc_pointers *out, const char *base, const brc_json *a, const brc_json *b,
                        brc_error *err);

static int member_diff(brc_pointers *out, const char *base, const char *name, const brc_json *x,
                       const brc_json *y, brc_error *err)
{
    int top = *base == '\0';
    if (brc_json_equal(x, y) || (top && member_says_nothing(x) && member_says_nothing(y)))
        return BRC_OK;
    if (top && strcmp(name, "attributes") == 0 && has_members(x) && has_members(y))
        return members_diff(out, "/attributes", x, y, err);
    return pointer_add(out, base, name, err);
}

static int members_compare(brc_pointers *out, const char *base, const brc_json *a,
                           const brc_json *b, const brc_json_index *in_a,
                           const brc_json_index *in_b, brc_error *err)
{
    for (const brc_json *v = brc_json_first(a); v != NULL; v = brc_json_next(v)) {
        const char *name = brc_json_name(v);
        BRC_TRY(member_diff(out, base, name, v, brc_json_index_find(in_b, name), err));
    }
    for (const brc_json *v = brc_json_first(b); v != NULL; v = brc_json_next(v)) {
        const char *name = brc_json_name(v);
        if (brc_json_index_find(in_a, name) == NULL)
            BRC_TRY(member_diff(out, base, name, NULL, v, err));
    }
    return BRC_OK;
}

static int members_diff(brc_pointers *out, const char *base, const brc_json *a, const brc_json *b,
                        brc_error *err)
{
    brc_json_index in_a, in_b = {NULL, 0};
    int rc = brc_json_index_make(&in_a, a, err);
    if (rc == BRC_OK)
        rc = brc_json_index_make(&in_b, b, err);
    if (rc == BRC_OK)
        rc = members_compare(out, base, a, b, &in_a, &in_b, err);
    brc_json_index_dispose(&in_a);
    brc_json_index_dispose(&in_b);
    return rc;
}

int brc_doc_diff(brc_pointers *out, const brc_json *a, const brc_json *b, brc_error *err)
{
    if (!has_members(a) || !has_members(b))
        return brc_fail(err, BRC_ECORRUPT,
                        "a node's document is damaged: it is not a JSON object; run 'breccia "
                        "fsck'");
    return members_diff(out, "", a, b, err);
}

/* ==== children diff ================================ */

typedef struct child_step {
    brc_store *store;
    brc_child_fn fn;
    void *ctx;
} child_step;

static int child_of_maps(void *ctx, brc_span key, brc_span a, brc_span b, brc_error *err)
{
    const child_step *step = ctx;
    const size_t id_len = brc_store_id_len(step->store);
    brc_entry ea = {0}, eb = {0};
    if (a.data != NULL)
        BRC_TRY(brc_child_decode(&ea, key, a, id_len, err));
    if (b.data != NULL)
        BRC_TRY(brc_child_decode(&eb, key, b, id_len, err));
    return step->fn(step->ctx, (const char *)key.data, &ea, &eb, err); /* the key ends with a 0 */
}

int brc_children_diff(brc_store *store, const brc_entry *a, const brc_entry *b, brc_child_fn fn,
                      void *ctx, brc_error *err)
{
    static const brc_oid none;
    child_step step = {store, fn, ctx};
    return brc_map_diff(store, a->kind == BRC_GROUP ? &a->map : &none,
                        b->kind == BRC_GROUP ? &b->map : &none, child_of_maps, &step, err);
}

/* ==== node diff ================================ */

void brc_node_change_dispose(brc_node_change *c)
{
    for (size_t i = 0; i < c->nmetadata; i++)
        free(c->metadata[i]);
    free(c->metadata);
    free(c->path);
    free(c->from);
}

/* ---- chunks -------------------------------- */

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

static int chunks_diff(brc_node_change *c, brc_store *store, brc_error *err)
{
    if (c->a.kind == BRC_ARRAY && c->b.kind == BRC_ARRAY && !c->rechunked)
        return brc_map_diff(store, &c->a.map, &c->b.map, count_chunk_change, c, err);
    if (c->a.kind == BRC_ARRAY)
        BRC_TRY(brc_map_count(store, &c->a.map, &c->chunks_removed, err));
    if (c->b.kind == BRC_ARRAY)
        BRC_TRY(brc_map_count(store, &c->b.map, &c->chunks_added, err));
    return BRC_OK;
}

/* ---- metadata -------------------------------- */

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

static int pointers_of(brc_pointers *out, const brc_node_change *c, brc_store *store,
                       brc_error *err)
{
    if (brc_oid_cmp(&c->a.doc, &c->b.doc) != 0)
        BRC_TRY(docs_diff(store, &c->a, &c->b, out, err));
    if (brc_oid_cmp(&c->a.storage, &c->b.storage) == 0)
        return BRC_OK;
    void *p = out->items;
    BRC_TRY(brc_grow_array(&p, &out->cap, out->n + 1, sizeof(char *), err));
    out->items = p;
    BRC_TRY(brc_dup(&out->items[out->n], "/storage", err));
    out->n++;
    return BRC_OK;
}

static int metadata_diff(brc_node_change *c, brc_store *store, brc_error *err)
{
    brc_pointers pointers = {0};
    int rc = pointers_of(&pointers, c, store, err);
    if (rc < 0) {
        brc_pointers_dispose(&pointers);
        return rc;
    }
    c->rechunked =
        pointers_hold(&pointers, "/chunk_grid") || pointers_hold(&pointers, "/data_type");
    c->storage_only =
        pointers.n > 0 && pointers.n == (size_t)pointers_hold(&pointers, "/codecs") +
                                            (size_t)pointers_hold(&pointers, "/storage");
    c->metadata = pointers.items;
    c->nmetadata = pointers.n;
    return BRC_OK;
}

/* ---- both -------------------------------- */

int brc_node_diff(brc_node_change *c, brc_store *store, brc_error *err)
{
    if (c->a.kind != 0 && c->b.kind != 0)
        BRC_TRY(metadata_diff(c, store, err));
    BRC_TRY(chunks_diff(c, store, err));
    if (c->chunks_added + c->chunks_removed + c->chunks_changed > 0)
        c->storage_only = 0;
    return BRC_OK;
}

/* Returns 1 if a node on both sides differs itself, not only in the nodes under it. */
static int node_differs(const brc_node_change *c)
{
    return c->nmetadata > 0 || c->chunks_added + c->chunks_removed + c->chunks_changed > 0;
}

/* ==== tree diff ================================ */

/*
 * Both sides are walked together, with a list of the places still to be visited, so that a deep
 * hierarchy takes no stack. A node that only one side has is walked as if the other side were
 * empty.
 *
 * A node that is known to have moved is a separate place, with its own path on each side; nodes
 * under it are compared by name, as everywhere. The walk by name leaves out both ends of every
 * move; any other node that is there, in the newer or the older version, is a separate place too.
 * So each node of either side is in exactly one place, whatever the moves say.
 */

/* A place where the entries of the two sides differ: kind 0 if a side does not have the node. */
typedef struct diff_place {
    char *path;               /* in the newer version; may be NULL if that does not have the node */
    char *from;               /* in the older version, likewise                           */
    size_t depth, from_depth; /* number of names in the paths                             */
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
    const diff_place *above; /* the place whose children are being listed */
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
    if (what == BRC_CHANGED && !node_differs(c)) { /* only nodes under it differ */
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

static int child_path(brc_buf *out, const char *path, size_t depth, const char *name,
                      brc_error *err)
{
    BRC_TRY(brc_buf_printf(out, err, "%s/%s", strcmp(path, "/") == 0 ? "" : path, name));
    if (depth > BRC_DEPTH_MAX || out->len > BRC_PATH_MAX)
        return brc_fail(err, BRC_ECORRUPT,
                        "%.300s... is damaged: it has more than %d names or %d bytes, the limits "
                        "of a path",
                        path, BRC_DEPTH_MAX, BRC_PATH_MAX);
    return brc_buf_terminate(out, err);
}

/* Says whether the place is an end of a move. Both versions have both ends of a move, so each end
 * is met on its side. */
static int is_end_of_move(const diff_walk *w, const diff_place *place)
{
    if (w->moves == NULL)
        return 0;
    return (place->path != NULL && brc_move_of_to(w->moves, place->path) != NULL) ||
           (place->from != NULL && brc_move_of_from(w->moves, place->from) != NULL);
}

static int place_child(void *ctx, const char *name, const brc_entry *a, const brc_entry *b,
                       brc_error *err)
{
    diff_walk *w = ctx;
    brc_buf path = BRC_BUF_INIT, from = BRC_BUF_INIT;
    diff_place place = {.a = *a, .b = *b};
    int rc = BRC_OK;
    if (a->kind != 0) {
        place.from_depth = w->above->from_depth + 1;
        BRC_GO(child_path(&from, w->above->from, place.from_depth, name, err));
        place.from = (char *)from.data;
    }
    if (b->kind != 0) {
        place.depth = w->above->depth + 1;
        BRC_GO(child_path(&path, w->above->path, place.depth, name, err));
        place.path = (char *)path.data;
    }
    rc = is_end_of_move(w, &place) ? BRC_OK : place_add(w, &place, err);
done:
    brc_buf_dispose(&path);
    brc_buf_dispose(&from);
    return rc;
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
    w->above = place;
    return brc_children_diff(w->store, a, b, place_child, w, err);
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

/* Adds a place by its paths. A path that is NULL means that the side does not have the node. */
static int place_find(diff_walk *w, const brc_oid *a, const char *from, const brc_oid *b,
                      const char *path, int moved, brc_error *err)
{
    diff_place place;
    memset(&place, 0, sizeof(place));
    place.moved = moved;
    place.path = (char *)(uintptr_t)path; /* it is only copied */
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

/* Adds the other node that is now where the moved node was, and that the walk by name would have
 * met there. */
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

/* Adds the other node that was where the moved node is now. */
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

/* Adds the moved nodes, and what is at the ends of the moves; but the ends of the move of the
 * diff's own path are outside of it. */
static int place_moves(diff_walk *w, const brc_oid *a, const brc_oid *b, const char *top,
                       brc_error *err)
{
    brc_buf there = BRC_BUF_INIT, back = BRC_BUF_INIT;
    int rc = BRC_OK;
    for (size_t i = 0; w->moves != NULL && i < w->moves->n; i++) {
        const brc_move *move = &w->moves->items[i];
        BRC_GO(place_find(w, a, move->from, b, move->to, 1, err));
        if (strcmp(move->to, top) == 0)
            continue;
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

static int lies_below(const char *node, const char *path)
{
    const size_t len = strlen(path);
    return strcmp(path, "/") == 0 || (strncmp(node, path, len) == 0 && node[len] == '/');
}

/* Selects the moves from a subtree that was at `from` to where it is now; a node that came from
 * elsewhere is new there. */
static int moves_within(brc_move_set *out, const brc_move_set *moves, const char *from,
                        const char *path, brc_error *err)
{
    for (size_t i = 0; i < moves->n; i++) {
        const brc_move *move = &moves->items[i];
        if (lies_below(move->from, from) && lies_below(move->to, path))
            BRC_TRY(brc_move_set_add(out, move->from, move->to, err));
    }
    return brc_move_set_seal(out, err);
}

/* Finds the older path of a node of the newer version, or NULL for a node that is new. */
static int find_origin(const char **out, brc_buf *text, const diff_walk *w, const brc_oid *b,
                        const char *path, brc_error *err)
{
    brc_entry now;
    int has;
    BRC_TRY(brc_snapshot_find(w->store, b, path, &now, err));
    if (now.kind == 0)
        return BRC_OK;
    BRC_TRY(brc_move_origin(text, &has, w->moves, path, err));
    *out = has ? (const char *)text->data : NULL;
    return BRC_OK;
}

/* Starts at one path, with the moves under it, and with its own for `follow`. */
static int place_one(diff_walk *w, brc_move_set *within, const brc_oid *a, const brc_oid *b,
                     const char *path, int follow, brc_error *err)
{
    brc_buf text = BRC_BUF_INIT;
    const char *from = path;
    int rc = BRC_OK;
    if (w->moves != NULL && strcmp(path, "/") != 0) {
        if (follow)
            BRC_GO(find_origin(&from, &text, w, b, path, err));
        if (from != NULL && strcmp(from, path) != 0)
            BRC_GO(brc_move_set_add(within, from, path, err));
        BRC_GO(moves_within(within, w->moves, from != NULL ? from : path, path, err));
        w->moves = within;
    }
    if (from == NULL || strcmp(from, path) == 0)
        rc = place_find(w, a, from, b, path, 0, err);
done:
    brc_buf_dispose(&text);
    return rc;
}

int brc_tree_diff_run(brc_tree_diff *out, brc_store *store, const brc_oid *a, const brc_oid *b,
                      const char *path, int follow, const brc_move_set *moves, brc_error *err)
{
    brc_move_set within = {0};
    diff_walk w = { .out = out, .store = store, .budget = brc_budget_of(store), .moves = moves };
    memset(out, 0, sizeof(*out));
    const char *at = path != NULL ? path : "/";
    int rc;
    BRC_GO(place_one(&w, &within, a, b, at, follow, err));
    BRC_GO(place_moves(&w, a, b, at, err));
    BRC_GO(diff_walk_run(&w, err));
    if (out->n > 1)
        qsort(out->changes, out->n, sizeof(*out->changes), change_order);
    BRC_GO(moves_find(out->changes, out->n, err));
    drop_told(out);
done:
    diff_walk_dispose(&w);
    brc_move_set_dispose(&within);
    if (rc < 0)
        brc_tree_diff_dispose(out);
    return rc;
}

/* ==== moves ================================ */

/* A removed node that may have moved. */
typedef struct move_source {
    brc_node_change *change;
    size_t next; /* of the first one of equal entries: the next one that may be unused */
} move_source;

typedef struct move_list {
    brc_node_change *changes;
    size_t n;
    move_source *sources; /* sorted by entry, and equal ones by path */
    size_t nsources;
    brc_buf prefix;
} move_list;

static int move_entry_order(const brc_entry *a, const brc_entry *b)
{
    int order = (a->kind > b->kind) - (a->kind < b->kind);
    order = order != 0 ? order : brc_oid_cmp(&a->doc, &b->doc);
    order = order != 0 ? order : brc_oid_cmp(&a->map, &b->map);
    return order != 0 ? order : brc_oid_cmp(&a->storage, &b->storage);
}

static int move_source_order(const void *a, const void *b)
{
    const brc_node_change *x = ((const move_source *)a)->change;
    const brc_node_change *y = ((const move_source *)b)->change;
    int order = move_entry_order(&x->a, &y->a);
    return order != 0 ? order : (x > y) - (x < y);
}

static int move_sources_sort(move_list *m, brc_error *err)
{
    void *p;
    BRC_TRY(brc_new_array(&p, m->n, sizeof(move_source), err));
    m->sources = p;
    for (size_t i = 0; i < m->n; i++)
        if (m->changes[i].what == BRC_REMOVED)
            m->sources[m->nsources++] = (move_source){ &m->changes[i], 0 };
    if (m->nsources > 1)
        qsort(m->sources, m->nsources, sizeof(move_source), move_source_order);
    for (size_t i = 0; i < m->nsources; i++)
        m->sources[i].next = i;
    return BRC_OK;
}

/* Returns the first removed node by path that has this entry and was not used yet; NULL: none.
 * Nodes that were passed once are never examined again. */
static brc_node_change *move_source_of(move_list *m, const brc_entry *entry)
{
    size_t lo = 0, hi = m->nsources;
    while (lo < hi) {
        size_t middle = lo + (hi - lo) / 2;
        if (move_entry_order(&m->sources[middle].change->a, entry) < 0)
            lo = middle + 1;
        else
            hi = middle;
    }
    if (lo == m->nsources)
        return NULL;
    size_t *at = &m->sources[lo].next;
    while (*at < m->nsources && brc_entry_equal(&m->sources[*at].change->a, entry)) {
        if (m->sources[*at].change->what == BRC_REMOVED)
            return m->sources[*at].change;
        ++*at;
    }
    return NULL;
}

/* Marks the nodes under the path whose change is `what` as covered. In the order of paths they are
 * consecutive, from "path/" on. */
static int tell_under(move_list *m, const char *path, int what, brc_error *err)
{
    size_t lo = 0, hi = m->n;
    m->prefix.len = 0;
    BRC_TRY(brc_buf_printf(&m->prefix, err, "%s/", path));
    BRC_TRY(brc_buf_terminate(&m->prefix, err));
    const char *prefix = (const char *)m->prefix.data;
    size_t len = strlen(prefix);
    while (lo < hi) {
        size_t middle = lo + (hi - lo) / 2;
        if (strcmp(m->changes[middle].path, prefix) < 0)
            lo = middle + 1;
        else
            hi = middle;
    }
    for (; lo < m->n && strncmp(m->changes[lo].path, prefix, len) == 0; lo++)
        if (m->changes[lo].what == what)
            m->changes[lo].what = 0;
    return BRC_OK;
}

static int move_to(move_list *m, brc_node_change *to, brc_node_change *from, brc_error *err)
{
    BRC_TRY(brc_dup(&to->from, from->path, err));
    to->what = BRC_MOVED;
    to->a = from->a;
    to->chunks_added = 0;
    from->what = 0;
    BRC_TRY(tell_under(m, to->path, BRC_ADDED, err));
    return tell_under(m, from->path, BRC_REMOVED, err);
}

/* Finds moves among the changes, which must be sorted by path and list added and removed nodes with
 * everything under them. A change that another one covers gets a `what` of 0. */
static int moves_find(brc_node_change *changes, size_t n, brc_error *err)
{
    move_list m = { .changes = changes, .n = n };
    int rc;
    BRC_GO(move_sources_sort(&m, err));
    for (size_t i = 0; i < n; i++) { /* the topmost moved node is met first */
        brc_node_change *from =
            changes[i].what == BRC_ADDED ? move_source_of(&m, &changes[i].b) : NULL;
        if (from != NULL)
            BRC_GO(move_to(&m, &changes[i], from, err));
    }
done:
    free(m.sources);
    brc_buf_dispose(&m.prefix);
    return rc;
}

/* ==== made again ================================ */

/* A group of both snapshots whose children differ. */
typedef struct made_group {
    char *path;
    brc_entry a, b;
} made_group;

typedef struct made_look {
    brc_move_set *out;
    brc_store *store;
    const brc_oid *older;
    const brc_move_set *moves;
    const char *path; /* path of the group whose children are compared */
    void *due;        /* made_group[] */
    size_t n, cap;
} made_look;

static int made_due(made_look *look, char *path, const brc_entry *a, const brc_entry *b,
                    brc_error *err)
{
    int rc = brc_grow_array(&look->due, &look->cap, look->n + 1, sizeof(made_group), err);
    if (rc < 0)
        free(path);
    else
        ((made_group *)look->due)[look->n++] = (made_group){path, *a, *b};
    return rc;
}

static int look_at_added(made_look *look, const char *path, const brc_entry *now, brc_error *err)
{
    brc_entry then;
    if (brc_move_of_to(look->moves, path) != NULL || brc_move_has_made(look->moves, path))
        return BRC_OK;
    BRC_TRY(brc_snapshot_find(look->store, look->older, path, &then, err));
    return then.kind == 0 || brc_entry_equal(&then, now)
               ? BRC_OK
               : brc_move_set_add_made(look->out, path, err);
}

static int made_child(void *ctx, const char *name, const brc_entry *before,
                      const brc_entry *after, brc_error *err)
{
    made_look *look = ctx;
    char *path;
    if (after->kind == 0)
        return BRC_OK;
    if (before->kind != 0 && (before->kind != BRC_GROUP || after->kind != BRC_GROUP))
        return BRC_OK;
    BRC_TRY(brc_node_join(&path, look->path, name, err));
    if (before->kind != 0)
        return made_due(look, path, before, after, err);
    int rc = look_at_added(look, path, after, err);
    free(path);
    return rc;
}

static int made_start(made_look *look, const brc_oid *before, const brc_oid *after, brc_error *err)
{
    brc_entry a, b;
    char *path;
    BRC_TRY(brc_snapshot_find(look->store, before, "/", &a, err));
    BRC_TRY(brc_snapshot_find(look->store, after, "/", &b, err));
    BRC_TRY(brc_dup(&path, "/", err));
    return made_due(look, path, &a, &b, err);
}

int brc_made_again(brc_move_set *out, brc_store *store, const brc_oid *older, const brc_oid *before,
                   const brc_oid *after, const brc_move_set *moves, brc_error *err)
{
    made_look look = {.out = out, .store = store, .older = older, .moves = moves};
    int rc = made_start(&look, before, after, err);
    while (rc == BRC_OK && look.n > 0) {
        const made_group at = ((made_group *)look.due)[--look.n];
        look.path = at.path;
        rc = brc_children_diff(store, &at.a, &at.b, made_child, &look, err);
        free(at.path);
    }
    while (look.n > 0)
        free(((made_group *)look.due)[--look.n].path);
    free(look.due);
    return rc;
}
