/*
 * Which chunks a merge has to look at, and those of them that ids alone settle.
 *
 * Where all shapes and fill values are the same, these are the chunks that theirs changed: ours is
 * looked up for each of them. Otherwise those that differ between ours and theirs, and the base is
 * looked up: a chunk that is the same in both is the result's, whatever it was before. There is one
 * exception: where the result has elements that neither side has, such a chunk may hold anything
 * there. Elements that the result's shape no longer has are a walk of their own.
 */
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../tree/chunk_key.h"
#include "merge_plan.h"

enum { COVERS_NONE, COVERS_PART, COVERS_ALL };

void brc_merge_task_clear(brc_merge_task *t)
{
    for (int s = 0; s < BRC_SIDES; s++)
        free(t->data[s]);
    brc_buf_dispose(&t->mask);
    brc_buf_dispose(&t->box.found);
    memset(t, 0, sizeof(*t));
}

/* ---- one chunk -------------------------------- */

/* What a side holds of the chunk, from its corner. */
static void extent_of_side(const brc_meta *m, brc_merge_task *t, int side)
{
    for (int i = 0; i < m->ndim; i++) {
        const uint64_t left = m->shape[i] > t->corner[i] ? m->shape[i] - t->corner[i] : 0;
        t->extent[side][i] = left < t->chunk[i] ? left : t->chunk[i];
    }
}

void brc_merge_task_place(const brc_merge_plan *p, brc_merge_task *t)
{
    const brc_grid *grid = &brc_plan_meta(p, p->losing != 0 ? p->losing : BRC_RESULT)->grid;
    brc_grid_chunk(grid, t->index, t->corner, t->chunk);
    for (int s = 0; s <= BRC_SIDES; s++)
        if (s != BRC_SIDE_BASE || p->has_base)
            extent_of_side(brc_plan_meta(p, s), t, s);
}

/* How much a side has of what the result holds of the chunk. */
static int covers(const brc_merge_plan *p, const brc_merge_task *t, int side)
{
    const int ndim = brc_plan_meta(p, BRC_RESULT)->ndim;
    int all = 1;
    for (int i = 0; i < ndim; i++) {
        if (t->extent[side][i] == 0)
            return COVERS_NONE;
        all &= t->extent[side][i] >= t->extent[BRC_RESULT][i];
    }
    if (side == BRC_SIDE_BASE && !p->has_base)
        return COVERS_NONE;
    return all ? COVERS_ALL : COVERS_PART;
}

/* Both have the same content, where both have the same extent. */
static int same_content(const brc_merge_plan *p, const brc_merge_task *t, int x, int y)
{
    const brc_span *a = &p->spans[x], *b = &p->spans[y];
    if (brc_oid_cmp(&t->id[x], &t->id[y]) != 0)
        return 0;
    return !brc_oid_is_zero(&t->id[x]) ||
           (a->len == b->len && (a->len == 0 || memcmp(a->data, b->data, a->len) == 0));
}

static int same_extent(const brc_merge_plan *p, const brc_merge_task *t, int x, int y)
{
    const size_t ndim = (size_t)brc_plan_meta(p, BRC_RESULT)->ndim;
    return memcmp(t->extent[x], t->extent[y], ndim * sizeof(uint64_t)) == 0;
}

static void emit_id(brc_merge_task *t, const brc_oid *id)
{
    static const brc_oid none;
    t->emits = 1;
    t->result = id != NULL ? *id : none;
}

/* Theirs, as it is. */
static void take_theirs(brc_merge_task *t)
{
    if (!brc_oid_is_zero(&t->id[BRC_SIDE_THEIRS]))
        emit_id(t, &t->id[BRC_SIDE_THEIRS]);
    else if (t->was_there)
        emit_id(t, NULL);
}

static void conflict_of_unit(const brc_merge_plan *p, brc_merge_task *t, int kind)
{
    t->conflict = kind;
    if (p->call->favour == BRC_SIDE_THEIRS)
        take_theirs(t);
}

/* The fill value was changed by one side, which does not have this chunk's elements then. 1: it is
 * settled so. */
static int meet_new_fill(const brc_merge_plan *p, brc_merge_task *t)
{
    const int differ = brc_oid_cmp(&t->id[BRC_SIDE_OURS], &t->id[BRC_SIDE_THEIRS]) != 0;
    for (int s = BRC_SIDE_OURS; s <= BRC_SIDE_THEIRS && differ; s++) {
        const int other = BRC_SIDE_OURS + BRC_SIDE_THEIRS - s;
        if (!p->new_fill[other] || covers(p, t, s) == COVERS_NONE ||
            brc_oid_cmp(&t->id[s], &t->id[BRC_SIDE_BASE]) == 0)
            continue;
        t->by = s;
        if (p->is_unit)
            conflict_of_unit(p, t, BRC_CHUNK_FILL);
        else
            t->how = BRC_TASK_FILL;
        return 1;
    }
    return 0;
}

/* One side has changed nothing that the other has not: by ids alone. 1: it is settled so. */
static int meet_by_id(const brc_merge_plan *p, brc_merge_task *t, int ours, int theirs)
{
    const int known = !t->unknown, base = covers(p, t, BRC_SIDE_BASE);
    const int at_edge = (ours == COVERS_PART) + (theirs == COVERS_PART) + (base == COVERS_PART);
    if (theirs == COVERS_NONE && ours == COVERS_NONE) {
        if (t->was_there)
            emit_id(t, NULL);
        return 1;
    }
    if (ours == COVERS_ALL &&
        (theirs == COVERS_NONE || (known && same_content(p, t, BRC_SIDE_THEIRS, BRC_SIDE_BASE) &&
                                   (at_edge == 0 || same_extent(p, t, BRC_SIDE_THEIRS,
                                                                BRC_SIDE_BASE)))))
        return 1;
    if (theirs == COVERS_ALL &&
        (ours == COVERS_NONE || (known && same_content(p, t, BRC_SIDE_OURS, BRC_SIDE_BASE) &&
                                 (at_edge == 0 || same_extent(p, t, BRC_SIDE_OURS,
                                                              BRC_SIDE_BASE))))) {
        take_theirs(t);
        return 1;
    }
    return at_edge == 0 && same_content(p, t, BRC_SIDE_OURS, BRC_SIDE_THEIRS);
}

/* Of a chunk that cannot be taken apart; its edges are what its bytes say. */
static void meet_as_unit(const brc_merge_plan *p, brc_merge_task *t)
{
    const int known = !t->unknown;
    if (same_content(p, t, BRC_SIDE_OURS, BRC_SIDE_THEIRS) ||
        (known && same_content(p, t, BRC_SIDE_THEIRS, BRC_SIDE_BASE)))
        return;
    if (known && same_content(p, t, BRC_SIDE_OURS, BRC_SIDE_BASE))
        take_theirs(t);
    else
        conflict_of_unit(p, t, BRC_CHUNK_UNIT);
}

static void decide_chunk(const brc_merge_plan *p, brc_merge_task *t)
{
    t->was_there = !brc_oid_is_zero(&t->id[BRC_SIDE_OURS]);
    if (!brc_grid_has(&brc_plan_meta(p, BRC_RESULT)->grid, t->index)) {
        if (t->was_there)
            emit_id(t, NULL);
        return;
    }
    brc_merge_task_place(p, t);
    const int ours = covers(p, t, BRC_SIDE_OURS), theirs = covers(p, t, BRC_SIDE_THEIRS);
    for (int s = 0; s < BRC_SIDES; s++)
        if (covers(p, t, s) == COVERS_NONE)
            memset(&t->id[s], 0, sizeof(t->id[s]));
    if (meet_new_fill(p, t) || meet_by_id(p, t, ours, theirs))
        return;
    if (p->is_unit)
        meet_as_unit(p, t);
    else
        t->how = BRC_TASK_MERGE;
}

/* Has the side that loses elements changed some of them? */
static void decide_lost(const brc_merge_plan *p, brc_merge_task *t)
{
    const brc_meta *m = brc_plan_meta(p, p->losing);
    int beyond = 0;
    if (!brc_grid_has(&m->grid, t->index))
        return;
    brc_merge_task_place(p, t);
    for (int i = 0; i < m->ndim; i++)
        beyond |= t->extent[p->losing][i] > t->extent[BRC_RESULT][i];
    if (covers(p, t, BRC_SIDE_BASE) == COVERS_NONE)
        memset(&t->id[BRC_SIDE_BASE], 0, sizeof(brc_oid));
    t->by = p->losing;
    if (!beyond)
        return;
    if (p->is_unit)
        t->conflict = BRC_CHUNK_LOST;
    else
        t->how = BRC_TASK_LOST;
}

/* ---- batches -------------------------------- */

typedef struct key_found {
    brc_merge_plan *p;
    int side;
} key_found;

static int note_id(const brc_merge_plan *p, brc_merge_task *t, int side, brc_span value,
                   brc_error *err)
{
    if (value.data == NULL)
        return BRC_OK;
    int rc = brc_chunk_id_of(value, brc_store_id_len(p->store), &t->id[side], err);
    if (rc < 0)
        brc_context(err, "%s", p->call->path);
    return rc;
}

static int found_key(void *ctx, size_t i, brc_span value, brc_error *err)
{
    const key_found *f = ctx;
    return note_id(f->p, &f->p->tasks[i], f->side, value, err);
}

/* The one side that the walk does not have. */
static int look_up_side(brc_merge_plan *p, int side, brc_error *err)
{
    brc_span keys[BRC_MERGE_BATCH];
    key_found found = {p, side};
    for (size_t i = 0; i < p->n; i++)
        keys[i] = (brc_span){p->tasks[i].key, p->tasks[i].key_len};
    return brc_map_get_many(p->store, &p->call->side[side].map, keys, p->n, found_key, &found,
                            err);
}

static int ask_unknown(const brc_merge_plan *p, brc_merge_task *t, brc_error *err)
{
    const brc_merge_chunks_ops *ops = p->call->ops;
    brc_span mask = {NULL, 0};
    t->unknown = !p->has_base;
    if (t->unknown || ops->unknown == NULL)
        return BRC_OK;
    int rc = ops->unknown(ops->ctx, (brc_span){t->key, t->key_len}, &mask, err);
    if (rc <= 0)
        return rc;
    t->unknown = 1; /* as far as ids go */
    t->is_made = rc == BRC_BASE_MADE;
    if (mask.len == 0) /* there need not be such a chunk */
        memset(&t->id[BRC_SIDE_BASE], 0, sizeof(brc_oid));
    return mask.len > 0 ? brc_buf_append(&t->mask, mask.data, mask.len, err) : BRC_OK;
}

static int run_batch(brc_merge_plan *p, int missing, brc_error *err)
{
    if (p->n == 0)
        return BRC_OK;
    if (missing != BRC_SIDE_BASE || p->has_base)
        BRC_TRY(look_up_side(p, missing, err));
    for (size_t i = 0; i < p->n; i++) {
        BRC_TRY(ask_unknown(p, &p->tasks[i], err));
        if (p->losing != 0)
            decide_lost(p, &p->tasks[i]);
        else
            decide_chunk(p, &p->tasks[i]);
    }
    BRC_TRY(brc_merge_tell(p, 0, p->n, err));
    BRC_TRY(brc_merge_decode(p, err));
    for (size_t i = 0; i < p->n; i++)
        brc_merge_task_clear(&p->tasks[i]);
    p->n = 0;
    return brc_task_step(p->call->repo, 0, err);
}

/* ---- walks -------------------------------- */

typedef struct key_walk {
    brc_merge_plan *p;
    int a, b, missing; /* the sides whose maps are walked, and the third */
    int corners;       /* only what both have alike, and may hold what neither has */
} key_walk;

/* Whether the result has elements of the chunk that this side has not. */
static int reaches_past(const brc_merge_plan *p, const brc_merge_task *t, int side)
{
    for (int i = 0; i < brc_plan_meta(p, BRC_RESULT)->ndim; i++)
        if (t->extent[BRC_RESULT][i] > t->extent[side][i])
            return 1;
    return 0;
}

static int is_corner(const brc_merge_plan *p, brc_merge_task *t)
{
    if (brc_oid_cmp(&t->id[BRC_SIDE_OURS], &t->id[BRC_SIDE_THEIRS]) != 0 ||
        !brc_grid_has(&brc_plan_meta(p, BRC_RESULT)->grid, t->index))
        return 0;
    brc_merge_task_place(p, t);
    return reaches_past(p, t, BRC_SIDE_OURS) && reaches_past(p, t, BRC_SIDE_THEIRS);
}

static int walk_key(void *ctx, brc_span key, brc_span a, brc_span b, brc_error *err)
{
    const key_walk *w = ctx;
    brc_merge_plan *p = w->p;
    brc_merge_task *t = &p->tasks[p->n];
    if (key.len > sizeof(t->key) ||
        brc_chunk_key_decode(key.data, key.len, t->index) != brc_plan_meta(p, BRC_RESULT)->ndim)
        return brc_fail(err, BRC_ECORRUPT, "%s: a chunk's key is damaged; run 'breccia fsck'",
                        p->call->path);
    memcpy(t->key, key.data, key.len);
    t->key_len = key.len;
    BRC_TRY(note_id(p, t, w->a, a, err));
    BRC_TRY(note_id(p, t, w->b, b, err));
    if (w->corners && !is_corner(p, t)) {
        brc_merge_task_clear(t);
        return BRC_OK;
    }
    return ++p->n == BRC_MERGE_BATCH ? run_batch(p, w->missing, err) : BRC_OK;
}

static int walk_sides(brc_merge_plan *p, int a, int b, int corners, brc_error *err)
{
    key_walk w = {p, a, b, BRC_SIDE_BASE + BRC_SIDE_OURS + BRC_SIDE_THEIRS - a - b, corners};
    const brc_oid *x = &p->call->side[a].map, *y = &p->call->side[b].map;
    BRC_TRY(corners ? brc_map_both(p->store, x, y, walk_key, &w, err)
                    : brc_map_diff(p->store, x, y, walk_key, &w, err));
    return run_batch(p, w.missing, err);
}

static int extends_past(const brc_merge_plan *p, int side, int other)
{
    const brc_meta *a = brc_plan_meta(p, side), *b = brc_plan_meta(p, other);
    for (int i = 0; i < a->ndim; i++)
        if (a->shape[i] > b->shape[i])
            return 1;
    return 0;
}

static int walk_lost(brc_merge_plan *p, brc_error *err)
{
    int rc = BRC_OK;
    for (int s = BRC_SIDE_OURS; s <= BRC_SIDE_THEIRS && rc == BRC_OK; s++) {
        if (!p->has_base || !extends_past(p, s, BRC_RESULT))
            continue;
        p->losing = s;
        rc = walk_sides(p, BRC_SIDE_BASE, s, 0, err);
        p->losing = 0;
    }
    return rc;
}

int brc_merge_keys(brc_merge_plan *p, brc_error *err)
{
    int simple = p->has_base && p->call->ops->unknown == NULL && !p->new_fill[BRC_SIDE_OURS] &&
                 !p->new_fill[BRC_SIDE_THEIRS];
    for (int s = 0; s < BRC_SIDES && simple; s++)
        simple = !extends_past(p, s, BRC_RESULT) && !extends_past(p, BRC_RESULT, s);
    if (simple)
        return walk_sides(p, BRC_SIDE_BASE, BRC_SIDE_THEIRS, 0, err);
    BRC_TRY(walk_sides(p, BRC_SIDE_OURS, BRC_SIDE_THEIRS, 0, err));
    if (extends_past(p, BRC_RESULT, BRC_SIDE_OURS) && extends_past(p, BRC_RESULT, BRC_SIDE_THEIRS))
        BRC_TRY(walk_sides(p, BRC_SIDE_OURS, BRC_SIDE_THEIRS, 1, err));
    return walk_lost(p, err);
}
