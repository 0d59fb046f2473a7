/*
 * picked.h - what cherry-pick, revert and rebase have in common, and merge with them.
 */
#ifndef BRECCIA_CLI_PICKED_H
#define BRECCIA_CLI_PICKED_H

#include "../../src/breccia.h"

struct cli;

enum { CLI_EXIT_CONFLICT = 3 };

/* --ours, --theirs and the PATHs behind --. */
struct cli_sides {
    int ours, theirs;
    const char *const *paths;
    size_t npaths;
};
int cli_sides(struct cli *cli, struct cli_sides *out);
/* The same as options of a cherry-pick, revert or rebase. */
int cli_pick_sides(struct cli *cli, brc_pick_opts *opts);
/* --message, --author and --date of a commit that is to come; NULL, and no change: not given. */
int cli_commit_words(struct cli *cli, const char **message, const char **author, int64_t *time_us);
/* 0: the words before -- are FILE and a version. 1: it is about what is open: --continue, --skip, --abort, or --ours or
 * --theirs without a version. */
int cli_on_open(struct cli *cli);
/* What is open on the branch: nothing, or what this command began. */
int cli_open_state(struct cli *cli, brc_open_state *out);
/* Says so if --continue found that the branch has moved, and it is open as another draft, over the new tip. */
void cli_say_moved(struct cli *cli, const brc_open_state *was, int64_t draft, const char *branch);
/* --abort, and --ours or --theirs with the PATHs behind --. */
int cli_abort_open(struct cli *cli);
int cli_settle_open(struct cli *cli, const char *const *paths, size_t npaths);
/* The conflicts of cli->iter, in JSON as a member of the object that is open. */
int cli_put_conflicts(struct cli *cli);
/* The result as JSON, and the conflicts of cli->iter as either; with the numbers of commits or without. */
int cli_print_picked(struct cli *cli, const brc_pick_result *r, const char *result, int numbers);

#endif
