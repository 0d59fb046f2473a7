/* Bytes in JSON and for people, see dtype_text.h. */
#include "dtype_text.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "dtype_ops.h"

/* ==== bytes json ================================ */

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

/* Requires zeros in the unused bits of the last digit, so that a value has one spelling. */
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

/* Reads a byte from a JSON integer literal; 1.0 is not one. */
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

/* ==== dtype text ================================ */

/*
 * string and bytes: elements of variable length.
 *
 * A canonical element is a little-endian uint32 of its bytes, and the bytes. A
 * string is UTF-8 and may hold U+0000; its fill value is a JSON string. The fill
 * value of bytes is base64, or an array of integers; base64 is written, because
 * every peer reads it. `bytes` has two other names in files that exist, and a type
 * keeps the name that it was read with.
 *
 * As JSON, bytes are base64; as text, see brc_bytes_print().
 */

/* ---- what both have in common -------------------------------- */

/* Makes room for the count of the bytes that are appended next. */
static int counted_begin(brc_buf *out, size_t *start, brc_error *err)
{
    static const uint8_t count[4];
    *start = out->len;
    return brc_buf_append(out, count, sizeof(count), err);
}

/* Writes the count. rc: the result of appending the bytes, which are removed if it is a failure. */
static int counted_end(const brc_dtype *type, brc_buf *out, size_t start, int rc, brc_error *err)
{
    if (rc == BRC_OK && out->len - start - 4 > UINT32_MAX)
        rc = brc_fail(err, BRC_ELIMIT, "an element of %s has at most 2^32-1 bytes", type->name);
    if (rc == BRC_OK)
        brc_put_u32le(out->data + start, (uint32_t)(out->len - start - 4));
    else
        out->len = start;
    return rc;
}

static int counted_check(const brc_dtype *type, const uint8_t *element, size_t len, brc_error *err)
{
    if (len >= 4 && brc_get_u32le(element) == len - 4)
        return BRC_OK;
    return brc_fail(err, BRC_EINVAL, "an element of %s is not a length followed by that many bytes",
                    type->name);
}

/* ---- string -------------------------------- */

static int string_parse(const brc_dtype *type, const brc_json *json, brc_buf *out, brc_error *err)
{
    char label[BRC_VALUE_LABEL];
    size_t start = 0;
    if (brc_json_kind(json) != BRC_JSON_STRING)
        return brc_fail(err, BRC_EINVAL, "fill value %s does not fit %s (a JSON string)",
                        brc_value_label(label, json), type->name);
    BRC_TRY(counted_begin(out, &start, err));
    return counted_end(type, out, start, brc_string_read(out, json, err), err);
}

static int string_print(const brc_dtype *type, const uint8_t *element, size_t len, int how,
                        brc_buf *out, brc_error *err)
{
    BRC_TRY(counted_check(type, element, len, err));
    const char *text = (const char *)element + 4;
    if (!brc_utf8_valid_bytes(element + 4, len - 4))
        return brc_fail(err, BRC_ECORRUPT, "an element of %s is not UTF-8", type->name);
    if (how == BRC_PRINT_TEXT)
        return brc_buf_append(out, text, len - 4, err);
    return brc_json_quote(out, text, len - 4, err);
}

/* ---- bytes -------------------------------- */

static int bytes_parse(const brc_dtype *type, const brc_json *json, brc_buf *out, brc_error *err)
{
    char label[BRC_VALUE_LABEL];
    size_t start = 0;
    BRC_TRY(counted_begin(out, &start, err));
    int rc = counted_end(type, out, start, brc_bytes_read(out, json, err), err);
    if (rc == BRC_EINVAL)
        return brc_fail(err, BRC_EINVAL,
                        "fill value %s does not fit %s (integers from 0 to 255, or base64)",
                        brc_value_label(label, json), type->name);
    return rc;
}

static int bytes_print(const brc_dtype *type, const uint8_t *element, size_t len, int how,
                       brc_buf *out, brc_error *err)
{
    BRC_TRY(counted_check(type, element, len, err));
    if (how == BRC_PRINT_TEXT)
        return brc_bytes_print(out, element + 4, len - 4, err);
    BRC_TRY(brc_buf_byte(out, '"', err));
    BRC_TRY(brc_base64_write(out, element + 4, len - 4, err));
    return brc_buf_byte(out, '"', err);
}

/* ---- text as people type it -------------------------------- */

/* Reads a string: text in quotes is JSON; other text, also 12 and true, is the string itself. */
static int string_scan(const brc_dtype *type, const char *text, const brc_json *json, brc_buf *out,
                       brc_error *err)
{
    size_t start = 0;
    if (brc_json_kind(json) == BRC_JSON_STRING)
        return 0;
    BRC_TRY(brc_text_is_utf8(type, text, err));
    BRC_TRY(counted_begin(out, &start, err));
    BRC_TRY(counted_end(type, out, start, brc_buf_text(out, text, err), err));
    return 1;
}

/* Reads bytes: text in quotes or a list is JSON; all other text is that of brc_bytes_print(). */
static int bytes_scan(const brc_dtype *type, const char *text, const brc_json *json, brc_buf *out,
                      brc_error *err)
{
    int kind = brc_json_kind(json);
    size_t start = 0;
    if (kind == BRC_JSON_STRING || kind == BRC_JSON_ARRAY)
        return 0;
    BRC_TRY(counted_begin(out, &start, err));
    BRC_TRY(counted_end(type, out, start, brc_bytes_scan(out, text, err), err));
    return 1;
}

/* ---- the table -------------------------------- */

static const brc_dtype_ops string_ops = { .size = sizeof(brc_dtype_ops),
                                          .parse = string_parse,
                                          .print = string_print,
                                          .scan = string_scan };
static const brc_dtype_ops bytes_ops = { .size = sizeof(brc_dtype_ops),
                                         .parse = bytes_parse,
                                         .print = bytes_print,
                                         .scan = bytes_scan };

#define VARIABLE(name_, klass_, ops_)                                                 \
    {                                                                                 \
        .size = sizeof(brc_dtype), .name = name_, .klass = klass_, .swap_unit = 1,    \
        .ops = &ops_                                                                  \
    }

const brc_dtype brc_text_types[BRC_TEXT_TYPES] = {
    VARIABLE("string", BRC_CLASS_STRING, string_ops),
    VARIABLE("bytes", BRC_CLASS_BYTES, bytes_ops),
    VARIABLE("variable_length_bytes", BRC_CLASS_BYTES, bytes_ops),
    VARIABLE("binary", BRC_CLASS_BYTES, bytes_ops),
};

/* ==== dtype time ================================ */

/*
 * numpy.datetime64 and numpy.timedelta64: an int64 count of scale_factor * unit,
 * since 1970-01-01 for datetime64, of elapsed time for timedelta64. -2^63 is "not a time".
 *
 * As JSON both are the count, or "NaT": a count loses nothing, and dates do not
 * hold every count. As text a date is as NumPy prints it, as fine as its unit:
 *
 *   Y 2020   M 2020-01   W, D 2020-01-01   h 2020-01-01T00   m 2020-01-01T00:00
 *   s 2020-01-01T00:00:00   ms, us, ns, ps, fs, as: 3 to 18 more digits
 *
 * and a duration, like a date without a unit, is its count. Dates that people type
 * are read too, if the unit can represent them exactly.
 *
 * Counts times scale_factor go past 64 bits, hence 128. The calendar is the
 * proleptic Gregorian one; days are counted in years that begin on 1 March.
 */

__extension__ typedef __int128 wide_int;

enum time_unit {
    UNIT_YEAR, UNIT_MONTH, UNIT_WEEK, UNIT_DAY, UNIT_HOUR, UNIT_MINUTE, UNIT_SECOND,
    UNIT_MILLI, UNIT_MICRO, UNIT_NANO, UNIT_PICO, UNIT_FEMTO, UNIT_ATTO, UNIT_GENERIC
};

/* Two more spellings of "us": with U+03BC, as in the specification, and with U+00B5. */
static const struct {
    const char *text;
    enum time_unit unit;
} unit_names[] = {
    { "Y", UNIT_YEAR },   { "M", UNIT_MONTH },  { "W", UNIT_WEEK },       { "D", UNIT_DAY },
    { "h", UNIT_HOUR },   { "m", UNIT_MINUTE }, { "s", UNIT_SECOND },     { "ms", UNIT_MILLI },
    { "us", UNIT_MICRO }, { "ns", UNIT_NANO },  { "ps", UNIT_PICO },      { "fs", UNIT_FEMTO },
    { "as", UNIT_ATTO },  { "generic", UNIT_GENERIC },
    { "\xCE\xBCs", UNIT_MICRO }, { "\xC2\xB5s", UNIT_MICRO },
};

struct time_state {
    enum time_unit unit;
    int64_t scale;
    char npy[48];
    char json[128];
};

static const struct time_state *time_of(const brc_dtype *type)
{
    return type->state;
}

/* ---- opening -------------------------------- */

static int read_unit(const brc_json *json, enum time_unit *out)
{
    for (size_t i = 0; i < sizeof(unit_names) / sizeof(unit_names[0]); i++) {
        if (brc_json_is(json, unit_names[i].text)) {
            *out = unit_names[i].unit;
            return 1;
        }
    }
    return 0;
}

static int time_read_config(struct time_state *state, const char *name, const brc_json *config,
                            brc_error *err)
{
    static const char *const members[] = { "unit", "scale_factor" };
    const brc_json *unit = brc_json_member(config, "unit");
    if (config != NULL)
        BRC_TRY(brc_json_allow(config, members, 2, err));
    if (unit == NULL)
        return brc_fail(err, BRC_EINVAL, "data type %s needs \"unit\" and \"scale_factor\"", name);
    if (!read_unit(unit, &state->unit))
        return brc_fail(err, BRC_EINVAL,
                        "data type %s: \"unit\" must be one of Y, M, W, D, h, m, s, ms, us, ns, "
                        "ps, fs, as and generic",
                        name);
    if (!brc_json_int(brc_json_member(config, "scale_factor"), 1, INT32_MAX, &state->scale))
        return brc_fail(err, BRC_EINVAL,
                        "data type %s: \"scale_factor\" must be an integer from 1 to 2147483647",
                        name);
    return BRC_OK;
}

/* Writes "<M8[ns]", "<M8[10us]", and "<M8" for the generic unit. */
static void time_write_names(struct time_state *state, const char *name, char kind)
{
    const char *unit = unit_names[state->unit].text;
    char scale[24] = "";
    if (state->scale > 1)
        snprintf(scale, sizeof(scale), "%" PRId64, state->scale);
    if (state->unit == UNIT_GENERIC && state->scale == 1)
        snprintf(state->npy, sizeof(state->npy), "<%c8", kind);
    else
        snprintf(state->npy, sizeof(state->npy), "<%c8[%s%s]", kind, scale, unit);
    snprintf(state->json, sizeof(state->json),
             "{\"name\":\"%s\",\"configuration\":{\"unit\":\"%s\",\"scale_factor\":%" PRId64 "}}",
             name, unit, state->scale);
}

static int time_parse(const brc_dtype *type, const brc_json *json, brc_buf *out, brc_error *err);
static int datetime_print(const brc_dtype *type, const uint8_t *element, size_t len, int how,
                          brc_buf *out, brc_error *err);
static int timedelta_print(const brc_dtype *type, const uint8_t *element, size_t len, int how,
                           brc_buf *out, brc_error *err);
static double time_number(const brc_dtype *type, const uint8_t *element);
static int datetime_scan(const brc_dtype *type, const char *text, const brc_json *json,
                         brc_buf *out, brc_error *err);

const brc_dtype_ops brc_datetime_ops = { .size = sizeof(brc_dtype_ops),
                                         .parse = time_parse,
                                         .print = datetime_print,
                                         .number = time_number,
                                         .scan = datetime_scan };
const brc_dtype_ops brc_timedelta_ops = { .size = sizeof(brc_dtype_ops),
                                          .parse = time_parse,
                                          .print = timedelta_print,
                                          .number = time_number };

int brc_time_open(void *ctx, brc_dtype *out, const char *name, const brc_json *config,
                  brc_error *err)
{
    const char *own_name = ctx;
    int is_date = strcmp(name, "numpy.datetime64") == 0;
    struct time_state read = { UNIT_GENERIC, 1, "", "" }, *state = NULL;
    BRC_TRY(time_read_config(&read, name, config, err));
    time_write_names(&read, own_name, is_date ? 'M' : 'm');
    BRC_TRY(brc_new((void **)&state, sizeof(*state), err));
    *state = read;
    *out = (brc_dtype){ .size = sizeof(brc_dtype),
                        .json = state->json,
                        .name = own_name,
                        .klass = BRC_CLASS_TIME,
                        .item_size = 8,
                        .swap_unit = 8,
                        .bits = 64,
                        .npy = state->npy,
                        .ops = is_date ? &brc_datetime_ops : &brc_timedelta_ops,
                        .state = state };
    return BRC_OK;
}

void brc_time_close(void *ctx, brc_dtype *type)
{
    (void)ctx;
    free(type->state);
    type->state = NULL;
}

/* ---- counts -------------------------------- */

static int64_t load_count(const uint8_t *element)
{
    uint64_t bits = brc_load_le(element, 8);
    int64_t count;
    memcpy(&count, &bits, sizeof(count));
    return count;
}

static int append_count(brc_buf *out, int64_t count, brc_error *err)
{
    uint8_t bytes[8];
    brc_store_le(bytes, 8, (uint64_t)count);
    return brc_buf_append(out, bytes, 8, err);
}

static int time_parse(const brc_dtype *type, const brc_json *json, brc_buf *out, brc_error *err)
{
    const uint64_t lowest = UINT64_C(1) << 63;
    char label[BRC_VALUE_LABEL];
    if (brc_json_kind(json) != BRC_JSON_STRING)
        return brc_integer_parse(type, json, lowest, lowest - 1, out, err);
    if (!brc_json_is(json, "NaT"))
        return brc_fail(err, BRC_EINVAL, "fill value %s does not fit %s (an integer, or \"NaT\")",
                        brc_value_label(label, json), type->name);
    return append_count(out, INT64_MIN, err);
}

static int print_count(int64_t count, int how, brc_buf *out, brc_error *err)
{
    if (count == INT64_MIN)
        return brc_buf_text(out, how == BRC_PRINT_TEXT ? "NaT" : "\"NaT\"", err);
    return brc_buf_printf(out, err, "%" PRId64, count);
}

static int timedelta_print(const brc_dtype *type, const uint8_t *element, size_t len, int how,
                           brc_buf *out, brc_error *err)
{
    BRC_TRY(brc_element_length_fits(type, len, err));
    return print_count(load_count(element), how, out, err);
}

static double time_number(const brc_dtype *type, const uint8_t *element)
{
    (void)type;
    int64_t count = load_count(element);
    return count == INT64_MIN ? NAN : (double)count;
}

/* ---- the calendar -------------------------------- */

struct civil_time {
    wide_int year;
    int month, day, hour, minute, second;
    int64_t fraction; /* of a second, in 10^-18 */
};

#define ATTOS INT64_C(1000000000000000000)

static wide_int floor_divide(wide_int a, wide_int b, wide_int *rest)
{
    wide_int q = a / b, r = a % b;
    if (r < 0) {
        r += b;
        q--;
    }
    *rest = r;
    return q;
}

/* 400 years have 146097 days; 1970-01-01 is day 719468 after 1 March of the year 0. */
static void civil_from_days(struct civil_time *out, wide_int days)
{
    wide_int day_of_era;
    wide_int era = floor_divide(days + 719468, 146097, &day_of_era);
    int doe = (int)day_of_era;
    int yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
    int doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    int m = (5 * doy + 2) / 153; /* from March: 153 days are five months */
    out->day = doy - (153 * m + 2) / 5 + 1;
    out->month = m < 10 ? m + 3 : m - 9;
    out->year = era * 400 + yoe + (out->month <= 2);
}

static wide_int days_from_civil(const struct civil_time *t)
{
    wide_int rest;
    wide_int era = floor_divide(t->year - (t->month <= 2), 400, &rest);
    int yoe = (int)rest;
    int doy = (153 * (t->month > 2 ? t->month - 3 : t->month + 9) + 2) / 5 + t->day - 1;
    return era * 146097 + yoe * 365 + yoe / 4 - yoe / 100 + doy - 719468;
}

/* Returns how many of a unit make a second; 1 for a second and for longer units. */
static int64_t units_per_second(enum time_unit unit)
{
    int64_t n = 1;
    for (int i = UNIT_SECOND; i < (int)unit; i++)
        n *= 1000;
    return n;
}

static void civil_from_seconds(struct civil_time *out, wide_int seconds)
{
    wide_int rest;
    civil_from_days(out, floor_divide(seconds, 86400, &rest));
    out->hour = (int)(rest / 3600);
    out->minute = (int)(rest / 60 % 60);
    out->second = (int)(rest % 60);
}

static void civil_from_count(struct civil_time *out, wide_int n, enum time_unit unit)
{
    wide_int rest = 0;
    memset(out, 0, sizeof(*out));
    out->month = out->day = 1;
    switch (unit) {
    case UNIT_YEAR: out->year = n + 1970; return;
    case UNIT_MONTH:
        out->year = floor_divide(n, 12, &rest) + 1970;
        out->month = (int)rest + 1;
        return;
    case UNIT_WEEK: civil_from_days(out, n * 7); return;
    case UNIT_DAY: civil_from_days(out, n); return;
    case UNIT_HOUR: civil_from_seconds(out, n * 3600); return;
    case UNIT_MINUTE: civil_from_seconds(out, n * 60); return;
    default: break;
    }
    int64_t per_second = units_per_second(unit);
    civil_from_seconds(out, floor_divide(n, per_second, &rest));
    out->fraction = (int64_t)rest * (ATTOS / per_second);
}

/* Counts a time in units, without scale. Returns 0 if the unit is too coarse for the time. */
static int count_from_civil(wide_int *out, const struct civil_time *t, enum time_unit unit)
{
    wide_int rest = 0, n = days_from_civil(t);
    wide_int seconds = n * 86400 + t->hour * 3600 + t->minute * 60 + t->second;
    int whole_day = t->hour == 0 && t->minute == 0 && t->second == 0 && t->fraction == 0;
    switch (unit) {
    case UNIT_YEAR:
        *out = t->year - 1970;
        return whole_day && t->day == 1 && t->month == 1;
    case UNIT_MONTH:
        *out = (t->year - 1970) * 12 + t->month - 1;
        return whole_day && t->day == 1;
    case UNIT_WEEK: *out = floor_divide(n, 7, &rest); return whole_day && rest == 0;
    case UNIT_DAY: *out = n; return whole_day;
    case UNIT_HOUR: *out = floor_divide(seconds, 3600, &rest); return rest + t->fraction == 0;
    case UNIT_MINUTE: *out = floor_divide(seconds, 60, &rest); return rest + t->fraction == 0;
    default: break;
    }
    int64_t per_second = units_per_second(unit);
    if (__builtin_mul_overflow(seconds, (wide_int)per_second, out))
        *out = (wide_int)1 << 126; /* exceeds every count of 64 bits, by any scale */
    *out += t->fraction / (ATTOS / per_second);
    return t->fraction % (ATTOS / per_second) == 0;
}

/* ---- dates as text -------------------------------- */

/* Returns how much of "YYYY-MM-DDThh:mm:ss" the unit shows after the year. */
static size_t shown_length(enum time_unit unit)
{
    static const size_t shown[] = { 0, 3, 6, 6, 9, 12 };
    return unit < UNIT_SECOND ? shown[unit] : 15;
}

static int datetime_print_text(const struct time_state *state, int64_t count, brc_buf *out,
                               brc_error *err)
{
    struct civil_time t;
    char rest[64], fraction[24];
    civil_from_count(&t, (wide_int)count * state->scale, state->unit);
    if (t.year > INT64_MAX || t.year < INT64_MIN) /* NumPy does not print a date either */
        return print_count(count, BRC_PRINT_TEXT, out, err);
    BRC_TRY(brc_buf_printf(out, err, "%04" PRId64, (int64_t)t.year));
    snprintf(rest, sizeof(rest), "-%02d-%02dT%02d:%02d:%02d", t.month, t.day, t.hour, t.minute,
             t.second);
    BRC_TRY(brc_buf_append(out, rest, shown_length(state->unit), err));
    if (state->unit <= UNIT_SECOND)
        return BRC_OK;
    snprintf(fraction, sizeof(fraction), ".%018" PRId64, t.fraction);
    return brc_buf_append(out, fraction, 1 + 3 * (size_t)(state->unit - UNIT_SECOND), err);
}

static int datetime_print(const brc_dtype *type, const uint8_t *element, size_t len, int how,
                          brc_buf *out, brc_error *err)
{
    const struct time_state *state = time_of(type);
    BRC_TRY(brc_element_length_fits(type, len, err));
    int64_t count = load_count(element);
    if (how != BRC_PRINT_TEXT || count == INT64_MIN || state->unit == UNIT_GENERIC)
        return print_count(count, how, out, err);
    return datetime_print_text(state, count, out, err);
}

/* Reads `digits` digits at *p, or leaves *p unchanged. */
static int take_number(const char **p, size_t digits, int *out)
{
    int value = 0;
    for (size_t i = 0; i < digits; i++) {
        if ((*p)[i] < '0' || (*p)[i] > '9')
            return 0;
        value = value * 10 + ((*p)[i] - '0');
    }
    *p += digits;
    *out = value;
    return 1;
}

/* Reads a mark and two digits, if the mark comes next. Returns 0 if the digits are wrong. */
static int take_part(const char **p, char mark, int *out, int *more)
{
    if (!*more || **p != mark) {
        *more = 0;
        return 1;
    }
    ++*p;
    return take_number(p, 2, out);
}

static int take_second_fraction(const char **p, int64_t *out)
{
    int64_t value = 0, place = ATTOS / 10;
    const char *s = *p;
    if (*s != '.')
        return 1;
    for (s++; *s >= '0' && *s <= '9' && place > 0; s++, place /= 10)
        value += (*s - '0') * place;
    int any = s - *p > 1;
    *p = s;
    *out = value;
    return any;
}

static int days_of_month(wide_int year, int month)
{
    static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
    int leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    return month == 2 && leap ? 29 : days[month - 1];
}

/* Reads "2020-01-02", "2020-01-02T03:04:05.678", a year of 4 to 12 digits, or a year and
 * a month; a space may replace the T, and a Z may follow a time. */
static int read_civil(struct civil_time *out, const char *text)
{
    const char *p = text + (text[0] == '-');
    size_t year_digits = strspn(p, "0123456789");
    int more = 1;
    memset(out, 0, sizeof(*out));
    out->month = out->day = 1;
    /* NumPy's "-001" has three digits; more than 19 exceed 2^63 */
    if (year_digits < (text[0] == '-' ? 3 : 4) || year_digits > 19)
        return 0;
    errno = 0;
    int64_t year = strtoll(p, NULL, 10);
    if (errno != 0)
        return 0;
    out->year = text[0] == '-' ? -year : year;
    p += year_digits;
    if (!take_part(&p, '-', &out->month, &more) || !take_part(&p, '-', &out->day, &more) ||
        out->month < 1 || out->month > 12 || out->day < 1 ||
        out->day > days_of_month(out->year, out->month))
        return 0;
    if (!take_part(&p, *p == ' ' ? ' ' : 'T', &out->hour, &more))
        return 0;
    int has_time = more;
    if (!take_part(&p, ':', &out->minute, &more) || !take_part(&p, ':', &out->second, &more) ||
        (more && !take_second_fraction(&p, &out->fraction)))
        return 0;
    p += has_time && *p == 'Z';
    return *p == '\0' && out->hour < 24 && out->minute < 60 && out->second < 60;
}

static int datetime_scan(const brc_dtype *type, const char *text, const brc_json *json,
                         brc_buf *out, brc_error *err)
{
    struct civil_time t;
    wide_int count, rest = 0;
    const struct time_state *state = time_of(type);
    /* a number is a count, except for years, which print as numbers */
    if ((brc_json_kind(json) == BRC_JSON_NUMBER && state->unit != UNIT_YEAR) ||
        !read_civil(&t, text)) {
        if (json != NULL ? brc_json_kind(json) != BRC_JSON_STRING || brc_json_is(json, "NaT")
                         : strcmp(text, "NaT") == 0)
            return 0;
        return brc_fail(err, BRC_EINVAL, "'%.60s' is not a date such as 2020-05-01T12:30, nor NaT",
                        text);
    }
    if (state->unit == UNIT_GENERIC)
        return brc_fail(err, BRC_EINVAL, "%s is a date, but the type's unit is generic: an "
                        "integer is needed", text);
    if (count_from_civil(&count, &t, state->unit))
        count = floor_divide(count, state->scale, &rest);
    else
        rest = 1;
    if (rest != 0)
        return brc_fail(err, BRC_EINVAL,
                        "%.60s is not a multiple of the type's unit, %" PRId64 " %s", text,
                        state->scale, unit_names[state->unit].text);
    if (count > INT64_MAX || count <= INT64_MIN)
        return brc_fail(err, BRC_EINVAL, "%.60s does not fit 64 bits in units of %" PRId64 " %s",
                        text, state->scale, unit_names[state->unit].text);
    BRC_TRY(append_count(out, (int64_t)count, err));
    return 1;
}
