/*
 * The part of the file system that a converter sees, by Landlock, whose calls have no
 * functions in the C library. What it needs beside its file it has open already.
 */
#include "sandbox.h"

#if defined(__linux__) && defined(__has_include)
#if __has_include(<linux/landlock.h>)
#include <sys/syscall.h>
#if defined(SYS_landlock_create_ruleset)
#define HAS_LANDLOCK 1
#endif
#endif
#endif

#ifndef HAS_LANDLOCK

int brc_sandbox_paths(const char *file, int writing, int has_door, brc_error *err)
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

/* The version of the kernel's interface; 0: it has none. */
static int landlock_version(void)
{
    long version =
        syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    return version > 0 ? (int)version : 0;
}

/* All that this version and these headers know is refused, but for what is allowed below. */
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

/* The folder in which a file is to be made, and its contents be changed. */
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

int brc_sandbox_paths(const char *file, int writing, int has_door, brc_error *err)
{
    int version = landlock_version(), rc = BRC_OK;
    struct landlock_ruleset_attr attr = { .handled_access_fs = handled_rights(version) };

    if (version == 0)
        return BRC_OK;
    int rules = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr.handled_access_fs), 0);
    if (rules < 0)
        return brc_fail_os(err, errno, "cannot limit", "this process");
    if (has_door)
        rc = BRC_OK; /* whoever keeps that opens them */
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
