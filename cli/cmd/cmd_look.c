/*
 * cmd_look.c - ls and info: what there is.
 */
#include "../cli.h"
#include "commands.h"

#include <stdlib.h>
#include <string.h>

/* ---- ls -------------------------------------------------------------------------- */

static const struct cli_option ls_options[] = {
    { "recursive", 'r', 0, NULL, "the whole tree, the node itself first" },
    { "long", 'l', 0, NULL, "with data type, shape, chunks, codecs and stored bytes" },
    { "at", 0, 1, "REV", "that version instead of the current branch as it is" },
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

/* The names in a codec list, "bytes zstd". */
static const char *codec_names(struct cli *cli, const char *codecs)
{
    struct cli_json_text item, name;
    const char *out = "";
    size_t cursor = 0;

    while (cli_json_item(&item, codecs, strlen(codecs), &cursor)) {
        if (!cli_json_find(&name, item.text, item.len, "name"))
            name = item;
        if (name.len >= 2 && name.text[0] == '"')
            out = cli_text(cli, "%s%s%.*s", out, out[0] ? " " : "", (int)name.len - 2,
                           name.text + 1);
    }
    return out;
}

static int list_array_json(struct cli *cli)
{
    const brc_array_info *info = brc_array_describe(cli->array);
    uint64_t chunks, stored;

    cli_json_key(cli, "data_type");
    cli_json_dtype(cli, info->dtype);
    cli_json_key(cli, "shape");
    cli_json_dims(cli, info->shape, info->ndim);
    cli_json_key(cli, "chunk_shape");
    cli_json_dims(cli, info->chunk, info->ndim);
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
    cli_json_close(cli, '{');
    return BRC_OK;
}

static int keep_long_row(struct cli *cli, const brc_node *node, struct ls_rows *rows)
{
    struct ls_row *row;
    const brc_array_info *info;
    char size[CLI_SIZE_CAP];
    uint64_t chunks, stored;

    if (rows->n == rows->cap) {
        rows->cap = rows->cap ? rows->cap * 2 : 64;
        rows->rows = cli_regrow(rows->rows, rows->cap, sizeof(*rows->rows));
    }
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
    brc_node node = { path, 0 };
    int rc;

    CLI_TRY(brc_node_kind(&node.kind, cli->session, path, &cli->err));
    if (node.kind == 0)
        return cli_fail(cli, BRC_ENOTFOUND, "%s: there is no node %s", cli->file, path);
    if (node.kind == BRC_ARRAY) /* as `ls` of a file */
        return list_node(cli, &node, rows);
    CLI_TRY(brc_list(&cli->iter, cli->session, path, cli_has(cli, "recursive"), &cli->err));
    while ((rc = brc_list_next(cli->iter, &node, &cli->err)) == 1)
        CLI_TRY(list_node(cli, &node, rows));
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
    .details = "A group's name ends in a slash.",
    .examples = "breccia ls climate.brc -rl\nbreccia ls climate.brc /era5 --at v1.0 --json",
    .options = ls_options,
    .min_operands = 1,
    .max_operands = 2,
    .run = run_ls,
};

/* ---- info ------------------------------------------------------------------------ */

static const struct cli_option info_options[] = {
    { "at", 0, 1, "REV", "a node: that version instead of the current branch as it is" },
    CLI_OPTIONS_END
};

struct repo_facts {
    const char *branch;
    uint64_t branches, tags;
    brc_stats stats;
};

static int gather_repo_facts(struct cli *cli, struct repo_facts *facts)
{
    const char *branch;
    brc_ref ref;
    int rc;

    CLI_TRY(brc_head(&branch, cli->repo, &cli->err));
    facts->branch = cli_text(cli, "%s", branch);
    CLI_TRY(brc_refs(&cli->iter, cli->repo, &cli->err));
    while ((rc = brc_refs_next(cli->iter, &ref, &cli->err)) == 1) {
        facts->branches += !ref.is_tag;
        facts->tags += ref.is_tag != 0;
    }
    CLI_TRY(rc);
    return brc_stat(cli->repo, &facts->stats, &cli->err);
}

static void put_fact(struct cli *cli, const char *name, const char *value)
{
    cli_color(cli, CLI_DIM);
    cli_put_padded(cli, name, 14);
    cli_color_end(cli);
    cli_printf(cli, "%s\n", value);
}

static void put_count(struct cli *cli, const char *name, uint64_t count)
{
    put_fact(cli, name, cli_text(cli, "%llu", (unsigned long long)count));
}

static void put_bytes(struct cli *cli, const char *name, uint64_t bytes)
{
    char size[CLI_SIZE_CAP];

    put_fact(cli, name, bytes < 1024 ? cli_text(cli, "%llu bytes", (unsigned long long)bytes)
                                     : cli_text(cli, "%llu bytes (%s)", (unsigned long long)bytes,
                                                cli_format_size(size, bytes)));
}

static void print_repo_text(struct cli *cli, const struct repo_facts *facts)
{
    const brc_stats *stats = &facts->stats;

    put_fact(cli, "repository", cli_escaped(cli, cli->file));
    put_fact(cli, "branch", cli_escaped(cli, facts->branch));
    put_count(cli, "branches", facts->branches);
    put_count(cli, "tags", facts->tags);
    put_count(cli, "commits", stats->commits);
    put_count(cli, "objects", stats->objects);
    put_count(cli, "chunks", stats->chunks);
    put_bytes(cli, "file", stats->file_bytes);
    put_bytes(cli, "stored", stats->stored_bytes);
    put_bytes(cli, "decoded", stats->logical_bytes);
    if (stats->stored_bytes > 0)
        put_fact(cli, "compression",
                 cli_text(cli, "%.2f times",
                          (double)stats->logical_bytes / (double)stats->stored_bytes));
    if (stats->chunks > 0 && stats->chunk_refs >= stats->chunks)
        put_fact(cli, "dedup",
                 cli_text(cli, "%.2f times, %llu chunks in all commits",
                          (double)stats->chunk_refs / (double)stats->chunks,
                          (unsigned long long)stats->chunk_refs));
}

static int info_repo(struct cli *cli)
{
    struct repo_facts facts;

    memset(&facts, 0, sizeof(facts));
    CLI_TRY(gather_repo_facts(cli, &facts));
    if (!cli->json) {
        print_repo_text(cli, &facts);
        return BRC_OK;
    }
    cli_json_open(cli, '{');
    cli_json_member(cli, "branch", facts.branch);
    cli_json_member_uint(cli, "branches", facts.branches);
    cli_json_member_uint(cli, "tags", facts.tags);
    cli_json_member_uint(cli, "commits", facts.stats.commits);
    cli_json_member_uint(cli, "objects", facts.stats.objects);
    cli_json_member_uint(cli, "chunks", facts.stats.chunks);
    cli_json_member_uint(cli, "file_bytes", facts.stats.file_bytes);
    cli_json_member_uint(cli, "stored_bytes", facts.stats.stored_bytes);
    cli_json_member_uint(cli, "logical_bytes", facts.stats.logical_bytes);
    cli_json_member_uint(cli, "chunk_refs", facts.stats.chunk_refs);
    cli_json_close(cli, '{');
    return BRC_OK;
}

struct node_facts {
    const char *path;
    int kind;
    brc_buf json;
    uint64_t stored, total, bytes;
};

static int gather_node_facts(struct cli *cli, struct node_facts *facts)
{
    const brc_array_info *info;

    CLI_TRY(brc_node_json(&facts->json, cli->session, facts->path, &cli->err));
    if (facts->kind != BRC_ARRAY)
        return BRC_OK;
    CLI_TRY(cli_open_array(cli, facts->path));
    info = brc_array_describe(cli->array);
    facts->total = 1;
    for (int i = 0; i < info->ndim; i++)
        if (__builtin_mul_overflow(facts->total, info->grid[i], &facts->total))
            facts->total = UINT64_MAX;
    return brc_array_stat(&facts->stored, &facts->bytes, cli->array, &cli->err);
}

static void print_node_text(struct cli *cli, const struct node_facts *facts)
{
    put_fact(cli, "path", cli_escaped(cli, facts->path));
    put_fact(cli, "node type", facts->kind == BRC_ARRAY ? "array" : "group");
    if (facts->kind == BRC_ARRAY) {
        const brc_array_info *info = brc_array_describe(cli->array);

        put_fact(cli, "data type", cli_escaped(cli, info->dtype));
        put_fact(cli, "shape",
                 cli_text(cli, "(%s)", cli_dims_text(cli, info->shape, info->ndim)));
        put_fact(cli, "chunk shape",
                 cli_text(cli, "(%s)", cli_dims_text(cli, info->chunk, info->ndim)));
        put_fact(cli, "chunks",
                 cli_text(cli, "%llu of %llu stored", (unsigned long long)facts->stored,
                          (unsigned long long)facts->total));
        put_bytes(cli, "stored", facts->bytes);
        put_fact(cli, "backend", "inline");
        if (!info->readable)
            put_fact(cli, "readable", cli_text(cli, "no: %s", cli_escaped(cli, info->why)));
        else if (!info->writable)
            put_fact(cli, "writable", cli_text(cli, "no: %s", cli_escaped(cli, info->why)));
    }
    cli_puts(cli, "\n");
    cli->doc.pretty = 1;
    cli_json_raw(cli, (const char *)facts->json.data, facts->json.len);
    cli_puts(cli, "\n");
}

static void print_node_json(struct cli *cli, const struct node_facts *facts)
{
    cli_json_open(cli, '{');
    cli_json_member(cli, "path", facts->path);
    cli_json_member(cli, "node_type", facts->kind == BRC_ARRAY ? "array" : "group");
    cli_json_member_uint(cli, "zarr_format", 3);
    cli_json_key(cli, "metadata");
    cli_json_raw(cli, (const char *)facts->json.data, facts->json.len);
    cli_json_member_uint(cli, "chunks_stored", facts->stored);
    cli_json_member_uint(cli, "chunks_total", facts->total);
    cli_json_member_uint(cli, "stored_bytes", facts->bytes);
    cli_json_member(cli, "backend", "inline");
    cli_json_close(cli, '{');
}

static int info_node(struct cli *cli, const char *path)
{
    struct node_facts facts = { path, 0, BRC_BUF_INIT, 0, 0, 0 };
    int rc;

    CLI_TRY(brc_node_kind(&facts.kind, cli->session, path, &cli->err));
    if (facts.kind == 0)
        return cli_fail(cli, BRC_ENOTFOUND, "%s: there is no node %s", cli->file, path);
    rc = gather_node_facts(cli, &facts);
    if (rc >= 0 && cli->json)
        print_node_json(cli, &facts);
    else if (rc >= 0)
        print_node_text(cli, &facts);
    brc_buf_dispose(&facts.json);
    return rc;
}

static int run_info(struct cli *cli)
{
    const char *path = cli_operand(cli, 1);

    if (!path && cli_has(cli, "at"))
        return cli_usage(cli, "--at needs PATH: what is said of a repository is of all versions");
    if (path) {
        CLI_TRY(cli_open_view(cli));
        return info_node(cli, cli_path(cli, path));
    }
    CLI_TRY(cli_open(cli, BRC_OPEN_READONLY));
    return info_repo(cli);
}

const struct cli_command cli_command_info = {
    .name = "info",
    .group = "Looking",
    .summary = "say what a repository or a node holds",
    .usage = "FILE\nFILE PATH [--at REV]",
    .details = "Of a node, the metadata is its zarr.json.",
    .examples = "breccia info climate.brc\nbreccia info climate.brc /t2m --json",
    .options = info_options,
    .min_operands = 1,
    .max_operands = 2,
    .run = run_info,
};
