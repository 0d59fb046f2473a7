/*
 * A thin VFS between SQLite and the VFS that does the work. It opens and deletes only FILE,
 * FILE-journal and, in WAL mode, FILE-wal and FILE-shm, and judges a journal or log that
 * was left behind before SQLite plays it back. docs/decisions/0011-a-thin-vfs.md says why. It also
 * locks FILE itself, because a process loses the locks of the VFS below with any close of the file
 * (docs/decisions/0015-locks-of-the-description.md).
 *
 * Each VFS belongs to one store, and outlives the connection made with it. When it refuses an
 * access, SQLite returns BRC_VFS_REFUSED to the caller, and brc_vfs_refusal() has the message.
 */
#ifndef BRC_STORE_VFS_H
#define BRC_STORE_VFS_H

#include <sqlite3.h>

#include "../base/buf.h"
#include "../base/error.h"
#include "file_lock.h"

/* ---- fork guard -------------------------------- */

/* Makes fork() wait until no thread holds one of SQLite's own mutexes, in this process and in every
 * child. Further calls do nothing. */
void brc_fork_guard(void);

/* ---- vfs -------------------------------- */

typedef struct brc_vfs brc_vfs;

/* SQLite's result when the VFS refuses an access; SQLite itself never returns it. */
#define BRC_VFS_REFUSED SQLITE_PERM

enum {
    BRC_VFS_NO_JOURNAL = 1, /* journals and logs that were left behind are not looked for */
    BRC_VFS_UNLOCKED = 2,   /* nobody writes to the file: no locks and no journal  */
    BRC_VFS_PEEK = 4        /* only FILE is opened: the caller ensures that no process writes to FILE */
};

/* Returns 1 if the file asks for WAL mode, else 0. */
typedef int (*brc_vfs_wish_fn)(void *ctx, brc_error *err);

/* Makes a VFS. `path` is resolved now and names the file in messages; `base` is the name of a
 * registered VFS, NULL for the default one. The file must exist. */
BRC_MUST_USE int brc_vfs_new(brc_vfs **out, const char *path, const char *base, brc_error *err);
/* Frees the VFS, after its connection was closed. */
void brc_vfs_free(brc_vfs *vfs);
/* Returns the file's absolute path. */
const char *brc_vfs_path(const brc_vfs *vfs);
/* Returns the descriptor of FILE, whose bytes any thread may read without SQLite, or -1: FILE has a log, or is not what
 * SQLite's own VFS of Unix reads. Nothing is locked, and nothing says that the bytes belong together. */
int brc_vfs_descriptor(const brc_vfs *vfs);
/* In a child of fork(): closes the child's copies of the descriptors that hold the parent's locks, and nothing else. */
void brc_vfs_leave(brc_vfs *vfs);
/* Like sqlite3_open_v2() for the file; a VFS has one connection at a time. */
BRC_MUST_USE int brc_vfs_connect(brc_vfs *vfs, sqlite3 **db, int flags, unsigned how);

/* Fails with the error of the last refusal, and forgets it; BRC_OK if nothing was refused. */
int brc_vfs_refusal(brc_vfs *vfs, brc_error *err);
/* Sets the function that decides about WAL mode (vfs.c). SQLite may open FILE-wal and FILE-shm if the header says WAL mode and
 * `wish`, which is called once, agrees; without a `wish` such a file is refused. A log that nobody has open is
 * judged first. */
void brc_vfs_on_wal(brc_vfs *vfs, brc_vfs_wish_fn wish, void *ctx);
/* Tells the VFS whether the file, read with its log, asks for WAL mode. Fails if the file does not, and was opened
 * in WAL mode only because it could not be read otherwise. */
BRC_MUST_USE int brc_vfs_wish_seen(brc_vfs *vfs, int is_wished, brc_error *err);
/* Returns 1 if the connection has the log open. The file stays in WAL mode while a connection has its log open. */
int brc_vfs_in_wal(const brc_vfs *vfs);
uint64_t brc_vfs_log_bytes(const brc_vfs *vfs);
/* Fails if the file cannot be put into WAL mode; the error says why. */
BRC_MUST_USE int brc_vfs_wal_in_the_way(brc_vfs *vfs, brc_error *err);
/* Within a read: from now on a write is refused with BRC_EBUSY if the file has changed since this call. Returns
 * SQLite's result. */
BRC_MUST_USE int brc_vfs_guard(brc_vfs *vfs);
void brc_vfs_unguard(brc_vfs *vfs);
/* After disconnecting: returns 1 if a log exists that nobody has open. */
int brc_vfs_is_log_left(const brc_vfs *vfs);
/* Waits for other connections that are closing the file. The result, which may be -1, goes to brc_vfs_release(). */
int brc_vfs_leave_begin(const brc_vfs *vfs);
/* Locks others out from before the log is deleted until FILE's header no longer names WAL mode. */
void brc_vfs_leaving(brc_vfs *vfs, int is_leaving);
/* Holds off checkpoints until brc_vfs_release() gets the result, which may be -1. */
int brc_vfs_hold_checkpoints(const brc_vfs *vfs);
void brc_vfs_release(int fd);

/* Return the flags of the connection (BRC_VFS_*), the name of the VFS that does the work, and the file's path. */
unsigned brc_vfs_how(const brc_vfs *vfs);
const char *brc_vfs_base(const brc_vfs *vfs);
const char *brc_vfs_file_name(const brc_vfs *vfs);
/* Returns 1 if anything exists under the name of the file's journal. */
int brc_vfs_has_journal(const brc_vfs *vfs);
/* Removes the journal of a file that could not be created. */
void brc_vfs_remove_journal(const brc_vfs *vfs);
/* brc_vfs_second_lock() opens another description of FILE, for locks on bytes that SQLite does not know; fd -1: such
 * locks do not work here. brc_vfs_find_lock() returns 1 and the place of such a lock that any process has, also this one
 * by that description. */
void brc_vfs_second_lock(const brc_vfs *vfs, brc_file_lock *out);
int brc_vfs_find_lock(const brc_vfs *vfs, int64_t at, int64_t len, int64_t *found, int64_t *found_len);
/* Show to other processes that the connection waits for a lock, or no longer waits. */
void brc_vfs_announce(const brc_vfs *vfs);
void brc_vfs_recall(const brc_vfs *vfs);
/* Returns 1 if another connection waits for a lock, or if the system cannot tell. */
int brc_vfs_is_awaited(const brc_vfs *vfs);
/* Sets a function that is called after each read of a page of the file; NULL: none. */
void brc_vfs_watch(brc_vfs *vfs, void (*watch)(void *ctx), void *ctx);
/* Returns the number of reads that have failed since the VFS was made. */
uint64_t brc_vfs_unread(const brc_vfs *vfs);
/* Returns the bytes written to journals since the VFS was made: about the size of the pages that
 * transactions have changed. */
uint64_t brc_vfs_journalled(const brc_vfs *vfs);
/* Reads the counter in the file's header, which each transaction outside of WAL mode raises by one. Fails in WAL mode. */
BRC_MUST_USE int brc_vfs_counter(const brc_vfs *vfs, uint32_t *out, brc_error *err);
/* Returns 1 if the file is shorter than its header says. Needs an open connection. */
int brc_vfs_is_cut_short(const brc_vfs *vfs, uint64_t *is, uint64_t *should_be);
/* Returns 1 if the file is longer than its header says: a process gave pages back and was killed before it cut the
 * file. */
int brc_vfs_has_tail(const brc_vfs *vfs);

#endif
