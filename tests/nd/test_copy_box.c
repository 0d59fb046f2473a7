/*
 * Copying and filling boxes, against a model that moves one element at a time.
 * Random boxes come from a seed that a failure prints.
 */
#include <stdlib.h>
#include <string.h>

#include "../../src/nd/shape.h"
#include "../kit/suite.h"

TEST_SUITE(copy_box);

#define BOX_SEED UINT64_C(0x5eed0b0c)
#define BOX_ROUNDS 3000
#define BOX_BYTES ((size_t)1 << 20)

static uint64_t box_random(uint64_t *state, uint64_t below)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return (*state * UINT64_C(0x2545f4914f6cdd1d) >> 33) % below;
}

static void naive_copy(int ndim, const uint64_t *shape, size_t item, uint8_t *dst,
                       const int64_t *ds, const uint8_t *src, const int64_t *ss)
{
    uint64_t index[BRC_MAX_NDIM] = { 0 };
    for (int d = 0; d < ndim; d++)
        if (shape[d] == 0)
            return;
    do {
        int64_t to = 0, from = 0;
        for (int d = 0; d < ndim; d++) {
            to += (int64_t)index[d] * ds[d];
            from += (int64_t)index[d] * ss[d];
        }
        for (size_t i = 0; i < item; i++)
            dst[to + (int64_t)i] = src[from + (int64_t)i];
    } while (brc_index_next(ndim, index, shape));
}

/*
 * Strides of a random piece of an array with its axes in random order: gaps
 * between elements, axes turned around, and where `zeros`, axes of one place.
 * Returns the bytes that it spans; *origin is where the first element lies.
 */
static size_t random_strides(uint64_t *rng, int ndim, const uint64_t *shape, size_t item, int zeros,
                             int64_t *strides, size_t *origin)
{
    int order[BRC_MAX_NDIM];
    size_t span = item;
    *origin = 0;
    for (int d = 0; d < ndim; d++)
        order[d] = d;
    if (box_random(rng, 2)) {
        for (int d = ndim - 1; d > 0; d--) {
            int other = (int)box_random(rng, (uint64_t)d + 1), kept = order[d];
            order[d] = order[other];
            order[other] = kept;
        }
    }
    for (int i = ndim - 1; i >= 0; i--) {
        int d = order[i];
        uint64_t n = shape[d] > 0 ? shape[d] : 1;
        size_t stride = span + (box_random(rng, 4) == 0 ? box_random(rng, 3) * item : 0);
        if (box_random(rng, 8) == 0)
            stride += 1; /* not aligned */
        if (zeros && box_random(rng, 5) == 0) {
            strides[d] = 0;
            continue;
        }
        strides[d] = (int64_t)stride;
        if (box_random(rng, 6) == 0) {
            strides[d] = -(int64_t)stride;
            *origin += (size_t)(n - 1) * stride;
        }
        span += (size_t)(n - 1) * stride;
    }
    return span;
}

struct box_case {
    int ndim;
    size_t item, dst_at, src_at, dst_span, src_span;
    uint64_t shape[BRC_MAX_NDIM];
    int64_t dst[BRC_MAX_NDIM], src[BRC_MAX_NDIM];
};

/* 0 if the case is too large for the test's memory. */
static int random_box(uint64_t *rng, struct box_case *box)
{
    static const size_t items[] = { 1, 2, 3, 4, 5, 6, 8, 12, 16, 24 };
    static const uint64_t most[] = { 1, 400, 70, 20, 8, 5, 4 };
    box->item = items[box_random(rng, sizeof(items) / sizeof(items[0]))];
    box->ndim = (int)box_random(rng, 7);
    for (int d = 0; d < box->ndim; d++)
        box->shape[d] = 1 + box_random(rng, most[box->ndim]);
    if (box->ndim > 0 && box_random(rng, 40) == 0)
        box->shape[box_random(rng, (uint64_t)box->ndim)] = 0;
    box->dst_span =
        random_strides(rng, box->ndim, box->shape, box->item, 0, box->dst, &box->dst_at);
    box->src_span =
        random_strides(rng, box->ndim, box->shape, box->item, 1, box->src, &box->src_at);
    return box->dst_span <= BOX_BYTES && box->src_span <= BOX_BYTES;
}

CASE("boxes", .timeout = UNTIMED);

TEST(random_boxes_equal_the_model)
{
    uint64_t rng = BOX_SEED;
    uint8_t *source = malloc(BOX_BYTES), *expected = malloc(BOX_BYTES);
    ck_assert(source != NULL && expected != NULL);
    for (size_t i = 0; i < BOX_BYTES; i++)
        source[i] = (uint8_t)box_random(&rng, 256);
    for (int round = 0; round < BOX_ROUNDS; round++) {
        struct box_case box;
        if (!random_box(&rng, &box))
            continue;
        /* memory of the exact size, so that a step outside is seen */
        uint8_t *src = malloc(box.src_span), *dst = malloc(box.dst_span);
        ck_assert(src != NULL && dst != NULL);
        memcpy(src, source, box.src_span);
        memset(dst, 0xee, box.dst_span);
        memset(expected, 0xee, box.dst_span);
        naive_copy(box.ndim, box.shape, box.item, expected + box.dst_at, box.dst, src + box.src_at,
                   box.src);
        brc_copy_box(box.ndim, box.shape, box.item, dst + box.dst_at, box.dst, src + box.src_at,
                     box.src);
        ck_assert_msg(memcmp(dst, expected, box.dst_span) == 0, "seed %#llx, round %d",
                      (unsigned long long)BOX_SEED, round);
        memset(dst, 0xee, box.dst_span);
        memset(expected, 0xee, box.dst_span);
        static const int64_t still[BRC_MAX_NDIM] = { 0 };
        naive_copy(box.ndim, box.shape, box.item, expected + box.dst_at, box.dst, source, still);
        brc_fill_box(box.ndim, box.shape, box.item, dst + box.dst_at, box.dst, source);
        ck_assert_msg(memcmp(dst, expected, box.dst_span) == 0, "seed %#llx, round %d (fill)",
                      (unsigned long long)BOX_SEED, round);
        free(src);
        free(dst);
    }
    free(source);
    free(expected);
}

TEST(transposed_planes_with_ragged_tiles)
{
    const uint64_t shape[] = { 67, 3, 45 };
    const size_t n = 67 * 3 * 45;
    uint32_t *src = malloc(n * 4), *dst = malloc(n * 4);
    ck_assert(src != NULL && dst != NULL);
    for (size_t i = 0; i < n; i++)
        src[i] = (uint32_t)i;
    int64_t from[3];
    const int64_t to[] = { 4, 4 * 67, 4 * 67 * 3 };
    brc_strides_packed(3, shape, 4, from);
    brc_copy_box(3, shape, 4, (uint8_t *)dst, to, (uint8_t *)src, from);
    for (size_t i = 0; i < 67; i++)
        for (size_t j = 0; j < 3; j++)
            for (size_t k = 0; k < 45; k++)
                ck_assert_uint_eq(dst[i + 67 * j + 67 * 3 * k], (i * 3 + j) * 45 + k);
    free(src);
    free(dst);
}

TEST(scalars_and_empty_boxes)
{
    uint8_t dst[4] = { 9, 9, 9, 9 };
    const uint8_t src[4] = { 1, 2, 3, 4 };
    const uint64_t empty[] = { 2, 0 };
    const int64_t strides[] = { 2, 1 };
    brc_copy_box(2, empty, 1, dst, strides, src, strides);
    brc_fill_box(2, empty, 1, dst, strides, src);
    ck_assert_uint_eq(dst[0], 9);
    brc_copy_box(0, NULL, 3, dst, NULL, src, NULL);
    ck_assert_int_eq(memcmp(dst, "\1\2\3\t", 4), 0);
    brc_fill_box(0, NULL, 2, dst, NULL, src + 2);
    ck_assert_int_eq(memcmp(dst, "\3\4\3\t", 4), 0);
    brc_fill_run(dst, 0, 2, src);
    ck_assert_uint_eq(dst[0], 3);
}

TEST(runs_are_filled_to_their_ends)
{
    uint8_t element[5000];
    static const size_t items[] = { 1, 2, 3, 7, 8, 16, 100, 4096, 5000 };
    for (size_t i = 0; i < sizeof(element); i++)
        element[i] = (uint8_t)(i * 7 + 1);
    for (size_t i = 0; i < sizeof(items) / sizeof(items[0]); i++) {
        size_t item = items[i];
        static const uint64_t counts[] = { 1, 2, 3, 5, 64, 1365, 1366, 9000 };
        for (size_t k = 0; k < sizeof(counts) / sizeof(counts[0]); k++) {
            size_t len = item * (size_t)counts[k];
            if (len > BOX_BYTES)
                continue;
            uint8_t *dst = malloc(len);
            ck_assert_ptr_nonnull(dst);
            memset(dst, 0, len);
            brc_fill_run(dst, counts[k], item, element);
            for (size_t at = 0; at < len; at += item)
                ck_assert_int_eq(memcmp(dst + at, element, item), 0);
            free(dst);
        }
    }
}

TEST(all_equal_sees_one_other_byte)
{
    static const size_t items[] = { 1, 3, 4, 16 };
    static const uint64_t counts[] = { 1, 2, 100, 30000 };
    const uint8_t element[16] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 };
    for (size_t i = 0; i < 4; i++)
        for (size_t k = 0; k < 4; k++) {
            size_t item = items[i], len = item * (size_t)counts[k];
            uint8_t *data = malloc(len);
            ck_assert_ptr_nonnull(data);
            brc_fill_run(data, counts[k], item, element);
            ck_assert_int_eq(brc_all_equal(data, counts[k], item, element), 1);
            for (size_t at = 0; at < len; at += 1 + len / 97) {
                data[at] ^= 0x80;
                ck_assert_int_eq(brc_all_equal(data, counts[k], item, element), 0);
                data[at] ^= 0x80;
            }
            data[len - 1] ^= 1;
            ck_assert_int_eq(brc_all_equal(data, counts[k], item, element), 0);
            free(data);
        }
    ck_assert_int_eq(brc_all_equal(NULL, 0, 4, element), 1);
}

/* -0.0 is not 0.0, and a NaN equals itself: bits decide. */
TEST(P11_all_equal_compares_bits)
{
    const double zeros[] = { 0.0, 0.0, -0.0 };
    const uint64_t nans[] = { UINT64_C(0x7ff8000000000001), UINT64_C(0x7ff8000000000001) };
    const double zero = 0.0;
    ck_assert_int_eq(brc_all_equal((const uint8_t *)zeros, 2, 8, (const uint8_t *)&zero), 1);
    ck_assert_int_eq(brc_all_equal((const uint8_t *)zeros, 3, 8, (const uint8_t *)&zero), 0);
    ck_assert_int_eq(brc_all_equal((const uint8_t *)nans, 2, 8, (const uint8_t *)nans), 1);
}
