#include "shard.h"

#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../base/buf.h"

#define ABSENT UINT64_MAX
/* Enough for an index of 16 bytes per entry: it bounds what a shard's declared shape can
 * make us allocate. */
#define MAX_ENTRIES ((uint64_t)1 << 30)

/* Where a level's shard begins in the grid of stored chunks, and the step from one of
 * its entries to the next. */
static void level_steps(const brc_meta *m, int level, uint64_t *steps)
{
    for (int i = 0; i < m->ndim; i++) {
        uint64_t entry = m->levels[level].shape[i] / m->levels[level].grid[i];
        steps[i] = entry / m->grid.chunk[i];
    }
}

static int shard_broken(brc_error *err, const char *why)
{
    return brc_fail(err, BRC_ECORRUPT, "the shard is damaged: %s", why);
}

/* ---- taking apart -------------------------------- */

static int read_index(const brc_shard_level *level, brc_scratch *scratch, brc_span bytes,
                      brc_buf *index, uint64_t *index_len, brc_error *err)
{
    *index_len = brc_chain_encoded_len(level->index);
    if (*index_len == BRC_LEN_VARIES || level->entries > MAX_ENTRIES)
        return brc_fail(err, BRC_ELIMIT, "the shard's index has no fixed length, or more than 2^30 "
                                         "entries");
    if (bytes.len < *index_len)
        return shard_broken(err, "it is shorter than its index");
    const uint8_t *at = level->at_start ? bytes.data : bytes.data + (bytes.len - *index_len);
    int rc =
        brc_chain_decode(level->index, scratch, (brc_span){ at, (size_t)*index_len }, index, err);
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
    for (int i = 0; i < m->ndim; i++)
        if (index[i] >= m->grid.count[i])
            return BRC_OK; /* wholly outside the array */
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
    brc_shard_get_fn get;
    void *ctx;
} shard_builder;

static int build_level(const shard_builder *b, int level, const uint64_t *first, brc_buf *out,
                       brc_error *err);

/* Appends one entry's bytes; *there 0 if it has none. */
static int build_entry(const shard_builder *b, int level, const uint64_t *index, brc_buf *out,
                       int *there, brc_error *err)
{
    brc_buf part = BRC_BUF_INIT;
    int rc = BRC_OK;
    *there = 0;
    for (int i = 0; i < b->m->ndim; i++)
        if (index[i] >= b->m->grid.count[i])
            return BRC_OK;
    if (level + 1 < b->m->nlevels) {
        rc = build_level(b, level + 1, index, &part, err);
        *there = part.len > 0;
    } else {
        rc = b->get(b->ctx, index, &part, there, err);
    }
    if (rc == BRC_OK && *there)
        rc = brc_buf_append(out, part.data, part.len, err);
    brc_buf_dispose(&part);
    return rc;
}

/* The entries' bytes, one after the other, and the table of where they are. */
static int build_entries(const shard_builder *b, int level, const uint64_t *first, uint64_t base,
                         brc_buf *chunks, brc_buf *table, int *any, brc_error *err)
{
    const brc_shard_level *l = &b->m->levels[level];
    uint64_t steps[BRC_MAX_NDIM], at[BRC_MAX_NDIM] = {0}, index[BRC_MAX_NDIM] = {0};
    int there;
    level_steps(b->m, level, steps);
    do {
        uint8_t entry[16];
        uint64_t before = chunks->len;
        for (int d = 0; d < b->m->ndim; d++)
            index[d] = first[d] + at[d] * steps[d];
        BRC_TRY(build_entry(b, level, index, chunks, &there, err));
        brc_put_u64le(entry, there ? base + before : ABSENT);
        brc_put_u64le(entry + 8, there ? chunks->len - before : ABSENT);
        BRC_TRY(brc_buf_append(table, entry, sizeof(entry), err));
        *any |= there;
    } while (brc_index_next(b->m->ndim, at, l->grid));
    return BRC_OK;
}

static int build_level(const shard_builder *b, int level, const uint64_t *first, brc_buf *out,
                       brc_error *err)
{
    const brc_shard_level *l = &b->m->levels[level];
    brc_buf chunks = BRC_BUF_INIT, table = BRC_BUF_INIT, index = BRC_BUF_INIT;
    uint64_t index_len = brc_chain_encoded_len(l->index);
    int rc, any = 0;
    BRC_GO(build_entries(b, level, first, l->at_start ? index_len : 0, &chunks, &table, &any, err));
    if (!any)
        goto done;
    BRC_GO(brc_chain_encode(l->index, b->scratch, (brc_span){table.data, table.len}, &index, err));
    if (l->at_start)
        BRC_GO(brc_buf_append(out, index.data, index.len, err));
    BRC_GO(brc_buf_append(out, chunks.data, chunks.len, err));
    if (!l->at_start)
        BRC_GO(brc_buf_append(out, index.data, index.len, err));
done:
    brc_buf_dispose(&chunks);
    brc_buf_dispose(&table);
    brc_buf_dispose(&index);
    return rc;
}

int brc_shard_build(brc_buf *out, const brc_meta *meta, brc_scratch *scratch, const uint64_t *outer,
                    brc_shard_get_fn get, void *ctx, brc_error *err)
{
    shard_builder b = {meta, scratch, get, ctx};
    uint64_t first[BRC_MAX_NDIM] = {0};
    for (int i = 0; i < meta->ndim; i++)
        first[i] = outer[i] * (meta->levels[0].shape[i] / meta->grid.chunk[i]);
    return build_level(&b, 0, first, out, err);
}
