/*
 * A node and all under it as a tar stream of Zarr v3 (docs/STREAM.md): every document
 * first, parents before children, then the chunks, array by array in the order of its grid.
 */
#ifndef BRC_XFER_STREAM_STREAM_OUT_H
#define BRC_XFER_STREAM_STREAM_OUT_H

#include "../tar/tar_out.h"

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
