/*
 * A plug-in with one backend, "org.example.dir": each chunk is a file in a folder beside the
 * repository's file, under its canonical name. Configuration: {"folder": NAME}, by default
 * "chunks".
 *
 * What is where, for other readers: the stored bytes of an object are all of the file FOLDER/ID-SUM,
 * FOLDER in the repository's own folder, ID the object's id in lower-case hexadecimal digits and
 * SUM the checksum in its row, in 16 of them. No place is used. Other files there are garbage: a
 * process was killed while it wrote one.
 *
 * Build:  cc -std=c99 -O2 -shared -fPIC dirstore.c -o dirstore.so
 * Use:    breccia backend x.brc /a --plugin ./dirstore.so \
 *             '{"name":"org.example.dir","configuration":{"folder":"x.chunks"}}'
 */
#define _POSIX_C_SOURCE 200809L
#include <breccia_backend.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What one open repository works with: the folder's path, as all threads read it. */
struct dir {
    char *folder;
};

/* ---- the configuration ---------------------------------------------------------------- */

/* A repository may come from a stranger: a name beside it can do no harm, a path can. */
static int is_plain_name(const char *name)
{
    return name[0] != '\0' && name[0] != '.' && strchr(name, '/') == NULL && strlen(name) <= 200;
}

static int folder_of(const brc_json *config, const char **out, brc_error *err)
{
    static const char *const members[] = { "folder" };
    const brc_json *folder = brc_json_member(config, "folder");
    int rc = config != NULL ? brc_json_allow(config, members, 1, err) : BRC_OK;

    *out = "chunks";
    if (rc < 0 || folder == NULL)
        return rc;
    if (!brc_json_text(folder, out) || !is_plain_name(*out))
        return brc_fail(err, BRC_EINVAL,
                        "\"folder\" must be the name of a folder beside the repository, without a "
                        "'/' and not hidden");
    return BRC_OK;
}

static int dir_check(void *ctx, const brc_json *config, brc_buf *full, brc_error *err)
{
    const char *name;
    int rc = folder_of(config, &name, err);

    (void)ctx;
    if (rc < 0)
        return rc;
    if (config == NULL || brc_json_member(config, "folder") == NULL)
        return brc_buf_printf(full, err, "{\"folder\":\"%s\"}", name);
    rc = brc_buf_append(full, "{\"folder\":", 10, err);
    if (rc == BRC_OK)
        rc = brc_json_write(full, brc_json_member(config, "folder"), err);
    return rc < 0 ? rc : brc_buf_append(full, "}", 1, err);
}

/* ---- one repository ------------------------------------------------------------------- */

/* Nothing is looked for here, and nothing made: that is left to those who fetch and put. */
static int dir_open(void *ctx, void **state, const brc_json *config, const brc_backend_host *host,
                    brc_error *err)
{
    const char *name, *slash = strrchr(host->file, '/');
    size_t above = slash != NULL ? (size_t)(slash - host->file) + 1 : 0;
    struct dir *dir;
    int rc = folder_of(config, &name, err);

    (void)ctx;
    if (rc < 0)
        return rc;
    dir = malloc(sizeof(*dir));
    if (dir != NULL)
        dir->folder = malloc(above + strlen(name) + 1);
    if (dir == NULL || dir->folder == NULL) {
        free(dir);
        return brc_fail(err, BRC_ENOMEM, "out of memory");
    }
    memcpy(dir->folder, host->file, above);
    strcpy(dir->folder + above, name);
    *state = dir;
    return BRC_OK;
}

static void dir_close(void *ctx, void *state)
{
    struct dir *dir = state;

    (void)ctx;
    free(dir->folder);
    free(dir);
}

/* ---- files ---------------------------------------------------------------------------- */

#define PATH_SIZE 4096

static int join(char *out, const char *folder, const char *name, brc_error *err)
{
    int n = snprintf(out, PATH_SIZE, "%s/%s", folder, name);

    return n > 0 && n < PATH_SIZE - 64 ? BRC_OK : brc_fail(err, BRC_ELIMIT, "its path is too long");
}

static int path_of(char *out, const struct dir *dir, const brc_stored *item, brc_error *err)
{
    char name[BRC_STORED_NAME_SIZE];

    return join(out, dir->folder, brc_stored_name(name, item), err);
}

static int file_failed(const struct dir *dir, const char *verb, const char *path, int why,
                       brc_error *err)
{
    struct stat folder;

    if (why == ENOENT && stat(dir->folder, &folder) != 0)
        return brc_fail(err, BRC_ENOTFOUND,
                        "there is no folder %s: it holds the chunks and belongs beside the "
                        "repository's file",
                        dir->folder);
    return brc_fail(err,
                    why == ENOENT                      ? BRC_ENOTFOUND
                    : why == ENOSPC || why == EDQUOT   ? BRC_ENOSPACE
                    : why == ENOMEM                    ? BRC_ENOMEM
                                                       : BRC_EIO,
                    "cannot %s %s: %s", verb, path, strerror(why));
}

/* 1 with all bytes; 0 where the file is shorter; -1 with errno. */
static int read_all(int fd, uint8_t *into, uint64_t len)
{
    while (len > 0) {
        ssize_t n = read(fd, into, len < 1u << 30 ? (size_t)len : 1u << 30);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return (int)n;
        into += n;
        len -= (uint64_t)n;
    }
    return 1;
}

static int write_all(int fd, const uint8_t *data, uint64_t len)
{
    while (len > 0) {
        ssize_t n = write(fd, data, len < 1u << 30 ? (size_t)len : 1u << 30);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        data += n;
        len -= (uint64_t)n;
    }
    return 0;
}

/* ---- fetching ------------------------------------------------------------------------- */

static int fetch_one(const struct dir *dir, const brc_stored *item, brc_error *err)
{
    char path[PATH_SIZE];
    struct stat file;
    int all, fd, rc = path_of(path, dir, item, err);

    if (rc < 0)
        return rc;
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return file_failed(dir, "read", path, errno, err);
    if (fstat(fd, &file) != 0)
        rc = file_failed(dir, "read", path, errno, err);
    else if (!S_ISREG(file.st_mode) || (uint64_t)file.st_size != item->len)
        rc = brc_fail(err, BRC_ECORRUPT, "%s has %lld bytes, not %llu", path,
                      (long long)file.st_size, (unsigned long long)item->len);
    else if ((all = read_all(fd, item->into, item->len)) < 0)
        rc = file_failed(dir, "read", path, errno, err);
    else if (all == 0)
        rc = brc_fail(err, BRC_ECORRUPT, "%s became shorter", path);
    close(fd);
    return rc;
}

static int dir_fetch(void *ctx, void *state, size_t n, brc_stored *const *items, brc_error *err)
{
    int result = BRC_OK;
    size_t i;

    (void)ctx;
    for (i = 0; i < n; i++) { /* the error is that of the first */
        items[i]->status = fetch_one(state, items[i], result == BRC_OK ? err : NULL);
        if (result == BRC_OK)
            result = items[i]->status;
    }
    return result;
}

/* ---- putting and dropping ------------------------------------------------------------- */

/* Under the name are all the bytes or none, whoever else puts them, and on the disk: they are
 * written beside it first. The address of `item` is nobody else's in this process. */
static int put_one(const struct dir *dir, const brc_stored *item, brc_error *err)
{
    char path[PATH_SIZE], part[PATH_SIZE];
    int fd, why = 0, rc = path_of(path, dir, item, err);

    if (rc < 0)
        return rc;
    snprintf(part, sizeof(part), "%.*s.%ld-%lx", PATH_SIZE - 64, path, (long)getpid(),
             (unsigned long)(size_t)item);
    fd = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (fd < 0 && errno == ENOENT && (mkdir(dir->folder, 0777) == 0 || errno == EEXIST))
        fd = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (fd < 0)
        return file_failed(dir, "write", part, errno, err);
    if (write_all(fd, item->data, item->len) != 0 || fsync(fd) != 0)
        why = errno;
    if (close(fd) != 0 && why == 0)
        why = errno;
    if (why == 0 && rename(part, path) != 0)
        why = errno;
    if (why == 0)
        return BRC_OK;
    unlink(part);
    return file_failed(dir, "write", path, why, err);
}

static int dir_put(void *ctx, void *state, size_t n, brc_stored *const *items, brc_error *err)
{
    int rc = BRC_OK;
    size_t i;

    (void)ctx;
    for (i = 0; i < n && rc == BRC_OK; i++)
        rc = put_one(state, items[i], err);
    return rc;
}

static int sync_folder(const struct dir *dir, const char *path, brc_error *err)
{
    int rc = BRC_OK, fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0)
        return file_failed(dir, "write", path, errno, err);
    if (fsync(fd) != 0)
        rc = file_failed(dir, "write", path, errno, err);
    close(fd);
    return rc;
}

/* The files are on the disk; their names are when their folder is, and its name when the one above
 * it is. */
static int dir_flush(void *ctx, void *state, brc_error *err)
{
    const struct dir *dir = state;
    char above[PATH_SIZE];
    char *slash;
    int rc = sync_folder(dir, dir->folder, err);

    (void)ctx;
    if (rc < 0)
        return rc;
    snprintf(above, sizeof(above), "%s", dir->folder);
    slash = strrchr(above, '/');
    if (slash != NULL)
        slash[slash == above ? 1 : 0] = '\0';
    return sync_folder(dir, slash != NULL ? above : ".", err);
}

/* What list() calls a place is a file's name. */
static int drop_one(const struct dir *dir, const brc_stored *item, brc_error *err)
{
    char path[PATH_SIZE];
    int rc = BRC_OK;

    if (item->place == NULL)
        rc = path_of(path, dir, item, err);
    else if (is_plain_name(item->place))
        rc = join(path, dir->folder, item->place, err);
    else
        rc = brc_fail(err, BRC_EINVAL, "\"%.80s\" is not in the folder", item->place);
    if (rc < 0 || unlink(path) == 0 || errno == ENOENT)
        return rc;
    return file_failed(dir, "remove", path, errno, err);
}

static int dir_drop(void *ctx, void *state, size_t n, brc_stored *const *items, brc_error *err)
{
    int result = BRC_OK;
    size_t i;

    (void)ctx;
    for (i = 0; i < n; i++) {
        items[i]->status = drop_one(state, items[i], result == BRC_OK ? err : NULL);
        if (result == BRC_OK)
            result = items[i]->status;
    }
    return result;
}

/* ---- listing -------------------------------------------------------------------------- */

static int list_one(const struct dir *dir, const char *name,
                    int (*each)(void *to, const brc_kept *kept, brc_error *err), void *to,
                    brc_error *err)
{
    char path[PATH_SIZE];
    struct stat file;
    brc_stored item;
    brc_kept kept = { sizeof(kept), name, 0, 0, 0 };
    int rc = join(path, dir->folder, name, err);

    if (rc < 0 || stat(path, &file) != 0 || !S_ISREG(file.st_mode))
        return rc; /* somebody else has removed it, or it is none of ours */
    if (!brc_stored_parse_name(&item, name))
        kept.flags = BRC_KEPT_PLACE;
    kept.len = (uint64_t)file.st_size;
    kept.time_us = (int64_t)file.st_mtime * 1000000;
    return each(to, &kept, err);
}

static int dir_list(void *ctx, void *state,
                    int (*each)(void *to, const brc_kept *kept, brc_error *err), void *to,
                    brc_error *err)
{
    const struct dir *dir = state;
    DIR *folder = opendir(dir->folder);
    const struct dirent *entry;
    int rc = BRC_OK;

    (void)ctx;
    if (folder == NULL) /* nothing was ever put: there is no folder */
        return errno == ENOENT ? BRC_OK : file_failed(dir, "read", dir->folder, errno, err);
    while (rc == BRC_OK && (errno = 0, entry = readdir(folder)) != NULL)
        if (is_plain_name(entry->d_name))
            rc = list_one(dir, entry->d_name, each, to, err);
    if (rc == BRC_OK && errno != 0)
        rc = file_failed(dir, "read", dir->folder, errno, err);
    closedir(folder);
    return rc;
}

/* ---- the plug-in ---------------------------------------------------------------------- */

int brc_plugin_init(uint32_t abi, brc_registry *reg, brc_error *err)
{
    static const brc_backend backend = {
        .size = sizeof(backend),
        .name = "org.example.dir",
        .flags = BRC_BACKEND_ON_WORKERS,
        .check = dir_check,
        .open = dir_open,
        .close = dir_close,
        .fetch = dir_fetch,
        .put = dir_put,
        .flush = dir_flush,
        .drop = dir_drop,
        .owner = "dirstore 1.0",
        .list = dir_list,
    };
    int rc = BRC_PLUGIN_CHECK(abi, err);

    return rc < 0 ? rc : brc_registry_add_backend(reg, &backend, err);
}
