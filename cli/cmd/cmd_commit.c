/*
 * cmd_commit.c - commit.
 */
#include "../cli.h"
#include "commands.h"
#include "history.h"

#include <string.h>

static const struct cli_option commit_options[] = {
    { "message", 'm', 1, "TEXT", "the message of the commit" },
    { "author", 0, 1, "'NAME <MAIL>'", "the author; else the setting, else user and host" },
    { "date", 0, 1, "TIME", "2026-11-20, 2026-11-20T12:00:00Z or @SECONDS instead of now" },
    { "meta", 0, 1, "KEY=JSON", "metadata of the commit; repeatable" },
    { "amend", 0, 0, NULL, "replace the branch's last commit" },
    { "allow-empty", 0, 0, NULL, "commit even if nothing changed" },
    { "all", 'a', 0, NULL, "not needed: a commit always takes all changes" },
    CLI_OPTIONS_END
};

/* Returns whether a later --meta sets `key` again. */
static int meta_set_later(const struct cli *cli, size_t index, const char *key)
{
    size_t len = strlen(key);
    const char *text;

    for (size_t i = index + 1; (text = cli_nth_value(cli, "meta", i)) != NULL; i++)
        if (strncmp(text, key, len) == 0 && text[len] == '=')
            return 1;
    return 0;
}

/* Sets *out to all --meta KEY=JSON as one object; *out stays as it is without any. */
static int meta_option(struct cli *cli, const char **out)
{
    const char *text, *object = "";

    for (size_t i = 0; (text = cli_nth_value(cli, "meta", i)) != NULL; i++) {
        const char *key, *json;

        CLI_TRY(cli_key_json(cli, "option --meta: ", text, 0, &key, &json));
        if (!meta_set_later(cli, i, key))
            object = cli_text(cli, "%s%s%s:%s", object, object[0] ? "," : "",
                              cli_json_quoted(cli, key), json);
    }
    if (object[0])
        *out = cli_text(cli, "{%s}", object);
    return BRC_OK;
}

/* Takes the message, author and metadata that were not given from the commit that is amended. */
static int keep_of_amended(struct cli *cli, brc_commit_opts *opts)
{
    brc_commit *commit;
    brc_oid id;

    CLI_TRY(brc_resolve(&id, cli->repo, "HEAD", &cli->err));
    CLI_TRY(brc_commit_read(&commit, cli->repo, &id, &cli->err));
    if (!opts->message)
        opts->message = cli_text(cli, "%s", commit->message);
    if (!opts->author)
        opts->author = cli_text(cli, "%s", commit->author);
    if (!opts->meta_json && commit->meta_json)
        opts->meta_json = cli_text(cli, "%s", commit->meta_json);
    brc_commit_free(commit);
    return BRC_OK;
}

static int read_commit_options(struct cli *cli, brc_commit_opts *opts)
{
    opts->message = cli_value(cli, "message");
    opts->author = cli_value(cli, "author");
    if (cli_has(cli, "amend"))
        opts->flags |= BRC_COMMIT_AMEND;
    if (cli_has(cli, "allow-empty"))
        opts->flags |= BRC_COMMIT_ALLOW_EMPTY;
    if (!opts->message && !cli_has(cli, "amend"))
        return cli_usage(cli, "commit needs -m TEXT");
    if (opts->message && opts->message[strspn(opts->message, " \t\r\n")] == '\0')
        return cli_usage(cli, "option --message: the text is empty");
    if (opts->author && !opts->author[0])
        return cli_usage(cli, "option --author: the name is empty");
    CLI_TRY(cli_date_option(cli, &opts->time_us));
    return meta_option(cli, &opts->meta_json);
}

static int commit_now(struct cli *cli, brc_commit_opts *opts, const char **branch, brc_oid *id)
{
    if (cli_has(cli, "amend"))
        CLI_TRY(keep_of_amended(cli, opts));
    if (!opts->author)
        CLI_TRY(cli_default_author(cli, &opts->author));
    CLI_TRY(cli_branch(cli, branch));
    opts->conflicts = &cli->iter;
    return brc_session_commit(id, cli->session, opts, &cli->err);
}

/* Lists the conflicts of the uncommitted changes with the new version of their branch. Returns
 * `rc` if these are not the reason why the commit failed. */
static int report_in_the_way(struct cli *cli, const char *branch, int rc)
{
    if (!cli->iter)
        return rc;
    cli_begin(cli, NULL, '{');
    cli_put_members(cli, CLI_FIELDS({ "result", CLI_WORD("conflict") },
                                    { "branch", CLI_OF(branch) }));
    CLI_TRY(cli_put_conflicts(cli));
    cli_finish(cli, '{');
    cli_say(cli, "%s has moved, and these changes conflict with its new version; nothing was "
                 "changed: 'breccia restore FILE PATH --from HEAD' takes that version",
            cli_escaped(cli, branch));
    return CLI_EXIT_CONFLICT;
}

/* `message` is NULL if the branch has all of the changes already, so that no commit was made. */
static void report_commit(struct cli *cli, const char *branch, const brc_oid *id,
                          const char *message)
{
    cli_put_record(cli, CLI_FIELDS({ "id", CLI_OF(*id) }, { "branch", CLI_OF(branch) },
                                   { "message", CLI_OF(message), .optional = 1 }));
    if (message)
        cli_say(cli, "[%s %s] %s", cli_escaped(cli, branch), cli_short_id(cli, id),
                cli_subject(cli, message));
    else
        cli_say(cli, "nothing is left to commit: %s has these changes already",
                cli_escaped(cli, branch));
}

static int run_commit(struct cli *cli)
{
    brc_commit_opts opts = BRC_COMMIT_OPTS_INIT;
    const int amends = cli_has(cli, "amend");
    const char *branch = NULL;
    brc_oid id, was;
    int rc, had;

    CLI_TRY(read_commit_options(cli, &opts));
    if (cli_has(cli, "all"))
        cli_note(cli, "-a is not needed: a commit always takes all changes");
    CLI_TRY(cli_open_branch(cli));
    had = brc_resolve(&was, cli->repo, "HEAD", NULL) == BRC_OK;
    if (amends)
        CLI_TRY(brc_begin(cli->repo, &cli->err)); /* so that HEAD stays the commit that was read */
    rc = commit_now(cli, &opts, &branch, &id);
    if (amends)
        rc = cli_end(cli, rc);
    if (rc == BRC_ECONFLICT && !amends && branch)
        return report_in_the_way(cli, branch, rc);
    CLI_TRY(rc);
    cli_done(cli);
    report_commit(cli, branch, &id,
                  had && !amends && cli_same_id(&id, &was) ? NULL : opts.message);
    return BRC_OK;
}

const struct cli_command cli_command_commit = {
    .name = "commit",
    .group = "Versions",
    .summary = "make the uncommitted changes a version",
    .usage = "FILE -m TEXT [OPTIONS]\nFILE --amend [-m TEXT] [OPTIONS]",
    .details = "--amend keeps the message, author and metadata of the commit that it replaces,\n"
               "unless they are given. If the branch has moved since the changes began, the\n"
               "changes are merged onto the branch as by 'merge', and become one commit there.\n"
               "Conflicts are listed, the status is 3, and the changes stay as they are:\n"
               "'restore FILE PATH --from HEAD' takes the branch's version, then commit again.",
    .examples = "breccia commit climate.brc -m 'June'\n"
                "breccia commit climate.brc -m 'June' --author 'Ada <ada@example.org>'\n"
                "breccia commit climate.brc -m 'June' --meta run='{\"seed\": 7}'",
    .options = commit_options,
    .min_operands = 1,
    .max_operands = 1,
    .flags = CLI_POOL,
    .run = run_commit,
};
