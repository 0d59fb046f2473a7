/*
 * cmd_refs.c - branch and tag.
 */
#include "../cli.h"
#include "commands.h"
#include "history.h"


static const struct cli_option branch_options[] = {
    { "delete", 'd', 1, "NAME", "delete a branch whose commits another branch or tag reaches" },
    { "force-delete", 'D', 1, "NAME", "delete a branch in any case" },
    { "rename", 'm', 2, "OLD NEW", "rename a branch" },
    CLI_OPTIONS_END
};

static int put_ref(struct cli *cli, struct cli_list *list, const struct cli_ref *ref)
{
    const enum cli_color color = ref->is_tag       ? CLI_YELLOW
                                 : ref->is_current ? CLI_GREEN
                                                   : CLI_PLAIN;

    return cli_list_put(
        cli, list,
        CLI_FIELDS({ NULL, CLI_OF(ref->is_current), .lead = ref->is_tag ? NULL : "* ",
                     .none = "  " },
                   { "name", CLI_OF(ref->name), .lead = "", .width = CLI_FIT, .color = color,
                     .narrow = CLI_CUT_END },
                   { ref->is_tag ? NULL : "current", CLI_OF(ref->is_current) },
                   { "id", CLI_OF(ref->id), .lead = "  ", .none = "no commits yet" },
                   { ref->is_tag ? "message" : NULL, CLI_OF(ref->message), CLI_AS_SUBJECT,
                     .lead = "  ", .narrow = CLI_CUT_END }));
}

static int list_refs(struct cli *cli, int tags)
{
    struct cli_list list;
    struct cli_refs refs;

    CLI_TRY(cli_open(cli, BRC_OPEN_READONLY));
    CLI_TRY(cli_refs_read(cli, &refs));
    cli_list_begin(cli, &list, NULL, 0);
    for (size_t i = 0; i < refs.n; i++)
        if (!refs.refs[i].is_tag == !tags)
            CLI_TRY(put_ref(cli, &list, &refs.refs[i]));
    return cli_list_end(cli, &list, BRC_OK);
}

/* Allows only one of -d, -D and -m, and no further names with them. */
static int check_ref_operands(struct cli *cli)
{
    int actions = cli_has(cli, "delete") + cli_has(cli, "force-delete") + cli_has(cli, "rename");

    if (actions > 1)
        return cli_usage(cli, "give only one of --delete, --force-delete and --rename");
    if (actions > 0 && cli->args.noperands > 1)
        return cli_usage(cli, "'%s' is one argument too many", cli_operand(cli, 1));
    return BRC_OK;
}

/* Deletes a branch or tag, and reports its commit and the command that restores it. */
static int delete_named_ref(struct cli *cli, int is_tag, const char *name)
{
    const char *kind = is_tag ? "tag" : "branch";
    const uint32_t flags = cli_has(cli, "force-delete") ? BRC_DELETE_FORCE : 0;
    const brc_oid none = { 0 };
    brc_oid was;
    int rc;

    CLI_TRY(brc_begin(cli->repo, &cli->err)); /* so that nobody moves the ref meanwhile */
    rc = cli_ref_find(cli, name, is_tag, &was);
    if (rc >= 0)
        rc = brc_ref_delete(cli->repo, name, flags | (is_tag ? BRC_REF_TAG : 0), &cli->err);
    CLI_TRY(cli_end(cli, rc));
    cli_answer(cli,
               CLI_FIELDS({ "name", CLI_OF(name) }, { "id", CLI_OF(none) },
                          { "was", CLI_OF(was), .optional = 1 }),
               "deleted %s %s (%s", kind, cli_escaped(cli, name),
               !cli_has_id(&was)
                   ? "it had no commit)"
                   : cli_text(cli, "was %s); 'breccia %s %s %s %s' restores it",
                              cli_short_id(cli, &was), kind, cli_escaped(cli, cli->file),
                              cli_escaped(cli, name), cli_short_id(cli, &was)));
    return BRC_OK;
}

static const char *name_to_delete(const struct cli *cli)
{
    const char *name = cli_value(cli, "delete");

    return name ? name : cli_value(cli, "force-delete");
}

static int make_named_ref(struct cli *cli, int is_tag, const char *name)
{
    const char *rev = cli_operand(cli, 2), *message = cli_value(cli, "message");

    return brc_ref_create(cli->repo, name, rev, message, is_tag ? BRC_REF_TAG : 0, &cli->err);
}

static int rename_named_ref(struct cli *cli, int is_tag, const char *from, const char *to)
{
    return brc_ref_rename(cli->repo, from, to, is_tag ? BRC_REF_TAG : 0, &cli->err);
}

static int run_refs(struct cli *cli, int is_tag)
{
    const char *name = cli_operand(cli, 1), *gone = name_to_delete(cli);
    const char *from = cli_value(cli, "rename"), *kind = is_tag ? "tag" : "branch";
    brc_oid id;
    int rc;

    CLI_TRY(check_ref_operands(cli));
    if (cli_has(cli, "message") && !name)
        return cli_usage(cli, "--message is for a new tag: give its NAME");
    if (!name && !gone && !from)
        return list_refs(cli, is_tag);
    CLI_TRY(cli_open(cli, 0));
    if (gone)
        return delete_named_ref(cli, is_tag, gone);
    if (from)
        name = cli_second_value(cli, "rename");
    CLI_TRY(brc_begin(cli->repo, &cli->err));
    rc = from ? rename_named_ref(cli, is_tag, from, name) : make_named_ref(cli, is_tag, name);
    if (rc >= 0)
        rc = cli_ref_find(cli, name, is_tag, &id);
    CLI_TRY(cli_end(cli, rc));
    cli_answer(cli, CLI_FIELDS({ "name", CLI_OF(name) }, { "id", CLI_OF(id) }),
               from ? "renamed %s to %s%s" : "made %s %s%s", kind, cli_escaped(cli, name),
               cli_has_id(&id) ? cli_text(cli, " at %s", cli_short_id(cli, &id)) : "");
    return BRC_OK;
}

static int run_branch(struct cli *cli)
{
    return run_refs(cli, 0);
}

const struct cli_command cli_command_branch = {
    .name = "branch",
    .group = "Versions",
    .summary = "list, make, delete or rename branches",
    .usage = "FILE\nFILE NAME [REV]\nFILE -d NAME\nFILE -D NAME\nFILE -m OLD NEW",
    .details = "A branch starts at REV, or at HEAD. -d refuses to delete a branch that has\n"
               "uncommitted changes, or commits that no other branch or tag reaches; -D does\n"
               "not refuse. Both report the last commit of the branch: the commits stay in the\n"
               "file, and can be named by id.",
    .examples = "breccia branch climate.brc experiment v1.0\n"
                "breccia branch climate.brc -m experiment bias-correction",
    .options = branch_options,
    .min_operands = 1,
    .max_operands = 3,
    .run = run_branch,
};

static const struct cli_option tag_options[] = {
    { "message", 'm', 1, "TEXT", "the message of the tag" },
    { "delete", 'd', 1, "NAME", "delete a tag whose commits another branch or tag reaches" },
    { "force-delete", 'D', 1, "NAME", "delete a tag in any case" },
    { "rename", 0, 2, "OLD NEW", "rename a tag" },
    CLI_OPTIONS_END
};

static int run_tag(struct cli *cli)
{
    return run_refs(cli, 1);
}

const struct cli_command cli_command_tag = {
    .name = "tag",
    .group = "Versions",
    .summary = "list, make, delete or rename tags",
    .usage = "FILE\nFILE NAME [REV] [-m TEXT]\nFILE -d NAME\nFILE -D NAME\nFILE --rename OLD NEW",
    .details = "A tag names REV, or HEAD. -d refuses to delete a tag with commits that no\n"
               "branch and no other tag reaches; -D does not refuse. Both report the commit of\n"
               "the tag.",
    .examples = "breccia tag climate.brc v1.0 -m 'as published'\n"
                "breccia tag climate.brc before-correction HEAD~2",
    .options = tag_options,
    .min_operands = 1,
    .max_operands = 3,
    .run = run_tag,
};
