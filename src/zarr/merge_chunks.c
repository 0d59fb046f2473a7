#include "merge_chunks.h"

#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "merge_plan.h"
#include "opaque.h"

/* ---- the sides -------------------------------- */

static int open_result(brc_merge_plan *p, brc_error *err)
{
    const brc_chunk_merge *call = p->call;
    brc_array *a = &p->array[BRC_RESULT];
    memset(a, 0, sizeof(*a));
    a->session = &p->view;
    a->path = (char *)(uintptr_t)call->path;
    a->entry = (brc_entry){.kind = BRC_ARRAY,
                           .map = call->side[BRC_SIDE_OURS].map,
                           .storage = call->storage};
    int rc = brc_meta_open(&a->meta, call->repo->registry, call->merged, err);
    if (rc == BRC_OK)
        rc = brc_opaque_settle(p->store, &a->meta, &a->entry.map, &a->stack, err);
    if (rc == BRC_OK)
        rc = brc_array_read_storage(a, err);
    if (rc < 0)
        brc_context(err, "%s", call->path);
    return rc;
}

static int open_sides(brc_merge_plan *p, brc_error *err)
{
    char *path = (char *)(uintptr_t)p->call->path;
    for (int s = 0; s < BRC_SIDES; s++)
        if (s != BRC_SIDE_BASE || p->has_base)
            BRC_TRY(brc_array_of_entry(&p->array[s], &p->view, path, &p->call->side[s], err));
    return open_result(p, err);
}

void brc_merge_plan_close(brc_merge_plan *p)
{
    for (int s = 0; s <= BRC_SIDES; s++) {
        brc_meta_dispose(&p->array[s].meta);
        free(p->array[s].backend);
        free(p->array[s].full);
    }
}

/* ---- what they have in common -------------------------------- */

static uint64_t chunk_begin(const brc_grid *grid, int axis, uint64_t i)
{
    return grid->starts[axis] != NULL ? grid->starts[axis][i] : i * grid->chunk[axis];
}

/* As far as both go. */
static int axis_cut_same(const brc_grid *a, const brc_grid *b, int axis)
{
    const uint64_t n = a->count[axis] < b->count[axis] ? a->count[axis] : b->count[axis];
    if (a->starts[axis] == NULL && b->starts[axis] == NULL)
        return a->chunk[axis] == b->chunk[axis];
    for (uint64_t i = 1; i <= n; i++)
        if (chunk_begin(a, axis, i) != chunk_begin(b, axis, i))
            return 0;
    return 1;
}

/* Whether a chunk of one could be a chunk of the other. */
static int same_form(const brc_merge_plan *p, int x, int y)
{
    const brc_meta *a = brc_plan_meta(p, x), *b = brc_plan_meta(p, y);
    if (a->ndim != b->ndim || a->opaque != b->opaque || strcmp(a->dtype, b->dtype) != 0)
        return 0;
    for (int i = 0; i < a->ndim; i++)
        if (!axis_cut_same(&a->grid, &b->grid, i))
            return 0;
    return 1;
}

static int shape_is(const brc_merge_plan *p, int x, int y)
{
    const brc_meta *a = brc_plan_meta(p, x), *b = brc_plan_meta(p, y);
    return a->ndim == b->ndim &&
           memcmp(a->shape, b->shape, (size_t)a->ndim * sizeof(*a->shape)) == 0;
}

static int same_fill(const brc_merge_plan *p, int x, int y)
{
    const brc_buf *a = &brc_plan_meta(p, x)->fill, *b = &brc_plan_meta(p, y)->fill;
    return a->len == b->len && (a->len == 0 || memcmp(a->data, b->data, a->len) == 0);
}

static int same_map(const brc_merge_plan *p, int x, int y)
{
    return brc_oid_cmp(&p->call->side[x].map, &p->call->side[y].map) == 0;
}

/* A shard within other codecs has no chunks of its own. */
static int has_inner_shards(const brc_json *codecs)
{
    for (size_t i = 0; i < brc_json_count(codecs); i++) {
        const brc_json *codec = brc_json_item(codecs, i);
        const int is_long = brc_json_kind(codec) == BRC_JSON_OBJECT;
        if (brc_json_is(is_long ? brc_json_member(codec, "name") : codec, "sharding_indexed"))
            return 1;
    }
    return 0;
}

/* ---- what is known without looking at a chunk -------------------------------- */

static int settle_whole(brc_merge_plan *p)
{
    const int with_base = p->has_base && p->call->ops->unknown == NULL;
    if (!same_form(p, BRC_SIDE_OURS, BRC_RESULT) || !same_form(p, BRC_SIDE_THEIRS, BRC_RESULT) ||
        (p->has_base && !same_form(p, BRC_SIDE_BASE, BRC_RESULT))) {
        if (with_base && same_map(p, BRC_SIDE_BASE, BRC_SIDE_THEIRS) &&
            same_form(p, BRC_SIDE_OURS, BRC_RESULT) && shape_is(p, BRC_SIDE_OURS, BRC_RESULT))
            return BRC_CHUNKS_OURS;
        if (with_base && same_map(p, BRC_SIDE_BASE, BRC_SIDE_OURS) &&
            same_form(p, BRC_SIDE_THEIRS, BRC_RESULT) && shape_is(p, BRC_SIDE_THEIRS, BRC_RESULT))
            return BRC_CHUNKS_THEIRS;
        p->call->why = brc_plan_meta(p, BRC_SIDE_OURS)->opaque !=
                               brc_plan_meta(p, BRC_SIDE_THEIRS)->opaque
                           ? "one side's chunks cannot be decoded here"
                           : "the chunk grid or the data type differs, and chunks have changed";
        return BRC_CHUNKS_APART;
    }
    if (!shape_is(p, BRC_SIDE_OURS, BRC_RESULT) || !shape_is(p, BRC_SIDE_THEIRS, BRC_RESULT) ||
        (p->has_base && !shape_is(p, BRC_SIDE_BASE, BRC_RESULT)))
        return BRC_CHUNKS_MIXED;
    if (with_base && same_map(p, BRC_SIDE_BASE, BRC_SIDE_THEIRS))
        return p->new_fill[BRC_SIDE_THEIRS] && !same_map(p, BRC_SIDE_BASE, BRC_SIDE_OURS)
                   ? BRC_CHUNKS_MIXED
                   : BRC_CHUNKS_OURS;
    if (with_base && same_map(p, BRC_SIDE_BASE, BRC_SIDE_OURS))
        return p->new_fill[BRC_SIDE_OURS] ? BRC_CHUNKS_MIXED : BRC_CHUNKS_THEIRS;
    return same_map(p, BRC_SIDE_OURS, BRC_SIDE_THEIRS) &&
                   same_fill(p, BRC_SIDE_OURS, BRC_SIDE_THEIRS)
               ? BRC_CHUNKS_OURS
               : BRC_CHUNKS_MIXED;
}

/* Where both sides have the same new fill value, the base's absent chunks have it too. */
static void settle_fill(brc_merge_plan *p)
{
    const int ours = p->has_base && !same_fill(p, BRC_SIDE_OURS, BRC_SIDE_BASE);
    const int theirs = p->has_base && !same_fill(p, BRC_SIDE_THEIRS, BRC_SIDE_BASE);
    const int both = ours && theirs && same_fill(p, BRC_SIDE_OURS, BRC_SIDE_THEIRS);
    p->new_fill[BRC_SIDE_OURS] = ours && !both;
    p->new_fill[BRC_SIDE_THEIRS] = theirs && !both;
    for (int s = 0; s <= BRC_SIDES; s++) {
        const int from = s == BRC_SIDE_BASE && (both || !p->has_base) ? BRC_SIDE_OURS : s;
        const brc_buf *fill = &brc_plan_meta(p, from)->fill;
        p->spans[s] = (brc_span){fill->data, fill->len};
        if (s < BRC_SIDES)
            p->fill[s] = brc_meta_is_variable(brc_plan_meta(p, BRC_RESULT))
                             ? (const uint8_t *)&p->spans[s]
                             : fill->data;
    }
}

int brc_merge_plan_open(brc_merge_plan *p, brc_error *err)
{
    const brc_meta *m = brc_plan_meta(p, BRC_RESULT);
    BRC_TRY(open_sides(p, err));
    settle_fill(p);
    p->is_unit = m->opaque || has_inner_shards(m->codecs);
    return BRC_OK;
}

int brc_merge_plan_is_plain(const brc_merge_plan *p)
{
    for (int s = p->has_base ? BRC_SIDE_BASE : BRC_SIDE_OURS; s < BRC_SIDES; s++)
        if (!same_form(p, s, BRC_RESULT))
            return 0;
    return !p->is_unit && !p->new_fill[BRC_SIDE_OURS] && !p->new_fill[BRC_SIDE_THEIRS] &&
           same_fill(p, BRC_SIDE_OURS, BRC_SIDE_THEIRS);
}

static int plan_sides(brc_merge_plan *p, brc_error *err)
{
    BRC_TRY(brc_merge_plan_open(p, err));
    p->call->map = settle_whole(p);
    if (p->call->map == BRC_CHUNKS_MIXED && !p->is_unit && p->call->ops->chunk != NULL)
        BRC_TRY(brc_array_can_write(&p->array[BRC_RESULT], err));
    return BRC_OK;
}

/* ---- transactions -------------------------------- */

static int merge_in_read(brc_merge_plan *p, brc_error *err)
{
    void *tasks = NULL;
    BRC_TRY(brc_store_begin_read(p->store, err));
    int rc = plan_sides(p, err);
    if (rc == BRC_OK && p->call->map == BRC_CHUNKS_MIXED) {
        rc = brc_new_array(&tasks, BRC_MERGE_BATCH, sizeof(brc_merge_task), err);
        p->tasks = tasks;
        if (rc == BRC_OK)
            rc = brc_merge_keys(p, err);
        for (size_t i = 0; tasks != NULL && i < BRC_MERGE_BATCH; i++)
            brc_merge_task_clear(&p->tasks[i]);
        free(tasks);
    }
    brc_merge_plan_close(p);
    brc_store_end_read(p->store);
    return rc;
}

/* All that is stored is garbage until it is named by whoever was told of it. Where ids alone tell
 * the result, nothing is, and no transaction was begun. */
static int merge_in_bulk(brc_merge_plan *p, brc_error *err)
{
    BRC_TRY(brc_store_bulk_begin(p->store, err));
    const int before = brc_store_bulk_admit(p->store, 1);
    int rc = merge_in_read(p, err);
    (void)brc_store_bulk_admit(p->store, before);
    if (rc == BRC_OK && p->wrote)
        rc = brc_store_bulk_finish(p->store, err);
    if (rc < 0 || !p->wrote) {
        brc_store_bulk_cancel(p->store);
        return rc;
    }
    return brc_store_end(p->store, 1, err);
}

int brc_merge_chunks(brc_chunk_merge *merge, brc_error *err)
{
    void *memory;
    BRC_TRY(brc_new(&memory, sizeof(brc_merge_plan), err));
    brc_merge_plan *p = memory;
    p->call = merge;
    p->store = merge->repo->store;
    p->view.repo = merge->repo;
    p->has_base = merge->side[BRC_SIDE_BASE].kind == BRC_ARRAY;
    merge->map = 0;
    merge->why = NULL;
    merge->conflicts = merge->changed = merge->merged_chunks = 0;
    memset(merge->lost, 0, sizeof(merge->lost));
    const int is_part = merge->ops->chunk == NULL || brc_store_in_write(p->store) ||
                        brc_store_in_bulk(p->store);
    int rc = is_part ? merge_in_read(p, err) : merge_in_bulk(p, err);
    free(p);
    return rc;
}
