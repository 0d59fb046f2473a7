/* Nobody forks while another thread is in the middle of SQLite. */
#ifndef BRC_STORE_FORK_GUARD_H
#define BRC_STORE_FORK_GUARD_H

/* From now on, and in every child: fork() waits until no thread holds one of SQLite's own mutexes.
 * The first call counts. */
void brc_fork_guard(void);

#endif
