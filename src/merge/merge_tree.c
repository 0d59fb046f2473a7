/*
 * Settles the places of nodes. At first, every op is put where theirs has it. Then ops that cannot
 * stay there are taken back: an op from which the way up does not reach the root (two moves into
 * each other), leads through a removed node or is too deep, and one of two nodes that have the same
 * place. An op that is taken back may get in the way of another, so this repeats until all can
 * stay; each turn takes back at least one op.
 */
#include "merge_tree.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../history/totals.h"

/* ==== merge settle ================================ */

/* ---- wishes -------------------------------- */

/* Finds the place of a node of theirs that comes back: its group may have moved, or be gone. */
static int wish_of_return(brc_merge_tree *m, brc_spot *spot, int *clash, brc_error *err)
{
    const char *above;
    BRC_TRY(brc_merge_above(m, spot->theirs, &above, err));
    BRC_TRY(brc_merge_spot_of_theirs(m, above, &spot->wish, err));
    spot->wish_name = brc_merge_name(spot->theirs);
    *clash = spot->wish == NULL;
    return *clash ? BRC_OK : brc_spot_show(m, spot->wish, spot->wish_name, err);
}

/* Finds the place of a node that theirs has moved; ours may have moved it too. */
static int wish_of_move(brc_merge_tree *m, brc_spot *spot, int *clash, brc_error *err)
{
    const char *above;
    brc_buf origin = BRC_BUF_INIT;
    int has, rc;
    *clash = 0;
    BRC_GO(brc_merge_above(m, spot->theirs, &above, err));
    BRC_GO(brc_merge_spot_of_theirs(m, above, &spot->wish, err));
    spot->wish_name = brc_merge_name(spot->theirs);
    if (spot->wish != NULL)
        BRC_GO(brc_spot_show(m, spot->wish, spot->wish_name, err));
    if (spot->wish == spot->was && strcmp(spot->wish_name, spot->was_name) == 0) {
        spot->is_op = 0; /* both sides have moved it to this place */
        goto done;
    }
    BRC_GO(brc_move_origin(&origin, &has, m->in.theirs_moves, spot->theirs, err));
    *clash = spot->wish == NULL ||
             (brc_move_of_from(m->in.ours_moves, (const char *)origin.data) != NULL &&
              brc_merge_favours(m, spot->ours) != BRC_FAVOUR_THEIRS);
done:
    brc_buf_dispose(&origin);
    return rc;
}

/* Keeps the groups that theirs has removed or replaced if a node has to stay in them. */
static void keep_above(brc_spot *spot)
{
    for (; spot != NULL; spot = spot->was) {
        spot->removed = 0;
        if (spot->entry.kind != BRC_GROUP)
            spot->entry = spot->before;
    }
}

/* Takes an op back, and notes a conflict about its place: where ours has it, and where theirs has
 * it. */
static int refuse(brc_merge_tree *m, brc_spot *spot, brc_error *err)
{
    brc_clash *clash;
    static const brc_entry none;
    spot->is_op = 0;
    spot->parent = spot->was;
    spot->name = spot->was_name;
    keep_above(spot->was);
    if (spot->ours == NULL)
        spot->removed = 1;
    if (brc_merge_favours(m, spot->ours != NULL ? spot->ours : spot->theirs) == BRC_FAVOUR_OURS)
        return BRC_OK;
    if (spot->ours == NULL) {
        BRC_TRY(brc_clash_add(&m->clashes, spot->theirs, BRC_CLASH_NODE, &clash, err));
        return brc_clash_entries(clash, &none, &none, &spot->entry, brc_store_id_len(m->store),
                                 err);
    }
    BRC_TRY(brc_clash_add(&m->clashes, spot->ours, BRC_CLASH_PLACE, &clash, err));
    return brc_clash_texts(clash, NULL, spot->ours, spot->theirs, err);
}

/* ---- turns -------------------------------- */

static int place_order(const void *a, const void *b)
{
    const brc_spot *x = *(brc_spot *const *)a, *y = *(brc_spot *const *)b;
    if (x->parent != y->parent)
        return (uintptr_t)x->parent < (uintptr_t)y->parent ? -1 : 1;
    return x->name != NULL && y->name != NULL ? strcmp(x->name, y->name) : 0;
}

/* Says whether the way up leads to the root. */
static int reaches_root(const brc_merge_tree *m, const brc_spot *spot)
{
    for (size_t depth = 0; depth <= BRC_DEPTH_MAX; depth++, spot = spot->parent) {
        if (spot == m->root)
            return 1;
        if (spot->removed || spot->parent == NULL)
            return 0;
        const brc_spot *above = spot->parent;
        if (above->entry.kind != BRC_GROUP)
            return 0;
    }
    return 0;
}

/* Returns the one of two nodes at one place that may be taken back. */
static brc_spot *later_of(brc_spot *a, brc_spot *b)
{
    if (!a->is_op || !b->is_op)
        return a->is_op ? a : b;
    return strcmp(a->theirs, b->theirs) > 0 ? a : b;
}

static int refuse_lost(brc_merge_tree *m, brc_spot **all, size_t n, int *again, brc_error *err)
{
    for (size_t i = 0; i < n; i++)
        if (all[i]->is_op && !all[i]->removed && !reaches_root(m, all[i])) {
            BRC_TRY(refuse(m, all[i], err));
            *again = 1;
        }
    return BRC_OK;
}

static int refuse_doubles(brc_merge_tree *m, brc_spot **all, size_t n, int *again, brc_error *err)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (!all[i]->removed && all[i]->parent != NULL)
            all[kept++] = all[i];
    if (kept > 1)
        qsort(all, kept, sizeof(*all), place_order);
    brc_spot *last = kept > 0 ? all[0] : NULL; /* the node that has the place so far */
    for (size_t i = 1; i < kept; i++) {
        if (place_order(&last, &all[i]) != 0) {
            last = all[i];
            continue;
        }
        brc_spot *spot = later_of(last, all[i]);
        if (!spot->is_op) /* ours cannot have two nodes at one place */
            return brc_fail(err, BRC_EINTERNAL, "two nodes of one side are at %.300s", spot->ours);
        last = spot == last ? all[i] : last;
        BRC_TRY(refuse(m, spot, err));
        *again = 1;
    }
    return BRC_OK;
}

static size_t list_spots(const brc_merge_tree *m, brc_spot **all)
{
    size_t n = 0;
    for (brc_spot *spot = m->spots; spot != NULL; spot = spot->next)
        all[n++] = spot;
    return n;
}

static int settle_turns(brc_merge_tree *m, brc_spot **all, brc_error *err)
{
    int again = 1;
    while (again) {
        again = 0;
        const size_t n = list_spots(m, all);
        BRC_TRY(refuse_lost(m, all, n, &again, err));
        if (!again)
            BRC_TRY(refuse_doubles(m, all, n, &again, err));
    }
    return BRC_OK;
}

static int grant_wishes(brc_merge_tree *m, brc_error *err)
{
    int clash;
    for (brc_spot *spot = m->spots; spot != NULL; spot = spot->next) {
        if (!spot->is_op)
            continue;
        clash = 0;
        if (spot->ours != NULL)
            BRC_TRY(wish_of_move(m, spot, &clash, err));
        else if (spot->wish == NULL)
            BRC_TRY(wish_of_return(m, spot, &clash, err));
        if (clash)
            BRC_TRY(refuse(m, spot, err));
    }
    for (brc_spot *spot = m->spots; spot != NULL; spot = spot->next)
        if (spot->is_op) {
            spot->parent = spot->wish;
            spot->name = spot->wish_name;
        }
    return BRC_OK;
}

/* Puts each op where theirs has it, or notes a conflict and leaves the node where ours has it. */
static int merge_settle_places(brc_merge_tree *m, brc_error *err)
{
    void *p;
    if (m->nops == 0)
        return BRC_OK;
    BRC_TRY(grant_wishes(m, err));
    BRC_TRY(brc_new_array(&p, m->nspots + 1, sizeof(brc_spot *), err));
    int rc = settle_turns(m, p, err);
    free(p);
    return rc;
}

/* ==== merge tree ================================ */

int brc_merged_chunk(brc_merged_node *node, brc_span key, const brc_oid *id, size_t id_len,
                     brc_error *err)
{
    uint8_t *k, *v = NULL;
    BRC_TRY(brc_grow_array(&node->edits, &node->cap, node->nedits + 1, sizeof(brc_edit), err));
    BRC_TRY(brc_arena_copy(&node->arena, key.data, key.len, &k, err));
    if (!brc_oid_is_zero(id))
        BRC_TRY(brc_arena_copy(&node->arena, id->bytes, id_len, &v, err));
    ((brc_edit *)node->edits)[node->nedits++] = (brc_edit){k, key.len, v, id_len};
    return BRC_OK;
}

/* ---- finding out -------------------------------- */

/* Names nodes in conflict by their paths in the result. */
static int name_clashes(brc_merge_tree *m, brc_error *err)
{
    brc_buf path = BRC_BUF_INIT;
    int rc = BRC_OK;
    for (size_t i = 0; i < m->clashes.n && m->nops > 0; i++) {
        brc_clash *clash = &m->clashes.items[i];
        const brc_spot *spot;
        brc_spot *found = NULL;
        BRC_GO(brc_spot_of_ours(m, clash->path, &found, err));
        spot = found;
        if (spot == NULL || spot->removed)
            continue;
        BRC_GO(brc_spot_path(spot, &path, err));
        char *text;
        BRC_GO(brc_dup(&text, (const char *)path.data, err));
        free(clash->path);
        clash->path = text;
    }
    brc_clash_list_sort(&m->clashes);
done:
    brc_buf_dispose(&path);
    return rc;
}

int brc_merge_tree_new(brc_merge_tree **out, brc_store *store, const brc_merge_three *input,
                       const brc_merge_ops *ops, brc_error *err)
{
    void *p;
    int rc;
    *out = NULL;
    BRC_TRY(brc_new(&p, sizeof(brc_merge_tree), err));
    brc_merge_tree *m = p;
    m->store = store;
    m->in = *input;
    m->ops = ops;
    m->budget = brc_budget_of(store);
    if (m->in.ours_moves == NULL)
        m->in.ours_moves = &m->none;
    if (m->in.theirs_moves == NULL)
        m->in.theirs_moves = &m->none;
    BRC_GO(brc_spots_start(m, err));
    BRC_GO(brc_store_begin_read(store, err));
    rc = brc_merge_walk(m, err);
    brc_store_end_read(store);
    if (rc == BRC_OK)
        BRC_GO(brc_merge_contents(m, err));
    if (rc < 0)
        goto done;
    BRC_GO(merge_settle_places(m, err));
    rc = name_clashes(m, err);
done:
    if (rc < 0)
        brc_merge_tree_free(m);
    else
        *out = m;
    return rc;
}

void brc_merge_tree_free(brc_merge_tree *m)
{
    if (m == NULL)
        return;
    brc_spots_free(m);
    brc_clash_list_dispose(&m->clashes);
    brc_move_set_dispose(&m->none);
    free(m->due);
    free(m->later);
    free(m);
}

brc_clash_list *brc_merge_tree_clashes(brc_merge_tree *m)
{
    return &m->clashes;
}

/* ---- writing -------------------------------- */

/* The most edits in one transaction: as many as a commit folds in one (work/fold.h). */
#define MERGE_ROWS ((size_t)8192)

static int edit_map(brc_merge_tree *m, brc_oid *map, const brc_edit *edits, size_t n,
                    brc_error *err)
{
    brc_oid out;
    BRC_TRY(brc_map_edit_total(m->store, map, edits, n, NULL, &out, err));
    *map = out;
    return BRC_OK;
}

static int ahead_of(brc_merge_tree *m, brc_merged_node *node, brc_error *err)
{
    for (size_t at = 0; at < node->nedits; at += MERGE_ROWS) {
        const size_t n = node->nedits - at < MERGE_ROWS ? node->nedits - at : MERGE_ROWS;
        BRC_TRY(brc_store_check_interrupt(m->store, err));
        BRC_TRY(brc_store_begin(m->store, err));
        int rc = edit_map(m, &node->map, (brc_edit *)node->edits + at, n, err);
        int end = brc_store_end(m->store, rc == BRC_OK, rc == BRC_OK ? err : NULL);
        BRC_TRY(rc < 0 ? rc : end);
    }
    node->nedits = 0;
    return BRC_OK;
}

int brc_merge_tree_ahead(brc_merge_tree *m, brc_error *err)
{
    size_t total = 0;
    for (const brc_spot *spot = m->spots; spot != NULL; spot = spot->next)
        total += spot->merged != NULL ? spot->merged->nedits : 0;
    for (brc_spot *spot = m->spots; spot != NULL && total > MERGE_ROWS; spot = spot->next)
        if (spot->merged != NULL)
            BRC_TRY(ahead_of(m, spot->merged, err));
    return BRC_OK;
}

/* Adds an edit of a parent's map; entry NULL: the name is removed. */
static int spot_edit(brc_merge_tree *m, brc_spot *parent, const char *name, const brc_entry *entry,
                     brc_error *err)
{
    uint8_t bytes[BRC_ENTRY_MAX], *value = NULL;
    const char *key; /* includes the NUL, like a child's key */
    size_t len = 0;
    BRC_TRY(brc_grow_array(&parent->edits, &parent->cap, parent->nedits + 1, sizeof(brc_edit),
                           err));
    BRC_TRY(brc_merge_text(m, name, strlen(name), &key, err));
    if (entry != NULL) {
        len = brc_entry_encode(bytes, entry, brc_store_id_len(m->store));
        BRC_TRY(brc_arena_copy(&m->arena, bytes, len, &value, err));
    }
    ((brc_edit *)parent->edits)[parent->nedits++] =
        (brc_edit){(const uint8_t *)key, strlen(name) + 1, value, len};
    return BRC_OK;
}

/* Sorts by name; puts come before removals. */
static int spot_edit_order(const void *a, const void *b)
{
    const brc_edit *x = a, *y = b;
    int order = strcmp((const char *)x->key, (const char *)y->key);
    return order != 0 ? order : (x->value == NULL) - (y->value == NULL);
}

static int write_children(brc_merge_tree *m, brc_spot *spot, brc_error *err)
{
    brc_edit *edits = spot->edits;
    size_t kept = 0;
    if (spot->nedits > 1)
        qsort(edits, spot->nedits, sizeof(*edits), spot_edit_order);
    for (size_t i = 0; i < spot->nedits; i++)
        if (kept == 0 ||
            strcmp((const char *)edits[kept - 1].key, (const char *)edits[i].key) != 0)
            edits[kept++] = edits[i];
    return kept > 0 ? edit_map(m, &spot->entry.map, edits, kept, err) : BRC_OK;
}

static int write_own(brc_merge_tree *m, brc_spot *spot, brc_error *err)
{
    brc_merged_node *node = spot->merged;
    if (node == NULL)
        return BRC_OK;
    if (node->text.len > 0)
        BRC_TRY(brc_store_put(m->store, BRC_KIND_DOCUMENT, node->text.data, node->text.len,
                              &node->doc, err));
    spot->entry.doc = node->doc;
    spot->entry.storage = node->storage;
    if (spot->entry.kind != BRC_ARRAY)
        return BRC_OK;
    if (node->nedits > 0)
        BRC_TRY(edit_map(m, &node->map, node->edits, node->nedits, err));
    node->nedits = 0;
    spot->entry.map = node->map;
    return BRC_OK;
}

/* Returns the depth of a spot, so that the deepest are written first; 0 if it is not in the
 * result. */
static size_t depth_of(const brc_spot *spot)
{
    size_t depth = 1;
    for (; spot->parent != NULL && !spot->removed; spot = spot->parent)
        depth++;
    return spot->removed ? 0 : depth;
}

static int depth_order(const void *a, const void *b)
{
    const brc_spot *x = *(brc_spot *const *)a, *y = *(brc_spot *const *)b;
    return (x->depth < y->depth) - (x->depth > y->depth);
}

static int write_spots(brc_merge_tree *m, brc_spot **all, brc_error *err)
{
    size_t n = 0;
    for (brc_spot *spot = m->spots; spot != NULL; spot = spot->next) {
        if (spot->was != NULL && (spot->removed || spot->parent != spot->was ||
                                  strcmp(spot->name, spot->was_name) != 0))
            BRC_TRY(spot_edit(m, spot->was, spot->was_name, NULL, err));
        spot->depth = depth_of(spot);
        if (spot->depth > 0)
            all[n++] = spot;
    }
    qsort(all, n, sizeof(*all), depth_order);
    for (size_t i = 0; i < n; i++) {
        BRC_TRY(write_own(m, all[i], err));
        BRC_TRY(write_children(m, all[i], err));
        if (all[i]->parent != NULL)
            BRC_TRY(spot_edit(m, all[i]->parent, all[i]->name, &all[i]->entry, err));
    }
    return BRC_OK;
}

int brc_merge_tree_put(brc_merge_tree *m, brc_oid *root, brc_error *err)
{
    void *all;
    BRC_TRY(brc_new_array(&all, m->nspots, sizeof(brc_spot *), err));
    int rc = write_spots(m, all, err);
    free(all);
    if (rc == BRC_OK)
        rc = brc_snapshot_put(m->store, &m->root->entry, root, err);
    return rc < 0 ? rc : brc_map_total_follow(m->store, &m->in.ours, root, err);
}

int brc_merge_tree_moves(brc_merge_tree *m, const brc_oid *root, brc_move_set *out, brc_error *err)
{
    brc_buf path = BRC_BUF_INIT;
    int rc = BRC_OK;
    memset(out, 0, sizeof(*out));
    for (const brc_spot *spot = m->spots; spot != NULL; spot = spot->next) {
        if (spot->ours == NULL || (!spot->is_op && !spot->is_made) || depth_of(spot) == 0)
            continue;
        BRC_GO(brc_spot_path(spot, &path, err));
        if (spot->is_made)
            BRC_GO(brc_move_set_add_made(out, (const char *)path.data, err));
        else
            BRC_GO(brc_move_set_add(out, spot->ours, (const char *)path.data, err));
    }
    BRC_GO(brc_move_set_seal(out, err));
    rc = brc_move_set_reduce(out, m->store, &m->in.ours, root, err);
done:
    brc_buf_dispose(&path);
    if (rc < 0)
        brc_move_set_dispose(out);
    return rc;
}
