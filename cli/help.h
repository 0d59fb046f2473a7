/*
 * help.h - help pages, made from the tables.
 */
#ifndef BRC_CLI_HELP_H
#define BRC_CLI_HELP_H

#include "options.h"

/* ---- the options that every command takes --------------- */

extern const struct cli_option cli_global_options[];
/* The options that stand before the command, beside the global ones. */
extern const struct cli_option cli_leading_options[];

/* Sets cli->json, quiet, threads ... from the options read so far. */
int cli_globals_read(struct cli *cli);

/* ---- help pages ----------------------------------------- */

/* Prints the page of one command. */
void cli_help_command(struct cli *cli, const struct cli_command *command);
/* Prints the list of all commands in cli->commands. */
void cli_help_all(struct cli *cli);
/* Prints the manual page of a command, or of breccia itself if `command` is NULL, for man(1). */
void cli_help_man(struct cli *cli, const struct cli_command *command);

#endif
