/* A tar stream on a descriptor, read and written so that an interruption ends the wait. */
#ifndef BRC_XFER_STREAM_STREAM_FD_H
#define BRC_XFER_STREAM_STREAM_FD_H

#include "../tar/tar_in.h"
#include "../tar/tar_out.h"

typedef struct brc_stream_fd {
    breccia *repo;
    int fd;
    const char *name;
    size_t most; /* bytes that are written at once */
} brc_stream_fd;

/* `source` and what it points to must last as long as the reader. */
BRC_MUST_USE int brc_stream_fd_open(brc_tar_in **out, brc_stream_fd *source, breccia *repo, int fd,
                                    const char *name, brc_error *err);
/* The same to write; a reader that goes away is an error, never a signal. */
BRC_MUST_USE int brc_stream_fd_create(brc_tar_out **out, brc_stream_fd *sink, breccia *repo, int fd,
                                      const char *name, brc_error *err);

#endif
