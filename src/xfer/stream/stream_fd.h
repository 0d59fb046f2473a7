/* A tar stream on a descriptor, read so that an interruption ends the wait for bytes. */
#ifndef BRC_XFER_STREAM_STREAM_FD_H
#define BRC_XFER_STREAM_STREAM_FD_H

#include "stream_in.h"

typedef struct brc_stream_fd {
    breccia *repo;
    int fd;
    const char *name;
} brc_stream_fd;

/* `source` and what it points to must last as long as the reader. */
BRC_MUST_USE int brc_stream_fd_open(brc_tar_in **out, brc_stream_fd *source, breccia *repo, int fd,
                                    const char *name, brc_error *err);

#endif
