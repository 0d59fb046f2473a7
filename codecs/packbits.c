/*
 * "packbits": the bits first_bit to last_bit of each component, in one stream.
 *
 *     stream bit j lies in byte j / 8, at bit j % 8 from the lowest; element i takes the
 *     bits [i * k, (i + 1) * k); zero bits fill the last byte
 *
 *     padding_encoding "first_byte" or "last_byte": one more byte has the number of these
 *     zero bits, 0 to 7; zarrs leaves this byte out where components are whole bytes, and
 *     decoding accepts such chunks
 *
 * A component has 1 bit for bool, 2, 4 or 6 bits for the types with these numbers in their
 * names, and otherwise eight bits for each byte; complex numbers have two components.
 * Decoding extends the sign of signed integers.
 */
#include "builtin.h"
#include "lib/codec_help.h"

#include <stdlib.h>
#include <string.h>

enum { PACK_NO_PADDING, PACK_FIRST_BYTE, PACK_LAST_BYTE };
static const char *const pack_paddings[] = { "none", "first_byte", "last_byte" };

struct packbits_state {
    int padding, is_signed;
    uint64_t ncomponents;
    size_t size; /* bytes of a component in memory                               */
    unsigned width, first, last;
    int has_first, has_last;
    int whole;       /* all bits of every byte are kept: a copy of canonical bytes */
    uint64_t packed; /* bytes, without the byte of the number of padding bits     */
};

/* ---- specification ------------------------------------------------------------------ */

static int packbits_read_type(struct packbits_state *state, const brc_proto *in, brc_error *err)
{
    const brc_dtype *type = in->dtype;
    uint64_t parts = type->klass == BRC_CLASS_COMPLEX ? 2 : 1, n = 0;
    int rc = brc_codec_count(&n, in, err);

    if (rc < 0)
        return rc;
    if (type->item_size == 0 || type->klass == BRC_CLASS_STRUCT ||
        type->klass == BRC_CLASS_OPTIONAL)
        return brc_fail(err, BRC_EINVAL, "elements of %s cannot be packed", type->name);
    state->size = type->item_size / (size_t)parts;
    state->ncomponents = brc_codec_times(n, parts);
    state->width = (unsigned)(8 * state->size);
    if (type->bits > 0 && type->bits < 8 * type->item_size)
        state->width = type->bits / (unsigned)parts;
    state->is_signed = type->klass == BRC_CLASS_INT || type->klass == BRC_CLASS_TIME;
    return BRC_OK;
}

static int packbits_read_bit(const brc_json *config, const char *name, unsigned width,
                             unsigned *out, int *given, brc_error *err)
{
    const brc_json *value = brc_json_member(config, name);
    uint64_t number = 0;

    if (brc_json_kind(value) == BRC_JSON_ABSENT || brc_json_kind(value) == BRC_JSON_NULL)
        return BRC_OK;
    if (!brc_json_uint(value, width - 1, &number))
        return brc_fail(err, BRC_EINVAL, "\"%s\" must be null or an integer from 0 to %u", name,
                        width - 1);
    *out = (unsigned)number;
    *given = 1;
    return BRC_OK;
}

static int packbits_read_config(struct packbits_state *state, const brc_json *config,
                                brc_error *err)
{
    static const char *const members[] = { "padding_encoding", "first_bit", "last_bit" };
    const brc_json *padding = brc_json_member(config, "padding_encoding");
    int rc = config != NULL ? brc_json_allow(config, members, 3, err) : BRC_OK;

    if (rc < 0)
        return rc;
    if (padding != NULL)
        while (!brc_json_is(padding, pack_paddings[state->padding]))
            if (++state->padding > PACK_LAST_BYTE)
                return brc_fail(
                    err, BRC_EINVAL,
                    "\"padding_encoding\" must be \"none\", \"first_byte\" or \"last_byte\"");
    state->last = state->width - 1;
    rc =
        packbits_read_bit(config, "first_bit", state->width, &state->first, &state->has_first, err);
    if (rc == BRC_OK)
        rc = packbits_read_bit(config, "last_bit", state->width, &state->last, &state->has_last,
                               err);
    if (rc == BRC_OK && state->first > state->last)
        return brc_fail(err, BRC_EINVAL, "\"first_bit\" is greater than \"last_bit\"");
    return rc;
}

static int packbits_open(void *ctx, void **out_state, const brc_json *config, const brc_proto *in,
                         brc_proto *out, int *identity, brc_error *err)
{
    (void)ctx;
    struct packbits_state state = { 0 };
    int rc = packbits_read_type(&state, in, err);

    if (rc == BRC_OK)
        rc = packbits_read_config(&state, config, err);
    if (rc < 0)
        return rc;
    unsigned k = state.last - state.first + 1;
    if (k != state.width && state.size > 8)
        return brc_fail(err, BRC_EUNSUPPORTED, "some bits of %zu bytes cannot be packed here",
                        state.size);
    if (state.ncomponents > UINT64_MAX / k - 8)
        return brc_fail(err, BRC_ELIMIT, "a chunk of this shape is too long");
    state.packed = (state.ncomponents * k + 7) / 8;
    out->ndim = -1;
    out->len = out->max_len = state.packed + (state.padding != PACK_NO_PADDING);
    out->flags = k != state.width ? BRC_CODEC_LOSSY : 0;
    state.whole = k == 8 * state.size;
    if (state.whole && state.padding != PACK_NO_PADDING)
        out->len = BRC_LEN_VARIES;
    *identity = state.whole && state.padding == PACK_NO_PADDING;
    return brc_codec_state_copy(out_state, &state, sizeof(state), err);
}

static int packbits_write_config(void *ctx, const void *opaque, brc_buf *out, brc_error *err)
{
    (void)ctx;
    const struct packbits_state *state = opaque;
    int rc =
        brc_buf_printf(out, err, "{\"padding_encoding\":\"%s\"", pack_paddings[state->padding]);

    if (rc == BRC_OK && state->has_first)
        rc = brc_buf_printf(out, err, ",\"first_bit\":%u", state->first);
    if (rc == BRC_OK && state->has_last)
        rc = brc_buf_printf(out, err, ",\"last_bit\":%u", state->last);
    return rc < 0 ? rc : brc_buf_printf(out, err, "}");
}

/* ---- implementation ------------------------------------------------------------------
 *
 * Bits collect in a word until there are eight. Up to 7 + 64 bits may be waiting, so the
 * word consists of two uint64.
 */
__extension__ typedef unsigned __int128 packbits_word;

static uint64_t packbits_mask(unsigned k)
{
    return k == 64 ? UINT64_MAX : (UINT64_C(1) << k) - 1;
}

static void packbits_pack(const struct packbits_state *state, uint8_t *dst, const uint8_t *src)
{
    unsigned k = state->last - state->first + 1, waiting = 0;
    packbits_word word = 0;

    for (uint64_t i = 0; i < state->ncomponents; i++, src += state->size) {
        uint64_t bits = brc_codec_load(src, state->size) >> state->first & packbits_mask(k);
        word |= (packbits_word)bits << waiting;
        for (waiting += k; waiting >= 8; waiting -= 8, word >>= 8)
            *dst++ = (uint8_t)word;
    }
    if (waiting > 0)
        *dst = (uint8_t)word;
}

static void packbits_unpack(const struct packbits_state *state, uint8_t *dst, const uint8_t *src)
{
    unsigned k = state->last - state->first + 1, waiting = 0;
    uint64_t sign = state->is_signed ? UINT64_C(1) << state->last : 0;
    packbits_word word = 0;

    for (uint64_t i = 0; i < state->ncomponents; i++, dst += state->size) {
        for (; waiting < k; waiting += 8)
            word |= (packbits_word)*src++ << waiting;
        uint64_t bits = ((uint64_t)word & packbits_mask(k)) << state->first;
        if ((bits & sign) != 0)
            bits |= ~(sign - 1);
        brc_codec_store(dst, state->size, bits);
        word >>= k;
        waiting -= k;
    }
}

static uint8_t packbits_padding(const struct packbits_state *state)
{
    uint64_t k = state->last - state->first + 1;

    return (uint8_t)(8 * state->packed - k * state->ncomponents);
}

static int packbits_encode(void *ctx, const void *opaque, void *scratch, brc_span src, brc_buf *dst,
                           brc_error *err)
{
    (void)ctx;
    (void)scratch;
    const struct packbits_state *state = opaque;
    size_t more = state->padding != PACK_NO_PADDING;
    int rc = brc_buf_reserve(dst, (size_t)state->packed + more, err);

    if (rc < 0 || state->packed + more == 0)
        return rc;
    uint8_t *to = dst->data + dst->len;
    dst->len += (size_t)state->packed + more;
    if (state->padding == PACK_FIRST_BYTE)
        *to++ = packbits_padding(state);
    if (state->padding == PACK_LAST_BYTE)
        to[state->packed] = packbits_padding(state);
    if (state->whole && src.len > 0)
        memcpy(to, src.data, src.len);
    else if (!state->whole)
        packbits_pack(state, to, src.data);
    return BRC_OK;
}

static int packbits_decode(void *ctx, const void *opaque, void *scratch, brc_span src, brc_buf *dst,
                           brc_error *err)
{
    (void)ctx;
    (void)scratch;
    const struct packbits_state *state = opaque;
    size_t more = state->padding != PACK_NO_PADDING;
    size_t len = (size_t)state->ncomponents * state->size;

    if (state->whole && src.len == state->packed)
        more = 0;
    int rc = brc_codec_expect_len(src, state->packed + more, err);
    if (rc < 0)
        return rc;
    uint8_t said = packbits_padding(state);
    if (more > 0)
        said = src.data[state->padding == PACK_FIRST_BYTE ? 0 : src.len - 1];
    if (said != packbits_padding(state))
        return brc_fail(err, BRC_ECORRUPT, "the stored number of padding bits is %d, not %d", said,
                        packbits_padding(state));
    if (more > 0 && state->padding == PACK_FIRST_BYTE)
        src.data++;
    rc = brc_buf_reserve(dst, len, err);
    if (rc < 0 || len == 0)
        return rc;
    if (state->whole)
        memcpy(dst->data + dst->len, src.data, len);
    else
        packbits_unpack(state, dst->data + dst->len, src.data);
    dst->len += len;
    return BRC_OK;
}

int brc_codec_packbits_register(brc_registry *reg, brc_error *err)
{
    static const brc_codec_spec spec = {
        .size = sizeof(spec),
        .name = "packbits",
        .kind = BRC_ARRAY_TO_BYTES,
        .open = packbits_open,
        .close = brc_codec_state_free,
        .write_config = packbits_write_config,
    };
    static const brc_codec_impl impl = {
        .size = sizeof(impl),
        .spec = "packbits",
        .name = "portable",
        .encode = packbits_encode,
        .decode = packbits_decode,
    };

    return brc_codec_add(reg, &spec, &impl, err);
}
