#include "watched_codec.h"

#include <stddef.h>

#include "../../src/base/error.h"

#define MARK 'w'

static int open_watched(void *ctx, void **state, const brc_json *config, const brc_proto *in,
                        brc_proto *out, int *identity, brc_error *err)
{
    (void)ctx, (void)state, (void)config, (void)identity, (void)err;
    out->len = in->len == BRC_LEN_VARIES ? BRC_LEN_VARIES : in->len + 1;
    out->max_len = in->max_len + 1;
    return BRC_OK;
}

static int encode_watched(void *ctx, const void *state, void *scratch, brc_span src, brc_buf *dst,
                          brc_error *err)
{
    const watcher *w = ctx;
    const char mark = MARK;
    (void)state, (void)scratch;
    if (w->encodes != NULL)
        w->encodes(src);
    BRC_TRY(brc_buf_append(dst, src.data, src.len, err));
    return brc_buf_append(dst, &mark, 1, err);
}

static int decode_watched(void *ctx, const void *state, void *scratch, brc_span src, brc_buf *dst,
                          brc_error *err)
{
    const watcher *w = ctx;
    (void)state, (void)scratch;
    if (src.len == 0 || src.data[src.len - 1] != MARK)
        return brc_fail(err, BRC_ECORRUPT, "the last byte is not the codec's mark");
    src.len--;
    if (w->decodes != NULL)
        w->decodes(src);
    return brc_buf_append(dst, src.data, src.len, err);
}

brc_registry *watched_registry(const watcher *w, brc_error *err)
{
    const brc_codec_spec spec = {.size = sizeof(spec), .name = w->name,
                                 .kind = BRC_BYTES_TO_BYTES, .open = open_watched};
    const brc_codec_impl impl = {.size = sizeof(impl), .spec = spec.name, .name = "test",
                                 .ctx = (void *)w,
                                 .encode = encode_watched, .decode = decode_watched};
    brc_registry *reg;
    if (brc_registry_new(&reg, err) < 0)
        return NULL;
    if (brc_registry_add_codec(reg, &spec, err) < 0 || brc_registry_add_impl(reg, &impl, err) < 0) {
        brc_registry_free(reg);
        return NULL;
    }
    return reg;
}
