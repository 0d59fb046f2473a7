/*
 * cmd_diff.c - status and diff: lists of differences.
 */
#include "../cli.h"
#include "changes.h"
#include "commands.h"
#include "history.h"

#include <string.h>

/* ---- status ---------------------------------------------------------------------- */

/* Lists uncommitted keys of the Zarr store view that belong to no node or chunk. */
static int put_loose_keys(struct cli *cli)
{
    brc_iter *it;
    const char *key;
    size_t n = 0;
    int rc;

    CLI_TRY(brc_keys_loose(&it, cli->session, &cli->err));
    cli_begin(cli, "keys", '[');
    while ((rc = brc_keys_next(it, &key, &cli->err)) > 0) {
        if (cli->json)
            cli_json_string(cli, key);
        else
            cli_printf(cli, "%s  %s\n", n == 0 ? "Keys that are not a node or chunk yet:\n" : "",
                       cli_escaped(cli, key));
        n++;
    }
    cli_finish(cli, '[');
    brc_iter_free(it);
    return rc;
}

static const char *doing(const brc_open_state *state)
{
    return strcmp(state->op, "cherry-pick") == 0 ? "Cherry-picking"
           : strcmp(state->op, "revert") == 0    ? "Reverting"
           : strcmp(state->op, "rebase") == 0    ? "Rebasing onto"
                                                 : "Merging";
}

/* Prints the merge, cherry-pick, revert or rebase that is open on the branch, and its conflicts. */
static int say_open_merge(struct cli *cli, const brc_open_state *state)
{
    const int is_rebase = strcmp(state->op, "rebase") == 0;
    const char *op = state->op, *rev = state->rev, *lead = is_rebase ? ", " : NULL;

    cli_begin(cli, "merge", '{');
    cli_put_members(
        cli,
        CLI_FIELDS({ NULL, CLI_OF(doing(state)), .lead = "" }, { "op", CLI_OF(op) },
                   { "rev", CLI_OF(rev), .lead = " " },
                   { is_rebase ? "at" : NULL, CLI_OF(state->at), .lead = lead ? ", at " : NULL },
                   { is_rebase ? "commits" : NULL, CLI_OF(state->made), .lead = lead,
                     .tail = " made" },
                   { is_rebase ? "skipped" : NULL, CLI_OF(state->skipped), .lead = lead,
                     .tail = " left out" },
                   { is_rebase ? "left" : NULL, CLI_OF(state->left), .lead = lead,
                     .tail = " to come" },
                   { "open", CLI_OF(state->open), .lead = ": " },
                   { NULL, CLI_OF(state->conflicts), .lead = " of ",
                     .tail = " conflicts open" }));
    CLI_TRY(cli_put_conflicts(cli));
    cli_finish(cli, '{');
    return BRC_OK;
}

static int put_open_merge(struct cli *cli)
{
    brc_open_state state = BRC_OPEN_STATE_INIT;
    int rc;

    CLI_TRY(brc_merge_state(&state, &cli->iter, cli->repo, &cli->err));
    rc = state.draft != 0 ? say_open_merge(cli, &state) : BRC_OK;
    brc_iter_free(cli->iter);
    cli->iter = NULL;
    return rc;
}

/* Tells whether the branch has moved since the uncommitted changes began. */
static int put_moved_since(struct cli *cli)
{
    const char *branch, *words = NULL;

    CLI_TRY(cli_find_moved(cli, &branch));
    if (cli->moved)
        words = cli_moved_words(cli, branch);
    cli_put_members(cli, CLI_FIELDS({ "stale", CLI_OF(cli->moved), .optional = 1 },
                                    { NULL, CLI_OF(words), .lead = "" }));
    return BRC_OK;
}

static int put_status(struct cli *cli, const char *branch, int clean, int unborn)
{
    struct cli_changes changes = { .title = "Uncommitted changes:" };

    cli_begin(cli, NULL, '{');
    cli_put_members(
        cli, CLI_FIELDS({ "branch", CLI_OF(branch), .lead = "On branch ", .color = CLI_GREEN },
                        { "clean", CLI_OF(clean) },
                        { NULL, CLI_OF(unborn), .lead = "\nNo commits yet" }));
    CLI_TRY(put_open_merge(cli));
    CLI_TRY(put_moved_since(cli));
    CLI_TRY(cli_put_changes(cli, &changes));
    CLI_TRY(put_loose_keys(cli));
    cli_finish(cli, '{');
    if (clean && !cli->json)
        cli_puts(cli, "Nothing to commit, clean\n");
    return BRC_OK;
}

static int run_status(struct cli *cli)
{
    struct cli_refs refs;
    const char *branch;
    int clean;

    CLI_TRY(cli_open_silently(cli));
    CLI_TRY(brc_session_clean(&clean, cli->session, &cli->err));
    CLI_TRY(cli_branch(cli, &branch));
    CLI_TRY(cli_refs_read(cli, &refs));
    return put_status(cli, branch, clean, cli_refs_unborn(&refs));
}

const struct cli_command cli_command_status = {
    .name = "status",
    .group = "Versions",
    .summary = "show the branch and its uncommitted changes",
    .usage = "FILE",
    .examples = "breccia status climate.brc\nbreccia status climate.brc --json",
    .min_operands = 1,
    .max_operands = 1,
    .run = run_status,
};

/* ---- diff ------------------------------------------------------------------------ */

static const struct cli_option diff_options[] = {
    { "stat", 0, 0, NULL, "show only counts for each node" },
    { "elements", 0, 0, NULL, "show how many elements differ, where and by how much" },
    { "exit-code", 0, 0, NULL, "exit with status 1 if values or metadata differ" },
    CLI_OPTIONS_END
};

/* Reads the versions before "--": A, A B or A..B. */
static int read_versions(struct cli *cli, struct cli_changes *changes, size_t n)
{
    const char *one = cli_operand(cli, 1), *dots = n == 1 ? strstr(one, "..") : NULL;

    for (size_t i = 1; i <= n; i++)
        if (cli_operand(cli, i)[0] == '/')
            return cli_usage(cli, "%s is not a version; PATH comes after --", cli_operand(cli, i));
    if (dots && dots[2] == '.')
        return cli_usage(cli, "'%s' has three dots; a range is written A..B", one);
    changes->a = n > 0 ? one : NULL;
    changes->b = n > 1 ? cli_operand(cli, 2) : NULL;
    if (dots) {
        changes->a = dots > one ? cli_text(cli, "%.*s", (int)(dots - one), one) : "HEAD";
        changes->b = dots[2] ? dots + 2 : "HEAD";
    }
    return BRC_OK;
}

static int run_diff(struct cli *cli)
{
    size_t revs = cli->args.before_dashes, paths = cli->args.noperands - revs;
    struct cli_changes changes = { .elements = cli_has(cli, "elements"),
                                   .stat = cli_has(cli, "stat"),
                                   .silent = cli->quiet };

    if (revs < 1)
        return cli_usage(cli, "FILE comes before --");
    if (revs > 3)
        return cli_usage(cli, "diff takes at most two versions; PATH comes after --");
    if (paths > 1)
        return cli_usage(cli, "diff takes only one PATH after --");
    CLI_TRY(read_versions(cli, &changes, revs - 1));
    changes.path = paths ? cli_path(cli, cli_operand(cli, revs)) : NULL;
    CLI_TRY(cli_open(cli, BRC_OPEN_READONLY));
    cli_begin(cli, NULL, '{');
    CLI_TRY(cli_put_changes(cli, &changes));
    cli_finish(cli, '{');
    return cli_has(cli, "exit-code") && changes.differing > 0;
}

const struct cli_command cli_command_diff = {
    .name = "diff",
    .group = "Versions",
    .summary = "show what differs between two versions",
    .usage = "FILE [-- PATH]\n"
             "FILE A [-- PATH]\n"
             "FILE A B [-- PATH]\n"
             "FILE A..B [-- PATH]",
    .details = "Compares A with B. Without B, A is compared with the uncommitted state; without\n"
               "A too, HEAD is. A..B means A B, where a missing A or B is HEAD. PATH limits the\n"
               "comparison to that node and all nodes under it. A node with the same values\n"
               "that is stored differently (codecs, backend, padding of chunks beyond the\n"
               "array's end) is listed as 'storage only'; --exit-code does not count such a\n"
               "node. --quiet lists nothing.",
    .examples = "breccia diff climate.brc\n"
                "breccia diff climate.brc v1.0 main --stat -- /t2m\n"
                "breccia diff climate.brc main~1 main --elements --exit-code",
    .options = diff_options,
    .min_operands = 1,
    .max_operands = 4,
    .flags = CLI_POOL,
    .run = run_diff,
};
