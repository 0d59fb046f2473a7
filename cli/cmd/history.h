/*
 * history.h - commits, and the refs that name them, as text and JSON.
 */
#ifndef BRC_CLI_CMD_HISTORY_H
#define BRC_CLI_CMD_HISTORY_H

#include <stddef.h>

#include "../../src/breccia.h"

/* ---- picked -------------------------------- */

/*
 * history.h - what cherry-pick, revert and rebase have in common, and merge with them.
 */

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
/* Reads the open operation of the branch; fails where another command began that operation. */
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

/* ---- graph -------------------------------- */

/*
 * history.h - the lines to the left of `log --graph`.
 *
 * There is one lane for each commit that is still to come. A commit takes its lane; its
 * first parent inherits it, other parents open lanes to the right, and lanes that wait
 * for the same commit become one.
 */

struct cli;

struct cli_graph {
    brc_oid *lanes;
    size_t n, cap;
};

/* The texts to print before the first line of a commit and before its other lines. */
void cli_graph_enter(struct cli *cli, struct cli_graph *graph, const brc_commit *commit,
                     const char **first, const char **prefix);
/* Moves on to its parents and prints the connecting lines. */
void cli_graph_connect(struct cli *cli, struct cli_graph *graph, const brc_commit *commit);
void cli_graph_dispose(struct cli_graph *graph);

/* ---- history -------------------------------- */

struct cli;

struct cli_ref {
    const char *name, *message;
    int is_tag, is_current, is_unborn;
    brc_oid id; /* zero: is_unborn */
};

struct cli_refs {
    struct cli_ref *refs;
    size_t n;
};

/* All branches and tags; lasts as long as `cli`. */
int cli_refs_read(struct cli *cli, struct cli_refs *refs);
/* The commit of a branch or tag; zero if it does not exist or has none. */
int cli_ref_find(struct cli *cli, const char *name, int is_tag, brc_oid *id);
/* Has the current branch no commit yet? */
int cli_refs_unborn(const struct cli_refs *refs);
int cli_same_id(const brc_oid *a, const brc_oid *b);
/* 0: the id is zero. */
int cli_has_id(const brc_oid *id);

/* A commit as members of the object that is open, or as lines: each begins with `prefix`, such as "| " of
 * a graph, but the first one with `first`. `path` is where it has the node that is asked for, or NULL. */
void cli_put_commit(struct cli *cli, const brc_commit *commit, const struct cli_refs *refs,
                    const char *path, const char *first, const char *prefix);
void cli_commit_line(struct cli *cli, const brc_commit *commit, const struct cli_refs *refs,
                     const char *first);
/* "ada <ada@engine>": who commits where nobody says it. */
const char *cli_default_author(struct cli *cli);

#endif
