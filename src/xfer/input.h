/*
 * Bytes in order, from a file, a gzip file or a member of a zip archive.
 *
 * Invariant: an input gives what it holds and no more than was asked for, so what
 * a compressed one inflates to is bounded by its reader. What it holds is hostile.
 */
#ifndef BRC_XFER_INPUT_H
#define BRC_XFER_INPUT_H

#include "../base/buf.h"

#define BRC_INPUT_HEAD 16 /* bytes that can be looked at in advance */

typedef struct brc_input brc_input;
struct brc_input {
    const char *name; /* for messages: "x.npy", "x.npz: a.npy"                 */
    uint64_t size;    /* bytes in all; BRC_LEN_VARIES: not known before the end */
    uint64_t taken;   /* bytes that brc_input_exact() has given                 */
    breccia *repo;    /* its task hears of it every few MiB and can stop the reading; NULL: none */
    /* reads some bytes, 1 to len of them; *got 0: the end */
    int (*read)(brc_input *in, uint8_t *dst, size_t len, size_t *got, brc_error *err);
    void (*close)(brc_input *in);
    uint8_t head[BRC_INPUT_HEAD];
    size_t head_len, head_at;
};

/* A regular file; where it begins as gzip does, what it inflates to. */
BRC_MUST_USE int brc_input_open(brc_input **out, const char *file, brc_error *err);
void brc_input_free(brc_input *in);

/* The first bytes, *n of them, fewer than BRC_INPUT_HEAD if there are no more. They
 * are given again when reading. */
BRC_MUST_USE int brc_input_peek(brc_input *in, const uint8_t **head, size_t *n, brc_error *err);
/* All len bytes; BRC_EINVAL if the input ends before. */
BRC_MUST_USE int brc_input_exact(brc_input *in, void *dst, size_t len, brc_error *err);
/* BRC_EINVAL if there is anything left. A compressed input checks its checksum
 * here. */
BRC_MUST_USE int brc_input_end(brc_input *in, brc_error *err);

/* Opens a regular file; a symbolic link at its end is refused unless `follow`, a
 * pipe never waited for. */
BRC_MUST_USE int brc_regular_open(int *fd, uint64_t *size, const char *file, int follow,
                                  brc_error *err);
/* Appends the whole of a regular file, no link; BRC_ELIMIT past `limit` bytes. */
BRC_MUST_USE int brc_regular_read(brc_buf *out, const char *file, uint64_t limit, brc_error *err);

#endif
