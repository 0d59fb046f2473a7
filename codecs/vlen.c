/*
 * "vlen-utf8", "vlen-bytes": elements of variable length.
 *
 *     | number of elements | bytes of the 1st | its bytes | bytes of the 2nd | ... |
 *
 * All numbers are uint32, little-endian, and elements are in C order. The bytes after the
 * first number are the canonical elements, so both directions check and copy. "vlen-array"
 * of strings and "zarrs.vlen_v2" are the same bytes under other names.
 */
#include "builtin.h"
#include "lib/codec_help.h"

#include <stdlib.h>
#include <string.h>

enum { VLEN_HEADER = 4 };

struct vlen_state {
    uint64_t n;
    int is_text; /* elements must be UTF-8                                       */
};

static int vlen_open(void *ctx, void **out_state, const brc_json *config, const brc_proto *in,
                     brc_proto *out, int *identity, brc_error *err)
{
    (void)ctx;
    (void)identity;
    struct vlen_state state = { 0, in->dtype->klass == BRC_CLASS_STRING };
    int rc = config != NULL ? brc_json_allow(config, NULL, 0, err) : BRC_OK;

    if (rc == BRC_OK && in->dtype->klass == BRC_CLASS_OPTIONAL)
        rc = brc_fail(err, BRC_EINVAL,
                      "elements of %s may be missing: use the codec \"zarrs.optional\"",
                      in->dtype->name);
    if (rc == BRC_OK && in->dtype->item_size != 0)
        rc = brc_fail(err, BRC_EINVAL, "elements of %s have a fixed length: use \"bytes\"",
                      in->dtype->name);
    if (rc == BRC_OK)
        rc = brc_codec_count(&state.n, in, err);
    if (rc == BRC_OK && state.n > UINT32_MAX)
        rc = brc_fail(err, BRC_ELIMIT, "a chunk has at most %u elements of variable length",
                      UINT32_MAX);
    if (rc < 0)
        return rc;
    out->ndim = -1;
    out->len = BRC_LEN_VARIES;
    out->max_len = brc_codec_add_up(in->max_len, VLEN_HEADER);
    return brc_codec_state_copy(out_state, &state, sizeof(state), err);
}

/* ---- implementation ----------------------------------------------------------------- */

/* Checks that src is exactly n elements, and that text is valid UTF-8. */
static int vlen_check(const struct vlen_state *state, brc_span src, brc_error *err)
{
    size_t at = 0;

    for (uint64_t i = 0; i < state->n; i++) {
        uint64_t len = src.len - at >= 4 ? brc_codec_load(src.data + at, 4) : UINT64_MAX;
        if (src.len - at < 4 || len > src.len - at - 4)
            return brc_fail(err, BRC_ECORRUPT, "the bytes end inside element %llu of %llu",
                            (unsigned long long)i, (unsigned long long)state->n);
        if (state->is_text && !brc_codec_is_utf8(src.data + at + 4, (size_t)len))
            return brc_fail(err, BRC_ECORRUPT, "element %llu is not UTF-8", (unsigned long long)i);
        at += 4 + (size_t)len;
    }
    if (at != src.len)
        return brc_fail(err, BRC_ECORRUPT, "%zu bytes follow the last element", src.len - at);
    return BRC_OK;
}

static int vlen_encode(void *ctx, const void *opaque, void *scratch, brc_span src, brc_buf *dst,
                       brc_error *err)
{
    (void)ctx;
    (void)scratch;
    const struct vlen_state *state = opaque;
    uint8_t count[VLEN_HEADER];

    brc_codec_store(count, VLEN_HEADER, state->n);
    if (src.len > SIZE_MAX - VLEN_HEADER)
        return brc_fail(err, BRC_ELIMIT, "the chunk is too long");
    int rc = vlen_check(state, src, err);
    if (rc == BRC_ECORRUPT) { /* the elements come from the caller: not corrupt   */
        rc = BRC_EINVAL;
        if (err != NULL)
            err->code = rc;
    }
    if (rc == BRC_OK)
        rc = brc_buf_reserve(dst, VLEN_HEADER + src.len, err);
    if (rc == BRC_OK)
        rc = brc_buf_append(dst, count, VLEN_HEADER, err);
    return rc < 0 ? rc : brc_buf_append(dst, src.data, src.len, err);
}

static int vlen_decode(void *ctx, const void *opaque, void *scratch, brc_span src, brc_buf *dst,
                       brc_error *err)
{
    (void)ctx;
    (void)scratch;
    const struct vlen_state *state = opaque;

    if (src.len < VLEN_HEADER)
        return brc_fail(err, BRC_ECORRUPT, "%zu bytes cannot hold the number of elements", src.len);
    uint64_t n = brc_codec_load(src.data, VLEN_HEADER);
    if (n != state->n)
        return brc_fail(err, BRC_ECORRUPT, "the chunk says that it has %llu elements, not %llu",
                        (unsigned long long)n, (unsigned long long)state->n);
    src.data += VLEN_HEADER;
    src.len -= VLEN_HEADER;
    int rc = vlen_check(state, src, err);
    return rc < 0 ? rc : brc_buf_append(dst, src.data, src.len, err);
}

int brc_codec_vlen_register(brc_registry *reg, brc_error *err)
{
    static const char *const names[] = { "vlen-utf8", "vlen-bytes", "vlen-array", "zarrs.vlen_v2" };
    brc_codec_spec spec = {
        .size = sizeof(spec),
        .kind = BRC_ARRAY_TO_BYTES,
        .open = vlen_open,
        .close = brc_codec_state_free,
    };
    brc_codec_impl impl = {
        .size = sizeof(impl),
        .name = "portable",
        .encode = vlen_encode,
        .decode = vlen_decode,
    };
    int rc = BRC_OK;

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && rc == BRC_OK; i++) {
        spec.name = impl.spec = names[i];
        rc = brc_codec_add(reg, &spec, &impl, err);
    }
    /* its former name in zarrs */
    return rc < 0 ? rc
                  : brc_registry_add_alias(reg, "https://codec.zarrs.dev/array_to_bytes/vlen_v2",
                                           "zarrs.vlen_v2", err);
}
