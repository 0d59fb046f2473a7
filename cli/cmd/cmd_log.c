/*
 * cmd_log.c - log and show.
 *
 * In `log FILE X`, X is a node if that node exists; else a version or a range, as in git;
 * else a node that existed once.
 */
#include "../cli.h"
#include "../select.h"
#include "changes.h"
#include "commands.h"
#include "history.h"

#include <string.h>

static const struct cli_option log_options[] = {
    { "graph", 0, 0, NULL, "draw how the commits are connected" },
    { "oneline", 0, 0, NULL, "one line per commit" },
    { "number", 'n', 1, "N", "show at most N commits; also written -N" },
    { "at", 0, 1, "REV", "start at this version" },
    { "since", 0, 1, "TIME", "list only commits from this time on" },
    { "until", 0, 1, "TIME", "list only commits up to this time; a date counts to its end" },
    { "author", 0, 1, "REGEX", "list only commits whose author matches" },
    { "grep", 0, 1, "REGEX", "list only commits whose message matches" },
    { "stat", 0, 0, NULL, "show counts of what each commit changed" },
    { "values", 0, 0, NULL, "with PATH [SLICE]: list commits that changed these elements, with old "
                            "and new values" },
    { "full", 0, 0, NULL, "with PATH: list also the side that a merge did not take" },
    CLI_OPTIONS_END
};

enum { FEW_IN_LOG = 10 };

struct log_request {
    const char *rev; /* a version or a range; NULL is HEAD                     */
    const char *path;
    const char *word; /* a PATH that the user may have meant as REV; or NULL   */
    const char *apart; /* the SLICE after PATH as a word of its own; or NULL   */
    uint64_t limit;
    int is_sparse; /* the log leaves out commits                              */
    const char *slice; /* with --values: of the array `path`; "" is all of it  */
    brc_sel sel;
    struct cli_graph *graph; /* NULL without --graph                          */
};

/* Returns the path of the node in this commit. For text, NULL if that is the path that was
 * given. */
static const char *node_path(struct cli *cli, const struct log_request *request,
                             const brc_commit *commit)
{
    const char *path = commit->path;

    return path && (cli->json || strcmp(path, request->path) != 0) ? path : NULL;
}

/* Prints under the commit what it changed: counts, or with --values the elements. */
static int put_log_changes(struct cli *cli, const brc_commit *commit,
                           const struct log_request *request)
{
    const int values = request->slice != NULL;
    struct cli_changes changes = { .title = cli_has(cli, "oneline") ? NULL : "",
                                   .b = cli_long_id(cli, &commit->id),
                                   .path = commit->path,
                                   .stat = !values,
                                   .elements = values,
                                   .values = values ? FEW_IN_LOG : 0,
                                   .follow = values,
                                   .sel = values ? &request->sel : NULL };
    brc_iter *log = cli->iter;
    int rc;

    cli->iter = NULL;
    rc = cli_put_changes(cli, &changes);
    brc_iter_free(cli->iter);
    cli->iter = log;
    return rc;
}

static void put_graph_entry(struct cli *cli, const brc_commit *commit, const struct cli_refs *refs,
                            const struct log_request *request)
{
    const char *first = "", *prefix = "";

    cli_graph_enter(cli, request->graph, commit, &first, &prefix);
    if (cli_has(cli, "oneline")) {
        cli_commit_line(cli, commit, refs, first);
    } else {
        cli_put_commit(cli, commit, refs, node_path(cli, request, commit), first, prefix);
        cli_printf(cli, "%.*s\n", (int)strlen(prefix) - 1, prefix);
    }
    if (request->is_sparse)
        request->graph->n = 0; /* commits are left out, so no lines connect the others */
    else
        cli_graph_connect(cli, request->graph, commit);
}

static int put_log_entry(struct cli *cli, const brc_commit *commit, const struct cli_refs *refs,
                         const struct log_request *request, uint64_t index)
{
    int rc = BRC_OK, oneline = cli_has(cli, "oneline") && !cli->json;

    if (request->graph && !cli->json) {
        put_graph_entry(cli, commit, refs, request);
        return BRC_OK;
    }
    if (!cli->json && !oneline && index > 0)
        cli_puts(cli, "\n");
    cli_begin(cli, NULL, '{');
    if (oneline)
        cli_commit_line(cli, commit, refs, "");
    else
        cli_put_commit(cli, commit, refs, node_path(cli, request, commit), "", "");
    if (cli_has(cli, "stat") || request->slice)
        rc = put_log_changes(cli, commit, request);
    cli_finish(cli, '{');
    return rc;
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

/* Sets the times and patterns that commits must have. */
static int log_filters(struct cli *cli, brc_log_opts *opts)
{
    const char *until = cli_value(cli, "until");

    CLI_TRY(cli_time_option(cli, "since", &opts->since_us));
    CLI_TRY(cli_time_option(cli, "until", &opts->until_us));
    if (until && strlen(until) == strlen("2026-11-20") && until[4] == '-') /* to its last moment */
        opts->until_us += INT64_C(86400) * 1000000 - 1;
    if (cli_has(cli, "since"))
        opts->flags |= BRC_LOG_SINCE;
    if (until)
        opts->flags |= BRC_LOG_UNTIL;
    opts->author = cli_value(cli, "author");
    opts->message = cli_value(cli, "grep");
    return BRC_OK;
}

static int log_commits(struct cli *cli, const struct cli_refs *refs,
                       const struct log_request *request)
{
    brc_log_opts opts = BRC_LOG_OPTS_INIT;
    const brc_commit *commit;
    int rc = 0;

    if (!request->rev && cli_refs_unborn(refs)) {
        if (request->path)
            return explain_no_node(cli, request);
        cli_say(cli, "no commits yet");
        return BRC_OK;
    }
    opts.path = request->path;
    opts.flags = cli_has(cli, "full") ? BRC_LOG_FULL : 0;
    opts.sel = request->slice ? &request->sel : NULL;
    CLI_TRY(log_filters(cli, &opts));
    CLI_TRY(brc_log(&cli->iter, cli->repo, request->rev, &opts, &cli->err));
    for (uint64_t i = 0;
         i < request->limit && (rc = brc_next(cli->iter, &commit, &cli->err)) == 1; i++) {
        CLI_TRY(put_log_entry(cli, commit, refs, request, i));
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

/* Takes SLICE off the n words if it is the last one, after PATH. Returns it, or NULL. */
static const char *take_slice(const char **words, size_t *n)
{
    if (*n < 2 || (words[*n - 1][0] != '[' && words[*n - 1][0] != '{'))
        return NULL;
    return words[--*n];
}

/* Reads [REV|A..B] [PATH [SLICE]] [-- PATH [SLICE]]. */
static int read_log_operands(struct cli *cli, struct log_request *request)
{
    const char **words = cli->args.operands + 1, **paths;
    size_t n, npaths;

    if (cli->args.before_dashes < 1)
        return cli_usage(cli, "FILE comes before --");
    paths = cli->args.operands + cli->args.before_dashes;
    npaths = cli->args.noperands - cli->args.before_dashes;
    n = take_counts(words, cli->args.before_dashes - 1, &request->limit);
    if (npaths > 0)
        request->apart = take_slice(paths, &npaths);
    else
        request->apart = take_slice(words, &n);
    if (request->apart && !cli_has(cli, "values"))
        return cli_usage(cli, "SLICE needs --values");
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

/* Tells whether no element is selected, as by [6:7] of four elements. */
static int selects_none(const brc_sel *sel)
{
    for (int i = 0; i < sel->ndim; i++)
        if (sel->count[i] == 0)
            return 1;
    return 0;
}

/* Reads the slice by the shape that the array has in a version. */
static int read_slice_at(struct cli *cli, const char *rev, const char *path, const char *slice,
                         brc_sel *out)
{
    brc_array_free(cli->array);
    brc_session_free(cli->session);
    cli->array = NULL;
    cli->session = NULL;
    *out = (brc_sel)BRC_SEL_INIT;
    CLI_TRY(brc_session_open(&cli->session, cli->repo, rev, BRC_SESSION_AT, &cli->err));
    CLI_TRY(brc_array_open(&cli->array, cli->session, path, &cli->err));
    return cli_select(cli, slice, out);
}

/* Reads the slice by the newest version before `rev` in which the array has such elements: they may
 * have been cut off, or the array removed. Where there is none, what was said of `rev` holds. */
static int read_older_slice(struct cli *cli, const char *rev, const char *slice, int of_rev,
                            struct log_request *request)
{
    const brc_log_opts opts = { .size = sizeof(opts), .path = request->path };
    const brc_error why = cli->err;
    const brc_commit *commit;
    brc_sel sel;
    brc_iter *log;
    int rc, found = 0;

    CLI_TRY(brc_log(&log, cli->repo, rev, &opts, &cli->err));
    while (!found && (rc = brc_next(log, &commit, &cli->err)) == 1)
        found = read_slice_at(cli, cli_long_id(cli, &commit->id), commit->path, slice, &sel) >= 0 &&
                !selects_none(&sel);
    brc_iter_free(log);
    if (found)
        request->sel = sel;
    if (found || rc < 0)
        return found ? BRC_OK : rc;
    cli->err = why;
    return of_rev;
}

/* Takes the SLICE off the PATH, and reads it. */
static int read_log_slice(struct cli *cli, struct log_request *request)
{
    const char *dots = request->rev ? strstr(request->rev, "..") : NULL;
    const char *rev = dots ? dots + 2 : request->rev;
    const char *slice = request->apart;

    if (!request->path)
        return cli_usage(cli, "--values needs the PATH of an array, or PATH[SLICE]");
    brc_session_free(cli->session);
    cli->session = NULL;
    rev = rev && *rev ? rev : "HEAD";
    CLI_TRY(brc_session_open(&cli->session, cli->repo, rev, BRC_SESSION_AT, &cli->err));
    if (!slice)
        CLI_TRY(cli_split_slice(cli, &request->path, &slice));
    request->slice = slice ? slice : "";
    const int rc = read_slice_at(cli, rev, request->path, slice, &request->sel);
    if (rc >= 0 && !selects_none(&request->sel))
        return BRC_OK;
    return read_older_slice(cli, rev, slice, rc, request);
}

static int run_log(struct cli *cli)
{
    struct cli_refs refs;
    struct cli_graph graph = { NULL, 0, 0 };
    struct log_request request = { .rev = cli_value(cli, "at"), .limit = UINT64_MAX };
    int rc;

    CLI_TRY(cli_uint_option(cli, "number", 0, UINT64_MAX, &request.limit));
    if (cli_has(cli, "graph") && cli_has(cli, "stat") && !cli->json)
        return cli_usage(cli, "--graph and --stat do not go together");
    if (cli_has(cli, "values") && (cli_has(cli, "stat") || cli_has(cli, "graph")))
        return cli_usage(cli, "--values goes neither with --stat nor with --graph");
    CLI_TRY(cli_open(cli, BRC_OPEN_READONLY));
    CLI_TRY(read_log_operands(cli, &request));
    CLI_TRY(cli_refs_read(cli, &refs));
    if (cli_has(cli, "values") && !(cli_refs_unborn(&refs) && !request.rev))
        CLI_TRY(read_log_slice(cli, &request));
    if (cli_has(cli, "graph"))
        request.graph = &graph;
    request.is_sparse = request.path || cli_has(cli, "since") || cli_has(cli, "until") ||
                        cli_has(cli, "author") || cli_has(cli, "grep");
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
    .usage = "FILE [REV|A..B] [PATH] [--graph] [--oneline] [-n N] [--since TIME] [--until TIME] "
             "[--author REGEX] [--grep REGEX] [--stat] [--full]\n"
             "FILE [REV|A..B] PATH [SLICE] --values [OPTIONS]",
    .details = "Starts at REV, or at HEAD, and goes back. A..B lists the commits that are\n"
               "reachable from B but not from A; a missing A or B is HEAD. PATH limits the list\n"
               "to commits that changed that node or something under it, and follows the node\n"
               "to the names that it had before it was moved. Where a merge took the node from\n"
               "one side, only that side is listed; --full lists both. A single word is PATH if\n"
               "such a node exists, otherwise REV; '--' before the word makes it PATH.\n"
               "--values lists the commits that changed elements of the array PATH, or of SLICE,\n"
               "and shows the first of them with both values: 'none' before an element was made,\n"
               "and once it was cut off. A merge whose values are those of one of its parents is\n"
               "left out. SLICE is read by the newest version in which the array has it.\n"
               "TIME is 2026-11-20, 2026-11-20T12:00:00Z, yesterday, 10:30, 'monday 10:30',\n"
               "'2 weeks ago' or @SECONDS since 1970, in UTC. REGEX is a POSIX extended regular\n"
               "expression.",
    .examples = "breccia log climate.brc --oneline --graph\n"
                "breccia log climate.brc v1.0..main\n"
                "breccia log climate.brc --since '2 weeks ago' --author Ada --stat\n"
                "breccia log climate.brc /t2m -5 --json\n"
                "breccia log climate.brc '/t2m[-1, 0, 0]' --values",
    .options = log_options,
    .min_operands = 1,
    .max_operands = 8,
    .flags = CLI_PAGED,
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
    const char *rev = cli_operand(cli, 1);
    brc_commit *commit;
    brc_oid id;
    int rc;

    CLI_TRY(cli_open(cli, BRC_OPEN_READONLY));
    CLI_TRY(brc_resolve(&id, cli->repo, rev ? rev : "HEAD", &cli->err));
    CLI_TRY(brc_commit_read(&commit, cli->repo, &id, &cli->err));
    rc = show_commit(cli, commit);
    brc_commit_free(commit);
    return rc;
}

const struct cli_command cli_command_show = {
    .name = "show",
    .group = "Versions",
    .summary = "show one commit and its changes",
    .usage = "FILE [REV] [--stat] [--elements]",
    .details = "REV is HEAD if it is left out. The commit is compared with its first parent.",
    .examples = "breccia show climate.brc v1.0\nbreccia show climate.brc main~2 --json",
    .options = show_options,
    .min_operands = 1,
    .max_operands = 2,
    .flags = CLI_POOL | CLI_REV | CLI_PAGED,
    .run = run_show,
};
