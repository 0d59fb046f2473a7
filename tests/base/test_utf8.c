/* UTF-8: every character there and back, and what is not one. */
#include <string.h>

#include "../../src/base/buf.h"
#include "../kit/suite.h"

TEST_SUITE(utf8);

/* By the bits of RFC 3629's table, not as utf8.c does it. */
static size_t model_encode(uint8_t out[4], uint32_t c)
{
    if (c < 0x80) {
        out[0] = (uint8_t)c;
        return 1;
    }
    if (c < 0x800) {
        out[0] = (uint8_t)(0xC0 + c / 64);
        out[1] = (uint8_t)(0x80 + c % 64);
        return 2;
    }
    if (c < 0x10000) {
        out[0] = (uint8_t)(0xE0 + c / 4096);
        out[1] = (uint8_t)(0x80 + c / 64 % 64);
        out[2] = (uint8_t)(0x80 + c % 64);
        return 3;
    }
    out[0] = (uint8_t)(0xF0 + c / 262144);
    out[1] = (uint8_t)(0x80 + c / 4096 % 64);
    out[2] = (uint8_t)(0x80 + c / 64 % 64);
    out[3] = (uint8_t)(0x80 + c % 64);
    return 4;
}

TEST(every_character_is_encoded_and_valid)
{
    for (uint32_t code = 0; code <= 0x10FFFF; code++) {
        uint8_t bytes[4], want[4];
        int is_surrogate = code >= 0xD800 && code < 0xE000;
        size_t n = brc_utf8_encode(bytes, code);
        if (n != model_encode(want, code) || memcmp(bytes, want, n) != 0 ||
            brc_utf8_step(bytes, n) != (is_surrogate ? 0 : n) ||
            brc_utf8_valid_bytes(bytes, n) == is_surrogate ||
            brc_utf8_valid((const char *)bytes, n) != (!is_surrogate && code != 0) ||
            (n > 1 && brc_utf8_step(bytes, n - 1) != 0))
            ck_abort_msg("U+%04X", (unsigned)code);
    }
}

/* A pair of bytes is valid if it is two characters below U+0080, or one character. */
TEST(other_bytes_are_not_valid)
{
    for (unsigned pair = 0; pair < 0x10000; pair++) {
        uint8_t bytes[2] = { (uint8_t)(pair >> 8), (uint8_t)pair };
        int ascii = bytes[0] < 0x80 && bytes[1] < 0x80;
        int two = bytes[0] >= 0xC2 && bytes[0] < 0xE0 && (bytes[1] & 0xC0) == 0x80;
        ck_assert_int_eq(brc_utf8_valid_bytes(bytes, 2), ascii || two);
    }
    ck_assert(brc_utf8_valid_bytes(NULL, 0));
    ck_assert(brc_utf8_valid("", 0));
    ck_assert(!brc_utf8_valid_bytes((const uint8_t *)"\xE0\x80\x80", 3)); /* a long form */
    ck_assert(!brc_utf8_valid_bytes((const uint8_t *)"\xF4\x90\x80\x80", 4));
    ck_assert(!brc_utf8_valid_bytes((const uint8_t *)"\xF8\x88\x80\x80\x80", 5));
}
