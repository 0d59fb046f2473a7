/*
 * fail.h - the memory, the signals and the error of a run.
 */
#ifndef BRC_CLI_FAIL_H
#define BRC_CLI_FAIL_H

#include <stddef.h>

#include "../src/breccia.h"

/* ---- the memory of a run -------------------------------- */

struct cli;
struct cli_block;

/* Returns zeroed memory, which lasts until cli_close(). */
void *cli_alloc(struct cli *cli, size_t n, size_t size);
char *cli_text(struct cli *cli, const char *format, ...) BRC_PRINTF(2, 3);
/* Calls realloc(); the caller frees the memory. */
void *cli_regrow(void *memory, size_t n, size_t size);
/* Makes room for one more item in a list of `n` items. *cap is how many items the list has room for. */
void *cli_grow(void *list, size_t n, size_t *cap, size_t size);
/* Returns a mark for cli_memory_release(). */
struct cli_block *cli_memory_mark(const struct cli *cli);
/* Frees the memory that cli_alloc() and cli_text() returned since `mark` was taken; NULL frees all of it. */
void cli_memory_release(struct cli *cli, struct cli_block *mark);

/* ---- signals: SIGINT and SIGTERM stop the command ------- */

/* Call this function once, at the start. */
void cli_signal_install(void);
/* Returns the signal that asked the command to stop, or 0. */
int cli_signal(void);
/* Sets the repository that a signal interrupts. With NULL, a signal ends the process at once. */
void cli_signal_target(breccia *repo);
/* From now until the next cli_signal_target(), a signal is only remembered. */
void cli_signal_hold(void);

/* ---- fail -------------------------------- */

#define CLI_TRY(expression)                                                                        \
    do {                                                                                           \
        int try_rc_ = (expression);                                                                \
        if (try_rc_ < 0)                                                                           \
            return try_rc_;                                                                        \
    } while (0)

/* Fills in cli->err and returns the code, as do the next two functions. */
int cli_fail(struct cli *cli, int code, const char *format, ...) BRC_PRINTF(3, 4);
/* Reports wrong arguments: the exit status is 2, and the message points to the help. */
int cli_usage(struct cli *cli, const char *format, ...) BRC_PRINTF(2, 3);
/* Ends a call of the library that had a callback. If the callback failed, cli->err keeps the callback's error, else
 * cli->err becomes `err`, which the library filled in. */
int cli_called(struct cli *cli, int rc, const brc_error *err);
/* Fails with "WHAT: " and the text of an errno. The code is BRC_EINTERRUPT if a signal made the call fail. */
int cli_fail_errno(struct cli *cli, int number, const char *what);

#endif
