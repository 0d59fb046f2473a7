/*
 * "crc32c": the payload, then its CRC-32C as four bytes, little-endian.
 *
 *     | payload ... | crc |      polynomial 0x1EDC6F41, bits reflected,
 *                                start and final xor 0xFFFFFFFF (RFC 3720, B.4)
 *
 * One specification has two implementations: slicing by 8 runs anywhere, and the processor's
 * own instruction runs where the probe finds it. The metadata names neither.
 */
#include "builtin.h"
#include "lib/crc32c_sum.h"

#include <string.h>

enum { CRC32C_LEN = 4 };

/* ---- specification ------------------------------------------------------------------ */

static int crc32c_open(void *ctx, void **state, const brc_json *config, const brc_proto *in,
                       brc_proto *out, int *identity, brc_error *err)
{
    (void)ctx;
    (void)identity;
    if (config != NULL) {
        int rc = brc_json_allow(config, NULL, 0, err);
        if (rc < 0)
            return rc;
    }
    if (in->len != BRC_LEN_VARIES && in->len >= BRC_LEN_VARIES - CRC32C_LEN)
        return brc_fail(err, BRC_ELIMIT, "the chunk is too long");
    if (in->len != BRC_LEN_VARIES)
        out->len = in->len + CRC32C_LEN;
    if (in->max_len <= UINT64_MAX - CRC32C_LEN)
        out->max_len = in->max_len + CRC32C_LEN;
    *state = NULL;
    return BRC_OK;
}

/* ---- both implementations: what surrounds the sum ----------------------------------- */

typedef uint32_t crc32c_sum(uint32_t crc, const uint8_t *data, size_t len);

static int crc32c_add(crc32c_sum *sum, brc_span src, brc_buf *dst, brc_error *err)
{
    if (src.len > SIZE_MAX - CRC32C_LEN)
        return brc_fail(err, BRC_ELIMIT, "the chunk is too long");
    int rc = brc_buf_reserve(dst, src.len + CRC32C_LEN, err);
    if (rc < 0)
        return rc;
    uint32_t crc = ~sum(UINT32_MAX, src.data, src.len);
    uint8_t *at = dst->data + dst->len;
    if (src.len > 0)
        memcpy(at, src.data, src.len);
    for (int i = 0; i < CRC32C_LEN; i++)
        at[src.len + (size_t)i] = (uint8_t)(crc >> (8 * i));
    dst->len += src.len + CRC32C_LEN;
    return BRC_OK;
}

static int crc32c_strip(crc32c_sum *sum, brc_span src, brc_buf *dst, brc_error *err)
{
    uint32_t stored = 0;

    if (src.len < CRC32C_LEN)
        return brc_fail(err, BRC_ECORRUPT, "%zu bytes cannot hold the checksum", src.len);
    size_t len = src.len - CRC32C_LEN;
    for (int i = 0; i < CRC32C_LEN; i++)
        stored |= (uint32_t)src.data[len + (size_t)i] << (8 * i);
    uint32_t crc = ~sum(UINT32_MAX, src.data, len);
    if (crc != stored)
        return brc_fail(err, BRC_ECORRUPT, "the stored checksum is %08x, but the bytes have %08x",
                        stored, crc);
    return brc_buf_append(dst, src.data, len, err);
}

/* ---- slicing by 8 -------------------------------------------------------------------- */

static int crc32c_encode_portable(void *ctx, const void *state, void *scratch, brc_span src,
                                  brc_buf *dst, brc_error *err)
{
    (void)ctx;
    (void)state;
    (void)scratch;
    return crc32c_add(brc_crc32c_portable, src, dst, err);
}

static int crc32c_decode_portable(void *ctx, const void *state, void *scratch, brc_span src,
                                  brc_buf *dst, brc_error *err)
{
    (void)ctx;
    (void)state;
    (void)scratch;
    return crc32c_strip(brc_crc32c_portable, src, dst, err);
}

/* ---- SSE 4.2 ------------------------------------------------------------------------ */

#ifdef BRC_CRC32C_HAVE_SSE42
static int crc32c_probe_sse42(void *ctx)
{
    (void)ctx;
    return brc_crc32c_sse42_runs();
}

static int crc32c_encode_sse42(void *ctx, const void *state, void *scratch, brc_span src,
                               brc_buf *dst, brc_error *err)
{
    (void)ctx;
    (void)state;
    (void)scratch;
    return crc32c_add(brc_crc32c_sse42, src, dst, err);
}

static int crc32c_decode_sse42(void *ctx, const void *state, void *scratch, brc_span src,
                               brc_buf *dst, brc_error *err)
{
    (void)ctx;
    (void)state;
    (void)scratch;
    return crc32c_strip(brc_crc32c_sse42, src, dst, err);
}

static const brc_codec_impl crc32c_sse42 = {
    .size = sizeof(crc32c_sse42),
    .spec = "crc32c",
    .name = "sse4.2",
    .rank = 10,
    .probe = crc32c_probe_sse42,
    .encode = crc32c_encode_sse42,
    .decode = crc32c_decode_sse42,
};
#endif

int brc_codec_crc32c_register(brc_registry *reg, brc_error *err)
{
    static const brc_codec_spec spec = {
        .size = sizeof(spec),
        .name = "crc32c",
        .kind = BRC_BYTES_TO_BYTES,
        .open = crc32c_open,
    };
    static const brc_codec_impl portable = {
        .size = sizeof(portable),
        .spec = "crc32c",
        .name = "slicing-by-8",
        .encode = crc32c_encode_portable,
        .decode = crc32c_decode_portable,
    };
    int rc = brc_registry_add_codec(reg, &spec, err);

    if (rc == BRC_OK)
        rc = brc_registry_add_impl(reg, &portable, err);
#ifdef BRC_CRC32C_HAVE_SSE42
    if (rc == BRC_OK)
        rc = brc_registry_add_impl(reg, &crc32c_sse42, err);
#endif
    return rc;
}
