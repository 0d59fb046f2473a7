/* Cutting selections: runs of elements in a file's order, and whole chunks. */
#include <string.h>

#include "../../src/nd/shape.h"
#include "../kit/suite.h"

TEST_SUITE(cut);

/* ---- runs -------------------------------- */

/* The runs, one after the other, are the selection's elements in the file's order. */
static size_t check_runs(const brc_sel *within, const uint64_t *chunk, int fortran, size_t budget)
{
    uint64_t extent[BRC_MAX_NDIM], order[BRC_MAX_NDIM] = { 0 }, expected = 0;
    brc_cut cut;
    size_t n = 0;
    int ndim = within->ndim;

    for (int k = 0; k < ndim; k++)
        extent[k] = within->count[fortran ? ndim - 1 - k : k];
    brc_cut_runs(&cut, within, chunk, 4, fortran, budget);
    while (brc_cut_next(&cut)) {
        uint64_t at[BRC_MAX_NDIM] = { 0 }, size[BRC_MAX_NDIM], elements = 1;
        n++;
        for (int k = 0; k < ndim; k++) {
            size[k] = cut.sel.count[fortran ? ndim - 1 - k : k];
            elements *= size[k];
        }
        ck_assert_uint_eq(cut.elements, elements);
        ck_assert_uint_le(cut.elements, cut.most);
        do {
            for (int k = 0; k < ndim; k++) {
                int axis = fortran ? ndim - 1 - k : k;
                ck_assert_uint_eq(cut.sel.step[axis], within->step[axis]);
                ck_assert_uint_eq(cut.sel.start[axis] + at[k] * cut.sel.step[axis],
                                  within->start[axis] + order[k] * within->step[axis]);
            }
            expected++;
            brc_index_next(ndim, order, extent);
        } while (brc_index_next(ndim, at, size));
    }
    ck_assert_uint_eq(expected, brc_shape_count(ndim, within->count));
    return n;
}

CASE("runs");

TEST(runs_cover_in_order)
{
    static const uint64_t chunk[] = { 2, 3, 5 };
    static const size_t budgets[] = { 1, 4, 16, 60, 200, 500, 1000, 4000, 100000 };
    brc_sel sel = { .size = sizeof(brc_sel), .ndim = 3,
                    .start = { 0, 0, 0 }, .count = { 7, 8, 9 }, .step = { 1, 1, 1 } };
    for (size_t i = 0; i < sizeof(budgets) / sizeof(budgets[0]); i++)
        for (int fortran = 0; fortran < 2; fortran++)
            check_runs(&sel, chunk, fortran, budgets[i]);
    sel = (brc_sel){ .size = sizeof(brc_sel), .ndim = 3,
                     .start = { 1, 4, 2 }, .count = { 5, 3, 2 }, .step = { 1, 2, 3 } };
    for (size_t i = 0; i < sizeof(budgets) / sizeof(budgets[0]); i++)
        for (int fortran = 0; fortran < 2; fortran++)
            check_runs(&sel, chunk, fortran, budgets[i]);
    sel.count[1] = 0;
    ck_assert_uint_eq(check_runs(&sel, chunk, 0, 100), 0);
    sel.ndim = 0;
    ck_assert_uint_eq(check_runs(&sel, chunk, 0, 1), 1);
}

/* Cuts lie on chunk edges, whatever the selection starts with. */
TEST(runs_keep_chunks_whole)
{
    static const uint64_t chunk[] = { 10, 100 };
    brc_sel sel = { .size = sizeof(brc_sel), .ndim = 2,
                    .start = { 7, 0 }, .count = { 93, 100 }, .step = { 1, 1 } };
    brc_cut cut;
    brc_cut_runs(&cut, &sel, chunk, 4, 0, 9000); /* two rows of chunks are 8000 bytes */
    ck_assert_int_eq(brc_cut_next(&cut), 1);
    ck_assert_uint_eq(cut.sel.start[0], 7);
    ck_assert_uint_eq(cut.sel.count[0], 13);
    while (brc_cut_next(&cut)) {
        ck_assert_uint_eq(cut.sel.start[0] % 10, 0);
        ck_assert_uint_eq(cut.sel.count[0], 20);
    }
    /* a row that is a little too large is kept whole, one that is far too large is cut */
    brc_cut_runs(&cut, &sel, chunk, 4, 0, 2000);
    ck_assert_uint_eq(cut.most, 1000);
    brc_cut_runs(&cut, &sel, chunk, 4, 0, 900);
    ck_assert_uint_eq(cut.most, 200);
}

TEST(a_run_is_as_long_as_the_budget_allows)
{
    static const uint64_t chunk[] = { 1, 1, 1 };
    brc_sel sel = { .size = sizeof(brc_sel), .ndim = 3, .count = { 4, 5, 6 }, .step = { 1, 1, 1 } };
    brc_cut cut;
    uint64_t n = 0;
    brc_cut_runs(&cut, &sel, chunk, 4, 0, 4 * 6); /* a row of six */
    for (; brc_cut_next(&cut); n++)
        ck_assert_uint_eq(cut.elements, 6);
    ck_assert_uint_eq(n, 20);
    ck_assert_int_eq(brc_cut_next(&cut), 0);
    brc_cut_runs(&cut, &sel, chunk, 0, 0, BRC_VARIABLE_BYTES); /* one element of any length */
    ck_assert_uint_eq(cut.most, 1);
}

TEST(strides_are_those_of_the_file)
{
    static const uint64_t chunk[] = { 2, 3, 5 };
    static const int64_t c_order[] = { 4 * 8 * 9, 4 * 9, 4 }, fortran[] = { 4, 4 * 7, 4 * 7 * 8 };
    brc_sel sel = { .size = sizeof(brc_sel), .ndim = 3, .count = { 7, 8, 9 }, .step = { 1, 1, 1 } };
    int64_t strides[BRC_MAX_NDIM];
    brc_cut cut;
    for (int order = 0; order < 2; order++) {
        brc_cut_runs(&cut, &sel, chunk, 4, order, 1 << 20);
        ck_assert_int_eq(brc_cut_next(&cut), 1);
        brc_cut_strides(&cut, 4, strides);
        ck_assert_mem_eq(strides, order ? fortran : c_order, sizeof(c_order));
        ck_assert_int_eq(brc_cut_next(&cut), 0);
    }
}

/* ---- chunks -------------------------------- */

/* Marks what the boxes hold: each element once, and every border between boxes is one between
 * chunks. */
static size_t check_chunks(const brc_sel *within, const uint64_t *chunk, size_t item,
                           uint64_t budget)
{
    uint8_t seen[20][20] = { { 0 } };
    brc_cut cut;
    size_t n = 0, marked = 0;
    brc_cut_chunks(&cut, within, chunk, item, budget);
    for (; brc_cut_next(&cut); n++) {
        const brc_sel *box = &cut.sel;
        ck_assert_uint_eq(cut.elements, box->count[0] * box->count[1]);
        ck_assert_uint_le(cut.elements, cut.most);
        for (int i = 0; i < 2; i++) {
            const uint64_t end = box->start[i] + box->count[i];
            ck_assert(box->start[i] == within->start[i] || box->start[i] % chunk[i] == 0);
            ck_assert(end == within->start[i] + within->count[i] || end % chunk[i] == 0);
        }
        for (uint64_t i = 0; i < box->count[0]; i++)
            for (uint64_t j = 0; j < box->count[1]; j++, marked++)
                ck_assert_uint_eq(seen[box->start[0] + i][box->start[1] + j]++, 0);
    }
    ck_assert_uint_eq(marked, within->count[0] * within->count[1]);
    return n;
}

CASE("chunks");

TEST(boxes_are_whole_chunks)
{
    static const uint64_t chunk[] = { 3, 4 };
    brc_sel sel = { .size = sizeof(brc_sel), .ndim = 2, .count = { 20, 18 }, .step = { 1, 1 } };
    ck_assert_uint_eq(check_chunks(&sel, chunk, 2, 1), 7 * 5);
    ck_assert_uint_eq(check_chunks(&sel, chunk, 2, 2 * 12 * 2), 7 * 3);  /* two in a row */
    ck_assert_uint_eq(check_chunks(&sel, chunk, 2, 2 * 12 * 11), 4);     /* two rows of five */
    ck_assert_uint_eq(check_chunks(&sel, chunk, 2, 1 << 20), 1);
    ck_assert_uint_eq(check_chunks(&sel, chunk, 0, 12 * BRC_VARIABLE_BYTES * 4), 7 * 2);
    sel = (brc_sel){ .size = sizeof(brc_sel), .ndim = 2,
                     .start = { 2, 5 }, .count = { 10, 8 }, .step = { 1, 1 } };
    ck_assert_uint_eq(check_chunks(&sel, chunk, 2, 1), 4 * 3);
    for (uint64_t budget = 1; budget < 1000; budget += 37)
        (void)check_chunks(&sel, chunk, 2, budget);
    sel.count[1] = 0;
    ck_assert_uint_eq(check_chunks(&sel, chunk, 2, 100), 0);
}

/* Extents that would overflow are the whole. */
TEST(extents_grow_to_the_whole_and_no_further)
{
    static const int fortran[] = { 1, 0 };
    const uint64_t whole[] = { UINT64_C(1) << 62, 7 };
    uint64_t extent[] = { 1, 2 };
    brc_cut_grow(2, NULL, extent, whole, 2, UINT64_MAX);
    ck_assert_uint_eq(extent[0], (UINT64_C(1) << 61) - 1);
    ck_assert_uint_eq(extent[1], 7);
    extent[0] = 1, extent[1] = 2;
    brc_cut_grow(2, fortran, extent, whole, 2, 100);
    ck_assert_uint_eq(extent[0], 50);
    ck_assert_uint_eq(extent[1], 2);
}
