/*
 * "numcodecs.astype" and "numcodecs.quantize": values in another data type; the second
 * rounds them to a number of decimal digits first.
 *
 *     astype     "decode_dtype" is the array's type, "encode_dtype" the stored type
 *     quantize   round(x * scale) / scale with scale = 2^ceil(log2(10^digits)), in
 *                "dtype", stored as "astype"; ties go to the even neighbour
 *
 * Decoding converts as NumPy does, and no value makes it fail. Encoding rounds floats, and
 * refuses a value that is out of the stored type's range.
 */
#include "builtin.h"
#include "lib/codec_help.h"
#include "lib/number.h"
#include "lib/numpy_type.h"

#include <math.h>
#include <stdlib.h>

struct astype_state {
    brc_dtype *type, *astype;
    brc_numeric from, to;
    int quantizes, scale_bits;
    uint64_t n;
    brc_buf config;
    uint8_t fill[8];
};

static void astype_close(void *ctx, void *opaque)
{
    (void)ctx;
    struct astype_state *state = opaque;

    brc_dtype_free(state->type);
    brc_dtype_free(state->astype);
    brc_buf_dispose(&state->config);
    free(state);
}

/* ---- one element -------------------------------------------------------------------- */

/* Scaling by a power of two is exact, and a scaled value without a fraction needs no rounding. */
static double astype_quantize(double value, int scale_bits)
{
    double scaled = ldexp(value, scale_bits);

    if (!isfinite(scaled) || fabs(scaled) >= 0x1p52)
        return value;
    return ldexp(rint(scaled), -scale_bits);
}

static int astype_encode_one(const struct astype_state *state, uint8_t *dst, const uint8_t *src,
                             brc_error *err)
{
    brc_number number = brc_numeric_load(&state->from, src);

    if (state->quantizes && number.kind == BRC_NUMBER_FINITE)
        number = brc_number_of_double(
            astype_quantize(brc_numeric_to_double(&state->from, src), state->scale_bits));
    return brc_numeric_store(&state->to, number,
                             state->to.is_float ? BRC_ROUND_NEAREST_EVEN : BRC_ROUND_TOWARDS_ZERO,
                             BRC_RANGE_ERROR, dst, err);
}

/* ---- specifications ----------------------------------------------------------------- */

static int astype_read_types(struct astype_state *state, const brc_json *config,
                             const brc_proto *in, const char *decoded, const char *encoded,
                             brc_error *err)
{
    int rc = brc_numpy_type_open(&state->type, in->registry, config, decoded, err);

    if (rc == BRC_OK)
        rc = brc_numpy_type_check(state->type, in->dtype, decoded, err);
    if (rc == BRC_OK)
        rc = brc_numpy_type_open(&state->astype, in->registry, config, encoded, err);
    if (rc == BRC_OK && state->astype == NULL && state->quantizes)
        rc = brc_numpy_type_open(&state->astype, in->registry, config, decoded, err);
    if (rc == BRC_OK && state->astype == NULL)
        rc = brc_fail(err, BRC_EINVAL, "\"%s\" must be given", encoded);
    if (rc == BRC_OK)
        rc = brc_numeric_open(&state->from, state->type, err);
    return rc < 0 ? rc : brc_numeric_open(&state->to, state->astype, err);
}

static int astype_read_digits(struct astype_state *state, const brc_json *config, brc_error *err)
{
    int64_t digits = 0;

    if (!brc_json_int(brc_json_member(config, "digits"), -300, 300, &digits))
        return brc_fail(err, BRC_EINVAL, "\"digits\" must be an integer from -300 to 300");
    if (!state->from.is_float || !state->to.is_float)
        return brc_fail(err, BRC_EINVAL, "\"dtype\" and \"astype\" must be floats");
    state->scale_bits = (int)ceil(log2(pow(10.0, (double)digits)));
    return BRC_OK;
}

static int astype_read_config(struct astype_state *state, const brc_json *config,
                              const brc_proto *in, brc_error *err)
{
    static const char *const casts[] = { "decode_dtype", "encode_dtype" };
    static const char *const quantizes[] = { "dtype", "astype", "digits" };
    int rc = BRC_OK;

    if (config != NULL)
        rc = brc_json_allow(config, state->quantizes ? quantizes : casts, state->quantizes ? 3 : 2,
                            err);
    if (rc == BRC_OK)
        rc = astype_read_types(state, config, in, state->quantizes ? "dtype" : "decode_dtype",
                               state->quantizes ? "astype" : "encode_dtype", err);
    if (rc == BRC_OK && state->quantizes)
        rc = astype_read_digits(state, config, err);
    if (rc == BRC_OK)
        rc = brc_codec_count(&state->n, in, err);
    return rc < 0 ? rc : brc_json_write(&state->config, config, 0, err);
}

/* ctx is not NULL for "numcodecs.quantize". */
static int astype_open(void *ctx, void **out_state, const brc_json *config, const brc_proto *in,
                       brc_proto *out, int *identity, brc_error *err)
{
    (void)identity;
    struct astype_state *state = calloc(1, sizeof(*state));

    if (state == NULL)
        return brc_fail(err, BRC_ENOMEM, "out of memory");
    state->quantizes = ctx != NULL;
    int rc = astype_read_config(state, config, in, err);
    if (rc == BRC_OK)
        rc = brc_codec_retype(out, state->n, state->astype, err);
    if (rc < 0) {
        astype_close(NULL, state);
        return rc;
    }
    out->fill = (brc_span){ NULL, 0 };
    out->flags = BRC_CODEC_LOSSY;
    if (in->fill.data != NULL && in->fill.len == state->from.size &&
        astype_encode_one(state, state->fill, in->fill.data, NULL) == BRC_OK)
        out->fill = (brc_span){ state->fill, state->to.size };
    *out_state = state;
    return BRC_OK;
}

static int astype_write_config(void *ctx, const void *opaque, brc_buf *out, brc_error *err)
{
    (void)ctx;
    const struct astype_state *state = opaque;

    return brc_buf_append(out, state->config.data, state->config.len, err);
}

/* ---- implementation ----------------------------------------------------------------- */

static int astype_encode(void *ctx, const void *opaque, void *scratch, brc_span src, brc_buf *dst,
                         brc_error *err)
{
    (void)ctx;
    (void)scratch;
    const struct astype_state *state = opaque;
    int rc = brc_buf_reserve(dst, (size_t)state->n * state->to.size, err);

    for (uint64_t i = 0; i < state->n && rc == BRC_OK; i++) {
        rc = astype_encode_one(state, dst->data + dst->len, src.data + i * state->from.size, err);
        dst->len += state->to.size;
        if (rc < 0)
            brc_context(err, "element %llu", (unsigned long long)i);
    }
    return rc;
}

static int astype_decode(void *ctx, const void *opaque, void *scratch, brc_span src, brc_buf *dst,
                         brc_error *err)
{
    (void)ctx;
    (void)scratch;
    const struct astype_state *state = opaque;
    int rc = brc_codec_expect_len(src, state->n * state->to.size, err);

    if (rc == BRC_OK)
        rc = brc_buf_reserve(dst, (size_t)state->n * state->from.size, err);
    for (uint64_t i = 0; i < state->n && rc == BRC_OK; i++) {
        brc_numeric_cast(&state->from, brc_numeric_load(&state->to, src.data + i * state->to.size),
                         dst->data + dst->len);
        dst->len += state->from.size;
    }
    return rc;
}

int brc_codec_astype_register(brc_registry *reg, brc_error *err)
{
    static const char quantizes = 1;
    brc_codec_spec spec = {
        .size = sizeof(spec),
        .name = "numcodecs.astype",
        .kind = BRC_ARRAY_TO_ARRAY,
        .open = astype_open,
        .close = astype_close,
        .write_config = astype_write_config,
    };
    brc_codec_impl impl = {
        .size = sizeof(impl),
        .spec = "numcodecs.astype",
        .name = "portable",
        .encode = astype_encode,
        .decode = astype_decode,
    };
    int rc = brc_codec_add(reg, &spec, &impl, err);

    spec.name = impl.spec = "numcodecs.quantize";
    spec.ctx = (void *)(uintptr_t)&quantizes;
    return rc < 0 ? rc : brc_codec_add(reg, &spec, &impl, err);
}
