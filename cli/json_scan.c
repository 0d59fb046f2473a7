/*
 * json_scan.c - a validating scanner of JSON text (RFC 8259) that builds nothing:
 * values are parts of the text.
 */
#include "json_scan.h"

#include <string.h>

enum { SCAN_DEPTH = 256 };

/* Every function of the scanner returns the place after what it read, or NULL. */

static const char *scan_space(const char *p, const char *end)
{
    while (p < end && (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r'))
        p++;
    return p;
}

static const char *scan_digits(const char *p, const char *end)
{
    const char *from = p;

    while (p < end && *p >= '0' && *p <= '9')
        p++;
    return p > from ? p : NULL;
}

static const char *scan_number(const char *p, const char *end)
{
    if (p < end && *p == '-')
        p++;
    if (p < end && *p == '0')
        p++;
    else if (!(p = scan_digits(p, end)))
        return NULL;
    if (p < end && *p == '.' && !(p = scan_digits(p + 1, end)))
        return NULL;
    if (p < end && (*p == 'e' || *p == 'E')) {
        p++;
        if (p < end && (*p == '+' || *p == '-'))
            p++;
        p = scan_digits(p, end);
    }
    return p;
}

static const char *scan_string(const char *p, const char *end)
{
    for (p++; p < end && *p != '"'; p++) {
        if ((unsigned char)*p < 0x20)
            return NULL;
        if (*p != '\\')
            continue;
        if (++p >= end || !strchr("\"\\/bfnrtu", *p))
            return NULL;
        for (int i = 0; *p == 'u' && i < 4; i++)
            if (p + 1 + i >= end || !strchr("0123456789abcdefABCDEF", p[1 + i]) || !p[1 + i])
                return NULL;
    }
    return p < end ? p + 1 : NULL;
}

static const char *scan_word(const char *p, const char *end)
{
    static const char *const words[] = { "true", "false", "null" };

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        size_t len = strlen(words[i]);

        if ((size_t)(end - p) >= len && memcmp(p, words[i], len) == 0)
            return p + len;
    }
    return NULL;
}

static const char *scan_value(const char *p, const char *end, int depth);

/* A key and its colon. */
static const char *scan_key(const char *p, const char *end)
{
    if (p >= end || *p != '"' || !(p = scan_string(p, end)))
        return NULL;
    p = scan_space(p, end);
    return p < end && *p == ':' ? p + 1 : NULL;
}

static const char *scan_container(const char *p, const char *end, int depth)
{
    char closing = *p == '{' ? '}' : ']';

    p = scan_space(p + 1, end);
    if (p < end && *p == closing)
        return p + 1;
    while (p) {
        if (closing == '}' && !(p = scan_key(scan_space(p, end), end)))
            return NULL;
        if (!(p = scan_value(p, end, depth + 1)))
            return NULL;
        p = scan_space(p, end);
        if (p < end && *p == closing)
            return p + 1;
        if (p >= end || *p != ',')
            return NULL;
        p++;
    }
    return NULL;
}

static const char *scan_value(const char *p, const char *end, int depth)
{
    p = scan_space(p, end);
    if (p >= end || depth > SCAN_DEPTH)
        return NULL;
    if (*p == '{' || *p == '[')
        return scan_container(p, end, depth);
    if (*p == '"')
        return scan_string(p, end);
    if (*p == '-' || (*p >= '0' && *p <= '9'))
        return scan_number(p, end);
    return scan_word(p, end);
}

int cli_json_valid(const char *text)
{
    const char *end = text + strlen(text);
    const char *p = scan_value(text, end, 0);

    return p && scan_space(p, end) == end;
}

int cli_json_find(struct cli_json_text *out, const char *text, size_t len, const char *key)
{
    const char *end = text + len, *p = scan_space(text, end);

    if (p >= end || *p != '{')
        return 0;
    p = scan_space(p + 1, end);
    while (p < end && *p == '"') {
        const char *name = p + 1;
        size_t name_len;

        if (!(p = scan_string(p, end)))
            return 0;
        name_len = (size_t)(p - name) - 1;
        p = scan_space(p, end);
        if (p >= end || *p != ':')
            return 0;
        out->text = scan_space(p + 1, end);
        if (!(p = scan_value(out->text, end, 0)))
            return 0;
        out->len = (size_t)(p - out->text);
        if (name_len == strlen(key) && memcmp(name, key, name_len) == 0)
            return 1;
        p = scan_space(p, end);
        if (p >= end || *p != ',')
            return 0;
        p = scan_space(p + 1, end);
    }
    return 0;
}

int cli_json_item(struct cli_json_text *out, const char *text, size_t len, size_t *cursor)
{
    const char *end = text + len, *p = scan_space(text + *cursor, end);

    if (p >= end || (*cursor == 0 && *p != '[') || (*cursor != 0 && *p != ','))
        return 0;
    out->text = scan_space(p + 1, end);
    if (!(p = scan_value(out->text, end, 0)))
        return 0;
    out->len = (size_t)(p - out->text);
    *cursor = (size_t)(p - text);
    return 1;
}

int cli_json_is_string(const struct cli_json_text *value, const char *text)
{
    size_t len = strlen(text);

    return value->len == len + 2 && value->text[0] == '"' &&
           memcmp(value->text + 1, text, len) == 0;
}
