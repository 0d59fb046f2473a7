/*
 * cmd_commit.c - commit.
 */
#include "../cli.h"
#include "commands.h"
#include "history.h"

#include <string.h>

static const struct cli_option commit_options[] = {
    { "message", 'm', 1, "TEXT", "the message of the commit" },
    { "author", 0, 1, "'NAME <MAIL>'", "the author; else $BRECCIA_AUTHOR, else user and host" },
    { "date", 0, 1, "TIME", "2026-11-20, 2026-11-20T12:00:00Z or @SECONDS instead of now" },
    { "meta", 0, 1, "KEY=JSON", "metadata of the commit; repeatable" },
    { "amend", 0, 0, NULL, "replace the branch's last commit" },
    { "allow-empty", 0, 0, NULL, "commit even if nothing changed" },
    CLI_OPTIONS_END
};

/* Is `key` set again by a later --meta? */
static int meta_set_later(const struct cli *cli, size_t index, const char *key)
{
    size_t len = strlen(key);
    const char *text;

    for (size_t i = index + 1; (text = cli_nth_value(cli, "meta", i)) != NULL; i++)
        if (strncmp(text, key, len) == 0 && text[len] == '=')
            return 1;
    return 0;
}

/* All --meta KEY=JSON as one object; *out stays as it is if there is none. */
static int meta_option(struct cli *cli, const char **out)
{
    const char *text, *object = "";

    for (size_t i = 0; (text = cli_nth_value(cli, "meta", i)) != NULL; i++) {
        const char *key, *json;

        CLI_TRY(cli_key_json(cli, "option --meta: ", text, &key, &json));
        if (!meta_set_later(cli, i, key))
            object = cli_text(cli, "%s%s%s:%s", object, object[0] ? "," : "",
                              cli_json_quoted(cli, key), json);
    }
    if (object[0])
        *out = cli_text(cli, "{%s}", object);
    return BRC_OK;
}

/* What an amended commit keeps of the one that it replaces. */
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
    CLI_TRY(cli_time_option(cli, "date", &opts->time_us));
    return meta_option(cli, &opts->meta_json);
}

static int commit_now(struct cli *cli, brc_commit_opts *opts, const char **branch, brc_oid *id)
{
    if (cli_has(cli, "amend"))
        CLI_TRY(keep_of_amended(cli, opts));
    if (!opts->author)
        opts->author = cli_default_author(cli);
    CLI_TRY(cli_branch(cli, branch));
    return brc_session_commit(id, cli->session, opts, &cli->err);
}

static int run_commit(struct cli *cli)
{
    brc_commit_opts opts = BRC_COMMIT_OPTS_INIT;
    const char *branch;
    brc_oid id;

    CLI_TRY(read_commit_options(cli, &opts));
    CLI_TRY(cli_open_edit(cli));
    CLI_TRY(brc_begin(cli->repo, &cli->err)); /* what is amended is what was read */
    CLI_TRY(cli_end(cli, commit_now(cli, &opts, &branch, &id)));
    cli_done(cli);
    cli_say(cli, "[%s %s] %s", cli_escaped(cli, branch), cli_short_id(cli, &id),
            cli_subject(cli, opts.message));
    cli_json_answer(cli, "id", cli_long_id(cli, &id), "branch", branch, "message", opts.message,
                    NULL);
    return BRC_OK;
}

const struct cli_command cli_command_commit = {
    .name = "commit",
    .group = "Versions",
    .summary = "make the uncommitted changes a version",
    .usage = "FILE -m TEXT [OPTIONS]\nFILE --amend [-m TEXT] [OPTIONS]",
    .details = "--amend keeps the message, author and metadata of the commit that it\n"
               "replaces, unless they are given.",
    .examples = "breccia commit climate.brc -m 'June'\n"
                "breccia commit climate.brc -m 'June' --meta run='{\"seed\": 7}' "
                "--author 'Ada <ada@example.org>'",
    .options = commit_options,
    .min_operands = 1,
    .max_operands = 1,
    .flags = CLI_POOL,
    .run = run_commit,
};
