/*
 * "bitround" and "numcodecs.bitround": fewer significant bits, so that the next codecs
 * compress better. Decoding changes nothing.
 *
 * A float keeps `keepbits` bits of its fraction, and an integer keeps `keepbits` bits from
 * its highest set bit on; the other bits are rounded, half to even. Rounding may carry a
 * float into the next exponent, as it should; an integer stays within its type. Infinities
 * and NaNs stay as they are: adding to their bits would turn them into other numbers.
 */
#include "builtin.h"
#include "lib/codec_help.h"

#include <stdlib.h>
#include <string.h>

struct bitround_state {
    int keepbits;
    int is_float;
    size_t size; /* of one part: complex numbers have two                        */
    int fraction_bits;
    uint64_t len;
    uint8_t fill[32];
};

/* ---- one number --------------------------------------------------------------------- */

/* Rounds `bits` to a multiple of 2^shift, half to even: adds half of 2^shift, or one less
 * where the result would be odd, and clears the low bits. Adds no further than `most`. */
static uint64_t bitround_cut(uint64_t bits, int shift, uint64_t most)
{
    uint64_t low = (UINT64_C(1) << shift) - 1;
    uint64_t add = (bits >> shift & 1) + (low >> 1);
    uint64_t sum = bits > most - add ? most : bits + add;

    return sum & ~low;
}

static uint64_t bitround_float(const struct bitround_state *state, uint64_t bits)
{
    int shift = state->fraction_bits - state->keepbits;
    uint64_t sign = UINT64_C(1) << (8 * state->size - 1);
    uint64_t infinity = sign - (UINT64_C(1) << state->fraction_bits);

    if ((bits & (sign - 1)) >= infinity || shift <= 0)
        return bits;
    return (bits & sign) | bitround_cut(bits & (sign - 1), shift, sign - 1);
}

static uint64_t bitround_integer(const struct bitround_state *state, uint64_t bits)
{
    uint64_t most = UINT64_MAX >> (64 - 8 * state->size);
    int shift = bits == 0 ? 0 : 64 - __builtin_clzll(bits) - state->keepbits;

    return shift <= 0 ? bits : bitround_cut(bits, shift, most);
}

static void bitround_run(const struct bitround_state *state, uint8_t *dst, const uint8_t *src,
                         size_t len)
{
    for (size_t at = 0; at + state->size <= len; at += state->size) {
        uint64_t bits = brc_codec_load(src + at, state->size);
        bits = state->is_float ? bitround_float(state, bits) : bitround_integer(state, bits);
        brc_codec_store(dst + at, state->size, bits);
    }
}

/* ---- specification ------------------------------------------------------------------ */

static int bitround_read_type(struct bitround_state *state, const brc_dtype *type, brc_error *err)
{
    int is_complex = type->klass == BRC_CLASS_COMPLEX;

    state->is_float = is_complex || type->klass == BRC_CLASS_FLOAT;
    state->size = is_complex ? type->item_size / 2 : type->item_size;
    if (!state->is_float && type->klass != BRC_CLASS_INT && type->klass != BRC_CLASS_UINT &&
        type->klass != BRC_CLASS_TIME)
        return brc_fail(err, BRC_EINVAL, "elements of %s are not numbers", type->name);
    if (state->size > 8 || state->size == 0 || (state->is_float && state->size == 1) ||
        type->bits % 8 != 0)
        return brc_fail(err, BRC_EUNSUPPORTED, "numbers of %s cannot be rounded here", type->name);
    state->fraction_bits = state->size == 8                         ? 52
                           : state->size == 4                       ? 23
                           : strstr(type->name, "bfloat16") != NULL ? 7
                                                                    : 10;
    return BRC_OK;
}

/* ctx is not NULL for "numcodecs.bitround", which takes only floats. */
static int bitround_open(void *ctx, void **out_state, const brc_json *config, const brc_proto *in,
                         brc_proto *out, int *identity, brc_error *err)
{
    static const char *const members[] = { "keepbits" };
    struct bitround_state state = { .len = in->len };
    int64_t keepbits = 0;
    int rc = config != NULL ? brc_json_allow(config, members, 1, err) : BRC_OK;

    if (rc == BRC_OK)
        rc = bitround_read_type(&state, in->dtype, err);
    if (rc < 0)
        return rc;
    if (ctx != NULL && !state.is_float)
        return brc_fail(err, BRC_EINVAL, "elements of %s are not floats", in->dtype->name);
    if (!brc_json_int(brc_json_member(config, "keepbits"), 1, 64, &keepbits))
        return brc_fail(err, BRC_EINVAL, "\"keepbits\" must be an integer from 1 to 64");
    state.keepbits = (int)keepbits;
    *identity = state.is_float ? state.keepbits >= state.fraction_bits
                               : (size_t)state.keepbits >= 8 * state.size;
    out->flags = *identity ? 0 : BRC_CODEC_LOSSY;
    rc = brc_codec_state_copy(out_state, &state, sizeof(state), err);
    if (rc < 0 || in->fill.data == NULL || in->fill.len > sizeof(state.fill))
        return rc;
    struct bitround_state *kept = *out_state;
    bitround_run(&state, kept->fill, in->fill.data, in->fill.len);
    out->fill.data = kept->fill;
    return BRC_OK;
}

static int bitround_write_config(void *ctx, const void *state, brc_buf *out, brc_error *err)
{
    (void)ctx;
    return brc_buf_printf(out, err, "{\"keepbits\":%d}",
                          ((const struct bitround_state *)state)->keepbits);
}

/* ---- implementation ----------------------------------------------------------------- */

static int bitround_encode(void *ctx, const void *opaque, void *scratch, brc_span src, brc_buf *dst,
                           brc_error *err)
{
    (void)ctx;
    (void)scratch;
    int rc = brc_buf_reserve(dst, src.len, err);

    if (rc < 0)
        return rc;
    if (src.len > 0)
        bitround_run(opaque, dst->data + dst->len, src.data, src.len);
    dst->len += src.len;
    return BRC_OK;
}

static int bitround_decode(void *ctx, const void *opaque, void *scratch, brc_span src, brc_buf *dst,
                           brc_error *err)
{
    (void)ctx;
    (void)scratch;
    int rc = brc_codec_expect_len(src, ((const struct bitround_state *)opaque)->len, err);

    return rc < 0 ? rc : brc_buf_append(dst, src.data, src.len, err);
}

int brc_codec_bitround_register(brc_registry *reg, brc_error *err)
{
    static const char floats_only = 1;
    brc_codec_spec spec = {
        .size = sizeof(spec),
        .name = "bitround",
        .kind = BRC_ARRAY_TO_ARRAY,
        .open = bitround_open,
        .close = brc_codec_state_free,
        .write_config = bitround_write_config,
    };
    brc_codec_impl impl = {
        .size = sizeof(impl),
        .spec = "bitround",
        .name = "portable",
        .encode = bitround_encode,
        .decode = bitround_decode,
    };
    int rc = brc_codec_add(reg, &spec, &impl, err);

    if (rc == BRC_OK) /* its former name in zarrs */
        rc = brc_registry_add_alias(reg, "https://codec.zarrs.dev/array_to_array/bitround",
                                    "bitround", err);
    spec.name = impl.spec = "numcodecs.bitround";
    spec.ctx = (void *)(uintptr_t)&floats_only;
    return rc < 0 ? rc : brc_codec_add(reg, &spec, &impl, err);
}
