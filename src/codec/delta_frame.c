#include "delta_frame.h"

#include <stdlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "../base/alloc.h"
#include "chain_steps.h"

/* Higher levels gain little where most bytes are those of the prefix. */
enum { DELTA_LEVEL = 3, DELTA_WINDOW_LEAST = 10 };

struct brc_delta_contexts {
    ZSTD_CCtx *cctx; /* both are created at the first use */
    ZSTD_DCtx *dctx;
};

void brc_delta_contexts_free(brc_delta_contexts *contexts)
{
    if (contexts == NULL)
        return;
    ZSTD_freeCCtx(contexts->cctx);
    ZSTD_freeDCtx(contexts->dctx);
    free(contexts);
}

static int delta_contexts(brc_scratch *scratch, brc_delta_contexts **out, brc_error *err)
{
    void *p;
    if (scratch->delta == NULL) {
        BRC_TRY(brc_new(&p, sizeof(brc_delta_contexts), err));
        scratch->delta = p;
    }
    *out = scratch->delta;
    return BRC_OK;
}

static int delta_failed(size_t result, int code, brc_error *err)
{
    const int is_memory = ZSTD_getErrorCode(result) == ZSTD_error_memory_allocation;
    return brc_fail(err, is_memory ? BRC_ENOMEM : code, "%s", ZSTD_getErrorName(result));
}

/* Returns the window that reaches from the content's end back to the prefix's beginning. */
static int delta_window(uint64_t bytes)
{
    int log = DELTA_WINDOW_LEAST;
    while ((UINT64_C(1) << log) < bytes)
        log++;
    return log;
}

static size_t delta_set_up(ZSTD_CCtx *cctx, brc_span base, brc_span content)
{
    const struct {
        ZSTD_cParameter name;
        int value;
    } parameters[] = {
        {ZSTD_c_compressionLevel, DELTA_LEVEL},
        {ZSTD_c_windowLog, delta_window((uint64_t)base.len + content.len)},
        {ZSTD_c_enableLongDistanceMatching, 1},
        {ZSTD_c_checksumFlag, 1},
    };
    size_t result = ZSTD_CCtx_reset(cctx, ZSTD_reset_session_and_parameters);
    for (size_t i = 0; i < sizeof(parameters) / sizeof(parameters[0]) && !ZSTD_isError(result); i++)
        result = ZSTD_CCtx_setParameter(cctx, parameters[i].name, parameters[i].value);
    if (!ZSTD_isError(result))
        result = ZSTD_CCtx_refPrefix(cctx, base.data, base.len);
    return result;
}

int brc_delta_encode(brc_scratch *scratch, brc_span base, brc_span content, brc_buf *out,
                     brc_error *err)
{
    brc_delta_contexts *c;
    if (base.len > BRC_DELTA_BYTES_MOST || content.len > BRC_DELTA_BYTES_MOST - base.len)
        return brc_fail(err, BRC_ELIMIT, "the chunks are too large for a difference");
    BRC_TRY(delta_contexts(scratch, &c, err));
    if (c->cctx == NULL && (c->cctx = ZSTD_createCCtx()) == NULL)
        return brc_nomem(err);
    BRC_TRY(brc_buf_reserve(out, ZSTD_compressBound(content.len), err));
    size_t result = delta_set_up(c->cctx, base, content);
    if (!ZSTD_isError(result))
        result = ZSTD_compress2(c->cctx, out->data + out->len, out->cap - out->len, content.data,
                                content.len);
    if (ZSTD_isError(result))
        return delta_failed(result, BRC_EINTERNAL, err);
    out->len += result;
    return BRC_OK;
}

int brc_delta_decode(brc_scratch *scratch, brc_span base, brc_span frame, size_t len, brc_buf *into,
                     brc_error *err)
{
    brc_delta_contexts *c;
    if (ZSTD_getFrameContentSize(frame.data, frame.len) != len || len > BRC_DELTA_BYTES_MOST)
        return brc_fail(err, BRC_ECORRUPT, "its frame does not have the length of its row");
    BRC_TRY(delta_contexts(scratch, &c, err));
    if (c->dctx == NULL && (c->dctx = ZSTD_createDCtx()) == NULL)
        return brc_nomem(err);
    BRC_TRY(brc_buf_reserve(into, len > 0 ? len : 1, err));
    size_t result = ZSTD_DCtx_reset(c->dctx, ZSTD_reset_session_and_parameters);
    if (!ZSTD_isError(result))
        result = ZSTD_DCtx_refPrefix(c->dctx, base.data, base.len);
    if (!ZSTD_isError(result))
        result =
            ZSTD_decompressDCtx(c->dctx, into->data + into->len, len, frame.data, frame.len);
    if (ZSTD_isError(result))
        return delta_failed(result, BRC_ECORRUPT, err);
    if (result != len)
        return brc_fail(err, BRC_ECORRUPT, "its frame decodes to %zu bytes, not %zu", result, len);
    into->len += len;
    return BRC_OK;
}
