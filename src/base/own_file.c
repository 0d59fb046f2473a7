/*
 * Is a file that is to be read or written the repository, or one of its journals?
 *
 * Nothing is opened here: POSIX drops all locks that a process has on a file when it
 * closes any descriptor of it, and SQLite's locks are such locks.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "buf.h"
#include "error.h"

static int same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Are both names the same in one directory? Also if there is no such file: one made
 * under this name would be found under the other. */
static int same_place(const char *a, const char *b, brc_error *err)
{
    const char *names[2] = { a, b };
    const char *base[2];
    struct stat dirs[2];
    for (int i = 0; i < 2; i++) {
        const char *slash = strrchr(names[i], '/');
        brc_buf dir = BRC_BUF_INIT;
        base[i] = slash != NULL ? slash + 1 : names[i];
        int rc = brc_buf_append(&dir, names[i], (size_t)(base[i] - names[i]), err);
        if (rc == BRC_OK)
            rc = brc_buf_text(&dir, ".", err);
        if (rc == BRC_OK)
            rc = brc_buf_terminate(&dir, err);
        int known = rc == BRC_OK && stat((const char *)dir.data, &dirs[i]) == 0;
        brc_buf_dispose(&dir);
        BRC_TRY(rc);
        if (!known)
            return 0;
    }
    return same_file(&dirs[0], &dirs[1]) && strcmp(base[0], base[1]) == 0;
}

/* 1 if `file` is the repository's file with this ending, else 0. */
static int is_own_file(const char *repository, const char *ending, const char *file,
                       const struct stat *st, brc_error *err)
{
    brc_buf name = BRC_BUF_INIT;
    struct stat own;
    int rc = brc_buf_printf(&name, err, "%s%s", repository, ending);
    if (rc == BRC_OK)
        rc = brc_buf_terminate(&name, err);
    if (rc == BRC_OK && st != NULL && stat((const char *)name.data, &own) == 0)
        rc = same_file(st, &own);
    else if (rc == BRC_OK)
        rc = same_place((const char *)name.data, file, err);
    brc_buf_dispose(&name);
    return rc;
}

static int check_own_files(const char *repository, const char *file, brc_error *err)
{
    static const char *const endings[] = { "", "-journal", "-wal", "-shm" };
    struct stat st;
    int there = stat(file, &st) == 0;
    for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
        int own = is_own_file(repository, endings[i], file, there ? &st : NULL, err);
        if (own < 0)
            return own;
        if (own)
            return brc_fail(err, BRC_EINVAL, "%s is %s: choose another file", file,
                            i == 0 ? "the repository itself" : "the repository's own journal");
    }
    return BRC_OK;
}

int brc_check_file(const char *repository, const char *file, brc_error *err)
{
    if (repository == NULL || file == NULL)
        return brc_fail(err, BRC_EINVAL, "a repository and a file name are needed");
    BRC_TRY(check_own_files(repository, file, err));
    /* SQLite's journals are beside the file that a link leads to. */
    char *real = realpath(repository, NULL);
    int rc = real != NULL ? check_own_files(real, file, err) : BRC_OK;
    free(real);
    return rc;
}
