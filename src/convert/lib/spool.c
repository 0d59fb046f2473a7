/* See spool.h. */
#include "spool.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <unistd.h>

#include "../../base/alloc.h"
#include "../../base/fd.h"

/* Not every file system makes files without a name: there it has one for a moment. */
static int open_unnamed(const char *folder, const char *file, brc_error *err)
{
    brc_buf name = BRC_BUF_INIT;
    int fd = -1, rc;
#ifdef O_TMPFILE
    fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0)
        return fd;
#endif
    BRC_GO(brc_buf_printf(&name, err, "%s/.breccia-XXXXXX", folder));
    BRC_GO(brc_buf_terminate(&name, err));
    fd = mkstemp((char *)name.data);
    rc = fd < 0 ? brc_fail_os(err, errno, "cannot make a temporary file beside", file) : BRC_OK;
    if (fd >= 0)
        (void)unlink((char *)name.data);
done:
    brc_buf_dispose(&name);
    return rc < 0 ? rc : fd;
}

int brc_spool_open(brc_spool *spool, const char *file, brc_error *err)
{
    char *name;
    BRC_TRY(brc_dup(&name, file, err));
    spool->file = file;
    spool->end = 0;
    spool->fd = open_unnamed(dirname(name), file, err);
    free(name);
    return spool->fd < 0 ? spool->fd : BRC_OK;
}

void brc_spool_close(brc_spool *spool)
{
    if (spool->fd >= 0)
        (void)close(spool->fd);
    spool->fd = -1;
}

int brc_spool_take(brc_spool *spool, uint64_t bytes, uint64_t *at, brc_error *err)
{
    *at = spool->end;
    if (spool->fd < 0)
        return brc_fail(err, BRC_EIO, "cannot make a temporary file beside %s", spool->file);
    if (!brc_add_u64(spool->end, bytes, &spool->end) || spool->end > INT64_MAX)
        return brc_fail(err, BRC_ELIMIT,
                        "%s: its lists need a temporary file of more than 2^63 bytes", spool->file);
    if (ftruncate(spool->fd, (off_t)spool->end) < 0)
        return brc_fail_os(err, errno, "cannot write a temporary file beside", spool->file);
    return BRC_OK;
}

int brc_spool_write(const brc_spool *spool, uint64_t at, const void *data, size_t len,
                    brc_error *err)
{
    int rc = brc_fd_write_at(spool->fd, data, len, at, spool->file, err);
    if (rc < 0)
        brc_context(err, "the temporary file of an export");
    return rc;
}

int brc_spool_read(const brc_spool *spool, uint64_t at, void *data, size_t len, brc_error *err)
{
    int rc = brc_fd_read_at(spool->fd, data, len, at, spool->file, err);
    if (rc < 0)
        brc_context(err, "the temporary file of an export");
    return rc;
}

int brc_spool_clear(brc_spool *spool, brc_error *err)
{
    spool->end = 0;
    if (spool->fd >= 0 && ftruncate(spool->fd, 0) < 0)
        return brc_fail_os(err, errno, "cannot write a temporary file beside", spool->file);
    return BRC_OK;
}
