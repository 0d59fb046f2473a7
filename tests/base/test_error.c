/* Errors: what lands in the structure, and what is kept out of it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/base/alloc.h"
#include "../../src/base/buf.h"
#include "../kit/suite.h"

TEST_SUITE(error);

TEST(fail_fills_in_everything)
{
    brc_error err;
    memset(&err, 0x55, sizeof(err));
    int rc = brc_fail(&err, BRC_ENOTFOUND, "branch \"%s\" is not here, there are %d", "x", 3);
    ck_assert_int_eq(rc, BRC_ENOTFOUND);
    ck_assert_int_eq(err.code, BRC_ENOTFOUND);
    ck_assert_int_eq(err.detail, 0);
    ck_assert_str_eq(err.source, "");
    ck_assert_str_eq(err.message, "branch \"x\" is not here, there are 3");
    ck_assert_int_eq(brc_fail(NULL, BRC_EIO, "nobody listens"), BRC_EIO);
}

TEST(a_message_may_quote_the_old_one)
{
    brc_error err = BRC_ERROR_INIT;
    brc_fail(&err, BRC_EIO, "disk");
    brc_fail(&err, BRC_ECORRUPT, "gone: %s", err.message);
    ck_assert_str_eq(err.message, "gone: disk");
    brc_context(&err, "node %s", "/a");
    ck_assert_str_eq(err.message, "node /a: gone: disk");
    ck_assert_int_eq(err.code, BRC_ECORRUPT);
    brc_context(NULL, "nothing");
}

/* Four-byte characters behind 0 to 3 bytes: most ways the limit falls inside one. */
TEST(long_messages_are_cut_between_characters)
{
    for (size_t shift = 0; shift < 4; shift++) {
        char text[2000];
        memset(text, 'x', shift);
        for (size_t i = shift; i + 4 < sizeof(text); i += 4)
            memcpy(text + i, "\xF0\x9F\xAA\xA8", 5);
        brc_error err = BRC_ERROR_INIT;
        brc_fail(&err, BRC_EINVAL, "%s", text);
        size_t len = strlen(err.message);
        ck_assert_uint_eq((len - shift) % 4, 0);
        ck_assert_uint_gt(len, sizeof(err.message) - 5);
        ck_assert(brc_utf8_valid(err.message, len));
        brc_context(&err, "%s", "prefix");
        ck_assert_int_eq(strncmp(err.message, "prefix: ", 8), 0);
        ck_assert(brc_utf8_valid(err.message, strlen(err.message)));
    }
}

TEST(messages_are_one_line_of_utf8)
{
    brc_error err = BRC_ERROR_INIT;
    brc_fail(&err, BRC_EINVAL, "%s", "a\nb\x1b[31m\xFF\xC3\xA9\x7F\xC3");
    ck_assert_str_eq(err.message, "a?b?[31m?\xC3\xA9??");
}

TEST(errno_becomes_a_code)
{
    brc_error err = BRC_ERROR_INIT;
    ck_assert_int_eq(brc_fail_os(&err, ENOENT, "opening", "/a/b"), BRC_ENOTFOUND);
    ck_assert_str_eq(err.message, "opening /a/b: No such file or directory");
    ck_assert_int_eq(err.detail, ENOENT);
    ck_assert_str_eq(err.source, "os");
    ck_assert_int_eq(brc_fail_os(&err, ENOSPC, "writing", "x"), BRC_ENOSPACE);
    ck_assert_int_eq(brc_fail_os(&err, EEXIST, "making", "x"), BRC_EEXISTS);
    ck_assert_int_eq(brc_fail_os(&err, EIO, "reading", "x"), BRC_EIO);
    ck_assert_int_eq(err.code, BRC_EIO);
    ck_assert_int_eq(brc_fail_os(NULL, EACCES, "opening", "x"), BRC_EIO);
}

TEST(every_code_has_words)
{
    for (int code = 0; code >= BRC_ECOLLISION; code--)
        ck_assert_str_ne(brc_strerror(code), "unknown error");
    ck_assert_str_eq(brc_strerror(BRC_ECOLLISION), "two different contents have the same hash");
    ck_assert_str_eq(brc_strerror(BRC_ENOMEM), "out of memory");
    ck_assert_str_eq(brc_strerror(BRC_ECOLLISION - 1), "unknown error");
    ck_assert_str_eq(brc_strerror(1), "unknown error");
    ck_assert_str_eq(brc_strerror(-2147483647 - 1), "unknown error");
}

TEST(sizes_that_overflow_are_no_memory)
{
    brc_error err = BRC_ERROR_INIT;
    void *p = &err;
    ck_assert_int_eq(brc_new_array(&p, SIZE_MAX / 2, 4, &err), BRC_ENOMEM);
    ck_assert_ptr_null(p);
    ck_assert_int_eq(err.code, BRC_ENOMEM);
    ck_assert_int_eq(brc_new(&p, SIZE_MAX, &err), BRC_ENOMEM);
    ck_assert_int_eq(brc_new_big(&p, SIZE_MAX - 4, &err), BRC_ENOMEM);
    size_t cap = 0;
    p = NULL;
    ck_assert_int_eq(brc_grow_array(&p, &cap, SIZE_MAX / 4, 8, &err), BRC_ENOMEM);
    ck_assert_uint_eq(cap, 0);
}

TEST(new_memory_is_zero_and_arrays_keep_their_items)
{
    brc_error err = BRC_ERROR_INIT;
    void *p;
    ck_assert_int_eq(brc_new_array(&p, 100, 8, &err), BRC_OK);
    for (size_t i = 0; i < 800; i++)
        ck_assert_uint_eq(((uint8_t *)p)[i], 0);
    free(p);
    ck_assert_int_eq(brc_new(&p, 0, &err), BRC_OK);
    free(p);
    p = NULL;
    size_t cap = 0;
    for (size_t i = 0; i < 1000; i++) {
        ck_assert_int_eq(brc_grow_array(&p, &cap, i + 1, sizeof(size_t), &err), BRC_OK);
        ck_assert_uint_gt(cap, i);
        ((size_t *)p)[i] = i;
    }
    for (size_t i = 0; i < 1000; i++)
        ck_assert_uint_eq(((size_t *)p)[i], i);
    free(p);
}

TEST(big_memory_is_aligned)
{
    brc_error err = BRC_ERROR_INIT;
    static const size_t sizes[] = { 0, 1, 4096, 4194303, 4194304, 5000001 };
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        void *p;
        ck_assert_int_eq(brc_new_big(&p, sizes[i], &err), BRC_OK);
        if (sizes[i] >= 4194304)
            ck_assert_uint_eq((uintptr_t)p % 2097152, 0);
        memset(p, 0xAB, sizes[i]);
        free(p);
    }
}

TEST(checked_arithmetic)
{
    uint64_t out;
    ck_assert(brc_mul_u64(UINT64_C(1) << 32, (UINT64_C(1) << 32) - 1, &out));
    ck_assert(!brc_mul_u64(UINT64_C(1) << 32, UINT64_C(1) << 32, &out));
    ck_assert(brc_add_u64(UINT64_MAX, 0, &out));
    ck_assert(!brc_add_u64(UINT64_MAX, 1, &out));
}
