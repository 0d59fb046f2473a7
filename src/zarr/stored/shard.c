#include "shard.h"

#include <stdlib.h>
#include <string.h>

#include "../../base/alloc.h"
#include "../../base/buf.h"
#include "../array/chunk_cursor.h"

#define ABSENT UINT64_MAX
/* Enough for an index of 16 bytes per entry: limits the memory that a shard's declared shape can
 * make the library allocate. */
#define MAX_ENTRIES ((uint64_t)1 << 30)

/* Finds where a level's shard begins in the grid of stored chunks, and the step from one entry to
 * the next. */
static void level_steps(const brc_meta *m, int level, uint64_t *steps)
{
    for (int i = 0; i < m->ndim; i++) {
        uint64_t entry = m->levels[level].shape[i] / m->levels[level].grid[i];
        steps[i] = entry / m->grid.chunk[i];
    }
}

int brc_outer_box(const brc_meta *m, const uint64_t *outer, uint64_t *first, uint64_t *count,
                  uint64_t *n, brc_error *err)
{
    *n = 1;
    for (int i = 0; i < m->ndim; i++) {
        const uint64_t ratio = m->nlevels > 0 ? m->outer.chunk[i] / m->grid.chunk[i] : 1;
        /* a damaged map may name an index outside */
        first[i] = brc_mul_capped(outer[i], ratio);
        count[i] = ratio;
        if (!brc_mul_u64(*n, count[i], n))
            return brc_fail(err, BRC_ELIMIT, "a shard has more than 2^64 chunks");
    }
    return BRC_OK;
}

uint64_t brc_part_number(int ndim, const uint64_t *first, const uint64_t *count,
                        const uint64_t *index)
{
    uint64_t number = 0;
    for (int i = 0; i < ndim; i++)
        number = number * count[i] + (index[i] - first[i]);
    return number;
}

void brc_part_index(int ndim, const uint64_t *first, const uint64_t *count, uint64_t number,
                   uint64_t *index)
{
    for (int i = ndim - 1; i >= 0; i--) {
        index[i] = first[i] + number % count[i];
        number /= count[i];
    }
}

/* ---- the chunks of a shard -------------------------------- */

/* A shard with at most SMALL_SHARD places has each place looked up, LOOK_MOST at once. For
 * larger shards, most of whose places may be empty, the chunks are found among those of the row
 * of shards. */
#define SMALL_SHARD 4096
#define LOOK_MOST 256

void brc_shard_chunks_dispose(brc_shard_chunks *chunks)
{
    free(chunks->items);
    memset(chunks, 0, sizeof(*chunks));
}

static int add_shard_chunk(brc_shard_chunks *out, int ndim, const uint64_t *index,
                           const brc_oid *id, brc_error *err)
{
    BRC_TRY(brc_grow_array(&out->items, &out->cap, out->n + 1, sizeof(brc_shard_chunk), err));
    ((brc_shard_chunk *)out->items)[out->n++] = (brc_shard_chunk){
        brc_part_number(ndim, out->first, out->count, index), *id};
    return BRC_OK;
}

static int look_at_places(brc_shard_chunks *out, brc_array *a, uint64_t places, brc_error *err)
{
    const int ndim = a->meta.ndim;
    uint64_t indexes[LOOK_MOST * BRC_MAX_NDIM];
    brc_oid ids[LOOK_MOST];
    for (uint64_t at = 0; at < places;) {
        size_t n = 0;
        for (; n < LOOK_MOST && at < places; n++, at++)
            brc_part_index(ndim, out->first, out->count, at, indexes + n * (size_t)ndim);
        BRC_TRY(brc_store_check_interrupt(brc_array_store(a), err));
        BRC_TRY(brc_array_chunk_ids(a, n, indexes, ids, err));
        for (size_t i = 0; i < n; i++)
            if (!brc_oid_is_zero(&ids[i]))
                BRC_TRY(add_shard_chunk(out, ndim, indexes + i * (size_t)ndim, &ids[i], err));
    }
    return BRC_OK;
}

static int is_in_shard(const brc_shard_chunks *out, int ndim, const uint64_t *index)
{
    for (int i = 0; i < ndim; i++)
        if (index[i] < out->first[i] || index[i] - out->first[i] >= out->count[i])
            return 0;
    return 1;
}

static int look_at_row(brc_shard_chunks *out, brc_array *a, brc_error *err)
{
    brc_chunk_cursor c;
    brc_oid id;
    uint64_t index[BRC_MAX_NDIM];
    const int ndim = a->meta.ndim;
    int rc = brc_chunk_cursor_start_at(&c, a, out->first, err);
    while (rc >= 0 && (rc = brc_chunk_cursor_next(&c, index, &id, err)) > 0) {
        if (index[0] - out->first[0] >= out->count[0])
            break;
        if (is_in_shard(out, ndim, index))
            rc = add_shard_chunk(out, ndim, index, &id, err);
    }
    brc_chunk_cursor_end(&c);
    return rc < 0 ? rc : BRC_OK;
}

int brc_shard_chunks_find(brc_shard_chunks *out, brc_array *a, const uint64_t *outer,
                          brc_error *err)
{
    uint64_t places;
    out->n = 0;
    int rc = brc_outer_box(&a->meta, outer, out->first, out->count, &places, err);
    if (rc < 0) {
        brc_context(err, "%s", a->path);
        return rc;
    }
    return places <= SMALL_SHARD ? look_at_places(out, a, places, err) : look_at_row(out, a, err);
}

static int shard_broken(brc_error *err, const char *why)
{
    return brc_fail(err, BRC_ECORRUPT, "the shard is damaged: %s", why);
}

/* ---- taking apart -------------------------------- */

static int read_index(const brc_shard_level *level, brc_scratch *scratch, brc_span bytes,
                      brc_buf *index, uint64_t *index_len, brc_error *err)
{
    *index_len = brc_chain_describe(level->index)->encoded_len;
    if (*index_len == BRC_LEN_VARIES || level->entries > MAX_ENTRIES)
        return brc_fail(err, BRC_ELIMIT, "the shard's index has no fixed length, or more than 2^30 "
                                         "entries");
    if (bytes.len < *index_len)
        return shard_broken(err, "it is shorter than its index");
    const uint8_t *at = level->at_start ? bytes.data : bytes.data + (bytes.len - *index_len);
    int rc =
        brc_chain_decode(level->index, scratch, (brc_span){ at, (size_t)*index_len }, NULL, index,
                         err);
    if (rc < 0)
        brc_context(err, "the shard's index");
    return rc;
}

static int entry_span(const brc_shard_level *level, brc_span bytes, uint64_t index_len,
                      const uint8_t *entry, brc_span *out, brc_error *err)
{
    uint64_t offset = brc_get_u64le(entry), len = brc_get_u64le(entry + 8);
    out->data = NULL;
    out->len = 0;
    if (offset == ABSENT && len == ABSENT)
        return BRC_OK;
    uint64_t low = level->at_start ? index_len : 0;
    uint64_t high = level->at_start ? bytes.len : bytes.len - index_len;
    if (offset < low || offset > high || len > high - offset)
        return shard_broken(err, "an entry of its index points outside its chunks");
    *out = (brc_span){bytes.data + offset, (size_t)len};
    return BRC_OK;
}

static int split_level(brc_shard_parts *out, const brc_meta *m, int level, brc_scratch *scratch,
                       const uint64_t *first, brc_span bytes, brc_error *err);

static int split_entry(brc_shard_parts *out, const brc_meta *m, int level, brc_scratch *scratch,
                       const uint64_t *index, brc_span part, brc_error *err)
{
    if (level + 1 < m->nlevels)
        return split_level(out, m, level + 1, scratch, index, part, err);
    BRC_TRY(brc_grow_array(&out->items, &out->cap, out->n + 1, sizeof(brc_shard_part), err));
    brc_shard_part *p = &((brc_shard_part *)out->items)[out->n++];
    memcpy(p->index, index, sizeof(p->index));
    p->bytes = part;
    return BRC_OK;
}

static int split_level(brc_shard_parts *out, const brc_meta *m, int level, brc_scratch *scratch,
                       const uint64_t *first, brc_span bytes, brc_error *err)
{
    const brc_shard_level *l = &m->levels[level];
    uint64_t steps[BRC_MAX_NDIM], at[BRC_MAX_NDIM] = {0}, index[BRC_MAX_NDIM] = {0}, index_len;
    brc_buf table = BRC_BUF_INIT;
    brc_span part;
    size_t i = 0;
    int rc;
    level_steps(m, level, steps);
    BRC_GO(read_index(l, scratch, bytes, &table, &index_len, err));
    do {
        for (int d = 0; d < m->ndim; d++)
            index[d] = first[d] + at[d] * steps[d];
        BRC_GO(entry_span(l, bytes, index_len, table.data + 16 * i++, &part, err));
        if (part.data != NULL)
            BRC_GO(split_entry(out, m, level, scratch, index, part, err));
    } while (brc_index_next(m->ndim, at, l->grid));
done:
    brc_buf_dispose(&table);
    return rc;
}

int brc_shard_split(brc_shard_parts *out, const brc_meta *meta, brc_scratch *scratch,
                    const uint64_t *outer, brc_span bytes, brc_error *err)
{
    uint64_t first[BRC_MAX_NDIM] = {0};
    out->n = 0;
    for (int i = 0; i < meta->ndim; i++)
        first[i] = outer[i] * (meta->levels[0].shape[i] / meta->grid.chunk[i]);
    return split_level(out, meta, 0, scratch, first, bytes, err);
}

/* ---- putting together -------------------------------- */

typedef struct shard_builder {
    const brc_meta *m;
    brc_scratch *scratch;
    uint64_t first[BRC_MAX_NDIM], count[BRC_MAX_NDIM]; /* the shard's chunks in the grid      */
    uint64_t end[BRC_MAX_NDIM]; /* no inner chunk is at or beyond this index along the axis */
    const brc_shard_inner *inner;
    size_t n;
    brc_shard_layout *out;
} shard_builder;

static int inner_order(const void *a, const void *b)
{
    const brc_shard_inner *x = a, *y = b;
    return (x->number > y->number) - (x->number < y->number);
}

/* Finds the inner chunk at an index of the grid; NULL: the shard has none there. */
static const brc_shard_inner *inner_at(const shard_builder *b, const uint64_t *index)
{
    const int ndim = b->m->ndim;
    for (int i = 0; i < ndim; i++)
        if (index[i] >= b->end[i])
            return NULL;
    const brc_shard_inner key = {.number = brc_part_number(ndim, b->first, b->count, index)};
    return bsearch(&key, b->inner, b->n, sizeof(key), inner_order);
}

/* Sets `end` from the inner chunks. */
static void find_shard_end(shard_builder *b)
{
    uint64_t index[BRC_MAX_NDIM];
    for (size_t i = 0; i < b->n; i++) {
        brc_part_index(b->m->ndim, b->first, b->count, b->inner[i].number, index);
        for (int d = 0; d < b->m->ndim; d++)
            if (index[d] >= b->end[d])
                b->end[d] = index[d] + 1;
    }
}

static int layout_add(brc_shard_layout *out, const brc_shard_slot *slot, brc_error *err)
{
    BRC_TRY(brc_grow_array(&out->slots, &out->cap, out->n + 1, sizeof(*slot), err));
    ((brc_shard_slot *)out->slots)[out->n++] = *slot;
    return BRC_OK;
}

static int layout_level(const shard_builder *b, int level, const uint64_t *first, uint64_t at,
                        uint64_t *len, brc_error *err);

/* Lays out one entry from `at` on: 0 bytes and *there 0 if the entry is absent. */
static int layout_entry(const shard_builder *b, int level, const uint64_t *index, uint64_t at,
                        uint64_t *len, int *there, brc_error *err)
{
    *len = 0;
    *there = 0;
    if (level + 1 < b->m->nlevels) {
        for (int i = 0; i < b->m->ndim; i++)
            if (index[i] >= b->end[i])
                return BRC_OK;
        int rc = layout_level(b, level + 1, index, at, len, err);
        *there = *len > 0;
        return rc;
    }
    const brc_shard_inner *inner = inner_at(b, index);
    if (inner == NULL)
        return BRC_OK;
    const brc_shard_slot slot = {.at = at, .len = inner->len, .part = inner->from};
    *there = 1;
    *len = inner->len;
    return layout_add(b->out, &slot, err);
}

/* Lays out the entries in sequence from `at` on, and the table of their offsets. */
static int layout_entries(const shard_builder *b, int level, const uint64_t *first, uint64_t base,
                          uint64_t *size, brc_buf *table, int *any, brc_error *err)
{
    const brc_shard_level *l = &b->m->levels[level];
    uint64_t steps[BRC_MAX_NDIM], at[BRC_MAX_NDIM] = {0}, index[BRC_MAX_NDIM] = {0}, len;
    const uint64_t start = *size;
    int there;
    level_steps(b->m, level, steps);
    do {
        uint8_t entry[16];
        for (int d = 0; d < b->m->ndim; d++)
            index[d] = first[d] + at[d] * steps[d];
        BRC_TRY(layout_entry(b, level, index, *size, &len, &there, err));
        brc_put_u64le(entry, there ? base + (*size - start) : ABSENT);
        brc_put_u64le(entry + 8, there ? len : ABSENT);
        BRC_TRY(brc_buf_append(table, entry, sizeof(entry), err));
        if (!brc_add_u64(*size, len, size))
            return brc_fail(err, BRC_ELIMIT, "the shard has more than 2^64 bytes");
        *any |= there;
    } while (brc_index_next(b->m->ndim, at, l->grid));
    return BRC_OK;
}

static int layout_level(const shard_builder *b, int level, const uint64_t *first, uint64_t at,
                        uint64_t *len, brc_error *err)
{
    const brc_shard_level *l = &b->m->levels[level];
    brc_shard_layout *out = b->out;
    const uint64_t index_len = brc_chain_describe(l->index)->encoded_len;
    const uint64_t before = l->at_start ? index_len : 0;
    brc_shard_slot own = {.at = at, .len = index_len, .is_index = 1};
    const size_t place = out->n;
    uint64_t end = at + before;
    brc_buf table = {.limit = BRC_MAX_CHUNK_BYTES}, encoded = BRC_BUF_INIT;
    int rc, any = 0;
    *len = 0;
    if (l->at_start)
        BRC_GO(layout_add(out, &own, err)); /* its bytes follow when the entries are known */
    BRC_GO(layout_entries(b, level, first, before, &end, &table, &any, err));
    if (!any) {
        out->n = place;
        goto done;
    }
    own.part = out->indexes.len;
    BRC_GO(brc_chain_encode(l->index, b->scratch, (brc_span){table.data, table.len}, &encoded,
                            err));
    BRC_GO(brc_buf_append(&out->indexes, encoded.data, encoded.len, err));
    if (l->at_start) {
        ((brc_shard_slot *)out->slots)[place].part = own.part;
    } else {
        own.at = end;
        BRC_GO(layout_add(out, &own, err));
        end += index_len;
    }
    *len = end - at;
done:
    brc_buf_dispose(&encoded);
    brc_buf_dispose(&table);
    return rc;
}

int brc_shard_lay_out(brc_shard_layout *out, const brc_meta *meta, brc_scratch *scratch,
                      const uint64_t *outer, const brc_shard_inner *inner, size_t n,
                      brc_error *err)
{
    shard_builder b = {.m = meta, .scratch = scratch, .inner = inner, .n = n, .out = out};
    uint64_t first[BRC_MAX_NDIM] = {0}, places;
    out->n = 0;
    out->size = 0;
    out->indexes.len = 0;
    if (n == 0)
        return BRC_OK;
    BRC_TRY(brc_outer_box(meta, outer, b.first, b.count, &places, err));
    find_shard_end(&b);
    for (int i = 0; i < meta->ndim; i++)
        first[i] = outer[i] * (meta->levels[0].shape[i] / meta->grid.chunk[i]);
    return layout_level(&b, 0, first, 0, &out->size, err);
}

void brc_shard_layout_dispose(brc_shard_layout *layout)
{
    free(layout->slots);
    brc_buf_dispose(&layout->indexes);
    memset(layout, 0, sizeof(*layout));
}
