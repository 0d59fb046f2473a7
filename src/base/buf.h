/* Growing bytes, bounds-checked reading of bytes from outside, and UTF-8. */
#ifndef BRC_BASE_BUF_H
#define BRC_BASE_BUF_H

#include "error.h"

/* A buffer in memory of `bytes` bytes, which the caller owns. */
#define BRC_FIXED_BUF(memory, bytes) \
    {.size = sizeof(brc_buf), .data = (memory), .cap = (bytes), .flags = BRC_BUF_FIXED}

BRC_MUST_USE int brc_buf_byte(brc_buf *buf, uint8_t byte, brc_error *err);
BRC_MUST_USE int brc_buf_text(brc_buf *buf, const char *text, brc_error *err);
/* Appends a number as LEB128: 7 bits per byte, low first, the high bit set on all but the last. */
BRC_MUST_USE int brc_buf_varint(brc_buf *buf, uint64_t value, brc_error *err);
/* Puts a zero byte, which len does not count, after the content, so that data is a C string. */
BRC_MUST_USE int brc_buf_terminate(brc_buf *buf, brc_error *err);
/* Hands the memory over as a C string and empties buf. */
BRC_MUST_USE int brc_buf_take_text(brc_buf *buf, char **out, brc_error *err);

/* A reader never passes the end: after the first short read `bad` is set, and
 * every result is zero. */
typedef struct brc_reader {
    const uint8_t *at, *end;
    int bad;
} brc_reader;

brc_reader brc_reader_of(const void *data, size_t len);
uint8_t brc_read_byte(brc_reader *r);
uint64_t brc_read_varint(brc_reader *r);          /* non-minimal forms are bad   */
const uint8_t *brc_read_bytes(brc_reader *r, uint64_t n); /* NULL if too short */
size_t brc_reader_left(const brc_reader *r);

static inline void brc_put_u32le(uint8_t *p, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        p[i] = (uint8_t)(v >> (8 * i));
}
static inline void brc_put_u64le(uint8_t *p, uint64_t v)
{
    for (int i = 0; i < 8; i++)
        p[i] = (uint8_t)(v >> (8 * i));
}
static inline uint32_t brc_get_u32le(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}
static inline uint64_t brc_get_u64le(const uint8_t *p)
{
    return (uint64_t)brc_get_u32le(p) | (uint64_t)brc_get_u32le(p + 4) << 32;
}

/* ---- UTF-8 -------------------------------- */

/* Returns the length of the sequence at `at`, or 0 if it is not valid or goes past `left`. */
size_t brc_utf8_step(const uint8_t *at, size_t left);
/* Returns the code of the valid character of `len` bytes. */
uint32_t brc_utf8_code(const uint8_t *at, size_t len);
/* Returns 1 if the bytes are valid UTF-8. */
int brc_utf8_valid_bytes(const uint8_t *at, size_t len);
/* Returns 1 if the text is valid UTF-8 without NUL. */
int brc_utf8_valid(const char *text, size_t len);
/* Writes the character's bytes and returns their number. `code` is at most U+10FFFF. */
size_t brc_utf8_encode(uint8_t out[4], uint32_t code);

#endif
