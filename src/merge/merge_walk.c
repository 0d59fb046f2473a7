#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../history/tree_diff.h"
#include "merge_tree.h"

/* ==== merge spots ================================ */

/* ---- texts -------------------------------- */

int brc_merge_text(brc_merge_tree *m, const char *text, size_t len, const char **out,
                   brc_error *err)
{
    char *p = brc_arena_take(&m->arena, len + 1);
    if (p == NULL)
        return brc_nomem(err);
    memcpy(p, text, len);
    p[len] = '\0';
    *out = p;
    return BRC_OK;
}

/* Joins "/" and "a" to "/a", in the tree's memory. */
static int merge_join(brc_merge_tree *m, const char *path, const char *name, const char **out,
                      brc_error *err)
{
    const size_t len = path[1] != '\0' ? strlen(path) : 0, rest = strlen(name);
    if (len + 1 + rest > BRC_PATH_MAX)
        return brc_fail(err, BRC_ECORRUPT, "%.300s... is longer than a path can be: %d bytes", path,
                        BRC_PATH_MAX);
    char *p = brc_arena_take(&m->arena, len + rest + 2);
    if (p == NULL)
        return brc_nomem(err);
    memcpy(p, path, len);
    p[len] = '/';
    memcpy(p + len + 1, name, rest + 1);
    *out = p;
    return BRC_OK;
}

const char *brc_merge_name(const char *path)
{
    return strrchr(path, '/') + 1;
}

int brc_merge_above(brc_merge_tree *m, const char *path, const char **out, brc_error *err)
{
    const size_t len = (size_t)(strrchr(path, '/') - path);
    return brc_merge_text(m, path, len > 0 ? len : 1, out, err);
}

/* ---- spots -------------------------------- */

static int by_ours_order(const void *a, const void *b)
{
    return strcmp(((const brc_spot *)a)->ours, ((const brc_spot *)b)->ours);
}

static int by_theirs_order(const void *a, const void *b)
{
    return strcmp(((const brc_spot *)a)->theirs, ((const brc_spot *)b)->theirs);
}

static brc_spot *spot_find(void *const *tree, const brc_spot *key,
                           int (*order)(const void *, const void *))
{
    void *found = tfind(key, tree, order);
    return found != NULL ? *(brc_spot *const *)found : NULL;
}

static int spot_make(brc_merge_tree *m, brc_spot **out, brc_error *err)
{
    brc_spot *spot = brc_arena_take(&m->arena, sizeof(*spot));
    if (spot == NULL)
        return brc_nomem(err);
    memset(spot, 0, sizeof(*spot));
    spot->next = m->spots;
    m->spots = spot;
    m->nspots++;
    *out = spot;
    return BRC_OK;
}

/* Adds a spot of ours under its parent's spot; `path` belongs to the tree. */
static int spot_add_ours(brc_merge_tree *m, brc_spot *parent, const char *path,
                         const brc_entry *entry, brc_spot **out, brc_error *err)
{
    BRC_TRY(spot_make(m, out, err));
    brc_spot *spot = *out;
    spot->ours = path;
    spot->was = spot->parent = parent;
    spot->was_name = spot->name = brc_merge_name(path);
    spot->before = spot->entry = *entry;
    return tsearch(spot, &m->by_ours, by_ours_order) != NULL ? BRC_OK : brc_nomem(err);
}

int brc_spots_start(brc_merge_tree *m, brc_error *err)
{
    brc_entry entry;
    const char *path = NULL;
    BRC_TRY(brc_snapshot_find(m->store, &m->in.ours, "/", &entry, err));
    BRC_TRY(brc_merge_text(m, "/", 1, &path, err));
    return spot_add_ours(m, NULL, path, &entry, &m->root, err);
}

static void merged_free(brc_merged_node *merged)
{
    if (merged == NULL)
        return;
    brc_buf_dispose(&merged->text);
    free(merged->edits);
    brc_arena_dispose(&merged->arena);
    free(merged);
}

void brc_spots_free(brc_merge_tree *m)
{
    for (brc_spot *spot = m->spots; spot != NULL; spot = spot->next) {
        if (spot->ours != NULL)
            tdelete(spot, &m->by_ours, by_ours_order);
        if (spot->theirs != NULL)
            tdelete(spot, &m->by_theirs, by_theirs_order);
        merged_free(spot->merged);
        free(spot->edits);
    }
    m->spots = NULL;
    brc_arena_dispose(&m->arena);
}

static int spot_child(brc_merge_tree *m, brc_spot *parent, const char *name, const char *path,
                      brc_spot **out, brc_error *err)
{
    brc_entry entry;
    const brc_spot key = {.ours = path};
    *out = spot_find(&m->by_ours, &key, by_ours_order);
    if (*out != NULL || parent->before.kind != BRC_GROUP)
        return BRC_OK;
    BRC_TRY(brc_entry_find(m->store, &parent->before, name, &entry, err));
    return entry.kind != 0 ? spot_add_ours(m, parent, path, &entry, out, err) : BRC_OK;
}

int brc_spot_of_ours(brc_merge_tree *m, const char *path, brc_spot **out, brc_error *err)
{
    const brc_spot key = {.ours = path};
    *out = spot_find(&m->by_ours, &key, by_ours_order);
    if (*out != NULL)
        return BRC_OK;
    *out = m->root;
    for (const char *at = path + 1; *at != '\0' && *out != NULL;) {
        const char *upto = NULL, *name;
        const size_t len = strcspn(at, "/");
        brc_spot *parent = *out;
        BRC_TRY(brc_merge_text(m, path, (size_t)(at - path) + len, &upto, err));
        name = brc_merge_name(upto);
        BRC_TRY(spot_child(m, parent, name, upto, out, err));
        at += len + (at[len] == '/');
    }
    return BRC_OK;
}

int brc_spot_show(brc_merge_tree *m, brc_spot *parent, const char *name, brc_error *err)
{
    const char *path = NULL;
    brc_spot *ignored;
    if (parent->ours == NULL)
        return BRC_OK;
    BRC_TRY(merge_join(m, parent->ours, name, &path, err));
    return spot_child(m, parent, name, path, &ignored, err);
}

/* Notes that a spot of ours is also the node that theirs has made there. */
static int spot_is_theirs(brc_merge_tree *m, brc_spot *spot, const char *theirs, brc_error *err)
{
    if (spot->theirs != NULL)
        return BRC_OK;
    spot->theirs = theirs;
    if (tsearch(spot, &m->by_theirs, by_theirs_order) != NULL)
        return BRC_OK;
    spot->theirs = NULL;
    return brc_nomem(err);
}

/* Makes a spot for a new node of theirs. */
static int spot_new(brc_merge_tree *m, const char *theirs, brc_spot **out, brc_error *err)
{
    BRC_TRY(spot_make(m, out, err));
    return spot_is_theirs(m, *out, theirs, err);
}

static brc_spot *spot_of_theirs(const brc_merge_tree *m, const char *path)
{
    const brc_spot key = {.theirs = path};
    return spot_find(&m->by_theirs, &key, by_theirs_order);
}

int brc_spot_path(const brc_spot *spot, brc_buf *out, brc_error *err)
{
    const char *names[BRC_DEPTH_MAX + 1];
    size_t n = 0;
    out->len = 0;
    for (; spot->parent != NULL && n <= BRC_DEPTH_MAX; spot = spot->parent)
        names[n++] = spot->name;
    if (n == 0)
        BRC_TRY(brc_buf_text(out, "/", err));
    while (n > 0)
        BRC_TRY(brc_buf_printf(out, err, "/%s", names[--n]));
    return brc_buf_terminate(out, err);
}

int brc_merge_favours(const brc_merge_tree *m, const char *path)
{
    return m->ops->favour(m->ops->ctx, path);
}

/* Prepares a spot's `merged`. */
static int spot_merged(brc_spot *spot, brc_error *err)
{
    static const brc_buf empty = BRC_BUF_INIT;
    void *p;
    BRC_TRY(brc_new(&p, sizeof(brc_merged_node), err));
    spot->merged = p;
    spot->merged->text = empty;
    spot->merged->doc = spot->entry.doc;
    spot->merged->storage = spot->entry.storage;
    spot->merged->map = spot->entry.map;
    return BRC_OK;
}

/* ==== merge moves ================================ */

/* Says whether either side has moved this node of the base. */
static int merge_has_moved(const brc_merge_tree *m, const char *base)
{
    return brc_move_of_from(m->in.ours_moves, base) != NULL ||
           brc_move_of_from(m->in.theirs_moves, base) != NULL;
}

/* Compares a path with a subtree: < 0, 0 (it is in the subtree) or > 0. */
static int under_order(const char *at, const char *path, size_t len)
{
    int order = strncmp(at, path, len);
    if (order != 0 || len == 0)
        return order;
    return (unsigned char)at[len] < '/' ? -1 : (unsigned char)at[len] > '/';
}

/* Says whether a move begins (from 1) or ends in the subtree of the path. */
static int merge_moves_under(const brc_move_set *set, const char *path, int from)
{
    const size_t len = path[1] != '\0' ? strlen(path) : 0;
    size_t lo = 0, hi = set->n;
    if (len == 0)
        return set->n > 0;
    while (lo < hi) {
        const size_t middle = lo + (hi - lo) / 2;
        const brc_move *move = from ? set->by_from[middle] : &set->items[middle];
        const int order = under_order(from ? move->from : move->to, path, len);
        if (order == 0)
            return 1;
        if (order < 0)
            lo = middle + 1;
        else
            hi = middle;
    }
    return 0;
}

/* Says whether on either side a move leads out of the node or into it. */
static int merge_is_crossed(const brc_merge_tree *m, const brc_tri *at)
{
    const brc_move_set *ours = m->in.ours_moves, *theirs = m->in.theirs_moves;
    if (at->et.kind != BRC_GROUP)
        return 0;
    return (at->b != NULL && (merge_moves_under(ours, at->b, 1) ||
                              merge_moves_under(theirs, at->b, 1))) ||
           (at->o != NULL && merge_moves_under(ours, at->o, 0)) ||
           (at->t != NULL && merge_moves_under(theirs, at->t, 0));
}

/* ---- nodes by name -------------------------------- */

/* Finds a node of the base on one side. If it is gone, *path is NULL and its kind is 0. */
static int merge_follow(brc_merge_tree *m, const brc_oid *side, const brc_move_set *moves,
                        const char *base, const char **path, brc_entry *entry, brc_error *err)
{
    brc_buf there = BRC_BUF_INIT, back = BRC_BUF_INIT;
    int has, rc;
    memset(entry, 0, sizeof(*entry));
    *path = NULL;
    BRC_GO(brc_move_target(&there, moves, base, 0, err));
    BRC_GO(brc_move_origin(&back, &has, moves, (const char *)there.data, err));
    if (!has || strcmp((const char *)back.data, base) != 0)
        goto done;
    BRC_GO(brc_snapshot_find(m->store, side, (const char *)there.data, entry, err));
    if (entry->kind != 0)
        rc = brc_merge_text(m, (const char *)there.data, strlen((const char *)there.data), path,
                            err);
done:
    brc_buf_dispose(&there);
    brc_buf_dispose(&back);
    return rc;
}

/* Finds the spot of a node that the base has. */
static int spot_by_base(brc_merge_tree *m, const char *path, int *in_base, brc_spot **out,
                        brc_error *err)
{
    brc_buf origin = BRC_BUF_INIT;
    brc_entry entry;
    const char *ours;
    int rc;
    *out = NULL;
    BRC_GO(brc_move_origin(&origin, in_base, m->in.theirs_moves, path, err));
    if (!*in_base)
        goto done;
    const char *base = (const char *)origin.data;
    BRC_GO(brc_snapshot_find(m->store, &m->in.base, base, &entry, err));
    *in_base = entry.kind != 0;
    if (!*in_base)
        goto done;
    BRC_GO(merge_follow(m, &m->in.ours, m->in.ours_moves, base, &ours, &entry, err));
    if (ours != NULL)
        rc = brc_spot_of_ours(m, ours, out, err);
done:
    brc_buf_dispose(&origin);
    return rc;
}

/* Finds the spot of a node that both sides have made. */
static int spot_of_both(brc_merge_tree *m, const brc_spot *above, const char *name, brc_spot **out,
                        brc_error *err)
{
    const char *path;
    *out = NULL;
    if (above->ours == NULL)
        return BRC_OK;
    BRC_TRY(merge_join(m, above->ours, name, &path, err));
    if (brc_move_of_to(m->in.ours_moves, path) != NULL)
        return BRC_OK;
    return brc_spot_of_ours(m, path, out, err);
}

int brc_merge_spot_of_theirs(brc_merge_tree *m, const char *path, brc_spot **out, brc_error *err)
{
    int in_base = 0;
    const char *at = path, *upto = NULL;
    *out = NULL;
    for (;;) { /* go up to a node that is known */
        *out = spot_of_theirs(m, at);
        if (*out == NULL)
            BRC_TRY(spot_by_base(m, at, &in_base, out, err));
        if (*out != NULL || in_base || at[1] == '\0')
            break;
        BRC_TRY(brc_merge_above(m, at, &at, err));
    }
    for (size_t len = strlen(at); *out != NULL && path[len] != '\0' && len > 0;) { /* and down */
        len = len == 1 ? 1 : len + 1;
        len += strcspn(path + len, "/");
        BRC_TRY(brc_merge_text(m, path, len, &upto, err));
        BRC_TRY(spot_of_both(m, *out, brc_merge_name(upto), out, err));
    }
    return BRC_OK;
}

/* ---- is there a difference? -------------------------------- */

typedef struct change_look {
    brc_merge_tree *m;
    const brc_move_set *moves; /* the moves of the side */
    const brc_tri *at;         /* b and t: the pair whose children are compared */
    void *due;                 /* brc_tri[]: pairs still to be compared */
    size_t n, cap;
    int changed;
} change_look;

static int look_child(void *ctx, const char *key, const brc_entry *a, const brc_entry *b,
                      brc_error *err)
{
    change_look *look = ctx;
    brc_merge_tree *m = look->m;
    brc_tri child = {.eb = *a, .et = *b};
    const char *name = NULL;
    int has_base = a->kind != 0;
    if (look->changed)
        return BRC_OK;
    BRC_TRY(brc_merge_text(m, key, strlen(key), &name, err));
    if (has_base) {
        BRC_TRY(merge_join(m, look->at->b, name, &child.b, err));
        has_base = !merge_has_moved(m, child.b);
    }
    if (b->kind != 0)
        BRC_TRY(merge_join(m, look->at->t, name, &child.t, err));
    if (!has_base && b->kind == 0)
        return BRC_OK;
    look->changed = !has_base || b->kind == 0 || brc_move_of_to(look->moves, child.t) != NULL ||
                    brc_move_has_made(look->moves, child.t);
    if (look->changed)
        return BRC_OK;
    BRC_TRY(brc_grow_array(&look->due, &look->cap, look->n + 1, sizeof(child), err));
    ((brc_tri *)look->due)[look->n++] = child;
    return BRC_OK;
}

static int look_pair(change_look *look, const brc_tri *at, brc_error *err)
{
    int same;
    if (brc_entry_equal(&at->eb, &at->et))
        return BRC_OK;
    look->changed = at->eb.kind != at->et.kind;
    if (look->changed)
        return BRC_OK;
    BRC_TRY(brc_budget_take(&look->m->budget, err));
    BRC_TRY(look->m->ops->same(look->m->ops->ctx, &at->eb, &at->et, &same, err));
    look->changed = !same;
    if (look->changed || at->eb.kind != BRC_GROUP)
        return BRC_OK;
    look->at = at;
    return brc_children_diff(look->m->store, &at->eb, &at->et, look_child, look, err);
}

/* Checks whether a side (theirs is 1) differs from the base at or under a node in anything but
 * storage. Nodes that have moved out of it do not count. */
static int merge_changed(brc_merge_tree *m, const brc_tri *at, int theirs, int *changed,
                         brc_error *err)
{
    change_look look = {.m = m, .moves = theirs ? m->in.theirs_moves : m->in.ours_moves};
    brc_tri pair = *at;
    if (!theirs) {
        pair.t = at->o;
        pair.et = at->eo;
    }
    int rc = look_pair(&look, &pair, err);
    while (rc == BRC_OK && look.n > 0 && !look.changed) {
        const brc_tri next = ((brc_tri *)look.due)[--look.n];
        rc = look_pair(&look, &next, err);
    }
    free(look.due);
    *changed = look.changed;
    return rc;
}

/* ==== merge walk ================================ */

/* Notes a conflict about a node itself; `path` is its path in ours or theirs. */
static int node_clash(brc_merge_tree *m, const char *path, const brc_tri *at, brc_error *err)
{
    brc_clash *clash;
    brc_spot *spot = NULL;
    BRC_TRY(brc_clash_add(&m->clashes, path, BRC_CLASH_NODE, &clash, err));
    BRC_TRY(brc_clash_entries(clash, &at->eb, &at->eo, &at->et, brc_store_id_len(m->store), err));
    if (m->ops->unknown == NULL || at->o == NULL)
        return BRC_OK;
    BRC_TRY(brc_spot_of_ours(m, at->o, &spot, err));
    if (spot != NULL)
        spot->entry = *m->ops->unknown;
    return BRC_OK;
}

static int tri_add(brc_merge_tree *m, const brc_tri *tri, brc_error *err)
{
    BRC_TRY(brc_grow_array(&m->due, &m->due_cap, m->ndue + 1, sizeof(*tri), err));
    ((brc_tri *)m->due)[m->ndue++] = *tri;
    return BRC_OK;
}

/* ---- children -------------------------------- */

typedef struct child_sides {
    const char *name;
    brc_entry a, b;
} child_sides;

typedef struct child_list {
    brc_merge_tree *m;
    void *items; /* child_sides[] */
    size_t n, cap;
} child_list;

static int child_collect(void *ctx, const char *name, const brc_entry *a, const brc_entry *b,
                         brc_error *err)
{
    child_list *list = ctx;
    child_sides child = {.a = *a, .b = *b};
    BRC_TRY(brc_merge_text(list->m, name, strlen(name), &child.name, err));
    BRC_TRY(brc_grow_array(&list->items, &list->cap, list->n + 1, sizeof(child), err));
    ((child_sides *)list->items)[list->n++] = child;
    return BRC_OK;
}

/* Finds the node of ours at a child's place, unless it was moved there. */
static int child_of_ours(brc_merge_tree *m, const brc_tri *group, brc_tri *child, brc_error *err)
{
    const char *path;
    brc_entry entry;
    if (group->o == NULL || group->eo.kind != BRC_GROUP)
        return BRC_OK;
    BRC_TRY(merge_join(m, group->o, child->name, &path, err));
    if (brc_move_of_to(m->in.ours_moves, path) != NULL)
        return BRC_OK;
    BRC_TRY(brc_entry_find(m->store, &group->eo, child->name, &entry, err));
    if (entry.kind == 0)
        return BRC_OK;
    child->o = path;
    child->eo = entry;
    return BRC_OK;
}

static void forget_base(brc_tri *at)
{
    at->b = NULL;
    memset(&at->eb, 0, sizeof(at->eb));
}

/* Finds out which side has removed the base's node and made another. A new node that is equal to
 * the base's counts as the same node. Sets *due to 0 if nothing needs to be done. */
static void look_who_made(const brc_merge_tree *m, brc_tri *at, int *due)
{
    const int ours = at->o != NULL && brc_move_has_made(m->in.ours_moves, at->o) &&
                     !brc_entry_equal(&at->eb, &at->eo);
    const int theirs = at->t != NULL && brc_move_has_made(m->in.theirs_moves, at->t) &&
                       !brc_entry_equal(&at->eb, &at->et);
    *due = !ours || at->t != NULL;
    if (at->b == NULL)
        *due = 1;
    else if (theirs && (ours || at->o == NULL))
        forget_base(at);
    else if (ours || theirs)
        at->made_by = ours ? BRC_FAVOUR_OURS : BRC_FAVOUR_THEIRS;
}

/* Adds a child to the nodes to be visited. A child that has moved is visited separately, and so is
 * a node that moved to its old place. The exception is a node that theirs made where ours has moved
 * the child away. */
static int child_due(brc_merge_tree *m, const brc_tri *group, brc_spot *spot,
                     const child_sides *sides, brc_error *err)
{
    brc_tri child = {.above = spot, .name = sides->name};
    int moved = 0, due;
    if (sides->a.kind != 0) {
        BRC_TRY(merge_join(m, group->b, sides->name, &child.b, err));
        child.eb = sides->a;
        moved = merge_has_moved(m, child.b);
    }
    if (sides->b.kind != 0) {
        BRC_TRY(merge_join(m, group->t, sides->name, &child.t, err));
        child.et = sides->b;
        if (brc_move_of_to(m->in.theirs_moves, child.t) != NULL) {
            memset(&child.et, 0, sizeof(child.et));
            child.t = NULL;
        }
    }
    if (moved && (child.t == NULL || !brc_move_has_made(m->in.theirs_moves, child.t)))
        return BRC_OK;
    if (moved)
        forget_base(&child);
    BRC_TRY(child_of_ours(m, group, &child, err));
    look_who_made(m, &child, &due);
    return due ? tri_add(m, &child, err) : BRC_OK;
}

/* Adds the children that theirs has changed since the base. */
static int children_due(brc_merge_tree *m, const brc_tri *group, brc_spot *spot, brc_error *err)
{
    child_list list = {.m = m};
    int rc;
    BRC_GO(brc_children_diff(m->store, &group->eb, &group->et, child_collect, &list, err));
    for (size_t i = 0; i < list.n; i++)
        BRC_GO(child_due(m, group, spot, &((child_sides *)list.items)[i], err));
done:
    free(list.items);
    return rc;
}

/* ---- one node -------------------------------- */

/* Replaces the node by that of theirs, with everything under it. Nodes that were moved into it are
 * visited separately. */
static int become_theirs(brc_merge_tree *m, const brc_tri *at, brc_spot *spot, brc_error *err)
{
    brc_tri alone = {.t = at->t, .et = at->et};
    spot->entry = at->et;
    if (at->et.kind != BRC_GROUP || !merge_moves_under(m->in.theirs_moves, at->t, 0))
        return BRC_OK;
    memset(&spot->entry.map, 0, sizeof(spot->entry.map));
    return children_due(m, &alone, spot, err);
}

static int visit_added(brc_merge_tree *m, const brc_tri *at, brc_error *err)
{
    brc_spot *spot = NULL;
    if (at->above == NULL)
        return node_clash(m, at->t, at, err);
    BRC_TRY(brc_spot_show(m, at->above, at->name, err));
    BRC_TRY(spot_new(m, at->t, &spot, err));
    spot->is_op = 1;
    spot->wish = at->above;
    spot->wish_name = at->name;
    m->nops++;
    return become_theirs(m, at, spot, err);
}

/* Handles a node that ours no longer has: it comes back if theirs is favoured. */
static int gone_clash(brc_merge_tree *m, const brc_tri *at, brc_error *err)
{
    brc_spot *spot = NULL;
    const int favour = brc_merge_favours(m, at->t);
    if (favour == BRC_FAVOUR_NONE)
        return node_clash(m, at->t, at, err);
    if (favour == BRC_FAVOUR_OURS)
        return BRC_OK;
    BRC_TRY(spot_new(m, at->t, &spot, err));
    spot->is_op = 1;
    m->nops++;
    return become_theirs(m, at, spot, err);
}

static int visit_gone(brc_merge_tree *m, const brc_tri *at, brc_error *err)
{
    int changed;
    BRC_TRY(merge_changed(m, at, 1, &changed, err));
    return changed ? gone_clash(m, at, err) : BRC_OK;
}

/* Handles a node that theirs no longer has. */
static int visit_removed(brc_merge_tree *m, const brc_tri *at, brc_error *err)
{
    int changed = at->b != NULL && brc_move_of_from(m->in.ours_moves, at->b) != NULL;
    brc_spot *spot = NULL;
    if (!changed && !brc_entry_equal(&at->eb, &at->eo))
        BRC_TRY(merge_changed(m, at, 0, &changed, err));
    const int favour = brc_merge_favours(m, at->o);
    if (changed && favour == BRC_FAVOUR_NONE)
        return node_clash(m, at->o, at, err);
    if (changed && favour == BRC_FAVOUR_OURS)
        return BRC_OK;
    BRC_TRY(brc_spot_of_ours(m, at->o, &spot, err));
    if (spot != NULL)
        spot->removed = 1;
    return BRC_OK;
}

/* Handles an array on one side and a group on the other, or a replaced node. */
static int visit_replaced(brc_merge_tree *m, const brc_tri *at, brc_error *err)
{
    const int by_theirs = at->made_by != BRC_FAVOUR_NONE ? at->made_by == BRC_FAVOUR_THEIRS
                                                         : at->eb.kind == at->eo.kind;
    int changed = 1;
    brc_spot *spot = NULL;
    if (at->eb.kind != 0)
        BRC_TRY(merge_changed(m, at, !by_theirs, &changed, err));
    const int favour = brc_merge_favours(m, at->o);
    if (changed && favour == BRC_FAVOUR_NONE)
        return node_clash(m, at->o, at, err);
    if (changed ? favour == BRC_FAVOUR_OURS : !by_theirs)
        return BRC_OK;
    BRC_TRY(brc_spot_of_ours(m, at->o, &spot, err));
    if (spot == NULL)
        return BRC_OK;
    spot->is_made = 1;
    return become_theirs(m, at, spot, err);
}

static int contents_later(brc_merge_tree *m, const brc_tri *at, brc_spot *spot, brc_error *err)
{
    BRC_TRY(brc_grow_array(&m->later, &m->later_cap, m->nlater + 1, sizeof(brc_later), err));
    brc_later *later = &((brc_later *)m->later)[m->nlater++];
    *later = (brc_later){{at->o, at->eb, at->eo, at->et}, spot};
    return BRC_OK;
}

int brc_merge_contents(brc_merge_tree *m, brc_error *err)
{
    for (size_t i = 0; i < m->nlater; i++) {
        const brc_later *later = &((const brc_later *)m->later)[i];
        BRC_TRY(spot_merged(later->spot, err));
        BRC_TRY(m->ops->node(m->ops->ctx, &later->place, later->spot->merged, &m->clashes, err));
    }
    return BRC_OK;
}

static int same_document(const brc_entry *a, const brc_entry *b)
{
    return a->kind == b->kind && brc_oid_cmp(&a->doc, &b->doc) == 0 &&
           brc_oid_cmp(&a->storage, &b->storage) == 0;
}

/* Handles a node that has the same kind on both sides and that theirs has changed. */
static int visit_both(brc_merge_tree *m, const brc_tri *given, brc_error *err)
{
    brc_tri at = *given;
    brc_spot *spot = NULL;
    BRC_TRY(brc_spot_of_ours(m, at.o, &spot, err));
    if (spot == NULL)
        return brc_fail(err, BRC_ECORRUPT, "%.300s is not where it was: run 'breccia fsck'", at.o);
    if (at.b == NULL)
        BRC_TRY(spot_is_theirs(m, spot, at.t, err));
    if (brc_entry_equal(&at.eb, &at.eo) && !merge_is_crossed(m, &at)) {
        spot->entry = at.et;
        return BRC_OK;
    }
    if (at.eb.kind != at.eo.kind) { /* both sides have replaced the node */
        memset(&at.eb, 0, sizeof(at.eb));
        at.b = NULL;
    }
    if (at.eo.kind == BRC_ARRAY || !same_document(&at.eb, &at.et))
        BRC_TRY(contents_later(m, &at, spot, err));
    return at.eo.kind == BRC_GROUP ? children_due(m, &at, spot, err) : BRC_OK;
}

static int tri_visit(brc_merge_tree *m, const brc_tri *at, brc_error *err)
{
    if (brc_entry_equal(&at->et, &at->eb) || brc_entry_equal(&at->et, &at->eo))
        return BRC_OK;
    BRC_TRY(brc_store_check_interrupt(m->store, err));
    BRC_TRY(brc_budget_take(&m->budget, err));
    if (at->eo.kind == 0)
        return at->eb.kind == 0 ? visit_added(m, at, err) : visit_gone(m, at, err);
    if (at->et.kind == 0)
        return visit_removed(m, at, err);
    return at->eo.kind == at->et.kind && at->made_by == BRC_FAVOUR_NONE
               ? visit_both(m, at, err)
               : visit_replaced(m, at, err);
}

static int visit_due(brc_merge_tree *m, brc_error *err)
{
    while (m->ndue > 0) {
        const brc_tri at = ((brc_tri *)m->due)[--m->ndue];
        BRC_TRY(tri_visit(m, &at, err));
        brc_store_breathe(m->store);
    }
    return BRC_OK;
}

/* ---- nodes that have moved -------------------------------- */

/* Visits a moved node for its contents; its place is settled after all nodes have been visited. */
static int visit_moved(brc_merge_tree *m, const char *from, brc_error *err)
{
    brc_tri at = {.b = from};
    brc_spot *spot = NULL;
    const int by_theirs = brc_move_of_from(m->in.theirs_moves, from) != NULL;
    BRC_TRY(brc_snapshot_find(m->store, &m->in.base, from, &at.eb, err));
    BRC_TRY(merge_follow(m, &m->in.ours, m->in.ours_moves, from, &at.o, &at.eo, err));
    BRC_TRY(merge_follow(m, &m->in.theirs, m->in.theirs_moves, from, &at.t, &at.et, err));
    if (at.o == NULL && at.t != NULL && by_theirs)
        return gone_clash(m, &at, err);
    BRC_TRY(tri_add(m, &at, err));
    BRC_TRY(visit_due(m, err));
    if (at.o == NULL || at.t == NULL)
        return BRC_OK;
    BRC_TRY(brc_spot_of_ours(m, at.o, &spot, err));
    if (spot == NULL)
        return BRC_OK;
    BRC_TRY(spot_is_theirs(m, spot, at.t, err));
    spot->is_op = by_theirs;
    m->nops += (size_t)by_theirs;
    spot->clash_base = at.eb;
    return BRC_OK;
}

/* Visits a node that theirs has made in the old place of one of its nodes. */
static int visit_left(brc_merge_tree *m, const brc_move *move, brc_error *err)
{
    const char *above = NULL, *path = NULL;
    brc_tri at = {.name = brc_merge_name(move->from)};
    brc_entry ignored;
    BRC_TRY(brc_merge_above(m, move->from, &above, err));
    BRC_TRY(merge_follow(m, &m->in.theirs, m->in.theirs_moves, above, &path, &ignored, err));
    if (path == NULL)
        return BRC_OK;
    BRC_TRY(merge_join(m, path, at.name, &at.t, err));
    if (brc_move_of_to(m->in.theirs_moves, at.t) != NULL)
        return BRC_OK;
    BRC_TRY(brc_snapshot_find(m->store, &m->in.theirs, at.t, &at.et, err));
    BRC_TRY(brc_merge_spot_of_theirs(m, path, &at.above, err));
    if (brc_move_of_from(m->in.ours_moves, move->from) != NULL && at.above != NULL &&
        at.above->ours != NULL) {
        const brc_tri group = {.o = at.above->ours, .eo = at.above->before};
        BRC_TRY(child_of_ours(m, &group, &at, err));
    }
    BRC_TRY(tri_add(m, &at, err));
    return visit_due(m, err);
}

int brc_merge_walk(brc_merge_tree *m, brc_error *err)
{
    brc_tri top = {.b = "/", .o = "/", .t = "/"};
    const brc_move_set *ours = m->in.ours_moves, *theirs = m->in.theirs_moves;
    BRC_TRY(brc_snapshot_find(m->store, &m->in.base, "/", &top.eb, err));
    BRC_TRY(brc_snapshot_find(m->store, &m->in.theirs, "/", &top.et, err));
    top.eo = m->root->before;
    BRC_TRY(tri_add(m, &top, err));
    BRC_TRY(visit_due(m, err));
    for (size_t i = 0; i < theirs->n; i++)
        if (!brc_move_is_made(&theirs->items[i]))
            BRC_TRY(visit_moved(m, theirs->items[i].from, err));
    for (size_t i = 0; i < ours->n; i++)
        if (!brc_move_is_made(&ours->items[i]) &&
            brc_move_of_from(theirs, ours->items[i].from) == NULL)
            BRC_TRY(visit_moved(m, ours->items[i].from, err));
    for (size_t i = 0; i < theirs->n; i++)
        if (!brc_move_is_made(&theirs->items[i]))
            BRC_TRY(visit_left(m, &theirs->items[i], err));
    return BRC_OK;
}
