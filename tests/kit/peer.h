/*
 * Another process, with SQLite as everybody has it: its locks are POSIX locks. It is started
 * before this process has opened the file, and inherits nothing of it. Failures fail the test.
 */
#ifndef BRC_TESTS_PEER_H
#define BRC_TESTS_PEER_H

#include <sys/types.h>

typedef struct peer {
    pid_t pid;
    int to, from;
} peer;

void peer_start(peer *p, const char *file);
void peer_stop(peer *p);
/* What SQLite says, on a connection that waits for nobody. */
int peer_sql(peer *p, const char *sql);
/* xLock, xUnlock and xCheckReservedLock (a result, or 0 or 1 behind `SQLITE_OK`) of a file that
 * SQLite's VFS "unix" has opened. */
int peer_lock(peer *p, int level);
int peer_unlock(peer *p, int level);
int peer_reserved(peer *p, int *out);

#endif
