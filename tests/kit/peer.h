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
/* The result of a statement on a connection that does not wait for locks. */
int peer_sql(peer *p, const char *sql);
/* xLock, xUnlock and xCheckReservedLock (a result, or 0 or 1 behind `SQLITE_OK`) of a file that
 * SQLite's VFS "unix" has opened. */
int peer_lock(peer *p, int level);
int peer_unlock(peer *p, int level);
int peer_reserved(peer *p, int *out);
/* A busy handler of SQLite that waits 0.2 to 2 ms, at random, 20,000 times at most; ctx: the state of scenario_below(). */
int peer_waits(void *ctx, int tries);

#endif
