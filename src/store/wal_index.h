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
#ifndef BRC_STORE_WAL_INDEX_H
#define BRC_STORE_WAL_INDEX_H

#include <sqlite3.h>

#include "../base/error.h"

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
