/*
 * escape.h - text that cannot steer the terminal which shows it.
 */
#ifndef BRECCIA_CLI_ESCAPE_H
#define BRECCIA_CLI_ESCAPE_H

#include <stddef.h>

struct cli;

/* Length of the valid UTF-8 character at `text` (1 to 4), 0 where it is broken. */
size_t cli_utf8_length(const char *text);
/* The text with control characters and broken UTF-8 as \n, \x1b ...; what a name
 * in a file says cannot steer the terminal.  Lasts as long as `cli`. */
const char *cli_escaped(struct cli *cli, const char *text);
/* The same of `len` bytes, which may hold NUL. */
const char *cli_escaped_bytes(struct cli *cli, const char *text, size_t len);
/* 1 for the character of `n` valid bytes where a terminal obeys it instead of showing it: C0,
 * DEL, C1, ends of lines, and the marks that turn the direction of writing. */
int cli_steers_terminal(const char *text, size_t n);
/* Might there be such a character, or broken UTF-8? */
int cli_has_steering(const char *text, size_t len);
/* Columns that the text takes on a terminal, taking each character as one. */
size_t cli_text_width(const char *text);

#endif
