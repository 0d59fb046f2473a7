/*
 * Plain files as inputs.
 *
 * A file is read with read(2) and never mapped: one that shrinks meanwhile gives an error,
 * not a signal.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../base/alloc.h"
#include "../base/fd.h"
#include "gzip_input.h"

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
        BRC_TRY(brc_fd_read(fd, out->data + out->len, room, &got, file, err));
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

/* ---- as an input -------------------------------- */

typedef struct file_input {
    brc_input in;
    int fd;
} file_input;

static int file_input_read(brc_input *in, uint8_t *dst, size_t len, size_t *got, brc_error *err)
{
    return brc_fd_read(((file_input *)in)->fd, dst, len, got, in->name, err);
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
