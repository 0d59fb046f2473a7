/*
 * cli.h - one run of the command: what every command works with.
 *
 * A command returns 0, a positive exit status, or a BRC_E* code with cli->err
 * filled in; main() alone prints errors and chooses the exit status.  Whatever
 * a command opens through `cli` is released by cli_close().
 *
 * The files stand on each other in this order: signals, memory, fail; escape, text,
 * calendar, json_scan; output, json_out, progress, out_file; similar, options, values,
 * globals; context; command, help; the commands in cmd/ and their table; main.
 */
#ifndef BRECCIA_CLI_CLI_H
#define BRECCIA_CLI_CLI_H

#include "../src/breccia.h"
#include "calendar.h"
#include "command.h"
#include "escape.h"
#include "fail.h"
#include "json_out.h"
#include "json_scan.h"
#include "memory.h"
#include "options.h"
#include "output.h"
#include "progress.h"
#include "signals.h"
#include "text.h"
#include "values.h"

struct cli {
    const struct cli_command *const *commands; /* all, ended by NULL          */
    const struct cli_command *command;
    struct cli_args args;
    int json, quiet, verbose, no_progress, help;
    unsigned threads; /* 0: one a core                                        */
    int wait_ms;      /* as in brc_open_opts                                  */
    uint64_t max_nodes; /* likewise                                           */
    const char *file; /* the repository                                       */
    brc_registry *registry; /* with the plug-ins that were named; NULL: none    */
    brc_pool *pool;
    breccia *repo;
    brc_session *session;
    brc_array *array;
    brc_iter *iter;
    int changes; /* the repository is open to be changed                      */
    int done;    /* what was asked for is done and durable                    */
    int usage;   /* the error is one of usage                                 */
    brc_error err;
    struct cli_out out;
    struct cli_json doc;
    struct cli_progress progress;
    struct cli_block *blocks;
};

/* Loads what --plugin names into cli->registry, once. */
int cli_load_plugins(struct cli *cli);
/* BRC_OPEN_* flags. */
int cli_open(struct cli *cli, uint32_t flags);
/* Read-only, with a session at --at or on the current branch as it is. */
int cli_open_view(struct cli *cli);
/* With a session that changes the current branch. */
int cli_open_edit(struct cli *cli);
/* Opens an array of the session into cli->array. */
int cli_open_array(struct cli *cli, const char *path);
/* What SLICE selects of cli->array; NULL: everything. */
int cli_select(struct cli *cli, const char *slice, brc_sel *out);
/* BRC_ARRAY or BRC_GROUP; an error where the session has no such node. */
int cli_node_kind(struct cli *cli, const char *path, int *kind);
/* The current branch's name; lasts as long as `cli`. */
int cli_branch(struct cli *cli, const char **out);
/* What was asked for is done and durable; only the answer is left. An error from now
 * on says so, and a signal no longer undoes anything. */
void cli_done(struct cli *cli);
/* Ends what brc_begin() began: kept where `rc` is no error. Gives back `rc`, or the
 * error of ending. */
int cli_end(struct cli *cli, int rc);
void cli_close(struct cli *cli);

#endif
