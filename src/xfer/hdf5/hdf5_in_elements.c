/* Elements as the library gives them, made ours: see hdf5_in.h. */
#include <string.h>

#include "hdf5_in.h"

/* What elements of variable length may have in memory at once. */
#define VARIABLE_BYTES ((size_t)1 << 30)

/* The integer's lowest bits, as a signed number. */
static void extend_sign(uint8_t *at, size_t size, unsigned bits)
{
    uint64_t sign = UINT64_C(1) << (bits - 1), value = 0;
    size_t first = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? 8 - size : 0;
    uint8_t bytes[8] = { 0 };
    memcpy(bytes + first, at, size);
    memcpy(&value, bytes, sizeof(value));
    value = ((value & (2 * sign - 1)) ^ sign) - sign;
    memcpy(bytes, &value, sizeof(value));
    memcpy(at, bytes + first, size);
}

static int mend_part(const struct brc_hdf5_part *part, uint8_t *data, uint64_t items, size_t step,
                     const char *label, brc_error *err)
{
    uint8_t *at = data + part->at;
    for (uint64_t i = 0; i < items; i++, at += step) {
        if (part->bits > 0)
            extend_sign(at, part->size, part->bits);
        else if (*at > 1)
            return brc_fail(err, BRC_EINVAL,
                            "%s: an element of FALSE = 0 and TRUE = 1 is %d, which is neither",
                            label, *at);
    }
    return BRC_OK;
}

int brc_hdf5_canonical(const brc_hdf5_type *type, const brc_dtype *dtype, uint8_t *data, uint64_t n,
                       const char *label, brc_error *err)
{
    uint64_t items = n * (type->size / type->item);
    for (size_t i = 0; i < type->nparts; i++)
        BRC_TRY(mend_part(&type->parts[i], data, items, type->item, label, err));
    if (type->swap)
        brc_dtype_swap(dtype, data, data, items);
    brc_dtype_native(dtype, data, items * type->item);
    brc_dtype_normalize(dtype, data, items);
    return BRC_OK;
}

static int append_span(brc_buf *out, const void *data, size_t len, const char *label,
                       brc_error *err)
{
    uint8_t count[4];
    if (len > UINT32_MAX)
        return brc_fail(err, BRC_ELIMIT, "%s: an element has more than 2^32-1 bytes", label);
    brc_put_u32le(count, (uint32_t)len);
    BRC_TRY(brc_buf_append(out, count, sizeof(count), err));
    return len > 0 ? brc_buf_append(out, data, len, err) : BRC_OK;
}

/* A text ends at its first zero byte. */
static int append_checked(brc_buf *out, const brc_hdf5_type *type, brc_span bytes,
                          const char *label, brc_error *err)
{
    if (type->kind == BRC_HDF5_STRING) {
        bytes.len = strnlen((const char *)bytes.data, bytes.len);
        if (!brc_utf8_valid((const char *)bytes.data, bytes.len))
            return brc_fail(err, BRC_EINVAL,
                            "%s: a string in it is not UTF-8: write it as such first", label);
    }
    return append_span(out, bytes.data, bytes.len, label, err);
}

int brc_hdf5_spans(const brc_hdf5_in *in, const brc_hdf5_type *type, const uint8_t *references,
                   uint64_t n, brc_buf *out, const char *label, brc_error *err)
{
    for (uint64_t i = 0; i < n; i++) {
        brc_span bytes;
        BRC_TRY(brc_hdf5_heap_get(in->heap, references + i * in->heap->reference_size, 1, &bytes,
                                  label, err));
        BRC_TRY(append_checked(out, type, bytes, label, err));
        if (out->len > VARIABLE_BYTES) /* many elements may be one and the same long text */
            return brc_fail(err, BRC_ELIMIT,
                            "%s: the elements of a few chunks have more than %zu MiB", label,
                            VARIABLE_BYTES >> 20);
    }
    return BRC_OK;
}

int brc_hdf5_memory_span(const brc_hdf5_type *type, const void *element, brc_buf *out,
                         const char *label, brc_error *err)
{
    const char *text = type->kind == BRC_HDF5_STRING ? *(char *const *)element : NULL;
    const hvl_t *list = element;
    brc_span bytes = { (const uint8_t *)text, text ? strlen(text) : 0 };
    if (type->kind == BRC_HDF5_BYTES)
        bytes = (brc_span){ list->p, list->p ? list->len : 0 };
    if (bytes.len == 0)
        bytes.data = (const uint8_t *)"";
    return append_checked(out, type, bytes, label, err);
}
