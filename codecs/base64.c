/* "numcodecs.base64": RFC 4648's letters, padded with "=", without line breaks. */
#include "builtin.h"
#include "lib/codec_help.h"

#include <stdlib.h>
#include <string.h>

static const char base64_letters[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static int base64_open(void *ctx, void **state, const brc_json *config, const brc_proto *in,
                       brc_proto *out, int *identity, brc_error *err)
{
    (void)ctx;
    (void)identity;
    int rc = config != NULL ? brc_json_allow(config, NULL, 0, err) : BRC_OK;

    if (rc < 0)
        return rc;
    out->max_len = brc_codec_times(in->max_len / 3 + 1, 4);
    if (in->len != BRC_LEN_VARIES)
        out->len = in->len <= UINT64_MAX / 2 ? (in->len + 2) / 3 * 4 : BRC_LEN_VARIES;
    *state = NULL;
    return BRC_OK;
}

static int base64_encode(void *ctx, const void *state, void *scratch, brc_span src, brc_buf *dst,
                         brc_error *err)
{
    (void)ctx;
    (void)state;
    (void)scratch;
    if (src.len > SIZE_MAX / 2)
        return brc_fail(err, BRC_ELIMIT, "the chunk is too long");
    int rc = brc_buf_reserve(dst, (src.len + 2) / 3 * 4, err);
    if (rc < 0)
        return rc;
    for (size_t at = 0; at < src.len; at += 3) {
        size_t n = src.len - at < 3 ? src.len - at : 3;
        uint32_t word = 0;
        uint8_t *to = dst->data + dst->len;
        for (size_t i = 0; i < 3; i++)
            word = word << 8 | (i < n ? src.data[at + i] : 0u);
        for (size_t i = 0; i < 4; i++)
            to[i] = (uint8_t)(i <= n ? base64_letters[word >> (18 - 6 * i) & 63] : '=');
        dst->len += 4;
    }
    return BRC_OK;
}

/* Decodes four letters, the last `pad` of which are "=". Returns 0 if a letter is not valid. */
static int base64_group(const uint8_t *from, size_t pad, uint32_t *word)
{
    *word = 0;
    for (size_t i = 0; i < 4; i++) {
        const char *letter = base64_letters; /* stands for 0 in the padding          */
        if (i < 4 - pad)
            letter = from[i] != 0 ? strchr(base64_letters, from[i]) : NULL;
        if (letter == NULL)
            return 0;
        *word = *word << 6 | (uint32_t)(letter - base64_letters);
    }
    return 1;
}

static int base64_decode(void *ctx, const void *state, void *scratch, brc_span src, brc_buf *dst,
                         brc_error *err)
{
    (void)ctx;
    (void)state;
    (void)scratch;
    if (src.len % 4 != 0)
        return brc_fail(err, BRC_ECORRUPT, "%zu characters are not whole groups of four", src.len);
    for (size_t at = 0; at < src.len; at += 4) {
        const uint8_t *from = src.data + at;
        size_t pad = at + 4 < src.len || from[3] != '=' ? 0 : from[2] != '=' ? 1 : 2;
        uint32_t word = 0;
        if (!base64_group(from, pad, &word))
            return brc_fail(err, BRC_ECORRUPT, "the text has characters that base64 does not have");
        uint8_t bytes[3] = { (uint8_t)(word >> 16), (uint8_t)(word >> 8), (uint8_t)word };
        int rc = brc_buf_append(dst, bytes, 3 - pad, err);
        if (rc < 0)
            return rc;
    }
    return BRC_OK;
}

int brc_codec_base64_register(brc_registry *reg, brc_error *err)
{
    static const brc_codec_spec spec = {
        .size = sizeof(spec),
        .name = "numcodecs.base64",
        .kind = BRC_BYTES_TO_BYTES,
        .open = base64_open,
    };
    static const brc_codec_impl impl = {
        .size = sizeof(impl),
        .spec = "numcodecs.base64",
        .name = "portable",
        .encode = base64_encode,
        .decode = base64_decode,
    };

    return brc_codec_add(reg, &spec, &impl, err);
}
