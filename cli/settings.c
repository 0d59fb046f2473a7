/*
 * settings.c - what a user sets for all repositories.
 */
#include "settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"

enum { SETTINGS_LIMIT = 1 << 20, ALIAS_WORDS = 64 };

static const char *const setting_keys[] = { "author", "backend", "cache", "cache-bytes",
                                             "codecs", "color", "pager", "threads", NULL };

/* Settings without a variable of their own are for the file alone. */
static const char *const setting_variables[] = { "BRECCIA_AUTHOR", NULL, "BRECCIA_CACHE",
                                                  "BRECCIA_CACHE_BYTES", NULL, "BRECCIA_COLOR",
                                                  "BRECCIA_PAGER", "BRECCIA_THREADS" };

const char *const *cli_setting_keys(void)
{
    return setting_keys;
}

static const char *settings_file(struct cli *cli)
{
    const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");

    if (config && config[0] == '/')
        return cli_text(cli, "%s/breccia/config.json", config);
    return home && home[0] == '/' ? cli_text(cli, "%s/.config/breccia/config.json", home) : NULL;
}

/* ---- the file -------------------------------- */

static int read_settings(struct cli *cli, const char *name)
{
    brc_error why = BRC_ERROR_INIT;
    char *text;
    int rc;

    CLI_TRY(cli_file_text(cli, name, SETTINGS_LIMIT, &text));
    rc = brc_json_parse(&cli->settings, text, strlen(text), 0, &why);
    if (rc < 0)
        return cli_fail(cli, rc, "%s is not valid JSON: %s: mend or delete the file", name,
                        why.message);
    if (brc_json_kind(cli->settings) == BRC_JSON_OBJECT)
        return BRC_OK;
    brc_json_free(cli->settings);
    cli->settings = NULL;
    return cli_fail(cli, BRC_EINVAL, "%s is not a JSON object: mend or delete the file", name);
}

/* Reads the file once. Without a file nothing is set. */
static int read_settings_once(struct cli *cli)
{
    const char *name;
    struct stat status;

    if (cli->settings_read)
        return BRC_OK;
    name = settings_file(cli);
    cli->settings_read = 1;
    return name && stat(name, &status) == 0 ? read_settings(cli, name) : BRC_OK;
}

/* Returns a value as JSON, or NULL with the error in cli->err. */
static const char *json_of(struct cli *cli, const brc_json *value)
{
    brc_buf json = BRC_BUF_INIT;
    const char *out = NULL;

    if (brc_json_write(&json, value, 0, &cli->err) >= 0)
        out = cli_text(cli, "%.*s", (int)json.len, (const char *)json.data);
    brc_buf_dispose(&json);
    return out;
}

/* Sets *out to a value as text: a string as it is, everything else as JSON. */
static int setting_text(struct cli *cli, const brc_json *value, const char **out)
{
    if (brc_json_kind(value) == BRC_JSON_STRING && brc_json_text(value, out))
        return BRC_OK;
    *out = json_of(cli, value);
    return *out ? BRC_OK : cli->err.code;
}

/* Returns the value of a key; that of "alias.st" is the member "st" of "alias". */
static const brc_json *value_of(const struct cli *cli, const char *key)
{
    if (strncmp(key, "alias.", 6) == 0)
        return brc_json_member(brc_json_member(cli->settings, "alias"), key + 6);
    return brc_json_member(cli->settings, key);
}

int cli_setting(struct cli *cli, const char *key, const char **value, const char **origin)
{
    const brc_json *found;
    const char *given = NULL;

    *value = NULL;
    for (size_t i = 0; setting_keys[i]; i++)
        if (setting_variables[i] && strcmp(key, setting_keys[i]) == 0)
            given = getenv(setting_variables[i]);
    if (given && given[0]) {
        *value = given;
        if (origin)
            *origin = "environment";
        return BRC_OK;
    }
    CLI_TRY(read_settings_once(cli));
    found = value_of(cli, key);
    if (!found || brc_json_kind(found) == BRC_JSON_NULL)
        return BRC_OK;
    if (origin)
        *origin = "user";
    return setting_text(cli, found, value);
}

int cli_settings_each(struct cli *cli,
                      void (*f)(struct cli *cli, const char *key, const char *value, int *width),
                      int *width)
{
    CLI_TRY(read_settings_once(cli));
    for (const brc_json *one = brc_json_first(cli->settings); one; one = brc_json_next(one)) {
        const int is_alias = strcmp(brc_json_name(one), "alias") == 0;
        const char *text;

        if (!is_alias) {
            CLI_TRY(setting_text(cli, one, &text));
            f(cli, brc_json_name(one), text, width);
        }
        for (const brc_json *a = is_alias ? brc_json_first(one) : NULL; a; a = brc_json_next(a)) {
            CLI_TRY(setting_text(cli, a, &text));
            f(cli, cli_text(cli, "alias.%s", brc_json_name(a)), text, width);
        }
    }
    return BRC_OK;
}

/* ---- aliases -------------------------------- */

/* Splits text at blanks. */
static size_t alias_words(struct cli *cli, const char *text, const char **out)
{
    size_t n = 0;

    for (text += strspn(text, " \t"); *text && n < ALIAS_WORDS; text += strspn(text, " \t")) {
        size_t len = strcspn(text, " \t");

        out[n++] = cli_text(cli, "%.*s", (int)len, text);
        text += len;
    }
    return n;
}

int cli_alias(struct cli *cli, const char *name, const char *const **words, size_t *n)
{
    const char **out = cli_alloc(cli, ALIAS_WORDS, sizeof(*out)), *text;
    const brc_json *found;

    *words = out;
    *n = 0;
    CLI_TRY(read_settings_once(cli));
    found = brc_json_member(brc_json_member(cli->settings, "alias"), name);
    if (brc_json_kind(found) == BRC_JSON_STRING && brc_json_text(found, &text))
        *n = alias_words(cli, text, out);
    if (brc_json_kind(found) == BRC_JSON_ARRAY)
        for (const brc_json *one = brc_json_first(found); one && *n < ALIAS_WORDS;
             one = brc_json_next(one))
            if (brc_json_text(one, &text))
                out[(*n)++] = cli_text(cli, "%s", text);
    return BRC_OK;
}

/* ---- changing the file -------------------------------- */

/* Returns the members of an object with one more; `json` is the value. */
static const char *with_member(struct cli *cli, const char *members, const char *key,
                               const char *json)
{
    return cli_text(cli, "%s%s  %s: %s", members, members[0] ? ",\n" : "",
                    cli_json_quoted(cli, key), json);
}

/* Sets *out to `object` with another value of `key`, or without the key if `json` is NULL. */
static int changed_object(struct cli *cli, const brc_json *object, const char *key,
                          const char *json, const char **out)
{
    const char *members = "", *kept;

    for (const brc_json *one = brc_json_first(object); one; one = brc_json_next(one)) {
        if (strcmp(brc_json_name(one), key) == 0)
            continue;
        kept = json_of(cli, one);
        if (!kept)
            return cli->err.code;
        members = with_member(cli, members, brc_json_name(one), kept);
    }
    if (json)
        members = with_member(cli, members, key, json);
    *out = cli_text(cli, "{\n%s\n}", members);
    return BRC_OK;
}

static int put_whole(struct cli *cli, const void *ctx)
{
    cli_puts(cli, ctx);
    cli_puts(cli, "\n");
    return BRC_OK;
}

/* Makes the folders above a file that do not exist. */
static void make_folders(struct cli *cli, const char *name)
{
    for (const char *at = strchr(name + 1, '/'); at; at = strchr(at + 1, '/'))
        (void)mkdir(cli_text(cli, "%.*s", (int)(at - name), name), 0777);
}

int cli_setting_put(struct cli *cli, const char *key, const char *value)
{
    const char *name = settings_file(cli), *text, *json = value;
    const int is_alias = strncmp(key, "alias.", 6) == 0;

    if (!name)
        return cli_fail(cli, BRC_ENOTFOUND,
                        "there is no home for settings: set HOME or XDG_CONFIG_HOME");
    CLI_TRY(read_settings_once(cli));
    if (value && strcmp(key, "threads") != 0 && strcmp(key, "cache-bytes") != 0 &&
        value[0] != '[' && value[0] != '{')
        json = cli_json_quoted(cli, value);
    if (is_alias) {
        CLI_TRY(changed_object(cli, brc_json_member(cli->settings, "alias"), key + 6, json,
                               &json));
        key = "alias";
    }
    CLI_TRY(changed_object(cli, cli->settings, key, json, &text));
    make_folders(cli, name);
    CLI_TRY(cli_to_file(cli, name, put_whole, text));
    brc_json_free(cli->settings);
    cli->settings = NULL;
    cli->settings_read = 0;
    return BRC_OK;
}

int cli_cache_bytes(struct cli *cli, const char *text, uint64_t *out)
{
    const size_t digits = strspn(text, "0123456789");

    *out = digits > 0 && digits < 19 ? strtoull(text, NULL, 10) : 0;
    return *out > 0 && text[digits] == '\0'
               ? BRC_OK
               : cli_usage(cli, "cache-bytes: '%s' is not a whole number of bytes above 0", text);
}

/* ---- a new repository -------------------------------- */

int cli_settings_of_new(struct cli *cli)
{
    static const char *const keys[] = { "codecs", "backend" };

    for (size_t i = 0; i < 2; i++) {
        const char *value;
        int rc;

        CLI_TRY(cli_setting(cli, keys[i], &value, NULL));
        rc = value ? brc_config_set(cli->repo, keys[i], value, &cli->err) : BRC_OK;
        if (rc < 0)
            return cli_fail(cli, rc, "the repository was made, but not with your setting '%s': %s",
                            keys[i], cli_text(cli, "%s", cli->err.message));
    }
    return BRC_OK;
}
