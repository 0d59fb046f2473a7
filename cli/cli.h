/*
 * cli.h - struct cli, the state of one run of the command.
 *
 * A command returns 0, a positive exit status, or a BRC_E* code with cli->err
 * filled in; main() alone prints errors and chooses the exit status.  cli_close()
 * releases everything that a command opened through `cli`.
 *
 * Each file uses only those before it in this order: signals, memory, fail; escape,
 * text, calendar; pager, output, json_out, out_file; record, progress, warn; similar, options,
 * values, csv, globals; picture, png, draw; scalar, cf_time, variable, decode, select; context; command, help; the commands in
 * cmd/ and their table; main.
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
#include "settings.h"
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
    int file_is_set;  /* BRECCIA_FILE is set                                  */
    brc_registry *registry; /* holds the plug-ins of --plugin; NULL without any */
    brc_pool *pool;
    breccia *repo;
    brc_session *session;
    brc_array *array;
    const struct cli_decoder *decoder; /* read --decode: what the elements of `array` mean; else NULL */
    brc_iter *iter;
    int changes; /* the repository is open for changes                        */
    int done;    /* the work is done and durable                              */
    int moved;   /* the branch has moved since its uncommitted changes began: cli_find_moved() */
    int usage;   /* the error is a usage error                                */
    int failed_status; /* the exit status of an error that has none of its own; 0: 1 */
    brc_json *settings; /* the user's file; NULL: there is none, or it was not read yet */
    int settings_read;
    brc_error err;
    struct cli_out out;
    struct cli_json doc;
    struct cli_progress progress;
    struct cli_block *blocks;
};

/* Returns whether the command, with its options, works on a repository. */
int cli_needs_file(const struct cli *cli);
/* Puts the FILE of -f or BRECCIA_FILE before the operands. Replaces FILE@REV by FILE and the option or operand for the
 * version, unless a file has that very name. */
int cli_place_file(struct cli *cli);
/* Loads the plug-ins of --plugin into cli->registry, once. */
int cli_load_plugins(struct cli *cli);
/* Opens FILE with BRC_OPEN_* flags. */
int cli_open(struct cli *cli, uint32_t flags);
/* Returns the folder of the converters that belong to this program, or NULL. */
const char *cli_libexec(struct cli *cli);
/* Opens FILE for reading, with a session on the version of --at, or on the current branch with its uncommitted
 * changes. Prints a note on standard error if the branch has moved since the uncommitted changes began. */
int cli_open_view(struct cli *cli);
/* Does the same without the note. */
int cli_open_silently(struct cli *cli);
/* Does the same, but opens FILE for writing if it can be written: the library keeps there what it has computed of what
 * it read. */
int cli_open_keeping(struct cli *cli);
/* Sets *branch to the current branch, and cli->moved if the branch has moved since its uncommitted changes began. With
 * a session, cli->moved is set only if the session shows these changes. */
int cli_find_moved(struct cli *cli, const char **branch);
/* Returns the sentence that tells the user that the branch has moved. */
const char *cli_moved_words(struct cli *cli, const char *branch);
/* Opens FILE for writing, with a session on the current branch. */
int cli_open_branch(struct cli *cli);
/* Opens FILE likewise for a command that changes what is uncommitted. */
int cli_open_edit(struct cli *cli);
/* Makes what the command changes in the session one operation, "rm /a", which 'undo' takes back. */
int cli_log_edit(struct cli *cli);
/* Opens an array of the session into cli->array. */
int cli_open_array(struct cli *cli, const char *path);
/* Does the same for *path; without a *slice, one may follow *path at once, and is taken off. */
int cli_open_sliced(struct cli *cli, const char **path, const char **slice);
/* Parses SLICE as a selection of cli->array; NULL selects everything. */
int cli_select(struct cli *cli, const char *slice, brc_sel *out);
/* Sets *kind to BRC_ARRAY or BRC_GROUP. Fails if the session has no such node. */
int cli_node_kind(struct cli *cli, const char *path, int *kind);
/* Sets *out to the name of the current branch, which lasts as long as `cli`. */
int cli_branch(struct cli *cli, const char **out);
/* Returns "; did you mean X?" if the message says that a node or a version is not there and names like it are, else "". */
const char *cli_suggestion(struct cli *cli, const char *message);
/* Records that the work is done and durable, and that only the answer is left to print. From now on, an error message
 * says so, and a signal undoes nothing. */
void cli_done(struct cli *cli);
/* Ends the transaction of brc_begin(), and keeps its changes unless `rc` is an error. Returns `rc`, or the error of
 * the end. */
int cli_end(struct cli *cli, int rc);
/* Does the same for brc_bulk_begin(). */
int cli_end_bulk(struct cli *cli, int rc);
void cli_close(struct cli *cli);

#endif
