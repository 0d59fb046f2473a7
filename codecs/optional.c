/*
 * "zarrs.optional": elements that may be missing.
 *
 *     | mask's length, uint64 | values' length, uint64 | mask | values |
 *
 * The mask is a chunk of bool of the same shape, encoded by mask_codecs, that says which
 * elements are present. The values are the present elements, one after the other, as an
 * array of one axis encoded by data_codecs; no bytes if no element is present. This is the
 * layout of zarrs: codec.zarrs.dev, "optional".
 *
 * The length of the array of values depends on each chunk's mask, so the codec opens a new
 * chain for each chunk in which an element is missing.
 */
#include "builtin.h"
#include "lib/codec_help.h"

#include <stdlib.h>
#include <string.h>

enum { OPTIONAL_HEADER = 16 };

struct optional_codec {
    uint64_t n;             /* elements of the chunk                              */
    size_t item;            /* bytes of an element and its mark; 0 if they vary   */
    brc_dtype *mask_type;
    brc_chain *mask, *data; /* data is opened for n values                        */
};

/* ---- specification ------------------------------------------------------------------ */

static void optional_close(void *ctx, void *opaque)
{
    (void)ctx;
    struct optional_codec *state = opaque;

    brc_chain_free(state->mask);
    brc_chain_free(state->data);
    brc_dtype_free(state->mask_type);
    free(state);
}

static int optional_open_mask(struct optional_codec *state, const brc_json *codecs,
                              const brc_proto *in, brc_error *err)
{
    static const uint8_t missing[1];
    int rc = brc_dtype_open(&state->mask_type, in->registry, NULL, "bool", err);

    if (rc == BRC_OK)
        rc = brc_chain_open(&state->mask, in->registry, codecs, in->ndim, in->shape,
                            state->mask_type, (brc_span){ missing, 1 }, err);
    if (rc == BRC_OK && (brc_chain_describe(state->mask)->flags & BRC_CODEC_LOSSY) != 0)
        rc = brc_fail(err, BRC_EINVAL, "the mask must be stored without loss");
    if (rc < 0)
        brc_context(err, "\"mask_codecs\"");
    return rc;
}

/* Opens the chain of the values with the fill value of zarrs: all bits zero, or no bytes for
 * elements of variable length. */
static int optional_open_data(struct optional_codec *state, const brc_json *codecs,
                              const brc_proto *in, brc_error *err)
{
    const brc_dtype *inner = in->dtype->inner;
    size_t len = inner->item_size > 0 ? inner->item_size : 4;
    uint8_t *fill = calloc(1, len);

    if (fill == NULL)
        return brc_fail(err, BRC_ENOMEM, "out of memory");
    int rc = brc_chain_open(&state->data, in->registry, codecs, 1, &state->n, inner,
                            (brc_span){ fill, len }, err);
    free(fill);
    if (rc < 0)
        brc_context(err, "\"data_codecs\"");
    return rc;
}

static int optional_read_config(struct optional_codec *state, const brc_json *config,
                                const brc_proto *in, brc_error *err)
{
    static const char *const members[] = { "mask_codecs", "data_codecs" };
    int rc = config != NULL ? brc_json_allow(config, members, 2, err) : BRC_OK;

    if (rc == BRC_OK && (in->dtype->klass != BRC_CLASS_OPTIONAL || in->dtype->inner == NULL))
        rc = brc_fail(err, BRC_EINVAL, "elements of %s are never missing", in->dtype->name);
    if (rc == BRC_OK)
        rc = brc_codec_count(&state->n, in, err);
    if (rc == BRC_OK)
        rc = optional_open_mask(state, brc_json_member(config, "mask_codecs"), in, err);
    if (rc == BRC_OK)
        rc = optional_open_data(state, brc_json_member(config, "data_codecs"), in, err);
    return rc;
}

static int optional_open(void *ctx, void **out_state, const brc_json *config, const brc_proto *in,
                         brc_proto *out, int *identity, brc_error *err)
{
    (void)identity;
    struct optional_codec *state = calloc(1, sizeof(*state));

    if (state == NULL)
        return brc_fail(err, BRC_ENOMEM, "out of memory");
    state->item = in->dtype->item_size;
    int rc = optional_read_config(state, config, in, err);
    if (rc < 0) {
        optional_close(ctx, state);
        return rc;
    }
    out->ndim = -1;
    out->len = BRC_LEN_VARIES;
    const brc_chain_info *mask = brc_chain_describe(state->mask);
    const brc_chain_info *data = brc_chain_describe(state->data);
    out->max_len = brc_codec_add_up(OPTIONAL_HEADER,
                                    brc_codec_add_up(mask->encoded_max, data->encoded_max));
    out->flags = data->flags & BRC_CODEC_LOSSY;
    *out_state = state;
    return BRC_OK;
}

static int optional_write_config(void *ctx, const void *opaque, brc_buf *out, brc_error *err)
{
    (void)ctx;
    const struct optional_codec *state = opaque;
    int rc = brc_buf_printf(out, err, "{\"mask_codecs\":");

    if (rc == BRC_OK)
        rc = brc_chain_write(state->mask, out, err);
    if (rc == BRC_OK)
        rc = brc_buf_printf(out, err, ",\"data_codecs\":");
    if (rc == BRC_OK)
        rc = brc_chain_write(state->data, out, err);
    return rc < 0 ? rc : brc_buf_printf(out, err, "}");
}

/* Sets *chain to the chain for `count` values: the state's own chain if all elements are
 * present, else *fresh, a new chain. The caller frees *fresh, which may be NULL. */
static int optional_data_chain(const struct optional_codec *state, uint64_t count,
                               brc_chain **fresh, const brc_chain **chain, brc_error *err)
{
    *fresh = NULL;
    *chain = state->data;
    if (count == state->n)
        return BRC_OK;
    int rc = brc_chain_open_like(fresh, state->data, 1, &count, err);
    *chain = *fresh;
    return rc;
}

/* ---- encoding ----------------------------------------------------------------------- */

static int optional_split_fixed(const struct optional_codec *state, brc_span src,
                                struct brc_nested_scratch *scratch, uint64_t *count, brc_error *err)
{
    int rc = BRC_OK;

    for (uint64_t i = 0; i < state->n && rc == BRC_OK; i++, src.data += state->item) {
        scratch->head.data[i] = src.data[0] != 0;
        if (src.data[0] == 0)
            continue;
        rc = brc_buf_append(&scratch->plain, src.data + 1, state->item - 1, err);
        ++*count;
    }
    return rc;
}

static int optional_split_varying(const struct optional_codec *state, brc_span src,
                                  struct brc_nested_scratch *scratch, uint64_t *count,
                                  brc_error *err)
{
    uint32_t *offsets;
    uint8_t len[4];
    int rc = brc_codec_new_index(&offsets, state->n, src, err);

    for (uint64_t i = 0; i < state->n && rc == BRC_OK; i++) {
        const uint8_t *element = src.data + offsets[i] + 4;
        size_t n = offsets[i + 1] - offsets[i] - 4;
        scratch->head.data[i] = n > 0;
        if (n == 0)
            continue;
        ++*count;
        if (element[0] != 1)
            rc = brc_fail(err, BRC_EINVAL, "element %llu is marked neither as present nor as "
                                           "missing",
                          (unsigned long long)i);
        brc_codec_store(len, 4, n - 1);
        if (rc == BRC_OK)
            rc = brc_buf_append(&scratch->plain, len, 4, err);
        if (rc == BRC_OK)
            rc = brc_buf_append(&scratch->plain, element + 1, n - 1, err);
    }
    free(offsets);
    return rc;
}

static int optional_split(const struct optional_codec *state, brc_span src,
                          struct brc_nested_scratch *scratch, uint64_t *count, brc_error *err)
{
    *count = 0;
    scratch->head.len = scratch->plain.len = 0;
    int rc = brc_buf_reserve(&scratch->head, (size_t)state->n + 1, err);
    if (rc < 0)
        return rc;
    scratch->head.len = (size_t)state->n;
    return state->item > 0 ? optional_split_fixed(state, src, scratch, count, err)
                           : optional_split_varying(state, src, scratch, count, err);
}

/* Encodes `from`, appends the result to `dst`, and writes its length into the header. */
static int optional_put(const brc_chain *chain, struct brc_nested_scratch *scratch,
                        const brc_buf *from, size_t header, brc_buf *dst, brc_error *err)
{
    scratch->stored.len = 0;
    int rc = brc_chain_encode(chain, scratch->chains, (brc_span){ from->data, from->len },
                              &scratch->stored, err);
    if (rc == BRC_OK)
        rc = brc_buf_append(dst, scratch->stored.data, scratch->stored.len, err);
    if (rc == BRC_OK)
        brc_codec_store(dst->data + header, 8, scratch->stored.len);
    return rc;
}

static int optional_encode(void *ctx, const void *opaque, void *opaque_scratch, brc_span src,
                           brc_buf *dst, brc_error *err)
{
    (void)ctx;
    static const uint8_t header[OPTIONAL_HEADER];
    const struct optional_codec *state = opaque;
    struct brc_nested_scratch *scratch = opaque_scratch;
    const brc_chain *chain;
    brc_chain *fresh;
    uint64_t count;
    size_t start = dst->len;
    int rc = optional_split(state, src, scratch, &count, err);

    if (rc == BRC_OK)
        rc = brc_buf_append(dst, header, sizeof(header), err);
    if (rc == BRC_OK)
        rc = optional_put(state->mask, scratch, &scratch->head, start, dst, err);
    if (rc < 0 || count == 0)
        return rc;
    rc = optional_data_chain(state, count, &fresh, &chain, err);
    if (rc == BRC_OK)
        rc = optional_put(chain, scratch, &scratch->plain, start + 8, dst, err);
    brc_chain_free(fresh);
    return rc;
}

/* ---- decoding ----------------------------------------------------------------------- */

static int optional_join_fixed(const struct optional_codec *state,
                               const struct brc_nested_scratch *scratch, brc_buf *dst,
                               brc_error *err)
{
    const uint8_t *value = scratch->plain.data;
    size_t inner = state->item - 1;
    int rc = brc_buf_reserve(dst, (size_t)state->n * state->item, err);

    for (uint64_t i = 0; i < state->n && rc == BRC_OK; i++) {
        uint8_t *to = dst->data + dst->len;
        to[0] = scratch->head.data[i] != 0;
        if (to[0] != 0) {
            memcpy(to + 1, value, inner);
            value += inner;
        } else {
            memset(to + 1, 0, inner);
        }
        dst->len += state->item;
    }
    return rc;
}

static int optional_join_varying(const struct optional_codec *state,
                                 const struct brc_nested_scratch *scratch, uint64_t count,
                                 brc_buf *dst, brc_error *err)
{
    brc_span values = { scratch->plain.data, scratch->plain.len };
    uint32_t *offsets;
    uint8_t head[5] = { 0, 0, 0, 0, 1 };
    size_t at = 0;
    int rc = brc_codec_new_index(&offsets, count, values, err);

    for (uint64_t i = 0; i < state->n && rc == BRC_OK; i++) {
        int there = scratch->head.data[i] != 0;
        size_t n = there ? offsets[at + 1] - offsets[at] - 4 : 0;
        brc_codec_store(head, 4, there ? n + 1 : 0);
        rc = brc_buf_append(dst, head, there ? 5 : 4, err);
        if (rc == BRC_OK && there)
            rc = brc_buf_append(dst, values.data + offsets[at++] + 4, n, err);
    }
    free(offsets);
    return rc;
}

static int optional_values(const struct optional_codec *state, struct brc_nested_scratch *scratch,
                           brc_span stored, uint64_t count, brc_error *err)
{
    const brc_chain *chain;
    brc_chain *fresh;

    scratch->plain.len = 0;
    if (count == 0)
        return stored.len == 0
                   ? BRC_OK
                   : brc_fail(err, BRC_ECORRUPT, "%zu bytes of values, but no element is present",
                              stored.len);
    int rc = optional_data_chain(state, count, &fresh, &chain, err);
    if (rc == BRC_OK)
        rc = brc_chain_decode(chain, scratch->chains, stored, NULL, &scratch->plain, err);
    brc_chain_free(fresh);
    if (rc < 0)
        brc_context(err, "the values");
    return rc;
}

/* Decodes the mask, counts the elements that are present, and decodes as many values. */
static int optional_take(const struct optional_codec *state, struct brc_nested_scratch *scratch,
                         brc_span src, uint64_t *count, brc_error *err)
{
    uint64_t mask_len, data_len;

    if (src.len < OPTIONAL_HEADER)
        return brc_fail(err, BRC_ECORRUPT, "%zu bytes cannot hold two lengths", src.len);
    mask_len = brc_codec_load(src.data, 8);
    data_len = brc_codec_load(src.data + 8, 8);
    src = (brc_span){ src.data + OPTIONAL_HEADER, src.len - OPTIONAL_HEADER };
    if (mask_len > src.len || data_len != src.len - mask_len)
        return brc_fail(err, BRC_ECORRUPT,
                        "%zu bytes follow, but the mask has %llu and the values have %llu",
                        src.len, (unsigned long long)mask_len, (unsigned long long)data_len);
    scratch->head.len = 0;
    int rc = brc_chain_decode(state->mask, scratch->chains,
                              (brc_span){ src.data, (size_t)mask_len }, NULL, &scratch->head, err);
    if (rc < 0) {
        brc_context(err, "the mask");
        return rc;
    }
    *count = 0;
    for (uint64_t i = 0; i < state->n; i++)
        *count += scratch->head.data[i] != 0;
    return optional_values(state, scratch,
                           (brc_span){ src.data + mask_len, (size_t)data_len }, *count, err);
}

static int optional_decode(void *ctx, const void *opaque, void *opaque_scratch, brc_span src,
                           brc_buf *dst, brc_error *err)
{
    (void)ctx;
    const struct optional_codec *state = opaque;
    struct brc_nested_scratch *scratch = opaque_scratch;
    uint64_t count = 0;
    int rc = optional_take(state, scratch, src, &count, err);

    if (rc < 0)
        return rc;
    return state->item > 0 ? optional_join_fixed(state, scratch, dst, err)
                           : optional_join_varying(state, scratch, count, dst, err);
}

int brc_codec_optional_register(brc_registry *reg, brc_error *err)
{
    static const brc_codec_spec spec = {
        .size = sizeof(spec),
        .name = "zarrs.optional",
        .kind = BRC_ARRAY_TO_BYTES,
        .open = optional_open,
        .close = optional_close,
        .write_config = optional_write_config,
    };
    static const brc_codec_impl impl = {
        .size = sizeof(impl),
        .spec = "zarrs.optional",
        .name = "portable",
        .scratch_new = brc_codec_nested_scratch_new,
        .scratch_free = brc_codec_nested_scratch_free,
        .encode = optional_encode,
        .decode = optional_decode,
    };

    return brc_codec_add(reg, &spec, &impl, err);
}
