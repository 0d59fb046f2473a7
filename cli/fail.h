/*
 * fail.h - the error of a run: cli->err, which main() alone prints.
 */
#ifndef BRECCIA_CLI_FAIL_H
#define BRECCIA_CLI_FAIL_H

#include "../src/breccia.h"

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
