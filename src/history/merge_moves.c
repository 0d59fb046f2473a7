#include "merge_moves.h"

#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"

int brc_merge_has_moved(const brc_merge_tree *m, const char *base)
{
    return brc_move_of_from(m->in.ours_moves, base) != NULL ||
           brc_move_of_from(m->in.theirs_moves, base) != NULL;
}

/* <0, 0 (it is under the path), >0. */
static int under_order(const char *at, const char *path, size_t len)
{
    int order = strncmp(at, path, len);
    if (order != 0 || len == 0)
        return order;
    return (unsigned char)at[len] < '/' ? -1 : (unsigned char)at[len] > '/';
}

int brc_merge_moves_under(const brc_move_set *set, const char *path, int from)
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

int brc_merge_is_crossed(const brc_merge_tree *m, const brc_tri *at)
{
    const brc_move_set *ours = m->in.ours_moves, *theirs = m->in.theirs_moves;
    if (at->et.kind != BRC_GROUP)
        return 0;
    return (at->b != NULL && (brc_merge_moves_under(ours, at->b, 1) ||
                              brc_merge_moves_under(theirs, at->b, 1))) ||
           (at->o != NULL && brc_merge_moves_under(ours, at->o, 0)) ||
           (at->t != NULL && brc_merge_moves_under(theirs, at->t, 0));
}

/* ---- nodes by name -------------------------------- */

int brc_merge_follow(brc_merge_tree *m, const brc_oid *side, const brc_move_set *moves,
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

/* Of a node that the base has too. */
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
    BRC_GO(brc_merge_follow(m, &m->in.ours, m->in.ours_moves, base, &ours, &entry, err));
    if (ours != NULL)
        rc = brc_spot_of_ours(m, ours, out, err);
done:
    brc_buf_dispose(&origin);
    return rc;
}

/* Of a node that both sides have made. */
static int spot_of_both(brc_merge_tree *m, const brc_spot *above, const char *name, brc_spot **out,
                        brc_error *err)
{
    const char *path;
    *out = NULL;
    if (above->ours == NULL)
        return BRC_OK;
    BRC_TRY(brc_merge_join(m, above->ours, name, &path, err));
    if (brc_move_of_to(m->in.ours_moves, path) != NULL)
        return BRC_OK;
    return brc_spot_of_ours(m, path, out, err);
}

int brc_merge_spot_of_theirs(brc_merge_tree *m, const char *path, brc_spot **out, brc_error *err)
{
    int in_base = 0;
    const char *at = path, *upto;
    *out = NULL;
    for (;;) { /* up to the next that is known */
        *out = brc_spot_of_theirs(m, at);
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
    const brc_move_set *moves; /* of the side */
    const brc_tri *at;         /* b and t: the pair whose children are compared */
    void *due;                 /* brc_tri[]: pairs */
    size_t n, cap;
    int changed;
} change_look;

static int look_child(void *ctx, brc_span key, brc_span a, brc_span b, brc_error *err)
{
    change_look *look = ctx;
    brc_merge_tree *m = look->m;
    const size_t id_len = brc_store_id_len(m->store);
    brc_tri child = {0};
    if (look->changed)
        return BRC_OK;
    const char *name;
    BRC_TRY(brc_merge_text(m, (const char *)key.data, key.len - 1, &name, err));
    if (a.data != NULL) {
        BRC_TRY(brc_child_decode(&child.eb, key, a, id_len, err));
        BRC_TRY(brc_merge_join(m, look->at->b, name, &child.b, err));
        if (brc_merge_has_moved(m, child.b))
            a.data = NULL;
    }
    if (b.data != NULL) {
        BRC_TRY(brc_child_decode(&child.et, key, b, id_len, err));
        BRC_TRY(brc_merge_join(m, look->at->t, name, &child.t, err));
    }
    if (a.data == NULL && b.data == NULL)
        return BRC_OK;
    look->changed = a.data == NULL || b.data == NULL ||
                    brc_move_of_to(look->moves, child.t) != NULL ||
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
    return brc_map_diff(look->m->store, &at->eb.map, &at->et.map, look_child, look, err);
}

int brc_merge_changed(brc_merge_tree *m, const brc_tri *at, int theirs, int *changed,
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
