/*
 * source.h - another file whose arrays a command reads: a repository, or whatever can be imported.
 */
#ifndef BRC_CLI_CMD_SOURCE_H
#define BRC_CLI_CMD_SOURCE_H

#include "../../src/breccia.h"

struct cli;

/* An open source. */
struct cli_source {
    const char *name;
    const char *root;     /* the path of its top node in the session           */
    const char *folder;   /* of the temporary repository that has what was imported; NULL: none */
    breccia *repo;
    brc_session *session;
};

/* Opens a file: a repository itself, as its current branch is committed; anything else is imported into a temporary
 * repository, which cli_source_close() removes. Fails if the file is the command's own repository. */
int cli_source_open(struct cli *cli, const char *name, struct cli_source *out);
void cli_source_close(struct cli *cli, struct cli_source *source);

#endif
