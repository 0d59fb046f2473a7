/*
 * values.c - values in arguments. Times are ISO 8601 in the proleptic Gregorian calendar.
 */
#include "values.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

/* ==== calendar ================================ */

/* Returns the days from 1970-01-01 to a day of the proleptic Gregorian calendar. Years begin
 * in March here, so that the leap day is the last day of a year. */
static int64_t days_from_date(int64_t year, int month, int day)
{
    int64_t y = year - (month <= 2);
    int64_t era = (y >= 0 ? y : y - 399) / 400;
    int64_t of_era = y - era * 400;
    int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;

    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

static void date_from_days(int64_t days, int64_t *year, int *month, int *day)
{
    int64_t z = days + 719468;
    int64_t era = (z >= 0 ? z : z - 146096) / 146097;
    int64_t of_era = z - era * 146097;
    int64_t y = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    int64_t of_year = of_era - (365 * y + y / 4 - y / 100);
    int64_t m = (5 * of_year + 2) / 153;

    *day = (int)(of_year - (153 * m + 2) / 5 + 1);
    *month = (int)(m < 10 ? m + 3 : m - 9);
    *year = y + era * 400 + (*month <= 2);
}

/* Reads exactly `n` digits at *text. */
static int take_digits(const char **text, int n, int *out)
{
    *out = 0;
    for (int i = 0; i < n; i++, ++*text) {
        if (**text < '0' || **text > '9')
            return 0;
        *out = *out * 10 + (**text - '0');
    }
    return 1;
}

static int take_char(const char **text, char c)
{
    if (**text != c)
        return 0;
    ++*text;
    return 1;
}

/* Reads ".25" as microseconds and drops further digits. */
static int take_fraction(const char **text, int64_t *us)
{
    int64_t scale = 100000;

    if (!take_char(text, '.'))
        return 1;
    if (**text < '0' || **text > '9')
        return 0;
    for (; **text >= '0' && **text <= '9'; ++*text, scale /= 10)
        *us += scale * (**text - '0');
    return 1;
}

/* Reads "Z", "+02:00", "-0530" or nothing as the seconds to subtract. */
static int take_zone(const char **text, int64_t *seconds)
{
    int sign = **text == '-' ? -1 : 1, hours, minutes;

    *seconds = 0;
    if (**text == '\0' || take_char(text, 'Z') || take_char(text, 'z'))
        return 1;
    if (!take_char(text, '+') && !take_char(text, '-'))
        return 0;
    if (!take_digits(text, 2, &hours))
        return 0;
    take_char(text, ':');
    if (!take_digits(text, 2, &minutes) || hours > 23 || minutes > 59)
        return 0;
    *seconds = sign * (hours * 3600 + minutes * 60);
    return 1;
}

static int days_in_month(int year, int month)
{
    static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
    int leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

    return days[month - 1] + (month == 2 && leap);
}

static int parse_calendar_time(int64_t *out, const char *p)
{
    int year, month, day, hour = 0, minute = 0, second = 0;
    int64_t us = 0, zone = 0;

    if (!take_digits(&p, 4, &year) || !take_char(&p, '-') || !take_digits(&p, 2, &month) ||
        !take_char(&p, '-') || !take_digits(&p, 2, &day))
        return 0;
    if (month < 1 || month > 12 || day < 1 || day > days_in_month(year, month))
        return 0;
    if (take_char(&p, 'T') || take_char(&p, 't') || take_char(&p, ' ')) {
        if (!take_digits(&p, 2, &hour) || !take_char(&p, ':') || !take_digits(&p, 2, &minute))
            return 0;
        if (take_char(&p, ':') && (!take_digits(&p, 2, &second) || !take_fraction(&p, &us)))
            return 0;
        if (hour > 23 || minute > 59 || second > 59 || !take_zone(&p, &zone))
            return 0;
    }
    *out = (days_from_date(year, month, day) * 86400 + hour * 3600 + minute * 60 + second - zone) *
               1000000 + us;
    return *p == '\0';
}

static int parse_seconds_time(int64_t *out, const char *p)
{
    int negative = take_char(&p, '-');
    int64_t seconds = 0, us = 0;

    if (*p < '0' || *p > '9')
        return 0;
    for (; *p >= '0' && *p <= '9'; p++) {
        seconds = seconds * 10 + (*p - '0');
        if (seconds > INT64_MAX / 10000000)
            return 0;
    }
    if (!take_fraction(&p, &us))
        return 0;
    *out = seconds * 1000000 + us;
    if (negative)
        *out = -*out;
    return *p == '\0';
}

/* Reads ISO 8601 or @SECONDS as microseconds since 1970; a time without a zone is UTC.
 * Returns 0 if `text` is not a time. */
static int cli_parse_time(int64_t *out, const char *text)
{
    return text[0] == '@' ? parse_seconds_time(out, text + 1) : parse_calendar_time(out, text);
}

const char *cli_format_time(char out[CLI_TIME_CAP], int64_t time_us)
{
    int64_t seconds = time_us / 1000000, us = time_us % 1000000, days, year;
    int month, day, rest;

    if (us < 0) {
        us += 1000000;
        seconds--;
    }
    days = seconds / 86400;
    rest = (int)(seconds % 86400);
    if (rest < 0) {
        rest += 86400;
        days--;
    }
    date_from_days(days, &year, &month, &day);
    snprintf(out, CLI_TIME_CAP, "%04lld-%02d-%02dT%02d:%02d:%02d.%06dZ", (long long)year, month,
             day, rest / 3600, rest / 60 % 60, rest % 60, (int)us);
    return out;
}

/* ==== values in arguments ================================ */

enum { JSON_FILE_LIMIT = 64 << 20 };

int cli_read_u64(uint64_t *out, const char *text)
{
    uint64_t value = 0;

    if (!*text)
        return 0;
    for (; *text; text++) {
        unsigned digit = (unsigned)(*text - '0');

        if (digit > 9 || value > (UINT64_MAX - digit) / 10)
            return 0;
        value = value * 10 + digit;
    }
    *out = value;
    return 1;
}

int cli_read_i64(int64_t *out, const char *text)
{
    int negative = text[0] == '-';
    uint64_t value;

    if (!cli_read_u64(&value, text + negative) || value > (uint64_t)INT64_MAX)
        return 0;
    *out = negative ? -(int64_t)value : (int64_t)value;
    return 1;
}

int cli_uint_option(struct cli *cli, const char *name, uint64_t low, uint64_t high, uint64_t *out)
{
    const char *text = cli_value(cli, name);
    uint64_t value;

    if (!text)
        return BRC_OK;
    if (!cli_read_u64(&value, text) || value < low || value > high)
        return cli_usage(cli, "option --%s: '%s' is not a whole number from %llu to %llu", name,
                         text, (unsigned long long)low, (unsigned long long)high);
    *out = value;
    return BRC_OK;
}

int cli_dims_option(struct cli *cli, const char *name, uint64_t dims[BRC_MAX_NDIM], int *ndim)
{
    const char *text = cli_value(cli, name), *p = text;
    char item[24];

    *ndim = 0;
    while (p && *p) {
        size_t len = strcspn(p, ",");

        if (*ndim == BRC_MAX_NDIM)
            return cli_usage(cli, "option --%s has more than %d dimensions", name, BRC_MAX_NDIM);
        snprintf(item, sizeof(item), "%.*s", len < sizeof(item) ? (int)len : 0, p);
        if (!cli_read_u64(&dims[*ndim], item))
            return cli_usage(cli, "option --%s: '%.*s' is not a whole number below 2^64", name,
                             (int)len, p);
        ++*ndim;
        p += len;
        if (*p == ',' && !*++p)
            return cli_usage(cli, "option --%s: '%s' ends with a comma", name,
                             text);
    }
    return BRC_OK;
}

int cli_choice_option(struct cli *cli, const char *name, const char *choices, const char **out)
{
    const char *text = cli_value(cli, name);
    size_t len = text ? strlen(text) : 0;

    if (!text)
        return BRC_OK;
    for (const char *p = choices; *p;) {
        size_t n = strcspn(p, "|");

        if (n == len && memcmp(p, text, n) == 0) {
            *out = text;
            return BRC_OK;
        }
        p += n + (p[n] == '|');
    }
    return cli_usage(cli, "option --%s: '%s' is not one of %s", name, text, choices);
}

int cli_time_option(struct cli *cli, const char *name, int64_t *out)
{
    const char *text = cli_value(cli, name);

    if (!text)
        return BRC_OK;
    if (!cli_parse_time(out, text))
        return cli_usage(cli,
                         "option --%s: '%s' is not a time; write 2026-11-20, 2026-11-20T12:00:00Z, "
                         "2026-11-20T13:00:00+01:00 or @SECONDS",
                         name, text);
    if (*out == 0) /* the library reads 0 as "now" */
        return cli_usage(cli, "option --%s: the first microsecond of 1970 cannot be used; add one",
                         name);
    return BRC_OK;
}

/* ---- files and JSON ----------------------------------------------------------- */

const char *cli_path(struct cli *cli, const char *operand)
{
    size_t len = strlen(operand);

    while (len > 1 && operand[len - 1] == '/')
        len--;
    if (operand[0] == '/')
        return cli_text(cli, "%.*s", (int)len, operand);
    return cli_text(cli, "/%.*s", (int)len, operand);
}

/* Reads a whole file as text of at most `limit` bytes. */
static int read_text_file(struct cli *cli, const char *name, size_t limit, char **out)
{
    FILE *file;
    char *text = NULL;
    size_t len = 0, n = 1;
    int failed;

    if (cli_operand(cli, 0))
        CLI_TRY(brc_check_file(cli_operand(cli, 0), name, &cli->err));
    file = fopen(name, "rb");
    if (!file)
        return cli_fail_errno(cli, errno, name);
    while (n > 0 && len <= limit) {
        text = cli_regrow(text, len + 65536, 1);
        n = fread(text + len, 1, 65535, file);
        len += n;
    }
    failed = ferror(file) ? errno : 0;
    fclose(file);
    if (!failed && len <= limit) {
        *out = cli_alloc(cli, len + 1, 1);
        memcpy(*out, text, len);
    }
    free(text);
    if (failed)
        return cli_fail_errno(cli, failed, name);
    if (len > limit)
        return cli_fail(cli, BRC_ELIMIT, "%s is longer than %zu bytes", name, limit);
    if (strlen(*out) != len)
        return cli_fail(cli, BRC_EINVAL, "%s contains a NUL byte, so it is not JSON text", name);
    return BRC_OK;
}

/* Returns NULL if the text is one JSON value, else the reason why it is not. The library refuses
 * a text that is too long or too deep. */
static const char *why_not_json(struct cli *cli, const char *text, cli_json_reader read)
{
    static const char prefix[] = "JSON: ";
    brc_error err = BRC_ERROR_INIT;
    brc_json *value;
    int rc = read(&value, text, strlen(text), &err);
    size_t skip = strncmp(err.message, prefix, sizeof(prefix) - 1) == 0 ? sizeof(prefix) - 1 : 0;

    brc_json_free(value);
    return rc == BRC_EINVAL ? cli_text(cli, "%s", err.message + skip) : NULL;
}

int cli_json_text_argument(struct cli *cli, const char *what, const char *text,
                           cli_json_reader read, const char **out)
{
    char *loaded = NULL;
    const char *why;

    if (text[0] == '@') {
        CLI_TRY(read_text_file(cli, text + 1, JSON_FILE_LIMIT, &loaded));
        if ((why = why_not_json(cli, loaded, read)))
            return cli_fail(cli, BRC_EINVAL, "%s: %s is not valid JSON: %s", what, text + 1, why);
        *out = loaded;
        return BRC_OK;
    }
    if ((why = why_not_json(cli, text, read)))
        return cli_usage(cli, "%s: '%s' is not valid JSON: %s", what, text, why);
    *out = text;
    return BRC_OK;
}

int cli_key_json(struct cli *cli, const char *what, const char *text, cli_json_reader read,
                 const char **key, const char **json)
{
    size_t len = strcspn(text, "=");
    const char *value = text + len + 1;

    if (len == 0 || text[len] != '=')
        return cli_usage(cli, "%s'%s' is not KEY=JSON", what, text);
    *key = cli_text(cli, "%.*s", (int)len, text);
    if (value[0] != '@' && value[0] != '{' && value[0] != '[' &&
        why_not_json(cli, value, read))
        return cli_usage(cli, "%s%s: '%s' is not valid JSON; a string needs quotes: %s='\"%s\"'",
                         what, *key, value, *key, value);
    return cli_json_text_argument(cli, cli_text(cli, "%s%s", what, *key), value, read, json);
}
