/*
 * cmd_repack.c - repack.
 */
#include "../cli.h"
#include "../values.h"
#include "backend_value.h"
#include "commands.h"

#include <string.h>

static const struct cli_option repack_options[] = {
    { "backend", 0, 1, "JSON", "move the chunks to this backend; inline: into FILE itself" },
    { "codecs", 0, 1, "JSON", "encode the chunks with this list, as 'codecs' takes it" },
    { "delta", 0, 0, NULL, "store older versions of chunks as differences from newer ones" },
    { "depth", 0, 1, "N", "at most N differences to read a chunk (8 if not given; 0: none)" },
    { "array", 0, 1, "PATH", "only chunks that any version has at this path" },
    { "older-than", 0, 1, "TIME", "only chunks that no version since then uses" },
    { "dry-run", 0, 0, NULL, "only count, and estimate the bytes afterwards" },
    CLI_OPTIONS_END
};

static int read_depth(struct cli *cli, brc_repack_opts *opts)
{
    uint64_t depth = 0;

    if (!cli_has(cli, "delta"))
        return cli_has(cli, "depth") ? cli_usage(cli, "--depth needs --delta") : BRC_OK;
    if (cli_has(cli, "backend") || cli_has(cli, "codecs"))
        return cli_usage(cli, "--delta stands without --backend and --codecs: run those first");
    opts->flags |= BRC_REPACK_DELTA;
    if (!cli_has(cli, "depth"))
        return BRC_OK;
    CLI_TRY(cli_uint_option(cli, "depth", 0, 64, &depth));
    opts->delta_depth = (uint32_t)depth;
    if (depth == 0)
        opts->flags ^= BRC_REPACK_DELTA | BRC_REPACK_WHOLE;
    return BRC_OK;
}

static int read_options(struct cli *cli, brc_repack_opts *opts)
{
    const char *backend = cli_value(cli, "backend"), *codecs = cli_value(cli, "codecs");
    const char *path = cli_value(cli, "array");

    if (!backend && !codecs && !cli_has(cli, "delta") && (path || cli_has(cli, "older-than")))
        return cli_usage(cli, "--array and --older-than need --backend, --codecs or --delta");
    CLI_TRY(read_depth(cli, opts));
    if (backend)
        CLI_TRY(cli_backend_argument(cli, "the backend", backend, &opts->backend_json));
    if (codecs)
        CLI_TRY(cli_json_text_argument(cli, "the codec list", codecs, 0, &opts->codecs_json));
    if (path)
        opts->path = cli_path(cli, path);
    if (cli_has(cli, "older-than"))
        CLI_TRY(cli_time_option(cli, "older-than", &opts->older_than_us));
    if (cli_has(cli, "dry-run"))
        opts->flags |= BRC_REPACK_DRY_RUN;
    return BRC_OK;
}

static void say_rows(struct cli *cli, const brc_repack_report *report, int dry)
{
    if (report->rows == 0)
        cli_say(cli, "the stored bytes lie in as few rows and packs as they can");
    else
        cli_say(cli, "%s %s of %s together%s", dry ? "would put" : "put",
                cli_count(cli, report->objects, "object"), cli_count(cli, report->rows, "place"),
                dry ? "" : "; 'gc' gives the free space back");
}

static void say_chunks(struct cli *cli, const brc_repack_report *report, int dry)
{
    char before[CLI_SIZE_CAP], after[CLI_SIZE_CAP];
    const char *sample = report->sampled > 0
                             ? cli_text(cli, ", estimated from %s",
                                        cli_count(cli, report->sampled, "object"))
                             : "";

    if (report->objects == 0)
        cli_say(cli, "all is stored so already");
    else
        cli_say(cli, "%s %s again: %s before, %s after%s%s",
                dry ? "would store" : "stored", cli_count(cli, report->objects, "object"),
                cli_format_size(before, report->bytes_before),
                cli_format_size(after, report->bytes_after), sample,
                dry ? "" : "; 'gc' removes the old bytes");
    if (report->misfits > 0)
        cli_say(cli, "the codecs do not fit %s, which %s %s own",
                cli_count(cli, report->misfits, "array"), report->misfits == 1 ? "keeps" : "keep",
                report->misfits == 1 ? "its" : "their");
}

/* Says whether FILE needs anything beside itself after all was to go into it. */
static int say_one_file(struct cli *cli)
{
    const brc_backend_facts *facts;
    uint64_t outside = 0;
    int rc;

    CLI_TRY(brc_backends(&cli->iter, cli->repo, 0, &cli->err));
    for (int first = 1; (rc = brc_next(cli->iter, &facts, &cli->err)) == 1; first = 0)
        outside += first ? 0 : facts->objects;
    CLI_TRY(rc);
    if (outside == 0)
        cli_say(cli, "%s has all of its chunks now, and needs nothing beside it",
                cli_escaped(cli, cli->file));
    else
        cli_say(cli, "%s still %s outside of %s", cli_count(cli, outside, "object"),
                outside == 1 ? "lies" : "lie", cli_escaped(cli, cli->file));
    return BRC_OK;
}

static int put_repack(struct cli *cli, const brc_repack_opts *opts, const brc_repack_report *report)
{
    const int dry = (opts->flags & BRC_REPACK_DRY_RUN) != 0;
    const int is_delta = (opts->flags & (BRC_REPACK_DELTA | BRC_REPACK_WHOLE)) != 0;
    const int is_rows = !opts->backend_json && !opts->codecs_json && !is_delta;

    cli_put_record(cli, CLI_FIELDS({ "objects", CLI_OF(report->objects) },
                                   { "bytes_before", CLI_OF(report->bytes_before) },
                                   { "bytes_after", CLI_OF(report->bytes_after) },
                                   { "sampled", CLI_OF(report->sampled), .optional = 1 },
                                   { "misfits", CLI_OF(report->misfits), .optional = 1 },
                                   { "rows", CLI_OF(report->rows), .optional = 1 },
                                   { "dry_run", CLI_OF(dry) }));
    if (is_rows)
        say_rows(cli, report, dry);
    else
        say_chunks(cli, report, dry);
    return opts->backend_json && strcmp(opts->backend_json, "inline") == 0 && !dry && !cli->json
               ? say_one_file(cli)
               : BRC_OK;
}

static int run_repack(struct cli *cli)
{
    brc_repack_opts opts = BRC_REPACK_OPTS_INIT;
    brc_repack_report report = BRC_REPACK_REPORT_INIT;

    CLI_TRY(read_options(cli, &opts));
    CLI_TRY(cli_open(cli, opts.flags & BRC_REPACK_DRY_RUN ? BRC_OPEN_READONLY : 0));
    CLI_TRY(brc_repack(cli->repo, &opts, &report, &cli->err));
    return put_repack(cli, &opts, &report);
}

const struct cli_command cli_command_repack = {
    .name = "repack",
    .group = "Keeping",
    .summary = "store chunks elsewhere, encoded otherwise, or closer together",
    .usage = "FILE [--backend JSON] [--codecs JSON] [--delta [--depth N]] [--array PATH] "
             "[--older-than TIME] [--dry-run]",
    .details = "Stores chunks of all versions and of uncommitted changes again. No commit, no id\n"
               "and no value changes. Others may read and write meanwhile; if the command is\n"
               "stopped, the same command continues. 'gc' then removes the old bytes.\n"
               "\n"
               "--backend inline makes FILE one file again, wherever its chunks lie. JSON is a\n"
               "backend as 'backend' takes it. New chunks of an array go where its own backend\n"
               "says, also after this: 'backend FILE PATH JSON' changes that.\n"
               "--codecs leaves arrays that the list does not fit as they are. A chunk that does\n"
               "not shrink by 3 % is stored unencoded.\n"
               "--delta stores each chunk of an older version as a difference from the chunk of\n"
               "the next newer version, where that saves a quarter. The last version of each\n"
               "branch stays whole. Reading an old chunk decodes up to N others.\n"
               "--older-than leaves out the last version of each branch, however old it is.\n"
               "Without options, small objects that many small commits have left in rows of\n"
               "their own are put together in full rows, and small packs of other backends in\n"
               "larger ones.",
    .examples = "breccia repack climate.brc\n"
                "breccia repack climate.brc --backend pack --older-than '1 year ago' --dry-run\n"
                "breccia repack climate.brc --codecs '[\"zstd\"]' --array /t2m\n"
                "breccia repack climate.brc --delta\n"
                "breccia repack climate.brc --backend inline",
    .options = repack_options,
    .min_operands = 1,
    .max_operands = 1,
    .run = run_repack,
};
