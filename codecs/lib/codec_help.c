/* Functions that several codecs use: states, lengths, elements of variable length. */
#include "codec_help.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_ROOM ((size_t)64 << 10)

int brc_codec_add(brc_registry *reg, const brc_codec_spec *spec, const brc_codec_impl *impl,
                  brc_error *err)
{
    int rc = brc_registry_add_codec(reg, spec, err);

    return rc < 0 ? rc : brc_registry_add_impl(reg, impl, err);
}

int brc_codec_state_copy(void **out, const void *from, size_t size, brc_error *err)
{
    void *state = malloc(size);

    if (state == NULL)
        return brc_fail(err, BRC_ENOMEM, "out of memory");
    memcpy(state, from, size);
    *out = state;
    return BRC_OK;
}

void brc_codec_state_free(void *ctx, void *state)
{
    (void)ctx;
    free(state);
}

/* ---- lengths ------------------------------------------------------------------------ */

int brc_codec_nested_scratch_new(void *ctx, void **out, const void *state, brc_error *err)
{
    (void)ctx;
    (void)state;
    struct brc_nested_scratch *scratch = calloc(1, sizeof(*scratch));

    if (scratch == NULL)
        return brc_fail(err, BRC_ENOMEM, "out of memory");
    int rc = brc_scratch_new(&scratch->chains, err);
    if (rc < 0)
        free(scratch);
    else
        *out = scratch;
    return rc;
}

void brc_codec_nested_scratch_free(void *ctx, void *opaque)
{
    (void)ctx;
    struct brc_nested_scratch *scratch = opaque;

    brc_scratch_free(scratch->chains);
    brc_buf_dispose(&scratch->head);
    brc_buf_dispose(&scratch->plain);
    brc_buf_dispose(&scratch->stored);
    free(scratch);
}

uint64_t brc_codec_add_up(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

uint64_t brc_codec_times(uint64_t a, uint64_t b)
{
    return b != 0 && a > UINT64_MAX / b ? UINT64_MAX : a * b;
}

int brc_codec_count(uint64_t *out, const brc_proto *proto, brc_error *err)
{
    uint64_t n = 1;

    for (int i = 0; i < proto->ndim; i++)
        n = proto->shape[i] == 0 || n == 0 ? 0 : brc_codec_times(n, proto->shape[i]);
    if (n > PTRDIFF_MAX)
        return brc_fail(err, BRC_ELIMIT, "a chunk of this shape has too many elements");
    *out = n;
    return BRC_OK;
}

int brc_codec_retype(brc_proto *out, uint64_t n, const brc_dtype *type, brc_error *err)
{
    uint64_t len = brc_codec_times(n, type->item_size);

    if (len > PTRDIFF_MAX)
        return brc_fail(err, BRC_ELIMIT, "a chunk of %llu elements of %s is too long",
                        (unsigned long long)n, type->name);
    out->dtype = type;
    out->len = out->max_len = len;
    return BRC_OK;
}

int brc_codec_expect_len(brc_span src, uint64_t len, brc_error *err)
{
    if (src.len != len)
        return brc_fail(err, BRC_ECORRUPT, "%llu bytes are expected, not %zu",
                        (unsigned long long)len, src.len);
    return BRC_OK;
}

void brc_codec_longer(const brc_proto *in, brc_proto *out, uint64_t more, int exactly)
{
    uint64_t len = brc_codec_add_up(in->len, more);

    out->len = exactly && in->len != BRC_LEN_VARIES ? len : BRC_LEN_VARIES;
    out->max_len = brc_codec_add_up(in->max_len, more);
}

int brc_codec_make_room(brc_buf *dst, size_t goal, size_t *room, brc_error *err)
{
    *room = 0;
    if (goal != SIZE_MAX) {
        *room = goal - dst->len;
        return BRC_OK;
    }
    int rc = brc_buf_reserve(dst, FIRST_ROOM, NULL);
    if (rc < 0 && rc != BRC_ELIMIT)
        return brc_fail(err, rc, "out of memory");
    if (rc == BRC_ELIMIT && brc_buf_reserve(dst, 1, NULL) < 0)
        return BRC_OK;
    size_t end = dst->limit > 0 && dst->limit < dst->cap ? dst->limit : dst->cap;
    *room = end - dst->len;
    return BRC_OK;
}

/* ---- elements of variable length ---------------------------------------------------- */

static int index_elements(uint32_t *offsets, uint64_t n, brc_span src, brc_error *err)
{
    size_t at = 0;

    if (src.len > UINT32_MAX)
        return brc_fail(err, BRC_ELIMIT, "a chunk of variable length has %zu bytes, more than %u",
                        src.len, UINT32_MAX);
    for (uint64_t i = 0; i < n; i++) {
        offsets[i] = (uint32_t)at;
        if (src.len - at < 4)
            return brc_fail(err, BRC_ECORRUPT, "the bytes end before element %llu of %llu",
                            (unsigned long long)i, (unsigned long long)n);
        uint64_t len = brc_codec_load(src.data + at, 4);
        at += 4;
        if (len > src.len - at)
            return brc_fail(err, BRC_ECORRUPT,
                            "element %llu says that it has %llu bytes, of %zu that are there",
                            (unsigned long long)i, (unsigned long long)len, src.len - at);
        at += (size_t)len;
    }
    offsets[n] = (uint32_t)at;
    if (at != src.len)
        return brc_fail(err, BRC_ECORRUPT, "%zu bytes follow the last element", src.len - at);
    return BRC_OK;
}

int brc_codec_new_index(uint32_t **offsets, uint64_t n, brc_span src, brc_error *err)
{
    *offsets = NULL;
    if (n > src.len / 4)
        return brc_fail(err, BRC_ECORRUPT, "%zu bytes cannot hold %llu elements", src.len,
                        (unsigned long long)n);
    uint32_t *fresh = malloc(((size_t)n + 1) * sizeof(*fresh));
    if (fresh == NULL)
        return brc_fail(err, BRC_ENOMEM, "out of memory");
    int rc = index_elements(fresh, n, src, err);
    if (rc < 0)
        free(fresh);
    else
        *offsets = fresh;
    return rc;
}

/* Returns the number of bytes of the character at p, or 0 if the character is not valid by
 * RFC 3629, which excludes surrogates and overlong forms. */
static size_t utf8_character(const uint8_t *p, size_t len)
{
    size_t n = p[0] < 0x80   ? 1
               : p[0] < 0xC2 ? 0
               : p[0] < 0xE0 ? 2
               : p[0] < 0xF0 ? 3
               : p[0] < 0xF5 ? 4
                             : 0;

    if (n == 0 || n > len)
        return 0;
    for (size_t i = 1; i < n; i++)
        if ((p[i] & 0xC0) != 0x80)
            return 0;
    if ((p[0] == 0xE0 && p[1] < 0xA0) || (p[0] == 0xED && p[1] > 0x9F) ||
        (p[0] == 0xF0 && p[1] < 0x90) || (p[0] == 0xF4 && p[1] > 0x8F))
        return 0;
    return n;
}

int brc_codec_is_utf8(const uint8_t *text, size_t len)
{
    for (size_t at = 0; at < len;) {
        size_t n = utf8_character(text + at, len - at);
        if (n == 0)
            return 0;
        at += n;
    }
    return 1;
}
