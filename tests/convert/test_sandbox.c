/* The calls that a converter can no longer make: each is tried in a process of its own. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../src/convert/lib/door.h"
#include "../../src/convert/lib/sandbox.h"
#include "../kit/exchange_kit.h"
#include "../kit/sanitized.h"
#include "../kit/suite.h"

TEST_SUITE(sandbox);

static exchange_kit kit;
static char own[512], other[512], fresh[512], beside[512];
static int folder; /* open from before */

static void start_files(void)
{
    exchange_folder_start(&kit);
    snprintf(own, sizeof(own), "%s", exchange_text(&kit, "in/own", "own"));
    snprintf(other, sizeof(other), "%s", exchange_text(&kit, "other", "other"));
    snprintf(fresh, sizeof(fresh), "%s", exchange_path(&kit, "in/fresh"));
    snprintf(beside, sizeof(beside), "%s", exchange_text(&kit, "in/below/beside", "beside"));
    exchange_text(&kit, "in/.hidden/key", "key");
    folder = open(kit.dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    ck_assert_int_eq(symlink(other, exchange_path(&kit, "in/link")), 0);
    ck_assert_int_eq(symlink(kit.dir, exchange_path(&kit, "in/up")), 0);
    ck_assert_int_eq(mkfifo(exchange_path(&kit, "in/fifo"), 0600), 0);
}

static void stop_files(void)
{
    close(folder);
    exchange_stop(&kit);
}

static int watched(void)
{
    const char *preload = getenv("LD_PRELOAD");
    return KIT_SANITIZED || (preload != NULL && strstr(preload, "vgpreload") != NULL);
}

static int has_landlock(void)
{
#ifdef SYS_landlock_create_ruleset
    return !watched() && syscall(SYS_landlock_create_ruleset, NULL, 0, 1u) > 0;
#else
    return 0;
#endif
}

/* ---- what is tried: 0 if it went well, else errno -------------------------------- */

static int open_as(const char *path, int flags)
{
    int fd = open(path, flags, 0600);
    if (fd < 0)
        return errno;
    close(fd);
    return 0;
}

static int try_read_own(void)
{
    return open_as(own, O_RDONLY);
}

static int try_read_other(void)
{
    return open_as(other, O_RDONLY);
}

static int try_write_own(void)
{
    return open_as(own, O_WRONLY);
}

static int try_make(void)
{
    return open_as(fresh, O_WRONLY | O_CREAT | O_EXCL);
}

static int try_make_elsewhere(void)
{
    return open_as(exchange_path(&kit, "elsewhere"), O_WRONLY | O_CREAT | O_EXCL);
}

static int try_unlink_other(void)
{
    return unlink(other) < 0 ? errno : 0;
}

static int try_connect(void)
{
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(9) };
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0)
        return errno;
    return connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0 && errno != ECONNREFUSED ? errno : 0;
}

static int try_exec(void)
{
    char *args[] = { (char[]){ "true" }, NULL };
    execv("/bin/true", args);
    return errno;
}

static int try_fork(void)
{
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    return child < 0 ? errno : 0;
}

static int try_kill(void)
{
    return kill(getppid(), 0) < 0 ? errno : 0;
}

static int try_trace(void)
{
    return ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0 ? errno : 0;
}

static int try_memory(void)
{
    return mmap(NULL, (size_t)9 << 30, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                0) == MAP_FAILED
               ? errno
               : 0;
}

static int try_core(void)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_CORE, &limit) < 0 || limit.rlim_max > 0 ? 0 : EFBIG;
}

static int try_many_files(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return errno;
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit); /* which a converter may not, and need not */
    for (int i = 0; i < 1600; i++)
        if (open(own, O_RDONLY) < 0)
            return errno;
    return 0;
}

/* ---- questions about paths, each in every form that there is ------------------------ */

static int code_of(long result)
{
    return result < 0 ? errno : 0;
}

static int ask_by_statx(const char *path)
{
    struct statx st;
    return code_of(statx(AT_FDCWD, path, 0, STATX_BASIC_STATS, &st));
}

/* A path with the flag for none, which a filter of system calls cannot see. */
static int ask_beside_the_flag(const char *path)
{
    struct stat st;
    return code_of(syscall(SYS_newfstatat, AT_FDCWD, path, &st, AT_EMPTY_PATH));
}

static int ask_by_lstat(const char *path)
{
    struct stat st;
    return code_of(lstat(path, &st));
}

static int ask_by_stat(const char *path)
{
    struct stat st;
    return code_of(stat(path, &st));
}

static int ask_by_access(const char *path)
{
    return code_of(access(path, F_OK));
}

static int ask_by_faccessat(const char *path)
{
    return code_of(faccessat(AT_FDCWD, path, R_OK, AT_EACCESS));
}

static int ask_by_readlink(const char *path)
{
    char target[64];
    return code_of(readlink(path, target, sizeof(target)));
}

static int ask_by_statfs(const char *path)
{
    struct statfs st;
    return code_of(statfs(path, &st));
}

static int ask_by_path_descriptor(const char *path)
{
    return open_as(path, O_PATH);
}

static int ask_by_opening(const char *path)
{
    return open_as(path, O_RDONLY);
}

static int ask_by_listing(const char *path)
{
    return open_as(path, O_RDONLY | O_DIRECTORY);
}

/* 0 where none of them tells what is there from what is not, of `path` and the same with "x"
 * behind it; else the number of the one that does. */
static int tell_apart(const char *path)
{
    static int (*const asks[])(const char *) = {
        ask_by_stat,      ask_by_lstat,    ask_beside_the_flag, ask_by_statx,
        ask_by_access,    ask_by_faccessat, ask_by_readlink,    ask_by_statfs,
        ask_by_opening,   ask_by_listing,  ask_by_path_descriptor
    };
    char missing[600];
    snprintf(missing, sizeof(missing), "%sx", path);
    for (size_t i = 0; i < sizeof(asks) / sizeof(asks[0]); i++) {
        int there = asks[i](path), not = asks[i](missing);
        if (there == 0 || there != not)
            return (int)i + 1;
    }
    return 0;
}

static int try_ask_about_file(void)
{
    return tell_apart(other);
}

static int try_ask_about_folder(void)
{
    return tell_apart(kit.dir);
}

static int try_ask_about_system(void)
{
    return tell_apart("/etc/passwd");
}

/* ... and from the descriptor of a folder, to which the same calls are relative. */
static int try_ask_from_descriptor(void)
{
    struct stat st;
    return fstatat(folder, "other", &st, 0) == 0 || openat(folder, "other", O_RDONLY) >= 0 ||
           fstatat(folder, "other", &st, AT_EMPTY_PATH) == 0;
}

static int try_getcwd(void)
{
    char current[512];
    return getcwd(current, sizeof(current)) ? 0 : errno;
}

static int try_stat_own(void)
{
    struct stat by_path, by_descriptor;
    int fd = open(own, O_RDONLY);
    if (fd < 0 || fstat(fd, &by_descriptor) < 0 || lstat(own, &by_path) < 0)
        return errno;
    return by_path.st_ino == by_descriptor.st_ino && by_path.st_size == 3 ? 0 : EINVAL;
}

/* ---- files beneath the folder -------------------------------- */

static int try_read_beneath(void)
{
    char text[8] = "";
    int fd = open(beside, O_RDONLY);
    return fd >= 0 && read(fd, text, 7) == 6 && strcmp(text, "beside") == 0 ? 0 : EIO;
}

static int try_leave_folder(void)
{
    static const char *const names[] = { "in/link",         "in/up/other", "in/.hidden/key",
                                         "in/below/../own", "in/fifo",     "in/below" };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (open_as(exchange_path(&kit, names[i]), O_RDONLY) != EACCES)
            return (int)i + 1;
    return 0;
}

static int try_write_beneath(void)
{
    return open_as(beside, O_RDWR);
}

/* ---- memory that is code -------------------------------- */

static int try_map_code(void)
{
    return mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                0) == MAP_FAILED
               ? errno
               : 0;
}

static int try_map_file_as_code(void)
{
    int fd = open(own, O_RDONLY);
    return mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED ? errno : 0;
}

static int try_make_code(void)
{
    void *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? EIO : code_of(mprotect(memory, 4096, PROT_READ | PROT_EXEC));
}

enum { ANYWHERE, LANDLOCK, FILTERED, DOOR };

static const struct {
    int (*attempt)(void);
    int writing, fails; /* errno; 0: it must go well */
    int needs;          /* what holds it             */
} trials[] = {
    { try_read_own, 0, 0, ANYWHERE },           { try_read_own, 1, EACCES, DOOR },
    { try_make, 1, 0, ANYWHERE },               { try_core, 0, EFBIG, ANYWHERE },
    { try_many_files, 0, EMFILE, ANYWHERE },    { try_read_other, 0, EACCES, LANDLOCK },
    { try_read_other, 1, EACCES, LANDLOCK },    { try_make_elsewhere, 1, EACCES, LANDLOCK },
    { try_unlink_other, 1, EPERM, FILTERED },   { try_write_own, 0, EPERM, FILTERED },
    { try_make, 0, EPERM, FILTERED },           { try_connect, 0, EPERM, FILTERED },
    { try_connect, 1, EPERM, FILTERED },        { try_exec, 0, EPERM, FILTERED },
    { try_exec, 1, EPERM, FILTERED },           { try_fork, 0, EPERM, FILTERED },
    { try_kill, 1, EPERM, FILTERED },           { try_trace, 0, EPERM, FILTERED },
    { try_memory, 0, ENOMEM, FILTERED },        { try_ask_about_file, 0, 0, DOOR },
    { try_ask_about_file, 1, 0, DOOR },         { try_ask_about_folder, 0, 0, DOOR },
    { try_ask_about_system, 0, 0, DOOR },       { try_ask_about_system, 1, 0, DOOR },
    { try_ask_from_descriptor, 0, 0, DOOR },    { try_getcwd, 0, EPERM, FILTERED },
    { try_stat_own, 0, 0, ANYWHERE },           { try_read_beneath, 0, 0, DOOR },
    { try_read_beneath, 1, EIO, DOOR },         { try_leave_folder, 0, 0, DOOR },
    { try_write_beneath, 0, EPERM, DOOR },      { try_write_beneath, 1, EACCES, DOOR },
    { try_map_code, 0, EPERM, FILTERED },       { try_map_code, 1, EPERM, FILTERED },
    { try_map_file_as_code, 0, EPERM, FILTERED }, { try_make_code, 0, EPERM, FILTERED },
};
#define N_TRIALS (int)(sizeof(trials) / sizeof(trials[0]))

static int enter_as_converters_do(const char *file, int writing)
{
    static brc_door door;
    brc_error err = BRC_ERROR_INIT;
    int status = 0;
    int rc = brc_door_init(&door, file, writing, &err);
    if (rc == BRC_OK && brc_sandbox_has_door())
        rc = brc_door_keep(&door, &status, &err);
    if (rc == 1)
        _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 254);
    return rc < 0 ? rc : brc_sandbox_enter(file, writing, &err);
}

/* The result of the attempt in a process that has entered the sandbox; -1: it could not enter. */
static int attempt_inside(int (*attempt)(void), const char *file, int writing)
{
    int status = 0;
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0)
        _exit(enter_as_converters_do(file, writing) < 0 ? 255 : attempt());
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_msg(WIFEXITED(status), "it ended with status %x", status);
    return WEXITSTATUS(status) == 255 ? -1 : WEXITSTATUS(status);
}

CASE("limits", .setup = start_files, .teardown = stop_files);

LOOP(each_limit_holds, 0, N_TRIALS)
{
    int needs = trials[_i].needs;
    if ((needs == LANDLOCK && !has_landlock()) || (needs == FILTERED && watched()) ||
        (needs == DOOR && !brc_sandbox_has_door()))
        return;
    int seen = attempt_inside(trials[_i].attempt, trials[_i].writing ? fresh : own,
                              trials[_i].writing);
    ck_assert_msg(seen == trials[_i].fails, "%d (%s) instead of %d", seen, strerror(seen),
                  trials[_i].fails);
}

/* Each of them goes well outside, or the tests above say nothing. */
TEST(nothing_holds_outside)
{
    static int (*const attempts[])(void) = { try_read_other, try_write_own, try_make_elsewhere,
                                             try_connect,    try_fork,      try_kill,
                                             try_many_files, try_getcwd,    try_map_code,
                                             try_make_code,  try_read_beneath };
    for (size_t i = 0; i < sizeof(attempts) / sizeof(attempts[0]); i++)
        ck_assert_msg(attempts[i]() == 0, "attempt %zu: %s", i, strerror(errno));
}

/* Nor would the questions say anything if they told nothing outside. */
TEST(questions_are_answered_outside)
{
    ck_assert_int_ne(try_ask_about_file(), 0);
    ck_assert_int_ne(try_ask_from_descriptor(), 0);
    ck_assert_int_ne(try_leave_folder(), 0);
}

static int crash(void)
{
    raise(SIGSEGV);
    return 0;
}

static int close_the_door(void)
{
    close(BRC_DOOR_FD);
    return open_as(own, O_RDONLY);
}

static int ask_nonsense(void)
{
    static char path[9000];
    memset(path, 'x', sizeof(path) - 1);
    if (open_as(path, O_RDONLY) != ENAMETOOLONG || open_as("", O_RDONLY) != ENOENT)
        return 1;
    for (int i = 0; i < 1000; i++)
        if (send(BRC_DOOR_FD, path, (size_t)i * 9, MSG_NOSIGNAL) < 0 && i == 0)
            return 2;
    return 0;
}

/* Whatever the process inside does, the one outside ends with it, and says how it ended. */
TEST(who_keeps_the_door_goes_with_the_other)
{
    if (!brc_sandbox_has_door())
        return;
    ck_assert_int_eq(attempt_inside(crash, own, 0), 254);
    ck_assert_int_eq(attempt_inside(close_the_door, own, 0), EACCES);
    (void)attempt_inside(ask_nonsense, own, 0);
    ck_assert_int_eq(attempt_inside(try_read_beneath, own, 0), 0);
}

TEST(a_file_that_is_not_there)
{
    snprintf(own, sizeof(own), "%s", exchange_path(&kit, "in/nothing"));
    if (brc_sandbox_has_door())
        ck_assert_int_eq(attempt_inside(try_read_own, own, 0), ENOENT);
    else if (has_landlock())
        ck_assert_int_eq(attempt_inside(try_read_own, own, 0), -1);
}
