/*
 * cmd_export.c - export.
 */
#include "../cli.h"
#include "commands.h"
#include "table_in.h"
#include "table_out.h"

#include <string.h>
#include <unistd.h>

static const struct cli_option export_options[] = {
    { "at", 0, 1, "REV", "export this version instead of the current branch" },
    { "format", 0, 1, "FORMAT", "zarr3, zarr2, zip, npy, npz, csv, netcdf, netcdf3, hdf5" },
    { "consolidated", 0, 0, NULL, "Zarr: copy all metadata into the top document" },
    { "nan-tokens", 0, 0, NULL,
      "Zarr: attributes may be NaN and Infinity, as zarr-python has them" },
    { "unequal-dimensions", 0, 0, NULL,
      "Zarr, NetCDF: dimensions of one name may have different lengths" },
    CLI_OPTIONS_END
};

/* Writes the stream of DEST '-', which needs standard output for itself. */
static int export_to_output(struct cli *cli, const char *path, const brc_xfer_opts *opts)
{
    if (cli->json)
        return cli_usage(cli, "--json and DEST '-' exclude each other: both are standard output");
    if (opts->format && strcmp(opts->format, "csv") == 0)
        return cli_usage(cli, "DEST '-' is a tar stream: 'breccia read --format csv' writes CSV to "
                              "standard output");
    if (isatty(STDOUT_FILENO))
        return cli_usage(cli, "DEST '-' is a tar stream, and standard output is a terminal: send "
                              "it to a pipe or a file");
    brc_xfer_opts to_stream = *opts;
    to_stream.flags |= BRC_XFER_STREAM;
    to_stream.fd = STDOUT_FILENO;
    CLI_TRY(brc_export(cli->session, path, NULL, &to_stream, &cli->err));
    cli_done(cli);
    return BRC_OK;
}

/* Writes one array as CSV. */
static int export_as_csv(struct cli *cli, const char *path, const char *dest)
{
    int kind;

    CLI_TRY(cli_node_kind(cli, path, &kind));
    if (kind != BRC_ARRAY)
        return cli_fail(cli, BRC_EINVAL, "%s is a group, and a CSV file has one array: give its "
                                         "PATH", path);
    CLI_TRY(cli_open_array(cli, path));
    return cli_export_csv(cli, dest);
}

static int export_to_file(struct cli *cli, const char *path, const char *dest,
                          const brc_xfer_opts *opts)
{
    const int is_csv = opts->format ? strcmp(opts->format, "csv") == 0 : cli_is_csv(dest);
    struct cli_texts warnings;

    if (is_csv)
        CLI_TRY(export_as_csv(cli, path, dest));
    else
        CLI_TRY(brc_export(cli->session, path, dest, opts, &cli->err));
    cli_done(cli);
    warnings = cli_warnings(cli, opts->warnings, 0, opts->warnings->len);
    cli_answer(cli,
               CLI_FIELDS({ "path", CLI_OF(path) }, { "dest", CLI_OF(dest) },
                          { "warnings", CLI_OF(warnings), CLI_AS_LINES }),
               "exported %s to %s", cli_escaped(cli, path), cli_escaped(cli, dest));
    return BRC_OK;
}

static int run_export(struct cli *cli)
{
    int has_path = cli->args.noperands == 3;
    const char *path = cli_path(cli, has_path ? cli_operand(cli, 1) : "/");
    const char *dest = cli_operand(cli, has_path ? 2 : 1);
    brc_xfer_opts opts = BRC_XFER_OPTS_INIT;
    brc_buf warnings = BRC_BUF_INIT;
    int rc;

    opts.format = cli_value(cli, "format");
    opts.warnings = &warnings;
    if (cli_has(cli, "consolidated"))
        opts.flags |= BRC_XFER_CONSOLIDATED;
    if (cli_has(cli, "nan-tokens"))
        opts.flags |= BRC_XFER_NAN_TOKENS;
    if (cli_has(cli, "unequal-dimensions"))
        opts.flags |= BRC_XFER_UNEQUAL_DIMENSIONS;
    CLI_TRY(cli_open_view(cli));
    rc = strcmp(dest, "-") == 0 ? export_to_output(cli, path, &opts)
                                : export_to_file(cli, path, dest, &opts);
    if (rc == BRC_OK)
        cli_warn(cli, &warnings);
    brc_buf_dispose(&warnings);
    return rc;
}

const struct cli_command cli_command_export = {
    .name = "export",
    .group = "Making and filling",
    .summary = "write a node as Zarr, .npy, .npz, .csv, .nc or .h5",
    .usage = "FILE [PATH] DEST [--at REV] [--format FORMAT] [OPTIONS]",
    .details = "Without PATH, the root is exported. DEST must not exist. Without --format, the\n"
               "ending of DEST gives the format: .zarr, or no ending as in 'v1.2', is a Zarr v3\n"
               "directory, and .zip is the same in an archive; an unknown ending is an error.\n"
               "With zarr2, DEST may end in .zip too. Data that Zarr v2, NetCDF (.nc, .nc4) or\n"
               "HDF5 (.h5, .hdf5) cannot describe is an error. netcdf3 is the classic format.\n"
               "DEST - is a tar stream of Zarr v3 on standard output. JSON has no text for\n"
               "attributes that are NaN or infinite: they are written to Zarr as marked texts,\n"
               "which every reader of JSON takes, and which import turns into numbers again;\n"
               "--nan-tokens writes the form that zarr-python and xarray read as numbers. If\n"
               "one dimension has two lengths in the arrays of a data set, nothing is written\n"
               "as Zarr or NetCDF without --unequal-dimensions. A .csv file has one array, as\n"
               "'read --format csv' prints it; the attribute 'columns' is the header if it has a\n"
               "name for each column.",
    .examples = "breccia export climate.brc /era5 era5.zarr --at v1.0\n"
                "breccia export climate.brc /era5 era5.zarr.zip --format zarr2\n"
                "breccia export climate.brc /era5 era5.nc\n"
                "breccia export mnist.brc /train/images images.npy\n"
                "breccia export climate.brc /scratch scratch.csv\n"
                "breccia export climate.brc /era5 - | ssh host breccia import era5.brc - /era5",
    .options = export_options,
    .min_operands = 2,
    .max_operands = 3,
    .flags = CLI_POOL,
    .run = run_export,
};
