/*
 * cmd_rebase.c - rebase.
 */
#include "../cli.h"
#include "commands.h"
#include "history.h"
#include "picked.h"

static const struct cli_option rebase_options[] = {
    { "ours", 0, 0, NULL, "settle conflicts for what is there, for these PATHs or all" },
    { "theirs", 0, 0, NULL, "settle them for the commits that are done again" },
    CLI_OPTIONS_END
};

static const char *commits_as_text(struct cli *cli, uint64_t n)
{
    return cli_text(cli, "%llu commit%s", (unsigned long long)n, n == 1 ? "" : "s");
}

static void say_rebased(struct cli *cli, const brc_pick_result *r, const char *branch,
                        const char *onto)
{
    const char *what = cli_escaped(cli, branch), *on = cli_escaped(cli, onto);

    if (r->result == BRC_PICK_NOTHING)
        cli_say(cli, "%s is up to date with %s", what, on);
    else if (r->result == BRC_PICK_FAST_FORWARD)
        cli_say(cli, "[%s %s] fast-forward to %s", what, cli_short_id(cli, &r->commit), on);
    else if (r->result == BRC_PICK_CONFLICT)
        cli_say(cli, "%s of %s conflicts with %s; nothing was changed", cli_short_id(cli, &r->at),
                what, on);
    else
        cli_say(cli, "[%s %s] rebased onto %s: %s%s%s", what, cli_short_id(cli, &r->commit), on,
                commits_as_text(cli, r->made),
                r->skipped > 0 ? ", and left out what is there: " : "",
                r->skipped > 0 ? commits_as_text(cli, r->skipped) : "");
}

static int run_rebase(struct cli *cli)
{
    static const char *const names[] = { "", "up-to-date", "fast-forward", "rebased", "",
                                         "conflict" };
    brc_pick_opts opts = BRC_PICK_OPTS_INIT;
    brc_pick_result r = BRC_PICK_RESULT_INIT;
    const char *branch, *onto = cli_operand(cli, 1);

    if (cli->args.before_dashes != 2)
        return cli_usage(cli, "rebase needs FILE and a version; PATHs go behind --");
    CLI_TRY(cli_pick_sides(cli, &opts));
    CLI_TRY(cli_open(cli, 0));
    CLI_TRY(cli_branch(cli, &branch));
    CLI_TRY(brc_rebase(&r, &cli->iter, cli->repo, onto, &opts, &cli->err));
    if (r.result == BRC_PICK_COMMITTED || r.result == BRC_PICK_FAST_FORWARD)
        cli_done(cli);
    CLI_TRY(cli_print_picked(cli, &r, names[r.result], 1));
    say_rebased(cli, &r, branch, onto);
    return r.result == BRC_PICK_CONFLICT ? CLI_EXIT_CONFLICT : BRC_OK;
}

const struct cli_command cli_command_rebase = {
    .name = "rebase",
    .group = "Versions",
    .summary = "put the current branch's own commits on another version",
    .usage = "FILE ONTO [OPTIONS]\nFILE ONTO --ours|--theirs -- PATH...",
    .details = "Does the commits that ONTO does not have again, on top of it, the oldest first,\n"
               "as 'breccia cherry-pick' does. Merges are left out, and so is what ONTO has.\n"
               "The branch moves once, at the end: 'breccia undo' takes all of it back. A\n"
               "conflict is listed, nothing is changed then, and the status is 3.",
    .examples = "breccia rebase climate.brc main",
    .options = rebase_options,
    .min_operands = 2,
    .max_operands = 10000,
    .flags = CLI_POOL,
    .run = run_rebase,
};
