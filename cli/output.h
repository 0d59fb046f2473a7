/*
 * output.h - standard output.
 *
 * Bytes are buffered and every write is checked; the first failure is kept and
 * reported at the end.  Output that is held (a JSON document) appears only when the
 * command has succeeded: it waits in memory, and beyond 16 MiB in a temporary file
 * without a name.
 */
#ifndef BRECCIA_CLI_OUTPUT_H
#define BRECCIA_CLI_OUTPUT_H

#include "../src/breccia.h"

#include <stddef.h>
#include <stdio.h>

struct cli;

struct cli_out {
    int fd;
    const char *name; /* for messages                                         */
    int hold;         /* nothing is shown before cli_out_flush()              */
    int color;
    int terminal;
    int answers; /* the work is done: a signal does not cut off the answer */
    int failure; /* errno of the first write that failed                      */
    char *data;
    size_t len, cap;
    FILE *spill;
};

enum cli_color { CLI_PLAIN, CLI_BOLD, CLI_RED, CLI_GREEN, CLI_YELLOW, CLI_CYAN, CLI_DIM };

void cli_out_begin(struct cli_out *out, int fd, const char *name);
/* Shows what is left. The error names `name`. */
int cli_out_flush(struct cli *cli);
void cli_out_dispose(struct cli_out *out);
/* The failure so far, if any: for loops that write much. */
int cli_out_check(struct cli *cli);

void cli_put(struct cli *cli, const char *bytes, size_t len);
void cli_puts(struct cli *cli, const char *text);
void cli_printf(struct cli *cli, const char *format, ...) BRC_PRINTF(2, 3);
/* One line about what was done; not with --json or --quiet. */
void cli_say(struct cli *cli, const char *format, ...) BRC_PRINTF(2, 3);
void cli_color(struct cli *cli, enum cli_color color);
void cli_color_end(struct cli *cli);

/* The text, padded with spaces to `width` columns. */
void cli_put_padded(struct cli *cli, const char *text, size_t width);

#endif
