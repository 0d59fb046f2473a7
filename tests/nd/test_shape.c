/* Shapes, grids, and the part of a selection that lies in a chunk. */
#include <string.h>

#include "../../src/nd/shape.h"
#include "../kit/suite.h"

TEST_SUITE(shape);

#define BIG (UINT64_C(1) << 40)

CASE("shapes");

TEST(bytes_of_a_shape_are_checked)
{
    static const uint64_t a[] = { 3, 4, 5 }, huge[] = { BIG, BIG }, empty[] = { BIG, BIG, 0 };
    uint64_t n;
    ck_assert_int_eq(brc_shape_bytes(3, a, 8, &n), 1);
    ck_assert_uint_eq(n, 480);
    ck_assert_int_eq(brc_shape_bytes(0, NULL, 8, &n), 1);
    ck_assert_uint_eq(n, 8);
    ck_assert_int_eq(brc_shape_bytes(2, huge, 1, &n), 0);
    ck_assert_int_eq(brc_shape_bytes(1, huge, UINT64_C(1) << 24, &n), 0);
    ck_assert_int_eq(brc_shape_bytes(3, empty, 8, &n), 1);
    ck_assert_uint_eq(n, 0);
    ck_assert_uint_eq(brc_shape_count(3, a), 60);
    ck_assert_uint_eq(brc_shape_count(0, NULL), 1);
    ck_assert_uint_eq(brc_shape_count(2, huge), UINT64_MAX);
    ck_assert_uint_eq(brc_shape_count(3, empty), 0);
}

TEST(grids_cover_their_arrays)
{
    ck_assert_uint_eq(brc_grid_extent(0, 4), 0);
    ck_assert_uint_eq(brc_grid_extent(1, 4), 1);
    ck_assert_uint_eq(brc_grid_extent(8, 4), 2);
    ck_assert_uint_eq(brc_grid_extent(9, 4), 3);
    ck_assert_uint_eq(brc_grid_extent(UINT64_MAX, 2), UINT64_C(1) << 63);
}

TEST(indices_step_in_c_order)
{
    static const uint64_t shape[] = { 2, 1, 3 };
    uint64_t index[3] = { 0 };
    for (uint64_t i = 1; i < 6; i++) {
        ck_assert_int_eq(brc_index_next(3, index, shape), 1);
        ck_assert_uint_eq(index[0] * 3 + index[1] * 3 + index[2], i);
    }
    ck_assert_int_eq(brc_index_next(3, index, shape), 0);
    ck_assert_uint_eq(index[0] + index[1] + index[2], 0);
    ck_assert_int_eq(brc_index_next(0, index, shape), 0);
}

TEST(packed_strides)
{
    static const uint64_t shape[] = { 4, 3, 5 };
    int64_t strides[3];
    brc_strides_packed(3, shape, 2, strides);
    ck_assert_int_eq(strides[2], 2);
    ck_assert_int_eq(strides[1], 10);
    ck_assert_int_eq(strides[0], 30);
}

/* ---- overlaps ------------------------------------------------------------------ */

/* Every element of the selection, looked for one by one. */
static void naive_overlap_axis(const brc_sel *sel, int d, uint64_t extent, uint64_t chunk,
                               uint64_t index, uint64_t *count, uint64_t *in_chunk,
                               uint64_t *in_sel, int *whole)
{
    uint64_t corner = index * chunk, end = corner + chunk < extent ? corner + chunk : extent;
    *count = *in_chunk = *in_sel = 0;
    for (uint64_t k = 0; k < sel->count[d]; k++) {
        uint64_t at = sel->start[d] + k * sel->step[d];
        if (at < corner || at >= end)
            continue;
        if (++*count == 1) {
            *in_sel = k;
            *in_chunk = at - corner;
        }
    }
    *whole = *count == end - corner;
}

TEST(overlaps_are_what_counting_says)
{
    const uint64_t extent = 11;
    for (uint64_t chunk = 1; chunk <= 13; chunk += 3)
        for (uint64_t start = 0; start <= extent; start++)
            for (uint64_t step = 1; step <= 5; step++)
                for (uint64_t n = 0; n == 0 || start + (n - 1) * step < extent; n++)
                    for (uint64_t index = 0; index < brc_grid_extent(extent, chunk); index++) {
                        brc_sel sel = {
                            .size = sizeof(brc_sel),
                            .ndim = 1, .start = { start }, .count = { n }, .step = { step }
                        };
                        brc_overlap out;
                        uint64_t count, in_chunk, in_sel;
                        int whole;
                        naive_overlap_axis(&sel, 0, extent, chunk, index, &count, &in_chunk,
                                           &in_sel, &whole);
                        ck_assert_int_eq(brc_overlap_of(&out, &sel, &extent, &chunk, &index),
                                         count > 0);
                        ck_assert_uint_eq(out.count[0], count);
                        if (count == 0)
                            continue;
                        ck_assert_uint_eq(out.in_chunk[0], in_chunk);
                        ck_assert_uint_eq(out.in_sel[0], in_sel);
                        ck_assert_int_eq(out.whole, whole);
                    }
}

TEST(overlaps_join_their_axes)
{
    static const uint64_t shape[] = { 10, 7 }, chunk[] = { 4, 4 };
    const uint64_t last[] = { 2, 1 }, first[] = { 0, 0 };
    brc_sel sel = { .size = sizeof(brc_sel), .ndim = 2,
                    .start = { 8, 3 }, .count = { 2, 4 }, .step = { 1, 1 } };
    brc_overlap out;
    ck_assert_int_eq(brc_overlap_of(&out, &sel, shape, chunk, last), 1);
    ck_assert_int_eq(out.whole, 1); /* rows 8 to 9, columns 4 to 6: all that is inside */
    ck_assert_uint_eq(out.count[0], 2);
    ck_assert_uint_eq(out.count[1], 3);
    ck_assert_uint_eq(out.in_chunk[1], 0);
    ck_assert_uint_eq(out.in_sel[1], 1);
    ck_assert_int_eq(brc_overlap_of(&out, &sel, shape, chunk, first), 0);
    ck_assert_int_eq(out.whole, 0);
    sel.step[1] = 2;
    sel.count[1] = 2;
    ck_assert_int_eq(brc_overlap_of(&out, &sel, shape, chunk, last), 1);
    ck_assert_int_eq(out.whole, 0);
    ck_assert_uint_eq(out.in_chunk[1], 1);
}

TEST(overlaps_of_rank_0_and_of_the_largest_numbers)
{
    brc_sel sel = { .size = sizeof(brc_sel), .ndim = 0 };
    brc_overlap out;
    ck_assert_int_eq(brc_overlap_of(&out, &sel, NULL, NULL, NULL), 1);
    ck_assert_int_eq(out.whole, 1);
    const uint64_t extent = UINT64_MAX, chunk = UINT64_C(1) << 63;
    const uint64_t second = 1, outside = 2;
    sel = (brc_sel){ .size = sizeof(brc_sel), .ndim = 1,
                     .start = { 5 }, .count = { 2 }, .step = { UINT64_MAX - 6 } };
    ck_assert_int_eq(brc_overlap_of(&out, &sel, &extent, &chunk, &second), 1);
    ck_assert_uint_eq(out.count[0], 1);
    ck_assert_uint_eq(out.in_sel[0], 1);
    ck_assert_uint_eq(out.in_chunk[0], UINT64_MAX - 1 - chunk);
    ck_assert_int_eq(brc_overlap_of(&out, &sel, &extent, &chunk, &outside), 0);
    ck_assert_int_eq(out.whole, 0);
}
