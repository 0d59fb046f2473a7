/*
 * SQLite has mutexes of its own: for its memory, its list of VFSs, its random numbers. A child
 * that was forked while another thread held one would wait for it for ever, in its first call.
 * So fork() takes them all first, in the order in which SQLite takes them, and both sides let go
 * of them again. No file is touched, and no thread holds one of them for long.
 *
 * This is the one thing that the library keeps for the whole process: handlers of fork() belong
 * to the process, and there is no other place for them.
 */
#include "fork_guard.h"

#include <sqlite3.h>
#include <stdatomic.h>
#include <stddef.h>

#include "../base/lock.h"

/* Random numbers ask for the list of VFSs; memory comes last: SQLite allocates while it holds
 * others. The thread sanitizer sees an order that is not SQLite's. */
static const int fork_order[] = {
    SQLITE_MUTEX_STATIC_OPEN, SQLITE_MUTEX_STATIC_PRNG, SQLITE_MUTEX_STATIC_MASTER,
    SQLITE_MUTEX_STATIC_VFS1, SQLITE_MUTEX_STATIC_VFS2, SQLITE_MUTEX_STATIC_VFS3,
    SQLITE_MUTEX_STATIC_LRU,  SQLITE_MUTEX_STATIC_PMEM, SQLITE_MUTEX_STATIC_MEM,
};

#define FORK_MUTEXES (sizeof(fork_order) / sizeof(fork_order[0]))

static void before_fork(void)
{
    for (size_t i = 0; i < FORK_MUTEXES; i++)
        sqlite3_mutex_enter(sqlite3_mutex_alloc(fork_order[i]));
}

static void after_fork(void)
{
    for (size_t i = FORK_MUTEXES; i-- > 0;)
        sqlite3_mutex_leave(sqlite3_mutex_alloc(fork_order[i]));
}

void brc_fork_guard(void)
{
    static atomic_flag is_there = ATOMIC_FLAG_INIT;
    if (sqlite3_initialize() == SQLITE_OK && !atomic_flag_test_and_set(&is_there))
        brc_at_fork(before_fork, after_fork);
}
