/*
 * similar.h - which of the known names may a mistyped word have meant?
 */
#ifndef BRECCIA_CLI_SIMILAR_H
#define BRECCIA_CLI_SIMILAR_H

#include <stddef.h>

/* Those of the n `names` that resemble `word`, each after `prefix`, as "--a, --b or --c"
 * in `out`; an empty string if none does. */
void cli_similar(char *out, size_t cap, const char *word, const char *prefix,
                 const char *const *names, size_t n);

#endif
