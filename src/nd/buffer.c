/*
 * Checks that every selected element lies inside a caller's memory.
 *
 * Invariant: offsets are counted in bytes from the memory's start, as unsigned 64-bit numbers
 * that never wrap; no pointer is formed before all of them are known to lie within the memory.
 */
#include "buffer.h"

#include "../base/sized.h"
#include "shape.h"

int brc_memory_of(brc_memory *out, const brc_buffer *given, int way, brc_error *err)
{
    brc_buffer b;
    BRC_TRY(brc_sized_in(&b, sizeof(b), sizeof(b), given, "brc_buffer", err));
    BRC_TRY(brc_flags_check(b.flags, BRC_BUFFER_READONLY, "brc_buffer", err));
    if (b.device != BRC_MEMORY_HOST)
        return brc_fail(err, BRC_EUNSUPPORTED,
                        "memory of device %u cannot be used: copy it to the host's first",
                        (unsigned)b.device);
    if (way == BRC_MEMORY_OUT && (b.flags & BRC_BUFFER_READONLY))
        return brc_fail(err, BRC_EINVAL, "the buffer is read-only: nothing can be read into it");
    if (b.offset > b.len || (b.data == NULL && b.len > 0))
        return brc_fail(err, BRC_EINVAL,
                        "the buffer begins at byte %zu of memory with %zu bytes", b.offset,
                        b.data != NULL ? b.len : 0);
    *out = (brc_memory){b.data == NULL ? NULL : (uint8_t *)b.data + b.offset, b.len - b.offset,
                        b.strides};
    return BRC_OK;
}

/* Extends the touched range by count - 1 strides; `item` bytes follow `high`. */
static int stretch(uint64_t *low, uint64_t *high, uint64_t count, int64_t stride)
{
    uint64_t step = stride < 0 ? 0 - (uint64_t)stride : (uint64_t)stride, span;
    if (!brc_mul_u64(count - 1, step, &span))
        return 0;
    if (stride >= 0)
        return brc_add_u64(*high, span, high);
    if (span > *low)
        return 0;
    *low -= span;
    return 1;
}

static int strided_fits(const brc_buffer *given, int ndim, const uint64_t *count, size_t item,
                        int way, brc_error *err)
{
    uint64_t low = given->offset, high = given->offset, end;
    for (int i = 0; i < ndim; i++)
        if (count[i] == 0)
            return BRC_OK;
    for (int i = 0; i < ndim; i++) {
        if (way == BRC_MEMORY_OUT && count[i] > 1 && given->strides[i] == 0)
            return brc_fail(err, BRC_EINVAL,
                            "stride 0 for axis %d: the elements read would share one place", i);
        if (!stretch(&low, &high, count[i], given->strides[i]))
            return brc_fail(err, BRC_EINVAL,
                            "the strides leave the buffer's %zu bytes along axis %d", given->len,
                            i);
    }
    if (!brc_add_u64(high, item, &end) || end > given->len)
        return brc_fail(err, BRC_EINVAL, "the strides leave the buffer's %zu bytes", given->len);
    return BRC_OK;
}

int brc_memory_fits(const brc_buffer *given, int ndim, const uint64_t *count, size_t item, int way,
                    brc_error *err)
{
    uint64_t want;
    if (given->strides != NULL)
        return strided_fits(given, ndim, count, item, way, err);
    if (!brc_shape_bytes(ndim, count, item, &want))
        return brc_fail(err, BRC_ELIMIT, "the selection has more than 2^64 bytes");
    if (want == given->len - given->offset)
        return BRC_OK;
    return brc_fail(err, BRC_EINVAL, "the selection has %llu bytes, but the memory has %zu",
                    (unsigned long long)want, given->len - given->offset);
}
