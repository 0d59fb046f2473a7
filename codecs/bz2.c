/* "numcodecs.bz2": bzip2 streams, one or several in a row, through libbz2. */
#include "builtin.h"
#include "lib/codec_help.h"

#include <bzlib.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

struct bz2_state {
    int level;
    uint64_t decoded; /* exact length, or BRC_LEN_VARIES                         */
};

static int bz2_open(void *ctx, void **out_state, const brc_json *config, const brc_proto *in,
                    brc_proto *out, int *identity, brc_error *err)
{
    static const char *const members[] = { "level" };
    (void)ctx;
    (void)identity;
    const brc_json *level = brc_json_member(config, "level");
    int64_t number = 1;
    int rc = config != NULL ? brc_json_allow(config, members, 1, err) : BRC_OK;

    if (rc < 0)
        return rc;
    if (level != NULL && !brc_json_int(level, 1, 9, &number))
        return brc_fail(err, BRC_EINVAL, "\"level\" must be an integer from 1 to 9");
    struct bz2_state state = { (int)number, in->len };
    brc_codec_longer(in, out, in->max_len / 8 + (64 << 10), 0);
    return brc_codec_state_copy(out_state, &state, sizeof(state), err);
}

static int bz2_write_config(void *ctx, const void *state, brc_buf *out, brc_error *err)
{
    (void)ctx;
    return brc_buf_printf(out, err, "{\"level\":%d}", ((const struct bz2_state *)state)->level);
}

/* libbz2 counts in unsigned int, so longer data is passed in slices. */
static unsigned bz2_slice(size_t len)
{
    return len > UINT_MAX ? UINT_MAX : (unsigned)len;
}

static int bz2_fail(brc_error *err, int result)
{
    switch (result) {
    case BZ_MEM_ERROR:
        return brc_fail(err, BRC_ENOMEM, "out of memory");
    case BZ_DATA_ERROR_MAGIC:
        return brc_fail(err, BRC_ECORRUPT, "this is not a bzip2 stream");
    case BZ_DATA_ERROR:
        return brc_fail(err, BRC_ECORRUPT, "a block of the bzip2 stream is damaged");
    default:
        return brc_fail(err, BRC_EINTERNAL, "libbz2 gave %d", result);
    }
}

static int bz2_run_encoder(bz_stream *z, brc_span src, brc_buf *dst, brc_error *err)
{
    int result = BZ_RUN_OK;

    while (result != BZ_STREAM_END) {
        size_t room = 0;
        int rc = brc_codec_make_room(dst, SIZE_MAX, &room, err);
        if (rc == BRC_OK && room == 0)
            rc = brc_buf_reserve(dst, 1, err);
        if (rc < 0)
            return rc;
        unsigned in = bz2_slice(src.len), out = bz2_slice(room);
        z->next_in = (char *)(uintptr_t)src.data;
        z->avail_in = in;
        z->next_out = (char *)dst->data + dst->len;
        z->avail_out = out;
        result = BZ2_bzCompress(z, in == src.len ? BZ_FINISH : BZ_RUN);
        if (result < 0)
            return bz2_fail(err, result);
        src.data += in - z->avail_in;
        src.len -= in - z->avail_in;
        dst->len += out - z->avail_out;
    }
    return BRC_OK;
}

static int bz2_encode(void *ctx, const void *state, void *scratch, brc_span src, brc_buf *dst,
                      brc_error *err)
{
    (void)ctx;
    (void)scratch;
    bz_stream z;

    memset(&z, 0, sizeof(z));
    int result = BZ2_bzCompressInit(&z, ((const struct bz2_state *)state)->level, 0, 0);
    if (result != BZ_OK)
        return bz2_fail(err, result);
    int rc = bz2_run_encoder(&z, src, dst, err);
    BZ2_bzCompressEnd(&z);
    return rc;
}

static int bz2_run_decoder(bz_stream *z, size_t goal, brc_span *src, brc_buf *dst, brc_error *err)
{
    char spare; /* output room that only data beyond the limit reach             */
    int result = BZ_OK;

    while (result != BZ_STREAM_END) {
        size_t room = 0;
        int rc = brc_codec_make_room(dst, goal, &room, err);
        if (rc < 0)
            return rc;
        unsigned in = bz2_slice(src->len), out = room > 0 ? bz2_slice(room) : 1;
        z->next_in = (char *)(uintptr_t)src->data;
        z->avail_in = in;
        z->next_out = room > 0 ? (char *)dst->data + dst->len : &spare;
        z->avail_out = out;
        result = BZ2_bzDecompress(z);
        if (result != BZ_OK && result != BZ_STREAM_END)
            return bz2_fail(err, result);
        src->data += in - z->avail_in;
        src->len -= in - z->avail_in;
        if (room == 0 && z->avail_out == 0)
            return brc_fail(err, BRC_ECORRUPT, "the streams decode to more than %zu bytes",
                            dst->len);
        if (room > 0)
            dst->len += out - z->avail_out;
        if (result == BZ_OK && src->len == 0 && z->avail_out > 0)
            return brc_fail(err, BRC_ECORRUPT, "the last stream is truncated");
    }
    return BRC_OK;
}

static int bz2_decode(void *ctx, const void *state, void *scratch, brc_span src, brc_buf *dst,
                      brc_error *err)
{
    (void)ctx;
    (void)scratch;
    uint64_t decoded = ((const struct bz2_state *)state)->decoded;
    size_t goal = decoded == BRC_LEN_VARIES ? SIZE_MAX : (size_t)decoded;

    if (src.len == 0)
        return brc_fail(err, BRC_ECORRUPT, "there is no stream");
    int rc = goal != SIZE_MAX ? brc_buf_reserve(dst, goal, err) : BRC_OK;
    while (rc == BRC_OK && src.len > 0) {
        bz_stream z;
        memset(&z, 0, sizeof(z));
        int result = BZ2_bzDecompressInit(&z, 0, 0);
        if (result != BZ_OK)
            return bz2_fail(err, result);
        rc = bz2_run_decoder(&z, goal, &src, dst, err);
        BZ2_bzDecompressEnd(&z);
    }
    return rc;
}

int brc_codec_bz2_register(brc_registry *reg, brc_error *err)
{
    static const brc_codec_spec spec = {
        .size = sizeof(spec),
        .name = "numcodecs.bz2",
        .kind = BRC_BYTES_TO_BYTES,
        .open = bz2_open,
        .close = brc_codec_state_free,
        .write_config = bz2_write_config,
    };
    static const brc_codec_impl impl = {
        .size = sizeof(impl),
        .spec = "numcodecs.bz2",
        .name = "libbz2",
        .encode = bz2_encode,
        .decode = bz2_decode,
    };

    int rc = brc_codec_add(reg, &spec, &impl, err);
    /* its former name in zarrs */
    return rc < 0 ? rc
                  : brc_registry_add_alias(reg, "https://codec.zarrs.dev/bytes_to_bytes/bz2",
                                           "numcodecs.bz2", err);
}
