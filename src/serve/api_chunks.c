/*
 * api_chunks.c - where an array's chunks come from: "chunks" of a cut of the grid, and "blame" of
 * elements.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../breccia_codec.h"
#include "api_grid.h"
#include "api_node.h"

enum {
    CELLS_MOST = 4096,
    BLAMED_MOST = 4096,
    LENGTHS_MS = 700 /* the time that lengths of chunks may take                */
};

/* A cut of the grid: of chunks, and of shards if the array has such. */
struct cells {
    const brc_array_info *info;
    serve_grid grid;
    uint64_t first[BRC_MAX_NDIM], count[BRC_MAX_NDIM];
    int axes[BRC_MAX_NDIM], naxes;
    uint64_t n;
    uint8_t *there;
    uint64_t *lengths;    /* UINT64_MAX: not known                              */
    uint32_t *commits;    /* 1 + the number in `ids`; 0: not known              */
    brc_blamed *ids;
    size_t nids;
};

static void cells_free(struct cells *cells)
{
    serve_grid_free(&cells->grid);
    free(cells->there);
    free(cells->lengths);
    free(cells->commits);
    free(cells->ids);
}

/* ---- which cells -------------------------------- */

static int choose_cells(struct cells *cells, serve_call *call)
{
    const char *slice = serve_param(call, "slice");
    brc_sel sel = BRC_SEL_INIT;

    cells->info = brc_array_describe(call->array);
    SERVE_TRY(serve_grid_read(&cells->grid, call, 1));
    SERVE_TRY(brc_sel_parse(&sel, call->array, slice, call->err));
    cells->n = 1;
    for (int i = 0; i < sel.ndim; i++) {
        const uint64_t last = sel.start[i] + (sel.count[i] ? sel.count[i] - 1 : 0) * sel.step[i];

        cells->first[i] = serve_grid_cell(&cells->grid, i, sel.start[i]);
        cells->count[i] =
            sel.count[i] ? serve_grid_cell(&cells->grid, i, last) - cells->first[i] + 1 : 0;
        if (!(sel.drop >> i & 1))
            cells->axes[cells->naxes++] = i;
        if (__builtin_mul_overflow(cells->n, cells->count[i], &cells->n))
            cells->n = UINT64_MAX;
    }
    if (cells->n > CELLS_MOST)
        return brc_fail(call->err, BRC_ELIMIT,
                        "%" PRIu64 " chunks are more than the %d that are drawn: choose a part",
                        cells->n, CELLS_MOST);
    cells->there = calloc((size_t)cells->n + 1, sizeof(*cells->there));
    cells->lengths = calloc((size_t)cells->n + 1, sizeof(*cells->lengths));
    cells->commits = calloc((size_t)cells->n + 1, sizeof(*cells->commits));
    cells->ids = calloc((size_t)cells->n + 1, sizeof(*cells->ids));
    if (!cells->there || !cells->lengths || !cells->commits || !cells->ids)
        return brc_fail(call->err, BRC_ENOMEM, "out of memory");
    return BRC_OK;
}

/* Sets `index` to the place of the i-th cell in the grid. */
static void cell_index(const struct cells *cells, uint64_t i, uint64_t index[BRC_MAX_NDIM])
{
    for (int axis = cells->info->ndim - 1; axis >= 0; axis--) {
        index[axis] = cells->first[axis] + i % cells->count[axis];
        i /= cells->count[axis];
    }
}

/* Returns the number of the cell at a place of the grid, or UINT64_MAX if it is none of these. */
static uint64_t cell_number(const struct cells *cells, const uint64_t *index)
{
    uint64_t number = 0;

    for (int axis = 0; axis < cells->info->ndim; axis++) {
        if (index[axis] < cells->first[axis] ||
            index[axis] - cells->first[axis] >= cells->count[axis])
            return UINT64_MAX;
        number = number * cells->count[axis] + (index[axis] - cells->first[axis]);
    }
    return number;
}

/* ---- what is stored -------------------------------- */

/* How an array's chunk keys are written. */
struct key_form {
    char separator;
    int is_v2;
};

static int read_key_form(struct key_form *out, serve_call *call)
{
    const brc_json *names, *encoding;
    brc_json *document;
    const char *separator;

    SERVE_TRY(serve_document(&document, &names, call, brc_array_describe(call->array)->path));
    encoding = brc_json_member(document, "chunk_key_encoding");
    out->is_v2 = brc_json_is(brc_json_member(encoding, "name"), "v2");
    out->separator = out->is_v2 ? '.' : '/';
    if (brc_json_text(brc_json_member(brc_json_member(encoding, "configuration"), "separator"),
                      &separator) &&
        *separator)
        out->separator = *separator;
    brc_json_free(document);
    return BRC_OK;
}

/* Writes the key of a chunk: "a/c/0/1". */
static int write_key(brc_buf *out, const struct key_form *form, const char *path, int ndim,
                     const uint64_t *index, brc_error *err)
{
    const char *node = path + 1; /* without the root's "/"                     */

    out->len = 0;
    SERVE_TRY(brc_buf_printf(out, err, "%s%s", node, *node ? "/" : ""));
    if (!form->is_v2)
        SERVE_TRY(brc_buf_printf(out, err, "c"));
    if (form->is_v2 && ndim == 0)
        return brc_buf_printf(out, err, "0");
    for (int i = 0; i < ndim; i++) {
        const char separator[2] = { form->is_v2 && i == 0 ? '\0' : form->separator, '\0' };

        SERVE_TRY(brc_buf_printf(out, err, "%s%" PRIu64, separator, index[i]));
    }
    return BRC_OK;
}

/* Finds which cells are stored, and, while time is left, how many bytes each is. */
static int measure_cells(struct cells *cells, serve_call *call)
{
    struct key_form form;
    brc_buf key = BRC_BUF_INIT;
    int rc = read_key_form(&form, call);

    for (uint64_t i = 0; i < cells->n && rc >= 0; i++) {
        const int late = serve_elapsed_ms(call) > LENGTHS_MS;
        brc_key_info info = BRC_KEY_INFO_INIT;
        uint64_t index[BRC_MAX_NDIM];

        if (late)
            call->out->immutable = 0; /* another answer may have more           */
        cell_index(cells, i, index);
        cells->lengths[i] = UINT64_MAX;
        rc = write_key(&key, &form, cells->info->path, cells->info->ndim, index, call->err);
        if (rc < 0)
            break;
        rc = brc_key_get(NULL, call->session, (const char *)key.data, NULL, late ? NULL : &info,
                         call->err);
        cells->there[i] = rc >= 0;
        if (rc >= 0 && !late)
            cells->lengths[i] = info.length;
        if (rc == BRC_ENOTFOUND)
            rc = BRC_OK;
    }
    brc_buf_dispose(&key);
    return rc;
}

static uint32_t commit_number(struct cells *cells, const brc_blamed *blamed)
{
    size_t i = 0;

    while (i < cells->nids && memcmp(&cells->ids[i].commit, &blamed->commit, sizeof(brc_oid)) != 0)
        i++;
    if (i == cells->nids)
        cells->ids[cells->nids++] = *blamed;
    return (uint32_t)i + 1;
}

/* Notes the newest commit of each cell's chunks. */
static int blame_cells(struct cells *cells, serve_call *call)
{
    const brc_array_info *info = cells->info;
    const brc_blamed *blamed;
    brc_sel sel = BRC_SEL_INIT;
    int rc;

    sel.ndim = info->ndim;
    for (int i = 0; i < info->ndim; i++) {
        const uint64_t from = serve_grid_start(&cells->grid, i, cells->first[i]),
                       to = serve_grid_start(&cells->grid, i, cells->first[i] + cells->count[i]);

        sel.start[i] = from;
        sel.step[i] = 1;
        sel.count[i] = (to > info->shape[i] ? info->shape[i] : to) - from;
    }
    rc = brc_blame(&call->iter, call->array, &sel, 0, call->err);
    while (rc >= 0 && (rc = brc_next(call->iter, &blamed, call->err)) == 1) {
        uint64_t index[BRC_MAX_NDIM], at;

        for (int i = 0; i < info->ndim; i++)
            index[i] = info->shard ? blamed->first[i] * info->chunk[i] / info->shard[i]
                                   : blamed->first[i];
        at = cell_number(cells, index);
        if (at != UINT64_MAX &&
            (cells->commits[at] == 0 ||
             cells->ids[cells->commits[at] - 1].time_us < blamed->time_us))
            cells->commits[at] = commit_number(cells, blamed);
    }
    serve_drop_iter(call);
    return rc;
}

/* ---- as JSON -------------------------------- */

static void put_blame_origin(serve_json *json, const brc_blamed *blamed)
{
    serve_json_id(json, "commit", &blamed->commit);
    serve_json_int(json, "time", blamed->time_us);
    serve_json_text(json, "author", blamed->author);
    if (blamed->flags & BRC_BLAME_BEFORE)
        serve_json_bool(json, "or_before", 1);
}

/* Writes where cells begin along an axis that is kept, and where the last one ends. */
static void put_starts(serve_json *json, const struct cells *cells, int axis)
{
    serve_json_open(json, NULL, '[');
    for (uint64_t i = 0; i <= cells->count[axis]; i++)
        serve_json_uint(json, NULL, serve_grid_start(&cells->grid, axis, cells->first[axis] + i));
    serve_json_close(json, ']');
}

/* Returns the bytes of a decoded cell; 0 if they vary. */
static uint64_t decoded_bytes(const struct cells *cells, uint64_t i)
{
    uint64_t bytes = cells->info->item_size, index[BRC_MAX_NDIM];

    cell_index(cells, i, index);
    for (int axis = 0; axis < cells->info->ndim; axis++) {
        const uint64_t length = serve_grid_start(&cells->grid, axis, index[axis] + 1) -
                                serve_grid_start(&cells->grid, axis, index[axis]);

        if (__builtin_mul_overflow(bytes, length, &bytes))
            return 0;
    }
    return bytes;
}

static void put_grid_cells(serve_json *json, const struct cells *cells, int blamed)
{
    uint64_t of_axis[3][BRC_MAX_NDIM];

    for (int k = 0; k < cells->naxes; k++) {
        of_axis[0][k] = (uint64_t)cells->axes[k];
        of_axis[1][k] = cells->first[cells->axes[k]];
        of_axis[2][k] = cells->count[cells->axes[k]];
    }
    serve_json_dims(json, "axes", of_axis[0], cells->naxes);
    serve_json_dims(json, "first", of_axis[1], cells->naxes);
    serve_json_dims(json, "count", of_axis[2], cells->naxes);
    serve_json_open(json, "starts", '[');
    for (int k = 0; k < cells->naxes && cells->n > 0; k++)
        put_starts(json, cells, cells->axes[k]);
    serve_json_close(json, ']');
    serve_json_open(json, "decoded", '[');
    for (uint64_t i = 0; i < cells->n; i++)
        serve_json_uint(json, NULL, decoded_bytes(cells, i));
    serve_json_close(json, ']');
    serve_json_open(json, "there", '[');
    for (uint64_t i = 0; i < cells->n; i++)
        serve_json_uint(json, NULL, cells->there[i]);
    serve_json_close(json, ']');
    serve_json_open(json, "bytes", '[');
    for (uint64_t i = 0; i < cells->n; i++)
        if (cells->there[i] && cells->lengths[i] != UINT64_MAX)
            serve_json_uint(json, NULL, cells->lengths[i]);
        else
            serve_json_text(json, NULL, NULL);
    serve_json_close(json, ']');
    if (!blamed)
        return;
    serve_json_open(json, "last", '['); /* numbers in `commits`; -1: none        */
    for (uint64_t i = 0; i < cells->n; i++)
        serve_json_int(json, NULL, (int64_t)cells->commits[i] - 1);
    serve_json_close(json, ']');
    serve_json_open(json, "commits", '[');
    for (size_t i = 0; i < cells->nids; i++) {
        serve_json_open(json, NULL, '{');
        serve_json_id(json, "commit", &cells->ids[i].commit);
        serve_json_int(json, "time", cells->ids[i].time_us);
        serve_json_close(json, '}');
    }
    serve_json_close(json, ']');
}

int serve_chunks(serve_call *call)
{
    const char *commits = serve_param(call, "commits");
    struct cells cells = { .naxes = 0 };
    int blamed = 0, rc;

    SERVE_TRY(serve_open_version(call));
    serve_put_version(call);
    SERVE_TRY(serve_open_array(call, serve_path_param(call)));
    rc = choose_cells(&cells, call);
    if (rc >= 0)
        rc = measure_cells(&cells, call);
    if (rc >= 0 && cells.n > 0 && commits && strcmp(commits, "0") != 0) {
        rc = blame_cells(&cells, call);
        blamed = rc >= 0;
        if (rc == BRC_EMISUSE) /* uncommitted chunks are of no commit            */
            rc = BRC_OK;
    }
    if (rc >= 0)
        put_grid_cells(&call->json, &cells, blamed);
    cells_free(&cells);
    return rc;
}

/* ---- blame -------------------------------- */

int serve_blame(serve_call *call)
{
    serve_json *json = &call->json;
    const brc_blamed *blamed;
    brc_sel sel = BRC_SEL_INIT;
    int rc;

    SERVE_TRY(serve_open_version(call));
    serve_put_version(call);
    SERVE_TRY(serve_open_array(call, serve_path_param(call)));
    SERVE_TRY(brc_sel_parse(&sel, call->array, serve_param(call, "slice"), call->err));
    if (brc_sel_count(&sel) > BLAMED_MOST)
        return brc_fail(call->err, BRC_ELIMIT, "at most %d elements are asked for their commits",
                        BLAMED_MOST);
    SERVE_TRY(brc_blame(&call->iter, call->array, &sel, BRC_BLAME_ELEMENTS, call->err));
    serve_json_open(json, "runs", '[');
    while ((rc = brc_next(call->iter, &blamed, call->err)) == 1) {
        serve_json_open(json, NULL, '{');
        serve_json_dims(json, "first", blamed->first, blamed->ndim);
        serve_json_uint(json, "count", blamed->count);
        put_blame_origin(json, blamed);
        serve_json_close(json, '}');
    }
    serve_json_close(json, ']');
    return rc;
}
