/*
 * SQLite has mutexes of its own: for its memory, its list of VFSs, its random numbers. A child
 * that was forked while another thread held one would wait for it for ever, in its first call.
 * So fork() takes all of them first, in the order in which SQLite takes them, and parent and child
 * release them again. No file is touched, and no thread holds one of them for long.
 *
 * This is the only state that the library keeps for the whole process, because handlers of fork()
 * belong to the process.
 */
#include "vfs.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../base/pool.h"
#include "db.h"
#include "file_lock.h"
#include "journal_check.h"
#include "wal_check.h"
#include "joined.h"

typedef struct brc_vfs_file brc_vfs_file;

struct brc_vfs {
    sqlite3_vfs vfs; /* registered only while a connection is opened */
    char name[40];
    sqlite3_vfs *base;
    char *file, *journal, *wal, *shm; /* their paths */
    char *shown;                      /* the file's name in messages */
    unsigned how;
    brc_vfs_file *main, *log; /* of the open connection */
    uint64_t unread;          /* the number of failed reads */
    uint64_t journalled;      /* bytes that were written to its journals */
    brc_wal_index index;      /* of the log, while it is open */
    brc_vfs_wish_fn wish;
    void *wish_ctx;
    void (*watch)(void *ctx); /* is called for each read of FILE */
    void *watch_ctx;
    int is_wished;      /* the file was asked, and asks for WAL mode */
    int is_assumed;     /* the file could not be asked without its log */
    int is_guarded;     /* RESERVED is only given if FILE's counter is this: */
    uint32_t counter;
    int is_leaving;     /* WAL mode ends: EXCLUSIVE stays until the header is changed */
    int refused; /* a brc_code; the message is in `refusal` */
    brc_error refusal;
};

struct brc_vfs_file {
    sqlite3_file file;
    brc_vfs *v;
    int is_main, is_journal;
    brc_file_lock lock; /* if it has no descriptor, the VFS below holds the lock */
    brc_joined run;  /* of FILE and its journal */
    sqlite3_file *real;
};

/* The bytes that are joined to one write. SQLite's VFS of Unix takes at most 128 KiB - 1 of them:
 * these are seven pages. */
enum { RUN_OF_FILE = 7 * 16 << 10, RUN_OF_JOURNAL = 64 << 10 };

#define BRC_VFS_JOURNAL "-journal"
#define BRC_VFS_WAL "-wal"
#define BRC_VFS_SHM "-shm"

/* ==== fork guard ================================ */

/* SQLite's random numbers use the list of VFSs; memory comes last, because SQLite allocates while
 * it holds other mutexes. The thread sanitizer reports any other order. */
static const int fork_order[] = {
    SQLITE_MUTEX_STATIC_OPEN, SQLITE_MUTEX_STATIC_PRNG, SQLITE_MUTEX_STATIC_MASTER,
    SQLITE_MUTEX_STATIC_VFS1, SQLITE_MUTEX_STATIC_VFS2, SQLITE_MUTEX_STATIC_VFS3,
    SQLITE_MUTEX_STATIC_LRU,  SQLITE_MUTEX_STATIC_PMEM, SQLITE_MUTEX_STATIC_MEM,
};

#define FORK_MUTEXES (sizeof(fork_order) / sizeof(fork_order[0]))

static void before_fork(void)
{
    for (size_t i = 0; i < FORK_MUTEXES; i++)
        sqlite3_mutex_enter(sqlite3_mutex_alloc(fork_order[i]));
}

static void after_fork(void)
{
    for (size_t i = FORK_MUTEXES; i-- > 0;)
        sqlite3_mutex_leave(sqlite3_mutex_alloc(fork_order[i]));
}

void brc_fork_guard(void)
{
    static atomic_flag is_there = ATOMIC_FLAG_INIT;
    if (sqlite3_initialize() == SQLITE_OK && !atomic_flag_test_and_set(&is_there))
        brc_at_fork(before_fork, after_fork);
}

/* ==== vfs refuse ================================ */

/* Refusals of the VFS: see vfs.h. All these functions return BRC_VFS_REFUSED. */
static int vfs_refuse(brc_vfs *v, int code, const char *form, ...)
{
    char why[sizeof(v->refusal.message)];
    va_list args;
    va_start(args, form);
    vsnprintf(why, sizeof(why), form, args);
    va_end(args);
    v->refused = brc_fail(&v->refusal, code, "%s", why);
    return BRC_VFS_REFUSED;
}

static int refuse_left(brc_vfs *v, const char *ending, const char *why)
{
    int is_journal = ending[1] == 'j';
    return vfs_refuse(v, BRC_ECORRUPT,
                      "%s%s %s; it was neither %s nor deleted: read the file as it is with "
                      "--no-recover, or move the %s away",
                      v->shown, ending, why, is_journal ? "played back" : "read",
                      is_journal ? "journal" : "file");
}

/* Refuses a rollback journal or log that does not belong to FILE. */
static int vfs_refuse_journal(brc_vfs *v, int verdict)
{
    switch (verdict) {
    case BRC_JOURNAL_NAMES_OTHER:
        return refuse_left(v, BRC_VFS_JOURNAL,
                                   "names another file, which playing it back would delete, so it "
                                   "does not belong to this file");
    case BRC_JOURNAL_NONE:
        return refuse_left(v, BRC_VFS_JOURNAL, "is not a rollback journal");
    case BRC_JOURNAL_DAMAGED:
        return refuse_left(v, BRC_VFS_JOURNAL,
                                   "is truncated or damaged, and cannot undo an interrupted write");
    case BRC_JOURNAL_OTHER_STATE:
        return refuse_left(v, BRC_VFS_JOURNAL,
                                   "belongs to another state of the file (was a copy put in the "
                                   "file's place?)");
    case BRC_JOURNAL_UNPROVEN:
        return vfs_refuse(v, BRC_ECORRUPT,
                          "%s%s does not hold the file's first page, so nothing proves that it "
                          "belongs to the file as it is; it was neither played back nor "
                          "deleted: if a program that is not breccia was killed while it "
                          "wrote, open the file with sqlite3, which plays the journal back; "
                          "otherwise move the journal away", v->shown, BRC_VFS_JOURNAL);
    default:
        return vfs_refuse(v, BRC_EFORMAT,
                          "%s is not a repository yet: the 'breccia init' that began it was "
                          "interrupted (%s%s says so); look at it with --no-recover, or remove "
                          "both and begin again", v->shown, v->shown, BRC_VFS_JOURNAL);
    }
}

static int vfs_refuse_wal(brc_vfs *v, int verdict)
{
    switch (verdict) {
    case BRC_WAL_NONE:
        return refuse_left(v, BRC_VFS_WAL, "is not a log of SQLite's WAL mode");
    case BRC_WAL_DAMAGED:
        return refuse_left(v, BRC_VFS_WAL,
                                   "is damaged, and commits after the damage would be lost");
    default:
        return refuse_left(v, BRC_VFS_WAL,
                                   "belongs to another state of the file (was a copy put in the "
                                   "file's place?)");
    }
}

/* Refuses a journal, log or index that is not a regular file with just this name: through a link
 * SQLite would write, truncate or delete another file. SQLITE_OK also if nothing exists under the
 * name. */
static int vfs_check_plain(brc_vfs *v, const char *path, const char *ending)
{
    struct stat st;
    if (lstat(path, &st) != 0)
        return SQLITE_OK; /* the file is gone, or opening it fails with a reason */
    if (!S_ISREG(st.st_mode))
        return refuse_left(v, ending,
                                   S_ISLNK(st.st_mode)
                                       ? "is a symbolic link, so it is not this file's own"
                                       : "is not a regular file");
    if (st.st_nlink > 1)
        return refuse_left(v, ending,
                                   "has another name as well (a hard link), so it may be "
                                   "something else");
    return SQLITE_OK;
}

int brc_vfs_refusal(brc_vfs *v, brc_error *err)
{
    int code = v->refused;
    if (code != BRC_OK)
        brc_fail(err, code, "%s", v->refusal.message);
    v->refused = BRC_OK;
    return code;
}

/* ==== vfs wal ================================ */

/*
 * The VFS in WAL mode: see vfs.h. FILE's header says whether FILE is in WAL mode. Whether that was
 * asked for is a setting in FILE, which only transactions with the rollback journal change: so FILE
 * itself has the setting, whatever its log holds. Without the setting, no log or index is created,
 * read or changed.
 */

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

/* Returns 1 if WAL mode is possible: only with our own locks, because those of the VFS below on
 * FILE-shm belong to the process. */
static int wal_is_offered(const brc_vfs *v)
{
    return v->main != NULL && v->main->lock.fd >= 0;
}

static int has_bytes(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0 && (!S_ISREG(st.st_mode) || st.st_size > 0);
}

/* Asks FILE for its setting. A process that was killed while it copied the log into FILE leaves a
 * mixture of old and new pages: then FILE may be readable only with its log, and the setting is
 * read later. */
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
    "%s was put into SQLite's WAL mode by another program: close the programs that have it "  \
    "open, and run: "                                                                             \
    "sqlite3 %s 'PRAGMA journal_mode=DELETE'; to use WAL mode, then run: breccia config %s "      \
    "journal wal"

static int check_wish(brc_vfs *v)
{
    if (v->how == 0 && !wal_is_offered(v))
        return vfs_refuse(v, BRC_EUNSUPPORTED,
                          "%s is in SQLite's WAL mode, for which this system or VFS lacks the "
                          "locks: open it elsewhere, and run: breccia config %s journal "
                          "rollback", v->shown, v->shown);
    if (v->is_leaving) /* it was in WAL mode, and nobody can ask it now, not even we */
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
                        : vfs_refuse(v, BRC_EFORMAT, NOT_WISHED, v->shown, v->shown, v->shown);
}

int brc_vfs_wish_seen(brc_vfs *v, int is_wished, brc_error *err)
{
    if (!v->is_assumed || is_wished) {
        v->is_assumed = 0;
        return BRC_OK;
    }
    return brc_fail(err, BRC_EFORMAT, NOT_WISHED, v->shown, v->shown, v->shown);
}

/* Checks FILE when it is read without its log. */
static int check_without_log(brc_vfs *v)
{
    if ((v->how & BRC_VFS_UNLOCKED) && has_bytes(v->wal))
        return vfs_refuse(v, BRC_EREADONLY,
                          "%s has a log beside it (%s%s), and cannot be read without write "
                          "permission for its folder: copy both to a folder where you may write",
                          v->shown, v->shown, BRC_VFS_WAL);
    if ((v->how & BRC_VFS_NO_JOURNAL) && brc_wal_index_is_live(v->shm))
        return vfs_refuse(v, BRC_EBUSY,
                          "%s is open elsewhere in WAL mode: --no-recover needs a file that no "
                          "process writes to", v->shown);
    return SQLITE_OK;
}

/* Checks that FILE can be used with the header that was read. Changes the header in memory
 * if the log is not used. */
static int vfs_check_header(brc_vfs *v, uint8_t *header, int len)
{
    if (!header_says_wal(header, len))
        return SQLITE_OK;
    if (header_number(header + APPLICATION_AT) != BRC_APPLICATION_ID)
        return vfs_refuse(v, BRC_EFORMAT, BRC_NOT_A_REPOSITORY, v->shown);
    int rc = v->how & BRC_VFS_PEEK ? SQLITE_OK : check_wish(v);
    if (rc != SQLITE_OK || v->how == 0)
        return rc;
    header[WRITES_AT] = header[READS_AT] = 1; /* the file is read without its log */
    /* Copying the log into FILE may have ended before FILE grew: the pages that exist count,
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

/* Stores whether FILE's header names WAL mode now, so that its log counts, and the log may be
 * read. */
static int vfs_log_counts(brc_vfs *v, int *out)
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
        rc = vfs_check_header(v, header, HEADER_LEN);
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

/* Called after RESERVED was taken: refuses the write if FILE has changed since brc_vfs_guard(). */
static int vfs_check_guard(brc_vfs *v)
{
    uint8_t header[HEADER_LEN];
    if (!v->is_guarded)
        return SQLITE_OK;
    int rc = read_own_header(v, header);
    if (rc == SQLITE_OK && header_number(header + COUNTER_AT) != v->counter)
        rc = vfs_refuse(v, BRC_EBUSY, "%s has changed meanwhile: try again", v->shown);
    return rc;
}

/* ---- the log -------------------------------------------------------------------------- */

static int vfs_open_log(brc_vfs *v, const char *name, brc_vfs_file *f, int flags, int *out)
{
    int counts = 0;
    int rc = vfs_log_counts(v, &counts);
    if (rc == SQLITE_OK && !counts)
        return SQLITE_CANTOPEN;
    if (rc == SQLITE_OK)
        rc = vfs_check_plain(v, v->wal, BRC_VFS_WAL);
    if (rc == SQLITE_OK)
        rc = v->base->xOpen(v->base, name, f->real, flags, out);
    if (rc == SQLITE_OK)
        v->log = f;
    else if ((rc & 0xff) == SQLITE_CANTOPEN || (rc & 0xff) == SQLITE_READONLY)
        rc = vfs_refuse(v, BRC_EIO,
                        "%s is in WAL mode, and %s%s cannot be opened or created: open the file as "
                        "a user who may write to its folder, or copy both to a folder where you "
                        "may write",
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
    return rc == SQLITE_OK && verdict != BRC_WAL_OWN ? vfs_refuse_wal(v, verdict) : rc;
}

static int open_index(brc_vfs *v)
{
    int rc = vfs_check_plain(v, v->shm, BRC_VFS_SHM);
    if (rc == SQLITE_OK)
        rc = brc_wal_index_open(&v->index, v->shm, v->main->lock.fd);
    if (rc == SQLITE_CANTOPEN)
        rc = vfs_refuse(v, BRC_EIO,
                        "%s is in WAL mode, and %s%s cannot be opened or created: open the file as "
                        "a user who may write to its folder, or copy %s and %s%s to a folder where "
                        "you may write", v->shown, v->shown, BRC_VFS_SHM, v->shown, v->shown,
                        BRC_VFS_WAL);
    return rc;
}

/* The methods for shared memory. */
static int vfs_shm_map(sqlite3_file *file, int region, int size, int extend,
                       void volatile **out)
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

static int vfs_shm_lock(sqlite3_file *file, int at, int n, int flags)
{
    return brc_wal_index_lock(&vfs_of_file(file)->index, at, n, flags);
}

static void vfs_shm_barrier(sqlite3_file *file)
{
    (void)file;
    atomic_thread_fence(memory_order_seq_cst);
}

static int vfs_shm_unmap(sqlite3_file *file, int remove)
{
    brc_vfs *v = vfs_of_file(file);
    if (remove && v->index.fd >= 0)
        unlink(v->shm);
    brc_wal_index_close(&v->index);
    return SQLITE_OK;
}

/* ---- closing --------------------------------------------------------------------------- */

/* SQLite deletes the log under EXCLUSIVE, lowers that to SHARED, and raises it again to set FILE's
 * header. A connection that came in between would create a log of its own, which the header no
 * longer names: its commits would be lost. */
void brc_vfs_leaving(brc_vfs *v, int is_leaving)
{
    v->is_leaving = is_leaving;
    if (!is_leaving && v->main != NULL && v->main->lock.fd >= 0)
        (void)!brc_file_lock_lower(&v->main->lock, SQLITE_LOCK_SHARED);
}

/* Returns 1 if a lock of FILE stays as it is when SQLite lowers it. */
static int vfs_stays_alone(const brc_vfs *v, int level)
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

/* ==== vfs ================================ */

/*
 * See vfs.h. What SQLite's calls mean, according to its pager:
 *
 * - It looks for a journal whenever it takes the first lock (xAccess). A journal that exists
 *   while nobody holds RESERVED is hot: SQLite takes EXCLUSIVE and opens the journal for
 *   writing, without SQLITE_OPEN_CREATE. That is the only such open, and nobody else writes
 *   to either file then, so the VFS judges the journal there. It never judges the journal of a
 *   living writer.
 * - A writer opens its own journal with SQLITE_OPEN_CREATE. A journal that exists already has an
 *   incomplete header: it is not used, and is overwritten.
 * - Any other name that SQLite opens, asks for or deletes comes from the bytes of a journal.
 *
 * If the VFS below would take POSIX locks, and the system has locks of open file descriptions,
 * it is never asked to lock: its locks and ours on the same bytes would exclude each other.
 */

static brc_vfs_file *file_of(sqlite3_file *file)
{
    return (brc_vfs_file *)(void *)file;
}

static brc_vfs *guard_of(sqlite3_vfs *vfs)
{
    return vfs->pAppData;
}

/* ---- files ------------------------------------------------------------------------- */

/* Returns 1 if writes of the file are joined. In WAL mode a checkpoint that cannot finish relies on
 * its writes to FILE without any call that could fail for them. */
static int joins_writes(const brc_vfs_file *f)
{
    return f->is_journal || (f->is_main && f->v->log == NULL);
}

static int vfs_flush(brc_vfs_file *f)
{
    return brc_joined_flush(&f->run, f->real);
}

static int vfs_close(sqlite3_file *file)
{
    brc_vfs_file *f = file_of(file);
    if (f->is_main)
        f->v->main = NULL;
    if (f->v->log == f) {
        f->v->log = NULL;
        f->v->is_wished = 0; /* when the file has left WAL mode, it is asked again */
        f->v->is_assumed = 0;
    }
    brc_joined_dispose(&f->run);
    brc_file_lock_close(&f->lock);
    return f->real->pMethods != NULL ? f->real->pMethods->xClose(f->real) : SQLITE_OK;
}

static int vfs_read(sqlite3_file *file, void *into, int len, sqlite3_int64 at)
{
    brc_vfs_file *f = file_of(file);
    int rc = brc_joined_read(&f->run, f->real, into, len, at);
    if (rc != SQLITE_OK && rc != SQLITE_IOERR_SHORT_READ)
        f->v->unread++;
    if (f->is_main && f->v->watch != NULL)
        f->v->watch(f->v->watch_ctx);
    if (at == 0 && f->is_main && rc == SQLITE_OK)
        rc = vfs_check_header(f->v, into, len);
    return rc;
}

static int vfs_write(sqlite3_file *file, const void *data, int len, sqlite3_int64 at)
{
    brc_vfs_file *f = file_of(file);
    if (f->is_journal)
        f->v->journalled += (uint64_t)len;
    if (joins_writes(f))
        return brc_joined_write(&f->run, f->real, data, len, at);
    return f->real->pMethods->xWrite(f->real, data, len, at);
}

static int vfs_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    brc_vfs_file *f = file_of(file);
    brc_joined_cut(&f->run, size);
    int rc = vfs_flush(f);
    return rc == SQLITE_OK ? f->real->pMethods->xTruncate(f->real, size) : rc;
}

static int vfs_sync(sqlite3_file *file, int flags)
{
    brc_vfs_file *f = file_of(file);
    int rc = vfs_flush(f);
    return rc == SQLITE_OK ? f->real->pMethods->xSync(f->real, flags) : rc;
}

static int vfs_size(sqlite3_file *file, sqlite3_int64 *size)
{
    brc_vfs_file *f = file_of(file);
    return brc_joined_size(&f->run, f->real, size);
}

static int vfs_lock(sqlite3_file *file, int level)
{
    brc_vfs_file *f = file_of(file);
    if (f->lock.fd >= 0) {
        int was = f->lock.level, raised = brc_file_lock_raise(&f->lock, level);
        if (raised == SQLITE_OK && level == SQLITE_LOCK_RESERVED)
            raised = vfs_check_guard(f->v);
        if (raised == BRC_VFS_REFUSED)
            (void)!brc_file_lock_lower(&f->lock, was);
        return raised;
    }
    int rc = f->real->pMethods->xLock(f->real, level);
    if (rc == SQLITE_OK && level > f->lock.level)
        f->lock.level = level;
    return rc;
}

/* Nothing is left to flush after a commit, which has synced the file. */
static int vfs_unlock(sqlite3_file *file, int level)
{
    brc_vfs_file *f = file_of(file);
    int unlocked = SQLITE_OK, rc = vfs_flush(f);
    if (f->lock.fd < 0) {
        if (level < f->lock.level)
            f->lock.level = level;
        unlocked = f->real->pMethods->xUnlock(f->real, level);
    } else if (!vfs_stays_alone(f->v, level)) {
        unlocked = brc_file_lock_lower(&f->lock, level);
    }
    return unlocked == SQLITE_OK ? rc : unlocked;
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
    int rc = op == SQLITE_FCNTL_SYNC ? vfs_flush(f) : SQLITE_OK;
    return rc == SQLITE_OK ? f->real->pMethods->xFileControl(f->real, op, arg) : rc;
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

/* Version 1 has no shared memory, and so no WAL; neither version has mapped pages. */
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
    VFS_METHODS .xShmMap = vfs_shm_map,
    .xShmLock = vfs_shm_lock,
    .xShmBarrier = vfs_shm_barrier,
    .xShmUnmap = vfs_shm_unmap,
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
        rc = vfs_refuse_journal(v, verdict);
    return rc;
}

static int open_journal(brc_vfs *v, const char *name, brc_vfs_file *f, int flags, int *out)
{
    int to_write = (flags & SQLITE_OPEN_READWRITE) != 0;
    int is_hot = to_write && !(flags & SQLITE_OPEN_CREATE);
    if (v->main == NULL || (is_hot && v->main->lock.level < SQLITE_LOCK_EXCLUSIVE))
        return vfs_refuse(v, BRC_EINTERNAL, "a journal was opened without a lock");
    int rc = vfs_check_plain(v, v->journal, BRC_VFS_JOURNAL);
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

/* Stores whether the VFS below takes POSIX locks: its name is "unix", or ends with it, because a
 * VFS above "unix" puts its own name in front, as SQLite's do. A VFS with another name locks in its
 * own way. */
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

/* Returns 1 if the file that the VFS below has opened is the file that is locked here, and not
 * another that had the name before or took it in between. */
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
    return vfs_refuse(v, BRC_EBUSY,
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
    return vfs_refuse(v, BRC_ECORRUPT,
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
        rc = vfs_open_log(v, name, f, flags, out);
    } else {
        return refuse_name(v, name);
    }
    if (rc != SQLITE_OK)
        return rc;
    if (f->is_main)
        v->main = f;
    brc_joined_init(&f->run, f->is_main ? RUN_OF_FILE : RUN_OF_JOURNAL, f->is_journal);
    if (f->is_main)
        brc_joined_early(&f->run, f->lock.fd);
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
        return vfs_check_plain(v, name, is_log ? BRC_VFS_WAL : BRC_VFS_JOURNAL);
    return v->base->xDelete(v->base, name, sync_folder);
}

/* Tells SQLite whether a file exists. Outside of WAL mode a log does not belong to FILE. */
static int vfs_access(sqlite3_vfs *vfs, const char *name, int flags, int *out)
{
    brc_vfs *v = guard_of(vfs);
    struct stat st;
    *out = 0;
    if (strcmp(name, v->wal) == 0) {
        int rc = vfs_log_counts(v, out);
        *out = *out && lstat(name, &st) == 0;
        return rc;
    }
    if (strcmp(name, v->journal) == 0 && v->how != 0)
        return SQLITE_OK;
    if (strcmp(name, v->journal) != 0 && strcmp(name, v->file) != 0)
        return refuse_name(v, name);
    return v->base->xAccess(v->base, name, flags, out);
}

/* Returns the name unchanged: brc_vfs_new() has resolved it, and it names the same file from then
 * on. */
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

/* Registers the VFS only while SQLite opens the connection, which then keeps a pointer to the
 * VFS. */
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

int brc_vfs_descriptor(const brc_vfs *v)
{
    return v->main != NULL && v->log == NULL && v->how == 0 && strcmp(v->base->zName, "unix") == 0
               ? v->main->lock.fd
               : -1;
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
        return 0; /* pages in a log may not be in the file yet */
    if (memcmp(header + 24, header + 92, 4) != 0)
        return 0; /* the last writer was an old SQLite, which does not count pages */
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
