/*
 * All wishes are granted at once. Then each that cannot be is taken back: one whose way up does not
 * end at the root (two moves into each other), leads through a node that is gone, or is too deep;
 * and one of two that have the same place. That may be in the way of another, so it goes on until
 * all stand; each turn takes back one at least.
 */
#include "merge_settle.h"

#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "merge_moves.h"

/* ---- wishes -------------------------------- */

/* A node of theirs that comes back: its group may be anywhere, or gone. */
static int wish_of_return(brc_merge_tree *m, brc_spot *spot, int *clash, brc_error *err)
{
    const char *above;
    BRC_TRY(brc_merge_above(m, spot->theirs, &above, err));
    BRC_TRY(brc_merge_spot_of_theirs(m, above, &spot->wish, err));
    spot->wish_name = brc_merge_name(spot->theirs);
    *clash = spot->wish == NULL;
    return *clash ? BRC_OK : brc_spot_show(m, spot->wish, spot->wish_name, err);
}

/* Theirs has moved it; perhaps ours has, too. */
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
        spot->is_op = 0; /* both have moved it there */
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

/* What theirs has removed or replaced stays, if a node has to stay in it. */
static void keep_above(brc_spot *spot)
{
    for (; spot != NULL; spot = spot->was) {
        spot->removed = 0;
        if (spot->entry.kind != BRC_GROUP)
            spot->entry = spot->before;
    }
}

/* A conflict about its place. Ours: where it is; theirs: where it should be. */
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

/* Whether its way leads to the root. */
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

/* Of two at one place: the one that may be refused. */
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
    brc_spot *last = kept > 0 ? all[0] : NULL; /* the one that has the place so far */
    for (size_t i = 1; i < kept; i++) {
        if (place_order(&last, &all[i]) != 0) {
            last = all[i];
            continue;
        }
        brc_spot *spot = later_of(last, all[i]);
        if (!spot->is_op) /* both are where ours has them: that cannot be */
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

int brc_merge_settle_places(brc_merge_tree *m, brc_error *err)
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
