/*
 * cmd_rebase.c - rebase.
 */
#include "../cli.h"
#include "commands.h"
#include "history.h"

static const struct cli_option rebase_options[] = {
    { "ours", 0, 0, NULL, "settle conflicts for ONTO, for these PATHs or all" },
    { "theirs", 0, 0, NULL, "settle conflicts for the commits of the branch" },
    { "continue", 0, 0, NULL, "go on with the open rebase, once all conflicts are settled" },
    { "skip", 0, 0, NULL, "go on without the commit that is in conflict" },
    { "abort", 0, 0, NULL, "drop the open rebase, and all commits that it made" },
    CLI_OPTIONS_END
};

static void say_rebased(struct cli *cli, const brc_pick_result *r, const char *branch,
                        const char *onto, const char *left_out)
{
    const char *what = cli_escaped(cli, branch), *on = cli_escaped(cli, onto);

    if (r->result == BRC_PICK_NOTHING)
        cli_say(cli, "%s is up to date with %s", what, on);
    else if (r->result == BRC_PICK_FAST_FORWARD)
        cli_say(cli, "[%s %s] fast-forward to %s", what, cli_short_id(cli, &r->commit), on);
    else if (r->result == BRC_PICK_CONFLICT)
        cli_say(cli, "%s of %s conflicts with %s; settle the conflicts and 'breccia rebase "
                     "--continue', or --skip or --abort", cli_short_id(cli, &r->at), what, on);
    else
        cli_say(cli, "[%s %s] rebased onto %s: %s%s%s", what, cli_short_id(cli, &r->commit), on,
                cli_count(cli, r->made, "commit"), r->skipped > 0 ? left_out : "",
                r->skipped > 0 ? cli_count(cli, r->skipped, "commit") : "");
}

static int report_rebased(struct cli *cli, const brc_pick_result *r, const char *branch,
                          const char *onto, const char *left_out)
{
    static const char *const names[] = { "", "up-to-date", "fast-forward", "rebased", "",
                                         "conflict" };

    CLI_TRY(cli_print_picked(cli, r, names[r->result], 1));
    say_rebased(cli, r, branch, onto, left_out);
    return r->result == BRC_PICK_CONFLICT ? CLI_EXIT_CONFLICT : BRC_OK;
}

static int continue_rebase(struct cli *cli, const char *branch, const void *opts)
{
    brc_pick_opts skip = BRC_PICK_OPTS_INIT;
    brc_open_state state = BRC_OPEN_STATE_INIT;
    brc_pick_result r = BRC_PICK_RESULT_INIT;

    (void)opts; /* none for --continue */
    skip.flags = cli_has(cli, "skip") ? BRC_PICK_SKIP : 0;
    CLI_TRY(cli_continue(cli, &state, &r, &skip));
    return report_rebased(cli, &r, branch, state.rev, ", and left out ");
}

static int run_rebase(struct cli *cli)
{
    brc_pick_opts opts = BRC_PICK_OPTS_INIT;
    brc_pick_result r = BRC_PICK_RESULT_INIT;
    const char *branch, *onto;
    int on_open;

    CLI_TRY(cli_pick_sides(cli, &opts));
    CLI_TRY(on_open = cli_on_open(cli));
    if (on_open)
        return cli_run_open(cli, continue_rebase, NULL);
    onto = cli_operand(cli, 1);
    opts.flags |= BRC_PICK_KEEP;
    CLI_TRY(cli_open(cli, 0));
    CLI_TRY(cli_branch(cli, &branch));
    CLI_TRY(brc_rebase(&r, &cli->iter, cli->repo, onto, &opts, &cli->err));
    if (r.result != BRC_PICK_NOTHING)
        cli_done(cli);
    return report_rebased(cli, &r, branch, onto, ", already there: ");
}

const struct cli_command cli_command_rebase = {
    .name = "rebase",
    .group = "Versions",
    .summary = "put the current branch's own commits on another version",
    .usage = "FILE ONTO [OPTIONS]\nFILE ONTO --ours|--theirs -- PATH...\n"
             "FILE --ours|--theirs [-- PATH...]\nFILE --continue|--skip|--abort",
    .details = "Makes again, on top of ONTO, the commits that ONTO does not have, the oldest\n"
               "first, as 'breccia cherry-pick' does. Merges and changes that ONTO has already\n"
               "are left out. The branch moves once, at the end: 'breccia undo' takes back the\n"
               "whole rebase. At a commit that conflicts, the rebase stops: the conflicts are\n"
               "listed, the status is 3, and the rebase stays open on the branch. Write the\n"
               "wanted values, or settle the conflicts for one side with --ours or --theirs and\n"
               "no ONTO; then --continue goes on. --skip goes on without that commit, and\n"
               "--abort drops the rebase.",
    .examples = "breccia rebase climate.brc main\nbreccia rebase climate.brc --continue",
    .options = rebase_options,
    .min_operands = 1,
    .max_operands = 10000,
    .flags = CLI_POOL,
    .run = run_rebase,
};
