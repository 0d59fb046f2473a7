/*
 * Two versions with different grids. What both hold is cut into slabs, whole chunks of
 * either side as far as the budget goes; slabs that a chunk of either side meets are
 * listed first, so that the work grows with what is stored and not with the shape. Each is
 * read from both sides and compared on the pool.
 */
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../nd/cut.h"
#include "diff_sides.h"

#define LIST_LEAST 4096
/* No chunk meets this many slabs: it would be larger than a chunk can be. */
#define CHUNK_SLABS ((uint64_t)1 << 24)
#define PART_BYTES ((uint64_t)256 << 10) /* compared in one job at least */

typedef struct slab_differ {
    brc_diff_sides *sides;
    brc_grid grid; /* of slabs */
    void *numbers; /* uint64_t[]: those to be visited, in row-major order */
    size_t n, cap, limit;
    brc_buf data[2];
} slab_differ;

/* ---- how slabs are cut -------------------------------- */

static int slab_fits(int ndim, const uint64_t *edges, uint64_t unit, uint64_t budget)
{
    uint64_t bytes;
    return brc_shape_bytes(ndim, edges, unit, &bytes) && bytes <= budget;
}

/* The bytes of a slab: a quarter of the budget for each side, but no less than a chunk has,
 * which is decoded whole anyway, and would be again for each slab that it meets. */
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

/* One chunk's edges, the longer of the two sides; halved while that is too much, else
 * grown as far as the budget goes, the last axis first. */
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

/* The slabs that a chunk meets. */
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

/* Cut along the first axis that has an extent. */
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
        p->job.run = slab_part_run;
        brc_group_submit(group, &p->job);
    }
    brc_group_free(group); /* waits */
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
    uint64_t index[BRC_MAX_NDIM], corner[BRC_MAX_NDIM], shape[BRC_MAX_NDIM], count[BRC_MAX_NDIM];
    brc_unvisited rest;
    brc_unvisited_start(&rest, d->sides, &d->grid);
    for (size_t i = 0; i < d->n; i++) {
        uint64_t number = ((uint64_t *)d->numbers)[i];
        for (int axis = ndim - 1; axis >= 0; axis--) {
            index[axis] = number % d->grid.count[axis];
            number /= d->grid.count[axis];
        }
        brc_unvisited_pass(&rest, index,
                           brc_diff_overlap(d->sides, &d->grid, index, corner, shape, count));
        BRC_TRY(compare_slab(d, index, err));
        BRC_TRY(brc_task_step(d->sides->view.repo, 0, err)); /* reading tells the bytes */
    }
    if (d->sides->fills_differ)
        brc_unvisited_end(&rest, d->sides);
    return BRC_OK;
}

/* Half of the budget is for the slabs, half for the chunks on their way into them. */
int brc_diff_slabs(brc_diff_sides *sides, brc_error *err)
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
