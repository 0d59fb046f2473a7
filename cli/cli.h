/*
 * cli.h - what every command works with: arguments, the repository, output, the
 * error.
 *
 * A command returns 0, a positive exit status, or a BRC_E* code with cli->err
 * filled in; main() alone prints errors and chooses the exit status.  Whatever
 * a command opens through `cli` is released by cli_close().
 */
#ifndef BRECCIA_CLI_CLI_H
#define BRECCIA_CLI_CLI_H

#include "../src/breccia.h"
#include "commands.h"
#include "json_out.h"
#include "options.h"
#include "output.h"
#include "progress.h"
#include "values.h"

#define CLI_TRY(expression)                                                                        \
    do {                                                                                           \
        int try_rc_ = (expression);                                                                \
        if (try_rc_ < 0)                                                                           \
            return try_rc_;                                                                        \
    } while (0)

struct cli_block; /* memory that cli_close() releases */

struct cli {
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

/* ---- errors --------------------------------------------------------------- */

int cli_fail(struct cli *cli, int code, const char *format, ...) BRC_PRINTF(3, 4);
/* Wrong arguments: exit status 2 and a pointer to the help. */
int cli_usage(struct cli *cli, const char *format, ...) BRC_PRINTF(2, 3);
/* `what`: errno's words */
int cli_fail_errno(struct cli *cli, int number, const char *what);

/* ---- memory: released by cli_close(); out of it, the process ends ---------- */

void *cli_alloc(struct cli *cli, size_t n, size_t size);
char *cli_text(struct cli *cli, const char *format, ...) BRC_PRINTF(2, 3);
/* realloc() that ends the process instead of failing; not released for you. */
void *cli_regrow(void *memory, size_t n, size_t size);

/* ---- the repository --------------------------------------------------------- */

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
/* What was asked for is done and durable; only the answer is left. An error from now
 * on says so, and a signal no longer undoes anything. */
void cli_done(struct cli *cli);
/* Ends what brc_begin() began: kept where `rc` is no error. Gives back `rc`, or the
 * error of ending. */
int cli_end(struct cli *cli, int rc);
void cli_close(struct cli *cli);
/* "a/b/" as "/a/b". */
const char *cli_path(struct cli *cli, const char *operand);
/* The first 8 digits. */
const char *cli_short_id(struct cli *cli, const brc_oid *id);
const char *cli_long_id(struct cli *cli, const brc_oid *id);

/* ---- signals ---------------------------------------------------------------- */

/* At the start, once. */
void cli_signal_install(void);
/* The signal that asked to stop, or 0. */
int cli_signal(void);
/* Which repository a signal stops; NULL: it ends the process at once. */
void cli_signal_target(breccia *repo);
/* Signals only leave a mark until the next cli_signal_target(). */
void cli_signal_hold(void);

#endif
