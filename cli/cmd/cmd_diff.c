/*
 * cmd_diff.c - status and diff: lists of differences.
 */
#include "../cli.h"
#include "../select.h"
#include "changes.h"
#include "commands.h"
#include "history.h"
#include "pictures.h"

#include <string.h>

/* ---- status ---------------------------------------------------------------------- */

/* Lists uncommitted keys of the Zarr store view that belong to no node or chunk. */
static int put_loose_keys(struct cli *cli)
{
    brc_iter *it;
    const char *key;
    size_t n = 0;
    int rc;

    CLI_TRY(brc_keys(&it, cli->session, "", BRC_KEYS_LOOSE, &cli->err));
    cli_begin(cli, "keys", '[');
    while ((rc = brc_next(it, &key, &cli->err)) > 0) {
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
                     .tail = state->conflicts == 1 ? " conflict open" : " conflicts open" }));
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

/* Warns if places of chunks are not there. Looks at them only, and counts nothing. */
static int put_missing_places(struct cli *cli)
{
    const brc_backend_facts *facts;
    const char *first = NULL;
    uint64_t missing = 0;
    int rc;

    CLI_TRY(brc_backends(&cli->iter, cli->repo, BRC_BACKENDS_QUICK, &cli->err));
    while ((rc = brc_next(cli->iter, &facts, &cli->err)) == 1) {
        if (facts->nfaults > 0 && !first)
            first = cli_text(cli, "%s", facts->faults[0].why);
        missing += facts->nfaults;
    }
    brc_iter_free(cli->iter);
    cli->iter = NULL;
    cli_put_members(
        cli, CLI_FIELDS({ "missing_places", CLI_OF(missing), .optional = 1 },
                        { NULL, CLI_OF(first), .lead = "Chunks are missing: ",
                          .tail = "\n  bring them back ('breccia backend FILE' lists the places); "
                                  "then 'breccia repack FILE --backend inline' takes everything "
                                  "into FILE" }));
    return rc;
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
    CLI_TRY(put_missing_places(cli));
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
    { "values", 0, 1, "N", "show N of the elements that differ, and count them all (10)" },
    { "atol", 0, 1, "X", "numbers differ only by more than X + rtol * |new|" },
    { "rtol", 0, 1, "X", "the same, in proportion to the new number" },
    { "chunks", 0, 0, NULL, "list the chunks that hold elements that differ" },
    { "exit-code", 0, 0, NULL, "exit with 1 if values or metadata differ, with 2 or more after an "
                               "error" },
    { "image", 0, 0, NULL, "draw old, new and difference of the array PATH" },
    { "output", 'o', 1, "FILE", "with --image: write a PNG instead" },
    CLI_PICTURE_OPTIONS,
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

/* Opens FILE, and takes the SLICE off the PATH if it follows at once. */
static int open_to_compare(struct cli *cli, struct cli_changes *changes, const char **slice)
{
    CLI_TRY(cli_open(cli, BRC_OPEN_READONLY));
    if (*slice || !changes->path || !strpbrk(changes->path, "[{"))
        return BRC_OK;
    CLI_TRY(brc_session_open(&cli->session, cli->repo, changes->b,
                             changes->b ? BRC_SESSION_AT : BRC_SESSION_VIEW, &cli->err));
    return cli_split_slice(cli, &changes->path, slice);
}

/* Draws the array that the operands after "--" name, or a SLICE of it. */
static int draw_difference(struct cli *cli, struct cli_changes *changes, const char *slice)
{
    static const char *const others[] = { "stat", "elements", "values", "atol", "rtol", "chunks",
                                          "exit-code", "json" };
    const char *file = cli_value(cli, "output");

    if (!changes->path)
        return cli_usage(cli, "--image needs the PATH of an array after --");
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        if (cli_has(cli, others[i]))
            return cli_usage(cli, "--image draws, and lists nothing: leave out --%s", others[i]);
    if (file && cli_has(cli, "draw"))
        return cli_usage(cli, "--draw is for the terminal, and a PNG goes to a file");
    CLI_TRY(open_to_compare(cli, changes, &slice));
    return cli_put_difference(cli, changes->path, slice, changes->a, changes->b, file);
}

enum { FEW_VALUES = 10 };

/* Reads what is to be said of the elements. */
static int read_element_options(struct cli *cli, struct cli_changes *changes, int slice)
{
    const int asked = cli_has(cli, "values");

    changes->values = changes->stat || changes->silent ? 0 : FEW_VALUES;
    CLI_TRY(cli_uint_option(cli, "values", 0, UINT64_MAX, &changes->values));
    CLI_TRY(cli_double_option(cli, "atol", &changes->atol));
    CLI_TRY(cli_double_option(cli, "rtol", &changes->rtol));
    changes->close = cli_has(cli, "atol") || cli_has(cli, "rtol");
    changes->chunks = cli_has(cli, "chunks");
    changes->values_asked = asked && changes->values > 0;
    changes->elements = cli_has(cli, "elements") || changes->close || changes->chunks ||
                        changes->values_asked || slice;
    return BRC_OK;
}

/* Reads SLICE by the shape of the new version, or of the old one if only that has the array. */
static int read_slice(struct cli *cli, struct cli_changes *changes, const char *slice, brc_sel *sel)
{
    const char *const revs[] = { changes->b, changes->a ? changes->a : "HEAD" };
    int kind = 0;

    for (int i = 0; i < 2 && kind == 0; i++) {
        brc_session_free(cli->session);
        cli->session = NULL;
        CLI_TRY(brc_session_open(&cli->session, cli->repo, revs[i],
                                 revs[i] ? BRC_SESSION_AT : BRC_SESSION_VIEW, &cli->err));
        CLI_TRY(brc_node_kind(&kind, cli->session, changes->path, &cli->err));
    }
    CLI_TRY(brc_array_open(&cli->array, cli->session, changes->path, &cli->err));
    changes->sel = sel;
    return cli_select(cli, slice, sel);
}

static int list_differences(struct cli *cli, struct cli_changes *changes, const char *slice)
{
    brc_sel sel = BRC_SEL_INIT;

    CLI_TRY(open_to_compare(cli, changes, &slice));
    CLI_TRY(read_element_options(cli, changes, slice != NULL));
    if (slice)
        CLI_TRY(read_slice(cli, changes, slice, &sel));
    cli_begin(cli, NULL, '{');
    CLI_TRY(cli_put_changes(cli, changes));
    cli_finish(cli, '{');
    return cli_has(cli, "exit-code") && changes->differing > 0;
}

static int run_diff(struct cli *cli)
{
    size_t revs = cli->args.before_dashes, paths = cli->args.noperands - revs;
    const char *slice = paths == 2 ? cli_operand(cli, revs + 1) : NULL;
    struct cli_changes changes = { .stat = cli_has(cli, "stat"), .silent = cli->quiet };

    if (cli_has(cli, "exit-code"))
        cli->failed_status = 2;
    if (revs < 1)
        return cli_usage(cli, "FILE comes before --");
    if (revs > 3)
        return cli_usage(cli, "diff takes at most two versions; PATH comes after --");
    if (paths > 2)
        return cli_usage(cli, "diff takes only PATH and SLICE after --");
    CLI_TRY(read_versions(cli, &changes, revs - 1));
    changes.path = paths ? cli_path(cli, cli_operand(cli, revs)) : NULL;
    if (cli_has(cli, "image"))
        return draw_difference(cli, &changes, slice);
    if (cli_has(cli, "output") || cli_has(cli, "cmap") || cli_has(cli, "limits") ||
        cli_has(cli, "draw"))
        return cli_usage(cli, "--output, --cmap, --limits and --draw need --image");
    return list_differences(cli, &changes, slice);
}

const struct cli_command cli_command_diff = {
    .name = "diff",
    .group = "Versions",
    .summary = "show what differs between two versions",
    .usage = "FILE [-- PATH [SLICE]]\n"
             "FILE A [-- PATH [SLICE]]\n"
             "FILE A B [-- PATH [SLICE]]\n"
             "FILE A..B [-- PATH [SLICE]]\n"
             "FILE [A [B]] --image [-o x.png] [OPTIONS] -- PATH [SLICE]",
    .details = "Compares A with B. Without B, A is compared with the uncommitted state; without\n"
               "A too, HEAD is. A..B means A B, where a missing A or B is HEAD. PATH limits the\n"
               "comparison to that node and all nodes under it, SLICE to elements of the array\n"
               "PATH. A node with the same values that is stored differently (codecs, backend,\n"
               "padding of chunks beyond the array's end) is listed as 'storage only';\n"
               "--exit-code does not count such a node. --quiet lists nothing.\n"
               "\n"
               "The first elements that differ are shown as '[17] 4 \xe2\x86\x92 3'; --values 0\n"
               "leaves them out, and then no chunk is read. --elements, --values N, --atol,\n"
               "--rtol, --chunks and SLICE count all elements that differ: bit by bit, or with\n"
               "--atol or --rtol by NumPy's isclose(), where two NaNs are equal, and a record\n"
               "equals another if all its fields do.\n"
               "\n"
               "--image draws the array PATH, or SLICE of it, in both versions with the same\n"
               "limits, and the difference from blue over white to red; the options are those of\n"
               "'read --image'.",
    .examples = "breccia diff climate.brc\n"
                "breccia diff climate.brc v1.0 main --stat -- /t2m\n"
                "breccia diff climate.brc main~1 main --elements --exit-code\n"
                "breccia diff climate.brc main~1 main --rtol 1e-6 --values 5 -- /t2m '[-1]'\n"
                "breccia diff climate.brc main~1 main --image -- /t2m '[-1]'",
    .options = diff_options,
    .min_operands = 1,
    .max_operands = 6,
    .flags = CLI_POOL | CLI_REV | CLI_PAGED,
    .run = run_diff,
};
