/* Temporary folders of tests. */
#ifndef BRC_TESTS_FOLDER_H
#define BRC_TESTS_FOLDER_H

#include <stddef.h>

enum {
    FOLDER_FAST, /* in memory, where there is such a file system: commits cost nothing */
    FOLDER_DISK  /* for much data                                                      */
};

/* Makes an empty folder and its name in `out`: inside $TMPDIR if that is set. Fails the
 * test if it cannot. */
void folder_make(char *out, size_t size, int where);

#endif
