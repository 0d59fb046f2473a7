/*
 * Limits the system calls of a converter, by libseccomp, to those that it needs to read and write
 * open files, to use memory and to read the clock. All others fail with EPERM, except that the door
 * answers calls that open files.
 */
#include "sandbox.h"

#include <errno.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "door.h"

static int sandbox_trap(brc_error *err);

/* ==== sandbox calls ================================ */

#if defined(__linux__) && defined(__has_include)
#if __has_include(<seccomp.h>)
#define HAS_SECCOMP 1
#endif
#endif

#ifndef HAS_SECCOMP

static int sandbox_calls(int writing, int has_door, brc_error *err)
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
    if (number == __NR_SCMP_ERROR || number < 0) /* this machine lacks the call */
        return 0;
    return seccomp_rule_add(filter, SCMP_ACT_ALLOW, number, 0);
}

/* Allows the call if its argument has none of these bits. */
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

/* Allows memory that is not executable. A machine with mmap2 passes the arguments of its mmap in
 * memory, where the filter does not see them. */
static int allow_memory(scmp_filter_ctx filter)
{
    const char *map = seccomp_syscall_resolve_name("mmap2") < 0 ? "mmap" : "mmap2";
    int rc = allow_without(filter, map, 2, PROT_EXEC);
    return rc == 0 ? allow_without(filter, "mprotect", 2, PROT_EXEC) : rc;
}

/* Traps the calls that the door answers or refuses, in this process. */
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

/* Allows calls that open files, where there is no door. fstat() of the C library asks about a
 * descriptor by a call that takes a path; the filter only sees the flag that says so. */
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

/* Allows the signal that abort() sends, to this process alone, and reading limits. */
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

static int sandbox_calls(int writing, int has_door, brc_error *err)
{
    if (prctl(PR_GET_SECCOMP, 0, 0, 0, 0) < 0)
        return BRC_OK; /* this kernel lacks seccomp */
    if (has_door)
        BRC_TRY(sandbox_trap(err));
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

/* ==== sandbox paths ================================ */

/*
 * Limits the part of the file system that a converter sees, by Landlock, whose system calls have no
 * functions in the C library. Files that the converter needs beside its own file are open already.
 */

#if defined(__linux__) && defined(__has_include)
#if __has_include(<linux/landlock.h>)
#include <sys/syscall.h>
#if defined(SYS_landlock_create_ruleset)
#define HAS_LANDLOCK 1
#endif
#endif
#endif

#ifndef HAS_LANDLOCK

static int sandbox_paths(const char *file, int writing, int has_door, brc_error *err)
{
    (void)file, (void)writing, (void)has_door, (void)err;
    return BRC_OK;
}

#else

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <linux/landlock.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../base/alloc.h"

#define READ_RIGHTS (LANDLOCK_ACCESS_FS_READ_FILE)
#define FOLDER_RIGHTS                                                                              \
    (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_MAKE_REG)

/* Returns the version of the kernel's interface; 0: the kernel lacks Landlock. */
static int landlock_version(void)
{
    long version =
        syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    return version > 0 ? (int)version : 0;
}

/* Returns all rights that this version and these headers know. A right is refused unless a rule
 * allows it. */
static uint64_t handled_rights(int version)
{
    uint64_t rights = (LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1;
#ifdef LANDLOCK_ACCESS_FS_REFER
    if (version >= 2)
        rights |= LANDLOCK_ACCESS_FS_REFER;
#endif
#ifdef LANDLOCK_ACCESS_FS_TRUNCATE
    if (version >= 3)
        rights |= LANDLOCK_ACCESS_FS_TRUNCATE;
#endif
    (void)version;
    return rights;
}

static int allow_path(int rules, const char *path, uint64_t rights, brc_error *err)
{
    struct landlock_path_beneath_attr rule = { .allowed_access = rights };
    rule.parent_fd = open(path, O_PATH | O_CLOEXEC);
    if (rule.parent_fd < 0)
        return brc_fail_os(err, errno, "cannot open", path);
    long failed = syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
    int code = errno;
    close(rule.parent_fd);
    return failed ? brc_fail_os(err, code, "cannot limit this process to", path) : BRC_OK;
}

/* Allows to make a file in the file's folder and to change the contents of files there. */
static int allow_folder(int rules, const char *file, uint64_t handled, brc_error *err)
{
    uint64_t rights = FOLDER_RIGHTS;
    char *name;
#ifdef LANDLOCK_ACCESS_FS_TRUNCATE
    rights |= LANDLOCK_ACCESS_FS_TRUNCATE;
#endif
    BRC_TRY(brc_dup(&name, file, err));
    int rc = allow_path(rules, dirname(name), rights & handled, err);
    free(name);
    return rc;
}

static int sandbox_paths(const char *file, int writing, int has_door, brc_error *err)
{
    int version = landlock_version(), rc = BRC_OK;
    struct landlock_ruleset_attr attr = { .handled_access_fs = handled_rights(version) };

    if (version == 0)
        return BRC_OK;
    int rules = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr.handled_access_fs), 0);
    if (rules < 0)
        return brc_fail_os(err, errno, "cannot limit", "this process");
    if (has_door)
        rc = BRC_OK; /* the process at the door opens files */
    else if (writing)
        BRC_GO(allow_folder(rules, file, attr.handled_access_fs, err));
    else
        BRC_GO(allow_path(rules, file, READ_RIGHTS, err));
    if (syscall(SYS_landlock_restrict_self, rules, 0) != 0)
        rc = brc_fail_os(err, errno, "cannot limit", "this process");
done:
    close(rules);
    return rc;
}

#endif

/* ==== sandbox trap ================================ */

/*
 * Handles calls that the kernel hands back to this process (seccomp's SECCOMP_RET_TRAP), as a
 * signal instead of the call. A call that opens a file becomes a question to the door. fstat(), for
 * which the C library calls newfstatat() with an empty path, becomes the call that takes no path,
 * because the kernel's filter cannot look at the path. libhdf5 asks about a file by its path after
 * it has opened the file: the answer is that for a descriptor from the door, so other files have no
 * answer.
 */

#if defined(__linux__) && (defined(__x86_64__) || defined(__aarch64__)) && defined(__has_include)
#if __has_include(<seccomp.h>)
#define CAN_TRAP 1
#endif
#endif

#ifndef CAN_TRAP

static int sandbox_trap(brc_error *err)
{
    (void)err;
    return BRC_OK;
}

#else

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

/* The arguments of a call, and the place of its result. */
typedef struct call_registers {
    uint64_t arg[4];
    ucontext_t *context;
} call_registers;

static call_registers read_registers(ucontext_t *context)
{
    call_registers call = { { 0 }, context };
#ifdef __x86_64__
    static const int from[4] = { REG_RDI, REG_RSI, REG_RDX, REG_R10 };
    for (int i = 0; i < 4; i++)
        call.arg[i] = (uint64_t)context->uc_mcontext.gregs[from[i]];
#else
    for (int i = 0; i < 4; i++)
        call.arg[i] = context->uc_mcontext.regs[i];
#endif
    return call;
}

static void set_result(const call_registers *call, long result)
{
#ifdef __x86_64__
    call->context->uc_mcontext.gregs[REG_RAX] = result;
#else
    call->context->uc_mcontext.regs[0] = (unsigned long long)result;
#endif
}

static long open_by_asking(int folder, uint64_t path, int flags)
{
    const char *text = (const char *)(uintptr_t)path;
    return folder == AT_FDCWD || *text == '/' ? brc_door_ask(text, flags) : -EPERM;
}

static long stat_of(int fd, uint64_t to)
{
    return syscall(SYS_fstat, fd, (void *)(uintptr_t)to) < 0 ? -errno : 0;
}

static long stat_by_asking(const call_registers *call)
{
    const char *path = (const char *)(uintptr_t)call->arg[1];
    if (*path == 0)
        return call->arg[3] == AT_EMPTY_PATH ? stat_of((int)call->arg[0], call->arg[2]) : -EPERM;
    long fd = open_by_asking((int)call->arg[0], call->arg[1], O_RDONLY);
    if (fd < 0)
        return fd;
    long result = stat_of((int)fd, call->arg[2]);
    close((int)fd);
    return result;
}

static void answer_call(int signal, siginfo_t *info, void *context)
{
    call_registers call = read_registers(context);
    int saved = errno;
    (void)signal;
    if (info->si_syscall == SYS_openat)
        set_result(&call, open_by_asking((int)call.arg[0], call.arg[1], (int)call.arg[2]));
#ifdef SYS_open
    else if (info->si_syscall == SYS_open)
        set_result(&call, open_by_asking(AT_FDCWD, call.arg[0], (int)call.arg[1]));
#endif
    else if (info->si_syscall == SYS_newfstatat)
        set_result(&call, stat_by_asking(&call));
    else
        set_result(&call, -EPERM);
    errno = saved;
}

static int sandbox_trap(brc_error *err)
{
    struct sigaction action;
    memset(&action, 0, sizeof(action));
    action.sa_sigaction = answer_call;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    sigemptyset(&action.sa_mask);
    return sigaction(SIGSYS, &action, NULL) < 0
               ? brc_fail_os(err, errno, "cannot limit", "the system calls of this process")
               : BRC_OK;
}

#endif

static int sandbox_can_trap(void)
{
#ifdef CAN_TRAP
    return 1;
#else
    return 0;
#endif
}

/* ==== sandbox ================================ */

/* Sets the limits of a converter's process, see sandbox.h. */

/* A chunk in a file may have 2 GiB, and a library holds it decoded and converted at once. */
#define MEMORY_MOST ((rlim_t)8 << 30)
#define MEMORY_LEAST ((rlim_t)1 << 30)
#define OPEN_FILES 1500

/* Sanitizers take the whole address space, and read /proc from a second process: with them only the
 * other limits are set. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

/* Sets a limit, but never raises one that the process has. */
static int set_limit(__rlimit_resource_t resource, rlim_t most, brc_error *err)
{
    struct rlimit limit;
    if (getrlimit(resource, &limit) < 0)
        return brc_fail_os(err, errno, "cannot limit", "this process");
    if (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur > most)
        limit.rlim_cur = most;
    if (limit.rlim_max == RLIM_INFINITY || limit.rlim_max > most)
        limit.rlim_max = most;
    return setrlimit(resource, &limit) < 0 ? brc_fail_os(err, errno, "cannot limit", "this process")
                                           : BRC_OK;
}

/* Allows as many open files as the process may have, up to OPEN_FILES. */
static int set_open_files(brc_error *err)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return brc_fail_os(err, errno, "cannot limit", "this process");
    if (limit.rlim_max == RLIM_INFINITY || limit.rlim_max > OPEN_FILES)
        limit.rlim_max = OPEN_FILES;
    limit.rlim_cur = limit.rlim_max;
    return setrlimit(RLIMIT_NOFILE, &limit) < 0
               ? brc_fail_os(err, errno, "cannot limit", "this process")
               : BRC_OK;
}

/* Returns the machine's memory, between MEMORY_LEAST and MEMORY_MOST. */
static rlim_t memory_limit(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    rlim_t memory = pages > 0 && size > 0 ? (rlim_t)pages * (rlim_t)size : MEMORY_LEAST;
    if (memory > MEMORY_MOST)
        memory = MEMORY_MOST;
    return memory < MEMORY_LEAST ? MEMORY_LEAST : memory;
}

/* Returns whether standard output or standard error is a file, which RLIMIT_FSIZE would limit. */
static int writes_to_file(void)
{
    struct stat st;
    return (fstat(STDOUT_FILENO, &st) == 0 && S_ISREG(st.st_mode)) ||
           (fstat(STDERR_FILENO, &st) == 0 && S_ISREG(st.st_mode));
}

int brc_sandbox_has_door(void)
{
#ifdef __linux__
    return !SANITIZED && sandbox_can_trap() && prctl(PR_GET_SECCOMP, 0, 0, 0, 0) >= 0 &&
           prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
#else
    return 0;
#endif
}

int brc_sandbox_enter(const char *file, int writing, brc_error *err)
{
    int door = brc_sandbox_has_door();
    BRC_TRY(set_limit(RLIMIT_CORE, 0, err));
    BRC_TRY(set_open_files(err));
    if (!SANITIZED)
        BRC_TRY(set_limit(RLIMIT_AS, memory_limit(), err));
    if (!writing && !writes_to_file())
        BRC_TRY(set_limit(RLIMIT_FSIZE, 0, err));
    if (SANITIZED || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return BRC_OK; /* then neither Landlock nor seccomp works */
    BRC_TRY(sandbox_paths(file, writing, door, err));
    return sandbox_calls(writing, door, err);
}
