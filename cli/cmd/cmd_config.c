/*
 * cmd_config.c - config.
 */
#include "../cli.h"
#include "backend_value.h"
#include "commands.h"

#include <string.h>

static const struct cli_option config_options[] = {
    { "unset", 0, 0, NULL, "set KEY to its default" },
    CLI_OPTIONS_END
};

static const char *const settings[] = { "journal", "backend", "codecs", "verify",
                                         "window", NULL };

/* Prints a setting as a member of the open object, or as a line with `lead` before the value. If
 * `lead` is NULL, the function prints no line. */
static int put_setting(struct cli *cli, const char *key, const char *lead)
{
    brc_buf text = BRC_BUF_INIT;
    int rc = brc_config_get(&text, cli->repo, key, &cli->err);

    if (rc >= 0)
        cli_put_members(cli, CLI_FIELDS({ key, CLI_OF((const char *)text.data), CLI_AS_JSON,
                                          .lead = lead, .none = "" }));
    brc_buf_dispose(&text);
    return rc;
}

static int show_settings(struct cli *cli)
{
    CLI_TRY(cli_open(cli, BRC_OPEN_READONLY));
    cli_begin(cli, NULL, '{');
    for (int i = 0; settings[i]; i++)
        CLI_TRY(put_setting(cli, settings[i], cli_text(cli, "%s  ", settings[i])));
    cli_finish(cli, '{');
    return BRC_OK;
}

static int change_setting(struct cli *cli, const char *key, const char *value)
{
    if (value && !strcmp(key, "backend"))
        CLI_TRY(cli_backend_argument(cli, "the backend", value, &value));
    CLI_TRY(cli_open(cli, 0));
    return brc_config_set(cli->repo, key, value, &cli->err);
}

static int run_config(struct cli *cli)
{
    const char *key = cli_operand(cli, 1), *value = cli_operand(cli, 2), *lead = "";
    int unset = cli_has(cli, "unset");

    if (unset && (!key || value))
        return cli_usage(cli, "--unset takes KEY and no VALUE");
    if (!key)
        return show_settings(cli);
    if (value || unset) {
        CLI_TRY(change_setting(cli, key, value));
        lead = cli->quiet ? NULL : cli_text(cli, "%s is ", key);
    } else {
        CLI_TRY(cli_open(cli, BRC_OPEN_READONLY));
    }
    cli_begin(cli, NULL, '{');
    CLI_TRY(put_setting(cli, key, lead));
    cli_finish(cli, '{');
    return BRC_OK;
}

const struct cli_command cli_command_config = {
    .name = "config",
    .group = "Versions",
    .summary = "show and change the settings of a repository",
    .usage = "FILE\nFILE KEY [VALUE]\nFILE KEY --unset",
    .details = "journal  rollback: the repository is one file at every moment (the default).\n"
               "         wal: while somebody writes, changes go to FILE-wal first, so that\n"
               "         readers never wait for a commit; the last one who closes the file\n"
               "         moves the changes into FILE. FILE-wal belongs to FILE: never copy\n"
               "         FILE alone while FILE-wal exists. Commits are durable either way.\n"
               "window   how long gc keeps the objects that the operation log names: 30d (the\n"
               "         default), 12h, 2w; gc also keeps those of the last 1,000 entries. 0:\n"
               "         gc keeps only objects that a branch, tag or draft reaches.\n"
               "backend  where chunks of new arrays go that are made or imported without a\n"
               "         backend: a name, or JSON, as in 'breccia backend'. inline, FILE\n"
               "         itself, is the default. Existing arrays keep their backend.\n"
               "codecs   how new arrays are encoded that are made or imported without codecs:\n"
               "         a list in JSON, as in 'breccia codecs'. A list that only changes\n"
               "         bytes fits every data type. The default, chosen, depends on the data\n"
               "         type; a type that the list does not fit gets the default too.\n"
               "verify   what reading checks. stored: the stored bytes of a chunk are the\n"
               "         bytes that were written (the default). full: the bytes also decode to\n"
               "         the chunk that was written, by its id. 'fsck' always checks both.",
    .examples = "breccia config climate.brc journal wal\n"
                "breccia config climate.brc backend org.example.dir --plugin ./dirstore.so\n"
                "breccia config climate.brc codecs '[\"zstd\"]'\n"
                "breccia config climate.brc journal --unset",
    .options = config_options,
    .min_operands = 1,
    .max_operands = 3,
    .run = run_config,
};
