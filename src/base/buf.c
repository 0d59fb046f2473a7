/*
 * Growing bytes, and the reader of bytes from outside.
 *
 * Invariant: len <= cap, and len <= limit where there is one; a call that fails leaves
 * the content as it was.
 */
#include "buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alloc.h"

#define SMALLEST_CAP 64

static int resize_buf(brc_buf *buf, size_t cap, brc_error *err)
{
    if (!buf->data) {
        void *fresh;
        BRC_TRY(brc_new_big(&fresh, cap, err));
        buf->data = fresh;
    } else {
        uint8_t *grown = cap <= PTRDIFF_MAX ? realloc(buf->data, cap) : NULL;
        if (!grown)
            return brc_nomem(err);
        buf->data = grown;
    }
    buf->cap = cap;
    return BRC_OK;
}

/* All versions so far have the same fields. */
static int is_buf(const brc_buf *buf)
{
    return buf->size == 0 || buf->size >= sizeof(*buf);
}

static int is_fixed(const brc_buf *buf)
{
    return (buf->flags & BRC_BUF_FIXED) != 0;
}

int brc_buf_reserve(brc_buf *buf, size_t more, brc_error *err)
{
    uint64_t need;
    if (!is_buf(buf))
        return brc_fail(err, BRC_EINVAL, "a brc_buf of %zu bytes: start from BRC_BUF_INIT",
                        buf->size);
    if (!brc_add_u64(buf->len, more, &need) || need > SIZE_MAX)
        return brc_nomem(err);
    if (buf->limit > 0 && need > buf->limit)
        return brc_fail(err, BRC_ELIMIT, "%llu bytes exceed the limit of %zu",
                        (unsigned long long)need, buf->limit);
    if (need <= buf->cap && (buf->data != NULL || is_fixed(buf)))
        return BRC_OK;
    if (is_fixed(buf))
        return brc_fail(err, BRC_ELIMIT, "%llu bytes do not fit into %zu",
                        (unsigned long long)need, buf->cap);
    /* The first request is often the exact size. From then on by a half, and by as
     * much again while small, so that appending n bytes copies O(n). */
    uint64_t cap = need;
    uint64_t wish = (uint64_t)buf->cap + (buf->cap < 65536 ? buf->cap : buf->cap / 2);
    if (cap < wish)
        cap = wish;
    if (cap < SMALLEST_CAP)
        cap = SMALLEST_CAP;
    if (buf->limit > 0 && cap > buf->limit)
        cap = buf->limit;
    return resize_buf(buf, (size_t)cap, err);
}

int brc_buf_append(brc_buf *buf, const void *data, size_t len, brc_error *err)
{
    if (len == 0)
        return BRC_OK;
    BRC_TRY(brc_buf_reserve(buf, len, err));
    memcpy(buf->data + buf->len, data, len);
    buf->len += len;
    return BRC_OK;
}

/* Formats the text outside of the buffer: vsnprintf() needs one byte more than the text
 * has, and fixed memory may lack it. */
static int append_long_text(brc_buf *buf, size_t len, const char *format, va_list args,
                            brc_error *err)
{
    void *text;
    BRC_TRY(brc_new(&text, len + 1, err));
    int rc = BRC_OK;
    if (vsnprintf(text, len + 1, format, args) != (int)len)
        rc = brc_fail(err, BRC_EINTERNAL, "text could not be formatted");
    else
        rc = brc_buf_append(buf, text, len, err);
    free(text);
    return rc;
}

int brc_buf_printf(brc_buf *buf, brc_error *err, const char *format, ...)
{
    char small[256];
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int n = vsnprintf(small, sizeof(small), format, args);
    va_end(args);
    int rc;
    if (n < 0)
        rc = brc_fail(err, BRC_EINTERNAL, "text could not be formatted");
    else if ((size_t)n < sizeof(small))
        rc = brc_buf_append(buf, small, (size_t)n, err);
    else
        rc = append_long_text(buf, (size_t)n, format, again, err);
    va_end(again);
    return rc < 0 || is_fixed(buf) ? rc : brc_buf_terminate(buf, err);
}

void brc_buf_dispose(brc_buf *buf)
{
    if (!buf || !is_buf(buf))
        return;
    if (!is_fixed(buf))
        free(buf->data);
    buf->data = NULL;
    buf->len = buf->cap = buf->limit = 0;
    buf->flags = 0;
}

int brc_buf_byte(brc_buf *buf, uint8_t byte, brc_error *err)
{
    return brc_buf_append(buf, &byte, 1, err);
}

int brc_buf_text(brc_buf *buf, const char *text, brc_error *err)
{
    return brc_buf_append(buf, text, strlen(text), err);
}

int brc_buf_varint(brc_buf *buf, uint64_t value, brc_error *err)
{
    uint8_t bytes[10];
    size_t n = 0;
    while (value >= 0x80) {
        bytes[n++] = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    bytes[n++] = (uint8_t)value;
    return brc_buf_append(buf, bytes, n, err);
}

int brc_buf_terminate(brc_buf *buf, brc_error *err)
{
    /* The zero is not content, so a limit does not count it. */
    if (buf->len == buf->cap) {
        if (is_fixed(buf))
            return brc_fail(err, BRC_ELIMIT, "no room for a terminator after %zu bytes", buf->cap);
        if (buf->cap == SIZE_MAX)
            return brc_nomem(err);
        BRC_TRY(resize_buf(buf, buf->cap + 1, err));
    }
    buf->data[buf->len] = 0;
    return BRC_OK;
}

int brc_buf_take_text(brc_buf *buf, char **out, brc_error *err)
{
    *out = NULL;
    if (is_fixed(buf)) {
        BRC_TRY(brc_dup_n(out, (const char *)buf->data, buf->len, err));
        buf->len = 0;
        return BRC_OK;
    }
    BRC_TRY(brc_buf_terminate(buf, err));
    *out = (char *)buf->data;
    buf->data = NULL;
    buf->len = buf->cap = 0;
    return BRC_OK;
}

brc_reader brc_reader_of(const void *data, size_t len)
{
    static const uint8_t nothing[1] = { 0 };
    brc_reader r = { nothing, nothing, 0 };
    if (len > 0) {
        r.at = data;
        r.end = r.at + len;
    }
    return r;
}

size_t brc_reader_left(const brc_reader *r)
{
    return r->bad ? 0 : (size_t)(r->end - r->at);
}

const uint8_t *brc_read_bytes(brc_reader *r, uint64_t n)
{
    if (r->bad || n > (uint64_t)(r->end - r->at)) {
        r->bad = 1;
        return NULL;
    }
    const uint8_t *p = r->at;
    r->at += (size_t)n;
    return p;
}

uint8_t brc_read_byte(brc_reader *r)
{
    const uint8_t *p = brc_read_bytes(r, 1);
    return p ? *p : 0;
}

uint64_t brc_read_varint(brc_reader *r)
{
    uint64_t value = 0;
    if (!r->bad && r->at < r->end && *r->at < 0x80) /* nearly all numbers */
        return *r->at++;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        const uint8_t *p = brc_read_bytes(r, 1);
        if (!p)
            return 0;
        /* The tenth byte holds the 64th bit alone. */
        if (shift == 63 && *p > 1)
            break;
        value |= (uint64_t)(*p & 0x7F) << shift;
        if (*p < 0x80) {
            if (*p == 0 && shift > 0)
                break; /* a shorter form exists */
            return value;
        }
    }
    r->bad = 1;
    return 0;
}
