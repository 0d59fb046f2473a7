/* Changing what an array is: its shape, its codecs, its past. */
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../base/arena.h"
#include "../history/map_totals.h"
#include "array.h"

/* ---- shape -------------------------------- */

typedef struct outside_list {
    const uint64_t *grid;
    int ndim;
    brc_arena arena;
    void *edits; /* brc_edit[] */
    size_t n, cap;
} outside_list;

static int note_outside(void *ctx, brc_span key, brc_span value, brc_error *err)
{
    outside_list *list = ctx;
    uint64_t index[BRC_MAX_NDIM];
    uint8_t *copy;
    int outside = 0;
    (void)value;
    if (brc_chunk_key_decode(key.data, key.len, index) != list->ndim)
        return brc_fail(err, BRC_ECORRUPT, "a chunk's key is damaged; run 'breccia fsck'");
    for (int i = 0; i < list->ndim; i++)
        outside |= index[i] >= list->grid[i];
    if (!outside)
        return BRC_OK;
    BRC_TRY(brc_grow_array(&list->edits, &list->cap, list->n + 1, sizeof(brc_edit), err));
    BRC_TRY(brc_arena_copy(&list->arena, key.data, key.len, &copy, err));
    ((brc_edit *)list->edits)[list->n++] = (brc_edit){copy, key.len, NULL, 0};
    return BRC_OK;
}

/* The chunk map without chunks outside the grid. */
static int drop_outside(brc_store *store, int ndim, const uint64_t *grid, brc_oid *map,
                        brc_error *err)
{
    outside_list list = {.grid = grid, .ndim = ndim};
    brc_oid out;
    int rc = brc_map_each(store, map, note_outside, &list, err);
    if (rc == BRC_OK && list.n > 0) {
        rc = brc_map_edit(store, map, list.edits, list.n, &out, err);
        if (rc == BRC_OK)
            rc = brc_map_total_follow(store, map, &out, list.edits, list.n, err);
        if (rc == BRC_OK)
            *map = out;
    }
    brc_arena_dispose(&list.arena);
    free(list.edits);
    return rc;
}

/* The edge of the array along one axis: chunks that its end cuts. */
typedef struct edge_list {
    int ndim, axis;
    uint64_t at;                  /* their index along the axis */
    uint64_t first, end;          /* of the padding, along the axis */
    uint64_t whole[BRC_MAX_NDIM]; /* the shape, rounded up to whole chunks */
    uint64_t count[BRC_MAX_NDIM]; /* and how many chunks that are */
    void *indexes;                /* of stored chunks: ndim numbers each */
    size_t n, cap;
} edge_list;

static int note_edge(void *ctx, const uint64_t *index, const brc_oid *id, brc_error *err)
{
    edge_list *edge = ctx;
    size_t ndim = (size_t)edge->ndim;
    (void)id;
    if (index[edge->axis] != edge->at)
        return BRC_OK;
    BRC_TRY(brc_grow_array(&edge->indexes, &edge->cap, (edge->n + 1) * ndim, sizeof(*index), err));
    memcpy((uint64_t *)edge->indexes + edge->n++ * ndim, index, ndim * sizeof(*index));
    return BRC_OK;
}

/* Fills the padding of one chunk of the edge, or (index NULL) of all of them. */
static int fill_edge(brc_array *a, const edge_list *edge, const uint64_t *index, brc_error *err)
{
    static const int64_t still[BRC_MAX_NDIM];
    const brc_meta *m = &a->meta;
    brc_span fill = {m->fill.data, m->fill.len};
    brc_region r;
    brc_sel sel;
    memset(&sel, 0, sizeof(sel));
    sel.ndim = edge->ndim;
    memcpy(sel.count, edge->whole, sizeof(sel.count));
    if (index != NULL)
        brc_grid_chunk(&m->grid, index, sel.start, sel.count);
    for (int j = 0; j < edge->ndim; j++)
        sel.step[j] = 1;
    sel.start[edge->axis] = edge->first;
    sel.count[edge->axis] = edge->end - edge->first;
    BRC_TRY(brc_region_init(&r, a, &sel, edge->whole, still, err));
    return brc_array_write_region(
        a, &r, brc_meta_is_variable(m) ? (const void *)&fill : m->fill.data, err);
}

/* Up to this many chunks an edge is processed whole, without asking what is stored. */
#define SMALL_EDGE 1024

static int clean_edge(brc_array *a, edge_list *edge, brc_error *err)
{
    uint64_t chunks = 1;
    int countable = 1;
    for (int j = 0; j < edge->ndim; j++)
        if (j != edge->axis)
            countable &= brc_mul_u64(chunks, edge->count[j], &chunks);
    if (countable && chunks <= SMALL_EDGE)
        return fill_edge(a, edge, NULL, err);
    BRC_TRY(brc_array_each_chunk(a, note_edge, edge, err));
    if (countable && chunks / 4 <= edge->n)
        return fill_edge(a, edge, NULL, err);
    for (size_t i = 0; i < edge->n; i++)
        BRC_TRY(fill_edge(a, edge, (uint64_t *)edge->indexes + i * (size_t)edge->ndim, err));
    return BRC_OK;
}

/* If `keep` cuts a chunk along an axis that becomes longer or shorter, everything past
 * it becomes the fill value: padding never comes back as data. */
static int clean_edges(brc_array *a, const uint64_t *keep, const uint64_t *shape, brc_error *err)
{
    const brc_meta *m = &a->meta;
    edge_list edge = {.ndim = m->ndim};
    int rc = BRC_OK;
    for (int i = 0; i < m->ndim; i++) {
        if (keep[i] == 0)
            return BRC_OK; /* nothing is left */
        edge.whole[i] = brc_grid_round_up(&m->grid, i, keep[i]);
        edge.count[i] = brc_grid_find(&m->grid, i, keep[i] - 1) + 1;
    }
    for (int i = 0; i < m->ndim && rc == BRC_OK; i++) {
        if (edge.whole[i] == keep[i] || shape[i] == m->shape[i])
            continue;
        edge.axis = i;
        edge.at = edge.count[i] - 1;
        edge.first = keep[i];
        edge.end = edge.whole[i];
        edge.n = 0;
        rc = clean_edge(a, &edge, err);
    }
    free(edge.indexes);
    return rc;
}

static int set_shape(brc_array *a, const uint64_t *shape, brc_error *err)
{
    brc_json *doc;
    BRC_TRY(brc_entry_doc(brc_array_store(a), &a->entry, &doc, err));
    int rc = brc_meta_set_shape(doc, a->meta.ndim, shape, err);
    if (rc == BRC_OK)
        rc = brc_array_put_entry(a, doc, NULL, err);
    brc_json_free(doc);
    return rc;
}

/* What a new shape keeps, and how many chunks it has along each axis. */
static int plan_resize(const brc_array *a, const uint64_t *shape, uint64_t *keep, uint64_t *count,
                       int *shrinks, brc_error *err)
{
    const brc_grid *grid = &a->meta.grid;
    int same = 1;
    *shrinks = 0;
    for (int i = 0; i < a->meta.ndim; i++) {
        if (shape[i] > INT64_MAX)
            return brc_fail(err, BRC_ELIMIT, "%s: an extent is larger than 2^63-1", a->path);
        *shrinks |= shape[i] < a->meta.shape[i];
        same &= shape[i] == a->meta.shape[i];
        keep[i] = shape[i] < a->meta.shape[i] ? shape[i] : a->meta.shape[i];
    }
    int rc = brc_grid_can_hold(grid, shape, err);
    if (rc < 0) {
        brc_context(err, "%s", a->path);
        return rc;
    }
    for (int i = 0; i < a->meta.ndim; i++)
        count[i] = shape[i] > 0 ? brc_grid_find(grid, i, shape[i] - 1) + 1 : 0;
    return !same;
}

/* Within a change. */
static int resize_array(brc_array *a, const uint64_t *shape, brc_error *err)
{
    brc_store *store = brc_array_store(a);
    uint64_t keep[BRC_MAX_NDIM], count[BRC_MAX_NDIM];
    int shrinks;
    if (brc_meta_must_encode(&a->meta, err) < 0) {
        brc_context(err, "%s cannot be resized here", a->path);
        return BRC_EUNSUPPORTED;
    }
    int differs = plan_resize(a, shape, keep, count, &shrinks, err);
    if (differs <= 0)
        return differs;
    if (shrinks) {
        brc_oid map;
        BRC_TRY(brc_fold_chunks(store, &a->entry, a->row, &map, err));
        BRC_TRY(drop_outside(store, a->meta.ndim, count, &map, err));
        BRC_TRY(brc_draft_chunk_clear(store, a->row, NULL, 0, err));
        BRC_TRY(brc_array_put_entry(a, NULL, &map, err));
    }
    BRC_TRY(clean_edges(a, keep, shape, err));
    return set_shape(a, shape, err);
}

int brc_array_resize(brc_array *a, const uint64_t *shape, brc_error *err)
{
    BRC_TRY(brc_array_begin(a, err));
    return brc_array_end(a, resize_array(a, shape, err), err);
}

static int append_elements(brc_array *a, int axis, uint64_t count, const void *data, size_t len,
                           brc_error *err)
{
    uint64_t shape[BRC_MAX_NDIM], before;
    brc_sel sel;
    if (axis < 0 || axis >= a->meta.ndim)
        return brc_fail(err, BRC_EINVAL, "%s has no axis %d: it has %d", a->path, axis,
                        a->meta.ndim);
    memcpy(shape, a->meta.shape, sizeof(shape));
    before = shape[axis];
    if (!brc_add_u64(before, count, &shape[axis]))
        return brc_fail(err, BRC_ELIMIT, "%s: an extent is larger than 2^63-1", a->path);
    BRC_TRY(resize_array(a, shape, err));
    brc_sel_all(&sel, a);
    sel.start[axis] = before;
    sel.count[axis] = count;
    return brc_array_write(a, &sel, data, len, err);
}

int brc_array_append(brc_array *a, int axis, uint64_t count, const void *data, size_t len,
                     brc_error *err)
{
    BRC_TRY(brc_array_begin(a, err));
    return brc_array_end(a, append_elements(a, axis, count, data, len, err), err);
}

/* ---- as it was -------------------------------- */

static int check_same_form(const brc_array *a, const brc_array *then, const brc_sel *sel,
                           brc_error *err)
{
    if (strcmp(a->meta.dtype, then->meta.dtype) != 0 || a->meta.ndim != then->meta.ndim)
        return brc_fail(err, BRC_EINVAL,
                        "%s had a different data type or number of dimensions then: restore all of "
                        "it",
                        a->path);
    int rc = brc_sel_check(sel, then->meta.ndim, then->meta.shape, err);
    if (rc < 0)
        brc_context(err, "%s had a different shape then", a->path);
    return rc;
}

static int restore_region(brc_array *a, const brc_sel *sel, const char *rev, brc_error *err)
{
    brc_session *s = NULL;
    brc_array *then = NULL;
    brc_sel all;
    int rc;
    if (sel == NULL) {
        brc_sel_all(&all, a);
        sel = &all;
    }
    BRC_GO(brc_session_open(&s, a->session->repo, rev != NULL ? rev : a->session->branch,
                            BRC_SESSION_AT, err));
    BRC_GO(brc_array_open(&then, s, a->path, err));
    BRC_GO(check_same_form(a, then, sel, err));
    BRC_GO(brc_array_can_write(a, err));
    rc = brc_array_recut(a, then, sel, err);
done:
    brc_array_free(then);
    brc_session_free(s);
    return rc;
}

int brc_array_restore(brc_array *a, const brc_sel *sel, const char *rev, brc_error *err)
{
    BRC_TRY(brc_array_begin(a, err));
    return brc_array_end(a, restore_region(a, sel, rev, err), err);
}
