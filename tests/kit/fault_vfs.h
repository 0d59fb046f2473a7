/*
 * A VFS over the default one, for tests: it makes the n-th operation of some kinds
 * fail, and writes down what is done to one file and its journal, for imagining a
 * loss of power at any moment (crash_sim.h).
 */
#ifndef BRC_TESTS_FAULT_VFS_H
#define BRC_TESTS_FAULT_VFS_H

#include <sqlite3.h>
#include <stddef.h>
#include <stdint.h>

enum { /* kinds of operations */
    FAULT_WRITE = 1, /* the first half is written                                */
    FAULT_FULL = 2,  /* the same with SQLITE_FULL                                */
    FAULT_SYNC = 4,
    FAULT_READ = 8,
    FAULT_TRUNCATE = 16,
    FAULT_SIZE = 32,
    FAULT_LOCK = 64,
    FAULT_OPEN = 128,  /* of a journal                                           */
    FAULT_DELETE = 256, /* nothing is deleted                                    */
    FAULT_DELETED = 512, /* it is, but the folder could not be synced            */
    FAULT_ACCESS = 1024,
    /* all that changes files */
    FAULT_CHANGES = FAULT_WRITE | FAULT_SYNC | FAULT_TRUNCATE | FAULT_OPEN | FAULT_DELETE |
                    FAULT_DELETED
};

enum { LOG_CREATE, LOG_WRITE, LOG_TRUNCATE, LOG_SYNC, LOG_DELETE, LOG_MARK };
enum { LOG_MAIN, LOG_JOURNAL, LOG_WAL, LOG_FILES };

typedef struct log_op {
    int what, file;
    int64_t offset; /* of a write; a truncation's size                           */
    size_t len;
    uint8_t *data;
    int syncs_folder; /* of a sync or deletion: the folder's entries are on disk too */
} log_op;

typedef struct fault_vfs {
    sqlite3_vfs vfs;
    sqlite3_vfs *real;
    /* which operation fails */
    unsigned kinds;
    uint64_t at; /* 1: the next one; 0: none                                     */
    int for_ever;
    int kills; /* in place of failing, the process is killed: in the middle of a write */
    void (*act)(void *ctx); /* in place of failing, somebody else does something before it */
    void *act_ctx;
    uint64_t seen;
    int hits;
    int has_room;  /* a disk of which so many bytes are free, which files take and give back */
    int64_t room;
    /* what is written down */
    const char *logged; /* the file's path; NULL: nothing                        */
    unsigned ignores_sync; /* as a disk that lies: 1 << LOG_MAIN ...             */
    log_op *log;
    size_t nlog;
} fault_vfs;

#define FAULT_VFS_NAME "breccia-fault"
void fault_vfs_register(fault_vfs *v);
void fault_vfs_unregister(fault_vfs *v);
/* The n-th operation of these kinds from now on, and where for_ever all behind it. */
void fault_vfs_arm(fault_vfs *v, unsigned kinds, uint64_t n, int for_ever);
void fault_vfs_disarm(fault_vfs *v);
/* The process is killed at the n-th of them, also in the middle of a write. */
void fault_vfs_kill(fault_vfs *v, unsigned kinds, uint64_t n);
/* Before the n-th of them, which does not fail, act() is called. */
void fault_vfs_act(fault_vfs *v, unsigned kinds, uint64_t n, void (*act)(void *ctx), void *ctx);
void fault_vfs_mark(fault_vfs *v);
/* Writes down the logged file as it is: synced. Before it is opened. */
void fault_vfs_log_file(fault_vfs *v);

#endif
