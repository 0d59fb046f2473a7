/*
 * cmd_oplog.c - oplog and undo: every change of a branch or tag, and the way back.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../cli.h"
#include "commands.h"
#include "history.h"

/* Returns "takes back 11", "restores what 17 took back" and "keeps draft 3", or NULL. */
static const char *op_words(struct cli *cli, const brc_op *op)
{
    const char *words = "";

    if (op->undoes)
        words = cli_text(cli, "  takes back %lld", (long long)op->undoes);
    if (op->restores)
        words = cli_text(cli, "%s  restores what %lld took back", words, (long long)op->restores);
    if (op->draft)
        words = cli_text(cli, "%s  keeps draft %lld", words, (long long)op->draft);
    return words[0] ? words + 2 : NULL;
}

/* Prints "12  2026-11-20T12:00:00.000000Z  commit  main  id1 -> id2". */
static int put_op(struct cli *cli, struct cli_list *list, const brc_op *op)
{
    enum { NARROW = 84, TO_SECONDS = 19 };
    const int is_tag = (op->flags & BRC_OP_TAG) != 0, moves = !(op->flags & BRC_OP_SWITCH);
    const int is_narrow = cli->out.columns > 0 && cli->out.columns < NARROW;
    char time[CLI_TIME_CAP];
    const char *when = cli_format_time(time, op->time_us);

    if (is_narrow)
        when = cli_text(cli, "%.*sZ", TO_SECONDS, time);

    return cli_list_put(
        cli, list,
        CLI_FIELDS({ "id", CLI_OF(op->id) },
                   { "operation", CLI_OF(op->operation), .lead = "", .color = CLI_YELLOW },
                   { "time", CLI_OF(op->time_us), CLI_AS_TIME },
                   { NULL, CLI_OF(when), .lead = "  " },
                   { "op", CLI_OF(op->what), .lead = "  ", .width = 8 },
                   { "kind", CLI_WORD(is_tag ? "tag" : "branch"), .lead = is_tag ? "" : NULL,
                     .tail = " " },
                   { "name", CLI_OF(op->name), .lead = "", .narrow = CLI_CUT_END },
                   { "old", CLI_OF(op->from), .lead = moves ? "  " : NULL, .none = "-" },
                   { "new", CLI_OF(op->to), .lead = moves ? " -> " : NULL, .none = "-" },
                   { "undoes", CLI_OF(op->undoes), .optional = 1 },
                   { "restores", CLI_OF(op->restores), .optional = 1 },
                   { "draft", CLI_OF(op->draft), .optional = 1 },
                   { NULL, CLI_OF(op_words(cli, op)), .optional = 1, .lead = "  ",
                     .narrow = CLI_WRAPPED }));
}

static const struct cli_option oplog_options[] = {
    { "number", 'n', 1, "N", "show at most N changes" },
    { "uncommitted", 'u', 0, NULL, "list what 'undo' can take back of uncommitted changes" },
    CLI_OPTIONS_END
};

static int put_draft_op(struct cli *cli, struct cli_list *list, const brc_draft_op *op)
{
    const int undone = (op->flags & BRC_DRAFT_OP_UNDONE) != 0;

    return cli_list_put(
        cli, list,
        CLI_FIELDS({ "id", CLI_OF(op->id) },
                   { "time", CLI_OF(op->time_us), CLI_AS_TIME, .lead = "" },
                   { "after", CLI_OF(op->after) },
                   { "branch", CLI_OF(op->branch), .lead = "  " },
                   { "operation", CLI_OF(op->text), .lead = "  " },
                   { "undone", CLI_OF(undone), .optional = 1 },
                   { NULL, CLI_WORD("taken back"), .lead = undone ? "  " : NULL }));
}

static int list_uncommitted(struct cli *cli, uint64_t limit)
{
    struct cli_list list;
    const brc_draft_op *op;
    int rc = 0;

    CLI_TRY(brc_draft_log(&cli->iter, cli->repo, &cli->err));
    cli_list_begin(cli, &list, NULL, 0);
    while (list.n < limit && (rc = brc_next(cli->iter, &op, &cli->err)) > 0)
        CLI_TRY(put_draft_op(cli, &list, op));
    return cli_list_end(cli, &list, rc < 0 ? rc : BRC_OK);
}

static int run_oplog(struct cli *cli)
{
    uint64_t limit = UINT64_MAX;
    struct cli_list list;
    const brc_op *op;
    int rc = 0;

    CLI_TRY(cli_uint_option(cli, "number", 0, UINT64_MAX, &limit));
    CLI_TRY(cli_open(cli, BRC_OPEN_READONLY));
    if (cli_has(cli, "uncommitted"))
        return list_uncommitted(cli, limit);
    CLI_TRY(brc_oplog(&cli->iter, cli->repo, &cli->err));
    cli_list_begin(cli, &list, NULL, 0);
    while (list.n < limit && (rc = brc_next(cli->iter, &op, &cli->err)) > 0)
        CLI_TRY(put_op(cli, &list, op));
    return cli_list_end(cli, &list, rc < 0 ? rc : BRC_OK);
}

const struct cli_command cli_command_oplog = {
    .name = "oplog",
    .group = "Versions",
    .summary = "list every change of a branch or tag, newest first",
    .usage = "FILE [-n N] [--uncommitted]",
    .details = "Each line begins with the number of its operation: the changes of one command,\n"
               "which 'undo' takes back together. A switch has two lines: the branch before and\n"
               "the branch after. With --uncommitted: the last commands that changed what is\n"
               "not committed, 4 to 8 of them on a branch, until the commit.",
    .examples = "breccia oplog climate.brc -n 10\nbreccia oplog climate.brc --uncommitted",
    .options = oplog_options,
    .min_operands = 1,
    .max_operands = 1,
    .flags = CLI_PAGED,
    .run = run_oplog,
};

/* ---- undo ------------------------------------------------------------------------ */

static const struct cli_option undo_options[] = {
    { "redo", 0, 0, NULL, "take back the last undo instead" },
    { "expect", 0, 1, "N", "fail unless operation N is the one to take back or restore" },
    { "dry-run", 0, 0, NULL, "only say what would be taken back" },
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
    while ((rc = brc_next(cli->iter, &op, &cli->err)) > 0 && !out->what) {
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
    while ((rc = brc_next(cli->iter, &draft, &cli->err)) > 0)
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

/* Finds what an operation on uncommitted changes did, and where; id: the number of brc_undo(). */
static int read_draft_op(struct cli *cli, int64_t id, const char **text, const char **branch)
{
    const brc_draft_op *op;
    int rc;

    *text = *branch = "";
    CLI_TRY(brc_draft_log(&cli->iter, cli->repo, &cli->err));
    while ((rc = brc_next(cli->iter, &op, &cli->err)) > 0)
        if (op->id == -id) {
            *text = cli_text(cli, "%s", op->text);
            *branch = cli_text(cli, "%s", op->branch);
        }
    brc_iter_free(cli->iter);
    cli->iter = NULL;
    return rc < 0 ? rc : BRC_OK;
}

/* Reports an operation on uncommitted changes: "took back: rm /a (uncommitted)". */
static int report_draft_op(struct cli *cli, int64_t id)
{
    const int redo = cli_has(cli, "redo"), dry = cli_has(cli, "dry-run");
    const char *text, *branch, *current, *of = "", *did;

    CLI_TRY(read_draft_op(cli, id, &text, &branch));
    CLI_TRY(cli_branch(cli, &current));
    if (strcmp(branch, current) != 0)
        of = cli_text(cli, ", on branch %s", cli_escaped(cli, branch));
    did = dry ? redo ? "would do again" : "would take back" : redo ? "did again" : "took back";
    cli_begin(cli, NULL, '{');
    if (dry)
        cli_put_members(cli, CLI_FIELDS({ "dry_run", CLI_OF(1) }));
    cli_begin(cli, redo ? "redone" : "undone", '{');
    cli_put_members(cli, CLI_FIELDS({ "uncommitted", CLI_OF(text) }, { "branch", CLI_OF(branch) }));
    cli_finish(cli, '{');
    cli_say(cli, "%s: %s (uncommitted%s)", did, cli_escaped(cli, text), of);
    cli_finish(cli, '{');
    return BRC_OK;
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

/* Sets *what to the kind of an operation, or to "" if the log does not have the operation. */
static int read_kind(struct cli *cli, int64_t operation, const char **what)
{
    const brc_op *op;
    int rc;

    *what = "";
    CLI_TRY(brc_oplog(&cli->iter, cli->repo, &cli->err));
    while ((rc = brc_next(cli->iter, &op, &cli->err)) > 0 && op->operation >= operation)
        if (op->operation == operation)
            *what = cli_text(cli, "%s", op->what);
    brc_iter_free(cli->iter);
    cli->iter = NULL;
    return rc < 0 ? rc : BRC_OK;
}

/* Sets *clean to 0 if the current branch has uncommitted changes. */
static int read_clean(struct cli *cli, int *clean)
{
    int rc;

    CLI_TRY(brc_session_open(&cli->session, cli->repo, NULL, BRC_SESSION_VIEW, &cli->err));
    rc = brc_session_clean(clean, cli->session, &cli->err);
    brc_session_free(cli->session);
    cli->session = NULL;
    return rc;
}

/* Users who removed or wrote something without a commit may expect undo to take this back. */
static int note_uncommitted(struct cli *cli, int64_t operation)
{
    const char *what;

    CLI_TRY(read_kind(cli, operation, &what));
    cli_note(cli, cli_text(cli, "uncommitted changes stay: undo takes back operation %" PRId64
                                ", %s; 'breccia restore FILE PATH' takes back uncommitted changes",
                           operation, what));
    return BRC_OK;
}

static int report_dry_run(struct cli *cli, int64_t operation)
{
    const char *did = cli_has(cli, "redo") ? "redone" : "undone", *what;

    CLI_TRY(read_kind(cli, operation, &what));
    cli_begin(cli, NULL, '{');
    cli_put_members(cli, CLI_FIELDS({ "dry_run", CLI_OF(1) }));
    cli_begin(cli, did, '{');
    cli_put_members(cli, CLI_FIELDS({ "operation", CLI_OF(operation) }, { "op", CLI_OF(what) }));
    cli_finish(cli, '{');
    cli_say(cli, "would be %s: %s (operation %" PRId64 ")", did, what, operation);
    cli_finish(cli, '{');
    return BRC_OK;
}

static int run_undo(struct cli *cli)
{
    const uint32_t flags = cli_has(cli, "redo") ? BRC_UNDO_REDO : 0;
    const int dry = cli_has(cli, "dry-run");
    struct undone undone = { .lines = "", .branches = "" };
    uint64_t given = 0;
    int64_t expect;
    int clean = 1;

    CLI_TRY(cli_uint_option(cli, "expect", 1, INT64_MAX, &given));
    expect = (int64_t)given;
    CLI_TRY(cli_open(cli, 0));
    if (!flags && !expect)
        CLI_TRY(read_clean(cli, &clean));
    if (dry || !clean) {
        int64_t operation;

        CLI_TRY(brc_undo(&operation, cli->repo, flags | BRC_UNDO_DRY_RUN, expect, &cli->err));
        if (!clean && operation > 0)
            CLI_TRY(note_uncommitted(cli, operation));
        if (dry)
            return operation < 0 ? report_draft_op(cli, operation) : report_dry_run(cli, operation);
        expect = operation; /* the note has named this one */
    }
    CLI_TRY(brc_undo(&undone.operation, cli->repo, flags, expect, &cli->err));
    cli_done(cli);
    return undone.operation < 0 ? report_draft_op(cli, undone.operation)
                                : report_undone(cli, &undone);
}

const struct cli_command cli_command_undo = {
    .name = "undo",
    .group = "Versions",
    .summary = "take back the last command that changed something",
    .usage = "FILE [--redo] [--expect N] [--dry-run]",
    .details = "Takes back the last write, rm, restore or the like that is not committed\n"
               "('oplog --uncommitted'), or the last operation of 'oplog': commit, reset,\n"
               "branch -D, merge, switch ..., whichever came later. The next undo goes one\n"
               "operation further back; --redo goes forward again, until another operation\n"
               "comes between. A commit ends the list of what is not committed: undo takes it\n"
               "back with all its changes. Changes that are on no list, as those of other\n"
               "programs, stay as they are. If a branch or tag has been moved since, nothing\n"
               "happens. The uncommitted changes of a deleted branch come back with it.",
    .examples = "breccia undo climate.brc\nbreccia undo climate.brc --redo",
    .options = undo_options,
    .min_operands = 1,
    .max_operands = 1,
    .run = run_undo,
};
