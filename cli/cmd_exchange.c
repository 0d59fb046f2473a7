/*
 * cmd_exchange.c - import and export.
 */
#include "cli.h"
#include "compress.h"
#include "json_scan.h"

#include <stdlib.h>
#include <string.h>

static const struct cli_option import_options[] = {
    { "chunks", 0, 1, "N,N,...", "cut every array into chunks of this shape" },
    { "codecs", 0, 1, "JSON", "encode chunks with this Zarr v3 codec list" },
    { "compress", 0, 1, CLI_COMPRESS_VALUE, "the short form of --codecs" },
    CLI_OPTIONS_END
};

enum { DOCUMENT_LIMIT = 64 << 20 };

struct name_list {
    const char **paths;
    size_t n;
};

static int root_children(struct cli *cli, struct name_list *list)
{
    const char **paths = NULL;
    size_t cap = 0;
    brc_node node;
    int rc;

    list->n = 0;
    CLI_TRY(brc_list(&cli->iter, cli->session, "/", 0, &cli->err));
    while ((rc = brc_list_next(cli->iter, &node, &cli->err)) == 1) {
        if (list->n == cap) {
            cap = cap ? cap * 2 : 16;
            paths = cli_regrow(paths, cap, sizeof(*paths));
        }
        paths[list->n++] = cli_text(cli, "%s", node.path);
    }
    brc_iter_free(cli->iter);
    cli->iter = NULL;
    list->paths = cli_alloc(cli, list->n + 1, sizeof(*paths));
    if (list->n > 0)
        memcpy(list->paths, paths, list->n * sizeof(*paths));
    free(paths);
    return rc;
}

static int is_zarr_group(struct cli *cli, const char *source)
{
    struct cli_json_text type;
    char *document;

    source = cli_text(cli, "%s/zarr.json", source);
    return cli_read_file(cli, source, DOCUMENT_LIMIT, &document) >= 0 &&
           cli_json_find(&type, document, strlen(document), "node_type") &&
           cli_json_is_string(&type, "group");
}

/* Where something came in without a PATH: a group takes an empty root over, all
 * else is a new child of the root. */
static int find_imported(struct cli *cli, const struct name_list *before, const char *source,
                         const char **path)
{
    struct name_list after;

    *path = "/";
    if (before->n == 0 && is_zarr_group(cli, source))
        return BRC_OK;
    CLI_TRY(root_children(cli, &after));
    for (size_t i = 0; i < after.n; i++) {
        size_t k = 0;

        while (k < before->n && strcmp(before->paths[k], after.paths[i]) != 0)
            k++;
        if (k == before->n)
            *path = after.paths[i];
    }
    return BRC_OK;
}

static int run_import(struct cli *cli)
{
    const char *source = cli_operand(cli, 1), *path = cli_operand(cli, 2);
    brc_xfer_opts opts = BRC_XFER_OPTS_INIT;
    uint64_t chunk[BRC_MAX_NDIM];
    struct name_list before = { NULL, 0 };

    if (cli_has(cli, "chunks")) {
        CLI_TRY(cli_dims_option(cli, "chunks", chunk, &opts.nchunk));
        opts.chunk = chunk;
    }
    CLI_TRY(cli_codecs_option(cli, NULL, &opts.codecs_json));
    if (path)
        path = cli_path(cli, path);
    CLI_TRY(cli_open_edit(cli));
    if (!path)
        CLI_TRY(root_children(cli, &before));
    CLI_TRY(brc_import(cli->session, source, path, &opts, &cli->err));
    if (!path)
        CLI_TRY(find_imported(cli, &before, source, &path));
    cli_say(cli, "imported %s as %s", cli_escaped(cli, source), cli_escaped(cli, path));
    if (cli->json) {
        cli_json_open(cli, '{');
        cli_json_member(cli, "path", path);
        cli_json_member(cli, "source", source);
        cli_json_close(cli, '{');
    }
    return BRC_OK;
}

const struct cli_command cli_command_import = {
    .name = "import",
    .group = "Making and filling",
    .summary = "bring in a Zarr directory, .npy, .npz or IDX file",
    .usage = "FILE SOURCE [PATH] [OPTIONS]",
    .details = "SOURCE comes in with its hierarchy, attributes and chunks, all of it or nothing.\n"
               "Chunks of a Zarr v3 directory are taken over byte for byte, unless an option asks\n"
               "for something else. Without PATH the place is named after SOURCE; a Zarr group\n"
               "takes an empty root over.",
    .examples = "breccia import mnist.brc train-images-idx3-ubyte.gz /train/images\n"
                "breccia import climate.brc era5.zarr /era5\n"
                "breccia import climate.brc t2m.npy /t2m --chunks 24,241,480 "
                "--compress blosc:zstd:5",
    .options = import_options,
    .min_operands = 2,
    .max_operands = 3,
    .flags = CLI_POOL,
    .run = run_import,
};

/* ---- export ------------------------------------------------------------------- */

static const struct cli_option export_options[] = {
    { "at", 0, 1, "REV", "that version instead of the current branch as it is" },
    { "format", 0, 1, "FORMAT", "zarr3, npy or npz; by DEST's ending where not given" },
    CLI_OPTIONS_END
};

static int run_export(struct cli *cli)
{
    int has_path = cli->args.noperands == 3;
    const char *path = cli_path(cli, has_path ? cli_operand(cli, 1) : "/");
    const char *dest = cli_operand(cli, has_path ? 2 : 1);
    brc_xfer_opts opts = BRC_XFER_OPTS_INIT;

    opts.format = cli_value(cli, "format");
    CLI_TRY(cli_open_view(cli));
    CLI_TRY(brc_export(cli->session, path, dest, &opts, &cli->err));
    cli_say(cli, "exported %s to %s", cli_escaped(cli, path), cli_escaped(cli, dest));
    if (cli->json) {
        cli_json_open(cli, '{');
        cli_json_member(cli, "path", path);
        cli_json_member(cli, "dest", dest);
        cli_json_close(cli, '{');
    }
    return BRC_OK;
}

const struct cli_command cli_command_export = {
    .name = "export",
    .group = "Making and filling",
    .summary = "write a node as a Zarr directory, .npy or .npz",
    .usage = "FILE [PATH] DEST [--at REV] [--format FORMAT]",
    .details = "PATH is the root where it is left out. DEST must not be there yet.",
    .examples = "breccia export climate.brc /era5 era5.zarr --at v1.0\n"
                "breccia export mnist.brc /train/images images.npy",
    .options = export_options,
    .min_operands = 2,
    .max_operands = 3,
    .flags = CLI_POOL,
    .run = run_export,
};
