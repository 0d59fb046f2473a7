/*
 * "cast_value": the same values in another real data type.
 *
 * In both directions the first of these that applies converts an element: the first match
 * in the scalar map of that direction; the exact value, where the other type has it;
 * rounding; and "out_of_range", if the rounded value is out of the type's range. The fill
 * value must survive both directions, otherwise an array would read differently where
 * nothing is stored.
 */
#include "builtin.h"
#include "lib/codec_help.h"
#include "lib/number.h"

#include <stdlib.h>
#include <string.h>

static const char *const cast_roundings[] = { "nearest-even", "towards-zero", "towards-positive",
                                              "towards-negative", "nearest-away" };
static const char *const cast_ranges[] = { "error", "clamp", "wrap" };

struct cast_pair {
    brc_number from;
    uint8_t to[8];
};

/* One direction. */
struct cast_way {
    brc_numeric from, to;
    int range;
    size_t npairs;
    struct cast_pair *pairs;
};

struct cast_state {
    brc_dtype *type; /* stored type                                              */
    struct cast_way encode, decode;
    int rounding;
    uint64_t n;
    brc_buf config;
    uint8_t fill[8];
};

static void cast_close(void *ctx, void *opaque)
{
    (void)ctx;
    struct cast_state *state = opaque;

    free(state->encode.pairs);
    free(state->decode.pairs);
    brc_dtype_free(state->type);
    brc_buf_dispose(&state->config);
    free(state);
}

/* ---- one element -------------------------------------------------------------------- */

static int cast_one(const struct cast_state *state, const struct cast_way *way, uint8_t *dst,
                    const uint8_t *src, brc_error *err)
{
    brc_number number = brc_numeric_load(&way->from, src);

    for (size_t i = 0; i < way->npairs; i++) {
        if (brc_number_compare(number, way->pairs[i].from) == 0) {
            memcpy(dst, way->pairs[i].to, way->to.size);
            return BRC_OK;
        }
    }
    return brc_numeric_store(&way->to, number, state->rounding, way->range, dst, err);
}

/* ---- the configuration -------------------------------------------------------------- */

static int cast_read_choice(const brc_json *config, const char *name, const char *const *choices,
                            int n, int *out, brc_error *err)
{
    const brc_json *value = brc_json_member(config, name);
    int found = brc_json_choice(value, choices, (size_t)n);

    if (found >= 0)
        *out = found;
    if (value == NULL || found >= 0)
        return BRC_OK;
    return brc_fail(err, BRC_EINVAL, "\"%s\" has an unknown value; \"%s\" is one", name,
                    choices[n - 1]);
}

static int cast_read_element(const brc_numeric *numeric, const brc_json *json, uint8_t *out,
                             brc_error *err)
{
    brc_buf element = BRC_BUF_INIT;
    int rc = numeric->type->ops->parse(numeric->type, json, &element, err);

    if (rc == BRC_OK && element.len != numeric->size)
        rc = brc_fail(err, BRC_EINTERNAL, "%s gives elements of another length",
                      numeric->type->name);
    if (rc == BRC_OK)
        memcpy(out, element.data, numeric->size);
    brc_buf_dispose(&element);
    return rc;
}

static int cast_read_pairs(struct cast_way *way, const brc_json *map, const char *name,
                           brc_error *err)
{
    const brc_json *list = brc_json_member(map, name);
    size_t n = brc_json_count(list);
    uint8_t from[8];

    if (list == NULL)
        return BRC_OK;
    if (brc_json_kind(list) != BRC_JSON_ARRAY)
        return brc_fail(err, BRC_EINVAL, "\"scalar_map\": \"%s\" must be a list of pairs", name);
    way->pairs = calloc(n + 1, sizeof(*way->pairs));
    if (way->pairs == NULL)
        return brc_fail(err, BRC_ENOMEM, "out of memory");
    for (size_t i = 0; i < n; i++) {
        const brc_json *pair = brc_json_item(list, i);
        if (brc_json_kind(pair) != BRC_JSON_ARRAY || brc_json_count(pair) != 2)
            return brc_fail(err, BRC_EINVAL, "\"scalar_map\": item %zu of \"%s\" is not a pair", i,
                            name);
        int rc = cast_read_element(&way->from, brc_json_item(pair, 0), from, err);
        if (rc == BRC_OK)
            rc = cast_read_element(&way->to, brc_json_item(pair, 1), way->pairs[i].to, err);
        if (rc < 0) {
            brc_context(err, "\"scalar_map\": item %zu of \"%s\"", i, name);
            return rc;
        }
        way->pairs[i].from = brc_numeric_load(&way->from, from);
    }
    way->npairs = n;
    return BRC_OK;
}

static int cast_read_map(struct cast_state *state, const brc_json *map, brc_error *err)
{
    static const char *const members[] = { "encode", "decode" };

    if (map == NULL)
        return BRC_OK;
    if (brc_json_kind(map) != BRC_JSON_OBJECT)
        return brc_fail(err, BRC_EINVAL, "\"scalar_map\" must be an object");
    int rc = brc_json_allow(map, members, 2, err);
    if (rc == BRC_OK)
        rc = cast_read_pairs(&state->encode, map, "encode", err);
    return rc < 0 ? rc : cast_read_pairs(&state->decode, map, "decode", err);
}

static int cast_read_types(struct cast_state *state, const brc_json *config, const brc_proto *in,
                           brc_error *err)
{
    const brc_json *type = brc_json_member(config, "data_type");
    int rc = BRC_OK;

    if (type == NULL)
        return brc_fail(err, BRC_EINVAL, "\"data_type\" must be given");
    rc = brc_dtype_open(&state->type, in->registry, type, NULL, err);
    if (rc == BRC_OK)
        rc = brc_numeric_open(&state->encode.from, in->dtype, err);
    if (rc == BRC_OK)
        rc = brc_numeric_open(&state->encode.to, state->type, err);
    if (rc < 0)
        return rc;
    state->decode.from = state->encode.to;
    state->decode.to = state->encode.from;
    return BRC_OK;
}

static int cast_read_config(struct cast_state *state, const brc_json *config, const brc_proto *in,
                            brc_error *err)
{
    static const char *const members[] = { "data_type", "rounding", "out_of_range", "scalar_map" };
    int range = BRC_RANGE_ERROR;
    int rc = config != NULL ? brc_json_allow(config, members, 4, err) : BRC_OK;

    if (rc == BRC_OK)
        rc = cast_read_types(state, config, in, err);
    if (rc == BRC_OK)
        rc = cast_read_choice(config, "rounding", cast_roundings, 5, &state->rounding, err);
    if (rc == BRC_OK)
        rc = cast_read_choice(config, "out_of_range", cast_ranges, 3, &range, err);
    if (rc < 0)
        return rc;
    if (range == BRC_RANGE_WRAP && state->encode.to.is_float)
        return brc_fail(err, BRC_EINVAL,
                        "\"out_of_range\" cannot be \"wrap\" for %s: only integers wrap around",
                        state->type->name);
    state->encode.range = state->decode.range = range;
    if (range == BRC_RANGE_WRAP && state->decode.to.is_float)
        state->decode.range = BRC_RANGE_ERROR;
    rc = cast_read_map(state, brc_json_member(config, "scalar_map"), err);
    if (rc == BRC_OK)
        rc = brc_codec_count(&state->n, in, err);
    return rc < 0 ? rc : brc_json_write(&state->config, config, 0, err);
}

/* ---- specification ------------------------------------------------------------------ */

static int cast_read_fill(struct cast_state *state, brc_span fill, brc_error *err)
{
    uint8_t back[8];

    int rc = cast_one(state, &state->encode, state->fill, fill.data, err);
    if (rc == BRC_OK)
        rc = cast_one(state, &state->decode, back, state->fill, err);
    if (rc == BRC_OK && brc_number_compare(brc_numeric_load(&state->encode.from, fill.data),
                                           brc_numeric_load(&state->decode.to, back)) != 0)
        rc = brc_fail(err, BRC_EINVAL, "decoding from %s gives another value", state->type->name);
    if (rc < 0)
        brc_context(err, "the fill value");
    return rc;
}

/* Returns 1 if every value of the array's type is a value of the stored type, so that the codec
 * loses nothing. */
static int cast_is_exact(const struct cast_state *state)
{
    const brc_numeric *from = &state->encode.from, *to = &state->encode.to;

    if (from->is_float || state->encode.npairs > 0 || state->decode.npairs > 0)
        return 0;
    if (to->is_float)
        return to->size > 1 && to->precision >= (int)from->bits && to->emax >= (int)from->bits;
    return from->is_signed == to->is_signed ? to->bits >= from->bits
                                            : to->is_signed && to->bits > from->bits;
}

static int cast_open(void *ctx, void **out_state, const brc_json *config, const brc_proto *in,
                     brc_proto *out, int *identity, brc_error *err)
{
    (void)identity;
    struct cast_state *state = calloc(1, sizeof(*state));

    if (state == NULL)
        return brc_fail(err, BRC_ENOMEM, "out of memory");
    int has_fill = in->fill.data != NULL && in->fill.len == in->dtype->item_size;
    int rc = cast_read_config(state, config, in, err);
    if (rc == BRC_OK && has_fill)
        rc = cast_read_fill(state, in->fill, err);
    if (rc == BRC_OK)
        rc = brc_codec_retype(out, state->n, state->type, err);
    if (rc < 0) {
        cast_close(ctx, state);
        return rc;
    }
    out->flags = cast_is_exact(state) ? 0 : BRC_CODEC_LOSSY;
    out->fill = has_fill ? (brc_span){ state->fill, state->encode.to.size } : (brc_span){ NULL, 0 };
    *out_state = state;
    return BRC_OK;
}

static int cast_write_config(void *ctx, const void *opaque, brc_buf *out, brc_error *err)
{
    (void)ctx;
    const struct cast_state *state = opaque;

    return brc_buf_append(out, state->config.data, state->config.len, err);
}

/* ---- implementation ----------------------------------------------------------------- */

static int cast_convert(const struct cast_state *state, const struct cast_way *way, brc_span src,
                        brc_buf *dst, brc_error *err)
{
    size_t in = way->from.size, out = way->to.size;
    int rc = brc_codec_expect_len(src, state->n * in, err);

    if (rc == BRC_OK)
        rc = brc_buf_reserve(dst, (size_t)state->n * out, err);
    for (uint64_t i = 0; i < state->n && rc == BRC_OK; i++) {
        rc = cast_one(state, way, dst->data + dst->len, src.data + i * in, err);
        dst->len += out;
        if (rc < 0)
            brc_context(err, "element %llu", (unsigned long long)i);
    }
    return rc;
}

static int cast_encode(void *ctx, const void *opaque, void *scratch, brc_span src, brc_buf *dst,
                       brc_error *err)
{
    (void)ctx;
    (void)scratch;
    const struct cast_state *state = opaque;

    return cast_convert(state, &state->encode, src, dst, err);
}

static int cast_decode(void *ctx, const void *opaque, void *scratch, brc_span src, brc_buf *dst,
                       brc_error *err)
{
    (void)ctx;
    (void)scratch;
    const struct cast_state *state = opaque;
    int rc = cast_convert(state, &state->decode, src, dst, err);

    if (rc == BRC_EINVAL) { /* a stored element has no value in the array's type  */
        rc = BRC_ECORRUPT;
        if (err != NULL)
            err->code = rc;
    }
    return rc;
}

int brc_codec_cast_value_register(brc_registry *reg, brc_error *err)
{
    static const brc_codec_spec spec = {
        .size = sizeof(spec),
        .name = "cast_value",
        .kind = BRC_ARRAY_TO_ARRAY,
        .open = cast_open,
        .close = cast_close,
        .write_config = cast_write_config,
    };
    static const brc_codec_impl impl = {
        .size = sizeof(impl),
        .spec = "cast_value",
        .name = "portable",
        .encode = cast_encode,
        .decode = cast_decode,
    };

    return brc_codec_add(reg, &spec, &impl, err);
}
