/*
 * IDX, the format of the MNIST files: big-endian throughout.
 *
 *   00 00 TT NN   TT the type, NN the number of axes
 *   u32 * NN      the extents
 *   elements      C order
 */
#include <string.h>

#include "../xfer.h"
#include "idx.h"

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

static int is_idx(const uint8_t *head, size_t n)
{
    return n >= 4 && head[0] == 0 && head[1] == 0 && idx_type_of(head[2]) != NULL && head[3] > 0;
}

int brc_idx_open(brc_elements *out, brc_input *in, const brc_registry *reg, brc_error *err)
{
    uint8_t magic[4], extent[4];

    memset(out, 0, sizeof(*out));
    BRC_TRY(brc_input_exact(in, magic, sizeof(magic), err));
    if (!is_idx(magic, sizeof(magic)))
        return brc_fail(err, BRC_EINVAL, "%s does not begin like an IDX file", in->name);
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

/* ---- the format -------------------------------- */

static int probe_idx(int *is, const brc_source *source, brc_error *err)
{
    (void)err;
    *is = is_idx(source->head, source->head_len);
    return BRC_OK;
}

static int import_idx(brc_session *s, const brc_source *source, const char *path,
                      const brc_xfer_opts *opts, brc_error *err)
{
    return brc_elements_import_file(s, source->name, brc_idx_open, path, opts, err);
}

static int size_idx(uint64_t *bytes, brc_session *s, const brc_source *source,
                    const brc_xfer_opts *opts, brc_error *err)
{
    (void)opts;
    return brc_elements_file_bytes(bytes, s, source->name, brc_idx_open, err);
}

/* The endings "-idx3-ubyte" and ".idx3-ubyte", as the MNIST files have them. */
static size_t idx_stem(const char *name, size_t len)
{
    static const char *const types[] = { "-ubyte", "-byte", "-short", "-int", "-float", "-double" };
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        size_t n = brc_without_ending(name, len, types[i]);
        if (n == len)
            continue;
        size_t digits = n;
        while (digits > 0 && name[digits - 1] >= '0' && name[digits - 1] <= '9')
            digits--;
        size_t shorter = brc_without_ending(name, digits, "-idx");
        if (shorter == digits)
            shorter = brc_without_ending(name, digits, ".idx");
        return shorter < digits ? shorter : len;
    }
    return brc_without_ending(name, len, ".idx");
}

const brc_format brc_format_idx = {
    .source_text = "IDX",
    .stem = idx_stem,
    .probe = probe_idx,
    .import = import_idx,
    .size = size_idx,
};
