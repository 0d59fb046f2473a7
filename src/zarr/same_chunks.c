#include "same_chunks.h"

#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../nd/shape.h"
#include "chunk_pairs.h"
#include "span_table.h"

typedef struct same_chunks {
    brc_diff_sides *sides;
    brc_node_change *change;
    brc_pairs *pairs;
    brc_oid fill[2]; /* what absence means on either side; zero where chunks differ in shape */
} same_chunks;

/* The count of the change that a pair is in, or NULL. */
static uint64_t *count_of(const same_chunks *c, const int there[2])
{
    if (there[0] && there[1])
        return &c->change->chunks_changed;
    if (there[0])
        return &c->change->chunks_removed;
    return there[1] ? &c->change->chunks_added : NULL;
}

/* ---- chunks of fill value -------------------------------- */

/* The canonical bytes of a chunk in which every element is the fill value. */
static int fill_chunk(const brc_meta *m, brc_buf *out, brc_error *err)
{
    const uint64_t elements = brc_shape_count(m->ndim, m->grid.chunk);
    const size_t item = m->fill.len;
    void *table;
    uint64_t bytes;
    if (!brc_meta_is_variable(m)) {
        if (!brc_mul_u64(elements, item, &bytes) || bytes > BRC_MAX_CHUNK_BYTES)
            return brc_fail(err, BRC_ELIMIT, "a chunk has more than 2^31-1 bytes");
        BRC_TRY(brc_buf_reserve(out, (size_t)bytes + 1, err));
        for (; out->len < bytes; out->len += item)
            memcpy(out->data + out->len, m->fill.data, item);
        return BRC_OK;
    }
    BRC_TRY(brc_new_array(&table, (size_t)elements, sizeof(brc_span), err));
    for (uint64_t i = 0; i < elements; i++)
        ((brc_span *)table)[i] = (brc_span){m->fill.data, m->fill.len};
    int rc = brc_elements_pack(out, table, elements, err);
    free(table);
    return rc;
}

static int fill_id(const brc_array *a, brc_oid *id, brc_error *err)
{
    brc_buf chunk = BRC_BUF_INIT;
    int rc = BRC_OK;
    if (a->meta.grid.regular)
        rc = fill_chunk(&a->meta, &chunk, err);
    if (rc == BRC_OK && chunk.len > 0)
        *id = brc_hash_object(brc_store_hash(brc_array_store(a)), BRC_KIND_CHUNK, chunk.data,
                              chunk.len);
    brc_buf_dispose(&chunk);
    return rc;
}

/* Whether the one chunk that is there is what absence means on the other side. */
static int is_fill(const same_chunks *c, const brc_chunk_pair *p)
{
    const int side = p->there[1];
    const brc_oid *fill = &c->fill[!side];
    return p->there[0] != p->there[1] && !brc_oid_is_zero(fill) &&
           brc_oid_cmp(&p->object[side].id, fill) == 0;
}

/* ---- chunks that the end cuts -------------------------------- */

/* What a side's shape holds of a chunk; 0: nothing. */
static uint64_t held(const brc_meta *m, const uint64_t *corner, const uint64_t *shape,
                     uint64_t *count)
{
    for (int i = 0; i < m->ndim; i++) {
        const uint64_t left = m->shape[i] > corner[i] ? m->shape[i] - corner[i] : 0;
        count[i] = left < shape[i] ? left : shape[i];
    }
    return brc_shape_count(m->ndim, count);
}

static void pair_box(const brc_diff_sides *sides, const brc_chunk_pair *p, uint64_t *corner,
                     uint64_t *shape)
{
    const brc_meta *a = &sides->side[0].meta, *b = &sides->side[1].meta;
    brc_grid_chunk(brc_grid_has(&a->grid, p->index) ? &a->grid : &b->grid, p->index, corner,
                   shape);
}

/* Elements that are not fill value, of what a side holds and the other does not. */
static int values_beyond(uint64_t *out, const brc_diff_sides *sides, int side,
                         const uint64_t *corner, const uint64_t *shape, const uint64_t *both,
                         const brc_span *data, brc_error *err)
{
    const brc_meta *m = &sides->side[side].meta;
    uint64_t count[BRC_MAX_NDIM];
    brc_tally all, inside;
    *out = 0;
    if (data == NULL || held(m, corner, shape, count) == brc_shape_count(m->ndim, both))
        return BRC_OK;
    brc_tally_init(&all, m->ndim, m->type);
    brc_tally_init(&inside, m->ndim, m->type);
    const brc_span *x = side == 0 ? data : NULL, *y = side == 1 ? data : NULL;
    BRC_TRY(brc_diff_box(&all, sides, corner, shape, count, x, y, err));
    if (brc_shape_count(m->ndim, both) > 0)
        BRC_TRY(brc_diff_box(&inside, sides, corner, shape, both, x, y, err));
    *out = all.elements - inside.elements;
    return BRC_OK;
}

/* What a shape does not hold counts as fill value. */
static int compare_held(const brc_diff_sides *sides, brc_chunk_pair *p, const brc_span *x,
                        const brc_span *y, brc_error *err)
{
    const int ndim = sides->side[0].meta.ndim;
    uint64_t corner[BRC_MAX_NDIM], shape[BRC_MAX_NDIM], a[BRC_MAX_NDIM], both[BRC_MAX_NDIM];
    uint64_t beyond[2];
    pair_box(sides, p, corner, shape);
    (void)held(&sides->side[0].meta, corner, shape, a);
    (void)held(&sides->side[1].meta, corner, shape, both);
    for (int i = 0; i < ndim; i++)
        both[i] = a[i] < both[i] ? a[i] : both[i];
    if (brc_shape_count(ndim, both) > 0)
        BRC_TRY(brc_diff_box(&p->tally, sides, corner, shape, both, x, y, err));
    BRC_TRY(values_beyond(&beyond[0], sides, 0, corner, shape, both, x, err));
    BRC_TRY(values_beyond(&beyond[1], sides, 1, corner, shape, both, y, err));
    if (beyond[0] + beyond[1] > 0)
        brc_tally_add(&p->tally, beyond[0] + beyond[1], corner, corner);
    return BRC_OK;
}

static void held_compared(void *ctx, const brc_chunk_pair *p)
{
    if (p->tally.elements == 0)
        --*count_of(ctx, p->there);
}

static int end_cuts(const brc_diff_sides *sides, const brc_chunk_pair *p)
{
    uint64_t corner[BRC_MAX_NDIM], shape[BRC_MAX_NDIM];
    pair_box(sides, p, corner, shape);
    for (int s = 0; s < 2; s++)
        for (int i = 0; i < sides->side[s].meta.ndim && p->there[s]; i++)
            if (corner[i] + shape[i] > sides->side[s].meta.shape[i])
                return 1;
    return 0;
}

/* ---- all of them -------------------------------- */

static int look_at_pair(void *ctx, brc_span key, brc_span a, brc_span b, brc_error *err)
{
    same_chunks *c = ctx;
    brc_chunk_pair p;
    BRC_TRY(brc_store_check_interrupt(brc_array_store(&c->sides->side[0]), err));
    BRC_TRY(brc_pair_read(&p, c->sides, key, a, b, err));
    uint64_t *was = count_of(c, p.there);
    for (int s = 0; s < 2; s++) /* what lies outside is nobody's */
        p.there[s] &= brc_grid_has(&c->sides->side[s].meta.grid, p.index);
    uint64_t *is = count_of(c, p.there);
    --*was;
    if (is == NULL || is_fill(c, &p))
        return BRC_OK;
    ++*is;
    return end_cuts(c->sides, &p) ? brc_pairs_add(c->pairs, &p, err) : BRC_OK;
}

static int discount_chunks(same_chunks *c, brc_error *err)
{
    const brc_pair_ops ops = {c, compare_held, held_compared};
    const brc_array *a = &c->sides->side[0], *b = &c->sides->side[1];
    if (c->change->chunks_added + c->change->chunks_removed > 0) {
        BRC_TRY(fill_id(a, &c->fill[0], err));
        BRC_TRY(fill_id(b, &c->fill[1], err));
    }
    BRC_TRY(brc_pairs_new(&c->pairs, c->sides, &ops, err));
    int rc = brc_map_diff(brc_array_store(a), &a->entry.map, &b->entry.map, look_at_pair, c, err);
    if (rc == BRC_OK)
        rc = brc_pairs_end(c->pairs, err);
    brc_pairs_free(c->pairs);
    return rc;
}

static int is_storage(const char *pointer)
{
    return strcmp(pointer, "/codecs") == 0 || strcmp(pointer, "/storage") == 0;
}

static int discount(brc_node_change *change, brc_diff_sides *sides, brc_error *err)
{
    same_chunks c = {.sides = sides, .change = change};
    const brc_meta *a = &sides->side[0].meta, *b = &sides->side[1].meta;
    if (a->opaque || b->opaque || a->ndim != b->ndim || !brc_diff_both_hold(sides) ||
        !brc_diff_cut_same(sides))
        return BRC_OK;
    BRC_TRY(discount_chunks(&c, err));
    change->storage_only =
        change->chunks_added + change->chunks_removed + change->chunks_changed == 0;
    for (size_t i = 0; i < change->nmetadata; i++)
        change->storage_only &= is_storage(change->metadata[i]);
    return BRC_OK;
}

int brc_same_chunks_discount(brc_node_change *c, breccia *repo, brc_error *err)
{
    brc_diff_sides sides;
    if (c->a.kind != BRC_ARRAY || c->b.kind != BRC_ARRAY || c->rechunked ||
        c->chunks_added + c->chunks_removed + c->chunks_changed == 0)
        return BRC_OK;
    memset(&sides, 0, sizeof(sides));
    sides.view.repo = repo;
    int rc = brc_array_of_entry(&sides.side[0], &sides.view, c->path, &c->a, err);
    if (rc == BRC_OK)
        rc = brc_array_of_entry(&sides.side[1], &sides.view, c->path, &c->b, err);
    if (rc == BRC_OK)
        rc = discount(c, &sides, err);
    brc_meta_dispose(&sides.side[0].meta);
    brc_meta_dispose(&sides.side[1].meta);
    return rc;
}
