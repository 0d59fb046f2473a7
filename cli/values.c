/*
 * values.c - values in arguments.
 */
#include "values.h"

#include "cli.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* All of a file as text, at most `limit` bytes. */
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

/* NULL if the text is one JSON value, else why not. What is too long or too deep is the library's
 * to refuse. */
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
