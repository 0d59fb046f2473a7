/* Slabs of whole chunk rows, see slabs.h. */
#include "slabs.h"

#include <string.h>

/* Indices of the selection that lie in one chunk, about. */
static uint64_t chunk_in_sel(const brc_sel *within, const uint64_t *chunk, int axis)
{
    uint64_t n = chunk[axis] / (within->step[axis] > 0 ? within->step[axis] : 1);
    return n > 0 ? n : 1;
}

/* Sets step and first for a cut along order[depth], one index of which is `unit`
 * bytes; 0 where a deeper cut is needed. */
static int cut_here(brc_slabs *s, const uint64_t *chunk, uint64_t unit, size_t budget)
{
    int axis = s->order[s->depth];
    uint64_t in_chunk = chunk_in_sel(&s->within, chunk, axis);
    uint64_t row =
        brc_mul_capped(unit, in_chunk < s->within.count[axis] ? in_chunk : s->within.count[axis]);
    if (row <= budget)
        s->step = budget / brc_mul_capped(unit, in_chunk) > 0
                      ? budget / (unit * in_chunk) * in_chunk
                      : in_chunk;
    else if (row / 4 < budget)
        s->step = in_chunk;
    else if (unit <= budget)
        s->step = budget / unit;
    else
        return 0;
    s->first = s->step;
    if (s->step >= in_chunk && s->within.step[axis] == 1)
        s->first -= s->within.start[axis] % in_chunk;
    return 1;
}

void brc_slabs_start(brc_slabs *out, const brc_sel *within, const uint64_t *chunk, size_t item,
                     int fortran, size_t budget)
{
    uint64_t unit[BRC_MAX_NDIM + 1];
    int ndim = within->ndim;

    memset(out, 0, sizeof(*out));
    out->within = *within;
    out->item = item;
    for (int k = 0; k < ndim; k++) {
        out->order[k] = fortran ? ndim - 1 - k : k;
        out->done |= within->count[k] == 0;
    }
    unit[ndim] = item;
    for (int k = ndim; k-- > 0;)
        unit[k] = brc_mul_capped(unit[k + 1], within->count[out->order[k]]);
    if (out->done)
        return;
    while (out->depth < ndim && !cut_here(out, chunk, unit[out->depth + 1], budget))
        out->depth++;
    if (out->depth == ndim) { /* no axis left: one element at a time */
        out->max_len = item;
        return;
    }
    uint64_t most = within->count[out->order[out->depth]];
    out->max_len = (size_t)(unit[out->depth + 1] * (out->step < most ? out->step : most));
}

/* To the next index of the axes that go one at a time. */
static void step_outer(brc_slabs *s)
{
    for (int k = s->depth; k-- > 0;) {
        int axis = s->order[k];
        if (++s->at[axis] < s->within.count[axis])
            return;
        s->at[axis] = 0;
    }
    s->done = 1;
}

int brc_slabs_next(brc_slabs *s)
{
    const brc_sel *w = &s->within;
    uint64_t at[BRC_MAX_NDIM] = { 0 };
    if (s->done)
        return 0;
    s->sel.ndim = w->ndim;
    s->len = s->item;
    memcpy(at, s->at, sizeof(at));
    for (int k = 0; k < w->ndim; k++) {
        int axis = s->order[k];
        uint64_t n = k < s->depth ? 1 : w->count[axis];
        if (k == s->depth) {
            uint64_t left = n - at[axis], want = at[axis] == 0 ? s->first : s->step;
            n = want < left ? want : left;
            s->at[axis] += n;
        }
        s->sel.start[axis] = w->start[axis] + at[axis] * w->step[axis];
        s->sel.count[axis] = n;
        s->sel.step[axis] = w->step[axis];
        s->len *= (size_t)n;
    }
    if (s->depth < w->ndim && s->at[s->order[s->depth]] < w->count[s->order[s->depth]])
        return 1;
    if (s->depth < w->ndim)
        s->at[s->order[s->depth]] = 0;
    step_outer(s);
    return 1;
}

void brc_slabs_strides(const brc_slabs *s, int64_t *strides)
{
    uint64_t stride = s->item;
    for (int k = s->sel.ndim; k-- > 0;) {
        strides[s->order[k]] = (int64_t)stride;
        stride *= s->sel.count[s->order[k]];
    }
}
