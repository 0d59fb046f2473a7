/*
 * help.h - help pages, made from the tables.
 */
#ifndef BRECCIA_CLI_HELP_H
#define BRECCIA_CLI_HELP_H

#include "command.h"

/* The page of one command. */
void cli_help_command(struct cli *cli, const struct cli_command *command);
/* The list of all in cli->commands. */
void cli_help_all(struct cli *cli);

#endif
