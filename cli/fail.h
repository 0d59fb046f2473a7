/*
 * fail.h - the error of a run: cli->err, which main() alone prints.
 */
#ifndef BRC_CLI_FAIL_H
#define BRC_CLI_FAIL_H

#include <stddef.h>

#include "../src/breccia.h"

/* ---- memory -------------------------------- */

/*
 * fail.h - the memory of a run.
 */

struct cli;
struct cli_block;

/* Zeroed; lasts until cli_close(). */
void *cli_alloc(struct cli *cli, size_t n, size_t size);
char *cli_text(struct cli *cli, const char *format, ...) BRC_PRINTF(2, 3);
/* realloc(); the caller frees it. */
void *cli_regrow(void *memory, size_t n, size_t size);
/* Makes room for one more item in a list of `n`; *cap: how many it has room for. */
void *cli_grow(void *list, size_t n, size_t *cap, size_t size);
/* The newest memory of the first two. */
struct cli_block *cli_memory_mark(const struct cli *cli);
/* Frees what the first two returned after the mark; NULL: everything. */
void cli_memory_release(struct cli *cli, struct cli_block *mark);

/* ---- signals -------------------------------- */

/*
 * fail.h - SIGINT and SIGTERM stop what the repository does, and the command with it.
 */

/* At the start, once. */
void cli_signal_install(void);
/* The signal that asked to stop, or 0. */
int cli_signal(void);
/* The repository that a signal stops; NULL: a signal ends the process at once. */
void cli_signal_target(breccia *repo);
/* Until the next cli_signal_target() a signal is only remembered. */
void cli_signal_hold(void);

/* ---- fail -------------------------------- */

struct cli;

#define CLI_TRY(expression)                                                                        \
    do {                                                                                           \
        int try_rc_ = (expression);                                                                \
        if (try_rc_ < 0)                                                                           \
            return try_rc_;                                                                        \
    } while (0)

/* Each returns the code. */
int cli_fail(struct cli *cli, int code, const char *format, ...) BRC_PRINTF(3, 4);
/* Wrong arguments: exit status 2 and a pointer to the help. */
int cli_usage(struct cli *cli, const char *format, ...) BRC_PRINTF(2, 3);
/* The end of a call of the library whose callback may have failed with cli->err filled in, which is
 * the error then; else it is `err`, which the library filled in. */
int cli_called(struct cli *cli, int rc, const brc_error *err);
/* "WHAT: why", by errno. BRC_EINTERRUPT if a signal made the call fail. */
int cli_fail_errno(struct cli *cli, int number, const char *what);

#endif
