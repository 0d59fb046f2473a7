/*
 * SQLite's locks on a file, as locks of an open file description (F_OFD_SETLK). They lie on the
 * same bytes as the POSIX locks of SQLite's VFS "unix", and each kind excludes the other. But a
 * POSIX lock belongs to the process, and any close of the file in that process drops all of them;
 * these locks end only with their own descriptor. docs/decisions/0015-locks-of-the-description.md
 * says more.
 *
 * The functions return SQLite's result codes, and levels are SQLITE_LOCK_*. A process must not use
 * both kinds on one file: it would lock itself out.
 */
#ifndef BRC_STORE_FILE_LOCK_H
#define BRC_STORE_FILE_LOCK_H

#include <sqlite3.h>
#include <sys/types.h>

#include "../base/error.h"

/* ---- file lock -------------------------------- */

typedef struct brc_file_lock {
    int fd;    /* nothing is read or written through it; -1: not open */
    int level; /* the SQLITE_LOCK_* that is held                      */
} brc_file_lock;

/* Sets or clears a lock (F_RDLCK, F_WRLCK or F_UNLCK) on bytes of a descriptor that no other thread
 * uses. Returns SQLITE_BUSY if another lock excludes it, `failure` if the system call fails. */
BRC_MUST_USE int brc_bytes_lock(int fd, int type, off_t at, off_t len, int failure);
/* Returns 1 and the place of a lock that another description has on some of these bytes, or 0 if there is none or
 * the system cannot tell. */
int brc_bytes_find_lock(int fd, off_t at, off_t len, off_t *found, off_t *found_len);

/* Stores whether this system has locks of open file descriptions; the test uses a descriptor of another file. */
BRC_MUST_USE int brc_file_lock_offered(int *out);
BRC_MUST_USE int brc_file_lock_open(brc_file_lock *lock, const char *path, int to_write);
/* Work like SQLite's xLock, xUnlock and xCheckReservedLock. A SQLITE_BUSY on the way to EXCLUSIVE may
 * leave PENDING, from which the next try goes on. */
BRC_MUST_USE int brc_file_lock_raise(brc_file_lock *lock, int level);
BRC_MUST_USE int brc_file_lock_lower(brc_file_lock *lock, int level);
BRC_MUST_USE int brc_file_lock_reserved(const brc_file_lock *lock, int *out);
/* Tells other processes that this one waits for a lock, until it holds no lock (SQLITE_LOCK_NONE) or recalls the
 * announcement. Others may ignore the announcement, and a failure is not reported. */
void brc_file_lock_announce(const brc_file_lock *lock);
void brc_file_lock_recall(const brc_file_lock *lock);
/* Returns 1 if another process waits, or if the system cannot tell. */
int brc_file_lock_is_awaited(const brc_file_lock *lock);
/* Unlocks, because a child of fork() may have the description too, and closes. */
void brc_file_lock_close(brc_file_lock *lock);
/* In a child of fork(): closes the child's copy and leaves the parent its locks. */
void brc_file_lock_leave(brc_file_lock *lock);

/* ---- wal index -------------------------------- */

/*
 * FILE-shm, the index of a log that all connections to a file in WAL mode share: SQLite's xShm*
 * methods with locks of the open file description (see above), which no close of the file
 * elsewhere in the process drops. The bytes are those of SQLite's VFS "unix", so that any SQLite
 * may have the file open at the same time.
 *
 * SQLite before 3.51.3 can damage a file if one connection checkpoints while another begins the
 * log anew. So a connection that takes the checkpoint's lock here takes the writer's lock too.
 *
 * The functions return SQLite's result codes.
 */

typedef struct brc_wal_index {
    int fd;          /* -1: not open                                         */
    int is_readonly; /* the index cannot be written or created               */
    int is_joined;   /* the index is known to be that of the log             */
    int writes, checkpoints; /* whether SQLite has the writer's and checkpoint's locks */
    void **regions;
    int nregions, region_size;
} brc_wal_index;

#define BRC_WAL_INDEX_INIT { .fd = -1 }

/* Judges the log before its first reader uses it; brc_wal_index_join() returns the result. */
typedef int (*brc_wal_judge_fn)(void *ctx);

/* Opens the index or creates it with the mode and owner of FILE, of which `like` is a descriptor. */
BRC_MUST_USE int brc_wal_index_open(brc_wal_index *index, const char *path, int like);
/* Joins the connections that use the index. If none has the log open, judges the log and begins the index
 * anew. SQLITE_BUSY while another connection does that. */
BRC_MUST_USE int brc_wal_index_join(brc_wal_index *index, brc_wal_judge_fn judge, void *ctx);
/* Work like SQLite's xShmMap and xShmLock. */
BRC_MUST_USE int brc_wal_index_map(brc_wal_index *index, int region, int size, int extend,
                                   void volatile **out);
BRC_MUST_USE int brc_wal_index_lock(brc_wal_index *index, int at, int n, int flags);
/* Unlocks, because a child of fork() may have the description too, and closes. */
void brc_wal_index_close(brc_wal_index *index);
/* In a child of fork(): closes the child's copy and leaves the parent its locks. */
void brc_wal_index_forget(brc_wal_index *index);

/* Returns 1 if any connection has the log open. */
int brc_wal_index_is_live(const char *path);

/* Waits for other connections that are closing the file: connections in WAL mode close one by one, so that
 * the last one knows that it is the last. Returns a descriptor for brc_wal_index_left(); -1 if there is
 * nothing to wait for. */
int brc_wal_index_leave(const char *path);
void brc_wal_index_left(int fd);
/* Holds off checkpoints until brc_wal_index_left() closes the descriptor; -1: there is no index. */
int brc_wal_index_hold(const char *path);

#endif
