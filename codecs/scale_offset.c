/*
 * "scale_offset": (x - offset) * scale, and back x / scale + offset, in the arithmetic of
 * the array's own type.
 *
 * Integers are never rounded: a result outside the type's range, or a division with a
 * remainder, is an error. With floats every operation rounds as the type's own arithmetic
 * does; the only error is a finite value that would be stored as infinite.
 */
#include "builtin.h"
#include "lib/codec_help.h"
#include "lib/number.h"

#include <math.h>
#include <stdlib.h>

__extension__ typedef __int128 scale_wide;

struct scale_state {
    brc_numeric numeric;
    uint64_t n;
    scale_wide offset, scale;         /* for integers                             */
    double float_offset, float_scale; /* for floats                               */
    brc_buf config, fill;
};

static void scale_close(void *ctx, void *opaque)
{
    (void)ctx;
    struct scale_state *state = opaque;

    brc_buf_dispose(&state->config);
    brc_buf_dispose(&state->fill);
    free(state);
}

/* ---- arithmetic --------------------------------------------------------------------- */

static scale_wide scale_load_integer(const brc_numeric *numeric, const uint8_t *element)
{
    brc_number number = brc_numeric_load(numeric, element);
    uint64_t magnitude = number.mantissa == 0 ? 0 : number.mantissa >> -number.exponent;

    return number.negative ? -(scale_wide)magnitude : (scale_wide)magnitude;
}

static int scale_fits(const brc_numeric *numeric, scale_wide value)
{
    scale_wide top = (scale_wide)1 << (numeric->is_signed ? numeric->bits - 1 : numeric->bits);

    return value < top && value >= (numeric->is_signed ? -top : 0);
}

/* Replaces *value by the encoded or decoded value. Returns 0 if the result, or a value on the
 * way, is outside the type. */
static int scale_integer(const struct scale_state *state, int decode, scale_wide *value)
{
    if (decode) {
        if (*value % state->scale != 0)
            return 0;
        *value /= state->scale;
        if (!scale_fits(&state->numeric, *value))
            return 0;
        *value += state->offset;
    } else {
        *value -= state->offset;
        if (!scale_fits(&state->numeric, *value))
            return 0;
        if (__builtin_mul_overflow(*value, state->scale, value))
            return 0;
    }
    return scale_fits(&state->numeric, *value);
}

static int scale_float(const struct scale_state *state, int decode, double *value)
{
    const brc_numeric *numeric = &state->numeric;
    double first;

    if (decode) {
        first = brc_numeric_round(numeric, *value / state->float_scale);
        *value = brc_numeric_round(numeric, first + state->float_offset);
        return 1;
    }
    int was_finite = isfinite(*value);
    first = brc_numeric_round(numeric, *value - state->float_offset);
    *value = brc_numeric_round(numeric, first * state->float_scale);
    return !was_finite || isfinite(*value);
}

static int scale_one(const struct scale_state *state, int decode, uint8_t *dst, const uint8_t *src,
                     brc_error *err)
{
    const brc_numeric *numeric = &state->numeric;
    char text[BRC_NUMBER_TEXT];
    int fits;

    if (numeric->is_float) {
        double value = brc_numeric_to_double(numeric, src);
        fits = scale_float(state, decode, &value);
        brc_numeric_cast(numeric, brc_number_of_double(value), dst);
    } else {
        scale_wide value = scale_load_integer(numeric, src);
        fits = scale_integer(state, decode, &value);
        brc_codec_store(dst, numeric->size, (uint64_t)value);
    }
    if (fits)
        return BRC_OK;
    return brc_fail(err, decode ? BRC_ECORRUPT : BRC_EINVAL,
                    decode ? "%s has no counterpart in %s" : "%s cannot be scaled within %s",
                    brc_number_text(text, brc_numeric_load(numeric, src)), numeric->type->name);
}

/* ---- specification ------------------------------------------------------------------ */

/* Reads "offset" or "scale", which are written as fill values of the type. */
static int scale_read_number(struct scale_state *state, const brc_json *config, const char *name,
                             scale_wide *integer, double *number, brc_error *err)
{
    const brc_dtype *type = state->numeric.type;
    const brc_json *value = brc_json_member(config, name);
    brc_buf element = BRC_BUF_INIT;

    if (value == NULL)
        return BRC_OK;
    int rc = type->ops->parse(type, value, &element, err);
    if (rc == BRC_OK && element.len != type->item_size)
        rc = brc_fail(err, BRC_EINTERNAL, "%s gives elements of another length", type->name);
    if (rc == BRC_OK && !state->numeric.is_float)
        *integer = scale_load_integer(&state->numeric, element.data);
    if (rc == BRC_OK)
        *number = brc_numeric_to_double(&state->numeric, element.data);
    brc_buf_dispose(&element);
    if (rc == BRC_OK && !isfinite(*number))
        rc = brc_fail(err, BRC_EINVAL, "the number must be finite");
    if (rc < 0)
        brc_context(err, "\"%s\"", name);
    return rc;
}

static int scale_read_config(struct scale_state *state, const brc_json *config, const brc_proto *in,
                             brc_error *err)
{
    static const char *const members[] = { "offset", "scale" };
    int rc = config != NULL ? brc_json_allow(config, members, 2, err) : BRC_OK;

    state->scale = 1;
    state->float_scale = 1;
    if (rc == BRC_OK)
        rc = brc_numeric_open(&state->numeric, in->dtype, err);
    if (rc == BRC_OK)
        rc = brc_codec_count(&state->n, in, err);
    if (rc == BRC_OK)
        rc = scale_read_number(state, config, "offset", &state->offset, &state->float_offset, err);
    if (rc == BRC_OK)
        rc = scale_read_number(state, config, "scale", &state->scale, &state->float_scale, err);
    if (rc == BRC_OK && state->float_scale == 0)
        rc = brc_fail(err, BRC_EINVAL, "\"scale\" must not be zero");
    if (rc == BRC_OK && config != NULL)
        rc = brc_json_write(&state->config, config, 0, err);
    return rc;
}

static int scale_read_fill(struct scale_state *state, brc_span fill, brc_error *err)
{
    if (fill.data == NULL || fill.len != state->numeric.size)
        return BRC_OK;
    int rc = brc_buf_reserve(&state->fill, fill.len, err);
    if (rc < 0)
        return rc;
    rc = scale_one(state, 0, state->fill.data, fill.data, err);
    if (rc < 0)
        brc_context(err, "the fill value");
    state->fill.len = fill.len;
    return rc;
}

static int scale_open(void *ctx, void **out_state, const brc_json *config, const brc_proto *in,
                      brc_proto *out, int *identity, brc_error *err)
{
    struct scale_state *state = calloc(1, sizeof(*state));

    if (state == NULL)
        return brc_fail(err, BRC_ENOMEM, "out of memory");
    int rc = scale_read_config(state, config, in, err);
    if (rc == BRC_OK)
        rc = scale_read_fill(state, in->fill, err);
    if (rc < 0) {
        scale_close(ctx, state);
        return rc;
    }
    *identity = state->numeric.is_float ? 0 : state->offset == 0 && state->scale == 1;
    out->flags = state->numeric.is_float ? BRC_CODEC_LOSSY : 0;
    if (state->fill.len > 0)
        out->fill = (brc_span){ state->fill.data, state->fill.len };
    *out_state = state;
    return BRC_OK;
}

static int scale_write_config(void *ctx, const void *opaque, brc_buf *out, brc_error *err)
{
    (void)ctx;
    const struct scale_state *state = opaque;

    return brc_buf_append(out, state->config.data, state->config.len, err);
}

/* ---- implementation ----------------------------------------------------------------- */

static int scale_convert(const struct scale_state *state, int decode, brc_span src, brc_buf *dst,
                         brc_error *err)
{
    size_t size = state->numeric.size;
    int rc = brc_codec_expect_len(src, state->n * size, err);

    if (rc == BRC_OK)
        rc = brc_buf_reserve(dst, src.len, err);
    for (uint64_t i = 0; i < state->n && rc == BRC_OK; i++) {
        rc = scale_one(state, decode, dst->data + dst->len, src.data + i * size, err);
        dst->len += size;
        if (rc < 0)
            brc_context(err, "element %llu", (unsigned long long)i);
    }
    return rc;
}

static int scale_encode(void *ctx, const void *opaque, void *scratch, brc_span src, brc_buf *dst,
                        brc_error *err)
{
    (void)ctx;
    (void)scratch;
    return scale_convert(opaque, 0, src, dst, err);
}

static int scale_decode(void *ctx, const void *opaque, void *scratch, brc_span src, brc_buf *dst,
                        brc_error *err)
{
    (void)ctx;
    (void)scratch;
    return scale_convert(opaque, 1, src, dst, err);
}

int brc_codec_scale_offset_register(brc_registry *reg, brc_error *err)
{
    static const brc_codec_spec spec = {
        .size = sizeof(spec),
        .name = "scale_offset",
        .kind = BRC_ARRAY_TO_ARRAY,
        .open = scale_open,
        .close = scale_close,
        .write_config = scale_write_config,
    };
    static const brc_codec_impl impl = {
        .size = sizeof(impl),
        .spec = "scale_offset",
        .name = "portable",
        .encode = scale_encode,
        .decode = scale_decode,
    };

    return brc_codec_add(reg, &spec, &impl, err);
}
