/*
 * "zstd" and "numcodecs.zstd": one or more frames of RFC 8878, written by libzstd.
 *
 * Encoding writes one frame with its content size. Decoding also reads frames without a
 * content size, several frames in a row and skippable frames, which other writers produce.
 * The frames say whether they have a checksum, so decoding does not use the configuration.
 * numcodecs accepts any level, because the library clamps the level.
 */
#include "builtin.h"
#include "lib/codec_help.h"

#include <stdlib.h>
#include <string.h>
#include <zstd.h>
#include <zstd_errors.h>

enum { ZSTD_LEVEL_MIN = -131072, ZSTD_LEVEL_MAX = 22, ZSTD_LEVEL_USUAL = 3 };
enum { ZSTD_WINDOW_LOG_MAX = 27 }; /* 128 MiB: allocated by streaming decoders    */
#define ZSTD_FIRST_ROOM ((size_t)64 << 10)
#define ZSTD_BLOCK ((uint64_t)128 << 10) /* most decoded bytes of a block: RFC 8878 */

struct zstd_kind {
    const char *name;
    int level_max, level_usual;
};

static const struct zstd_kind zstd_kinds[] = {
    { "zstd", ZSTD_LEVEL_MAX, ZSTD_LEVEL_USUAL },
    { "numcodecs.zstd", INT32_MAX, 0 },
};

struct zstd_state {
    int level;
    int checksum;
    uint64_t decoded; /* exact length, or BRC_LEN_VARIES                         */
};

struct zstd_scratch {
    ZSTD_CCtx *cctx; /* both contexts are created at the first use               */
    ZSTD_DCtx *dctx;
};

/* ---- specification ------------------------------------------------------------------ */

static int zstd_read_config(struct zstd_state *state, const struct zstd_kind *kind,
                            const brc_json *config, brc_error *err)
{
    static const char *const members[] = { "level", "checksum" };
    const brc_json *level = brc_json_member(config, "level");
    const brc_json *checksum = brc_json_member(config, "checksum");
    int64_t number = kind->level_usual;

    if (config != NULL) {
        int rc = brc_json_allow(config, members, 2, err);
        if (rc < 0)
            return rc;
    }
    if (level != NULL && !brc_json_int(level, ZSTD_LEVEL_MIN, kind->level_max, &number))
        return brc_fail(err, BRC_EINVAL, "\"level\" must be an integer from %d to %d",
                        ZSTD_LEVEL_MIN, kind->level_max);
    if (checksum != NULL && !brc_json_bool(checksum, &state->checksum))
        return brc_fail(err, BRC_EINVAL, "\"checksum\" must be true or false");
    state->level = (int)number;
    return BRC_OK;
}

/* Returns the most bytes that `in` bytes may encode to. Other encoders exceed libzstd's bound only
 * by skippable frames and by many short frames: an eighth and 64 KiB leave room for both. */
static uint64_t zstd_max_len(uint64_t in)
{
    uint64_t slack = in / 8 + ((uint64_t)64 << 10);

    return in > UINT64_MAX - slack ? UINT64_MAX : in + slack;
}

static int zstd_open(void *ctx, void **out_state, const brc_json *config, const brc_proto *in,
                     brc_proto *out, int *identity, brc_error *err)
{
    (void)identity;
    struct zstd_state read = { 0, 0, in->len };
    int rc = zstd_read_config(&read, ctx, config, err);

    if (rc < 0)
        return rc;
    struct zstd_state *state = malloc(sizeof(*state));
    if (state == NULL)
        return brc_fail(err, BRC_ENOMEM, "out of memory");
    *state = read;
    out->len = BRC_LEN_VARIES;
    out->max_len = zstd_max_len(in->max_len);
    *out_state = state;
    return BRC_OK;
}

static void zstd_close(void *ctx, void *state)
{
    (void)ctx;
    free(state);
}

static int zstd_write_config(void *ctx, const void *state, brc_buf *out, brc_error *err)
{
    (void)ctx;
    const struct zstd_state *zstd = state;

    /* Write both members always: zarrs does not read a configuration without "checksum". */
    return brc_buf_printf(out, err, "{\"level\":%d,\"checksum\":%s}", zstd->level,
                          zstd->checksum ? "true" : "false");
}

/* ---- implementation ----------------------------------------------------------------- */

static int zstd_scratch_new(void *ctx, void **out, const void *state, brc_error *err)
{
    (void)ctx;
    (void)state;
    struct zstd_scratch *scratch = calloc(1, sizeof(*scratch));

    if (scratch == NULL)
        return brc_fail(err, BRC_ENOMEM, "out of memory");
    *out = scratch;
    return BRC_OK;
}

static void zstd_scratch_free(void *ctx, void *opaque)
{
    (void)ctx;
    struct zstd_scratch *scratch = opaque;

    ZSTD_freeCCtx(scratch->cctx);
    ZSTD_freeDCtx(scratch->dctx);
    free(scratch);
}

static int zstd_fail(brc_error *err, int code, size_t result)
{
    return brc_fail(err,
                    ZSTD_getErrorCode(result) == ZSTD_error_memory_allocation ? BRC_ENOMEM : code,
                    "%s", ZSTD_getErrorName(result));
}

static int zstd_encode(void *ctx, const void *state, void *opaque, brc_span src, brc_buf *dst,
                       brc_error *err)
{
    (void)ctx;
    const struct zstd_state *zstd = state;
    struct zstd_scratch *scratch = opaque;
    size_t bound = ZSTD_compressBound(src.len);

    if (ZSTD_isError(bound))
        return brc_fail(err, BRC_ELIMIT, "%zu bytes are too many for one frame", src.len);
    if (scratch->cctx == NULL && (scratch->cctx = ZSTD_createCCtx()) == NULL)
        return brc_fail(err, BRC_ENOMEM, "out of memory");
    int rc = brc_buf_reserve(dst, bound, err);
    if (rc < 0)
        return rc;
    size_t result = ZSTD_CCtx_reset(scratch->cctx, ZSTD_reset_session_and_parameters);
    if (!ZSTD_isError(result))
        result = ZSTD_CCtx_setParameter(scratch->cctx, ZSTD_c_compressionLevel, zstd->level);
    if (!ZSTD_isError(result))
        result = ZSTD_CCtx_setParameter(scratch->cctx, ZSTD_c_checksumFlag, zstd->checksum);
    if (!ZSTD_isError(result))
        result = ZSTD_compress2(scratch->cctx, dst->data + dst->len, dst->cap - dst->len, src.data,
                                src.len);
    if (ZSTD_isError(result))
        return zstd_fail(err, BRC_EINTERNAL, result);
    dst->len += result;
    return BRC_OK;
}

/* Decodes a known length straight into the destination, without a window. */
static int zstd_decode_exact(struct zstd_scratch *scratch, size_t len, brc_span src, brc_buf *dst,
                             brc_error *err)
{
    int rc = brc_buf_reserve(dst, len, err);

    if (rc < 0)
        return rc;
    size_t result =
        ZSTD_decompressDCtx(scratch->dctx, dst->data + dst->len, len, src.data, src.len);
    if (ZSTD_isError(result) && ZSTD_getErrorCode(result) == ZSTD_error_dstSize_tooSmall)
        return brc_fail(err, BRC_ECORRUPT, "the frames decode to more than %zu bytes", len);
    if (ZSTD_isError(result))
        return zstd_fail(err, BRC_ECORRUPT, result);
    dst->len += result;
    return BRC_OK;
}

/* Decodes an unknown length. Room grows with the actual output, never with a header's claim. */
static int zstd_decode_growing(struct zstd_scratch *scratch, brc_span src, brc_buf *dst,
                               brc_error *err)
{
    ZSTD_inBuffer in = { src.data, src.len, 0 };
    size_t result = 1;
    int full = 0;

    /* If the output buffer is full, more output may be waiting inside the context. */
    while (in.pos < in.size || full) {
        int rc = brc_buf_reserve(dst, ZSTD_FIRST_ROOM, NULL);
        if (rc == BRC_ELIMIT)
            rc = brc_buf_reserve(dst, 1, err);
        else if (rc < 0)
            return brc_fail(err, rc, "out of memory");
        if (rc < 0)
            return rc;
        size_t end = dst->limit > 0 && dst->limit < dst->cap ? dst->limit : dst->cap;
        ZSTD_outBuffer out = { dst->data + dst->len, end - dst->len, 0 };
        result = ZSTD_decompressStream(scratch->dctx, &out, &in);
        if (ZSTD_isError(result))
            return zstd_fail(err, BRC_ECORRUPT, result);
        dst->len += out.pos;
        full = out.pos == out.size && result != 0;
    }
    if (result != 0)
        return brc_fail(err, BRC_ECORRUPT, "the last frame is truncated");
    return BRC_OK;
}

/* Decodes block after block, until `wanted` bytes are decoded. */
static int zstd_decode_first(struct zstd_scratch *scratch, size_t wanted, brc_span src,
                             brc_buf *dst, brc_error *err)
{
    ZSTD_inBuffer in = { src.data, src.len, 0 };
    ZSTD_outBuffer out = { dst->data + dst->len, wanted, 0 };

    while (out.pos < wanted) {
        const size_t in_before = in.pos, out_before = out.pos;
        size_t result = ZSTD_decompressStream(scratch->dctx, &out, &in);
        if (ZSTD_isError(result))
            return zstd_fail(err, BRC_ECORRUPT, result);
        if (in.pos == in_before && out.pos == out_before)
            return brc_fail(err, BRC_ECORRUPT, "the frames decode to %zu bytes only", out.pos);
    }
    return BRC_OK;
}

static int zstd_ready(struct zstd_scratch *scratch, brc_span src, brc_error *err)
{
    if (src.len == 0)
        return brc_fail(err, BRC_ECORRUPT, "there is no frame");
    if (scratch->dctx == NULL && (scratch->dctx = ZSTD_createDCtx()) == NULL)
        return brc_fail(err, BRC_ENOMEM, "out of memory");
    /* Reset the context, so that an earlier failure does not affect this chunk. */
    size_t result = ZSTD_DCtx_reset(scratch->dctx, ZSTD_reset_session_only);
    if (!ZSTD_isError(result))
        result = ZSTD_DCtx_setParameter(scratch->dctx, ZSTD_d_windowLogMax, ZSTD_WINDOW_LOG_MAX);
    return ZSTD_isError(result) ? zstd_fail(err, BRC_EINTERNAL, result) : BRC_OK;
}

static int zstd_decode(void *ctx, const void *state, void *opaque, brc_span src, brc_buf *dst,
                       brc_error *err)
{
    (void)ctx;
    const struct zstd_state *zstd = state;
    int rc = zstd_ready(opaque, src, err);

    if (rc < 0)
        return rc;
    if (zstd->decoded == BRC_LEN_VARIES)
        return zstd_decode_growing(opaque, src, dst, err);
    return zstd_decode_exact(opaque, (size_t)zstd->decoded, src, dst, err);
}

/* Decodes a frame from its beginning on, block by block, up to byte `to`. Decoding in steps is
 * slower than in one call, and pays only if it skips a quarter or more, and at least a block. */
static int zstd_decode_part(void *ctx, const void *state, void *opaque, brc_span src, uint64_t from,
                            uint64_t to, brc_buf *dst, brc_error *err)
{
    (void)from;
    const struct zstd_state *zstd = state;

    if (to > zstd->decoded / 4 * 3 || zstd->decoded - to < ZSTD_BLOCK)
        return zstd_decode(ctx, state, opaque, src, dst, err);
    int rc = zstd_ready(opaque, src, err);
    if (rc == BRC_OK)
        rc = brc_buf_reserve(dst, (size_t)zstd->decoded, err);
    if (rc == BRC_OK)
        rc = zstd_decode_first(opaque, (size_t)to, src, dst, err);
    if (rc == BRC_OK)
        dst->len += (size_t)zstd->decoded;
    return rc;
}

int brc_codec_zstd_register(brc_registry *reg, brc_error *err)
{
    brc_codec_spec spec = {
        .size = sizeof(spec),
        .kind = BRC_BYTES_TO_BYTES,
        .open = zstd_open,
        .close = zstd_close,
        .write_config = zstd_write_config,
    };
    brc_codec_impl impl = {
        .size = sizeof(impl),
        .name = "libzstd",
        .scratch_new = zstd_scratch_new,
        .scratch_free = zstd_scratch_free,
        .encode = zstd_encode,
        .decode = zstd_decode,
        .decode_part = zstd_decode_part,
    };
    int rc = BRC_OK;

    for (size_t i = 0; i < sizeof(zstd_kinds) / sizeof(zstd_kinds[0]) && rc == BRC_OK; i++) {
        spec.name = impl.spec = zstd_kinds[i].name;
        spec.ctx = (void *)(uintptr_t)&zstd_kinds[i];
        rc = brc_codec_add(reg, &spec, &impl, err);
    }
    return rc;
}
