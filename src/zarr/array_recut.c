/* Copies all elements of an array into another of the same shape and type but another
 * grid: its chunks, as they are stored, are pieces of the other's. */
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "assembly.h"
#include "chunk_cursor.h"
#include "chunk_item.h"

/* Chunks whose objects are looked up together. */
enum { RECUT_BATCH = 64 };

typedef struct array_pieces {
    brc_array *to, *from;
    brc_chunk_cursor cursor;
    size_t n, at;
    int ended;
    uint64_t indexes[RECUT_BATCH][BRC_MAX_NDIM];
    brc_object objects[RECUT_BATCH];
} array_pieces;

static void place_of_stored(const void *ctx, const uint64_t *element, uint64_t *at)
{
    const brc_grid *grid = &((const array_pieces *)ctx)->from->meta.grid;
    for (int i = 0; i < grid->ndim; i++)
        at[i] = brc_grid_find(grid, i, element[i]);
}

static int look_up_pieces(array_pieces *p, brc_error *err)
{
    brc_object *asked[RECUT_BATCH];
    p->n = p->at = 0;
    while (p->n < RECUT_BATCH && !p->ended) {
        brc_object *o = &p->objects[p->n];
        memset(o, 0, sizeof(*o));
        int rc = brc_chunk_cursor_next(&p->cursor, p->indexes[p->n], &o->id, err);
        if (rc < 0)
            return rc;
        p->ended = rc == 0;
        asked[p->n] = o;
        p->n += (size_t)rc;
    }
    return brc_objects_find(brc_array_store(p->from), asked, p->n, err);
}

/* The chunk as it is stored, and how it is decoded. */
static int fetch_piece(const array_pieces *p, brc_piece *piece, brc_buf *stored, brc_error *err)
{
    brc_read_item item;
    brc_store *store = brc_array_store(p->from);
    memset(&item, 0, sizeof(item));
    item.object = p->objects[p->at];
    if (!item.object.found)
        return brc_object_missing(&item.object.id, err);
    BRC_TRY(brc_chunk_item(&item, p->from, p->indexes[p->at], err));
    const size_t len = (size_t)item.object.stored;
    BRC_TRY(brc_buf_reserve(stored, len + 1, err));
    BRC_TRY(brc_object_fetch(store, &item.object, stored->data, err));
    BRC_TRY(brc_object_verify(&item.object, stored->data, err));
    stored->len = len;
    piece->chain = item.chain;
    piece->len = (size_t)item.object.size;
    return BRC_OK;
}

static int next_stored_piece(void *ctx, brc_piece *piece, brc_buf *stored, brc_error *err)
{
    array_pieces *p = ctx;
    const brc_grid *grid = &p->from->meta.grid;
    uint64_t chunk[BRC_MAX_NDIM];
    int64_t strides[BRC_MAX_NDIM] = {0};
    brc_sel sel = {.ndim = grid->ndim};
    if (p->at == p->n && !p->ended)
        BRC_TRY(look_up_pieces(p, err));
    if (p->at == p->n)
        return 0;
    int rc = fetch_piece(p, piece, stored, err);
    if (rc < 0) {
        brc_array_name_chunk(p->to, p->indexes[p->at], err);
        return rc;
    }
    brc_grid_chunk(grid, p->indexes[p->at], sel.start, chunk);
    for (int i = 0; i < grid->ndim; i++) {
        uint64_t left = grid->shape[i] - sel.start[i];
        sel.count[i] = chunk[i] < left ? chunk[i] : left;
        sel.step[i] = 1;
    }
    brc_strides_packed(grid->ndim, chunk, brc_array_unit(p->from), strides);
    piece->elements = brc_shape_count(grid->ndim, chunk);
    memcpy(piece->at, p->indexes[p->at++], sizeof(piece->at));
    BRC_TRY(brc_region_init(&piece->region, p->to, &sel, NULL, strides, err));
    return 1;
}

static void name_of_stored(void *ctx, const brc_piece *piece, brc_error *err)
{
    const array_pieces *p = ctx;
    brc_array_name_chunk(p->to, piece->at, err);
}

/* Within a transaction. */
static int recut_chunks(array_pieces *p, brc_error *err)
{
    const brc_meta *m = &p->from->meta;
    brc_piece_source pieces = {
        .ctx = p,
        .order = {.place = place_of_stored, .ctx = p, .uneven = !m->grid.regular},
        .next = next_stored_piece,
        .name = name_of_stored,
    };
    for (int i = 0; i < m->ndim; i++) {
        pieces.order.axis[i] = i;
        pieces.order.per[i] = m->grid.chunk[i];
    }
    BRC_TRY(brc_chunk_cursor_start(&p->cursor, p->from, err));
    return brc_array_assemble(p->to, NULL, &pieces, err);
}

int brc_array_recut(brc_array *to, brc_array *from, brc_error *err)
{
    void *memory;
    BRC_TRY(brc_array_begin_read(from, err));
    int rc = brc_new(&memory, sizeof(array_pieces), err);
    if (rc == BRC_OK) {
        array_pieces *p = memory;
        p->to = to;
        p->from = from;
        rc = recut_chunks(p, err);
        brc_chunk_cursor_end(&p->cursor);
        free(p);
    }
    brc_array_end_read(from);
    return rc;
}
