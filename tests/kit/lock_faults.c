/* See lock_faults.h. */
#include "lock_faults.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

static int (*lock_is_due)(void *ctx);
static void *lock_ctx;

void lock_faults_set(int (*is_due)(void *ctx), void *ctx)
{
    lock_is_due = is_due;
    lock_ctx = ctx;
}

#ifdef F_OFD_SETLK

static int is_taken(int cmd, const struct flock *lock)
{
    return cmd == F_OFD_GETLK || (cmd == F_OFD_SETLK && lock->l_type != F_UNLCK);
}

int fcntl(int fd, int cmd, ...)
{
    va_list args;
    va_start(args, cmd);
    void *arg = va_arg(args, void *);
    va_end(args);
    if (lock_is_due != NULL && is_taken(cmd, arg)) {
        int error = lock_is_due(lock_ctx);
        if (error != 0) {
            errno = error;
            return -1;
        }
    }
    return (int)syscall(SYS_fcntl, fd, cmd, arg);
}

#endif
