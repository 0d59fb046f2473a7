/*
 * cmd_exchange.c - import and export.
 */
#include "../cli.h"
#include "commands.h"
#include "compress.h"

#include <string.h>
#include <strings.h>
#include <sys/stat.h>

static const struct cli_option import_options[] = {
    { "chunks", 0, 1, "N,N,...", "cut every array into chunks of this shape" },
    { "codecs", 0, 1, "JSON", "encode chunks with this Zarr v3 codec list" },
    { "compress", 0, 1, CLI_COMPRESS_VALUE, "the short form of --codecs" },
    { "exclude", 0, 1, "PATH", "leave this node of SOURCE out, with all under it; repeatable" },
    CLI_OPTIONS_END
};

/* SOURCE... [PATH] */
struct sources {
    size_t n;
    const char **names;
    const char **placed; /* where each came in, once that is known */
    const char *path;    /* NULL: none was named                   */
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
static int check_excluded(struct cli *cli, const brc_xfer_opts *opts, const struct sources *from)
{
    for (size_t i = 0; i < opts->nexclude; i++)
        if (!opts->excluded[i])
            return cli_fail(cli, BRC_ENOTFOUND, "option --exclude: %s has no node %s",
                            from->n == 1 ? from->names[0] : "no source", opts->exclude[i]);
    return BRC_OK;
}

/* Whether a name is that of a file which can be imported, by its ending. */
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

/* SOURCE... [PATH]: whether the last name is a place in the repository. One that is not
 * there and has no ending of a file's is; with '/' in front it always is, so that scripts
 * need not care what else the machine has, but a file of that name is asked about. */
static int last_is_path(struct cli *cli, const char *last, int *is)
{
    struct stat status;
    int is_there = stat(last, &status) == 0;

    *is = last[0] == '/' || !is_there;
    if (last[0] == '/' && is_there && (S_ISREG(status.st_mode) || has_source_ending(last)))
        return cli_fail(cli, BRC_EINVAL,
                        "%s is there as a file, and the last name can be the place: write '/' "
                        "behind the sources to import it too",
                        last);
    if (last[0] != '/' && !is_there && has_source_ending(last))
        return cli_fail(cli, BRC_ENOTFOUND,
                        "%s: there is no such file or directory; for the place in the repository "
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
    for (size_t i = 0; i < from->n; i++)
        from->names[i] = cli_operand(cli, i + 1);
    return BRC_OK;
}

/* Says more where two sources have one place, and where the last one may be meant as it. */
static int import_failed(struct cli *cli, const struct sources *from, size_t i, int rc)
{
    const char *place = from->placed[i], *name = from->names[i];
    for (size_t k = 0; rc == BRC_EEXISTS && k < i; k++)
        if (strcmp(from->placed[k], place) == 0)
            return cli_fail(cli, rc,
                            "%s and %s would both come in as %s: import one of them by itself, "
                            "to another path",
                            from->names[k], name, place);
    if (rc == BRC_EUNSUPPORTED && i > 0 && i == from->n - 1 && !from->path && name[0] != '/')
        return cli_fail(cli, rc, "%s; for the place in the repository write /%s",
                        cli_text(cli, "%s", cli->err.message), name);
    return rc;
}

static int import_one(struct cli *cli, struct sources *from, size_t i, brc_xfer_opts *opts)
{
    brc_buf placed = BRC_BUF_INIT;

    opts->placed = &placed;
    opts->into = from->n > 1;
    int rc = brc_import(cli->session, from->names[i], from->path, opts, &cli->err);
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

/* One total for several sources; one alone brings its own. What cannot be read is told when
 * its turn comes. */
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

static int run_import(struct cli *cli)
{
    brc_xfer_opts opts = BRC_XFER_OPTS_INIT;
    uint64_t chunk[BRC_MAX_NDIM];
    struct sources from = { 0 };
    int rc;

    if (cli_has(cli, "chunks")) {
        CLI_TRY(cli_dims_option(cli, "chunks", chunk, &opts.nchunk));
        opts.chunk = chunk;
    }
    CLI_TRY(cli_codecs_option(cli, NULL, &opts.codecs_json));
    CLI_TRY(find_sources(cli, &from));
    CLI_TRY(cli_open_edit(cli));
    take_excluded(cli, &opts);
    CLI_TRY(brc_begin(cli->repo, &cli->err));
    rc = import_all(cli, &from, &opts);
    if (rc == BRC_OK)
        rc = check_excluded(cli, &opts, &from);
    CLI_TRY(cli_end(cli, rc));
    tell_imported(cli, &from);
    return BRC_OK;
}

const struct cli_command cli_command_import = {
    .name = "import",
    .group = "Making and filling",
    .summary = "bring in a Zarr directory or .zip, a .npy, .npz, IDX, NetCDF or HDF5 file",
    .usage = "FILE SOURCE... [PATH] [OPTIONS]",
    .details = "SOURCE comes in with its hierarchy, attributes and chunks, all of it or nothing.\n"
               "Chunks of Zarr v3 and v2 are taken over byte for byte, unless an option asks for\n"
               "something else; an array of v2 becomes one of v3 that says the same. Without PATH\n"
               "the place is named after SOURCE; a group takes an empty root over. Several\n"
               "sources come in together or not at all, each at a place named after it, in the\n"
               "group PATH or in the root. The last name is PATH where it begins with /, or where\n"
               "there is no such file and it does not end like one. Of NetCDF and HDF5, groups,\n"
               "attributes, chunks, fill values and names of dimensions come in; packed data\n"
               "stays packed. A data set that Zarr cannot say is refused, and with it the import:\n"
               "--exclude leaves it out.",
    .examples = "breccia import mnist.brc train-images-idx3-ubyte.gz /train/images\n"
                "breccia import climate.brc era5.zarr /era5\n"
                "breccia import climate.brc run.nc /run --exclude /debug\n"
                "breccia import mnist.brc train.npy test.npy /\n"
                "breccia import climate.brc t2m.npy /t2m --chunks 24,241,480 "
                "--compress blosc:zstd:5",
    .options = import_options,
    .min_operands = 2,
    .max_operands = SIZE_MAX,
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
    cli_json_answer(cli, "path", path, "dest", dest, NULL);
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
