/* What the VFS refuses, and why: see vfs.h. */
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>

#include "journal_check.h"
#include "vfs_parts.h"
#include "wal_check.h"

int brc_vfs_refuse(brc_vfs *v, int code, const char *form, ...)
{
    char why[sizeof(v->refusal.message)];
    va_list args;
    va_start(args, form);
    vsnprintf(why, sizeof(why), form, args);
    va_end(args);
    v->refused = brc_fail(&v->refusal, code, "%s", why);
    return BRC_VFS_REFUSED;
}

static int refuse_left(brc_vfs *v, const char *ending, const char *why)
{
    int is_journal = ending[1] == 'j';
    return brc_vfs_refuse(v, BRC_ECORRUPT,
                          "%s%s %s; it was neither %s nor deleted: look at the file as it stands"
                          " with --no-recover, or move the %s away",
                          v->shown, ending, why, is_journal ? "played back" : "read",
                          is_journal ? "journal" : "file");
}

int brc_vfs_refuse_journal(brc_vfs *v, int verdict)
{
    switch (verdict) {
    case BRC_JOURNAL_NAMES_OTHER:
        return refuse_left(v, BRC_VFS_JOURNAL,
                                   "names another file, which playing it back would delete, so it "
                                   "does not belong to this file");
    case BRC_JOURNAL_NONE:
        return refuse_left(v, BRC_VFS_JOURNAL, "is not a rollback journal");
    case BRC_JOURNAL_DAMAGED:
        return refuse_left(v, BRC_VFS_JOURNAL,
                                   "is truncated or damaged, and cannot undo what an interrupted "
                                   "writer left half done");
    case BRC_JOURNAL_OTHER_STATE:
        return refuse_left(v, BRC_VFS_JOURNAL,
                                   "belongs to another state of the file (was a copy put in the "
                                   "file's place?)");
    case BRC_JOURNAL_UNPROVEN:
        return brc_vfs_refuse(v, BRC_ECORRUPT,
                              "%s%s does not hold the file's first page, so nothing proves that it "
                              "belongs to the file as it is; it was neither played back nor "
                              "deleted: if a program that is not breccia was killed while it "
                              "wrote, open the file with sqlite3, which plays the journal back; "
                              "otherwise move the journal away", v->shown, BRC_VFS_JOURNAL);
    default:
        return brc_vfs_refuse(v, BRC_EFORMAT,
                              "%s is not a repository yet: the 'breccia init' that began it was "
                              "interrupted (%s%s says so); look at it with --no-recover, or remove "
                              "both and begin again", v->shown, v->shown, BRC_VFS_JOURNAL);
    }
}

int brc_vfs_refuse_wal(brc_vfs *v, int verdict)
{
    switch (verdict) {
    case BRC_WAL_NONE:
        return refuse_left(v, BRC_VFS_WAL, "is not a log of SQLite's WAL mode");
    case BRC_WAL_DAMAGED:
        return refuse_left(v, BRC_VFS_WAL,
                                   "is damaged, and what was committed behind the damage would be "
                                   "lost");
    default:
        return refuse_left(v, BRC_VFS_WAL,
                                   "belongs to another state of the file (was a copy put in the "
                                   "file's place?)");
    }
}

int brc_vfs_check_plain(brc_vfs *v, const char *path, const char *ending)
{
    struct stat st;
    if (lstat(path, &st) != 0)
        return SQLITE_OK; /* it is gone, or opening it will say why */
    if (!S_ISREG(st.st_mode))
        return refuse_left(v, ending,
                                   S_ISLNK(st.st_mode)
                                       ? "is a symbolic link, so it is not this file's own"
                                       : "is not a regular file");
    if (st.st_nlink > 1)
        return refuse_left(v, ending,
                                   "has another name as well (a hard link), so it may be "
                                   "something else");
    return SQLITE_OK;
}

int brc_vfs_refusal(brc_vfs *v, brc_error *err)
{
    int code = v->refused;
    if (code != BRC_OK)
        brc_fail(err, code, "%s", v->refusal.message);
    v->refused = BRC_OK;
    return code;
}
