/*
 * globals.h - the options that every command takes.
 */
#ifndef BRECCIA_CLI_GLOBALS_H
#define BRECCIA_CLI_GLOBALS_H

#include "options.h"

extern const struct cli_option cli_global_options[];

/* Sets cli->json, quiet, threads ... from the options read so far. */
int cli_globals_read(struct cli *cli);

#endif
