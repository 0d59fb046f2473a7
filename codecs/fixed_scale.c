/*
 * "numcodecs.fixedscaleoffset": round((x - offset) * scale) as "astype", and back
 * x / scale + offset as "dtype".
 *
 * Arithmetic is in floats of the array's own width, or in float64 for integers. Ties
 * go to the even neighbour, as in numcodecs. Encoding refuses a value that "astype" cannot
 * hold; numcodecs lets the value wrap around.
 */
#include "builtin.h"
#include "lib/codec_help.h"
#include "lib/number.h"
#include "lib/numpy_type.h"

#include <math.h>
#include <stdlib.h>

struct fixed_scale_state {
    brc_dtype *type, *astype;
    brc_numeric from, to;
    double offset, scale;
    uint64_t n;
    brc_buf config;
    uint8_t fill[8];
};

static void fixed_scale_close(void *ctx, void *opaque)
{
    (void)ctx;
    struct fixed_scale_state *state = opaque;

    brc_dtype_free(state->type);
    brc_dtype_free(state->astype);
    brc_buf_dispose(&state->config);
    free(state);
}

/* ---- arithmetic --------------------------------------------------------------------- */

static int fixed_scale_encode_one(const struct fixed_scale_state *state, uint8_t *dst,
                                  const uint8_t *src, brc_error *err)
{
    double value = brc_numeric_to_double(&state->from, src);

    value = brc_numeric_round(&state->from, value - state->offset);
    value = brc_numeric_round(&state->from, value * state->scale);
    return brc_numeric_store(&state->to, brc_number_of_double(rint(value)), BRC_ROUND_NEAREST_EVEN,
                             BRC_RANGE_ERROR, dst, err);
}

static void fixed_scale_decode_one(const struct fixed_scale_state *state, uint8_t *dst,
                                   const uint8_t *src)
{
    double value = brc_numeric_to_double(&state->to, src);

    value = brc_numeric_round(&state->to, value / state->scale);
    value = brc_numeric_round(&state->to, value + state->offset);
    brc_numeric_cast(&state->from, brc_number_of_double(value), dst);
}

/* ---- specification ------------------------------------------------------------------ */

static int fixed_scale_read_types(struct fixed_scale_state *state, const brc_json *config,
                                  const brc_proto *in, brc_error *err)
{
    int rc = brc_numpy_type_open(&state->type, in->registry, config, "dtype", err);

    if (rc == BRC_OK)
        rc = brc_numpy_type_check(state->type, in->dtype, "dtype", err);
    if (rc == BRC_OK)
        rc = brc_numpy_type_open(&state->astype, in->registry, config, "astype", err);
    if (rc == BRC_OK && state->astype == NULL)
        rc = brc_numpy_type_open(&state->astype, in->registry, config, "dtype", err);
    if (rc == BRC_OK)
        rc = brc_numeric_open(&state->from, state->type, err);
    return rc < 0 ? rc : brc_numeric_open(&state->to, state->astype, err);
}

static int fixed_scale_read_config(struct fixed_scale_state *state, const brc_json *config,
                                   const brc_proto *in, brc_error *err)
{
    static const char *const members[] = { "offset", "scale", "dtype", "astype" };
    int rc = config != NULL ? brc_json_allow(config, members, 4, err) : BRC_OK;

    if (rc < 0)
        return rc;
    if (!brc_json_double(brc_json_member(config, "offset"), &state->offset) ||
        !brc_json_double(brc_json_member(config, "scale"), &state->scale))
        return brc_fail(err, BRC_EINVAL, "\"offset\" and \"scale\" must be given as numbers");
    if (!isfinite(state->offset) || !isfinite(state->scale) || state->scale == 0)
        return brc_fail(err, BRC_EINVAL, "\"scale\" must be neither zero nor too large");
    rc = fixed_scale_read_types(state, config, in, err);
    if (rc == BRC_OK)
        rc = brc_codec_count(&state->n, in, err);
    return rc < 0 ? rc : brc_json_write(&state->config, config, 0, err);
}

static int fixed_scale_open(void *ctx, void **out_state, const brc_json *config,
                            const brc_proto *in, brc_proto *out, int *identity, brc_error *err)
{
    (void)identity;
    struct fixed_scale_state *state = calloc(1, sizeof(*state));

    if (state == NULL)
        return brc_fail(err, BRC_ENOMEM, "out of memory");
    int rc = fixed_scale_read_config(state, config, in, err);
    if (rc == BRC_OK)
        rc = brc_codec_retype(out, state->n, state->astype, err);
    if (rc < 0) {
        fixed_scale_close(ctx, state);
        return rc;
    }
    out->fill = (brc_span){ NULL, 0 };
    out->flags = BRC_CODEC_LOSSY;
    if (in->fill.data != NULL && in->fill.len == state->from.size &&
        fixed_scale_encode_one(state, state->fill, in->fill.data, NULL) == BRC_OK)
        out->fill = (brc_span){ state->fill, state->to.size };
    *out_state = state;
    return BRC_OK;
}

static int fixed_scale_write_config(void *ctx, const void *opaque, brc_buf *out, brc_error *err)
{
    (void)ctx;
    const struct fixed_scale_state *state = opaque;

    return brc_buf_append(out, state->config.data, state->config.len, err);
}

/* ---- implementation ----------------------------------------------------------------- */

static int fixed_scale_encode(void *ctx, const void *opaque, void *scratch, brc_span src,
                              brc_buf *dst, brc_error *err)
{
    (void)ctx;
    (void)scratch;
    const struct fixed_scale_state *state = opaque;
    int rc = brc_buf_reserve(dst, (size_t)state->n * state->to.size, err);

    for (uint64_t i = 0; i < state->n && rc == BRC_OK; i++) {
        rc = fixed_scale_encode_one(state, dst->data + dst->len, src.data + i * state->from.size,
                                    err);
        dst->len += state->to.size;
        if (rc < 0)
            brc_context(err, "element %llu", (unsigned long long)i);
    }
    return rc;
}

static int fixed_scale_decode(void *ctx, const void *opaque, void *scratch, brc_span src,
                              brc_buf *dst, brc_error *err)
{
    (void)ctx;
    (void)scratch;
    const struct fixed_scale_state *state = opaque;
    int rc = brc_codec_expect_len(src, state->n * state->to.size, err);

    if (rc == BRC_OK)
        rc = brc_buf_reserve(dst, (size_t)state->n * state->from.size, err);
    for (uint64_t i = 0; i < state->n && rc == BRC_OK; i++) {
        fixed_scale_decode_one(state, dst->data + dst->len, src.data + i * state->to.size);
        dst->len += state->from.size;
    }
    return rc;
}

int brc_codec_fixed_scale_register(brc_registry *reg, brc_error *err)
{
    static const brc_codec_spec spec = {
        .size = sizeof(spec),
        .name = "numcodecs.fixedscaleoffset",
        .kind = BRC_ARRAY_TO_ARRAY,
        .open = fixed_scale_open,
        .close = fixed_scale_close,
        .write_config = fixed_scale_write_config,
    };
    static const brc_codec_impl impl = {
        .size = sizeof(impl),
        .spec = "numcodecs.fixedscaleoffset",
        .name = "portable",
        .encode = fixed_scale_encode,
        .decode = fixed_scale_decode,
    };

    return brc_codec_add(reg, &spec, &impl, err);
}
