/* Writes a tree as a zip archive. tree_dir.c writes one as a directory. */
#include "zarr_hierarchy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "../../base/alloc.h"
#include "../../base/file.h"
#include "../../work/session.h"
#include "../../zarr/transfer.h"
#include "../dest.h"
#include "../zip.h"

void brc_tree_out_free(brc_tree_out *tree)
{
    if (tree)
        tree->close(tree);
}

/* ==== tree out zip ================================ */

/*
 * libzip takes the bytes of all entries while it closes the archive, so until then they wait in a
 * file without a name: memory does not grow with the data. Folders need no entries in a zip
 * archive: they follow from the entries' names.
 */

typedef struct zip_tree_out {
    brc_tree_out tree;
    brc_dest place;
    zip_t *archive;
    brc_store *store; /* asked whether to stop */
    int fd; /* the waiting bytes */
    uint64_t len;
} zip_tree_out;

/* One entry, while libzip has it. */
typedef struct waiting_entry {
    int fd;
    uint64_t start, len, at;
    zip_error_t error;
} waiting_entry;

/* ---- the source for libzip -------------------------------- */

static zip_int64_t read_waiting(waiting_entry *w, uint8_t *dst, uint64_t len)
{
    brc_error err = BRC_ERROR_INIT;
    if (len > w->len - w->at)
        len = w->len - w->at;
    if (brc_fd_read_at(w->fd, dst, (size_t)len, w->start + w->at, "", &err) < 0) {
        zip_error_set(&w->error, ZIP_ER_READ, err.detail != 0 ? err.detail : EIO);
        return -1;
    }
    w->at += len;
    return (zip_int64_t)len;
}

static zip_int64_t waiting_command(void *ctx, void *data, zip_uint64_t len,
                                   zip_source_cmd_t command)
{
    waiting_entry *w = ctx;
    switch (command) {
    case ZIP_SOURCE_SUPPORTS:
        return ZIP_SOURCE_SUPPORTS_READABLE;
    case ZIP_SOURCE_STAT:
        return brc_zip_stat(data, len, w->len);
    case ZIP_SOURCE_OPEN:
        w->at = 0;
        return 0;
    case ZIP_SOURCE_READ:
        return read_waiting(w, data, len);
    case ZIP_SOURCE_CLOSE:
        return 0;
    case ZIP_SOURCE_ERROR:
        return zip_error_to_data(&w->error, data, len);
    case ZIP_SOURCE_FREE:
        free(w);
        return 0;
    default:
        zip_error_set(&w->error, ZIP_ER_OPNOTSUPP, 0);
        return -1;
    }
}

/* ---- the archive -------------------------------- */

static int append_bytes(zip_tree_out *t, brc_span bytes, brc_error *err)
{
    BRC_TRY(brc_fd_write_at(t->fd, bytes.data, bytes.len, t->len, t->place.path, err));
    t->len += bytes.len;
    return BRC_OK;
}

static int put_entry(brc_tree_out *tree, const char *path, brc_span bytes, brc_error *err)
{
    zip_tree_out *t = (zip_tree_out *)tree;
    waiting_entry *w;
    uint64_t start = t->len;

    BRC_TRY(append_bytes(t, bytes, err));
    BRC_TRY(brc_new((void **)&w, sizeof(*w), err));
    w->fd = t->fd;
    w->start = start;
    w->len = bytes.len;
    zip_error_init(&w->error);
    return brc_zip_add(t->archive, path, waiting_command, w, err);
}

static int no_folder(brc_tree_out *tree, const char *path, brc_error *err)
{
    (void)tree;
    (void)path;
    (void)err;
    return BRC_OK;
}

/* Called while libzip writes the archive. */
static int is_cancelled(zip_t *archive, void *store)
{
    (void)archive;
    return brc_store_check_interrupt(store, NULL) < 0;
}

static int finish_zip(brc_tree_out *tree, brc_error *err)
{
    zip_tree_out *t = (zip_tree_out *)tree;
    if (zip_close(t->archive) < 0) {
        BRC_TRY(brc_store_check_interrupt(t->store, err));
        return brc_zip_fail_write(err, zip_get_error(t->archive), t->place.path);
    }
    t->archive = NULL;
    return brc_dest_finish(&t->place, 0, err);
}

static void close_zip(brc_tree_out *tree)
{
    zip_tree_out *t = (zip_tree_out *)tree;
    if (t->archive)
        zip_discard(t->archive);
    if (t->fd >= 0)
        close(t->fd);
    brc_dest_close(&t->place);
    free(t);
}

/* Opens a file beside the archive that only this process can see. */
static int open_waiting(zip_tree_out *t, brc_error *err)
{
    brc_buf name = BRC_BUF_INIT;
    int rc;

    BRC_GO(brc_buf_printf(&name, err, "%s.data", t->place.temp));
    BRC_GO(brc_buf_terminate(&name, err));
    t->fd = open((const char *)name.data, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (t->fd < 0)
        rc = brc_fail_os(err, errno, "cannot write", (const char *)name.data);
    else
        (void)unlink((const char *)name.data);
done:
    brc_buf_dispose(&name);
    return rc;
}

static int open_out_archive(zip_tree_out *t, brc_error *err)
{
    BRC_TRY(brc_zip_make(&t->archive, t->place.temp, t->place.path, err));
    (void)zip_register_cancel_callback_with_state(t->archive, is_cancelled, NULL, t->store);
    return BRC_OK;
}

int brc_tree_out_zip(brc_tree_out **out, const brc_session *s, const char *dest, brc_error *err)
{
    zip_tree_out *t;
    int rc;

    *out = NULL;
    BRC_TRY(brc_new((void **)&t, sizeof(*t), err));
    t->fd = -1;
    t->store = brc_session_repo(s)->store;
    t->tree.folder = no_folder;
    t->tree.put = put_entry;
    t->tree.finish = finish_zip;
    t->tree.close = close_zip;
    BRC_GO(brc_dest_open(&t->place, s, dest, 0, err));
    BRC_GO(open_waiting(t, err));
    BRC_GO(open_out_archive(t, err));
    *out = &t->tree;
done:
    if (rc < 0)
        close_zip(&t->tree);
    return rc;
}
