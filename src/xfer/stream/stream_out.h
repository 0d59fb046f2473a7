/*
 * A node and all under it as a tar stream of Zarr v3 (docs/STREAM.md): every document
 * first, parents before children, then the chunks, array by array in the order of its grid.
 */
#ifndef BRC_XFER_STREAM_STREAM_OUT_H
#define BRC_XFER_STREAM_STREAM_OUT_H

#include "../tar/tar.h"

/* ---- stream fd -------------------------------- */

/* A tar stream on a descriptor, read and written so that an interruption ends the wait. */

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

/* ---- stream file -------------------------------- */

/*
 * The file that a converter reads, as its stream refers to it: bytes that a repository can take
 * over as they are do not travel. A converter sees a stranger's file, and may be lost to it: of
 * that one file it can name any bytes, and of no other.
 */

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

/* ---- stream out -------------------------------- */

typedef struct brc_stream_out_opts {
    /* To a converter: chunks are decoded, as brc_array_open_plain() has them, each array's
     * document says in BRC_EXPORT_NOTE what its codecs are here, and attributes are what they are;
     * else chunks are as the arrays' codecs have them, stored bytes as they are. */
    int transport;
    int nan_tokens;    /* see BRC_XFER_NAN_TOKENS */
    brc_buf *warnings; /* see brc_xfer_opts       */
} brc_stream_out_opts;
BRC_MUST_USE int brc_stream_export(brc_session *s, const char *path, brc_tar_out *tar,
                                   const brc_stream_out_opts *opts, brc_error *err);

#endif
