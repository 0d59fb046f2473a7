/* The contents of a repository's file, as one text: two files with the same text are the
 * same repository. */
#ifndef BRC_TESTS_FILE_DIGEST_H
#define BRC_TESTS_FILE_DIGEST_H

#include "../../src/breccia.h"

/* All rows but the secret and the times of the operation log; "" where the file is no
 * repository. The caller frees. */
char *file_digest(const char *path);
/* All of that but the objects: an act that was given up may leave some that nobody needs. */
char *file_digest_named(const char *path);
/* Only what everybody sees, without the numbers of drafts: what a bulk write has stored that was
 * given up, or is not at its end, makes no difference. */
char *file_digest_seen(const char *path);
/* Returns 1 if the library opens the file and finds no fault in it. Prints the faults to stderr. */
int file_is_whole(const char *path);

#endif
