/*
 * similar.c - which of the known names may a mistyped word have meant?
 */
#include "similar.h"

#include <stdio.h>
#include <string.h>

/* The Levenshtein distance of two short words, in which two letters that changed places are one
 * mistake; 99 if one is long. */
static unsigned word_distance(const char *a, const char *b)
{
    unsigned rows[3][33]; /* this one, the one above, and the one above that */
    size_t n = strlen(a), m = strlen(b);

    if (n > 32 || m > 32)
        return 99;
    for (size_t j = 0; j <= m; j++)
        rows[0][j] = (unsigned)j;
    for (size_t i = 1; i <= n; i++) {
        unsigned *row = rows[i % 3], *above = rows[(i + 2) % 3], *before = rows[(i + 1) % 3];

        row[0] = (unsigned)i;
        for (size_t j = 1; j <= m; j++) {
            row[j] = above[j - 1] + (a[i - 1] != b[j - 1]);
            if (above[j] + 1 < row[j])
                row[j] = above[j] + 1;
            if (row[j - 1] + 1 < row[j])
                row[j] = row[j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                before[j - 2] + 1 < row[j])
                row[j] = before[j - 2] + 1;
        }
    }
    return rows[n % 3][m];
}

static int resembles(const char *word, size_t letters, const char *name)
{
    size_t common = 0;

    while (word[common] && word[common] == name[common])
        common++;
    return (letters > 0 && common == letters) || (common >= 3 && common + 2 >= letters) ||
           word_distance(word, name) <= (letters > 3 ? 2u : 1u);
}

void cli_similar(char *out, size_t cap, const char *word, const char *prefix,
                 const char *const *names, size_t n)
{
    const char *found[4];
    size_t nfound = 0, len = 0, letters = strlen(word);

    for (size_t i = 0; i < n && nfound < 4; i++) /* one mistake is likelier than two */
        if (letters > 2 && word_distance(word, names[i]) == 1)
            found[nfound++] = names[i];
    const int one_off = nfound > 0;
    for (size_t i = 0; i < n && nfound < 4 && !one_off; i++)
        if (resembles(word, letters, names[i]))
            found[nfound++] = names[i];
    out[0] = '\0';
    for (size_t i = 0; i < nfound && len < cap; i++)
        len += (size_t)snprintf(out + len, cap - len, "%s%s%s",
                                i == 0 ? "" : i + 1 == nfound ? " or " : ", ", prefix, found[i]);
}
