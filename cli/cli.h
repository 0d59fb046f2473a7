/*
 * cli.h - one run of the command: what every command works with.
 *
 * A command returns 0, a positive exit status, or a BRC_E* code with cli->err
 * filled in; main() alone prints errors and chooses the exit status.  Whatever
 * a command opens through `cli` is released by cli_close().
 *
 * Each file uses only those before it in this order: signals, memory, fail; escape,
 * text, calendar; output, json_out, out_file; record, progress, warn; similar, options,
 * values, globals; context; command, help; the commands in cmd/ and their table; main.
 */
#ifndef BRECCIA_CLI_CLI_H
#define BRECCIA_CLI_CLI_H

#include "../src/breccia.h"
#include "fail.h"
#include "../src/breccia_json.h"
#include "options.h"
#include "output.h"
#include "progress.h"
#include "record.h"
#include "values.h"

struct cli {
    const struct cli_command *const *commands; /* all, ended by NULL          */
    const struct cli_command *command;
    struct cli_args args;
    int json, quiet, verbose, no_progress, help;
    unsigned threads; /* 0: one for each core                                 */
    int wait_ms;      /* as in brc_open_opts                                  */
    uint64_t max_nodes; /* as in brc_open_opts                                */
    const char *file; /* the repository                                       */
    brc_registry *registry; /* with the plug-ins of --plugin; NULL: there are none */
    brc_pool *pool;
    breccia *repo;
    brc_session *session;
    brc_array *array;
    brc_iter *iter;
    int changes; /* the repository is open for changes                        */
    int done;    /* the work is done and durable                              */
    int moved;   /* the branch has, since the uncommitted changes began: cli_find_moved() */
    int usage;   /* the error is a usage error                                */
    brc_error err;
    struct cli_out out;
    struct cli_json doc;
    struct cli_progress progress;
    struct cli_block *blocks;
};

/* Loads the plug-ins of --plugin into cli->registry, once. */
int cli_load_plugins(struct cli *cli);
/* Opens FILE with BRC_OPEN_* flags. */
int cli_open(struct cli *cli, uint32_t flags);
/* The folder of converters of this very command, or NULL: libexec.c. */
const char *cli_libexec(struct cli *cli);
/* Opens FILE to read, with a session of --at, or of the current branch and its
 * uncommitted changes. Where the branch has moved since these began, a note on standard error says so. */
int cli_open_view(struct cli *cli);
/* The same without the note. */
int cli_open_silently(struct cli *cli);
/* Sets cli->moved and *branch, the current branch: whether it has moved since the uncommitted changes began that the
 * session shows; without a session, that it has. */
int cli_find_moved(struct cli *cli, const char **branch);
/* The sentence that says so. */
const char *cli_moved_words(struct cli *cli, const char *branch);
/* The shared draft of a branch that has moved since the draft's changes began; 0: there is none. An open merge does not
 * count. */
int cli_stale_draft(struct cli *cli, const char *branch, int64_t *id);
/* Opens FILE to write, with a session on the current branch. */
int cli_open_edit(struct cli *cli);
/* Opens an array of the session into cli->array. */
int cli_open_array(struct cli *cli, const char *path);
/* What SLICE selects from cli->array; NULL: everything. */
int cli_select(struct cli *cli, const char *slice, brc_sel *out);
/* BRC_ARRAY or BRC_GROUP; an error if the session has no such node. */
int cli_node_kind(struct cli *cli, const char *path, int *kind);
/* The current branch's name; lasts as long as `cli`. */
int cli_branch(struct cli *cli, const char **out);
/* The work is done and durable; only the answer is left to print. An error from now on
 * says so, and a signal no longer undoes anything. */
void cli_done(struct cli *cli);
/* Ends the transaction of brc_begin(): kept unless `rc` is an error. Returns `rc`, or
 * the error of ending it. */
int cli_end(struct cli *cli, int rc);
/* The same for brc_bulk_begin(). */
int cli_end_bulk(struct cli *cli, int rc);
void cli_close(struct cli *cli);

#endif
