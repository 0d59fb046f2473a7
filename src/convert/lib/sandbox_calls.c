/*
 * The system calls that a converter may make, by libseccomp: what reading and writing open
 * files, memory and the clock take. Everything else fails with EPERM; those that open a file are
 * answered by the door (sandbox_trap.c).
 */
#include "sandbox.h"

#if defined(__linux__) && defined(__has_include)
#if __has_include(<seccomp.h>)
#define HAS_SECCOMP 1
#endif
#endif

#ifndef HAS_SECCOMP

int brc_sandbox_calls(int writing, int has_door, brc_error *err)
{
    (void)writing, (void)has_door, (void)err;
    return BRC_OK;
}

#else

#include <errno.h>
#include <fcntl.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

static const char *const calls[] = {
    /* open files */
    "read", "write", "readv", "writev", "pread64", "pwrite64", "preadv", "pwritev", "lseek",
    "_llseek", "close", "fstat", "fstat64", "fcntl", "fcntl64", "flock", "fsync", "fdatasync",
    "ftruncate", "ftruncate64", "fallocate", "fadvise64", "fstatfs", "fstatfs64", "dup", "poll",
    "ppoll", "splice", "vmsplice", "tee", "ioctl",
    /* the door, the only socket that there is */
    "sendmsg", "recvmsg",
    /* memory */
    "brk", "munmap", "mremap", "madvise",
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

/* Where none of these bits is in the argument. */
static int allow_without(scmp_filter_ctx filter, const char *name, unsigned argument, uint64_t bits)
{
    int number = seccomp_syscall_resolve_name(name);
    if (number == __NR_SCMP_ERROR || number < 0)
        return 0;
    return seccomp_rule_add(filter, SCMP_ACT_ALLOW, number, 1,
                            (struct scmp_arg_cmp){ .arg = argument,
                                                   .op = SCMP_CMP_MASKED_EQ,
                                                   .datum_a = bits,
                                                   .datum_b = 0 });
}

/* Memory that is not code. A machine with mmap2 passes the arguments of its mmap in memory. */
static int allow_memory(scmp_filter_ctx filter)
{
    const char *map = seccomp_syscall_resolve_name("mmap2") < 0 ? "mmap" : "mmap2";
    int rc = allow_without(filter, map, 2, PROT_EXEC);
    return rc == 0 ? allow_without(filter, "mprotect", 2, PROT_EXEC) : rc;
}

/* Calls that the door answers, or refuses, in this process. */
static int trap_calls(scmp_filter_ctx filter)
{
    static const char *const names[] = { "open", "openat", "newfstatat" };
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < sizeof(names) / sizeof(names[0]); i++) {
        int number = seccomp_syscall_resolve_name(names[i]);
        if (number != __NR_SCMP_ERROR && number >= 0)
            rc = seccomp_rule_add(filter, SCMP_ACT_TRAP, number, 0);
    }
    return rc;
}

/* Without the door. What the C library calls for fstat() asks about a descriptor: the flag is
 * all that can be seen of it. */
static int allow_files(scmp_filter_ctx filter, int writing)
{
    static const struct {
        const char *name;
        unsigned flags;
    } asks[] = { { "newfstatat", 3 }, { "fstatat64", 3 }, { "statx", 2 } };
    uint64_t never = O_PATH | (writing ? 0 : O_ACCMODE | O_CREAT | O_TRUNC);
    int rc = allow_without(filter, "openat", 2, never);
    if (rc == 0)
        rc = allow_without(filter, "open", 1, never);
    for (size_t i = 0; rc == 0 && i < sizeof(asks) / sizeof(asks[0]); i++) {
        int number = seccomp_syscall_resolve_name(asks[i].name);
        if (number != __NR_SCMP_ERROR && number >= 0)
            rc = seccomp_rule_add(filter, SCMP_ACT_ALLOW, number, 1,
                                  (struct scmp_arg_cmp){ .arg = asks[i].flags,
                                                         .op = SCMP_CMP_MASKED_EQ,
                                                         .datum_a = AT_EMPTY_PATH,
                                                         .datum_b = AT_EMPTY_PATH });
    }
    return rc;
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

static int add_rules(scmp_filter_ctx filter, int writing, int has_door)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < sizeof(calls) / sizeof(calls[0]); i++)
        rc = allow_call(filter, calls[i]);
    if (rc == 0)
        rc = allow_memory(filter);
    if (rc == 0)
        rc = has_door ? trap_calls(filter) : allow_files(filter, writing);
    return rc == 0 ? allow_own(filter) : rc;
}

int brc_sandbox_calls(int writing, int has_door, brc_error *err)
{
    if (prctl(PR_GET_SECCOMP, 0, 0, 0, 0) < 0)
        return BRC_OK; /* the kernel has none */
    if (has_door)
        BRC_TRY(brc_sandbox_trap(err));
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
    if (!filter)
        return brc_nomem(err);
    int rc = add_rules(filter, writing, has_door);
    if (rc == 0)
        rc = seccomp_load(filter);
    seccomp_release(filter);
    if (rc < 0)
        return brc_fail_os(err, -rc, "cannot limit", "the system calls of this process");
    return BRC_OK;
}

#endif
