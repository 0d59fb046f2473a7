/*
 * cmd_exchange.c - import and export.
 */
#include "cli.h"
#include "compress.h"

#include <string.h>

static const struct cli_option import_options[] = {
    { "chunks", 0, 1, "N,N,...", "cut every array into chunks of this shape" },
    { "codecs", 0, 1, "JSON", "encode chunks with this Zarr v3 codec list" },
    { "compress", 0, 1, CLI_COMPRESS_VALUE, "the short form of --codecs" },
    { "exclude", 0, 1, "PATH", "leave this node of SOURCE out, with all under it; repeatable" },
    CLI_OPTIONS_END
};

static void take_excluded(struct cli *cli, brc_xfer_opts *opts)
{
    const char **paths = cli_alloc(cli, cli->args.ngiven, sizeof(*paths));
    for (const char *one; (one = cli_nth_value(cli, "exclude", opts->nexclude)) != NULL;)
        paths[opts->nexclude++] = one;
    opts->exclude = paths;
    opts->excluded = cli_alloc(cli, opts->nexclude + 1, 1);
}

/* What was to be left out and is not there is a mistake in the name. */
static int check_excluded(struct cli *cli, const brc_xfer_opts *opts, const char *source)
{
    for (size_t i = 0; i < opts->nexclude; i++)
        if (!opts->excluded[i])
            return cli_fail(cli, BRC_ENOTFOUND, "option --exclude: %s has no node %s", source,
                            opts->exclude[i]);
    return BRC_OK;
}

static int run_import(struct cli *cli)
{
    const char *source = cli_operand(cli, 1), *path = cli_operand(cli, 2);
    brc_xfer_opts opts = BRC_XFER_OPTS_INIT;
    uint64_t chunk[BRC_MAX_NDIM];
    brc_buf placed = BRC_BUF_INIT;

    if (cli_has(cli, "chunks")) {
        CLI_TRY(cli_dims_option(cli, "chunks", chunk, &opts.nchunk));
        opts.chunk = chunk;
    }
    CLI_TRY(cli_codecs_option(cli, NULL, &opts.codecs_json));
    if (path)
        path = cli_path(cli, path);
    CLI_TRY(cli_open_edit(cli));
    opts.placed = &placed;
    take_excluded(cli, &opts);
    CLI_TRY(brc_begin(cli->repo, &cli->err));
    int rc = brc_import(cli->session, source, path, &opts, &cli->err);
    if (rc == BRC_OK)
        rc = check_excluded(cli, &opts, source);
    rc = cli_end(cli, rc);
    if (rc == BRC_OK)
        path = cli_text(cli, "%s", (const char *)placed.data);
    brc_buf_dispose(&placed);
    CLI_TRY(rc);
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
    .summary = "bring in a Zarr directory or .zip, a .npy, .npz, IDX, NetCDF or HDF5 file",
    .usage = "FILE SOURCE [PATH] [OPTIONS]",
    .details = "SOURCE comes in with its hierarchy, attributes and chunks, all of it or nothing.\n"
               "Chunks of Zarr v3 and v2 are taken over byte for byte, unless an option asks for\n"
               "something else; an array of v2 becomes one of v3 that says the same. Without PATH\n"
               "the place is named after SOURCE; a group takes an empty root over. Of NetCDF and\n"
               "HDF5, groups, attributes, chunks, fill values and names of dimensions come in;\n"
               "packed data stays packed. A data set that Zarr cannot say is refused, and with it\n"
               "the import: --exclude leaves it out.",
    .examples = "breccia import mnist.brc train-images-idx3-ubyte.gz /train/images\n"
                "breccia import climate.brc era5.zarr /era5\n"
                "breccia import climate.brc run.nc /run --exclude /debug\n"
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
    { "format", 0, 1, "FORMAT", "zarr3, zarr2, zip, npy, npz, netcdf, netcdf3, hdf5" },
    { "consolidated", 0, 0, NULL, "Zarr: with a copy of all documents in the first" },
    CLI_OPTIONS_END
};

static int run_export(struct cli *cli)
{
    int has_path = cli->args.noperands == 3;
    const char *path = cli_path(cli, has_path ? cli_operand(cli, 1) : "/");
    const char *dest = cli_operand(cli, has_path ? 2 : 1);
    brc_xfer_opts opts = BRC_XFER_OPTS_INIT;

    if (strcmp(dest, "-") == 0)
        return cli_usage(cli, "DEST '-': a stream cannot be written yet: name a file or a "
                              "directory ('./-' is one of that name)");
    opts.format = cli_value(cli, "format");
    opts.consolidated = cli_has(cli, "consolidated");
    CLI_TRY(cli_open_view(cli));
    CLI_TRY(brc_export(cli->session, path, dest, &opts, &cli->err));
    cli_done(cli);
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
    .summary = "write a node as a Zarr directory or .zip, .npy, .npz, .nc or .h5",
    .usage = "FILE [PATH] DEST [--at REV] [--format FORMAT] [--consolidated]",
    .details = "PATH is the root where it is left out. DEST must not be there yet; its ending\n"
               "says the format where --format does not: .zarr, or none as in 'v1.2', is a Zarr\n"
               "v3 directory, .zip one in an archive; an ending that is not known is refused.\n"
               "With zarr2 an array that Zarr v2 cannot say is refused; DEST may end in .zip\n"
               "there too. What NetCDF (.nc, .nc4) and HDF5 (.h5, .hdf5) cannot say is refused\n"
               "likewise; netcdf3 is the classic format.",
    .examples = "breccia export climate.brc /era5 era5.zarr --at v1.0\n"
                "breccia export climate.brc /era5 era5.zarr.zip --format zarr2\n"
                "breccia export climate.brc /era5 era5.nc\n"
                "breccia export mnist.brc /train/images images.npy",
    .options = export_options,
    .min_operands = 2,
    .max_operands = 3,
    .flags = CLI_POOL,
    .run = run_export,
};
