/*
 * cmd_import.c - import.
 */
#include "../cli.h"
#include "commands.h"
#include "history.h"
#include "new_array.h"
#include "table_in.h"

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
    { "message", 'm', 1, "TEXT", "commit what was imported, with this message" },
    { "author", 0, 1, "'NAME <MAIL>'", "with -m: the author of the commit" },
    { "date", 0, 1, "TIME", "with -m: the time of the commit" },
    { "exclude", 0, 1, "PATTERN",
      "leave out nodes of SOURCE with all nodes under them, or PATH@ATTRIBUTE; repeatable" },
    { "external", 0, 0, NULL, "leave chunks in the files of SOURCE, which must stay as they are" },
    { "hdf5-plugins", 0, 1, "FOLDERS",
      "load HDF5's filters from these folders ('A:B'), not from those in HDF5_PLUGIN_PATH" },
    { "rename", 0, 1, "OLD=NEW", "give the node OLD of SOURCE the name NEW; repeatable" },
    { "replace", 0, 0, NULL, "put SOURCE in the place of a node that is there" },
    { "dtype", 0, 1, "TYPE", "CSV: the data type, as in 'breccia create'" },
    { "header", 0, 1, "yes|no", "CSV: whether the first row has names, which is found out" },
    { "skip-unsupported", 0, 0, NULL, "leave out parts that cannot be kept, and list them" },
    { "with", 0, 1, "CMD", "import the tar stream that CMD, run by sh, writes of SOURCE (\"$1\")" },
    CLI_OPTIONS_END
};

/* The operands SOURCE... [PATH]. */
struct sources {
    size_t n;
    const char **names;
    const char **nodes;  /* the NAME of each NAME=SOURCE, or NULL   */
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
                                           ".cdf", ".h5",  ".hdf5", "-ubyte", ".gz",
                                           ".csv" };
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
                        "%s exists, but the last argument may be PATH: to import it, put PATH "
                        "behind it, such as /",
                        last);
    if (last[0] != '/' && !is_there && has_source_ending(last))
        return cli_fail(cli, BRC_ENOTFOUND,
                        "%s: no such file or directory; if it is the PATH in the repository, "
                        "write /%s",
                        last, last);
    return BRC_OK;
}

/* Returns the SOURCE of NAME=SOURCE, and sets *name. Returns the word itself, and sets *name to
 * NULL, if the word is a file or has no NAME. */
static const char *split_name(struct cli *cli, const char *word, const char **name)
{
    const char *equals = strchr(word, '=');
    struct stat status;

    *name = NULL;
    if (!equals || equals == word || equals[1] == '\0' || stat(word, &status) == 0)
        return word;
    *name = cli_text(cli, "%.*s", (int)(equals - word), word);
    return equals + 1;
}

static int find_sources(struct cli *cli, struct sources *from)
{
    int is_path = 0;
    size_t n = cli->args.noperands - 1;
    const char *last = cli_operand(cli, n), *name;

    if (n > 1 && split_name(cli, last, &name) == last)
        CLI_TRY(last_is_path(cli, last, &is_path));
    from->n = n - (size_t)is_path;
    from->path = is_path ? cli_path(cli, last) : NULL;
    from->names = cli_alloc(cli, from->n, sizeof(*from->names));
    from->nodes = cli_alloc(cli, from->n, sizeof(*from->nodes));
    from->placed = cli_alloc(cli, from->n, sizeof(*from->placed));
    from->left_out = cli_alloc(cli, from->n, sizeof(*from->left_out));
    from->warned = cli_alloc(cli, from->n, sizeof(*from->warned));
    for (size_t i = 0; i < from->n; i++) {
        from->names[i] = split_name(cli, cli_operand(cli, i + 1), &from->nodes[i]);
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

/* Returns where the source goes, as brc_import() takes it, and sets the flags for that. */
static const char *place_for(struct cli *cli, const struct sources *from, size_t i, uint32_t *flags)
{
    const char *group = from->path ? from->path : "/";

    *flags &= ~(uint32_t)BRC_XFER_INTO;
    if (from->nodes[i])
        return cli_text(cli, "%s%s%s", group, group[1] ? "/" : "",
                        cli_path(cli, from->nodes[i]) + 1);
    if (from->n > 1)
        *flags |= BRC_XFER_INTO;
    return from->path;
}

/* Imports a CSV file as an array, which is named after the file without PATH. */
static int import_one_csv(struct cli *cli, struct sources *from, size_t i, brc_xfer_opts *opts)
{
    const char *file = from->names[i], *place = place_for(cli, from, i, &opts->flags);
    const char *slash = strrchr(file, '/'), *base = slash ? slash + 1 : file;
    const char *name = cli_text(cli, "%.*s", (int)(strlen(base) - strlen(".csv")), base);

    if (!place || opts->flags & BRC_XFER_INTO)
        place = cli_text(cli, "%s/%s", place && place[1] ? place : "", name);
    from->warned[i] = opts->warnings->len;
    from->placed[i] = place;
    int rc = cli_import_csv(cli, file, place, opts);
    return rc < 0 ? import_failed(cli, from, i, rc) : rc;
}

static int import_one(struct cli *cli, struct sources *from, size_t i, brc_xfer_opts *opts)
{
    if (!opts->with && cli_is_csv(from->names[i]))
        return import_one_csv(cli, from, i, opts);

    brc_buf placed = BRC_BUF_INIT, left_out = BRC_BUF_INIT;

    opts->placed = &placed;
    opts->left_out = &left_out;
    const char *place = place_for(cli, from, i, &opts->flags), *name = from->names[i];
    if (is_stream(from, opts)) {
        name = NULL;
        opts->flags |= BRC_XFER_STREAM;
        opts->fd = STDIN_FILENO;
    }
    int rc = brc_import(cli->session, name, place, opts, &cli->err);
    from->warned[i] = opts->warnings->len;
    from->placed[i] = cli_text(cli, "%s", placed.len ? (const char *)placed.data : "");
    brc_buf_dispose(&placed);
    if (left_out.len > 0 && brc_json_parse(&from->left_out[i], (const char *)left_out.data,
                                           left_out.len, 0, rc < 0 ? NULL : &cli->err) < 0)
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

static void tell_source(struct cli *cli, const struct sources *from, size_t i,
                        struct cli_texts warnings, const brc_oid *commit)
{
    const char *path = from->placed[i], *source = from->names[i];
    const brc_json *left_out = from->left_out[i];

    cli_say(cli, "imported %s as %s", cli_escaped(cli, source), cli_escaped(cli, path));
    cli_begin(cli, NULL, '{');
    cli_put_members(cli, CLI_FIELDS({ "path", CLI_OF(path) }, { "source", CLI_OF(source) }));
    cli_begin(cli, "left_out", '[');
    for (const brc_json *part = brc_json_first(left_out); part; part = brc_json_next(part))
        put_left_out(cli, part);
    cli_finish(cli, '[');
    cli_put_members(cli, CLI_FIELDS({ "warnings", CLI_OF(warnings), CLI_AS_LINES },
                                    { "commit", CLI_OF(*commit), .optional = 1 }));
    cli_finish(cli, '{');
}

static void tell_imported(struct cli *cli, const struct sources *from, const brc_buf *warnings,
                          const brc_oid *commit)
{
    if (from->n > 1)
        cli_begin(cli, NULL, '[');
    for (size_t i = 0; i < from->n; i++) {
        const size_t start = i > 0 ? from->warned[i - 1] : 0;

        tell_source(cli, from, i, cli_warnings(cli, warnings, start, from->warned[i]), commit);
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

static int import_and_check(struct cli *cli, struct sources *from, brc_xfer_opts *opts)
{
    CLI_TRY(import_all(cli, from, opts));
    CLI_TRY(check_excluded(cli, opts, from));
    return check_renamed(cli, opts, from);
}

/* Imports all sources over the nodes that are there, in a session that others see at its end. */
static int import_over_all(struct cli *cli, struct sources *from, brc_xfer_opts *opts)
{
    brc_session *shown = cli->session, *own;
    int rc;

    CLI_TRY(brc_session_open(&own, cli->repo, NULL, BRC_SESSION_PRIVATE, &cli->err));
    cli->session = own;
    rc = import_and_check(cli, from, opts);
    if (rc >= 0) {
        rc = brc_session_hand_over(own, shown, &cli->err);
        if (rc == BRC_ECONFLICT)
            rc = cli_fail(cli, rc, "the import conflicts with uncommitted changes: commit or drop "
                                   "these first");
    }
    if (rc < 0 && brc_session_discard(own, NULL) < 0)
        rc = cli->err.code; /* the draft stays, and ends with this process */
    brc_session_free(own);
    cli->session = shown;
    return rc;
}

/* Imports all sources or none. A single source without further checks needs no transaction. */
static int import_or_not(struct cli *cli, struct sources *from, brc_xfer_opts *opts)
{
    int has_csv = 0;

    for (size_t i = 0; i < from->n && !opts->with; i++)
        has_csv |= cli_is_csv(from->names[i]);
    if ((cli_has(cli, "dtype") || cli_has(cli, "header")) && !has_csv)
        return cli_usage(cli, "--dtype and --header are for CSV, and no source ends with .csv");
    if (opts->flags & BRC_XFER_EXTERNAL && has_csv)
        return cli_usage(cli, "--external: the numbers in a CSV file are texts, which cannot stay "
                              "there");
    if (from->n == 1 && opts->nexclude == 0 && opts->nrename == 0 && !has_csv)
        return import_all(cli, from, opts);
    if (from->n == 1 && has_csv && opts->flags & BRC_XFER_REPLACE) {
        CLI_TRY(brc_begin(cli->repo, &cli->err));
        return cli_end(cli, import_and_check(cli, from, opts));
    }
    if (opts->flags & BRC_XFER_REPLACE)
        return import_over_all(cli, from, opts);
    CLI_TRY(brc_bulk_begin(cli->session, &cli->err));
    return cli_end_bulk(cli, import_and_check(cli, from, opts));
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
    if (*made)
        CLI_TRY(cli_settings_of_new(cli));
    CLI_TRY(brc_session_open(&cli->session, cli->repo, NULL, BRC_SESSION_WRITE, &cli->err));
    return cli_log_edit(cli);
}

/* ---- -m ----------------------------------------------------------------------- */

/* Reads -m and the options that go with it. */
static int take_message(struct cli *cli, brc_commit_opts *commit)
{
    if (!cli_has(cli, "message") && (cli_has(cli, "author") || cli_has(cli, "date")))
        return cli_usage(cli, "--author and --date are for the commit of -m TEXT");
    return cli_commit_words(cli, &commit->message, &commit->author, &commit->time_us);
}

/* Fails if a commit would contain more than what is imported. */
static int check_clean(struct cli *cli)
{
    int clean;

    CLI_TRY(brc_session_clean(&clean, cli->session, &cli->err));
    if (!clean)
        return cli_fail(cli, BRC_ECONFLICT,
                        "%s has uncommitted changes, which -m would commit too: commit them first",
                        cli->file);
    return BRC_OK;
}

/* Commits what was imported. *id stays zero if that is what the branch has already. */
static int commit_imported(struct cli *cli, brc_commit_opts *commit, brc_oid *id)
{
    int clean;

    if (!commit->message)
        return BRC_OK;
    CLI_TRY(brc_session_clean(&clean, cli->session, &cli->err));
    if (clean)
        return BRC_OK;
    if (!commit->author)
        CLI_TRY(cli_default_author(cli, &commit->author));
    return brc_session_commit(id, cli->session, commit, &cli->err);
}

static int say_committed(struct cli *cli, const brc_commit_opts *commit, const brc_oid *id)
{
    const brc_oid none = { { 0 } };
    const char *branch;

    if (!commit->message)
        return BRC_OK;
    CLI_TRY(cli_branch(cli, &branch));
    if (cli_same_id(id, &none))
        cli_say(cli, "nothing to commit: %s has all of this already", cli_escaped(cli, branch));
    else
        cli_say(cli, "[%s %s] %s", cli_escaped(cli, branch), cli_short_id(cli, id),
                cli_subject(cli, commit->message));
    return BRC_OK;
}

/* Imports, commits with -m, and removes a new FILE if that fails. */
static int import_into_file(struct cli *cli, struct sources *from, brc_xfer_opts *opts,
                            brc_commit_opts *commit, brc_oid *id)
{
    int made, rc = BRC_OK;

    CLI_TRY(open_or_make(cli, &made));
    if (commit->message)
        rc = check_clean(cli);
    if (rc == BRC_OK) {
        rc = import_or_not(cli, from, opts);
        list_left_out(cli, from, rc);
    }
    if (rc >= 0)
        rc = commit_imported(cli, commit, id);
    if (rc < 0 && made)
        unlink(cli->file);
    else if (rc >= 0 && made)
        cli_say(cli, "made %s, on branch main", cli_escaped(cli, cli->file));
    return rc;
}

static int run_import(struct cli *cli)
{
    brc_buf warnings = BRC_BUF_INIT;
    brc_commit_opts commit = BRC_COMMIT_OPTS_INIT;
    brc_oid id = { { 0 } };
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
    if (cli_has(cli, "replace"))
        opts.flags |= BRC_XFER_REPLACE;
    if (cli_has(cli, "external"))
        opts.flags |= BRC_XFER_EXTERNAL;
    CLI_TRY(take_message(cli, &commit));
    CLI_TRY(take_renamed(cli, &opts));
    CLI_TRY(find_sources(cli, &from));
    take_excluded(cli, &opts);
    opts.warnings = &warnings;
    int rc = import_into_file(cli, &from, &opts, &commit, &id);
    if (rc >= 0) {
        cli_warn(cli, &warnings);
        tell_imported(cli, &from, &warnings, &id);
        rc = say_committed(cli, &commit, &id);
    }
    brc_buf_dispose(&warnings);
    free_left_out(&from);
    return rc;
}

const struct cli_command cli_command_import = {
    .name = "import",
    .group = "Making and filling",
    .summary = "import Zarr, .npy, .npz, .csv, IDX, NetCDF or HDF5",
    .usage = "FILE [NAME=]SOURCE... [PATH] [-m TEXT] [OPTIONS]",
    .details = "SOURCE is imported with its hierarchy, attributes and chunks, completely or not\n"
               "at all. FILE is made if it does not exist. Chunks of Zarr v3 and v2 are copied\n"
               "byte for byte unless an option asks for something else; a v2 array becomes an\n"
               "equivalent v3 array. Without PATH the node is named after SOURCE; a group\n"
               "becomes the root if the root is empty. NAME=SOURCE makes SOURCE the node NAME,\n"
               "in the group PATH or in the root. --replace puts SOURCE in the place of the node\n"
               "that is there, with all under it, and stores only what differs; PATH / is the\n"
               "root. Several sources are imported together or\n"
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
               "that you have. --external leaves chunks in the files of SOURCE wherever they are\n"
               "whole ranges of bytes there, and reads them from there for good: a file that\n"
               "has changed is an error. A .json file of Kerchunk references is the Zarr\n"
               "hierarchy that it lists; chunks at http or s3 addresses cannot be read. A .csv\n"
               "file becomes an array of numbers, a row of fields its last dimension; one\n"
               "column, or one row without a header, is one dimension. A first row with a word\n"
               "in it is a header, and becomes the attribute 'columns'. Integers are int64,\n"
               "other numbers float64, in which an empty field is NaN; for all else there is\n"
               "--dtype, and a struct takes a column for each of its fields.",
    .examples = "breccia import mnist.brc train-images-idx3-ubyte.gz /train/images\n"
                "breccia import climate.brc era5.zarr /era5 -m 'ERA5 as downloaded'\n"
                "breccia import climate.brc era5.zarr /era5 --replace -m 'ERA5, corrected'\n"
                "breccia import climate.brc run.nc /run --exclude /debug --exclude '**@history'\n"
                "breccia import climate.brc run.nc /july --rename /t=temperature\n"
                "breccia import mnist.brc train.npy test.npy /raw\n"
                "breccia import digits.brc images=train.npy tests=test.npy -m raw\n"
                "breccia import climate.brc t2m.npy /t2m --chunks 8,241,480\n"
                "breccia import climate.brc t2m.npy /t2m_small --compress blosc:zstd:5\n"
                "breccia import climate.brc archive/2020.nc /2020 --external\n"
                "breccia import climate.brc stations.csv /stations --dtype float32\n"
                "breccia export old.brc - | breccia import new.brc -\n"
                "breccia import climate.brc run.grib /run --with './grib2zarr \"$1\"'",
    .options = import_options,
    .min_operands = 2,
    .max_operands = SIZE_MAX,
    .flags = CLI_POOL,
    .run = run_import,
};
