/* Other processes, as tests see them. */
#ifndef BRC_TESTS_PROCESS_KIT_H
#define BRC_TESTS_PROCESS_KIT_H

#include <stdint.h>
#include <sys/types.h>

/* Fails the test if the process does not end within half a minute. A zombie has ended:
 * its parent may never reap it. */
void process_must_go(pid_t pid);

/* A process of its own works, and ends with it. 1: the work gave BRC_OK; 0: SIGKILL ended it. All
 * else fails the test. */
int process_survives(int (*work)(void *ctx), void *ctx);

/* The same, but SIGKILL comes before the process's n-th system call that changes a file or a folder
 * or sends something, on whichever thread. Unlike a VFS of SQLite, this meets what backends do too. */
int process_survives_calls(int (*work)(void *ctx), void *ctx, uint64_t n);

/* A process of its own works, and the n-th of these calls fails with this error. 0: it did, and the work gave BRC_OK all the
 * same, as it must; 1: there were fewer calls. -1: this machine's processes cannot be changed so. */
int process_refused_call(int (*work)(void *ctx), void *ctx, uint64_t n, int errnum);

/* A process of its own works, and seen() is told in this process of each of these calls before it is done: its number
 * (SYS_write), and the path of the file that is its first argument, "" where that is none. */
void process_watch(int (*work)(void *ctx), void *ctx, void (*seen)(void *to, long call, const char *path), void *to);

#endif
