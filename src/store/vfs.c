/*
 * See vfs.h. What SQLite's calls mean, according to its pager:
 *
 * - It looks for a journal whenever it takes the first lock (xAccess). A journal that is there
 *   while nobody holds RESERVED is hot: SQLite takes EXCLUSIVE and opens the journal for
 *   writing, without SQLITE_OPEN_CREATE. That is the only such open, and nobody else writes
 *   to either file then: there the journal is judged. The journal of a living writer is
 *   never met there.
 * - A writer opens its own journal with SQLITE_OPEN_CREATE. One that is already there has a
 *   header that was not written to the end: it counts for nothing and is overwritten.
 * - Whatever else it opens, asks for or deletes comes from the bytes of a journal.
 *
 * Where the VFS below would take POSIX locks, and the system has locks of open file descriptions,
 * it is never asked to lock: its locks and ours on the same bytes would shut each other out.
 */
#include "vfs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "journal_check.h"
#include "vfs_parts.h"

static brc_vfs_file *file_of(sqlite3_file *file)
{
    return (brc_vfs_file *)(void *)file;
}

static brc_vfs *guard_of(sqlite3_vfs *vfs)
{
    return vfs->pAppData;
}

/* ---- files ------------------------------------------------------------------------- */

static int vfs_close(sqlite3_file *file)
{
    brc_vfs_file *f = file_of(file);
    if (f->is_main)
        f->v->main = NULL;
    if (f->v->log == f) {
        f->v->log = NULL;
        f->v->is_wished = 0; /* once the file has left WAL mode, it is asked anew */
        f->v->is_assumed = 0;
    }
    brc_file_lock_close(&f->lock);
    return f->real->pMethods != NULL ? f->real->pMethods->xClose(f->real) : SQLITE_OK;
}

static int vfs_read(sqlite3_file *file, void *into, int len, sqlite3_int64 at)
{
    brc_vfs_file *f = file_of(file);
    int rc = f->real->pMethods->xRead(f->real, into, len, at);
    if (rc != SQLITE_OK && rc != SQLITE_IOERR_SHORT_READ)
        f->v->unread++;
    if (f->is_main && f->v->watch != NULL)
        f->v->watch(f->v->watch_ctx);
    if (at == 0 && f->is_main && rc == SQLITE_OK)
        rc = brc_vfs_check_header(f->v, into, len);
    return rc;
}

static int vfs_write(sqlite3_file *file, const void *data, int len, sqlite3_int64 at)
{
    brc_vfs_file *f = file_of(file);
    if (f->is_journal)
        f->v->journalled += (uint64_t)len;
    return f->real->pMethods->xWrite(f->real, data, len, at);
}

static int vfs_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    brc_vfs_file *f = file_of(file);
    return f->real->pMethods->xTruncate(f->real, size);
}

static int vfs_sync(sqlite3_file *file, int flags)
{
    brc_vfs_file *f = file_of(file);
    return f->real->pMethods->xSync(f->real, flags);
}

static int vfs_size(sqlite3_file *file, sqlite3_int64 *size)
{
    brc_vfs_file *f = file_of(file);
    return f->real->pMethods->xFileSize(f->real, size);
}

static int vfs_lock(sqlite3_file *file, int level)
{
    brc_vfs_file *f = file_of(file);
    if (f->lock.fd >= 0) {
        int was = f->lock.level, raised = brc_file_lock_raise(&f->lock, level);
        if (raised == SQLITE_OK && level == SQLITE_LOCK_RESERVED)
            raised = brc_vfs_check_guard(f->v);
        if (raised == BRC_VFS_REFUSED)
            (void)!brc_file_lock_lower(&f->lock, was);
        return raised;
    }
    int rc = f->real->pMethods->xLock(f->real, level);
    if (rc == SQLITE_OK && level > f->lock.level)
        f->lock.level = level;
    return rc;
}

static int vfs_unlock(sqlite3_file *file, int level)
{
    brc_vfs_file *f = file_of(file);
    if (f->lock.fd >= 0)
        return brc_vfs_stays_alone(f->v, level) ? SQLITE_OK : brc_file_lock_lower(&f->lock, level);
    if (level < f->lock.level)
        f->lock.level = level;
    return f->real->pMethods->xUnlock(f->real, level);
}

static int vfs_reserved(sqlite3_file *file, int *out)
{
    brc_vfs_file *f = file_of(file);
    if (f->lock.fd >= 0)
        return brc_file_lock_reserved(&f->lock, out);
    return f->real->pMethods->xCheckReservedLock(f->real, out);
}

static int vfs_control(sqlite3_file *file, int op, void *arg)
{
    brc_vfs_file *f = file_of(file);
    return f->real->pMethods->xFileControl(f->real, op, arg);
}

static int vfs_sector(sqlite3_file *file)
{
    brc_vfs_file *f = file_of(file);
    return f->real->pMethods->xSectorSize(f->real);
}

static int vfs_device(sqlite3_file *file)
{
    brc_vfs_file *f = file_of(file);
    int what = f->real->pMethods->xDeviceCharacteristics(f->real);
    return f->is_main && (f->v->how & BRC_VFS_UNLOCKED) ? what | SQLITE_IOCAP_IMMUTABLE : what;
}

/* Version 1 has no shared memory, so no WAL; neither has mapped pages. */
#define VFS_METHODS \
    .xClose = vfs_close, \
    .xRead = vfs_read, \
    .xWrite = vfs_write, \
    .xTruncate = vfs_truncate, \
    .xSync = vfs_sync, \
    .xFileSize = vfs_size, \
    .xLock = vfs_lock, \
    .xUnlock = vfs_unlock, \
    .xCheckReservedLock = vfs_reserved, \
    .xFileControl = vfs_control, \
    .xSectorSize = vfs_sector, \
    .xDeviceCharacteristics = vfs_device,

static const sqlite3_io_methods vfs_methods = { .iVersion = 1, VFS_METHODS };

static const sqlite3_io_methods vfs_methods_wal = {
    .iVersion = 2,
    VFS_METHODS .xShmMap = brc_vfs_shm_map,
    .xShmLock = brc_vfs_shm_lock,
    .xShmBarrier = brc_vfs_shm_barrier,
    .xShmUnmap = brc_vfs_shm_unmap,
};

/* ---- opening ---------------------------------------------------------------------- */

static int judge_journal(brc_vfs *v, sqlite3_file *journal, int is_new)
{
    int verdict = BRC_JOURNAL_OWN, rc;
    if (is_new)
        rc = brc_journal_check_end(journal, &verdict);
    else
        rc = brc_journal_check(v->main->real, journal, &verdict);
    if (rc == SQLITE_OK && verdict != BRC_JOURNAL_OWN)
        rc = brc_vfs_refuse_journal(v, verdict);
    return rc;
}

static int open_journal(brc_vfs *v, const char *name, brc_vfs_file *f, int flags, int *out)
{
    int to_write = (flags & SQLITE_OPEN_READWRITE) != 0;
    int is_hot = to_write && !(flags & SQLITE_OPEN_CREATE);
    if (v->main == NULL || (is_hot && v->main->lock.level < SQLITE_LOCK_EXCLUSIVE))
        return brc_vfs_refuse(v, BRC_EINTERNAL, "a journal was opened without a lock");
    int rc = brc_vfs_check_plain(v, v->journal, BRC_VFS_JOURNAL);
    if (!to_write && rc == BRC_VFS_REFUSED) {
        v->refused = BRC_OK;
        return SQLITE_CANTOPEN; /* then SQLite takes it for hot and comes back with the lock */
    }
    if (rc == SQLITE_OK)
        rc = v->base->xOpen(v->base, name, f->real, flags, out);
    if (rc != SQLITE_OK || !to_write)
        return rc;
    rc = judge_journal(v, f->real, !is_hot);
    if (rc != SQLITE_OK)
        f->real->pMethods->xClose(f->real);
    return rc;
}

/* Are the locks of the VFS below POSIX locks? One between it and "unix" names itself in front, as
 * SQLite's own do, and passes the question on; what gives another answer locks in its own way. */
static int locks_are_posix(sqlite3_file *real, int *out)
{
    static const char unix_vfs[] = "/unix";
    char *name = NULL;
    *out = 0;
    if (real->pMethods->xFileControl(real, SQLITE_FCNTL_VFSNAME, &name) != SQLITE_OK)
        return SQLITE_OK;
    if (name == NULL)
        return SQLITE_NOMEM;
    size_t len = strlen(name), tail = sizeof(unix_vfs) - 1;
    *out = strcmp(name, unix_vfs + 1) == 0 ||
           (len >= tail && strcmp(name + len - tail, unix_vfs) == 0);
    sqlite3_free(name);
    return SQLITE_OK;
}

/* What the VFS below has opened and what we lock must be one file, and not one before and one
 * after something took its name. */
static int is_one_file(const brc_vfs_file *f, const char *name)
{
    struct stat ours, there;
    int has_moved = 0;
    int rc = f->real->pMethods->xFileControl(f->real, SQLITE_FCNTL_HAS_MOVED, &has_moved);
    return (rc == SQLITE_OK || rc == SQLITE_NOTFOUND) && !has_moved &&
           fstat(f->lock.fd, &ours) == 0 && stat(name, &there) == 0 &&
           ours.st_dev == there.st_dev && ours.st_ino == there.st_ino;
}

static int open_lock(brc_vfs *v, const char *name, brc_vfs_file *f, int to_write)
{
    int offered = 0, posix = 0;
    int rc = locks_are_posix(f->real, &posix);
    if (rc == SQLITE_OK && posix)
        rc = brc_file_lock_offered(&offered);
    if (rc != SQLITE_OK || !offered)
        return rc;
    rc = brc_file_lock_open(&f->lock, name, to_write);
    if (rc != SQLITE_OK || is_one_file(f, name))
        return rc;
    return brc_vfs_refuse(v, BRC_EBUSY,
                          "%s was replaced by another file while it was opened: open it again",
                          v->shown);
}

static int open_main(brc_vfs *v, const char *name, brc_vfs_file *f, int flags, int *out)
{
    int got = flags;
    int rc = v->base->xOpen(v->base, name, f->real, flags, &got);
    if (out != NULL)
        *out = got;
    if (rc != SQLITE_OK || (v->how & BRC_VFS_UNLOCKED))
        return rc;
    rc = open_lock(v, name, f, (got & SQLITE_OPEN_READWRITE) != 0);
    if (rc != SQLITE_OK) {
        brc_file_lock_close(&f->lock);
        f->real->pMethods->xClose(f->real);
    }
    return rc;
}

static int refuse_name(brc_vfs *v, const char *name)
{
    return brc_vfs_refuse(v, BRC_ECORRUPT,
                          "%s: SQLite asked for the file %s, which does not belong to it", v->shown,
                          name != NULL ? name : "for temporary data");
}

static int vfs_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *out)
{
    brc_vfs *v = guard_of(vfs);
    brc_vfs_file *f = file_of(file);
    int rc;
    memset(f, 0, sizeof(*f));
    f->v = v;
    f->lock.fd = -1;
    f->real = (sqlite3_file *)(void *)(f + 1);
    if ((flags & SQLITE_OPEN_MAIN_DB) && name != NULL && strcmp(name, v->file) == 0) {
        rc = open_main(v, name, f, flags, out);
        f->is_main = 1;
    } else if ((flags & SQLITE_OPEN_MAIN_JOURNAL) && name != NULL &&
               strcmp(name, v->journal) == 0) {
        rc = open_journal(v, name, f, flags, out);
        f->is_journal = 1;
    } else if ((flags & SQLITE_OPEN_WAL) && name != NULL && strcmp(name, v->wal) == 0) {
        rc = brc_vfs_open_log(v, name, f, flags, out);
    } else {
        return refuse_name(v, name);
    }
    if (rc != SQLITE_OK)
        return rc;
    if (f->is_main)
        v->main = f;
    f->file.pMethods = f->lock.fd >= 0 ? &vfs_methods_wal : &vfs_methods;
    return SQLITE_OK;
}

/* ---- the folder --------------------------------------------------------------------- */

static int vfs_delete(sqlite3_vfs *vfs, const char *name, int sync_folder)
{
    brc_vfs *v = guard_of(vfs);
    struct stat st;
    int is_log = strcmp(name, v->wal) == 0;
    if (!is_log && strcmp(name, v->journal) != 0)
        return refuse_name(v, name);
    if (lstat(name, &st) == 0 && !S_ISREG(st.st_mode))
        return brc_vfs_check_plain(v, name, is_log ? BRC_VFS_WAL : BRC_VFS_JOURNAL);
    return v->base->xDelete(v->base, name, sync_folder);
}

/* Outside WAL mode a log does not belong to the file. */
static int vfs_access(sqlite3_vfs *vfs, const char *name, int flags, int *out)
{
    brc_vfs *v = guard_of(vfs);
    struct stat st;
    *out = 0;
    if (strcmp(name, v->wal) == 0) {
        int rc = brc_vfs_log_counts(v, out);
        *out = *out && lstat(name, &st) == 0;
        return rc;
    }
    if (strcmp(name, v->journal) == 0 && v->how != 0)
        return SQLITE_OK;
    if (strcmp(name, v->journal) != 0 && strcmp(name, v->file) != 0)
        return refuse_name(v, name);
    return v->base->xAccess(v->base, name, flags, out);
}

/* It was resolved once and means the same file from then on. */
static int vfs_full_path(sqlite3_vfs *vfs, const char *name, int len, char *out)
{
    (void)vfs;
    size_t need = strlen(name) + 1;
    if (len < 0 || need > (size_t)len)
        return SQLITE_CANTOPEN;
    memcpy(out, name, need);
    return SQLITE_OK;
}

static int vfs_randomness(sqlite3_vfs *vfs, int len, char *out)
{
    brc_vfs *v = guard_of(vfs);
    return v->base->xRandomness(v->base, len, out);
}

static int vfs_sleep(sqlite3_vfs *vfs, int us)
{
    brc_vfs *v = guard_of(vfs);
    return v->base->xSleep(v->base, us);
}

static int vfs_now(sqlite3_vfs *vfs, double *out)
{
    brc_vfs *v = guard_of(vfs);
    return v->base->xCurrentTime(v->base, out);
}

static int vfs_last_error(sqlite3_vfs *vfs, int len, char *out)
{
    brc_vfs *v = guard_of(vfs);
    return v->base->xGetLastError != NULL ? v->base->xGetLastError(v->base, len, out) : 0;
}

/* ---- making one ---------------------------------------------------------------------- */

static void fill_in_vfs(brc_vfs *v)
{
    /* Unique among the open ones, so connections may be opened at the same time. */
    snprintf(v->name, sizeof(v->name), "breccia-%p", (void *)v);
    v->vfs = (sqlite3_vfs){
        .iVersion = 1,
        .szOsFile = (int)sizeof(brc_vfs_file) + v->base->szOsFile,
        .mxPathname = v->base->mxPathname,
        .zName = v->name,
        .pAppData = v,
        .xOpen = vfs_open,
        .xDelete = vfs_delete,
        .xAccess = vfs_access,
        .xFullPathname = vfs_full_path,
        .xRandomness = vfs_randomness,
        .xSleep = vfs_sleep,
        .xCurrentTime = vfs_now,
        .xGetLastError = vfs_last_error,
    };
}

static int name_beside(char **out, const char *file, const char *ending, brc_error *err)
{
    brc_buf name = BRC_BUF_INIT;
    int rc = brc_buf_printf(&name, err, "%s%s", file, ending);
    if (rc == BRC_OK)
        rc = brc_buf_take_text(&name, out, err);
    brc_buf_dispose(&name);
    return rc;
}

static int resolve_path(brc_vfs *v, const char *path, brc_error *err)
{
    char *real = realpath(path, NULL);
    if (real == NULL)
        return brc_fail_os(err, errno, "cannot open", path);
    int rc = brc_dup(&v->file, real, err);
    free(real);
    BRC_TRY(rc);
    BRC_TRY(name_beside(&v->journal, v->file, BRC_VFS_JOURNAL, err));
    BRC_TRY(name_beside(&v->wal, v->file, BRC_VFS_WAL, err));
    BRC_TRY(name_beside(&v->shm, v->file, BRC_VFS_SHM, err));
    return brc_dup(&v->shown, path, err);
}

int brc_vfs_new(brc_vfs **out, const char *path, const char *base, brc_error *err)
{
    void *p = NULL;
    *out = NULL;
    sqlite3_vfs *under = sqlite3_vfs_find(base);
    if (under == NULL)
        return brc_fail(err, BRC_EINVAL, "SQLite has no VFS '%s'", base != NULL ? base : "");
    BRC_TRY(brc_new(&p, sizeof(brc_vfs), err));
    brc_vfs *v = p;
    v->base = under;
    v->index = (brc_wal_index)BRC_WAL_INDEX_INIT;
    fill_in_vfs(v);
    int rc = resolve_path(v, path, err);
    if (rc == BRC_OK)
        *out = v;
    else
        brc_vfs_free(v);
    return rc;
}

const char *brc_vfs_path(const brc_vfs *v)
{
    return v->file;
}

void brc_vfs_free(brc_vfs *v)
{
    if (v == NULL)
        return;
    free(v->file);
    free(v->journal);
    free(v->wal);
    free(v->shm);
    free(v->shown);
    free(v);
}

void brc_vfs_leave(brc_vfs *v)
{
    if (v == NULL)
        return;
    if (v->main != NULL)
        brc_file_lock_leave(&v->main->lock);
    brc_wal_index_forget(&v->index);
}

/* SQLite looks for the name only while it opens; then the connection has the VFS. */
int brc_vfs_connect(brc_vfs *v, sqlite3 **db, int flags, unsigned how)
{
    v->how = how;
    v->refused = BRC_OK;
    int rc = sqlite3_vfs_register(&v->vfs, 0);
    if (rc != SQLITE_OK)
        return rc;
    rc = sqlite3_open_v2(v->file, db, flags, v->name);
    sqlite3_vfs_unregister(&v->vfs);
    return rc;
}

/* ---- asking --------------------------------------------------------------------------- */

unsigned brc_vfs_how(const brc_vfs *v)
{
    return v->how;
}

const char *brc_vfs_base(const brc_vfs *v)
{
    return v->base->zName;
}

const char *brc_vfs_file_name(const brc_vfs *v)
{
    return v->file;
}

uint64_t brc_vfs_log_bytes(const brc_vfs *v)
{
    struct stat st;
    return v->log != NULL && stat(v->wal, &st) == 0 ? (uint64_t)st.st_size : 0;
}

int brc_vfs_has_journal(const brc_vfs *v)
{
    struct stat st;
    return lstat(v->journal, &st) == 0;
}

void brc_vfs_remove_journal(const brc_vfs *v)
{
    unlink(v->journal);
}

void brc_vfs_second_lock(const brc_vfs *v, brc_file_lock *out)
{
    struct stat first, second;
    *out = (brc_file_lock){.fd = -1, .level = SQLITE_LOCK_NONE};
    if (v->main == NULL || v->main->lock.fd < 0 ||
        brc_file_lock_open(out, v->file, 0) != SQLITE_OK)
        return;
    if (fstat(v->main->lock.fd, &first) != 0 || fstat(out->fd, &second) != 0 ||
        first.st_dev != second.st_dev || first.st_ino != second.st_ino)
        brc_file_lock_close(out);
}

int brc_vfs_find_lock(const brc_vfs *v, int64_t at, int64_t len, int64_t *found, int64_t *found_len)
{
    off_t where, n;
    if (v->main == NULL || v->main->lock.fd < 0 ||
        !brc_bytes_find_lock(v->main->lock.fd, (off_t)at, (off_t)len, &where, &n))
        return 0;
    *found = where;
    *found_len = n;
    return 1;
}

void brc_vfs_announce(const brc_vfs *vfs)
{
    if (vfs->main != NULL)
        brc_file_lock_announce(&vfs->main->lock);
}

void brc_vfs_recall(const brc_vfs *vfs)
{
    if (vfs->main != NULL)
        brc_file_lock_recall(&vfs->main->lock);
}

int brc_vfs_is_awaited(const brc_vfs *vfs)
{
    return vfs->main == NULL || brc_file_lock_is_awaited(&vfs->main->lock);
}

void brc_vfs_watch(brc_vfs *vfs, void (*watch)(void *ctx), void *ctx)
{
    vfs->watch = watch;
    vfs->watch_ctx = ctx;
}

uint64_t brc_vfs_unread(const brc_vfs *vfs)
{
    return vfs->unread;
}

uint64_t brc_vfs_journalled(const brc_vfs *vfs)
{
    return vfs->journalled;
}

int brc_vfs_counter(const brc_vfs *v, uint32_t *out, brc_error *err)
{
    uint8_t at[4] = {0};
    sqlite3_file *real = v->main != NULL ? v->main->real : NULL;
    *out = 0;
    if (v->log != NULL)
        return brc_fail(err, BRC_EBUSY,
                        "%s is in use by another process: close it there, and try again", v->shown);
    if (real == NULL || real->pMethods->xRead(real, at, sizeof(at), 24) != SQLITE_OK)
        return brc_fail(err, BRC_EIO, "cannot read the header of %s", v->shown);
    *out = (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
    return BRC_OK;
}

static int file_lengths(const brc_vfs *v, uint64_t *is, uint64_t *should_be)
{
    uint8_t header[100];
    sqlite3_int64 size = 0;
    sqlite3_file *real = v->main != NULL ? v->main->real : NULL;
    if (real == NULL || real->pMethods->xFileSize(real, &size) != SQLITE_OK ||
        real->pMethods->xRead(real, header, sizeof(header), 0) != SQLITE_OK || v->log != NULL)
        return 0; /* what a log holds need not be in the file yet */
    if (memcmp(header + 24, header + 92, 4) != 0)
        return 0; /* an old SQLite wrote it last, which does not say how many pages there are */
    uint64_t page = (uint64_t)header[16] << 8 | header[17];
    uint64_t pages = (uint64_t)header[28] << 24 | (uint64_t)header[29] << 16 |
                     (uint64_t)header[30] << 8 | header[31];
    *is = (uint64_t)size;
    *should_be = (page == 1 ? 65536 : page) * pages;
    return 1;
}

int brc_vfs_is_cut_short(const brc_vfs *v, uint64_t *is, uint64_t *should_be)
{
    return file_lengths(v, is, should_be) && *is < *should_be;
}

int brc_vfs_has_tail(const brc_vfs *v)
{
    uint64_t is, should_be;
    return file_lengths(v, &is, &should_be) && is > should_be;
}
