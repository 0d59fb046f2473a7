/*
 * picked.h - what cherry-pick, revert and rebase have in common, and merge with them.
 */
#ifndef BRECCIA_CLI_PICKED_H
#define BRECCIA_CLI_PICKED_H

#include "../../src/breccia.h"

struct cli;

enum { CLI_EXIT_CONFLICT = 3 };

/* --ours, --theirs and the PATHs behind --; there must be FILE and one word more before. */
int cli_pick_sides(struct cli *cli, brc_pick_opts *opts);
/* The conflicts of cli->iter, in JSON as a member of the object that is open. */
int cli_put_conflicts(struct cli *cli);
/* The result as JSON, and the conflicts of cli->iter as either; with the numbers of commits or without. */
int cli_print_picked(struct cli *cli, const brc_pick_result *r, const char *result, int numbers);

#endif
