#include "key_pieces.h"

#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"

void brc_key_pieces_dispose(brc_key_pieces *pieces)
{
    free(pieces->items);
    free(pieces->indexes);
    memset(pieces, 0, sizeof(*pieces));
}

int brc_key_pieces_add(brc_key_pieces *pieces, const brc_array *a, const brc_key_part *part,
                       const uint64_t *index, brc_key_piece **out, brc_error *err)
{
    const size_t ndim = (size_t)a->meta.ndim, n = pieces->n;
    BRC_TRY(brc_grow_array(&pieces->items, &pieces->cap, n + 1, sizeof(brc_key_piece), err));
    BRC_TRY(brc_grow_array(&pieces->indexes, &pieces->indexes_cap, (n + 1) * ndim,
                           sizeof(uint64_t), err));
    *out = brc_key_piece_at(pieces, n);
    memset(*out, 0, sizeof(**out));
    (*out)->part = *part;
    if (ndim > 0)
        memcpy((uint64_t *)pieces->indexes + n * ndim, index, ndim * sizeof(*index));
    pieces->n++;
    return BRC_OK;
}

/* ---- the flow -------------------------------- */

typedef struct pieces_reader {
    brc_array *a;
    const brc_key_pieces *pieces;
    size_t listed;
} pieces_reader;

static const uint64_t *index_of_piece(const pieces_reader *r, uint64_t i)
{
    static const uint64_t none[1] = {0};
    const size_t ndim = (size_t)r->a->meta.ndim;
    return ndim > 0 ? (const uint64_t *)r->pieces->indexes + i * ndim : none;
}

static int pieces_list(void *ctx, brc_read_item *items, size_t cap, size_t *n, brc_error *err)
{
    pieces_reader *r = ctx;
    (void)err;
    for (*n = 0; *n < cap && r->listed < r->pieces->n; (*n)++) {
        items[*n].object = brc_key_piece_at(r->pieces, r->listed)->part.object;
        items[*n].number = r->listed++;
    }
    return BRC_OK;
}

static int key_piece_open(void *ctx, brc_read_item *item, brc_error *err)
{
    const pieces_reader *r = ctx;
    return brc_key_part_item(item, r->a, index_of_piece(r, item->number), err);
}

static int key_piece_place(void *ctx, brc_read_item *item, const uint8_t *data,
                           brc_scratch *scratch, brc_error *err)
{
    const pieces_reader *r = ctx;
    brc_key_piece *piece = brc_key_piece_at(r->pieces, item->number);
    const brc_key_part before = piece->part;
    BRC_TRY(brc_key_part_place(item, data, scratch, err));
    brc_key_part_measure(&piece->part, item->out);
    piece->is_other = before.is_known && (item->out.len != before.len ||
                                          piece->part.digest != before.digest);
    piece->is_new = piece->is_other || !before.is_known;
    if (piece->whole != NULL)
        return brc_buf_append(piece->whole, item->out.data, item->out.len, err);
    if (piece->to != NULL && !piece->is_other)
        memcpy(piece->to, item->out.data + piece->start, (size_t)(piece->end - piece->start));
    return BRC_OK;
}

static int key_piece_passed(void *ctx, const brc_read_item *item, brc_error *err)
{
    const pieces_reader *r = ctx;
    (void)item;
    return brc_store_check_interrupt(brc_array_store(r->a), err);
}

static void key_piece_name(void *ctx, const brc_read_item *item, brc_error *err)
{
    const pieces_reader *r = ctx;
    brc_array_name_chunk(r->a, index_of_piece(r, item->number), err);
}

int brc_key_pieces_read(brc_key_pieces *pieces, brc_array *a, brc_error *err)
{
    pieces_reader r = {a, pieces, 0};
    const brc_read_ops ops = {.ctx = &r,
                              .list = pieces_list,
                              .open = key_piece_open,
                              .place = key_piece_place,
                              .passed = key_piece_passed,
                              .name = key_piece_name};
    return pieces->n > 0 ? brc_flow_read(&a->session->repo->pipe, brc_array_store(a), &ops, err)
                         : BRC_OK;
}

int brc_key_pieces_remember(const brc_key_pieces *pieces, const brc_array *a, brc_error *err)
{
    void *p;
    size_t n = 0;
    for (size_t i = 0; i < pieces->n; i++)
        n += (size_t)brc_key_piece_at(pieces, i)->is_new;
    if (n == 0)
        return BRC_OK;
    BRC_TRY(brc_new_array(&p, n, sizeof(brc_key_part *), err));
    const brc_key_part **parts = p;
    n = 0;
    for (size_t i = 0; i < pieces->n; i++)
        if (brc_key_piece_at(pieces, i)->is_new)
            parts[n++] = &brc_key_piece_at(pieces, i)->part;
    brc_key_parts_remember(a, parts, n);
    free(p);
    return BRC_OK;
}
