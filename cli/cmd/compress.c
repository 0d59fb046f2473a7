/*
 * compress.c - the short form of a codec list.
 *
 *   zstd[:LEVEL]                        level 1
 *   blosc[:CNAME[:LEVEL[:SHUFFLE]]]     zstd, level 1, shuffle
 *   gzip[:LEVEL]                        level 6
 *   none                                only the serializer
 */
#include "compress.h"

#include "../cli.h"

#include <string.h>

/* The bytes of an element if the name of the data type gives them, else 0. */
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

/* The next part between colons, or NULL; *at moves past it. */
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

/* As in the codecs that the library chooses. For slow levels and other codecs, c-blosc's
 * own choice is as good or better. */
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

int cli_codecs_option(struct cli *cli, const char *dtype, const char **out)
{
    const char *codecs = cli_value(cli, "codecs"), *rest = cli_value(cli, "compress");
    const char *name, *codec = NULL;

    *out = NULL;
    if (codecs && rest)
        return cli_usage(cli, "give --codecs or --compress, not both");
    if (codecs)
        return cli_json_text_argument(cli, "option --codecs", codecs, brc_json_parse, out);
    if (!rest)
        return BRC_OK;
    name = next_colon_part(cli, &rest);
    if (strcmp(name, "none") == 0 && !rest)
        *out = cli_text(cli, "[%s]", serializer_json(dtype));
    else if (strcmp(name, "blosc") == 0)
        CLI_TRY(blosc_json(cli, rest, dtype, &codec));
    else if (strcmp(name, "zstd") == 0 || strcmp(name, "gzip") == 0)
        CLI_TRY(level_json(cli, name, rest, &codec));
    else
        return cli_usage(cli, "option --compress: '%s' is not one of " CLI_COMPRESS_VALUE,
                         cli_value(cli, "compress"));
    if (codec)
        *out = cli_text(cli, "[%s,%s]", serializer_json(dtype), codec);
    return BRC_OK;
}
