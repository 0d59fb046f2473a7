/*
 * "numcodecs.packbits": booleans as an array of bytes, unlike the registry's
 * "packbits": bits go from the highest to the lowest.
 *
 *     | padding bits, 0 to 7 | element 0 at bit 7, 1 at bit 6, ..., 8 at bit 7 ... |
 */
#include "builtin.h"
#include "lib/codec_help.h"

#include <stdlib.h>
#include <string.h>

struct packbools_state {
    uint64_t n;
    brc_dtype *bytes; /* data type uint8                                         */
};

static void packbools_close(void *ctx, void *opaque)
{
    (void)ctx;
    struct packbools_state *state = opaque;

    brc_dtype_free(state->bytes);
    free(state);
}

static int packbools_open(void *ctx, void **out_state, const brc_json *config, const brc_proto *in,
                          brc_proto *out, int *identity, brc_error *err)
{
    (void)ctx;
    (void)identity;
    struct packbools_state state = { 0, NULL };
    int rc = config != NULL ? brc_json_allow(config, NULL, 0, err) : BRC_OK;

    if (rc == BRC_OK && in->dtype->klass != BRC_CLASS_BOOL)
        rc = brc_fail(err, BRC_EINVAL, "elements of %s are not booleans", in->dtype->name);
    if (rc == BRC_OK)
        rc = brc_codec_count(&state.n, in, err);
    if (rc == BRC_OK)
        rc = brc_dtype_open(&state.bytes, in->registry, NULL, "uint8", err);
    if (rc < 0)
        return rc;
    rc = brc_codec_state_copy(out_state, &state, sizeof(state), err);
    if (rc < 0) {
        brc_dtype_free(state.bytes);
        return rc;
    }
    out->ndim = 1;
    out->shape[0] = out->len = out->max_len = 1 + (state.n + 7) / 8;
    out->dtype = state.bytes;
    out->fill = (brc_span){ NULL, 0 };
    return BRC_OK;
}

static int packbools_encode(void *ctx, const void *opaque, void *scratch, brc_span src,
                            brc_buf *dst, brc_error *err)
{
    (void)ctx;
    (void)scratch;
    const struct packbools_state *state = opaque;
    size_t n = (size_t)state->n, packed = n / 8 + (n % 8 != 0);
    int rc = brc_buf_reserve(dst, 1 + packed, err);

    if (rc < 0)
        return rc;
    uint8_t *to = dst->data + dst->len;
    memset(to, 0, 1 + packed);
    to[0] = (uint8_t)(8 * packed - n);
    for (size_t i = 0; i < n; i++)
        to[1 + i / 8] = (uint8_t)(to[1 + i / 8] | (src.data[i] != 0) << (7 - i % 8));
    dst->len += 1 + packed;
    return BRC_OK;
}

static int packbools_decode(void *ctx, const void *opaque, void *scratch, brc_span src,
                            brc_buf *dst, brc_error *err)
{
    (void)ctx;
    (void)scratch;
    const struct packbools_state *state = opaque;
    size_t n = (size_t)state->n, packed = n / 8 + (n % 8 != 0);
    int rc = brc_codec_expect_len(src, 1 + packed, err);

    if (rc < 0)
        return rc;
    if (src.data[0] != 8 * packed - n)
        return brc_fail(err, BRC_ECORRUPT, "the stored number of padding bits is %d, not %zu",
                        src.data[0], 8 * packed - n);
    rc = brc_buf_reserve(dst, n, err);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < n; i++)
        dst->data[dst->len + i] = src.data[1 + i / 8] >> (7 - i % 8) & 1;
    dst->len += n;
    return BRC_OK;
}

int brc_codec_packbools_register(brc_registry *reg, brc_error *err)
{
    static const brc_codec_spec spec = {
        .size = sizeof(spec),
        .name = "numcodecs.packbits",
        .kind = BRC_ARRAY_TO_ARRAY,
        .open = packbools_open,
        .close = packbools_close,
    };
    static const brc_codec_impl impl = {
        .size = sizeof(impl),
        .spec = "numcodecs.packbits",
        .name = "portable",
        .encode = packbools_encode,
        .decode = packbools_decode,
    };

    return brc_codec_add(reg, &spec, &impl, err);
}
