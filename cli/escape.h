/*
 * escape.h - makes text safe to show on a terminal.
 */
#ifndef BRECCIA_CLI_ESCAPE_H
#define BRECCIA_CLI_ESCAPE_H

#include <stddef.h>

struct cli;

/* Length of the valid UTF-8 character at `text` (1 to 4), 0 if it is invalid. */
size_t cli_utf8_length(const char *text);
/* The text with control characters and invalid UTF-8 written as \n, \x1b ..., so that
 * a name from a file cannot control the terminal.  Lasts as long as `cli`. */
const char *cli_escaped(struct cli *cli, const char *text);
/* The same for `len` bytes, which may contain NUL. */
const char *cli_escaped_bytes(struct cli *cli, const char *text, size_t len);
/* Does a terminal obey this character of `n` valid bytes instead of showing it? This is
 * true of C0, DEL, C1, ends of lines and the marks that change the direction of writing. */
int cli_steers_terminal(const char *text, size_t n);
/* 0 only if no such character and no invalid UTF-8 is in the text. */
int cli_has_steering(const char *text, size_t len);
/* The columns that the text takes on a terminal if each character takes one. */
size_t cli_text_width(const char *text);

#endif
