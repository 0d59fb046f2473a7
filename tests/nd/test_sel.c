/* Selections as Python writes them, against a model of Python's slice.indices(). */
#include <stdio.h>
#include <string.h>

#include "../../src/nd/shape.h"
#include "../kit/suite.h"

TEST_SUITE(sel);

#define NONE INT64_MIN /* a bound that is not written */

/* Python's slice(start, stop, step).indices(extent) for positive steps. */
static void python_slice(int64_t start, int64_t stop, int64_t step, int64_t extent, int64_t *first,
                         int64_t *count)
{
    int64_t from = start == NONE ? 0 : start < 0 ? start + extent : start;
    int64_t to = stop == NONE ? extent : stop < 0 ? stop + extent : stop;
    if (from < 0)
        from = 0;
    if (from > extent)
        from = extent;
    if (to < 0)
        to = 0;
    if (to > extent)
        to = extent;
    if (step == NONE)
        step = 1;
    *first = from;
    *count = 0;
    for (int64_t i = from; i < to; i += step)
        ++*count;
}

static int write_bound(char *out, int64_t bound)
{
    return bound == NONE ? 0 : snprintf(out, 20, "%lld", (long long)bound);
}

CASE("texts", .timeout = UNTIMED);

TEST(slices_equal_python)
{
    static const uint64_t extents[] = { 0, 1, 2, 7, 10 };
    for (size_t e = 0; e < sizeof(extents) / sizeof(extents[0]); e++)
        for (int64_t a = -14; a <= 13; a++)
            for (int64_t b = -14; b <= 13; b++)
                for (int64_t c = 0; c <= 12; c++) {
                    int64_t start = a == -14 ? NONE : a, stop = b == -14 ? NONE : b;
                    int64_t step = c == 0 ? NONE : c, first, count;
                    char text[64];
                    int n = write_bound(text, start);
                    text[n++] = ':';
                    n += write_bound(text + n, stop);
                    if (step != NONE || (a + b) % 2 == 0)
                        text[n++] = ':';
                    n += write_bound(text + n, step);
                    text[n] = '\0';
                    brc_sel sel = BRC_SEL_INIT;
                    ck_assert_msg(brc_sel_read(&sel, 1, &extents[e], text, NULL) == 0, "%s", text);
                    python_slice(start, stop, step, (int64_t)extents[e], &first, &count);
                    ck_assert_msg(sel.count[0] == (uint64_t)count, "%s of %llu: %llu elements",
                                  text, (unsigned long long)extents[e],
                                  (unsigned long long)sel.count[0]);
                    if (count > 0)
                        ck_assert_uint_eq(sel.start[0], (uint64_t)first);
                    ck_assert_uint_eq(sel.step[0], step == NONE ? 1 : (uint64_t)step);
                    ck_assert_uint_eq((sel.drop >> 0 & 1), 0);
                    ck_assert_int_eq(brc_sel_check(&sel, 1, &extents[e], NULL), 0);
                }
}

TEST(integers_wrap_once)
{
    static const uint64_t extent = 10;
    for (int i = -12; i <= 12; i++) {
        char text[16];
        brc_sel sel = BRC_SEL_INIT;
        snprintf(text, sizeof(text), "[%d]", i);
        int rc = brc_sel_read(&sel, 1, &extent, text, NULL);
        ck_assert_msg((rc == 0) == (i >= -10 && i < 10), "%s", text);
        if (rc < 0)
            continue;
        ck_assert_uint_eq(sel.start[0], (uint64_t)(i < 0 ? i + 10 : i));
        ck_assert_uint_eq(sel.count[0], 1);
        ck_assert_uint_eq(sel.step[0], 1);
        ck_assert_uint_eq((sel.drop >> 0 & 1), 1);
    }
}

/* "0+10 5! 0+3/2": start, count, step where not 1, "!" for an integer. */
static void describe_sel(char *out, const char *end, const brc_sel *sel)
{
    *out = '\0';
    for (int d = 0; d < sel->ndim; d++) {
        out += snprintf(out, (size_t)(end - out), d > 0 ? " " : "");
        if ((sel->drop >> d & 1))
            out += snprintf(out, (size_t)(end - out), "%llu!", (unsigned long long)sel->start[d]);
        else
            out += snprintf(out, (size_t)(end - out), "%llu+%llu",
                            (unsigned long long)sel->start[d], (unsigned long long)sel->count[d]);
        if (sel->step[d] != 1)
            out += snprintf(out, (size_t)(end - out), "/%llu", (unsigned long long)sel->step[d]);
    }
}

TEST(selections_of_several_axes)
{
    static const uint64_t shape[] = { 20, 5, 6 };
    static const struct {
        int ndim;
        const char *text, *expected;
    } rows[] = {
        { 3, "", "0+20 0+5 0+6" },
        { 3, "  ", "0+20 0+5 0+6" },
        { 3, "...", "0+20 0+5 0+6" },
        { 3, "[...]", "0+20 0+5 0+6" },
        { 3, "()", "0+20 0+5 0+6" },
        { 3, "[0:10, :, ::2]", "0+10 0+5 0+3/2" },
        { 3, "0:10,:,::2", "0+10 0+5 0+3/2" },
        { 3, " [ - 1 , 1 : - 1 , ... ] ", "19! 1+3 0+6" },
        { 3, "[\t3\n]", "3! 0+5 0+6" },
        { 3, "3,", "3! 0+5 0+6" },
        { 3, "..., 2", "0+20 0+5 2!" },
        { 3, "1, ..., 2", "1! 0+5 2!" },
        { 3, "1, 2, 3", "1! 2! 3!" },
        { 3, "1, 2, 3, ...", "1! 2! 3!" },
        { 3, "..., 1, 2, 3", "1! 2! 3!" },
        { 3, "...,", "0+20 0+5 0+6" },
        { 3, "15:3", "15+0 0+5 0+6" },
        { 3, "+1:+2", "1+1 0+5 0+6" },
        { 3, "-0", "0! 0+5 0+6" },
        { 3, "-0:", "0+20 0+5 0+6" },
        { 3, "0018:", "18+2 0+5 0+6" },
        { 3, "-99999999999999999999999:99999999999999999999999", "0+20 0+5 0+6" },
        { 3, "99999999999999999999999:", "20+0 0+5 0+6" },
        { 3, "::99999999999999999999999", "0+1/18446744073709551615 0+5 0+6" },
        { 0, "", "" },
        { 0, "[]", "" },
        { 0, "()", "" },
        { 0, "[()]", "" },
        { 0, "...", "" },
        { 0, " [ ... ] ", "" },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        brc_sel sel = BRC_SEL_INIT;
        brc_error err = BRC_ERROR_INIT;
        char text[400];
        ck_assert_msg(brc_sel_read(&sel, rows[i].ndim, shape, rows[i].text, &err) == 0, "%s: %s",
                      rows[i].text, err.message);
        ck_assert_int_eq(sel.ndim, rows[i].ndim);
        describe_sel(text, text + sizeof(text), &sel);
        ck_assert_str_eq(text, rows[i].expected);
    }
}

TEST(wrong_selections_say_why)
{
    static const uint64_t shape[] = { 20, 5, 0 };
    static const struct {
        int ndim;
        const char *text, *says;
    } rows[] = {
        { 2, "20", "index 20 is out of bounds for axis 0 with extent 20" },
        { 2, "0, -6", "index -6 is out of bounds for axis 1 with extent 5" },
        { 3, "0, 0, 0", "index 0 is out of bounds for axis 2 with extent 0" },
        { 3, "0, 0, -0", "out of bounds for axis 2" },
        { 2, "99999999999999999999999", "axis 0 is out of bounds: the extent is 20" },
        { 2, "-99999999999999999999999", "axis 0 is out of bounds: the extent is 20" },
        { 2, "::-1", "selection for axis 0: a step must be 1 or more, not -1" },
        { 2, ":, ::0", "selection for axis 1: a step must be 1 or more, not 0" },
        { 2, "::-0", "a step must be 1 or more, not 0" },
        { 2, "1,2,3", "too many indices: the array has 2 dimensions, the selection 3" },
        { 1, "1,2", "too many indices: the array has 1 dimension, the selection 2" },
        { 0, "0", "too many indices: the array has 0 dimensions, the selection 1" },
        { 0, ":", "too many indices" },
        { 2, "...,...", "one \"...\" at most" },
        { 2, "[]", "selection [] is empty: write [...] for the whole array" },
        { 2, "1.5", "selection for axis 0: \".5\" is not an integer" },
        { 2, "0, None", "selection for axis 1: \"None\" is not an integer" },
        { 2, "True", "\"True\"" },
        { 2, "1:2:3:4", "\":4\"" },
        { 2, "-", "\"-\"" },
        { 2, "1 2", "\"2\"" },
        { 2, ",", "axis 0" },
        { 2, ":,,", "axis 1" },
        { 2, "[0", "selection [0: a bracket is missing" },
        { 2, "0]", "selection 0]: a bracket is missing" },
        { 2, "[[0]]", "selection [[0]] has brackets inside: write [17, 512]" },
        { 2, "(0)", "square brackets" },
        { 2, "...5", "\"5\"" },
        { 2, "1_0", "\"_0\"" },
        { 2, "0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0",
          "the selection more than 32" },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        brc_sel sel = BRC_SEL_INIT;
        brc_error err = BRC_ERROR_INIT;
        ck_assert_msg(brc_sel_read(&sel, rows[i].ndim, shape, rows[i].text, &err) == BRC_EINVAL,
                      "%s", rows[i].text);
        ck_assert_msg(strstr(err.message, rows[i].says) != NULL, "%s: %s", rows[i].text,
                      err.message);
    }
}

TEST(extents_use_all_64_bits)
{
    static const uint64_t extent = UINT64_MAX;
    brc_sel sel = BRC_SEL_INIT;
    ck_assert_int_eq(brc_sel_read(&sel, 1, &extent, "-1", NULL), 0);
    ck_assert_uint_eq(sel.start[0], UINT64_MAX - 1);
    ck_assert_int_eq(brc_sel_read(&sel, 1, &extent, "18446744073709551614", NULL), 0);
    ck_assert_uint_eq(sel.start[0], UINT64_MAX - 1);
    ck_assert_int_eq(brc_sel_read(&sel, 1, &extent, ":", NULL), 0);
    ck_assert_uint_eq(sel.count[0], UINT64_MAX);
    ck_assert_int_eq(brc_sel_read(&sel, 1, &extent, "-18446744073709551614::2", NULL), 0);
    ck_assert_uint_eq(sel.start[0], 1);
    ck_assert_uint_eq(sel.count[0], UINT64_MAX / 2);
}

TEST(rank_32_is_read)
{
    uint64_t shape[BRC_MAX_NDIM];
    char text[3 * BRC_MAX_NDIM + 1] = "";
    brc_sel sel = BRC_SEL_INIT;
    for (int d = 0; d < BRC_MAX_NDIM; d++) {
        shape[d] = 3;
        memcpy(text + 3 * d, "-2,", 4);
    }
    ck_assert_int_eq(brc_sel_read(&sel, BRC_MAX_NDIM, shape, text, NULL), 0);
    for (int d = 0; d < BRC_MAX_NDIM; d++)
        ck_assert_uint_eq(sel.start[d], 1);
}

TEST(selections_made_by_hand_are_checked)
{
    static const uint64_t shape[] = { 10, 4 };
    const brc_sel good = { .size = sizeof(brc_sel), .ndim = 2,
                           .start = { 1, 0 }, .count = { 3, 4 }, .step = { 4, 1 } };
    brc_sel sel = good;
    brc_error err = BRC_ERROR_INIT;
    ck_assert_int_eq(brc_sel_check(&sel, 2, shape, &err), 0);
    sel.count[0] = 4; /* 1, 5, 9, 13 */
    ck_assert_int_eq(brc_sel_check(&sel, 2, shape, &err), BRC_EINVAL);
    ck_assert_msg(strstr(err.message, "axis 0 leaves the array: its extent is 10") != NULL, "%s",
                  err.message);
    sel = good;
    sel.start[1] = 4;
    ck_assert_int_eq(brc_sel_check(&sel, 2, shape, NULL), BRC_EINVAL);
    sel.count[1] = 0;
    ck_assert_int_eq(brc_sel_check(&sel, 2, shape, NULL), 0);
    sel = good;
    sel.step[1] = 0;
    ck_assert_int_eq(brc_sel_check(&sel, 2, shape, NULL), BRC_EINVAL);
    sel = good;
    sel.drop |= UINT32_C(1) << 1;
    ck_assert_int_eq(brc_sel_check(&sel, 2, shape, NULL), BRC_EINVAL);
    sel = good;
    sel.count[0] = UINT64_MAX;
    sel.step[0] = UINT64_MAX;
    ck_assert_int_eq(brc_sel_check(&sel, 2, shape, NULL), BRC_EINVAL);
    ck_assert_int_eq(brc_sel_check(&good, 1, shape, NULL), BRC_EINVAL);
}
