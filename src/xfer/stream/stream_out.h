/*
 * A node and all under it as a tar stream of Zarr v3 (docs/STREAM.md): every document
 * first, parents before children, then the chunks, array by array in the order of its grid.
 */
#ifndef BRC_XFER_STREAM_STREAM_OUT_H
#define BRC_XFER_STREAM_STREAM_OUT_H

#include "../tar/tar_out.h"

/* `transport`: chunks are decoded, as brc_array_open_plain() has them, and each array's
 * document says in BRC_EXPORT_NOTE what its codecs are here; else they are as the arrays'
 * codecs have them, stored bytes as they are. */
BRC_MUST_USE int brc_stream_export(brc_session *s, const char *path, brc_tar_out *tar, int transport,
                                   brc_error *err);

#endif
