/* Waiting for bytes on a descriptor. */
#include "stream_fd.h"

#include <errno.h>
#include <poll.h>

#include "../../base/fd.h"
#include "../../zarr/repo.h"

#define LOOK_MS 100 /* between two looks for an interruption */

static int read_when_there(void *ctx, uint8_t *to, size_t cap, size_t *n, brc_error *err)
{
    const brc_stream_fd *source = ctx;
    struct pollfd fd = { source->fd, POLLIN, 0 };
    int ready;
    do {
        BRC_TRY(brc_task_step(source->repo, 0, err));
        ready = poll(&fd, 1, LOOK_MS);
        if (ready < 0 && errno != EINTR)
            return brc_fail_os(err, errno, "waiting for", source->name);
    } while (ready <= 0);
    return brc_fd_read(source->fd, to, cap, n, source->name, err);
}

int brc_stream_fd_open(brc_tar_in **out, brc_stream_fd *source, breccia *repo, int fd,
                       const char *name, brc_error *err)
{
    brc_tar_source from = { source, read_when_there };
    *source = (brc_stream_fd){ repo, fd, name };
    return brc_tar_in_open(out, &from, name, err);
}
