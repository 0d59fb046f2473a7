/*
 * cmd_import.c - import.
 */
#include "../cli.h"
#include "commands.h"
#include "new_array.h"

#include "../../src/breccia_json.h"

#include <errno.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct cli_option import_options[] = {
    { "chunks", 0, 1, "N,N,...", "store every array in chunks of this shape" },
    { "codecs", 0, 1, "JSON", "encode chunks with this Zarr v3 codec list" },
    { "compress", 0, 1, CLI_COMPRESS_VALUE, "a short form of --codecs" },
    { "exclude", 0, 1, "PATTERN",
      "leave out nodes of SOURCE with all nodes under them, or PATH@ATTRIBUTE; repeatable" },
    { "hdf5-plugins", 0, 1, "FOLDERS",
      "load HDF5's filters from these folders ('A:B'), not from those in HDF5_PLUGIN_PATH" },
    { "rename", 0, 1, "OLD=NEW", "give the node OLD of SOURCE the name NEW; repeatable" },
    { "skip-unsupported", 0, 0, NULL, "leave out parts that cannot be kept, and list them" },
    { "with", 0, 1, "CMD", "import the tar stream that CMD, run by sh, writes of SOURCE (\"$1\")" },
    CLI_OPTIONS_END
};

/* The operands SOURCE... [PATH]. */
struct sources {
    size_t n;
    const char **names;
    const char **placed; /* the node of each source, once it is known */
    const char *path;    /* NULL if PATH was not given              */
    brc_json **left_out; /* the parts of each that cannot be kept   */
    size_t *warned;      /* where the warnings of each end          */
};

static void take_excluded(struct cli *cli, brc_xfer_opts *opts)
{
    const char **paths = cli_alloc(cli, cli->args.ngiven, sizeof(*paths));
    for (const char *one; (one = cli_nth_value(cli, "exclude", opts->nexclude)) != NULL;)
        paths[opts->nexclude++] = one;
    opts->exclude = paths;
    opts->excluded = cli_alloc(cli, opts->nexclude + 1, 1);
}

/* Fails if a node or an attribute to leave out does not exist, since its name is mistyped then. A
 * pattern may match nothing: it may be meant for other files too. */
static int check_excluded(struct cli *cli, const brc_xfer_opts *opts, const struct sources *from)
{
    for (size_t i = 0; i < opts->nexclude; i++)
        if (!opts->excluded[i] && !strpbrk(opts->exclude[i], "*?["))
            return cli_fail(cli, BRC_ENOTFOUND, "option --exclude: %s %s %s",
                            from->n == 1 ? cli_text(cli, "%s does not have", from->names[0])
                                         : "none of the sources has",
                            strchr(opts->exclude[i], '@') ? "an attribute" : "a node",
                            opts->exclude[i]);
    return BRC_OK;
}

/* Splits each OLD=NEW at the last '='. */
static int take_renamed(struct cli *cli, brc_xfer_opts *opts)
{
    brc_rename *names = cli_alloc(cli, cli->args.ngiven, sizeof(*names));
    for (const char *one; (one = cli_nth_value(cli, "rename", opts->nrename)) != NULL;) {
        const char *equals = strrchr(one, '=');
        if (!equals)
            return cli_usage(cli, "option --rename: OLD=NEW is expected, not '%s'", one);
        names[opts->nrename].from = cli_text(cli, "%.*s", (int)(equals - one), one);
        names[opts->nrename++].to = equals + 1;
    }
    opts->rename = names;
    opts->renamed = cli_alloc(cli, opts->nrename + 1, 1);
    return BRC_OK;
}

static int check_renamed(struct cli *cli, const brc_xfer_opts *opts, const struct sources *from)
{
    for (size_t i = 0; i < opts->nrename; i++)
        if (!opts->renamed[i])
            return cli_fail(cli, BRC_ENOTFOUND, "option --rename: nothing that is imported from %s "
                                                "has the path %s",
                            from->n == 1 ? from->names[0] : "the sources", opts->rename[i].from);
    return BRC_OK;
}

/* Returns whether the name ends like that of a file that can be imported. */
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

/* Sets *is if the last of SOURCE... [PATH] is PATH. A name that begins with '/' is PATH, so that
 * scripts need not care what else is on the machine; a file of that name is an error. Any other
 * name is PATH if the file does not exist and the name does not end like a file that can be
 * imported. */
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
    from->left_out = cli_alloc(cli, from->n, sizeof(*from->left_out));
    from->warned = cli_alloc(cli, from->n, sizeof(*from->warned));
    for (size_t i = 0; i < from->n; i++) {
        from->names[i] = cli_operand(cli, i + 1);
        if (from->n > 1 && strcmp(from->names[i], "-") == 0)
            return cli_usage(cli, "SOURCE '-' must be the only source: a stream does not have a "
                                  "name for its node");
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

/* Returns whether SOURCE is '-', standard input. For the command of --with, '-' is an ordinary
 * name. */
static int is_stream(const struct sources *from, const brc_xfer_opts *opts)
{
    return !opts->with && strcmp(from->names[0], "-") == 0;
}

static int import_one(struct cli *cli, struct sources *from, size_t i, brc_xfer_opts *opts)
{
    brc_buf placed = BRC_BUF_INIT, left_out = BRC_BUF_INIT;

    opts->placed = &placed;
    opts->left_out = &left_out;
    if (from->n > 1)
        opts->flags |= BRC_XFER_INTO;
    int rc = is_stream(from, opts)
                 ? brc_import_stream(cli->session, STDIN_FILENO, from->path, opts, &cli->err)
                 : brc_import(cli->session, from->names[i], from->path, opts, &cli->err);
    from->warned[i] = opts->warnings->len;
    from->placed[i] = cli_text(cli, "%s", placed.len ? (const char *)placed.data : "");
    brc_buf_dispose(&placed);
    if (left_out.len > 0 && brc_json_parse(&from->left_out[i], (const char *)left_out.data,
                                           left_out.len, rc < 0 ? NULL : &cli->err) < 0)
        rc = rc < 0 ? rc : cli->err.code;
    brc_buf_dispose(&left_out);
    return rc < 0 ? import_failed(cli, from, i, rc) : rc;
}

/* ---- what cannot be kept ------------------------------------------------------ */

static const char *text_of(const brc_json *part, const char *member)
{
    const char *text;
    return brc_json_text(brc_json_member(part, member), &text) ? text : "";
}

static size_t count_left_out(const struct sources *from)
{
    size_t n = 0;
    for (size_t i = 0; i < from->n; i++)
        n += brc_json_count(from->left_out[i]);
    return n;
}

/* Prints a line on standard error for each part that was left out. If the import failed because
 * of a single part, the error itself names that part. */
static void list_left_out(struct cli *cli, const struct sources *from, int rc)
{
    cli_progress_end(cli);
    for (size_t i = 0; i < from->n && (rc >= 0 || count_left_out(from) > 1); i++)
        for (const brc_json *part = brc_json_first(from->left_out[i]); part;
             part = brc_json_next(part))
            fprintf(stderr, "breccia: %s: %s\n", rc < 0 ? "cannot be kept" : "left out",
                    cli_escaped(cli, text_of(part, "message")));
}

/* Makes one error for the parts of several sources, which are one import. */
static int none_imported(struct cli *cli, const struct sources *from, int rc)
{
    size_t n = count_left_out(from);
    for (size_t i = 0; rc == BRC_EUNSUPPORTED && n > 1 && from->n > 1 && i < from->n; i++)
        if (brc_json_count(from->left_out[i]) > 0)
            return cli_fail(cli, rc,
                            "the sources have %zu parts that cannot be kept (--skip-unsupported "
                            "imports everything else), the first: %s",
                            n, text_of(brc_json_item(from->left_out[i], 0), "message"));
    return rc;
}

/* Returns whether to go on with the next source, so that the parts of all sources are named. */
static int is_named_only(const struct sources *from, size_t i, int rc)
{
    return rc == BRC_OK || (rc == BRC_EUNSUPPORTED && brc_json_count(from->left_out[i]) > 0);
}

static void put_left_out(struct cli *cli, const brc_json *part)
{
    cli_put_record(cli, CLI_FIELDS({ "path", CLI_OF(text_of(part, "path")) },
                                   { "kind", CLI_OF(text_of(part, "kind")) },
                                   { "message", CLI_OF(text_of(part, "message")) },
                                   { "remedy", CLI_OF(text_of(part, "remedy")) }));
}

static void tell_source(struct cli *cli, const char *path, const char *source,
                        const brc_json *left_out, struct cli_texts warnings)
{
    cli_say(cli, "imported %s as %s", cli_escaped(cli, source), cli_escaped(cli, path));
    cli_begin(cli, NULL, '{');
    cli_put_members(cli, CLI_FIELDS({ "path", CLI_OF(path) }, { "source", CLI_OF(source) }));
    cli_begin(cli, "left_out", '[');
    for (const brc_json *part = brc_json_first(left_out); part; part = brc_json_next(part))
        put_left_out(cli, part);
    cli_finish(cli, '[');
    cli_put_members(cli, CLI_FIELDS({ "warnings", CLI_OF(warnings), CLI_AS_LINES }));
    cli_finish(cli, '{');
}

static void tell_imported(struct cli *cli, const struct sources *from, const brc_buf *warnings)
{
    if (from->n > 1)
        cli_begin(cli, NULL, '[');
    for (size_t i = 0; i < from->n; i++) {
        const size_t start = i > 0 ? from->warned[i - 1] : 0;

        tell_source(cli, from->placed[i], from->names[i], from->left_out[i],
                    cli_warnings(cli, warnings, start, from->warned[i]));
    }
    if (from->n > 1)
        cli_finish(cli, '[');
}

/* Returns the total of several sources; the library reports that of a single one. A source that
 * cannot be read is an error when its turn comes, not here. */
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
    for (size_t i = 0; i < from->n; i++) {
        int one = import_one(cli, from, i, opts);
        if (one < 0 && (rc == BRC_OK || !is_named_only(from, i, one)))
            rc = one;
        if (!is_named_only(from, i, one))
            break;
    }
    if (several)
        brc_progress_end(cli->repo, rc);
    return none_imported(cli, from, rc);
}

/* Imports all sources or none. A single source without further checks needs no transaction. */
static int import_or_not(struct cli *cli, struct sources *from, brc_xfer_opts *opts)
{
    int rc;

    if (from->n == 1 && opts->nexclude == 0 && opts->nrename == 0)
        return import_all(cli, from, opts);
    CLI_TRY(brc_bulk_begin(cli->session, &cli->err));
    rc = import_all(cli, from, opts);
    if (rc == BRC_OK)
        rc = check_excluded(cli, opts, from);
    if (rc == BRC_OK)
        rc = check_renamed(cli, opts, from);
    return cli_end_bulk(cli, rc);
}

static void free_left_out(const struct sources *from)
{
    for (size_t i = 0; from->left_out && i < from->n; i++)
        brc_json_free(from->left_out[i]);
}

/* Opens FILE, or makes it and sets *made. The caller removes a new FILE if nothing is imported. */
static int open_or_make(struct cli *cli, int *made)
{
    const char *file = cli_operand(cli, 0);

    *made = file[0] && !cli_has(cli, "no-recover") && access(file, F_OK) != 0 && errno == ENOENT;
    CLI_TRY(cli_open(cli, *made ? BRC_OPEN_CREATE : 0));
    return brc_session_open(&cli->session, cli->repo, NULL, BRC_SESSION_WRITE, &cli->err);
}

static int run_import(struct cli *cli)
{
    int made;
    brc_buf warnings = BRC_BUF_INIT;
    brc_xfer_opts opts = BRC_XFER_OPTS_INIT;
    uint64_t chunk[BRC_MAX_NDIM];
    struct sources from = { 0 };

    if (cli_has(cli, "chunks")) {
        CLI_TRY(cli_dims_option(cli, "chunks", chunk, &opts.nchunk));
        opts.chunk = chunk;
    }
    opts.with = cli_value(cli, "with");
    opts.hdf5_plugins = cli_value(cli, "hdf5-plugins");
    CLI_TRY(cli_codecs_option(cli, NULL, &opts.codecs_json));
    if (cli_has(cli, "skip-unsupported"))
        opts.flags |= BRC_XFER_SKIP_UNSUPPORTED;
    CLI_TRY(take_renamed(cli, &opts));
    CLI_TRY(find_sources(cli, &from));
    CLI_TRY(open_or_make(cli, &made));
    take_excluded(cli, &opts);
    opts.warnings = &warnings;
    int rc = import_or_not(cli, &from, &opts);
    list_left_out(cli, &from, rc);
    if (rc < 0 && made)
        unlink(cli->file);
    else if (made)
        cli_say(cli, "made %s, on branch main", cli_escaped(cli, cli->file));
    if (rc >= 0) {
        cli_warn(cli, &warnings);
        tell_imported(cli, &from, &warnings);
    }
    brc_buf_dispose(&warnings);
    free_left_out(&from);
    return rc;
}

const struct cli_command cli_command_import = {
    .name = "import",
    .group = "Making and filling",
    .summary = "import a Zarr directory or .zip, or a .npy, .npz, IDX, NetCDF or HDF5 file",
    .usage = "FILE SOURCE... [PATH] [OPTIONS]",
    .details = "SOURCE is imported with its hierarchy, attributes and chunks, completely or not\n"
               "at all. FILE is made if it does not exist. Chunks of Zarr v3 and v2 are copied\n"
               "byte for byte unless an option asks for something else; a v2 array becomes an\n"
               "equivalent v3 array. Without PATH the node is named after SOURCE; a group\n"
               "becomes the root if the root is empty. Several sources are imported together or\n"
               "not at all: each becomes a node with the name of the source, in the group PATH\n"
               "or in the root. The last argument is PATH if it begins with /, or if there is\n"
               "no such file and its name does not end like that of a file to import. NetCDF\n"
               "and HDF5 files are imported with groups, attributes, chunks, fill values and\n"
               "names of dimensions; packed data stays packed. If parts of SOURCE cannot be\n"
               "kept, such as data sets that Zarr cannot describe, all of these parts are named\n"
               "and nothing is imported; --skip-unsupported imports everything else. In PATTERN\n"
               "'*' and '?' stand for characters of a name, '**' for any number of names. OLD\n"
               "is the path that a node of SOURCE has below the imported node; NEW is a name,\n"
               "since the node stays in its group, and the nodes under it stay under it. SOURCE\n"
               "- is a Zarr v3 hierarchy as a tar stream on standard input; --with imports the\n"
               "stream that a command writes (docs/STREAM.md). The command has all the rights\n"
               "that you have.",
    .examples = "breccia import mnist.brc train-images-idx3-ubyte.gz /train/images\n"
                "breccia import climate.brc era5.zarr /era5\n"
                "breccia import climate.brc run.nc /run --exclude /debug --exclude '**@history'\n"
                "breccia import climate.brc run.nc /july --rename /t=temperature\n"
                "breccia import mnist.brc train.npy test.npy /raw\n"
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
