/*
 * The members of a tar stream, in order: the common form of imports and exports.
 *
 * What a stream holds is hostile. Only regular files are handed out, under names that
 * stay within the hierarchy ("a/b/c"); directories are passed over; links, devices,
 * sparse files and other names are refused, and so is a stream that ends without its
 * end-of-archive blocks or goes on behind them. Memory is bounded by what is asked for,
 * whatever the stream says about sizes. Whether a name comes twice is the caller's to see.
 *
 * Used by the programs of src/convert too: nothing here needs a repository.
 */
#ifndef BRC_XFER_TAR_TAR_H
#define BRC_XFER_TAR_TAR_H

#include "../../base/buf.h"

/* ---- tar in -------------------------------- */

#define BRC_TAR_NAME_MAX 8192 /* bytes of a member's name */

/* Bytes that are not in the stream: those of another file at `at`, `len` of them, and so on
 * `pieces` times, each `step` bytes behind the one before. */
typedef struct brc_tar_range {
    uint64_t at, len, step, pieces;
} brc_tar_range;
/* The extended attribute that says so, of a member without bytes of its own: "AT LEN" or
 * "AT LEN STEP PIECES", in decimal. */
#define BRC_TAR_RANGE "breccia.range"

/* Where the bytes come from: some of them, at most cap; *n 0 at the end. */
typedef struct brc_tar_source {
    void *ctx;
    int (*read)(void *ctx, uint8_t *to, size_t cap, size_t *n, brc_error *err);
} brc_tar_source;

typedef struct brc_tar_member {
    const char *name; /* "a/zarr.json": valid until the next member is asked for */
    uint64_t size;    /* what the stream says: not yet read                      */
    int refers;       /* its bytes are a range of another file; size is 0        */
    brc_tar_range range;
} brc_tar_member;

typedef struct brc_tar_in brc_tar_in;

/* Reads nothing yet. `name`: what messages call the stream; it must last, as the source
 * must. */
BRC_MUST_USE int brc_tar_in_open(brc_tar_in **out, const brc_tar_source *source, const char *name,
                                 brc_error *err);
/* The same from a descriptor, which stays open. */
BRC_MUST_USE int brc_tar_in_open_fd(brc_tar_in **out, int fd, const char *name, brc_error *err);
void brc_tar_in_free(brc_tar_in *in);

/* 1 with the next member; what was not read of the one before is passed over. 0 at the
 * end, when the source has been read to its own end. */
BRC_MUST_USE int brc_tar_next(brc_tar_in *in, brc_tar_member *member, brc_error *err);
/* Appends the member's bytes, all of them, once; BRC_ELIMIT if it has more than
 * `limit`. */
BRC_MUST_USE int brc_tar_read(brc_tar_in *in, uint64_t limit, brc_buf *out, brc_error *err);

/* The sum of the range's pieces; 0: it has more bytes, or ends further on, than 63 bits count. */
int brc_tar_range_bytes(const brc_tar_range *range, uint64_t *bytes);

/* 1 if a member may have this name: relative, without ".", ".." and empty parts, valid
 * UTF-8, not too long. */
int brc_tar_name_ok(const char *name);

/* ---- tar out -------------------------------- */

/*
 * Writing a tar stream: ustar, and pax where a name or size needs it. Equal members in
 * the same order give the same bytes: it contains no time or owner.
 *
 * Used by the programs of src/convert too: nothing here needs a repository.
 */

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
