/*
 * history.h - commits, and the refs that name them, as text and JSON.
 */
#ifndef BRECCIA_CLI_HISTORY_H
#define BRECCIA_CLI_HISTORY_H

#include "../../src/breccia.h"

#include <stddef.h>

struct cli;

struct cli_ref {
    const char *name, *message;
    int is_tag, is_current, is_unborn;
    brc_oid id;
};

struct cli_refs {
    struct cli_ref *refs;
    size_t n;
};

/* All branches and tags; lasts as long as `cli`. */
int cli_refs_read(struct cli *cli, struct cli_refs *refs);
/* *has: does this branch or tag exist and have a commit? Then that is *id. */
int cli_ref_find(struct cli *cli, const char *name, int is_tag, int *has, brc_oid *id);
/* Has the current branch no commit yet? */
int cli_refs_unborn(const struct cli_refs *refs);
int cli_same_id(const brc_oid *a, const brc_oid *b);

/* The members of a commit, into an object that is open. */
void cli_commit_members(struct cli *cli, const brc_commit *commit, const struct cli_refs *refs);
/* Each line begins with `prefix`, such as "| " of a graph, but the first one with
 * `first`. `path` is where it has the node that is asked for; NULL: no line for that. */
void cli_commit_text(struct cli *cli, const brc_commit *commit, const struct cli_refs *refs,
                     const char *path, const char *first, const char *prefix);
void cli_commit_line(struct cli *cli, const brc_commit *commit, const struct cli_refs *refs,
                     const char *first);
/* The first line of a message. */
const char *cli_subject(struct cli *cli, const char *message);
/* "ada <ada@engine>": who commits where nobody says it. */
const char *cli_default_author(struct cli *cli);

#endif
