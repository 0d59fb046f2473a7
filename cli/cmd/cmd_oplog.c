/*
 * cmd_oplog.c - oplog and undo: every change of a branch or tag, and the way back.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../cli.h"
#include "commands.h"
#include "history.h"

/* Prints "12  2026-11-20T12:00:00.000000Z  commit  main  id1 -> id2". */
static int put_op(struct cli *cli, struct cli_list *list, const brc_op *op)
{
    const int is_tag = (op->flags & BRC_OP_TAG) != 0, moves = !(op->flags & BRC_OP_SWITCH);

    return cli_list_put(
        cli, list,
        CLI_FIELDS({ "id", CLI_OF(op->id) },
                   { "operation", CLI_OF(op->operation), .lead = "", .color = CLI_YELLOW },
                   { "time", CLI_OF(op->time_us), CLI_AS_TIME, .lead = "  " },
                   { "op", CLI_OF(op->what), .lead = "  ", .width = 8 },
                   { "kind", CLI_WORD(is_tag ? "tag" : "branch"), .lead = is_tag ? "" : NULL,
                     .tail = " " },
                   { "name", CLI_OF(op->name), .lead = "" },
                   { "old", CLI_OF(op->from), .lead = moves ? "  " : NULL, .none = "-" },
                   { "new", CLI_OF(op->to), .lead = moves ? " -> " : NULL, .none = "-" },
                   { "undoes", CLI_OF(op->undoes), .optional = 1, .lead = "  takes back " },
                   { "restores", CLI_OF(op->restores), .optional = 1, .lead = "  restores what ",
                     .tail = " took back" },
                   { "draft", CLI_OF(op->draft), .optional = 1, .lead = "  keeps draft " }));
}

static const struct cli_option oplog_options[] = {
    { "number", 'n', 1, "N", "show at most N changes" },
    CLI_OPTIONS_END
};

static int run_oplog(struct cli *cli)
{
    uint64_t limit = UINT64_MAX;
    struct cli_list list;
    const brc_op *op;
    int rc = 0;

    CLI_TRY(cli_uint_option(cli, "number", 0, UINT64_MAX, &limit));
    CLI_TRY(cli_open(cli, BRC_OPEN_READONLY));
    CLI_TRY(brc_oplog(&cli->iter, cli->repo, &cli->err));
    cli_list_begin(cli, &list, NULL, 0);
    while (list.n < limit && (rc = brc_oplog_next(cli->iter, &op, &cli->err)) > 0)
        CLI_TRY(put_op(cli, &list, op));
    return cli_list_end(cli, &list, rc < 0 ? rc : BRC_OK);
}

const struct cli_command cli_command_oplog = {
    .name = "oplog",
    .group = "Versions",
    .summary = "list every change of a branch or tag, newest first",
    .usage = "FILE [-n N]",
    .details = "Each line begins with the number of its operation: the changes of one command,\n"
               "which 'undo' takes back together. A switch has two lines: the branch before and\n"
               "the branch after.",
    .examples = "breccia oplog climate.brc -n 10\nbreccia oplog climate.brc --json",
    .options = oplog_options,
    .min_operands = 1,
    .max_operands = 1,
    .run = run_oplog,
};

/* ---- undo ------------------------------------------------------------------------ */

static const struct cli_option undo_options[] = {
    { "redo", 0, 0, NULL, "take back the last undo instead" },
    { "expect", 0, 1, "N", "fail unless operation N is the one to take back or restore" },
    CLI_OPTIONS_END
};

/* The changes of an undo or redo, and the operation that it took back or did again. */
struct undone {
    int64_t operation, target;
    const char *what; /* the kind of that operation; NULL if the log does not have it */
    const char *lines; /* one for each change, with "\n" before it */
    const char *branches; /* the changed ones: "|main|side|" */
};

static const char *undone_line(struct cli *cli, const brc_op *op, const struct cli_refs *refs)
{
    const int is_tag = (op->flags & BRC_OP_TAG) != 0;
    const char *kind = is_tag ? "tag" : "branch", *name = cli_escaped(cli, op->name);
    const char *was = "";
    int there = 0;

    if (cli_has_id(&op->from))
        was = cli_text(cli, " (was %s)", cli_short_id(cli, &op->from));
    if (cli_has_id(&op->to))
        return cli_text(cli, "\n%s %s is at %s%s", kind, name, cli_short_id(cli, &op->to), was);
    for (size_t i = 0; i < refs->n; i++)
        there |= !refs->refs[i].is_tag == !is_tag && strcmp(refs->refs[i].name, op->name) == 0;
    return cli_text(cli, "\n%s %s %s%s", kind, name, there ? "has no commit" : "is gone", was);
}

static void read_undone_row(struct cli *cli, const brc_op *op, const struct cli_refs *refs,
                            struct undone *out, int *switches)
{
    const int is_switch = (op->flags & BRC_OP_SWITCH) != 0;

    out->target = op->undoes ? op->undoes : op->restores;
    out->branches = cli_text(cli, "%s|%s|", out->branches, op->name);
    if (!is_switch)
        out->lines = cli_text(cli, "%s%s", undone_line(cli, op, refs), out->lines);
    else if ((*switches)++ % 2 == 0) /* the later of the two entries of a switch */
        out->lines = cli_text(cli, "\non branch %s%s", cli_escaped(cli, op->name), out->lines);
}

/* The target of a redo is an undo, which in turn names the operation that was done again. */
static int read_undone(struct cli *cli, struct undone *out)
{
    const brc_op *op;
    struct cli_refs refs;
    int rc, switches = 0;

    CLI_TRY(cli_refs_read(cli, &refs));
    CLI_TRY(brc_oplog(&cli->iter, cli->repo, &cli->err));
    while ((rc = brc_oplog_next(cli->iter, &op, &cli->err)) > 0 && !out->what) {
        if (op->operation == out->operation)
            read_undone_row(cli, op, &refs, out, &switches);
        else if (op->operation == out->target && op->undoes)
            out->target = op->undoes;
        else if (op->id == out->target)
            out->what = cli_text(cli, "%s", op->what);
    }
    brc_iter_free(cli->iter);
    cli->iter = NULL;
    return rc < 0 ? rc : BRC_OK;
}

static const char *how_it_ends(struct cli *cli, const brc_draft *draft)
{
    if (draft->flags & BRC_DRAFT_MERGING)
        return cli_text(cli, "'breccia %s --continue' merges the draft onto the branch", draft->op);
    return draft->flags & BRC_DRAFT_OWNED ? "its commit merges the draft onto the branch"
                                          : "'breccia commit' merges the draft onto the branch";
}

/* Lists the drafts of changed branches that lie over another commit now. */
static int put_stale(struct cli *cli, const struct undone *undone)
{
    struct cli_list list;
    const brc_draft *draft;
    int rc;

    CLI_TRY(brc_drafts(&cli->iter, cli->repo, &cli->err));
    cli_list_begin(cli, &list, "drafts", CLI_SAID);
    while ((rc = brc_drafts_next(cli->iter, &draft, &cli->err)) > 0)
        if (draft->flags & BRC_DRAFT_STALE &&
            strstr(undone->branches, cli_text(cli, "|%s|", draft->branch)))
            CLI_TRY(cli_list_put(
                cli, &list,
                CLI_FIELDS({ "id", CLI_OF(draft->id), .lead = "draft " },
                           { "branch", CLI_OF(draft->branch), .lead = " of " },
                           { NULL, CLI_OF(how_it_ends(cli, draft)),
                             .lead = " began at another commit than the branch has now: the "
                                     "draft is kept, and " })));
    return cli_list_end(cli, &list, rc);
}

static int report_undone(struct cli *cli, struct undone *undone)
{
    const char *did = cli_has(cli, "redo") ? "redone" : "undone";

    CLI_TRY(read_undone(cli, undone));
    cli_begin(cli, NULL, '{');
    cli_put_members(cli, CLI_FIELDS({ "operation", CLI_OF(undone->operation) }));
    cli_begin(cli, did, '{');
    cli_put_members(cli, CLI_FIELDS({ "operation", CLI_OF(undone->target) },
                                    { "op", CLI_OF(undone->what) }));
    cli_finish(cli, '{');
    cli_say(cli, "%s: %s (operation %" PRId64 ")%s", did, undone->what ? undone->what : "",
            undone->target, undone->lines);
    CLI_TRY(put_stale(cli, undone));
    cli_finish(cli, '{');
    return BRC_OK;
}

static int run_undo(struct cli *cli)
{
    struct undone undone = { .lines = "", .branches = "" };
    uint64_t expect = 0;

    CLI_TRY(cli_uint_option(cli, "expect", 1, INT64_MAX, &expect));
    CLI_TRY(cli_open(cli, 0));
    CLI_TRY(brc_undo(&undone.operation, cli->repo, cli_has(cli, "redo") ? BRC_UNDO_REDO : 0,
                     (int64_t)expect, &cli->err));
    cli_done(cli);
    return report_undone(cli, &undone);
}

const struct cli_command cli_command_undo = {
    .name = "undo",
    .group = "Versions",
    .summary = "take back the last change of branches and tags",
    .usage = "FILE [--redo] [--expect N]",
    .details = "Takes back the last operation of 'oplog', whatever it was: commit, reset,\n"
               "branch -D, merge, switch ... The next undo goes one operation further back;\n"
               "--redo goes forward again, until another operation comes between. If a branch\n"
               "or tag has been moved since, nothing happens. Uncommitted changes stay as they\n"
               "are; the uncommitted changes of a deleted branch come back with the branch.",
    .examples = "breccia undo climate.brc\nbreccia undo climate.brc --redo",
    .options = undo_options,
    .min_operands = 1,
    .max_operands = 1,
    .run = run_undo,
};
