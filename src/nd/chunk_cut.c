/* Cutting boxes of elements into chunks, see chunk_cut.h. */
#include <stdlib.h>
#include <string.h>

#include "../base/buf.h"
#include "chunk_cut.h"

void brc_chunk_box(brc_sel *out, int ndim, const uint64_t *shape, const uint64_t *chunk,
                   const uint64_t *index)
{
    memset(out, 0, sizeof(*out));
    out->ndim = ndim;
    for (int k = 0; k < ndim; k++) {
        out->start[k] = index[k] * chunk[k];
        uint64_t left = shape[k] - out->start[k];
        out->count[k] = left < chunk[k] ? left : chunk[k];
        out->step[k] = 1;
    }
}

/* Whether a chunk's elements lie in the box one after the other: then nothing is copied. */
static int lies_in_one_piece(const brc_sel *box, const uint64_t *chunk, const uint64_t *in_box)
{
    int k = 0;
    while (k < box->ndim && chunk[k] == 1)
        k++;
    for (k++; k < box->ndim; k++) /* after the first axis that is longer, all is taken  */
        if (chunk[k] != box->count[k])
            return 0;
    for (k = 0; k < box->ndim; k++)
        if (in_box[k] + chunk[k] > box->count[k])
            return 0;
    return 1;
}

static int cut_fixed(brc_chunk_cutter *c, const brc_sel *box, const uint64_t *index,
                     const uint8_t *data, brc_error *err)
{
    int64_t from[BRC_MAX_NDIM] = { 0 }, to[BRC_MAX_NDIM] = { 0 }, at = 0;
    uint64_t elements = brc_shape_count(c->ndim, c->chunk);
    brc_overlap part;
    size_t len;

    if (!brc_overlap_of(&part, box, c->shape, c->chunk, index))
        return BRC_OK;
    brc_strides_packed(c->ndim, box->count, c->item, from);
    for (int i = 0; i < c->ndim; i++)
        at += (int64_t)part.in_sel[i] * from[i];
    if (!brc_mul_u64(elements, c->item, &elements) || !brc_to_size(elements, &len))
        return brc_fail(err, BRC_ELIMIT, "a chunk has more bytes than memory can hold");
    if (lies_in_one_piece(box, c->chunk, part.in_sel))
        return c->put(c->ctx, index, (brc_span){ data + at, len }, err);
    c->part.len = 0;
    BRC_TRY(brc_buf_reserve(&c->part, len, err));
    brc_strides_packed(c->ndim, c->chunk, c->item, to);
    if (memcmp(part.count, c->chunk, (size_t)c->ndim * sizeof(*c->chunk)) != 0)
        brc_fill_run(c->part.data, len / c->item, c->item, c->fill.data);
    brc_copy_box(c->ndim, part.count, c->item, c->part.data, to, data + at, from);
    return c->put(c->ctx, index, (brc_span){ c->part.data, len }, err);
}

/* Where each element of the box lies, its length included. */
static int find_spans(brc_chunk_cutter *c, const brc_sel *box, brc_span data, brc_error *err)
{
    uint64_t n = brc_shape_count(box->ndim, box->count);
    brc_reader in = brc_reader_of(data.data, data.len);
    size_t need;
    if (!brc_to_size(n, &need))
        return brc_fail(err, BRC_ELIMIT, "a chunk has more elements than memory can hold");
    BRC_TRY(brc_grow_array((void **)&c->spans, &c->cap, need, sizeof(*c->spans), err));
    for (uint64_t i = 0; i < n; i++) {
        const uint8_t *start = in.at, *count = brc_read_bytes(&in, 4);
        size_t len = count ? brc_get_u32le(count) : 0;
        if (!count || !brc_read_bytes(&in, len))
            return brc_fail(err, BRC_EINTERNAL, "elements of a box are missing");
        c->spans[i] = (brc_span){ start, len + 4 };
    }
    return BRC_OK;
}

static int cut_variable(brc_chunk_cutter *c, const brc_sel *box, const uint64_t *index,
                        brc_error *err)
{
    uint64_t at[BRC_MAX_NDIM] = { 0 };
    brc_overlap part;

    if (!brc_overlap_of(&part, box, c->shape, c->chunk, index))
        return BRC_OK;
    c->part.len = 0;
    do {
        uint64_t number = 0;
        int inside = 1;
        for (int i = 0; i < c->ndim; i++) {
            inside &= at[i] < part.count[i];
            number = number * box->count[i] + part.in_sel[i] + at[i];
        }
        brc_span element = inside ? c->spans[number] : c->fill;
        BRC_TRY(brc_buf_append(&c->part, element.data, element.len, err));
    } while (brc_index_next(c->ndim, at, c->chunk));
    return c->put(c->ctx, index, (brc_span){ c->part.data, c->part.len }, err);
}

int brc_chunk_cut(brc_chunk_cutter *c, const brc_sel *box, brc_span data, brc_error *err)
{
    uint64_t first[BRC_MAX_NDIM], count[BRC_MAX_NDIM], step[BRC_MAX_NDIM] = { 0 };
    if (c->item == 0)
        BRC_TRY(find_spans(c, box, data, err));
    for (int i = 0; i < c->ndim; i++) {
        first[i] = box->start[i] / c->chunk[i];
        count[i] = (box->start[i] + box->count[i] - 1) / c->chunk[i] - first[i] + 1;
    }
    do {
        uint64_t index[BRC_MAX_NDIM];
        for (int i = 0; i < c->ndim; i++)
            index[i] = first[i] + step[i];
        BRC_TRY(c->item == 0 ? cut_variable(c, box, index, err)
                             : cut_fixed(c, box, index, data.data, err));
    } while (brc_index_next(c->ndim, step, count));
    return BRC_OK;
}

void brc_chunk_cutter_dispose(brc_chunk_cutter *c)
{
    brc_buf_dispose(&c->part);
    free(c->spans);
    c->spans = NULL;
}
