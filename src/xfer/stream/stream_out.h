/*
 * Writes a node and all nodes under it as a tar stream of Zarr v3 (docs/STREAM.md): every document
 * first, parents before children, then the chunks, array by array in the order of its grid.
 */
#ifndef BRC_XFER_STREAM_STREAM_OUT_H
#define BRC_XFER_STREAM_STREAM_OUT_H

#include "../tar/tar.h"

/* ---- stream fd -------------------------------- */

/* A tar stream on a descriptor. An interruption ends a wait for the descriptor. */

typedef struct brc_stream_fd {
    breccia *repo;
    int fd;
    const char *name;
    size_t most; /* bytes that are written at once */
} brc_stream_fd;

/* Opens a reader. `source` and everything that it points to must outlive the reader. */
BRC_MUST_USE int brc_stream_fd_open(brc_tar_in **out, brc_stream_fd *source, breccia *repo, int fd,
                                    const char *name, brc_error *err);
/* Opens a writer; a reader that goes away is an error, never a signal. */
BRC_MUST_USE int brc_stream_fd_create(brc_tar_out **out, brc_stream_fd *sink, breccia *repo, int fd,
                                      const char *name, brc_error *err);

/* ---- stream file -------------------------------- */

/*
 * The file that a converter reads and to which its stream refers: bytes that a repository can take
 * over unchanged do not travel. A converter reads a stranger's file, which may take control of it:
 * the converter can refer to any bytes of that file, and to no other file.
 */

typedef struct brc_stream_file {
    const char *name; /* NULL: no file */
    int is_open, fd;
    uint64_t size;
} brc_stream_file;

/* A reader of a range. */
typedef struct brc_stream_range {
    brc_stream_file *file;
    brc_tar_range range;
    uint64_t piece, at; /* the next byte: the number of its piece, and the offset there */
} brc_stream_range;

/* Opens a range. BRC_EINVAL if the range does not lie in the file, which the first call opens, or if the name is
 * not a regular file's. */
BRC_MUST_USE int brc_stream_range_open(brc_stream_range *out, brc_stream_file *file, const brc_tar_range *range,
                                       brc_error *err);
/* Reads the next `len` bytes, which must exist. `ctx` is the brc_stream_range. */
BRC_MUST_USE int brc_stream_range_read(void *ctx, uint8_t *dst, size_t len, brc_error *err);
void brc_stream_file_close(brc_stream_file *file);

/* ---- stream out -------------------------------- */

typedef struct brc_stream_out_opts {
    /* BRC_PLAIN_*: to a converter. Chunks are in that form, as brc_array_open_plain() has them, each array's document names its
     * codecs in BRC_EXPORT_NOTE, and attributes stay as they are. 0: chunks are encoded with the arrays' codecs,
     * and stored bytes stay as they are. */
    int transport;
    int nan_tokens;    /* see BRC_XFER_NAN_TOKENS */
    brc_buf *warnings; /* see brc_xfer_opts       */
} brc_stream_out_opts;
BRC_MUST_USE int brc_stream_export(brc_session *s, const char *path, brc_tar_out *tar,
                                   const brc_stream_out_opts *opts, brc_error *err);

#endif
