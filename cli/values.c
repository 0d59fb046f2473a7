/*
 * values.c - values in arguments.
 */
#include "values.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli.h"

/* ==== times ================================ */

const char *cli_format_time(char out[CLI_TIME_CAP], int64_t time_us)
{
    time_t seconds = time_us / 1000000 - (time_us % 1000000 < 0);
    int us = (int)(time_us - (int64_t)seconds * 1000000);
    struct tm date;

    if (!gmtime_r(&seconds, &date)) /* never: the year fits into an int */
        memset(&date, 0, sizeof(date));
    snprintf(out, CLI_TIME_CAP, "%04d-%02d-%02dT%02d:%02d:%02d.%06dZ", date.tm_year + 1900,
             date.tm_mon + 1, date.tm_mday, date.tm_hour, date.tm_min, date.tm_sec, us);
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

int cli_double_option(struct cli *cli, const char *name, double *out)
{
    const char *text = cli_value(cli, name);
    char *end;
    double value;

    if (!text)
        return BRC_OK;
    value = strtod(text, &end);
    if (end == text || *end || strchr(" \t\n", *text) || !(value >= 0))
        return cli_usage(cli, "option --%s: '%s' is not a number from 0 on, such as 1e-6", name,
                         text);
    *out = value;
    return BRC_OK;
}

/* Returns "3,3" for "(3, 3)", "[3,3]", "(3,)" and "3x3". */
static const char *plain_dims(struct cli *cli, const char *text)
{
    size_t len = strlen(text), n = 0;
    char *plain = cli_alloc(cli, len + 1, 1);
    int is_pair = len > 1 && ((text[0] == '(' && text[len - 1] == ')') ||
                              (text[0] == '[' && text[len - 1] == ']'));

    for (size_t i = is_pair ? 1 : 0; i < len - (is_pair ? 1 : 0); i++) {
        int separates = text[i] == 'x' && i > 0 && isdigit((unsigned char)text[i - 1]) &&
                        isdigit((unsigned char)text[i + 1]) && strncmp(text, "0x", 2) != 0;

        if (text[i] != ' ' || n == 0 || plain[n - 1] != ',')
            plain[n++] = separates ? ',' : text[i];
    }
    if (is_pair && n > 1 && plain[n - 1] == ',')
        n--;
    plain[n] = '\0';
    return plain;
}

int cli_dims_option(struct cli *cli, const char *name, uint64_t dims[BRC_MAX_NDIM], int *ndim)
{
    const char *text = cli_value(cli, name), *p = text ? plain_dims(cli, text) : NULL;
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
    if (brc_time_parse(out, text, &cli->err) < 0)
        return cli_usage(cli, "option --%s: %s", name, cli_text(cli, "%s", cli->err.message));
    return BRC_OK;
}

int cli_date_option(struct cli *cli, int64_t *out)
{
    int64_t time = 1;

    CLI_TRY(cli_time_option(cli, "date", &time));
    if (time == 0) /* the library reads 0 as "now" */
        return cli_usage(cli, "option --date: the first microsecond of 1970 cannot be used: "
                              "add one");
    if (cli_has(cli, "date"))
        *out = time;
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

int cli_file_text(struct cli *cli, const char *name, size_t limit, char **out)
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

const char *cli_plain_number(struct cli *cli, const char *text)
{
    const char *sign = text[0] == '-' ? "-" : "";
    const char *digits = text + (text[0] == '-' || text[0] == '+');
    size_t whole = strspn(digits, "0123456789");
    int has_point = digits[whole] == '.';
    const char *part = digits + whole + (has_point ? 1 : 0);
    size_t n = strspn(part, "0123456789");

    if (whole + n == 0 || (part[n] != '\0' && part[n] != 'e' && part[n] != 'E'))
        return text;
    return cli_text(cli, "%s%.*s%s%s%s", sign, whole ? (int)whole : 1, whole ? digits : "0",
                    has_point ? "." : "", has_point && n == 0 ? "0" : "", part);
}

/* Returns NULL if the text is one JSON value, else the reason why it is not. The library refuses
 * a text that is too long or too deep. */
static const char *why_not_json(struct cli *cli, const char *text, uint32_t flags)
{
    static const char prefix[] = "JSON: ";
    brc_error err = BRC_ERROR_INIT;
    brc_json *value;
    int rc = brc_json_parse(&value, text, strlen(text), flags, &err);
    size_t skip = strncmp(err.message, prefix, sizeof(prefix) - 1) == 0 ? sizeof(prefix) - 1 : 0;

    brc_json_free(value);
    return rc == BRC_EINVAL ? cli_text(cli, "%s", err.message + skip) : NULL;
}

int cli_json_text_argument(struct cli *cli, const char *what, const char *text, uint32_t flags,
                           const char **out)
{
    char *loaded = NULL;
    const char *why;

    if (text[0] == '@') {
        CLI_TRY(cli_file_text(cli, text + 1, JSON_FILE_LIMIT, &loaded));
        if ((why = why_not_json(cli, loaded, flags)))
            return cli_fail(cli, BRC_EINVAL, "%s: %s is not valid JSON: %s", what, text + 1, why);
        *out = loaded;
        return BRC_OK;
    }
    if ((why = why_not_json(cli, text, flags)))
        return cli_usage(cli, "%s: '%s' is not valid JSON: %s", what, text, why);
    *out = text;
    return BRC_OK;
}

int cli_key_json(struct cli *cli, const char *what, const char *text, uint32_t flags,
                 const char **key, const char **json)
{
    size_t len = strcspn(text, "=");
    const char *value = text + len + 1;

    if (len == 0 || text[len] != '=')
        return cli_usage(cli, "%s'%s' is not KEY=JSON", what, text);
    *key = cli_text(cli, "%.*s", (int)len, text);
    if (value[0] != '@' && value[0] != '{' && value[0] != '[' &&
        why_not_json(cli, value, flags))
        return cli_usage(cli, "%s%s: '%s' is not valid JSON; a string needs quotes: %s='\"%s\"'",
                         what, *key, value, *key, value);
    return cli_json_text_argument(cli, cli_text(cli, "%s%s", what, *key), value, flags, json);
}

const char *cli_unquoted(struct cli *cli, const char *text)
{
    size_t len = strlen(text);

    if (len > 1 && (text[0] == '"' || text[0] == '\'') && text[len - 1] == text[0])
        return cli_text(cli, "%.*s", (int)len - 2, text + 1);
    return text;
}
