/*
 * cmd_exchange.c - import and export.
 */
#include "../cli.h"
#include "commands.h"
#include "compress.h"

#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct cli_option import_options[] = {
    { "chunks", 0, 1, "N,N,...", "store every array in chunks of this shape" },
    { "codecs", 0, 1, "JSON", "encode chunks with this Zarr v3 codec list" },
    { "compress", 0, 1, CLI_COMPRESS_VALUE, "a short form of --codecs" },
    { "exclude", 0, 1, "PATH", "leave out this node of SOURCE and all under it; repeatable" },
    { "with", 0, 1, "CMD", "import the tar stream that CMD, run by sh, writes of SOURCE (\"$1\")" },
    CLI_OPTIONS_END
};

/* SOURCE... [PATH] */
struct sources {
    size_t n;
    const char **names;
    const char **placed; /* where each came to be, once it is known */
    const char *path;    /* NULL: none was given                    */
};

static void take_excluded(struct cli *cli, brc_xfer_opts *opts)
{
    const char **paths = cli_alloc(cli, cli->args.ngiven, sizeof(*paths));
    for (const char *one; (one = cli_nth_value(cli, "exclude", opts->nexclude)) != NULL;)
        paths[opts->nexclude++] = one;
    opts->exclude = paths;
    opts->excluded = cli_alloc(cli, opts->nexclude + 1, 1);
}

/* If a node to be left out does not exist, its name is mistyped. */
static int check_excluded(struct cli *cli, const brc_xfer_opts *opts, const struct sources *from)
{
    for (size_t i = 0; i < opts->nexclude; i++)
        if (!opts->excluded[i])
            return cli_fail(cli, BRC_ENOTFOUND, "option --exclude: %s a node %s",
                            from->n == 1 ? cli_text(cli, "%s does not have", from->names[0])
                                         : "none of the sources has",
                            opts->exclude[i]);
    return BRC_OK;
}

/* By its ending, is this the name of a file that can be imported? */
static int has_source_ending(const char *name)
{
    static const char *const endings[] = { ".npy", ".npz", ".zip",  ".zarr",  ".nc", ".nc4",
                                           ".cdf", ".h5",  ".hdf5", "-ubyte", ".gz" };
    size_t len = strlen(name);
    for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
        size_t n = strlen(endings[i]);
        if (len > n && strcasecmp(name + len - n, endings[i]) == 0)
            return 1;
    }
    return 0;
}

/* SOURCE... [PATH]: is the last name PATH? It is if it begins with '/', so that scripts need
 * not care what else is on the machine, but a file of that name is an error. It is too if
 * there is no such file and it does not end like one. */
static int last_is_path(struct cli *cli, const char *last, int *is)
{
    struct stat status;
    int is_there = stat(last, &status) == 0;

    *is = last[0] == '/' || !is_there;
    if (last[0] == '/' && is_there && (S_ISREG(status.st_mode) || has_source_ending(last)))
        return cli_fail(cli, BRC_EINVAL,
                        "%s exists, but as the last argument it may be PATH: add '/' after it to "
                        "import it",
                        last);
    if (last[0] != '/' && !is_there && has_source_ending(last))
        return cli_fail(cli, BRC_ENOTFOUND,
                        "%s: no such file or directory; if it is the PATH in the repository, "
                        "write /%s",
                        last, last);
    return BRC_OK;
}

static int find_sources(struct cli *cli, struct sources *from)
{
    int is_path = 0;
    size_t n = cli->args.noperands - 1;
    const char *last = cli_operand(cli, n);

    if (n > 1)
        CLI_TRY(last_is_path(cli, last, &is_path));
    from->n = n - (size_t)is_path;
    from->path = is_path ? cli_path(cli, last) : NULL;
    from->names = cli_alloc(cli, from->n, sizeof(*from->names));
    from->placed = cli_alloc(cli, from->n, sizeof(*from->placed));
    for (size_t i = 0; i < from->n; i++) {
        from->names[i] = cli_operand(cli, i + 1);
        if (from->n > 1 && strcmp(from->names[i], "-") == 0)
            return cli_usage(cli, "SOURCE '-' is imported by itself: a stream has no name to come "
                                  "in under");
    }
    return BRC_OK;
}

/* Explains the error if two sources have one PATH, or the last one may be meant as PATH. */
static int import_failed(struct cli *cli, const struct sources *from, size_t i, int rc)
{
    const char *place = from->placed[i], *name = from->names[i];
    for (size_t k = 0; rc == BRC_EEXISTS && k < i; k++)
        if (strcmp(from->placed[k], place) == 0)
            return cli_fail(cli, rc,
                            "%s and %s would both become %s: import one of them alone, to "
                            "another PATH",
                            from->names[k], name, place);
    if (rc == BRC_EUNSUPPORTED && i > 0 && i == from->n - 1 && !from->path && name[0] != '/')
        return cli_fail(cli, rc, "%s; if it is the PATH in the repository, write /%s",
                        cli_text(cli, "%s", cli->err.message), name);
    return rc;
}

/* SOURCE '-': standard input. To a command it is a name like others. */
static int is_stream(const struct sources *from, const brc_xfer_opts *opts)
{
    return !opts->with && strcmp(from->names[0], "-") == 0;
}

static int import_one(struct cli *cli, struct sources *from, size_t i, brc_xfer_opts *opts)
{
    brc_buf placed = BRC_BUF_INIT;

    opts->placed = &placed;
    if (from->n > 1)
        opts->flags |= BRC_XFER_INTO;
    int rc = is_stream(from, opts)
                 ? brc_import_stream(cli->session, STDIN_FILENO, from->path, opts, &cli->err)
                 : brc_import(cli->session, from->names[i], from->path, opts, &cli->err);
    from->placed[i] = cli_text(cli, "%s", placed.len ? (const char *)placed.data : "");
    brc_buf_dispose(&placed);
    return rc < 0 ? import_failed(cli, from, i, rc) : rc;
}

static void tell_imported(struct cli *cli, const struct sources *from)
{
    for (size_t i = 0; i < from->n; i++)
        cli_say(cli, "imported %s as %s", cli_escaped(cli, from->names[i]),
                cli_escaped(cli, from->placed[i]));
    if (!cli->json)
        return;
    if (from->n > 1)
        cli_json_open(cli, '[');
    for (size_t i = 0; i < from->n; i++) {
        cli_json_open(cli, '{');
        cli_json_member(cli, "path", from->placed[i]);
        cli_json_member(cli, "source", from->names[i]);
        cli_json_close(cli, '{');
    }
    if (from->n > 1)
        cli_json_close(cli, '[');
}

/* The total of several sources; a single one has its own. A source that cannot be read is
 * an error when its turn comes, not here. */
static uint64_t bytes_of_all(struct cli *cli, const struct sources *from, const brc_xfer_opts *opts)
{
    uint64_t sum = 0, bytes;

    for (size_t i = 0; i < from->n; i++)
        if (brc_import_bytes(&bytes, cli->session, from->names[i], opts, NULL) < 0 ||
            __builtin_add_overflow(sum, bytes, &sum))
            return 0;
    return sum;
}

static int import_all(struct cli *cli, struct sources *from, brc_xfer_opts *opts)
{
    int rc = BRC_OK, several = from->n > 1;

    if (several)
        brc_progress_begin(cli->repo, cli->command->name, bytes_of_all(cli, from, opts));
    for (size_t i = 0; rc == BRC_OK && i < from->n; i++)
        rc = import_one(cli, from, i, opts);
    if (several)
        brc_progress_end(cli->repo, rc);
    return rc;
}

/* All or nothing, as one import is by itself. */
static int import_or_not(struct cli *cli, struct sources *from, brc_xfer_opts *opts)
{
    int rc;

    if (from->n == 1 && opts->nexclude == 0)
        return import_all(cli, from, opts);
    CLI_TRY(brc_bulk_begin(cli->session, &cli->err));
    rc = import_all(cli, from, opts);
    if (rc == BRC_OK)
        rc = check_excluded(cli, opts, from);
    return cli_end_bulk(cli, rc);
}

static int run_import(struct cli *cli)
{
    brc_xfer_opts opts = BRC_XFER_OPTS_INIT;
    uint64_t chunk[BRC_MAX_NDIM];
    struct sources from = { 0 };

    if (cli_has(cli, "chunks")) {
        CLI_TRY(cli_dims_option(cli, "chunks", chunk, &opts.nchunk));
        opts.chunk = chunk;
    }
    opts.with = cli_value(cli, "with");
    CLI_TRY(cli_codecs_option(cli, NULL, &opts.codecs_json));
    CLI_TRY(find_sources(cli, &from));
    CLI_TRY(cli_open_edit(cli));
    take_excluded(cli, &opts);
    CLI_TRY(import_or_not(cli, &from, &opts));
    tell_imported(cli, &from);
    return BRC_OK;
}

const struct cli_command cli_command_import = {
    .name = "import",
    .group = "Making and filling",
    .summary = "bring in a Zarr directory or .zip, or a .npy, .npz, IDX, NetCDF or HDF5 file",
    .usage = "FILE SOURCE... [PATH] [OPTIONS]",
    .details = "SOURCE is imported with its hierarchy, attributes and chunks, completely or\n"
               "not at all. Chunks of Zarr v3 and v2 are copied byte for byte unless an\n"
               "option asks for something else; a v2 array becomes an equivalent v3 array.\n"
               "Without PATH the node is named after SOURCE; a group becomes the root if that\n"
               "is empty. Several sources are imported together or not at all, each as a node\n"
               "named after it, in the group PATH or in the root. The last argument is PATH\n"
               "if it begins with /, or if there is no such file and it does not end like\n"
               "one. From NetCDF and HDF5 come groups, attributes, chunks, fill values and\n"
               "names of dimensions; packed data stays packed. A data set that Zarr cannot\n"
               "describe makes the import fail; --exclude leaves it out.\n"
               "SOURCE - is a Zarr v3 hierarchy as a tar stream on standard input; --with\n"
               "imports what a command writes so (docs/STREAM.md). The command has all the\n"
               "rights that you have.",
    .examples = "breccia import mnist.brc train-images-idx3-ubyte.gz /train/images\n"
                "breccia import climate.brc era5.zarr /era5\n"
                "breccia import climate.brc run.nc /run --exclude /debug\n"
                "breccia import mnist.brc train.npy test.npy /\n"
                "breccia import climate.brc t2m.npy /t2m --chunks 24,241,480 "
                "--compress blosc:zstd:5\n"
                "breccia export old.brc - | breccia import new.brc -\n"
                "breccia import climate.brc run.grib /run --with './grib2zarr \"$1\"'",
    .options = import_options,
    .min_operands = 2,
    .max_operands = SIZE_MAX,
    .flags = CLI_POOL,
    .run = run_import,
};

/* ---- export ------------------------------------------------------------------- */

static const struct cli_option export_options[] = {
    { "at", 0, 1, "REV", "export this version instead of the current branch" },
    { "format", 0, 1, "FORMAT", "zarr3, zarr2, zip, npy, npz, netcdf, netcdf3, hdf5" },
    { "consolidated", 0, 0, NULL, "Zarr: copy all metadata into the top document" },
    CLI_OPTIONS_END
};

/* DEST '-': the stream has standard output for itself. */
static int export_to_output(struct cli *cli, const char *path, const brc_xfer_opts *opts)
{
    if (cli->json)
        return cli_usage(cli, "--json would write into the stream that DEST '-' asks for");
    if (isatty(STDOUT_FILENO))
        return cli_usage(cli, "DEST '-' is a tar stream, and standard output is a terminal: send "
                              "it to a pipe or a file");
    CLI_TRY(brc_export_stream(cli->session, path, STDOUT_FILENO, opts, &cli->err));
    cli_done(cli);
    return BRC_OK;
}

static int run_export(struct cli *cli)
{
    int has_path = cli->args.noperands == 3;
    const char *path = cli_path(cli, has_path ? cli_operand(cli, 1) : "/");
    const char *dest = cli_operand(cli, has_path ? 2 : 1);
    brc_xfer_opts opts = BRC_XFER_OPTS_INIT;

    opts.format = cli_value(cli, "format");
    if (cli_has(cli, "consolidated"))
        opts.flags |= BRC_XFER_CONSOLIDATED;
    CLI_TRY(cli_open_view(cli));
    if (strcmp(dest, "-") == 0)
        return export_to_output(cli, path, &opts);
    CLI_TRY(brc_export(cli->session, path, dest, &opts, &cli->err));
    cli_done(cli);
    cli_say(cli, "exported %s to %s", cli_escaped(cli, path), cli_escaped(cli, dest));
    cli_json_answer(cli, "path", path, "dest", dest, NULL);
    return BRC_OK;
}

const struct cli_command cli_command_export = {
    .name = "export",
    .group = "Making and filling",
    .summary = "write a node as a Zarr directory or a .zip, .npy, .npz, .nc or .h5 file",
    .usage = "FILE [PATH] DEST [--at REV] [--format FORMAT] [--consolidated]",
    .details = "PATH is the root if it is left out. DEST must not exist. Without --format,\n"
               "its ending gives the format: .zarr, or none as in 'v1.2', is a Zarr v3\n"
               "directory, .zip the same in an archive; an unknown ending is an error. With\n"
               "zarr2, DEST may end in .zip too. What Zarr v2, NetCDF (.nc, .nc4) or HDF5\n"
               "(.h5, .hdf5) cannot describe is an error. netcdf3 is the classic format.\n"
               "DEST - is a tar stream of Zarr v3 on standard output.",
    .examples = "breccia export climate.brc /era5 era5.zarr --at v1.0\n"
                "breccia export climate.brc /era5 era5.zarr.zip --format zarr2\n"
                "breccia export climate.brc /era5 era5.nc\n"
                "breccia export mnist.brc /train/images images.npy\n"
                "breccia export climate.brc /era5 - | ssh host breccia import climate.brc - /era5",
    .options = export_options,
    .min_operands = 2,
    .max_operands = 3,
    .flags = CLI_POOL,
    .run = run_export,
};
