/*
 * cmd_log.c - log and show.
 */
#include "changes.h"
#include "cli.h"
#include "graph.h"
#include "history.h"

#include <string.h>

static const struct cli_option log_options[] = {
    { "graph", 0, 0, NULL, "draw how commits hang together" },
    { "oneline", 0, 0, NULL, "one line a commit" },
    { "number", 'n', 1, "N", "at most so many commits" },
    { "at", 0, 1, "REV", "from this version back" },
    CLI_OPTIONS_END
};

static void put_log_entry(struct cli *cli, const brc_commit *commit, const struct cli_refs *refs,
                          struct cli_graph *graph, uint64_t index)
{
    const char *first = "", *prefix = "";

    if (cli->json) {
        cli_json_open(cli, '{');
        cli_commit_members(cli, commit, refs);
        cli_json_close(cli, '{');
        return;
    }
    if (graph)
        cli_graph_enter(cli, graph, commit, &first, &prefix);
    if (cli_has(cli, "oneline")) {
        cli_commit_line(cli, commit, refs, first);
    } else {
        if (index > 0 && !graph)
            cli_puts(cli, "\n");
        cli_commit_text(cli, commit, refs, first, prefix);
        if (graph)
            cli_printf(cli, "%.*s\n", (int)strlen(prefix) - 1, prefix);
    }
    if (graph && !cli_operand(cli, 1))
        cli_graph_connect(cli, graph, commit);
    else if (graph)
        graph->n = 0; /* some commits are left out, so nothing hangs together */
}

static int log_commits(struct cli *cli, const struct cli_refs *refs, uint64_t limit,
                       struct cli_graph *graph)
{
    const char *path = cli_operand(cli, 1);
    const brc_commit *commit;
    int rc = 0;

    if (!cli_has(cli, "at") && cli_refs_unborn(refs)) {
        cli_say(cli, "no commits yet");
        return BRC_OK;
    }
    CLI_TRY(brc_log(&cli->iter, cli->repo, cli_value(cli, "at"), path ? cli_path(cli, path) : NULL,
                    &cli->err));
    for (uint64_t i = 0; i < limit && (rc = brc_log_next(cli->iter, &commit, &cli->err)) == 1;
         i++) {
        put_log_entry(cli, commit, refs, graph, i);
        CLI_TRY(cli_out_check(cli));
    }
    return rc < 0 ? rc : BRC_OK;
}

static int run_log(struct cli *cli)
{
    struct cli_refs refs;
    struct cli_graph graph = { NULL, 0, 0 };
    uint64_t limit = UINT64_MAX;
    int rc;

    CLI_TRY(cli_uint_option(cli, "number", 0, UINT64_MAX, &limit));
    CLI_TRY(cli_open(cli, BRC_OPEN_READONLY));
    CLI_TRY(cli_refs_read(cli, &refs));
    if (cli->json)
        cli_json_open(cli, '[');
    rc = log_commits(cli, &refs, limit, cli_has(cli, "graph") ? &graph : NULL);
    if (cli->json)
        cli_json_close(cli, '[');
    cli_graph_dispose(&graph);
    return rc;
}

const struct cli_command cli_command_log = {
    .name = "log",
    .group = "Versions",
    .summary = "list commits, newest first",
    .usage = "FILE [PATH] [--graph] [--oneline] [-n N] [--at REV]",
    .details = "PATH keeps the commits that changed this node or what is under it.",
    .examples = "breccia log climate.brc --oneline --graph\n"
                "breccia log climate.brc /t2m -n 5 --json",
    .options = log_options,
    .min_operands = 1,
    .max_operands = 2,
    .run = run_log,
};

/* ---- show ------------------------------------------------------------------------ */

static const struct cli_option show_options[] = {
    { "elements", 0, 0, NULL, "how many elements differ, where, by how much" },
    { "stat", 0, 0, NULL, "counts alone" },
    CLI_OPTIONS_END
};

static int show_commit(struct cli *cli, const brc_commit *commit)
{
    struct cli_refs refs;
    struct cli_changes changes = { .b = cli_long_id(cli, &commit->id),
                                   .elements = cli_has(cli, "elements"),
                                   .stat = cli_has(cli, "stat") };

    CLI_TRY(cli_refs_read(cli, &refs));
    if (cli->json) {
        cli_json_open(cli, '{');
        cli_commit_members(cli, commit, &refs);
    } else {
        cli_commit_text(cli, commit, &refs, "", "");
        changes.title = "";
    }
    CLI_TRY(cli_put_changes(cli, &changes));
    if (cli->json)
        cli_json_close(cli, '{');
    return BRC_OK;
}

static int run_show(struct cli *cli)
{
    brc_commit *commit;
    brc_oid id;
    int rc;

    CLI_TRY(cli_open(cli, BRC_OPEN_READONLY));
    CLI_TRY(brc_resolve(&id, cli->repo, cli_operand(cli, 1), &cli->err));
    CLI_TRY(brc_commit_read(&commit, cli->repo, &id, &cli->err));
    rc = show_commit(cli, commit);
    brc_commit_free(commit);
    return rc;
}

const struct cli_command cli_command_show = {
    .name = "show",
    .group = "Versions",
    .summary = "show one commit and what it changed",
    .usage = "FILE REV [--stat] [--elements]",
    .details = "What it changed is told against its first parent.",
    .examples = "breccia show climate.brc v1.0\nbreccia show climate.brc main~2 --json",
    .options = show_options,
    .min_operands = 2,
    .max_operands = 2,
    .flags = CLI_POOL,
    .run = run_show,
};
