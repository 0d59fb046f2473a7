/*
 * How many chunks an array has, and how many bytes they take: the sum of its map, and over it the
 * uncommitted rows. The map's rows of totals are derived: where they cannot be true, or lack
 * something, every chunk is looked at.
 */
#include <stdlib.h>

#include "../base/alloc.h"
#include "../base/arena.h"
#include "../history/map_totals.h"
#include "../tree/chunk_key.h"
#include "chunk_cursor.h"

enum { DRAFT_PAGE = 512 };

typedef struct array_sum {
    brc_array *a;
    brc_node_total total;
    brc_total_rows kept; /* to be put when the read has ended */
    uint64_t version;    /* of the store, as it was read */
} array_sum;

/* ---- every chunk -------------------------------- */

static int stat_chunk(void *ctx, const uint64_t *index, const brc_oid *id, brc_error *err)
{
    array_sum *sum = ctx;
    brc_object o = { .id = *id }, *one = &o;
    (void)index;
    BRC_TRY(brc_objects_find(brc_array_store(sum->a), &one, 1, err));
    sum->total.chunks++;
    sum->total.stored += o.found ? o.stored : 0;
    return BRC_OK;
}

static int stat_each(array_sum *sum, brc_error *err)
{
    sum->total = (brc_node_total){ 0 };
    return brc_array_each_chunk(sum->a, stat_chunk, sum, err);
}

/* ---- the draft's rows -------------------------------- */

typedef struct draft_page {
    array_sum *sum;
    brc_arena arena;
    size_t n;
    brc_span keys[DRAFT_PAGE];
    brc_object now[DRAFT_PAGE], then[DRAFT_PAGE]; /* zero ids: no chunk */
} draft_page;

static int page_row(void *ctx, const uint8_t *key, size_t key_len, const brc_oid *id,
                    brc_error *err)
{
    draft_page *page = ctx;
    const brc_meta *meta = &page->sum->a->meta;
    uint64_t index[BRC_MAX_NDIM];
    uint8_t *copy;
    const size_t i = page->n;
    const int is_key = brc_chunk_key_decode(key, key_len, index) == meta->ndim;
    const int inside = !is_key || id == NULL || brc_meta_has_place(meta, index);
    if (!is_key)
        return brc_fail(err, BRC_ECORRUPT, "%s: a chunk's key is damaged; run 'breccia fsck'",
                        page->sum->a->path);
    if (!inside)
        return brc_fail(err, BRC_ECORRUPT,
                        "%s: a chunk is outside the array's grid; run 'breccia fsck'",
                        page->sum->a->path);
    BRC_TRY(brc_arena_copy(&page->arena, key, key_len, &copy, err));
    page->keys[i] = (brc_span){ copy, key_len };
    page->now[i] = page->then[i] = (brc_object){ 0 };
    if (id != NULL)
        page->now[i].id = *id;
    page->n++;
    return BRC_OK;
}

static int page_then(void *ctx, size_t i, brc_span value, brc_error *err)
{
    draft_page *page = ctx;
    return brc_chunk_id_of(value, brc_store_id_len(brc_array_store(page->sum->a)),
                           &page->then[i].id, err);
}

/* *right 0: the map has less than the rows replace. */
static int page_sum(draft_page *page, int *right, brc_error *err)
{
    brc_object *ask[2 * DRAFT_PAGE];
    brc_node_total more = { 0 }, less = { 0 };
    size_t n = 0;
    for (size_t i = 0; i < page->n; i++) {
        if (!brc_oid_is_zero(&page->now[i].id))
            ask[n++] = &page->now[i];
        if (!brc_oid_is_zero(&page->then[i].id))
            ask[n++] = &page->then[i];
    }
    if (n == 0)
        return BRC_OK;
    BRC_TRY(brc_objects_find(brc_array_store(page->sum->a), ask, n, err));
    for (size_t i = 0; i < n; i++) {
        const int is_now = ask[i] >= page->now && ask[i] < page->now + DRAFT_PAGE;
        brc_node_total one = { .chunks = 1, .size = ask[i]->found ? ask[i]->size : 0,
                               .stored = ask[i]->found ? ask[i]->stored : 0 };
        *right &= brc_node_total_add(is_now ? &more : &less, &one);
    }
    *right &= brc_node_total_add(&page->sum->total, &more) &&
              brc_node_total_subtract(&page->sum->total, &less);
    return BRC_OK;
}

static int next_page(draft_page *page, int *right, brc_error *err)
{
    brc_array *a = page->sum->a;
    brc_arena old = page->arena;
    brc_span after = page->n > 0 ? page->keys[page->n - 1] : (brc_span){ NULL, 0 };
    page->arena = (brc_arena)BRC_ARENA_INIT;
    page->n = 0;
    int rc = brc_store_check_interrupt(brc_array_store(a), err);
    if (rc == BRC_OK)
        rc = brc_draft_chunk_page(brc_array_store(a), &a->stack, after, DRAFT_PAGE, page_row,
                                  page, err);
    if (rc == BRC_OK)
        rc = brc_map_get_many(brc_array_store(a), &a->entry.map, page->keys, page->n, page_then,
                              page, err);
    if (rc == BRC_OK)
        rc = page_sum(page, right, err);
    brc_arena_dispose(&old);
    return rc;
}

static int stat_draft(array_sum *sum, int *right, brc_error *err)
{
    void *p;
    int rc;
    if (!sum->a->row_has_chunks)
        return BRC_OK;
    BRC_TRY(brc_new(&p, sizeof(draft_page), err));
    draft_page *page = p;
    page->sum = sum;
    page->arena = (brc_arena)BRC_ARENA_INIT;
    page->n = 0;
    do
        rc = next_page(page, right, err);
    while (rc == BRC_OK && *right && page->n == DRAFT_PAGE);
    brc_arena_dispose(&page->arena);
    free(page);
    return rc;
}

/* ---- both -------------------------------- */

/* *right 0: something is missing, or cannot be. */
static int stat_map(array_sum *sum, int *right, brc_error *err)
{
    brc_store *store = brc_array_store(sum->a);
    uint64_t keys;
    BRC_TRY(brc_store_version(store, &sum->version, err));
    BRC_TRY(brc_map_total(store, &sum->a->entry.map, &sum->kept, &sum->total, right, err));
    BRC_TRY(brc_map_count(store, &sum->a->entry.map, &keys, err));
    *right &= keys == sum->total.chunks && sum->total.arrays == 0 && sum->total.groups == 0;
    return BRC_OK;
}

static int stat_sum(array_sum *sum, brc_error *err)
{
    int right = 1;
    BRC_TRY(stat_map(sum, &right, err));
    if (right)
        BRC_TRY(stat_draft(sum, &right, err));
    return right ? BRC_OK : stat_each(sum, err);
}

int brc_array_stat(uint64_t *chunks, uint64_t *stored_bytes, brc_array *a, brc_error *err)
{
    array_sum sum = { .a = a };
    *chunks = *stored_bytes = 0;
    BRC_TRY(brc_array_begin_read(a, err));
    int rc = stat_sum(&sum, err);
    brc_array_end_read(a);
    if (rc == BRC_OK)
        brc_total_rows_put(brc_array_store(a), &sum.kept, sum.version);
    brc_total_rows_dispose(&sum.kept);
    *chunks = sum.total.chunks;
    *stored_bytes = sum.total.stored;
    return rc;
}
