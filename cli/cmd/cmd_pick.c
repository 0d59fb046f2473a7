/*
 * cmd_pick.c - cherry-pick and revert.
 */
#include "../cli.h"
#include "commands.h"
#include "history.h"
#include "picked.h"

#define PICK_SIDES \
    { "ours", 0, 0, NULL, "settle conflicts for the current branch, for these PATHs or all" }, \
    { "theirs", 0, 0, NULL, "settle them for the change" }
#define PICK_COMMIT \
    { "no-commit", 'n', 0, NULL, "leave the change uncommitted on the branch" }, \
    { "mainline", 0, 1, "N", "of a merge: tell its change from its N-th parent" }

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
    { "author", 0, 1, "'NAME <MAIL>'", "the author; else $BRECCIA_AUTHOR, else user and host" },
    { "date", 0, 1, "TIME", "2026-11-20, 2026-11-20T12:00:00Z or @SECONDS instead of now" },
    CLI_OPTIONS_END
};

static int read_pick_options(struct cli *cli, brc_pick_opts *opts)
{
    uint64_t mainline = 0;

    opts->message = cli_value(cli, "message");
    opts->author = cli_value(cli, "author");
    opts->flags |= cli_has(cli, "no-commit") ? BRC_PICK_NO_COMMIT : 0;
    CLI_TRY(cli_uint_option(cli, "mainline", 1, 16, &mainline));
    opts->mainline = (uint32_t)mainline;
    if (opts->message && opts->message[0] == '\0')
        return cli_usage(cli, "option --message: the text is empty");
    if (opts->author && opts->author[0] == '\0')
        return cli_usage(cli, "option --author: the name is empty");
    return cli_time_option(cli, "date", &opts->time_us);
}

static void say_picked(struct cli *cli, const brc_pick_result *r, const char *branch,
                       const char *rev, int is_back)
{
    const char *on = cli_escaped(cli, branch), *what = cli_escaped(cli, rev);

    if (r->result == BRC_PICK_NOTHING)
        cli_say(cli, is_back ? "%s has nothing of %s any more; no commit was made"
                             : "%s has all of %s already; no commit was made",
                on, what);
    else if (r->result == BRC_PICK_UNCOMMITTED)
        cli_say(cli, "%s: the change is uncommitted on %s", what, on);
    else if (r->result == BRC_PICK_CONFLICT)
        cli_say(cli, "%s conflicts with %s; nothing was changed", what, on);
    else
        cli_say(cli, "[%s %s] %s %s", on, cli_short_id(cli, &r->commit),
                is_back ? "reverted" : "picked", what);
}

static int run_either(struct cli *cli, int is_back)
{
    static const char *const names[] = { "", "nothing", "", "committed", "uncommitted",
                                         "conflict" };
    brc_pick_opts opts = BRC_PICK_OPTS_INIT;
    brc_pick_result r = BRC_PICK_RESULT_INIT;
    const char *branch, *rev = cli_operand(cli, 1);

    CLI_TRY(read_pick_options(cli, &opts));
    CLI_TRY(cli_pick_sides(cli, &opts));
    CLI_TRY(cli_open(cli, 0));
    if (is_back && !opts.author)
        opts.author = cli_default_author(cli);
    CLI_TRY(cli_branch(cli, &branch));
    CLI_TRY((is_back ? brc_revert : brc_pick)(&r, &cli->iter, cli->repo, rev, &opts, &cli->err));
    if (r.result == BRC_PICK_COMMITTED || r.result == BRC_PICK_UNCOMMITTED)
        cli_done(cli);
    CLI_TRY(cli_print_picked(cli, &r, names[r.result], 0));
    say_picked(cli, &r, branch, rev, is_back);
    return r.result == BRC_PICK_CONFLICT ? CLI_EXIT_CONFLICT : BRC_OK;
}

static int run_pick(struct cli *cli)
{
    return run_either(cli, 0);
}

static int run_revert(struct cli *cli)
{
    return run_either(cli, 1);
}

const struct cli_command cli_command_pick = {
    .name = "cherry-pick",
    .group = "Versions",
    .summary = "do what a commit changed on the current branch too",
    .usage = "FILE REV [OPTIONS]\nFILE REV --ours|--theirs -- PATH...",
    .details = "Makes a commit with the message, author and time of REV, which changes what REV\n"
               "changed; it is merged as 'breccia merge' does it. Conflicts are listed, nothing\n"
               "is changed then, and the status is 3. What is there already makes no commit.",
    .examples = "breccia cherry-pick climate.brc experiment~2\n"
                "breccia cherry-pick climate.brc 1a2b3c --no-commit",
    .options = pick_options,
    .min_operands = 2,
    .max_operands = 10000,
    .flags = CLI_POOL,
    .run = run_pick,
};

const struct cli_command cli_command_revert = {
    .name = "revert",
    .group = "Versions",
    .summary = "take back what a commit changed",
    .usage = "FILE REV [OPTIONS]\nFILE REV --ours|--theirs -- PATH...",
    .details = "Makes a commit that takes back what REV changed, and nothing else. To bring that\n"
               "again, revert the revert: to merge its branch once more brings nothing, for it\n"
               "is merged. Conflicts are listed, nothing is changed then, and the status is 3.",
    .examples = "breccia revert climate.brc HEAD\n"
                "breccia revert climate.brc HEAD~2 --mainline 1",
    .options = revert_options,
    .min_operands = 2,
    .max_operands = 10000,
    .flags = CLI_POOL,
    .run = run_revert,
};
