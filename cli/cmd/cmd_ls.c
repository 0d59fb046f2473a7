/*
 * cmd_ls.c - ls.
 */
#include "../cli.h"
#include "../variable.h"
#include "commands.h"
#include "new_array.h"

#include <string.h>

static const struct cli_option ls_options[] = {
    { "recursive", 'r', 0, NULL, "list the whole tree, the node itself first" },
    { "long", 'l', 0, NULL, "show data type, shape, dimensions, chunks, codecs, stored bytes" },
    { "at", 0, 1, "REV", "read this version instead of the current branch" },
    CLI_OPTIONS_END
};

struct ls_row {
    const char *path, *name;
    const char *dtype, *type, *codecs, *codec_names; /* NULL: not printed */
    struct cli_dims shape, chunk;
    const char *dims; /* NULL: no dimension has a name                        */
    struct cli_texts names;
    uint64_t chunks, stored;
    int is_array, is_long;
};

/* Returns the names in a codec list: "bytes zstd". */
static const char *codec_names(struct cli *cli, const char *codecs)
{
    brc_json *list;
    const char *out = "", *name;

    if (brc_json_parse(&list, codecs, strlen(codecs), 0, NULL) < 0)
        return out;
    for (const brc_json *item = brc_json_first(list); item; item = brc_json_next(item)) {
        const brc_json *named = brc_json_member(item, "name");

        if (brc_json_text(named ? named : item, &name))
            out = cli_text(cli, "%s%s%s", out, out[0] ? " " : "", name);
    }
    brc_json_free(list);
    return out;
}

/* Copies the names of the dimensions. */
static int name_dims(struct cli *cli, struct ls_row *row, int ndim)
{
    const char **names = cli_alloc(cli, (size_t)ndim + 1, sizeof(*names));
    struct cli_variable variable;
    int rc = cli_variable_read(cli, cli->session, row->path, &variable);

    for (int i = 0; i < ndim; i++)
        names[i] = cli_text(cli, "%s", variable.dims[i]);
    if (rc >= 0 && variable.named) {
        row->names = (struct cli_texts){ names, (size_t)ndim };
        row->dims = cli_variable_dims(cli, &variable, ndim);
    }
    cli_variable_free(&variable);
    return rc;
}

static int read_array_row(struct cli *cli, struct ls_row *row)
{
    const brc_array_info *info;

    CLI_TRY(cli_open_array(cli, row->path));
    info = brc_array_describe(cli->array);
    row->dtype = info->dtype;
    row->type = cli_dtype_words(cli, info->dtype);
    row->shape = (struct cli_dims){ info->shape, info->ndim };
    row->chunk = (struct cli_dims){ info->chunk, info->ndim };
    if (!cli_has(cli, "long"))
        return BRC_OK;
    CLI_TRY(name_dims(cli, row, info->ndim));
    CLI_TRY(brc_array_stat(&row->chunks, &row->stored, cli->array, &cli->err));
    row->codecs = info->codecs_json;
    row->codec_names = codec_names(cli, info->codecs_json);
    row->is_long = 1;
    return BRC_OK;
}

/* All columns of `ls -l` but the first are for arrays. Without -l, a line is printed at once. */
static int put_ls_row(struct cli *cli, struct cli_list *list, const struct ls_row *row)
{
    const char *lead = row->is_long ? "  " : NULL;
    const int width = cli_has(cli, "long") ? CLI_FIT : 0;

    return cli_list_put(
        cli, list,
        CLI_FIELDS({ "path", CLI_OF(row->path) },
                   { "node_type", CLI_WORD(row->is_array ? "array" : "group") },
                   { NULL, CLI_OF(row->name), .lead = "", .width = width,
                     .color = row->is_array ? CLI_PLAIN : CLI_CYAN,
                     .narrow = width ? CLI_CUT_START : CLI_WHOLE },
                   { "data_type", CLI_OF(row->dtype), CLI_AS_JSON, .optional = 1 },
                   { NULL, CLI_OF(row->type), .lead = lead, .width = width,
                     .narrow = CLI_CUT_END },
                   { "shape", CLI_OF(row->shape), .optional = 1, .lead = lead, .width = width },
                   { "dimension_names", CLI_OF(row->names), .optional = 1 },
                   { "chunk_shape", CLI_OF(row->chunk), .optional = 1, .lead = lead,
                     .width = width, .narrow = CLI_LEFT_OUT },
                   { "codecs", CLI_OF(row->codecs), CLI_AS_JSON, .optional = 1 },
                   { NULL, CLI_OF(row->codec_names), .lead = lead, .none = "", .width = width,
                     .narrow = CLI_LEFT_OUT },
                   { lead ? "chunks" : NULL, CLI_OF(row->chunks) },
                   { lead ? "stored_bytes" : NULL, CLI_OF(row->stored), CLI_AS_SIZE, .lead = lead,
                     .width = -width },
                   { NULL, CLI_OF(row->dims), .lead = lead, .narrow = CLI_WRAPPED },
                   { "stale", CLI_OF(cli->moved), .optional = 1 }));
}

static int list_node(struct cli *cli, const brc_node *node, struct cli_list *list)
{
    struct ls_row row = { .path = node->path,
                          .name = node->path,
                          .is_array = node->kind == BRC_ARRAY };

    if (!row.is_array && strcmp(node->path, "/") != 0)
        row.name = cli_text(cli, "%s/", node->path);
    if (row.is_array && (cli->json || cli_has(cli, "long")))
        CLI_TRY(read_array_row(cli, &row));
    return put_ls_row(cli, list, &row);
}

static int list_nodes(struct cli *cli, const char *path, struct cli_list *list)
{
    brc_node named = { path, 0 };
    const brc_node *node = &named;
    int rc;

    CLI_TRY(cli_node_kind(cli, path, &named.kind));
    if (named.kind == BRC_ARRAY) /* an array lists itself, as `ls` does with a file */
        return list_node(cli, node, list);
    CLI_TRY(brc_list(&cli->iter, cli->session, path,
                     cli_has(cli, "recursive") ? BRC_LIST_RECURSE : 0, &cli->err));
    while ((rc = brc_next(cli->iter, &node, &cli->err)) == 1)
        CLI_TRY(list_node(cli, node, list));
    return rc;
}

static int run_ls(struct cli *cli)
{
    const char *path = cli_operand(cli, 1);
    struct cli_list list;

    CLI_TRY(cli_open_view(cli));
    cli_list_begin(cli, &list, NULL, 0);
    return cli_list_end(cli, &list,
                        list_nodes(cli, cli_path(cli, path ? path : "/"), &list));
}

const struct cli_command cli_command_ls = {
    .name = "ls",
    .group = "Looking",
    .summary = "list the children of a node",
    .usage = "FILE [PATH] [-r] [-l] [--at REV]",
    .details = "A group's name ends with a slash. If a terminal is too narrow for the table of\n"
               "-l, codecs and chunks are left out, and names of dimensions go below.",
    .examples = "breccia ls climate.brc -rl\nbreccia ls climate.brc /era5 --at v1.0 --json",
    .options = ls_options,
    .min_operands = 1,
    .max_operands = 2,
    .flags = CLI_PAGED,
    .run = run_ls,
};
