/*
 * history.h - commits, and the refs that name them, as text and JSON.
 */
#ifndef BRC_CLI_CMD_HISTORY_H
#define BRC_CLI_CMD_HISTORY_H

#include <stddef.h>

#include "../../src/breccia.h"

/* ---- what merge, cherry-pick, revert and rebase have in common ---- */

struct cli;

enum { CLI_EXIT_CONFLICT = 3 };

/* The options --ours and --theirs, and the PATHs after --. */
struct cli_sides {
    int ours, theirs;
    const char *const *paths;
    size_t npaths;
};
int cli_sides(struct cli *cli, struct cli_sides *out);
/* Reads the same into the options of a cherry-pick, revert or rebase. */
int cli_pick_sides(struct cli *cli, brc_pick_opts *opts);
/* Reads --message, --author and --date of the commit to make. Without --message, *message is NULL, without --author,
 * *author; without --date, *time_us stays as it is. */
int cli_commit_words(struct cli *cli, const char **message, const char **author, int64_t *time_us);
/* Returns 0 if the operands before -- are FILE and a version, and 1 if the command is about the open operation: with
 * --continue, --skip or --abort, or with --ours or --theirs and no version. */
int cli_on_open(struct cli *cli);
/* Goes on with the open operation of the branch; fails where another command began that operation. *was is the state
 * before. */
int cli_continue(struct cli *cli, brc_open_state *was, brc_pick_result *out, const brc_pick_opts *opts);
/* Tells the user if --continue found that the branch has moved, so that another draft over the new tip is open now. */
void cli_say_moved(struct cli *cli, const brc_open_state *was, int64_t draft, const char *branch);
/* Runs --abort, or --ours or --theirs with the PATHs after --, or calls `go_on` for --continue and --skip. `opts` are
 * those of the command. */
typedef int (*cli_go_on)(struct cli *cli, const char *branch, const void *opts);
int cli_run_open(struct cli *cli, cli_go_on go_on, const void *opts);
/* Prints the conflicts of cli->iter; in JSON, as a member of the open object. */
int cli_put_conflicts(struct cli *cli);
/* Prints the result as JSON, and the conflicts of cli->iter as JSON or text. `numbers` adds the numbers of commits. */
int cli_print_picked(struct cli *cli, const brc_pick_result *r, const char *result, int numbers);

/* ---- the lines to the left of `log --graph` ------------- */

/*
 * There is one lane for each commit that is still to come. A commit takes its lane; its
 * first parent inherits it, other parents open lanes to the right, and lanes that wait
 * for the same commit become one.
 */

struct cli_graph {
    brc_oid *lanes;
    size_t n, cap;
};

/* Sets the texts to print before the first line of a commit and before its other lines. */
void cli_graph_enter(struct cli *cli, struct cli_graph *graph, const brc_commit *commit,
                     const char **first, const char **prefix);
/* Moves on to the parents of the commit and prints the connecting lines. */
void cli_graph_connect(struct cli *cli, struct cli_graph *graph, const brc_commit *commit);
void cli_graph_dispose(struct cli_graph *graph);

/* ---- history -------------------------------- */

struct cli_ref {
    const char *name, *message;
    int is_tag, is_current, is_unborn;
    brc_oid id; /* zero: is_unborn */
};

struct cli_refs {
    struct cli_ref *refs;
    size_t n;
};

/* Reads all branches and tags, which last as long as `cli`. */
int cli_refs_read(struct cli *cli, struct cli_refs *refs);
/* Sets *id to the commit of a branch or tag; to zero if the ref does not exist or has no commit. */
int cli_ref_find(struct cli *cli, const char *name, int is_tag, brc_oid *id);
/* Returns whether the current branch has no commit yet. */
int cli_refs_unborn(const struct cli_refs *refs);
int cli_same_id(const brc_oid *a, const brc_oid *b);
/* Returns 0 if the id is zero. */
int cli_has_id(const brc_oid *id);

/* Prints a commit as members of the open object, or as lines. A line begins with `prefix`, such as "| " of a graph, but
 * the first line begins with `first`. `path` is where the commit has the node that the user asked for, or NULL. */
void cli_put_commit(struct cli *cli, const brc_commit *commit, const struct cli_refs *refs,
                    const char *path, const char *first, const char *prefix);
void cli_commit_line(struct cli *cli, const brc_commit *commit, const struct cli_refs *refs,
                     const char *first);
/* Sets *out to the author of a commit where the command line names none: the setting, or "ada <ada@engine>". */
int cli_default_author(struct cli *cli, const char **out);

#endif
