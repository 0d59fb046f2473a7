/* See fault_vfs.h. */
#include "fault_vfs.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lock_faults.h"
#include "store_kit.h"

#define SECTOR 512 /* nothing leaves less than one half written but a fault of the disk */

typedef struct fault_file {
    sqlite3_file file;
    fault_vfs *v;
    int which;    /* LOG_MAIN ..., or -1: not written down                       */
    int is_fresh; /* a journal that was made and not synced since                */
    sqlite3_file *real; /* behind this                                           */
} fault_file;

/* ---- failing -------------------------------------------------------------------- */

static int fault_is_due(fault_vfs *v, unsigned kind)
{
    if (v->at == 0 || (v->kinds & kind) == 0)
        return 0;
    v->seen++;
    if (v->seen != v->at && !(v->for_ever && v->seen > v->at))
        return 0;
    v->hits++;
    if (v->act != NULL) {
        v->at = 0; /* not for what act() itself does */
        v->act(v->act_ctx);
        return 0;
    }
    if (v->kills && (kind & (FAULT_WRITE | FAULT_FULL)) == 0)
        kill(getpid(), SIGKILL);
    return 1;
}

/* Where the library takes its locks itself, this VFS is not asked for any. */
static int ofd_lock_is_due(void *v)
{
    return fault_is_due(v, FAULT_LOCK) ? EIO : 0;
}

void fault_vfs_arm(fault_vfs *v, unsigned kinds, uint64_t n, int for_ever)
{
    v->kinds = kinds;
    v->at = n;
    v->for_ever = for_ever;
    v->seen = 0;
    v->hits = 0;
}

void fault_vfs_kill(fault_vfs *v, unsigned kinds, uint64_t n)
{
    v->kills = 1;
    fault_vfs_arm(v, kinds, n, 0);
}

void fault_vfs_act(fault_vfs *v, unsigned kinds, uint64_t n, void (*act)(void *ctx), void *ctx)
{
    v->act = act;
    v->act_ctx = ctx;
    fault_vfs_arm(v, kinds, n, 0);
}

void fault_vfs_disarm(fault_vfs *v)
{
    v->at = 0;
}

/* ---- writing down ------------------------------------------------------------------ */

static log_op *log_add(fault_vfs *v, int what, int file)
{
    if ((v->nlog & (v->nlog - 1)) == 0)
        v->log = realloc(v->log, (v->nlog == 0 ? 1 : 2 * v->nlog) * sizeof(*v->log));
    log_op *op = &v->log[v->nlog++];
    memset(op, 0, sizeof(*op));
    op->what = what;
    op->file = file;
    return op;
}

void fault_vfs_mark(fault_vfs *v)
{
    log_add(v, LOG_MARK, -1);
}

void fault_vfs_log_file(fault_vfs *v)
{
    brc_buf content = store_kit_read(v->logged);
    log_add(v, LOG_CREATE, LOG_MAIN);
    log_op *op = log_add(v, LOG_WRITE, LOG_MAIN);
    op->len = content.len;
    op->data = content.data;
    log_add(v, LOG_SYNC, LOG_MAIN)->syncs_folder = 1;
}

static int log_which(const fault_vfs *v, const char *path)
{
    size_t len = v->logged != NULL ? strlen(v->logged) : 0;
    if (path == NULL || len == 0 || strncmp(path, v->logged, len) != 0)
        return -1;
    return path[len] == '\0'                       ? LOG_MAIN
           : strcmp(path + len, "-journal") == 0 ? LOG_JOURNAL
           : strcmp(path + len, "-wal") == 0     ? LOG_WAL
                                                 : -1;
}

/* ---- files ------------------------------------------------------------------- */

static fault_file *fault_of(sqlite3_file *file)
{
    return (fault_file *)(void *)file;
}

static int fault_close(sqlite3_file *file)
{
    fault_file *f = fault_of(file);
    return f->real->pMethods != NULL ? f->real->pMethods->xClose(f->real) : SQLITE_OK;
}

static int fault_read(sqlite3_file *file, void *into, int len, sqlite3_int64 at)
{
    fault_file *f = fault_of(file);
    if (fault_is_due(f->v, FAULT_READ))
        return SQLITE_IOERR_READ;
    return f->real->pMethods->xRead(f->real, into, len, at);
}

static int write_through(fault_file *f, const void *data, int len, sqlite3_int64 at)
{
    int rc = f->real->pMethods->xWrite(f->real, data, len, at);
    if (rc == SQLITE_OK && f->which >= 0) {
        log_op *op = log_add(f->v, LOG_WRITE, f->which);
        op->offset = at;
        op->len = (size_t)len;
        op->data = malloc((size_t)len + 1);
        memcpy(op->data, data, (size_t)len);
    }
    return rc;
}

/* 1: the file grows by more than there is room for. */
static int takes_room(fault_file *f, sqlite3_int64 end)
{
    sqlite3_int64 size = 0;
    if (!f->v->has_room || f->real->pMethods->xFileSize(f->real, &size) != SQLITE_OK || end <= size)
        return 0;
    if (end - size > f->v->room)
        return 1;
    f->v->room -= end - size;
    return 0;
}

static int fault_write(sqlite3_file *file, const void *data, int len, sqlite3_int64 at)
{
    fault_file *f = fault_of(file);
    unsigned kind = f->v->kinds & (FAULT_WRITE | FAULT_FULL);
    if (takes_room(f, at + len)) {
        f->v->hits++;
        return SQLITE_FULL;
    }
    if (!fault_is_due(f->v, kind))
        return write_through(f, data, len, at);
    int half = f->v->kills ? len / 2 / SECTOR * SECTOR : len / 2;
    if (half > 0)
        write_through(f, data, half, at);
    if (f->v->kills)
        kill(getpid(), SIGKILL);
    return kind == FAULT_FULL ? SQLITE_FULL : SQLITE_IOERR_WRITE;
}

static int fault_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    fault_file *f = fault_of(file);
    if (fault_is_due(f->v, FAULT_TRUNCATE))
        return SQLITE_IOERR_TRUNCATE;
    sqlite3_int64 before = size;
    f->real->pMethods->xFileSize(f->real, &before);
    int rc = f->real->pMethods->xTruncate(f->real, size);
    if (rc == SQLITE_OK)
        f->v->room += before - size;
    if (rc == SQLITE_OK && f->which >= 0)
        log_add(f->v, LOG_TRUNCATE, f->which)->offset = size;
    return rc;
}

/* The default VFS syncs the folder with a new journal's first sync. */
static int fault_sync(sqlite3_file *file, int flags)
{
    fault_file *f = fault_of(file);
    if (fault_is_due(f->v, FAULT_SYNC))
        return SQLITE_IOERR_FSYNC;
    int rc = f->real->pMethods->xSync(f->real, flags);
    if (rc == SQLITE_OK && f->which >= 0 && !(f->v->ignores_sync >> f->which & 1)) {
        log_add(f->v, LOG_SYNC, f->which)->syncs_folder = f->is_fresh;
        f->is_fresh = 0;
    }
    return rc;
}

static int fault_size(sqlite3_file *file, sqlite3_int64 *size)
{
    fault_file *f = fault_of(file);
    if (fault_is_due(f->v, FAULT_SIZE))
        return SQLITE_IOERR_FSTAT;
    return f->real->pMethods->xFileSize(f->real, size);
}

static int fault_lock(sqlite3_file *file, int level)
{
    fault_file *f = fault_of(file);
    if (fault_is_due(f->v, FAULT_LOCK))
        return SQLITE_IOERR_LOCK;
    return f->real->pMethods->xLock(f->real, level);
}

static int fault_unlock(sqlite3_file *file, int level)
{
    fault_file *f = fault_of(file);
    return f->real->pMethods->xUnlock(f->real, level);
}

static int fault_reserved(sqlite3_file *file, int *out)
{
    fault_file *f = fault_of(file);
    return f->real->pMethods->xCheckReservedLock(f->real, out);
}

static int fault_control(sqlite3_file *file, int op, void *arg)
{
    fault_file *f = fault_of(file);
    return f->real->pMethods->xFileControl(f->real, op, arg);
}

static int fault_sector(sqlite3_file *file)
{
    fault_file *f = fault_of(file);
    return f->real->pMethods->xSectorSize(f->real);
}

static int fault_device(sqlite3_file *file)
{
    fault_file *f = fault_of(file);
    return f->real->pMethods->xDeviceCharacteristics(f->real);
}

static const sqlite3_io_methods fault_methods = {
    .iVersion = 1, /* neither shared memory nor mapped files */
    .xClose = fault_close,
    .xRead = fault_read,
    .xWrite = fault_write,
    .xTruncate = fault_truncate,
    .xSync = fault_sync,
    .xFileSize = fault_size,
    .xLock = fault_lock,
    .xUnlock = fault_unlock,
    .xCheckReservedLock = fault_reserved,
    .xFileControl = fault_control,
    .xSectorSize = fault_sector,
    .xDeviceCharacteristics = fault_device,
};

/* ---- the folder -------------------------------------------------------------- */

static fault_vfs *vfs_of(sqlite3_vfs *vfs)
{
    return vfs->pAppData;
}

static int fault_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *out)
{
    fault_vfs *v = vfs_of(vfs);
    fault_file *f = fault_of(file);
    int exists = 1;
    memset(f, 0, sizeof(*f));
    f->v = v;
    f->real = (sqlite3_file *)(void *)(f + 1);
    f->which = log_which(v, name);
    if ((flags & SQLITE_OPEN_MAIN_JOURNAL) && fault_is_due(v, FAULT_OPEN))
        return SQLITE_CANTOPEN;
    if (f->which > LOG_MAIN)
        v->real->xAccess(v->real, name, SQLITE_ACCESS_EXISTS, &exists);
    int rc = v->real->xOpen(v->real, name, f->real, flags, out);
    if (rc != SQLITE_OK)
        return rc;
    f->file.pMethods = &fault_methods;
    if (!exists || (f->which == LOG_MAIN && v->nlog == 0)) {
        log_add(v, LOG_CREATE, f->which);
        f->is_fresh = f->which > LOG_MAIN;
    }
    return rc;
}

static int fault_delete(sqlite3_vfs *vfs, const char *name, int sync_folder)
{
    fault_vfs *v = vfs_of(vfs);
    int which = log_which(v, name);
    if (fault_is_due(v, FAULT_DELETE))
        return SQLITE_IOERR_DELETE;
    struct stat st = {0};
    const int64_t size = stat(name, &st) == 0 ? st.st_size : 0;
    int rc = v->real->xDelete(v->real, name, sync_folder);
    if (rc == SQLITE_OK)
        v->room += size;
    if (rc == SQLITE_OK && which >= 0)
        log_add(v, LOG_DELETE, which)->syncs_folder =
            sync_folder && !(v->ignores_sync >> which & 1);
    if (rc == SQLITE_OK && sync_folder && fault_is_due(v, FAULT_DELETED))
        return SQLITE_IOERR_DIR_FSYNC;
    return rc;
}

static int fault_access(sqlite3_vfs *vfs, const char *name, int flags, int *out)
{
    fault_vfs *v = vfs_of(vfs);
    if (fault_is_due(v, FAULT_ACCESS))
        return SQLITE_IOERR_ACCESS;
    return v->real->xAccess(v->real, name, flags, out);
}

static int fault_full_path(sqlite3_vfs *vfs, const char *name, int len, char *out)
{
    fault_vfs *v = vfs_of(vfs);
    return v->real->xFullPathname(v->real, name, len, out);
}

void fault_vfs_register(fault_vfs *v)
{
    memset(v, 0, sizeof(*v));
    v->real = sqlite3_vfs_find(NULL);
    v->vfs = *v->real; /* time, randomness and the like are the real one's */
    v->vfs.iVersion = 1;
    v->vfs.pNext = NULL;
    v->vfs.zName = FAULT_VFS_NAME;
    v->vfs.szOsFile = (int)sizeof(fault_file) + v->real->szOsFile;
    v->vfs.pAppData = v;
    v->vfs.xOpen = fault_open;
    v->vfs.xDelete = fault_delete;
    v->vfs.xAccess = fault_access;
    v->vfs.xFullPathname = fault_full_path;
    sqlite3_vfs_register(&v->vfs, 0);
    lock_faults_set(ofd_lock_is_due, v);
}

void fault_vfs_unregister(fault_vfs *v)
{
    sqlite3_vfs_unregister(&v->vfs);
    lock_faults_set(NULL, NULL);
    for (size_t i = 0; i < v->nlog; i++)
        free(v->log[i].data);
    free(v->log);
    v->log = NULL;
    v->nlog = 0;
}
