/*
 * "gzip" and "numcodecs.gzip": RFC 1952, and "numcodecs.zlib": RFC 1950, through zlib.
 *
 * Encoding writes one member with MTIME 0 and OS 255, so that equal bytes give equal members
 * on every machine. Decoding also reads several members, empty members and zeros after the
 * last member, which other writers produce. Old data of numcodecs may have gzip under the
 * name of zlib and the reverse, so for these names the header decides.
 */
#include "builtin.h"
#include "lib/codec_help.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { GZIP_WINDOW_BITS = 15, GZIP_HEADER = 16, GZIP_ANY_HEADER = 32, GZIP_MEMORY = 8 };
enum { GZIP_OS_UNKNOWN = 255 };

/* One of the three codecs: zlib's "window bits" select the header. */
struct gzip_kind {
    const char *name;
    int write_bits, read_bits;
    int level_min, level_usual;
};

static const struct gzip_kind gzip_kinds[] = {
    { "gzip", GZIP_WINDOW_BITS + GZIP_HEADER, GZIP_WINDOW_BITS + GZIP_HEADER, 0, 6 },
    { "numcodecs.gzip", GZIP_WINDOW_BITS + GZIP_HEADER, GZIP_WINDOW_BITS + GZIP_ANY_HEADER, -1, 1 },
    { "numcodecs.zlib", GZIP_WINDOW_BITS, GZIP_WINDOW_BITS + GZIP_ANY_HEADER, -1, 1 },
};

struct gzip_state {
    int level;
    uint64_t decoded; /* exact length, or BRC_LEN_VARIES                         */
};

struct gzip_scratch {
    z_stream deflater, inflater; /* initialized at the first use                 */
    int can_deflate, can_inflate;
    int level; /* level of the deflater                                          */
};

/* ---- specification ------------------------------------------------------------------ */

static int gzip_open(void *ctx, void **out_state, const brc_json *config, const brc_proto *in,
                     brc_proto *out, int *identity, brc_error *err)
{
    static const char *const members[] = { "level" };
    (void)identity;
    const struct gzip_kind *kind = ctx;
    const brc_json *level = brc_json_member(config, "level");
    int64_t number = kind->level_usual;

    if (config != NULL) {
        int rc = brc_json_allow(config, members, 1, err);
        if (rc < 0)
            return rc;
    }
    if (level != NULL && !brc_json_int(level, kind->level_min, 9, &number))
        return brc_fail(err, BRC_EINVAL, "\"level\" must be an integer from %d to 9",
                        kind->level_min);
    struct gzip_state *state = malloc(sizeof(*state));
    if (state == NULL)
        return brc_fail(err, BRC_ENOMEM, "out of memory");
    state->level = (int)number;
    state->decoded = in->len;
    /* Allow more than zlib's bound: other encoders may cut the data into many members. */
    uint64_t slack = in->max_len / 8 + ((uint64_t)64 << 10);
    out->max_len = in->max_len > UINT64_MAX - slack ? UINT64_MAX : in->max_len + slack;
    out->len = BRC_LEN_VARIES;
    *out_state = state;
    return BRC_OK;
}

static void gzip_close(void *ctx, void *state)
{
    (void)ctx;
    free(state);
}

static int gzip_write_config(void *ctx, const void *state, brc_buf *out, brc_error *err)
{
    (void)ctx;
    return brc_buf_printf(out, err, "{\"level\":%d}", ((const struct gzip_state *)state)->level);
}

/* ---- implementation ----------------------------------------------------------------- */

static int gzip_scratch_new(void *ctx, void **out, const void *state, brc_error *err)
{
    (void)ctx;
    (void)state;
    struct gzip_scratch *scratch = calloc(1, sizeof(*scratch));

    if (scratch == NULL)
        return brc_fail(err, BRC_ENOMEM, "out of memory");
    *out = scratch;
    return BRC_OK;
}

static void gzip_scratch_free(void *ctx, void *opaque)
{
    (void)ctx;
    struct gzip_scratch *scratch = opaque;

    if (scratch->can_deflate)
        deflateEnd(&scratch->deflater);
    if (scratch->can_inflate)
        inflateEnd(&scratch->inflater);
    free(scratch);
}

/* zlib counts in unsigned int, so longer data is passed in slices. */
static unsigned gzip_slice(size_t len)
{
    return len > UINT_MAX ? UINT_MAX : (unsigned)len;
}

static int gzip_ready_deflater(struct gzip_scratch *scratch, const struct gzip_kind *kind,
                               int level, gz_header *header, brc_error *err)
{
    if (scratch->can_deflate && scratch->level != level) {
        deflateEnd(&scratch->deflater);
        scratch->can_deflate = 0;
    }
    int result;
    if (scratch->can_deflate) {
        result = deflateReset(&scratch->deflater);
    } else {
        memset(&scratch->deflater, 0, sizeof(scratch->deflater));
        result = deflateInit2(&scratch->deflater, level, Z_DEFLATED, kind->write_bits, GZIP_MEMORY,
                              Z_DEFAULT_STRATEGY);
        scratch->can_deflate = result == Z_OK;
        scratch->level = level;
    }
    if (result == Z_OK && kind->write_bits > GZIP_WINDOW_BITS)
        result = deflateSetHeader(&scratch->deflater, header);
    if (result == Z_OK)
        return BRC_OK;
    return brc_fail(err, result == Z_MEM_ERROR ? BRC_ENOMEM : BRC_EINTERNAL, "%s", zError(result));
}

static int gzip_encode(void *ctx, const void *state, void *opaque, brc_span src, brc_buf *dst,
                       brc_error *err)
{
    struct gzip_scratch *scratch = opaque;
    gz_header header;
    int result = Z_OK;

    memset(&header, 0, sizeof(header));
    header.os = GZIP_OS_UNKNOWN;
    int rc =
        gzip_ready_deflater(scratch, ctx, ((const struct gzip_state *)state)->level, &header, err);
    if (rc == BRC_OK)
        rc = brc_buf_reserve(dst, deflateBound(&scratch->deflater, src.len), err);
    if (rc < 0)
        return rc;
    z_stream *z = &scratch->deflater;
    while (result == Z_OK) {
        unsigned in = gzip_slice(src.len), room = gzip_slice(dst->cap - dst->len);
        z->next_in = (z_const Bytef *)(uintptr_t)src.data;
        z->avail_in = in;
        z->next_out = dst->data + dst->len;
        z->avail_out = room;
        result = deflate(z, in == src.len ? Z_FINISH : Z_NO_FLUSH);
        src.data += in - z->avail_in;
        src.len -= in - z->avail_in;
        dst->len += room - z->avail_out;
    }
    if (result != Z_STREAM_END)
        return brc_fail(err, BRC_EINTERNAL, "deflate stopped: %s", zError(result));
    return BRC_OK;
}

static int gzip_decode_member(z_stream *z, size_t goal, brc_span *src, brc_buf *dst, brc_error *err)
{
    uint8_t spare; /* output room that only data beyond the limit reach          */
    int result = Z_OK;

    while (result != Z_STREAM_END) {
        size_t room = 0;
        int rc = brc_codec_make_room(dst, goal, &room, err);
        if (rc < 0)
            return rc;
        unsigned in = gzip_slice(src->len), out = room > 0 ? gzip_slice(room) : 1;
        z->next_in = (z_const Bytef *)(uintptr_t)src->data;
        z->avail_in = in;
        z->next_out = room > 0 ? dst->data + dst->len : &spare;
        z->avail_out = out;
        result = inflate(z, Z_NO_FLUSH);
        src->data += in - z->avail_in;
        src->len -= in - z->avail_in;
        if (room == 0 && z->avail_out == 0)
            return brc_fail(err, BRC_ECORRUPT, "the members decode to more than %zu bytes",
                            dst->len);
        if (room > 0)
            dst->len += out - z->avail_out;
        if (result == Z_MEM_ERROR)
            return brc_fail(err, BRC_ENOMEM, "out of memory");
        if (result == Z_BUF_ERROR)
            return brc_fail(err, BRC_ECORRUPT, "the last member is truncated");
        if (result != Z_OK && result != Z_STREAM_END)
            return brc_fail(err, BRC_ECORRUPT, "%s", z->msg != NULL ? z->msg : zError(result));
    }
    return BRC_OK;
}

static int gzip_ready_inflater(struct gzip_scratch *scratch, const struct gzip_kind *kind,
                               brc_error *err)
{
    int result = Z_OK;

    if (!scratch->can_inflate) {
        memset(&scratch->inflater, 0, sizeof(scratch->inflater));
        result = inflateInit2(&scratch->inflater, kind->read_bits);
        scratch->can_inflate = result == Z_OK;
    } else {
        result = inflateReset2(&scratch->inflater, kind->read_bits);
    }
    if (result == Z_OK)
        return BRC_OK;
    return brc_fail(err, result == Z_MEM_ERROR ? BRC_ENOMEM : BRC_EINTERNAL, "%s", zError(result));
}

static void gzip_skip_padding(brc_span *src)
{
    while (src->len > 0 && src->data[0] == 0) {
        src->data++;
        src->len--;
    }
}

static int gzip_decode(void *ctx, const void *state, void *opaque, brc_span src, brc_buf *dst,
                       brc_error *err)
{
    struct gzip_scratch *scratch = opaque;
    uint64_t decoded = ((const struct gzip_state *)state)->decoded;
    size_t goal = decoded == BRC_LEN_VARIES ? SIZE_MAX : (size_t)decoded;

    if (src.len == 0)
        return brc_fail(err, BRC_ECORRUPT, "there is no member");
    int rc = goal != SIZE_MAX ? brc_buf_reserve(dst, goal, err) : BRC_OK;
    while (rc == BRC_OK && src.len > 0) {
        rc = gzip_ready_inflater(scratch, ctx, err);
        if (rc == BRC_OK)
            rc = gzip_decode_member(&scratch->inflater, goal, &src, dst, err);
        gzip_skip_padding(&src);
    }
    return rc;
}

/* Decodes one member, or as much of the member as is wanted. */
static int gzip_inflate_first(z_stream *z, size_t wanted, brc_span *src, brc_buf *dst,
                              brc_error *err)
{
    int result = Z_OK;

    while (result == Z_OK && dst->len < wanted) {
        unsigned in = gzip_slice(src->len), out = gzip_slice(wanted - dst->len);
        z->next_in = (z_const Bytef *)(uintptr_t)src->data;
        z->avail_in = in;
        z->next_out = dst->data + dst->len;
        z->avail_out = out;
        result = inflate(z, Z_NO_FLUSH);
        src->data += in - z->avail_in;
        src->len -= in - z->avail_in;
        dst->len += out - z->avail_out;
    }
    if (result == Z_OK || result == Z_STREAM_END)
        return BRC_OK;
    if (result == Z_MEM_ERROR)
        return brc_fail(err, BRC_ENOMEM, "out of memory");
    return brc_fail(err, BRC_ECORRUPT, "%s", result == Z_BUF_ERROR ? "the last member is truncated"
                                             : z->msg != NULL      ? z->msg
                                                                   : zError(result));
}

/* Decodes every member from its beginning on, up to the last byte wanted. */
static int gzip_decode_part(void *ctx, const void *state, void *opaque, brc_span src, uint64_t from,
                            uint64_t to, brc_buf *dst, brc_error *err)
{
    (void)from;
    struct gzip_scratch *scratch = opaque;
    const size_t all = (size_t)((const struct gzip_state *)state)->decoded;
    int rc = brc_buf_reserve(dst, all, err);

    while (rc == BRC_OK && src.len > 0 && dst->len < to) {
        rc = gzip_ready_inflater(scratch, ctx, err);
        if (rc == BRC_OK)
            rc = gzip_inflate_first(&scratch->inflater, (size_t)to, &src, dst, err);
        gzip_skip_padding(&src);
    }
    if (rc == BRC_OK && dst->len < to)
        return brc_fail(err, BRC_ECORRUPT, "the members decode to %zu bytes only", dst->len);
    if (rc == BRC_OK)
        dst->len = all;
    return rc;
}

int brc_codec_gzip_register(brc_registry *reg, brc_error *err)
{
    brc_codec_spec spec = {
        .size = sizeof(spec),
        .kind = BRC_BYTES_TO_BYTES,
        .open = gzip_open,
        .close = gzip_close,
        .write_config = gzip_write_config,
    };
    brc_codec_impl impl = {
        .size = sizeof(impl),
        .name = "zlib",
        .scratch_new = gzip_scratch_new,
        .scratch_free = gzip_scratch_free,
        .encode = gzip_encode,
        .decode = gzip_decode,
        .decode_part = gzip_decode_part,
    };
    int rc = BRC_OK;

    for (size_t i = 0; i < sizeof(gzip_kinds) / sizeof(gzip_kinds[0]) && rc == BRC_OK; i++) {
        spec.name = impl.spec = gzip_kinds[i].name;
        spec.ctx = impl.ctx = (void *)(uintptr_t)&gzip_kinds[i];
        rc = brc_codec_add(reg, &spec, &impl, err);
    }
    /* its name in zarrita */
    return rc < 0 ? rc : brc_registry_add_alias(reg, "zlib", "numcodecs.zlib", err);
}
