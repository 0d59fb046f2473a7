#include "element_diff.h"

#include <math.h>
#include <string.h>

#include "diff_sides.h"

/* ---- what came and went -------------------------------- */

/* Elements of a shape that lie outside what both hold: of each axis, those that are past
 * it there and not along the axes before. */
static uint64_t elements_beyond(int ndim, const uint64_t *shape, const uint64_t *both)
{
    uint64_t part[BRC_MAX_NDIM], total = 0;
    memcpy(part, shape, (size_t)ndim * sizeof(*part));
    for (int i = 0; i < ndim; i++) {
        part[i] = shape[i] - both[i];
        if (!brc_add_u64(total, brc_shape_count(ndim, part), &total))
            return UINT64_MAX;
        part[i] = both[i];
    }
    return total;
}

/* All elements of an array's document; its codecs need not be known for that. */
static int elements_of_entry(uint64_t *out, breccia *repo, const brc_entry *entry, brc_error *err)
{
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
    *out = brc_shape_count((int)ndim, shape);
    return BRC_OK;
}

static int whole_array(brc_element_diff *out, breccia *repo, const brc_node_change *change,
                       brc_error *err)
{
    const int is_new = change->what == BRC_ADDED;
    const brc_entry *entry = is_new ? &change->b : &change->a;
    if (entry->kind != BRC_ARRAY)
        return BRC_OK;
    BRC_TRY(elements_of_entry(is_new ? &out->added : &out->removed, repo, entry, err));
    out->known = 1;
    out->tally.max_abs = NAN;
    return BRC_OK;
}

/* ---- two versions -------------------------------- */

static const char *why_not(const brc_meta *a, const brc_meta *b)
{
    if (a->ndim != b->ndim)
        return "the number of dimensions differs";
    if (a->opaque || b->opaque)
        return "its codecs or data type are not known here";
    if (strcmp(a->type->json, b->type->json) != 0)
        return "the data type differs";
    return NULL;
}

/* The shapes of chunks too, not only where they begin: equal bytes in chunks of other
 * shapes are other elements. */
static int axis_is_same(const brc_grid *a, const brc_grid *b, int axis, uint64_t extent)
{
    const uint64_t n = brc_grid_find(a, axis, extent - 1) + 1;
    if (a->starts[axis] == NULL && b->starts[axis] == NULL)
        return a->chunk[axis] == b->chunk[axis];
    if (n != brc_grid_find(b, axis, extent - 1) + 1)
        return 0;
    for (uint64_t i = 1; i <= n; i++) {
        uint64_t x = a->starts[axis] != NULL ? a->starts[axis][i] : i * a->chunk[axis];
        uint64_t y = b->starts[axis] != NULL ? b->starts[axis][i] : i * b->chunk[axis];
        if (x != y)
            return 0;
    }
    return 1;
}

static int same_chunks(const brc_diff_sides *sides)
{
    const brc_meta *a = &sides->side[0].meta, *b = &sides->side[1].meta;
    for (int i = 0; i < a->ndim; i++)
        if (!axis_is_same(&a->grid, &b->grid, i, sides->shape[i]))
            return 0;
    return 1;
}

static int compare_sides(brc_element_diff *out, brc_diff_sides *sides, brc_error *err)
{
    const brc_meta *a = &sides->side[0].meta, *b = &sides->side[1].meta;
    int empty = 0;
    out->why = why_not(a, b);
    if (out->why != NULL)
        return BRC_OK;
    for (int i = 0; i < a->ndim; i++) {
        sides->shape[i] = a->shape[i] < b->shape[i] ? a->shape[i] : b->shape[i];
        empty |= sides->shape[i] == 0;
    }
    out->known = 1;
    out->added = elements_beyond(a->ndim, b->shape, sides->shape);
    out->removed = elements_beyond(a->ndim, a->shape, sides->shape);
    brc_tally_init(&out->tally, a->ndim, a->type);
    sides->tally = &out->tally;
    sides->fills_differ =
        a->fill.len != b->fill.len || memcmp(a->fill.data, b->fill.data, a->fill.len) != 0;
    if (empty)
        return BRC_OK;
    return same_chunks(sides) ? brc_diff_chunk_pairs(sides, err) : brc_diff_slabs(sides, err);
}

int brc_element_diff_run(brc_element_diff *out, breccia *repo, const brc_node_change *change,
                         brc_error *err)
{
    brc_diff_sides sides;
    memset(out, 0, sizeof(*out));
    if (change->what == BRC_ADDED || change->what == BRC_REMOVED)
        return whole_array(out, repo, change, err);
    if (change->what == BRC_MOVED && brc_entry_equal(&change->a, &change->b))
        return BRC_OK;
    if (change->a.kind != BRC_ARRAY || change->b.kind != BRC_ARRAY)
        return BRC_OK;
    memset(&sides, 0, sizeof(sides));
    sides.view.repo = repo;
    int rc = brc_array_of_entry(&sides.side[0], &sides.view, change->path, &change->a, err);
    if (rc == BRC_OK)
        rc = brc_array_of_entry(&sides.side[1], &sides.view, change->path, &change->b, err);
    if (rc == BRC_OK)
        rc = compare_sides(out, &sides, err);
    brc_meta_dispose(&sides.side[0].meta);
    brc_meta_dispose(&sides.side[1].meta);
    return rc;
}
