/*
 * cmd_refs.c - branch, tag, switch, restore, reset.
 */
#include "../cli.h"
#include "commands.h"
#include "history.h"

#include <string.h>

static const struct cli_option branch_options[] = {
    { "delete", 'd', 1, "NAME", "delete a branch whose commits another branch or tag reaches" },
    { "force-delete", 'D', 1, "NAME", "delete a branch, whatever it holds" },
    { "rename", 'm', 2, "OLD NEW", "rename a branch" },
    CLI_OPTIONS_END
};

static void put_ref_json(struct cli *cli, const struct cli_ref *ref)
{
    cli_json_open(cli, '{');
    cli_json_member(cli, "name", ref->name);
    if (!ref->is_tag) {
        cli_json_key(cli, "current");
        cli_json_bool(cli, ref->is_current);
    }
    cli_json_key(cli, "id");
    if (ref->is_unborn)
        cli_json_null(cli);
    else
        cli_json_string(cli, cli_long_id(cli, &ref->id));
    if (ref->is_tag)
        cli_json_member(cli, "message", ref->message);
    cli_json_close(cli, '{');
}

static void put_ref_text(struct cli *cli, const struct cli_ref *ref, size_t width)
{
    const char *name = cli_escaped(cli, ref->name);

    if (!ref->is_tag)
        cli_puts(cli, ref->is_current ? "* " : "  ");
    cli_color(cli, ref->is_tag ? CLI_YELLOW : ref->is_current ? CLI_GREEN : CLI_PLAIN);
    cli_put_padded(cli, name, width);
    cli_color_end(cli);
    cli_printf(cli, "  %s", ref->is_unborn ? "no commits yet" : cli_short_id(cli, &ref->id));
    if (ref->message[0])
        cli_printf(cli, "  %s", cli_subject(cli, ref->message));
    cli_puts(cli, "\n");
}

static int list_refs(struct cli *cli, int tags)
{
    struct cli_refs refs;
    size_t width = 0;

    CLI_TRY(cli_open(cli, BRC_OPEN_READONLY));
    CLI_TRY(cli_refs_read(cli, &refs));
    if (cli->json)
        cli_json_open(cli, '[');
    for (size_t i = 0; i < refs.n; i++) {
        size_t n = cli_text_width(cli_escaped(cli, refs.refs[i].name));

        width = !refs.refs[i].is_tag == !tags && n > width ? n : width;
    }
    for (size_t i = 0; i < refs.n; i++) {
        if (!refs.refs[i].is_tag != !tags)
            continue;
        if (cli->json)
            put_ref_json(cli, &refs.refs[i]);
        else
            put_ref_text(cli, &refs.refs[i], width);
    }
    if (cli->json)
        cli_json_close(cli, '[');
    return BRC_OK;
}

static void put_ref_members(struct cli *cli, const char *name, const brc_oid *id,
                            const brc_oid *was)
{
    if (!cli->json)
        return;
    cli_json_open(cli, '{');
    cli_json_member(cli, "name", name);
    cli_json_key(cli, "id");
    if (id)
        cli_json_string(cli, cli_long_id(cli, id));
    else
        cli_json_null(cli);
    if (was)
        cli_json_member(cli, "was", cli_long_id(cli, was));
    cli_json_close(cli, '{');
}

/* Says where a ref is now; `id` NULL: it has no commit. */
static void report_ref(struct cli *cli, const char *done, const char *name, const brc_oid *id)
{
    cli_say(cli, "%s %s%s%s", done, cli_escaped(cli, name), id ? " at " : "",
            id ? cli_short_id(cli, id) : "");
    put_ref_members(cli, name, id, NULL);
}

/* One of -d, -D and -m: no names beside them. */
static int check_ref_operands(struct cli *cli)
{
    int actions = cli_has(cli, "delete") + cli_has(cli, "force-delete") + cli_has(cli, "rename");

    if (actions > 1)
        return cli_usage(cli, "give one of --delete, --force-delete and --rename");
    if (actions > 0 && cli->args.noperands > 1)
        return cli_usage(cli, "'%s' is one argument too many", cli_operand(cli, 1));
    return BRC_OK;
}

/* *has: 0 where it has no commit, or is not there: deleting it says so. */
static int find_ref(struct cli *cli, const char *name, int is_tag, int *has, brc_oid *id)
{
    struct cli_refs refs;

    *has = 0;
    CLI_TRY(cli_refs_read(cli, &refs));
    for (size_t i = 0; i < refs.n && !*has; i++) {
        const struct cli_ref *ref = &refs.refs[i];

        *has = !ref->is_tag == !is_tag && !ref->is_unborn && strcmp(ref->name, name) == 0;
        *id = ref->id;
    }
    return BRC_OK;
}

/* Deletes a branch or tag, and says what it was and how it comes back. */
static int delete_named_ref(struct cli *cli, const char *kind, const char *name)
{
    int is_tag = strcmp(kind, "tag") == 0, force = cli_has(cli, "force-delete"), has, rc;
    brc_oid was;

    CLI_TRY(brc_begin(cli->repo, &cli->err)); /* so that it is still there when it goes */
    rc = find_ref(cli, name, is_tag, &has, &was);
    if (rc >= 0)
        rc = is_tag ? brc_tag_delete(cli->repo, name, force, &cli->err)
                    : brc_branch_delete(cli->repo, name, force, &cli->err);
    CLI_TRY(cli_end(cli, rc));
    if (has)
        cli_say(cli, "deleted %s %s (was %s); 'breccia %s %s %s %s' makes it again", kind,
                cli_escaped(cli, name), cli_short_id(cli, &was), kind,
                cli_escaped(cli, cli->file), cli_escaped(cli, name), cli_short_id(cli, &was));
    else
        cli_say(cli, "deleted %s %s (it had no commit)", kind, cli_escaped(cli, name));
    put_ref_members(cli, name, NULL, has ? &was : NULL);
    return BRC_OK;
}

static const char *name_to_delete(const struct cli *cli)
{
    const char *name = cli_value(cli, "delete");

    return name ? name : cli_value(cli, "force-delete");
}

static int run_branch(struct cli *cli)
{
    const char *name = cli_operand(cli, 1), *gone = name_to_delete(cli);
    const char *from = cli_value(cli, "rename"), *to = cli_second_value(cli, "rename");
    int has, rc;
    brc_oid id;

    CLI_TRY(check_ref_operands(cli));
    if (!name && !gone && !from)
        return list_refs(cli, 0);
    CLI_TRY(cli_open(cli, 0));
    if (gone)
        return delete_named_ref(cli, "branch", gone);
    CLI_TRY(brc_begin(cli->repo, &cli->err));
    rc = from ? brc_branch_rename(cli->repo, from, to, &cli->err)
              : brc_branch_create(cli->repo, name, cli_operand(cli, 2), &cli->err);
    if (rc >= 0)
        rc = find_ref(cli, from ? to : name, 0, &has, &id);
    CLI_TRY(cli_end(cli, rc));
    report_ref(cli, from ? "renamed branch to" : "made branch", from ? to : name,
               has ? &id : NULL);
    return BRC_OK;
}

const struct cli_command cli_command_branch = {
    .name = "branch",
    .group = "Versions",
    .summary = "list, make, delete or rename branches",
    .usage = "FILE\nFILE NAME [REV]\nFILE -d NAME\nFILE -D NAME\nFILE -m OLD NEW",
    .details = "A branch begins at REV, at HEAD where it is left out. -d refuses a branch whose\n"
               "commits no other branch or tag reaches, or that has uncommitted changes; -D does\n"
               "not. Both say what it was: under that id the commits stay in the file.",
    .examples = "breccia branch climate.brc experiment v1.0\n"
                "breccia branch climate.brc -m experiment bias-correction",
    .options = branch_options,
    .min_operands = 1,
    .max_operands = 3,
    .run = run_branch,
};

static const struct cli_option tag_options[] = {
    { "message", 'm', 1, "TEXT", "what the tag says" },
    { "delete", 'd', 1, "NAME", "delete a tag whose commits another branch or tag reaches" },
    { "force-delete", 'D', 1, "NAME", "delete a tag, whatever it names" },
    { "rename", 0, 2, "OLD NEW", "rename a tag" },
    CLI_OPTIONS_END
};

static int run_tag(struct cli *cli)
{
    const char *name = cli_operand(cli, 1), *gone = name_to_delete(cli);
    const char *from = cli_value(cli, "rename"), *to = cli_second_value(cli, "rename");
    const char *message = cli_value(cli, "message");
    int has, rc;
    brc_oid id;

    CLI_TRY(check_ref_operands(cli));
    if (message && !name)
        return cli_usage(cli, "--message is for a new tag: give its NAME");
    if (!name && !gone && !from)
        return list_refs(cli, 1);
    CLI_TRY(cli_open(cli, 0));
    if (gone)
        return delete_named_ref(cli, "tag", gone);
    CLI_TRY(brc_begin(cli->repo, &cli->err));
    rc = from ? brc_tag_rename(cli->repo, from, to, &cli->err)
              : brc_tag_create(cli->repo, name, cli_operand(cli, 2), message, &cli->err);
    if (rc >= 0)
        rc = find_ref(cli, from ? to : name, 1, &has, &id);
    CLI_TRY(cli_end(cli, rc));
    report_ref(cli, from ? "renamed tag to" : "made tag", from ? to : name, has ? &id : NULL);
    return BRC_OK;
}

const struct cli_command cli_command_tag = {
    .name = "tag",
    .group = "Versions",
    .summary = "list, make, delete or rename tags",
    .usage = "FILE\nFILE NAME [REV] [-m TEXT]\nFILE -d NAME\nFILE -D NAME\nFILE --rename OLD NEW",
    .details = "A tag names REV, HEAD where it is left out. -d refuses a tag whose commits no\n"
               "branch and no other tag reaches; -D does not. Both say what it was.",
    .examples = "breccia tag climate.brc v1.0 -m 'as published'",
    .options = tag_options,
    .min_operands = 1,
    .max_operands = 3,
    .run = run_tag,
};

/* ---- switch ---------------------------------------------------------------------- */

static const struct cli_option switch_options[] = {
    { "create", 'c', 0, NULL, "make the branch first, at REV or HEAD" },
    { "discard", 0, 0, NULL, "drop uncommitted changes" },
    CLI_OPTIONS_END
};

static int create_and_switch(struct cli *cli, const char *branch)
{
    int discard = cli_has(cli, "discard"), rc;

    if (!cli_has(cli, "create"))
        return brc_switch(cli->repo, branch, discard, &cli->err);
    CLI_TRY(brc_begin(cli->repo, &cli->err));
    rc = brc_branch_create(cli->repo, branch, cli_operand(cli, 2), &cli->err);
    if (rc >= 0)
        rc = brc_switch(cli->repo, branch, discard, &cli->err);
    return cli_end(cli, rc);
}

static int run_switch(struct cli *cli)
{
    const char *branch = cli_operand(cli, 1);

    if (cli->args.noperands > 2 && !cli_has(cli, "create"))
        return cli_usage(cli, "'%s' is one argument too many: REV goes with -c",
                         cli_operand(cli, 2));
    CLI_TRY(cli_open(cli, 0));
    CLI_TRY(create_and_switch(cli, branch));
    cli_say(cli, "on branch %s", cli_escaped(cli, branch));
    if (cli->json) {
        cli_json_open(cli, '{');
        cli_json_member(cli, "branch", branch);
        cli_json_close(cli, '{');
    }
    return BRC_OK;
}

const struct cli_command cli_command_switch = {
    .name = "switch",
    .group = "Versions",
    .summary = "make another branch the current one",
    .usage = "FILE BRANCH [--discard]\nFILE -c BRANCH [REV] [--discard]",
    .details = "Refused where there are uncommitted changes, unless --discard drops them.",
    .examples = "breccia switch climate.brc main\nbreccia switch climate.brc -c experiment",
    .options = switch_options,
    .min_operands = 2,
    .max_operands = 3,
    .run = run_switch,
};

/* ---- restore, reset ----------------------------------------------------------------- */

static const struct cli_option restore_options[] = {
    { "from", 0, 1, "REV", "as it was there; HEAD where not given" },
    { "slice", 0, 1, "SLICE", "these elements of an array alone" },
    CLI_OPTIONS_END
};

static int run_restore(struct cli *cli)
{
    const char *path = cli_path(cli, cli_operand(cli, 1));
    const char *from = cli_value(cli, "from"), *slice = cli_value(cli, "slice");
    brc_sel sel;

    CLI_TRY(cli_open_edit(cli));
    if (slice) {
        CLI_TRY(cli_open_array(cli, path));
        CLI_TRY(brc_sel_parse(&sel, cli->array, slice, &cli->err));
        CLI_TRY(brc_array_restore(cli->array, &sel, from, &cli->err));
    } else {
        CLI_TRY(brc_node_restore(cli->session, path, from, &cli->err));
    }
    cli_say(cli, "restored %s%s%s from %s", cli_escaped(cli, path), slice ? " " : "",
            slice ? cli_escaped(cli, slice) : "", cli_escaped(cli, from ? from : "HEAD"));
    if (cli->json) {
        cli_json_open(cli, '{');
        cli_json_member(cli, "path", path);
        cli_json_member(cli, "from", from ? from : "HEAD");
        cli_json_close(cli, '{');
    }
    return BRC_OK;
}

const struct cli_command cli_command_restore = {
    .name = "restore",
    .group = "Versions",
    .summary = "make a node, or a part of it, what it was",
    .usage = "FILE PATH [--from REV] [--slice SLICE]",
    .details = "The branch stays where it is: what is restored is an uncommitted change. A node\n"
               "that was not there is removed.",
    .examples = "breccia restore climate.brc /t2m\n"
                "breccia restore climate.brc /t2m --from v1.0 --slice '[0:31]'",
    .options = restore_options,
    .min_operands = 2,
    .max_operands = 2,
    .flags = CLI_POOL | CLI_PATH,
    .run = run_restore,
};

static const struct cli_option reset_options[] = {
    { "hard", 0, 0, NULL, "drop uncommitted changes too" },
    CLI_OPTIONS_END
};

static void report_reset(struct cli *cli, const char *branch, const brc_oid *id,
                         const brc_oid *was)
{
    const char *back = "";

    if (was && !cli_same_id(id, was))
        back = cli_text(cli, " (was %s); 'breccia reset %s %s' goes back", cli_short_id(cli, was),
                        cli_escaped(cli, cli->file), cli_short_id(cli, was));
    cli_say(cli, "%s is at %s%s", cli_escaped(cli, branch), cli_short_id(cli, id), back);
    if (!cli->json)
        return;
    cli_json_open(cli, '{');
    cli_json_member(cli, "branch", branch);
    cli_json_member(cli, "id", cli_long_id(cli, id));
    if (was)
        cli_json_member(cli, "was", cli_long_id(cli, was));
    cli_json_close(cli, '{');
}

static int run_reset(struct cli *cli)
{
    const char *rev = cli_operand(cli, 1), *branch;
    brc_oid id, was;
    int has, rc;

    CLI_TRY(cli_open(cli, 0));
    CLI_TRY(brc_head(&branch, cli->repo, &cli->err));
    branch = cli_text(cli, "%s", branch);
    CLI_TRY(brc_begin(cli->repo, &cli->err));
    rc = brc_resolve(&id, cli->repo, rev, &cli->err);
    if (rc >= 0)
        rc = find_ref(cli, branch, 0, &has, &was);
    if (rc >= 0)
        rc = brc_reset(cli->repo, rev, cli_has(cli, "hard"), NULL, &cli->err);
    CLI_TRY(cli_end(cli, rc));
    report_reset(cli, branch, &id, has ? &was : NULL);
    return BRC_OK;
}

const struct cli_command cli_command_reset = {
    .name = "reset",
    .group = "Versions",
    .summary = "move the current branch to another version",
    .usage = "FILE REV [--hard]",
    .details = "Uncommitted changes stay, unless --hard drops them for good. Where the branch was\n"
               "is said: under that id its commits stay in the file.",
    .examples = "breccia reset climate.brc HEAD~1\nbreccia reset climate.brc v1.0 --hard",
    .options = reset_options,
    .min_operands = 2,
    .max_operands = 2,
    .run = run_reset,
};
