/* Is every element inside the memory? Against a walk over all of them, in wide integers. */
#include <string.h>

#include "../../src/nd/shape.h"
#include "../kit/scenario.h"
#include "../kit/suite.h"

TEST_SUITE(buffer);

/* Returns 1 if each element's bytes lie within len, and for an output buffer no stride is zero. */
static int fits_by_walking(const brc_buffer *b, int ndim, const uint64_t *count, size_t item,
                           int out)
{
    uint64_t n = 1;
    for (int i = 0; i < ndim; i++)
        n *= count[i];
    for (int i = 0; n > 0 && i < ndim; i++)
        if (out && count[i] > 1 && b->strides[i] == 0)
            return 0;
    for (uint64_t k = 0; k < n; k++) {
        int64_t at = (int64_t)b->offset;
        uint64_t rest = k;
        for (int i = ndim; i-- > 0; rest /= count[i])
            at += (int64_t)(rest % count[i]) * b->strides[i];
        if (at < 0 || (uint64_t)at + item > b->len)
            return 0;
    }
    return 1;
}

TEST(strides_of_every_kind)
{
    static uint8_t memory[64];
    uint64_t random = 99, count[3];
    int64_t strides[3];
    int inside = 0, outside = 0;
    for (int i = 0; i < 40000; i++) {
        const int ndim = (int)scenario_below(&random, 4);
        const size_t item = 1 + (size_t)scenario_below(&random, 9);
        for (int k = 0; k < ndim; k++) {
            count[k] = scenario_below(&random, 5);
            strides[k] = (int64_t)scenario_below(&random, 41) - 20;
        }
        brc_buffer b = { .size = sizeof(b), .data = memory, .strides = strides };
        b.len = (size_t)scenario_below(&random, 65);
        b.offset = (size_t)scenario_below(&random, b.len + 1);
        const int way = scenario_below(&random, 2) ? BRC_MEMORY_OUT : BRC_MEMORY_IN;
        const int fits = fits_by_walking(&b, ndim, count, item, way == BRC_MEMORY_OUT);
        const int rc = brc_memory_fits(&b, ndim, count, item, way, NULL);
        ck_assert_int_eq(rc, fits ? BRC_OK : BRC_EINVAL);
        fits ? inside++ : outside++;
    }
    ck_assert_int_gt(inside, 4000);
    ck_assert_int_gt(outside, 4000);
}

/* Sums and products that wrap would land inside. */
static const struct {
    uint64_t count;
    int64_t stride;
    size_t offset;
} huge[] = {
    { 3, INT64_MAX, 0 },
    { 2, INT64_MIN, 0 },
    { 3, INT64_MIN, 63 },
    { UINT64_MAX, 1, 0 },
    { UINT64_MAX, -1, 63 },
    { (UINT64_C(1) << 32) + 1, INT64_C(1) << 32, 0 },
    { (UINT64_C(1) << 63) + 1, 2, 0 },
};

EACH(numbers_that_wrap_are_outside, huge)
{
    static uint8_t memory[64];
    const uint64_t count[2] = { huge[_i].count, 1 };
    const int64_t strides[2] = { huge[_i].stride, huge[_i].stride };
    const brc_buffer b = { .size = sizeof(b), .data = memory, .len = sizeof(memory),
                           .offset = huge[_i].offset, .strides = strides };
    ck_assert_int_eq(brc_memory_fits(&b, 2, count, 1, BRC_MEMORY_IN, NULL), BRC_EINVAL);
    const uint64_t none[2] = { 0, huge[_i].count };
    ck_assert_int_eq(brc_memory_fits(&b, 2, none, 1, BRC_MEMORY_OUT, NULL), BRC_OK);
}

TEST(packed_memory_is_filled)
{
    static uint8_t memory[64];
    const uint64_t count[2] = { 3, 4 };
    brc_buffer b = { .size = sizeof(b), .data = memory, .len = 64, .offset = 16 };
    ck_assert_int_eq(brc_memory_fits(&b, 2, count, 4, BRC_MEMORY_OUT, NULL), BRC_OK);
    ck_assert_int_eq(brc_memory_fits(&b, 2, count, 8, BRC_MEMORY_OUT, NULL), BRC_EINVAL);
    b.len--;
    ck_assert_int_eq(brc_memory_fits(&b, 2, count, 4, BRC_MEMORY_IN, NULL), BRC_EINVAL);
    const uint64_t many[2] = { UINT64_C(1) << 40, UINT64_C(1) << 40 };
    ck_assert_int_eq(brc_memory_fits(&b, 2, many, 4, BRC_MEMORY_IN, NULL), BRC_ELIMIT);
}

TEST(memory_is_checked_wherever_it_is)
{
    static uint8_t memory[64];
    brc_error err = BRC_ERROR_INIT;
    brc_memory m;
    const brc_buffer good = { .size = sizeof(good), .data = memory, .len = 64, .offset = 8 };
    brc_buffer b = good;
    ck_assert_int_eq(brc_memory_of(&m, &b, BRC_MEMORY_OUT, &err), BRC_OK);
    ck_assert(m.origin == memory + 8 && m.len == 56);
    b.device = 2;
    ck_assert_int_eq(brc_memory_of(&m, &b, BRC_MEMORY_IN, &err), BRC_OK);
    ck_assert(m.device == 2 && m.offset == 8);
    b = good;
    b.flags = BRC_BUFFER_READONLY;
    ck_assert_int_eq(brc_memory_of(&m, &b, BRC_MEMORY_IN, &err), BRC_OK);
    ck_assert_int_eq(brc_memory_of(&m, &b, BRC_MEMORY_OUT, &err), BRC_EINVAL);
    b.flags = 2;
    ck_assert_int_eq(brc_memory_of(&m, &b, BRC_MEMORY_IN, &err), BRC_EINVAL);
    b = good;
    b.offset = 65;
    ck_assert_int_eq(brc_memory_of(&m, &b, BRC_MEMORY_IN, &err), BRC_EINVAL);
    b = good;
    b.data = NULL;
    ck_assert_int_eq(brc_memory_of(&m, &b, BRC_MEMORY_IN, &err), BRC_EINVAL);
    b.len = b.offset = 0;
    ck_assert_int_eq(brc_memory_of(&m, &b, BRC_MEMORY_OUT, &err), BRC_OK);
    ck_assert_ptr_null(m.origin);
}

/* Straight through the public calls: what lies between the elements stays as it is. */
TEST(reads_and_writes_of_a_reversed_view)
{
    scenario t;
    brc_array *a;
    int16_t memory[40];
    const int64_t strides[2] = { 10, -4 };
    const uint64_t shape[2] = { 3, 2 }, chunk[2] = { 2, 2 };
    const int16_t data[6] = { 1, 2, 3, 4, 5, 6 };
    scenario_start(&t);
    a = scenario_array(&t, "/a", "int16", 2, shape, chunk, NULL, NULL);
    OK(&t, brc_array_write(a, NULL, data, sizeof(data), &t.err));
    memset(memory, 0x55, sizeof(memory));
    brc_buffer b = { .size = sizeof(b), .data = memory, .len = sizeof(memory), .offset = 6,
                     .strides = strides };
    brc_io io = { .size = sizeof(io), .array = a, .buffer = &b };
    OK(&t, brc_read(&io, 1, &t.err));
    for (int i = 0; i < 40; i++) {
        const int row = i / 5, in = i % 5;
        const int16_t want = row < 3 && in == 3   ? data[row * 2]
                             : row < 3 && in == 1 ? data[row * 2 + 1]
                                                  : 0x5555;
        ck_assert_msg(memory[i] == want, "%d: %d", i, memory[i]);
    }
    memory[3] = 60;
    OK(&t, brc_write(&io, 1, &t.err));
    int16_t got[6];
    OK(&t, brc_array_read(a, NULL, got, sizeof(got), &t.err));
    ck_assert(got[0] == 60 && got[1] == 2 && got[5] == 6);
    b.offset = 2;
    FAILS(&t, BRC_EINVAL, brc_read(&io, 1, &t.err));
    FAILS(&t, BRC_EINVAL, brc_write(&io, 1, &t.err));
    brc_array_free(a);
    scenario_stop(&t);
}
