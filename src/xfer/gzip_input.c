/* gzip (RFC 1952) with zlib: checksum and length of each member are checked. */
#include "gzip_input.h"

#include <stdlib.h>
#include <zlib.h>

#include "../base/alloc.h"

#define GZIP_PIECE ((size_t)64 << 10)

typedef struct gzip_input {
    brc_input in;
    brc_input *packed;
    z_stream z;
    int between; /* before a member, where the data may end */
    int members;
    uint8_t piece[GZIP_PIECE];
} gzip_input;

int brc_is_gzip(const uint8_t *head, size_t n)
{
    return n >= 3 && head[0] == 0x1F && head[1] == 0x8B && head[2] == 8;
}

/* More packed bytes at z; none left: z.avail_in stays 0. */
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

/* Some writers fill up the last block of a tape or a pipe with zeros. */
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

/* At the end of a member: whether another one follows. *more 0: the end. */
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

int brc_gzip_open(brc_input **out, brc_input *packed, brc_error *err)
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
