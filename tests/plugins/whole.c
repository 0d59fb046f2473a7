/*
 * A plug-in with one of each: a codec, a data type, and an implementation of a codec
 * that is there already. What it is asked to do, it counts, for the test to see.
 */
#include <stdlib.h>
#include <string.h>

#include "../../src/breccia_codec.h"

/* Looked up by name in the loaded object. */
BRC_API extern unsigned whole_destroyed, whole_checksums;
unsigned whole_destroyed, whole_checksums;

static void whole_destroy(void *ctx)
{
    (void)ctx;
    whole_destroyed++;
}

/* ---- "org.example.invert": every bit the other way -------------------------------- */

static int invert_open(void *ctx, void **state, const brc_json *config, const brc_proto *in,
                       brc_proto *out, int *identity, brc_error *err)
{
    (void)ctx;
    (void)in;
    (void)out;
    (void)identity;
    *state = NULL;
    return config != NULL ? brc_json_allow(config, NULL, 0, err) : BRC_OK;
}

static int invert_bytes(void *ctx, const void *state, void *scratch, brc_span src, brc_buf *dst,
                        brc_error *err)
{
    (void)ctx;
    (void)state;
    (void)scratch;
    int rc = brc_buf_reserve(dst, src.len, err);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < src.len; i++)
        dst->data[dst->len + i] = (uint8_t)~src.data[i];
    dst->len += src.len;
    return BRC_OK;
}

/* ---- "org.example.word": two bytes, written in hexadecimal -------------------------------- */

static int word_parse(const brc_dtype *type, const brc_json *json, brc_buf *out, brc_error *err)
{
    const char *text;
    char *end = NULL;
    unsigned long value;

    (void)type;
    if (!brc_json_text(json, &text) || strlen(text) != 4 || strspn(text, "0123456789abcdef") != 4)
        return brc_fail(err, BRC_EINVAL, "a word is a string of four hexadecimal digits");
    value = strtoul(text, &end, 16);
    uint8_t bytes[2] = { (uint8_t)value, (uint8_t)(value >> 8) };
    return brc_buf_append(out, bytes, sizeof(bytes), err);
}

static int word_print(const brc_dtype *type, const uint8_t *element, size_t len, int how,
                      brc_buf *out, brc_error *err)
{
    const char *quote = how == BRC_PRINT_TEXT ? "" : "\"";

    (void)type;
    (void)len;
    return brc_buf_printf(out, err, "%s%02x%02x%s", quote, element[1], element[0], quote);
}

static int word_open(void *ctx, brc_dtype *out, const char *name, const brc_json *config,
                     brc_error *err)
{
    static const brc_dtype_ops ops = {
        .size = sizeof(ops),
        .parse = word_parse,
        .print = word_print,
    };

    (void)ctx;
    (void)name;
    if (config != NULL) {
        int rc = brc_json_allow(config, NULL, 0, err);
        if (rc < 0)
            return rc;
    }
    out->name = "org.example.word";
    out->klass = BRC_CLASS_RAW;
    out->item_size = 2;
    out->swap_unit = 2;
    out->bits = 16;
    out->ops = &ops;
    return BRC_OK;
}

/* ---- crc32c, bit by bit: slower, and ranked first -------------------------------- */

static uint32_t bitwise_crc(brc_span src)
{
    uint32_t crc = UINT32_MAX;

    whole_checksums++;
    for (size_t i = 0; i < src.len; i++) {
        crc ^= src.data[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? UINT32_C(0x82F63B78) : 0);
    }
    return ~crc;
}

static int bitwise_encode(void *ctx, const void *state, void *scratch, brc_span src, brc_buf *dst,
                          brc_error *err)
{
    uint32_t crc = bitwise_crc(src);
    uint8_t sum[4] = { (uint8_t)crc, (uint8_t)(crc >> 8), (uint8_t)(crc >> 16),
                       (uint8_t)(crc >> 24) };

    (void)ctx;
    (void)state;
    (void)scratch;
    int rc = brc_buf_append(dst, src.data, src.len, err);
    return rc < 0 ? rc : brc_buf_append(dst, sum, sizeof(sum), err);
}

static int bitwise_decode(void *ctx, const void *state, void *scratch, brc_span src, brc_buf *dst,
                          brc_error *err)
{
    uint32_t stored = 0;

    (void)ctx;
    (void)state;
    (void)scratch;
    if (src.len < 4)
        return brc_fail(err, BRC_ECORRUPT, "%zu bytes cannot hold the checksum", src.len);
    for (size_t i = 0; i < 4; i++)
        stored |= (uint32_t)src.data[src.len - 4 + i] << (8 * i);
    if (bitwise_crc((brc_span){ src.data, src.len - 4 }) != stored)
        return brc_fail(err, BRC_ECORRUPT, "the checksum is wrong");
    return brc_buf_append(dst, src.data, src.len - 4, err);
}

int brc_plugin_init(uint32_t abi, brc_registry *reg, brc_error *err)
{
    static const brc_codec_spec invert = {
        .size = sizeof(invert),
        .name = "org.example.invert",
        .kind = BRC_BYTES_TO_BYTES,
        .open = invert_open,
        .destroy = whole_destroy,
    };
    static const brc_codec_impl invert_impl = {
        .size = sizeof(invert_impl),
        .spec = "org.example.invert",
        .name = "portable",
        .encode = invert_bytes,
        .decode = invert_bytes,
        .destroy = whole_destroy,
    };
    static const brc_dtype_spec word = {
        .size = sizeof(word),
        .name = "org.example.word",
        .open = word_open,
        .destroy = whole_destroy,
        .owner = "the word plug-in",
    };
    static const brc_codec_impl bitwise = {
        .size = sizeof(bitwise),
        .spec = "crc32c",
        .name = "bitwise",
        .rank = 1000,
        .encode = bitwise_encode,
        .decode = bitwise_decode,
        .destroy = whole_destroy,
    };
    int rc = BRC_PLUGIN_CHECK(abi, err);

    if (rc == BRC_OK)
        rc = brc_registry_add_codec(reg, &invert, err);
    if (rc == BRC_OK)
        rc = brc_registry_add_impl(reg, &invert_impl, err);
    if (rc == BRC_OK)
        rc = brc_registry_add_dtype(reg, &word, err);
    if (rc == BRC_OK)
        rc = brc_registry_add_impl(reg, &bitwise, err);
    return rc;
}
