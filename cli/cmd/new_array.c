/*
 * new_array.c - data types and codecs of a new array.
 *
 * The registry's names come first. An order of bytes ('<', '>', '=', '|') before a NumPy name is
 * dropped: in Zarr, codecs have the order of bytes, and types do not.
 */
#include "new_array.h"

#include <stdlib.h>
#include <string.h>

#include "../cli.h"
#include "../options.h"

/* ==== dtype name ================================ */

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

/* Types with a letter and a length in NumPy. */
static const struct {
    char letter;
    const char *name;
    unsigned long bytes; /* of one unit of length */
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

/* Returns the Zarr type of "S10", "U5" or "V8". */
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

/* Returns the Zarr type of "datetime64[ns]" or "m8[10us]". The library checks the unit. */
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

/* Lists the names of the registry. The name of a family is a pattern of its members' names. */
static int registry_names(struct cli *cli, const char *names[NAMES_MOST], size_t *n)
{
    const brc_dtype_info *info;
    brc_iter *it;
    int rc;

    CLI_TRY(cli_load_plugins(cli));
    CLI_TRY(brc_registry_list(&it, cli->registry, BRC_LIST_DTYPES, &cli->err));
    while ((rc = brc_next(it, &info, &cli->err)) == 1)
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
                          "--types' lists all", cli_escaped(cli, text));
}

int cli_dtype_option(struct cli *cli, const char **dtype)
{
    const char *text = cli_value(cli, "dtype"), *names[NAMES_MOST], *found;
    size_t n = 0;

    *dtype = text;
    if (text[0] == '@' || text[0] == '{' || text[0] == '"')
        return cli_json_text_argument(cli, "option --dtype", text, 0, dtype);
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

/* Returns "datetime64[10us]", "S5" and the like; NULL for a type without such a form. */
static const char *sized_words(struct cli *cli, const char *name, const brc_json *configuration)
{
    const char *unit;
    uint64_t n = 0;

    for (size_t i = 0; i < sizeof(sized_names) / sizeof(sized_names[0]); i++)
        if (strcmp(name, sized_names[i].name) == 0 &&
            brc_json_uint(brc_json_member(configuration, "length_bytes"), UINT32_MAX, &n))
            return cli_text(cli, "%c%llu", sized_names[i].letter,
                            (unsigned long long)n / sized_names[i].bytes);
    for (size_t i = 0; i < sizeof(time_names) / sizeof(time_names[0]); i += 2)
        if (strcmp(name, time_names[i][1]) == 0 &&
            brc_json_text(brc_json_member(configuration, "unit"), &unit) &&
            brc_json_uint(brc_json_member(configuration, "scale_factor"), UINT32_MAX, &n))
            return cli_text(cli, "%s[%s%s]", time_names[i][0],
                            n == 1 ? "" : cli_text(cli, "%llu", (unsigned long long)n),
                            cli_escaped(cli, unit));
    return NULL;
}

static const char *type_words(struct cli *cli, const brc_json *type, int depth);

/* Returns "{a: int32, b: float64}". */
static const char *struct_words(struct cli *cli, const brc_json *fields, int depth)
{
    const char *out = "", *name;

    for (const brc_json *field = brc_json_first(fields); field; field = brc_json_next(field)) {
        const brc_json *type = brc_json_member(field, "data_type");

        if (!brc_json_text(brc_json_member(field, "name"), &name))
            name = "";
        out = cli_text(cli, "%s%s%s: %s", out, out[0] ? ", " : "", cli_escaped(cli, name),
                       type_words(cli, type, depth));
    }
    return cli_text(cli, "{%s}", out);
}

static const char *type_words(struct cli *cli, const brc_json *type, int depth)
{
    const brc_json *configuration = brc_json_member(type, "configuration"), *fields;
    const char *name = "", *words;

    if (brc_json_text(type, &name) || !brc_json_text(brc_json_member(type, "name"), &name))
        return cli_escaped(cli, name);
    fields = brc_json_member(configuration, "fields");
    words = sized_words(cli, name, configuration);
    if (words)
        return words;
    if (fields && depth > 0)
        return struct_words(cli, fields, depth - 1);
    if (depth > 0 && brc_json_member(configuration, "name")) /* such as zarrs.optional */
        return cli_text(cli, "%s[%s]", cli_escaped(cli, name),
                        type_words(cli, configuration, depth - 1));
    return cli_escaped(cli, name);
}

const char *cli_dtype_words(struct cli *cli, const char *dtype)
{
    const char *out = dtype;
    brc_json *type;

    if (dtype[0] != '{' || brc_json_parse(&type, dtype, strlen(dtype), 0, NULL) < 0)
        return dtype;
    out = type_words(cli, type, 4);
    brc_json_free(type);
    return out;
}

/* ==== the short form of a codec list ===================== */

/*
 *   zstd[:LEVEL]                        level 1
 *   blosc[:CNAME[:LEVEL[:SHUFFLE]]]     zstd, level 1, shuffle
 *   gzip[:LEVEL]                        level 6
 *   none                                only the serializer
 */

/* Returns the bytes of an element if the name of the data type gives them, else 0. */
static unsigned dtype_item_size(const char *dtype)
{
    static const struct {
        const char *name;
        unsigned size;
    } sizes[] = {
        { "bool", 1 },    { "int8", 1 },    { "uint8", 1 },     { "int16", 2 },
        { "uint16", 2 },  { "float16", 2 }, { "bfloat16", 2 },  { "int32", 4 },
        { "uint32", 4 },  { "float32", 4 }, { "int64", 8 },     { "uint64", 8 },
        { "float64", 8 }, { "complex64", 8 }, { "complex128", 16 },
    };
    uint64_t bits;

    for (size_t i = 0; dtype && i < sizeof(sizes) / sizeof(sizes[0]); i++)
        if (strcmp(dtype, sizes[i].name) == 0)
            return sizes[i].size;
    if (dtype && dtype[0] == 'r' && cli_read_u64(&bits, dtype + 1) && bits % 8 == 0 &&
        bits <= 8 * 255)
        return (unsigned)(bits / 8);
    return 0;
}

static const char *serializer_json(const char *dtype)
{
    if (dtype && strcmp(dtype, "string") == 0)
        return "{\"name\":\"vlen-utf8\"}";
    if (dtype && (strcmp(dtype, "bytes") == 0 || strcmp(dtype, "variable_length_bytes") == 0))
        return "{\"name\":\"vlen-bytes\"}";
    return "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}";
}

/* Returns the next part between colons, or NULL, and moves *at past the part. */
static const char *next_colon_part(struct cli *cli, const char **at)
{
    size_t len;
    const char *part;

    if (!*at)
        return NULL;
    len = strcspn(*at, ":");
    part = cli_text(cli, "%.*s", (int)len, *at);
    *at = (*at)[len] == ':' ? *at + len + 1 : NULL;
    return part;
}

static int compress_level(struct cli *cli, const char *text, int64_t fallback, int64_t *out)
{
    *out = fallback;
    if (text && !cli_read_i64(out, text))
        return cli_usage(cli, "option --compress: level '%s' is not a whole number",
                         text);
    return BRC_OK;
}

/* Returns the block size that the library chooses too. For slow levels and other codecs, c-blosc's
 * own choice (0) is as good or better. */
static int blosc_block(const char *cname, int64_t level)
{
    return strcmp(cname, "zstd") == 0 && level <= 5 ? 512 << 10 : 0;
}

static int blosc_json(struct cli *cli, const char *rest, const char *dtype, const char **out)
{
    const char *cname = next_colon_part(cli, &rest);
    const char *level_text = next_colon_part(cli, &rest);
    const char *shuffle = next_colon_part(cli, &rest);
    const char *typesize = "";
    unsigned size = dtype_item_size(dtype);
    int64_t level;

    CLI_TRY(compress_level(cli, level_text, 1, &level));
    if (rest)
        return cli_usage(cli, "option --compress: ':%s' is one part too many for blosc",
                         rest);
    if (size)
        typesize = cli_text(cli, "\"typesize\":%u,", size);
    *out = cli_text(cli,
                    "{\"name\":\"blosc\",\"configuration\":{%s\"cname\":%s,\"clevel\":%lld,"
                    "\"shuffle\":%s,\"blocksize\":%d}}",
                    typesize, cli_json_quoted(cli, cname ? cname : "zstd"), (long long)level,
                    cli_json_quoted(cli, shuffle ? shuffle : "shuffle"),
                    blosc_block(cname ? cname : "zstd", level));
    return BRC_OK;
}

static int level_json(struct cli *cli, const char *name, const char *rest, const char **out)
{
    int is_zstd = strcmp(name, "zstd") == 0;
    const char *level_text = next_colon_part(cli, &rest);
    int64_t level;

    CLI_TRY(compress_level(cli, level_text, is_zstd ? 1 : 6, &level));
    if (rest)
        return cli_usage(cli, "option --compress: ':%s' is one part too many for %s",
                         rest, name);
    *out = cli_text(cli, "{\"name\":\"%s\",\"configuration\":{\"level\":%lld%s}}", name,
                    (long long)level, is_zstd ? ",\"checksum\":false" : "");
    return BRC_OK;
}

int cli_compress_option(struct cli *cli, const char *dtype, const char **out)
{
    const char *rest = cli_value(cli, "compress"), *name;

    *out = NULL;
    if (!rest)
        return BRC_OK;
    name = next_colon_part(cli, &rest);
    if (strcmp(name, "none") == 0 && !rest)
        *out = "";
    else if (strcmp(name, "blosc") == 0)
        return blosc_json(cli, rest, dtype, out);
    else if (strcmp(name, "zstd") == 0 || strcmp(name, "gzip") == 0)
        return level_json(cli, name, rest, out);
    else
        return cli_usage(cli, "option --compress: '%s' is not one of " CLI_COMPRESS_VALUE,
                         cli_value(cli, "compress"));
    return BRC_OK;
}

int cli_codecs_option(struct cli *cli, const char *dtype, const char **out)
{
    const char *codecs = cli_value(cli, "codecs"), *codec;

    *out = NULL;
    if (codecs && cli_has(cli, "compress"))
        return cli_usage(cli, "give --codecs or --compress, not both");
    if (codecs)
        return cli_json_text_argument(cli, "option --codecs", codecs, 0, out);
    CLI_TRY(cli_compress_option(cli, dtype, &codec));
    if (codec)
        *out = cli_text(cli, codec[0] ? "[%s,%s]" : "[%s%s]", serializer_json(dtype), codec);
    return BRC_OK;
}
