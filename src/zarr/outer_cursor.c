#include "outer_cursor.h"

#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "stored_chunk.h"

/* A row of shards is made tidy when it has at least so many places. */
#define ROW_LEAST ((size_t)1024)

static int outer_ndim(const brc_outer_cursor *c)
{
    return c->chunks.a->meta.ndim;
}

static int has_shards(const brc_outer_cursor *c)
{
    return c->chunks.a->meta.nlevels > 0 && outer_ndim(c) > 0;
}

/* The shard of the next chunk. */
static int outer_look(brc_outer_cursor *c, brc_error *err)
{
    brc_oid id;
    c->has_next = brc_chunk_cursor_next(&c->chunks, c->next, &id, err);
    for (int i = 0; i < outer_ndim(c); i++)
        c->next[i] /= c->ratio[i];
    return c->has_next;
}

int brc_outer_cursor_start(brc_outer_cursor *c, const brc_array *a, const uint64_t *from,
                           brc_error *err)
{
    const brc_meta *m = &a->meta;
    uint64_t row[BRC_MAX_NDIM] = {0};
    memset(c, 0, sizeof(*c));
    for (int i = 0; i < m->ndim; i++)
        c->ratio[i] = m->nlevels > 0 ? m->outer.chunk[i] / m->grid.chunk[i] : 1;
    c->chunks.a = a; /* has_shards() asks it */
    if (from != NULL && has_shards(c)) {
        row[0] = brc_mul_capped(from[0], c->ratio[0]);
        from = row;
    }
    BRC_TRY(from != NULL ? brc_chunk_cursor_start_at(&c->chunks, a, from, err)
                         : brc_chunk_cursor_start(&c->chunks, a, err));
    return has_shards(c) && outer_look(c, err) < 0 ? c->has_next : BRC_OK;
}

void brc_outer_cursor_end(brc_outer_cursor *c)
{
    brc_chunk_cursor_end(&c->chunks);
    free(c->row);
}

/* Sorts the row; each shard is there once then. */
static void outer_tidy(brc_outer_cursor *c)
{
    const size_t ndim = (size_t)outer_ndim(c);
    uint64_t *row = c->row;
    size_t kept = 0;
    if (c->n > 1)
        brc_sort_indexes(row, c->n, ndim);
    for (size_t i = 0; i < c->n; i++)
        if (i == 0 || memcmp(row + (kept - 1) * ndim, row + i * ndim, ndim * sizeof(*row)) != 0)
            memmove(row + kept++ * ndim, row + i * ndim, ndim * sizeof(*row));
    c->n = kept;
    c->tidy_at = 2 * kept > ROW_LEAST ? 2 * kept : ROW_LEAST;
}

/* Chunks come in the grid's order, so those of one shard come in several runs, but all of
 * a row of shards before those of the next row. */
static int outer_read_row(brc_outer_cursor *c, brc_error *err)
{
    const size_t ndim = (size_t)outer_ndim(c), bytes = ndim * sizeof(uint64_t);
    const uint64_t row = c->next[0];
    c->n = c->at = 0;
    c->tidy_at = ROW_LEAST;
    while (c->has_next > 0 && c->next[0] == row) {
        uint64_t *last = c->n > 0 ? (uint64_t *)c->row + (c->n - 1) * ndim : NULL;
        if (last == NULL || memcmp(last, c->next, bytes) != 0) {
            if (c->n == c->tidy_at)
                outer_tidy(c);
            BRC_TRY(brc_grow_array(&c->row, &c->cap, (c->n + 1) * ndim, sizeof(uint64_t), err));
            memcpy((uint64_t *)c->row + c->n++ * ndim, c->next, bytes);
        }
        BRC_TRY(outer_look(c, err));
    }
    outer_tidy(c);
    return BRC_OK;
}

int brc_outer_cursor_next(brc_outer_cursor *c, uint64_t *outer, brc_oid *id, brc_error *err)
{
    const size_t ndim = (size_t)outer_ndim(c), bytes = ndim * sizeof(uint64_t);
    memset(id, 0, sizeof(*id));
    if (!has_shards(c))
        return brc_chunk_cursor_next(&c->chunks, outer, id, err);
    if (c->at == c->n && c->has_next > 0)
        BRC_TRY(outer_read_row(c, err));
    if (c->at == c->n)
        return 0;
    memcpy(outer, (const uint64_t *)c->row + c->at++ * ndim, bytes);
    return 1;
}
