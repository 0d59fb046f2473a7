/* Waiting for a descriptor. */
#include "stream_fd.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <sys/stat.h>

#include "../../base/fd.h"
#include "../../zarr/repo.h"

#define LOOK_MS 100 /* between two looks for an interruption */
#define SOON_MS 5   /* what takes longer holds no lock         */

static int wait_until_ready(const brc_stream_fd *stream, short events, brc_error *err)
{
    struct pollfd fd = { stream->fd, events, 0 };
    int ready = 0;
    for (int ms = SOON_MS; ready <= 0; ms = LOOK_MS) {
        BRC_TRY(brc_task_step(stream->repo, 0, err));
        ready = poll(&fd, 1, ms);
        if (ready < 0 && errno != EINTR)
            return brc_fail_os(err, errno, "waiting for", stream->name);
        if (ready == 0)
            BRC_TRY(brc_store_rest(stream->repo->store, 1, err));
    }
    return BRC_OK;
}

static int read_when_there(void *ctx, uint8_t *to, size_t cap, size_t *n, brc_error *err)
{
    const brc_stream_fd *source = ctx;
    BRC_TRY(wait_until_ready(source, POLLIN, err));
    return brc_fd_read(source->fd, to, cap, n, source->name, err);
}

int brc_stream_fd_open(brc_tar_in **out, brc_stream_fd *source, breccia *repo, int fd,
                       const char *name, brc_error *err)
{
    brc_tar_source from = { source, read_when_there };
    *source = (brc_stream_fd){ .repo = repo, .fd = fd, .name = name };
    return brc_tar_in_open(out, &from, name, err);
}

static int write_when_room(void *ctx, const uint8_t *from, size_t len, brc_error *err)
{
    const brc_stream_fd *sink = ctx;
    while (len > 0) {
        BRC_TRY(wait_until_ready(sink, POLLOUT, err));
        ptrdiff_t n = brc_fd_write_some(sink->fd, from, len < sink->most ? len : sink->most);
        if (n < 0 && errno != EINTR && errno != EAGAIN)
            return brc_fail_os(err, errno, "writing", sink->name);
        from += n > 0 ? n : 0;
        len -= n > 0 ? (size_t)n : 0;
    }
    return BRC_OK;
}

/* A pipe that has room has it for this much: the write does not wait where nobody looks for
 * an interruption. */
int brc_stream_fd_create(brc_tar_out **out, brc_stream_fd *sink, breccia *repo, int fd,
                         const char *name, brc_error *err)
{
    brc_tar_sink to = { sink, write_when_room };
    struct stat st;
    int is_file = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
    *sink = (brc_stream_fd){ repo, fd, name, is_file ? SIZE_MAX : PIPE_BUF };
    return brc_tar_out_open(out, &to, name, err);
}
