/*
 * The backend "external": byte ranges in files that belong to somebody else. It has no options.
 *
 * Nothing is ever put here by a writer of values: an import names the bytes that lie in its source
 * (src/xfer/in_place.h), and they stay there. Nothing is removed either. A place is a file with its
 * size and its time (external.h); before each read the file of that path must still have both. The
 * library compares the checksum of the bytes, so a file that was changed without another time is
 * found too.
 *
 * Invariant: a slot is used under `lock`; its descriptor is closed only while `refs` is 0.
 */
#include "external.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends.h"
#include "pack_file.h"

#define PATH_ROOM 8192

enum { FILES_OPEN = 32 };

/* A file that is read. */
typedef struct file_in {
    int fd, refs; /* -1: not used */
    uint64_t used;
    dev_t device;
    ino_t inode;
    char *path;
} file_in;

typedef struct external {
    char *folder; /* of the repository's file, with its "/" */
    pthread_mutex_t lock;
    file_in in[FILES_OPEN];
    uint64_t clock;
} external;

/* ---- names -------------------------------- */

/* Reads a decimal number in the only form that brc_external_write() gives it. */
static int take_decimal(const char **at, uint64_t most, uint64_t *out)
{
    const char *first = *at;
    *out = 0;
    while (**at >= '0' && **at <= '9') {
        const uint64_t digit = (uint64_t)(**at - '0');
        if (*out > (most - digit) / 10)
            return 0;
        *out = *out * 10 + digit;
        ++*at;
    }
    return *at > first && (*first != '0' || *at == first + 1);
}

static int is_place_path(const char *path)
{
    const char *part = path + (path[0] == '/');
    for (;;) {
        const size_t len = strcspn(part, "/");
        if (len == 0 || (len == 1 && part[0] == '.') || (len == 2 && memcmp(part, "..", 2) == 0))
            return 0;
        part += len;
        if (*part == '\0')
            return 1;
        part++;
    }
}

int brc_external_parse(brc_external_name *out, const char *place)
{
    uint64_t number;
    if (!take_decimal(&place, INT64_MAX, &out->size) || *place++ != ' ')
        return 0;
    const int is_before = *place == '-';
    place += is_before;
    if (!take_decimal(&place, INT64_MAX, &number) || *place++ != ' ' || (is_before && number == 0))
        return 0;
    out->time_ns = is_before ? -(int64_t)number : (int64_t)number;
    out->path = place;
    return is_place_path(place);
}

int brc_external_write(brc_buf *out, const brc_external_name *name, brc_error *err)
{
    if (!is_place_path(name->path))
        return brc_fail(err, BRC_EINVAL,
                        "\"%.200s\" is not a path without '.', '..' and empty parts", name->path);
    return brc_buf_printf(out, err, "%" PRIu64 " %" PRId64 " %s", name->size, name->time_ns,
                          name->path);
}

int64_t brc_external_time(const struct stat *file)
{
    return (int64_t)file->st_mtim.tv_sec * 1000000000 + file->st_mtim.tv_nsec;
}

char *brc_external_folder(const char *file)
{
    char *real = realpath(file, NULL);
    const char *path = real != NULL ? real : file, *slash = strrchr(path, '/');
    char *folder = slash != NULL ? strndup(path, (size_t)(slash - path) + 1) : strdup("./");
    free(real);
    return folder;
}

/* ---- opening files -------------------------------- */

/* Opening some things has effects, so the path is looked at before, and the file once more after,
 * in case that another has taken its place. */
int brc_external_open(const char *path, struct stat *file, int *why)
{
    *why = 0;
    if (stat(path, file) != 0) {
        *why = errno;
        return -1;
    }
    if (!S_ISREG(file->st_mode))
        return -1;
    const int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0) {
        *why = errno;
        return -1;
    }
    if (fstat(fd, file) == 0 && S_ISREG(file->st_mode))
        return fd;
    close(fd);
    return -1;
}

static void in_forget(file_in *in)
{
    if (in->fd >= 0)
        close(in->fd);
    free(in->path);
    in->fd = -1;
    in->path = NULL;
}

/* Returns the slot that holds this file open, as it is now at its path. */
static file_in *in_same(external *e, const char *path, const struct stat *file)
{
    for (int i = 0; i < FILES_OPEN; i++) {
        file_in *in = &e->in[i];
        if (in->fd >= 0 && in->device == file->st_dev && in->inode == file->st_ino &&
            strcmp(in->path, path) == 0)
            return in;
    }
    return NULL;
}

/* Returns the slot for another file, whose own file is closed; NULL if all are in use. */
static file_in *in_unused(external *e)
{
    file_in *found = NULL;
    for (int i = 0; i < FILES_OPEN; i++)
        if (e->in[i].refs == 0 && (found == NULL || e->in[i].used < found->used))
            found = &e->in[i];
    if (found != NULL)
        in_forget(found);
    return found;
}

static int file_gone(const char *path, int why, brc_error *err)
{
    if (why == 0)
        return brc_fail(err, BRC_ECORRUPT,
                        "%s is not a file any more, and chunks lie in it: put the file back", path);
    if (why == ENOENT || why == ENOTDIR)
        return brc_fail(err, BRC_ENOTFOUND,
                        "there is no file %s, in which chunks lie: put it back, or say where it is "
                        "now ('breccia backend FILE --rebase OLD NEW')",
                        path);
    return brc_fail(err, why == ENOMEM ? BRC_ENOMEM : BRC_EIO,
                    "cannot read %s, in which chunks lie: %s", path, strerror(why));
}

static int file_check(const char *path, const struct stat *file, const brc_external_name *name,
                      brc_error *err)
{
    const int is_size = (uint64_t)file->st_size == name->size;
    if (is_size && brc_external_time(file) == name->time_ns)
        return BRC_OK;
    return brc_fail(err, BRC_ECORRUPT,
                    "%s has changed since it was imported (its %s is another): put the old file "
                    "back, or import it again%s",
                    path, is_size ? "time" : "size",
                    is_size ? "; if its bytes are the same, take its new time ('breccia backend "
                              "FILE --rebase OLD NEW' with this path as both)"
                            : "");
}

/* Opens the file at the path in a slot, or by itself if there is none (*in is NULL then). */
static int external_in_open(external *e, const char *path, const brc_external_name *name, int *fd,
                   file_in **in, brc_error *err)
{
    struct stat file;
    int why;
    *fd = brc_external_open(path, &file, &why);
    if (*fd < 0)
        return file_gone(path, why, err);
    const int rc = file_check(path, &file, name, err);
    char *copy = rc == BRC_OK ? strdup(path) : NULL;
    *in = copy != NULL ? in_unused(e) : NULL;
    if (*in != NULL) {
        **in = (file_in){ .fd = *fd, .device = file.st_dev, .inode = file.st_ino, .path = copy };
        return BRC_OK;
    }
    free(copy);
    if (rc < 0)
        close(*fd);
    return rc;
}

/* Sets *fd to the descriptor of the file, and *in to its slot, or to NULL if the caller is to close
 * it. Looks at the path each time: a file may be replaced while it is open. */
static int external_take(external *e, const char *path, const brc_external_name *name, int *fd,
                   file_in **in, brc_error *err)
{
    struct stat file;
    *in = NULL;
    const int there = stat(path, &file) == 0;
    if (there && S_ISREG(file.st_mode))
        BRC_BACKEND_TRY(file_check(path, &file, name, err));
    pthread_mutex_lock(&e->lock);
    *in = there ? in_same(e, path, &file) : NULL;
    const int rc = *in == NULL ? external_in_open(e, path, name, fd, in, err) : BRC_OK;
    if (*in != NULL) {
        (*in)->refs++;
        (*in)->used = ++e->clock;
        *fd = (*in)->fd;
    }
    pthread_mutex_unlock(&e->lock);
    return rc;
}

static void external_give(external *e, int fd, file_in *in)
{
    if (in == NULL) {
        close(fd);
        return;
    }
    pthread_mutex_lock(&e->lock);
    in->refs--;
    pthread_mutex_unlock(&e->lock);
}

/* ---- the backend's functions -------------------------------- */

static int external_check(void *ctx, const brc_json *config, brc_buf *full, brc_error *err)
{
    (void)ctx;
    (void)full;
    return config != NULL ? brc_json_allow(config, NULL, 0, err) : BRC_OK;
}

static int external_open(void *ctx, void **state, const brc_json *config,
                         const brc_backend_host *host, brc_error *err)
{
    (void)ctx;
    (void)config;
    external *e = calloc(1, sizeof(*e));
    if (e != NULL)
        e->folder = brc_external_folder(host->file);
    if (e == NULL || e->folder == NULL) {
        free(e);
        return brc_fail(err, BRC_ENOMEM, "out of memory");
    }
    pthread_mutex_init(&e->lock, NULL);
    for (int i = 0; i < FILES_OPEN; i++)
        e->in[i].fd = -1;
    *state = e;
    return BRC_OK;
}

static void external_close(void *ctx, void *state)
{
    external *e = state;
    (void)ctx;
    for (int i = 0; i < FILES_OPEN; i++)
        in_forget(&e->in[i]);
    pthread_mutex_destroy(&e->lock);
    free(e->folder);
    free(e);
}

static int place_path(char path[PATH_ROOM], const external *e, const brc_external_name *name)
{
    const int n = snprintf(path, PATH_ROOM, "%s%s", name->path[0] == '/' ? "" : e->folder,
                           name->path);
    return n > 0 && n < PATH_ROOM;
}

/* Finds the file that a place is. */
static int place_file(char path[PATH_ROOM], brc_external_name *name, const external *e,
                      const char *place, brc_error *err)
{
    if (brc_external_parse(name, place) && place_path(path, e, name))
        return BRC_OK;
    return brc_fail(err, BRC_ECORRUPT, "\"%.80s\" is not the name of a file as an import writes it",
                    place);
}

/* Reads objects of one place. Nothing is read if a range leads out of the file. */
static int read_place(void *state, size_t n, brc_stored *const *items, brc_error *err)
{
    external *e = state;
    char path[PATH_ROOM];
    brc_external_name name;
    file_in *in;
    int fd, why = 0;
    BRC_BACKEND_TRY(place_file(path, &name, e, items[0]->place, err));
    for (size_t i = 0; i < n; i++)
        if (items[i]->offset > name.size || items[i]->len > name.size - items[i]->offset)
            return brc_fail(err, BRC_ECORRUPT, "%s has no byte %" PRIu64, name.path,
                            items[i]->offset + items[i]->len - 1);
    BRC_BACKEND_TRY(external_take(e, path, &name, &fd, &in, err));
    brc_pack_read(fd, n, items, &why);
    external_give(e, fd, in);
    for (size_t i = 0; i < n; i++)
        if (items[i]->status == BRC_ECORRUPT)
            return brc_fail(err, BRC_ECORRUPT, "%s was cut off while it was read: put it back",
                            path);
        else if (items[i]->status < 0)
            return brc_fail(err, BRC_EIO, "cannot read %s: %s", path, strerror(why));
    return BRC_OK;
}

static int external_fetch(void *ctx, void *state, size_t n, brc_stored *const *items,
                          brc_error *err)
{
    (void)ctx;
    return brc_pack_fetch(n, items, read_place, state, err);
}

/* Says whether the file is there as it was when it was imported, and opens nothing. */
static int external_look(void *ctx, void *state, const char *place, brc_error *err)
{
    const external *e = state;
    char path[PATH_ROOM];
    brc_external_name name;
    struct stat file;
    (void)ctx;
    BRC_BACKEND_TRY(place_file(path, &name, e, place, err));
    if (stat(path, &file) != 0)
        return file_gone(path, errno, err);
    return S_ISREG(file.st_mode) ? file_check(path, &file, &name, err) : file_gone(path, 0, err);
}

int brc_backend_external_register(brc_registry *reg, brc_error *err)
{
    const brc_backend backend = {
        .size = sizeof(backend),
        .name = BRC_EXTERNAL,
        .flags = BRC_BACKEND_ON_WORKERS,
        .check = external_check,
        .open = external_open,
        .close = external_close,
        .fetch = external_fetch,
        .look = external_look,
    };
    return brc_registry_add_backend(reg, &backend, err);
}
