/* Bytes in JSON and for people, see bytes_json.h. */
#include "bytes_json.h"

#include <string.h>

static const char base64_digits[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static int base64_digit(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* Unused bits of the last digit must be zero: a value has one spelling. */
static int decode_base64_digits(uint8_t *dst, const char *text, size_t digits)
{
    uint32_t held = 0;
    unsigned nheld = 0;
    for (size_t i = 0; i < digits; i++) {
        int digit = base64_digit(text[i]);
        if (digit < 0)
            return 0;
        held = held << 6 | (uint32_t)digit;
        nheld += 6;
        if (nheld >= 8) {
            nheld -= 8;
            *dst++ = (uint8_t)(held >> nheld);
            held &= (1u << nheld) - 1;
        }
    }
    return held == 0;
}

int brc_base64_read(brc_buf *out, const char *text, brc_error *err)
{
    size_t len = strlen(text), pad = 0;
    while (pad < 2 && pad < len && text[len - 1 - pad] == '=')
        pad++;
    if (len % 4 != 0)
        return BRC_EINVAL;
    if (len == 0)
        return BRC_OK;
    size_t n = len / 4 * 3 - pad;
    BRC_TRY(brc_buf_reserve(out, n, err));
    if (!decode_base64_digits(out->data + out->len, text, len - pad))
        return BRC_EINVAL;
    out->len += n;
    return BRC_OK;
}

int brc_base64_write(brc_buf *out, const uint8_t *data, size_t len, brc_error *err)
{
    if (len == 0)
        return BRC_OK;
    if (len > (SIZE_MAX - 8) / 2)
        return brc_fail(err, BRC_ELIMIT, "%zu bytes are too many for base64", len);
    BRC_TRY(brc_buf_reserve(out, (len + 2) / 3 * 4, err));
    uint8_t *p = out->data + out->len;
    for (size_t i = 0; i < len; i += 3) {
        size_t n = len - i < 3 ? len - i : 3;
        uint32_t held = (uint32_t)data[i] << 16;
        held |= n > 1 ? (uint32_t)data[i + 1] << 8 : 0;
        held |= n > 2 ? data[i + 2] : 0;
        for (size_t k = 0; k < 4; k++)
            *p++ = k <= n ? (uint8_t)base64_digits[held >> (18 - 6 * k) & 63] : '=';
    }
    out->len += (len + 2) / 3 * 4;
    return BRC_OK;
}

/* A JSON integer literal; 1.0 is none. */
static int byte_of(const brc_json *item, uint8_t *out)
{
    uint64_t value;
    if (!brc_json_uint(item, 255, &value))
        return 0;
    *out = (uint8_t)value;
    return 1;
}

int brc_bytes_read(brc_buf *out, const brc_json *json, brc_error *err)
{
    const char *text;
    if (brc_json_text(json, &text))
        return brc_base64_read(out, text, err);
    if (brc_json_kind(json) != BRC_JSON_ARRAY)
        return BRC_EINVAL;
    size_t n = brc_json_count(json);
    if (n == 0)
        return BRC_OK;
    BRC_TRY(brc_buf_reserve(out, n, err));
    uint8_t *p = out->data + out->len;
    for (const brc_json *v = brc_json_first(json); v != NULL; v = brc_json_next(v), p++)
        if (!byte_of(v, p))
            return BRC_EINVAL;
    out->len += n;
    return BRC_OK;
}

int brc_bytes_print(brc_buf *out, const uint8_t *data, size_t len, brc_error *err)
{
    for (size_t i = 0; i < len; i++) {
        if (data[i] == '\\')
            BRC_TRY(brc_buf_text(out, "\\\\", err));
        else if (data[i] >= 0x20 && data[i] < 0x7f && (i > 0 || !strchr("\"[", data[i])))
            BRC_TRY(brc_buf_byte(out, data[i], err));
        else
            BRC_TRY(brc_buf_printf(out, err, "\\x%02x", data[i]));
    }
    return BRC_OK;
}

static int lower_hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int brc_bytes_scan(brc_buf *out, const char *text, brc_error *err)
{
    for (const char *p = text; *p != '\0'; p++) {
        uint8_t byte = (uint8_t)*p;
        if (*p == '\\' && p[1] == '\\') {
            p++;
        } else if (*p == '\\' && p[1] == 'x' && lower_hex_digit(p[2]) >= 0 &&
                   lower_hex_digit(p[3]) >= 0) {
            byte = (uint8_t)(lower_hex_digit(p[2]) << 4 | lower_hex_digit(p[3]));
            p += 3;
        }
        BRC_TRY(brc_buf_byte(out, byte, err));
    }
    return BRC_OK;
}

/* ---- strings -------------------------------- */

/* Escapes are \" \\ \b \f \n \r \t and \u00XX for other control characters. */
static int unescape_json(brc_buf *out, const char *p, brc_error *err)
{
    static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";
    for (; *p != '\0'; p++) {
        uint8_t byte = (uint8_t)*p;
        if (byte == '\\') {
            const char *found = strchr(from, *++p);
            byte = (uint8_t)(found != NULL ? to[found - from] : *p);
            if (*p == 'u') {
                byte = (uint8_t)(lower_hex_digit(p[3]) << 4 | lower_hex_digit(p[4]));
                p += 4;
            }
        }
        BRC_TRY(brc_buf_byte(out, byte, err));
    }
    return BRC_OK;
}

int brc_string_read(brc_buf *out, const brc_json *json, brc_error *err)
{
    const char *text;
    if (brc_json_text(json, &text))
        return brc_buf_append(out, text, strlen(text), err);
    return unescape_json(out, brc_json_escaped(json), err);
}
