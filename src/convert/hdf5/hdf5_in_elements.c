/* Elements as the library gives them, made ours: see hdf5_in.h. */
#include <stdlib.h>
#include <string.h>

#include "hdf5_in.h"
#include "hdf5_reference.h"

/* The most memory that elements of variable length may take at once. */
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
            return brc_part_refuse(
                err, BRC_PART_VALUE, NULL,
                "%s: an element of FALSE = 0 and TRUE = 1 is %d, which is neither", label, *at);
    }
    return BRC_OK;
}

int brc_hdf5_is_doubtful(const brc_hdf5_type *type)
{
    int is = type->kind == BRC_HDF5_STRING || type->kind == BRC_HDF5_OBJECT ||
             type->kind == BRC_HDF5_REGION; /* which may lead nowhere */
    for (size_t i = 0; i < type->nparts; i++)
        is |= type->parts[i].bits == 0;
    return is;
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
        return brc_part_refuse(err, BRC_PART_SIZE, NULL,
                               "%s: an element has more than 2^32-1 bytes", label);
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
            return brc_part_refuse(err, BRC_PART_VALUE, "convert it first",
                                   "%s: a string in it is not UTF-8", label);
    }
    return append_span(out, bytes.data, bytes.len, label, err);
}

static int append_reference(const brc_hdf5_in *in, const brc_hdf5_type *type, const void *element,
                            brc_buf *out, const char *label, brc_error *err)
{
    static const uint8_t count[4];
    size_t start = out->len;
    BRC_TRY(brc_buf_append(out, count, sizeof(count), err));
    BRC_TRY(brc_hdf5_reference_text(&in->paths, in->id, type->kind == BRC_HDF5_REGION, element, out,
                                    label, err));
    brc_put_u32le(out->data + start, (uint32_t)(out->len - start - 4));
    return BRC_OK;
}

int brc_hdf5_memory_span(const brc_hdf5_in *in, const brc_hdf5_type *type, const void *element,
                         brc_buf *out, const char *label, brc_error *err)
{
    if (type->kind == BRC_HDF5_OBJECT || type->kind == BRC_HDF5_REGION)
        return append_reference(in, type, element, out, label, err);
    const char *text = type->kind == BRC_HDF5_STRING ? *(char *const *)element : NULL;
    const hvl_t *list = element;
    brc_span bytes = { (const uint8_t *)text, text ? strlen(text) : 0 };
    if (type->kind == BRC_HDF5_BYTES)
        bytes = (brc_span){ list->p, list->p ? list->len : 0 };
    if (bytes.len == 0)
        bytes.data = (const uint8_t *)"";
    return append_checked(out, type, bytes, label, err);
}

/* ---- elements of variable length in memory -------------------------------- */

static void *take_memory(size_t size, void *ctx)
{
    brc_hdf5_memory *memory = ctx;
    memory->is_full |= size > memory->most - memory->taken;
    if (memory->is_full)
        return NULL;
    memory->taken += size;
    return brc_arena_take(&memory->arena, size);
}

static void give_memory_back(void *at, void *ctx)
{
    (void)at, (void)ctx; /* with all of it */
}

int brc_hdf5_read_lists(brc_hdf5_memory *taken, hid_t dataset, hid_t type, hid_t memory,
                        hid_t space, void *elements, const char *label, brc_error *err)
{
    hid_t plist = H5Pcreate(H5P_DATASET_XFER);
    int rc = 1;
    if (plist < 0 ||
        H5Pset_vlen_mem_manager(plist, take_memory, taken, give_memory_back, taken) < 0 ||
        H5Dread(dataset, type, memory, space, plist, elements) < 0)
        rc = taken->is_full
                 ? 0
                 : brc_hdf5_fail(err, BRC_EINVAL, "%s: its elements cannot be read", label);
    brc_hdf5_close(plist);
    return rc;
}

int brc_hdf5_spans(const brc_hdf5_in *in, const brc_hdf5_type *type, hid_t dataset, hid_t memory,
                   hid_t space, uint64_t n, brc_buf *out, const char *label, brc_error *err)
{
    brc_hdf5_memory taken = { BRC_ARENA_INIT, 0, VARIABLE_BYTES, 0 };
    uint8_t *elements = NULL;
    int rc;

    BRC_GO(brc_new_array((void **)&elements, n, type->size, err));
    BRC_GO(brc_hdf5_read_lists(&taken, dataset, type->memory, memory, space, elements, label, err));
    if (rc == 0) {
        rc = brc_fail(err, BRC_ELIMIT, "%s: the elements of a few chunks have more than %zu MiB",
                      label, VARIABLE_BYTES >> 20);
        goto done;
    }
    rc = BRC_OK;
    for (uint64_t i = 0; i < n * (type->size / type->item); i++)
        BRC_GO(brc_hdf5_memory_span(in, type, elements + i * type->item, out, label, err));
done:
    free(elements);
    brc_arena_dispose(&taken.arena);
    return rc;
}
