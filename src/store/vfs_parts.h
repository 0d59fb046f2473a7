/*
 * What the files of the VFS share; nobody else includes it. vfs_refuse.c has the sentences,
 * vfs_wal.c what WAL mode needs, vfs.c all the rest.
 */
#ifndef BRC_STORE_VFS_PARTS_H
#define BRC_STORE_VFS_PARTS_H

#include "db.h"
#include "file_lock.h"
#include "wal_index.h"

typedef struct brc_vfs_file brc_vfs_file;

struct brc_vfs {
    sqlite3_vfs vfs; /* registered only while a connection is opened */
    char name[40];
    sqlite3_vfs *base;
    char *file, *journal, *wal, *shm; /* where they lie */
    char *shown;                      /* the user's name for the file */
    unsigned how;
    brc_vfs_file *main, *log; /* of the open connection */
    uint64_t unread;          /* reads that have failed */
    uint64_t journalled;      /* bytes that were written to its journals */
    brc_wal_index index;      /* of the log, while it is open */
    brc_vfs_wish_fn wish;
    void *wish_ctx;
    void (*watch)(void *ctx); /* is told of each read of FILE */
    void *watch_ctx;
    int is_wished;      /* the wish was asked and is there */
    int is_assumed;     /* it could not be asked without the log */
    int is_guarded;     /* RESERVED is to be had only where the counter is: */
    uint32_t counter;
    int is_leaving;     /* WAL mode: EXCLUSIVE stays until the header says so, too */
    int refused; /* a brc_code and its sentence */
    brc_error refusal;
};

struct brc_vfs_file {
    sqlite3_file file;
    brc_vfs *v;
    int is_main, is_journal;
    brc_file_lock lock; /* where it has no descriptor, the VFS below holds what it says */
    sqlite3_file *real;
};

#define BRC_VFS_JOURNAL "-journal"
#define BRC_VFS_WAL "-wal"
#define BRC_VFS_SHM "-shm"

/* vfs_refuse.c: all return BRC_VFS_REFUSED. */
int brc_vfs_refuse(brc_vfs *v, int code, const char *form, ...) BRC_PRINTF(3, 4);
/* A rollback journal or log that is not FILE's. */
int brc_vfs_refuse_journal(brc_vfs *v, int verdict);
int brc_vfs_refuse_wal(brc_vfs *v, int verdict);
/* What has the name of one must be a file with that one name: through a link SQLite would write,
 * truncate or delete something else. SQLITE_OK also where there is nothing. */
int brc_vfs_check_plain(brc_vfs *v, const char *path, const char *ending);

/* vfs_wal.c: whether a lock of FILE that is to be lowered stays as it is. */
int brc_vfs_stays_alone(const brc_vfs *v, int level);
/* vfs_wal.c: is FILE's header, as it is read, one that may be worked with? Changes what is read
 * where the log does not count. */
int brc_vfs_check_header(brc_vfs *v, uint8_t *header, int len);
/* Does FILE say now that its log counts, and may it be read? */
int brc_vfs_log_counts(brc_vfs *v, int *out);
int brc_vfs_open_log(brc_vfs *v, const char *name, brc_vfs_file *f, int flags, int *out);
/* After RESERVED was taken. */
int brc_vfs_check_guard(brc_vfs *v);
/* The methods for shared memory. */
int brc_vfs_shm_map(sqlite3_file *file, int region, int size, int extend, void volatile **out);
int brc_vfs_shm_lock(sqlite3_file *file, int at, int n, int flags);
void brc_vfs_shm_barrier(sqlite3_file *file);
int brc_vfs_shm_unmap(sqlite3_file *file, int remove);

#endif
