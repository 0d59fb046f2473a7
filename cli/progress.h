/*
 * progress.h - standard error: warnings, and a line about progress while a command takes long.
 */
#ifndef BRC_CLI_PROGRESS_H
#define BRC_CLI_PROGRESS_H

#include <stddef.h>
#include <stdint.h>

#include "../src/breccia.h"
#include "record.h"

/* ---- warnings of calls that succeeded ------------------- */

struct cli;

/* Prints the library's lines on standard error, each after "breccia: warning: ", unless --quiet was given. */
void cli_warn(struct cli *cli, const brc_buf *lines);
/* Prints a line of ours, already fit for a terminal, after "breccia: note: ", unless --quiet was given. */
void cli_note(struct cli *cli, const char *text);
/* Returns the lines in the bytes from `from` up to `to`, which last as long as `cli`. */
struct cli_texts cli_warnings(struct cli *cli, const brc_buf *lines, size_t from, size_t to);

/* ---- progress -------------------------------- */

struct cli_progress {
    int enabled;
    int shown;        /* the line is on the terminal                          */
    int64_t began_ms; /* when the command began                               */
    int64_t last_ms;  /* when the line was last drawn                         */
    uint64_t read;    /* bytes of standard input, which count as done         */
    uint64_t done, total; /* as last reported                                 */
};

void cli_progress_begin(struct cli *cli);
/* Sets the total of the work until brc_progress_end() to this selection of cli->array. */
void cli_progress_total(struct cli *cli, const brc_sel *sel);
/* Counts bytes that were read from standard input. */
void cli_progress_read(struct cli *cli, size_t bytes);
/* Wipes the line. */
void cli_progress_end(struct cli *cli);
/* Writes "import: 1.2 GiB of 4.0 GiB (30 %), 310.5 MiB/s, 9 s left" after `ms` milliseconds. A total of 0 is
 * unknown. */
const char *cli_progress_text(char *out, size_t cap, const char *name, uint64_t done,
                              uint64_t total, int64_t ms);
/* Returns 1 and the text of the line in `out` if it is time to redraw the line. */
int cli_progress_line(struct cli_progress *progress, char *out, size_t cap, const char *name,
                      int64_t now_ms);
/* A brc_progress_fn; `ctx` is the struct cli. */
int cli_progress_step(void *ctx, const char *phase, uint64_t done, uint64_t total);

#endif
