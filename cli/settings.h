/*
 * settings.h - what a user sets for all repositories: the environment, and a file in the user's home.
 *
 *   $XDG_CONFIG_HOME/breccia/config.json, or ~/.config/breccia/config.json
 *   {
 *     "author": "Ada <ada@example.org>",
 *     "threads": 4,
 *     "alias": { "st": "status", "ci": "commit -m" }
 *   }
 *
 * An option of the command line comes before the environment, and that before the file. Settings of the
 * repository come before the file too. A repository never has an author or an alias: files come from strangers.
 */
#ifndef BRECCIA_CLI_SETTINGS_H
#define BRECCIA_CLI_SETTINGS_H

#include <stddef.h>
#include <stdint.h>

struct cli;

/* Sets *value to a setting as text (codecs: JSON), or to NULL if the user has not set `key`, and *origin, unless it is
 * NULL, to "environment" or "user". Both last as long as `cli`. Fails if the file cannot be read. */
int cli_setting(struct cli *cli, const char *key, const char **value, const char **origin);
/* Sets *words to the words that the alias `name` stands for and *n to their number, or to 0 if there is no such
 * alias. */
int cli_alias(struct cli *cli, const char *name, const char *const **words, size_t *n);
/* Returns the keys, ended by NULL. Aliases are "alias.NAME". */
const char *const *cli_setting_keys(void);
/* Sets `key` in the user's file, which is made if it does not exist; `value` NULL removes `key`. */
int cli_setting_put(struct cli *cli, const char *key, const char *value);
/* Calls `f` for each setting in the user's file, with the value as text. */
int cli_settings_each(struct cli *cli, void (*f)(struct cli *cli, const char *key, const char *value, int *width),
                      int *width);
/* Reads the most bytes of the cache of chunks; fails with an error of usage. */
int cli_cache_bytes(struct cli *cli, const char *text, uint64_t *out);
/* Gives a repository that was just made the user's codecs and backend. */
int cli_settings_of_new(struct cli *cli);

#endif
