/*
 * Shapes and regular grids. An extent of 0 makes an array empty, rank 0 is one
 * element, and no product is trusted to fit 64 bits.
 */
#include "shape.h"

int brc_shape_bytes(int ndim, const uint64_t *shape, uint64_t unit, uint64_t *out)
{
    uint64_t total = unit;
    int fits = 1, empty = unit == 0;
    for (int d = 0; d < ndim; d++) {
        empty |= shape[d] == 0;
        fits = fits && brc_mul_u64(total, shape[d], &total);
    }
    *out = empty ? 0 : total;
    return fits || empty;
}

uint64_t brc_shape_count(int ndim, const uint64_t *shape)
{
    uint64_t total;
    return brc_shape_bytes(ndim, shape, 1, &total) ? total : UINT64_MAX;
}

int brc_index_next(int ndim, uint64_t *index, const uint64_t *shape)
{
    for (int d = ndim - 1; d >= 0; d--) {
        if (index[d] + 1 < shape[d]) {
            index[d]++;
            return 1;
        }
        index[d] = 0;
    }
    return 0;
}

void brc_strides_packed(int ndim, const uint64_t *shape, size_t item, int64_t *strides)
{
    /* unsigned: an array too large for memory has no use for its strides, but may ask */
    uint64_t stride = item;
    for (int d = ndim - 1; d >= 0; d--) {
        strides[d] = (int64_t)stride;
        stride *= shape[d];
    }
}

/* How many of start, start + step, ... are below `end`. */
static uint64_t steps_below(uint64_t start, uint64_t step, uint64_t end)
{
    return start < end ? (end - start - 1) / step + 1 : 0;
}

int brc_overlap_of(brc_overlap *out, const brc_sel *sel, const uint64_t *shape,
                   const uint64_t *chunk, const uint64_t *index)
{
    uint64_t corner[BRC_MAX_NDIM];
    for (int d = 0; d < sel->ndim; d++)
        if (!brc_mul_u64(index[d], chunk[d], &corner[d]))
            corner[d] = shape[d];
    return brc_overlap_box(out, sel, shape, corner, chunk);
}

int brc_overlap_box(brc_overlap *out, const brc_sel *sel, const uint64_t *shape,
                    const uint64_t *corners, const uint64_t *chunk)
{
    int any = 1;
    out->whole = 1;
    for (int d = 0; d < sel->ndim; d++) {
        uint64_t end, step = sel->step[d] > 0 ? sel->step[d] : 1;
        uint64_t corner = corners[d] < shape[d] ? corners[d] : shape[d];
        end = shape[d] - corner < chunk[d] ? shape[d] : corner + chunk[d];
        uint64_t first = steps_below(sel->start[d], step, corner);
        uint64_t past = steps_below(sel->start[d], step, end);
        if (past > sel->count[d])
            past = sel->count[d];
        if (first >= past) {
            out->count[d] = out->in_sel[d] = out->in_chunk[d] = 0;
            any = 0;
        } else {
            out->count[d] = past - first;
            out->in_sel[d] = first;
            out->in_chunk[d] = sel->start[d] + first * step - corner;
        }
        out->whole &= out->count[d] == end - corner;
    }
    out->whole &= any;
    return any;
}
