#include "sel_chunks.h"

#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../nd/shape.h"
#include "../tree/chunk_key.h"

int brc_sel_part_of(brc_sel_part *out, const brc_sel *sel, const uint64_t *corner,
                    const uint64_t *extent)
{
    for (int i = 0; i < sel->ndim; i++) {
        const uint64_t start = sel->start[i], step = sel->step[i] > 0 ? sel->step[i] : 1;
        const uint64_t end = extent[i] > UINT64_MAX - corner[i] ? UINT64_MAX
                                                                : corner[i] + extent[i];
        uint64_t lo = corner[i] > start ? (corner[i] - start + step - 1) / step : 0;
        uint64_t hi = end > start ? (end - start + step - 1) / step : 0;
        hi = hi < sel->count[i] ? hi : sel->count[i];
        if (lo >= hi)
            return 0;
        out->from[i] = lo;
        out->n[i] = hi - lo;
    }
    return 1;
}

void brc_chunk_keys_dispose(brc_chunk_keys *list)
{
    free(list->keys);
    brc_arena_dispose(&list->memory);
    *list = (brc_chunk_keys)BRC_CHUNK_KEYS_INIT;
}

int brc_chunk_keys_add(brc_chunk_keys *list, brc_span key, brc_error *err)
{
    uint8_t *copy;
    void *keys = list->keys;
    int rc = brc_grow_array(&keys, &list->cap, list->n + 1, sizeof(*list->keys), err);
    list->keys = keys;
    BRC_TRY(rc);
    BRC_TRY(brc_arena_copy(&list->memory, key.data, key.len, &copy, err));
    list->keys[list->n++] = (brc_span){copy, key.len};
    return BRC_OK;
}

static int key_order(const void *a, const void *b)
{
    const brc_span *x = a, *y = b;
    const size_t len = x->len < y->len ? x->len : y->len;
    int order = memcmp(x->data, y->data, len);
    return order != 0 ? order : (x->len > y->len) - (x->len < y->len);
}

/* The first chunk along each axis, and how many from it on lie between the ends of the part: 0 if
 * all of them are more than `most`. */
static int box_of(uint64_t *first, uint64_t *count, const brc_sel *sel, const brc_sel_part *part,
                  const brc_grid *grid, uint64_t most)
{
    uint64_t n = 1;
    for (int i = 0; i < sel->ndim; i++) {
        const uint64_t start = sel->start[i] + part->from[i] * sel->step[i];
        first[i] = brc_grid_find(grid, i, start);
        count[i] = brc_grid_find(grid, i, start + (part->n[i] - 1) * sel->step[i]) - first[i] + 1;
        if (!brc_mul_u64(n, count[i], &n) || n > most)
            return 0;
    }
    return 1;
}

static int add_if_met(brc_chunk_keys *list, const brc_sel *sel, const brc_grid *grid,
                      const uint64_t *first, const uint64_t *at, brc_error *err)
{
    uint64_t index[BRC_MAX_NDIM], corner[BRC_MAX_NDIM], extent[BRC_MAX_NDIM];
    uint8_t key[BRC_CHUNK_KEY_MAX];
    brc_sel_part part;
    for (int i = 0; i < sel->ndim; i++)
        index[i] = first[i] + at[i];
    brc_grid_chunk(grid, index, corner, extent);
    if (!brc_sel_part_of(&part, sel, corner, extent)) /* its steps pass over the chunk */
        return BRC_OK;
    return brc_chunk_keys_add(list, (brc_span){key, brc_chunk_key_encode(key, sel->ndim, index)},
                              err);
}

int brc_sel_chunks(brc_chunk_keys *list, int *listed, const brc_sel *sel, const brc_grid *grid,
                   uint64_t most, brc_error *err)
{
    static const uint64_t origin[BRC_MAX_NDIM];
    uint64_t first[BRC_MAX_NDIM], count[BRC_MAX_NDIM], at[BRC_MAX_NDIM] = {0};
    brc_sel_part inside;
    *listed = 1;
    if (sel->ndim != grid->ndim || !brc_sel_part_of(&inside, sel, origin, grid->shape))
        return BRC_OK;
    *listed = box_of(first, count, sel, &inside, grid, most);
    if (!*listed)
        return BRC_OK;
    do
        BRC_TRY(add_if_met(list, sel, grid, first, at, err));
    while (brc_index_next(sel->ndim, at, count));
    if (list->n > 1)
        qsort(list->keys, list->n, sizeof(*list->keys), key_order);
    return BRC_OK;
}
