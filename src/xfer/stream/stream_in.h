/*
 * A Zarr v3 hierarchy that comes as a tar stream (docs/STREAM.md): documents make nodes,
 * and chunks are taken over while the stream is still being read.
 *
 * Everything in it is hostile. What it says is checked as far as a repository needs it;
 * what contradicts itself, or lies in no array's grid, is refused. Memory is bounded by
 * the repository's budget and not by the stream.
 */
#ifndef BRC_XFER_STREAM_STREAM_IN_H
#define BRC_XFER_STREAM_STREAM_IN_H

#include "../../base/part.h"
#include "../tar/tar.h"

typedef struct brc_stream_opts {
    const brc_xfer_opts *xfer; /* chunks and codecs, and what stays out              */
    /* Of a converter: what it reads. The stream's codecs are only how elements travel, and arrays
     * get those of new ones; members may say that their bytes lie in this file. NULL: neither. */
    const char *file;
    const char *name; /* for messages: what the stream is, or the file that it tells of */
    brc_parts *parts; /* gets what cannot be kept; NULL: nobody wants to know          */
} brc_stream_opts;

typedef struct brc_stream brc_stream;

/* `tar` and what the options point to must last. */
BRC_MUST_USE int brc_stream_open(brc_stream **out, brc_session *s, brc_tar_in *tar,
                                 const brc_stream_opts *opts, brc_error *err);
void brc_stream_free(brc_stream *stream);
/* *is 0 if the first document is the root's, and an array's. Looks no further. */
BRC_MUST_USE int brc_stream_is_group(int *is, brc_stream *stream, brc_error *err);
/* The stream's root becomes the node `path`, which is not there yet or is the root. Within
 * a transaction, to which it leaves what failed. */
BRC_MUST_USE int brc_stream_import(brc_stream *stream, const char *path, brc_error *err);
/* The decoded bytes of the arrays whose documents come before the first chunk: reads no
 * further, and makes nothing. */
BRC_MUST_USE int brc_stream_bytes(uint64_t *bytes, brc_stream *stream, brc_error *err);

#endif
