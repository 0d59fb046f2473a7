/*
 * IDX, the format of the MNIST files: big-endian throughout.
 *
 *   00 00 TT NN   TT the type, NN the number of axes
 *   u32 * NN      the extents
 *   elements      C order
 */
#include <string.h>

#include "../elements.h"

typedef struct idx_type {
    uint8_t code;
    const char *descr; /* NumPy's */
} idx_type;

static const idx_type idx_types[] = {
    { 0x08, "|u1" }, { 0x09, "|i1" }, { 0x0B, ">i2" },
    { 0x0C, ">i4" }, { 0x0D, ">f4" }, { 0x0E, ">f8" },
};

static const idx_type *idx_type_of(uint8_t code)
{
    for (size_t i = 0; i < sizeof(idx_types) / sizeof(idx_types[0]); i++)
        if (idx_types[i].code == code)
            return &idx_types[i];
    return NULL;
}

int brc_is_idx(const uint8_t *head, size_t n)
{
    return n >= 4 && head[0] == 0 && head[1] == 0 && idx_type_of(head[2]) != NULL && head[3] > 0;
}

int brc_idx_open(brc_elements *out, brc_input *in, const brc_registry *reg, brc_error *err)
{
    uint8_t magic[4], extent[4];

    memset(out, 0, sizeof(*out));
    BRC_TRY(brc_input_exact(in, magic, sizeof(magic), err));
    if (!brc_is_idx(magic, sizeof(magic)))
        return brc_fail(err, BRC_EINVAL, "%s does not begin as an IDX file does", in->name);
    if (magic[3] > BRC_MAX_NDIM)
        return brc_fail(err, BRC_ELIMIT, "%s has %d axes, more than %d", in->name, magic[3],
                        BRC_MAX_NDIM);
    out->ndim = magic[3];
    for (int i = 0; i < out->ndim; i++) {
        BRC_TRY(brc_input_exact(in, extent, sizeof(extent), err));
        out->shape[i] = (uint64_t)extent[0] << 24 | (uint64_t)extent[1] << 16 |
                        (uint64_t)extent[2] << 8 | extent[3];
    }
    BRC_TRY(brc_dtype_open_npy(&out->type, &out->big, reg, idx_type_of(magic[2])->descr, err));
    out->big = 1;
    int rc = brc_elements_measure(out, in, err);
    if (rc < 0)
        brc_elements_free(out);
    return rc;
}
