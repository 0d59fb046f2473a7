/*
 * cmd_info.c - info.
 */
#include "../cli.h"
#include "commands.h"

#include <string.h>

static const struct cli_option info_options[] = {
    { "at", 0, 1, "REV", "with PATH: read this version instead of the current branch" },
    CLI_OPTIONS_END
};

struct repo_facts {
    const char *branch;
    uint64_t branches, tags;
    brc_stats stats;
    const char *journal;
};

static int gather_journal(struct cli *cli, const char **journal)
{
    brc_buf text = BRC_BUF_INIT;
    int rc = brc_config_get(&text, cli->repo, "journal", &cli->err);

    if (rc >= 0)
        *journal = cli_text(cli, "%s", (const char *)text.data);
    brc_buf_dispose(&text);
    return rc;
}

static int gather_repo_facts(struct cli *cli, struct repo_facts *facts)
{
    const brc_ref *ref;
    int rc;

    CLI_TRY(cli_branch(cli, &facts->branch));
    CLI_TRY(brc_refs(&cli->iter, cli->repo, &cli->err));
    while ((rc = brc_refs_next(cli->iter, &ref, &cli->err)) == 1) {
        facts->branches += !(ref->flags & BRC_REF_TAG);
        facts->tags += (ref->flags & BRC_REF_TAG) != 0;
    }
    CLI_TRY(rc);
    CLI_TRY(brc_stat(cli->repo, &facts->stats, &cli->err));
    return gather_journal(cli, &facts->journal);
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
    put_fact(cli, "journal", facts->journal);
    if (stats->log_bytes > 0)
        put_bytes(cli, "log", stats->log_bytes);
    put_bytes(cli, "stored", stats->stored_bytes);
    put_bytes(cli, "decoded", stats->logical_bytes);
    if (stats->stored_bytes > 0)
        put_fact(cli, "compression",
                 cli_text(cli, "%.2f times",
                          (double)stats->logical_bytes / (double)stats->stored_bytes));
    if (stats->chunks > 0 && stats->chunk_refs >= stats->chunks)
        put_fact(cli, "dedup",
                 cli_text(cli, "%.2f times, %s in all commits",
                          (double)stats->chunk_refs / (double)stats->chunks,
                          cli_count(cli, stats->chunk_refs, "chunk")));
}

/* The branch has moved since the uncommitted changes began. */
static void print_moved(struct cli *cli, const char *branch)
{
    if (cli->moved)
        cli_printf(cli, "%s\n", cli_moved_words(cli, branch));
}

static void json_moved(struct cli *cli)
{
    if (cli->moved)
        cli_json_member_bool(cli, "stale", 1);
}

static int info_repo(struct cli *cli)
{
    struct repo_facts facts = { .stats = BRC_STATS_INIT };

    CLI_TRY(gather_repo_facts(cli, &facts));
    CLI_TRY(cli_find_moved(cli, &facts.branch));
    if (!cli->json) {
        print_repo_text(cli, &facts);
        print_moved(cli, facts.branch);
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
    cli_json_member(cli, "journal", facts.journal);
    cli_json_member_uint(cli, "log_bytes", facts.stats.log_bytes);
    cli_json_member_uint(cli, "stored_bytes", facts.stats.stored_bytes);
    cli_json_member_uint(cli, "logical_bytes", facts.stats.logical_bytes);
    cli_json_member_uint(cli, "chunk_refs", facts.stats.chunk_refs);
    json_moved(cli);
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

/* Where new chunks go; NULL: the file itself. */
static const char *other_backend(struct cli *cli, const struct node_facts *facts)
{
    const char *json = facts->kind == BRC_ARRAY ? brc_array_describe(cli->array)->backend_json
                                                : "{\"name\":\"inline\"}";

    return strcmp(json, "{\"name\":\"inline\"}") == 0 ? NULL : json;
}

static void print_node_text(struct cli *cli, const struct node_facts *facts)
{
    const char *backend = other_backend(cli, facts);

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
        put_fact(cli, "backend", backend ? cli_escaped(cli, backend) : "inline");
        if (!(info->flags & BRC_ARRAY_READABLE))
            put_fact(cli, "readable", cli_text(cli, "no: %s", cli_escaped(cli, info->why)));
        else if (!(info->flags & BRC_ARRAY_WRITABLE))
            put_fact(cli, "writable", cli_text(cli, "no: %s", cli_escaped(cli, info->why)));
    }
    cli_puts(cli, "\n");
    cli->doc.pretty = 1;
    cli_json_raw(cli, (const char *)facts->json.data, facts->json.len);
    cli_puts(cli, "\n");
}

static void print_node_json(struct cli *cli, const struct node_facts *facts)
{
    const char *backend = other_backend(cli, facts);

    cli_json_open(cli, '{');
    cli_json_member(cli, "path", facts->path);
    cli_json_member(cli, "node_type", facts->kind == BRC_ARRAY ? "array" : "group");
    cli_json_member_uint(cli, "zarr_format", 3);
    cli_json_key(cli, "metadata");
    cli_json_raw(cli, (const char *)facts->json.data, facts->json.len);
    cli_json_member_uint(cli, "chunks_stored", facts->stored);
    cli_json_member_uint(cli, "chunks_total", facts->total);
    cli_json_member_uint(cli, "stored_bytes", facts->bytes);
    if (backend) {
        cli_json_key(cli, "backend");
        cli_json_raw(cli, backend, strlen(backend));
    } else {
        cli_json_member(cli, "backend", "inline");
    }
    json_moved(cli);
    cli_json_close(cli, '{');
}

static int info_node(struct cli *cli, const char *path)
{
    struct node_facts facts = { path, 0, BRC_BUF_INIT, 0, 0, 0 };
    const char *branch;
    int rc;

    CLI_TRY(cli_find_moved(cli, &branch));
    CLI_TRY(cli_node_kind(cli, path, &facts.kind));
    rc = gather_node_facts(cli, &facts);
    if (rc >= 0 && cli->json) {
        print_node_json(cli, &facts);
    } else if (rc >= 0) {
        print_node_text(cli, &facts);
        print_moved(cli, branch);
    }
    brc_buf_dispose(&facts.json);
    return rc;
}

static int run_info(struct cli *cli)
{
    const char *path = cli_operand(cli, 1);

    if (!path && cli_has(cli, "at"))
        return cli_usage(cli, "--at needs PATH: without it, info is about all versions");
    if (path) {
        CLI_TRY(cli_open_silently(cli));
        return info_node(cli, cli_path(cli, path));
    }
    CLI_TRY(cli_open(cli, BRC_OPEN_READONLY));
    return info_repo(cli);
}

const struct cli_command cli_command_info = {
    .name = "info",
    .group = "Looking",
    .summary = "show what a repository or a node contains",
    .usage = "FILE\nFILE PATH [--at REV]",
    .details = "The metadata of a node is its zarr.json.",
    .examples = "breccia info climate.brc\nbreccia info climate.brc /t2m --json",
    .options = info_options,
    .min_operands = 1,
    .max_operands = 2,
    .run = run_info,
};
