/*
 * similar.h - which of the known names may a mistyped word have meant?
 */
#ifndef BRECCIA_CLI_SIMILAR_H
#define BRECCIA_CLI_SIMILAR_H

#include <stddef.h>

/* The members of `names` (n of them) that resemble `word`, as "a, b or c" in
 * `out`; an empty string where none does. */
void cli_similar(char *out, size_t cap, const char *word, const char *const *names, size_t n);

#endif
