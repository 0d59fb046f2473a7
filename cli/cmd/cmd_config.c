/*
 * cmd_config.c - config.
 */
#include "../cli.h"
#include "backend_value.h"
#include "commands.h"

#include <string.h>

static const struct cli_option config_options[] = {
    { "unset", 0, 0, NULL, "set KEY to its default" },
    { "user", 0, 0, NULL, "your settings for all repositories, instead of FILE's" },
    { "show-origin", 0, 0, NULL, "list all settings with the place that each comes from" },
    CLI_OPTIONS_END
};

static const char *const settings[] = { "journal", "backend", "codecs", "verify",
                                         "readback", "window", NULL };

const char *const *cli_config_keys(void)
{
    return settings;
}

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
        CLI_TRY(put_setting(cli, settings[i], cli_text(cli, "%-8s  ", settings[i])));
    cli_finish(cli, '{');
    return BRC_OK;
}

static int change_setting(struct cli *cli, const char *key, const char *value)
{
    if (value && !strcmp(key, "codecs") && value[0] != '[' && strcmp(value, "chosen") != 0)
        return cli_usage(cli, "codecs: '%s' is not a list in JSON, such as '[\"zstd\"]'", value);
    if (value && !strcmp(key, "backend"))
        CLI_TRY(cli_backend_argument(cli, "the backend", value, &value));
    CLI_TRY(cli_open(cli, 0));
    return brc_config_set(cli->repo, key, value, &cli->err);
}

/* ---- where settings come from -------------------------------- */

/* Widens the column of keys. */
static void widen_keys(struct cli *cli, const char *key, const char *value, int *width)
{
    const int len = (int)strlen(cli_escaped(cli, key));

    (void)value;
    *width = len > *width ? len : *width;
}

static void put_origin(struct cli *cli, const char *origin, const char *key, const char *value,
                       int width)
{
    cli_put_record(cli, CLI_FIELDS({ "origin", CLI_OF(origin) }, { "key", CLI_OF(key) },
                                   { "value", CLI_OF(value), CLI_AS_JSON }));
    cli_say(cli, "%-11s  %-*s  %s", origin, width, cli_escaped(cli, key), cli_escaped(cli, value));
}

static void put_of_user(struct cli *cli, const char *key, const char *value, int *width)
{
    put_origin(cli, "user", key, value, *width);
}

/* Lists the settings of the environment and of the user's file. A variable hides the file's value,
 * which is listed too. */
static int put_of_users(struct cli *cli, int width)
{
    const char *const *keys = cli_setting_keys();

    for (size_t i = 0; keys[i]; i++) {
        const char *value, *origin;

        CLI_TRY(cli_setting(cli, keys[i], &value, &origin));
        if (value && strcmp(origin, "environment") == 0)
            put_origin(cli, origin, keys[i], value, width);
    }
    return cli_settings_each(cli, put_of_user, &width);
}

static int put_of_repository(struct cli *cli, int width)
{
    CLI_TRY(cli_open(cli, BRC_OPEN_READONLY));
    for (int i = 0; settings[i]; i++) {
        brc_buf text = BRC_BUF_INIT;
        int rc = brc_config_get(&text, cli->repo, settings[i], &cli->err);

        if (rc >= 0)
            put_origin(cli, "repository", settings[i], (const char *)text.data, width);
        brc_buf_dispose(&text);
        CLI_TRY(rc);
    }
    return BRC_OK;
}

static int show_origins(struct cli *cli)
{
    int width = 8;

    CLI_TRY(cli_settings_each(cli, widen_keys, &width));
    cli_begin(cli, NULL, '[');
    CLI_TRY(put_of_users(cli, width));
    if (cli_needs_file(cli) && cli_operand(cli, 0))
        CLI_TRY(put_of_repository(cli, width));
    cli_finish(cli, '[');
    return BRC_OK;
}

/* ---- the user's own -------------------------------- */

static int is_user_key(const char *key)
{
    const char *const *keys = cli_setting_keys();

    if (strncmp(key, "alias.", 6) == 0 && key[6])
        return 1;
    while (*keys && strcmp(*keys, key) != 0)
        keys++;
    return *keys != NULL;
}

/* Returns what a key is called here, of git or in another spelling; or NULL. */
static const char *key_meant(const char *key)
{
    static const struct {
        const char *word, *key;
    } words[] = { { "user.name", "author" },     { "user.email", "author" }, { "name", "author" },
                  { "email", "author" },         { "user", "author" },       { "colour", "color" },
                  { "color.ui", "color" },       { "core.pager", "pager" },  { "codec", "codecs" },
                  { "compression", "codecs" },   { "compress", "codecs" } };

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strcmp(words[i].word, key) == 0)
            return words[i].key;
    return NULL;
}

/* Refuses a key that is not one of the repository's, if it is one of users' or is called otherwise
 * here. */
static int check_repository_key(struct cli *cli, const char *key)
{
    const char *meant = key_meant(key);

    for (int i = 0; settings[i]; i++)
        if (strcmp(settings[i], key) == 0)
            return BRC_OK;
    for (int i = 0; settings[i] && meant; i++)
        if (strcmp(settings[i], meant) == 0)
            return cli_usage(cli, "there is no setting '%s': it is '%s'", key, meant);
    if (is_user_key(meant ? meant : key))
        return cli_usage(cli, "'%s' is not a setting of a repository: it is 'breccia config --user "
                              "%s'", key, meant ? meant : key);
    return BRC_OK;
}

static int fail_user_key(struct cli *cli, const char *key)
{
    const char *meant = key_meant(key);

    if (meant)
        return cli_usage(cli, "'%s' is not a setting of users: it is '%s'%s", key, meant,
                         strcmp(meant, "author") == 0 ? ", such as 'Ada <ada@example.org>'" : "");
    return cli_usage(cli, "'%s' is not a setting of users: these are author, backend, cache, "
                          "cache-bytes, codecs, color, pager, threads and alias.NAME", key);
}

/* Checks a value as far as that is possible without a repository. */
static int check_user_value(struct cli *cli, const char *key, const char *value)
{
    const char *rest = value + strspn(value, "0123456789");
    uint64_t bytes;
    int is_color = strcmp(value, "auto") == 0 || strcmp(value, "always") == 0 ||
                   strcmp(value, "never") == 0;

    if (strcmp(key, "threads") == 0 && (!value[0] || rest[0] || rest - value > 4))
        return cli_usage(cli, "threads: '%s' is not a whole number from 0 to 1024", value);
    if (strcmp(key, "cache-bytes") == 0)
        return cli_cache_bytes(cli, value, &bytes);
    if (strcmp(key, "color") == 0 && !is_color)
        return cli_usage(cli, "color: '%s' is not one of auto|always|never", value);
    if (strcmp(key, "codecs") == 0 && value[0] != '[')
        return cli_usage(cli, "codecs: '%s' is not a list in JSON, such as '[\"zstd\"]'", value);
    if (strncmp(key, "alias.", 6) == 0 && cli_command_find(cli, key + 6))
        return cli_usage(cli, "'%s' is a command: give the alias another name", key + 6);
    if (!value[0])
        return cli_usage(cli, "%s: the value is empty; --unset removes the setting", key);
    return value[0] == '[' || value[0] == '{' ? cli_json_text_argument(cli, key, value, 0, &value)
                                              : BRC_OK;
}

static void put_user_line(struct cli *cli, const char *key, const char *value, int *width)
{
    const char *lead = cli_text(cli, "%-*s  ", *width, key);

    cli_put_members(cli, CLI_FIELDS({ key, CLI_OF(value), CLI_AS_JSON, .lead = lead, .none = "" }));
}

static int run_user_config(struct cli *cli)
{
    const char *key = cli_operand(cli, 0), *value = cli_operand(cli, 1);
    const int unset = cli_has(cli, "unset");
    int width = 7;

    if (cli_operand(cli, 2))
        return cli_usage(cli, "'%s' is one argument too many: --user has no FILE",
                         cli_operand(cli, 2));
    if (key && !is_user_key(key))
        return fail_user_key(cli, key);
    if (key && value)
        CLI_TRY(check_user_value(cli, key, value));
    if (value || unset)
        CLI_TRY(cli_setting_put(cli, key, value));
    if (!key)
        CLI_TRY(cli_settings_each(cli, widen_keys, &width));
    cli_begin(cli, NULL, '{');
    if (!key)
        CLI_TRY(cli_settings_each(cli, put_user_line, &width));
    if (key && !unset) {
        CLI_TRY(cli_setting(cli, key, &value, NULL));
        put_user_line(cli, key, value, &width);
    }
    cli_finish(cli, '{');
    return BRC_OK;
}

static int run_config(struct cli *cli)
{
    const int user = cli_has(cli, "user"), unset = cli_has(cli, "unset");
    const char *key = cli_operand(cli, user ? 0 : 1), *value = cli_operand(cli, user ? 1 : 2);
    const char *lead = "";

    if (unset && (!key || value))
        return cli_usage(cli, "--unset takes KEY and no VALUE");
    if (cli_has(cli, "show-origin") && key)
        return cli_usage(cli, "--show-origin takes no KEY: it lists all settings");
    if (cli_has(cli, "show-origin"))
        return show_origins(cli);
    if (user)
        return run_user_config(cli);
    if (!cli_operand(cli, 0))
        return cli_usage(cli, "config needs FILE, the repository, or --user");
    if (!key)
        return show_settings(cli);
    CLI_TRY(check_repository_key(cli, key));
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
    .summary = "show and change settings",
    .usage = "FILE [KEY [VALUE]]\nFILE KEY --unset\n--user [KEY [VALUE]]\n--user KEY --unset\n"
             "[FILE] --show-origin",
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
               "         the chunk that was written, by its id. 'fsck' always checks both.\n"
               "readback which new chunks are decoded and compared with what was written,\n"
               "         before they are stored. all (the default), sampled: one of 16, by its\n"
               "         id, none. --readback comes before the setting.\n"
               "\n"
               "--user: settings in $XDG_CONFIG_HOME/breccia/config.json, or\n"
               "~/.config/breccia/config.json, for all repositories. Options come before the\n"
               "environment (BRECCIA_AUTHOR, BRECCIA_CACHE, BRECCIA_CACHE_BYTES,\n"
               "BRECCIA_COLOR, BRECCIA_PAGER, BRECCIA_THREADS), and that before the file.\n"
               "author   the author of commits, 'Ada <ada@example.org>'\n"
               "threads  how many worker threads to use\n"
               "color    auto, always or never\n"
               "cache, cache-bytes  a file in which chunks of servers (backend s3) are kept\n"
               "         when they are read, and its most bytes (1 GiB). Repositories may share\n"
               "         it, and it can be deleted at any time. Without it nothing is kept.\n"
               "pager    the program that shows long output on a terminal, before PAGER and\n"
               "         less; cat: none\n"
               "codecs, backend  what a repository begins with that you make; after that the\n"
               "         repository's own settings count\n"
               "alias.NAME  the command, and its first arguments, that NAME stands for",
    .examples = "breccia config climate.brc journal wal\n"
                "breccia config climate.brc backend org.example.dir --plugin ./dirstore.so\n"
                "breccia config climate.brc codecs '[\"zstd\"]'\n"
                "breccia config climate.brc journal --unset\n"
                "breccia config --user author 'Ada <ada@example.org>'\n"
                "breccia config --user alias.st status\n"
                "breccia config climate.brc --show-origin",
    .options = config_options,
    .min_operands = 0,
    .max_operands = 3,
    .flags = CLI_USER,
    .run = run_config,
};
