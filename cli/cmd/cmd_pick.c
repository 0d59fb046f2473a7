/*
 * cmd_pick.c - cherry-pick and revert.
 */
#include "../cli.h"
#include "commands.h"
#include "history.h"

#define PICK_SIDES \
    { "ours", 0, 0, NULL, "settle conflicts for the current branch, for these PATHs or all" }, \
    { "theirs", 0, 0, NULL, "settle conflicts for the change" }, \
    { "continue", 0, 0, NULL, "commit the open change, once all conflicts are settled" }, \
    { "abort", 0, 0, NULL, "drop the open change, with everything written to settle it" }
#define PICK_COMMIT \
    { "no-commit", 'n', 0, NULL, "leave the change uncommitted on the branch" }, \
    { "mainline", 0, 1, "N", "take the change of a merge from its N-th parent" }

static const struct cli_option pick_options[] = {
    PICK_COMMIT,
    PICK_SIDES,
    { "message", 'm', 1, "TEXT", "another message than the commit's" },
    { "author", 0, 1, "'NAME <MAIL>'", "another author than the commit's" },
    { "date", 0, 1, "TIME", "another time than the commit's: 2026-11-20, @SECONDS ..." },
    CLI_OPTIONS_END
};

static const struct cli_option revert_options[] = {
    PICK_COMMIT,
    PICK_SIDES,
    { "message", 'm', 1, "TEXT", "the message, in place of: Revert \"...\"" },
    { "author", 0, 1, "'NAME <MAIL>'", "the author; else the setting, else user and host" },
    { "date", 0, 1, "TIME", "2026-11-20, 2026-11-20T12:00:00Z or @SECONDS instead of now" },
    CLI_OPTIONS_END
};

static int is_revert(const struct cli *cli)
{
    return cli->command == &cli_command_revert;
}

static int read_pick_options(struct cli *cli, brc_pick_opts *opts)
{
    uint64_t mainline = 0;

    opts->flags |= cli_has(cli, "no-commit") ? BRC_PICK_NO_COMMIT : 0;
    CLI_TRY(cli_uint_option(cli, "mainline", 1, 16, &mainline));
    opts->mainline = (uint32_t)mainline;
    CLI_TRY(cli_commit_words(cli, &opts->message, &opts->author, &opts->time_us));
    return cli_pick_sides(cli, opts);
}

static void say_conflict(struct cli *cli, const brc_pick_result *r, const char *what,
                         const char *on)
{
    if (r->draft == 0) /* --no-commit */
        cli_say(cli, "%s conflicts with %s; nothing was changed: leave out --no-commit to settle "
                     "the conflicts", what, on);
    else
        cli_say(cli, "%s conflicts with %s; settle the conflicts and 'breccia %s --continue', or "
                     "--abort", what, on, cli->command->name);
}

/* `from` is the commit that `rev` named before the branch moved; NULL: not known. */
static void say_picked(struct cli *cli, const brc_pick_result *r, const char *branch,
                       const char *rev, const brc_oid *from)
{
    const char *on = cli_escaped(cli, branch), *what = cli_escaped(cli, rev);

    if (r->result == BRC_PICK_NOTHING)
        cli_say(cli, "%s is already %s %s; no commit was made", what,
                is_revert(cli) ? "reverted on" : "on", on);
    else if (r->result == BRC_PICK_UNCOMMITTED)
        cli_say(cli, "%s: the change is uncommitted on %s", what, on);
    else if (r->result == BRC_PICK_CONFLICT)
        say_conflict(cli, r, what, on);
    else
        cli_say(cli, "[%s %s] %s %s%s%s%s", on, cli_short_id(cli, &r->commit),
                is_revert(cli) ? "reverted" : "picked", what, from ? " (" : "",
                from ? cli_short_id(cli, from) : "", from ? ")" : "");
}

static int report_picked(struct cli *cli, const brc_pick_result *r, const char *branch,
                         const char *rev, const brc_oid *from)
{
    static const char *const names[] = { "", "nothing", "", "committed", "uncommitted",
                                         "conflict" };

    CLI_TRY(cli_print_picked(cli, r, names[r->result], 0));
    say_picked(cli, r, branch, rev, from);
    return r->result == BRC_PICK_CONFLICT ? CLI_EXIT_CONFLICT : BRC_OK;
}

static int continue_pick(struct cli *cli, const char *branch, const void *opts)
{
    brc_open_state state = BRC_OPEN_STATE_INIT;
    brc_pick_result r = BRC_PICK_RESULT_INIT;

    CLI_TRY(cli_continue(cli, &state, &r, opts));
    cli_say_moved(cli, &state, r.draft, branch);
    return report_picked(cli, &r, branch, state.rev, NULL);
}

static int run_pick(struct cli *cli)
{
    brc_pick_opts opts = BRC_PICK_OPTS_INIT;
    brc_pick_result r = BRC_PICK_RESULT_INIT;
    const char *branch, *rev;
    brc_oid from;
    int on_open;

    CLI_TRY(read_pick_options(cli, &opts));
    CLI_TRY(on_open = cli_on_open(cli));
    if (on_open && (cli_has(cli, "no-commit") || cli_has(cli, "mainline")))
        return cli_usage(cli, "--no-commit and --mainline need a REV");
    if (on_open)
        return cli_run_open(cli, continue_pick, &opts);
    rev = cli_operand(cli, 1);
    CLI_TRY(cli_open(cli, 0));
    if (is_revert(cli) && !opts.author)
        CLI_TRY(cli_default_author(cli, &opts.author));
    opts.flags |= BRC_PICK_KEEP | (is_revert(cli) ? BRC_PICK_REVERT : 0);
    CLI_TRY(cli_branch(cli, &branch));
    CLI_TRY(brc_resolve(&from, cli->repo, rev, &cli->err));
    CLI_TRY(brc_pick(&r, &cli->iter, cli->repo, rev, &opts, &cli->err));
    if (r.result == BRC_PICK_COMMITTED || r.result == BRC_PICK_UNCOMMITTED || r.draft != 0)
        cli_done(cli);
    return report_picked(cli, &r, branch, rev, &from);
}

const struct cli_command cli_command_pick = {
    .name = "cherry-pick",
    .group = "Versions",
    .summary = "make the changes of a commit on the current branch",
    .usage = "FILE REV [OPTIONS]\nFILE REV --ours|--theirs -- PATH...\n"
             "FILE --ours|--theirs [-- PATH...]\nFILE --continue|--abort",
    .details = "Makes a commit with the message, author and time of REV that makes the changes\n"
               "of REV, merged as by 'breccia merge'. If the branch has these changes already,\n"
               "no commit is made. Conflicts are listed, the status is 3, and the cherry-pick\n"
               "stays open on the branch: write the wanted values, or settle the conflicts for\n"
               "one side with --ours or --theirs and no REV; then --continue commits. --abort\n"
               "drops the cherry-pick.",
    .examples = "breccia cherry-pick climate.brc experiment~2\n"
                "breccia cherry-pick climate.brc 1a2b3c --no-commit",
    .options = pick_options,
    .min_operands = 1,
    .max_operands = 10000,
    .flags = CLI_POOL,
    .run = run_pick,
};

const struct cli_command cli_command_revert = {
    .name = "revert",
    .group = "Versions",
    .summary = "take back the changes of a commit",
    .usage = "FILE REV [OPTIONS]\nFILE REV --ours|--theirs -- PATH...\n"
             "FILE --ours|--theirs [-- PATH...]\nFILE --continue|--abort",
    .details = "Makes a commit that takes back the changes of REV, and nothing else. To bring\n"
               "these changes back, revert the revert: another merge of the branch brings\n"
               "nothing, since it is merged already. Conflicts are listed, the status is 3, and\n"
               "the revert stays open, as with 'breccia cherry-pick'.",
    .examples = "breccia revert climate.brc HEAD\n"
                "breccia revert climate.brc HEAD --mainline 1",
    .options = revert_options,
    .min_operands = 1,
    .max_operands = 10000,
    .flags = CLI_POOL,
    .run = run_pick,
};
