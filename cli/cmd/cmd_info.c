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
    const char *branch, *journal;
    uint64_t branches, tags;
    brc_stats stats;
};

enum { FACT_COLUMNS = 14 };

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

static void print_repo(struct cli *cli, const struct repo_facts *facts)
{
    const brc_stats *stats = &facts->stats;
    const char *compression = NULL, *dedup = NULL;

    if (stats->stored_bytes > 0)
        compression = cli_text(cli, "%.2f times",
                               (double)stats->logical_bytes / (double)stats->stored_bytes);
    if (stats->chunks > 0 && stats->chunk_refs >= stats->chunks)
        dedup = cli_text(cli, "%.2f times, %s in all commits",
                         (double)stats->chunk_refs / (double)stats->chunks,
                         cli_count(cli, stats->chunk_refs, "chunk"));
    cli_put_lines(
        cli,
        CLI_FIELDS({ NULL, CLI_OF(cli->file), .lead = "repository" },
                   { "branch", CLI_OF(facts->branch), .lead = "branch" },
                   { "branches", CLI_OF(facts->branches), .lead = "branches" },
                   { "tags", CLI_OF(facts->tags), .lead = "tags" },
                   { "commits", CLI_OF(stats->commits), .lead = "commits" },
                   { "objects", CLI_OF(stats->objects), .lead = "objects" },
                   { "chunks", CLI_OF(stats->chunks), .lead = "chunks" },
                   { "file_bytes", CLI_OF(stats->file_bytes), CLI_AS_BYTES, .lead = "file" },
                   { "journal", CLI_OF(facts->journal), .lead = "journal" },
                   { "log_bytes", CLI_OF(stats->log_bytes), CLI_AS_BYTES,
                     .lead = stats->log_bytes > 0 ? "log" : NULL },
                   { "stored_bytes", CLI_OF(stats->stored_bytes), CLI_AS_BYTES, .lead = "stored" },
                   { "logical_bytes", CLI_OF(stats->logical_bytes), CLI_AS_BYTES,
                     .lead = "decoded" },
                   { NULL, CLI_OF(compression), .lead = "compression" },
                   { NULL, CLI_OF(dedup), .lead = "dedup" },
                   { "chunk_refs", CLI_OF(stats->chunk_refs) },
                   { "stale", CLI_OF(cli->moved), .optional = 1 }),
        "", FACT_COLUMNS, CLI_DIM);
}

/* Tells the user if the branch has moved since the uncommitted changes began. */
static void print_moved(struct cli *cli, const char *branch)
{
    if (cli->moved && !cli->json)
        cli_printf(cli, "%s\n", cli_moved_words(cli, branch));
}

static int info_repo(struct cli *cli)
{
    struct repo_facts facts = { .stats = BRC_STATS_INIT };

    CLI_TRY(gather_repo_facts(cli, &facts));
    CLI_TRY(cli_find_moved(cli, &facts.branch));
    cli_begin(cli, NULL, '{');
    print_repo(cli, &facts);
    cli_finish(cli, '{');
    print_moved(cli, facts.branch);
    return BRC_OK;
}

struct node_facts {
    const char *path, *json;
    uint64_t stored, total, bytes;
    const char *dtype, *chunks, *backend, *unreadable, *unwritable; /* NULL leaves out the line */
    struct cli_dims shape, chunk;
    int is_array;
};

static uint64_t count_grid(const brc_array_info *info)
{
    uint64_t total = 1;

    for (int i = 0; i < info->ndim; i++)
        if (__builtin_mul_overflow(total, info->grid[i], &total))
            total = UINT64_MAX;
    return total;
}

static int gather_array_facts(struct cli *cli, struct node_facts *facts)
{
    const brc_array_info *info;

    CLI_TRY(cli_open_array(cli, facts->path));
    info = brc_array_describe(cli->array);
    CLI_TRY(brc_array_stat(&facts->stored, &facts->bytes, cli->array, &cli->err));
    facts->total = count_grid(info);
    facts->chunks = cli_text(cli, "%llu of %llu stored", (unsigned long long)facts->stored,
                             (unsigned long long)facts->total);
    facts->dtype = info->dtype;
    facts->shape = (struct cli_dims){ info->shape, info->ndim };
    facts->chunk = (struct cli_dims){ info->chunk, info->ndim };
    if (strcmp(info->backend_json, "{\"name\":\"inline\"}") != 0)
        facts->backend = info->backend_json;
    if (!(info->flags & BRC_ARRAY_READABLE))
        facts->unreadable = cli_text(cli, "no: %s", info->why);
    else if (!(info->flags & BRC_ARRAY_WRITABLE))
        facts->unwritable = cli_text(cli, "no: %s", info->why);
    return BRC_OK;
}

static void print_node(struct cli *cli, const struct node_facts *facts)
{
    cli_begin(cli, NULL, '{');
    cli_put_lines(
        cli,
        CLI_FIELDS({ "path", CLI_OF(facts->path), .lead = "path" },
                   { "node_type", CLI_WORD(facts->is_array ? "array" : "group"),
                     .lead = "node type" },
                   { "zarr_format", CLI_OF((int64_t)3) },
                   { "metadata", CLI_OF(facts->json), CLI_AS_JSON },
                   { NULL, CLI_OF(facts->dtype), .lead = "data type" },
                   { NULL, CLI_OF(facts->shape), .lead = "shape" },
                   { NULL, CLI_OF(facts->chunk), .lead = "chunk shape" },
                   { NULL, CLI_OF(facts->chunks), .lead = "chunks" },
                   { "chunks_stored", CLI_OF(facts->stored) },
                   { "chunks_total", CLI_OF(facts->total) },
                   { "stored_bytes", CLI_OF(facts->bytes), CLI_AS_BYTES,
                     .lead = facts->is_array ? "stored" : NULL },
                   { "backend", CLI_OF(facts->backend), CLI_AS_JSON,
                     .lead = facts->is_array ? "backend" : NULL },
                   { NULL, CLI_OF(facts->unreadable), .lead = "readable" },
                   { NULL, CLI_OF(facts->unwritable), .lead = "writable" },
                   { "stale", CLI_OF(cli->moved), .optional = 1 }),
        "", FACT_COLUMNS, CLI_DIM);
    cli_finish(cli, '{');
    if (cli->json)
        return;
    cli_puts(cli, "\n");
    cli->doc.pretty = 1;
    cli_json_raw(cli, facts->json, strlen(facts->json));
    cli_puts(cli, "\n");
}

static int info_node(struct cli *cli, const char *path)
{
    struct node_facts facts = { .path = path, .backend = "inline" };
    brc_buf json = BRC_BUF_INIT;
    const char *branch;
    int rc, kind;

    CLI_TRY(cli_find_moved(cli, &branch));
    CLI_TRY(cli_node_kind(cli, path, &kind));
    facts.is_array = kind == BRC_ARRAY;
    rc = brc_node_json(&json, cli->session, path, &cli->err);
    if (rc >= 0 && facts.is_array)
        rc = gather_array_facts(cli, &facts);
    if (rc >= 0) {
        facts.json = cli_text(cli, "%.*s", (int)json.len, (const char *)json.data);
        print_node(cli, &facts);
        print_moved(cli, branch);
    }
    brc_buf_dispose(&json);
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
