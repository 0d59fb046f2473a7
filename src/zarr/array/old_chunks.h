/* Looks up the old content of chunks that are changed in part, many at a time, for the write flow to fetch. */
#ifndef BRC_ZARR_OLD_CHUNKS_H
#define BRC_ZARR_OLD_CHUNKS_H

#include <string.h>

#include "../../flow/write.h"
#include "array.h"

typedef struct brc_old_chunks {
    brc_write_item *items[BRC_WRITE_ITEMS];
    uint64_t indexes[BRC_WRITE_ITEMS * BRC_MAX_NDIM];
    brc_oid ids[BRC_WRITE_ITEMS];
    size_t n;
} brc_old_chunks;

/* Sets item->old of the items that were added. */
static inline int brc_old_find(brc_old_chunks *old, brc_array *a, brc_error *err)
{
    if (old->n == 0)
        return BRC_OK;
    BRC_TRY(brc_array_chunk_ids(a, old->n, old->indexes, old->ids, err));
    for (size_t i = 0; i < old->n; i++) {
        old->items[i]->is_part = 1;
        old->items[i]->was = old->items[i]->old.id = old->ids[i];
        BRC_TRY(brc_array_note_old(a, old->indexes + i * (size_t)a->meta.ndim, &old->ids[i], err));
    }
    old->n = 0;
    return BRC_OK;
}

/* Adds an item; `index`: its chunk. Each batch of look-ups is in row-major order: a chunk that comes before the
 * last one starts a new batch. */
static inline int brc_old_add(brc_old_chunks *old, brc_array *a, brc_write_item *item,
                              const uint64_t *index, brc_error *err)
{
    const size_t ndim = (size_t)a->meta.ndim;
    if (old->n > 0 &&
        brc_index_order(a->meta.ndim, index, old->indexes + (old->n - 1) * ndim) < 0)
        BRC_TRY(brc_old_find(old, a, err));
    memcpy(old->indexes + old->n * ndim, index, ndim * sizeof(*index));
    old->items[old->n++] = item;
    return old->n < BRC_WRITE_ITEMS ? BRC_OK : brc_old_find(old, a, err);
}

#endif
