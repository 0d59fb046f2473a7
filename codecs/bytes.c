/*
 * "bytes": the elements in C order, packed, in either byte order.
 *
 * Canonical elements are little-endian, so encoding to little-endian, or of elements of
 * single bytes, gives the canonical bytes themselves on every machine. Types of less than a
 * byte are stored as one byte for each number; decoding corrects the bits that carry no
 * value, because other writers may have set them.
 */
#include "builtin.h"

#include <stdlib.h>
#include <string.h>

struct bytes_state {
    uint64_t len;
    const brc_dtype *type; /* belongs to the chain, which outlives this state     */
    int big;               /* big-endian, and the type has a byte order           */
    int normalizes;
};

static int bytes_have_order(const brc_dtype *type)
{
    return type->swap_unit > 1;
}

/* ---- specification ------------------------------------------------------------------ */

static int bytes_read_config(struct bytes_state *state, const brc_json *config,
                             const brc_dtype *type, brc_error *err)
{
    static const char *const members[] = { "endian" };
    const brc_json *endian = brc_json_member(config, "endian");
    int big = brc_json_is(endian, "big");

    if (config != NULL) {
        int rc = brc_json_allow(config, members, 1, err);
        if (rc < 0)
            return rc;
    }
    /* Writers of the legacy type "structured" left "endian" out and wrote little-endian. */
    int may_lack = strcmp(type->name, "structured") == 0 || !bytes_have_order(type);
    if (endian == NULL && !may_lack)
        return brc_fail(err, BRC_EINVAL, "\"endian\" must be given for %s: \"little\" or \"big\"",
                        type->name);
    if (endian != NULL && !big && !brc_json_is(endian, "little"))
        return brc_fail(err, BRC_EINVAL, "\"endian\" must be \"little\" or \"big\"");
    state->big = big && bytes_have_order(type);
    return BRC_OK;
}

static int bytes_open(void *ctx, void **out_state, const brc_json *config, const brc_proto *in,
                      brc_proto *out, int *identity, brc_error *err)
{
    (void)ctx;
    struct bytes_state read = { in->len, in->dtype, 0, brc_dtype_normalize(in->dtype, NULL, 0) };

    if (in->dtype->klass == BRC_CLASS_OPTIONAL)
        return brc_fail(err, BRC_EINVAL,
                        "elements of %s may be missing: use the codec \"zarrs.optional\"",
                        in->dtype->name);
    if (in->dtype->item_size == 0)
        return brc_fail(err, BRC_EINVAL, "elements of %s have no fixed length", in->dtype->name);
    int rc = bytes_read_config(&read, config, in->dtype, err);
    if (rc < 0)
        return rc;
    struct bytes_state *state = malloc(sizeof(*state));
    if (state == NULL)
        return brc_fail(err, BRC_ENOMEM, "out of memory");
    *state = read;
    out->ndim = -1;
    *identity = !read.big && !read.normalizes;
    *out_state = state;
    return BRC_OK;
}

static void bytes_close(void *ctx, void *state)
{
    (void)ctx;
    free(state);
}

static int bytes_write_config(void *ctx, const void *state, brc_buf *out, brc_error *err)
{
    (void)ctx;
    const struct bytes_state *bytes = state;

    if (!bytes_have_order(bytes->type))
        return BRC_OK;
    return brc_buf_printf(out, err, "{\"endian\":\"%s\"}", bytes->big ? "big" : "little");
}

/* ---- implementation ----------------------------------------------------------------- */

/* Encodes or decodes: reversing the bytes is its own inverse. */
static int bytes_convert(const struct bytes_state *bytes, brc_span src, brc_buf *dst,
                         brc_error *err)
{
    if (src.len != bytes->len)
        return brc_fail(err, BRC_ECORRUPT, "%llu bytes are expected, not %zu",
                        (unsigned long long)bytes->len, src.len);
    int rc = brc_buf_reserve(dst, src.len, err);
    if (rc < 0 || src.len == 0)
        return rc;
    if (bytes->big)
        brc_dtype_swap(bytes->type, dst->data + dst->len, src.data,
                       src.len / bytes->type->item_size);
    else
        memcpy(dst->data + dst->len, src.data, src.len);
    dst->len += src.len;
    return BRC_OK;
}

static int bytes_encode(void *ctx, const void *state, void *scratch, brc_span src, brc_buf *dst,
                        brc_error *err)
{
    (void)ctx;
    (void)scratch;
    return bytes_convert(state, src, dst, err);
}

static int bytes_decode(void *ctx, const void *state, void *scratch, brc_span src, brc_buf *dst,
                        brc_error *err)
{
    (void)ctx;
    (void)scratch;
    const struct bytes_state *bytes = state;
    size_t start = dst->len;

    int rc = bytes_convert(bytes, src, dst, err);
    if (rc == BRC_OK && bytes->normalizes && src.len > 0)
        brc_dtype_normalize(bytes->type, dst->data + start, src.len / bytes->type->item_size);
    return rc;
}

int brc_codec_bytes_register(brc_registry *reg, brc_error *err)
{
    static const brc_codec_spec spec = {
        .size = sizeof(spec),
        .name = "bytes",
        .kind = BRC_ARRAY_TO_BYTES,
        .open = bytes_open,
        .close = bytes_close,
        .write_config = bytes_write_config,
    };
    static const brc_codec_impl impl = {
        .size = sizeof(impl),
        .spec = "bytes",
        .name = "portable",
        .encode = bytes_encode,
        .decode = bytes_decode,
    };
    int rc = brc_registry_add_codec(reg, &spec, err);

    if (rc == BRC_OK)
        rc = brc_registry_add_impl(reg, &impl, err);
    /* its name in drafts of Zarr v3 */
    return rc < 0 ? rc : brc_registry_add_alias(reg, "endian", "bytes", err);
}
