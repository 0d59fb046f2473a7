/*
 * cmd_du.c - du.
 */
#include "../cli.h"
#include "commands.h"

static const struct cli_option du_options[] = {
    CLI_OPTIONS_END
};

static int put_du_item(struct cli *cli, struct cli_list *list, const brc_du_item *item)
{
    const uint64_t shared = item->bytes - item->alone;
    const char *lead = item->path ? NULL : "  ", *message = NULL;
    brc_commit *commit = NULL;

    if (!item->path && !cli->json) {
        CLI_TRY(brc_commit_read(&commit, cli->repo, &item->id, &cli->err));
        message = cli_text(cli, "%s", commit->message);
        brc_commit_free(commit);
    }
    return cli_list_put(
        cli, list,
        CLI_FIELDS({ "path", CLI_OF(item->path), .optional = 1 },
                   { item->path ? NULL : "id", CLI_OF(item->id) },
                   { "bytes", CLI_OF(item->bytes), .lead = "", .width = -14 },
                   { "unique", CLI_OF(item->alone), .lead = " ", .width = -14 },
                   { "shared", CLI_OF(shared), .lead = " ", .width = -14 },
                   { "freed", CLI_OF(item->alone) },
                   { NULL, CLI_OF(item->path), .lead = "  ", .narrow = CLI_CUT_START },
                   { NULL, CLI_OF(item->id), .lead = lead },
                   { NULL, CLI_OF(message), CLI_AS_SUBJECT, .lead = lead ? " " : NULL,
                     .none = "", .narrow = CLI_CUT_END }));
}

/* Arrays come before commits. */
static int put_du_items(struct cli *cli)
{
    struct cli_list arrays, commits;
    const brc_du_item *item;
    int rc;

    if (!cli->json)
        cli_printf(cli, "%14s %14s %14s\n", "bytes", "unique", "shared");
    cli_list_begin(cli, &arrays, "arrays", 0);
    while ((rc = brc_next(cli->iter, &item, &cli->err)) == 1 && item->path)
        CLI_TRY(put_du_item(cli, &arrays, item));
    CLI_TRY(cli_list_end(cli, &arrays, rc));
    cli_list_begin(cli, &commits, "commits", 0);
    for (; rc == 1; rc = brc_next(cli->iter, &item, &cli->err))
        CLI_TRY(put_du_item(cli, &commits, item));
    return cli_list_end(cli, &commits, rc);
}

static void put_du_sums(struct cli *cli, const brc_du_report *report)
{
    cli_put_members(
        cli, CLI_FIELDS({ "versions", CLI_OF(report->versions), .lead = "", .width = -14,
                          .tail = "  what branches and tags reach\n" },
                        { "uncommitted", CLI_OF(report->uncommitted), .lead = "", .width = -14,
                          .tail = "  only uncommitted changes\n" },
                        { "log", CLI_OF(report->log), .lead = "", .width = -14,
                          .tail = "  only the operation log, for undo\n" },
                        { "garbage", CLI_OF(report->garbage), .lead = "", .width = -14,
                          .tail = "  nothing: 'gc' removes it\n" },
                        { "stored_bytes", CLI_OF(report->stored), .lead = "", .width = -14,
                          .tail = "  in all" },
                        { "outside_bytes", CLI_OF(report->outside), .optional = 1,
                          .lead = report->outside > 0 ? "\n" : NULL, .width = -14,
                          .tail = "  of these outside of FILE: 'breccia backend FILE' says "
                                  "where" }));
}

static int run_du(struct cli *cli)
{
    brc_du_report report = BRC_DU_REPORT_INIT;

    CLI_TRY(cli_open(cli, BRC_OPEN_READONLY));
    CLI_TRY(brc_du(&report, &cli->iter, cli->repo, &cli->err));
    cli_begin(cli, NULL, '{');
    CLI_TRY(put_du_items(cli));
    put_du_sums(cli, &report);
    cli_finish(cli, '{');
    return BRC_OK;
}

const struct cli_command cli_command_du = {
    .name = "du",
    .group = "Looking",
    .summary = "show what the bytes of the file are for",
    .usage = "FILE",
    .details = "Counts bytes as they are stored, and each object once: first by array, over all\n"
               "versions that have an array at that path, then by commit. Bytes that no other\n"
               "array, or no other commit, has are unique: 'gc' could remove as many if no\n"
               "version had the array, or if the commit were gone. 'expire --dry-run' tells the\n"
               "same about many commits together.",
    .examples = "breccia du climate.brc\nbreccia du climate.brc --json",
    .options = du_options,
    .min_operands = 1,
    .max_operands = 1,
    .flags = CLI_PAGED,
    .run = run_du,
};
