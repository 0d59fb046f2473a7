/*
 * The backend "external": byte ranges in files that belong to somebody else. It has no options.
 *
 * Nothing is ever put here by a writer of values: an import names the bytes that lie in its source
 * (src/xfer/in_place.h), and they stay there. Nothing is removed either. A place is a file with its
 * size and its time, or a grid of files with their sizes and the last of their times (external.h);
 * before each read the file at the path must still agree with both. The library compares the
 * checksum of the bytes, so a file that was changed without another time is found too.
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

/* Reads a time, which may be before 1970. */
static int take_time(const char **at, int64_t *out)
{
    uint64_t number;
    const int is_before = **at == '-';
    *at += is_before;
    if (!take_decimal(at, INT64_MAX, &number) || (is_before && number == 0))
        return 0;
    *out = is_before ? -(int64_t)number : (int64_t)number;
    return 1;
}

/* A stem, with a number behind it, is a path. */
static int is_stem(const char *stem)
{
    char path[BRC_PLACE_MAX + 2];
    const int n = snprintf(path, sizeof(path), "%s0", stem);
    return n > 0 && n < (int)sizeof(path) && is_place_path(path);
}

/* Reads "[N,N,...]S". */
static int take_grid(const char **at, brc_external_name *out)
{
    uint64_t files = 1;
    do {
        ++*at; /* the bracket, then commas */
        if (out->ndim == BRC_MAX_NDIM || !take_decimal(at, INT64_MAX, &out->count[out->ndim]))
            return 0;
        const uint64_t n = out->count[out->ndim++];
        if (n == 0 || n > INT64_MAX / files)
            return 0;
        files *= n;
    } while (**at == ',');
    if (*(*at)++ != ']')
        return 0;
    out->separator = *(*at)++;
    return out->separator == '/' || out->separator == '.';
}

int brc_external_parse(brc_external_name *out, const char *place)
{
    *out = (brc_external_name){ .ndim = 0 };
    const int is_grid = *place == '[';
    if (!(is_grid ? take_grid(&place, out) : take_decimal(&place, INT64_MAX, &out->size)) ||
        *place++ != ' ' || !take_time(&place, &out->time_ns) || *place++ != ' ')
        return 0;
    out->path = place;
    return is_grid ? is_stem(place) : is_place_path(place);
}

int brc_external_write(brc_buf *out, const brc_external_name *name, brc_error *err)
{
    if (!(name->ndim > 0 ? is_stem(name->path) : is_place_path(name->path)))
        return brc_fail(err, BRC_EINVAL,
                        "\"%.200s\" is not a path without '.', '..' and empty parts", name->path);
    for (int i = 0; i < name->ndim; i++)
        BRC_BACKEND_TRY(
            brc_buf_printf(out, err, "%c%" PRIu64, i == 0 ? '[' : ',', name->count[i]));
    BRC_BACKEND_TRY(name->ndim > 0 ? brc_buf_printf(out, err, "]%c", name->separator)
                                   : brc_buf_printf(out, err, "%" PRIu64, name->size));
    return brc_buf_printf(out, err, " %" PRId64 " %s", name->time_ns, name->path);
}

int brc_external_path(char path[BRC_EXTERNAL_PATH], const char *folder,
                      const brc_external_name *name, uint64_t offset)
{
    uint64_t index[BRC_MAX_NDIM];
    int n = snprintf(path, BRC_EXTERNAL_PATH, "%s%s", name->path[0] == '/' ? "" : folder,
                     name->path);
    for (int i = name->ndim - 1; i >= 0; i--) {
        index[i] = offset % name->count[i];
        offset /= name->count[i];
    }
    if (name->ndim > 0 && offset > 0)
        return 0;
    for (int i = 0; i < name->ndim && n > 0 && n < BRC_EXTERNAL_PATH; i++)
        n += snprintf(path + n, BRC_EXTERNAL_PATH - (size_t)n, "%.*s%" PRIu64, i > 0,
                      &name->separator, index[i]);
    return n > 0 && n < BRC_EXTERNAL_PATH;
}

int brc_external_is_time(const brc_external_name *name, int64_t time_ns)
{
    return name->ndim > 0 ? time_ns <= name->time_ns : time_ns == name->time_ns;
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

static int file_gone(const char *path, int is_one, int why, brc_error *err)
{
    if (why == 0)
        return brc_fail(err, BRC_ECORRUPT,
                        "%s is not a file any more, and chunks lie in it: put the file back", path);
    if (why == ENOENT || why == ENOTDIR)
        return brc_fail(err, BRC_ENOTFOUND,
                        "there is no file %s, in which chunks lie: put it back, or say where %s is "
                        "now ('breccia backend FILE --rebase OLD NEW')",
                        path, is_one ? "it" : "the folder of its array");
    return brc_fail(err, why == ENOMEM ? BRC_ENOMEM : BRC_EIO,
                    "cannot read %s, in which chunks lie: %s", path, strerror(why));
}

/* Compares a file with what its place says. `size`: what the file must have. */
static int file_check(const char *path, const struct stat *file, const brc_external_name *name,
                      uint64_t size, brc_error *err)
{
    const int is_size = (uint64_t)file->st_size == size;
    if (is_size && brc_external_is_time(name, brc_external_time(file)))
        return BRC_OK;
    return brc_fail(err, BRC_ECORRUPT,
                    "%s has changed since it was imported (its %s is another): put the old file "
                    "back, or import it again%s",
                    path, is_size ? "time" : "size",
                    !is_size         ? ""
                    : name->ndim > 0 ? "; if its bytes are the same, take its new time ('breccia "
                                       "backend FILE --rebase OLD NEW' with the folder of its "
                                       "array as both)"
                                     : "; if its bytes are the same, take its new time ('breccia "
                                       "backend FILE --rebase OLD NEW' with this path as both)");
}

/* Opens the file at the path in a slot, or by itself if there is none (*in is NULL then). */
static int external_in_open(external *e, const char *path, const brc_external_name *name,
                            uint64_t size, int *fd, file_in **in, brc_error *err)
{
    struct stat file;
    int why;
    *fd = brc_external_open(path, &file, &why);
    if (*fd < 0)
        return file_gone(path, name->ndim == 0, why, err);
    const int rc = file_check(path, &file, name, size, err);
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
static int external_take(external *e, const char *path, const brc_external_name *name,
                         uint64_t size, int *fd, file_in **in, brc_error *err)
{
    struct stat file;
    *in = NULL;
    const int there = stat(path, &file) == 0;
    if (there && S_ISREG(file.st_mode))
        BRC_BACKEND_TRY(file_check(path, &file, name, size, err));
    pthread_mutex_lock(&e->lock);
    *in = there ? in_same(e, path, &file) : NULL;
    const int rc = *in == NULL ? external_in_open(e, path, name, size, fd, in, err) : BRC_OK;
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

static int bad_name(const char *place, brc_error *err)
{
    return brc_fail(err, BRC_ECORRUPT, "\"%.80s\" is not the name of a file as an import writes it",
                    place);
}

/* Reads objects of one file, whose path is known. */
static int external_read(external *e, const char *path, const brc_external_name *name,
                         uint64_t size, size_t n, brc_stored *const *items, brc_error *err)
{
    file_in *in;
    int fd, why = 0;
    BRC_BACKEND_TRY(external_take(e, path, name, size, &fd, &in, err));
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

/* Reads the one file of a grid that an object is. */
static int read_grid_file(external *e, const brc_external_name *name, const brc_stored *item,
                          brc_error *err)
{
    char path[BRC_EXTERNAL_PATH];
    brc_stored whole = *item, *one = &whole;
    if (!brc_external_path(path, e->folder, name, item->offset))
        return brc_fail(err, BRC_ECORRUPT, "%s is not a grid with a file number %" PRIu64,
                        item->place, item->offset);
    whole.offset = 0;
    return external_read(e, path, name, item->len, 1, &one, err);
}

static int read_grid(external *e, const brc_external_name *name, size_t n,
                     brc_stored *const *items, brc_error *err)
{
    int result = BRC_OK;
    for (size_t i = 0; i < n; i++) {
        items[i]->status = read_grid_file(e, name, items[i], result == BRC_OK ? err : NULL);
        if (result == BRC_OK)
            result = items[i]->status;
    }
    return result;
}

/* Reads ranges of one file, or nothing if one of them leads out of it. */
static int read_ranges(external *e, const brc_external_name *name, size_t n,
                       brc_stored *const *items, brc_error *err)
{
    char path[BRC_EXTERNAL_PATH];
    for (size_t i = 0; i < n; i++)
        if (items[i]->offset > name->size || items[i]->len > name->size - items[i]->offset)
            return brc_fail(err, BRC_ECORRUPT, "%s has no byte %" PRIu64, name->path,
                            items[i]->offset + items[i]->len - 1);
    if (!brc_external_path(path, e->folder, name, 0))
        return bad_name(items[0]->place, err);
    return external_read(e, path, name, name->size, n, items, err);
}

/* Reads objects of one place. */
static int read_place(void *state, size_t n, brc_stored *const *items, brc_error *err)
{
    brc_external_name name;
    if (!brc_external_parse(&name, items[0]->place))
        return bad_name(items[0]->place, err);
    return (name.ndim > 0 ? read_grid : read_ranges)(state, &name, n, items, err);
}

static int external_fetch(void *ctx, void *state, size_t n, brc_stored *const *items,
                          brc_error *err)
{
    (void)ctx;
    return brc_pack_fetch(n, items, read_place, state, err);
}

/* Says whether the folder of a grid of files is there. `path`: of one of them; it is cut off. */
static int look_at_folder(const external *e, char *path, const brc_external_name *name,
                          brc_error *err)
{
    struct stat file;
    path[strlen(name->path) + (name->path[0] == '/' ? 0 : strlen(e->folder))] = '\0';
    *(strrchr(path, '/') + 1) = '\0'; /* the folder of a repository's file ends in one */
    if (stat(path, &file) == 0) /* with a "/" at the end, it is a folder */
        return BRC_OK;
    if (errno == ENOENT || errno == ENOTDIR)
        return brc_fail(err, BRC_ENOTFOUND,
                        "there is no folder %s, in which chunks lie: put it back, or say where it "
                        "is now ('breccia backend FILE --rebase OLD NEW')",
                        path);
    return brc_fail(err, BRC_EIO, "cannot read %s, in which chunks lie: %s", path,
                    strerror(errno));
}

/* Says whether the file is there as it was when it was imported, and opens nothing. Of a grid, only
 * its folder is looked at. */
static int external_look(void *ctx, void *state, const char *place, brc_error *err)
{
    const external *e = state;
    char path[BRC_EXTERNAL_PATH];
    brc_external_name name;
    struct stat file;
    (void)ctx;
    if (!brc_external_parse(&name, place) || !brc_external_path(path, e->folder, &name, 0))
        return bad_name(place, err);
    if (name.ndim > 0)
        return look_at_folder(e, path, &name, err);
    if (stat(path, &file) != 0)
        return file_gone(path, 1, errno, err);
    return S_ISREG(file.st_mode) ? file_check(path, &file, &name, name.size, err)
                                 : file_gone(path, 1, 0, err);
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
