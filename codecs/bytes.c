/*
 * "bytes": the elements in C order, packed, in either byte order.
 *
 * Canonical elements are little-endian, so little-endian bytes, and elements of
 * single bytes, are the canonical bytes themselves on every machine.
 */
#include "builtin.h"

#include <stdlib.h>
#include <string.h>

struct bytes_state {
    uint64_t len;
    size_t unit; /* bytes that are reversed; 1: none                             */
    int big;
};

/* ---- specification ------------------------------------------------------------------ */

static int bytes_read_config(struct bytes_state *state, const brc_json *config,
                             const brc_dtype *type, brc_error *err)
{
    static const char *const members[] = { "endian" };
    const brc_json *endian = brc_json_member(config, "endian");
    const char *text = brc_json_kind(endian) == BRC_JSON_STRING ? brc_json_text(endian) : "";

    if (config != NULL) {
        int rc = brc_json_allow(config, members, 1, err);
        if (rc < 0)
            return rc;
    }
    if (endian == NULL && state->unit > 1)
        return brc_fail(err, BRC_EINVAL, "\"endian\" must be given for %s: \"little\" or \"big\"",
                        type->name);
    if (endian != NULL && strcmp(text, "little") != 0 && strcmp(text, "big") != 0)
        return brc_fail(err, BRC_EINVAL, "\"endian\" must be \"little\" or \"big\"");
    state->big = strcmp(text, "big") == 0;
    return BRC_OK;
}

static int bytes_open(void *ctx, void **out_state, const brc_json *config, const brc_proto *in,
                      brc_proto *out, int *identity, brc_error *err)
{
    (void)ctx;
    struct bytes_state read = { in->len, in->dtype->swap_unit, 0 };

    if (in->dtype->item_size == 0)
        return brc_fail(err, BRC_EINVAL, "elements of %s have no fixed length", in->dtype->name);
    int rc = bytes_read_config(&read, config, in->dtype, err);
    if (rc < 0)
        return rc;
    struct bytes_state *state = malloc(sizeof(*state));
    if (state == NULL)
        return brc_fail(err, BRC_ENOMEM, "out of memory");
    *state = read;
    out->ndim = -1;
    *identity = !(read.big && read.unit > 1);
    *out_state = state;
    return BRC_OK;
}

static void bytes_close(void *ctx, void *state)
{
    (void)ctx;
    free(state);
}

static int bytes_write_config(void *ctx, const void *state, brc_buf *out, brc_error *err)
{
    (void)ctx;
    const struct bytes_state *bytes = state;

    if (bytes->unit <= 1)
        return BRC_OK;
    return brc_buf_printf(out, err, "{\"endian\":\"%s\"}", bytes->big ? "big" : "little");
}

/* ---- implementation ----------------------------------------------------------------- */

static void bytes_swap_any(uint8_t *dst, const uint8_t *src, size_t len, size_t unit)
{
    for (size_t at = 0; at + unit <= len; at += unit)
        for (size_t i = 0; i < unit; i++)
            dst[at + i] = src[at + unit - 1 - i];
}

/* One loop a width: compilers turn these into vector shuffles. */
#define BYTES_SWAP_LOOP(type_, swap_)                                     \
    for (size_t at = 0; at + sizeof(type_) <= len; at += sizeof(type_)) { \
        type_ value;                                                      \
        memcpy(&value, src + at, sizeof(value));                          \
        value = swap_(value);                                             \
        memcpy(dst + at, &value, sizeof(value));                          \
    }

static void bytes_swap(uint8_t *dst, const uint8_t *src, size_t len, size_t unit)
{
    switch (unit) {
    case 2:
        BYTES_SWAP_LOOP(uint16_t, __builtin_bswap16)
        break;
    case 4:
        BYTES_SWAP_LOOP(uint32_t, __builtin_bswap32)
        break;
    case 8:
        BYTES_SWAP_LOOP(uint64_t, __builtin_bswap64)
        break;
    default:
        bytes_swap_any(dst, src, len, unit);
    }
}

/* Both directions: reversing is its own inverse. */
static int bytes_convert(void *ctx, const void *state, void *scratch, brc_span src, brc_buf *dst,
                         brc_error *err)
{
    (void)ctx;
    (void)scratch;
    const struct bytes_state *bytes = state;

    if (src.len != bytes->len)
        return brc_fail(err, BRC_ECORRUPT, "%llu bytes are expected, not %zu",
                        (unsigned long long)bytes->len, src.len);
    int rc = brc_buf_reserve(dst, src.len, err);
    if (rc < 0 || src.len == 0)
        return rc;
    if (bytes->big && bytes->unit > 1)
        bytes_swap(dst->data + dst->len, src.data, src.len, bytes->unit);
    else
        memcpy(dst->data + dst->len, src.data, src.len);
    dst->len += src.len;
    return BRC_OK;
}

int brc_codec_bytes_register(brc_registry *reg, brc_error *err)
{
    static const brc_codec_spec spec = {
        .size = sizeof(spec),
        .name = "bytes",
        .kind = BRC_ARRAY_TO_BYTES,
        .open = bytes_open,
        .close = bytes_close,
        .write_config = bytes_write_config,
    };
    static const brc_codec_impl impl = {
        .size = sizeof(impl),
        .spec = "bytes",
        .name = "portable",
        .encode = bytes_convert,
        .decode = bytes_convert,
    };
    int rc = brc_registry_add_codec(reg, &spec, err);

    return rc < 0 ? rc : brc_registry_add_impl(reg, &impl, err);
}
