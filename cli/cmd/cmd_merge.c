/*
 * cmd_merge.c - merge.
 */
#include "../cli.h"
#include "commands.h"
#include "history.h"

static const struct cli_option merge_options[] = {
    { "ours", 0, 0, NULL, "settle conflicts for the current branch, for these PATHs or all" },
    { "theirs", 0, 0, NULL, "settle conflicts for REV" },
    { "concat", 0, 0, NULL, "join what both sides append to an array: ours first, then REV's" },
    { "no-ff", 0, 0, NULL, "make a commit even if the branch could just move to REV" },
    { "dry-run", 0, 0, NULL, "print the result, and change nothing" },
    { "continue", 0, 0, NULL, "commit the open merge, once all conflicts are settled" },
    { "abort", 0, 0, NULL, "drop the open merge, with everything written to settle it" },
    { "message", 'm', 1, "TEXT", "the message of the commit" },
    { "author", 0, 1, "'NAME <MAIL>'", "the author; else the setting, else user and host" },
    { "date", 0, 1, "TIME", "2026-11-20, 2026-11-20T12:00:00Z or @SECONDS instead of now" },
    CLI_OPTIONS_END
};

static int read_merge_options(struct cli *cli, brc_merge_opts *opts)
{
    struct cli_sides sides;

    CLI_TRY(cli_sides(cli, &sides));
    opts->flags |= sides.ours ? BRC_MERGE_OURS : sides.theirs ? BRC_MERGE_THEIRS : 0;
    opts->flags |= cli_has(cli, "concat") ? BRC_MERGE_CONCAT : 0;
    opts->flags |= cli_has(cli, "no-ff") ? BRC_MERGE_NO_FF : 0;
    opts->flags |= cli_has(cli, "dry-run") ? BRC_MERGE_DRY_RUN : 0;
    opts->paths = sides.paths;
    opts->npaths = sides.npaths;
    return cli_commit_words(cli, &opts->message, &opts->author, &opts->time_us);
}

static void say_merged(struct cli *cli, const brc_merge_result *r, const char *branch,
                       const char *rev)
{
    const int dry = cli_has(cli, "dry-run");

    if (r->result == BRC_MERGE_UP_TO_DATE)
        cli_say(cli, "%s is up to date with %s", cli_escaped(cli, branch), cli_escaped(cli, rev));
    else if (r->result == BRC_MERGE_CONFLICT)
        cli_say(cli, r->draft != 0 ? "%s and %s conflict; settle the conflicts and 'breccia "
                                     "merge --continue', or --abort"
                                   : "%s and %s conflict; nothing was changed",
                cli_escaped(cli, branch), cli_escaped(cli, rev));
    else if (dry)
        cli_say(cli, "would be %s",
                r->result == BRC_MERGE_MERGED ? "merged" : "a fast-forward");
    else
        cli_say(cli, "[%s %s] %s %s", cli_escaped(cli, branch), cli_short_id(cli, &r->commit),
                r->result == BRC_MERGE_MERGED ? "merged" : "fast-forward to",
                cli_escaped(cli, rev));
}

static int report_merge(struct cli *cli, const brc_merge_result *r, const char *branch,
                        const char *rev)
{
    static const char *const names[] = { "", "up-to-date", "fast-forward", "merged", "conflict" };
    const int has_commit = r->result != BRC_MERGE_CONFLICT && !cli_has(cli, "dry-run");

    cli_begin(cli, NULL, '{');
    cli_put_members(cli, CLI_FIELDS({ "result", CLI_OF(names[r->result]) },
                                    { has_commit ? "commit" : NULL, CLI_OF(r->commit) }));
    CLI_TRY(cli_put_conflicts(cli));
    cli_finish(cli, '{');
    say_merged(cli, r, branch, rev);
    return r->result == BRC_MERGE_CONFLICT ? CLI_EXIT_CONFLICT : BRC_OK;
}

/* ---- an open merge --------------------------------------------------------------- */

static int continue_merge(struct cli *cli, const char *branch, const void *opts)
{
    const brc_merge_opts *given = opts;
    brc_pick_opts commit = BRC_PICK_OPTS_INIT;
    brc_open_state state = BRC_OPEN_STATE_INIT;
    brc_pick_result r = BRC_PICK_RESULT_INIT;
    brc_merge_result result = BRC_MERGE_RESULT_INIT;

    commit.message = given->message;
    commit.author = given->author;
    commit.time_us = given->time_us;
    CLI_TRY(cli_continue(cli, &state, &r, &commit));
    cli_say_moved(cli, &state, r.draft, branch);
    result.result = r.result == BRC_PICK_CONFLICT ? BRC_MERGE_CONFLICT : BRC_MERGE_MERGED;
    result.commit = r.commit;
    result.conflicts = r.conflicts;
    result.draft = r.draft;
    return report_merge(cli, &result, branch, state.rev);
}

static int run_merge(struct cli *cli)
{
    brc_merge_opts opts = BRC_MERGE_OPTS_INIT;
    brc_merge_result result = BRC_MERGE_RESULT_INIT;
    const char *branch, *rev;
    int on_open;

    CLI_TRY(read_merge_options(cli, &opts));
    CLI_TRY(on_open = cli_on_open(cli));
    if (!opts.author)
        CLI_TRY(cli_default_author(cli, &opts.author));
    if (on_open && (cli_has(cli, "dry-run") || cli_has(cli, "no-ff")))
        return cli_usage(cli, "--dry-run and --no-ff need a REV to merge");
    if (on_open)
        return cli_run_open(cli, continue_merge, &opts);
    rev = cli_operand(cli, 1);
    CLI_TRY(cli_open(cli, 0));
    if (!cli_has(cli, "dry-run"))
        opts.flags |= BRC_MERGE_KEEP;
    CLI_TRY(cli_branch(cli, &branch));
    CLI_TRY(brc_merge(&result, &cli->iter, cli->repo, rev, &opts, &cli->err));
    if (result.result != BRC_MERGE_CONFLICT || result.draft != 0)
        cli_done(cli);
    return report_merge(cli, &result, branch, rev);
}

const struct cli_command cli_command_merge = {
    .name = "merge",
    .group = "Versions",
    .summary = "merge another version into the current branch",
    .usage = "FILE REV [OPTIONS]\nFILE REV --ours|--theirs -- PATH...\n"
             "FILE --ours|--theirs [-- PATH...]\nFILE --continue|--abort",
    .details = "Moves the branch to REV if nothing else is to do. Otherwise the command makes a\n"
               "commit with two parents, which has the changes of both sides since they parted:\n"
               "nodes, members of metadata, chunks, and elements within a chunk. A part that\n"
               "both sides changed differently is a conflict: conflicts are listed, and the\n"
               "status is 3. The branch stays where it is, and the merge stays open on the\n"
               "branch, with the branch's version of everything in conflict. Write the wanted\n"
               "values, or settle the conflicts for one side with --ours or --theirs and no\n"
               "REV; then --continue commits. --abort drops the merge.",
    .examples = "breccia merge climate.brc experiment\n"
                "breccia merge climate.brc experiment --theirs -- /t2m\n"
                "breccia merge climate.brc --continue",
    .options = merge_options,
    .min_operands = 1,
    .max_operands = 10000,
    .flags = CLI_POOL,
    .run = run_merge,
};
