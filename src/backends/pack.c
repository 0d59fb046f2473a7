/*
 * The backend "pack": stored bytes in pack files (pack_file.h) in a folder beside the repository's
 * file, FILE.packs. Configuration: {"pack_bytes": N}, the size from which on a new pack is begun.
 *
 * A place is the name of a folder and of a pack in it: "x.brc.packs/HEX.pack". A copy y.brc of the
 * file reads from x.brc.packs and writes into y.brc.packs, and a file that was renamed with its
 * folder finds its packs under the new name. HEX is random, so no two packs ever have one name.
 *
 * Each writer has a pack of its own, which it holds locked (flock) while it may append to it. So
 * packs need no coordination, and nobody drops a pack to which somebody is still writing.
 *
 * FILE.packs/owner says whose packs are in the folder: the repository's id, and the name and inode
 * of its file. Only the owner removes packs. A copy has the same id, but neither the name nor the
 * inode. A renamed file has the inode, a restored one the name.
 *
 * Invariants: descriptors of packs that are written are closed only under `syncing`, so flush() may
 * sync them without holding `lock`; everything else in the state is used under `lock`.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends.h"
#include "pack_file.h"

#define PACK_BYTES ((uint64_t)256 << 20)
#define PACK_BYTES_LEAST ((uint64_t)1 << 20)
#define PACK_BYTES_MOST ((uint64_t)1 << 40)
#define FOLDER_END ".packs"
#define PACK_NAME_LEN 37 /* 32 digits and ".pack" */
#define PLACE_SIZE 320   /* a folder's name, "/", a pack's name and a NUL */
#define PATH_SIZE 4096

enum { PACKS_OPEN = 32 };

/* A pack that is written. It is closed when `refs` is 0: one for each put() that writes, and one as
 * long as it is the writer's current pack or waits to be synced. */
typedef struct pack_out {
    struct pack_out *next; /* of those that wait to be synced                         */
    int fd, refs;
    uint64_t end, puts; /* puts: how many put() have ended                              */
    char place[PLACE_SIZE];
} pack_out;

/* A pack that is read. */
typedef struct pack_in {
    int fd, refs; /* -1: not used                                                      */
    uint64_t used;
    char place[PLACE_SIZE];
} pack_in;

typedef struct packs {
    char *dir;    /* of the repository's file, with its "/"                            */
    char *file;   /* its name                                                          */
    char *folder; /* file FOLDER_END                                                   */
    char id[BRC_PACK_ID + 1];
    uint64_t most;
    int is_readonly;
    pthread_mutex_t lock, syncing;
    int is_ready; /* the folder is there, and this file's                              */
    int is_new;   /* a name in the folder, or its own, is not synced                   */
    pack_out *out, *full;
    pack_in in[PACKS_OPEN];
    uint64_t clock;
} packs;

/* ---- configuration -------------------------------- */

static int pack_config(const brc_json *config, uint64_t *bytes, brc_error *err)
{
    static const char *const members[] = { "pack_bytes" };
    const brc_json *given = brc_json_member(config, "pack_bytes");
    int rc = config != NULL ? brc_json_allow(config, members, 1, err) : BRC_OK;
    *bytes = PACK_BYTES;
    if (rc < 0 || given == NULL)
        return rc;
    if (!brc_json_uint(given, PACK_BYTES_MOST, bytes) || *bytes < PACK_BYTES_LEAST)
        return brc_fail(err, BRC_EINVAL,
                        "\"pack_bytes\" must be a number from %" PRIu64 " (1 MiB) to %" PRIu64
                        " (1 TiB)",
                        PACK_BYTES_LEAST, PACK_BYTES_MOST);
    return BRC_OK;
}

static int pack_check(void *ctx, const brc_json *config, brc_buf *full, brc_error *err)
{
    uint64_t bytes;
    (void)ctx;
    BRC_BACKEND_TRY(pack_config(config, &bytes, err));
    return brc_buf_printf(full, err, "{\"pack_bytes\":%" PRIu64 "}", bytes);
}

/* ---- names -------------------------------- */

static int ends_with(const char *name, size_t len, const char *end)
{
    const size_t n = strlen(end);
    return len > n && memcmp(name + len - n, end, n) == 0;
}

static int is_pack_name(const char *name)
{
    return strlen(name) == PACK_NAME_LEN && strspn(name, "0123456789abcdef") == 32 &&
           strcmp(name + 32, ".pack") == 0;
}

/* Returns the pack's name in the name of a place, or NULL: names in a file may be a stranger's. */
static const char *pack_of_place(const char *place)
{
    const char *slash = strchr(place, '/');
    if (slash == NULL || strlen(place) >= PLACE_SIZE || !is_pack_name(slash + 1) ||
        !ends_with(place, (size_t)(slash - place), FOLDER_END))
        return NULL;
    return slash + 1;
}

static int pack_path(char out[PATH_SIZE], const packs *p, const char *folder, const char *name,
                     brc_error *err)
{
    const int n = snprintf(out, PATH_SIZE, "%s%s%s%s", p->dir, folder, name[0] ? "/" : "", name);
    return n > 0 && n < PATH_SIZE ? BRC_OK : brc_fail(err, BRC_ELIMIT, "its path is too long");
}

static int pack_failed(const char *verb, const char *path, int why, brc_error *err)
{
    return brc_fail(err,
                    why == ENOENT                    ? BRC_ENOTFOUND
                    : why == ENOSPC || why == EDQUOT ? BRC_ENOSPACE
                    : why == ENOMEM                  ? BRC_ENOMEM
                                                     : BRC_EIO,
                    "cannot %s %s: %s", verb, path, strerror(why));
}

/* ---- opening and closing -------------------------------- */

static void packs_free(packs *p)
{
    free(p->dir);
    free(p->file);
    free(p->folder);
    pthread_mutex_destroy(&p->lock);
    pthread_mutex_destroy(&p->syncing);
    free(p);
}

static int copy_names(packs *p, const char *file)
{
    const char *slash = strrchr(file, '/');
    const size_t above = slash != NULL ? (size_t)(slash - file) + 1 : 0;
    p->dir = strndup(file, above);
    p->file = strdup(file + above);
    return p->dir != NULL && p->file != NULL && asprintf(&p->folder, "%s" FOLDER_END, p->file) > 0;
}

/* Looks for nothing and makes nothing: the calls that fetch and put do. */
static int pack_open(void *ctx, void **state, const brc_json *config, const brc_backend_host *host,
                     brc_error *err)
{
    uint64_t most;
    (void)ctx;
    BRC_BACKEND_TRY(pack_config(config, &most, err));
    if (host->file[0] == '\0')
        return brc_fail(err, BRC_EUNSUPPORTED, "a repository without a file has no packs");
    packs *p = calloc(1, sizeof(*p));
    if (p == NULL)
        return brc_fail(err, BRC_ENOMEM, "out of memory");
    pthread_mutex_init(&p->lock, NULL);
    pthread_mutex_init(&p->syncing, NULL);
    p->most = most;
    p->is_readonly = (host->flags & BRC_BACKEND_READONLY) != 0;
    for (int i = 0; i < PACKS_OPEN; i++)
        p->in[i].fd = -1;
    snprintf(p->id, sizeof(p->id), "%s", host->id);
    if (!copy_names(p, host->file)) {
        packs_free(p);
        return brc_fail(err, BRC_ENOMEM, "out of memory");
    }
    if (strlen(p->folder) + PACK_NAME_LEN + 2 > PLACE_SIZE) {
        packs_free(p);
        return brc_fail(err, BRC_ELIMIT, "the name of the repository's file is too long");
    }
    *state = p;
    return BRC_OK;
}

/* Called under `lock`, and under `syncing` or where no other thread is. */
static void out_unref(pack_out *out)
{
    if (--out->refs > 0)
        return;
    close(out->fd);
    free(out);
}

static void pack_close(void *ctx, void *state)
{
    packs *p = state;
    (void)ctx;
    while (p->full != NULL) {
        pack_out *next = p->full->next;
        out_unref(p->full);
        p->full = next;
    }
    if (p->out != NULL)
        out_unref(p->out);
    for (int i = 0; i < PACKS_OPEN; i++)
        if (p->in[i].fd >= 0)
            close(p->in[i].fd);
    packs_free(p);
}

/* ---- whose packs a folder has -------------------------------- */

typedef struct owner {
    char id[BRC_PACK_ID + 1], file[256];
    uint64_t inode;
} owner;

static uint64_t own_inode(const packs *p)
{
    char path[PATH_SIZE];
    struct stat file;
    return pack_path(path, p, p->file, "", NULL) == BRC_OK && stat(path, &file) == 0
               ? (uint64_t)file.st_ino
               : 0;
}

/* Reads FOLDER/owner. Returns 0 if there is none, or if it is damaged. */
static int owner_read(const packs *p, const char *folder, owner *out)
{
    char path[PATH_SIZE], text[600];
    if (pack_path(path, p, folder, "owner", NULL) < 0)
        return 0;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return 0;
    const ssize_t n = read(fd, text, sizeof(text) - 1);
    close(fd);
    if (n <= 0)
        return 0;
    text[n] = '\0';
    return sscanf(text, "repository %32[0-9a-f]\ninode %" SCNu64 "\nfile %255[^\n]\n", out->id,
                  &out->inode, out->file) == 3;
}

static int owner_write(const packs *p, brc_error *err)
{
    char path[PATH_SIZE], part[PATH_SIZE + 64], text[600];
    int why = 0;
    BRC_BACKEND_TRY(pack_path(path, p, p->folder, "owner", err));
    snprintf(part, sizeof(part), "%s.%ld-%" PRIxPTR, path, (long)getpid(), (uintptr_t)p);
    const int len = snprintf(text, sizeof(text), "repository %s\ninode %" PRIu64 "\nfile %s\n",
                             p->id, own_inode(p), p->file);
    const int fd = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (fd < 0)
        return pack_failed("write", part, errno, err);
    if (write(fd, text, (size_t)len) != len || fsync(fd) != 0)
        why = errno != 0 ? errno : ENOSPC;
    close(fd);
    if (why == 0 && rename(part, path) != 0)
        why = errno;
    if (why == 0)
        return BRC_OK;
    unlink(part);
    return pack_failed("write", path, why, err);
}

/* Returns whether this file may remove packs from a folder. A folder that is only a link may be
 * another file's: then the inode alone counts. */
static int is_owner(const packs *p, const char *folder)
{
    char path[PATH_SIZE];
    struct stat at;
    owner o;
    if (!owner_read(p, folder, &o) || strcmp(o.id, p->id) != 0 ||
        pack_path(path, p, folder, "", NULL) < 0 || lstat(path, &at) != 0)
        return 0;
    return o.inode == own_inode(p) || (S_ISDIR(at.st_mode) && strcmp(folder, p->folder) == 0);
}

/* Makes the folder if there is none, and this file its owner. */
static int folder_need(packs *p, brc_error *err)
{
    char path[PATH_SIZE];
    owner o;
    if (p->is_ready)
        return BRC_OK;
    BRC_BACKEND_TRY(pack_path(path, p, p->folder, "", err));
    if (mkdir(path, 0777) != 0 && errno != EEXIST)
        return pack_failed("make", path, errno, err);
    const int has_owner = owner_read(p, p->folder, &o);
    if (has_owner) {
        if (strcmp(o.id, p->id) != 0)
            return brc_fail(err, BRC_EEXISTS,
                            "the folder %s has packs of another repository: move it away", path);
        if (!is_owner(p, p->folder))
            return brc_fail(err, BRC_EEXISTS,
                            "the folder %s is a link to the packs of %s, which may remove them: "
                            "remove the link",
                            path, o.file);
    }
    if (!has_owner || strcmp(o.file, p->file) != 0 || o.inode != own_inode(p))
        BRC_BACKEND_TRY(owner_write(p, err));
    p->is_ready = 1;
    p->is_new = 1; /* also where others made the folder: they may not have synced its names yet */
    return BRC_OK;
}

/* ---- the pack that is written -------------------------------- */

/* Opens a pack and locks it, or returns -1: somebody else is writing it, or has removed it. */
static int out_lock(const char *path, int flags)
{
    struct stat file;
    const int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | flags, 0666);
    if (fd < 0)
        return -1;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &file) == 0 && S_ISREG(file.st_mode) &&
        file.st_nlink == 1)
        return fd;
    close(fd);
    return -1;
}

/* Looks for a pack that has room and to which nobody is writing, except one of the name `leaves`.
 * Returns its descriptor, or -1. */
static int out_find(const packs *p, uint64_t room, const char *leaves,
                    char name[PACK_NAME_LEN + 1])
{
    char path[PATH_SIZE];
    uint8_t head[BRC_PACK_HEAD];
    struct stat file;
    int fd = -1;
    if (pack_path(path, p, p->folder, "", NULL) < 0)
        return -1;
    DIR *dir = opendir(path);
    const struct dirent *entry;
    while (fd < 0 && dir != NULL && (entry = readdir(dir)) != NULL) {
        if (!is_pack_name(entry->d_name) || strcmp(entry->d_name, leaves) == 0 ||
            pack_path(path, p, p->folder, entry->d_name, NULL) < 0 || stat(path, &file) != 0 ||
            (uint64_t)file.st_size + room > p->most)
            continue;
        fd = out_lock(path, 0);
        if (fd < 0)
            continue;
        if (pread(fd, head, sizeof(head), 0) == (ssize_t)sizeof(head) &&
            brc_pack_is_head_of(head, p->id, p->most)) {
            memcpy(name, entry->d_name, PACK_NAME_LEN + 1);
        } else {
            close(fd);
            fd = -1;
        }
    }
    if (dir != NULL)
        closedir(dir);
    return fd;
}

static int out_make(packs *p, char name[PACK_NAME_LEN + 1], int *fd, brc_error *err)
{
    char path[PATH_SIZE];
    uint8_t random[16], head[BRC_PACK_HEAD];
    if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
        return brc_fail(err, BRC_EIO, "there are no random numbers");
    for (size_t i = 0; i < sizeof(random); i++)
        snprintf(name + 2 * i, 3, "%02x", random[i]);
    memcpy(name + 32, ".pack", sizeof(".pack"));
    BRC_BACKEND_TRY(pack_path(path, p, p->folder, name, err));
    *fd = out_lock(path, O_CREAT | O_EXCL);
    if (*fd < 0)
        return pack_failed("make", path, errno, err);
    p->is_new = 1;
    brc_pack_head(head, p->id, p->most);
    const ssize_t n = pwrite(*fd, head, sizeof(head), 0);
    if (n == (ssize_t)sizeof(head))
        return BRC_OK;
    const int why = n < 0 ? errno : ENOSPC;
    unlink(path);
    close(*fd);
    return pack_failed("write", path, why, err);
}

/* Begins no more records in the current pack. */
static void out_retire(packs *p)
{
    if (p->out == NULL)
        return;
    p->out->next = p->full;
    p->full = p->out;
    p->out = NULL;
}

/* Makes sure that the current pack has `room` bytes left, or, for more than a pack holds, is a new
 * one, and that it is not the pack `leaves`. Called under `lock`. */
static int out_need(packs *p, uint64_t room, const char *leaves, brc_error *err)
{
    char name[PACK_NAME_LEN + 1];
    struct stat file;
    int fd;
    if (p->out != NULL && strcmp(pack_of_place(p->out->place), leaves) != 0 &&
        (p->out->end <= BRC_PACK_HEAD || p->out->end + room <= p->most))
        return BRC_OK;
    out_retire(p);
    BRC_BACKEND_TRY(folder_need(p, err));
    fd = out_find(p, room, leaves, name);
    if (fd < 0)
        BRC_BACKEND_TRY(out_make(p, name, &fd, err));
    pack_out *out = calloc(1, sizeof(*out));
    if (out == NULL || fstat(fd, &file) != 0) {
        close(fd);
        free(out);
        return brc_fail(err, out == NULL ? BRC_ENOMEM : BRC_EIO, "a pack cannot be opened");
    }
    out->fd = fd;
    out->refs = 1;
    out->end = ((uint64_t)file.st_size + 7) / 8 * 8;
    snprintf(out->place, sizeof(out->place), "%s/%s", p->folder, name);
    p->out = out;
    return BRC_OK;
}

/* ---- putting -------------------------------- */

static int room_of(size_t n, brc_stored *const *items, uint64_t *room, brc_error *err)
{
    *room = 0;
    for (size_t i = 0; i < n; i++) {
        const uint64_t one = brc_pack_room(items[i]->len);
        if (one == 0 || *room > INT64_MAX / 2 - one)
            return brc_fail(err, BRC_ELIMIT, "a chunk is too large for a pack");
        *room += one;
    }
    return BRC_OK;
}

/* Returns the name of the pack that the objects are to leave, or "". The objects of one call lie in
 * one pack. */
static const char *pack_to_leave(size_t n, brc_stored *const *items)
{
    const char *name = NULL;
    if (n > 0 && items[0]->size > offsetof(brc_stored, leaves) && items[0]->leaves != NULL)
        name = pack_of_place(items[0]->leaves);
    return name != NULL ? name : "";
}

/* Takes room at the end of the pack: then nobody else writes there. */
static int out_take(packs *p, uint64_t room, const char *leaves, pack_out **out, uint64_t *at,
                    brc_error *err)
{
    pthread_mutex_lock(&p->lock);
    const int rc = p->is_readonly ? brc_fail(err, BRC_EMISUSE, "the repository is open for reading")
                                  : out_need(p, room, leaves, err);
    if (rc == BRC_OK) {
        *out = p->out;
        *at = p->out->end;
        p->out->end += room;
        p->out->refs++;
    }
    pthread_mutex_unlock(&p->lock);
    return rc;
}

/* Bytes that could not be written are cut off if they are the last ones, so that a full disk does
 * not stay fuller than it was. */
static void out_give(packs *p, pack_out *out, uint64_t at, uint64_t room, int failed)
{
    pthread_mutex_lock(&p->syncing);
    pthread_mutex_lock(&p->lock);
    if (failed && out->end == at + room && ftruncate(out->fd, (off_t)at) == 0)
        out->end = at;
    out->puts++;
    out_unref(out);
    pthread_mutex_unlock(&p->lock);
    pthread_mutex_unlock(&p->syncing);
}

static int pack_put(void *ctx, void *state, size_t n, brc_stored *const *items, brc_error *err)
{
    packs *p = state;
    pack_out *out = NULL;
    uint64_t room = 0, at = 0, offset;
    (void)ctx;
    BRC_BACKEND_TRY(room_of(n, items, &room, err));
    BRC_BACKEND_TRY(out_take(p, room, pack_to_leave(n, items), &out, &at, err));
    const int why = brc_pack_write(out->fd, at, n, items);
    int rc = why == 0 ? BRC_OK : pack_failed("write", out->place, why, err);
    offset = at;
    for (size_t i = 0; i < n && rc == BRC_OK; i++) {
        rc = brc_stored_put_at(items[i], out->place, offset + BRC_PACK_RECORD, err);
        offset += brc_pack_room(items[i]->len);
    }
    out_give(p, out, at, room, why != 0);
    return rc;
}

/* ---- flushing -------------------------------- */

static int sync_names(const packs *p, brc_error *err)
{
    const char *const paths[] = { p->folder, "" };
    char path[PATH_SIZE];
    for (int i = 0; i < 2; i++) {
        BRC_BACKEND_TRY(pack_path(path, p, paths[i], "", err));
        const int fd = open(path[0] != '\0' ? path : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
            return pack_failed("open", path, errno, err);
        const int why = fsync(fd) != 0 ? errno : 0;
        close(fd);
        if (why != 0)
            return pack_failed("sync", path, why, err);
    }
    return BRC_OK;
}

/* Syncs one pack, unless an earlier one failed. Sets *puts to the number of put() that are durable
 * then. Called under `syncing`, which keeps the descriptor open. */
static void out_sync(packs *p, const pack_out *out, uint64_t *puts, int *why)
{
    pthread_mutex_lock(&p->lock);
    *puts = out->puts;
    pthread_mutex_unlock(&p->lock);
    if (*why == 0 && fdatasync(out->fd) != 0)
        *why = errno;
}

/* Syncs the packs that have no more room, and closes those to which nobody writes any more. */
static void full_sync(packs *p, int *why)
{
    pthread_mutex_lock(&p->lock);
    pack_out *out = p->full, *next;
    p->full = NULL;
    pthread_mutex_unlock(&p->lock);
    for (; out != NULL; out = next) {
        uint64_t puts;
        next = out->next;
        out_sync(p, out, &puts, why);
        pthread_mutex_lock(&p->lock);
        if (out->refs > 1 || out->puts > puts) {
            out->next = p->full;
            p->full = out;
        } else {
            out_unref(out);
        }
        pthread_mutex_unlock(&p->lock);
    }
}

static int sync_packs(packs *p, brc_error *err)
{
    uint64_t puts;
    int why = 0;
    pthread_mutex_lock(&p->lock);
    const pack_out *out = p->out;
    const int is_new = p->is_new;
    p->is_new = 0;
    pthread_mutex_unlock(&p->lock);
    full_sync(p, &why);
    if (out != NULL)
        out_sync(p, out, &puts, &why);
    int rc = why == 0 ? BRC_OK : pack_failed("sync", p->folder, why, err);
    if (rc == BRC_OK && is_new)
        rc = sync_names(p, err);
    if (rc < 0) { /* the kernel may have dropped what it could not write: begin another pack */
        pthread_mutex_lock(&p->lock);
        p->is_new = 1;
        out_retire(p);
        pthread_mutex_unlock(&p->lock);
    }
    return rc;
}

static int pack_flush(void *ctx, void *state, brc_error *err)
{
    packs *p = state;
    (void)ctx;
    pthread_mutex_lock(&p->syncing);
    const int rc = sync_packs(p, err);
    pthread_mutex_unlock(&p->syncing);
    return rc;
}

/* ---- fetching -------------------------------- */

/* Opens the pack of a place: in the folder that the place names, or in this file's own, which is
 * the same one under another name if the file and the folder were renamed. *why is an errno. */
static int in_open(const packs *p, const char *place, char path[PATH_SIZE], int *why)
{
    char folder[PLACE_SIZE];
    const char *name = pack_of_place(place);
    int fd;
    *why = ENAMETOOLONG;
    snprintf(folder, sizeof(folder), "%.*s", (int)(name - place - 1), place);
    if (pack_path(path, p, folder, name, NULL) < 0)
        return -1;
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    *why = errno;
    if (fd >= 0 || errno != ENOENT || strcmp(folder, p->folder) == 0)
        return fd;
    if (pack_path(path, p, p->folder, name, NULL) < 0)
        return -1;
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0 && errno == ENOENT) /* the message names the first place */
        (void)pack_path(path, p, folder, name, NULL);
    return fd;
}

static int in_missing(const packs *p, const char *place, const char *path, int why, brc_error *err)
{
    const int len = (int)strcspn(place, "/");
    char folder[PATH_SIZE];
    struct stat at;
    if (why != ENOENT)
        return pack_failed("read", path, why, err);
    snprintf(folder, sizeof(folder), "%s%.*s", p->dir, len, place);
    if (stat(folder, &at) == 0)
        return brc_fail(err, BRC_ENOTFOUND, "the pack %s is missing: " BRC_PACK_REMEDY, path);
    return brc_fail(err, BRC_ENOTFOUND,
                    "there is no folder %s: it holds the chunks and belongs beside the "
                    "repository's file",
                    folder);
}

static int in_check(const packs *p, int fd, const char *path, brc_error *err)
{
    uint8_t head[BRC_PACK_HEAD];
    struct stat file;
    if (fstat(fd, &file) != 0)
        return pack_failed("read", path, errno, err);
    if (!S_ISREG(file.st_mode))
        return brc_fail(err, BRC_ECORRUPT, "%s is not a file", path);
    if (pread(fd, head, sizeof(head), 0) != (ssize_t)sizeof(head) || !brc_pack_is_head(head, p->id))
        return brc_fail(err, BRC_ECORRUPT,
                        "%s is not a pack of this repository, or is damaged: " BRC_PACK_REMEDY,
                        path);
    return BRC_OK;
}

static pack_in *in_held(packs *p, const char *place)
{
    for (int i = 0; i < PACKS_OPEN; i++)
        if (p->in[i].fd >= 0 && strcmp(p->in[i].place, place) == 0)
            return &p->in[i];
    return NULL;
}

/* Returns the slot for another pack, whose own pack is closed; NULL if all of them are in use. */
static pack_in *in_slot(packs *p)
{
    pack_in *found = NULL;
    for (int i = 0; i < PACKS_OPEN; i++)
        if (p->in[i].refs == 0 && (found == NULL || p->in[i].used < found->used))
            found = &p->in[i];
    if (found != NULL && found->fd >= 0)
        close(found->fd);
    if (found != NULL)
        found->fd = -1;
    return found;
}

/* Sets *fd to a pack's descriptor, and *in to its slot, or to NULL if the caller is to close it. */
static int in_take(packs *p, const char *place, int *fd, pack_in **in, brc_error *err)
{
    char path[PATH_SIZE];
    int why, rc = BRC_OK;
    if (pack_of_place(place) == NULL)
        return brc_fail(err, BRC_EINVAL, "\"%.80s\" is not the name of a pack", place);
    pthread_mutex_lock(&p->lock);
    *in = in_held(p, place);
    if (*in == NULL) {
        *fd = in_open(p, place, path, &why);
        rc = *fd < 0 ? in_missing(p, place, path, why, err) : in_check(p, *fd, path, err);
        if (rc == BRC_OK && (*in = in_slot(p)) != NULL) {
            (*in)->fd = *fd;
            snprintf((*in)->place, sizeof((*in)->place), "%s", place);
        } else if (rc < 0 && *fd >= 0) {
            close(*fd);
        }
    }
    if (*in != NULL && rc == BRC_OK) {
        (*in)->refs++;
        (*in)->used = ++p->clock;
        *fd = (*in)->fd;
    }
    pthread_mutex_unlock(&p->lock);
    return rc;
}

static void in_give(packs *p, int fd, pack_in *in)
{
    if (in == NULL) {
        close(fd);
        return;
    }
    pthread_mutex_lock(&p->lock);
    in->refs--;
    pthread_mutex_unlock(&p->lock);
}

static int fetch_from(void *state, size_t n, brc_stored *const *items, brc_error *err)
{
    packs *p = state;
    pack_in *in;
    int fd, why = 0, rc = in_take(p, items[0]->place, &fd, &in, err);
    if (rc < 0)
        return rc;
    brc_pack_read(fd, n, items, &why);
    in_give(p, fd, in);
    for (size_t i = 0; i < n && rc == BRC_OK; i++) {
        rc = items[i]->status;
        if (rc == BRC_ECORRUPT)
            (void)brc_fail(err, rc, "the pack %s%s is cut off: it ends before byte %" PRIu64
                           ": " BRC_PACK_REMEDY,
                           p->dir, items[i]->place, items[i]->offset + items[i]->len);
        else if (rc < 0)
            (void)brc_fail(err, rc, "cannot read %s%s: %s", p->dir, items[i]->place, strerror(why));
    }
    return rc;
}

static int pack_fetch(void *ctx, void *state, size_t n, brc_stored *const *items, brc_error *err)
{
    (void)ctx;
    return brc_pack_fetch(n, items, fetch_from, state, err);
}

static int pack_look(void *ctx, void *state, const char *place, brc_error *err)
{
    const packs *p = state;
    char path[PATH_SIZE];
    int why;
    (void)ctx;
    if (pack_of_place(place) == NULL)
        return brc_fail(err, BRC_EINVAL, "\"%.80s\" is not the name of a pack", place);
    const int fd = in_open(p, place, path, &why);
    if (fd < 0)
        return in_missing(p, place, path, why, err);
    const int rc = in_check(p, fd, path, err);
    close(fd);
    return rc;
}

/* ---- dropping and listing -------------------------------- */

/* Ends a pack of this state, so that it can be dropped. Returns 0 if a put() is writing to it. */
static int own_end(packs *p, const char *place)
{
    int is_free = 1;
    pthread_mutex_lock(&p->syncing);
    pthread_mutex_lock(&p->lock);
    if (p->out != NULL && strcmp(p->out->place, place) == 0)
        out_retire(p);
    for (pack_out **at = &p->full; *at != NULL;) {
        pack_out *out = *at;
        if (strcmp(out->place, place) != 0 || out->refs > 1) {
            is_free &= strcmp(out->place, place) != 0;
            at = &out->next;
            continue;
        }
        *at = out->next;
        out_unref(out);
    }
    pack_in *in = in_held(p, place);
    if (in != NULL && in->refs == 0 && is_free) {
        close(in->fd);
        in->fd = -1;
    }
    pthread_mutex_unlock(&p->lock);
    pthread_mutex_unlock(&p->syncing);
    return is_free;
}

/* Removes a pack if it is this file's, and nobody may append to it. */
static int drop_pack(packs *p, const char *place, brc_error *err)
{
    char folder[PLACE_SIZE], path[PATH_SIZE];
    const char *name = pack_of_place(place);
    int why, rc = BRC_OK, fd;
    if (name == NULL)
        return brc_fail(err, BRC_EINVAL, "\"%.80s\" is not the name of a pack", place);
    fd = in_open(p, place, path, &why);
    if (fd < 0)
        return why == ENOENT ? BRC_OK : pack_failed("remove", path, why, err);
    close(fd);
    snprintf(folder, sizeof(folder), "%.*s", (int)(name - place - 1), place);
    if (strncmp(path + strlen(p->dir), folder, strlen(folder)) != 0) /* renamed with its file */
        snprintf(folder, sizeof(folder), "%s", p->folder);
    if (!is_owner(p, folder) || !own_end(p, place))
        return BRC_OK;
    fd = out_lock(path, 0);
    if (fd < 0) /* another writer's, who may be adding to it */
        return BRC_OK;
    if (unlink(path) != 0 && errno != ENOENT)
        rc = pack_failed("remove", path, errno, err);
    close(fd);
    return rc;
}

static int pack_drop(void *ctx, void *state, size_t n, brc_stored *const *items, brc_error *err)
{
    int result = BRC_OK;
    (void)ctx;
    for (size_t i = 0; i < n; i++) {
        items[i]->status = items[i]->place != NULL
                               ? drop_pack(state, items[i]->place, result == BRC_OK ? err : NULL)
                               : BRC_OK;
        if (result == BRC_OK)
            result = items[i]->status;
    }
    return result;
}

/* Returns whether nobody else may append to a pack. */
static int is_at_rest(packs *p, const char *place, const char *path)
{
    pthread_mutex_lock(&p->lock);
    int is_own = p->out != NULL && strcmp(p->out->place, place) == 0;
    for (const pack_out *out = p->full; out != NULL; out = out->next)
        is_own |= strcmp(out->place, place) == 0;
    pthread_mutex_unlock(&p->lock);
    const int fd = is_own ? -1 : out_lock(path, 0);
    if (fd >= 0)
        close(fd);
    return is_own || fd >= 0;
}

static int list_pack(packs *p, const char *folder, const char *name,
                     int (*each)(void *to, const brc_kept *kept, brc_error *err), void *to,
                     brc_error *err)
{
    char path[PATH_SIZE], place[PLACE_SIZE + 256];
    uint8_t head[BRC_PACK_HEAD];
    struct stat file;
    if (!is_pack_name(name) || pack_path(path, p, folder, name, NULL) < 0)
        return BRC_OK;
    if (snprintf(place, sizeof(place), "%s/%s", folder, name) >= PLACE_SIZE)
        return BRC_OK;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    const int is_ours = fd >= 0 && fstat(fd, &file) == 0 && S_ISREG(file.st_mode) &&
                        pread(fd, head, sizeof(head), 0) == (ssize_t)sizeof(head) &&
                        brc_pack_is_head_of(head, p->id, p->most);
    if (fd >= 0)
        close(fd);
    if (!is_ours || !is_at_rest(p, place, path))
        return BRC_OK;
    const brc_kept kept = { sizeof(kept), place, BRC_KEPT_PLACE | BRC_KEPT_OWN,
                            (uint64_t)file.st_size, (int64_t)file.st_mtime * 1000000 };
    return each(to, &kept, err);
}

static int list_folder(packs *p, const char *folder,
                       int (*each)(void *to, const brc_kept *kept, brc_error *err), void *to,
                       brc_error *err)
{
    char path[PATH_SIZE];
    const struct dirent *entry;
    int rc = BRC_OK;
    if (!is_owner(p, folder) || pack_path(path, p, folder, "", NULL) < 0)
        return BRC_OK;
    DIR *dir = opendir(path);
    if (dir == NULL)
        return errno == ENOENT ? BRC_OK : pack_failed("list", path, errno, err);
    while (rc == BRC_OK && (entry = readdir(dir)) != NULL)
        rc = list_pack(p, folder, entry->d_name, each, to, err);
    closedir(dir);
    return rc;
}

/* The packs of this file may be in folders with earlier names of the file. */
static int pack_list(void *ctx, void *state,
                     int (*each)(void *to, const brc_kept *kept, brc_error *err), void *to,
                     brc_error *err)
{
    packs *p = state;
    const struct dirent *entry;
    int rc = BRC_OK;
    (void)ctx;
    DIR *dir = opendir(p->dir[0] != '\0' ? p->dir : ".");
    if (dir == NULL)
        return pack_failed("list", p->dir, errno, err);
    while (rc == BRC_OK && (entry = readdir(dir)) != NULL)
        if (ends_with(entry->d_name, strlen(entry->d_name), FOLDER_END))
            rc = list_folder(p, entry->d_name, each, to, err);
    closedir(dir);
    return rc;
}

int brc_backend_pack_register(brc_registry *reg, brc_error *err)
{
    static const brc_backend pack = {
        .size = sizeof(pack),
        .name = "pack",
        .flags = BRC_BACKEND_ON_WORKERS | BRC_BACKEND_PACKS | BRC_BACKEND_NEAR,
        .check = pack_check,
        .open = pack_open,
        .close = pack_close,
        .fetch = pack_fetch,
        .put = pack_put,
        .flush = pack_flush,
        .drop = pack_drop,
        .list = pack_list,
        .look = pack_look,
    };
    return brc_registry_add_backend(reg, &pack, err);
}
