/* Copies all elements of an array, or a selection's, into another array of the same type: its
 * chunks, as they are stored, are pieces of the other's. In a selection, chunks that are the
 * same in both are copied by id. */
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
    brc_chunk_cursor cursor; /* all stored chunks of `from` ... */
    const brc_sel *sel;      /* ... or every chunk that meets this, stored or not */
    brc_region was, now;     /* the selection in both                             */
    uint64_t next;           /* chunk of `was`                                    */
    int same_form;           /* a chunk of one is one of the other                */
    int takes;               /* these are taken over now; else they have been     */
    size_t n, at;
    int ended;
    uint64_t indexes[RECUT_BATCH][BRC_MAX_NDIM];
    brc_object objects[RECUT_BATCH]; /* id zero: it is absent                     */
} array_pieces;

static void place_of_stored(const void *ctx, const uint64_t *element, uint64_t *at)
{
    const brc_grid *grid = &((const array_pieces *)ctx)->from->meta.grid;
    for (int i = 0; i < grid->ndim; i++)
        at[i] = brc_grid_find(grid, i, element[i]);
}

/* ---- what is taken -------------------------------- */

static int has_same_form(const brc_array *to, const brc_array *from)
{
    const brc_meta *a = &to->meta, *b = &from->meta;
    const size_t bytes = sizeof(uint64_t) * (size_t)a->ndim;
    const int regular = a->grid.regular && b->grid.regular;
    if (a->opaque || b->opaque || a->keeps_fill != b->keeps_fill || a->fill.len != b->fill.len ||
        memcmp(a->fill.data, b->fill.data, a->fill.len) != 0)
        return 0;
    if (regular)
        return memcmp(a->grid.chunk, b->grid.chunk, bytes) == 0;
    return memcmp(a->shape, b->shape, bytes) == 0 && brc_grid_same(&a->grid, &b->grid);
}

/* Takes a chunk over where all of it is selected, on both sides: then, and where steps pass over
 * it, 1. */
static int take_chunk(array_pieces *p, const uint64_t *index, const brc_oid *id, brc_error *err)
{
    brc_region_part was, now;
    brc_region_part_at(&was, p->from, &p->was, index);
    if (brc_shape_count(p->from->meta.ndim, was.overlap.count) == 0)
        return 1;
    if (!p->same_form)
        return 0;
    brc_region_part_at(&now, p->to, &p->now, index);
    if (!was.overlap.whole || !now.overlap.whole)
        return 0;
    if (!p->takes)
        return 1;
    BRC_TRY(brc_array_put_chunk(p->to, index, brc_oid_is_zero(id) ? NULL : id, err));
    const size_t item = p->to->meta.type->item_size;
    const uint64_t elements = brc_shape_count(p->to->meta.ndim, now.overlap.count);
    BRC_TRY(brc_task_step(p->to->session->repo, elements * (item > 0 ? item : 1), err));
    return 1;
}

static int list_selected(array_pieces *p, brc_error *err)
{
    uint64_t indexes[RECUT_BATCH * BRC_MAX_NDIM];
    brc_oid ids[RECUT_BATCH];
    const int ndim = p->from->meta.ndim;
    const uint64_t left = p->was.nchunks - p->next;
    const size_t n = left < RECUT_BATCH ? (size_t)left : RECUT_BATCH;
    for (size_t i = 0; i < n; i++)
        brc_region_chunk(&p->was, ndim, p->next++, indexes + i * (size_t)ndim);
    p->ended = p->next == p->was.nchunks;
    if (n > 0)
        BRC_TRY(brc_array_chunk_ids(p->from, n, indexes, ids, err));
    for (size_t i = 0; i < n; i++) {
        const uint64_t *index = indexes + i * (size_t)ndim;
        int taken = take_chunk(p, index, &ids[i], err);
        if (taken < 0)
            return taken;
        if (taken || p->takes)
            continue;
        memcpy(p->indexes[p->n], index, (size_t)ndim * sizeof(*index));
        memset(&p->objects[p->n], 0, sizeof(p->objects[0]));
        p->objects[p->n++].id = ids[i];
    }
    return brc_store_check_interrupt(brc_array_store(p->from), err);
}

static int list_all_stored(array_pieces *p, brc_error *err)
{
    while (p->n < RECUT_BATCH && !p->ended) {
        brc_object *o = &p->objects[p->n];
        memset(o, 0, sizeof(*o));
        int rc = brc_chunk_cursor_next(&p->cursor, p->indexes[p->n], &o->id, err);
        if (rc < 0)
            return rc;
        p->ended = rc == 0;
        p->n += (size_t)(rc > 0 && brc_grid_has(&p->from->meta.grid, p->indexes[p->n]));
    }
    return BRC_OK;
}

/* First, and without the others between them: in a bulk write nothing is decoded while the rows of
 * a batch are not committed. */
static int take_whole(array_pieces *p, brc_error *err)
{
    brc_store *store = brc_array_store(p->to);
    if (!p->same_form)
        return BRC_OK;
    p->takes = 1;
    while (!p->ended) {
        BRC_TRY(list_selected(p, err));
        BRC_TRY(brc_store_rest(store, 0, err));
    }
    p->takes = p->ended = 0;
    p->next = 0;
    return brc_store_rest(store, 1, err);
}

static int look_up_pieces(array_pieces *p, brc_error *err)
{
    brc_object *asked[RECUT_BATCH];
    size_t n = 0;
    p->n = p->at = 0;
    while (p->n == 0 && !p->ended)
        BRC_TRY(p->sel != NULL ? list_selected(p, err) : list_all_stored(p, err));
    for (size_t i = 0; i < p->n; i++)
        if (!brc_oid_is_zero(&p->objects[i].id))
            asked[n++] = &p->objects[i];
    return brc_objects_find(brc_array_store(p->from), asked, n, err);
}

/* ---- pieces -------------------------------- */

/* The object that the flow is to fetch, and how it is decoded. */
static int describe_object(const array_pieces *p, brc_piece *piece, brc_error *err)
{
    brc_read_item item;
    memset(&item, 0, sizeof(item));
    item.object = p->objects[p->at];
    if (!item.object.found)
        return brc_object_missing(&item.object.id, err);
    item.len = (size_t)item.object.size;
    BRC_TRY(brc_chunk_item(&item, p->from, p->indexes[p->at], err));
    piece->object = item.object;
    piece->skip = item.skip;
    piece->chain = item.chain;
    piece->len = item.len;
    return BRC_OK;
}

/* A chunk of `from`, or of its selection; an absent one is one element everywhere. */
static int next_stored_piece(void *ctx, brc_piece *piece, brc_buf *stored, brc_error *err)
{
    array_pieces *p = ctx;
    const brc_meta *m = &p->from->meta;
    brc_region_part part;
    if (p->at == p->n && !p->ended)
        BRC_TRY(look_up_pieces(p, err));
    if (p->at == p->n)
        return 0;
    const uint64_t *index = p->indexes[p->at];
    const int is_absent = brc_oid_is_zero(&p->objects[p->at].id);
    int rc = is_absent ? brc_buf_append(stored, m->fill.data, m->fill.len, err)
                       : describe_object(p, piece, err);
    if (rc < 0) {
        brc_array_name_chunk(p->from, index, err);
        return rc;
    }
    brc_region_part_at(&part, p->from, &p->was, index);
    piece->elements = is_absent ? 1 : part.elements;
    piece->offset = is_absent ? 0 : (size_t)part.in_chunk;
    if (is_absent) {
        piece->len = stored->len;
        memset(part.strides, 0, sizeof(part.strides));
    }
    brc_sel sel = p->was.sel;
    for (int i = 0; i < m->ndim; i++) {
        sel.start[i] += part.overlap.in_sel[i] * sel.step[i];
        sel.count[i] = part.overlap.count[i];
    }
    memcpy(piece->at, index, sizeof(piece->at));
    p->at++;
    BRC_TRY(brc_region_init(&piece->region, p->to, &sel, NULL, part.strides, err));
    return 1;
}

static void name_of_stored(void *ctx, const brc_piece *piece, brc_error *err)
{
    const array_pieces *p = ctx;
    brc_array_name_chunk(p->from, piece->at, err);
}

/* Within a transaction. */
static int recut_chunks(array_pieces *p, brc_error *err)
{
    const brc_meta *m = &p->from->meta;
    brc_piece_source pieces = {
        .ctx = p,
        .order = {.place = place_of_stored, .ctx = p, .uneven = p->sel || !m->grid.regular},
        .next = next_stored_piece,
        .name = name_of_stored,
    };
    for (int i = 0; i < m->ndim; i++) {
        pieces.order.axis[i] = i;
        pieces.order.per[i] = brc_grid_extent(m->grid.chunk[i], p->was.sel.step[i]);
    }
    BRC_TRY(take_whole(p, err));
    if (p->sel == NULL)
        BRC_TRY(brc_chunk_cursor_start(&p->cursor, p->from, err));
    return brc_array_assemble(p->to, p->sel, &pieces, err);
}

int brc_array_recut(brc_array *to, brc_array *from, const brc_sel *sel, brc_error *err)
{
    void *memory;
    BRC_TRY(brc_array_begin_read(from, err));
    int rc = brc_new(&memory, sizeof(array_pieces), err);
    if (rc == BRC_OK) {
        array_pieces *p = memory;
        p->to = to;
        p->from = from;
        p->sel = sel;
        p->same_form = sel != NULL && has_same_form(to, from);
        rc = brc_region_init(&p->was, from, sel, NULL, NULL, err);
        if (rc == BRC_OK)
            rc = brc_region_init(&p->now, to, sel, NULL, NULL, err);
        if (rc == BRC_OK)
            rc = recut_chunks(p, err);
        brc_chunk_cursor_end(&p->cursor);
        free(p);
    }
    brc_array_end_read(from);
    return rc;
}
