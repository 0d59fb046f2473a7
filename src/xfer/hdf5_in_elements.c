/* Elements as the library gives them, made ours: see hdf5_in.h. */
#include <string.h>

#include "hdf5_in.h"

static int check_bools(const brc_hdf5_type *type, const uint8_t *data, uint64_t items,
                       const char *label, brc_error *err)
{
    for (size_t b = 0; b < type->nbools; b++)
        for (uint64_t i = 0; i < items; i++) {
            uint8_t value = data[i * type->item + type->bools[b]];
            if (value > 1)
                return brc_fail(err, BRC_EINVAL,
                                "%s: an element of FALSE = 0 and TRUE = 1 is %d, which is neither",
                                label, value);
        }
    return BRC_OK;
}

int brc_hdf5_canonical(const brc_hdf5_type *type, const brc_dtype *dtype, uint8_t *data, uint64_t n,
                       const char *label, brc_error *err)
{
    uint64_t items = n * (type->size / type->item);
    BRC_TRY(check_bools(type, data, items, label, err));
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

/* A text that was never written is a NULL pointer. */
static int append_text(brc_buf *out, const char *text, const char *label, brc_error *err)
{
    size_t len = text ? strlen(text) : 0;
    if (len > 0 && !brc_utf8_valid(text, len))
        return brc_fail(err, BRC_EINVAL, "%s: a string in it is not UTF-8: write it as such first",
                        label);
    return append_span(out, text, len, label, err);
}

int brc_hdf5_spans(const brc_hdf5_type *type, const void *data, uint64_t n, brc_buf *out,
                   const char *label, brc_error *err)
{
    for (uint64_t i = 0; i < n; i++) {
        if (type->kind == BRC_HDF5_STRING) {
            BRC_TRY(append_text(out, ((char *const *)data)[i], label, err));
        } else {
            const hvl_t *list = (const hvl_t *)data + i;
            BRC_TRY(append_span(out, list->p, list->len, label, err));
        }
    }
    return BRC_OK;
}
