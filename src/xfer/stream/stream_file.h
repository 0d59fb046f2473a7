/*
 * The file that a converter reads, as its stream refers to it: bytes that a repository can take
 * over as they are do not travel. A converter sees a stranger's file, and may be lost to it: of
 * that one file it can name any bytes, and of no other.
 */
#ifndef BRC_XFER_STREAM_FILE_H
#define BRC_XFER_STREAM_FILE_H

#include "../tar/tar_in.h"

typedef struct brc_stream_file {
    const char *name; /* NULL: there is none */
    int is_open, fd;
    uint64_t size;
} brc_stream_file;

/* What is read of a range, a part after the other. */
typedef struct brc_stream_range {
    brc_stream_file *file;
    brc_tar_range range;
    uint64_t piece, at; /* the next byte: of which piece, and in it */
} brc_stream_range;

/* BRC_EINVAL where the range does not lie in the file, which is opened for the first one, or
 * where nothing but a regular file has that name. */
BRC_MUST_USE int brc_stream_range_open(brc_stream_range *out, brc_stream_file *file, const brc_tar_range *range,
                                       brc_error *err);
/* The next `len` bytes, which must be there. `ctx` is the brc_stream_range. */
BRC_MUST_USE int brc_stream_range_read(void *ctx, uint8_t *dst, size_t len, brc_error *err);
void brc_stream_file_close(brc_stream_file *file);

#endif
