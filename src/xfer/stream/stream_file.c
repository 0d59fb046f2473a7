/* Reading what a stream refers to. */
#include "stream_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../base/fd.h"

/* Not to wait where somebody has put a pipe in its place. */
static int open_source(brc_stream_file *file, brc_error *err)
{
    struct stat st;
    file->fd = open(file->name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file->fd < 0)
        return brc_fail_os(err, errno, "cannot open", file->name);
    file->is_open = 1;
    if (fstat(file->fd, &st) < 0)
        return brc_fail_os(err, errno, "cannot read", file->name);
    file->size = (uint64_t)st.st_size;
    return S_ISREG(st.st_mode)
               ? BRC_OK
               : brc_fail(err, BRC_EINVAL, "%s is not a regular file", file->name);
}

void brc_stream_file_close(brc_stream_file *file)
{
    if (file->is_open)
        close(file->fd);
    file->is_open = 0;
}

int brc_stream_range_open(brc_stream_range *out, brc_stream_file *file, const brc_tar_range *range,
                          brc_error *err)
{
    uint64_t bytes;
    if (!file->is_open)
        BRC_TRY(open_source(file, err));
    *out = (brc_stream_range){ .file = file, .range = *range };
    if (brc_tar_range_bytes(range, &bytes) && range->at <= file->size &&
        range->step * (range->pieces - 1) + range->len <= file->size - range->at)
        return BRC_OK;
    return brc_fail(err, BRC_EINVAL,
                    "the file ends before these elements do: it is truncated or damaged");
}

int brc_stream_range_read(void *ctx, uint8_t *dst, size_t len, brc_error *err)
{
    brc_stream_range *r = ctx;
    while (len > 0) {
        if (r->at == r->range.len) {
            r->at = 0;
            r->piece++;
        }
        if (r->piece >= r->range.pieces)
            return brc_fail(err, BRC_EINTERNAL, "%s: a range is read beyond its end",
                            r->file->name);
        uint64_t left = r->range.len - r->at;
        size_t n = left < len ? (size_t)left : len;
        BRC_TRY(brc_fd_read_at(r->file->fd, dst, n,
                               r->range.at + r->piece * r->range.step + r->at, r->file->name,
                               err));
        r->at += n;
        dst += n;
        len -= n;
    }
    return BRC_OK;
}
