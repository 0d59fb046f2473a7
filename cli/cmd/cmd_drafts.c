/*
 * cmd_drafts.c - drafts: uncommitted changes of the whole file, and whose they are.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "../values.h"
#include "../cli.h"
#include "commands.h"

static const struct cli_option drafts_options[] = {
    { "adopt", 0, 1, "ID", "make a private draft the uncommitted changes of its branch" },
    { "drop", 0, 1, "ID", "drop these uncommitted changes" },
    CLI_OPTIONS_END
};

static const char *owner_name(const brc_draft *draft)
{
    if (!(draft->flags & BRC_DRAFT_OWNED))
        return "shared";
    return draft->owner == BRC_OWNER_ALIVE  ? "running"
           : draft->owner == BRC_OWNER_DEAD ? "ended"
                                            : "unknown";
}

static void put_draft_json(struct cli *cli, const brc_draft *draft)
{
    char time[CLI_TIME_CAP];

    cli_json_open(cli, '{');
    cli_json_member_int(cli, "id", draft->id);
    cli_json_member(cli, "branch", draft->branch);
    if (draft->flags & BRC_DRAFT_MERGING) {
        cli_json_member_bool(cli, "merge", 1);
        cli_json_member(cli, "op", draft->op);
    }
    cli_json_member_bool(cli, "private", (draft->flags & BRC_DRAFT_OWNED));
    if ((draft->flags & BRC_DRAFT_OWNED)) {
        cli_json_member(cli, "process", owner_name(draft));
        cli_json_member_int(cli, "pid", draft->owner_pid);
    }
    if (draft->flags & BRC_DRAFT_REWRITING)
        cli_json_member(cli, "rewrite", draft->array);
    if (draft->flags & BRC_DRAFT_CHILD) {
        cli_json_member_int(cli, "parent", draft->parent);
        cli_json_member_bool(cli, "orphan", (draft->flags & BRC_DRAFT_ORPHAN));
    }
    cli_json_member_bool(cli, "stale", (draft->flags & BRC_DRAFT_STALE));
    cli_json_member(cli, "time", cli_format_time(time, draft->time_us));
    cli_json_member_int(cli, "nodes", (int64_t)draft->nodes);
    cli_json_close(cli, '{');
}

/* And how that ends. Nobody's draft is what is kept of a branch that went. */
static void put_stale_text(struct cli *cli, const brc_draft *draft)
{
    if (draft->flags & BRC_DRAFT_STALE) {
        cli_puts(cli, "; the branch has moved since");
        if (draft->flags & BRC_DRAFT_MERGING)
            cli_printf(cli, ": 'breccia %s --continue' merges it", draft->op);
        else if (!(draft->flags & BRC_DRAFT_OWNED))
            cli_puts(cli, ": 'breccia commit' merges them");
        else if (draft->owner_pid != 0 && draft->owner == BRC_OWNER_DEAD &&
                 !(draft->flags & BRC_DRAFT_REWRITING))
            cli_puts(cli, ": --adopt merges them");
    }
    cli_puts(cli, "\n");
}

static void put_draft_text(struct cli *cli, const brc_draft *draft)
{
    char time[CLI_TIME_CAP];

    cli_printf(cli, "%" PRId64 "  %s  %s  %s", draft->id, cli_escaped(cli, draft->branch),
               cli_format_time(time, draft->time_us), cli_count(cli, draft->nodes, "node"));
    if (draft->flags & BRC_DRAFT_REWRITING)
        cli_printf(cli, ", an unfinished rewrite of %s", cli_escaped(cli, draft->array));
    if (draft->flags & BRC_DRAFT_CHILD)
        cli_printf(cli, draft->flags & BRC_DRAFT_ORPHAN
                            ? ", left of a child of %" PRId64 ", which has ended"
                            : ", a child of %" PRId64,
                   draft->parent);
    if (draft->flags & BRC_DRAFT_MERGING)
        cli_printf(cli, ", an open %s", draft->op);
    else if (!(draft->flags & BRC_DRAFT_OWNED))
        cli_puts(cli, ", shared");
    else if (draft->owner_pid != 0)
        cli_printf(cli, ", private: process %" PRId64 ", %s", draft->owner_pid, owner_name(draft));
    else
        cli_puts(cli, ", private: process unknown");
    put_stale_text(cli, draft);
}

static int list_drafts(struct cli *cli)
{
    brc_iter *it;
    const brc_draft *draft;
    int rc, any = 0;

    CLI_TRY(cli_open(cli, BRC_OPEN_READONLY));
    CLI_TRY(brc_drafts(&it, cli->repo, &cli->err));
    if (cli->json)
        cli_json_open(cli, '[');
    while ((rc = brc_drafts_next(it, &draft, &cli->err)) > 0) {
        any = 1;
        if (cli->json)
            put_draft_json(cli, draft);
        else
            put_draft_text(cli, draft);
    }
    brc_iter_free(it);
    if (rc < 0)
        return rc;
    if (cli->json)
        cli_json_close(cli, '[');
    else if (!any)
        cli_say(cli, "nothing is uncommitted");
    return BRC_OK;
}

static int draft_number(struct cli *cli, const char *text, int64_t *out)
{
    char *end;

    *out = strtoll(text, &end, 10);
    if (*end != '\0' || *out <= 0)
        return cli_usage(cli, "'%s' is not the number of a draft: 'breccia drafts' lists them",
                         text);
    return BRC_OK;
}

/* What was in conflict with what is new on its branch lies under that still. */
static int say_adopted(struct cli *cli, int64_t id)
{
    brc_iter *it;
    const brc_draft *draft;
    int rc, stale = 0;

    CLI_TRY(brc_drafts(&it, cli->repo, &cli->err));
    while ((rc = brc_drafts_next(it, &draft, &cli->err)) > 0)
        stale |= draft->id == id && (draft->flags & BRC_DRAFT_STALE);
    brc_iter_free(it);
    cli_say(cli, stale ? "adopted draft %" PRId64 ": it conflicts with what is new on its branch, "
                         "and 'breccia commit' lists where"
                       : "adopted draft %" PRId64 ": 'breccia status' shows it",
            id);
    return rc;
}

static int change_draft(struct cli *cli, const char *text, int adopt)
{
    int64_t id;

    CLI_TRY(draft_number(cli, text, &id));
    CLI_TRY(cli_open(cli, 0));
    CLI_TRY(adopt ? brc_draft_adopt(cli->repo, id, &cli->err)
                  : brc_draft_drop(cli->repo, id, &cli->err));
    if (adopt)
        CLI_TRY(say_adopted(cli, id));
    else
        cli_say(cli, "dropped draft %" PRId64 "; what it stored stays in the file until it is "
                     "collected",
                id);
    if (cli->json) {
        cli_json_open(cli, '{');
        cli_json_member_int(cli, adopt ? "adopted" : "dropped", id);
        cli_json_close(cli, '{');
    }
    return BRC_OK;
}

static int run_drafts(struct cli *cli)
{
    const char *adopt = cli_value(cli, "adopt"), *drop = cli_value(cli, "drop");

    if (adopt && drop)
        return cli_usage(cli, "give only one of --adopt and --drop");
    if (adopt || drop)
        return change_draft(cli, adopt ? adopt : drop, adopt != NULL);
    return list_drafts(cli);
}

const struct cli_command cli_command_drafts = {
    .name = "drafts",
    .group = "Versions",
    .summary = "list uncommitted changes of the whole file",
    .usage = "FILE\nFILE --adopt ID\nFILE --drop ID",
    .details = "A branch has one draft that everybody shares; a program may have private ones\n"
               "beside it. Those of a program that ended in the middle stay: adopt or drop them.\n"
               "An unfinished rewrite of an array, of which nothing can be used, is dropped.\n"
               "What is adopted is merged onto what is new on its branch; where it is in\n"
               "conflict with that, 'commit' lists the conflicts.",
    .examples = "breccia drafts climate.brc\nbreccia drafts climate.brc --adopt 7",
    .options = drafts_options,
    .min_operands = 1,
    .max_operands = 1,
    .run = run_drafts,
};
