#include "files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../breccia_codec.h"
#include "made.h"
#include "names.h"

/* The most files of a root that are open at once, versions that a reader keeps, and readers of a
 * file that are kept while nobody uses them. */
enum { OPEN_MOST = 32, VERSIONS_MOST = 4, IDLE_MOST = 16 };

/* The most bytes of documents that were made. */
enum { CACHE_BYTES = 24 << 20 };

enum { NAME_BYTES_MOST = 4096 };

typedef struct open_version {
    serve_version version;
    uint64_t used;
} open_version;

/* A file that was opened. It lives as long as it is in the list, or a reader is on it. */
typedef struct served_file {
    struct served_file *next;
    char *name; /* in URLs                                              */
    char *path; /* NULL until it was opened                             */
    dev_t device;
    ino_t inode;
    breccia *quick, *patient; /* handles that are only opened again           */
    serve_reader *idle[2];    /* by whether they may wait                     */
    size_t nidle[2];
    size_t readers;
    uint64_t number; /* no other file that was opened has it */
    int is_listed;
    int is_given; /* named when the server was started: it stays in the list */
    uint64_t used;
} served_file;

struct serve_reader {
    serve_reader *next;
    serve_files *files;
    served_file *file;
    breccia *repo;
    int may_wait;
    int is_stopped;
    open_version versions[VERSIONS_MOST];
    size_t nversions;
    uint64_t clock;
};

struct serve_files {
    serve_files_opts opts;
    pthread_mutex_t lock;
    pthread_mutex_t opening; /* taken before the other one               */
    served_file *first;
    size_t n;
    uint64_t clock;
    int root; /* a descriptor of the folder; -1: there is none */
    serve_cache *cache;
    uint64_t numbers;
    char *only; /* the name of the only file, or NULL        */
};

static int no_memory(brc_error *err)
{
    return brc_fail(err, BRC_ENOMEM, "out of memory");
}

/* ---- readers -------------------------------- */

static void reader_free(serve_reader *r)
{
    for (size_t i = 0; i < r->nversions; i++)
        brc_session_free(r->versions[i].version.session);
    brc_free(r->repo);
    free(r);
}

static void drop_idle(served_file *f)
{
    for (int kind = 0; kind < 2; kind++)
        while (f->idle[kind] != NULL) {
            serve_reader *r = f->idle[kind];
            f->idle[kind] = r->next;
            f->nidle[kind]--;
            f->readers--;
            reader_free(r);
        }
}

static void file_close(served_file *f)
{
    drop_idle(f);
    brc_free(f->quick);
    brc_free(f->patient);
    f->quick = f->patient = NULL;
}

static void file_free(served_file *f)
{
    file_close(f);
    free(f->path);
    free(f->name);
    free(f);
}

/* Takes the file out of the list. Within the lock. */
static void file_unlist(serve_files *files, served_file *f)
{
    for (served_file **at = &files->first; *at != NULL; at = &(*at)->next)
        if (*at == f) {
            *at = f->next;
            files->n--;
            break;
        }
    f->is_listed = 0;
    drop_idle(f);
    if (f->readers == 0)
        file_free(f);
}

/* ---- finding a file -------------------------------- */

static served_file *file_find(const serve_files *files, const char *name)
{
    for (served_file *f = files->first; f != NULL; f = f->next)
        if (strcmp(f->name, name) == 0)
            return f;
    return NULL;
}

/* Opens what is beneath a folder, without leaving it by a link. Systems that cannot promise that
 * in one call follow no link at all. */
static int open_below_root(int folder, const char *path, int flags)
{
    struct open_how how = { .flags = (uint64_t)(unsigned)(flags | O_CLOEXEC | O_NONBLOCK),
                            .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS };
    int fd = (int)syscall(SYS_openat2, folder, *path != '\0' ? path : ".", &how, sizeof(how));
    if (fd >= 0 || (errno != ENOSYS && errno != EPERM))
        return fd;
    fd = fcntl(folder, F_DUPFD_CLOEXEC, 0);
    while (fd >= 0 && *path != '\0') {
        char part[256];
        const size_t n = strcspn(path, "/");
        const int is_last = path[n] == '\0';
        if (n == 0 || n >= sizeof(part)) {
            close(fd);
            errno = ENOENT;
            return -1;
        }
        memcpy(part, path, n);
        part[n] = '\0';
        const int next =
            strcmp(part, "..") == 0
                ? -1
                : openat(fd, part,
                         O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | (is_last ? flags : O_DIRECTORY));
        const int why = next < 0 ? errno : 0;
        close(fd);
        errno = why;
        fd = next;
        path += n + !is_last;
    }
    return fd;
}

/* Sets *path to the real path of a name beneath the root, which the caller frees, and *state to
 * what is there. */
static int find_beneath(char **path, struct stat *state, const serve_files *files, const char *name,
                        brc_error *err)
{
    char file[NAME_BYTES_MOST], link[64], real[4096];
    const int len = snprintf(file, sizeof(file), "%s.brc", name);
    *path = NULL;
    if (name[0] == '.' || strstr(name, "/.") != NULL || len < 0 || (size_t)len >= sizeof(file))
        return brc_fail(err, BRC_ENOTFOUND, "nothing is served under the name %.200s", name);
    const int fd = open_below_root(files->root, file, O_RDONLY);
    if (fd < 0)
        return brc_fail(err, BRC_ENOTFOUND, "nothing is served under the name %.200s", name);
    (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    const ssize_t n = readlink(link, real, sizeof(real));
    const int is_file =
        n > 0 && (size_t)n < sizeof(real) && fstat(fd, state) == 0 && S_ISREG(state->st_mode);
    close(fd);
    if (!is_file)
        return brc_fail(err, BRC_ENOTFOUND, "nothing is served under the name %.200s", name);
    *path = strndup(real, (size_t)n);
    return *path != NULL ? BRC_OK : no_memory(err);
}

/* Looks at the file. Returns 1 if it is the one that was opened, 0 if it must be opened. */
static int file_look(const served_file *f, brc_error *err)
{
    struct stat state;
    if (stat(f->path, &state) != 0)
        return brc_fail(err, BRC_EIO, "the repository %s has gone away: %s", f->name,
                        strerror(errno));
    return f->quick != NULL && state.st_dev == f->device && state.st_ino == f->inode;
}

/* Writes the name in URLs where a message has the path of a file: clients need not know it. */
static void hide_path(const char *path, const char *name, brc_error *err)
{
    const size_t len = strlen(path), more = strlen(name);
    char *at = err != NULL && len > 0 ? strstr(err->message, path) : NULL;
    while (at != NULL && more <= len) {
        memmove(at + more, at + len, strlen(at + len) + 1);
        memcpy(at, name, more);
        at = strstr(at + more, path);
    }
}

/* ---- opening -------------------------------- */

static int open_handle(breccia **out, const serve_files *files, const char *path, int wait_ms,
                       brc_error *err)
{
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    opts.flags = BRC_OPEN_READONLY;
    opts.wait_ms = wait_ms;
    opts.memory = files->opts.memory;
    opts.registry = files->opts.registry;
    opts.credentials = files->opts.credentials;
    opts.cache = files->opts.cache;
    opts.cache_bytes = files->opts.cache_bytes;
    return brc_open(out, path, &opts, err);
}

/* Opens the file at f->path. Its identity is taken before and compared behind, so that both
 * handles are on one file. */
static int file_open(const serve_files *files, served_file *f, brc_error *err)
{
    struct stat before, behind;
    int rc;
    for (int i = 0; i < 3; i++) {
        if (stat(f->path, &before) != 0)
            return brc_fail(err, BRC_EIO, "the repository %s has gone away: %s", f->name,
                            strerror(errno));
        rc = open_handle(&f->patient, files, f->path, files->opts.wait_ms, err);
        if (rc == BRC_OK)
            rc = open_handle(&f->quick, files, f->path, -1, err);
        if (rc == BRC_OK && stat(f->path, &behind) == 0 && before.st_dev == behind.st_dev &&
            before.st_ino == behind.st_ino) {
            f->device = before.st_dev;
            f->inode = before.st_ino;
            return BRC_OK;
        }
        file_close(f);
        if (rc < 0)
            return rc;
    }
    return brc_fail(err, BRC_EBUSY, "the repository %s is being replaced again and again", f->name);
}

static int file_new(served_file **out, const char *name, const char *path, brc_error *err)
{
    served_file *f = calloc(1, sizeof(*f));
    *out = f;
    if (f == NULL)
        return no_memory(err);
    f->name = strdup(name);
    f->path = path != NULL ? strdup(path) : NULL;
    if (f->name != NULL && (path == NULL || f->path != NULL))
        return BRC_OK;
    file_free(f);
    *out = NULL;
    return no_memory(err);
}

/* Closes what was not used for longest, if too many files of the root are open. Within the lock. */
static void close_unused(serve_files *files)
{
    while (files->n >= OPEN_MOST) {
        served_file *oldest = NULL;
        for (served_file *f = files->first; f != NULL; f = f->next)
            if (!f->is_given && (oldest == NULL || f->used < oldest->used))
                oldest = f;
        if (oldest == NULL)
            return;
        file_unlist(files, oldest);
    }
}

/* Opens what is served under a name now. Only one thread at a time does so, and others need not
 * wait for it. */
static int open_served(served_file **out, serve_files *files, const char *name, const char *given,
                       brc_error *err)
{
    struct stat state;
    char *path = NULL;
    int rc = given == NULL ? find_beneath(&path, &state, files, name, err) : BRC_OK;
    if (rc == BRC_OK)
        rc = file_new(out, name, given != NULL ? given : path, err);
    free(path);
    if (rc < 0)
        return rc;
    (*out)->is_given = given != NULL;
    (*out)->number = ++files->numbers; /* only one thread opens */
    rc = file_open(files, *out, err);
    if (rc == BRC_OK)
        return BRC_OK;
    hide_path((*out)->path, name, err);
    file_free(*out);
    *out = NULL;
    return rc;
}

/* Finds the listed file of a name, which is still the one that was opened. Returns 0 if it must be
 * opened; *given is the path of a file that was named when the server was started. Within the
 * lock. */
static int file_current(served_file **out, const char **given, serve_files *files, const char *name,
                        brc_error *err)
{
    served_file *f = file_find(files, name);
    *out = f;
    *given = f != NULL && f->is_given ? f->path : NULL;
    if (f == NULL && files->root < 0)
        return brc_fail(err, BRC_ENOTFOUND, "nothing is served under the name %.200s", name);
    if (f == NULL)
        return 0;
    const int rc = file_look(f, err);
    return rc < 0 && !f->is_given ? 0 : rc;
}

/* Replaces the listed file of the name, or adds one. Within the lock. */
static void file_replace(serve_files *files, served_file *f)
{
    served_file *old = file_find(files, f->name);
    if (old != NULL)
        file_unlist(files, old);
    else if (!f->is_given)
        close_unused(files);
    f->next = files->first;
    f->is_listed = 1;
    files->first = f;
    files->n++;
}

/* Opens the file of a name, unless another thread has just done so. */
static int file_open_listed(serve_files *files, const char *name, brc_error *err)
{
    served_file *f;
    const char *given;
    pthread_mutex_lock(&files->opening);
    pthread_mutex_lock(&files->lock);
    int rc = file_current(&f, &given, files, name, err);
    pthread_mutex_unlock(&files->lock);
    if (rc == 0) { /* only this thread takes files out of the list */
        rc = open_served(&f, files, name, given, err);
        if (rc == BRC_OK) {
            pthread_mutex_lock(&files->lock);
            file_replace(files, f);
            pthread_mutex_unlock(&files->lock);
        }
    }
    pthread_mutex_unlock(&files->opening);
    return rc < 0 ? rc : BRC_OK;
}

/* ---- taking a reader -------------------------------- */

static int reader_new(serve_reader **out, serve_files *files, served_file *f, int may_wait,
                      brc_error *err)
{
    serve_reader *r = calloc(1, sizeof(*r));
    *out = NULL;
    if (r == NULL)
        return no_memory(err);
    r->files = files;
    r->file = f;
    r->may_wait = may_wait;
    int rc = brc_reopen(&r->repo, may_wait ? f->patient : f->quick, err);
    if (rc < 0) {
        hide_path(f->path, f->name, err);
        free(r);
        return rc;
    }
    *out = r;
    return BRC_OK;
}

/* Gives up a place that was counted for a reader. Within the lock. */
static void leave_file(served_file *f)
{
    f->readers--;
    if (!f->is_listed && f->readers == 0)
        file_free(f);
}

/* Takes an idle reader, or counts a new one. Returns 0 if the file must be opened first. */
static int take_idle(serve_reader **out, served_file **f, serve_files *files, const char *name,
                     int kind, brc_error *err)
{
    const char *given;
    pthread_mutex_lock(&files->lock);
    const int rc = file_current(f, &given, files, name, err);
    if (rc > 0) {
        (*f)->used = ++files->clock;
        *out = (*f)->idle[kind];
        if (*out != NULL) {
            (*f)->idle[kind] = (*out)->next;
            (*f)->nidle[kind]--;
        } else {
            (*f)->readers++;
        }
    }
    pthread_mutex_unlock(&files->lock);
    return rc;
}

int serve_reader_take(serve_reader **out, serve_files *files, const char *name, int may_wait,
                      brc_error *err)
{
    served_file *f = NULL;
    const int kind = may_wait != 0;
    int rc = 0;
    *out = NULL;
    for (int i = 0; i < 3 && rc == 0; i++) {
        rc = take_idle(out, &f, files, name, kind, err);
        if (rc == 0 && !may_wait)
            return brc_fail(err, BRC_EBUSY, "the repository %.200s must be opened first", name);
        const int opened = rc == 0 ? file_open_listed(files, name, err) : BRC_OK;
        if (opened < 0)
            return opened;
    }
    if (rc == 0)
        return brc_fail(err, BRC_EBUSY, "the repository %.200s is being replaced again and again",
                        name);
    if (rc < 0 || *out != NULL)
        return rc < 0 ? rc : BRC_OK;
    rc = reader_new(out, files, f, kind, err);
    if (rc < 0) {
        pthread_mutex_lock(&files->lock);
        leave_file(f);
        pthread_mutex_unlock(&files->lock);
    }
    return rc;
}

/* Tells whether a handle is as good as new after a call that ended so. */
static int is_usable_after(int rc)
{
    return rc >= 0 || rc == BRC_ENOTFOUND || rc == BRC_EINVAL || rc == BRC_EBUSY ||
           rc == BRC_EAMBIGUOUS || rc == BRC_ELIMIT || rc == BRC_EUNSUPPORTED || rc == BRC_EMISUSE;
}

void serve_reader_give(serve_reader *r, int rc)
{
    if (r == NULL)
        return;
    serve_files *files = r->files;
    served_file *f = r->file;
    pthread_mutex_lock(&files->lock);
    const int kept =
        is_usable_after(rc) && !r->is_stopped && f->is_listed && f->nidle[r->may_wait] < IDLE_MOST;
    if (kept) {
        r->next = f->idle[r->may_wait];
        f->idle[r->may_wait] = r;
        f->nidle[r->may_wait]++;
    }
    pthread_mutex_unlock(&files->lock);
    if (kept)
        return;
    reader_free(r);
    pthread_mutex_lock(&files->lock);
    leave_file(f);
    pthread_mutex_unlock(&files->lock);
}

breccia *serve_reader_repo(serve_reader *reader)
{
    return reader->repo;
}

uint64_t serve_reader_number(const serve_reader *reader)
{
    return reader->file->number;
}

serve_cache *serve_reader_cache(serve_reader *reader)
{
    return reader->files->cache;
}

void serve_reader_hide(const serve_reader *reader, brc_error *err)
{
    hide_path(reader->file->path, reader->file->name, err);
}

void serve_reader_interrupt(serve_reader *reader)
{
    pthread_mutex_lock(&reader->files->lock);
    reader->is_stopped = 1;
    pthread_mutex_unlock(&reader->files->lock);
    brc_interrupt(reader->repo, 1);
}

/* ---- versions -------------------------------- */

static open_version *version_find(serve_reader *r, const char *hex)
{
    for (size_t i = 0; i < r->nversions; i++)
        if (strcmp(r->versions[i].version.hex, hex) == 0) {
            r->versions[i].used = ++r->clock;
            return &r->versions[i];
        }
    return NULL;
}

/* Returns a free place, or that of the version that was not used for longest. */
static open_version *version_place(serve_reader *r)
{
    open_version *oldest = &r->versions[0];
    if (r->nversions < VERSIONS_MOST)
        return &r->versions[r->nversions];
    for (size_t i = 1; i < r->nversions; i++)
        if (r->versions[i].used < oldest->used)
            oldest = &r->versions[i];
    return oldest;
}

static int version_add(open_version **out, serve_reader *r, const brc_oid *id, const char *hex,
                       brc_error *err)
{
    open_version v = { .version = { .id = *id } };
    brc_commit *commit;
    int rc = brc_session_open(&v.version.session, r->repo, hex, BRC_SESSION_AT, err);
    if (rc < 0)
        return rc;
    rc = brc_commit_read(&commit, r->repo, id, err);
    if (rc < 0) {
        brc_session_free(v.version.session);
        return rc;
    }
    v.version.time_us = commit->time_us;
    brc_commit_free(commit);
    memcpy(v.version.hex, hex, sizeof(v.version.hex));
    v.used = ++r->clock;
    open_version *place = version_place(r);
    if (place == &r->versions[r->nversions])
        r->nversions++;
    else
        brc_session_free(place->version.session);
    *place = v;
    *out = place;
    return BRC_OK;
}

int serve_version_open(const serve_version **out, serve_reader *reader, const char *rev,
                       brc_error *err)
{
    brc_oid id;
    char hex[65];
    open_version *v = version_find(reader, rev);
    *out = NULL;
    if (v == NULL) {
        int rc = brc_resolve(&id, reader->repo, rev, err);
        if (rc < 0)
            return rc;
        v = version_find(reader, brc_oid_format(hex, &id));
        rc = v == NULL ? version_add(&v, reader, &id, hex, err) : BRC_OK;
        if (rc < 0)
            return rc;
    }
    v->version.named = strcmp(v->version.hex, rev) == 0;
    *out = &v->version;
    return BRC_OK;
}

/* ---- the whole -------------------------------- */

/* Returns the name in URLs of a path, which the caller frees: without folders and ".brc". */
static char *url_name_of(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;
    const size_t n = strlen(name);
    return strndup(name, n > 4 && strcmp(name + n - 4, ".brc") == 0 ? n - 4 : n);
}

static int add_served(serve_files *files, const char *path, brc_error *err)
{
    char *name = url_name_of(path), *real = realpath(path, NULL);
    served_file *f;
    int rc;
    if (real == NULL && errno == ENOENT)
        rc = brc_fail(err, BRC_ENOTFOUND, "%s does not exist", path);
    else if (real == NULL || name == NULL)
        rc = brc_fail(err, BRC_EIO, "%s cannot be opened: %s", path, strerror(errno));
    else if (*name == '\0' || strchr(name, '/') != NULL)
        rc = brc_fail(err, BRC_EINVAL, "%s has no name that a URL could have", path);
    else if (file_find(files, name) != NULL)
        rc = brc_fail(
            err, BRC_EINVAL,
            "two files would have the name %s: rename one, or serve their folder with --root",
            name);
    else
        rc = open_served(&f, files, name, real, err);
    if (rc == BRC_OK)
        file_replace(files, f);
    free(real);
    free(name);
    return rc;
}

int serve_files_new(serve_files **out, const serve_files_opts *opts, brc_error *err)
{
    serve_files *files = calloc(1, sizeof(*files));
    int rc = BRC_OK;
    *out = NULL;
    if (files == NULL)
        return no_memory(err);
    files->opts = *opts;
    files->root = -1;
    pthread_mutex_init(&files->lock, NULL);
    pthread_mutex_init(&files->opening, NULL);
    rc = serve_cache_new(&files->cache, CACHE_BYTES, err);
    if (rc == BRC_OK && opts->root != NULL) {
        files->root = open(opts->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (files->root < 0)
            rc = brc_fail(err, BRC_EIO, "the folder %s cannot be opened: %s", opts->root,
                          strerror(errno));
    }
    for (size_t i = 0; i < opts->n && rc == BRC_OK; i++)
        rc = add_served(files, opts->paths[i], err);
    if (rc == BRC_OK && opts->root == NULL && opts->n == 1) {
        files->only = strdup(files->first->name);
        rc = files->only != NULL ? BRC_OK : no_memory(err);
    }
    if (rc == BRC_OK)
        *out = files;
    else
        serve_files_free(files);
    return rc;
}

void serve_files_free(serve_files *files)
{
    if (files == NULL)
        return;
    while (files->first != NULL)
        file_unlist(files, files->first);
    if (files->root >= 0)
        close(files->root);
    serve_cache_free(files->cache);
    free(files->only);
    pthread_mutex_destroy(&files->lock);
    pthread_mutex_destroy(&files->opening);
    free(files);
}

int serve_files_only(const char **name, serve_files *files, brc_error *err)
{
    *name = files->only;
    return *name != NULL
               ? BRC_OK
               : brc_fail(err, BRC_EINVAL, "several files are served: name one with file=NAME");
}

/* ---- names -------------------------------- */

static int list_given(serve_names *list, serve_files *files, brc_error *err)
{
    int rc = BRC_OK;
    pthread_mutex_lock(&files->lock);
    for (const served_file *f = files->first; f != NULL && rc == BRC_OK; f = f->next)
        if (f->is_given)
            rc = serve_names_add(list, f->name, strlen(f->name), "", err);
    pthread_mutex_unlock(&files->lock);
    return rc;
}

/* Adds one entry of a folder, if it is a folder or ends in ".brc". */
static int add_file_entry(serve_names *list, int folder, const struct dirent *entry, brc_error *err)
{
    struct stat state;
    const char *name = entry->d_name;
    const size_t len = strlen(name);
    if (name[0] == '.' || fstatat(folder, name, &state, 0) != 0)
        return BRC_OK;
    if (S_ISDIR(state.st_mode))
        return serve_names_add(list, name, len, "/", err);
    if (S_ISREG(state.st_mode) && len > 4 && strcmp(name + len - 4, ".brc") == 0)
        return serve_names_add(list, name, len - 4, "", err);
    return BRC_OK;
}

static int list_root_folder(serve_names *list, const serve_files *files, const char *folder,
                            brc_error *err)
{
    const struct dirent *entry;
    int rc = BRC_OK;
    const int hidden = folder[0] == '.' || strstr(folder, "/.") != NULL;
    const int fd = hidden ? -1 : open_below_root(files->root, folder, O_RDONLY | O_DIRECTORY);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (dir == NULL) {
        if (fd >= 0)
            close(fd);
        return brc_fail(err, BRC_ENOTFOUND, "there is no folder %.200s", folder);
    }
    while (rc == BRC_OK && (entry = readdir(dir)) != NULL)
        rc = add_file_entry(list, fd, entry, err);
    closedir(dir);
    return rc;
}

int serve_files_list(brc_buf *out, serve_files *files, const char *folder, brc_error *err)
{
    serve_names list = { 0 };
    int rc;
    if (files->root >= 0)
        rc = list_root_folder(&list, files, folder, err);
    else
        rc = *folder == '\0' ? list_given(&list, files, err)
                             : brc_fail(err, BRC_ENOTFOUND, "there is no folder %.200s", folder);
    if (rc == BRC_OK)
        serve_names_sort(&list);
    for (size_t i = 0; i < list.n && rc == BRC_OK; i++)
        rc = brc_buf_append(out, list.names[i], strlen(list.names[i]) + 1, err);
    serve_names_dispose(&list);
    return rc;
}
