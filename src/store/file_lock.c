/*
 * See file_lock.h. The locked bytes are those of SQLite's file format ("the lock-byte page"):
 *
 *   PENDING    read: for a moment on the way to SHARED; write: while waiting for EXCLUSIVE
 *   RESERVED   write: the connection that will write
 *   SHARED     510 bytes; read: all readers; write: EXCLUSIVE
 *
 * and one byte after them that SQLite does not know:
 *
 *   WAITING    read: all connections that wait for another's lock
 */
#include "file_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ==== file lock ================================ */

enum { PENDING_AT = 0x40000000, RESERVED_AT = PENDING_AT + 1, SHARED_AT = PENDING_AT + 2,
       SHARED_LEN = 510, WAITING_AT = SHARED_AT + SHARED_LEN };

#if defined(__linux__) && defined(F_OFD_SETLK)

static struct flock bytes_to_lock(int type, off_t at, off_t len)
{
    return (struct flock){.l_type = (short)type, .l_whence = SEEK_SET, .l_start = at, .l_len = len};
}

/* Returns SQLITE_BUSY in the same cases as SQLite: also if a server has no room for a lock just
 * now. */
int brc_bytes_lock(int fd, int type, off_t at, off_t len, int failure)
{
    struct flock range = bytes_to_lock(type, at, len);
    int rc;
    do
        rc = fcntl(fd, F_OFD_SETLK, &range);
    while (rc != 0 && errno == EINTR);
    if (rc == 0)
        return SQLITE_OK;
    return type != F_UNLCK && (errno == EAGAIN || errno == EACCES || errno == ENOLCK)
               ? SQLITE_BUSY : failure;
}

/* Stores whether another description has a lock on one of these bytes. */
static int bytes_is_locked(int fd, off_t at, off_t len, int *out)
{
    struct flock range = bytes_to_lock(F_WRLCK, at, len);
    if (fcntl(fd, F_OFD_GETLK, &range) != 0)
        return SQLITE_IOERR_CHECKRESERVEDLOCK;
    *out = range.l_type != F_UNLCK;
    return SQLITE_OK;
}

int brc_bytes_find_lock(int fd, off_t at, off_t len, off_t *found, off_t *found_len)
{
    struct flock range = bytes_to_lock(F_WRLCK, at, len);
    if (fcntl(fd, F_OFD_GETLK, &range) != 0 || range.l_type == F_UNLCK)
        return 0;
    const off_t end = range.l_len == 0 || range.l_start + range.l_len > at + len
                          ? at + len : range.l_start + range.l_len;
    *found = range.l_start > at ? range.l_start : at;
    *found_len = end - *found;
    return 1;
}

int brc_file_lock_offered(int *out)
{
    int ends[2], unused;
    *out = 0;
    if (pipe2(ends, O_CLOEXEC) != 0)
        return SQLITE_CANTOPEN;
    *out = bytes_is_locked(ends[0], 0, 1, &unused) == SQLITE_OK;
    close(ends[0]);
    close(ends[1]);
    return SQLITE_OK;
}

#else

int brc_bytes_lock(int fd, int type, off_t at, off_t len, int failure)
{
    (void)fd, (void)type, (void)at, (void)len;
    return failure;
}

/* Stores whether another description has a lock on one of these bytes. */
static int bytes_is_locked(int fd, off_t at, off_t len, int *out)
{
    (void)fd, (void)at, (void)len;
    *out = 0;
    return SQLITE_IOERR_CHECKRESERVEDLOCK;
}

int brc_bytes_find_lock(int fd, off_t at, off_t len, off_t *found, off_t *found_len)
{
    (void)fd, (void)at, (void)len, (void)found, (void)found_len;
    return 0;
}

int brc_file_lock_offered(int *out)
{
    *out = 0;
    return SQLITE_OK;
}

#endif

/* Avoids the first three descriptors: the output of a program that has closed its standard output
 * would go into the file. */
int brc_file_lock_open(brc_file_lock *lock, const char *path, int to_write)
{
    int fd = open(path, (to_write ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NOFOLLOW);
    *lock = (brc_file_lock){.fd = fd, .level = SQLITE_LOCK_NONE};
    if (fd >= 0 && fd <= STDERR_FILENO) {
        lock->fd = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
        close(fd);
    }
    return lock->fd >= 0 ? SQLITE_OK : SQLITE_CANTOPEN;
}

static int take_shared(brc_file_lock *lock)
{
    int rc = brc_bytes_lock(lock->fd, F_RDLCK, PENDING_AT, 1, SQLITE_IOERR_LOCK);
    if (rc != SQLITE_OK)
        return rc;
    rc = brc_bytes_lock(lock->fd, F_RDLCK, SHARED_AT, SHARED_LEN, SQLITE_IOERR_LOCK);
    int end = brc_bytes_lock(lock->fd, F_UNLCK, PENDING_AT, 1, SQLITE_IOERR_UNLOCK);
    if (rc == SQLITE_OK && end != SQLITE_OK)
        (void)!brc_bytes_lock(lock->fd, F_UNLCK, 0, 0, end);
    return rc != SQLITE_OK ? rc : end;
}

static int take_exclusive(brc_file_lock *lock)
{
    if (lock->level < SQLITE_LOCK_PENDING) {
        int rc = brc_bytes_lock(lock->fd, F_WRLCK, PENDING_AT, 1, SQLITE_IOERR_LOCK);
        if (rc != SQLITE_OK)
            return rc;
        lock->level = SQLITE_LOCK_PENDING;
    }
    return brc_bytes_lock(lock->fd, F_WRLCK, SHARED_AT, SHARED_LEN, SQLITE_IOERR_LOCK);
}

int brc_file_lock_raise(brc_file_lock *lock, int level)
{
    int rc;
    if (lock->level >= level)
        return SQLITE_OK;
    if (level == SQLITE_LOCK_SHARED)
        rc = take_shared(lock);
    else if (level == SQLITE_LOCK_RESERVED)
        rc = brc_bytes_lock(lock->fd, F_WRLCK, RESERVED_AT, 1, SQLITE_IOERR_LOCK);
    else
        rc = take_exclusive(lock);
    if (rc == SQLITE_OK)
        lock->level = level;
    return rc;
}

/* Takes SHARED first, so that no other connection gets EXCLUSIVE in between. A write lock that
 * cannot be made a read lock is kept: an error would deny a commit that is done, and a stronger
 * lock than it asked for does SQLite no harm. */
int brc_file_lock_lower(brc_file_lock *lock, int level)
{
    if (lock->level <= level)
        return SQLITE_OK;
    if (level == SQLITE_LOCK_NONE) {
        lock->level = level;
        return brc_bytes_lock(lock->fd, F_UNLCK, 0, 0, SQLITE_IOERR_UNLOCK);
    }
    if (brc_bytes_lock(lock->fd, F_RDLCK, SHARED_AT, SHARED_LEN, SQLITE_IOERR_RDLOCK) != SQLITE_OK)
        return SQLITE_OK; /* the stronger lock is kept */
    lock->level = level;
    return brc_bytes_lock(lock->fd, F_UNLCK, PENDING_AT, 2, SQLITE_IOERR_UNLOCK);
}

int brc_file_lock_reserved(const brc_file_lock *lock, int *out)
{
    *out = lock->level > SQLITE_LOCK_SHARED;
    return *out ? SQLITE_OK : bytes_is_locked(lock->fd, RESERVED_AT, 1, out);
}

void brc_file_lock_announce(const brc_file_lock *lock)
{
    if (lock->fd >= 0)
        (void)!brc_bytes_lock(lock->fd, F_RDLCK, WAITING_AT, 1, SQLITE_IOERR_LOCK);
}

void brc_file_lock_recall(const brc_file_lock *lock)
{
    if (lock->fd >= 0)
        (void)!brc_bytes_lock(lock->fd, F_UNLCK, WAITING_AT, 1, SQLITE_IOERR_UNLOCK);
}

int brc_file_lock_is_awaited(const brc_file_lock *lock)
{
    int is_locked;
    return lock->fd < 0 ||
           bytes_is_locked(lock->fd, WAITING_AT, 1, &is_locked) != SQLITE_OK || is_locked;
}

void brc_file_lock_close(brc_file_lock *lock)
{
    if (lock->fd < 0)
        return;
    (void)!brc_bytes_lock(lock->fd, F_UNLCK, 0, 0, SQLITE_IOERR_UNLOCK);
    brc_file_lock_leave(lock);
}

void brc_file_lock_leave(brc_file_lock *lock)
{
    if (lock->fd >= 0)
        close(lock->fd);
    *lock = (brc_file_lock){.fd = -1, .level = SQLITE_LOCK_NONE};
}

/* ==== wal index ================================ */

/*
 * See file_lock.h. The bytes of FILE-shm that are locked, as in SQLite's os_unix.c:
 *
 *   120 to 127  SQLite's slots: 0 writes, 1 checkpoints, 2 recovers, 3 to 7 read
 *   128         "dead man's switch": read: the log is open; write: the index is begun anew
 *   129         only breccia's: a connection that is about to close
 */

enum { SLOTS_AT = 120, WRITE_SLOT = 0, CHECKPOINT_SLOT = 1, ALIVE_AT = 128, LEAVING_AT = 129 };

/* ---- the file ---------------------------------------------------------------------- */

/* Returns 1 if the descriptor is a regular file with one name: through a link another file would be
 * written. */
static int is_plain(int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_nlink == 1;
}

/* Opens a file, but not as one of the first three descriptors: see brc_file_lock_open(). */
static int open_beside(const char *path, int flags, mode_t mode)
{
    int fd = open(path, flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, mode);
    if (fd >= 0 && fd <= STDERR_FILENO) {
        int high = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
        close(fd);
        fd = high;
    }
    if (fd >= 0 && !is_plain(fd)) {
        close(fd);
        fd = -1;
        errno = ELOOP;
    }
    return fd;
}

int brc_wal_index_open(brc_wal_index *index, const char *path, int like)
{
    struct stat st;
    *index = (brc_wal_index)BRC_WAL_INDEX_INIT;
    if (fstat(like, &st) != 0)
        return SQLITE_IOERR_FSTAT;
    index->fd = open_beside(path, O_RDWR | O_CREAT, st.st_mode & 0777);
    if (index->fd >= 0) {
        /* Made by root: gives the index FILE's owner, so that users who may write to FILE can go
         * on. A failure shows when they try. */
        if (geteuid() == 0)
            (void)!fchown(index->fd, st.st_uid, st.st_gid);
        return SQLITE_OK;
    }
    if (errno == ELOOP)
        return SQLITE_CANTOPEN;
    index->fd = open_beside(path, O_RDONLY, 0);
    index->is_readonly = 1;
    return index->fd >= 0 ? SQLITE_OK : SQLITE_CANTOPEN;
}

void brc_wal_index_close(brc_wal_index *index)
{
    if (index->fd >= 0) /* a child of fork() may have the description too */
        (void)!brc_bytes_lock(index->fd, F_UNLCK, 0, 0, SQLITE_IOERR_UNLOCK);
    brc_wal_index_forget(index);
}

void brc_wal_index_forget(brc_wal_index *index)
{
    for (int i = 0; i < index->nregions; i++)
        munmap(index->regions[i], (size_t)index->region_size);
    free(index->regions);
    if (index->fd >= 0)
        close(index->fd);
    *index = (brc_wal_index)BRC_WAL_INDEX_INIT;
}

/* ---- coming and going ---------------------------------------------------------------- */

/* Begins the index anew. The switch is held to write, so no other connection has the log open. */
static int begin_anew(brc_wal_index *index, brc_wal_judge_fn judge, void *ctx)
{
    int rc = judge(ctx);
    if (rc == SQLITE_OK && ftruncate(index->fd, 3) != 0)
        rc = SQLITE_IOERR_SHMOPEN;
    return rc;
}

int brc_wal_index_join(brc_wal_index *index, brc_wal_judge_fn judge, void *ctx)
{
    int is_live, rc;
    if (index->is_joined)
        return SQLITE_OK;
    if (index->is_readonly) {
        /* then SQLite reads the log without an index */
        rc = bytes_is_locked(index->fd, ALIVE_AT, 1, &is_live);
        if (rc == SQLITE_OK && !is_live)
            rc = judge(ctx);
        if (rc != SQLITE_OK || !is_live)
            return rc != SQLITE_OK ? rc : SQLITE_READONLY_CANTINIT;
        rc = brc_bytes_lock(index->fd, F_RDLCK, ALIVE_AT, 1, SQLITE_IOERR_LOCK);
        index->is_joined = rc == SQLITE_OK;
        return rc;
    }
    rc = brc_bytes_lock(index->fd, F_WRLCK, ALIVE_AT, 1, SQLITE_IOERR_LOCK);
    if (rc == SQLITE_OK) {
        rc = begin_anew(index, judge, ctx);
        if (rc != SQLITE_OK) {
            int end = brc_bytes_lock(index->fd, F_UNLCK, ALIVE_AT, 1, SQLITE_IOERR_UNLOCK);
            return end != SQLITE_OK ? end : rc;
        }
    }
    if (rc == SQLITE_OK || rc == SQLITE_BUSY)
        rc = brc_bytes_lock(index->fd, F_RDLCK, ALIVE_AT, 1, SQLITE_IOERR_LOCK);
    index->is_joined = rc == SQLITE_OK;
    return rc;
}

int brc_wal_index_is_live(const char *path)
{
    int is_live = 0, fd = open_beside(path, O_RDONLY, 0);
    if (fd < 0)
        return 0;
    if (bytes_is_locked(fd, ALIVE_AT, 1, &is_live) != SQLITE_OK)
        is_live = 1;
    close(fd);
    return is_live;
}

/* Waits at most half a second for a lock: work under these locks takes less. */
static int wait_for_byte(int fd, int type, off_t at)
{
    const struct timespec pause = {0, 500000};
    int rc = SQLITE_BUSY;
    for (int i = 0; i < 1000 && rc == SQLITE_BUSY; i++) {
        rc = brc_bytes_lock(fd, type, at, 1, SQLITE_IOERR_LOCK);
        if (rc == SQLITE_BUSY)
            nanosleep(&pause, NULL);
    }
    return rc;
}

int brc_wal_index_leave(const char *path)
{
    int fd = open_beside(path, O_RDWR, 0);
    if (fd >= 0)
        (void)!wait_for_byte(fd, F_WRLCK, LEAVING_AT);
    return fd;
}

int brc_wal_index_hold(const char *path)
{
    int fd = open_beside(path, O_RDONLY, 0);
    if (fd >= 0)
        (void)!wait_for_byte(fd, F_RDLCK, SLOTS_AT + CHECKPOINT_SLOT);
    return fd;
}

void brc_wal_index_left(int fd)
{
    if (fd < 0)
        return;
    (void)!brc_bytes_lock(fd, F_UNLCK, 0, 0, SQLITE_IOERR_UNLOCK);
    close(fd);
}

/* ---- its memory ------------------------------------------------------------------------ */

/* Grows the file and writes to every page: a write through the mapping to a hole for which the disk
 * has no room would end the process. */
static int grow_file(int fd, off_t from, off_t to)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return SQLITE_IOERR_SHMSIZE;
    for (off_t at = from > st.st_size ? from : st.st_size; at < to; at += 4096 - at % 4096) {
        off_t last = at + 4095 - at % 4096;
        if (pwrite(fd, "", 1, last < to ? last : to - 1) != 1)
            return SQLITE_IOERR_SHMSIZE;
    }
    return SQLITE_OK;
}

static int map_region(brc_wal_index *index, int region, int size)
{
    void *more = realloc(index->regions, ((size_t)region + 1) * sizeof(*index->regions));
    if (more == NULL)
        return SQLITE_NOMEM;
    index->regions = more;
    index->region_size = size;
    while (index->nregions <= region) {
        void *at = mmap(NULL, (size_t)size, index->is_readonly ? PROT_READ : PROT_READ | PROT_WRITE,
                        MAP_SHARED, index->fd, (off_t)index->nregions * size);
        if (at == MAP_FAILED)
            return SQLITE_IOERR_SHMMAP;
        index->regions[index->nregions++] = at;
    }
    return SQLITE_OK;
}

int brc_wal_index_map(brc_wal_index *index, int region, int size, int extend, void volatile **out)
{
    struct stat st;
    int rc = SQLITE_OK;
    off_t end = ((off_t)region + 1) * size;
    *out = NULL;
    if (region >= index->nregions) {
        if (fstat(index->fd, &st) != 0)
            return SQLITE_IOERR_SHMSIZE;
        if (st.st_size < end && !extend)
            return index->is_readonly ? SQLITE_READONLY : SQLITE_OK;
        if (st.st_size < end)
            rc = index->is_readonly ? SQLITE_READONLY : grow_file(index->fd, 0, end);
        if (rc == SQLITE_OK)
            rc = map_region(index, region, size);
    }
    if (rc != SQLITE_OK)
        return rc;
    *out = index->regions[region];
    return index->is_readonly ? SQLITE_READONLY : SQLITE_OK;
}

/* ---- locks ------------------------------------------------------------------------------- */

static int lock_slots(brc_wal_index *index, int type, int at, int n)
{
    return brc_bytes_lock(index->fd, type, SLOTS_AT + at, n,
                          type == F_UNLCK ? SQLITE_IOERR_UNLOCK : SQLITE_IOERR_SHMLOCK);
}

static int has(int at, int n, int slot)
{
    return at <= slot && slot < at + n;
}

/* Takes SQLite's slots. The writer's lock is held while SQLite has it or checkpoints. */
static int take_slots(brc_wal_index *index, int at, int n)
{
    int writer_held = index->writes || index->checkpoints;
    int checkpoints = has(at, n, CHECKPOINT_SLOT), writes = has(at, n, WRITE_SLOT), rc = SQLITE_OK;
    if ((checkpoints || writes) && !writer_held)
        rc = lock_slots(index, F_WRLCK, WRITE_SLOT, 1);
    if (rc != SQLITE_OK)
        return rc;
    int from = writes ? WRITE_SLOT + 1 : at;
    if (from < at + n)
        rc = lock_slots(index, F_WRLCK, from, at + n - from);
    if (rc == SQLITE_OK) {
        index->writes |= writes;
        index->checkpoints |= checkpoints;
    } else if ((checkpoints || writes) && !writer_held) {
        (void)!lock_slots(index, F_UNLCK, WRITE_SLOT, 1);
    }
    return rc;
}

static int give_slots(brc_wal_index *index, int at, int n)
{
    int held = index->writes || index->checkpoints, rc = SQLITE_OK;
    index->writes &= !has(at, n, WRITE_SLOT);
    index->checkpoints &= !has(at, n, CHECKPOINT_SLOT);
    int from = has(at, n, WRITE_SLOT) ? WRITE_SLOT + 1 : at;
    if (from < at + n)
        rc = lock_slots(index, F_UNLCK, from, at + n - from);
    if (held && !index->writes && !index->checkpoints) {
        int end = lock_slots(index, F_UNLCK, WRITE_SLOT, 1);
        rc = rc != SQLITE_OK ? rc : end;
    }
    return rc;
}

int brc_wal_index_lock(brc_wal_index *index, int at, int n, int flags)
{
    if (flags & SQLITE_SHM_SHARED)
        return lock_slots(index, flags & SQLITE_SHM_UNLOCK ? F_UNLCK : F_RDLCK, at, n);
    return flags & SQLITE_SHM_UNLOCK ? give_slots(index, at, n) : take_slots(index, at, n);
}
