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

#include "db.h"
#include "file_lock.h"
#include "journal_check.h"

#define JOURNAL_ENDING "-journal"

struct brc_vfs {
    sqlite3_vfs vfs; /* registered only while a connection is opened */
    char name[40];
    sqlite3_vfs *base;
    char *file, *journal; /* where they lie */
    char *shown;          /* the user's name for the file */
    unsigned how;
    struct vfs_file *main; /* of the open connection */
    int refused;           /* a brc_code and its sentence */
    brc_error refusal;
};

typedef struct vfs_file {
    sqlite3_file file;
    brc_vfs *v;
    int is_main;
    brc_file_lock lock; /* where it has no descriptor, the VFS below holds what it says */
    sqlite3_file *real;
} vfs_file;

static vfs_file *file_of(sqlite3_file *file)
{
    return (vfs_file *)(void *)file;
}

static brc_vfs *guard_of(sqlite3_vfs *vfs)
{
    return vfs->pAppData;
}

/* ---- refusing -------------------------------------------------------------------- */

static int refuse(brc_vfs *v, int code, const char *why)
{
    v->refused = brc_fail(&v->refusal, code, "%s", why);
    return BRC_VFS_REFUSED;
}

#define LOOK_OR_MOVE "look at the file as it stands with --no-recover, or move the journal away"

static int refuse_journal(brc_vfs *v, const char *why)
{
    v->refused = brc_fail(&v->refusal, BRC_ECORRUPT,
                          "%s%s %s; it was neither played back nor deleted: " LOOK_OR_MOVE,
                          v->shown, JOURNAL_ENDING, why);
    return BRC_VFS_REFUSED;
}

static int refuse_verdict(brc_vfs *v, int verdict)
{
    switch (verdict) {
    case BRC_JOURNAL_NAMES_OTHER:
        return refuse_journal(v, "names another file, which playing it back would delete, so it "
                                 "does not belong to this file");
    case BRC_JOURNAL_NONE:
        return refuse_journal(v, "is not a rollback journal");
    case BRC_JOURNAL_DAMAGED:
        return refuse_journal(v, "is truncated or damaged, and cannot undo what an interrupted "
                                 "writer left half done");
    case BRC_JOURNAL_OTHER_STATE:
        return refuse_journal(v, "belongs to another state of the file (was a copy put in the "
                                 "file's place?)");
    default:
        v->refused = brc_fail(&v->refusal, BRC_EFORMAT,
                              "%s is not a repository yet: the 'breccia init' that began it was "
                              "interrupted (%s%s says so); look at it with --no-recover, or remove "
                              "both and begin again", v->shown, v->shown, JOURNAL_ENDING);
        return BRC_VFS_REFUSED;
    }
}

int brc_vfs_refusal(brc_vfs *v, brc_error *err)
{
    int code = v->refused;
    if (code != BRC_OK)
        brc_fail(err, code, "%s", v->refusal.message);
    v->refused = BRC_OK;
    return code;
}

/* ---- files ------------------------------------------------------------------------- */

static int vfs_close(sqlite3_file *file)
{
    vfs_file *f = file_of(file);
    if (f->is_main)
        f->v->main = NULL;
    brc_file_lock_close(&f->lock);
    return f->real->pMethods != NULL ? f->real->pMethods->xClose(f->real) : SQLITE_OK;
}

/* The file's header as it is read: a file in WAL mode goes no further. */
static int header_is_ours(brc_vfs *v, const uint8_t *header, int len)
{
    if (len < 100 || memcmp(header, "SQLite format 3", 16) != 0 ||
        (header[18] != 2 && header[19] != 2))
        return SQLITE_OK;
    uint32_t id = (uint32_t)header[68] << 24 | (uint32_t)header[69] << 16 |
                  (uint32_t)header[70] << 8 | header[71];
    char why[sizeof(v->refusal.message)];
    if (id != BRC_APPLICATION_ID)
        snprintf(why, sizeof(why), BRC_NOT_A_REPOSITORY, v->shown);
    else
        snprintf(why, sizeof(why),
                 "%s was put into SQLite's WAL mode, which this breccia does not read: close what "
                 "has it open, and run: sqlite3 %s 'PRAGMA journal_mode=DELETE'", v->shown,
                 v->shown);
    return refuse(v, BRC_EFORMAT, why);
}

static int vfs_read(sqlite3_file *file, void *into, int len, sqlite3_int64 at)
{
    vfs_file *f = file_of(file);
    int rc = f->real->pMethods->xRead(f->real, into, len, at);
    if (at == 0 && f->is_main && rc == SQLITE_OK)
        rc = header_is_ours(f->v, into, len);
    return rc;
}

static int vfs_write(sqlite3_file *file, const void *data, int len, sqlite3_int64 at)
{
    vfs_file *f = file_of(file);
    return f->real->pMethods->xWrite(f->real, data, len, at);
}

static int vfs_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    vfs_file *f = file_of(file);
    return f->real->pMethods->xTruncate(f->real, size);
}

static int vfs_sync(sqlite3_file *file, int flags)
{
    vfs_file *f = file_of(file);
    return f->real->pMethods->xSync(f->real, flags);
}

static int vfs_size(sqlite3_file *file, sqlite3_int64 *size)
{
    vfs_file *f = file_of(file);
    return f->real->pMethods->xFileSize(f->real, size);
}

static int vfs_lock(sqlite3_file *file, int level)
{
    vfs_file *f = file_of(file);
    if (f->lock.fd >= 0)
        return brc_file_lock_raise(&f->lock, level);
    int rc = f->real->pMethods->xLock(f->real, level);
    if (rc == SQLITE_OK && level > f->lock.level)
        f->lock.level = level;
    return rc;
}

static int vfs_unlock(sqlite3_file *file, int level)
{
    vfs_file *f = file_of(file);
    if (f->lock.fd >= 0)
        return brc_file_lock_lower(&f->lock, level);
    if (level < f->lock.level)
        f->lock.level = level;
    return f->real->pMethods->xUnlock(f->real, level);
}

static int vfs_reserved(sqlite3_file *file, int *out)
{
    vfs_file *f = file_of(file);
    if (f->lock.fd >= 0)
        return brc_file_lock_reserved(&f->lock, out);
    return f->real->pMethods->xCheckReservedLock(f->real, out);
}

static int vfs_control(sqlite3_file *file, int op, void *arg)
{
    vfs_file *f = file_of(file);
    return f->real->pMethods->xFileControl(f->real, op, arg);
}

static int vfs_sector(sqlite3_file *file)
{
    vfs_file *f = file_of(file);
    return f->real->pMethods->xSectorSize(f->real);
}

static int vfs_device(sqlite3_file *file)
{
    vfs_file *f = file_of(file);
    int what = f->real->pMethods->xDeviceCharacteristics(f->real);
    return f->is_main && (f->v->how & BRC_VFS_UNLOCKED) ? what | SQLITE_IOCAP_IMMUTABLE : what;
}

/* Version 1: no shared memory, so no WAL, and no mapped pages. */
static const sqlite3_io_methods vfs_methods = {
    .iVersion = 1,
    .xClose = vfs_close,
    .xRead = vfs_read,
    .xWrite = vfs_write,
    .xTruncate = vfs_truncate,
    .xSync = vfs_sync,
    .xFileSize = vfs_size,
    .xLock = vfs_lock,
    .xUnlock = vfs_unlock,
    .xCheckReservedLock = vfs_reserved,
    .xFileControl = vfs_control,
    .xSectorSize = vfs_sector,
    .xDeviceCharacteristics = vfs_device,
};

/* ---- opening ---------------------------------------------------------------------- */

/* What has the journal's name must be a file with that one name: through a link SQLite
 * would write, truncate or delete something else. */
static int journal_is_plain(brc_vfs *v)
{
    struct stat st;
    if (lstat(v->journal, &st) != 0)
        return SQLITE_OK; /* it is gone, or opening it will say why */
    if (!S_ISREG(st.st_mode))
        return refuse_journal(v, S_ISLNK(st.st_mode) ? "is a symbolic link, so it is not this "
                                                       "file's own"
                                                     : "is not a regular file");
    if (st.st_nlink > 1)
        return refuse_journal(v, "has another name as well (a hard link), so it may be "
                                 "something else");
    return SQLITE_OK;
}

static int judge(brc_vfs *v, sqlite3_file *journal, int is_new)
{
    int verdict = BRC_JOURNAL_OWN, rc;
    if (is_new)
        rc = brc_journal_check_end(journal, &verdict);
    else
        rc = brc_journal_check(v->main->real, journal, &verdict);
    if (rc == SQLITE_OK && verdict != BRC_JOURNAL_OWN)
        rc = refuse_verdict(v, verdict);
    return rc;
}

static int open_journal(brc_vfs *v, const char *name, vfs_file *f, int flags, int *out)
{
    int to_write = (flags & SQLITE_OPEN_READWRITE) != 0;
    int is_hot = to_write && !(flags & SQLITE_OPEN_CREATE);
    if (v->main == NULL || (is_hot && v->main->lock.level < SQLITE_LOCK_EXCLUSIVE))
        return refuse(v, BRC_EINTERNAL, "a journal was opened without a lock");
    int rc = journal_is_plain(v);
    if (!to_write && rc == BRC_VFS_REFUSED) {
        v->refused = BRC_OK;
        return SQLITE_CANTOPEN; /* then SQLite takes it for hot and comes back with the lock */
    }
    if (rc == SQLITE_OK)
        rc = v->base->xOpen(v->base, name, f->real, flags, out);
    if (rc != SQLITE_OK || !to_write)
        return rc;
    rc = judge(v, f->real, !is_hot);
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
static int is_one_file(const vfs_file *f, const char *name)
{
    struct stat ours, there;
    int has_moved = 0;
    int rc = f->real->pMethods->xFileControl(f->real, SQLITE_FCNTL_HAS_MOVED, &has_moved);
    return (rc == SQLITE_OK || rc == SQLITE_NOTFOUND) && !has_moved &&
           fstat(f->lock.fd, &ours) == 0 && stat(name, &there) == 0 &&
           ours.st_dev == there.st_dev && ours.st_ino == there.st_ino;
}

static int open_lock(brc_vfs *v, const char *name, vfs_file *f, int to_write)
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
    char why[sizeof(v->refusal.message)];
    snprintf(why, sizeof(why), "%s was replaced by another file while it was opened: open it again",
             v->shown);
    return refuse(v, BRC_EBUSY, why);
}

static int open_main(brc_vfs *v, const char *name, vfs_file *f, int flags, int *out)
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
    char why[sizeof(v->refusal.message)];
    snprintf(why, sizeof(why), "%s: SQLite asked for the file %s, which does not belong to it",
             v->shown, name != NULL ? name : "for temporary data");
    return refuse(v, BRC_ECORRUPT, why);
}

static int vfs_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *out)
{
    brc_vfs *v = guard_of(vfs);
    vfs_file *f = file_of(file);
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
    } else {
        return refuse_name(v, name);
    }
    if (rc != SQLITE_OK)
        return rc;
    if (f->is_main)
        v->main = f;
    f->file.pMethods = &vfs_methods;
    return SQLITE_OK;
}

/* ---- the folder --------------------------------------------------------------------- */

static int vfs_delete(sqlite3_vfs *vfs, const char *name, int sync_folder)
{
    brc_vfs *v = guard_of(vfs);
    struct stat st;
    if (strcmp(name, v->journal) != 0)
        return refuse_name(v, name);
    if (lstat(v->journal, &st) == 0 && !S_ISREG(st.st_mode))
        return journal_is_plain(v);
    return v->base->xDelete(v->base, name, sync_folder);
}

static int is_side_file(const brc_vfs *v, const char *name)
{
    size_t len = strlen(v->file);
    return strncmp(name, v->file, len) == 0 &&
           (strcmp(name + len, "-wal") == 0 || strcmp(name + len, "-shm") == 0);
}

/* Outside WAL mode a -wal file does not belong to the file, and WAL mode is not read. */
static int vfs_access(sqlite3_vfs *vfs, const char *name, int flags, int *out)
{
    brc_vfs *v = guard_of(vfs);
    *out = 0;
    if (is_side_file(v, name))
        return SQLITE_OK;
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
        .szOsFile = (int)sizeof(vfs_file) + v->base->szOsFile,
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

static int resolve_path(brc_vfs *v, const char *path, brc_error *err)
{
    brc_buf name = BRC_BUF_INIT;
    char *real = realpath(path, NULL);
    if (real == NULL)
        return brc_fail_os(err, errno, "cannot open", path);
    int rc = brc_buf_printf(&name, err, "%s%s", real, JOURNAL_ENDING);
    if (rc == BRC_OK)
        rc = brc_buf_take_text(&name, &v->journal, err);
    if (rc == BRC_OK)
        rc = brc_dup(&v->file, real, err);
    if (rc == BRC_OK)
        rc = brc_dup(&v->shown, path, err);
    brc_buf_dispose(&name);
    free(real);
    return rc;
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
    fill_in_vfs(v);
    int rc = resolve_path(v, path, err);
    if (rc == BRC_OK)
        *out = v;
    else
        brc_vfs_free(v);
    return rc;
}

void brc_vfs_free(brc_vfs *v)
{
    if (v == NULL)
        return;
    free(v->file);
    free(v->journal);
    free(v->shown);
    free(v);
}

void brc_vfs_leave(brc_vfs *v)
{
    if (v != NULL && v->main != NULL)
        brc_file_lock_leave(&v->main->lock);
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

int brc_vfs_has_journal(const brc_vfs *v)
{
    struct stat st;
    return lstat(v->journal, &st) == 0;
}

void brc_vfs_remove_journal(const brc_vfs *v)
{
    unlink(v->journal);
}

int brc_vfs_is_cut_short(const brc_vfs *v, uint64_t *is, uint64_t *should_be)
{
    uint8_t header[100];
    sqlite3_int64 size = 0;
    sqlite3_file *real = v->main != NULL ? v->main->real : NULL;
    if (real == NULL || real->pMethods->xFileSize(real, &size) != SQLITE_OK ||
        real->pMethods->xRead(real, header, sizeof(header), 0) != SQLITE_OK)
        return 0;
    uint64_t page = (uint64_t)header[16] << 8 | header[17];
    uint64_t pages = (uint64_t)header[28] << 24 | (uint64_t)header[29] << 16 |
                     (uint64_t)header[30] << 8 | header[31];
    *is = (uint64_t)size;
    *should_be = (page == 1 ? 65536 : page) * pages;
    return *is < *should_be;
}
