/*
 * cmd_du.c - du.
 */
#include "../cli.h"
#include "commands.h"
#include "history.h"

static const struct cli_option du_options[] = {
    CLI_OPTIONS_END
};

static void put_du_json(struct cli *cli, const brc_du_item *item)
{
    cli_json_open(cli, '{');
    if (item->path) {
        cli_json_member(cli, "path", item->path);
    } else {
        cli_json_key(cli, "id");
        cli_json_id(cli, &item->id);
    }
    cli_json_member_uint(cli, "bytes", item->bytes);
    cli_json_member_uint(cli, "unique", item->alone);
    cli_json_member_uint(cli, "shared", item->bytes - item->alone);
    cli_json_member_uint(cli, "freed", item->alone);
    cli_json_close(cli, '{');
}

/* A commit's line ends with its subject. */
static int put_du_text(struct cli *cli, const brc_du_item *item)
{
    brc_commit *commit = NULL;

    cli_printf(cli, "%14llu %14llu %14llu  ", (unsigned long long)item->bytes,
               (unsigned long long)item->alone, (unsigned long long)(item->bytes - item->alone));
    if (item->path) {
        cli_printf(cli, "%s\n", cli_escaped(cli, item->path));
        return BRC_OK;
    }
    CLI_TRY(brc_commit_read(&commit, cli->repo, &item->id, &cli->err));
    cli_printf(cli, "%s %s\n", cli_short_id(cli, &item->id), cli_subject(cli, commit->message));
    brc_commit_free(commit);
    return BRC_OK;
}

/* Arrays come before commits: *is_commits says which list is open. */
static int put_du_item(struct cli *cli, const brc_du_item *item, int *is_commits)
{
    if (!item->path && !*is_commits) {
        *is_commits = 1;
        if (cli->json) {
            cli_json_close(cli, '[');
            cli_json_key(cli, "commits");
            cli_json_open(cli, '[');
        }
    }
    if (!cli->json)
        return put_du_text(cli, item);
    put_du_json(cli, item);
    return BRC_OK;
}

static int put_du_items(struct cli *cli)
{
    const brc_du_item *item;
    int is_commits = 0, rc;

    if (cli->json) {
        cli_json_key(cli, "arrays");
        cli_json_open(cli, '[');
    } else {
        cli_printf(cli, "%14s %14s %14s\n", "bytes", "unique", "shared");
    }
    while ((rc = brc_du_next(cli->iter, &item, &cli->err)) == 1) {
        CLI_TRY(put_du_item(cli, item, &is_commits));
        CLI_TRY(cli_out_check(cli));
    }
    if (cli->json) {
        cli_json_close(cli, '[');
        if (!is_commits) {
            cli_json_key(cli, "commits");
            cli_json_open(cli, '[');
            cli_json_close(cli, '[');
        }
    }
    return rc;
}

static void put_du_sums(struct cli *cli, const brc_du_report *report)
{
    const struct {
        const char *name, *text;
        uint64_t bytes;
    } sums[] = {
        { "versions", "what branches and tags reach", report->versions },
        { "uncommitted", "only uncommitted changes", report->uncommitted },
        { "log", "only the operation log, for undo", report->log },
        { "garbage", "nothing: 'gc' removes it", report->garbage },
        { "stored_bytes", "in all", report->stored },
    };

    for (size_t i = 0; i < sizeof(sums) / sizeof(sums[0]); i++) {
        if (cli->json)
            cli_json_member_uint(cli, sums[i].name, sums[i].bytes);
        else
            cli_printf(cli, "%14llu  %s\n", (unsigned long long)sums[i].bytes, sums[i].text);
    }
}

static int run_du(struct cli *cli)
{
    brc_du_report report = BRC_DU_REPORT_INIT;
    int rc;

    CLI_TRY(cli_open(cli, BRC_OPEN_READONLY));
    CLI_TRY(brc_du(&report, &cli->iter, cli->repo, &cli->err));
    if (cli->json)
        cli_json_open(cli, '{');
    rc = put_du_items(cli);
    if (rc < 0)
        return rc;
    put_du_sums(cli, &report);
    if (cli->json)
        cli_json_close(cli, '{');
    return BRC_OK;
}

const struct cli_command cli_command_du = {
    .name = "du",
    .group = "Looking",
    .summary = "say what the file's bytes are for",
    .usage = "FILE",
    .details = "Bytes as they are stored, each object once: first by array, whatever version has\n"
               "it at that path, then by commit. What an array has and no other array does, or\n"
               "what only one commit has, is unique: so much 'gc' could remove if the array were\n"
               "in no version, or if the commit were not. 'expire --dry-run' says the same for\n"
               "many commits together.",
    .examples = "breccia du climate.brc\nbreccia du climate.brc --json",
    .options = du_options,
    .min_operands = 1,
    .max_operands = 1,
    .flags = 0,
    .run = run_du,
};
