#include "api_grid.h"

#include <stdlib.h>
#include <string.h>

#include "../breccia_codec.h"
#include "api_node.h"

enum { STARTS_MOST = 65536 };

/* Reads an item of a list of edges: an edge, or an edge and how often it comes. */
static int read_edge(const brc_json *item, uint64_t *edge, uint64_t *times)
{
    *times = 1;
    if (brc_json_kind(item) != BRC_JSON_ARRAY)
        return brc_json_uint(item, INT64_MAX, edge);
    return brc_json_uint(brc_json_item(item, 0), INT64_MAX, edge) &&
           brc_json_uint(brc_json_item(item, 1), INT64_MAX, times);
}

/* Fills in the beginnings of the cells of an axis as far as the array reaches. */
static int read_starts(serve_grid *grid, int axis, const brc_json *list, brc_error *err)
{
    const uint64_t n = grid->n[axis];
    uint64_t at = 0, sum = 0, edge, times;
    uint64_t *starts = calloc((size_t)n + 1, sizeof(*starts));

    if (!starts)
        return brc_fail(err, BRC_ENOMEM, "out of memory");
    for (const brc_json *item = brc_json_first(list); item && at < n; item = brc_json_next(item)) {
        if (!read_edge(item, &edge, &times))
            break;
        for (; times > 0 && at < n; times--) {
            starts[at++] = sum;
            sum += edge;
        }
    }
    if (at < n) { /* the library has read the same list, so this cannot be       */
        free(starts);
        return brc_fail(err, BRC_ECORRUPT, "%.200s: its chunk grid cannot be read",
                        grid->info->path);
    }
    starts[n] = sum;
    grid->starts[axis] = starts;
    return BRC_OK;
}

static int read_all_starts(serve_grid *grid, serve_call *call)
{
    const brc_json *names, *list;
    brc_json *document;
    int rc = serve_document(&document, &names, call, grid->info->path);

    list = brc_json_member(document, "chunk_grid");
    list = brc_json_first(brc_json_member(brc_json_member(list, "configuration"), "chunk_shapes"));
    for (int i = 0; i < grid->info->ndim && list && rc >= 0; i++, list = brc_json_next(list))
        if (brc_json_kind(list) == BRC_JSON_ARRAY && grid->n[i] > 0 && grid->n[i] <= STARTS_MOST)
            rc = read_starts(grid, i, list, call->err);
    brc_json_free(document);
    return rc;
}

int serve_grid_read(serve_grid *out, serve_call *call, int shards)
{
    const brc_array_info *info = brc_array_describe(call->array);
    const int is_regular = (info->flags & BRC_ARRAY_REGULAR) != 0;
    const uint64_t *length = shards && info->shard ? info->shard : info->chunk;
    int rc;

    *out = (serve_grid){ .info = info };
    for (int i = 0; i < info->ndim; i++) {
        out->n[i] = info->grid[i];
        out->length[i] = is_regular          ? length[i]
                         : info->grid[i] > 0 ? info->shape[i] / info->grid[i]
                                             : 1;
        if (out->length[i] == 0)
            out->length[i] = 1;
        if (is_regular)
            out->n[i] = info->shape[i] / out->length[i] + (info->shape[i] % out->length[i] != 0);
    }
    if (is_regular)
        return BRC_OK;
    rc = read_all_starts(out, call);
    if (rc < 0)
        serve_grid_free(out);
    return rc;
}

void serve_grid_free(serve_grid *grid)
{
    for (int i = 0; i < BRC_MAX_NDIM; i++)
        free(grid->starts[i]);
    memset(grid->starts, 0, sizeof(grid->starts));
}

uint64_t serve_grid_cell(const serve_grid *grid, int axis, uint64_t element)
{
    const uint64_t *starts = grid->starts[axis];
    uint64_t low = 0, high = grid->n[axis];

    if (!starts)
        return element / grid->length[axis];
    while (high - low > 1) {
        const uint64_t middle = low + (high - low) / 2;

        if (starts[middle] <= element)
            low = middle;
        else
            high = middle;
    }
    return low;
}

uint64_t serve_grid_start(const serve_grid *grid, int axis, uint64_t cell)
{
    const uint64_t n = grid->n[axis];

    if (grid->starts[axis])
        return grid->starts[axis][cell < n ? cell : n];
    return cell * grid->length[axis];
}
