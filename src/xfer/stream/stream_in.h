/*
 * Imports a Zarr v3 hierarchy from a tar stream (docs/STREAM.md): documents make nodes, and chunks
 * are taken over while the stream is still being read.
 *
 * The whole stream is hostile. Its content is checked as far as a repository needs; content that
 * contradicts itself, or that is outside every array's grid, is refused. Memory is bounded by the
 * repository's budget, whatever the stream's size.
 */
#ifndef BRC_XFER_STREAM_STREAM_IN_H
#define BRC_XFER_STREAM_STREAM_IN_H

#include "../../base/part.h"
#include "../tar/tar.h"

typedef struct brc_stream_opts {
    const brc_xfer_opts *xfer; /* chunks and codecs, and the exclusions              */
    /* The file that a converter reads. The stream's codecs are then only a form of transport, and arrays get the
     * codecs of new ones; members may refer to bytes in this file. NULL: neither. */
    const char *file;
    const char *name; /* for messages: the name of the stream, or of the file that it describes */
    brc_parts *parts; /* receives the parts that cannot be kept; NULL: not wanted      */
} brc_stream_opts;

typedef struct brc_stream brc_stream;

/* Opens a stream. `tar` and everything that the options point to must outlive it. */
BRC_MUST_USE int brc_stream_open(brc_stream **out, brc_session *s, brc_tar_in *tar,
                                 const brc_stream_opts *opts, brc_error *err);
void brc_stream_free(brc_stream *stream);
/* Sets *is to 0 if the first document is the root's, and an array's. Reads no further. */
BRC_MUST_USE int brc_stream_is_group(int *is, brc_stream *stream, brc_error *err);
/* Makes the stream's root the node `path`, which does not exist yet or is the root. Call within a transaction;
 * after a failure it may hold a part of the import. */
BRC_MUST_USE int brc_stream_import(brc_stream *stream, const char *path, brc_error *err);
/* Returns the decoded bytes of the arrays whose documents precede the first chunk. Reads no further, and creates
 * nothing. */
BRC_MUST_USE int brc_stream_bytes(uint64_t *bytes, brc_stream *stream, brc_error *err);

#endif
