/*
 * A plug-in with one backend, "org.example.dir": each chunk is a file in a folder beside the
 * repository's file, under its canonical name. Configuration: {"folder": NAME}, by default
 * "chunks".
 *
 * What is where, for other readers: the stored bytes of an object are all of the file FOLDER/ID-SUM,
 * FOLDER in the repository's own folder, ID the object's id in lower-case hexadecimal digits and
 * SUM the checksum in its row, in 16 of them. No place is used. Files with such a name, a dot and
 * more are garbage: a process was killed while it wrote one. FOLDER/.users has a line for each
 * who has put something there, the backend's name and that of the repository's file; an empty one
 * says that nobody knows who has. Where there is one line alone, what its repository does not name
 * is garbage.
 *
 * Build:  cc -std=c99 -O2 -shared -fPIC dirstore.c -o dirstore.so
 * Use:    breccia backend x.brc /a --plugin ./dirstore.so \
 *             '{"name":"org.example.dir","configuration":{"folder":"x.chunks"}}'
 */
#define _DEFAULT_SOURCE
#include <breccia_backend.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME "org.example.dir"

/* What one open repository works with, as all threads read it: the folder's path, and the line of
 * who puts. */
struct dir {
    char *folder;
    char *user;
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
        rc = brc_json_write(full, brc_json_member(config, "folder"), 0, err);
    return rc < 0 ? rc : brc_buf_append(full, "}", 1, err);
}

/* ---- one repository ------------------------------------------------------------------- */

static void dir_free(struct dir *dir)
{
    if (dir != NULL) {
        free(dir->folder);
        free(dir->user);
    }
    free(dir);
}

/* Nothing is looked for here, and nothing made: that is left to those who fetch and put. */
static int dir_open(void *ctx, void **state, const brc_json *config, const brc_backend_host *host,
                    brc_error *err)
{
    const char *name, *slash = strrchr(host->file, '/');
    size_t above = slash != NULL ? (size_t)(slash - host->file) + 1 : 0;
    struct dir *dir;
    const char *own = ctx != NULL ? ctx : NAME;
    int rc = folder_of(config, &name, err);

    if (rc < 0)
        return rc;
    dir = malloc(sizeof(*dir));
    if (dir != NULL) {
        dir->folder = malloc(above + strlen(name) + 1);
        dir->user = malloc(strlen(own) + strlen(host->file + above) + 2);
    }
    if (dir == NULL || dir->folder == NULL || dir->user == NULL) {
        dir_free(dir);
        return brc_fail(err, BRC_ENOMEM, "out of memory");
    }
    memcpy(dir->folder, host->file, above);
    strcpy(dir->folder + above, name);
    sprintf(dir->user, "%s %s", own, host->file + above);
    *state = dir;
    return BRC_OK;
}

static void dir_close(void *ctx, void *state)
{
    (void)ctx;
    dir_free(state);
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

/* ---- who uses the folder --------------------------------------------------------------- */

/* Locked from here until it is closed. */
static int users_open(const struct dir *dir, int flags, int *fd, brc_error *err)
{
    char path[PATH_SIZE];
    int why = 0, rc = join(path, dir->folder, ".users", err);

    if (rc < 0)
        return rc;
    *fd = open(path, flags | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (*fd < 0)
        return file_failed(dir, "open", path, errno, err);
    while (flock(*fd, LOCK_EX) != 0 && why == 0)
        why = errno == EINTR ? 0 : errno;
    if (why == 0)
        return BRC_OK;
    close(*fd);
    return file_failed(dir, "lock", path, why, err);
}

#define USERS_SIZE 65536

/* Their list, as far as it matters: one that is longer has more than one name. */
static char *users_read(int fd)
{
    char *list = calloc(1, USERS_SIZE);

    if (list != NULL && read_all(fd, (uint8_t *)list, USERS_SIZE - 1) < 0) {
        free(list);
        list = NULL;
    }
    return list;
}

static int is_a_user(const char *list, const char *user)
{
    size_t len = strlen(user);

    for (; *list != '\0'; list += strcspn(list, "\n") + 1)
        if (strncmp(list, user, len) == 0 && list[len] == '\n')
            return 1;
    return 0;
}

static int folder_has_files(const struct dir *dir)
{
    DIR *folder = opendir(dir->folder);
    const struct dirent *entry;
    int any = folder == NULL;

    while (!any && (entry = readdir(folder)) != NULL)
        any = is_plain_name(entry->d_name);
    if (folder != NULL)
        closedir(folder);
    return any;
}

/* Before the first byte: who sees that he is the only user may remove what he does not know. What
 * lies in a folder without a list may be anybody's. */
static int become_a_user(const struct dir *dir, brc_error *err)
{
    int fd, rc, why = 0;
    char *list;

    if (mkdir(dir->folder, 0777) != 0 && errno != EEXIST)
        return file_failed(dir, "make", dir->folder, errno, err);
    rc = users_open(dir, O_RDWR | O_CREAT | O_APPEND, &fd, err);
    if (rc < 0)
        return rc;
    list = users_read(fd);
    if (list == NULL)
        why = ENOMEM;
    else if (!is_a_user(list, dir->user) && strlen(list) < USERS_SIZE - 1) {
        if (*list == '\0' && folder_has_files(dir) && write_all(fd, (const uint8_t *)"\n", 1) != 0)
            why = errno;
        if (why == 0 && (write_all(fd, (const uint8_t *)dir->user, strlen(dir->user)) != 0 ||
                         write_all(fd, (const uint8_t *)"\n", 1) != 0 || fsync(fd) != 0))
            why = errno;
    }
    free(list);
    close(fd);
    return why == 0 ? BRC_OK : file_failed(dir, "write", ".users", why, err);
}

/* 1 with the list locked, until *fd is closed; 0: there are others, or nobody knows. */
static int is_only_user(const struct dir *dir, int *fd)
{
    char *list;
    size_t len = strlen(dir->user);
    int only;

    if (users_open(dir, O_RDONLY, fd, NULL) < 0)
        return 0;
    list = users_read(*fd);
    only = list != NULL && strncmp(list, dir->user, len) == 0 &&
           strcmp(list + len, "\n") == 0;
    free(list);
    if (!only)
        close(*fd);
    return only;
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
    int rc = become_a_user(state, err);
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

/* Who puts for the first time waits until that is done. */
static int drop_own(const struct dir *dir, const brc_stored *item, brc_error *err)
{
    int fd, rc;

    if (!is_only_user(dir, &fd))
        return BRC_OK;
    rc = drop_one(dir, item, err);
    close(fd);
    return rc;
}

static int dir_drop(void *ctx, void *state, size_t n, brc_stored *const *items, brc_error *err)
{
    int result = BRC_OK;
    size_t i;

    (void)ctx;
    for (i = 0; i < n; i++) {
        items[i]->status = (items[i]->flags & BRC_STORED_OWN ? drop_own : drop_one)(
            state, items[i], result == BRC_OK ? err : NULL);
        if (result == BRC_OK)
            result = items[i]->status;
    }
    return result;
}

/* ---- listing -------------------------------------------------------------------------- */

/* CANONICAL.PID-ADDRESS: what put_one() writes until it is whole. *pid is who does. */
static int is_part(const char *name, long *pid)
{
    char whole[BRC_STORED_NAME_SIZE];
    brc_stored item;
    const char *dot = strchr(name, '.');
    size_t len = dot != NULL ? (size_t)(dot - name) : sizeof(whole);

    if (len >= sizeof(whole))
        return 0;
    memcpy(whole, name, len);
    whole[len] = '\0';
    *pid = strtol(dot + 1, NULL, 10);
    return *pid > 0 && brc_stored_parse_name(&item, whole);
}

/* What else lies in the folder is somebody's who knows why. */
static uint32_t flags_of(const char *name, int is_own)
{
    brc_stored item;
    long pid;

    if (brc_stored_parse_name(&item, name))
        return is_own ? BRC_KEPT_OWN : 0;
    return BRC_KEPT_PLACE | (is_own && is_part(name, &pid) ? BRC_KEPT_OWN : 0);
}

static int goes_on(const char *name)
{
    long pid;

    return is_part(name, &pid) && (kill((pid_t)pid, 0) == 0 || errno == EPERM);
}

static int list_one(const struct dir *dir, const char *name, int is_own,
                    int (*each)(void *to, const brc_kept *kept, brc_error *err), void *to,
                    brc_error *err)
{
    char path[PATH_SIZE];
    struct stat file;
    brc_kept kept = { sizeof(kept), name, flags_of(name, is_own), 0, 0 };
    int rc = join(path, dir->folder, name, err);

    if (rc < 0 || goes_on(name) || stat(path, &file) != 0 || !S_ISREG(file.st_mode))
        return rc; /* somebody else has removed it, or it is none of ours */
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
    int users, is_own = is_only_user(dir, &users), rc = BRC_OK;

    (void)ctx;
    if (is_own)
        close(users);
    if (folder == NULL) /* nothing was ever put: there is no folder */
        return errno == ENOENT ? BRC_OK : file_failed(dir, "read", dir->folder, errno, err);
    while (rc == BRC_OK && (errno = 0, entry = readdir(folder)) != NULL)
        if (is_plain_name(entry->d_name))
            rc = list_one(dir, entry->d_name, is_own, each, to, err);
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
        .name = NAME,
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
