/*
 * cmd_switch.c - switch, restore, reset: change to another branch or version.
 */
#include "../cli.h"
#include "commands.h"
#include "history.h"

/* ---- switch ---------------------------------------------------------------------- */

static const struct cli_option switch_options[] = {
    { "create", 'c', 0, NULL, "make the branch first, at REV or at HEAD" },
    { "discard", 0, 0, NULL, "drop uncommitted changes" },
    CLI_OPTIONS_END
};

static int create_and_switch(struct cli *cli, const char *branch)
{
    const uint32_t flags = cli_has(cli, "discard") ? BRC_SWITCH_DISCARD : BRC_SWITCH_CARRY;
    int rc;

    if (!cli_has(cli, "create"))
        return brc_switch(cli->repo, branch, flags & BRC_SWITCH_DISCARD, &cli->err);
    CLI_TRY(brc_begin(cli->repo, &cli->err));
    rc = brc_ref_create(cli->repo, branch, cli_operand(cli, 2), NULL, 0, &cli->err);
    if (rc >= 0)
        rc = brc_switch(cli->repo, branch, flags, &cli->err);
    return cli_end(cli, rc);
}

static int run_switch(struct cli *cli)
{
    const char *branch = cli_operand(cli, 1);

    if (cli->args.noperands > 2 && !cli_has(cli, "create"))
        return cli_usage(cli, "'%s' is one argument too many: REV needs -c",
                         cli_operand(cli, 2));
    CLI_TRY(cli_open(cli, 0));
    CLI_TRY(create_and_switch(cli, branch));
    cli_answer(cli, CLI_FIELDS({ "branch", CLI_OF(branch) }), "on branch %s",
               cli_escaped(cli, branch));
    return BRC_OK;
}

const struct cli_command cli_command_switch = {
    .name = "switch",
    .group = "Versions",
    .summary = "make another branch the current one",
    .usage = "FILE BRANCH [--discard]\nFILE -c BRANCH [REV] [--discard]",
    .details = "Fails if there are uncommitted changes, unless --discard drops them. They go\n"
               "along to a branch that -c makes at HEAD.",
    .examples = "breccia switch climate.brc main\nbreccia switch climate.brc -c experiment",
    .options = switch_options,
    .min_operands = 2,
    .max_operands = 3,
    .run = run_switch,
};

/* ---- restore, reset ----------------------------------------------------------------- */

static const struct cli_option restore_options[] = {
    { "from", 0, 1, "REV", "the version to restore from (HEAD)" },
    { "slice", 0, 1, "SLICE", "restore only these elements of an array" },
    CLI_OPTIONS_END
};

static int run_restore(struct cli *cli)
{
    const char *path = cli_path(cli, cli_operand(cli, 1));
    const char *from = cli_value(cli, "from"), *slice = cli_value(cli, "slice");
    brc_sel sel = BRC_SEL_INIT;

    CLI_TRY(cli_open_edit(cli));
    if (slice) {
        CLI_TRY(cli_open_array(cli, path));
        CLI_TRY(cli_select(cli, slice, &sel));
        CLI_TRY(brc_array_restore(cli->array, &sel, from, &cli->err));
    } else {
        CLI_TRY(brc_node_restore(cli->session, path, from, &cli->err));
    }
    from = from ? from : "HEAD";
    cli_answer(cli, CLI_FIELDS({ "path", CLI_OF(path) }, { "from", CLI_OF(from) }),
               "restored %s%s%s from %s", cli_escaped(cli, path), slice ? " " : "",
               slice ? cli_escaped(cli, slice) : "", cli_escaped(cli, from));
    return BRC_OK;
}

const struct cli_command cli_command_restore = {
    .name = "restore",
    .group = "Versions",
    .summary = "restore a node, or a part of it, as it was",
    .usage = "FILE PATH [--from REV] [--slice SLICE]",
    .details = "The branch does not move: the restored node is an uncommitted change. A node\n"
               "that did not exist in REV is removed.",
    .examples = "breccia restore climate.brc /t2m\n"
                "breccia restore climate.brc /t2m --from v1.0 --slice '[0:31]'",
    .options = restore_options,
    .min_operands = 2,
    .max_operands = 2,
    .flags = CLI_POOL | CLI_PATH,
    .run = run_restore,
};

static const struct cli_option reset_options[] = {
    { "hard", 0, 0, NULL, "drop uncommitted changes too" },
    CLI_OPTIONS_END
};

static void report_reset(struct cli *cli, const char *branch, const brc_oid *id,
                         const brc_oid *was)
{
    const char *back = "";

    if (cli_has_id(was) && !cli_same_id(id, was))
        back = cli_text(cli, " (was %s); 'breccia reset %s %s' goes back", cli_short_id(cli, was),
                        cli_escaped(cli, cli->file), cli_short_id(cli, was));
    cli_answer(cli,
               CLI_FIELDS({ "branch", CLI_OF(branch) }, { "id", CLI_OF(*id) },
                          { "was", CLI_OF(*was), .optional = 1 }),
               "%s is at %s%s", cli_escaped(cli, branch), cli_short_id(cli, id), back);
}

static int run_reset(struct cli *cli)
{
    const char *rev = cli_operand(cli, 1) ? cli_operand(cli, 1) : "HEAD", *branch;
    brc_oid id, was;
    int rc;

    CLI_TRY(cli_open(cli, 0));
    CLI_TRY(cli_branch(cli, &branch));
    CLI_TRY(brc_begin(cli->repo, &cli->err));
    rc = brc_resolve(&id, cli->repo, rev, &cli->err);
    if (rc >= 0)
        rc = cli_ref_find(cli, branch, 0, &was);
    if (rc >= 0)
        rc = brc_reset(cli->repo, NULL, rev, cli_has(cli, "hard") ? BRC_RESET_HARD : 0, NULL,
                       &cli->err);
    CLI_TRY(cli_end(cli, rc));
    report_reset(cli, branch, &id, &was);
    return BRC_OK;
}

const struct cli_command cli_command_reset = {
    .name = "reset",
    .group = "Versions",
    .summary = "move the current branch to another version",
    .usage = "FILE [REV] [--hard]",
    .details = "REV is HEAD if it is left out. Uncommitted changes stay, unless --hard drops\n"
               "them for good. The command reports the previous commit of the branch: the\n"
               "commits stay in the file, and can be named by id.",
    .examples = "breccia reset climate.brc HEAD~1\nbreccia reset climate.brc --hard",
    .options = reset_options,
    .min_operands = 1,
    .max_operands = 2,
    .run = run_reset,
};
