/* Limits of a converter's process, see sandbox.h. */
#include "sandbox.h"

#include <errno.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* A file's chunk may have 2 GiB, and a library holds it decoded, and what it converts it to. */
#define MEMORY_MOST ((rlim_t)8 << 30)
#define MEMORY_LEAST ((rlim_t)1 << 30)
#define OPEN_FILES 1500

/* Sanitizers take the whole address space, and look at themselves from a second process, which
 * reads /proc: with them there are limits alone. */
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

/* No lower than what the process has been given. */
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

/* As many as there may be. */
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

/* As much as the machine has, within the two. */
static rlim_t memory_limit(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    rlim_t memory = pages > 0 && size > 0 ? (rlim_t)pages * (rlim_t)size : MEMORY_LEAST;
    if (memory > MEMORY_MOST)
        memory = MEMORY_MOST;
    return memory < MEMORY_LEAST ? MEMORY_LEAST : memory;
}

/* Somebody may send either stream into a file. */
static int writes_to_file(void)
{
    struct stat st;
    return (fstat(STDOUT_FILENO, &st) == 0 && S_ISREG(st.st_mode)) ||
           (fstat(STDERR_FILENO, &st) == 0 && S_ISREG(st.st_mode));
}

int brc_sandbox_has_door(void)
{
#ifdef __linux__
    return !SANITIZED && brc_sandbox_can_trap() && prctl(PR_GET_SECCOMP, 0, 0, 0, 0) >= 0 &&
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
        return BRC_OK; /* then there is neither of the two */
    BRC_TRY(brc_sandbox_paths(file, writing, door, err));
    return brc_sandbox_calls(writing, door, err);
}
