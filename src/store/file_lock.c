/*
 * See file_lock.h. The bytes, of SQLite's file format ("the lock-byte page"), and who locks them:
 *
 *   PENDING    read: for a moment, by who comes to SHARED; write: by who waits for EXCLUSIVE
 *   RESERVED   write: the one who will write
 *   SHARED     510 bytes; read: everybody who reads; write: EXCLUSIVE
 *
 * and one behind them that SQLite does not know:
 *
 *   WAITING    read: everybody who waits for another's lock
 */
#include "file_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

enum { PENDING_AT = 0x40000000, RESERVED_AT = PENDING_AT + 1, SHARED_AT = PENDING_AT + 2,
       SHARED_LEN = 510, WAITING_AT = SHARED_AT + SHARED_LEN };

#if defined(__linux__) && defined(F_OFD_SETLK)

static struct flock bytes_to_lock(int type, off_t at, off_t len)
{
    return (struct flock){.l_type = (short)type, .l_whence = SEEK_SET, .l_start = at, .l_len = len};
}

/* SQLITE_BUSY as SQLite has it: also where a server has no room for a lock just now. */
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

int brc_bytes_is_locked(int fd, off_t at, off_t len, int *out)
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
    *out = brc_bytes_is_locked(ends[0], 0, 1, &unused) == SQLITE_OK;
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

int brc_bytes_is_locked(int fd, off_t at, off_t len, int *out)
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

/* Not one of the first three: what a program prints where it has closed its standard output
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

/* Downwards SHARED first: in between nobody else may come to EXCLUSIVE. A write lock that cannot be
 * made a read lock is kept: an error would deny a commit that is done, and more than it asked for
 * does SQLite no harm. */
int brc_file_lock_lower(brc_file_lock *lock, int level)
{
    if (lock->level <= level)
        return SQLITE_OK;
    if (level == SQLITE_LOCK_NONE) {
        lock->level = level;
        return brc_bytes_lock(lock->fd, F_UNLCK, 0, 0, SQLITE_IOERR_UNLOCK);
    }
    if (brc_bytes_lock(lock->fd, F_RDLCK, SHARED_AT, SHARED_LEN, SQLITE_IOERR_RDLOCK) != SQLITE_OK)
        return SQLITE_OK; /* it is kept */
    lock->level = level;
    return brc_bytes_lock(lock->fd, F_UNLCK, PENDING_AT, 2, SQLITE_IOERR_UNLOCK);
}

int brc_file_lock_reserved(const brc_file_lock *lock, int *out)
{
    *out = lock->level > SQLITE_LOCK_SHARED;
    return *out ? SQLITE_OK : brc_bytes_is_locked(lock->fd, RESERVED_AT, 1, out);
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
           brc_bytes_is_locked(lock->fd, WAITING_AT, 1, &is_locked) != SQLITE_OK || is_locked;
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
