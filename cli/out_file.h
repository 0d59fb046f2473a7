/*
 * out_file.h - a file in place of standard output.
 */
#ifndef BRECCIA_CLI_OUT_FILE_H
#define BRECCIA_CLI_OUT_FILE_H

#include "output.h"

/* Runs put(cli, ctx) with cli->out writing to the file `name`. A regular file appears
 * complete or not at all: it gets its name at the end. A pipe, a device or a link is
 * written to directly. BRC_EINVAL if it is the repository. */
int cli_to_file(struct cli *cli, const char *name,
                int (*put)(struct cli *cli, const void *ctx), const void *ctx);

#endif
