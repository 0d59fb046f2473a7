/*
 * "n5_default": a block of N5 in mode "default".
 *
 *     | mode 0, uint16 | axes, uint16 | extent of each axis, uint32 | the block |
 *
 * These numbers are big-endian. The block is an array of these extents, encoded by the codecs:
 * "transpose" with all axes reversed, "bytes" in big-endian, and at most one compressor, because
 * N5 stores the first axis with the smallest stride. Some programs store only the part of a block
 * that lies in the array, others all of it: decoding fills what is missing with the fill value
 * and leaves out what is too much. Encoding always stores whole blocks.
 */
#include "builtin.h"
#include "lib/codec_help.h"

#include <stdlib.h>
#include <string.h>

/* A stored block may have this many times the bytes of a chunk: what is beyond is left out. */
#define N5_MOST_TIMES 8

struct n5_codec {
    brc_chain *chain;
    int ndim;
    uint64_t shape[BRC_MAX_NDIM];
    size_t item;  /* bytes of an element                                        */
    uint64_t len; /* of a decoded chunk                                         */
    uint8_t fill[8];
};

static size_t n5_header_len(const struct n5_codec *state)
{
    return 4 + 4 * (size_t)state->ndim;
}

/* ---- specification ------------------------------------------------------------------ */

static void n5_close(void *ctx, void *opaque)
{
    (void)ctx;
    struct n5_codec *state = opaque;

    brc_chain_free(state->chain);
    free(state);
}

/* Returns 1 if an item of a codec list has this name. */
static int n5_is_named(const brc_json *item, const char *name)
{
    return brc_json_is(
        brc_json_kind(item) == BRC_JSON_STRING ? item : brc_json_member(item, "name"), name);
}

static int n5_check_transpose(const brc_json *item, int ndim, brc_error *err)
{
    const brc_json *order = brc_json_member(brc_json_member(item, "configuration"), "order");
    uint64_t axis;
    int reversed = n5_is_named(item, "transpose") && brc_json_kind(order) == BRC_JSON_ARRAY &&
                   brc_json_count(order) == (size_t)ndim;

    for (int i = 0; reversed && i < ndim; i++)
        reversed = brc_json_uint(brc_json_item(order, (size_t)i), BRC_MAX_NDIM, &axis) &&
                   axis == (uint64_t)(ndim - 1 - i);
    if (!reversed)
        return brc_fail(err, BRC_EINVAL,
                        "the first of its codecs must be \"transpose\" with all %d axes reversed",
                        ndim);
    return BRC_OK;
}

static int n5_check_codecs(const brc_json *codecs, const brc_proto *in, brc_error *err)
{
    size_t n = brc_json_count(codecs);
    const brc_json *bytes = brc_json_item(codecs, 1);
    const brc_json *endian = brc_json_member(brc_json_member(bytes, "configuration"), "endian");

    if (brc_json_kind(codecs) != BRC_JSON_ARRAY || n < 2 || n > 3)
        return brc_fail(err, BRC_EINVAL,
                        "\"codecs\" must be \"transpose\", \"bytes\" and at most one compressor");
    int rc = n5_check_transpose(brc_json_item(codecs, 0), in->ndim, err);
    if (rc < 0)
        return rc;
    if (!n5_is_named(bytes, "bytes") || (in->dtype->item_size > 1 && !brc_json_is(endian, "big")))
        return brc_fail(err, BRC_EINVAL,
                        "the second of its codecs must be \"bytes\" with \"endian\" \"big\"");
    return BRC_OK;
}

static int n5_check_array(const brc_proto *in, brc_error *err)
{
    static const char *const types[] = { "uint8", "uint16", "uint32", "uint64",  "int8",
                                         "int16", "int32",  "int64",  "float32", "float64" };
    int known = 0;

    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        known |= strcmp(in->dtype->name, types[i]) == 0;
    if (!known)
        return brc_fail(err, BRC_EINVAL,
                        "N5 has no elements of %s: it has integers and floats of up to 64 bits",
                        in->dtype->name);
    for (int i = 0; i < in->ndim; i++)
        if (in->shape[i] > UINT32_MAX)
            return brc_fail(err, BRC_ELIMIT,
                            "axis %d has %llu elements, and a block of N5 has at "
                            "most %u",
                            i, (unsigned long long)in->shape[i], UINT32_MAX);
    return BRC_OK;
}

static int n5_read_config(struct n5_codec *state, const brc_json *config, const brc_proto *in,
                          brc_error *err)
{
    static const char *const members[] = { "codecs" };
    const brc_json *codecs = brc_json_member(config, "codecs");
    int rc = config != NULL ? brc_json_allow(config, members, 1, err) : BRC_OK;

    if (rc == BRC_OK)
        rc = n5_check_array(in, err);
    if (rc == BRC_OK)
        rc = n5_check_codecs(codecs, in, err);
    if (rc == BRC_OK)
        rc = brc_chain_open(&state->chain, in->registry, codecs, in->ndim, in->shape, in->dtype,
                            in->fill, err);
    return rc;
}

static int n5_open(void *ctx, void **out_state, const brc_json *config, const brc_proto *in,
                   brc_proto *out, int *identity, brc_error *err)
{
    (void)identity;
    struct n5_codec *state = calloc(1, sizeof(*state));

    if (state == NULL)
        return brc_fail(err, BRC_ENOMEM, "out of memory");
    int rc = n5_read_config(state, config, in, err);
    if (rc < 0) {
        n5_close(ctx, state);
        return rc;
    }
    state->ndim = in->ndim;
    memcpy(state->shape, in->shape, sizeof(state->shape));
    state->item = in->dtype->item_size;
    state->len = in->len;
    if (in->fill.data != NULL && in->fill.len <= sizeof(state->fill))
        memcpy(state->fill, in->fill.data, in->fill.len);
    out->ndim = -1;
    out->len = BRC_LEN_VARIES;
    out->max_len =
        brc_codec_add_up(n5_header_len(state), brc_chain_describe(state->chain)->encoded_max);
    out->flags = brc_chain_describe(state->chain)->flags & BRC_CODEC_LOSSY;
    *out_state = state;
    return BRC_OK;
}

static int n5_write_config(void *ctx, const void *opaque, brc_buf *out, brc_error *err)
{
    (void)ctx;
    const struct n5_codec *state = opaque;
    int rc = brc_buf_printf(out, err, "{\"codecs\":");

    if (rc == BRC_OK)
        rc = brc_chain_write(state->chain, out, err);
    return rc < 0 ? rc : brc_buf_printf(out, err, "}");
}

/* ---- encoding ----------------------------------------------------------------------- */

static void n5_store_number(uint8_t *p, size_t size, uint64_t value)
{
    for (size_t i = 0; i < size; i++)
        p[i] = (uint8_t)(value >> (8 * (size - 1 - i)));
}

static int n5_encode(void *ctx, const void *opaque, void *opaque_scratch, brc_span src,
                     brc_buf *dst, brc_error *err)
{
    (void)ctx;
    const struct n5_codec *state = opaque;
    struct brc_nested_scratch *scratch = opaque_scratch;
    uint8_t header[4 + 4 * BRC_MAX_NDIM] = { 0 };

    n5_store_number(header + 2, 2, (uint64_t)state->ndim);
    for (int i = 0; i < state->ndim; i++)
        n5_store_number(header + 4 + 4 * i, 4, state->shape[i]);
    scratch->stored.len = 0;
    int rc = brc_chain_encode(state->chain, scratch->chains, src, &scratch->stored, err);
    if (rc == BRC_OK)
        rc = brc_buf_append(dst, header, n5_header_len(state), err);
    return rc < 0 ? rc : brc_buf_append(dst, scratch->stored.data, scratch->stored.len, err);
}

/* ---- decoding ----------------------------------------------------------------------- */

static uint64_t n5_load_number(const uint8_t *p, size_t size)
{
    uint64_t value = 0;

    for (size_t i = 0; i < size; i++)
        value = value << 8 | p[i];
    return value;
}

/* Reads the extents of the stored block. */
static int n5_read_header(const struct n5_codec *state, brc_span src, uint64_t *shape,
                          brc_error *err)
{
    uint64_t len = state->item;

    if (src.len < n5_header_len(state))
        return brc_fail(err, BRC_ECORRUPT, "%zu bytes cannot hold the header of a block", src.len);
    uint64_t mode = n5_load_number(src.data, 2), axes = n5_load_number(src.data + 2, 2);
    if (mode != 0)
        return brc_fail(err, mode <= 2 ? BRC_EUNSUPPORTED : BRC_ECORRUPT,
                        "the block has mode %llu, and only mode 0, \"default\", can be read",
                        (unsigned long long)mode);
    if (axes != (uint64_t)state->ndim)
        return brc_fail(err, BRC_ECORRUPT, "the block has %llu axes, and the array has %d",
                        (unsigned long long)axes, state->ndim);
    for (int i = 0; i < state->ndim; i++) {
        shape[i] = n5_load_number(src.data + 4 + 4 * i, 4);
        len = shape[i] == 0 ? 0 : brc_codec_times(len, shape[i]);
    }
    if (len > brc_codec_times(state->len, N5_MOST_TIMES))
        return brc_fail(err, BRC_ECORRUPT,
                        "the block has %llu bytes, more than %d times the %llu of a chunk",
                        (unsigned long long)len, N5_MOST_TIMES, (unsigned long long)state->len);
    return BRC_OK;
}

/* Copies the part that block and chunk share, row by row. */
static void n5_copy(const struct n5_codec *state, uint8_t *chunk, const uint8_t *block,
                    const uint64_t *shape)
{
    uint64_t at[BRC_MAX_NDIM] = { 0 }, both[BRC_MAX_NDIM];
    int last = state->ndim - 1, axis;

    for (int i = 0; i <= last; i++) {
        both[i] = shape[i] < state->shape[i] ? shape[i] : state->shape[i];
        if (both[i] == 0)
            return;
    }
    do {
        uint64_t from = 0, to = 0;
        for (int i = 0; i <= last; i++) {
            from = from * shape[i] + at[i];
            to = to * state->shape[i] + at[i];
        }
        memcpy(chunk + to * state->item, block + from * state->item,
               (size_t)both[last] * state->item);
        for (axis = last - 1; axis >= 0 && ++at[axis] == both[axis]; axis--)
            at[axis] = 0;
    } while (axis >= 0);
}

/* Decodes a block of another shape than the chunk. */
static int n5_fit(const struct n5_codec *state, struct brc_nested_scratch *scratch,
                  const uint64_t *shape, brc_span stored, brc_buf *dst, brc_error *err)
{
    brc_chain *chain;
    int rc = brc_chain_open_like(&chain, state->chain, state->ndim, shape, err);

    if (rc < 0)
        return rc;
    scratch->plain.len = 0;
    rc = brc_chain_decode(chain, scratch->chains, stored, NULL, &scratch->plain, err);
    brc_chain_free(chain);
    if (rc == BRC_OK)
        rc = brc_buf_reserve(dst, (size_t)state->len, err);
    if (rc < 0)
        return rc;
    uint8_t *chunk = dst->data + dst->len;
    for (size_t i = 0; i < state->len; i += state->item)
        memcpy(chunk + i, state->fill, state->item);
    n5_copy(state, chunk, scratch->plain.data, shape);
    dst->len += (size_t)state->len;
    return BRC_OK;
}

static int n5_decode(void *ctx, const void *opaque, void *opaque_scratch, brc_span src,
                     brc_buf *dst, brc_error *err)
{
    (void)ctx;
    const struct n5_codec *state = opaque;
    struct brc_nested_scratch *scratch = opaque_scratch;
    uint64_t shape[BRC_MAX_NDIM];
    int rc = n5_read_header(state, src, shape, err);

    if (rc < 0)
        return rc;
    size_t header = n5_header_len(state);
    brc_span stored = { src.data + header, src.len - header };
    if (memcmp(shape, state->shape, (size_t)state->ndim * sizeof(shape[0])) == 0)
        rc = brc_chain_decode(state->chain, scratch->chains, stored, NULL, dst, err);
    else
        rc = n5_fit(state, scratch, shape, stored, dst, err);
    if (rc < 0)
        brc_context(err, "the block");
    return rc;
}

int brc_codec_n5_register(brc_registry *reg, brc_error *err)
{
    static const brc_codec_spec spec = {
        .size = sizeof(spec),
        .name = "n5_default",
        .kind = BRC_ARRAY_TO_BYTES,
        .flags = BRC_CODEC_NEEDS_FILL,
        .open = n5_open,
        .close = n5_close,
        .write_config = n5_write_config,
    };
    static const brc_codec_impl impl = {
        .size = sizeof(impl),
        .spec = "n5_default",
        .name = "portable",
        .scratch_new = brc_codec_nested_scratch_new,
        .scratch_free = brc_codec_nested_scratch_free,
        .encode = n5_encode,
        .decode = n5_decode,
    };

    return brc_codec_add(reg, &spec, &impl, err);
}
