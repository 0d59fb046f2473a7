/*
 * cmd_log.c - log and show.
 *
 * In `log FILE X`, X is a node if that node exists; else a version or a range, as in git;
 * else a node that existed once.
 */
#include "../cli.h"
#include "changes.h"
#include "commands.h"
#include "history.h"

#include <string.h>

static const struct cli_option log_options[] = {
    { "graph", 0, 0, NULL, "draw how the commits are connected" },
    { "oneline", 0, 0, NULL, "one line per commit" },
    { "number", 'n', 1, "N", "show at most N commits; also written -N" },
    { "at", 0, 1, "REV", "start at this version" },
    { "full", 0, 0, NULL, "with PATH: list also the side that a merge did not take" },
    CLI_OPTIONS_END
};

struct log_request {
    const char *rev; /* a version or a range; NULL is HEAD                     */
    const char *path;
    const char *word; /* a PATH that the user may have meant as REV; or NULL   */
    uint64_t limit;
    struct cli_graph *graph; /* NULL without --graph                          */
};

/* Returns the path of the node in this commit. For text, NULL if that is the path that was
 * given. */
static const char *node_path(struct cli *cli, const struct log_request *request)
{
    const char *path = request->path ? brc_log_path(cli->iter) : NULL;

    return path && (cli->json || strcmp(path, request->path) != 0) ? path : NULL;
}

static void put_log_entry(struct cli *cli, const brc_commit *commit, const struct cli_refs *refs,
                          const struct log_request *request, uint64_t index)
{
    struct cli_graph *graph = request->graph;
    const char *first = "", *prefix = "";

    if (cli->json) {
        cli_begin(cli, NULL, '{');
        cli_put_commit(cli, commit, refs, node_path(cli, request), "", "");
        cli_finish(cli, '{');
        return;
    }
    if (graph)
        cli_graph_enter(cli, graph, commit, &first, &prefix);
    if (cli_has(cli, "oneline")) {
        cli_commit_line(cli, commit, refs, first);
    } else {
        if (index > 0 && !graph)
            cli_puts(cli, "\n");
        cli_put_commit(cli, commit, refs, node_path(cli, request), first, prefix);
        if (graph)
            cli_printf(cli, "%.*s\n", (int)strlen(prefix) - 1, prefix);
    }
    if (graph && !request->path)
        cli_graph_connect(cli, graph, commit);
    else if (graph)
        graph->n = 0; /* PATH leaves out commits, so no lines connect the others */
}

/* Explains why no commit has the path: the node may not be committed yet, or the word is not a
 * path. */
static int explain_no_node(struct cli *cli, const struct log_request *request)
{
    int kind;

    if (cli->session && brc_node_kind(&kind, cli->session, request->path, NULL) == BRC_OK && kind) {
        cli_say(cli, "no commit has %s yet", cli_escaped(cli, request->path));
        return BRC_OK;
    }
    if (request->word)
        return cli_fail(cli, BRC_ENOTFOUND,
                        "'%s' is neither a node (now or in a commit) nor a branch, tag or commit",
                        request->word);
    return cli_fail(cli, BRC_ENOTFOUND, "there is no node %s in these commits", request->path);
}

static int log_commits(struct cli *cli, const struct cli_refs *refs,
                       const struct log_request *request)
{
    const brc_log_opts opts = { .size = sizeof(opts),
                                .path = request->path,
                                .flags = cli_has(cli, "full") ? BRC_LOG_FULL : 0 };
    const brc_commit *commit;
    int rc = 0;

    if (!request->rev && cli_refs_unborn(refs)) {
        if (request->path)
            return explain_no_node(cli, request);
        cli_say(cli, "no commits yet");
        return BRC_OK;
    }
    CLI_TRY(brc_log(&cli->iter, cli->repo, request->rev, &opts, &cli->err));
    for (uint64_t i = 0;
         i < request->limit && (rc = brc_log_next(cli->iter, &commit, &cli->err)) == 1; i++) {
        put_log_entry(cli, commit, refs, request, i);
        CLI_TRY(cli_out_check(cli));
    }
    if (rc == BRC_ENOTFOUND && request->path)
        return explain_no_node(cli, request);
    return rc < 0 ? rc : BRC_OK;
}

/* Decides whether the one word before "--" is PATH or REV. */
static int place_word(struct cli *cli, struct log_request *request, const char *word)
{
    const char *path = cli_path(cli, word);
    brc_oid id;
    int kind;

    CLI_TRY(brc_session_open(&cli->session, cli->repo, NULL, BRC_SESSION_VIEW, &cli->err));
    if (word[0] == '/' || request->rev ||
        (brc_node_kind(&kind, cli->session, path, NULL) == BRC_OK && kind)) {
        request->path = path;
    } else if (strstr(word, "..") || brc_resolve(&id, cli->repo, word, NULL) == BRC_OK) {
        request->rev = word;
    } else {
        request->path = path;
        request->word = word;
    }
    return BRC_OK;
}

/* Takes "-5", which means -n 5, out of the n operands. Returns how many are left. */
static size_t take_counts(const char **words, size_t n, uint64_t *limit)
{
    size_t kept = 0;

    for (size_t i = 0; i < n; i++)
        if (words[i][0] != '-' || !cli_read_u64(limit, words[i] + 1))
            words[kept++] = words[i];
    return kept;
}

/* Reads [REV|A..B] [PATH] [-- PATH]. */
static int read_log_operands(struct cli *cli, struct log_request *request)
{
    const char **words = cli->args.operands + 1, **paths;
    size_t n, npaths;

    if (cli->args.before_dashes < 1)
        return cli_usage(cli, "FILE comes before --");
    paths = cli->args.operands + cli->args.before_dashes;
    npaths = cli->args.noperands - cli->args.before_dashes;
    n = take_counts(words, cli->args.before_dashes - 1, &request->limit);
    if (n + npaths > (request->rev ? 1 : 2) || npaths > 1)
        return cli_usage(cli, "log takes one REV or A..B (--at counts as one) and one PATH");
    if (n + npaths == 2)
        request->rev = words[0];
    if (npaths == 1)
        request->path = cli_path(cli, paths[0]);
    else if (n == 2)
        request->path = cli_path(cli, words[1]);
    return npaths == 0 && n == 1 ? place_word(cli, request, words[0]) : BRC_OK;
}

static int run_log(struct cli *cli)
{
    struct cli_refs refs;
    struct cli_graph graph = { NULL, 0, 0 };
    struct log_request request = { .rev = cli_value(cli, "at"), .limit = UINT64_MAX };
    int rc;

    CLI_TRY(cli_uint_option(cli, "number", 0, UINT64_MAX, &request.limit));
    CLI_TRY(cli_open(cli, BRC_OPEN_READONLY));
    CLI_TRY(read_log_operands(cli, &request));
    CLI_TRY(cli_refs_read(cli, &refs));
    if (cli_has(cli, "graph"))
        request.graph = &graph;
    cli_begin(cli, NULL, '[');
    rc = log_commits(cli, &refs, &request);
    cli_finish(cli, '[');
    cli_graph_dispose(&graph);
    return rc;
}

const struct cli_command cli_command_log = {
    .name = "log",
    .group = "Versions",
    .summary = "list commits, newest first",
    .usage = "FILE [REV|A..B] [PATH] [--graph] [--oneline] [-n N] [--at REV] [--full]",
    .details = "Starts at REV, or at HEAD, and goes back. A..B lists the commits that are\n"
               "reachable from B but not from A; a missing A or B is HEAD. PATH limits the list\n"
               "to commits that changed that node or something under it, and follows the node\n"
               "to the names that it had before it was moved. Where a merge took the node from\n"
               "one side, only that side is listed; --full lists both. A single word is PATH if\n"
               "such a node exists, otherwise REV; '--' before the word makes it PATH.",
    .examples = "breccia log climate.brc --oneline --graph\n"
                "breccia log climate.brc v1.0..main\n"
                "breccia log climate.brc /t2m -5 --json",
    .options = log_options,
    .min_operands = 1,
    .max_operands = 8,
    .run = run_log,
};

/* ---- show ------------------------------------------------------------------------ */

static const struct cli_option show_options[] = {
    { "elements", 0, 0, NULL, "show how many elements differ, where and by how much" },
    { "stat", 0, 0, NULL, "show only counts for each node" },
    CLI_OPTIONS_END
};

static int show_commit(struct cli *cli, const brc_commit *commit)
{
    struct cli_refs refs;
    struct cli_changes changes = { .title = "",
                                   .b = cli_long_id(cli, &commit->id),
                                   .elements = cli_has(cli, "elements"),
                                   .stat = cli_has(cli, "stat") };

    CLI_TRY(cli_refs_read(cli, &refs));
    cli_begin(cli, NULL, '{');
    cli_put_commit(cli, commit, &refs, NULL, "", "");
    CLI_TRY(cli_put_changes(cli, &changes));
    cli_finish(cli, '{');
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
    .summary = "show one commit and its changes",
    .usage = "FILE REV [--stat] [--elements]",
    .details = "The commit is compared with its first parent.",
    .examples = "breccia show climate.brc v1.0\nbreccia show climate.brc main~2 --json",
    .options = show_options,
    .min_operands = 2,
    .max_operands = 2,
    .flags = CLI_POOL,
    .run = run_show,
};
