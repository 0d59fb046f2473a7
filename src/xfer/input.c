/*
 * Inputs: what all have in common, and plain files.
 *
 * A file is read with read(2) and never mapped: one that shrinks meanwhile gives
 * an error and no signal.
 */
#include "input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../base/alloc.h"
#include "../zarr/repo.h"
#include "gzip_input.h"

#define PIECE_BYTES ((size_t)4 << 20) /* read at once: between pieces, progress is told */

static int read_some(int fd, const char *name, uint8_t *dst, size_t len, size_t *got,
                     brc_error *err)
{
    ssize_t n;
    do
        n = read(fd, dst, len > (size_t)1 << 30 ? (size_t)1 << 30 : len);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return brc_fail_os(err, errno, "cannot read", name);
    *got = (size_t)n;
    return BRC_OK;
}

int brc_regular_open(int *fd, uint64_t *size, const char *file, int follow, brc_error *err)
{
    struct stat st;
    /* without O_NONBLOCK, opening a pipe would wait for its writer */
    int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | (follow ? 0 : O_NOFOLLOW);

    *fd = open(file, flags);
    if (*fd < 0 && errno == ELOOP && !follow)
        return brc_fail(err, BRC_EINVAL, "%s is a symbolic link: it is not followed", file);
    if (*fd < 0)
        return brc_fail_os(err, errno, "cannot open", file);
    int rc = BRC_OK;
    if (fstat(*fd, &st) < 0)
        rc = brc_fail_os(err, errno, "cannot read", file);
    else if (!S_ISREG(st.st_mode))
        rc = brc_fail(err, BRC_EINVAL, "%s is not a regular file", file);
    if (rc < 0) {
        close(*fd);
        *fd = -1;
        return rc;
    }
    *size = (uint64_t)st.st_size;
    return BRC_OK;
}

static int read_to_end(brc_buf *out, int fd, const char *file, uint64_t limit, brc_error *err)
{
    uint64_t total = 0;
    for (;;) {
        size_t got = 0, room = out->cap - out->len;
        if (room == 0) {
            BRC_TRY(brc_buf_reserve(out, (size_t)64 << 10, err));
            room = out->cap - out->len;
        }
        BRC_TRY(read_some(fd, file, out->data + out->len, room, &got, err));
        if (got == 0)
            return BRC_OK;
        out->len += got;
        total += got;
        if (total > limit)
            return brc_fail(err, BRC_ELIMIT, "%s is longer than %llu bytes", file,
                            (unsigned long long)limit);
    }
}

int brc_regular_read(brc_buf *out, const char *file, uint64_t limit, brc_error *err)
{
    int fd;
    uint64_t size;
    BRC_TRY(brc_regular_open(&fd, &size, file, 0, err));
    int rc;
    if (size > limit)
        rc = brc_fail(err, BRC_ELIMIT, "%s is %llu bytes long, more than %llu", file,
                      (unsigned long long)size, (unsigned long long)limit);
    else
        rc = brc_buf_reserve(out, (size_t)size + 1, err); /* one more: the end is seen at once */
    if (rc == BRC_OK)
        rc = read_to_end(out, fd, file, limit, err);
    close(fd);
    return rc;
}

/* ---- plain files ------------------------------------------------------------ */

typedef struct file_input {
    brc_input in;
    int fd;
} file_input;

static int file_input_read(brc_input *in, uint8_t *dst, size_t len, size_t *got, brc_error *err)
{
    return read_some(((file_input *)in)->fd, in->name, dst, len, got, err);
}

static void file_input_close(brc_input *in)
{
    close(((file_input *)in)->fd);
    free(in);
}

static int open_plain(brc_input **out, const char *file, brc_error *err)
{
    file_input *f;
    BRC_TRY(brc_new((void **)&f, sizeof(*f), err));
    int rc = brc_regular_open(&f->fd, &f->in.size, file, 1, err);
    if (rc < 0) {
        free(f);
        return rc;
    }
    f->in.name = file;
    f->in.read = file_input_read;
    f->in.close = file_input_close;
    *out = &f->in;
    return BRC_OK;
}

int brc_input_open(brc_input **out, const char *file, brc_error *err)
{
    brc_input *in = NULL, *plain;
    const uint8_t *head;
    size_t n;
    int rc;

    *out = NULL;
    BRC_GO(open_plain(&in, file, err));
    BRC_GO(brc_input_peek(in, &head, &n, err));
    if (brc_is_gzip(head, n)) {
        plain = in;
        in = NULL;
        BRC_GO(brc_gzip_open(&in, plain, err));
    }
    *out = in;
    in = NULL;
done:
    brc_input_free(in);
    return rc;
}

void brc_input_free(brc_input *in)
{
    if (in)
        in->close(in);
}

/* ---- reading ------------------------------------------------------------------ */

int brc_input_peek(brc_input *in, const uint8_t **head, size_t *n, brc_error *err)
{
    if (in->taken == 0 && in->head_len == 0) {
        size_t got = 1;
        while (got > 0 && in->head_len < BRC_INPUT_HEAD) {
            BRC_TRY(
                in->read(in, in->head + in->head_len, BRC_INPUT_HEAD - in->head_len, &got, err));
            in->head_len += got;
        }
    }
    *head = in->head + in->head_at;
    *n = in->head_len - in->head_at;
    return BRC_OK;
}

int brc_input_exact(brc_input *in, void *dst, size_t len, brc_error *err)
{
    uint8_t *at = dst;
    size_t left = len;
    size_t n = in->head_len - in->head_at;
    if (n > left)
        n = left;
    if (n > 0)
        memcpy(at, in->head + in->head_at, n);
    in->head_at += n;
    at += n;
    left -= n;
    while (left > 0) {
        if (in->repo)
            BRC_TRY(brc_task_step(in->repo, 0, err));
        BRC_TRY(in->read(in, at, left < PIECE_BYTES ? left : PIECE_BYTES, &n, err));
        if (n == 0)
            return brc_fail(err, BRC_EINVAL, "%s ends too early: %llu bytes are missing", in->name,
                            (unsigned long long)left);
        at += n;
        left -= n;
    }
    in->taken += len;
    return BRC_OK;
}

int brc_input_end(brc_input *in, brc_error *err)
{
    uint8_t byte;
    size_t got = in->head_len - in->head_at;
    if (got == 0)
        BRC_TRY(in->read(in, &byte, 1, &got, err));
    if (got > 0)
        return brc_fail(err, BRC_EINVAL, "%s goes on after its last element, at byte %llu",
                        in->name, (unsigned long long)in->taken);
    return BRC_OK;
}
