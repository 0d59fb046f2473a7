/*
 * SQLite's locks on a file, as locks of an open file description (F_OFD_SETLK). They lie on the
 * same bytes as the POSIX locks of SQLite's VFS "unix", and each kind shuts the other out; but
 * a POSIX lock is the process's, and any close of the file in it drops them all. These go with
 * their own descriptor alone. docs/decisions/0015-locks-of-the-description.md says more.
 *
 * The functions return SQLite's result codes, and levels are SQLITE_LOCK_*. A file has such
 * locks or its process's, never both: a process shuts itself out.
 */
#ifndef BRC_STORE_FILE_LOCK_H
#define BRC_STORE_FILE_LOCK_H

#include <sqlite3.h>
#include <sys/types.h>

#include "../base/error.h"

/* ---- file lock -------------------------------- */

typedef struct brc_file_lock {
    int fd;    /* nothing is read or written through it; -1: not open */
    int level; /* the SQLITE_LOCK_* that it holds                     */
} brc_file_lock;

/* The primitives: F_RDLCK, F_WRLCK or F_UNLCK on bytes of a descriptor that no other thread uses.
 * SQLITE_BUSY where somebody else's lock is in the way, `failure` where it cannot be asked. */
BRC_MUST_USE int brc_bytes_lock(int fd, int type, off_t at, off_t len, int failure);
/* A lock that somebody else has on some of them: 1, and where; 0: there is none, or it cannot be told. */
int brc_bytes_find_lock(int fd, off_t at, off_t len, off_t *found, off_t *found_len);

/* Does this system have them? It is asked of a descriptor that is not the file's. */
BRC_MUST_USE int brc_file_lock_offered(int *out);
BRC_MUST_USE int brc_file_lock_open(brc_file_lock *lock, const char *path, int to_write);
/* As SQLite's xLock, xUnlock and xCheckReservedLock. A SQLITE_BUSY on the way to EXCLUSIVE may
 * leave PENDING, which the next try goes on from. */
BRC_MUST_USE int brc_file_lock_raise(brc_file_lock *lock, int level);
BRC_MUST_USE int brc_file_lock_lower(brc_file_lock *lock, int level);
BRC_MUST_USE int brc_file_lock_reserved(const brc_file_lock *lock, int *out);
/* Tells others that this one waits for a lock, until it holds none (SQLITE_LOCK_NONE) or recalls it.
 * They go on as they like: it is a courtesy, and fails without a word. */
void brc_file_lock_announce(const brc_file_lock *lock);
void brc_file_lock_recall(const brc_file_lock *lock);
/* Does somebody else wait? 1 also where it cannot be told. */
int brc_file_lock_is_awaited(const brc_file_lock *lock);
/* Unlocks first: a child of fork() may have the description too. */
void brc_file_lock_close(brc_file_lock *lock);
/* In a child of fork(): closes its copy and leaves the parent its locks. */
void brc_file_lock_leave(brc_file_lock *lock);

/* ---- wal index -------------------------------- */

/*
 * FILE-shm, the index of a log that all connections to a file in WAL mode share: SQLite's xShm*
 * methods with locks of the open file description (see file_lock.h), which no close of the file
 * elsewhere in the process drops. The bytes are those of SQLite's VFS "unix", so that any SQLite
 * may have the file open beside us.
 *
 * SQLite before 3.51.3 can damage a file where one connection checkpoints while another begins the
 * log anew. So whoever takes the checkpoint's lock here takes the writer's too.
 *
 * The functions return SQLite's result codes.
 */

typedef struct brc_wal_index {
    int fd;          /* -1: not open                                         */
    int is_readonly; /* it may not be written, or not be made                */
    int is_joined;   /* it is known that its content is the log's            */
    int writes, checkpoints; /* the writer's and checkpoint's locks that SQLite has */
    void **regions;
    int nregions, region_size;
} brc_wal_index;

#define BRC_WAL_INDEX_INIT { .fd = -1 }

/* Judges the log before its first reader looks into it; its result is the caller's. */
typedef int (*brc_wal_judge_fn)(void *ctx);

/* `like`: a descriptor of FILE; what is made gets its mode and owner. */
BRC_MUST_USE int brc_wal_index_open(brc_wal_index *index, const char *path, int like);
/* Where nobody else has the log open, it is judged, and the index is begun anew. SQLITE_BUSY while
 * somebody else does that. */
BRC_MUST_USE int brc_wal_index_join(brc_wal_index *index, brc_wal_judge_fn judge, void *ctx);
/* As SQLite's xShmMap and xShmLock. */
BRC_MUST_USE int brc_wal_index_map(brc_wal_index *index, int region, int size, int extend,
                                   void volatile **out);
BRC_MUST_USE int brc_wal_index_lock(brc_wal_index *index, int at, int n, int flags);
/* Its locks go first: a child of fork() may have the description too. */
void brc_wal_index_close(brc_wal_index *index);
/* In a child of fork(): closes its copy and leaves the parent its locks. */
void brc_wal_index_forget(brc_wal_index *index);

/* Has somebody the log open? */
int brc_wal_index_is_live(const char *path);

/* Those that close a file in WAL mode do it one by one, so that the last one knows that it is.
 * Returns a descriptor for brc_wal_index_left(); -1 where there is nothing to wait for. */
int brc_wal_index_leave(const char *path);
void brc_wal_index_left(int fd);
/* Holds off checkpoints until it is closed with brc_wal_index_left(); -1: there is no index. */
int brc_wal_index_hold(const char *path);

#endif
