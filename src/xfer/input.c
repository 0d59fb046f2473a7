/* The common functions of all inputs, and the inputs of plain and gzip files. */
#include "input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "../base/alloc.h"
#include "../base/file.h"
#include "../work/session.h"

static int gzip_input_open(brc_input **out, brc_input *packed, brc_error *err);
static int is_gzip(const uint8_t *head, size_t n);

/* ==== input ================================ */

#define PIECE_BYTES ((size_t)4 << 20) /* read at once: between pieces, progress is reported */

void brc_input_free(brc_input *in)
{
    if (in)
        in->close(in);
}

int brc_input_peek(brc_input *in, const uint8_t **head, size_t *n, brc_error *err)
{
    if (in->taken == 0 && in->head_len == 0) {
        size_t got = 1;
        while (got > 0 && in->head_len < BRC_INPUT_HEAD) {
            BRC_TRY(
                in->read(in, in->head + in->head_len, BRC_INPUT_HEAD - in->head_len, &got, err));
            in->head_len += got;
        }
    }
    *head = in->head + in->head_at;
    *n = in->head_len - in->head_at;
    return BRC_OK;
}

int brc_input_exact(brc_input *in, void *dst, size_t len, brc_error *err)
{
    uint8_t *at = dst;
    size_t left = len;
    size_t n = in->head_len - in->head_at;
    if (n > left)
        n = left;
    if (n > 0)
        memcpy(at, in->head + in->head_at, n);
    in->head_at += n;
    at += n;
    left -= n;
    while (left > 0) {
        if (in->repo)
            BRC_TRY(brc_task_step(in->repo, 0, err));
        BRC_TRY(in->read(in, at, left < PIECE_BYTES ? left : PIECE_BYTES, &n, err));
        if (n == 0)
            return brc_fail(err, BRC_EINVAL, "%s ends too early: %llu bytes are missing", in->name,
                            (unsigned long long)left);
        at += n;
        left -= n;
    }
    in->taken += len;
    return BRC_OK;
}

int brc_input_end(brc_input *in, brc_error *err)
{
    uint8_t byte;
    size_t got = in->head_len - in->head_at;
    if (got == 0)
        BRC_TRY(in->read(in, &byte, 1, &got, err));
    if (got > 0)
        return brc_fail(err, BRC_EINVAL, "%s goes on after its last element, at byte %llu",
                        in->name, (unsigned long long)in->taken);
    return BRC_OK;
}

/* ==== file input ================================ */

/*
 * Plain files as inputs.
 *
 * A file is read with read(2) and never mapped: a file that shrinks meanwhile gives an error
 * instead of a signal.
 */

int brc_regular_open(int *fd, uint64_t *size, const char *file, int follow, brc_error *err)
{
    struct stat st;
    /* without O_NONBLOCK, opening a pipe would wait for its writer */
    int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | (follow ? 0 : O_NOFOLLOW);

    *fd = open(file, flags);
    if (*fd < 0 && errno == ELOOP && !follow)
        return brc_fail(err, BRC_EINVAL, "%s is a symbolic link: it is not followed", file);
    if (*fd < 0)
        return brc_fail_os(err, errno, "cannot open", file);
    int rc = BRC_OK;
    if (fstat(*fd, &st) < 0)
        rc = brc_fail_os(err, errno, "cannot read", file);
    else if (!S_ISREG(st.st_mode))
        rc = brc_fail(err, BRC_EINVAL, "%s is not a regular file", file);
    if (rc < 0) {
        close(*fd);
        *fd = -1;
        return rc;
    }
    *size = (uint64_t)st.st_size;
    return BRC_OK;
}

static int read_to_end(brc_buf *out, int fd, const char *file, uint64_t limit, brc_error *err)
{
    uint64_t total = 0;
    for (;;) {
        size_t got = 0, room = out->cap - out->len;
        if (room == 0) {
            BRC_TRY(brc_buf_reserve(out, (size_t)64 << 10, err));
            room = out->cap - out->len;
        }
        BRC_TRY(brc_fd_read(fd, out->data + out->len, room, &got, file, err));
        if (got == 0)
            return BRC_OK;
        out->len += got;
        total += got;
        if (total > limit)
            return brc_fail(err, BRC_ELIMIT, "%s is longer than %llu bytes", file,
                            (unsigned long long)limit);
    }
}

int brc_regular_read(brc_buf *out, const char *file, uint64_t limit, brc_error *err)
{
    int fd;
    uint64_t size;
    BRC_TRY(brc_regular_open(&fd, &size, file, 0, err));
    int rc;
    if (size > limit)
        rc = brc_fail(err, BRC_ELIMIT, "%s is %llu bytes long, more than %llu", file,
                      (unsigned long long)size, (unsigned long long)limit);
    else
        rc = brc_buf_reserve(out, (size_t)size + 1, err); /* one more: the end is seen at once */
    if (rc == BRC_OK)
        rc = read_to_end(out, fd, file, limit, err);
    close(fd);
    return rc;
}

/* ---- as an input -------------------------------- */

typedef struct file_input {
    brc_input in;
    int fd;
} file_input;

static int file_input_read(brc_input *in, uint8_t *dst, size_t len, size_t *got, brc_error *err)
{
    return brc_fd_read(((file_input *)in)->fd, dst, len, got, in->name, err);
}

static void file_input_close(brc_input *in)
{
    close(((file_input *)in)->fd);
    free(in);
}

static int open_plain(brc_input **out, const char *file, brc_error *err)
{
    file_input *f;
    BRC_TRY(brc_new((void **)&f, sizeof(*f), err));
    int rc = brc_regular_open(&f->fd, &f->in.size, file, 1, err);
    if (rc < 0) {
        free(f);
        return rc;
    }
    f->in.name = file;
    f->in.is_plain = 1;
    f->in.read = file_input_read;
    f->in.close = file_input_close;
    *out = &f->in;
    return BRC_OK;
}

int brc_input_open(brc_input **out, const char *file, brc_error *err)
{
    brc_input *in = NULL, *plain;
    const uint8_t *head;
    size_t n;
    int rc;

    *out = NULL;
    BRC_GO(open_plain(&in, file, err));
    BRC_GO(brc_input_peek(in, &head, &n, err));
    if (is_gzip(head, n)) {
        plain = in;
        in = NULL;
        BRC_GO(gzip_input_open(&in, plain, err));
    }
    *out = in;
    in = NULL;
done:
    brc_input_free(in);
    return rc;
}

/* ==== gzip input ================================ */

/* gzip (RFC 1952) with zlib: checks the checksum and length of each member. */

#define GZIP_PIECE ((size_t)64 << 10)

typedef struct gzip_input {
    brc_input in;
    brc_input *packed;
    z_stream z;
    int between; /* before a member, where the data may end */
    int members;
    uint8_t piece[GZIP_PIECE];
} gzip_input;

static int is_gzip(const uint8_t *head, size_t n)
{
    return n >= 3 && head[0] == 0x1F && head[1] == 0x8B && head[2] == 8;
}

/* Reads more packed bytes at z; z.avail_in stays 0 at the end. */
static int refill_packed(gzip_input *g, brc_error *err)
{
    brc_input *p = g->packed;
    size_t got = p->head_len - p->head_at;
    g->z.next_in = p->head + p->head_at;
    p->head_at = p->head_len;
    if (got == 0) {
        BRC_TRY(p->read(p, g->piece, GZIP_PIECE, &got, err));
        g->z.next_in = g->piece;
    }
    g->z.avail_in = (uInt)got;
    return BRC_OK;
}

/* Skips zeros, with which some writers fill up the last block of a tape or a pipe. */
static int skip_zeros(gzip_input *g, brc_error *err)
{
    do {
        while (g->z.avail_in > 0) {
            if (*g->z.next_in != 0)
                return brc_fail(err, BRC_EINVAL, "%s has other data after its gzip data",
                                g->in.name);
            g->z.next_in++;
            g->z.avail_in--;
        }
        BRC_TRY(refill_packed(g, err));
    } while (g->z.avail_in > 0);
    return BRC_OK;
}

/* At the end of a member, finds out whether another one follows. *more 0: the end. */
static int next_member(gzip_input *g, int *more, brc_error *err)
{
    *more = 0;
    if (g->z.avail_in == 0)
        BRC_TRY(refill_packed(g, err));
    if (g->z.avail_in == 0)
        return BRC_OK;
    if (g->members > 0 && *g->z.next_in != 0x1F)
        return skip_zeros(g, err);
    if (inflateReset(&g->z) != Z_OK)
        return brc_fail(err, BRC_EINTERNAL, "zlib cannot restart");
    g->between = 0;
    g->members++;
    *more = 1;
    return BRC_OK;
}

static int inflate_step(gzip_input *g, brc_error *err)
{
    if (g->z.avail_in == 0)
        BRC_TRY(refill_packed(g, err));
    if (g->z.avail_in == 0)
        return brc_fail(err, BRC_EINVAL, "%s is truncated: its gzip data ends too early",
                        g->in.name);
    int z = inflate(&g->z, Z_NO_FLUSH);
    if (z == Z_STREAM_END)
        g->between = 1;
    else if (z == Z_MEM_ERROR)
        return brc_nomem(err);
    else if (z != Z_OK && z != Z_BUF_ERROR)
        return brc_fail(err, BRC_EINVAL, "%s is damaged: gzip: %s", g->in.name,
                        g->z.msg ? g->z.msg : "bad data");
    return BRC_OK;
}

static int gzip_input_read(brc_input *in, uint8_t *dst, size_t len, size_t *got, brc_error *err)
{
    gzip_input *g = (gzip_input *)in;
    uInt want = len > (size_t)1 << 30 ? (uInt)1 << 30 : (uInt)len;
    int more = 1;
    g->z.next_out = dst;
    g->z.avail_out = want;
    while (g->z.avail_out == want) {
        if (g->between)
            BRC_TRY(next_member(g, &more, err));
        if (!more)
            break;
        BRC_TRY(inflate_step(g, err));
    }
    *got = want - g->z.avail_out;
    return BRC_OK;
}

static void gzip_input_close(brc_input *in)
{
    gzip_input *g = (gzip_input *)in;
    inflateEnd(&g->z);
    brc_input_free(g->packed);
    free(g);
}

/* Opens the decompressed content of `packed`, all members in sequence. Takes `packed` over, also on
 * failure. Anything but zeros after the last member is an error. */
static int gzip_input_open(brc_input **out, brc_input *packed, brc_error *err)
{
    gzip_input *g;
    *out = NULL;
    int rc = brc_new((void **)&g, sizeof(*g), err);
    if (rc == BRC_OK && inflateInit2(&g->z, 16 + MAX_WBITS) != Z_OK) {
        free(g);
        rc = brc_nomem(err);
    }
    if (rc < 0) {
        brc_input_free(packed);
        return rc;
    }
    g->packed = packed;
    g->between = 1;
    g->in.name = packed->name;
    g->in.size = BRC_LEN_VARIES;
    g->in.read = gzip_input_read;
    g->in.close = gzip_input_close;
    *out = &g->in;
    return BRC_OK;
}
