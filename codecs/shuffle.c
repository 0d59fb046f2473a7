/*
 * "numcodecs.shuffle": the first bytes of all items, then the second ones, and so on.
 * n = length / elementsize items; bytes after the last whole item stay at the end.
 */
#include "builtin.h"
#include "lib/codec_help.h"

#include <stdlib.h>
#include <string.h>

struct shuffle_state {
    uint64_t item;
};

static int shuffle_open(void *ctx, void **out_state, const brc_json *config, const brc_proto *in,
                        brc_proto *out, int *identity, brc_error *err)
{
    static const char *const members[] = { "elementsize" };
    (void)ctx;
    (void)out;
    const brc_json *item = brc_json_member(config, "elementsize");
    struct shuffle_state state = { in->dtype->item_size };
    int rc = config != NULL ? brc_json_allow(config, members, 1, err) : BRC_OK;

    if (rc < 0)
        return rc;
    if (item != NULL && brc_json_kind(item) != BRC_JSON_NULL &&
        !brc_json_uint(item, UINT32_MAX, &state.item))
        return brc_fail(err, BRC_EINVAL, "\"elementsize\" must be a number of bytes");
    *identity = state.item <= 1;
    return brc_codec_state_copy(out_state, &state, sizeof(state), err);
}

static int shuffle_write_config(void *ctx, const void *state, brc_buf *out, brc_error *err)
{
    (void)ctx;
    return brc_buf_printf(out, err, "{\"elementsize\":%llu}",
                          (unsigned long long)((const struct shuffle_state *)state)->item);
}

/* Makes rows of columns, and copies the bytes after the last whole item. */
static int shuffle_convert(brc_span src, size_t rows, size_t cols, brc_buf *dst, brc_error *err)
{
    int rc = brc_buf_reserve(dst, src.len, err);

    if (rc < 0 || src.len == 0)
        return rc;
    uint8_t *to = dst->data + dst->len;
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < cols; c++)
            to[c * rows + r] = src.data[r * cols + c];
    memcpy(to + rows * cols, src.data + rows * cols, src.len - rows * cols);
    dst->len += src.len;
    return BRC_OK;
}

static int shuffle_encode(void *ctx, const void *state, void *scratch, brc_span src, brc_buf *dst,
                          brc_error *err)
{
    (void)ctx;
    (void)scratch;
    uint64_t item = ((const struct shuffle_state *)state)->item;

    return item <= 1 || item > src.len
               ? brc_buf_append(dst, src.data, src.len, err)
               : shuffle_convert(src, src.len / (size_t)item, (size_t)item, dst, err);
}

static int shuffle_decode(void *ctx, const void *state, void *scratch, brc_span src, brc_buf *dst,
                          brc_error *err)
{
    (void)ctx;
    (void)scratch;
    uint64_t item = ((const struct shuffle_state *)state)->item;

    return item <= 1 || item > src.len
               ? brc_buf_append(dst, src.data, src.len, err)
               : shuffle_convert(src, (size_t)item, src.len / (size_t)item, dst, err);
}

int brc_codec_shuffle_register(brc_registry *reg, brc_error *err)
{
    static const brc_codec_spec spec = {
        .size = sizeof(spec),
        .name = "numcodecs.shuffle",
        .kind = BRC_BYTES_TO_BYTES,
        .open = shuffle_open,
        .close = brc_codec_state_free,
        .write_config = shuffle_write_config,
    };
    static const brc_codec_impl impl = {
        .size = sizeof(impl),
        .spec = "numcodecs.shuffle",
        .name = "portable",
        .encode = shuffle_encode,
        .decode = shuffle_decode,
    };

    return brc_codec_add(reg, &spec, &impl, err);
}
