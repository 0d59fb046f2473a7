/* A plug-in that adds a codec and an implementation of a core codec, and then wants a
 * core name. */
#include "../../src/breccia_codec.h"

BRC_API extern unsigned half_destroyed;
unsigned half_destroyed;

static void half_destroy(void *ctx)
{
    (void)ctx;
    half_destroyed++;
}

static int half_open(void *ctx, void **state, const brc_json *config, const brc_proto *in,
                     brc_proto *out, int *identity, brc_error *err)
{
    (void)ctx;
    (void)config;
    (void)in;
    (void)out;
    (void)identity;
    (void)err;
    *state = NULL;
    return BRC_OK;
}

static int half_copy(void *ctx, const void *state, void *scratch, brc_span src, brc_buf *dst,
                     brc_error *err)
{
    (void)ctx;
    (void)state;
    (void)scratch;
    return brc_buf_append(dst, src.data, src.len, err);
}

int brc_plugin_init(uint32_t abi, brc_registry *reg, brc_error *err)
{
    brc_codec_spec spec = {
        .size = sizeof(spec),
        .name = "org.example.half",
        .kind = BRC_BYTES_TO_BYTES,
        .open = half_open,
        .destroy = half_destroy,
    };
    const brc_codec_impl impl = {
        .size = sizeof(impl),
        .spec = "zstd",
        .name = "no zstd at all",
        .rank = 9000,
        .encode = half_copy,
        .decode = half_copy,
        .destroy = half_destroy,
    };
    int rc = BRC_PLUGIN_CHECK(abi, err);

    if (rc == BRC_OK)
        rc = brc_registry_add_codec(reg, &spec, err);
    if (rc == BRC_OK)
        rc = brc_registry_add_impl(reg, &impl, err);
    if (rc == BRC_OK)
        rc = brc_registry_add_alias(reg, "org.example.half.old", "org.example.half", err);
    if (rc == BRC_OK)
        rc = brc_registry_add_alias(reg, "org.example.zstd", "zstd", err);
    spec.name = "zstd";
    if (rc == BRC_OK)
        rc = brc_registry_add_codec(reg, &spec, err);
    return rc;
}
