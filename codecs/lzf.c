/*
 * "imagecodecs_lzf": LZF, as imagecodecs stores it in Zarr and h5py in HDF5.
 *
 *     header   the length of the decoded bytes, uint32, little-endian; only if "header" is true
 *     000LLLLL                       L + 1 bytes follow as they are
 *     LLLOOOOO [LLLLLLLL] OOOOOOOO   L + 2 bytes are those from O + 1 bytes back; the first L is 1
 *                                    to 6, or 7 and a byte with what is more
 *
 * The chunks of HDF5 have no header. Without one the length must be known from the array. liblzf
 * takes what happens to be in memory for its table, so it encodes the same bytes differently each
 * time; the format is small, so both directions are here.
 */
#include "builtin.h"
#include "lib/codec_help.h"

#include <stdlib.h>
#include <string.h>

enum {
    LZF_HEADER = 4,
    LZF_LITERALS = 32, /* at most, in one run                                        */
    LZF_LEAST = 3,     /* bytes that are worth a reference                           */
    LZF_LONGEST = 264,
    LZF_BACK = 1 << 13, /* bytes that a reference reaches back                        */
    LZF_TABLE_BITS = 14
};

struct lzf_state {
    int has_header;
    uint64_t decoded; /* exact length, or BRC_LEN_VARIES                            */
};

static int lzf_open(void *ctx, void **out_state, const brc_json *config, const brc_proto *in,
                    brc_proto *out, int *identity, brc_error *err)
{
    static const char *const members[] = { "header" };
    (void)ctx;
    (void)identity;
    const brc_json *header = brc_json_member(config, "header");
    struct lzf_state state = { 1, in->len };
    int rc = config != NULL ? brc_json_allow(config, members, 1, err) : BRC_OK;

    if (rc < 0)
        return rc;
    if (header != NULL && !brc_json_bool(header, &state.has_header))
        return brc_fail(err, BRC_EINVAL, "\"header\" must be true or false");
    if (!state.has_header && in->len == BRC_LEN_VARIES)
        return brc_fail(err, BRC_EINVAL,
                        "without a header, the length of what is stored must be known");
    brc_codec_longer(in, out, in->max_len / LZF_LITERALS + 1 + LZF_HEADER, 0);
    return brc_codec_state_copy(out_state, &state, sizeof(state), err);
}

static int lzf_write_config(void *ctx, const void *opaque, brc_buf *out, brc_error *err)
{
    (void)ctx;
    const struct lzf_state *state = opaque;

    return brc_buf_printf(out, err, "{\"header\":%s}", state->has_header ? "true" : "false");
}

/* ---- encoding ----------------------------------------------------------------------- */

/* Where three bytes were seen last, as positions from 1 on; 0: not yet. */
struct lzf_scratch {
    uint32_t seen[1 << LZF_TABLE_BITS];
};

static int lzf_scratch_new(void *ctx, void **out, const void *state, brc_error *err)
{
    (void)ctx;
    (void)state;
    *out = malloc(sizeof(struct lzf_scratch));
    return *out != NULL ? BRC_OK : brc_fail(err, BRC_ENOMEM, "out of memory");
}

static void lzf_scratch_free(void *ctx, void *scratch)
{
    (void)ctx;
    free(scratch);
}

static uint8_t *lzf_put_literals(uint8_t *to, const uint8_t *from, size_t n)
{
    while (n > 0) {
        size_t run = n < LZF_LITERALS ? n : LZF_LITERALS;
        *to++ = (uint8_t)(run - 1);
        memcpy(to, from, run);
        to += run;
        from += run;
        n -= run;
    }
    return to;
}

static uint8_t *lzf_put_reference(uint8_t *to, size_t back, size_t len)
{
    size_t more = len - 2;

    back--;
    *to++ = (uint8_t)((more < 7 ? more : 7) << 5 | back >> 8);
    if (more >= 7)
        *to++ = (uint8_t)(more - 7);
    *to++ = (uint8_t)back;
    return to;
}

/* Returns how many bytes are the same as earlier ones, from *back bytes before; 0 if they are fewer
 * than are worth a reference. */
static size_t lzf_find(struct lzf_scratch *scratch, brc_span src, size_t at, size_t *back)
{
    const uint8_t *p = src.data + at;
    uint32_t three = (uint32_t)p[0] << 16 | (uint32_t)p[1] << 8 | p[2];
    uint32_t *slot = &scratch->seen[three * UINT32_C(2654435761) >> (32 - LZF_TABLE_BITS)];
    size_t seen = *slot, most = src.len - at, len = 0;

    *slot = (uint32_t)at + 1;
    if (seen == 0 || at + 1 - seen > LZF_BACK)
        return 0;
    *back = at + 1 - seen;
    if (most > LZF_LONGEST)
        most = LZF_LONGEST;
    while (len < most && p[len] == src.data[seen - 1 + len])
        len++;
    return len < LZF_LEAST ? 0 : len;
}

static int lzf_encode(void *ctx, const void *opaque, void *scratch, brc_span src, brc_buf *dst,
                      brc_error *err)
{
    (void)ctx;
    const struct lzf_state *state = opaque;
    size_t at = 0, plain = 0, back = 0;

    if (src.len >= UINT32_MAX)
        return brc_fail(err, BRC_ELIMIT, "%zu bytes are more than LZF can store", src.len);
    int rc = brc_buf_reserve(dst, src.len + src.len / LZF_LITERALS + 1 + LZF_HEADER, err);
    if (rc < 0)
        return rc;
    memset(scratch, 0, sizeof(struct lzf_scratch));
    uint8_t *to = dst->data + dst->len;
    if (state->has_header) {
        brc_codec_store(to, LZF_HEADER, src.len);
        to += LZF_HEADER;
    }
    while (src.len - at >= LZF_LEAST) {
        size_t len = lzf_find(scratch, src, at, &back);
        if (len == 0) {
            at++;
            continue;
        }
        to = lzf_put_literals(to, src.data + plain, at - plain);
        to = lzf_put_reference(to, back, len);
        at += len;
        plain = at;
    }
    to = lzf_put_literals(to, src.data + plain, src.len - plain);
    dst->len = (size_t)(to - dst->data);
    return BRC_OK;
}

/* ---- decoding ----------------------------------------------------------------------- */

/* Copies a reference byte by byte, because it may overlap what it makes. Returns 0 if it reaches
 * back too far, or its result is too long. */
static int lzf_repeat(uint8_t *out, size_t *at, size_t goal, size_t back, size_t len)
{
    if (back > *at || len > goal - *at)
        return 0;
    for (size_t i = 0; i < len; i++)
        out[*at + i] = out[*at + i - back];
    *at += len;
    return 1;
}

/* Decodes one run or reference, and moves src behind it. Returns 0 if it is damaged. */
static int lzf_step(brc_span *src, uint8_t *out, size_t *at, size_t goal)
{
    const uint8_t *p = src->data;
    size_t len = p[0] >> 5, used = 2 + (len == 7);

    if (len == 0) { /* literals */
        len = (size_t)p[0] + 1;
        if (len > src->len - 1 || len > goal - *at)
            return 0;
        memcpy(out + *at, p + 1, len);
        *at += len;
        used = 1 + len;
    } else if (used > src->len ||
               !lzf_repeat(out, at, goal, ((size_t)(p[0] & 0x1f) << 8 | p[used - 1]) + 1,
                           len + 2 + (len == 7 ? p[1] : 0))) {
        return 0;
    }
    src->data += used;
    src->len -= used;
    return 1;
}

/* Finds the length of the decoded bytes. */
static int lzf_goal(const struct lzf_state *state, brc_span *src, uint64_t *goal, brc_error *err)
{
    *goal = state->decoded;
    if (!state->has_header)
        return BRC_OK;
    if (src->len < LZF_HEADER)
        return brc_fail(err, BRC_ECORRUPT, "%zu bytes cannot hold the header", src->len);
    uint64_t told = brc_codec_load(src->data, LZF_HEADER);
    src->data += LZF_HEADER;
    src->len -= LZF_HEADER;
    if (*goal == BRC_LEN_VARIES)
        *goal = told;
    if (told != *goal || told > brc_codec_times(src->len, LZF_LONGEST))
        return brc_fail(err, BRC_ECORRUPT,
                        "the header says that %zu bytes decode to %llu, which is impossible here",
                        src->len, (unsigned long long)told);
    return BRC_OK;
}

static int lzf_decode(void *ctx, const void *opaque, void *scratch, brc_span src, brc_buf *dst,
                      brc_error *err)
{
    (void)ctx;
    (void)scratch;
    uint64_t goal;
    size_t at = 0;
    int rc = lzf_goal(opaque, &src, &goal, err);

    if (rc == BRC_OK && goal > brc_codec_times(src.len, LZF_LONGEST))
        rc = brc_fail(err, BRC_ECORRUPT, "%zu bytes cannot decode to %llu", src.len,
                      (unsigned long long)goal);
    if (rc == BRC_OK)
        rc = brc_buf_reserve(dst, (size_t)goal, err);
    if (rc < 0)
        return rc;
    uint8_t *out = dst->data + dst->len;
    while (src.len > 0)
        if (!lzf_step(&src, out, &at, (size_t)goal))
            return brc_fail(err, BRC_ECORRUPT, "the bytes of LZF are damaged after %zu of %llu", at,
                            (unsigned long long)goal);
    if (at != goal)
        return brc_fail(err, BRC_ECORRUPT, "the bytes decode to %zu, not %llu", at,
                        (unsigned long long)goal);
    dst->len += at;
    return BRC_OK;
}

int brc_codec_lzf_register(brc_registry *reg, brc_error *err)
{
    static const brc_codec_spec spec = {
        .size = sizeof(spec),
        .name = "imagecodecs_lzf",
        .kind = BRC_BYTES_TO_BYTES,
        .open = lzf_open,
        .close = brc_codec_state_free,
        .write_config = lzf_write_config,
    };
    static const brc_codec_impl impl = {
        .size = sizeof(impl),
        .spec = "imagecodecs_lzf",
        .name = "portable",
        .scratch_new = lzf_scratch_new,
        .scratch_free = lzf_scratch_free,
        .encode = lzf_encode,
        .decode = lzf_decode,
    };

    return brc_codec_add(reg, &spec, &impl, err);
}
