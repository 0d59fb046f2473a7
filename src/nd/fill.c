/* One element everywhere: writing it, and seeing whether it is there already. */
#include "shape.h"

#include <string.h>

#define FILL_BLOCK 4096   /* stays in the first cache while it is copied from         */
#define FILL_SMALL 256    /* pieces up to this are copied as one element             */
#define EQUAL_BLOCK 65536 /* how far a memcmp() without an early exit may look ahead */
#define EQUAL_FIRST 64    /* looked at first: real data differs here already        */

static int bytes_are_alike(const uint8_t *data, size_t len)
{
    return len <= 1 || memcmp(data, data + 1, len - 1) == 0;
}

void brc_fill_run(uint8_t *dst, uint64_t n, size_t item, const uint8_t *element)
{
    size_t len = (size_t)n * item;
    if (len == 0)
        return;
    if (bytes_are_alike(element, item)) {
        memset(dst, element[0], len);
        return;
    }
    memcpy(dst, element, item);
    /* what is there is doubled up to a block, then the block is repeated */
    size_t block = item < FILL_BLOCK ? FILL_BLOCK - FILL_BLOCK % item : item;
    for (size_t done = item, step; done < len; done += step) {
        step = done < block ? done : block;
        if (step > len - done)
            step = len - done;
        memcpy(dst + done, dst, step);
    }
}

/* The trailing axes that lie in one piece: their elements, and *outer the rest. */
static uint64_t piece_elements(int ndim, const uint64_t *shape, size_t item, const int64_t *strides,
                               int *outer)
{
    uint64_t n = 1;
    int d = ndim;
    while (d > 0 && (shape[d - 1] == 1 || strides[d - 1] == (int64_t)(n * item)))
        n *= shape[--d];
    *outer = d;
    return n;
}

void brc_fill_box(int ndim, const uint64_t *shape, size_t item, uint8_t *dst,
                  const int64_t *dst_strides, const uint8_t *element)
{
    static const int64_t still[BRC_MAX_NDIM] = { 0 };
    uint64_t index[BRC_MAX_NDIM] = { 0 };
    int outer;
    for (int d = 0; d < ndim; d++)
        if (shape[d] == 0)
            return;
    if (item == 0)
        return;
    uint64_t n = piece_elements(ndim, shape, item, dst_strides, &outer);
    uint8_t small[FILL_SMALL];
    if (n == 1 || n <= FILL_SMALL / item) {
        if (n > 1)
            brc_fill_run(small, n, item, element);
        brc_copy_box(outer, shape, (size_t)n * item, dst, dst_strides, n > 1 ? small : element,
                     still);
        return;
    }
    do {
        uint8_t *piece = dst;
        for (int d = 0; d < outer; d++)
            piece += (int64_t)index[d] * dst_strides[d];
        brc_fill_run(piece, n, item, element);
    } while (brc_index_next(outer, index, shape));
}

int brc_all_equal(const uint8_t *data, uint64_t n, size_t item, const uint8_t *element)
{
    size_t len = (size_t)n * item;
    if (len == 0)
        return 1;
    if (memcmp(data, element, item) != 0)
        return 0;
    /* each element equals the one before it; the first equals ours */
    size_t at = 0, left = len - item, block = EQUAL_FIRST;
    while (left > 0) {
        if (block > left)
            block = left;
        if (memcmp(data + at, data + at + item, block) != 0)
            return 0;
        at += block;
        left -= block;
        block = EQUAL_BLOCK;
    }
    return 1;
}
