/*
 * Writes a tree as a directory, under its temporary name until it is complete. Any number of
 * threads make files in it at once.
 *
 * No path is followed from outside: the directory is opened once, and each folder below is opened
 * in the one above it, by a name without a slash and without following links. So nobody who
 * replaces a folder by a link while the tree is written gets a file written elsewhere.
 */
#include "zarr_hierarchy.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../base/alloc.h"
#include "../../base/file.h"
#include "../../base/pool.h"
#include "../../work/session.h"
#include "../../zarr/transfer.h"
#include "../dest.h"

/* ==== tree dir ================================ */

/* Folders that stay open, because the next file is usually in the same one. */
enum { OPEN_FOLDERS = 32 };

typedef struct open_folder {
    brc_buf path; /* "a/b", not terminated           */
    int fd;       /* -1: nothing is open             */
    unsigned users;
    uint64_t used; /* when it was used last: a count */
} open_folder;

typedef struct dir_tree {
    brc_tree_out tree;
    brc_dest place;
    int top; /* the directory itself; -1: it has not been made */
    brc_lock *lock; /* of all that follows: */
    open_folder open[OPEN_FOLDERS];
    uint64_t count;
} dir_tree;

/* A folder in use: one that stays open, the top, or one that is closed after this use. */
typedef struct held_folder {
    int fd;
    open_folder *open; /* NULL: not one that stays open */
} held_folder;

/* Fails with the whole path of a file or folder of the tree. */
static int tree_fail_os(const dir_tree *t, int errnum, const char *what, const char *path,
                        size_t len, brc_error *err)
{
    brc_buf name = BRC_BUF_INIT;
    int rc = brc_buf_printf(&name, err, "%s/%.*s", t->place.temp, (int)len, path);
    if (rc == BRC_OK)
        rc = brc_buf_terminate(&name, err);
    if (rc == BRC_OK)
        rc = brc_fail_os(err, errnum, what, (const char *)name.data);
    brc_buf_dispose(&name);
    return rc;
}

/* ---- folders -------------------------------- */

/* Holds a folder that is open. Returns 0 if it is not. */
static int hold_open(dir_tree *t, const char *path, size_t len, held_folder *out)
{
    int found = 0;
    brc_lock_enter(t->lock);
    for (int i = 0; i < OPEN_FOLDERS && !found; i++) {
        open_folder *f = &t->open[i];
        found = f->fd >= 0 && f->path.len == len && memcmp(f->path.data, path, len) == 0;
        if (!found)
            continue;
        f->users++;
        f->used = ++t->count;
        *out = (held_folder){f->fd, f};
    }
    brc_lock_leave(t->lock);
    return found;
}

/* Returns the folder that nobody uses and that was used longest ago; NULL: all are in use. */
static open_folder *find_idle(dir_tree *t)
{
    open_folder *best = NULL;
    for (int i = 0; i < OPEN_FOLDERS; i++) {
        open_folder *f = &t->open[i];
        if (f->users == 0 && (best == NULL || f->used < best->used))
            best = f;
    }
    return best;
}

/* Lets a folder stay open, if there is room. It may be open twice: another thread may have opened
 * it meanwhile. */
static void keep_folder_open(dir_tree *t, const char *path, size_t len, held_folder *held)
{
    int before = -1;
    brc_lock_enter(t->lock);
    open_folder *f = find_idle(t);
    if (f != NULL) {
        f->path.len = 0;
        before = f->fd;
        f->fd = -1;
    }
    if (f != NULL && brc_buf_append(&f->path, path, len, NULL) == BRC_OK) {
        f->fd = held->fd;
        f->users = 1;
        f->used = ++t->count;
        held->open = f;
    }
    brc_lock_leave(t->lock);
    if (before >= 0)
        close(before);
}

static void let_folder_go(dir_tree *t, const held_folder *held)
{
    if (held->open != NULL) {
        brc_lock_enter(t->lock);
        held->open->users--;
        brc_lock_leave(t->lock);
    } else if (held->fd != t->top) {
        close(held->fd);
    }
}

static size_t start_of_name(const char *path, size_t len)
{
    while (len > 0 && path[len - 1] != '/')
        len--;
    return len;
}

/* Returns the length of the path of the folder above; 0: the top. */
static size_t above_of(const char *path, size_t len)
{
    const size_t start = start_of_name(path, len);
    return start > 0 ? start - 1 : 0;
}

/* Copies the last name of a path. Returns 0 if it cannot be the name of a file, or if the whole
 * path is too long for programs that open files by their paths, as the removal of the tree does. */
static int name_of_file(const dir_tree *t, const char *path, size_t len, char name[NAME_MAX + 1])
{
    const size_t start = start_of_name(path, len), n = len - start;
    if (n == 0 || n > NAME_MAX || start == 1)
        return 0;
    if (strlen(t->place.temp) + 1 + len >= PATH_MAX)
        return 0;
    memcpy(name, path + start, n);
    name[n] = '\0';
    return strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

/* Opens a folder in the one that is held, which is made if it is not there, and holds it. */
static int step_down(dir_tree *t, const char *path, size_t len, held_folder *held,
                     brc_error *err)
{
    char name[NAME_MAX + 1];
    if (!name_of_file(t, path, len, name))
        return tree_fail_os(t, ENAMETOOLONG, "cannot make", path, len, err);
    if (mkdirat(held->fd, name, 0777) < 0 && errno != EEXIST)
        return tree_fail_os(t, errno, "cannot make", path, len, err);
    const int fd = openat(held->fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return tree_fail_os(t, errno, "cannot make", path, len, err);
    let_folder_go(t, held);
    *held = (held_folder){fd, NULL};
    keep_folder_open(t, path, len, held);
    return BRC_OK;
}

/* Holds a folder, which is made with those above it if it is not there. */
static int hold_folder(dir_tree *t, const char *path, size_t len, held_folder *out,
                       brc_error *err)
{
    size_t at = len;
    *out = (held_folder){t->top, NULL};
    while (at > 0 && !hold_open(t, path, at, out))
        at = above_of(path, at);
    while (at < len) {
        at += at > 0; /* the slash */
        while (at < len && path[at] != '/')
            at++;
        const int rc = step_down(t, path, at, out, err);
        if (rc < 0) {
            let_folder_go(t, out);
            return rc;
        }
    }
    return BRC_OK;
}

/* ---- the tree -------------------------------- */

static int make_top(dir_tree *t, brc_error *err)
{
    BRC_TRY(brc_dir_make(t->place.temp, err));
    t->top = open(t->place.temp, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (t->top >= 0)
        return BRC_OK;
    const int errnum = errno;
    (void)rmdir(t->place.temp);
    return brc_fail_os(err, errnum, "cannot make", t->place.temp);
}

static int make_folder(brc_tree_out *tree, const char *path, brc_error *err)
{
    dir_tree *t = (dir_tree *)tree;
    const size_t len = strlen(path);
    char name[NAME_MAX + 1];
    held_folder above;
    int rc = BRC_OK;
    if (len == 0)
        return make_top(t, err);
    if (!name_of_file(t, path, len, name))
        return tree_fail_os(t, ENAMETOOLONG, "cannot make", path, len, err);
    BRC_TRY(hold_folder(t, path, above_of(path, len), &above, err));
    if (mkdirat(above.fd, name, 0777) < 0)
        rc = tree_fail_os(t, errno, "cannot make", path, len, err);
    let_folder_go(t, &above);
    return rc;
}

static int put_file(brc_tree_out *tree, const char *path, brc_span bytes, brc_error *err)
{
    dir_tree *t = (dir_tree *)tree;
    const size_t len = strlen(path);
    char name[NAME_MAX + 1];
    brc_error why = BRC_ERROR_INIT;
    held_folder above;
    if (!name_of_file(t, path, len, name))
        return tree_fail_os(t, ENAMETOOLONG, "cannot create", path, len, err);
    BRC_TRY(hold_folder(t, path, above_of(path, len), &above, err));
    const int fd = openat(above.fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    int errnum = fd < 0 ? errno : 0;
    let_folder_go(t, &above);
    if (fd < 0)
        return tree_fail_os(t, errnum, "cannot create", path, len, err);
    if (brc_fd_write_at(fd, bytes.data, bytes.len, 0, "", &why) < 0)
        errnum = why.detail != 0 ? why.detail : EIO;
    if (close(fd) < 0 && errnum == 0)
        errnum = errno;
    return errnum != 0 ? tree_fail_os(t, errnum, "cannot write", path, len, err) : BRC_OK;
}

/* Returns whether a path, which may be NULL, names the directory that was made. */
static int is_own_dir(const dir_tree *t, const char *path)
{
    struct stat own, there;
    return t->top >= 0 && path != NULL && fstat(t->top, &own) == 0 && lstat(path, &there) == 0 &&
           own.st_dev == there.st_dev && own.st_ino == there.st_ino;
}

static int fail_moved(const char *path, brc_error *err)
{
    return brc_fail(err, BRC_EIO, "%s was replaced while it was written: export again", path);
}

static int finish_dir(brc_tree_out *tree, brc_error *err)
{
    dir_tree *t = (dir_tree *)tree;
    if (!is_own_dir(t, t->place.temp))
        return fail_moved(t->place.temp, err);
    BRC_TRY(brc_dest_finish(&t->place, 0, err));
    return is_own_dir(t, t->place.path) ? BRC_OK : fail_moved(t->place.path, err);
}

/* Whatever has taken the place of the directory stays. */
static void close_dir(brc_tree_out *tree)
{
    dir_tree *t = (dir_tree *)tree;
    for (int i = 0; i < OPEN_FOLDERS; i++) {
        if (t->open[i].fd >= 0)
            close(t->open[i].fd);
        brc_buf_dispose(&t->open[i].path);
    }
    if (!is_own_dir(t, t->place.temp)) {
        free(t->place.temp);
        t->place.temp = NULL;
    }
    if (t->top >= 0)
        close(t->top);
    brc_dest_close(&t->place);
    brc_lock_free(t->lock);
    free(t);
}

int brc_tree_out_dir(brc_tree_out **out, const brc_session *s, const char *dest, brc_error *err)
{
    dir_tree *t;
    int rc;
    *out = NULL;
    BRC_TRY(brc_new((void **)&t, sizeof(*t), err));
    t->top = -1;
    for (int i = 0; i < OPEN_FOLDERS; i++)
        t->open[i].fd = -1;
    t->tree.any_thread = 1;
    t->tree.folder = make_folder;
    t->tree.put = put_file;
    t->tree.finish = finish_dir;
    t->tree.close = close_dir;
    BRC_GO(brc_lock_new(&t->lock, err));
    BRC_GO(brc_dest_open(&t->place, s, dest, 0, err));
    *out = &t->tree;
done:
    if (rc < 0)
        close_dir(&t->tree);
    return rc;
}
