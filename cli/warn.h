/*
 * warn.h - what somebody should know of a call that did what it was asked.
 */
#ifndef BRECCIA_CLI_WARN_H
#define BRECCIA_CLI_WARN_H

#include "../src/breccia.h"

struct cli;

/* Lines of the library, each on standard error behind "breccia: warning: "; not with --quiet. */
void cli_warn(struct cli *cli, const brc_buf *lines);
/* The lines of the bytes from `from` to before `to` as the member "warnings", a list, of the object that
 * is open in the JSON answer. */
void cli_warnings_json(struct cli *cli, const brc_buf *lines, size_t from, size_t to);

#endif
