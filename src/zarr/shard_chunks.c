#include "shard_chunks.h"

#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "chunk_cursor.h"

/* Of a shard with at most so many places each is looked up, LOOK_MOST at once. Of others the chunks
 * are found among those of their row of shards: most places may be empty. */
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
    for (int i = 0; i < ndim; i++)
        if (index[i] >= out->end[i])
            out->end[i] = index[i] + 1;
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
    memcpy(out->end, out->first, sizeof(out->end));
    return places <= SMALL_SHARD ? look_at_places(out, a, places, err) : look_at_row(out, a, err);
}
