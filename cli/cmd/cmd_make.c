/*
 * cmd_make.c - init, create, group: new repositories and nodes.
 */
#include "../cli.h"
#include "backend_value.h"
#include "commands.h"
#include "new_array.h"

#include <string.h>

static const struct cli_option init_options[] = {
    { "if-missing", 0, 0, NULL, "leave a repository that is there as it is" },
    CLI_OPTIONS_END
};

/* Makes the repository, or opens the one that is there. */
static int make_if_missing(struct cli *cli)
{
    int rc = cli_open(cli, BRC_OPEN_CREATE);

    if (rc >= 0)
        return cli_settings_of_new(cli);
    if (rc != BRC_EEXISTS || !cli_has(cli, "if-missing"))
        return rc;
    brc_pool_free(cli->pool);
    cli->pool = NULL;
    return cli_open(cli, BRC_OPEN_READONLY);
}

static int run_init(struct cli *cli)
{
    const char *branch;

    CLI_TRY(make_if_missing(cli));
    if (!cli->changes) {
        CLI_TRY(cli_branch(cli, &branch));
        cli_answer(cli, CLI_FIELDS({ "file", CLI_OF(cli->file) }, { "branch", CLI_OF(branch) }),
                   "%s is there, on branch %s", cli_escaped(cli, cli->file),
                   cli_escaped(cli, branch));
        return BRC_OK;
    }
    cli_done(cli);
    CLI_TRY(cli_branch(cli, &branch));
    cli_answer(cli, CLI_FIELDS({ "file", CLI_OF(cli->file) }, { "branch", CLI_OF(branch) }),
               "made %s, on branch %s", cli_escaped(cli, cli->file), cli_escaped(cli, branch));
    return BRC_OK;
}

const struct cli_command cli_command_init = {
    .name = "init",
    .group = "Making and filling",
    .summary = "make a new, empty repository",
    .usage = "FILE [--if-missing]",
    .details = "FILE gets a root group on the branch main. FILE must not exist yet.",
    .examples = "breccia init climate.brc\nbreccia init climate.brc --if-missing",
    .options = init_options,
    .min_operands = 1,
    .max_operands = 1,
    .run = run_init,
};

/* ---- group -------------------------------------------------------------------- */

static const struct cli_option group_options[] = {
    { "attrs", 0, 1, "JSON", "attributes, a JSON object" },
    CLI_OPTIONS_END
};

/* Sets *out to the checked value of --attrs, or to NULL without that option. */
static int attrs_option(struct cli *cli, const char **out)
{
    const char *text = cli_value(cli, "attrs");

    *out = NULL;
    return text ? cli_json_text_argument(cli, "option --attrs", text, BRC_JSON_NAN, out)
                : BRC_OK;
}

static int run_group(struct cli *cli)
{
    const char *path = cli_path(cli, cli_operand(cli, 1)), *attrs;

    CLI_TRY(attrs_option(cli, &attrs));
    CLI_TRY(cli_open_edit(cli));
    CLI_TRY(brc_group_create(cli->session, path, attrs, &cli->err));
    cli_answer(cli, CLI_FIELDS({ "path", CLI_OF(path) }), "made group %s",
               cli_escaped(cli, path));
    return BRC_OK;
}

const struct cli_command cli_command_group = {
    .name = "group",
    .group = "Making and filling",
    .summary = "make a group",
    .usage = "FILE PATH [--attrs JSON]",
    .details = "Missing parent groups are made.",
    .examples = "breccia group climate.brc /model/run1 --attrs '{\"institute\": \"DKRZ\"}'\n"
                "breccia group climate.brc /model/run2",
    .options = group_options,
    .min_operands = 2,
    .max_operands = 2,
    .flags = CLI_PATH,
    .run = run_group,
};

/* ---- create ------------------------------------------------------------------- */

static const struct cli_option create_options[] = {
    { "shape", 0, 1, "N,N,...", "extent of each dimension; '' for a single value" },
    { "dtype", 0, 1, "TYPE", "data type: float32, int16, ..., NumPy's f8, U5, ..., or JSON" },
    { "chunks", 0, 1, "N,N,...", "chunk shape; without it, chunks have about 1 MiB" },
    { "shards", 0, 1, "N,N,...", "shape of shards, which hold many chunks each" },
    { "fill", 0, 1, "VALUE", "value of unwritten elements: 0, 1.5, NaN, 0x7fc00001, JSON" },
    { "codecs", 0, 1, "JSON", "a Zarr v3 codec list" },
    { "compress", 0, 1, CLI_COMPRESS_VALUE, "a short form of --codecs" },
    { "dimension-names", 0, 1, "NAME,NAME,...", "names of the dimensions; one may be empty" },
    { "attrs", 0, 1, "JSON", "attributes, a JSON object" },
    { "chunk-key-encoding", 0, 1, "default|v2", "how chunks are named in an exported Zarr" },
    { "backend", 0, 1, "JSON", "where chunks are stored: a name, or JSON; 'inline' is FILE" },
    { "metadata", 0, 1, "JSON", "a complete zarr.json instead of the options above" },
    { "like", 0, 1, "PATH", "take what is not given from this array, except attributes" },
    CLI_OPTIONS_END
};

static int check_metadata_stands_alone(struct cli *cli)
{
    static const char *const others[] = {
        "shape",  "dtype",    "chunks",          "shards", "fill",
        "codecs", "compress", "dimension-names", "attrs",  "chunk-key-encoding"
    };

    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        if (cli_has(cli, others[i]))
            return cli_usage(cli, "--metadata is a complete document: leave out --%s", others[i]);
    return BRC_OK;
}

/* Reads "time,,lon" as three names, of which the second one is NULL. */
static int dimension_names_option(struct cli *cli, int ndim, const char *const **out)
{
    const char *text = cli_value(cli, "dimension-names"), *p = text;
    const char **names = cli_alloc(cli, BRC_MAX_NDIM + 1, sizeof(*names));
    int n = 0;

    *out = NULL;
    if (!text)
        return BRC_OK;
    while (ndim > 0 || *text) {
        size_t len = strcspn(p, ",");

        if (n == BRC_MAX_NDIM)
            return cli_usage(cli, "option --dimension-names has more than %d names", BRC_MAX_NDIM);
        names[n++] = len ? cli_text(cli, "%.*s", (int)len, p) : NULL;
        if (!p[len])
            break;
        p += len + 1;
    }
    if (n != ndim)
        return cli_usage(cli, "option --dimension-names: %s need as many names, not %d",
                         cli_count(cli, (uint64_t)ndim, "dimension"), n);
    *out = names;
    return BRC_OK;
}

/* Reads a shape with as many dimensions as --shape. *out stays as it is if the option is not
 * given. */
static int shape_option(struct cli *cli, const char *name, int ndim, uint64_t *dims,
                        const uint64_t **out)
{
    int n;

    if (!cli_has(cli, name))
        return BRC_OK;
    CLI_TRY(cli_dims_option(cli, name, dims, &n));
    if (n != ndim)
        return cli_usage(cli, "option --%s has %s, --shape has %d", name,
                         cli_count(cli, (uint64_t)n, "dimension"), ndim);
    *out = dims;
    return BRC_OK;
}

/* `dims` has room for the shape, the chunks and the shards. */
static int fill_spec(struct cli *cli, brc_array_spec *spec, uint64_t dims[3][BRC_MAX_NDIM])
{
    const char *encoding = NULL;

    if (!cli_has(cli, "shape") || !cli_has(cli, "dtype"))
        return cli_usage(cli, "create needs --shape and --dtype, or --metadata");
    CLI_TRY(cli_dims_option(cli, "shape", dims[0], &spec->ndim));
    spec->shape = dims[0];
    CLI_TRY(cli_dtype_option(cli, &spec->dtype));
    CLI_TRY(shape_option(cli, "chunks", spec->ndim, dims[1], &spec->chunk));
    CLI_TRY(shape_option(cli, "shards", spec->ndim, dims[2], &spec->shard));
    spec->fill = cli_value(cli, "fill");
    CLI_TRY(cli_codecs_option(cli, spec->dtype, &spec->codecs_json));
    CLI_TRY(dimension_names_option(cli, spec->ndim, &spec->dimension_names));
    CLI_TRY(attrs_option(cli, &spec->attrs_json));
    CLI_TRY(cli_choice_option(cli, "chunk-key-encoding", "default|v2", &encoding));
    spec->chunk_key_encoding = encoding;
    return BRC_OK;
}

/* ---- create --like ------------------------------------------------------------- */

/* Returns the text of a value. */
static int text_of_json(struct cli *cli, const brc_json *value, const char **out)
{
    brc_buf text = BRC_BUF_INIT;
    int rc = brc_json_write(&text, value, 0, &cli->err);

    if (rc >= 0)
        *out = cli_text(cli, "%.*s", (int)text.len, (const char *)text.data);
    brc_buf_dispose(&text);
    return rc;
}

/* Makes the zarr.json of the array `like` with another shape and the attributes of --attrs. */
static int document_like(struct cli *cli, const brc_json *like, const char **out)
{
    const char *attrs, *shape = "", *text = "{", *comma = "", *value;
    uint64_t dims[BRC_MAX_NDIM];
    int ndim, reshaped = cli_has(cli, "shape");

    CLI_TRY(attrs_option(cli, &attrs));
    CLI_TRY(cli_dims_option(cli, "shape", dims, &ndim));
    if (reshaped && (size_t)ndim != brc_json_count(brc_json_member(like, "shape")))
        return cli_usage(cli, "option --shape has %s, %s has %zu",
                         cli_count(cli, (uint64_t)ndim, "dimension"), cli_value(cli, "like"),
                         brc_json_count(brc_json_member(like, "shape")));
    for (int i = 0; reshaped && i < ndim; i++)
        shape = cli_text(cli, "%s%s%llu", shape, i ? "," : "", (unsigned long long)dims[i]);
    for (const brc_json *member = brc_json_first(like); member; member = brc_json_next(member)) {
        const char *name = brc_json_name(member);

        if (strcmp(name, "attributes") == 0)
            continue;
        CLI_TRY(text_of_json(cli, member, &value));
        if (reshaped && strcmp(name, "shape") == 0)
            value = cli_text(cli, "[%s]", shape);
        text = cli_text(cli, "%s%s%s:%s", text, comma, cli_json_quoted(cli, name), value);
        comma = ",";
    }
    *out = attrs ? cli_text(cli, "%s,\"attributes\":%s}", text, attrs) : cli_text(cli, "%s}", text);
    return BRC_OK;
}

/* Sets the document of the new array, and its backend if that is not given, as those of --like. */
static int spec_like(struct cli *cli, brc_array_spec *spec)
{
    static const char *const others[] = { "dtype", "chunks", "shards", "fill", "codecs", "compress",
                                          "dimension-names", "chunk-key-encoding", "metadata" };
    const char *path = cli_path(cli, cli_value(cli, "like"));
    brc_json *like = NULL;
    brc_buf text = BRC_BUF_INIT;
    int rc;

    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        if (cli_has(cli, others[i]))
            return cli_usage(cli, "--like takes all but --shape, --attrs and --backend from PATH: "
                                  "leave out --%s", others[i]);
    CLI_TRY(cli_open_array(cli, path));
    if (!spec->backend_json)
        spec->backend_json = cli_text(cli, "%s", brc_array_describe(cli->array)->backend_json);
    rc = brc_node_json(&text, cli->session, path, &cli->err);
    if (rc >= 0)
        rc = brc_json_parse(&like, (const char *)text.data, text.len, BRC_JSON_NAN, &cli->err);
    if (rc >= 0)
        rc = document_like(cli, like, &spec->metadata_json);
    brc_json_free(like);
    brc_buf_dispose(&text);
    brc_array_free(cli->array);
    cli->array = NULL;
    return rc;
}

static void print_created(struct cli *cli, const char *path)
{
    const brc_array_info *info = brc_array_describe(cli->array);

    cli_answer(cli,
               CLI_FIELDS({ "path", CLI_OF(path) },
                          { "shape", CLI_DIMS_OF(info->shape, info->ndim) },
                          { "chunk_shape", CLI_DIMS_OF(info->chunk, info->ndim) }),
               "made array %s: %s, shape (%s), chunks (%s)", cli_escaped(cli, path),
               cli_escaped(cli, cli_dtype_words(cli, info->dtype)),
               cli_dims_text(cli, info->shape, info->ndim),
               cli_dims_text(cli, info->chunk, info->ndim));
}

static int run_create(struct cli *cli)
{
    const char *path = cli_path(cli, cli_operand(cli, 1));
    brc_array_spec spec = BRC_ARRAY_SPEC_INIT;
    uint64_t dims[3][BRC_MAX_NDIM];

    if (cli_has(cli, "backend"))
        CLI_TRY(cli_backend_argument(cli, "option --backend", cli_value(cli, "backend"),
                                     &spec.backend_json));
    if (cli_has(cli, "like")) {
        CLI_TRY(cli_open_edit(cli));
        CLI_TRY(spec_like(cli, &spec));
    } else if (cli_has(cli, "metadata")) {
        CLI_TRY(check_metadata_stands_alone(cli));
        CLI_TRY(cli_json_text_argument(cli, "option --metadata", cli_value(cli, "metadata"),
                                       BRC_JSON_NAN, &spec.metadata_json));
    } else {
        CLI_TRY(fill_spec(cli, &spec, dims));
    }
    if (!cli->session)
        CLI_TRY(cli_open_edit(cli));
    CLI_TRY(brc_array_create(&cli->array, cli->session, path, &spec, &cli->err));
    print_created(cli, path);
    return BRC_OK;
}

const struct cli_command cli_command_create = {
    .name = "create",
    .group = "Making and filling",
    .summary = "make an array",
    .usage = "FILE PATH --shape N,N,... --dtype TYPE [--chunks N,N,...] [OPTIONS]\n"
             "FILE PATH --metadata @zarr.json\n"
             "FILE PATH --like PATH [--shape N,N,...] [--attrs JSON]",
    .details = "Missing parent groups are made. Until something is written, only the metadata\n"
               "of the array is stored. Elements that were never written read as the fill\n"
               "value: without --fill, that is 0, or NaT for dates and times.",
    .examples = "breccia create mnist.brc /train --shape 60000,28,28 --dtype uint8\n"
                "breccia create mnist.brc /test --like /train --shape 9,28,28\n"
                "breccia create climate.brc /t2m --shape 0,241,480 --dtype f4 --fill NaN\n"
                "breccia create climate.brc /u --shape 0,9 --dtype f4 --dimension-names time,x",
    .options = create_options,
    .min_operands = 2,
    .max_operands = 2,
    .flags = CLI_PATH,
    .run = run_create,
};
