/*
 * cmd_codecs.c - codecs: those of an array, and those of this build.
 */
#include "../cli.h"
#include "commands.h"

#include <string.h>

static const struct cli_option codecs_options[] = {
    { "rewrite", 0, 0, NULL, "re-encode the stored chunks too" },
    { "list", 0, 0, NULL, "list the codecs of this build and their implementations" },
    { "types", 0, 0, NULL, "with --list: list the data types instead" },
    { "at", 0, 1, "REV", "when printing: read this version instead of the current branch" },
    CLI_OPTIONS_END
};

/* The last column, with the owner if that is not breccia. */
static void put_state(struct cli *cli, const char *state, const char *owner)
{
    const char *from = "";

    if (strcmp(owner, "breccia") != 0)
        from = cli_text(cli, "%sfrom %s", state[0] ? ", " : "", cli_escaped(cli, owner));
    cli_printf(cli, "%s%s\n", state, from);
}

static void print_codec(struct cli *cli, const brc_codec_info *info)
{
    if (!cli->json) {
        cli_put_padded(cli, cli_escaped(cli, info->name), 30);
        cli_put_padded(cli, info->kind, 16);
        cli_put_padded(cli, cli_escaped(cli, info->implementation), 20);
        put_state(cli, info->flags & BRC_IMPL_CHOSEN   ? "used"
                       : info->flags & BRC_IMPL_USABLE ? ""
                                                       : "cannot run here",
                  info->owner);
        return;
    }
    cli_json_open_line(cli, '{');
    cli_json_member(cli, "name", info->name);
    cli_json_member(cli, "kind", info->kind);
    cli_json_member(cli, "implementation", info->implementation);
    cli_json_member_int(cli, "rank", info->rank);
    cli_json_member_bool(cli, "usable", (info->flags & BRC_IMPL_USABLE));
    cli_json_member_bool(cli, "chosen", (info->flags & BRC_IMPL_CHOSEN));
    cli_json_member(cli, "owner", info->owner);
    cli_json_close(cli, '{');
}

static int list_codecs(struct cli *cli)
{
    const brc_codec_info *info;
    int rc;

    CLI_TRY(cli_load_plugins(cli));
    CLI_TRY(brc_registry_codecs(&cli->iter, cli->registry, &cli->err));
    if (cli->json)
        cli_json_open(cli, '[');
    while ((rc = brc_registry_codecs_next(cli->iter, &info, &cli->err)) == 1)
        print_codec(cli, info);
    if (cli->json)
        cli_json_close(cli, '[');
    return rc;
}

static void print_type_text(struct cli *cli, const brc_dtype_info *info)
{
    const char *size = (info->flags & BRC_DTYPE_CONFIGURED)       ? "as configured"
                       : info->item_size == 0 ? "variable"
                                              : cli_text(cli, "%llu byte%s",
                                                         (unsigned long long)info->item_size,
                                                         info->item_size == 1 ? "" : "s");

    cli_put_padded(cli, cli_escaped(cli, info->name), 30);
    cli_put_padded(cli, info->kind, 9);
    cli_put_padded(cli, size, 15);
    cli_put_padded(cli, info->npy ? cli_escaped(cli, info->npy) : "", 6);
    put_state(cli, "", info->owner);
}

static void print_type(struct cli *cli, const brc_dtype_info *info)
{
    if (!cli->json) {
        print_type_text(cli, info);
        return;
    }
    cli_json_open_line(cli, '{');
    cli_json_member(cli, "name", info->name);
    cli_json_member(cli, "kind", info->kind);
    cli_json_member_uint(cli, "item_size", info->item_size);
    cli_json_member(cli, "npy", info->npy ? info->npy : "");
    cli_json_member_bool(cli, "family", (info->flags & BRC_DTYPE_FAMILY));
    cli_json_member_bool(cli, "configured", (info->flags & BRC_DTYPE_CONFIGURED));
    cli_json_member(cli, "owner", info->owner);
    cli_json_close(cli, '{');
}

static int list_types(struct cli *cli)
{
    const brc_dtype_info *info;
    int rc;

    CLI_TRY(cli_load_plugins(cli));
    CLI_TRY(brc_registry_dtypes(&cli->iter, cli->registry, &cli->err));
    if (cli->json)
        cli_json_open(cli, '[');
    while ((rc = brc_registry_dtypes_next(cli->iter, &info, &cli->err)) == 1)
        print_type(cli, info);
    if (cli->json)
        cli_json_close(cli, '[');
    return rc;
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
    if (!path)
        return cli_usage(cli, "codecs needs FILE and PATH, or --list");
    path = cli_path(cli, path);
    if (!json && cli_has(cli, "rewrite"))
        return cli_usage(cli, "--rewrite needs a new codec list");
    if (!json) {
        CLI_TRY(cli_open_view(cli));
        CLI_TRY(cli_open_array(cli, path));
        print_pipeline(cli);
        return BRC_OK;
    }
    if (cli_has(cli, "at"))
        return cli_usage(cli, "--at is only for printing: a committed version cannot be changed");
    CLI_TRY(cli_json_text_argument(cli, "the codec list", json, brc_json_parse, &json));
    CLI_TRY(cli_open_edit(cli));
    CLI_TRY(cli_open_array(cli, path));
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
             "--list [--types]",
    .details = "JSON is a Zarr v3 codec list. Stored chunks keep their encoding and stay\n"
               "readable; chunks written from now on use the new one. No value changes.",
    .examples = "breccia codecs climate.brc /t2m\n"
                "breccia codecs climate.brc /t2m '[{\"name\":\"bytes\",\"configuration\":"
                "{\"endian\":\"little\"}},{\"name\":\"zstd\",\"configuration\":{\"level\":9}}]'\n"
                "breccia codecs --list",
    .options = codecs_options,
    .min_operands = 0,
    .max_operands = 3,
    .flags = CLI_POOL | CLI_NO_FILE | CLI_PATH,
    .run = run_codecs,
};
