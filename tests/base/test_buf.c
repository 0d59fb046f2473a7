/* Buffers that grow, and the reader of bytes from outside. */
#include <stdlib.h>
#include <string.h>

#include "../../src/base/alloc.h"
#include "../../src/base/buf.h"
#include "../kit/suite.h"

TEST_SUITE(buf);

#define OK(expr) ck_assert_int_eq((expr), BRC_OK)

TEST(appending_keeps_what_was_there)
{
    brc_buf buf = BRC_BUF_INIT;
    brc_error err = BRC_ERROR_INIT;
    for (int i = 0; i < 100000; i++)
        OK(brc_buf_byte(&buf, (uint8_t)(i * 7), &err));
    ck_assert_uint_eq(buf.len, 100000);
    ck_assert_uint_le(buf.cap, 200000);
    for (int i = 0; i < 100000; i++)
        ck_assert_uint_eq(buf.data[i], (uint8_t)(i * 7));
    brc_buf_dispose(&buf);
    ck_assert_ptr_null(buf.data);
    ck_assert_uint_eq(buf.len + buf.cap, 0);
    brc_buf_dispose(&buf);
    brc_buf_dispose(NULL);
}

TEST(nothing_can_be_appended_from_nowhere)
{
    brc_buf buf = BRC_BUF_INIT;
    OK(brc_buf_append(&buf, NULL, 0, NULL));
    OK(brc_buf_text(&buf, "", NULL));
    ck_assert_uint_eq(buf.len, 0);
    brc_buf_dispose(&buf);
}

TEST(a_limit_holds_to_the_byte)
{
    brc_buf buf = BRC_BUF_INIT;
    brc_error err = BRC_ERROR_INIT;
    buf.limit = 100;
    for (int i = 0; i < 100; i++)
        OK(brc_buf_byte(&buf, 'x', &err));
    ck_assert_int_eq(brc_buf_byte(&buf, 'y', &err), BRC_ELIMIT);
    ck_assert_int_eq(err.code, BRC_ELIMIT);
    ck_assert_uint_eq(buf.len, 100);
    ck_assert_uint_le(buf.cap, 100);
    ck_assert_int_eq(brc_buf_reserve(&buf, 1, &err), BRC_ELIMIT);
    OK(brc_buf_reserve(&buf, 0, &err));
    OK(brc_buf_terminate(&buf, &err)); /* the zero does not count */
    ck_assert_uint_eq(strlen((char *)buf.data), 100);
    brc_buf_dispose(&buf);
}

TEST(fixed_memory_never_moves)
{
    uint8_t memory[8];
    brc_buf buf = { sizeof(brc_buf), memory, 0, sizeof(memory), 0, BRC_BUF_FIXED, 0 };
    brc_error err = BRC_ERROR_INIT;
    OK(brc_buf_printf(&buf, &err, "%s", "1234567"));
    ck_assert_int_eq(brc_buf_append(&buf, "ab", 2, &err), BRC_ELIMIT);
    ck_assert_uint_eq(buf.len, 7);
    OK(brc_buf_terminate(&buf, &err));
    ck_assert_str_eq((char *)memory, "1234567");
    OK(brc_buf_printf(&buf, &err, "%c", '8')); /* the last byte is usable */
    ck_assert_int_eq(memcmp(memory, "12345678", 8), 0);
    ck_assert_int_eq(brc_buf_terminate(&buf, &err), BRC_ELIMIT);
    ck_assert_ptr_eq(buf.data, memory);
    char *text;
    OK(brc_buf_take_text(&buf, &text, &err));
    ck_assert_str_eq(text, "12345678");
    free(text);
    brc_buf_dispose(&buf);
}

TEST(impossible_sizes_are_no_memory)
{
    brc_buf buf = BRC_BUF_INIT;
    brc_error err = BRC_ERROR_INIT;
    OK(brc_buf_text(&buf, "kept", &err));
    ck_assert_int_eq(brc_buf_reserve(&buf, SIZE_MAX, &err), BRC_ENOMEM);
    ck_assert_int_eq(brc_buf_reserve(&buf, SIZE_MAX - 10, &err), BRC_ENOMEM);
    ck_assert_uint_eq(buf.len, 4);
    ck_assert_int_eq(memcmp(buf.data, "kept", 4), 0);
    brc_buf_dispose(&buf);
}

/* A product that wraps is a small number. */
TEST(f22_arrays_that_no_memory_holds)
{
    static const size_t sizes[][2] = { { SIZE_MAX / 2 + 2, 2 }, { SIZE_MAX, SIZE_MAX },
                                       { (size_t)1 << 32, (size_t)1 << 32 },
                                       { SIZE_MAX / 2 + 1, 1 } };
    brc_error err = BRC_ERROR_INIT;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        void *array = &err;
        size_t cap = 0;
        ck_assert_int_eq(brc_new_array(&array, sizes[i][0], sizes[i][1], &err), BRC_ENOMEM);
        ck_assert_ptr_null(array);
        ck_assert_int_eq(brc_grow_array(&array, &cap, sizes[i][0], sizes[i][1], &err), BRC_ENOMEM);
        ck_assert_ptr_null(array);
        ck_assert_uint_eq(cap, 0);
    }
}

TEST(printf_of_any_length)
{
    for (int n = 250; n < 262; n++) {
        brc_buf buf = BRC_BUF_INIT;
        OK(brc_buf_printf(&buf, NULL, "<%*d>", n, 7));
        ck_assert_uint_eq(buf.len, (size_t)n + 2);
        ck_assert_uint_eq(buf.data[n], '7');
        ck_assert_uint_eq(buf.data[n + 1], '>');
        brc_buf_dispose(&buf);
    }
}

TEST(text_is_handed_over)
{
    brc_buf buf = BRC_BUF_INIT;
    char *text;
    OK(brc_buf_text(&buf, "hello", NULL));
    OK(brc_buf_take_text(&buf, &text, NULL));
    ck_assert_str_eq(text, "hello");
    ck_assert_ptr_null(buf.data);
    free(text);
    OK(brc_buf_take_text(&buf, &text, NULL));
    ck_assert_str_eq(text, "");
    free(text);
}

TEST(varints_round_trip)
{
    static const uint64_t values[] = { 0, 1, 127, 128, 300, 16383, 16384, UINT64_C(1) << 62,
                                       UINT64_C(1) << 63, UINT64_MAX };
    static const size_t lens[] = { 1, 1, 1, 2, 2, 2, 3, 9, 10, 10 };
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        brc_buf buf = BRC_BUF_INIT;
        OK(brc_buf_varint(&buf, values[i], NULL));
        ck_assert_uint_eq(buf.len, lens[i]);
        brc_reader r = brc_reader_of(buf.data, buf.len);
        ck_assert_uint_eq(brc_read_varint(&r), values[i]);
        ck_assert(!r.bad);
        ck_assert_uint_eq(brc_reader_left(&r), 0);
        /* one byte less is not a number */
        r = brc_reader_of(buf.data, buf.len - 1);
        ck_assert_uint_eq(brc_read_varint(&r), 0);
        ck_assert(r.bad);
        brc_buf_dispose(&buf);
    }
}

TEST(varints_have_one_form)
{
    static const char *const bad[] = { "\x80\x00", "\xFF\x00", "\x80\x80\x00",
                                       "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x02",
                                       "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x81\x01" };
    static const size_t lens[] = { 2, 2, 3, 10, 11 };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        brc_reader r = brc_reader_of(bad[i], lens[i]);
        ck_assert_uint_eq(brc_read_varint(&r), 0);
        ck_assert_msg(r.bad, "case %zu", i);
    }
}

TEST(a_reader_stays_inside)
{
    uint8_t *four = malloc(4); /* on the heap: a sanitizer sees the fifth byte */
    memcpy(four, "abcd", 4);
    brc_reader r = brc_reader_of(four, 4);
    ck_assert_uint_eq(brc_read_byte(&r), 'a');
    ck_assert_ptr_eq(brc_read_bytes(&r, 0), four + 1);
    ck_assert_ptr_eq(brc_read_bytes(&r, 2), four + 1);
    ck_assert_uint_eq(brc_reader_left(&r), 1);
    ck_assert_ptr_null(brc_read_bytes(&r, UINT64_MAX));
    ck_assert(r.bad);
    ck_assert_uint_eq(brc_reader_left(&r), 0);
    ck_assert_uint_eq(brc_read_byte(&r), 0); /* though there was one */
    r = brc_reader_of(NULL, 0);
    ck_assert_ptr_nonnull(brc_read_bytes(&r, 0));
    ck_assert_uint_eq(brc_read_byte(&r), 0);
    ck_assert(r.bad);
    free(four);
}

TEST(little_endian_numbers)
{
    uint8_t bytes[8];
    brc_put_u64le(bytes, UINT64_C(0x0123456789ABCDEF));
    ck_assert_int_eq(memcmp(bytes, "\xEF\xCD\xAB\x89\x67\x45\x23\x01", 8), 0);
    ck_assert_uint_eq(brc_get_u64le(bytes), UINT64_C(0x0123456789ABCDEF));
    brc_put_u32le(bytes, 0xFEDCBA98u);
    ck_assert_int_eq(memcmp(bytes, "\x98\xBA\xDC\xFE", 4), 0);
    ck_assert_uint_eq(brc_get_u32le(bytes), 0xFEDCBA98u);
}

/* A decoder of no bytes still writes behind buf->data, so the pointer must be valid. */
TEST(f23_room_for_nothing_is_no_null)
{
    brc_buf buf = BRC_BUF_INIT, limited = { .limit = 3 };
    ck_assert_int_eq(brc_buf_reserve(&buf, 0, NULL), BRC_OK);
    ck_assert_ptr_nonnull(buf.data);
    ck_assert_int_eq(brc_buf_reserve(&limited, 0, NULL), BRC_OK);
    ck_assert_ptr_nonnull(limited.data);
    ck_assert_uint_le(limited.cap, 3);
    brc_buf_dispose(&buf);
    brc_buf_dispose(&limited);
}
