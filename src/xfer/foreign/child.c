/* Starts a program, and moves bytes to or from it. */
#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../base/alloc.h"
#include "../../base/buf.h"
#include "../../base/process.h"
#include "../../base/file.h"
#include "../../base/part.h"

#define LOWEST_FD 10 /* of this process: the child's are 0 to 3, which a program may have closed */
#define STREAM_PIPE (1 << 20)
#define SAID_MOST (BRC_PARTS_BYTES + ((size_t)64 << 10)) /* a converter's list, and a little more */
#define LOOK_MS 100 /* between two looks for an interruption */
#define SOON_MS 5   /* before a wait counts as long           */
#define GRACE_MS 1000 /* for sh to kill the program and reap it */

struct brc_child {
    brc_child_spec spec;
    pid_t pid;                    /* of sh; 0: it was reaped */
    int stream, errors, ended_by; /* ends of the pipes in this process; -1: closed */
    brc_buf said, last, report;
    size_t line; /* the offset of the last line in `said`   */
};

/*
 * sh passes the streams on, closes its own ends of them and waits. A job in the background has no
 * standard input, so sh passes that as descriptor 5. The text written to descriptor 3 is the exit
 * status, as sh reports it. On SIGTERM sh kills the job and reaps it.
 */
#define FIRST "ulimit -c 0; c=; trap 'kill -9 $c; wait $c; exit' TERM; exec 5<&0; "
#define THEN " <&5 3>&- 5<&- & c=$!; exec <&- >&- 2>&- 5<&-; wait $c; echo $? >&3"
#define RUN_PROGRAM FIRST "\"$0\" \"$@\"" THEN
/* Limits the address space to the machine's memory, in KiB, if that is known. */
#define RUN_SHELL "ulimit -v \"$1\" 2>&-; shift; " FIRST "sh -c \"$0\" sh \"$@\"" THEN

/* ---- pipes --------------------------------------------------------------------------- */

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* Opens a pipe that is closed on exec from the beginning: another thread may start a program at any
 * moment. */
static int open_pipe(int fds[2], brc_error *err)
{
    int low[2];
    fds[0] = fds[1] = -1;
    if (pipe2(low, O_CLOEXEC) < 0)
        return brc_fail_os(err, errno, "opening", "a pipe");
    for (int i = 0; i < 2; i++)
        fds[i] = fcntl(low[i], F_DUPFD_CLOEXEC, LOWEST_FD);
    int errnum = errno;
    close(low[0]);
    close(low[1]);
    if (fds[0] >= 0 && fds[1] >= 0)
        return BRC_OK;
    close_fd(&fds[0]);
    close_fd(&fds[1]);
    return brc_fail_os(err, errnum, "opening", "a pipe");
}

/* ---- starting ------------------------------------------------------------------------ */

typedef struct child_ends {
    int stream[2], errors[2], status[2];
} child_ends;

/* Sets descriptors 0 to 3 of the child. */
static int describe_ends(posix_spawn_file_actions_t *actions, const child_ends *ends, int feeds)
{
    int rc = 0;
    if (feeds) {
        rc |= posix_spawn_file_actions_adddup2(actions, ends->stream[0], 0);
        rc |= posix_spawn_file_actions_addopen(actions, 1, "/dev/null", O_WRONLY, 0);
    } else {
        rc |= posix_spawn_file_actions_addopen(actions, 0, "/dev/null", O_RDONLY, 0);
        rc |= posix_spawn_file_actions_adddup2(actions, ends->stream[1], 1);
    }
    rc |= posix_spawn_file_actions_adddup2(actions, ends->errors[1], 2);
    rc |= posix_spawn_file_actions_adddup2(actions, ends->status[1], 3);
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 34)
    rc |= posix_spawn_file_actions_addclosefrom_np(actions, 4);
#endif
    return rc;
}

/* Makes sure that the child blocks and ignores no signal, whatever the caller's program does. */
static int describe_signals(posix_spawnattr_t *attr)
{
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    return posix_spawnattr_setsigmask(attr, &none) | posix_spawnattr_setsigdefault(attr, &all) |
           posix_spawnattr_setflags(attr, (short)(POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK |
                                                  POSIX_SPAWN_SETSIGDEF));
}

static int spawn_shell(brc_child *c, const child_ends *ends, char **argv, brc_error *err)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    int errnum = posix_spawn_file_actions_init(&actions);
    if (errnum == 0) {
        errnum = posix_spawnattr_init(&attr);
        if (errnum == 0) {
            errnum = describe_ends(&actions, ends, c->spec.feeds) | describe_signals(&attr);
            if (errnum == 0)
                errnum = posix_spawn(&c->pid, "/bin/sh", &actions, &attr, argv, environ);
            posix_spawnattr_destroy(&attr);
        }
        posix_spawn_file_actions_destroy(&actions);
    }
    if (errnum == 0)
        return BRC_OK;
    c->pid = 0;
    return brc_fail_os(err, errnum, "starting", c->spec.label);
}

/* In KiB, for ulimit. */
static int limit_of_memory(brc_buf *out, brc_error *err)
{
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    if (pages <= 0 || page <= 0)
        return brc_buf_printf(out, err, "unlimited");
    uint64_t kib = (uint64_t)pages * ((uint64_t)page >> 10), least = (uint64_t)4 << 20;
    return brc_buf_printf(out, err, "%llu", (unsigned long long)(kib > least ? kib : least));
}

static int start_child(brc_child *c, const child_ends *ends, brc_error *err)
{
    brc_buf limit = BRC_BUF_INIT;
    size_t n = 0, at = 0;
    char **argv = NULL;
    int rc;

    while (c->spec.args[n])
        n++;
    BRC_GO(brc_new_array((void **)&argv, n + 6, sizeof(*argv), err));
    BRC_GO(limit_of_memory(&limit, err));
    /* posix_spawn() changes none of them */
    argv[at++] = (char *)(uintptr_t) "sh";
    argv[at++] = (char *)(uintptr_t) "-c";
    argv[at++] = (char *)(uintptr_t)(c->spec.is_shell ? RUN_SHELL : RUN_PROGRAM);
    argv[at++] = (char *)(uintptr_t)c->spec.command;
    if (c->spec.is_shell)
        argv[at++] = (char *)limit.data;
    for (size_t i = 0; i < n; i++)
        argv[at++] = (char *)(uintptr_t)c->spec.args[i];
    BRC_GO(spawn_shell(c, ends, argv, err));
done:
    free(argv);
    brc_buf_dispose(&limit);
    return rc;
}

static int open_ends(child_ends *ends, brc_error *err)
{
    BRC_TRY(open_pipe(ends->stream, err));
    BRC_TRY(open_pipe(ends->errors, err));
    return open_pipe(ends->status, err);
}

int brc_child_start(brc_child **out, const brc_child_spec *spec, brc_error *err)
{
    child_ends ends = { { -1, -1 }, { -1, -1 }, { -1, -1 } };
    int mine = spec->feeds ? 1 : 0;
    brc_child *c;

    *out = NULL;
    BRC_TRY(brc_new((void **)&c, sizeof(*c), err));
    c->spec = *spec;
    int rc = open_ends(&ends, err);
    if (rc == BRC_OK)
        rc = start_child(c, &ends, err);
    c->stream = ends.stream[mine];
    c->errors = ends.errors[0];
    c->ended_by = ends.status[0];
    close_fd(&ends.stream[!mine]);
    close_fd(&ends.errors[1]);
    close_fd(&ends.status[1]);
    if (rc == BRC_OK && spec->feeds &&
        fcntl(c->stream, F_SETFL, fcntl(c->stream, F_GETFL) | O_NONBLOCK) < 0)
        rc = brc_fail_os(err, errno, "opening", "a pipe");
#ifdef F_SETPIPE_SZ
    if (rc == BRC_OK)
        (void)fcntl(c->stream, F_SETPIPE_SZ, STREAM_PIPE); /* if there is room for it */
#endif
    if (rc < 0) {
        brc_child_free(c);
        return rc;
    }
    *out = c;
    return BRC_OK;
}

/* ---- standard error -------------------------------------------------------------------- */

static int keep_said(brc_buf *to, const uint8_t *bytes, size_t n, size_t most, brc_error *err)
{
    if (n > most - to->len)
        n = most - to->len;
    BRC_TRY(brc_buf_append(to, bytes, n, err));
    return brc_buf_terminate(to, err);
}

/* Keeps the first lines of standard error, and the last one. */
static int take_said(brc_child *c, const uint8_t *bytes, size_t n, brc_error *err)
{
    BRC_TRY(keep_said(&c->said, bytes, n, SAID_MOST, err));
    for (size_t at = 0; at < n;) {
        const uint8_t *end = memchr(bytes + at, '\n', n - at);
        size_t len = end ? (size_t)(end - bytes) - at : n - at;
        if (c->line && len > 0) {
            c->last.len = 0;
            c->line = 0;
        }
        BRC_TRY(keep_said(&c->last, bytes + at, len, 4096, err));
        at += len + (end != NULL);
        c->line |= end != NULL;
    }
    return BRC_OK;
}

const char *brc_child_last_line(const brc_child *c)
{
    return c->last.data ? (const char *)c->last.data : "";
}

const char *brc_child_said(const brc_child *c)
{
    return c->said.data ? (const char *)c->said.data : "";
}

/* Reads the available bytes; closes the descriptor at the end. */
static int serve_pipe(brc_child *c, int *fd, brc_error *err)
{
    uint8_t bytes[4096];
    size_t n;
    BRC_TRY(brc_fd_read(*fd, bytes, sizeof(bytes), &n, c->spec.label, err));
    if (n == 0)
        close_fd(fd);
    else if (fd == &c->errors)
        BRC_TRY(take_said(c, bytes, n, err));
    else
        BRC_TRY(keep_said(&c->report, bytes, n, 64, err));
    return BRC_OK;
}

/* ---- waiting ------------------------------------------------------------------------- */

static int64_t monotonic_ms(void)
{
    return brc_monotonic_ns() / 1000000;
}

/* Waits until the stream is ready for `events`, or, if that is 0, until sh has ended. The clock
 * runs only while waiting: the time of this process' own work does not count as the program's
 * silence. */
static int wait_for(brc_child *c, short events, int patience_ms, brc_error *err)
{
    int64_t since = monotonic_ms();
    int rests = 0;
    while (events != 0 || c->ended_by >= 0) {
        struct pollfd fds[3] = { { events ? c->stream : -1, events, 0 },
                                 { c->errors, POLLIN, 0 },
                                 { c->ended_by, POLLIN, 0 } };
        int n = poll(fds, 3, rests ? LOOK_MS : SOON_MS);
        if (n < 0 && errno != EINTR)
            return brc_fail_os(err, errno, "waiting for", c->spec.label);
        if (n == 0 && !rests && c->spec.rest != NULL)
            BRC_TRY(c->spec.rest(c->spec.ctx, err));
        rests = n == 0;
        BRC_TRY(c->spec.check(c->spec.ctx, err));
        if (n > 0 && fds[1].revents)
            BRC_TRY(serve_pipe(c, &c->errors, err));
        if (n > 0 && fds[2].revents)
            BRC_TRY(serve_pipe(c, &c->ended_by, err));
        if (n > 0 && fds[0].revents)
            return BRC_OK;
        if (n > 0 && (fds[1].revents || fds[2].revents))
            since = monotonic_ms();
        if (monotonic_ms() - since >= patience_ms)
            return brc_fail(err, BRC_EIO, "%s wrote nothing for %d s and was stopped",
                            c->spec.label, patience_ms / 1000);
    }
    return BRC_OK;
}

int brc_child_read(brc_child *c, uint8_t *to, size_t cap, size_t *n, brc_error *err)
{
    *n = 0;
    if (c->stream < 0)
        return BRC_OK;
    BRC_TRY(wait_for(c, POLLIN, c->spec.silence_ms, err));
    BRC_TRY(brc_fd_read(c->stream, to, cap, n, c->spec.label, err));
    if (*n == 0)
        close_fd(&c->stream);
    return BRC_OK;
}

int brc_child_write(brc_child *c, const uint8_t *from, size_t len, int *gone, brc_error *err)
{
    *gone = 0;
    while (len > 0) {
        BRC_TRY(wait_for(c, POLLOUT, c->spec.silence_ms, err));
        ptrdiff_t n = brc_fd_write_some(c->stream, from, len);
        if (n < 0 && errno == EPIPE) {
            *gone = 1;
            return BRC_OK;
        }
        if (n < 0 && errno != EINTR && errno != EAGAIN)
            return brc_fail_os(err, errno, "writing to", c->spec.label);
        if (n > 0) {
            from += n;
            len -= (size_t)n;
        }
    }
    return BRC_OK;
}

/* ---- the end ------------------------------------------------------------------------- */

/* Returns 1 while the child can be reaped by its id, which until then no other process gets. */
static int is_unreaped(const brc_child *c)
{
    siginfo_t info;
    int rc;
    do
        rc = waitid(P_PID, (id_t)c->pid, &info, WEXITED | WNOHANG | WNOWAIT);
    while (rc < 0 && errno == EINTR);
    return rc == 0;
}

/* Ends the process that sh waits for, which sh then reaps; then everything left of the session's
 * first group. The child may be gone, and reaped by another thread. */
static void end_and_reap(brc_child *c)
{
    struct pollfd end = { c->ended_by, POLLIN, 0 };
    if (c->pid == 0)
        return;
    if (c->ended_by >= 0 && is_unreaped(c) && kill(c->pid, SIGTERM) == 0)
        (void)poll(&end, 1, GRACE_MS);
    if (is_unreaped(c))
        kill(-c->pid, SIGKILL);
    while (waitpid(c->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    c->pid = 0;
}

/* Reads the bytes that were written before the end and are still in the pipe, which others may hold
 * open. */
static int drain_errors(brc_child *c, brc_error *err)
{
    struct pollfd fd = { c->errors, POLLIN, 0 };
    for (int i = 0; i < 1024 && c->errors >= 0 && poll(&fd, 1, 0) > 0; i++)
        BRC_TRY(serve_pipe(c, &c->errors, err));
    return BRC_OK;
}

int brc_child_end(brc_child *c, int patience_ms, int *status, brc_error *err)
{
    close_fd(&c->stream);
    BRC_TRY(wait_for(c, 0, patience_ms > 0 ? patience_ms : c->spec.silence_ms, err));
    BRC_TRY(drain_errors(c, err));
    end_and_reap(c);
    char *end = (char *)c->report.data;
    *status = c->report.len > 0 ? (int)strtol((char *)c->report.data, &end, 10) : 0;
    if (end == (char *)c->report.data)
        *status = 128 + SIGKILL; /* and sh with it */
    return BRC_OK;
}

void brc_child_free(brc_child *c)
{
    if (!c)
        return;
    end_and_reap(c);
    close_fd(&c->stream);
    close_fd(&c->errors);
    close_fd(&c->ended_by);
    brc_buf_dispose(&c->said);
    brc_buf_dispose(&c->last);
    brc_buf_dispose(&c->report);
    free(c);
}
