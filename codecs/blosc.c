/*
 * "blosc" and "numcodecs.blosc": a frame of c-blosc 1, all numbers little-endian.
 *
 *      0  version 2 | inner version 1 | flags | typesize
 *      4  nbytes: decoded         8  blocksize        12  cbytes: the whole frame
 *     16  bstarts: where each block begins, int32 each; absent in a stored frame
 *         blocks: streams of int32 length and that many bytes
 *
 *     flags  0x01 shuffle   0x02 stored   0x04 bitshuffle   0x08 reserved
 *            0x10 blocks are one stream   bits 5 to 7: inner codec
 *
 * c-blosc takes no length of its input, so this codec checks a frame from end to end before
 * it calls the library. It uses only calls without global state, which start no threads and
 * read no environment variables.
 *
 * numcodecs names the shuffles by number; -1 means the shuffle that suits the items: by bits
 * for items of one byte, else by bytes. The frame says which shuffle was used.
 */
#include "builtin.h"
#include "lib/codec_help.h"

#include <blosc.h>
#include <stdlib.h>
#include <string.h>

enum {
    BLOSC_HEADER = 16,
    BLOSC_ONE_STREAM = 0x10,
    BLOSC_EXTENDED = BLOSC_DOSHUFFLE | BLOSC_DOBITSHUFFLE, /* both: Blosc2's longer header */
    BLOSC_SPLIT_TYPESIZE = 16, /* c-blosc does not split blocks of wider items ... */
    BLOSC_SPLIT_STREAM = 128   /* ... or with shorter streams                     */
};

static const char *const blosc_shuffles[] = { "noshuffle", "shuffle", "bitshuffle" };
static const char *const blosc_cnames[] = { "blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd" };

struct blosc_state {
    const char *cname; /* points into blosc_cnames                               */
    int clevel, shuffle;
    int is_numcodecs, has_typesize;
    size_t typesize, blocksize;
    uint64_t decoded; /* exact length, or BRC_LEN_VARIES                         */
    uint64_t max_decoded;
};

/* ---- specification ------------------------------------------------------------------ */

static int blosc_read_cname(struct blosc_state *state, const brc_json *config, brc_error *err)
{
    const brc_json *value = brc_json_member(config, "cname");
    int found = value != NULL ? brc_json_choice(value, blosc_cnames, 6) : 1;

    if (found < 0)
        return brc_fail(
            err, BRC_EINVAL,
            "\"cname\" must be \"blosclz\", \"lz4\", \"lz4hc\", \"snappy\", \"zlib\" or \"zstd\"");
    if (blosc_compname_to_compcode(blosc_cnames[found]) < 0)
        return brc_fail(err, BRC_EUNSUPPORTED, "this build's c-blosc lacks \"%s\"; it has %s",
                        blosc_cnames[found], blosc_list_compressors());
    state->cname = blosc_cnames[found];
    return BRC_OK;
}

/* Reads "shuffle" as numcodecs writes it: a number, 1 if the member is absent. */
static int blosc_read_shuffle_number(struct blosc_state *state, const brc_json *config,
                                     brc_error *err)
{
    const brc_json *value = brc_json_member(config, "shuffle");
    int64_t number = BLOSC_SHUFFLE;

    if (value != NULL && !brc_json_int(value, -1, BLOSC_BITSHUFFLE, &number))
        return brc_fail(err, BRC_EINVAL, "\"shuffle\" must be an integer from -1 to 2");
    state->shuffle = (int)number;
    if (number < 0)
        state->shuffle = state->typesize == 1 ? BLOSC_BITSHUFFLE : BLOSC_SHUFFLE;
    return BRC_OK;
}

static int blosc_read_shuffle(struct blosc_state *state, const brc_json *config, brc_error *err)
{
    if (state->is_numcodecs)
        return blosc_read_shuffle_number(state, config, err);
    const brc_json *value = brc_json_member(config, "shuffle");

    state->shuffle = value != NULL ? brc_json_choice(value, blosc_shuffles, 3) : BLOSC_NOSHUFFLE;
    if (state->shuffle < 0)
        return brc_fail(err, BRC_EINVAL,
                        "\"shuffle\" must be \"noshuffle\", \"shuffle\" or \"bitshuffle\"");
    return BRC_OK;
}

/* Reads the numbers for encoding. Decoding needs none of them: the frame has its own. */
static int blosc_read_numbers(struct blosc_state *state, const brc_json *config,
                              const brc_dtype *type, brc_error *err)
{
    const brc_json *clevel = brc_json_member(config, "clevel");
    const brc_json *typesize = brc_json_member(config, "typesize");
    const brc_json *blocksize = brc_json_member(config, "blocksize");
    int64_t level = 5, size = 0, item = 1;

    if (state->is_numcodecs && brc_json_kind(typesize) == BRC_JSON_NULL)
        typesize = NULL;
    if (type != NULL && type->item_size >= 1 && type->item_size <= BLOSC_MAX_TYPESIZE)
        item = (int64_t)type->item_size;
    if (clevel != NULL && !brc_json_int(clevel, 0, 9, &level))
        return brc_fail(err, BRC_EINVAL, "\"clevel\" must be an integer from 0 to 9");
    if (typesize != NULL && !brc_json_int(typesize, 1, BLOSC_MAX_TYPESIZE, &item))
        return brc_fail(
            err, BRC_EINVAL,
            "\"typesize\" must be an integer from 1 to %d: blosc does not shuffle wider items",
            BLOSC_MAX_TYPESIZE);
    if (blocksize != NULL && !brc_json_int(blocksize, 0, BLOSC_MAX_BLOCKSIZE, &size))
        return brc_fail(err, BRC_EINVAL, "\"blocksize\" must be an integer from 0 to %d",
                        (int)BLOSC_MAX_BLOCKSIZE);
    state->clevel = (int)level;
    state->has_typesize = typesize != NULL;
    state->typesize = (size_t)item;
    state->blocksize = (size_t)size;
    return BRC_OK;
}

static int blosc_read_config(struct blosc_state *state, const brc_json *config, const brc_proto *in,
                             brc_error *err)
{
    static const char *const members[] = { "cname", "clevel", "shuffle", "typesize", "blocksize" };
    int rc = config != NULL ? brc_json_allow(config, members, 5, err) : BRC_OK;

    if (rc == BRC_OK)
        rc = blosc_read_cname(state, config, err);
    if (rc == BRC_OK)
        rc = blosc_read_numbers(state, config, in->dtype, err);
    if (rc == BRC_OK)
        rc = blosc_read_shuffle(state, config, err);
    return rc;
}

static int blosc_open(void *ctx, void **out_state, const brc_json *config, const brc_proto *in,
                      brc_proto *out, int *identity, brc_error *err)
{
    (void)identity;
    struct blosc_state read = { .is_numcodecs = ctx != NULL,
                                .decoded = in->len,
                                .max_decoded = in->max_len };
    int rc = blosc_read_config(&read, config, in, err);

    if (rc < 0)
        return rc;
    if (in->len != BRC_LEN_VARIES && in->len > BLOSC_MAX_BUFFERSIZE)
        return brc_fail(err, BRC_ELIMIT,
                        "blosc takes chunks of at most %d bytes, not %llu; choose smaller chunks",
                        BLOSC_MAX_BUFFERSIZE, (unsigned long long)in->len);
    struct blosc_state *state = malloc(sizeof(*state));
    if (state == NULL)
        return brc_fail(err, BRC_ENOMEM, "out of memory");
    if (read.max_decoded > BLOSC_MAX_BUFFERSIZE)
        read.max_decoded = BLOSC_MAX_BUFFERSIZE;
    *state = read;
    /* Leave room for the bytes that some writers put after the frame. */
    out->max_len = read.max_decoded + read.max_decoded / 8 + (64 << 10);
    out->len = BRC_LEN_VARIES;
    *out_state = state;
    return BRC_OK;
}

static void blosc_close(void *ctx, void *state)
{
    (void)ctx;
    free(state);
}

static int blosc_write_config(void *ctx, const void *state, brc_buf *out, brc_error *err)
{
    (void)ctx;
    const struct blosc_state *blosc = state;
    int rc = brc_buf_printf(out, err, "{\"cname\":\"%s\",\"clevel\":%d,\"shuffle\":", blosc->cname,
                            blosc->clevel);

    if (rc == BRC_OK && blosc->is_numcodecs)
        rc = brc_buf_printf(out, err, "%d", blosc->shuffle);
    else if (rc == BRC_OK)
        rc = brc_buf_printf(out, err, "\"%s\"", blosc_shuffles[blosc->shuffle]);
    if (rc == BRC_OK && (!blosc->is_numcodecs || blosc->has_typesize))
        rc = brc_buf_printf(out, err, ",\"typesize\":%zu", blosc->typesize);
    return rc < 0 ? rc : brc_buf_printf(out, err, ",\"blocksize\":%zu}", blosc->blocksize);
}

/* ---- a frame ------------------------------------------------------------------------ */

struct blosc_frame {
    const uint8_t *data;
    uint32_t flags, typesize, nbytes, blocksize, cbytes, nblocks;
};

static uint32_t blosc_u32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* Checks that the frame's inner codec is known and that this build's c-blosc has it. */
static int blosc_check_inner(const struct blosc_frame *frame, brc_error *err)
{
    static const char *const formats[] = { "blosclz", "lz4", "snappy", "zlib", "zstd" };
    uint32_t format = frame->flags >> 5;

    if (format >= sizeof(formats) / sizeof(formats[0]))
        return brc_fail(err, BRC_ECORRUPT, "the frame names the unknown inner codec %u", format);
    if (blosc_compname_to_compcode(formats[format]) < 0)
        return brc_fail(err, BRC_EUNSUPPORTED,
                        "the frame is compressed with \"%s\", which this build's c-blosc lacks",
                        formats[format]);
    if (frame->data[1] != 1)
        return brc_fail(err, BRC_ECORRUPT, "the frame has version %d of its inner codec",
                        frame->data[1]);
    return BRC_OK;
}

static int blosc_read_header(struct blosc_frame *frame, brc_span src, brc_error *err)
{
    if (src.len < BLOSC_HEADER)
        return brc_fail(err, BRC_ECORRUPT, "%zu bytes cannot hold a frame's header", src.len);
    const uint8_t *p = src.data;
    *frame =
        (struct blosc_frame){ p, p[2], p[3], blosc_u32(p + 4), blosc_u32(p + 8), blosc_u32(p + 12),
                              0 };
    if ((frame->flags & BLOSC_EXTENDED) == BLOSC_EXTENDED || p[0] > BLOSC_VERSION_FORMAT)
        return brc_fail(err, BRC_EUNSUPPORTED,
                        "this is a Blosc2 frame, which the codec \"blosc\" does not allow");
    if (p[0] != BLOSC_VERSION_FORMAT || (frame->flags & 0x08) != 0)
        return brc_fail(err, BRC_ECORRUPT, "this is not a blosc frame");
    if (frame->cbytes < BLOSC_HEADER || frame->cbytes > src.len)
        return brc_fail(err, BRC_ECORRUPT,
                        "the frame says that it has %u bytes, of %zu that are there", frame->cbytes,
                        src.len);
    if (frame->nbytes > BLOSC_MAX_BUFFERSIZE)
        return brc_fail(err, BRC_ECORRUPT, "the frame says that it decodes to %u bytes",
                        frame->nbytes);
    return BRC_OK;
}

/* Checks that the streams of one block lie within the frame. c-blosc reads exactly these. */
static int blosc_check_block(const struct blosc_frame *frame, uint32_t block, brc_error *err)
{
    uint32_t last = frame->nbytes % frame->blocksize;
    int is_short = block == frame->nblocks - 1 && last != 0;
    int is_split = (frame->flags & BLOSC_ONE_STREAM) == 0 && !is_short &&
                   frame->typesize <= BLOSC_SPLIT_TYPESIZE &&
                   frame->blocksize / frame->typesize >= BLOSC_SPLIT_STREAM;
    uint64_t at = blosc_u32(frame->data + BLOSC_HEADER + 4 * (size_t)block);

    if (at < BLOSC_HEADER + 4 * (uint64_t)frame->nblocks)
        return brc_fail(err, BRC_ECORRUPT, "block %u begins inside the frame's header", block);
    for (uint32_t i = 0; i < (is_split ? frame->typesize : 1); i++) {
        if (at + 4 > frame->cbytes)
            return brc_fail(err, BRC_ECORRUPT, "block %u is outside the frame", block);
        at += 4 + (uint64_t)blosc_u32(frame->data + at);
        if (at > frame->cbytes)
            return brc_fail(err, BRC_ECORRUPT, "block %u goes past the end of the frame", block);
    }
    return BRC_OK;
}

static int blosc_check_frame(struct blosc_frame *frame, brc_error *err)
{
    if (frame->typesize == 0 || frame->blocksize == 0 || frame->blocksize > frame->nbytes ||
        frame->blocksize > BLOSC_MAX_BLOCKSIZE)
        return brc_fail(err, BRC_ECORRUPT,
                        "the frame's block size %u or item size %u is impossible", frame->blocksize,
                        frame->typesize);
    if (frame->flags & BLOSC_MEMCPYED) {
        if (frame->cbytes != frame->nbytes + BLOSC_HEADER)
            return brc_fail(err, BRC_ECORRUPT, "the frame stores %u bytes in %u", frame->nbytes,
                            frame->cbytes);
        return BRC_OK;
    }
    int rc = blosc_check_inner(frame, err);
    if (rc < 0)
        return rc;
    frame->nblocks = frame->nbytes / frame->blocksize + (frame->nbytes % frame->blocksize != 0);
    if (frame->nblocks > (frame->cbytes - BLOSC_HEADER) / 4)
        return brc_fail(err, BRC_ECORRUPT, "the frame is too short for its %u blocks",
                        frame->nblocks);
    for (uint32_t i = 0; i < frame->nblocks && rc == BRC_OK; i++)
        rc = blosc_check_block(frame, i, err);
    return rc;
}

/* ---- implementation ----------------------------------------------------------------- */

/* c-blosc does not check its own allocations. Tries to allocate as much as c-blosc is about to
 * allocate (two blocks and a little more), and returns 0 if that fails. */
static int blosc_memory_is_there(uint64_t blocksize)
{
    void *probe = malloc((size_t)(2 * blocksize + 4 * BLOSC_MAX_TYPESIZE + 64));

    free(probe);
    return probe != NULL;
}

static int blosc_encode(void *ctx, const void *state, void *scratch, brc_span src, brc_buf *dst,
                        brc_error *err)
{
    (void)ctx;
    (void)scratch;
    const struct blosc_state *blosc = state;

    if (src.len > BLOSC_MAX_BUFFERSIZE)
        return brc_fail(err, BRC_ELIMIT, "blosc takes at most %d bytes, not %zu",
                        BLOSC_MAX_BUFFERSIZE, src.len);
    int rc = brc_buf_reserve(dst, src.len + BLOSC_MAX_OVERHEAD, err);
    if (rc < 0)
        return rc;
    if (!blosc_memory_is_there(src.len))
        return brc_fail(err, BRC_ENOMEM, "out of memory");
    int written = blosc_compress_ctx(blosc->clevel, blosc->shuffle, blosc->typesize, src.len,
                                     src.data, dst->data + dst->len, src.len + BLOSC_MAX_OVERHEAD,
                                     blosc->cname, blosc->blocksize, 1);
    if (written <= 0)
        return brc_fail(err, BRC_EINTERNAL, "c-blosc gave %d for %zu bytes", written, src.len);
    dst->len += (size_t)written;
    return BRC_OK;
}

static int blosc_decode(void *ctx, const void *state, void *scratch, brc_span src, brc_buf *dst,
                        brc_error *err)
{
    (void)ctx;
    (void)scratch;
    const struct blosc_state *blosc = state;
    struct blosc_frame frame = { 0 };
    int rc = blosc_read_header(&frame, src, err);

    if (rc < 0)
        return rc;
    int exact = blosc->decoded != BRC_LEN_VARIES;
    if (exact ? frame.nbytes != blosc->decoded : frame.nbytes > blosc->max_decoded)
        return brc_fail(err, BRC_ECORRUPT, "the frame decodes to %u bytes, not %llu", frame.nbytes,
                        (unsigned long long)(exact ? blosc->decoded : blosc->max_decoded));
    if (frame.nbytes == 0)
        return BRC_OK;
    rc = blosc_check_frame(&frame, err);
    if (rc == BRC_OK)
        rc = brc_buf_reserve(dst, frame.nbytes, err);
    if (rc < 0)
        return rc;
    if (!blosc_memory_is_there(frame.blocksize))
        return brc_fail(err, BRC_ENOMEM, "out of memory");
    int written = blosc_decompress_ctx(src.data, dst->data + dst->len, frame.nbytes, 1);
    if (written < 0 || (uint32_t)written != frame.nbytes)
        return brc_fail(err, BRC_ECORRUPT, "a block of the frame cannot be decompressed");
    dst->len += frame.nbytes;
    return BRC_OK;
}

int brc_codec_blosc_register(brc_registry *reg, brc_error *err)
{
    static const char has_numbers = 1;
    brc_codec_spec spec = {
        .size = sizeof(spec),
        .name = "blosc",
        .kind = BRC_BYTES_TO_BYTES,
        .open = blosc_open,
        .close = blosc_close,
        .write_config = blosc_write_config,
    };
    brc_codec_impl impl = {
        .size = sizeof(impl),
        .spec = "blosc",
        .name = "c-blosc",
        .encode = blosc_encode,
        .decode = blosc_decode,
    };
    int rc = brc_codec_add(reg, &spec, &impl, err);

    spec.name = impl.spec = "numcodecs.blosc";
    spec.ctx = (void *)(uintptr_t)&has_numbers;
    return rc < 0 ? rc : brc_codec_add(reg, &spec, &impl, err);
}
