/* Descriptors, see fd.h. */
#include "fd.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

/* At most this much in one call: Linux reads and writes less than 2 GiB at a time. */
#define FD_MOST ((size_t)1 << 30)

int brc_fd_read(int fd, void *to, size_t cap, size_t *n, const char *name, brc_error *err)
{
    ssize_t got;
    do
        got = read(fd, to, cap < FD_MOST ? cap : FD_MOST);
    while (got < 0 && errno == EINTR);
    *n = got > 0 ? (size_t)got : 0;
    return got < 0 ? brc_fail_os(err, errno, "cannot read", name) : BRC_OK;
}

int brc_fd_read_at(int fd, void *to, size_t len, uint64_t at, const char *name, brc_error *err)
{
    uint8_t *dst = to;
    while (len > 0) {
        ssize_t n = pread(fd, dst, len < FD_MOST ? len : FD_MOST, (off_t)at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return brc_fail_os(err, errno, "cannot read", name);
        if (n == 0)
            return brc_fail(err, BRC_EINVAL, "%s became shorter while it was read", name);
        dst += n;
        at += (uint64_t)n;
        len -= (size_t)n;
    }
    return BRC_OK;
}

/* The signal goes to the thread that writes: it is blocked there, and consumed if this
 * write raised it. One that was pending before belongs to somebody else. */
ptrdiff_t brc_fd_write_some(int fd, const void *from, size_t len)
{
    sigset_t pipe_only, before, pending;
    int was_pending, sig;

    sigemptyset(&pipe_only);
    sigaddset(&pipe_only, SIGPIPE);
    sigemptyset(&pending);
    sigpending(&pending);
    was_pending = sigismember(&pending, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_only, &before);
    ssize_t n = write(fd, from, len < FD_MOST ? len : FD_MOST);
    int errnum = errno;
    if (n < 0 && errnum == EPIPE && !was_pending) {
        sigpending(&pending);
        if (sigismember(&pending, SIGPIPE))
            sigwait(&pipe_only, &sig);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = errnum;
    return n;
}

int brc_fd_write(int fd, const void *from, size_t len, const char *name, brc_error *err)
{
    const uint8_t *at = from;
    while (len > 0) {
        ptrdiff_t n = brc_fd_write_some(fd, at, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return brc_fail_os(err, errno, "cannot write", name);
        at += n;
        len -= (size_t)n;
    }
    return BRC_OK;
}

int brc_fd_write_at(int fd, const void *from, size_t len, uint64_t at, const char *name,
                    brc_error *err)
{
    const uint8_t *src = from;
    while (len > 0) {
        ssize_t n = pwrite(fd, src, len < FD_MOST ? len : FD_MOST, (off_t)at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return brc_fail_os(err, errno, "cannot write", name);
        src += n;
        at += (uint64_t)n;
        len -= (size_t)n;
    }
    return BRC_OK;
}
