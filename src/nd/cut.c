/* Cutting selections into boxes, see cut.h. */
#include "cut.h"

#include <string.h>

enum { CUT_FRESH, CUT_BEGUN, CUT_ENDED };

/* ---- extents -------------------------------- */

void brc_cut_grow(int ndim, const int *order, uint64_t *extent, const uint64_t *whole,
                  uint64_t bytes, uint64_t budget)
{
    for (int k = ndim; k-- > 0;) {
        const int i = order != NULL ? order[k] : k;
        const uint64_t n = brc_grid_extent(whole[i], brc_at_least_one(extent[i]));
        const uint64_t fit = brc_at_least_one(budget / brc_at_least_one(bytes));
        if (fit < n) {
            extent[i] *= fit;
            return;
        }
        bytes = brc_mul_capped(bytes, brc_at_least_one(n));
        extent[i] = whole[i];
    }
}

/* Indices of the selection that lie in one chunk, about. */
static uint64_t chunk_in_sel(const brc_sel *within, const uint64_t *chunk, int axis)
{
    return brc_at_least_one(chunk[axis] / brc_at_least_one(within->step[axis]));
}

static void cut_start(brc_cut *cut, const brc_sel *within, int fortran)
{
    const int ndim = within->ndim;
    memset(cut, 0, sizeof(*cut));
    cut->within = cut->sel = *within;
    for (int k = 0; k < ndim; k++) {
        cut->order[k] = fortran ? ndim - 1 - k : k;
        if (within->count[k] == 0)
            cut->state = CUT_ENDED;
    }
}

/* Boxes of several chunks end where chunks do. */
static void align_first(brc_cut *cut, const uint64_t *chunk)
{
    cut->most = cut->state == CUT_ENDED ? 0 : 1;
    for (int i = 0; i < cut->within.ndim; i++) {
        const uint64_t in_chunk = chunk_in_sel(&cut->within, chunk, i);
        const uint64_t extent = cut->extent[i], count = cut->within.count[i];
        cut->first[i] = extent;
        if (extent >= in_chunk && extent < count && cut->within.step[i] == 1)
            cut->first[i] -= cut->within.start[i] % in_chunk;
        cut->most = brc_mul_capped(cut->most, extent < count ? extent : count);
    }
}

/* Sets the extent of a cut along this axis, one index of which is `unit` bytes; 0 if the cut
 * must be along a faster one. */
static int cut_axis(brc_cut *cut, const uint64_t *chunk, int axis, uint64_t unit, uint64_t budget)
{
    const uint64_t count = cut->within.count[axis];
    const uint64_t in_chunk = chunk_in_sel(&cut->within, chunk, axis);
    const uint64_t row = brc_mul_capped(unit, in_chunk < count ? in_chunk : count);
    const uint64_t chunks = brc_at_least_one(budget / brc_mul_capped(unit, in_chunk));
    if (row <= budget)
        cut->extent[axis] = brc_mul_capped(chunks, in_chunk);
    else if (row / 4 < budget)
        cut->extent[axis] = in_chunk;
    else if (unit <= budget)
        cut->extent[axis] = budget / unit;
    else
        return 0;
    return 1;
}

void brc_cut_runs(brc_cut *out, const brc_sel *within, const uint64_t *chunk, size_t item,
                  int fortran, uint64_t budget)
{
    uint64_t unit[BRC_MAX_NDIM + 1];
    const int ndim = within->ndim;

    cut_start(out, within, fortran);
    unit[ndim] = item > 0 ? item : BRC_VARIABLE_BYTES;
    for (int k = ndim; k-- > 0;) {
        const int axis = out->order[k];
        out->extent[axis] = brc_at_least_one(within->count[axis]);
        unit[k] = brc_mul_capped(unit[k + 1], out->extent[axis]);
    }
    for (int k = 0; k < ndim && !cut_axis(out, chunk, out->order[k], unit[k + 1], budget); k++)
        out->extent[out->order[k]] = 1;
    align_first(out, chunk);
}

void brc_cut_chunks(brc_cut *out, const brc_sel *within, const uint64_t *chunk, size_t item,
                    uint64_t budget)
{
    uint64_t bytes = item > 0 ? item : BRC_VARIABLE_BYTES;

    cut_start(out, within, 0);
    for (int i = 0; i < within->ndim; i++) {
        const uint64_t in_chunk = chunk_in_sel(within, chunk, i);
        const uint64_t count = brc_at_least_one(within->count[i]);
        out->extent[i] = in_chunk < count ? in_chunk : count;
        bytes = brc_mul_capped(bytes, out->extent[i]);
    }
    brc_cut_grow(within->ndim, NULL, out->extent, within->count, bytes, budget);
    align_first(out, chunk);
}

/* ---- the walk -------------------------------- */

/* To where the next box begins; 0 after the last. */
static int step_on(brc_cut *cut)
{
    for (int k = cut->within.ndim; k-- > 0;) {
        const int i = cut->order[k];
        if (cut->within.count[i] - cut->at[i] > cut->sel.count[i]) {
            cut->at[i] += cut->sel.count[i];
            return 1;
        }
        cut->at[i] = 0;
    }
    return 0;
}

int brc_cut_next(brc_cut *cut)
{
    const brc_sel *w = &cut->within;
    if (cut->state == CUT_BEGUN && !step_on(cut))
        cut->state = CUT_ENDED;
    if (cut->state == CUT_ENDED)
        return 0;
    cut->state = CUT_BEGUN;
    cut->elements = 1;
    for (int i = 0; i < w->ndim; i++) {
        const uint64_t left = w->count[i] - cut->at[i];
        const uint64_t want = cut->at[i] == 0 ? cut->first[i] : cut->extent[i];
        cut->sel.start[i] = w->start[i] + cut->at[i] * w->step[i];
        cut->sel.count[i] = want < left ? want : left;
        cut->elements = brc_mul_capped(cut->elements, cut->sel.count[i]);
    }
    return 1;
}

void brc_cut_strides(const brc_cut *cut, size_t item, int64_t *strides)
{
    uint64_t stride = item;
    for (int k = cut->sel.ndim; k-- > 0;) {
        strides[cut->order[k]] = (int64_t)stride;
        stride *= cut->sel.count[cut->order[k]];
    }
}
