/* Files and directories: POSIX calls with the library's errors. */
#include "file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "alloc.h"
#include "buf.h"
#include "error.h"

/* ==== file ================================ */

#define READ_STEP ((size_t)64 << 10)

/* ---- reading ------------------------------------------------------------------ */

/* Reads to the end of the file, whatever size was reported: the file may be a pipe, or change
 * meanwhile. */
static int read_file_to_end(brc_buf *out, int fd, const char *path, brc_error *err)
{
    for (;;) {
        size_t room = out->cap - out->len;
        if (out->limit > 0 && room > out->limit - out->len)
            room = out->limit - out->len;
        uint8_t beyond; /* where the buffer is full: one byte more, or the end */
        uint8_t *to = room > 0 ? out->data + out->len : &beyond;
        size_t n;
        BRC_TRY(brc_fd_read(fd, to, room > 0 ? room : 1, &n, path, err));
        if (n == 0)
            return BRC_OK;
        if (room > 0) {
            out->len += n;
        } else {
            BRC_TRY(brc_buf_byte(out, beyond, err));
            size_t step = READ_STEP;
            if (out->limit > 0 && step > out->limit - out->len)
                step = out->limit - out->len;
            if (!(out->flags & BRC_BUF_FIXED))
                BRC_TRY(brc_buf_reserve(out, step, err));
        }
    }
}

int brc_file_read(brc_buf *out, const char *path, brc_error *err)
{
    size_t before = out->len;
    struct stat st;
    int rc = BRC_OK;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return brc_fail_os(err, errno, "cannot open", path);
    if (fstat(fd, &st) < 0)
        BRC_GO(brc_fail_os(err, errno, "cannot read", path));
    if (S_ISDIR(st.st_mode))
        BRC_GO(brc_fail_os(err, EISDIR, "cannot read", path));
    if (S_ISREG(st.st_mode) && st.st_size > 0) {
        size_t size;
        if (!brc_to_size((uint64_t)st.st_size, &size))
            BRC_GO(brc_fail(err, BRC_ELIMIT, "%s is too large for memory", path));
        BRC_GO(brc_buf_reserve(out, size, err));
    }
    rc = read_file_to_end(out, fd, path, err);
done:
    if (rc < 0)
        out->len = before;
    if (rc == BRC_ELIMIT)
        brc_context(err, "reading %s", path);
    close(fd);
    return rc;
}

/* ---- writing ------------------------------------------------------------------ */

int brc_file_write(const char *path, const void *data, size_t len, brc_error *err)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0)
        return brc_fail_os(err, errno, "cannot create", path);
    int rc = brc_fd_write(fd, data, len, path, err);
    if (close(fd) < 0 && rc == BRC_OK)
        rc = brc_fail_os(err, errno, "cannot write", path);
    if (rc < 0)
        unlink(path);
    return rc;
}

/* ---- directories ---------------------------------------------------------------- */

int brc_dir_make(const char *path, brc_error *err)
{
    if (mkdir(path, 0777) < 0)
        return brc_fail_os(err, errno, "cannot make", path);
    return BRC_OK;
}

int brc_dir_make_parents(const char *path, size_t root, brc_error *err)
{
    char *dir;
    int rc = BRC_OK;
    if (root > strlen(path))
        return BRC_OK;
    BRC_TRY(brc_dup(&dir, path, err));
    size_t first = root + (dir[root] == '/'); /* the root itself is the caller's */
    for (char *slash = strchr(dir + first, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        if (mkdir(dir, 0777) < 0) {
            int errnum = errno;
            if (brc_file_kind(dir) != 1)
                BRC_GO(brc_fail_os(err, errnum, "cannot make", dir));
        }
        *slash = '/';
    }
done:
    free(dir);
    return rc;
}

int brc_file_kind(const char *path)
{
    struct stat st;
    if (stat(path, &st) < 0)
        return errno == ENOENT || errno == ENOTDIR ? 0 : 3;
    return S_ISDIR(st.st_mode) ? 1 : S_ISREG(st.st_mode) ? 2 : 3;
}

typedef struct name_list {
    char **names;
    size_t n, cap;
} name_list;

static void free_names(name_list *list)
{
    for (size_t i = 0; i < list->n; i++)
        free(list->names[i]);
    free(list->names);
}

static int add_name(name_list *list, const char *name, brc_error *err)
{
    void *grown = list->names;
    BRC_TRY(brc_grow_array(&grown, &list->cap, list->n + 1, sizeof(*list->names), err));
    list->names = grown;
    BRC_TRY(brc_dup(&list->names[list->n], name, err));
    list->n++;
    return BRC_OK;
}

/* Calls `check` after every thousand names. n: names so far. */
static int ask_check(const brc_dir_check *check, size_t n, brc_error *err)
{
    return check && n % 1024 == 1023 ? check->check(check->ctx, err) : BRC_OK;
}

static int list_dir(name_list *list, const char *path, const brc_dir_check *check, brc_error *err)
{
    int rc = BRC_OK;
    DIR *dir = opendir(path);
    if (!dir)
        return brc_fail_os(err, errno, "cannot list", path);
    for (;;) {
        BRC_GO(ask_check(check, list->n, err));
        errno = 0;
        const struct dirent *entry = readdir(dir);
        if (!entry)
            break;
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            BRC_GO(add_name(list, entry->d_name, err));
    }
    if (errno != 0)
        rc = brc_fail_os(err, errno, "cannot list", path);
done:
    closedir(dir);
    return rc;
}

static int compare_file_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

int brc_dir_each_checked(const char *path,
                         int (*found)(void *ctx, const char *name, brc_error *err), void *ctx,
                         const brc_dir_check *check, brc_error *err)
{
    name_list list = { NULL, 0, 0 };
    /* The directory is closed before the first call: `found` may walk deeper, and descriptors are
     * few. */
    int rc = list_dir(&list, path, check, err);
    if (rc == BRC_OK && list.n > 1)
        qsort(list.names, list.n, sizeof(*list.names), compare_file_names);
    for (size_t i = 0; rc >= 0 && i < list.n; i++) {
        rc = ask_check(check, i, err);
        if (rc >= 0)
            rc = found(ctx, list.names[i], err);
    }
    free_names(&list);
    return rc < 0 ? rc : BRC_OK;
}

int brc_dir_each(const char *path, int (*found)(void *ctx, const char *name, brc_error *err),
                 void *ctx, brc_error *err)
{
    return brc_dir_each_checked(path, found, ctx, NULL, err);
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *where)
{
    (void)st;
    (void)type;
    (void)where;
    (void)remove(path); /* a leftover file does no harm */
    return 0;
}

void brc_tree_remove(const char *path)
{
    (void)nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

int brc_path_join(char **out, const char *dir, const char *name, brc_error *err)
{
    brc_buf path = BRC_BUF_INIT;
    size_t len = strlen(dir);
    const char *between = len == 0 || dir[len - 1] == '/' ? "" : "/";
    *out = NULL;
    int rc = brc_buf_printf(&path, err, "%s%s%s", dir, between, name);
    if (rc == BRC_OK)
        rc = brc_buf_take_text(&path, out, err);
    brc_buf_dispose(&path);
    return rc;
}

/* ==== fd ================================ */

/* Descriptors, see file.h. */

/* The most bytes of one call: Linux reads and writes less than 2 GiB at a time. */
#define FD_MOST ((size_t)1 << 30)

int brc_fd_read(int fd, void *to, size_t cap, size_t *n, const char *name, brc_error *err)
{
    ssize_t got;
    do
        got = read(fd, to, cap < FD_MOST ? cap : FD_MOST);
    while (got < 0 && errno == EINTR);
    *n = got > 0 ? (size_t)got : 0;
    return got < 0 ? brc_fail_os(err, errno, "cannot read", name) : BRC_OK;
}

int brc_fd_read_at(int fd, void *to, size_t len, uint64_t at, const char *name, brc_error *err)
{
    uint8_t *dst = to;
    while (len > 0) {
        ssize_t n = pread(fd, dst, len < FD_MOST ? len : FD_MOST, (off_t)at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return brc_fail_os(err, errno, "cannot read", name);
        if (n == 0)
            return brc_fail(err, BRC_EINVAL, "%s became shorter while it was read", name);
        dst += n;
        at += (uint64_t)n;
        len -= (size_t)n;
    }
    return BRC_OK;
}

/* Writes without SIGPIPE. The signal goes to the thread that writes: it is blocked there, and
 * consumed if this write raised it. A signal that was pending before is left alone. */
ptrdiff_t brc_fd_write_some(int fd, const void *from, size_t len)
{
    sigset_t pipe_only, before, pending;
    int was_pending, sig;

    sigemptyset(&pipe_only);
    sigaddset(&pipe_only, SIGPIPE);
    sigemptyset(&pending);
    sigpending(&pending);
    was_pending = sigismember(&pending, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_only, &before);
    ssize_t n = write(fd, from, len < FD_MOST ? len : FD_MOST);
    int errnum = errno;
    if (n < 0 && errnum == EPIPE && !was_pending) {
        sigpending(&pending);
        if (sigismember(&pending, SIGPIPE))
            sigwait(&pipe_only, &sig);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = errnum;
    return n;
}

int brc_fd_write(int fd, const void *from, size_t len, const char *name, brc_error *err)
{
    const uint8_t *at = from;
    while (len > 0) {
        ptrdiff_t n = brc_fd_write_some(fd, at, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return brc_fail_os(err, errno, "cannot write", name);
        at += n;
        len -= (size_t)n;
    }
    return BRC_OK;
}

int brc_fd_write_at(int fd, const void *from, size_t len, uint64_t at, const char *name,
                    brc_error *err)
{
    const uint8_t *src = from;
    while (len > 0) {
        ssize_t n = pwrite(fd, src, len < FD_MOST ? len : FD_MOST, (off_t)at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return brc_fail_os(err, errno, "cannot write", name);
        src += n;
        at += (uint64_t)n;
        len -= (size_t)n;
    }
    return BRC_OK;
}

/* ==== own file ================================ */

/*
 * Finds out whether a file to read or write is the repository itself, or one of its journals.
 *
 * These functions open no file: POSIX drops all locks that a process has on a file when the process
 * closes any descriptor of the file, and SQLite's locks are such locks.
 */

static int same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Returns whether both names are the same place in one directory, even without a file there: a file
 * made under one name would be found under the other. */
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

/* Returns 1 if `file` is the repository's file with this ending, else 0. */
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
