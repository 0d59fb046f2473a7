/*
 * A thin VFS between SQLite and the VFS that does the work: it opens and deletes FILE,
 * FILE-journal and, in WAL mode, FILE-wal and FILE-shm alone, and judges a journal or log that
 * was left behind before SQLite plays it back. docs/decisions/0011-a-thin-vfs.md says why. It also locks FILE, where the
 * VFS below would take locks that the process loses with any close of the file
 * (docs/decisions/0015-locks-of-the-description.md).
 *
 * Each belongs to one store, and outlives the connection made with it. What it refuses
 * comes back to the caller as REFUSED from SQLite; brc_vfs_refusal() then has the
 * sentence.
 */
#ifndef BRC_STORE_VFS_H
#define BRC_STORE_VFS_H

#include <sqlite3.h>

#include "../base/buf.h"
#include "../base/error.h"
#include "file_lock.h"

/* ---- fork guard -------------------------------- */

/* Nobody forks while another thread is in the middle of SQLite. */

/* From now on, and in every child: fork() waits until no thread holds one of SQLite's own mutexes.
 * The first call counts. */
void brc_fork_guard(void);

/* ---- vfs -------------------------------- */

typedef struct brc_vfs brc_vfs;

/* SQLite's result for what the VFS refused; SQLite itself never returns it. */
#define BRC_VFS_REFUSED SQLITE_PERM

enum {
    BRC_VFS_NO_JOURNAL = 1, /* journals and logs that were left behind are not looked for */
    BRC_VFS_UNLOCKED = 2,   /* nobody writes to the file: no locks and no journal  */
    BRC_VFS_PEEK = 4        /* FILE alone: its caller sees to it that nobody writes to it */
};

/* 1 where the file asks for WAL mode, 0 where it does not. */
typedef int (*brc_vfs_wish_fn)(void *ctx, brc_error *err);

/* `path` is resolved now and names the file in messages; `base` is the name of a
 * registered VFS, NULL for the default one. The file must exist. */
BRC_MUST_USE int brc_vfs_new(brc_vfs **out, const char *path, const char *base, brc_error *err);
/* To be called after the connection was closed. */
void brc_vfs_free(brc_vfs *vfs);
/* The file's absolute path. */
const char *brc_vfs_path(const brc_vfs *vfs);
/* In a child of fork(), which closes nothing else: its copy of what holds the parent's locks. */
void brc_vfs_leave(brc_vfs *vfs);
/* Like sqlite3_open_v2() for the file; one connection at a time. */
BRC_MUST_USE int brc_vfs_connect(brc_vfs *vfs, sqlite3 **db, int flags, unsigned how);

/* Fails with what was refused last, and forgets it; BRC_OK if nothing was. */
int brc_vfs_refusal(brc_vfs *vfs, brc_error *err);
/* The file in WAL mode (vfs.c). SQLite may open FILE-wal and FILE-shm where the header says so and
 * `wish` agrees, which is asked once; without one the file is refused. A log that nobody has open is
 * judged first. */
void brc_vfs_on_wal(brc_vfs *vfs, brc_vfs_wish_fn wish, void *ctx);
/* What the file asks for when it is read with its log. Fails if it was opened in WAL mode only because it could
 * not be read without, and does not ask for it. */
BRC_MUST_USE int brc_vfs_wish_seen(brc_vfs *vfs, int is_wished, brc_error *err);
/* Has the connection the log open? Then the file stays in WAL mode as long as it has. */
int brc_vfs_in_wal(const brc_vfs *vfs);
uint64_t brc_vfs_log_bytes(const brc_vfs *vfs);
/* Fails with what stands against putting the file into WAL mode. */
BRC_MUST_USE int brc_vfs_wal_in_the_way(brc_vfs *vfs, brc_error *err);
/* Within a read: from now on a write begins only where the file is as it is now, else it is refused
 * with BRC_EBUSY. SQLite's result. */
BRC_MUST_USE int brc_vfs_guard(brc_vfs *vfs);
void brc_vfs_unguard(brc_vfs *vfs);
/* After disconnecting: is there a log, and nobody who has it open? */
int brc_vfs_is_log_left(const brc_vfs *vfs);
/* Waits for others that are closing the file, or holds off checkpoints; brc_vfs_release() what comes
 * back, which may be -1. */
int brc_vfs_leave_begin(const brc_vfs *vfs);
/* From before the log is deleted until FILE's header no longer counts it nobody else gets in. */
void brc_vfs_leaving(brc_vfs *vfs, int is_leaving);
int brc_vfs_hold_checkpoints(const brc_vfs *vfs);
void brc_vfs_release(int fd);

/* How it is connected, the VFS that does the work, and where the file lies. */
unsigned brc_vfs_how(const brc_vfs *vfs);
const char *brc_vfs_base(const brc_vfs *vfs);
const char *brc_vfs_file_name(const brc_vfs *vfs);
/* Is there anything under the name of the file's journal? */
int brc_vfs_has_journal(const brc_vfs *vfs);
/* After creating a file has failed: its journal goes with it. */
void brc_vfs_remove_journal(const brc_vfs *vfs);
/* Another description of FILE, for locks on bytes that SQLite does not know of; fd -1: there are no such locks
 * here. And one of these that somebody has, also this process by that other description: 1, and where. */
void brc_vfs_second_lock(const brc_vfs *vfs, brc_file_lock *out);
int brc_vfs_find_lock(const brc_vfs *vfs, int64_t at, int64_t len, int64_t *found, int64_t *found_len);
/* The connection waits for a lock that somebody else has; or no longer. Others see it. */
void brc_vfs_announce(const brc_vfs *vfs);
void brc_vfs_recall(const brc_vfs *vfs);
/* Does another connection wait for a lock? 1 also where it cannot be told. */
int brc_vfs_is_awaited(const brc_vfs *vfs);
/* From now on this is called after each read of a page of the file; NULL: nothing is. */
void brc_vfs_watch(brc_vfs *vfs, void (*watch)(void *ctx), void *ctx);
/* Reads that the disk has failed, since the beginning. */
uint64_t brc_vfs_unread(const brc_vfs *vfs);
/* Bytes written to journals since the beginning: about those of the pages of the file that
 * transactions have changed. */
uint64_t brc_vfs_journalled(const brc_vfs *vfs);
/* The counter in the file's header, which each transaction raises by one, but for those of WAL mode. Fails in WAL mode. */
BRC_MUST_USE int brc_vfs_counter(const brc_vfs *vfs, uint32_t *out, brc_error *err);
/* Is the file shorter than its header says? Only while a connection is open. */
int brc_vfs_is_cut_short(const brc_vfs *vfs, uint64_t *is, uint64_t *should_be);
/* 1 if there is more in it than it says: whoever gave pages back was killed before the file was cut. */
int brc_vfs_has_tail(const brc_vfs *vfs);

#endif
