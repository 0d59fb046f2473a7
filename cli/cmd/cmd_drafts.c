/*
 * cmd_drafts.c - drafts: the uncommitted changes of the whole file, and their owners.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "../values.h"
#include "../cli.h"
#include "commands.h"

static const struct cli_option drafts_options[] = {
    { "adopt", 0, 1, "ID", "make a private draft the uncommitted changes of its branch" },
    { "drop", 0, 1, "ID", "drop a draft" },
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

static const char *whose_draft(struct cli *cli, const brc_draft *draft)
{
    if (draft->flags & BRC_DRAFT_MERGING)
        return cli_text(cli, "an open %s", draft->op);
    if (!(draft->flags & BRC_DRAFT_OWNED))
        return "shared";
    return draft->owner_pid != 0
               ? cli_text(cli, "private: process %" PRId64 ", %s", draft->owner_pid,
                          owner_name(draft))
               : "private: process unknown";
}

/* Returns how a draft reaches a branch that has moved; NULL if no command merges the draft. The
 * draft of a deleted branch has no process. */
static const char *how_stale_ends(struct cli *cli, const brc_draft *draft)
{
    if (!(draft->flags & BRC_DRAFT_STALE))
        return NULL;
    if (draft->flags & BRC_DRAFT_MERGING)
        return cli_text(cli, "'breccia %s --continue' merges the draft", draft->op);
    if (!(draft->flags & BRC_DRAFT_OWNED))
        return "'breccia commit' merges the draft";
    return draft->owner_pid != 0 && draft->owner == BRC_OWNER_DEAD &&
                   !(draft->flags & BRC_DRAFT_REWRITING)
               ? "--adopt merges the draft"
               : NULL;
}

static const char *whose_child(struct cli *cli, const brc_draft *draft)
{
    if (!(draft->flags & BRC_DRAFT_CHILD))
        return NULL;
    return cli_text(cli, draft->flags & BRC_DRAFT_ORPHAN
                             ? "left of a child of %" PRId64 ", which has ended"
                             : "a child of %" PRId64,
                    draft->parent);
}

static int put_draft(struct cli *cli, struct cli_list *list, const brc_draft *draft)
{
    const int owned = (draft->flags & BRC_DRAFT_OWNED) != 0;
    const int child = (draft->flags & BRC_DRAFT_CHILD) != 0;
    const int stale = (draft->flags & BRC_DRAFT_STALE) != 0;

    return cli_list_put(
        cli, list,
        CLI_FIELDS({ "id", CLI_OF(draft->id), .lead = "" },
                   { "branch", CLI_OF(draft->branch), .lead = "  " },
                   { "merge", CLI_OF((draft->flags & BRC_DRAFT_MERGING) != 0), .optional = 1 },
                   { "op", CLI_OF(draft->op), .optional = 1 },
                   { "private", CLI_OF(owned) },
                   { owned ? "process" : NULL, CLI_OF(owner_name(draft)) },
                   { owned ? "pid" : NULL, CLI_OF(draft->owner_pid) },
                   { "rewrite", CLI_OF(draft->array), .optional = 1 },
                   { child ? "parent" : NULL, CLI_OF(draft->parent) },
                   { child ? "orphan" : NULL, CLI_OF((draft->flags & BRC_DRAFT_ORPHAN) != 0) },
                   { "stale", CLI_OF(stale) },
                   { "time", CLI_OF(draft->time_us), CLI_AS_TIME, .lead = "  " },
                   { "nodes", CLI_OF(draft->nodes), .lead = "  ", .noun = "node" },
                   { NULL, CLI_OF(draft->array), .lead = ", an unfinished rewrite of " },
                   { NULL, CLI_OF(whose_child(cli, draft)), .lead = ", " },
                   { NULL, CLI_OF(whose_draft(cli, draft)), .lead = ", " },
                   { NULL, CLI_OF(stale), .lead = "; the branch has moved since" },
                   { NULL, CLI_OF(how_stale_ends(cli, draft)), .lead = ": " }));
}

static int list_drafts(struct cli *cli)
{
    struct cli_list list;
    const brc_draft *draft;
    int rc;

    CLI_TRY(cli_open(cli, BRC_OPEN_READONLY));
    CLI_TRY(brc_drafts(&cli->iter, cli->repo, &cli->err));
    cli_list_begin(cli, &list, NULL, 0);
    while ((rc = brc_next(cli->iter, &draft, &cli->err)) > 0)
        CLI_TRY(put_draft(cli, &list, draft));
    CLI_TRY(cli_list_end(cli, &list, rc));
    if (list.n == 0)
        cli_say(cli, "no drafts");
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

/* An adopted draft that conflicts with the new version of its branch is still stale. */
static int say_adopted(struct cli *cli, int64_t id)
{
    brc_iter *it;
    const brc_draft *draft;
    int rc, stale = 0;

    CLI_TRY(brc_drafts(&it, cli->repo, &cli->err));
    while ((rc = brc_next(it, &draft, &cli->err)) > 0)
        stale |= draft->id == id && (draft->flags & BRC_DRAFT_STALE);
    brc_iter_free(it);
    cli_say(cli, stale ? "adopted draft %" PRId64 ": the draft conflicts with the new version of "
                         "its branch, and 'breccia commit' lists the conflicts"
                       : "adopted draft %" PRId64 ": 'breccia status' shows its changes",
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
        cli_say(cli, "dropped draft %" PRId64 "; its chunks stay in the file until 'breccia gc' "
                     "removes them",
                id);
    cli_put_record(cli, CLI_FIELDS({ adopt ? "adopted" : "dropped", CLI_OF(id) }));
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
    .details = "A branch has one draft that everybody shares; a program may have private drafts\n"
               "beside it. The drafts of a program that ended early stay: adopt or drop them.\n"
               "Drop an unfinished rewrite of an array, which nobody can use. An adopted draft\n"
               "is merged onto the new version of its branch; if the two conflict,\n"
               "'commit' lists the conflicts.",
    .examples = "breccia drafts climate.brc\nbreccia drafts climate.brc --adopt 7",
    .options = drafts_options,
    .min_operands = 1,
    .max_operands = 1,
    .run = run_drafts,
};
