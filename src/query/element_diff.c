#include "element_diff.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../base/hash.h"
#include "../history/commit.h"
#include "../history/walk.h"
#include "../nd/shape.h"
#include "../zarr/array/chunk_pairs.h"
#include "../zarr/array/region.h"

/* ==== slab diff ================================ */

/*
 * Compares two versions with different grids. The part that both have is cut into slabs: whole
 * chunks of either side, as far as the budget goes. The slabs that a chunk of either side touches
 * are listed first, so that the work grows with the stored chunks and not with the shape. Each slab
 * is read from both sides and compared on the pool.
 */

#define LIST_LEAST 4096
/* A chunk that touched so many slabs would be larger than a chunk can be. */
#define CHUNK_SLABS ((uint64_t)1 << 24)
#define PART_BYTES ((uint64_t)256 << 10) /* the least that one job compares */

typedef struct slab_differ {
    brc_diff_sides *sides;
    brc_grid grid; /* the grid of slabs */
    void *numbers; /* uint64_t[]: slabs to be visited, in row-major order */
    size_t n, cap, limit;
    brc_buf data[2];
} slab_differ;

/* ---- how slabs are cut -------------------------------- */

static int slab_fits(int ndim, const uint64_t *edges, uint64_t unit, uint64_t budget)
{
    uint64_t bytes;
    return brc_shape_bytes(ndim, edges, unit, &bytes) && bytes <= budget;
}

/* Returns the bytes of a slab: a quarter of the budget for each side, but at least one chunk, which
 * is decoded whole anyway, and would be decoded again for each slab that it touches. */
static uint64_t slab_budget(const brc_diff_sides *sides, uint64_t unit)
{
    uint64_t most = sides->view.repo->pipe.memory / 4, bytes;
    for (int i = 0; i < 2; i++) {
        const brc_grid *grid = &sides->side[i].meta.grid;
        if (brc_shape_bytes(grid->ndim, grid->chunk, unit, &bytes) && bytes > most &&
            bytes <= BRC_MAX_CHUNK_BYTES)
            most = bytes;
    }
    return most;
}

/* Computes the edges of a slab: those of one chunk, the longer of both sides. They are halved while
 * that is too much, else extended as far as the budget goes, last axis first. */
static void slab_edges(const brc_diff_sides *sides, uint64_t *edges)
{
    const brc_meta *a = &sides->side[0].meta, *b = &sides->side[1].meta;
    const int ndim = a->ndim;
    const uint64_t unit = brc_meta_is_variable(a) ? BRC_VARIABLE_BYTES : a->type->item_size;
    const uint64_t budget = slab_budget(sides, unit);
    for (int i = 0; i < ndim; i++) {
        edges[i] = a->grid.chunk[i] > b->grid.chunk[i] ? a->grid.chunk[i] : b->grid.chunk[i];
        edges[i] = edges[i] < sides->shape[i] ? edges[i] : sides->shape[i];
    }
    while (!slab_fits(ndim, edges, unit, budget)) {
        int longest = 0;
        for (int i = 1; i < ndim; i++)
            longest = edges[i] > edges[longest] ? i : longest;
        if (ndim == 0 || edges[longest] == 1)
            return;
        edges[longest] -= edges[longest] / 2;
    }
    uint64_t bytes = unit;
    for (int i = 0; i < ndim; i++)
        bytes = brc_mul_capped(bytes, edges[i]);
    brc_cut_grow(ndim, NULL, edges, sides->shape, bytes, budget);
}

/* ---- which are visited -------------------------------- */

static int number_order(const void *x, const void *y)
{
    uint64_t a = *(const uint64_t *)x, b = *(const uint64_t *)y;
    return (a > b) - (a < b);
}

static void list_tidy(slab_differ *d)
{
    uint64_t *numbers = d->numbers;
    size_t kept = 0;
    if (d->n > 1)
        qsort(numbers, d->n, sizeof(*numbers), number_order);
    for (size_t i = 0; i < d->n; i++)
        if (i == 0 || numbers[i] != numbers[kept - 1])
            numbers[kept++] = numbers[i];
    d->n = kept;
    d->limit = 2 * kept > LIST_LEAST ? 2 * kept : LIST_LEAST;
}

static int list_add(slab_differ *d, uint64_t number, brc_error *err)
{
    if (d->n > 0 && ((uint64_t *)d->numbers)[d->n - 1] == number)
        return BRC_OK;
    if (d->n >= d->limit)
        list_tidy(d);
    BRC_TRY(brc_grow_array(&d->numbers, &d->cap, d->n + 1, sizeof(uint64_t), err));
    ((uint64_t *)d->numbers)[d->n++] = number;
    return BRC_OK;
}

/* Lists the slabs that a chunk touches. */
static int list_chunk(slab_differ *d, const uint64_t *corner, const uint64_t *count,
                      brc_error *err)
{
    const int ndim = d->grid.ndim;
    uint64_t first[BRC_MAX_NDIM], box[BRC_MAX_NDIM], at[BRC_MAX_NDIM] = {0};
    for (int i = 0; i < ndim; i++) {
        first[i] = brc_grid_find(&d->grid, i, corner[i]);
        box[i] = brc_grid_find(&d->grid, i, corner[i] + count[i] - 1) - first[i] + 1;
    }
    if (brc_shape_count(ndim, box) > CHUNK_SLABS)
        return brc_fail(err, BRC_ELIMIT, "%s: its chunks are too large to be compared",
                        d->sides->side[0].path);
    do {
        uint64_t number = 0;
        for (int i = 0; i < ndim; i++)
            number = number * d->grid.count[i] + first[i] + at[i];
        BRC_TRY(list_add(d, number, err));
    } while (brc_index_next(ndim, at, box));
    return BRC_OK;
}

typedef struct side_list {
    slab_differ *d;
    const brc_array *a;
} side_list;

static int list_item(void *ctx, const uint64_t *index, const brc_oid *id, brc_error *err)
{
    const side_list *list = ctx;
    const brc_diff_sides *sides = list->d->sides;
    uint64_t corner[BRC_MAX_NDIM], shape[BRC_MAX_NDIM], count[BRC_MAX_NDIM];
    (void)id;
    BRC_TRY(brc_store_check_interrupt(sides->view.repo->store, err));
    if (!brc_diff_meets(sides, &list->a->meta.grid, index))
        return BRC_OK;
    brc_diff_overlap(sides, &list->a->meta.grid, index, corner, shape, count);
    return list_chunk(list->d, corner, count, err);
}

static int list_slabs(slab_differ *d, brc_error *err)
{
    d->limit = LIST_LEAST;
    for (int i = 0; i < 2; i++) {
        side_list list = {d, &d->sides->side[i]};
        BRC_TRY(brc_array_each_chunk(&d->sides->side[i], list_item, &list, err));
    }
    list_tidy(d);
    return BRC_OK;
}

/* ---- one slab -------------------------------- */

typedef struct slab_part {
    brc_job job;
    const brc_dtype *type;
    uint64_t corner[BRC_MAX_NDIM], count[BRC_MAX_NDIM];
    brc_place x, y;
    brc_tally tally;
} slab_part;

static void slab_part_run(brc_job *job, unsigned worker)
{
    slab_part *p = (slab_part *)job;
    (void)worker;
    brc_compare_box(&p->tally, p->type, p->corner, p->count, &p->x, &p->y);
}

/* Compares a slab in parts, cut along the first axis that has an extent. */
static int compare_parts(slab_differ *d, const brc_sel *sel, const int64_t *strides, int axis,
                         uint64_t rows, uint64_t nparts, slab_part *parts, brc_error *err)
{
    brc_group *group;
    BRC_TRY(brc_group_new(&group, d->sides->view.repo->pipe.pool, err));
    for (uint64_t i = 0; i < nparts; i++) {
        slab_part *p = &parts[i];
        const uint64_t start = i * rows, left = sel->count[axis] - start;
        const uint64_t offset = start * (uint64_t)strides[axis];
        p->type = d->sides->side[0].meta.type;
        memcpy(p->corner, sel->start, sizeof(p->corner));
        memcpy(p->count, sel->count, sizeof(p->count));
        p->corner[axis] += start;
        p->count[axis] = left < rows ? left : rows;
        p->x = (brc_place){d->data[0].data + offset, strides};
        p->y = (brc_place){d->data[1].data + offset, strides};
        brc_tally_init(&p->tally, sel->ndim, p->type);
        brc_tally_want(&p->tally, d->sides->wanted, NULL);
        p->tally.cells = d->sides->tally->cells;
        p->job.run = slab_part_run;
        brc_group_submit(group, &p->job);
    }
    brc_group_free(group); /* waits for the jobs */
    for (uint64_t i = 0; i < nparts; i++)
        brc_tally_merge(d->sides->tally, &parts[i].tally);
    return BRC_OK;
}

static int compare_fixed(slab_differ *d, const brc_sel *sel, brc_error *err)
{
    const brc_pipe *pipe = &d->sides->view.repo->pipe;
    const brc_dtype *type = d->sides->side[0].meta.type;
    const uint64_t bytes = d->data[0].len;
    int64_t strides[BRC_MAX_NDIM];
    void *parts;
    int axis = 0;
    while (axis < sel->ndim - 1 && sel->count[axis] == 1)
        axis++;
    brc_strides_packed(sel->ndim, sel->count, type->item_size, strides);
    if (sel->ndim == 0 || bytes <= PART_BYTES) {
        const brc_place x = {d->data[0].data, strides}, y = {d->data[1].data, strides};
        brc_compare_box(d->sides->tally, type, sel->start, sel->count, &x, &y);
        return BRC_OK;
    }
    uint64_t nparts = 4 * (uint64_t)pipe->nworkers, rows;
    nparts = nparts < bytes / PART_BYTES ? nparts : bytes / PART_BYTES;
    rows = brc_grid_extent(sel->count[axis], nparts);
    nparts = brc_grid_extent(sel->count[axis], rows);
    BRC_TRY(brc_new_array(&parts, (size_t)nparts, sizeof(slab_part), err));
    int rc = compare_parts(d, sel, strides, axis, rows, nparts, parts, err);
    free(parts);
    return rc;
}

static int compare_slab(slab_differ *d, const uint64_t *index, brc_error *err)
{
    brc_sel sel = {.size = sizeof(brc_sel), .ndim = d->grid.ndim};
    uint64_t shape[BRC_MAX_NDIM];
    brc_diff_overlap(d->sides, &d->grid, index, sel.start, shape, sel.count);
    for (int i = 0; i < sel.ndim; i++)
        sel.step[i] = 1;
    for (int i = 0; i < 2; i++) {
        d->data[i].len = 0;
        BRC_TRY(brc_array_read_canonical(&d->sides->side[i], &sel, &d->data[i], err));
    }
    if (!brc_meta_is_variable(&d->sides->side[0].meta))
        return compare_fixed(d, &sel, err);
    const brc_span x = {d->data[0].data, d->data[0].len}, y = {d->data[1].data, d->data[1].len};
    const brc_span fills[2] = {{NULL, 0}, {NULL, 0}};
    return brc_compare_packed(d->sides->tally, sel.start, sel.count, sel.count, &x, &y, fills, err);
}

/* ---- all of them -------------------------------- */

static int compare_slabs(slab_differ *d, brc_error *err)
{
    const int ndim = d->grid.ndim;
    uint64_t index[BRC_MAX_NDIM];
    brc_unvisited rest;
    brc_unvisited_start(&rest, d->sides, &d->grid);
    for (size_t i = 0; i < d->n; i++) {
        uint64_t number = ((uint64_t *)d->numbers)[i];
        for (int axis = ndim - 1; axis >= 0; axis--) {
            index[axis] = number % d->grid.count[axis];
            number /= d->grid.count[axis];
        }
        if (d->sides->fills_differ)
            brc_unvisited_pass(&rest, index);
        if (brc_diff_beyond(d->sides, &d->grid, index))
            return BRC_OK;
        BRC_TRY(compare_slab(d, index, err));
        BRC_TRY(brc_task_step(d->sides->view.repo, 0, err)); /* reading reports the bytes */
    }
    if (d->sides->fills_differ)
        brc_unvisited_end(&rest, d->sides);
    return BRC_OK;
}

/* Compares slab by slab, for different grids: both sides are read wherever either has a chunk. Half
 * of the budget is for the slabs, half for the chunks on their way into them. */
static int diff_slabs(brc_diff_sides *sides, brc_error *err)
{
    breccia *repo = sides->view.repo;
    slab_differ d = {.sides = sides, .data = {BRC_BUF_INIT, BRC_BUF_INIT}};
    uint64_t edges[BRC_MAX_NDIM];
    const size_t memory = repo->pipe.memory;
    slab_edges(sides, edges);
    brc_grid_regular(&d.grid, sides->side[0].meta.ndim, sides->shape, edges);
    if (brc_shape_count(d.grid.ndim, d.grid.count) == UINT64_MAX)
        return brc_fail(err, BRC_ELIMIT, "%s: it is too large to be compared chunk by chunk",
                        sides->side[0].path);
    int rc = list_slabs(&d, err);
    repo->pipe.memory = memory / 2;
    if (rc == BRC_OK)
        rc = compare_slabs(&d, err);
    repo->pipe.memory = memory;
    free(d.numbers);
    brc_buf_dispose(&d.data[0]);
    brc_buf_dispose(&d.data[1]);
    return rc;
}

/* ==== element diff ================================ */

/* ---- what came and went -------------------------------- */

/* Counts the elements of a shape, or those that are selected, outside the common part: for each
 * axis, those that are outside along that axis and inside along the axes before it. */
static uint64_t elements_beyond(int ndim, const uint64_t *shape, const uint64_t *both,
                                const brc_sel *sel)
{
    uint64_t part[BRC_MAX_NDIM] = {0}, total = 0;
    if (sel != NULL)
        return brc_sel_within(sel, part, shape) - brc_sel_within(sel, part, both);
    memcpy(part, shape, (size_t)ndim * sizeof(*part));
    for (int i = 0; i < ndim; i++) {
        part[i] = shape[i] - both[i];
        if (!brc_add_u64(total, brc_shape_count(ndim, part), &total))
            return UINT64_MAX;
        part[i] = both[i];
    }
    return total;
}

/* Counts all elements of an array, or those that are selected, by its document; its codecs need not
 * be known for that. */
static int elements_of_entry(uint64_t *out, breccia *repo, const brc_entry *entry,
                             const brc_sel *sel, brc_error *err)
{
    const uint64_t origin[BRC_MAX_NDIM] = {0};
    brc_json *doc;
    uint64_t shape[BRC_MAX_NDIM];
    BRC_TRY(brc_entry_doc(repo->store, entry, &doc, err));
    const brc_json *list = brc_json_member(doc, "shape");
    const size_t ndim = brc_json_count(list);
    int good = brc_json_kind(list) == BRC_JSON_ARRAY && ndim <= BRC_MAX_NDIM;
    for (size_t i = 0; i < ndim && good; i++)
        good = brc_json_uint(brc_json_item(list, i), INT64_MAX, &shape[i]);
    brc_json_free(doc);
    if (!good)
        return brc_fail(err, BRC_ECORRUPT, "an array's shape is damaged; run 'breccia fsck'");
    *out = sel != NULL && sel->ndim == (int)ndim ? brc_sel_within(sel, origin, shape)
                                                 : brc_shape_count((int)ndim, shape);
    return BRC_OK;
}

/* ---- pair by pair -------------------------------- */

enum { PICK_BATCH = 64 }; /* the most pairs that are read before the picks are looked at */

typedef struct pair_diff {
    brc_diff_sides *sides;
    brc_unvisited rest;
    brc_pairs *pairs;
    brc_element_diff *chunks; /* lists the chunks; NULL: they are not wanted */
    size_t batch, waiting;    /* of picks: how many pairs are read at once   */
    int is_full;              /* no element of a further chunk is picked     */
    int is_short;             /* memory ran out                              */
} pair_diff;

static int compare_pair(const brc_diff_sides *sides, brc_chunk_pair *p, const brc_span *x,
                        const brc_span *y, brc_error *err)
{
    uint64_t corner[BRC_MAX_NDIM], shape[BRC_MAX_NDIM], count[BRC_MAX_NDIM];
    brc_diff_overlap(sides, &sides->side[0].meta.grid, p->index, corner, shape, count);
    return brc_diff_box(&p->tally, sides, corner, shape, count, x, y, err);
}

/* Adds a chunk to the list. */
static int list_pair(brc_element_diff *e, const brc_chunk_pair *p)
{
    const size_t ndim = (size_t)e->tally.ndim, n = (ndim + 1) * (e->nchunks + 1);
    if (brc_grow_array(&e->chunks, &e->chunks_cap, n, sizeof(uint64_t), NULL) < 0)
        return 0;
    uint64_t *item = (uint64_t *)e->chunks + (ndim + 1) * e->nchunks++;
    for (size_t i = 0; i < ndim; i++)
        item[i] = p->index[i];
    item[ndim] = p->tally.elements;
    return 1;
}

static void pair_compared(void *ctx, const brc_chunk_pair *p)
{
    pair_diff *d = ctx;
    brc_tally_merge(d->sides->tally, &p->tally);
    if (d->chunks != NULL && p->tally.elements > 0)
        d->is_short |= !list_pair(d->chunks, p);
}

/* Adds a pair. Pairs for picks are read soon, few at first, since these may be enough. */
static int add_pair(pair_diff *d, const brc_chunk_pair *p, brc_error *err)
{
    BRC_TRY(brc_pairs_add(d->pairs, p, err));
    if (brc_wants_figures(d->sides->wanted) || ++d->waiting < d->batch)
        return BRC_OK;
    d->waiting = 0;
    d->batch = d->batch < PICK_BATCH ? 2 * d->batch : PICK_BATCH;
    return brc_pairs_end(d->pairs, err);
}

static int pair_note(void *ctx, brc_span key, brc_span a, brc_span b, brc_error *err)
{
    pair_diff *d = ctx;
    const brc_grid *grid = &d->sides->side[0].meta.grid;
    brc_chunk_pair p;
    BRC_TRY(brc_pair_read(&p, d->sides, key, a, b, err));
    if (!brc_diff_meets(d->sides, grid, p.index))
        return BRC_OK;
    if (d->sides->fills_differ)
        brc_unvisited_pass(&d->rest, p.index);
    if (brc_diff_beyond(d->sides, grid, p.index)) {
        d->is_full = 1;
        return BRC_EINTERRUPT;
    }
    if (p.there[0] && p.there[1] && brc_oid_cmp(&p.object[0].id, &p.object[1].id) == 0)
        return BRC_OK;
    return add_pair(d, &p, err);
}

static int pairs_walk(pair_diff *d, brc_error *err)
{
    brc_store *store = brc_array_store(&d->sides->side[0]);
    const brc_oid *a = &d->sides->side[0].entry.map, *b = &d->sides->side[1].entry.map;
    if (!d->sides->fills_differ)
        return brc_map_diff(store, a, b, pair_note, d, err);
    brc_unvisited_start(&d->rest, d->sides, &d->sides->side[0].meta.grid);
    BRC_TRY(brc_map_both(store, a, b, pair_note, d, err));
    brc_unvisited_end(&d->rest, d->sides);
    return BRC_OK;
}

static int diff_pairs(brc_diff_sides *sides, brc_element_diff *chunks, brc_error *err)
{
    pair_diff d = {.sides = sides, .chunks = chunks, .batch = 1};
    const brc_pair_ops ops = {&d, compare_pair, pair_compared};
    BRC_TRY(brc_pairs_new(&d.pairs, sides, &ops, err));
    int rc = pairs_walk(&d, err);
    if (rc == BRC_OK || d.is_full)
        rc = brc_pairs_end(d.pairs, err);
    brc_pairs_free(d.pairs);
    if (rc == BRC_OK && d.is_short)
        return brc_fail(err, BRC_ENOMEM, "there is not enough memory for the list of chunks");
    return rc;
}

/* ---- values that one version lacks -------------------------------- */

/* Adds the first elements of a box, in C order, of which only this side has any: as many as may be
 * picked, and less than twice as many. */
static int pick_of_box(brc_picks *picks, brc_array *a, int side, brc_sel *box, brc_error *err)
{
    const brc_dtype *type = a->meta.type;
    uint64_t left = picks->most, at[BRC_MAX_NDIM] = {0}, index[BRC_MAX_NDIM];
    const brc_span none = {NULL, 0};
    brc_buf data = BRC_BUF_INIT;
    brc_span one;
    int rc;
    for (int i = box->ndim - 1; i >= 0; i--) {
        box->count[i] = box->count[i] < left ? box->count[i] : left;
        left = left / box->count[i] + (left % box->count[i] != 0);
    }
    BRC_GO(brc_array_read_canonical(a, box, &data, err));
    brc_element_cursor cursor = {.packed = {data.data, data.len}};
    do {
        for (int i = 0; i < box->ndim; i++)
            index[i] = box->start[i] + at[i] * box->step[i];
        if (brc_meta_is_variable(&a->meta)) {
            BRC_GO(brc_element_next(&cursor, &one, err));
        } else {
            one = (brc_span){data.data + cursor.at, type->item_size};
            cursor.at += type->item_size;
        }
        brc_picks_add(picks, index, side == 0 ? one : none, side == 0 ? none : one);
    } while (brc_index_next(box->ndim, at, box->count));
done:
    brc_buf_dispose(&data);
    return rc;
}

/* Counts the selected elements of an axis that are before `end`. */
static uint64_t count_before(const brc_sel *sel, int axis, uint64_t end)
{
    const uint64_t start = sel->start[axis], step = sel->step[axis];
    if (end <= start)
        return 0;
    const uint64_t n = (end - start - 1) / step + 1;
    return n < sel->count[axis] ? n : sel->count[axis];
}

/* Picks elements of one side that are outside of the common part: for each axis, those that are
 * outside along that axis and inside along the axes before it. */
static int pick_beyond(brc_picks *picks, brc_array *a, int side, const uint64_t *both,
                       const brc_sel *given, brc_error *err)
{
    const brc_meta *m = &a->meta;
    brc_sel all, box;
    brc_sel_of_shape(&all, m->ndim, m->shape);
    if (given == NULL)
        given = &all;
    for (int axis = 0; axis < m->ndim; axis++) {
        box = *given;
        box.size = sizeof(box);
        box.drop = 0;
        uint64_t n = 1;
        for (int i = 0; i < m->ndim; i++) {
            const uint64_t inside = count_before(given, i, both[i]);
            box.count[i] = i < axis ? inside : count_before(given, i, m->shape[i]);
            if (i == axis) {
                box.start[i] += inside * box.step[i];
                box.count[i] -= inside;
            }
            n = box.count[i] > 0 ? n : 0;
        }
        if (n > 0)
            BRC_TRY(pick_of_box(picks, a, side, &box, err));
    }
    return BRC_OK;
}

/* Opens the array that names the type of the values. */
static int open_for_type(brc_array **out, brc_session *view, char *path,
                         const brc_entry *entry, brc_error *err)
{
    void *memory;
    BRC_TRY(brc_new(&memory, sizeof(brc_array), err));
    *out = memory;
    BRC_TRY(brc_array_of_entry(*out, view, path, entry, err));
    (*out)->session = NULL; /* nothing is read from it */
    return BRC_OK;
}

/* Picks the first selected elements of an array that only one side has. */
static int pick_whole(brc_element_diff *out, brc_array *a, int side,
                      const brc_element_wanted *wanted, brc_error *err)
{
    const uint64_t origin[BRC_MAX_NDIM] = {0};
    const brc_sel *sel = wanted->rule.sel;
    brc_sel one;
    if (a->meta.opaque || brc_meta_must_decode(&a->meta, NULL) < 0 ||
        (sel != NULL && sel->ndim != a->meta.ndim))
        return BRC_OK;
    BRC_TRY(brc_picks_init(&out->picks, a->meta.ndim, wanted->values + 1, err));
    brc_sel_of_shape(&one, a->meta.ndim, a->meta.shape);
    if (a->meta.ndim == 0)
        BRC_TRY(pick_of_box(&out->picks, a, side, &one, err));
    else
        BRC_TRY(pick_beyond(&out->picks, a, side, origin, sel, err));
    return brc_picks_settle(&out->picks, err);
}

/* ---- figures and values -------------------------------- */

/* Finds the figures where chunks are cut differently. Slabs depend on the budget, and boxes must
 * not, so they are made of cells. With another fill value nearly all elements that neither side has
 * stored differ, and all differences are one box. */
static int slab_figures(brc_element_diff *out, brc_diff_sides *sides, brc_error *err)
{
    brc_tally *tally = &out->tally;
    brc_cells cells;
    if (sides->fills_differ) {
        BRC_TRY(diff_slabs(sides, err));
        if (tally->elements > 0)
            brc_boxes_add(&out->boxes, tally->elements, tally->first, tally->last);
        return BRC_OK;
    }
    BRC_TRY(brc_cells_init(&cells, tally->ndim, sides->shape, err));
    tally->cells = &cells;
    const int rc = diff_slabs(sides, err);
    tally->cells = NULL;
    if (rc == BRC_OK)
        brc_cells_to_boxes(&cells, &out->boxes);
    brc_cells_dispose(&cells);
    return rc;
}

/* Finds the figures and the values of the elements that both have in one pass, so that each chunk
 * is decoded once. */
static int compare_common(brc_element_diff *out, brc_diff_sides *sides,
                        const brc_element_wanted *wanted, brc_error *err)
{
    const int same = brc_diff_cut_same(sides);
    brc_wanted rule = wanted->rule;
    if (!wanted->figures && !same)
        return BRC_OK;
    rule.picks = wanted->values > 0 ? &out->picks : NULL;
    rule.figures = wanted->figures;
    sides->tally = &out->tally;
    sides->wanted = &rule;
    brc_tally_want(&out->tally, &rule, wanted->figures && same ? &out->boxes : NULL);
    const int rc = same ? diff_pairs(sides, wanted->chunks ? out : NULL, err)
                        : slab_figures(out, sides, err);
    brc_boxes_settle(&out->boxes);
    out->tally.boxes = NULL;
    out->tally.wanted = &wanted->rule;
    return rc;
}

/* ---- two versions -------------------------------- */

static const char *why_not(const brc_meta *a, const brc_meta *b)
{
    if (a->ndim != b->ndim)
        return "the number of dimensions differs";
    if (a->readable == BRC_READABLE_NOW || b->readable == BRC_READABLE_NOW)
        return "its chunks are kept as they came, when its codecs or data type were not known";
    if (a->opaque || b->opaque)
        return "its codecs or data type are not known here";
    if (strcmp(a->type->json, b->type->json) != 0)
        return "the data type differs";
    return NULL;
}

static int compare_sides(brc_element_diff *out, brc_diff_sides *sides,
                         const brc_element_wanted *wanted, brc_error *err)
{
    const brc_meta *a = &sides->side[0].meta, *b = &sides->side[1].meta;
    const brc_sel *sel = wanted->rule.sel;
    out->why = why_not(a, b);
    if (out->why == NULL && sel != NULL && sel->ndim != a->ndim)
        out->why = "the number of dimensions is not that of the selection";
    if (out->why != NULL)
        return BRC_OK;
    const int both_hold = brc_diff_both_hold(sides);
    out->known = wanted->figures;
    out->added = elements_beyond(a->ndim, b->shape, sides->shape, sel);
    out->removed = elements_beyond(a->ndim, a->shape, sides->shape, sel);
    brc_tally_init(&out->tally, a->ndim, a->type);
    brc_boxes_init(&out->boxes, a->ndim);
    sides->fills_differ =
        (a->fill.len != b->fill.len || memcmp(a->fill.data, b->fill.data, a->fill.len) != 0) &&
        !brc_is_close(&wanted->rule, a->type, a->fill.data, b->fill.data);
    if (wanted->values > 0)
        BRC_TRY(brc_picks_init(&out->picks, a->ndim, wanted->values + 1, err));
    if (both_hold && (wanted->figures || wanted->values > 0))
        BRC_TRY(compare_common(out, sides, wanted, err));
    if (wanted->values == 0)
        return BRC_OK;
    for (int side = 0; side < 2 && wanted->added; side++)
        BRC_TRY(pick_beyond(&out->picks, &sides->side[side], side, sides->shape, sel, err));
    return brc_picks_settle(&out->picks, err);
}

static int open_diff_sides(brc_diff_sides *sides, const brc_node_change *change, brc_error *err)
{
    BRC_TRY(brc_array_of_entry(&sides->side[0], &sides->view, change->path, &change->a, err));
    return brc_array_of_entry(&sides->side[1], &sides->view, change->path, &change->b, err);
}

void brc_element_array_free(brc_array *array)
{
    if (array == NULL)
        return;
    brc_meta_dispose(&array->meta);
    free(array);
}

/* Lists the first elements of an array that is new, or gone. */
static int whole_values(brc_element_diff *out, breccia *repo, const brc_node_change *change,
                        const brc_element_wanted *wanted, brc_error *err)
{
    const int is_new = change->what == BRC_ADDED;
    const brc_entry *entry = is_new ? &change->b : &change->a;
    brc_diff_sides sides;
    memset(&sides, 0, sizeof(sides));
    sides.view.repo = repo;
    int rc = brc_array_of_entry(&sides.side[0], &sides.view, change->path, entry, err);
    if (rc == BRC_OK)
        rc = pick_whole(out, &sides.side[0], is_new, wanted, err);
    if (rc == BRC_OK && out->picks.n > 0)
        rc = open_for_type(&out->array, &sides.view, change->path, entry, err);
    brc_meta_dispose(&sides.side[0].meta);
    return rc;
}

static int whole_array(brc_element_diff *out, breccia *repo, const brc_node_change *change,
                       const brc_element_wanted *wanted, brc_error *err)
{
    const int is_new = change->what == BRC_ADDED;
    const brc_entry *entry = is_new ? &change->b : &change->a;
    if (entry->kind != BRC_ARRAY)
        return BRC_OK;
    if (wanted->figures) {
        BRC_TRY(elements_of_entry(is_new ? &out->added : &out->removed, repo, entry,
                                  wanted->rule.sel, err));
        out->known = 1;
        out->tally.max_abs = NAN;
    }
    return wanted->added && wanted->values > 0 ? whole_values(out, repo, change, wanted, err)
                                               : BRC_OK;
}

static int diff_arrays(brc_element_diff *out, breccia *repo, const brc_node_change *change,
                       const brc_element_wanted *wanted, brc_error *err)
{
    brc_diff_sides sides;
    memset(&sides, 0, sizeof(sides));
    sides.view.repo = repo;
    int rc = open_diff_sides(&sides, change, err);
    if (rc == BRC_OK)
        rc = compare_sides(out, &sides, wanted, err);
    if (rc == BRC_OK && out->picks.n > 0)
        rc = open_for_type(&out->array, &sides.view, change->path, &change->b, err);
    brc_meta_dispose(&sides.side[0].meta);
    brc_meta_dispose(&sides.side[1].meta);
    return rc;
}

static void element_diff_dispose(brc_element_diff *e)
{
    brc_picks_dispose(&e->picks);
    brc_element_array_free(e->array);
    free(e->chunks);
    e->array = NULL;
    e->chunks = NULL;
}

int brc_element_diff_run(brc_element_diff *out, breccia *repo, const brc_node_change *change,
                         const brc_element_wanted *wanted, brc_error *err)
{
    memset(out, 0, sizeof(*out));
    int rc = BRC_OK;
    if (change->what == BRC_ADDED || change->what == BRC_REMOVED)
        rc = whole_array(out, repo, change, wanted, err);
    else if (change->a.kind == BRC_ARRAY && change->b.kind == BRC_ARRAY &&
             !(change->what == BRC_MOVED && brc_entry_equal(&change->a, &change->b)))
        rc = diff_arrays(out, repo, change, wanted, err);
    if (rc < 0)
        element_diff_dispose(out);
    return rc;
}

/* ==== blame sets ================================ */

enum { NO_SET = UINT32_MAX };

/* A set of units that are at one commit and path, or settled. */
typedef struct blame_set {
    uint32_t up;   /* itself, or the set that it was joined with */
    uint32_t next; /* the next set of the same commit            */
    uint64_t n;
    uint32_t settled; /* one more than the commit's index in the result; 0: not settled */
    char *path;
} blame_set;

typedef struct blame_run {
    brc_store *store;
    brc_blame_diff_fn diff;
    void *ctx;
    int documents;
    brc_blame_result *out;
    void *sets;
    size_t nsets, sets_cap, commits_cap;
    uint64_t open;       /* number of units that are not settled          */
    brc_id_table places; /* by a commit's id: one more than its first set */
} blame_run;

void brc_blame_result_dispose(brc_blame_result *r)
{
    for (size_t i = 0; i < r->ncommits; i++)
        free(r->commits[i].author);
    free(r->commits);
    free(r->by);
    memset(r, 0, sizeof(*r));
}

/* ---- sets -------------------------------- */

static blame_set *set_at(const blame_run *run, uint32_t i)
{
    return (blame_set *)run->sets + i;
}

static uint32_t set_find(const blame_run *run, uint32_t i)
{
    while (set_at(run, i)->up != i) {
        set_at(run, i)->up = set_at(run, set_at(run, i)->up)->up;
        i = set_at(run, i)->up;
    }
    return i;
}

static int blame_set_new(blame_run *run, const char *path, uint32_t *out, brc_error *err)
{
    char *copy;
    if (run->nsets >= NO_SET - 1)
        return brc_fail(err, BRC_ELIMIT, "there are too many commits to look through");
    int rc = brc_grow_array(&run->sets, &run->sets_cap, run->nsets + 1, sizeof(blame_set), err);
    if (rc < 0)
        return rc;
    BRC_TRY(brc_dup(&copy, path, err));
    *out = (uint32_t)run->nsets++;
    *set_at(run, *out) = (blame_set){.up = *out, .next = NO_SET, .path = copy};
    return BRC_OK;
}

static void set_leave_path(blame_set *set)
{
    free(set->path);
    set->path = NULL;
}

/* Passes a set to a commit and path; a set that is already there absorbs it. */
static int set_pass(blame_run *run, uint32_t i, const brc_oid *commit, const char *path,
                    brc_error *err)
{
    void *p;
    char *copy;
    BRC_TRY(brc_id_table_add(&run->places, commit, &p, err));
    uint32_t *first = p;
    for (uint32_t at = *first; at != 0; at = set_at(run, at - 1)->next) {
        blame_set *there = set_at(run, at - 1);
        if (strcmp(there->path, path) == 0) {
            there->n += set_at(run, i)->n;
            set_at(run, i)->up = at - 1;
            set_leave_path(set_at(run, i));
            return BRC_OK;
        }
    }
    BRC_TRY(brc_dup(&copy, path, err));
    set_leave_path(set_at(run, i));
    set_at(run, i)->path = copy;
    set_at(run, i)->next = *first;
    *first = i + 1;
    return BRC_OK;
}

static int set_settle(blame_run *run, uint32_t i, const brc_commit *commit, int before,
                      brc_error *err)
{
    brc_blame_result *r = run->out;
    blame_set *set = set_at(run, i);
    if (set->n == 0)
        return BRC_OK;
    if (r->ncommits == 0 || brc_oid_cmp(&r->commits[r->ncommits - 1].commit, &commit->id) != 0) {
        void *p = r->commits;
        int rc = brc_grow_array(&p, &run->commits_cap, r->ncommits + 1, sizeof(brc_blamed_by),
                                err);
        r->commits = p;
        if (rc < 0)
            return rc;
        char *author;
        BRC_TRY(brc_dup(&author, before ? "" : commit->author, err));
        r->commits[r->ncommits++] = (brc_blamed_by){commit->id, commit->time_us, author, before};
    }
    set->settled = (uint32_t)r->ncommits;
    run->open -= set->n;
    set_leave_path(set);
    return BRC_OK;
}

/* ---- one commit -------------------------------- */

typedef struct set_split {
    blame_run *run;
    uint32_t from, to;
} set_split;

static int split_unit(void *ctx, size_t unit, brc_error *err)
{
    const set_split *split = ctx;
    blame_run *run = split->run;
    (void)err;
    if (unit >= run->out->n || set_find(run, run->out->by[unit]) != split->from)
        return BRC_OK;
    run->out->by[unit] = split->to;
    set_at(run, split->from)->n--;
    set_at(run, split->to)->n++;
    return BRC_OK;
}

static int is_same_place(const blame_run *run, const brc_entry *a, const brc_entry *b)
{
    return a->kind == b->kind && brc_oid_cmp(&a->map, &b->map) == 0 &&
           (!run->documents || brc_oid_cmp(&a->doc, &b->doc) == 0);
}

/* Finds the array's place in a parent. */
static int place_before(blame_run *run, const brc_commit *commit, size_t i, const char *path,
                        brc_buf *from, brc_blame_place *out, brc_error *err)
{
    int has;
    brc_oid root;
    out->commit = &commit->parents[i];
    BRC_TRY(brc_path_before(from, &has, run->store, commit, i, path, &root, &out->entry, err));
    out->path = (const char *)from->data;
    return BRC_OK;
}

/* Passes to a parent the units of *set that the parent has in the same form; *set keeps the
 * others. */
static int ask_parent(blame_run *run, const brc_commit *commit, size_t i,
                      const brc_blame_place *now, uint32_t *set, brc_buf *from, brc_error *err)
{
    brc_blame_place before;
    uint32_t rest;
    BRC_TRY(place_before(run, commit, i, now->path, from, &before, err));
    if (before.entry.kind != BRC_ARRAY)
        return BRC_OK;
    BRC_TRY(blame_set_new(run, now->path, &rest, err));
    if (!is_same_place(run, &now->entry, &before.entry)) {
        set_split split = {run, *set, rest};
        BRC_TRY(run->diff(run->ctx, now, &before, split_unit, &split, err));
    }
    if (set_at(run, *set)->n > 0)
        BRC_TRY(set_pass(run, *set, before.commit, before.path, err));
    *set = rest;
    return BRC_OK;
}

/* Passes all units to a parent that has all of them in the same form, even if it is not the first
 * parent. */
static int ask_same_parent(blame_run *run, const brc_commit *commit, const brc_blame_place *now,
                           uint32_t set, brc_buf *from, int *passed, brc_error *err)
{
    brc_blame_place before;
    for (size_t i = 0; i < commit->nparents && !*passed; i++) {
        BRC_TRY(place_before(run, commit, i, now->path, from, &before, err));
        if (!is_same_place(run, &now->entry, &before.entry))
            continue;
        *passed = 1;
        BRC_TRY(set_pass(run, set, before.commit, before.path, err));
    }
    return BRC_OK;
}

static int ask_parents(blame_run *run, const brc_commit *commit, uint32_t set, brc_error *err)
{
    brc_buf from = BRC_BUF_INIT;
    char *path = NULL;
    int passed = 0, rc;
    brc_blame_place now = {.commit = &commit->id};
    BRC_GO(brc_dup(&path, set_at(run, set)->path, err));
    now.path = path;
    BRC_GO(brc_snapshot_find(run->store, &commit->root, path, &now.entry, err));
    if (commit->nparents > 1)
        BRC_GO(ask_same_parent(run, commit, &now, set, &from, &passed, err));
    for (size_t i = 0; !passed && i < commit->nparents && set_at(run, set)->n > 0; i++)
        BRC_GO(ask_parent(run, commit, i, &now, &set, &from, err));
    if (!passed)
        rc = set_settle(run, set, commit, (commit->flags & BRC_PAST_EXPIRED) != 0, err);
done:
    free(path);
    brc_buf_dispose(&from);
    return rc;
}

static int blame_commit(blame_run *run, const brc_commit *commit, brc_error *err)
{
    const uint32_t *first = brc_id_table_find(&run->places, &commit->id);
    uint32_t at = first != NULL ? *first : 0;
    while (at != 0) {
        const uint32_t set = at - 1;
        at = set_at(run, set)->next;
        if (set_at(run, set)->n > 0)
            BRC_TRY(ask_parents(run, commit, set, err));
    }
    return BRC_OK;
}

/* ---- the walk -------------------------------- */

static int blame_walk(blame_run *run, const brc_oid *commit, brc_error *err)
{
    brc_walk *walk = NULL;
    const brc_commit *next;
    int rc;
    brc_store_walk_begin(run->store);
    BRC_GO(brc_walk_new(&walk, run->store, commit, err));
    while (run->open > 0) {
        BRC_GO(brc_walk_next(walk, &next, err));
        if (rc == 0) {
            rc = brc_fail(err, BRC_EINTERNAL, "blame has looked at all commits and is not done");
            goto done;
        }
        BRC_GO(blame_commit(run, next, err));
        brc_store_breathe(run->store);
    }
    rc = BRC_OK;
done:
    brc_walk_free(walk);
    brc_store_walk_end(run->store);
    return rc;
}

int brc_blame_run(brc_blame_result *out, brc_store *store, const brc_oid *commit, const char *path,
                  size_t n, int documents, brc_blame_diff_fn diff, void *ctx, brc_error *err)
{
    blame_run run = {.store = store, .diff = diff, .ctx = ctx, .documents = documents, .out = out,
                     .open = n, .places = BRC_ID_TABLE_INIT(sizeof(uint32_t))};
    void *p;
    uint32_t set;
    int rc;
    memset(out, 0, sizeof(*out));
    if (n == 0)
        return BRC_OK;
    BRC_GO(brc_new_array(&p, n, sizeof(uint32_t), err));
    out->by = p;
    out->n = n;
    BRC_GO(blame_set_new(&run, path, &set, err)); /* number 0: all units are in it */
    set_at(&run, set)->n = n;
    BRC_GO(set_pass(&run, set, commit, path, err));
    BRC_GO(blame_walk(&run, commit, err));
    for (size_t i = 0; i < n; i++)
        out->by[i] = set_at(&run, set_find(&run, out->by[i]))->settled - 1;
done:
    for (size_t i = 0; i < run.nsets; i++)
        free(set_at(&run, (uint32_t)i)->path);
    free(run.sets);
    brc_id_table_dispose(&run.places);
    if (rc < 0)
        brc_blame_result_dispose(out);
    return rc;
}
