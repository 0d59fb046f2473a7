/* Tar streams for tests. */
#include "tar_kit.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

static int append_bytes(void *ctx, const uint8_t *from, size_t len, brc_error *err)
{
    return brc_buf_append(ctx, from, len, err);
}

brc_tar_sink tar_kit_sink(brc_buf *buf)
{
    return (brc_tar_sink){ buf, append_bytes };
}

static int give_bytes(void *ctx, uint8_t *to, size_t cap, size_t *n, brc_error *err)
{
    tar_kit_bytes *bytes = ctx;
    (void)err;
    *n = bytes->len < cap ? bytes->len : cap;
    if (bytes->step > 0 && *n > bytes->step)
        *n = bytes->step;
    if (*n > 0)
        memcpy(to, bytes->data, *n);
    bytes->data += *n;
    bytes->len -= *n;
    return BRC_OK;
}

brc_tar_source tar_kit_source(tar_kit_bytes *bytes)
{
    return (brc_tar_source){ bytes, give_bytes };
}

static void pad_block(brc_buf *buf)
{
    while (buf->len % 512 != 0)
        ck_assert_int_eq(brc_buf_byte(buf, 0, NULL), BRC_OK);
}

/* Octal, or where that is too short base 256 as GNU tar has it. */
static void put_size(char *field, uint64_t size)
{
    if (size < (uint64_t)1 << 33) {
        snprintf(field, 12, "%011llo", (unsigned long long)size);
        return;
    }
    memset(field, 0, 12);
    field[0] = (char)0x80;
    for (int i = 0; i < 8; i++)
        field[11 - i] = (char)(size >> (8 * i));
}

void tar_kit_member(brc_buf *buf, char type, const char *name, const char *link, uint64_t size,
                    const void *bytes, size_t len)
{
    char header[512] = { 0 };
    unsigned sum = 0;
    memcpy(header, name, strlen(name) < 100 ? strlen(name) : 100);
    memcpy(header + 100, "0000644", 8);
    memcpy(header + 108, "0000000", 8);
    memcpy(header + 116, "0000000", 8);
    put_size(header + 124, size);
    memcpy(header + 136, "00000000000", 12);
    memset(header + 148, ' ', 8);
    header[156] = type;
    if (link)
        memcpy(header + 157, link, strlen(link));
    memcpy(header + 257, "ustar\00000", 8);
    for (size_t i = 0; i < sizeof(header); i++)
        sum += (unsigned char)header[i];
    snprintf(header + 148, 8, "%06o", sum);
    ck_assert_int_eq(brc_buf_append(buf, header, sizeof(header), NULL), BRC_OK);
    ck_assert_int_eq(brc_buf_append(buf, bytes, len, NULL), BRC_OK);
    pad_block(buf);
}

void tar_kit_file(brc_buf *buf, const char *name, const char *text)
{
    tar_kit_member(buf, '0', name, NULL, strlen(text), text, strlen(text));
}

void tar_kit_end(brc_buf *buf)
{
    static const char zeroes[1024];
    ck_assert_int_eq(brc_buf_append(buf, zeroes, sizeof(zeroes), NULL), BRC_OK);
}

void tar_kit_range(brc_buf *buf, const char *name, const char *range)
{
    char line[300];
    size_t len = strlen(" SCHILY.xattr." BRC_TAR_RANGE "=\n") + strlen(range) + 2;
    len += len >= 100; /* the line's own length is counted too */
    int n = snprintf(line, sizeof(line), "%zu SCHILY.xattr." BRC_TAR_RANGE "=%s\n", len, range);
    ck_assert_int_eq(n, (int)len);
    tar_kit_member(buf, 'x', "pax", NULL, len, line, len);
    tar_kit_member(buf, '0', name, NULL, 0, NULL, 0);
}
