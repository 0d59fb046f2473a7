/* What a converter can no longer do: each is tried in a process of its own. */
#include <check.h>
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
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../src/convert/lib/sandbox.h"
#include "../kit/exchange_kit.h"
#include "../kit/sanitized.h"

Suite *sandbox_suite(void);

static exchange_kit kit;
static char own[512], other[512], fresh[512];

static void start_files(void)
{
    exchange_folder_start(&kit);
    snprintf(own, sizeof(own), "%s", exchange_text(&kit, "in/own", "own"));
    snprintf(other, sizeof(other), "%s", exchange_text(&kit, "other", "other"));
    snprintf(fresh, sizeof(fresh), "%s", exchange_path(&kit, "in/fresh"));
}

static void stop_files(void)
{
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
    for (int i = 0; i < 100; i++)
        if (open(own, O_RDONLY) < 0)
            return errno;
    return 0;
}

enum { ANYWHERE, LANDLOCK, FILTERED };

static const struct {
    int (*attempt)(void);
    int writing, fails; /* errno; 0: it must go well */
    int needs;          /* what holds it             */
} trials[] = {
    { try_read_own, 0, 0, ANYWHERE },           { try_read_own, 1, 0, ANYWHERE },
    { try_make, 1, 0, ANYWHERE },               { try_core, 0, EFBIG, ANYWHERE },
    { try_many_files, 0, EMFILE, ANYWHERE },    { try_read_other, 0, EACCES, LANDLOCK },
    { try_read_other, 1, EACCES, LANDLOCK },    { try_make_elsewhere, 1, EACCES, LANDLOCK },
    { try_unlink_other, 1, EPERM, FILTERED },  { try_write_own, 0, EPERM, FILTERED },
    { try_make, 0, EPERM, FILTERED },           { try_connect, 0, EPERM, FILTERED },
    { try_connect, 1, EPERM, FILTERED },        { try_exec, 0, EPERM, FILTERED },
    { try_exec, 1, EPERM, FILTERED },           { try_fork, 0, EPERM, FILTERED },
    { try_kill, 1, EPERM, FILTERED },           { try_trace, 0, EPERM, FILTERED },
    { try_memory, 0, ENOMEM, FILTERED },
};
#define N_TRIALS (int)(sizeof(trials) / sizeof(trials[0]))

/* What the attempt gives in a process that has entered; -1: it could not. */
static int attempt_inside(int (*attempt)(void), const char *file, int writing)
{
    int status = 0;
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        brc_error err = BRC_ERROR_INIT;
        _exit(brc_sandbox_enter(file, writing, &err) < 0 ? 255 : attempt());
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_msg(WIFEXITED(status), "it ended with status %x", status);
    return WEXITSTATUS(status) == 255 ? -1 : WEXITSTATUS(status);
}

START_TEST(each_limit_holds)
{
    int needs = trials[_i].needs;
    if ((needs == LANDLOCK && !has_landlock()) || (needs == FILTERED && watched()))
        return;
    int seen = attempt_inside(trials[_i].attempt, trials[_i].writing ? fresh : own,
                              trials[_i].writing);
    ck_assert_msg(seen == trials[_i].fails, "%d (%s) instead of %d", seen, strerror(seen),
                  trials[_i].fails);
}
END_TEST

/* Each of them goes well outside, or the tests above say nothing. */
START_TEST(nothing_holds_outside)
{
    static int (*const attempts[])(void) = { try_read_other, try_write_own, try_make_elsewhere,
                                             try_connect,    try_fork,      try_kill,
                                             try_many_files };
    for (size_t i = 0; i < sizeof(attempts) / sizeof(attempts[0]); i++)
        ck_assert_msg(attempts[i]() == 0, "attempt %zu: %s", i, strerror(errno));
}
END_TEST

START_TEST(a_file_that_is_not_there)
{
    if (has_landlock())
        ck_assert_int_eq(attempt_inside(try_read_own, exchange_path(&kit, "nothing"), 0), -1);
}
END_TEST

Suite *sandbox_suite(void)
{
    Suite *s = suite_create("sandbox");
    TCase *t = tcase_create("limits");
    tcase_add_checked_fixture(t, start_files, stop_files);
    tcase_add_loop_test(t, each_limit_holds, 0, N_TRIALS);
    tcase_add_test(t, nothing_holds_outside);
    tcase_add_test(t, a_file_that_is_not_there);
    suite_add_tcase(s, t);
    return s;
}
