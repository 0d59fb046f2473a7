/*
 * "numcodecs.lz4": one LZ4 block after its decoded length.
 *
 *     | decoded length, uint32 little-endian | LZ4 block ... |
 */
#include "builtin.h"
#include "lib/codec_help.h"

#include <lz4.h>
#include <stdlib.h>

enum { LZ4_HEADER = 4, LZ4_MOST_RATIO = 255 };

struct lz4_state {
    int acceleration;
    uint64_t decoded; /* exact length, or BRC_LEN_VARIES                         */
};

static int lz4_open(void *ctx, void **out_state, const brc_json *config, const brc_proto *in,
                    brc_proto *out, int *identity, brc_error *err)
{
    static const char *const members[] = { "acceleration" };
    (void)ctx;
    (void)identity;
    const brc_json *acceleration = brc_json_member(config, "acceleration");
    int64_t number = 1;
    int rc = config != NULL ? brc_json_allow(config, members, 1, err) : BRC_OK;

    if (rc < 0)
        return rc;
    if (acceleration != NULL && !brc_json_int(acceleration, INT32_MIN, INT32_MAX, &number))
        return brc_fail(err, BRC_EINVAL, "\"acceleration\" must be an integer");
    if (in->len != BRC_LEN_VARIES && in->len > LZ4_MAX_INPUT_SIZE)
        return brc_fail(err, BRC_ELIMIT,
                        "LZ4 takes chunks of at most %d bytes, not %llu; choose smaller chunks",
                        LZ4_MAX_INPUT_SIZE, (unsigned long long)in->len);
    struct lz4_state state = { (int)number, in->len };
    brc_codec_longer(in, out, in->max_len / 255 + 16 + LZ4_HEADER, 0);
    return brc_codec_state_copy(out_state, &state, sizeof(state), err);
}

static int lz4_write_config(void *ctx, const void *state, brc_buf *out, brc_error *err)
{
    (void)ctx;
    return brc_buf_printf(out, err, "{\"acceleration\":%d}",
                          ((const struct lz4_state *)state)->acceleration);
}

static int lz4_encode(void *ctx, const void *state, void *scratch, brc_span src, brc_buf *dst,
                      brc_error *err)
{
    (void)ctx;
    (void)scratch;
    if (src.len > LZ4_MAX_INPUT_SIZE)
        return brc_fail(err, BRC_ELIMIT, "LZ4 takes at most %d bytes, not %zu", LZ4_MAX_INPUT_SIZE,
                        src.len);
    int bound = LZ4_compressBound((int)src.len);
    int rc = brc_buf_reserve(dst, LZ4_HEADER + (size_t)bound, err);
    if (rc < 0)
        return rc;
    uint8_t *to = dst->data + dst->len;
    brc_codec_store(to, LZ4_HEADER, src.len);
    int written =
        LZ4_compress_fast(src.len > 0 ? (const char *)src.data : "", (char *)to + LZ4_HEADER,
                          (int)src.len, bound, ((const struct lz4_state *)state)->acceleration);
    if (written <= 0)
        return brc_fail(err, BRC_EINTERNAL, "LZ4 gave %d for %zu bytes", written, src.len);
    dst->len += LZ4_HEADER + (size_t)written;
    return BRC_OK;
}

static int lz4_decode(void *ctx, const void *state, void *scratch, brc_span src, brc_buf *dst,
                      brc_error *err)
{
    (void)ctx;
    (void)scratch;
    uint64_t decoded = ((const struct lz4_state *)state)->decoded;

    if (src.len < LZ4_HEADER)
        return brc_fail(err, BRC_ECORRUPT, "%zu bytes cannot hold the length", src.len);
    uint64_t len = brc_codec_load(src.data, LZ4_HEADER);
    size_t block = src.len - LZ4_HEADER;
    if (decoded != BRC_LEN_VARIES && len != decoded)
        return brc_fail(err, BRC_ECORRUPT, "the block says that it has %llu bytes, not %llu",
                        (unsigned long long)len, (unsigned long long)decoded);
    if (len > LZ4_MAX_INPUT_SIZE || len / LZ4_MOST_RATIO > block || block > INT32_MAX)
        return brc_fail(err, BRC_ECORRUPT, "a block of %zu bytes cannot decode to %llu", block,
                        (unsigned long long)len);
    if (len == 0)
        return BRC_OK;
    int rc = brc_buf_reserve(dst, (size_t)len, err);
    if (rc < 0)
        return rc;
    int written = LZ4_decompress_safe((const char *)src.data + LZ4_HEADER,
                                      (char *)dst->data + dst->len, (int)block, (int)len);
    if (written < 0 || (uint64_t)written != len)
        return brc_fail(err, BRC_ECORRUPT, "the block cannot be decompressed to %llu bytes",
                        (unsigned long long)len);
    dst->len += (size_t)len;
    return BRC_OK;
}

int brc_codec_lz4_register(brc_registry *reg, brc_error *err)
{
    static const brc_codec_spec spec = {
        .size = sizeof(spec),
        .name = "numcodecs.lz4",
        .kind = BRC_BYTES_TO_BYTES,
        .open = lz4_open,
        .close = brc_codec_state_free,
        .write_config = lz4_write_config,
    };
    static const brc_codec_impl impl = {
        .size = sizeof(impl),
        .spec = "numcodecs.lz4",
        .name = "liblz4",
        .encode = lz4_encode,
        .decode = lz4_decode,
    };

    int rc = brc_codec_add(reg, &spec, &impl, err);
    /* its name in zarrita */
    return rc < 0 ? rc : brc_registry_add_alias(reg, "lz4", "numcodecs.lz4", err);
}
