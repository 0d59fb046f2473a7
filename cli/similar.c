/*
 * similar.c - which of the known names may a mistyped word have meant?
 */
#include "similar.h"

#include <stdio.h>
#include <string.h>

/* The Levenshtein distance of two short words; 99 if one is long. */
static unsigned word_distance(const char *a, const char *b)
{
    unsigned row[33];
    size_t n = strlen(a), m = strlen(b);

    if (n > 32 || m > 32)
        return 99;
    for (size_t j = 0; j <= m; j++)
        row[j] = (unsigned)j;
    for (size_t i = 1; i <= n; i++) {
        unsigned diagonal = row[0];

        row[0] = (unsigned)i;
        for (size_t j = 1; j <= m; j++) {
            unsigned best = diagonal + (a[i - 1] != b[j - 1]);

            diagonal = row[j];
            if (row[j] + 1 < best)
                best = row[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            row[j] = best;
        }
    }
    return row[m];
}

void cli_similar(char *out, size_t cap, const char *word, const char *prefix,
                 const char *const *names, size_t n)
{
    const char *found[4];
    size_t nfound = 0, len = 0, letters = strlen(word);

    for (size_t i = 0; i < n && nfound < 4; i++) {
        size_t common = 0;

        while (word[common] && word[common] == names[i][common])
            common++;
        if ((letters > 0 && common == letters) || (common >= 3 && common + 2 >= letters) ||
            word_distance(word, names[i]) <= (letters > 3 ? 2u : 1u))
            found[nfound++] = names[i];
    }
    out[0] = '\0';
    for (size_t i = 0; i < nfound && len < cap; i++)
        len += (size_t)snprintf(out + len, cap - len, "%s%s%s",
                                i == 0 ? "" : i + 1 == nfound ? " or " : ", ", prefix, found[i]);
}
