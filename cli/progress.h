/*
 * progress.h - one line on standard error while something takes long.
 */
#ifndef BRECCIA_CLI_PROGRESS_H
#define BRECCIA_CLI_PROGRESS_H

#include <stdint.h>

struct cli;

struct cli_progress {
    int enabled;
    int shown;        /* a line stands on the terminal                        */
    int64_t began_ms; /* of the command                                       */
    int64_t last_ms;  /* when the line was last drawn                         */
};

void cli_progress_begin(struct cli *cli);
/* Wipes the line. */
void cli_progress_end(struct cli *cli);
/* A brc_progress_fn; `ctx` is the struct cli. */
int cli_progress_step(void *ctx, const char *what, uint64_t done, uint64_t total);

#endif
