/* Walking an array in boxes of whole chunks, see chunk_boxes.h. */
#include "chunk_boxes.h"

#include <string.h>

/* What an element of variable length is taken to have. */
#define ELEMENT_BYTES 64

void brc_boxes_start(brc_box_walk *w, int ndim, const uint64_t *shape, const uint64_t *chunk,
                     size_t item, uint64_t budget)
{
    uint64_t bytes = item ? item : ELEMENT_BYTES;

    memset(w, 0, sizeof(*w));
    w->ndim = ndim;
    w->shape = shape;
    for (int k = 0; k < ndim; k++) {
        w->extent[k] = chunk[k] < shape[k] ? chunk[k] : shape[k];
        if (w->extent[k] == 0)
            w->extent[k] = 1;
        bytes = brc_mul_capped(bytes, w->extent[k]);
    }
    for (int k = ndim; k-- > 0;) {
        uint64_t fit = bytes < budget ? budget / bytes : 1;
        uint64_t chunks = shape[k] / w->extent[k] + (shape[k] % w->extent[k] != 0);
        uint64_t n = fit < chunks ? fit : chunks;
        if (n > 1) {
            bytes = brc_mul_capped(bytes, n);
            w->extent[k] = brc_mul_capped(w->extent[k], n);
        }
        if (n < chunks)
            break;
    }
}

int brc_boxes_next(brc_box_walk *w)
{
    int k = w->ndim;

    if (!w->begun) {
        w->begun = 1;
        w->box.ndim = w->ndim;
        for (k = 0; k < w->ndim; k++)
            if (w->shape[k] == 0)
                return 0;
    } else {
        while (k-- > 0 && w->shape[k] - w->box.start[k] <= w->extent[k])
            w->box.start[k] = 0;
        if (k < 0)
            return 0;
        w->box.start[k] += w->extent[k];
    }
    for (k = 0; k < w->ndim; k++) {
        uint64_t left = w->shape[k] - w->box.start[k];
        w->box.count[k] = left < w->extent[k] ? left : w->extent[k];
        w->box.step[k] = 1;
    }
    return 1;
}

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
