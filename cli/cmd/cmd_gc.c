/*
 * cmd_gc.c - gc.
 */
#include "../cli.h"
#include "commands.h"

#include <string.h>

static const struct cli_option gc_options[] = {
    { "dry-run", 0, 0, NULL, "only count the objects to remove" },
    { "keep", 0, 1, "TIME", "keep objects that the log named in this time: 7d, 12h, 2w, 0" },
    { "expunge", 0, 0, NULL, "leave no trace of removed objects in the file or its journals" },
    CLI_OPTIONS_END
};

/* Says why versions stay that no branch, tag or draft has. */
static void say_past(struct cli *cli, const brc_gc_report *report, const char *keep)
{
    const char *versions = cli_count(cli, report->past_versions, "older version");
    const char *stay = report->past_versions == 1 ? "stays" : "stay";

    if (report->past_versions == 0)
        return;
    if (keep && strcmp(keep, "0") == 0)
        cli_say(cli, "%s %s, because others read now", versions, stay);
    else
        cli_say(cli, "%s %s, because the operation log names %s: --keep 0 removes %s", versions,
                stay, report->past_versions == 1 ? "it" : "them",
                report->past_versions == 1 ? "it now" : "them now");
}

static void put_gc(struct cli *cli, const brc_gc_report *report, int dry)
{
    char size[CLI_SIZE_CAP];
    const char *bytes = cli_format_size(size, report->file_bytes), *said;

    cli_put_record(cli, CLI_FIELDS({ "objects_removed", CLI_OF(report->objects_removed) },
                                   { "bytes_freed", CLI_OF(report->bytes_freed) },
                                   { "file_bytes", CLI_OF(report->file_bytes) },
                                   { "past_versions", CLI_OF(report->past_versions) },
                                   { "dry_run", CLI_OF(dry) }));
    said = cli_text(cli, "%s, %s", cli_count(cli, report->objects_removed, "object"),
                    cli_count(cli, report->bytes_freed, "byte"));
    if (report->objects_removed == 0)
        cli_say(cli, dry ? "nothing would be removed; the file would have %s"
                         : "there was nothing to remove; the file has %s", bytes);
    else
        cli_say(cli, dry ? "would remove %s; the file would then have about %s"
                         : "removed %s; the file has %s now", said, bytes);
    say_past(cli, report, cli_value(cli, "keep"));
}

static int run_gc(struct cli *cli)
{
    const int dry = cli_has(cli, "dry-run");
    brc_gc_opts opts = BRC_GC_OPTS_INIT;
    brc_gc_report report = BRC_GC_REPORT_INIT;

    if (dry && cli_has(cli, "expunge"))
        return cli_usage(cli, "--dry-run and --expunge exclude each other");
    opts.keep = cli_value(cli, "keep");
    opts.flags = (dry ? BRC_GC_DRY_RUN : 0u) | (cli_has(cli, "expunge") ? BRC_GC_EXPUNGE : 0u);
    CLI_TRY(cli_open(cli, dry ? BRC_OPEN_READONLY : 0));
    CLI_TRY(brc_gc(cli->repo, &opts, &report, &cli->err));
    put_gc(cli, &report, dry);
    return BRC_OK;
}

const struct cli_command cli_command_gc = {
    .name = "gc",
    .group = "Keeping",
    .summary = "remove objects that nothing needs any more",
    .usage = "FILE [--keep TIME] [--dry-run] [--expunge]",
    .details = "Removes objects that no branch, tag, uncommitted change, reader or undo needs:\n"
               "the operation log keeps the objects that it names for 30 days, and for 1,000\n"
               "entries. --keep takes another time for this call, and 'config FILE window 7d'\n"
               "sets it; 0 keeps only objects that a branch, a tag or a draft reaches. Others\n"
               "may read and write meanwhile. If the command is stopped, the next one\n"
               "continues.\n"
               "\n"
               "--expunge leaves no trace of removed objects in the file or its journals; the\n"
               "journal FILE-wal may have to wait for readers. Outside of the kept time, the\n"
               "log also forgets operations on deleted branches and tags, and the file forgets\n"
               "the codecs and data types that no array has any more. Copies of the file,\n"
               "snapshots of the disk and the blocks of the disk are out of reach.",
    .examples = "breccia gc climate.brc --dry-run\nbreccia gc climate.brc --json",
    .options = gc_options,
    .min_operands = 1,
    .max_operands = 1,
    .flags = 0,
    .run = run_gc,
};
