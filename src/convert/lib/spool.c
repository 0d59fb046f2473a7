/* The clock of a converter, see spool.h. */
#include "spool.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../base/alloc.h"
#include "../../base/file.h"
#include "../../xfer/foreign/protocol.h"

/* ==== watch ================================ */

/* Ends the process. The library may be in the middle of anything, so only these two calls are
 * safe. */
static void give_up(int sig, siginfo_t *info, void *context)
{
    const brc_watch *w = info->si_value.sival_ptr;
    (void)sig;
    (void)context;
    ssize_t told = write(STDERR_FILENO, w->sentence, strlen(w->sentence));
    (void)told;
    _exit(BRC_STATUS_ERROR - BRC_ELIMIT);
}

int brc_watch_start(brc_watch *w, const char *file, int seconds, brc_error *err)
{
    struct sigaction action;
    struct sigevent event;

    memset(w, 0, sizeof(*w));
    memset(&action, 0, sizeof(action));
    memset(&event, 0, sizeof(event));
    w->seconds = seconds;
    (void)snprintf(w->sentence, sizeof(w->sentence),
                   "%.400s: no progress in %d s of processor time: the file is damaged\n", file,
                   seconds);
    action.sa_sigaction = give_up;
    action.sa_flags = SA_SIGINFO;
    event.sigev_notify = SIGEV_SIGNAL;
    event.sigev_signo = SIGPROF;
    event.sigev_value.sival_ptr = w;
    if (sigaction(SIGPROF, &action, NULL) < 0 ||
        timer_create(CLOCK_PROCESS_CPUTIME_ID, &event, &w->timer) < 0)
        return brc_fail_os(err, errno, "cannot watch", "this process");
    w->started = 1;
    brc_watch_step(w);
    return BRC_OK;
}

void brc_watch_step(brc_watch *w)
{
    struct itimerspec due = { .it_value = { .tv_sec = w->seconds } };
    if (w->started)
        (void)timer_settime(w->timer, 0, &due, NULL);
}

/* ==== spool ================================ */

/* Makes a file without a name. On file systems that lack such files, the file has a name for a
 * moment. */
static int open_unnamed(const char *folder, const char *file, brc_error *err)
{
    brc_buf name = BRC_BUF_INIT;
    int fd = -1, rc;
#ifdef O_TMPFILE
    fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0)
        return fd;
#endif
    BRC_GO(brc_buf_printf(&name, err, "%s/.breccia-XXXXXX", folder));
    BRC_GO(brc_buf_terminate(&name, err));
    fd = mkstemp((char *)name.data);
    rc = fd < 0 ? brc_fail_os(err, errno, "cannot make a temporary file beside", file) : BRC_OK;
    if (fd >= 0)
        (void)unlink((char *)name.data);
done:
    brc_buf_dispose(&name);
    return rc < 0 ? rc : fd;
}

int brc_spool_open(brc_spool *spool, const char *file, brc_error *err)
{
    char *name;
    BRC_TRY(brc_dup(&name, file, err));
    spool->file = file;
    spool->end = 0;
    spool->fd = open_unnamed(dirname(name), file, err);
    free(name);
    return spool->fd < 0 ? spool->fd : BRC_OK;
}

void brc_spool_close(brc_spool *spool)
{
    if (spool->fd >= 0)
        (void)close(spool->fd);
    spool->fd = -1;
}

int brc_spool_take(brc_spool *spool, uint64_t bytes, uint64_t *at, brc_error *err)
{
    *at = spool->end;
    if (spool->fd < 0)
        return brc_fail(err, BRC_EIO, "cannot make a temporary file beside %s", spool->file);
    if (!brc_add_u64(spool->end, bytes, &spool->end) || spool->end > INT64_MAX)
        return brc_fail(err, BRC_ELIMIT,
                        "%s: its lists need a temporary file of more than 2^63 bytes", spool->file);
    if (ftruncate(spool->fd, (off_t)spool->end) < 0)
        return brc_fail_os(err, errno, "cannot write a temporary file beside", spool->file);
    return BRC_OK;
}

int brc_spool_write(const brc_spool *spool, uint64_t at, const void *data, size_t len,
                    brc_error *err)
{
    int rc = brc_fd_write_at(spool->fd, data, len, at, spool->file, err);
    if (rc < 0)
        brc_context(err, "the temporary file of an export");
    return rc;
}

int brc_spool_read(const brc_spool *spool, uint64_t at, void *data, size_t len, brc_error *err)
{
    int rc = brc_fd_read_at(spool->fd, data, len, at, spool->file, err);
    if (rc < 0)
        brc_context(err, "the temporary file of an export");
    return rc;
}

int brc_spool_clear(brc_spool *spool, brc_error *err)
{
    spool->end = 0;
    if (spool->fd >= 0 && ftruncate(spool->fd, 0) < 0)
        return brc_fail_os(err, errno, "cannot write a temporary file beside", spool->file);
    return BRC_OK;
}
