/* Another copy of SQLite in this process, as Python's own in its wheel. */
#ifndef BRC_TESTS_SQLITE_COPY_H
#define BRC_TESTS_SQLITE_COPY_H

#include <dlfcn.h>
#include <sqlite3.h>

#include "sanitized.h"

#if !KIT_SANITIZED && defined(LM_ID_NEWLM)
#define HAS_SQLITE_COPY 1

typedef struct sqlite_copy {
    void *sqlite;
    int (*open)(const char *, sqlite3 **);
    int (*exec)(sqlite3 *, const char *, int (*)(void *, int, char **, char **), void *, char **);
    int (*close)(sqlite3 *);
} sqlite_copy;

/* Loads a copy other than the one that this program is linked with. */
void sqlite_copy_load(sqlite_copy *c);

#endif
#endif
