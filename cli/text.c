/*
 * text.c - numbers, shapes and ids as text.
 */
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>

const char *cli_count(struct cli *cli, uint64_t n, const char *what)
{
    return cli_text(cli, "%llu %s%s", (unsigned long long)n, what, n == 1 ? "" : "s");
}

const char *cli_long_id(struct cli *cli, const brc_oid *id)
{
    char hex[65];

    return cli_text(cli, "%s", brc_oid_format(hex, id));
}

const char *cli_short_id(struct cli *cli, const brc_oid *id)
{
    char hex[65];

    return cli_text(cli, "%.8s", brc_oid_format(hex, id));
}

const char *cli_dims_text(struct cli *cli, const uint64_t *dims, int ndim)
{
    size_t cap = (size_t)ndim * 21 + 1, at = 0;
    char *out = cli_alloc(cli, cap, 1);

    for (int i = 0; i < ndim; i++)
        at += (size_t)snprintf(out + at, cap - at, "%s%llu", i ? "," : "",
                               (unsigned long long)dims[i]);
    return out;
}

const char *cli_format_size(char out[CLI_SIZE_CAP], uint64_t bytes)
{
    static const char *const units[] = { "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
    double value = (double)bytes / 1024;
    size_t unit = 0;

    if (bytes < 1024) {
        snprintf(out, CLI_SIZE_CAP, "%d B", (int)bytes);
        return out;
    }
    for (; value >= 1023.95 && unit + 1 < sizeof(units) / sizeof(units[0]); unit++)
        value /= 1024;
    snprintf(out, CLI_SIZE_CAP, "%.1f %s", value, units[unit]);
    return out;
}

const char *cli_format_double(char out[CLI_DOUBLE_CAP], double value)
{
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(out, CLI_DOUBLE_CAP, "%.*g", digits, value);
        if (strtod(out, NULL) == value)
            break;
    }
    return out;
}
