/*
 * Sequential bytes from a file, a gzip file or a member of a zip archive.
 *
 * Invariant: an input returns its content and no more than was asked for, so its reader bounds the
 * decompressed bytes. The content is hostile.
 */
#ifndef BRC_XFER_INPUT_H
#define BRC_XFER_INPUT_H

#include "../base/buf.h"

#define BRC_INPUT_HEAD 16 /* bytes that can be read ahead */

typedef struct brc_input brc_input;
struct brc_input {
    const char *name; /* for messages: "x.npy", "x.npz: a.npy"                 */
    uint64_t size;    /* bytes in all; BRC_LEN_VARIES: not known before the end */
    int is_plain;     /* the file itself, without compression                   */
    uint64_t taken;   /* bytes that brc_input_exact() has returned              */
    breccia *repo;    /* its task is told every few MiB and can stop the reading; NULL: none */
    /* Reads 1 to len bytes; *got is 0 at the end. */
    int (*read)(brc_input *in, uint8_t *dst, size_t len, size_t *got, brc_error *err);
    void (*close)(brc_input *in);
    uint8_t head[BRC_INPUT_HEAD];
    size_t head_len, head_at;
};

/* Opens a regular file; a gzip file is decompressed. */
BRC_MUST_USE int brc_input_open(brc_input **out, const char *file, brc_error *err);
void brc_input_free(brc_input *in);

/* Returns the first bytes: *n of them, fewer than BRC_INPUT_HEAD if the input is shorter. Reading returns them
 * again. */
BRC_MUST_USE int brc_input_peek(brc_input *in, const uint8_t **head, size_t *n, brc_error *err);
/* Reads all len bytes; BRC_EINVAL if the input ends earlier. */
BRC_MUST_USE int brc_input_exact(brc_input *in, void *dst, size_t len, brc_error *err);
/* Fails with BRC_EINVAL if anything is left. A compressed input compares its checksum here. */
BRC_MUST_USE int brc_input_end(brc_input *in, brc_error *err);

/* Opens a regular file; refuses a symbolic link at the end of the path unless `follow`, and never waits for a
 * pipe. */
BRC_MUST_USE int brc_regular_open(int *fd, uint64_t *size, const char *file, int follow,
                                  brc_error *err);
/* Appends a whole regular file, which must not be a link; BRC_ELIMIT past `limit` bytes. */
BRC_MUST_USE int brc_regular_read(brc_buf *out, const char *file, uint64_t limit, brc_error *err);

#endif
