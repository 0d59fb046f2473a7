/*
 * "reshape": another shape for the same elements in the same order, and
 * "zarrs.squeeze": axes of extent 1 removed. Neither touches a byte.
 *
 * An item of reshape's list is an extent, -1 (the remaining extent, at most once), or a list
 * of input axes whose extents are multiplied. A list promises that the output axis runs
 * along these input axes, so the products before and after these axes must agree too.
 */
#include "builtin.h"
#include "lib/codec_help.h"

#include <stdlib.h>

struct reshape_state {
    int ndim;
    /* for each item: the extent, 0 for -1; or naxes axes from `first` on in axes[] */
    uint64_t extent[BRC_MAX_NDIM];
    int is_list[BRC_MAX_NDIM], first[BRC_MAX_NDIM], naxes[BRC_MAX_NDIM];
    int axes[BRC_MAX_NDIM], total_axes;
};

static uint64_t reshape_product(const uint64_t *shape, int from, int to)
{
    uint64_t product = 1;

    for (int i = from; i < to; i++)
        product = shape[i] == 0 || product == 0 ? 0 : brc_codec_times(product, shape[i]);
    return product;
}

/* ---- the list ----------------------------------------------------------------------- */

static int reshape_read_axes(struct reshape_state *state, int item, const brc_json *list,
                             const brc_proto *in, brc_error *err)
{
    size_t n = brc_json_count(list);

    state->is_list[item] = 1;
    state->first[item] = state->total_axes;
    for (size_t i = 0; i < n; i++) {
        int64_t axis = 0;
        int last = state->total_axes > 0 ? state->axes[state->total_axes - 1] : -1;
        if (!brc_json_int(brc_json_item(list, i), 0, in->ndim - 1, &axis) || axis <= last)
            return brc_fail(err, BRC_EINVAL,
                            "\"shape\" must name axes of the input, 0 to %d, in increasing order",
                            in->ndim - 1);
        state->axes[state->total_axes++] = (int)axis;
    }
    state->naxes[item] = (int)n;
    return BRC_OK;
}

static int reshape_read_item(struct reshape_state *state, int item, const brc_json *value,
                             const brc_proto *in, int *missing, brc_error *err)
{
    int64_t left = 0;

    if (brc_json_kind(value) == BRC_JSON_ARRAY)
        return reshape_read_axes(state, item, value, in, err);
    if (brc_json_int(value, -1, -1, &left)) {
        if (*missing >= 0)
            return brc_fail(err, BRC_EINVAL, "\"shape\" has more than one -1");
        *missing = item;
        return BRC_OK;
    }
    if (!brc_json_uint(value, INT64_MAX, &state->extent[item]) || state->extent[item] == 0)
        return brc_fail(err, BRC_EINVAL,
                        "\"shape\" must have extents above zero, -1, or lists of input axes");
    return BRC_OK;
}

static int reshape_read_config(struct reshape_state *state, const brc_json *config,
                               const brc_proto *in, int *missing, brc_error *err)
{
    static const char *const members[] = { "shape" };
    const brc_json *shape = brc_json_member(config, "shape");
    int rc = config != NULL ? brc_json_allow(config, members, 1, err) : BRC_OK;

    if (rc < 0)
        return rc;
    if (brc_json_kind(shape) != BRC_JSON_ARRAY || brc_json_count(shape) > BRC_MAX_NDIM)
        return brc_fail(err, BRC_EINVAL, "\"shape\" must be given: a list of at most %d extents",
                        BRC_MAX_NDIM);
    state->ndim = (int)brc_json_count(shape);
    for (int i = 0; i < state->ndim && rc == BRC_OK; i++)
        rc = reshape_read_item(state, i, brc_json_item(shape, (size_t)i), in, missing, err);
    return rc;
}

/* ---- the shape ---------------------------------------------------------------------- */

/* Checks that the axes of a list are consecutive, and that the products of the extents before
 * and after these axes equal those of the items before and after the list. */
static int reshape_check_axes(const struct reshape_state *state, const brc_proto *in,
                              const brc_proto *out, brc_error *err)
{
    for (int i = 0; i < state->ndim; i++) {
        if (!state->is_list[i] || state->naxes[i] == 0)
            continue;
        int first = state->axes[state->first[i]];
        int last = state->axes[state->first[i] + state->naxes[i] - 1];
        if (reshape_product(out->shape, 0, i) != reshape_product(in->shape, 0, first) ||
            reshape_product(out->shape, i + 1, out->ndim) !=
                reshape_product(in->shape, last + 1, in->ndim))
            return brc_fail(err, BRC_EINVAL,
                            "\"shape\": the items before or after item %d have another number "
                            "of elements than the axes before or after those that it names",
                            i);
    }
    return BRC_OK;
}

static int reshape_derive(const struct reshape_state *state, const brc_proto *in, int missing,
                          brc_proto *out, brc_error *err)
{
    uint64_t total = reshape_product(in->shape, 0, in->ndim);

    out->ndim = state->ndim;
    for (int i = 0; i < state->ndim; i++) {
        out->shape[i] = i == missing ? 1 : state->extent[i];
        if (state->is_list[i])
            out->shape[i] = 1;
        for (int k = 0; state->is_list[i] && k < state->naxes[i]; k++)
            out->shape[i] =
                brc_codec_times(out->shape[i], in->shape[state->axes[state->first[i] + k]]);
    }
    uint64_t rest = reshape_product(out->shape, 0, out->ndim);
    if (missing >= 0 && rest != 0 && total % rest == 0)
        out->shape[missing] = total / rest;
    if (reshape_product(out->shape, 0, out->ndim) != total || total == UINT64_MAX)
        return brc_fail(err, BRC_EINVAL,
                        "\"shape\" has another number of elements than the array's %llu",
                        (unsigned long long)total);
    return reshape_check_axes(state, in, out, err);
}

static int reshape_open(void *ctx, void **out_state, const brc_json *config, const brc_proto *in,
                        brc_proto *out, int *identity, brc_error *err)
{
    (void)ctx;
    struct reshape_state state = { 0 };
    int missing = -1;
    int rc = reshape_read_config(&state, config, in, &missing, err);

    if (rc == BRC_OK)
        rc = reshape_derive(&state, in, missing, out, err);
    if (rc < 0)
        return rc;
    *identity = 1;
    return brc_codec_state_copy(out_state, &state, sizeof(state), err);
}

static int reshape_write_axes(const struct reshape_state *state, int item, brc_buf *out,
                              brc_error *err)
{
    int rc = brc_buf_printf(out, err, "[");

    for (int k = 0; k < state->naxes[item] && rc == BRC_OK; k++)
        rc =
            brc_buf_printf(out, err, "%s%d", k > 0 ? "," : "", state->axes[state->first[item] + k]);
    return rc < 0 ? rc : brc_buf_printf(out, err, "]");
}

static int reshape_write_config(void *ctx, const void *opaque, brc_buf *out, brc_error *err)
{
    (void)ctx;
    const struct reshape_state *state = opaque;
    int rc = brc_buf_printf(out, err, "{\"shape\":[");

    for (int i = 0; i < state->ndim && rc == BRC_OK; i++) {
        if (i > 0)
            rc = brc_buf_append(out, ",", 1, err);
        if (rc == BRC_OK && state->is_list[i])
            rc = reshape_write_axes(state, i, out, err);
        else if (rc == BRC_OK && state->extent[i] == 0)
            rc = brc_buf_append(out, "-1", 2, err);
        else if (rc == BRC_OK)
            rc = brc_buf_printf(out, err, "%llu", (unsigned long long)state->extent[i]);
    }
    return rc < 0 ? rc : brc_buf_printf(out, err, "]}");
}

/* ---- squeeze ------------------------------------------------------------------------ */

static int squeeze_open(void *ctx, void **state, const brc_json *config, const brc_proto *in,
                        brc_proto *out, int *identity, brc_error *err)
{
    (void)ctx;
    int rc = config != NULL ? brc_json_allow(config, NULL, 0, err) : BRC_OK;

    if (rc < 0)
        return rc;
    out->ndim = 0;
    for (int i = 0; i < in->ndim; i++)
        if (in->shape[i] != 1)
            out->shape[out->ndim++] = in->shape[i];
    *identity = 1;
    *state = NULL;
    return BRC_OK;
}

/* ---- both --------------------------------------------------------------------------- */

static int reshape_copy(void *ctx, const void *state, void *scratch, brc_span src, brc_buf *dst,
                        brc_error *err)
{
    (void)ctx;
    (void)state;
    (void)scratch;
    return brc_buf_append(dst, src.data, src.len, err);
}

#define ZARRS_URI "https://codec.zarrs.dev/array_to_array/"

int brc_codec_reshape_register(brc_registry *reg, brc_error *err)
{
    static const brc_codec_spec reshape = {
        .size = sizeof(reshape),
        .name = "reshape",
        .kind = BRC_ARRAY_TO_ARRAY,
        .open = reshape_open,
        .close = brc_codec_state_free,
        .write_config = reshape_write_config,
    };
    static const brc_codec_spec squeeze = {
        .size = sizeof(squeeze),
        .name = "zarrs.squeeze",
        .kind = BRC_ARRAY_TO_ARRAY,
        .open = squeeze_open,
    };
    brc_codec_impl impl = {
        .size = sizeof(impl),
        .spec = "reshape",
        .name = "portable",
        .encode = reshape_copy,
        .decode = reshape_copy,
    };
    static const char *const aliases[][2] = { /* their former names in zarrs */
        { "zarrs.reshape", "reshape" },
        { ZARRS_URI "reshape", "reshape" },
        { ZARRS_URI "squeeze", "zarrs.squeeze" },
    };
    int rc = brc_codec_add(reg, &reshape, &impl, err);

    impl.spec = "zarrs.squeeze";
    if (rc == BRC_OK)
        rc = brc_codec_add(reg, &squeeze, &impl, err);
    for (size_t i = 0; i < sizeof(aliases) / sizeof(aliases[0]) && rc == BRC_OK; i++)
        rc = brc_registry_add_alias(reg, aliases[i][0], aliases[i][1], err);
    return rc;
}
