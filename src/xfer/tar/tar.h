/*
 * Reads the members of a tar stream in order: the common form of imports and exports.
 *
 * The content of a stream is hostile. Only regular files are handed out, under names that stay
 * within the hierarchy ("a/b/c"); directories are skipped; links, devices, sparse files and other
 * names are refused, and so is a stream that ends without its end-of-archive blocks or continues
 * after them. Memory is bounded by what the caller asks for, whatever sizes the stream states. The
 * caller must detect a name that occurs twice.
 *
 * The programs of src/convert use these functions too: nothing here needs a repository.
 */
#ifndef BRC_XFER_TAR_TAR_H
#define BRC_XFER_TAR_TAR_H

#include "../../base/buf.h"

/* ---- tar in -------------------------------- */

#define BRC_TAR_NAME_MAX 8192 /* bytes of a member's name */

/* Bytes that are not in the stream: `len` bytes of another file at `at`, and so on `pieces` times, each `step`
 * bytes after the one before. */
typedef struct brc_tar_range {
    uint64_t at, len, step, pieces;
} brc_tar_range;
/* The extended attribute that holds the range of a member without bytes of its own: "AT LEN" or "AT LEN STEP
 * PIECES", in decimal. */
#define BRC_TAR_RANGE "breccia.range"

/* The source of the bytes: reads at most cap of them; *n is 0 at the end. */
typedef struct brc_tar_source {
    void *ctx;
    int (*read)(void *ctx, uint8_t *to, size_t cap, size_t *n, brc_error *err);
} brc_tar_source;

typedef struct brc_tar_member {
    const char *name; /* "a/zarr.json": valid until the next member is read */
    uint64_t size;    /* as the stream states; not read yet                      */
    int refers;       /* its bytes are a range of another file; size is 0        */
    brc_tar_range range;
} brc_tar_member;

typedef struct brc_tar_in brc_tar_in;

/* Opens a stream without reading. `name`: the stream's name in messages; it must outlive the reader, as must the
 * source. */
BRC_MUST_USE int brc_tar_in_open(brc_tar_in **out, const brc_tar_source *source, const char *name,
                                 brc_error *err);
/* Opens a stream on a descriptor, which stays open. */
BRC_MUST_USE int brc_tar_in_open_fd(brc_tar_in **out, int fd, const char *name, brc_error *err);
void brc_tar_in_free(brc_tar_in *in);

/* Returns 1 with the next member, after skipping the unread rest of the one before. Returns 0 at the end, when the
 * source has been read to its own end. */
BRC_MUST_USE int brc_tar_next(brc_tar_in *in, brc_tar_member *member, brc_error *err);
/* Appends all of the member's bytes; call once. BRC_ELIMIT if there are more than `limit`. */
BRC_MUST_USE int brc_tar_read(brc_tar_in *in, uint64_t limit, brc_buf *out, brc_error *err);

/* Sums the range's pieces; returns 0 if the sum or the end of the range exceeds 63 bits. */
int brc_tar_range_bytes(const brc_tar_range *range, uint64_t *bytes);

/* Returns 1 if the name is valid for a member: relative, without ".", ".." and empty parts, valid UTF-8, not too
 * long. */
int brc_tar_name_ok(const char *name);

/* ---- tar out -------------------------------- */

/*
 * Writes a tar stream: ustar, and pax if a name or size needs it. Equal members in the same order
 * give the same bytes: the stream contains no time or owner.
 *
 * The programs of src/convert use these functions too: nothing here needs a repository.
 */

/* The sink of the bytes, which must take all of them. */
typedef struct brc_tar_sink {
    void *ctx;
    int (*write)(void *ctx, const uint8_t *from, size_t len, brc_error *err);
} brc_tar_sink;

typedef struct brc_tar_out brc_tar_out;

/* Opens a stream for writing. `name`: the stream's name in messages; it must outlive the writer, as must the
 * sink. */
BRC_MUST_USE int brc_tar_out_open(brc_tar_out **out, const brc_tar_sink *sink, const char *name,
                                  brc_error *err);
/* Opens a stream on a descriptor, which stays open. A reader that goes away is an error, never a signal. */
BRC_MUST_USE int brc_tar_out_open_fd(brc_tar_out **out, int fd, const char *name, brc_error *err);
/* Writes one regular file. BRC_EINVAL if a reader would refuse the name. */
BRC_MUST_USE int brc_tar_put(brc_tar_out *out, const char *name, brc_span bytes, brc_error *err);
/* Writes one regular file whose bytes are a range of the file from which the stream is made. */
BRC_MUST_USE int brc_tar_put_range(brc_tar_out *out, const char *name, const brc_tar_range *range, brc_error *err);
/* Writes the end-of-archive blocks: without them a reader takes the stream for truncated. */
BRC_MUST_USE int brc_tar_finish(brc_tar_out *out, brc_error *err);
/* Frees the writer; writes nothing more. */
void brc_tar_out_free(brc_tar_out *out);

#endif
