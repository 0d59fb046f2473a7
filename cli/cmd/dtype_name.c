/*
 * dtype_name.c - names of data types, as Zarr and NumPy have them.
 *
 * A name that the registry has means what it means there. Of NumPy's names an order of bytes ('<',
 * '>', '=', '|') is taken off: in Zarr codecs have it, not types.
 */
#include "dtype_name.h"

#include "../cli.h"
#include "../similar.h"

#include <stdlib.h>
#include <string.h>

enum { NAMES_MOST = 192 };

static const char *const numpy_names[][2] = {
    { "?", "bool" },         { "b1", "bool" },        { "bool_", "bool" },
    { "i1", "int8" },        { "i2", "int16" },       { "i4", "int32" },
    { "i8", "int64" },       { "int", "int64" },      { "u1", "uint8" },
    { "u2", "uint16" },      { "u4", "uint32" },      { "u8", "uint64" },
    { "uint", "uint64" },    { "f2", "float16" },     { "f4", "float32" },
    { "f8", "float64" },     { "half", "float16" },   { "single", "float32" },
    { "float", "float64" },  { "double", "float64" }, { "c8", "complex64" },
    { "c16", "complex128" }, { "complex", "complex128" }, { "str", "string" },
};

/* A type whose length NumPy has behind a letter. */
static const struct {
    char letter;
    const char *name;
    unsigned long bytes; /* of one of so many */
} sized_names[] = {
    { 'S', "null_terminated_bytes", 1 },
    { 'U', "fixed_length_utf32", 4 },
    { 'V', "raw_bytes", 1 },
};

static const char *const time_names[][2] = {
    { "datetime64", "numpy.datetime64" },
    { "M8", "numpy.datetime64" },
    { "timedelta64", "numpy.timedelta64" },
    { "m8", "numpy.timedelta64" },
};

static const char *numpy_name(const char *name)
{
    for (size_t i = 0; i < sizeof(numpy_names) / sizeof(numpy_names[0]); i++)
        if (strcmp(numpy_names[i][0], name) == 0)
            return numpy_names[i][1];
    return NULL;
}

/* "S10", "U5", "V8" */
static const char *with_length(struct cli *cli, const char *name)
{
    size_t digits = name[0] ? strspn(name + 1, "0123456789") : 0;

    if (digits == 0 || digits > 8 || name[1 + digits] != '\0')
        return NULL;
    unsigned long n = strtoul(name + 1, NULL, 10);
    for (size_t i = 0; i < sizeof(sized_names) / sizeof(sized_names[0]); i++)
        if (sized_names[i].letter == name[0])
            return cli_text(cli, "{\"name\":\"%s\",\"configuration\":{\"length_bytes\":%lu}}",
                            sized_names[i].name, n * sized_names[i].bytes);
    return NULL;
}

/* "datetime64[ns]", "m8[10us]"; the library says which units there are. */
static const char *with_unit(struct cli *cli, const char *name)
{
    size_t len = strcspn(name, "["), all = strlen(name);
    const char *type = NULL;

    for (size_t i = 0; i < sizeof(time_names) / sizeof(time_names[0]); i++)
        if (strlen(time_names[i][0]) == len && memcmp(time_names[i][0], name, len) == 0)
            type = time_names[i][1];
    if (!type || all < len + 3 || name[all - 1] != ']')
        return NULL;
    const char *unit = name + len + 1;
    size_t digits = strspn(unit, "0123456789"), letters = all - len - 2 - digits;
    if (digits > 9 || strcspn(unit, "\"\\") < digits + letters)
        return NULL;
    return cli_text(cli,
                    "{\"name\":\"%s\",\"configuration\":"
                    "{\"unit\":\"%.*s\",\"scale_factor\":%.*s}}",
                    type, (int)letters, unit + digits, digits ? (int)digits : 1,
                    digits ? unit : "1");
}

/* The names of the registry; families are called by how their members are written. */
static int registry_names(struct cli *cli, const char *names[NAMES_MOST], size_t *n)
{
    const brc_dtype_info *info;
    brc_iter *it;
    int rc;

    CLI_TRY(cli_load_plugins(cli));
    CLI_TRY(brc_registry_dtypes(&it, cli->registry, &cli->err));
    while ((rc = brc_registry_dtypes_next(it, &info, &cli->err)) == 1)
        if (*n < NAMES_MOST)
            names[(*n)++] = cli_text(cli, "%s", info->name);
    brc_iter_free(it);
    return rc;
}

static int is_name_among(const char *name, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(names[i], name) == 0)
            return 1;
    return 0;
}

static int unknown_dtype(struct cli *cli, const char *text, const char *names[NAMES_MOST], size_t n)
{
    char similar[160];

    for (size_t i = 0; i < sizeof(time_names) / sizeof(time_names[0]); i++)
        if (strcmp(text, time_names[i][0]) == 0)
            return cli_usage(cli, "option --dtype: %s needs a unit, as in %s[ns]", text, text);
    for (size_t i = 0; i < sizeof(sized_names) / sizeof(sized_names[0]); i++)
        if (text[0] == sized_names[i].letter && text[1] == '\0')
            return cli_usage(cli, "option --dtype: %s needs a length, as in %s8", text, text);
    for (size_t i = 0; i < sizeof(numpy_names) / sizeof(numpy_names[0]); i++)
        if (strlen(numpy_names[i][0]) > 3 && n < NAMES_MOST)
            names[n++] = numpy_names[i][0];
    for (size_t i = 0; i < sizeof(time_names) / sizeof(time_names[0]) && n < NAMES_MOST; i += 2)
        names[n++] = time_names[i][0];
    cli_similar(similar, sizeof(similar), text, "", names, n);
    if (similar[0])
        return cli_usage(cli, "option --dtype: the data type %s is not known; did you mean %s?",
                         cli_escaped(cli, text), similar);
    return cli_usage(cli, "option --dtype: the data type %s is not known: 'breccia codecs --list "
                          "--types' has them all", cli_escaped(cli, text));
}

int cli_dtype_option(struct cli *cli, const char **dtype)
{
    const char *text = cli_value(cli, "dtype"), *names[NAMES_MOST], *found;
    size_t n = 0;

    *dtype = text;
    if (text[0] == '@' || text[0] == '{' || text[0] == '"')
        return cli_json_text_argument(cli, "option --dtype", text, brc_json_parse, dtype);
    CLI_TRY(registry_names(cli, names, &n));
    if (is_name_among(text, names, n) ||
        (text[0] == 'r' && text[1] && text[1 + strspn(text + 1, "0123456789")] == '\0'))
        return BRC_OK;
    const char *bare = text + (text[0] && strchr("<>=|", text[0]));
    if ((found = numpy_name(bare)) || (found = with_length(cli, bare)) ||
        (found = with_unit(cli, bare)))
        *dtype = found;
    else if (bare > text && is_name_among(bare, names, n))
        *dtype = bare;
    else
        return unknown_dtype(cli, bare, names, n);
    return BRC_OK;
}
