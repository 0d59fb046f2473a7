#include "element_diff.h"

#include <math.h>
#include <string.h>

#include "chunk_pairs.h"

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

/* ---- pair by pair -------------------------------- */

typedef struct pair_diff {
    brc_diff_sides *sides;
    brc_unvisited rest;
    brc_pairs *pairs;
} pair_diff;

static int compare_pair(const brc_diff_sides *sides, brc_chunk_pair *p, const brc_span *x,
                        const brc_span *y, brc_error *err)
{
    uint64_t corner[BRC_MAX_NDIM], shape[BRC_MAX_NDIM], count[BRC_MAX_NDIM];
    brc_diff_overlap(sides, &sides->side[0].meta.grid, p->index, corner, shape, count);
    return brc_diff_box(&p->tally, sides, corner, shape, count, x, y, err);
}

static void pair_compared(void *ctx, const brc_chunk_pair *p)
{
    const pair_diff *d = ctx;
    brc_tally_merge(d->sides->tally, &p->tally);
}

static int pair_note(void *ctx, brc_span key, brc_span a, brc_span b, brc_error *err)
{
    pair_diff *d = ctx;
    const brc_grid *grid = &d->sides->side[0].meta.grid;
    uint64_t corner[BRC_MAX_NDIM], shape[BRC_MAX_NDIM], count[BRC_MAX_NDIM];
    brc_chunk_pair p;
    BRC_TRY(brc_pair_read(&p, d->sides, key, a, b, err));
    if (!brc_diff_meets(d->sides, grid, p.index))
        return BRC_OK;
    if (d->sides->fills_differ)
        brc_unvisited_pass(&d->rest, p.index,
                           brc_diff_overlap(d->sides, grid, p.index, corner, shape, count));
    if (p.there[0] && p.there[1] && brc_oid_cmp(&p.object[0].id, &p.object[1].id) == 0)
        return BRC_OK;
    return brc_pairs_add(d->pairs, &p, err);
}

static int pairs_walk(pair_diff *d, brc_error *err)
{
    brc_store *store = brc_array_store(&d->sides->side[0]);
    const brc_oid *a = &d->sides->side[0].entry.map, *b = &d->sides->side[1].entry.map;
    if (!d->sides->fills_differ) {
        BRC_TRY(brc_map_diff(store, a, b, pair_note, d, err));
        return brc_pairs_end(d->pairs, err);
    }
    brc_unvisited_start(&d->rest, d->sides, &d->sides->side[0].meta.grid);
    BRC_TRY(brc_map_both(store, a, b, pair_note, d, err));
    brc_unvisited_end(&d->rest, d->sides);
    return brc_pairs_end(d->pairs, err);
}

static int diff_pairs(brc_diff_sides *sides, brc_error *err)
{
    pair_diff d = {.sides = sides};
    const brc_pair_ops ops = {&d, compare_pair, pair_compared};
    BRC_TRY(brc_pairs_new(&d.pairs, sides, &ops, err));
    int rc = pairs_walk(&d, err);
    brc_pairs_free(d.pairs);
    return rc;
}

static int compare_sides(brc_element_diff *out, brc_diff_sides *sides, brc_error *err)
{
    const brc_meta *a = &sides->side[0].meta, *b = &sides->side[1].meta;
    out->why = why_not(a, b);
    if (out->why != NULL)
        return BRC_OK;
    const int empty = !brc_diff_both_hold(sides);
    out->known = 1;
    out->added = elements_beyond(a->ndim, b->shape, sides->shape);
    out->removed = elements_beyond(a->ndim, a->shape, sides->shape);
    brc_tally_init(&out->tally, a->ndim, a->type);
    sides->tally = &out->tally;
    sides->fills_differ =
        a->fill.len != b->fill.len || memcmp(a->fill.data, b->fill.data, a->fill.len) != 0;
    if (empty)
        return BRC_OK;
    return brc_diff_cut_same(sides) ? diff_pairs(sides, err) : brc_diff_slabs(sides, err);
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
