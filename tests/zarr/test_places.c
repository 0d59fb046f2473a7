/* Elements by their positions (brc_at): what is refused, how often chunks are decoded, memory with
 * strides, and arrays whose grid has more chunks than numbers. That every selection gives what
 * NumPy would is test_grid_model.c's affair. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/breccia.h"
#include "../kit/hooked_kit.h"
#include "../kit/ios.h"
#include "../kit/suite.h"

TEST_SUITE(places);

enum { ROWS = 40, COLUMNS = 30 };
static const uint64_t shape[2] = {ROWS, COLUMNS}, chunk[2] = {8, 10};

static struct {
    scenario t;
    hooked_parts parts;
    brc_array *a;
    int32_t model[ROWS][COLUMNS];
} x;

/* _i: threads of the pool. */
static void start(unsigned threads)
{
    memset(&x, 0, sizeof(x));
    hooked_file_start(&x.t, &x.parts, threads);
    x.a = scenario_array(&x.t, "/a", "int32", 2, shape, chunk, "-1", "[" HOOKED_CODECS "]");
    for (int i = 0; i < ROWS * COLUMNS; i++)
        x.model[i / COLUMNS][i % COLUMNS] = i;
    OK(&x.t, brc_array_write(x.a, NULL, x.model, sizeof(x.model), &x.t.err));
}

static void stop(void)
{
    brc_array_free(x.a);
    hooked_file_stop(&x.t, &x.parts);
}

static brc_buffer memory_of(void *data, size_t len)
{
    return (brc_buffer){.size = sizeof(brc_buffer), .data = data, .len = len};
}

/* Rows by an index array, all of their columns. */
static brc_at rows_of(const int64_t *rows, uint64_t n)
{
    brc_at at = BRC_AT_INIT;
    at.ndim = 2;
    at.index[0] = rows;
    at.count[0] = n;
    at.count[1] = COLUMNS;
    at.step[1] = 1;
    return at;
}

static brc_at points_of(const int64_t *rows, const int64_t *columns, uint64_t n)
{
    brc_at at = BRC_AT_INIT;
    at.ndim = 2;
    at.flags = BRC_AT_POINTS;
    at.index[0] = rows;
    at.index[1] = columns;
    at.count[0] = at.count[1] = n;
    return at;
}

/* Rows of three rows of chunks, each of three chunks, named in turn. */
LOOP(each_chunk_is_decoded_once, 0, 4)
{
    static const int64_t rows[] = {0, -1, 17, 1, 38, 18, 0, -40, 23, 7};
    int32_t got[10][COLUMNS];
    int decoded = 0;
    start((unsigned)_i);
    const brc_at at = rows_of(rows, 10);
    brc_buffer dst = memory_of(got, sizeof(got));
    hook_decode(hooked_count, &decoded, 1000);
    OK(&x.t, io_take(x.a, &at, &dst, &x.t.err));
    ck_assert_int_eq(decoded, 9);
    for (int i = 0; i < 10; i++)
        ck_assert_mem_eq(got[i], x.model[rows[i] < 0 ? rows[i] + ROWS : rows[i]], sizeof(got[i]));
    stop();
}

/* Points in any order: what is written twice is what was given last. */
LOOP(each_chunk_is_stored_once_and_the_last_wins, 0, 4)
{
    static const int64_t rows[] = {3, 39, 3, 20, -1, 3}, columns[] = {4, 29, 4, 11, 29, -26};
    static const int32_t values[] = {100, 101, 102, 103, 104, 105};
    int encoded = 0;
    int32_t got[ROWS][COLUMNS];
    start((unsigned)_i);
    const brc_at at = points_of(rows, columns, 6);
    brc_buffer src = memory_of((void *)(uintptr_t)values, sizeof(values));
    src.flags = BRC_BUFFER_READONLY;
    hook_encode(hooked_count, &encoded, 1000);
    OK(&x.t, io_place(x.a, &at, &src, &x.t.err));
    ck_assert_int_eq(encoded, 3);
    x.model[3][4] = 105;
    x.model[39][29] = 104;
    x.model[20][11] = 103;
    OK(&x.t, brc_array_read(x.a, NULL, got, sizeof(got), &x.t.err));
    ck_assert_mem_eq(got, x.model, sizeof(got));
    stop();
}

/* Rows of chunks that an index array covers in its order are written without being read. What such
 * a codec makes of a chunk is decoded once to see that nothing was lost. */
TEST(what_is_covered_is_not_read)
{
    static const int64_t rows[] = {8, 9, 10, 11, 12, 13, 14, 15, 20};
    int32_t got[ROWS][COLUMNS];
    int decoded = 0;
    start(0);
    for (int i = 0; i < 8 * COLUMNS; i++)
        x.model[8 + i / COLUMNS][i % COLUMNS] = -i;
    memcpy(got, x.model, sizeof(got));
    brc_at at = rows_of(rows, 8);
    brc_buffer src = memory_of(got[8], sizeof(got[0]) * 8);
    hook_decode(hooked_count, &decoded, 1000);
    OK(&x.t, io_place(x.a, &at, &src, &x.t.err));
    ck_assert_int_eq(decoded, 3);
    at = rows_of(rows, 9); /* and a row of chunks of which there is one row */
    src = memory_of(got[7], sizeof(got[0]) * 9);
    OK(&x.t, io_place(x.a, &at, &src, &x.t.err));
    ck_assert_int_eq(decoded, 3 + 6 + 3);
    for (int i = 0; i < 9; i++)
        memcpy(x.model[rows[i]], got[7 + i], sizeof(got[0]));
    OK(&x.t, brc_array_read(x.a, NULL, got, sizeof(got), &x.t.err));
    ck_assert_mem_eq(got, x.model, sizeof(got));
    stop();
}

/* Backwards, with holes, and columns before rows; of points every third element. */
TEST(memory_may_have_strides)
{
    static const int64_t rows[] = {9, 2, 33}, columns[] = {29, 0, 10};
    const int64_t across[2] = {4, -3 * 4}, apart[1] = {3 * 4};
    int32_t got[COLUMNS][3], some[9] = {0};
    start(0);
    brc_at at = rows_of(rows, 3);
    brc_buffer memory = memory_of(got, sizeof(got));
    memory.strides = across;
    memory.offset = (COLUMNS - 1) * 3 * 4;
    OK(&x.t, io_take(x.a, &at, &memory, &x.t.err));
    for (int c = 0; c < COLUMNS; c++)
        for (int r = 0; r < 3; r++)
            ck_assert_int_eq(got[COLUMNS - 1 - c][r], x.model[rows[r]][c]);
    at = points_of(rows, columns, 3);
    memory = memory_of(some, sizeof(some));
    memory.strides = apart;
    OK(&x.t, io_take(x.a, &at, &memory, &x.t.err));
    for (int k = 0; k < 9; k++)
        ck_assert_int_eq(some[k], k % 3 ? 0 : x.model[rows[k / 3]][columns[k / 3]]);
    stop();
}

/* A batch of positions, boxes, and a structure from before there were positions. */
TEST(a_batch_has_boxes_and_positions)
{
    static const int64_t rows[] = {39, 0};
    int32_t got[3][2][COLUMNS];
    brc_sel sel = BRC_SEL_INIT;
    brc_buffer dst[3];
    brc_io ios[3];
    start(3);
    const brc_at at = rows_of(rows, 2);
    OK(&x.t, brc_sel_parse(&sel, x.a, "[4:6]", &x.t.err));
    for (int i = 0; i < 3; i++) {
        dst[i] = memory_of(got[i], sizeof(got[i]));
        ios[i] = (brc_io){.size = sizeof(brc_io), .array = x.a, .sel = i == 1 ? &sel : NULL,
                          .buffer = &dst[i], .at = i == 1 ? NULL : &at};
    }
    OK(&x.t, brc_read(ios, 3, &x.t.err));
    ck_assert_mem_eq(got[0][0], x.model[39], sizeof(x.model[0]));
    ck_assert_mem_eq(got[1], x.model[4], sizeof(got[1]));
    ck_assert_mem_eq(got[2], got[0], sizeof(got[0]));
    ios[0].size = offsetof(brc_io, at); /* `at` is not looked at: the whole array is meant */
    ios[0].sel = &sel;
    OK(&x.t, brc_read(ios, 1, &x.t.err));
    ck_assert_mem_eq(got[0], x.model[4], sizeof(got[0]));
    ios[0].size = sizeof(brc_io);
    FAILS(&x.t, BRC_EINVAL, brc_read(ios, 1, &x.t.err));
    ck_assert_ptr_nonnull(strstr(x.t.err.message, "a box or positions, not both"));
    stop();
}

/* Boxes and positions that are appended stand between others that go into memory. */
TEST(a_batch_appends_too)
{
    static const int64_t rows[] = {39, 0};
    int32_t got[2][2][COLUMNS];
    brc_sel sel = BRC_SEL_INIT;
    brc_buffer dst[2] = {memory_of(got[0], sizeof(got[0])), memory_of(got[1], sizeof(got[1]))};
    brc_buf out = BRC_BUF_INIT;
    start(3);
    const brc_at at = rows_of(rows, 2);
    OK(&x.t, brc_sel_parse(&sel, x.a, "[4:6]", &x.t.err));
    brc_io ios[] = {
        {.size = sizeof(brc_io), .array = x.a, .at = &at, .buffer = &dst[0]},
        {.size = sizeof(brc_io), .array = x.a, .sel = &sel, .out = &out},
        {.size = sizeof(brc_io), .array = x.a, .at = &at, .out = &out},
        {.size = sizeof(brc_io), .array = x.a, .sel = &sel, .buffer = &dst[1]},
    };
    OK(&x.t, brc_read(ios, 4, &x.t.err));
    ck_assert_uint_eq(out.len, sizeof(got));
    ck_assert_mem_eq(out.data, got[1], sizeof(got[1]));
    ck_assert_mem_eq(out.data + sizeof(got[1]), got[0], sizeof(got[0]));
    ck_assert_mem_eq(got[0][0], x.model[39], sizeof(x.model[0]));
    ck_assert_mem_eq(got[1][1], x.model[5], sizeof(x.model[0]));
    ios[1].sel = NULL;
    ios[1].at = &at;
    ios[1].buffer = &dst[0]; /* one place, not two, and none but memory to write from */
    FAILS(&x.t, BRC_EINVAL, brc_read(&ios[1], 1, &x.t.err));
    FAILS(&x.t, BRC_EINVAL, brc_write(&ios[2], 1, &x.t.err));
    ios[2].out = NULL;
    FAILS(&x.t, BRC_EINVAL, brc_read(&ios[2], 1, &x.t.err));
    ios[3].at = &at; /* beside a box */
    FAILS(&x.t, BRC_EINVAL, brc_read(&ios[3], 1, &x.t.err));
    brc_buf_dispose(&out);
    stop();
}

/* Ranges alone are a box, whose whole chunks are decoded where they belong; and a description
 * follows what another handle does. */
TEST(ranges_are_boxes)
{
    static const uint64_t longer[2] = {ROWS + 8, COLUMNS};
    int32_t got[8][COLUMNS];
    start(0);
    brc_at at = rows_of(NULL, 8);
    at.start[0] = 16;
    at.step[0] = 1;
    brc_buffer memory = memory_of(got, sizeof(got));
    OK(&x.t, io_take(x.a, &at, &memory, &x.t.err));
    ck_assert_mem_eq(got, x.model[16], sizeof(got));
    brc_array *other = scenario_array_at(&x.t, x.t.session, "/a");
    OK(&x.t, brc_array_resize(other, longer, &x.t.err));
    ck_assert_uint_eq(brc_array_describe(x.a)->shape[0], ROWS);
    OK(&x.t, brc_array_refresh(x.a, &x.t.err));
    ck_assert_uint_eq(brc_array_describe(x.a)->shape[0], ROWS + 8);
    OK(&x.t, brc_node_remove(x.t.session, "/a", &x.t.err));
    FAILS(&x.t, BRC_ENOTFOUND, brc_array_refresh(x.a, &x.t.err));
    brc_array_free(other);
    stop();
}

/* Nothing is read or written where a position, a count or the memory is wrong. */
TEST(wrong_positions_are_refused)
{
    static const int64_t far[] = {0, ROWS}, before[] = {-ROWS - 1}, most[] = {INT64_MIN};
    int32_t got[2][COLUMNS];
    start(0);
    brc_buffer memory = memory_of(got, sizeof(got));
    const struct {
        brc_at at;
        const char *why;
    } cases[] = {
        {rows_of(far, 2), "index 40 is out of bounds for axis 0 with size 40"},
        {rows_of(before, 1), "index -41 is out of bounds for axis 0 with size 40"},
        {rows_of(most, 1), "index -9223372036854775808 is out of bounds for axis 0"},
        {points_of(far, NULL, 1), "an index array for each axis: axis 1 has none"},
        {{.size = sizeof(brc_at), .ndim = 1, .index = {far}, .count = {1}},
         "along 1 axis, but the array has 2 dimensions"},
        {{.size = sizeof(brc_at), .ndim = 2, .flags = 2}, "flags"},
        {{.size = 8, .ndim = 2}, "brc_at"},
        {{.size = sizeof(brc_at), .ndim = 2, .index = {far}, .count = {1, 31}, .step = {0, 1}}, ""},
        {{.size = sizeof(brc_at), .ndim = 2, .index = {far}, .count = {1, 30}, .step = {0, 0}}, ""},
        {{.size = sizeof(brc_at), .ndim = 2, .index = {far}, .count = {1, UINT64_MAX},
          .start = {0, 1}, .step = {0, 1}}, ""},
        {rows_of(far, 1), "the selection has 120 bytes, but the memory has 240"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        FAILS(&x.t, BRC_EINVAL, io_take(x.a, &cases[i].at, &memory, &x.t.err));
        ck_assert_msg(strstr(x.t.err.message, cases[i].why) != NULL, "%s", x.t.err.message);
        FAILS(&x.t, BRC_EINVAL, io_place(x.a, &cases[i].at, &memory, &x.t.err));
        ck_assert_msg(strstr(x.t.err.message, cases[i].why) != NULL, "%s", x.t.err.message);
    }
    brc_at uneven = points_of(far, far, 2);
    uneven.count[1] = 1;
    FAILS(&x.t, BRC_EINVAL, io_take(x.a, &uneven, &memory, &x.t.err));
    OK(&x.t, brc_array_read(x.a, NULL, x.model, sizeof(x.model), &x.t.err));
    for (int i = 0; i < ROWS * COLUMNS; i++)
        ck_assert_int_eq(x.model[i / COLUMNS][i % COLUMNS], i);
    stop();
}

/* 2^62 chunks, or more than 2^64, and a few elements of them, in no order and some twice: the last
 * wins. _i: axes. Chunks are sorted along each axis, so a sort that turns equals round does no harm
 * along two of them. */
LOOP(grids_may_have_more_chunks_than_numbers, 1, 3)
{
    static const uint64_t vast[2] = {1ull << 62, 1ull << 62}, one[2] = {1, 3};
    static const int64_t ends[] = {(1ll << 62) - 1, 0, 5, -1, 1ll << 40, 5};
    static const int64_t others[] = {7, (1ll << 62) - 1, 5, 7, 0, 5};
    const int32_t values[] = {1, 2, 3, 4, 5, 6};
    int32_t got[6];
    start(0);
    brc_array *a = scenario_array(&x.t, "/vast", "int32", _i, vast, one, "-1", NULL);
    brc_at at = points_of(ends, others, 6);
    at.ndim = _i;
    brc_buffer src = memory_of((void *)(uintptr_t)values, sizeof(values));
    brc_buffer dst = memory_of(got, sizeof(got));
    OK(&x.t, io_place(a, &at, &src, &x.t.err));
    OK(&x.t, io_take(a, &at, &dst, &x.t.err));
    const int32_t want[] = {4, 2, 6, 4, 5, 6};
    ck_assert_mem_eq(got, want, sizeof(got));
    brc_array_free(a);
    stop();
}

/* A write of many chunks goes down in batches, and is all or nothing like any other. */
LOOP(many_chunks_are_one_change, 0, 2)
{
    enum { MANY = 30000 };
    static const uint64_t length[1] = {MANY * 2}, two[1] = {2};
    static int64_t index[MANY];
    static int32_t values[MANY], all[MANY * 2];
    uint64_t random = 7;
    start((unsigned)_i);
    brc_array *a = scenario_array(&x.t, "/many", "int32", 1, length, two, "-1", NULL);
    brc_at at = BRC_AT_INIT;
    at.ndim = 1;
    at.index[0] = index;
    at.count[0] = MANY;
    for (int k = 0; k < MANY; k++) {
        index[k] = k * 2 + k % 2;
        values[k] = k;
    }
    for (int k = MANY - 1; k > 0; k--) { /* in any order */
        const uint64_t other = scenario_below(&random, (uint64_t)k + 1);
        const int64_t i = index[k];
        const int32_t v = values[k];
        index[k] = index[other], values[k] = values[other];
        index[other] = i, values[other] = v;
    }
    brc_buffer src = memory_of(values, sizeof(values));
    OK(&x.t, io_place(a, &at, &src, &x.t.err));
    OK(&x.t, brc_array_read(a, NULL, all, sizeof(all), &x.t.err));
    for (int i = 0; i < MANY * 2; i++)
        ck_assert_int_eq(all[i], i / 2 % 2 == i % 2 ? i / 2 : -1);
    memset(all, 0, sizeof(values));
    brc_buffer dst = memory_of(all, sizeof(values));
    OK(&x.t, io_take(a, &at, &dst, &x.t.err));
    ck_assert_mem_eq(all, values, sizeof(values));
    brc_array_free(a);
    scenario_whole(&x.t);
    stop();
}
