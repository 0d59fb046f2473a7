/*
 * A plug-in with one codec, "org.example.delta8": each byte as its difference from the
 * byte `distance` places before it, which makes slowly changing numbers compress well.
 *
 *     plain    p0 p1 ... pd      pd+1      ...        configuration: {"distance": d}
 *     encoded  p0 p1 ... pd-p0   pd+1-p1   ...        1 to 4096; 1 where it is left out
 *
 * Build:  cc -std=c99 -O2 -shared -fPIC delta8.c -o delta8.so
 * Use:    breccia create x.brc /a ... --codecs '[{"name":"bytes"},
 *             {"name":"org.example.delta8","configuration":{"distance":2}},
 *             {"name":"zstd"}]' --plugin ./delta8.so
 */
#include <breccia_codec.h>

#include <stdlib.h>

struct delta8 {
    size_t distance;
};

/* ---- what the name in zarr.json means ------------------------------------------------- */

static int delta8_open(void *ctx, void **state, const brc_json *config, const brc_proto *in,
                       brc_proto *out, int *identity, brc_error *err)
{
    static const char *const members[] = { "distance" };
    const brc_json *distance = brc_json_member(config, "distance");
    struct delta8 *delta;
    uint64_t value = 1;
    int rc = config != NULL ? brc_json_allow(config, members, 1, err) : BRC_OK;

    (void)ctx;
    (void)in;
    (void)out; /* a copy of `in`, and that is right: as many bytes come out as go in */
    (void)identity;
    if (rc < 0)
        return rc;
    if (distance != NULL && (!brc_json_uint(distance, 4096, &value) || value == 0))
        return brc_fail(err, BRC_EINVAL, "\"distance\" must be an integer from 1 to 4096");
    delta = malloc(sizeof(*delta));
    if (delta == NULL)
        return brc_fail(err, BRC_ENOMEM, "out of memory");
    delta->distance = (size_t)value;
    *state = delta;
    return BRC_OK;
}

static void delta8_close(void *ctx, void *state)
{
    (void)ctx;
    free(state);
}

/* In full, whatever was left out: this is what new zarr.json documents say. */
static int delta8_write_config(void *ctx, const void *state, brc_buf *out, brc_error *err)
{
    const struct delta8 *delta = state;

    (void)ctx;
    return brc_buf_printf(out, err, "{\"distance\":%u}", (unsigned)delta->distance);
}

/* ---- how it is done ------------------------------------------------------------------- */

static int delta8_encode(void *ctx, const void *state, void *scratch, brc_span src, brc_buf *dst,
                         brc_error *err)
{
    const size_t distance = ((const struct delta8 *)state)->distance;
    uint8_t *to;
    size_t i;
    int rc = brc_buf_reserve(dst, src.len, err);

    (void)ctx;
    (void)scratch;
    if (rc < 0)
        return rc;
    to = dst->data + dst->len;
    for (i = 0; i < src.len; i++)
        to[i] = (uint8_t)(src.data[i] - (i < distance ? 0 : src.data[i - distance]));
    dst->len += src.len;
    return BRC_OK;
}

static int delta8_decode(void *ctx, const void *state, void *scratch, brc_span src, brc_buf *dst,
                         brc_error *err)
{
    const size_t distance = ((const struct delta8 *)state)->distance;
    uint8_t *to;
    size_t i;
    int rc = brc_buf_reserve(dst, src.len, err);

    (void)ctx;
    (void)scratch;
    if (rc < 0)
        return rc;
    to = dst->data + dst->len;
    for (i = 0; i < src.len; i++)
        to[i] = (uint8_t)(src.data[i] + (i < distance ? 0 : to[i - distance]));
    dst->len += src.len;
    return BRC_OK;
}

/* ---- the entry point ------------------------------------------------------------------- */

int brc_plugin_init(uint32_t abi, brc_registry *reg, brc_error *err)
{
    static const brc_codec_spec spec = {
        .size = sizeof(spec),
        .name = "org.example.delta8",
        .kind = BRC_BYTES_TO_BYTES,
        .open = delta8_open,
        .close = delta8_close,
        .write_config = delta8_write_config,
    };
    static const brc_codec_impl impl = {
        .size = sizeof(impl),
        .spec = "org.example.delta8",
        .name = "portable",
        .encode = delta8_encode,
        .decode = delta8_decode,
    };
    int rc = BRC_PLUGIN_CHECK(abi, err);

    if (rc == BRC_OK)
        rc = brc_registry_add_codec(reg, &spec, err);
    if (rc == BRC_OK)
        rc = brc_registry_add_impl(reg, &impl, err);
    return rc;
}
