/*
 * The VFS in WAL mode: see vfs.h. FILE's header says whether it is in WAL mode; whether that was
 * asked for is a setting in FILE, which only the rollback journal ever changes: so FILE itself has
 * it, whatever its log holds. Where it is not there, nothing is made, read or changed.
 */
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vfs_parts.h"
#include "wal_check.h"

enum { HEADER_LEN = 100, WRITES_AT = 18, READS_AT = 19, COUNTER_AT = 24, PAGES_AT = 28,
       APPLICATION_AT = 68 };

static brc_vfs *vfs_of_file(sqlite3_file *file)
{
    return ((brc_vfs_file *)(void *)file)->v;
}

static uint32_t header_number(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

/* ---- FILE's header -------------------------------------------------------------------- */

static int header_says_wal(const uint8_t *header, int len)
{
    return len >= HEADER_LEN && memcmp(header, "SQLite format 3", 16) == 0 &&
           (header[WRITES_AT] == 2 || header[READS_AT] == 2);
}

/* Only where our own locks are taken: those of the VFS below on FILE-shm are the process's. */
static int wal_is_offered(const brc_vfs *v)
{
    return v->main != NULL && v->main->lock.fd >= 0;
}

static int has_bytes(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0 && (!S_ISREG(st.st_mode) || st.st_size > 0);
}

/* A process that was killed while it copied the log back leaves some pages as they were before and
 * some as they are then. FILE may be readable only with its log; what it asks for is seen then. */
static int ask_wish(brc_vfs *v)
{
    int rc = v->wish(v->wish_ctx, &v->refusal);
    v->is_assumed = (rc == BRC_ECORRUPT || rc == BRC_EFORMAT) && has_bytes(v->wal);
    if (v->is_assumed) {
        v->refusal = (brc_error)BRC_ERROR_INIT;
        rc = 1;
    }
    return rc;
}

#define NOT_WISHED                                                                                \
    "%s was put into SQLite's WAL mode by another program: close what has it open, and run: "     \
    "sqlite3 %s 'PRAGMA journal_mode=DELETE'; to use WAL mode, then run: breccia config %s "      \
    "journal wal"

static int check_wish(brc_vfs *v)
{
    if (v->how == 0 && !wal_is_offered(v))
        return brc_vfs_refuse(v, BRC_EUNSUPPORTED,
                              "%s is in SQLite's WAL mode, for which this system or VFS lacks the "
                              "locks: open it elsewhere, and run: breccia config %s journal "
                              "rollback", v->shown, v->shown);
    if (v->is_leaving) /* it has been in it; and nobody, not even we, can ask now */
        return SQLITE_OK;
    if (!v->is_wished && v->wish != NULL) {
        int rc = ask_wish(v);
        if (rc < 0) {
            v->refused = rc;
            return BRC_VFS_REFUSED;
        }
        v->is_wished = rc > 0;
    }
    return v->is_wished ? SQLITE_OK
                        : brc_vfs_refuse(v, BRC_EFORMAT, NOT_WISHED, v->shown, v->shown, v->shown);
}

int brc_vfs_wish_seen(brc_vfs *v, int is_wished, brc_error *err)
{
    if (!v->is_assumed || is_wished) {
        v->is_assumed = 0;
        return BRC_OK;
    }
    return brc_fail(err, BRC_EFORMAT, NOT_WISHED, v->shown, v->shown, v->shown);
}

/* Where FILE is read without its log. */
static int check_without_log(brc_vfs *v)
{
    if ((v->how & BRC_VFS_UNLOCKED) && has_bytes(v->wal))
        return brc_vfs_refuse(v, BRC_EREADONLY,
                              "%s has a log beside it (%s%s) that belongs to it, and cannot be "
                              "read where nothing may be written: copy both to a folder where you "
                              "may",
                              v->shown, v->shown, BRC_VFS_WAL);
    if ((v->how & BRC_VFS_NO_JOURNAL) && brc_wal_index_is_live(v->shm))
        return brc_vfs_refuse(v, BRC_EBUSY,
                              "%s is open elsewhere in WAL mode: --no-recover is for a file that "
                              "nobody writes to", v->shown);
    return SQLITE_OK;
}

int brc_vfs_check_header(brc_vfs *v, uint8_t *header, int len)
{
    if (!header_says_wal(header, len))
        return SQLITE_OK;
    if (header_number(header + APPLICATION_AT) != BRC_APPLICATION_ID)
        return brc_vfs_refuse(v, BRC_EFORMAT, BRC_NOT_A_REPOSITORY, v->shown);
    int rc = v->how & BRC_VFS_PEEK ? SQLITE_OK : check_wish(v);
    if (rc != SQLITE_OK || v->how == 0)
        return rc;
    header[WRITES_AT] = header[READS_AT] = 1; /* it is read without its log */
    /* Its copying back may have been cut off before FILE grew: the pages that are there count,
     * also for --no-recover. */
    if (!(v->how & BRC_VFS_UNLOCKED))
        memset(header + PAGES_AT, 0, 4);
    return v->how & BRC_VFS_PEEK ? SQLITE_OK : check_without_log(v);
}

static int read_own_header(brc_vfs *v, uint8_t *header)
{
    sqlite3_file *real = v->main->real;
    return real->pMethods->xRead(real, header, HEADER_LEN, 0);
}

int brc_vfs_log_counts(brc_vfs *v, int *out)
{
    uint8_t header[HEADER_LEN];
    *out = 0;
    if (v->how != 0 || v->main == NULL)
        return SQLITE_OK;
    int rc = read_own_header(v, header);
    if (rc == SQLITE_IOERR_SHORT_READ) /* a new file */
        return SQLITE_OK;
    if (rc == SQLITE_OK && header_says_wal(header, HEADER_LEN)) {
        *out = 1;
        rc = brc_vfs_check_header(v, header, HEADER_LEN);
    }
    return rc;
}

/* ---- into WAL mode -------------------------------------------------------------------- */

int brc_vfs_in_wal(const brc_vfs *v)
{
    return v->log != NULL;
}

void brc_vfs_on_wal(brc_vfs *v, brc_vfs_wish_fn wish, void *ctx)
{
    v->wish = wish;
    v->wish_ctx = ctx;
}

int brc_vfs_wal_in_the_way(brc_vfs *v, brc_error *err)
{
    struct stat st;
    if (!wal_is_offered(v))
        return brc_fail(err, BRC_EUNSUPPORTED,
                        "%s cannot be put into WAL mode: this system or VFS lacks the locks for it",
                        v->shown);
    if (lstat(v->wal, &st) == 0)
        return brc_fail(err, BRC_EEXISTS,
                        "%s cannot be put into WAL mode: %s%s is in the way, which does not belong "
                        "to it; move it away", v->shown, v->shown, BRC_VFS_WAL);
    if (lstat(v->shm, &st) == 0 && (!S_ISREG(st.st_mode) || st.st_nlink > 1))
        return brc_fail(err, BRC_EEXISTS,
                        "%s cannot be put into WAL mode: %s%s is in the way; move it away",
                        v->shown, v->shown, BRC_VFS_SHM);
    return BRC_OK;
}

int brc_vfs_guard(brc_vfs *v)
{
    uint8_t header[HEADER_LEN];
    int rc = read_own_header(v, header);
    v->counter = header_number(header + COUNTER_AT);
    v->is_guarded = rc == SQLITE_OK;
    return rc;
}

void brc_vfs_unguard(brc_vfs *v)
{
    v->is_guarded = 0;
}

int brc_vfs_check_guard(brc_vfs *v)
{
    uint8_t header[HEADER_LEN];
    if (!v->is_guarded)
        return SQLITE_OK;
    int rc = read_own_header(v, header);
    if (rc == SQLITE_OK && header_number(header + COUNTER_AT) != v->counter)
        rc = brc_vfs_refuse(v, BRC_EBUSY, "%s has changed meanwhile: try again", v->shown);
    return rc;
}

/* ---- the log -------------------------------------------------------------------------- */

int brc_vfs_open_log(brc_vfs *v, const char *name, brc_vfs_file *f, int flags, int *out)
{
    int counts = 0;
    int rc = brc_vfs_log_counts(v, &counts);
    if (rc == SQLITE_OK && !counts)
        return SQLITE_CANTOPEN;
    if (rc == SQLITE_OK)
        rc = brc_vfs_check_plain(v, v->wal, BRC_VFS_WAL);
    if (rc == SQLITE_OK)
        rc = v->base->xOpen(v->base, name, f->real, flags, out);
    if (rc == SQLITE_OK)
        v->log = f;
    else if ((rc & 0xff) == SQLITE_CANTOPEN || (rc & 0xff) == SQLITE_READONLY)
        rc = brc_vfs_refuse(v, BRC_EIO,
                            "%s is in WAL mode, and %s%s cannot be opened or made beside it: open "
                            "it as somebody who may, or copy both to a folder where you may write",
                            v->shown, v->shown, BRC_VFS_WAL);
    return rc;
}

static int judge_log(void *ctx)
{
    brc_vfs *v = ctx;
    int verdict = BRC_WAL_OWN;
    if (v->log == NULL)
        return SQLITE_OK;
    int rc = brc_wal_check(v->main->real, v->log->real, &verdict);
    return rc == SQLITE_OK && verdict != BRC_WAL_OWN ? brc_vfs_refuse_wal(v, verdict) : rc;
}

static int open_index(brc_vfs *v)
{
    int rc = brc_vfs_check_plain(v, v->shm, BRC_VFS_SHM);
    if (rc == SQLITE_OK)
        rc = brc_wal_index_open(&v->index, v->shm, v->main->lock.fd);
    if (rc == SQLITE_CANTOPEN)
        rc = brc_vfs_refuse(v, BRC_EIO,
                            "%s is in WAL mode, and %s%s cannot be opened or made beside it: open "
                            "it as somebody who may, or copy %s and %s%s to a folder where you may "
                            "write", v->shown, v->shown, BRC_VFS_SHM, v->shown, v->shown,
                            BRC_VFS_WAL);
    return rc;
}

int brc_vfs_shm_map(sqlite3_file *file, int region, int size, int extend, void volatile **out)
{
    brc_vfs *v = vfs_of_file(file);
    int rc = SQLITE_OK;
    *out = NULL;
    if (v->index.fd < 0)
        rc = open_index(v);
    if (rc == SQLITE_OK)
        rc = brc_wal_index_join(&v->index, judge_log, v);
    return rc == SQLITE_OK ? brc_wal_index_map(&v->index, region, size, extend, out) : rc;
}

int brc_vfs_shm_lock(sqlite3_file *file, int at, int n, int flags)
{
    return brc_wal_index_lock(&vfs_of_file(file)->index, at, n, flags);
}

void brc_vfs_shm_barrier(sqlite3_file *file)
{
    (void)file;
    atomic_thread_fence(memory_order_seq_cst);
}

int brc_vfs_shm_unmap(sqlite3_file *file, int remove)
{
    brc_vfs *v = vfs_of_file(file);
    if (remove && v->index.fd >= 0)
        unlink(v->shm);
    brc_wal_index_close(&v->index);
    return SQLITE_OK;
}

/* ---- closing --------------------------------------------------------------------------- */

/* SQLite deletes the log under EXCLUSIVE, lowers that to SHARED, and raises it again to set FILE's
 * header. Whoever came in between would make a log of its own, which the header no longer counts:
 * what it commits would be lost. */
void brc_vfs_leaving(brc_vfs *v, int is_leaving)
{
    v->is_leaving = is_leaving;
    if (!is_leaving && v->main != NULL && v->main->lock.fd >= 0)
        (void)!brc_file_lock_lower(&v->main->lock, SQLITE_LOCK_SHARED);
}

int brc_vfs_stays_alone(const brc_vfs *v, int level)
{
    return v->is_leaving && level == SQLITE_LOCK_SHARED &&
           v->main->lock.level == SQLITE_LOCK_EXCLUSIVE;
}

int brc_vfs_leave_begin(const brc_vfs *v)
{
    return brc_wal_index_leave(v->shm);
}

int brc_vfs_is_log_left(const brc_vfs *v)
{
    struct stat st;
    return lstat(v->wal, &st) == 0 && !brc_wal_index_is_live(v->shm);
}

int brc_vfs_hold_checkpoints(const brc_vfs *v)
{
    return brc_wal_index_hold(v->shm);
}

void brc_vfs_release(int fd)
{
    brc_wal_index_left(fd);
}
