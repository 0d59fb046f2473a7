/* UTF-8, as RFC 3629 has it: no surrogates, no long forms, nothing past U+10FFFF. Errors use this
 * file, so it uses no other. */
#include <string.h>

#include "buf.h"

size_t brc_utf8_step(const uint8_t *at, size_t left)
{
    /* RFC 3629, section 4: the second byte's range depends on the first. */
    if (left == 0)
        return 0;
    uint8_t c = at[0];
    if (c < 0x80)
        return 1;
    size_t n = c >= 0xF0 ? 4 : c >= 0xE0 ? 3 : 2;
    if (c < 0xC2 || c > 0xF4 || left < n)
        return 0;
    uint8_t low = c == 0xE0 ? 0xA0 : c == 0xF0 ? 0x90 : 0x80;
    uint8_t high = c == 0xED ? 0x9F : c == 0xF4 ? 0x8F : 0xBF;
    if (at[1] < low || at[1] > high)
        return 0;
    for (size_t i = 2; i < n; i++)
        if ((at[i] & 0xC0) != 0x80)
            return 0;
    return n;
}

uint32_t brc_utf8_code(const uint8_t *at, size_t len)
{
    uint32_t code = len < 2 ? at[0] : at[0] & (0xffu >> (len + 1));
    for (size_t i = 1; i < len; i++)
        code = code << 6 | (at[i] & 0x3f);
    return code;
}

int brc_utf8_valid_bytes(const uint8_t *at, size_t len)
{
    while (len > 0) {
        size_t step = brc_utf8_step(at, len);
        if (step == 0)
            return 0;
        at += step;
        len -= step;
    }
    return 1;
}

int brc_utf8_valid(const char *text, size_t len)
{
    return len == 0 || (memchr(text, 0, len) == NULL &&
                        brc_utf8_valid_bytes((const uint8_t *)text, len));
}

size_t brc_utf8_encode(uint8_t out[4], uint32_t code)
{
    static const uint8_t lead[] = { 0, 0, 0xC0, 0xE0, 0xF0 };
    if (code < 0x80) {
        out[0] = (uint8_t)code;
        return 1;
    }
    size_t n = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = n - 1; i > 0; i--, code >>= 6)
        out[i] = (uint8_t)(0x80 | (code & 0x3F));
    out[0] = (uint8_t)(lead[n] | code);
    return n;
}
