/*
 * "transpose": the axes in another order.
 *
 *     B = encode(A):  B.shape[i] = A.shape[order[i]],  B[x] = A[y] with y[order[i]] = x[i]
 *
 * A swap of two axes equals its inverse, so only an order such as [2, 0, 1] shows the
 * direction. Elements of variable length are permuted one by one: a plan treats them as
 * items of one byte, so that an offset in bytes is an element's number.
 */
#include "builtin.h"
#include "lib/codec_help.h"

#include <stdlib.h>
#include <string.h>

/* One axis of a copy: its extent, and the bytes from one element to the next on both sides. */
struct transpose_axis {
    size_t n, dst, src;
};

/* A copy between two packed arrays. Axes of extent 1 are left out, axes that are adjacent on
 * both sides are merged, and the destination's fastest axis is the last. */
struct transpose_plan {
    int ndim;
    struct transpose_axis axis[BRC_MAX_NDIM];
};

struct transpose_state {
    int ndim;
    int order[BRC_MAX_NDIM];
    size_t item;     /* 1 for elements of variable length                        */
    uint64_t len, n; /* bytes or BRC_LEN_VARIES; elements                        */
    int varies;
    struct transpose_plan encode, decode;
    struct transpose_axis axis[BRC_MAX_NDIM]; /* of the decoded array: dst is its own stride,
                                                 src the stride in the encoded array */
};

/* ---- specification ------------------------------------------------------------------ */

static int transpose_read_list(struct transpose_state *state, const brc_json *order, brc_error *err)
{
    uint8_t seen[BRC_MAX_NDIM] = { 0 };

    if (brc_json_count(order) != (size_t)state->ndim)
        return brc_fail(err, BRC_EINVAL, "\"order\" has %zu axes, the array %d",
                        brc_json_count(order), state->ndim);
    for (int i = 0; i < state->ndim; i++) {
        int64_t axis = 0;
        if (!brc_json_int(brc_json_item(order, (size_t)i), 0, state->ndim - 1, &axis) || seen[axis])
            return brc_fail(err, BRC_EINVAL, "\"order\" must have each of the axes 0 to %d once",
                            state->ndim - 1);
        seen[axis] = 1;
        state->order[i] = (int)axis;
    }
    return BRC_OK;
}

/* Reads the letters of drafts of the format: "C" for no change, "F" for all axes reversed. */
static int transpose_read_letter(struct transpose_state *state, const brc_json *letter,
                                 brc_error *err)
{
    int is_c = brc_json_is(letter, "C");
    if (!is_c && !brc_json_is(letter, "F"))
        return brc_fail(err, BRC_EINVAL, "\"order\" must be a list of axes");
    for (int i = 0; i < state->ndim; i++)
        state->order[i] = is_c ? i : state->ndim - 1 - i;
    return BRC_OK;
}

static int transpose_read_config(struct transpose_state *state, const brc_json *config,
                                 brc_error *err)
{
    static const char *const members[] = { "order" };
    const brc_json *order = brc_json_member(config, "order");

    if (config != NULL) {
        int rc = brc_json_allow(config, members, 1, err);
        if (rc < 0)
            return rc;
    }
    if (brc_json_kind(order) == BRC_JSON_ARRAY)
        return transpose_read_list(state, order, err);
    if (brc_json_kind(order) == BRC_JSON_STRING)
        return transpose_read_letter(state, order, err);
    return brc_fail(err, BRC_EINVAL, "\"order\" must be given: a list of axes");
}

/* ---- plans -------------------------------------------------------------------------- */

/* Adds an axis after the last one, or merges the two if one step of the last axis spans this
 * whole axis on both sides. */
static void transpose_plan_join(struct transpose_plan *plan, struct transpose_axis axis)
{
    if (plan->ndim > 0) {
        struct transpose_axis *last = &plan->axis[plan->ndim - 1];
        if (last->dst == axis.n * axis.dst && last->src == axis.n * axis.src) {
            last->n *= axis.n;
            last->dst = axis.dst;
            last->src = axis.src;
            return;
        }
    }
    plan->axis[plan->ndim++] = axis;
}

static void transpose_plan_add(struct transpose_plan *plan, struct transpose_axis axis)
{
    if (axis.n > 1)
        transpose_plan_join(plan, axis);
}

static void transpose_strides(size_t *stride, int ndim, const uint64_t *shape, size_t item)
{
    for (int i = ndim - 1; i >= 0; i--) {
        stride[i] = item;
        item *= (size_t)shape[i];
    }
}

/* Makes the plans of both directions. The caller has checked that the array's length in bytes
 * fits size_t and is not zero. */
static void transpose_make_plans(struct transpose_state *state, const uint64_t *a_shape,
                                 const uint64_t *b_shape)
{
    size_t a_stride[BRC_MAX_NDIM], b_stride[BRC_MAX_NDIM];
    int inverse[BRC_MAX_NDIM];

    transpose_strides(a_stride, state->ndim, a_shape, state->item);
    transpose_strides(b_stride, state->ndim, b_shape, state->item);
    for (int i = 0; i < state->ndim; i++) {
        int a = state->order[i];
        inverse[a] = i;
        transpose_plan_add(&state->encode,
                           (struct transpose_axis){ (size_t)b_shape[i], b_stride[i], a_stride[a] });
    }
    for (int i = 0; i < state->ndim; i++) {
        size_t b = b_stride[inverse[i]];
        state->axis[i] = (struct transpose_axis){ (size_t)a_shape[i], a_stride[i], b };
        transpose_plan_add(&state->decode, state->axis[i]);
    }
}

static int transpose_open(void *ctx, void **out_state, const brc_json *config, const brc_proto *in,
                          brc_proto *out, int *identity, brc_error *err)
{
    (void)ctx;
    struct transpose_state *state = calloc(1, sizeof(*state));

    if (state == NULL)
        return brc_fail(err, BRC_ENOMEM, "out of memory");
    state->ndim = in->ndim;
    state->varies = in->dtype->item_size == 0;
    state->item = state->varies ? 1 : in->dtype->item_size;
    state->len = in->len;
    int rc = transpose_read_config(state, config, err);
    if (rc == BRC_OK)
        rc = brc_codec_count(&state->n, in, err);
    if (rc < 0) {
        free(state);
        return rc;
    }
    for (int i = 0; i < in->ndim; i++)
        out->shape[i] = in->shape[state->order[i]];
    if (state->n > 0)
        transpose_make_plans(state, in->shape, out->shape);
    *identity = state->n == 0 || (state->encode.ndim == 0) ||
                (state->encode.ndim == 1 && state->encode.axis[0].src == state->encode.axis[0].dst);
    *out_state = state;
    return BRC_OK;
}

static void transpose_close(void *ctx, void *state)
{
    (void)ctx;
    free(state);
}

static int transpose_write_config(void *ctx, const void *opaque, brc_buf *out, brc_error *err)
{
    (void)ctx;
    const struct transpose_state *state = opaque;
    int rc = brc_buf_printf(out, err, "{\"order\":[");

    for (int i = 0; i < state->ndim && rc == BRC_OK; i++)
        rc = brc_buf_printf(out, err, "%s%d", i > 0 ? "," : "", state->order[i]);
    return rc < 0 ? rc : brc_buf_printf(out, err, "]}");
}

/* ---- implementation: blocked copies -------------------------------------------------
 *
 * Where both sides have the same fastest axis, runs are copied. Otherwise the fastest axes
 * of the source and of the destination make a plane, which is copied in tiles: the cache
 * lines of both sides of a tile stay in the first-level cache until they are used up.
 */
enum { TRANSPOSE_TILE = 32 };

static void transpose_copy_runs(const struct transpose_axis *run, uint8_t *dst, const uint8_t *src,
                                size_t item)
{
    memcpy(dst, src, run->n * item);
}

/* Every caller passes a constant `item`, so the compiler makes one move of the copy. */
static inline __attribute__((always_inline)) void
transpose_copy_tile(uint8_t *dst, const uint8_t *src, size_t rows, size_t cols, size_t dst_step,
                    size_t src_step, size_t item)
{
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < cols; c++)
            memcpy(dst + r * dst_step + c * item, src + c * src_step + r * item, item);
}

static void transpose_copy_tile_of(uint8_t *dst, const uint8_t *src, size_t rows, size_t cols,
                                   size_t dst_step, size_t src_step, size_t item)
{
    switch (item) {
    case 1:
        transpose_copy_tile(dst, src, rows, cols, dst_step, src_step, 1);
        break;
    case 2:
        transpose_copy_tile(dst, src, rows, cols, dst_step, src_step, 2);
        break;
    case 4:
        transpose_copy_tile(dst, src, rows, cols, dst_step, src_step, 4);
        break;
    case 8:
        transpose_copy_tile(dst, src, rows, cols, dst_step, src_step, 8);
        break;
    case 16:
        transpose_copy_tile(dst, src, rows, cols, dst_step, src_step, 16);
        break;
    default:
        for (size_t r = 0; r < rows; r++)
            for (size_t c = 0; c < cols; c++)
                memcpy(dst + r * dst_step + c * item, src + c * src_step + r * item, item);
    }
}

/* Copies a plane. rows is the source's fastest axis, cols the destination's. */
static void transpose_copy_plane(const struct transpose_axis *rows,
                                 const struct transpose_axis *cols, uint8_t *dst,
                                 const uint8_t *src, size_t item)
{
    for (size_t r = 0; r < rows->n; r += TRANSPOSE_TILE) {
        size_t nr = rows->n - r < TRANSPOSE_TILE ? rows->n - r : TRANSPOSE_TILE;
        for (size_t c = 0; c < cols->n; c += TRANSPOSE_TILE) {
            size_t nc = cols->n - c < TRANSPOSE_TILE ? cols->n - c : TRANSPOSE_TILE;
            transpose_copy_tile_of(dst + r * rows->dst + c * item, src + c * cols->src + r * item,
                                   nr, nc, rows->dst, cols->src, item);
        }
    }
}

/* Steps through the outer axes in C order. Returns 0 after the last place. */
static int transpose_next(size_t *index, const struct transpose_axis *const *outer, int n,
                          size_t *dst, size_t *src)
{
    for (int i = n - 1; i >= 0; i--) {
        *dst += outer[i]->dst;
        *src += outer[i]->src;
        if (++index[i] < outer[i]->n)
            return 1;
        *dst -= outer[i]->n * outer[i]->dst;
        *src -= outer[i]->n * outer[i]->src;
        index[i] = 0;
    }
    return 0;
}

static void transpose_run_plan(const struct transpose_plan *plan, uint8_t *dst, const uint8_t *src,
                               size_t item)
{
    const struct transpose_axis *outer[BRC_MAX_NDIM], *cols = &plan->axis[plan->ndim - 1],
                                                      *rows = NULL;
    size_t index[BRC_MAX_NDIM] = { 0 }, dst_at = 0, src_at = 0;
    int nouter = 0;

    for (int i = 0; i < plan->ndim - 1; i++) {
        if (cols->src != item && plan->axis[i].src == item)
            rows = &plan->axis[i];
        else
            outer[nouter++] = &plan->axis[i];
    }
    do {
        if (rows != NULL)
            transpose_copy_plane(rows, cols, dst + dst_at, src + src_at, item);
        else
            transpose_copy_runs(cols, dst + dst_at, src + src_at, item);
    } while (transpose_next(index, outer, nouter, &dst_at, &src_at));
}

/* Copies elements of variable length from the source in the destination's order. */
static int transpose_gather(const struct transpose_plan *plan, const uint32_t *offsets,
                            brc_span src, brc_buf *dst, brc_error *err)
{
    const struct transpose_axis *axes[BRC_MAX_NDIM];
    size_t index[BRC_MAX_NDIM] = { 0 }, to = 0, from = 0;
    int rc = brc_buf_reserve(dst, src.len, err);

    for (int i = 0; i < plan->ndim; i++)
        axes[i] = &plan->axis[i];
    if (rc < 0)
        return rc;
    do {
        rc = brc_buf_append(dst, src.data + offsets[from], offsets[from + 1] - offsets[from], err);
    } while (rc == BRC_OK && transpose_next(index, axes, plan->ndim, &to, &from));
    return rc;
}

static int transpose_convert_varying(const struct transpose_state *state,
                                     const struct transpose_plan *plan, brc_span src, brc_buf *dst,
                                     brc_error *err)
{
    uint32_t *offsets = NULL;
    int rc = brc_codec_new_index(&offsets, state->n, src, err);

    if (rc == BRC_OK)
        rc = transpose_gather(plan, offsets, src, dst, err);
    free(offsets);
    return rc;
}

static int transpose_convert(const struct transpose_state *state, const struct transpose_plan *plan,
                             brc_span src, brc_buf *dst, brc_error *err)
{
    if (state->varies && state->n > 0)
        return transpose_convert_varying(state, plan, src, dst, err);
    if (state->varies)
        return brc_buf_append(dst, src.data, src.len, err);
    if (src.len != state->len)
        return brc_fail(err, BRC_ECORRUPT, "%llu bytes are expected, not %zu",
                        (unsigned long long)state->len, src.len);
    if (plan->ndim == 0)
        return brc_buf_append(dst, src.data, src.len, err);
    int rc = brc_buf_reserve(dst, src.len, err);
    if (rc < 0)
        return rc;
    transpose_run_plan(plan, dst->data + dst->len, src.data, state->item);
    dst->len += src.len;
    return BRC_OK;
}

static int transpose_encode(void *ctx, const void *opaque, void *scratch, brc_span src,
                            brc_buf *dst, brc_error *err)
{
    (void)ctx;
    (void)scratch;
    const struct transpose_state *state = opaque;

    return transpose_convert(state, &state->encode, src, dst, err);
}

static int transpose_decode(void *ctx, const void *opaque, void *scratch, brc_span src,
                            brc_buf *dst, brc_error *err)
{
    (void)ctx;
    (void)scratch;
    const struct transpose_state *state = opaque;

    return transpose_convert(state, &state->decode, src, dst, err);
}

/* Makes the plan for a box. The plan keeps the fastest axes of both sides, even with one element,
 * because the copy depends on them. Sets *to and *from to the bytes where the box begins. */
static void transpose_box_plan(struct transpose_plan *plan, const struct transpose_state *state,
                               const brc_box *box, size_t *to, size_t *from)
{
    plan->ndim = 0;
    *to = *from = 0;
    for (int i = 0; i < state->ndim; i++) {
        struct transpose_axis axis = state->axis[i];
        if (axis.n == 1)
            continue;
        *to += (size_t)box->start[i] * axis.dst;
        *from += (size_t)box->start[i] * axis.src;
        axis.n = (size_t)box->count[i];
        if (axis.n > 1 || axis.dst == state->item || axis.src == state->item)
            transpose_plan_join(plan, axis);
    }
}

static int transpose_decode_box(void *ctx, const void *opaque, void *scratch, brc_span src,
                                const brc_box *box, brc_buf *dst, brc_error *err)
{
    const struct transpose_state *state = opaque;
    struct transpose_plan plan;
    size_t to, from;

    if (src.len != state->len || state->n == 0)
        return transpose_decode(ctx, opaque, scratch, src, dst, err);
    int rc = brc_buf_reserve(dst, src.len, err);
    if (rc < 0)
        return rc;
    transpose_box_plan(&plan, state, box, &to, &from);
    transpose_run_plan(&plan, dst->data + dst->len + to, src.data + from, state->item);
    dst->len += src.len;
    return BRC_OK;
}

static void transpose_source_box(void *ctx, const void *opaque, const brc_box *box, brc_box *out)
{
    (void)ctx;
    const struct transpose_state *state = opaque;

    for (int i = 0; i < state->ndim; i++) {
        out->start[i] = box->start[state->order[i]];
        out->count[i] = box->count[state->order[i]];
    }
}

int brc_codec_transpose_register(brc_registry *reg, brc_error *err)
{
    static const brc_codec_spec spec = {
        .size = sizeof(spec),
        .name = "transpose",
        .kind = BRC_ARRAY_TO_ARRAY,
        .open = transpose_open,
        .close = transpose_close,
        .write_config = transpose_write_config,
    };
    static const brc_codec_impl impl = {
        .size = sizeof(impl),
        .spec = "transpose",
        .name = "portable",
        .encode = transpose_encode,
        .decode = transpose_decode,
        .decode_box = transpose_decode_box,
        .source_box = transpose_source_box,
    };
    int rc = brc_registry_add_codec(reg, &spec, err);

    return rc < 0 ? rc : brc_registry_add_impl(reg, &impl, err);
}
