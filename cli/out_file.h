/*
 * out_file.h - standard output's place taken by a file.
 */
#ifndef BRECCIA_CLI_OUT_FILE_H
#define BRECCIA_CLI_OUT_FILE_H

#include "output.h"

/* Runs put(cli, ctx) with cli->out leading to the file `name`. A regular file appears whole or
 * not at all: it is written beside its name and takes that at the end. A pipe, a
 * device or a link is written to as it is. BRC_EINVAL where it is the repository. */
int cli_to_file(struct cli *cli, const char *name,
                int (*put)(struct cli *cli, const void *ctx), const void *ctx);

#endif
