/*
 * cmd_info.c - info.
 */
#include "../cli.h"
#include "../select.h"
#include "array_stats.h"
#include "commands.h"
#include "group_info.h"
#include "new_array.h"

#include <string.h>

static const struct cli_option info_options[] = {
    { "stats", 0, 0, NULL, "show what the elements come to, in place of the metadata" },
    { "at", 0, 1, "REV", "read this version instead of the current branch" },
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
    while ((rc = brc_next(cli->iter, &ref, &cli->err)) == 1) {
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
    const char *compression = NULL, *dedup = NULL, *outside = NULL, *deltas = NULL;

    if (stats->stored_bytes > 0)
        compression = cli_text(cli, "%.2f times",
                               (double)stats->logical_bytes / (double)stats->stored_bytes);
    if (stats->chunks > 0 && stats->chunk_refs >= stats->chunks)
        dedup = cli_text(cli, "%.2f times, %s in all commits",
                         (double)stats->chunk_refs / (double)stats->chunks,
                         cli_count(cli, stats->chunk_refs, "chunk"));
    if (stats->deltas > 0)
        deltas = cli_text(cli, "%s; reading one decodes up to %s",
                          cli_count(cli, stats->deltas, "chunk"),
                          cli_count(cli, stats->delta_depth, "difference"));
    if (stats->outside_chunks > 0)
        outside = cli_text(cli, "%s, %llu bytes: 'breccia backend FILE' says where",
                           cli_count(cli, stats->outside_chunks, "chunk"),
                           (unsigned long long)stats->outside_bytes);
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
                   { NULL, CLI_OF(outside), .lead = "outside" },
                   { "outside_chunks", CLI_OF(stats->outside_chunks), .optional = 1 },
                   { "outside_bytes", CLI_OF(stats->outside_bytes), .optional = 1 },
                   { "logical_bytes", CLI_OF(stats->logical_bytes), CLI_AS_BYTES,
                     .lead = "decoded" },
                   { NULL, CLI_OF(deltas), .lead = "deltas" },
                   { "deltas", CLI_OF(stats->deltas), .optional = 1 },
                   { "delta_depth", CLI_OF(stats->delta_depth), .optional = 1 },
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
    const char *slice;             /* of an array, with --stats; NULL: all of it */
    struct array_stats_list stats; /* of an array, with --stats */
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
    facts->dtype = cli_dtype_words(cli, info->dtype);
    facts->shape = (struct cli_dims){ info->shape, info->ndim };
    facts->chunk = (struct cli_dims){ info->chunk, info->ndim };
    if (strcmp(info->backend_json, "{\"name\":\"inline\"}") != 0)
        facts->backend = info->backend_json;
    if (!(info->flags & BRC_ARRAY_READABLE))
        facts->unreadable = cli_text(cli, "no: %s", info->why);
    else if (!(info->flags & BRC_ARRAY_WRITABLE))
        facts->unwritable = cli_text(cli, "no: %s", info->why);
    if (!cli_has(cli, "stats"))
        return BRC_OK;
    brc_sel sel = BRC_SEL_INIT;
    CLI_TRY(cli_select(cli, facts->slice, &sel));
    return gather_array_stats(cli, &sel, &facts->stats);
}

static int print_node(struct cli *cli, const struct node_facts *facts)
{
    const int stats = cli_has(cli, "stats");

    cli_begin(cli, NULL, '{');
    cli_put_lines(
        cli,
        CLI_FIELDS({ "path", CLI_OF(facts->path), .lead = "path" },
                   { "slice", CLI_OF(facts->slice), .lead = "slice", .optional = 1 },
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
    if (stats && facts->is_array)
        print_array_stats(cli, &facts->stats, FACT_COLUMNS);
    else if (stats)
        CLI_TRY(print_group_stats(cli, facts->path));
    else if (!facts->is_array)
        CLI_TRY(print_group_info(cli, facts->path, facts->json));
    cli_finish(cli, '{');
    if (cli->json || stats || !facts->is_array)
        return BRC_OK;
    cli_puts(cli, "\n");
    cli->doc.pretty = 1;
    cli_json_raw(cli, facts->json, strlen(facts->json));
    cli_puts(cli, "\n");
    return BRC_OK;
}

static int info_node(struct cli *cli, const char *path, const char *slice)
{
    struct node_facts facts = { .path = path, .slice = slice, .backend = "inline" };
    brc_buf json = BRC_BUF_INIT;
    const char *branch;
    int rc, kind;

    CLI_TRY(cli_find_moved(cli, &branch));
    if (!slice && cli_has(cli, "stats"))
        CLI_TRY(cli_split_slice(cli, &facts.path, &facts.slice));
    path = facts.path;
    CLI_TRY(cli_node_kind(cli, path, &kind));
    facts.is_array = kind == BRC_ARRAY;
    if (facts.slice && !facts.is_array)
        return cli_usage(cli, "SLICE is of an array, and %s is a group", path);
    rc = brc_node_json(&json, cli->session, path, &cli->err);
    if (rc >= 0 && facts.is_array)
        rc = gather_array_facts(cli, &facts);
    if (rc >= 0) {
        facts.json = cli_text(cli, "%.*s", (int)json.len, (const char *)json.data);
        rc = print_node(cli, &facts);
    }
    if (rc >= 0)
        print_moved(cli, branch);
    brc_buf_dispose(&json);
    return rc;
}

static int run_info(struct cli *cli)
{
    const char *path = cli_operand(cli, 1);

    if (!path && (cli_has(cli, "at") || cli_has(cli, "stats")))
        path = "/"; /* a version is a root group */
    if (cli_operand(cli, 2) && !cli_has(cli, "stats"))
        return cli_usage(cli, "info takes a SLICE only with --stats");
    if (path) {
        CLI_TRY(cli_has(cli, "stats") ? cli_open_keeping(cli) : cli_open_silently(cli));
        return info_node(cli, cli_path(cli, path), cli_operand(cli, 2));
    }
    CLI_TRY(cli_open(cli, BRC_OPEN_READONLY));
    return info_repo(cli);
}

const struct cli_command cli_command_info = {
    .name = "info",
    .group = "Looking",
    .summary = "show what a repository or a node contains",
    .usage = "FILE\nFILE PATH [--at REV]\nFILE PATH [SLICE] --stats [--at REV]\n"
             "FILE@REV [PATH [SLICE]] [--stats]",
    .details = "Of a group, this lists the dimensions, the arrays with their types, dimensions\n"
               "and attributes, and the groups, as 'ncdump -h' does; of an array, the metadata\n"
               "are its zarr.json.\n"
               "--stats shows how many elements there are, how many are NaN or have the fill\n"
               "value, and of all but NaN the least, the greatest, mean, standard deviation and\n"
               "a histogram; of a group, a line for each array. Elements that were never written\n"
               "have the fill value. SLICE, which may also follow PATH at once, takes only these\n"
               "elements. Of elements with fields, each field has lines of its own. The sums of\n"
               "each chunk are kept in FILE if it can be written: the next time only new chunks\n"
               "are read, and those of which SLICE takes a part.",
    .examples = "breccia info climate.brc\nbreccia info climate.brc /t2m --json\n"
                "breccia info climate.brc /t2m --stats --at v1.0\n"
                "breccia info climate.brc /t2m '[0:31, 5]' --stats",
    .options = info_options,
    .min_operands = 1,
    .max_operands = 3,
    .flags = CLI_PAGED,
    .run = run_info,
};
