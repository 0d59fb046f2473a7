#include "merge_walk.h"

#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "merge_moves.h"

/* A conflict about a node itself; `path` in ours or theirs. */
static int node_clash(brc_merge_tree *m, const char *path, const brc_tri *at, brc_error *err)
{
    brc_clash *clash;
    brc_spot *spot;
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

static int child_collect(void *ctx, brc_span key, brc_span a, brc_span b, brc_error *err)
{
    child_list *list = ctx;
    const size_t id_len = brc_store_id_len(list->m->store);
    child_sides child;
    memset(&child, 0, sizeof(child));
    if (a.data != NULL)
        BRC_TRY(brc_child_decode(&child.a, key, a, id_len, err));
    if (b.data != NULL)
        BRC_TRY(brc_child_decode(&child.b, key, b, id_len, err));
    BRC_TRY(brc_merge_text(list->m, (const char *)key.data, key.len - 1, &child.name, err));
    BRC_TRY(brc_grow_array(&list->items, &list->cap, list->n + 1, sizeof(child), err));
    ((child_sides *)list->items)[list->n++] = child;
    return BRC_OK;
}

static const brc_oid *children_of(const brc_entry *entry)
{
    static const brc_oid none;
    return entry->kind == BRC_GROUP ? &entry->map : &none;
}

/* What ours has at a child's place, unless it came there from elsewhere. */
static int child_of_ours(brc_merge_tree *m, const brc_tri *group, brc_tri *child, brc_error *err)
{
    const char *path;
    brc_entry entry;
    if (group->o == NULL || group->eo.kind != BRC_GROUP)
        return BRC_OK;
    BRC_TRY(brc_merge_join(m, group->o, child->name, &path, err));
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

/* Theirs or ours may have removed the base's node and made another. What is equal to the base's is
 * as good as that. *due 0: there is nothing to do. */
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

/* A child that has moved is visited by itself, and so is what is now where it was: but for what
 * theirs has made where ours has moved one away. */
static int child_due(brc_merge_tree *m, const brc_tri *group, brc_spot *spot,
                     const child_sides *sides, brc_error *err)
{
    brc_tri child = {.above = spot, .name = sides->name};
    int moved = 0, due;
    if (sides->a.kind != 0) {
        BRC_TRY(brc_merge_join(m, group->b, sides->name, &child.b, err));
        child.eb = sides->a;
        moved = brc_merge_has_moved(m, child.b);
    }
    if (sides->b.kind != 0) {
        BRC_TRY(brc_merge_join(m, group->t, sides->name, &child.t, err));
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

/* Those that theirs has changed since the base. */
static int children_due(brc_merge_tree *m, const brc_tri *group, brc_spot *spot, brc_error *err)
{
    child_list list = {.m = m};
    int rc;
    BRC_GO(brc_map_diff(m->store, children_of(&group->eb), children_of(&group->et), child_collect,
                        &list, err));
    for (size_t i = 0; i < list.n; i++)
        BRC_GO(child_due(m, group, spot, &((child_sides *)list.items)[i], err));
done:
    free(list.items);
    return rc;
}

/* ---- one node -------------------------------- */

/* It becomes theirs, with all under it; what has come there from elsewhere is visited by itself. */
static int become_theirs(brc_merge_tree *m, const brc_tri *at, brc_spot *spot, brc_error *err)
{
    brc_tri alone = {.t = at->t, .et = at->et};
    spot->entry = at->et;
    if (at->et.kind != BRC_GROUP || !brc_merge_moves_under(m->in.theirs_moves, at->t, 0))
        return BRC_OK;
    memset(&spot->entry.map, 0, sizeof(spot->entry.map));
    return children_due(m, &alone, spot, err);
}

static int visit_added(brc_merge_tree *m, const brc_tri *at, brc_error *err)
{
    brc_spot *spot;
    if (at->above == NULL)
        return node_clash(m, at->t, at, err);
    BRC_TRY(brc_spot_show(m, at->above, at->name, err));
    BRC_TRY(brc_spot_new(m, at->t, &spot, err));
    spot->is_op = 1;
    spot->wish = at->above;
    spot->wish_name = at->name;
    m->nops++;
    return become_theirs(m, at, spot, err);
}

/* Ours does not have it any more; it comes back where theirs is favoured. */
static int gone_clash(brc_merge_tree *m, const brc_tri *at, brc_error *err)
{
    brc_spot *spot;
    const int favour = brc_merge_favours(m, at->t);
    if (favour == BRC_FAVOUR_NONE)
        return node_clash(m, at->t, at, err);
    if (favour == BRC_FAVOUR_OURS)
        return BRC_OK;
    BRC_TRY(brc_spot_new(m, at->t, &spot, err));
    spot->is_op = 1;
    m->nops++;
    return become_theirs(m, at, spot, err);
}

static int visit_gone(brc_merge_tree *m, const brc_tri *at, brc_error *err)
{
    int changed;
    BRC_TRY(brc_merge_changed(m, at, 1, &changed, err));
    return changed ? gone_clash(m, at, err) : BRC_OK;
}

/* Theirs does not. */
static int visit_removed(brc_merge_tree *m, const brc_tri *at, brc_error *err)
{
    int changed = at->b != NULL && brc_move_of_from(m->in.ours_moves, at->b) != NULL;
    brc_spot *spot;
    if (!changed && !brc_entry_equal(&at->eb, &at->eo))
        BRC_TRY(brc_merge_changed(m, at, 0, &changed, err));
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

/* An array here and a group there, or another node. */
static int visit_replaced(brc_merge_tree *m, const brc_tri *at, brc_error *err)
{
    const int by_theirs = at->made_by != BRC_FAVOUR_NONE ? at->made_by == BRC_FAVOUR_THEIRS
                                                         : at->eb.kind == at->eo.kind;
    int changed = 1;
    brc_spot *spot;
    if (at->eb.kind != 0)
        BRC_TRY(brc_merge_changed(m, at, !by_theirs, &changed, err));
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
        BRC_TRY(brc_spot_merged(later->spot, err));
        BRC_TRY(m->ops->node(m->ops->ctx, &later->place, later->spot->merged, &m->clashes, err));
    }
    return BRC_OK;
}

static int same_document(const brc_entry *a, const brc_entry *b)
{
    return a->kind == b->kind && brc_oid_cmp(&a->doc, &b->doc) == 0 &&
           brc_oid_cmp(&a->storage, &b->storage) == 0;
}

/* One kind on both sides, and theirs has changed it. */
static int visit_both(brc_merge_tree *m, const brc_tri *given, brc_error *err)
{
    brc_tri at = *given;
    brc_spot *spot;
    BRC_TRY(brc_spot_of_ours(m, at.o, &spot, err));
    if (spot == NULL)
        return brc_fail(err, BRC_ECORRUPT, "%.300s is not where it was: run 'breccia fsck'", at.o);
    if (at.b == NULL)
        BRC_TRY(brc_spot_is_theirs(m, spot, at.t, err));
    if (brc_entry_equal(&at.eb, &at.eo) && !brc_merge_is_crossed(m, &at)) {
        spot->entry = at.et;
        return BRC_OK;
    }
    if (at.eb.kind != at.eo.kind) { /* both have replaced it */
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

/* Contents now; where it goes is settled when all have been seen. */
static int visit_moved(brc_merge_tree *m, const char *from, brc_error *err)
{
    brc_tri at = {.b = from};
    brc_spot *spot;
    const int by_theirs = brc_move_of_from(m->in.theirs_moves, from) != NULL;
    BRC_TRY(brc_snapshot_find(m->store, &m->in.base, from, &at.eb, err));
    BRC_TRY(brc_merge_follow(m, &m->in.ours, m->in.ours_moves, from, &at.o, &at.eo, err));
    BRC_TRY(brc_merge_follow(m, &m->in.theirs, m->in.theirs_moves, from, &at.t, &at.et, err));
    if (at.o == NULL && at.t != NULL && by_theirs)
        return gone_clash(m, &at, err);
    BRC_TRY(tri_add(m, &at, err));
    BRC_TRY(visit_due(m, err));
    if (at.o == NULL || at.t == NULL)
        return BRC_OK;
    BRC_TRY(brc_spot_of_ours(m, at.o, &spot, err));
    if (spot == NULL)
        return BRC_OK;
    BRC_TRY(brc_spot_is_theirs(m, spot, at.t, err));
    spot->is_op = by_theirs;
    m->nops += (size_t)by_theirs;
    spot->clash_base = at.eb;
    return BRC_OK;
}

/* What theirs has made where one of its nodes was. */
static int visit_left(brc_merge_tree *m, const brc_move *move, brc_error *err)
{
    const char *above, *path;
    brc_tri at = {.name = brc_merge_name(move->from)};
    brc_entry ignored;
    BRC_TRY(brc_merge_above(m, move->from, &above, err));
    BRC_TRY(brc_merge_follow(m, &m->in.theirs, m->in.theirs_moves, above, &path, &ignored, err));
    if (path == NULL)
        return BRC_OK;
    BRC_TRY(brc_merge_join(m, path, at.name, &at.t, err));
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
