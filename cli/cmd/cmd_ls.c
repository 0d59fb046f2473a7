/*
 * cmd_ls.c - ls.
 */
#include "../cli.h"
#include "commands.h"

#include <stdlib.h>
#include <string.h>

static const struct cli_option ls_options[] = {
    { "recursive", 'r', 0, NULL, "list the whole tree, the node itself first" },
    { "long", 'l', 0, NULL, "show data type, shape, chunks, codecs and stored bytes" },
    { "at", 0, 1, "REV", "read this version instead of the current branch" },
    CLI_OPTIONS_END
};

/* One line of `ls -l`. */
struct ls_row {
    const char *path;
    int kind;
    const char *dtype, *shape, *chunk, *codecs, *stored;
};

struct ls_rows {
    struct ls_row *rows;
    size_t n, cap;
};

/* The names in a codec list: "bytes zstd". */
static const char *codec_names(struct cli *cli, const char *codecs)
{
    brc_json *list;
    const char *out = "", *name;

    if (brc_json_parse(&list, codecs, strlen(codecs), NULL) < 0)
        return out;
    for (const brc_json *item = brc_json_first(list); item; item = brc_json_next(item)) {
        const brc_json *named = brc_json_member(item, "name");

        if (brc_json_text(named ? named : item, &name))
            out = cli_text(cli, "%s%s%s", out, out[0] ? " " : "",
                           cli_escaped(cli, name));
    }
    brc_json_free(list);
    return out;
}

static int list_array_json(struct cli *cli)
{
    const brc_array_info *info = brc_array_describe(cli->array);
    uint64_t chunks, stored;

    cli_json_key(cli, "data_type");
    cli_json_dtype(cli, info->dtype);
    cli_json_member_dims(cli, "shape", info->shape, info->ndim);
    cli_json_member_dims(cli, "chunk_shape", info->chunk, info->ndim);
    if (!cli_has(cli, "long"))
        return BRC_OK;
    CLI_TRY(brc_array_stat(&chunks, &stored, cli->array, &cli->err));
    cli_json_key(cli, "codecs");
    cli_json_raw(cli, info->codecs_json, strlen(info->codecs_json));
    cli_json_member_uint(cli, "chunks", chunks);
    cli_json_member_uint(cli, "stored_bytes", stored);
    return BRC_OK;
}

static int list_node_json(struct cli *cli, const brc_node *node)
{
    cli_json_open(cli, '{');
    cli_json_member(cli, "path", node->path);
    cli_json_member(cli, "node_type", node->kind == BRC_ARRAY ? "array" : "group");
    if (node->kind == BRC_ARRAY) {
        CLI_TRY(cli_open_array(cli, node->path));
        CLI_TRY(list_array_json(cli));
    }
    if (cli->moved)
        cli_json_member_bool(cli, "stale", 1);
    cli_json_close(cli, '{');
    return BRC_OK;
}

static int keep_long_row(struct cli *cli, const brc_node *node, struct ls_rows *rows)
{
    struct ls_row *row;
    const brc_array_info *info;
    char size[CLI_SIZE_CAP];
    uint64_t chunks, stored;

    rows->rows = cli_grow(rows->rows, rows->n, &rows->cap, sizeof(*rows->rows));
    row = &rows->rows[rows->n++];
    memset(row, 0, sizeof(*row));
    row->path = cli_escaped(cli, node->path);
    row->kind = node->kind;
    if (node->kind != BRC_ARRAY)
        return BRC_OK;
    CLI_TRY(cli_open_array(cli, node->path));
    info = brc_array_describe(cli->array);
    CLI_TRY(brc_array_stat(&chunks, &stored, cli->array, &cli->err));
    row->dtype = cli_escaped(cli, info->dtype);
    row->shape = cli_text(cli, "(%s)", cli_dims_text(cli, info->shape, info->ndim));
    row->chunk = cli_text(cli, "(%s)", cli_dims_text(cli, info->chunk, info->ndim));
    row->codecs = cli_escaped(cli, codec_names(cli, info->codecs_json));
    row->stored = cli_text(cli, "%s", cli_format_size(size, stored));
    return BRC_OK;
}

static void widen(size_t *width, const char *text)
{
    size_t n = text ? cli_text_width(text) : 0;

    if (n > *width)
        *width = n;
}

static void put_node_name(struct cli *cli, const char *path, int kind)
{
    if (kind == BRC_GROUP)
        cli_color(cli, CLI_CYAN);
    cli_puts(cli, path);
    if (kind == BRC_GROUP && strcmp(path, "/") != 0)
        cli_puts(cli, "/");
    if (kind == BRC_GROUP)
        cli_color_end(cli);
}

static void print_long_rows(struct cli *cli, const struct ls_rows *rows)
{
    size_t path = 0, dtype = 0, shape = 0, chunk = 0, codecs = 0, stored = 0;

    for (size_t i = 0; i < rows->n; i++) {
        const struct ls_row *row = &rows->rows[i];
        size_t n = cli_text_width(row->path) + (row->kind == BRC_GROUP);

        path = n > path ? n : path;
        widen(&dtype, row->dtype);
        widen(&shape, row->shape);
        widen(&chunk, row->chunk);
        widen(&codecs, row->codecs);
        widen(&stored, row->stored);
    }
    for (size_t i = 0; i < rows->n; i++) {
        const struct ls_row *row = &rows->rows[i];

        put_node_name(cli, row->path, row->kind);
        if (row->kind == BRC_ARRAY) {
            cli_printf(cli, "%*s", (int)(path - cli_text_width(row->path)) + 2, "");
            cli_put_padded(cli, row->dtype, dtype + 2);
            cli_put_padded(cli, row->shape, shape + 2);
            cli_put_padded(cli, row->chunk, chunk + 2);
            cli_put_padded(cli, row->codecs, codecs + 2);
            cli_printf(cli, "%*s", (int)stored, row->stored);
        }
        cli_puts(cli, "\n");
    }
}

static int list_node(struct cli *cli, const brc_node *node, struct ls_rows *rows)
{
    if (cli->json)
        return list_node_json(cli, node);
    if (cli_has(cli, "long"))
        return keep_long_row(cli, node, rows);
    put_node_name(cli, cli_escaped(cli, node->path), node->kind);
    cli_puts(cli, "\n");
    return cli_out_check(cli);
}

static int list_nodes(struct cli *cli, const char *path, struct ls_rows *rows)
{
    brc_node named = { path, 0 };
    const brc_node *node = &named;
    int rc;

    CLI_TRY(cli_node_kind(cli, path, &named.kind));
    if (named.kind == BRC_ARRAY) /* as with `ls` of a file */
        return list_node(cli, node, rows);
    CLI_TRY(brc_list(&cli->iter, cli->session, path,
                     cli_has(cli, "recursive") ? BRC_LIST_RECURSE : 0, &cli->err));
    while ((rc = brc_list_next(cli->iter, &node, &cli->err)) == 1)
        CLI_TRY(list_node(cli, node, rows));
    return rc;
}

static int run_ls(struct cli *cli)
{
    const char *path = cli_operand(cli, 1);
    struct ls_rows rows = { NULL, 0, 0 };
    int rc;

    CLI_TRY(cli_open_view(cli));
    if (cli->json)
        cli_json_open(cli, '[');
    rc = list_nodes(cli, cli_path(cli, path ? path : "/"), &rows);
    if (cli->json)
        cli_json_close(cli, '[');
    if (rc >= 0)
        print_long_rows(cli, &rows);
    free(rows.rows);
    return rc;
}

const struct cli_command cli_command_ls = {
    .name = "ls",
    .group = "Looking",
    .summary = "list the children of a node",
    .usage = "FILE [PATH] [-r] [-l] [--at REV]",
    .details = "A group's name ends with a slash.",
    .examples = "breccia ls climate.brc -rl\nbreccia ls climate.brc /era5 --at v1.0 --json",
    .options = ls_options,
    .min_operands = 1,
    .max_operands = 2,
    .run = run_ls,
};
