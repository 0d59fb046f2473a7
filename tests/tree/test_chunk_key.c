/* Chunk keys: their order is the chunks', none begins another, one form each. */
#include <stdlib.h>
#include <string.h>

#include "../../src/tree/map.h"
#include "../kit/store_kit.h"
#include "../kit/suite.h"

TEST_SUITE(chunk_key);

/* Coordinates of every length in bytes, near the places where it changes. */
static uint64_t some_coordinate(uint64_t *random)
{
    uint64_t near = UINT64_C(1) << store_kit_below(random, 64);
    switch (store_kit_below(random, 4)) {
    case 0:
        return store_kit_below(random, 4);
    case 1:
        return near - store_kit_below(random, 3);
    case 2:
        return near + store_kit_below(random, 3);
    default:
        return store_kit_random(random) >> store_kit_below(random, 64);
    }
}

static int key_order(const uint8_t *a, size_t a_len, const uint8_t *b, size_t b_len)
{
    int order = memcmp(a, b, a_len < b_len ? a_len : b_len);
    return order != 0 ? order : (a_len > b_len) - (a_len < b_len);
}

TEST(bytes_are_the_documented_ones)
{
    static const uint64_t index[] = { 0, 1, 255, 256, 65536, UINT64_MAX };
    static const uint8_t want[] = {
        0,                          /* 0: no bytes at all */
        1, 1,                       /* 1 */
        1, 255,                     /* 255 */
        2, 1,   0,                  /* 256 */
        3, 1,   0,   0,             /* 65536 */
        8, 255, 255, 255, 255, 255, 255, 255, 255,
    };
    uint8_t key[BRC_CHUNK_KEY_MAX];
    size_t len = brc_chunk_key_encode(key, 6, index);
    ck_assert_uint_eq(len, sizeof(want));
    ck_assert_mem_eq(key, want, sizeof(want));
}

TEST(every_index_comes_back)
{
    uint64_t random = 1, index[BRC_MAX_NDIM], back[BRC_MAX_NDIM];
    uint8_t key[BRC_CHUNK_KEY_MAX];
    for (int round = 0; round < 20000; round++) {
        int ndim = (int)store_kit_below(&random, BRC_MAX_NDIM + 1);
        for (int i = 0; i < ndim; i++)
            index[i] = some_coordinate(&random);
        size_t len = brc_chunk_key_encode(key, ndim, index);
        KIT_TRUE(len <= BRC_CHUNK_KEY_MAX);
        KIT_TRUE(brc_chunk_key_decode(key, len, back) == ndim);
        KIT_TRUE(ndim == 0 || memcmp(index, back, (size_t)ndim * sizeof(*index)) == 0);
    }
}

TEST(order_is_row_major_and_no_key_begins_another)
{
    uint64_t random = 2, a[4], b[4];
    uint8_t x[BRC_CHUNK_KEY_MAX], y[BRC_CHUNK_KEY_MAX];
    for (int round = 0; round < 50000; round++) {
        int ndim = 1 + (int)store_kit_below(&random, 4), same = 0;
        for (int i = 0; i < ndim; i++) {
            a[i] = some_coordinate(&random);
            b[i] = store_kit_below(&random, 2) ? a[i] : some_coordinate(&random);
        }
        while (same < ndim && a[same] == b[same])
            same++;
        int want = same == ndim ? 0 : a[same] < b[same] ? -1 : 1;
        size_t nx = brc_chunk_key_encode(x, ndim, a), ny = brc_chunk_key_encode(y, ndim, b);
        int got = key_order(x, nx, y, ny);
        KIT_TRUE((got > 0) - (got < 0) == want);
        KIT_TRUE(want == 0 || memcmp(x, y, nx < ny ? nx : ny) != 0);
    }
}

TEST(other_forms_are_refused)
{
    static const struct {
        uint8_t bytes[12];
        size_t len;
    } wrong[] = {
        { { 1, 0 }, 2 },                          /* 0 in one byte */
        { { 2, 0, 5 }, 3 },                       /* 5 in two */
        { { 8, 0, 0, 0, 0, 0, 0, 0, 9 }, 9 },     /* 9 in eight */
        { { 9, 1, 2, 3, 4, 5, 6, 7, 8, 9 }, 10 }, /* more than a coordinate has */
        { { 255 }, 1 },
        { { 1 }, 1 },                             /* cut off */
        { { 4, 1, 2, 3 }, 4 },
        { { 0, 1, 7, 2, 1 }, 5 },
    };
    uint64_t index[BRC_MAX_NDIM];
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        uint8_t *exact = malloc(wrong[i].len); /* so that a sanitizer sees a read behind it */
        memcpy(exact, wrong[i].bytes, wrong[i].len);
        ck_assert_int_eq(brc_chunk_key_decode(exact, wrong[i].len, index), -1);
        free(exact);
    }
    uint8_t many[BRC_MAX_NDIM + 1] = { 0 };
    ck_assert_int_eq(brc_chunk_key_decode(many, BRC_MAX_NDIM, index), BRC_MAX_NDIM);
    ck_assert_int_eq(brc_chunk_key_decode(many, BRC_MAX_NDIM + 1, index), -1);
}

/* Bytes that decode are those that encoding gives: there is one key for each chunk. */
TEST(what_decodes_encodes_to_the_same_bytes)
{
    uint64_t random = 3, index[BRC_MAX_NDIM];
    uint8_t noise[12], again[BRC_CHUNK_KEY_MAX];
    int taken = 0;
    for (int round = 0; round < 200000; round++) {
        size_t len = store_kit_below(&random, sizeof(noise) + 1);
        for (size_t i = 0; i < len; i++)
            noise[i] = (uint8_t)(store_kit_below(&random, 3) ? store_kit_below(&random, 4)
                                                             : store_kit_random(&random));
        int ndim = brc_chunk_key_decode(noise, len, index);
        if (ndim < 0)
            continue;
        taken++;
        KIT_TRUE(brc_chunk_key_encode(again, ndim, index) == len);
        KIT_TRUE(len == 0 || memcmp(again, noise, len) == 0);
    }
    ck_assert_int_gt(taken, 1000);
}

TEST(the_value_is_an_id_of_the_files_length)
{
    static const uint8_t zero[16] = { 0 };
    uint8_t bytes[17];
    brc_oid id;
    memset(bytes, 5, sizeof(bytes));
    ck_assert_int_eq(brc_chunk_id_of((brc_span){ bytes, 16 }, 16, &id, NULL), BRC_OK);
    ck_assert_mem_eq(id.bytes, bytes, 16);
    ck_assert_mem_eq(id.bytes + 16, zero, 16);
    for (size_t len = 0; len <= sizeof(bytes); len++)
        if (len != 16)
            ck_assert_int_eq(brc_chunk_id_of((brc_span){ bytes, len }, 16, &id, NULL),
                             BRC_ECORRUPT);
    ck_assert_int_eq(brc_chunk_id_of((brc_span){ zero, 16 }, 16, &id, NULL), BRC_ECORRUPT);
}
