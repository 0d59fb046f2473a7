/* Processes by /proc. */
#include "process_kit.h"

#include <check.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/ptrace.h>

static int is_gone(pid_t pid)
{
    char path[64], text[256] = "";
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    FILE *f = fopen(path, "r");
    if (!f)
        return 1;
    if (!fgets(text, sizeof(text), f))
        text[0] = '\0';
    fclose(f);
    const char *state = strrchr(text, ')');
    return !state || state[2] == 'Z' || state[2] == 'X';
}

void process_must_go(pid_t pid)
{
    ck_assert_int_gt(pid, 1);
    for (int i = 0; i < 3000 && !is_gone(pid); i++)
        usleep(10000);
    ck_assert_msg(is_gone(pid), "process %d still runs", (int)pid);
}

int process_survives(int (*work)(void *ctx), void *ctx)
{
    int status;
    const pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0)
        _exit(work(ctx) != 0);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    if (WIFSIGNALED(status)) {
        ck_assert_int_eq(WTERMSIG(status), SIGKILL);
        return 0;
    }
    ck_assert_int_eq(WEXITSTATUS(status), 0);
    return 1;
}

/* ---- killed before a system call -------------------------------- */

/* The calls that all of Linux's architectures have, then those that only old ones have. */
static const long changing_calls[] = {
    SYS_write,     SYS_pwrite64, SYS_writev,          SYS_pwritev,   SYS_pwritev2, SYS_fsync,
    SYS_fdatasync, SYS_ftruncate, SYS_fallocate,      SYS_renameat2, SYS_unlinkat, SYS_mkdirat,
    SYS_linkat,    SYS_sendfile, SYS_copy_file_range, SYS_sendto,    SYS_sendmsg,
#ifdef SYS_renameat
    SYS_renameat,
#endif
#ifdef SYS_rename
    SYS_rename,    SYS_unlink,   SYS_mkdir,           SYS_rmdir,     SYS_link,
#endif
};

static int changes_files(const struct ptrace_syscall_info *info)
{
    if (info->op != PTRACE_SYSCALL_INFO_ENTRY)
        return 0;
    if (info->entry.nr == SYS_openat)
        return (info->entry.args[2] & O_CREAT) != 0;
    for (size_t i = 0; i < sizeof(changing_calls) / sizeof(changing_calls[0]); i++)
        if (info->entry.nr == (uint64_t)changing_calls[i])
            return 1;
    return 0;
}

/* Returns whether a thread has stopped before such a call, and what it is. */
static int is_changing_call(pid_t thread, int status, struct ptrace_syscall_info *info)
{
    memset(info, 0, sizeof(*info));
    return WSTOPSIG(status) == (SIGTRAP | 0x80) &&
           ptrace(PTRACE_GET_SYSCALL_INFO, thread, (void *)sizeof(*info), info) > 0 &&
           changes_files(info);
}

/* A call_fn returns 1 if the process is to be killed before the call. */
typedef int call_fn(void *to, pid_t thread, const struct ptrace_syscall_info *info);

/* Goes from stop to stop of all threads until the process has ended. */
static int trace_until(pid_t child, call_fn *at, void *to)
{
    struct ptrace_syscall_info info;
    int status, is_killed = 0;
    for (;;) {
        const pid_t thread = waitpid(-1, &status, __WALL);
        ck_assert_int_gt(thread, 0);
        if (thread == child && (WIFEXITED(status) || WIFSIGNALED(status)))
            break;
        if (!WIFSTOPPED(status) || is_killed)
            continue;
        if (is_changing_call(thread, status, &info) && at(to, thread, &info)) {
            is_killed = 1;
            kill(child, SIGKILL);
            continue;
        }
        const int signal = WSTOPSIG(status);
        const int is_ours = signal == SIGTRAP || signal == (SIGTRAP | 0x80) || signal == SIGSTOP;
        ptrace(PTRACE_SYSCALL, thread, NULL, (void *)(intptr_t)(is_ours ? 0 : signal));
    }
    if (WIFSIGNALED(status)) {
        ck_assert_int_eq(WTERMSIG(status), SIGKILL);
        ck_assert(is_killed);
        return 0;
    }
    ck_assert_int_eq(WEXITSTATUS(status), 0);
    return 1;
}

/* A process of its own works, and at() is called before each of its calls. 1: it got to its end. */
static int process_traced(int (*work)(void *ctx), void *ctx, call_fn *at, void *to)
{
    int status;
    const pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        raise(SIGSTOP);
        _exit(work(ctx) != 0);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_msg(WIFSTOPPED(status), "the process cannot be traced");
    ck_assert_int_eq(ptrace(PTRACE_SETOPTIONS, child, NULL,
                            (void *)(PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE |
                                     PTRACE_O_EXITKILL)),
                     0);
    ptrace(PTRACE_SYSCALL, child, NULL, NULL);
    return trace_until(child, at, to);
}

static int is_last(void *left, pid_t thread, const struct ptrace_syscall_info *info)
{
    (void)thread;
    (void)info;
    return --*(uint64_t *)left == 0;
}

int process_survives_calls(int (*work)(void *ctx), void *ctx, uint64_t n)
{
    return process_traced(work, ctx, is_last, &n);
}

/* ---- a refused system call -------------------------------- */

/* Sets the number of the call before which a thread has stopped, or, if `result` is not NULL, what
 * the call that it has made returns. Returns 0 where that is not known for a processor. */
static int change_call(pid_t thread, long nr, const long *result)
{
    struct user_regs_struct regs;
    struct iovec io = { &regs, sizeof(regs) };
    if (ptrace(PTRACE_GETREGSET, thread, (void *)NT_PRSTATUS, &io) != 0)
        return 0;
#if defined(__x86_64__)
    regs.orig_rax = (unsigned long long)nr;
    if (result != NULL)
        regs.rax = (unsigned long long)*result;
#elif defined(__aarch64__)
    int number = (int)nr;
    struct iovec call = { &number, sizeof(number) };
    if (result != NULL)
        regs.regs[0] = (unsigned long long)*result;
    else if (ptrace(PTRACE_SETREGSET, thread, (void *)NT_ARM_SYSTEM_CALL, &call) != 0)
        return 0;
#else
    (void)nr;
    (void)result;
    return 0;
#endif
    return ptrace(PTRACE_SETREGSET, thread, (void *)NT_PRSTATUS, &io) == 0;
}

typedef struct refusal {
    uint64_t left;
    long errnum;
    int done, failed;
} refusal;

/* Lets the thread make no call, and then gives it the result. */
static int refuse(void *to, pid_t thread, const struct ptrace_syscall_info *info)
{
    refusal *r = to;
    int status;
    const long result = -r->errnum;
    (void)info;
    if (r->left == 0 || --r->left > 0)
        return 0;
    r->done = change_call(thread, -1, NULL);
    ptrace(PTRACE_SYSCALL, thread, NULL, NULL);
    ck_assert_int_eq(waitpid(thread, &status, __WALL), thread);
    ck_assert_int_eq(WSTOPSIG(status), SIGTRAP | 0x80);
    r->failed = !r->done || !change_call(thread, -1, &result);
    return 0;
}

int process_refused_call(int (*work)(void *ctx), void *ctx, uint64_t n, int errnum)
{
    refusal r = { n, errnum, 0, 0 };
    ck_assert_int_eq(process_traced(work, ctx, refuse, &r), 1);
    return r.failed ? -1 : !r.done;
}

/* ---- watched -------------------------------- */

typedef struct watch {
    void (*seen)(void *to, long call, const char *path);
    void *to;
} watch;

static int tell(void *to, pid_t thread, const struct ptrace_syscall_info *info)
{
    const watch *w = to;
    char link[64], path[512];
    snprintf(link, sizeof(link), "/proc/%d/fd/%d", (int)thread, (int)info->entry.args[0]);
    const ssize_t n = readlink(link, path, sizeof(path) - 1);
    path[n > 0 ? n : 0] = '\0';
    w->seen(w->to, (long)info->entry.nr, path);
    return 0;
}

void process_watch(int (*work)(void *ctx), void *ctx,
                   void (*seen)(void *to, long call, const char *path), void *to)
{
    watch w = { seen, to };
    ck_assert_int_eq(process_traced(work, ctx, tell, &w), 1);
}
