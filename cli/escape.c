/*
 * escape.c - makes text safe to show on a terminal.
 */
#include "cli.h"

#include <string.h>

size_t cli_utf8_length(const char *text)
{
    const unsigned char *p = (const unsigned char *)text;
    size_t n = p[0] < 0x80                    ? 1
               : p[0] >= 0xc2 && p[0] <= 0xdf ? 2
               : (p[0] & 0xf0) == 0xe0        ? 3
               : p[0] >= 0xf0 && p[0] <= 0xf4 ? 4
                                              : 0;

    for (size_t i = 1; i < n; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) ||
        (p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f))
        return 0;
    return n;
}

int cli_steers_terminal(const char *text, size_t n)
{
    const unsigned char *p = (const unsigned char *)text;

    if (n == 1)
        return p[0] < 0x20 || p[0] == 0x7f;
    if (n == 2)
        return (p[0] == 0xc2 && p[1] < 0xa0) || (p[0] == 0xd8 && p[1] == 0x9c);
    if (n == 3 && p[0] == 0xe2)
        return (p[1] == 0x80 && ((p[2] >= 0xaa && p[2] <= 0xae) || p[2] == 0xa8 || p[2] == 0xa9 ||
                                 p[2] == 0x8e || p[2] == 0x8f)) ||
               (p[1] == 0x81 && p[2] >= 0xa6 && p[2] <= 0xa9);
    return 0;
}

int cli_has_steering(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];

        if (c < 0x20 || c >= 0x7f)
            return 1;
    }
    return 0;
}

/* Writes each byte of one character as an escape; returns the length of that. */
static size_t escape_bytes(char *out, const char *text, size_t n)
{
    static const char hex[] = "0123456789abcdef";
    size_t at = 0;

    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)text[i];

        out[at++] = '\\';
        if (c == '\n' || c == '\t' || c == '\r') {
            out[at++] = c == '\n' ? 'n' : c == '\t' ? 't' : 'r';
        } else {
            out[at++] = 'x';
            out[at++] = hex[c >> 4];
            out[at++] = hex[c & 15];
        }
    }
    return at;
}

const char *cli_escaped_bytes(struct cli *cli, const char *text, size_t len)
{
    const char *end = text + len;
    char *out = cli_alloc(cli, 4 * len + 1, 1);
    size_t at = 0;

    while (text < end) {
        size_t n = cli_utf8_length(text);
        int whole = n > 0 && n <= (size_t)(end - text);

        if (whole && !cli_steers_terminal(text, n)) {
            memcpy(out + at, text, n);
            at += n;
        } else {
            n = whole ? n : 1;
            at += escape_bytes(out + at, text, n);
        }
        text += n;
    }
    out[at] = '\0';
    return out;
}

const char *cli_escaped(struct cli *cli, const char *text)
{
    return cli_escaped_bytes(cli, text, strlen(text));
}

size_t cli_text_width(const char *text)
{
    size_t n = 0;

    for (; *text; text++)
        n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}
