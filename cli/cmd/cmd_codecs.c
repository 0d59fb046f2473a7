/*
 * cmd_codecs.c - codecs: the codecs of an array, and all codecs of this build.
 */
#include "../cli.h"
#include "commands.h"
#include "new_array.h"

#include <string.h>

static const struct cli_option codecs_options[] = {
    { "compress", 0, 1, CLI_COMPRESS_VALUE, "change the compressors alone" },
    { "rewrite", 0, 0, NULL, "re-encode the stored chunks too" },
    { "list", 0, 0, NULL, "list the codecs of this build and their implementations" },
    { "types", 0, 0, NULL, "with --list: list the data types instead" },
    { "nvcomp", 0, 1, "LIBRARY", "with --list: list nvCOMP's codecs for CUDA devices too, or why"
                                 " this library of it cannot be used" },
    { "at", 0, 1, "REV", "when printing: read this version instead of the current branch" },
    CLI_OPTIONS_END
};

static const char *state_and_owner(struct cli *cli, const char *state, const char *owner)
{
    return strcmp(owner, "breccia") == 0
               ? state
               : cli_text(cli, "%s%sfrom %s", state, state[0] ? ", " : "", owner);
}

static int put_codec(struct cli *cli, struct cli_list *list, const brc_codec_info *info)
{
    const int usable = (info->flags & BRC_IMPL_USABLE) != 0;
    const int chosen = (info->flags & BRC_IMPL_CHOSEN) != 0;
    const int pinned = (info->flags & BRC_IMPL_PINNED) != 0;
    const char *state = pinned ? "used, pinned" : chosen ? "used" : info->why;

    if (info->device != BRC_MEMORY_HOST)
        state = cli_text(cli, "%s, for memory of device %u", state, (unsigned)info->device);
    return cli_list_put(
        cli, list,
        CLI_FIELDS({ "name", CLI_OF(info->name), .lead = "", .width = CLI_FIT },
                   { "kind", CLI_OF(info->kind), .lead = "  ", .width = CLI_FIT },
                   { "implementation", CLI_OF(info->implementation), .lead = "  ",
                     .width = CLI_FIT },
                   { "rank", CLI_OF((int64_t)info->rank) },
                   { "usable", CLI_OF(usable) },
                   { "chosen", CLI_OF(chosen) },
                   { "pinned", CLI_OF(pinned) },
                   { "why", CLI_OF(info->why) },
                   { "device", CLI_OF((uint64_t)info->device) },
                   { "owner", CLI_OF(info->owner) },
                   { NULL, CLI_OF(state_and_owner(cli, state, info->owner)), .lead = "  ",
                     .narrow = CLI_WRAPPED }));
}

static int list_codecs(struct cli *cli)
{
    struct cli_list list;
    const brc_codec_info *info;
    int rc;

    CLI_TRY(cli_load_plugins(cli));
    CLI_TRY(brc_registry_list(&cli->iter, cli->registry, BRC_LIST_CODECS, &cli->err));
    cli_list_begin(cli, &list, NULL, CLI_ON_LINE);
    while ((rc = brc_next(cli->iter, &info, &cli->err)) == 1)
        CLI_TRY(put_codec(cli, &list, info));
    return cli_list_end(cli, &list, rc);
}

static int put_type(struct cli *cli, struct cli_list *list, const brc_dtype_info *info)
{
    const int configured = (info->flags & BRC_DTYPE_CONFIGURED) != 0;
    const char *size = configured             ? "as configured"
                       : info->item_size == 0 ? "variable"
                                              : cli_count(cli, info->item_size, "byte");

    return cli_list_put(
        cli, list,
        CLI_FIELDS({ "name", CLI_OF(info->name), .lead = "", .width = CLI_FIT },
                   { "kind", CLI_OF(info->kind), .lead = "  ", .none = "", .width = CLI_FIT },
                   { "item_size", CLI_OF(info->item_size) },
                   { NULL, CLI_OF(size), .lead = "  ", .width = CLI_FIT },
                   { "npy", CLI_OF(info->npy), .lead = "  ", .none = "", .width = CLI_FIT },
                   { "family", CLI_OF((info->flags & BRC_DTYPE_FAMILY) != 0) },
                   { "configured", CLI_OF(configured) },
                   { "owner", CLI_OF(info->owner) },
                   { NULL, CLI_OF(state_and_owner(cli, "", info->owner)), .lead = "  " }));
}

static int list_types(struct cli *cli)
{
    struct cli_list list;
    const brc_dtype_info *info;
    int rc;

    CLI_TRY(cli_load_plugins(cli));
    CLI_TRY(brc_registry_list(&cli->iter, cli->registry, BRC_LIST_DTYPES, &cli->err));
    cli_list_begin(cli, &list, NULL, CLI_ON_LINE);
    while ((rc = brc_next(cli->iter, &info, &cli->err)) == 1)
        CLI_TRY(put_type(cli, &list, info));
    return cli_list_end(cli, &list, rc);
}

static void print_pipeline(struct cli *cli)
{
    const char *codecs = brc_array_describe(cli->array)->codecs_json;

    cli_json_document(cli, codecs, strlen(codecs));
}

static int run_codecs(struct cli *cli)
{
    const char *path = cli_operand(cli, 1), *json = cli_operand(cli, 2);

    if (cli_has(cli, "list"))
        return cli_has(cli, "types") ? list_types(cli) : list_codecs(cli);
    if (cli_has(cli, "types"))
        return cli_usage(cli, "--types needs --list");
    if (cli_has(cli, "nvcomp"))
        return cli_usage(cli, "--nvcomp needs --list");
    if (!path)
        return cli_usage(cli, "codecs needs FILE and PATH, or --list");
    path = cli_path(cli, path);
    if (json && !strchr("[@{", json[0]))
        return cli_usage(cli, "'%s' is not a codec list in JSON, such as '[\"zstd\"]'; --compress "
                              "zstd:5 is short for one", json);
    if (json && cli_has(cli, "compress"))
        return cli_usage(cli, "give a codec list or --compress, not both");
    if (!json && !cli_has(cli, "compress") && cli_has(cli, "rewrite"))
        return cli_usage(cli, "--rewrite needs a new codec list");
    if (!json && !cli_has(cli, "compress")) {
        CLI_TRY(cli_open_view(cli));
        CLI_TRY(cli_open_array(cli, path));
        print_pipeline(cli);
        return BRC_OK;
    }
    if (cli_has(cli, "at"))
        return cli_usage(cli, "--at is only for printing: a committed version cannot be changed");
    if (json)
        CLI_TRY(cli_json_text_argument(cli, "the codec list", json, 0, &json));
    CLI_TRY(cli_open_edit(cli));
    CLI_TRY(cli_open_array(cli, path));
    if (!json) {
        CLI_TRY(cli_compress_option(cli, brc_array_describe(cli->array)->dtype, &json));
        json = cli_text(cli, "[%s]", json);
    }
    CLI_TRY(brc_array_set_codecs(cli->array, json, cli_has(cli, "rewrite"), &cli->err));
    cli_say(cli, "changed the codecs of %s", cli_escaped(cli, path));
    if (cli->json)
        print_pipeline(cli);
    return BRC_OK;
}

const struct cli_command cli_command_codecs = {
    .name = "codecs",
    .group = "Making and filling",
    .summary = "print or change an array's codecs",
    .usage = "FILE PATH [--at REV]\n"
             "FILE PATH JSON [--rewrite]\n"
             "FILE PATH --compress zstd:9 [--rewrite]\n"
             "--list [--types]\n"
             "--list --nvcomp LIBRARY",
    .details = "JSON is a Zarr v3 codec list, or a list of compressors alone, as '[\"zstd\"]',\n"
               "which replaces the compressors of the present list (in shards, those of the\n"
               "inner chunks) as --compress does. Stored chunks keep their encoding and stay\n"
               "readable; chunks written from now on use the new one. No value changes.",
    .examples = "breccia codecs climate.brc /t2m\n"
                "breccia codecs climate.brc /t2m --compress blosc:zstd:5 --rewrite\n"
                "breccia codecs climate.brc /t2m '[\"zstd\"]'\n"
                "breccia codecs --list",
    .options = codecs_options,
    .min_operands = 0,
    .max_operands = 3,
    .flags = CLI_POOL | CLI_LIST | CLI_PATH,
    .run = run_codecs,
};
