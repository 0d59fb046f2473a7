#include "grid.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../../base/alloc.h"
#include "../../nd/dtype.h"
#include "../../nd/shape.h"

/* Limits what a list of edges can demand in a few bytes ([1, 1000000000]). */
#define MAX_EDGES ((uint64_t)1 << 24)

static int grid_bad(brc_error *err, const char *pointer, const char *why)
{
    return brc_fail(err, BRC_EINVAL, "/chunk_grid/configuration%s: %s", pointer, why);
}

void brc_grid_dispose(brc_grid *grid)
{
    for (int i = 0; i < BRC_MAX_NDIM; i++)
        free(grid->starts[i]);
    memset(grid, 0, sizeof(*grid));
}

void brc_grid_regular(brc_grid *out, int ndim, const uint64_t *shape, const uint64_t *chunk)
{
    memset(out, 0, sizeof(*out));
    out->ndim = ndim;
    out->regular = 1;
    for (int i = 0; i < ndim; i++) {
        out->shape[i] = shape[i];
        out->chunk[i] = chunk[i];
        out->count[i] = brc_grid_extent(shape[i], chunk[i]);
    }
}

int brc_grid_copy(brc_grid *out, const brc_grid *from, brc_error *err)
{
    *out = *from;
    memset(out->starts, 0, sizeof(out->starts));
    for (int i = 0; i < from->ndim; i++) {
        void *p;
        if (from->starts[i] == NULL)
            continue;
        BRC_TRY(brc_new_array(&p, (size_t)from->edges[i] + 1, sizeof(uint64_t), err));
        memcpy(p, from->starts[i], ((size_t)from->edges[i] + 1) * sizeof(uint64_t));
        out->starts[i] = p;
    }
    return BRC_OK;
}

/* ---- reading -------------------------------- */

static int read_regular(brc_grid *g, const brc_json *config, brc_error *err)
{
    static const char *const members[] = {"chunk_shape"};
    int i = 0;
    if (brc_json_allow(config, members, 1, err) < 0) {
        brc_context(err, "/chunk_grid/configuration");
        return BRC_EINVAL;
    }
    const brc_json *list = brc_json_member(config, "chunk_shape");
    if (brc_json_kind(list) != BRC_JSON_ARRAY)
        return grid_bad(err, "/chunk_shape", "must be a list of integers");
    if (brc_json_count(list) != (size_t)g->ndim)
        return grid_bad(err, "/chunk_shape", "does not have as many dimensions as the shape");
    for (const brc_json *v = brc_json_first(list); v != NULL; v = brc_json_next(v), i++) {
        if (!brc_json_uint(v, INT64_MAX, &g->chunk[i]) || (g->chunk[i] == 0 && g->shape[i] > 0))
            return brc_fail(err, BRC_EINVAL,
                            "/chunk_grid/configuration/chunk_shape/%d: must be an integer from 1 "
                            "to 2^63-1",
                            i);
        /* older writers gave a dimension of length zero chunks of 0 */
        if (g->chunk[i] == 0)
            g->chunk[i] = 1;
        g->count[i] = brc_grid_extent(g->shape[i], g->chunk[i]);
    }
    return BRC_OK;
}

/* Reads one item of a list: an edge, or a pair of an edge and its number of repeats. */
static int read_edges(const brc_json *item, uint64_t *edge, uint64_t *times)
{
    *times = 1;
    if (brc_json_kind(item) != BRC_JSON_ARRAY)
        return brc_json_uint(item, INT64_MAX, edge) && *edge > 0;
    return brc_json_count(item) == 2 && brc_json_uint(brc_json_item(item, 0), INT64_MAX, edge) &&
           brc_json_uint(brc_json_item(item, 1), INT64_MAX, times) && *edge > 0 && *times > 0;
}

static int read_list(brc_grid *g, int axis, const brc_json *list, brc_error *err)
{
    void *starts = NULL;
    size_t cap = 0;
    uint64_t n = 0, sum = 0, edge, times;
    int rc;
    BRC_GO(brc_grow_array(&starts, &cap, 1, sizeof(uint64_t), err));
    ((uint64_t *)starts)[0] = 0;
    for (const brc_json *v = brc_json_first(list); v != NULL; v = brc_json_next(v)) {
        if (!read_edges(v, &edge, &times)) {
            rc = brc_fail(err, BRC_EINVAL,
                          "/chunk_grid/configuration/chunk_shapes/%d: an edge must be an integer "
                          "of 1 or more, or a pair [edge, times]",
                          axis);
            goto done;
        }
        if (times > MAX_EDGES || n + times > MAX_EDGES) {
            rc = brc_fail(err, BRC_ELIMIT,
                          "/chunk_grid/configuration/chunk_shapes/%d: more than 2^24 edges", axis);
            goto done;
        }
        BRC_GO(brc_grow_array(&starts, &cap, (size_t)(n + times + 1), sizeof(uint64_t), err));
        for (; times > 0; times--) {
            if (!brc_add_u64(sum, edge, &sum) || sum > INT64_MAX) {
                rc = brc_fail(err, BRC_EINVAL,
                              "/chunk_grid/configuration/chunk_shapes/%d: the edges add up to "
                              "more than 2^63-1",
                              axis);
                goto done;
            }
            ((uint64_t *)starts)[++n] = sum;
        }
        if (edge > g->chunk[axis])
            g->chunk[axis] = edge;
    }
    if (sum < g->shape[axis]) {
        rc = brc_fail(err, BRC_EINVAL,
                      "/chunk_grid/configuration/chunk_shapes/%d: the edges add up to %" PRIu64
                      ", less than the shape's %" PRIu64,
                      axis, sum, g->shape[axis]);
        goto done;
    }
    g->starts[axis] = starts;
    g->edges[axis] = n;
    g->count[axis] = g->shape[axis] > 0 ? brc_grid_find(g, axis, g->shape[axis] - 1) + 1 : 0;
    return BRC_OK;
done:
    free(starts);
    return rc;
}

static int read_rectilinear(brc_grid *g, const brc_json *config, brc_error *err)
{
    static const char *const members[] = {"kind", "chunk_shapes"};
    int i = 0;
    if (brc_json_allow(config, members, 2, err) < 0) {
        brc_context(err, "/chunk_grid/configuration");
        return BRC_EINVAL;
    }
    if (!brc_json_is(brc_json_member(config, "kind"), "inline"))
        return grid_bad(err, "/kind", "must be \"inline\"");
    const brc_json *list = brc_json_member(config, "chunk_shapes");
    if (brc_json_kind(list) != BRC_JSON_ARRAY || brc_json_count(list) != (size_t)g->ndim)
        return grid_bad(err, "/chunk_shapes", "must be a list with one item per dimension");
    g->regular = 1;
    for (const brc_json *v = brc_json_first(list); v != NULL; v = brc_json_next(v), i++) {
        if (brc_json_kind(v) == BRC_JSON_ARRAY) {
            g->regular = 0;
            BRC_TRY(read_list(g, i, v, err));
            continue;
        }
        if (!brc_json_uint(v, INT64_MAX, &g->chunk[i]) || g->chunk[i] == 0)
            return brc_fail(err, BRC_EINVAL,
                            "/chunk_grid/configuration/chunk_shapes/%d: an edge must be an integer "
                            "of 1 or more",
                            i);
        g->count[i] = brc_grid_extent(g->shape[i], g->chunk[i]);
    }
    return BRC_OK;
}

int brc_grid_read(brc_grid *out, const brc_json *doc, int ndim, const uint64_t *shape,
                  brc_error *err)
{
    brc_named grid;
    memset(out, 0, sizeof(*out));
    int rc = brc_named_read(&grid, brc_json_member(doc, "chunk_grid"), err);
    if (rc < 0) {
        brc_context(err, "/chunk_grid");
        return rc;
    }
    if (grid.may_ignore)
        return brc_fail(err, BRC_EINVAL,
                        "/chunk_grid: \"must_understand\": false is not allowed here");
    out->ndim = ndim;
    memcpy(out->shape, shape, (size_t)ndim * sizeof(*shape));
    if (strcmp(grid.name, "regular") == 0) {
        out->regular = 1;
        rc = read_regular(out, grid.config, err);
    } else if (strcmp(grid.name, "rectilinear") == 0) {
        rc = read_rectilinear(out, grid.config, err);
    } else {
        rc = brc_fail(err, BRC_EUNSUPPORTED,
                      "/chunk_grid: \"%.60s\" is not known; \"regular\" and \"rectilinear\" are",
                      grid.name);
    }
    if (rc < 0)
        brc_grid_dispose(out);
    return rc;
}

/* ---- places -------------------------------- */

static int same_along(const brc_grid *a, const brc_grid *b, int i)
{
    if (a->count[i] != b->count[i] || (a->starts[i] == NULL) != (b->starts[i] == NULL))
        return 0;
    if (a->starts[i] == NULL)
        return a->chunk[i] == b->chunk[i];
    return memcmp(a->starts[i], b->starts[i], (size_t)(a->count[i] + 1) * sizeof(uint64_t)) == 0;
}

int brc_grid_same(const brc_grid *a, const brc_grid *b)
{
    for (int i = 0; i < a->ndim; i++)
        if (!same_along(a, b, i))
            return 0;
    return 1;
}

uint64_t brc_grid_find(const brc_grid *grid, int axis, uint64_t coordinate)
{
    const uint64_t *starts = grid->starts[axis];
    if (starts == NULL)
        return coordinate / grid->chunk[axis];
    uint64_t low = 0, high = grid->edges[axis]; /* starts[low] <= coordinate < starts[high] */
    while (low + 1 < high) {
        uint64_t middle = low + (high - low) / 2;
        if (starts[middle] <= coordinate)
            low = middle;
        else
            high = middle;
    }
    return low;
}

void brc_grid_chunk(const brc_grid *grid, const uint64_t *index, uint64_t *corner, uint64_t *chunk)
{
    for (int i = 0; i < grid->ndim; i++) {
        const uint64_t *starts = grid->starts[i];
        corner[i] = starts != NULL ? starts[index[i]] : index[i] * grid->chunk[i];
        chunk[i] = starts != NULL ? starts[index[i] + 1] - starts[index[i]] : grid->chunk[i];
    }
}

uint64_t brc_grid_round_up(const brc_grid *grid, int axis, uint64_t extent)
{
    if (extent == 0)
        return 0;
    if (grid->starts[axis] == NULL)
        return brc_grid_extent(extent, grid->chunk[axis]) * grid->chunk[axis];
    return grid->starts[axis][brc_grid_find(grid, axis, extent - 1) + 1];
}

int brc_grid_can_hold(const brc_grid *grid, const uint64_t *shape, brc_error *err)
{
    for (int i = 0; i < grid->ndim; i++)
        if (grid->starts[i] != NULL && shape[i] > grid->starts[i][grid->edges[i]])
            return brc_fail(err, BRC_EINVAL,
                            "axis %d cannot grow to %" PRIu64
                            ": the edges of its chunks add up to %" PRIu64,
                            i, shape[i], grid->starts[i][grid->edges[i]]);
    return BRC_OK;
}
