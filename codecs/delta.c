/*
 * "numcodecs.delta": the first element, then each element minus the one before it, in C
 * order. Decoding adds them up again.
 *
 * Integers wrap around in both directions, so every integer is restored exactly; booleans
 * are xored. Floats are restored only approximately. "astype" stores the differences in
 * another type; encoding refuses an integer difference that this type cannot hold, because
 * decoding would give another value.
 */
#include "builtin.h"
#include "lib/codec_help.h"
#include "lib/number.h"
#include "lib/numpy_type.h"

#include <stdlib.h>
#include <string.h>

struct delta_state {
    brc_dtype *type, *astype;
    brc_numeric from, to; /* set for integers and floats                         */
    int is_bool;
    uint64_t n;
    brc_buf config;
};

static void delta_close(void *ctx, void *opaque)
{
    (void)ctx;
    struct delta_state *state = opaque;

    brc_dtype_free(state->type);
    brc_dtype_free(state->astype);
    brc_buf_dispose(&state->config);
    free(state);
}

/* ---- specification ------------------------------------------------------------------ */

static int delta_read_types(struct delta_state *state, const brc_json *config, const brc_proto *in,
                            brc_error *err)
{
    int rc = brc_numpy_type_open(&state->type, in->registry, config, "dtype", err);

    if (rc == BRC_OK)
        rc = brc_numpy_type_check(state->type, in->dtype, "dtype", err);
    if (rc == BRC_OK)
        rc = brc_numpy_type_open(&state->astype, in->registry, config, "astype", err);
    if (rc == BRC_OK && state->astype == NULL)
        rc = brc_numpy_type_open(&state->astype, in->registry, config, "dtype", err);
    if (rc < 0)
        return rc;
    state->is_bool = state->type->klass == BRC_CLASS_BOOL;
    if (state->is_bool && state->astype->klass != BRC_CLASS_BOOL)
        return brc_fail(err, BRC_EINVAL, "\"astype\" of bool must be bool");
    if (state->is_bool)
        return BRC_OK;
    rc = brc_numeric_open(&state->from, state->type, err);
    if (rc == BRC_OK)
        rc = brc_numeric_open(&state->to, state->astype, err);
    if (rc == BRC_OK && !state->from.is_float && state->to.is_float)
        rc = brc_fail(err, BRC_EINVAL, "\"astype\" of integers must be integers");
    return rc;
}

static int delta_open(void *ctx, void **out_state, const brc_json *config, const brc_proto *in,
                      brc_proto *out, int *identity, brc_error *err)
{
    static const char *const members[] = { "dtype", "astype" };
    (void)identity;
    struct delta_state *state = calloc(1, sizeof(*state));

    if (state == NULL)
        return brc_fail(err, BRC_ENOMEM, "out of memory");
    int rc = config != NULL ? brc_json_allow(config, members, 2, err) : BRC_OK;
    if (rc == BRC_OK)
        rc = delta_read_types(state, config, in, err);
    if (rc == BRC_OK)
        rc = brc_codec_count(&state->n, in, err);
    if (rc == BRC_OK)
        rc = brc_json_write(&state->config, config, 0, err);
    if (rc == BRC_OK)
        rc = brc_codec_retype(out, state->n, state->astype, err);
    if (rc < 0) {
        delta_close(ctx, state);
        return rc;
    }
    out->fill = (brc_span){ NULL, 0 };
    out->flags = state->from.is_float ? BRC_CODEC_LOSSY : 0;
    *out_state = state;
    return BRC_OK;
}

static int delta_write_config(void *ctx, const void *opaque, brc_buf *out, brc_error *err)
{
    (void)ctx;
    const struct delta_state *state = opaque;

    return brc_buf_append(out, state->config.data, state->config.len, err);
}

/* ---- implementation ----------------------------------------------------------------- */

/* Handles integers that are stored in their own width, with one loop for each width. */
#define DELTA_LOOPS(bits_)                                                                     \
    static void delta_encode_##bits_(uint8_t *dst, const uint8_t *src, uint64_t n)             \
    {                                                                                          \
        uint##bits_##_t last = 0;                                                              \
        for (uint64_t i = 0; i < n; i++) {                                                     \
            uint##bits_##_t value =                                                            \
                (uint##bits_##_t)brc_codec_load(src + i * sizeof(value), sizeof(value));       \
            brc_codec_store(dst + i * sizeof(value), sizeof(value),                            \
                            (uint##bits_##_t)(value - last));                                  \
            last = value;                                                                      \
        }                                                                                      \
    }                                                                                          \
    static void delta_decode_##bits_(uint8_t *dst, const uint8_t *src, uint64_t n)             \
    {                                                                                          \
        uint##bits_##_t sum = 0;                                                               \
        for (uint64_t i = 0; i < n; i++) {                                                     \
            sum = (uint##bits_##_t)(sum + brc_codec_load(src + i * sizeof(sum), sizeof(sum))); \
            brc_codec_store(dst + i * sizeof(sum), sizeof(sum), sum);                          \
        }                                                                                      \
    }
DELTA_LOOPS(8)
DELTA_LOOPS(16)
DELTA_LOOPS(32)
DELTA_LOOPS(64)

typedef void delta_loop(uint8_t *dst, const uint8_t *src, uint64_t n);

static delta_loop *delta_find_loop(size_t size, int decode)
{
    switch (size) {
    case 1:
        return decode ? delta_decode_8 : delta_encode_8;
    case 2:
        return decode ? delta_decode_16 : delta_encode_16;
    case 4:
        return decode ? delta_decode_32 : delta_encode_32;
    default:
        return decode ? delta_decode_64 : delta_encode_64;
    }
}

static void delta_bools(uint8_t *dst, const uint8_t *src, uint64_t n, int decode)
{
    uint8_t last = 0;

    for (uint64_t i = 0; i < n; i++) {
        uint8_t value = src[i] != 0, out = value ^ last;
        dst[i] = out;
        last = decode ? out : value;
    }
}

/* Loads an element as 64 bits, with its sign extended. */
static uint64_t delta_load(const brc_numeric *numeric, const uint8_t *element)
{
    uint64_t bits = brc_codec_load(element, numeric->size);
    uint64_t sign = UINT64_C(1) << (8 * numeric->size - 1);

    return numeric->is_signed && (bits & sign) != 0 ? bits | ~(sign - 1) : bits;
}

static int delta_encode_integers(const struct delta_state *state, uint8_t *dst, const uint8_t *src,
                                 brc_error *err)
{
    size_t size = state->from.size, to = state->to.size;
    uint64_t last = 0;
    uint8_t wrapped[8];

    for (uint64_t i = 0; i < state->n; i++) {
        uint64_t value = delta_load(&state->from, src + i * size);
        brc_codec_store(wrapped, size, value - last);
        uint64_t difference = delta_load(&state->from, wrapped);
        brc_codec_store(dst + i * to, to, difference);
        brc_codec_store(wrapped, size, delta_load(&state->to, dst + i * to));
        if (delta_load(&state->from, wrapped) != difference)
            return brc_fail(err, BRC_EINVAL, "the difference before element %llu does not fit %s",
                            (unsigned long long)i, state->astype->name);
        last = value;
    }
    return BRC_OK;
}

static void delta_decode_integers(const struct delta_state *state, uint8_t *dst, const uint8_t *src)
{
    uint64_t sum = 0;

    for (uint64_t i = 0; i < state->n; i++) {
        sum += delta_load(&state->to, src + i * state->to.size);
        brc_codec_store(dst + i * state->from.size, state->from.size, sum);
    }
}

static void delta_floats(const struct delta_state *state, uint8_t *dst, const uint8_t *src,
                         int decode)
{
    const brc_numeric *in = decode ? &state->to : &state->from;
    const brc_numeric *out = decode ? &state->from : &state->to;
    double last = 0;

    for (uint64_t i = 0; i < state->n; i++) {
        double value = brc_numeric_to_double(in, src + i * in->size);
        double result = i == 0 ? value : decode ? last + value : value - last;
        result = brc_numeric_round(&state->from, result);
        brc_numeric_cast(out, brc_number_of_double(result), dst + i * out->size);
        last = decode ? result : value;
    }
}

static int delta_run(const struct delta_state *state, uint8_t *dst, const uint8_t *src, int decode,
                     brc_error *err)
{
    if (state->is_bool)
        delta_bools(dst, src, state->n, decode);
    else if (state->from.is_float)
        delta_floats(state, dst, src, decode);
    else if (state->from.size == state->to.size)
        delta_find_loop(state->from.size, decode)(dst, src, state->n);
    else if (decode)
        delta_decode_integers(state, dst, src);
    else
        return delta_encode_integers(state, dst, src, err);
    return BRC_OK;
}

static int delta_convert(const struct delta_state *state, brc_span src, int decode, brc_buf *dst,
                         brc_error *err)
{
    size_t in = (decode ? state->astype : state->type)->item_size;
    size_t out = (decode ? state->type : state->astype)->item_size;
    int rc = brc_codec_expect_len(src, state->n * in, err);

    if (rc == BRC_OK)
        rc = brc_buf_reserve(dst, (size_t)state->n * out, err);
    if (rc < 0 || state->n == 0)
        return rc;
    rc = delta_run(state, dst->data + dst->len, src.data, decode, err);
    if (rc == BRC_OK)
        dst->len += (size_t)state->n * out;
    return rc;
}

static int delta_encode(void *ctx, const void *opaque, void *scratch, brc_span src, brc_buf *dst,
                        brc_error *err)
{
    (void)ctx;
    (void)scratch;
    return delta_convert(opaque, src, 0, dst, err);
}

static int delta_decode(void *ctx, const void *opaque, void *scratch, brc_span src, brc_buf *dst,
                        brc_error *err)
{
    (void)ctx;
    (void)scratch;
    return delta_convert(opaque, src, 1, dst, err);
}

int brc_codec_delta_register(brc_registry *reg, brc_error *err)
{
    static const brc_codec_spec spec = {
        .size = sizeof(spec),
        .name = "numcodecs.delta",
        .kind = BRC_ARRAY_TO_ARRAY,
        .open = delta_open,
        .close = delta_close,
        .write_config = delta_write_config,
    };
    static const brc_codec_impl impl = {
        .size = sizeof(impl),
        .spec = "numcodecs.delta",
        .name = "portable",
        .encode = delta_encode,
        .decode = delta_decode,
    };

    return brc_codec_add(reg, &spec, &impl, err);
}
