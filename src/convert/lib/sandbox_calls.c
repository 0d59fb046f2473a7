/*
 * The system calls that a converter may make, by libseccomp: what reading and writing open
 * files, memory and the clock take. Everything else fails with EPERM.
 */
#include "sandbox.h"

#if defined(__linux__) && defined(__has_include)
#if __has_include(<seccomp.h>)
#define HAS_SECCOMP 1
#endif
#endif

#ifndef HAS_SECCOMP

int brc_sandbox_calls(int writing, brc_error *err)
{
    (void)writing, (void)err;
    return BRC_OK;
}

#else

#include <errno.h>
#include <fcntl.h>
#include <seccomp.h>
#include <sys/prctl.h>
#include <unistd.h>

static const char *const calls[] = {
    /* open files */
    "read", "write", "readv", "writev", "pread64", "pwrite64", "preadv", "pwritev", "lseek",
    "_llseek", "close", "fstat", "fstat64", "fcntl", "fcntl64", "flock", "fsync", "fdatasync",
    "ftruncate", "ftruncate64", "fallocate", "fadvise64", "fstatfs", "fstatfs64", "dup", "poll",
    "ppoll", "splice", "vmsplice", "tee", "getdents64", "ioctl",
    /* what there is */
    "stat", "lstat", "stat64", "lstat64", "newfstatat", "fstatat64", "statx", "access",
    "faccessat", "faccessat2", "readlink", "readlinkat", "getcwd", "statfs", "statfs64",
    /* memory */
    "brk", "mmap", "mmap2", "munmap", "mremap", "mprotect", "madvise",
    /* itself */
    "exit", "exit_group", "futex", "futex_time64", "getpid", "gettid", "getppid", "getuid",
    "geteuid", "getgid", "getegid", "getrlimit", "ugetrlimit", "getrusage", "getrandom",
    "rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "rt_sigpending", "rt_sigtimedwait",
    "sigaltstack", "sigreturn", "restart_syscall", "rseq", "set_robust_list", "set_tid_address",
    "sched_getaffinity", "sched_yield", "sysinfo", "uname", "umask", "membarrier", "arch_prctl",
    /* the clock */
    "clock_gettime", "clock_gettime64", "clock_getres", "clock_nanosleep", "gettimeofday",
    "nanosleep", "time", "times", "timer_settime", "timer_settime64"
};

static int allow_call(scmp_filter_ctx filter, const char *name)
{
    int number = seccomp_syscall_resolve_name(name);
    if (number == __NR_SCMP_ERROR || number < 0) /* this machine has none of this name */
        return 0;
    return seccomp_rule_add(filter, SCMP_ACT_ALLOW, number, 0);
}

/* `flags`: the argument that has them. */
static int allow_opening(scmp_filter_ctx filter, const char *name, unsigned flags, int writing)
{
    int number = seccomp_syscall_resolve_name(name);
    if (number == __NR_SCMP_ERROR || number < 0)
        return 0;
    if (writing)
        return seccomp_rule_add(filter, SCMP_ACT_ALLOW, number, 0);
    return seccomp_rule_add(filter, SCMP_ACT_ALLOW, number, 1,
                            (struct scmp_arg_cmp){ .arg = flags,
                                                   .op = SCMP_CMP_MASKED_EQ,
                                                   .datum_a = O_ACCMODE | O_CREAT | O_TRUNC,
                                                   .datum_b = O_RDONLY });
}

/* What abort() does, to nobody else, and limits that are asked for. */
static int allow_own(scmp_filter_ctx filter)
{
    pid_t own = getpid();
    int rc = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(tgkill), 1,
                              (struct scmp_arg_cmp){
                                  .arg = 0, .op = SCMP_CMP_EQ, .datum_a = (scmp_datum_t)own });
    if (rc == 0)
        rc = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(prlimit64), 1,
                              (struct scmp_arg_cmp){ .arg = 2, .op = SCMP_CMP_EQ });
    return rc;
}

static int add_rules(scmp_filter_ctx filter, int writing)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < sizeof(calls) / sizeof(calls[0]); i++)
        rc = allow_call(filter, calls[i]);
    if (rc == 0)
        rc = allow_opening(filter, "openat", 2, writing);
    if (rc == 0)
        rc = allow_opening(filter, "open", 1, writing);
    return rc == 0 ? allow_own(filter) : rc;
}

int brc_sandbox_calls(int writing, brc_error *err)
{
    if (prctl(PR_GET_SECCOMP, 0, 0, 0, 0) < 0)
        return BRC_OK; /* the kernel has none */
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
    if (!filter)
        return brc_nomem(err);
    int rc = add_rules(filter, writing);
    if (rc == 0)
        rc = seccomp_load(filter);
    seccomp_release(filter);
    if (rc < 0)
        return brc_fail_os(err, -rc, "cannot limit", "the system calls of this process");
    return BRC_OK;
}

#endif
