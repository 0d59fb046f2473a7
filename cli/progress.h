/*
 * progress.h - one line on standard error while a command takes long.
 */
#ifndef BRC_CLI_PROGRESS_H
#define BRC_CLI_PROGRESS_H

#include <stddef.h>
#include <stdint.h>

#include "../src/breccia.h"
#include "record.h"

/* ---- warn -------------------------------- */

/*
 * progress.h - what somebody should know of a call that did what it was asked.
 */

struct cli;

/* Lines of the library, each on standard error behind "breccia: warning: "; not with --quiet. */
void cli_warn(struct cli *cli, const brc_buf *lines);
/* The lines of the bytes from `from` to before `to`; last as long as `cli`. */
struct cli_texts cli_warnings(struct cli *cli, const brc_buf *lines, size_t from, size_t to);

/* ---- progress -------------------------------- */

struct cli;

struct cli_progress {
    int enabled;
    int shown;        /* the line is on the terminal                          */
    int64_t began_ms; /* of the command                                       */
    int64_t last_ms;  /* when the line was last drawn                         */
    uint64_t read;    /* bytes of standard input, which count as done         */
    uint64_t done, total; /* as last reported                                 */
};

void cli_progress_begin(struct cli *cli);
/* The work that follows, up to brc_progress_end(), is this selection of cli->array. */
void cli_progress_total(struct cli *cli, const brc_sel *sel);
/* That many more bytes were read from standard input. */
void cli_progress_read(struct cli *cli, size_t bytes);
/* Wipes the line. */
void cli_progress_end(struct cli *cli);
/* "import: 1.2 GiB of 4.0 GiB (30 %), 310.5 MiB/s, 9 s left", after `ms`; total 0: unknown. */
const char *cli_progress_text(char *out, size_t cap, const char *name, uint64_t done,
                              uint64_t total, int64_t ms);
/* 1 if it is time to redraw the line; `out` is then its text. */
int cli_progress_line(struct cli_progress *progress, char *out, size_t cap, const char *name,
                      int64_t now_ms);
/* A brc_progress_fn; `ctx` is the struct cli. */
int cli_progress_step(void *ctx, const char *phase, uint64_t done, uint64_t total);

#endif
