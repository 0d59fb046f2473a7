/*
 * Writing a tar stream: ustar, and pax where a name or size needs it. Equal members in
 * the same order give the same bytes: it contains no time or owner.
 *
 * Used by the programs of src/convert too: nothing here needs a repository.
 */
#ifndef BRC_XFER_TAR_OUT_H
#define BRC_XFER_TAR_OUT_H

#include "tar_in.h"

/* Where the bytes go, all of them. */
typedef struct brc_tar_sink {
    void *ctx;
    int (*write)(void *ctx, const uint8_t *from, size_t len, brc_error *err);
} brc_tar_sink;

typedef struct brc_tar_out brc_tar_out;

/* `name`: what messages call the stream; it must last, as the sink must. */
BRC_MUST_USE int brc_tar_out_open(brc_tar_out **out, const brc_tar_sink *sink, const char *name,
                                  brc_error *err);
/* The same to a descriptor, which stays open. A reader that went away is an error, never
 * a signal. */
BRC_MUST_USE int brc_tar_out_open_fd(brc_tar_out **out, int fd, const char *name, brc_error *err);
/* One regular file. BRC_EINVAL if a reader would refuse the name. */
BRC_MUST_USE int brc_tar_put(brc_tar_out *out, const char *name, brc_span bytes, brc_error *err);
/* The same whose bytes are a range of the file that the stream is made of. */
BRC_MUST_USE int brc_tar_put_range(brc_tar_out *out, const char *name, const brc_tar_range *range, brc_error *err);
/* The end-of-archive blocks: without them a reader takes the stream for truncated. */
BRC_MUST_USE int brc_tar_finish(brc_tar_out *out, brc_error *err);
/* Releases the writer; writes nothing more. */
void brc_tar_out_free(brc_tar_out *out);

#endif
