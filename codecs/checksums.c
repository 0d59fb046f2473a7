/*
 * The checksums of numcodecs: four bytes, little-endian, before or after the payload.
 *
 *     crc32, adler32       before, unless    "location" says "end"      zlib's
 *     crc32c               after, unless     "location" says "start"    RFC 3720
 *     fletcher32           after                                        HDF5's
 *     jenkins_lookup3      after                                        Bob Jenkins, 2006
 */
#include "builtin.h"
#include "lib/codec_help.h"
#include "lib/crc32c_sum.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { SUM_LEN = 4 };

struct checksum_state {
    int at_end;
    uint32_t initval; /* of jenkins_lookup3                                      */
    uint8_t *prefix;  /* of jenkins_lookup3: hashed before the payload, not stored */
    size_t prefix_len;
    int has_prefix;
};

/* One of the five checksums. */
struct checksum_kind {
    const char *name;
    int at_end, has_location, has_prefix;
    int (*sum)(const struct checksum_state *state, brc_span data, uint32_t *out, brc_error *err);
    /* The sum that some writers stored by mistake; NULL if none is known. */
    uint32_t (*other_sum)(brc_span data);
};

/* ---- sums --------------------------------------------------------------------------- */

typedef uLong checksum_zlib_sum(uLong sum, const Bytef *data, uInt len);

/* zlib counts in unsigned int, so longer data is passed in slices. */
static uint32_t checksum_run_zlib(checksum_zlib_sum *run, brc_span data)
{
    uLong sum = run(0, NULL, 0);

    while (data.len > 0) {
        uInt n = data.len > (1u << 30) ? 1u << 30 : (uInt)data.len;
        sum = run(sum, data.data, n);
        data.data += n;
        data.len -= n;
    }
    return (uint32_t)sum;
}

static int checksum_crc32(const struct checksum_state *state, brc_span data, uint32_t *out,
                          brc_error *err)
{
    (void)state;
    (void)err;
    *out = checksum_run_zlib(crc32, data);
    return BRC_OK;
}

static int checksum_adler32(const struct checksum_state *state, brc_span data, uint32_t *out,
                            brc_error *err)
{
    (void)state;
    (void)err;
    *out = checksum_run_zlib(adler32, data);
    return BRC_OK;
}

static int checksum_crc32c(const struct checksum_state *state, brc_span data, uint32_t *out,
                           brc_error *err)
{
    (void)state;
    (void)err;
    *out = brc_crc32c(data.data, data.len);
    return BRC_OK;
}

/* Adds big-endian words of 16 bits, modulo 65535. A sum that is a multiple of 65535 is 65535, and
 * zero only if all words are zero. The last byte of an odd length is the high byte of a word. */
static uint32_t fletcher32_sum(brc_span data)
{
    uint64_t sum1 = 0, sum2 = 0;
    int any = 0;

    for (size_t at = 0; at < data.len; at += 2) {
        uint32_t word = (uint32_t)data.data[at] << 8;
        if (at + 1 < data.len)
            word |= data.data[at + 1];
        any |= word != 0;
        sum1 = (sum1 + word) % 65535;
        sum2 = (sum2 + sum1) % 65535;
    }
    if (any && sum1 == 0)
        sum1 = 65535;
    if (any && sum2 == 0)
        sum2 = 65535;
    return (uint32_t)(sum2 << 16 | sum1);
}

static int checksum_fletcher32(const struct checksum_state *state, brc_span data, uint32_t *out,
                               brc_error *err)
{
    (void)state;
    (void)err;
    *out = fletcher32_sum(data);
    return BRC_OK;
}

/* Sums as older releases of zarrs did, which left out an odd last byte. */
static uint32_t fletcher32_without_last(brc_span data)
{
    return fletcher32_sum((brc_span){ data.data, data.len - data.len % 2 });
}

/* ---- lookup3 -------------------------------------------------------------------------
 *
 * The hash adds twelve bytes at a time to three words and mixes the words; the last one to
 * twelve bytes get the final mix. The rotations are those of Bob Jenkins's lookup3.c.
 */
static uint32_t lookup3_rotate(uint32_t x, int k)
{
    return x << k | x >> (32 - k);
}

static void lookup3_mix(uint32_t w[3])
{
    static const int turns[6] = { 4, 6, 8, 16, 19, 4 };

    for (int i = 0; i < 6; i++) {
        uint32_t *a = &w[i % 3], *b = &w[(i + 1) % 3], *c = &w[(i + 2) % 3];
        *a = (*a - *c) ^ lookup3_rotate(*c, turns[i]);
        *c += *b;
    }
}

static void lookup3_finish(uint32_t w[3])
{
    static const int turns[7] = { 14, 11, 25, 16, 4, 14, 24 };

    for (int i = 0; i < 7; i++) {
        uint32_t *to = &w[(i + 2) % 3], *from = &w[(i + 1) % 3];
        *to = (*to ^ *from) - lookup3_rotate(*from, turns[i]);
    }
}

static uint32_t lookup3_sum(brc_span data, uint32_t initval)
{
    uint32_t start = UINT32_C(0xdeadbeef) + (uint32_t)data.len + initval;
    uint32_t w[3] = { start, start, start };

    if (data.len == 0)
        return w[2];
    while (data.len > 12) {
        for (int i = 0; i < 3; i++)
            w[i] += (uint32_t)brc_codec_load(data.data + 4 * i, 4);
        lookup3_mix(w);
        data.data += 12;
        data.len -= 12;
    }
    for (size_t i = 0; i < data.len; i++)
        w[i / 4] += (uint32_t)data.data[i] << (8 * (i % 4));
    lookup3_finish(w);
    return w[2];
}

static int checksum_lookup3(const struct checksum_state *state, brc_span data, uint32_t *out,
                            brc_error *err)
{
    if (state->prefix_len == 0) {
        *out = lookup3_sum(data, state->initval);
        return BRC_OK;
    }
    if (data.len > SIZE_MAX / 2)
        return brc_fail(err, BRC_ELIMIT, "the chunk is too long");
    uint8_t *both = malloc(state->prefix_len + data.len);
    if (both == NULL)
        return brc_fail(err, BRC_ENOMEM, "out of memory");
    memcpy(both, state->prefix, state->prefix_len);
    if (data.len > 0)
        memcpy(both + state->prefix_len, data.data, data.len);
    *out = lookup3_sum((brc_span){ both, state->prefix_len + data.len }, state->initval);
    free(both);
    return BRC_OK;
}

/* ---- specifications ----------------------------------------------------------------- */

static const struct checksum_kind checksum_kinds[] = {
    { "numcodecs.crc32", 0, 1, 0, checksum_crc32, NULL },
    { "numcodecs.adler32", 0, 1, 0, checksum_adler32, NULL },
    { "numcodecs.crc32c", 1, 1, 0, checksum_crc32c, NULL },
    { "numcodecs.fletcher32", 1, 0, 0, checksum_fletcher32, fletcher32_without_last },
    { "numcodecs.jenkins_lookup3", 1, 0, 1, checksum_lookup3, NULL },
};

/* Refuses members that a kind of checksum does not have. */
static int checksum_allow(const struct checksum_kind *kind, const brc_json *config, brc_error *err)
{
    static const char *const location[] = { "location" };
    static const char *const prefix[] = { "initval", "prefix" };

    if (config == NULL)
        return BRC_OK;
    if (kind->has_location)
        return brc_json_allow(config, location, 1, err);
    return brc_json_allow(config, prefix, kind->has_prefix ? 2 : 0, err);
}

static int checksum_read_location(struct checksum_state *state, const brc_json *config,
                                  brc_error *err)
{
    const brc_json *location = brc_json_member(config, "location");

    if (location == NULL)
        return BRC_OK;
    state->at_end = brc_json_is(location, "end");
    if (!state->at_end && !brc_json_is(location, "start"))
        return brc_fail(err, BRC_EINVAL, "\"location\" must be \"start\" or \"end\"");
    return BRC_OK;
}

/* Reads "prefix": text, or a list of bytes. */
static int checksum_read_prefix(struct checksum_state *state, const brc_json *config,
                                brc_error *err)
{
    const brc_json *prefix = brc_json_member(config, "prefix");
    int kind = brc_json_kind(prefix);
    const char *text;
    int is_text = brc_json_text(prefix, &text);
    size_t len = is_text ? strlen(text) : brc_json_count(prefix);

    if (kind == BRC_JSON_ABSENT || kind == BRC_JSON_NULL)
        return BRC_OK;
    if (!is_text && kind != BRC_JSON_ARRAY)
        return brc_fail(err, BRC_EINVAL, "\"prefix\" must be text or a list of bytes");
    state->prefix = malloc(len + 1);
    if (state->prefix == NULL)
        return brc_fail(err, BRC_ENOMEM, "out of memory");
    state->prefix_len = len;
    state->has_prefix = 1;
    for (size_t i = 0; i < len; i++) {
        uint64_t byte = is_text ? (uint8_t)text[i] : 0;
        if (!is_text && !brc_json_uint(brc_json_item(prefix, i), 255, &byte))
            return brc_fail(err, BRC_EINVAL, "\"prefix\" must be text or a list of bytes");
        state->prefix[i] = (uint8_t)byte;
    }
    return BRC_OK;
}

static void checksum_close(void *ctx, void *opaque)
{
    (void)ctx;
    struct checksum_state *state = opaque;

    free(state->prefix);
    free(state);
}

static int checksum_open(void *ctx, void **out_state, const brc_json *config, const brc_proto *in,
                         brc_proto *out, int *identity, brc_error *err)
{
    (void)identity;
    const struct checksum_kind *kind = ctx;
    struct checksum_state state = { .at_end = kind->at_end };
    const brc_json *initval = brc_json_member(config, "initval");
    uint64_t number = 0;
    int rc = checksum_allow(kind, config, err);

    if (rc == BRC_OK)
        rc = checksum_read_location(&state, config, err);
    if (rc == BRC_OK && initval != NULL && !brc_json_uint(initval, UINT32_MAX, &number))
        rc = brc_fail(err, BRC_EINVAL, "\"initval\" must be an integer from 0 to %u", UINT32_MAX);
    state.initval = (uint32_t)number;
    if (rc == BRC_OK)
        rc = checksum_read_prefix(&state, config, err);
    if (rc == BRC_OK)
        rc = brc_codec_state_copy(out_state, &state, sizeof(state), err);
    if (rc < 0)
        free(state.prefix);
    brc_codec_longer(in, out, SUM_LEN, 1);
    return rc;
}

static int checksum_write_prefix(const struct checksum_state *state, brc_buf *out, brc_error *err)
{
    if (!state->has_prefix)
        return brc_buf_printf(out, err, "null");
    int rc = brc_buf_printf(out, err, "[");
    for (size_t i = 0; i < state->prefix_len && rc == BRC_OK; i++)
        rc = brc_buf_printf(out, err, "%s%d", i > 0 ? "," : "", state->prefix[i]);
    return rc < 0 ? rc : brc_buf_printf(out, err, "]");
}

static int checksum_write_config(void *ctx, const void *opaque, brc_buf *out, brc_error *err)
{
    const struct checksum_kind *kind = ctx;
    const struct checksum_state *state = opaque;

    if (kind->has_location)
        return brc_buf_printf(out, err, "{\"location\":\"%s\"}", state->at_end ? "end" : "start");
    if (!kind->has_prefix)
        return BRC_OK;
    int rc = brc_buf_printf(out, err, "{\"initval\":%u,\"prefix\":", state->initval);
    if (rc == BRC_OK)
        rc = checksum_write_prefix(state, out, err);
    return rc < 0 ? rc : brc_buf_printf(out, err, "}");
}

/* ---- implementation ----------------------------------------------------------------- */

static int checksum_encode(void *ctx, const void *opaque, void *scratch, brc_span src, brc_buf *dst,
                           brc_error *err)
{
    (void)scratch;
    const struct checksum_kind *kind = ctx;
    const struct checksum_state *state = opaque;
    uint8_t bytes[SUM_LEN];
    uint32_t sum = 0;

    if (src.len > SIZE_MAX - SUM_LEN)
        return brc_fail(err, BRC_ELIMIT, "the chunk is too long");
    int rc = kind->sum(state, src, &sum, err);
    if (rc == BRC_OK)
        rc = brc_buf_reserve(dst, src.len + SUM_LEN, err);
    brc_codec_store(bytes, SUM_LEN, sum);
    if (rc == BRC_OK && !state->at_end)
        rc = brc_buf_append(dst, bytes, SUM_LEN, err);
    if (rc == BRC_OK)
        rc = brc_buf_append(dst, src.data, src.len, err);
    if (rc == BRC_OK && state->at_end)
        rc = brc_buf_append(dst, bytes, SUM_LEN, err);
    return rc;
}

static int checksum_decode(void *ctx, const void *opaque, void *scratch, brc_span src, brc_buf *dst,
                           brc_error *err)
{
    (void)scratch;
    const struct checksum_kind *kind = ctx;
    const struct checksum_state *state = opaque;
    uint32_t sum = 0;

    if (src.len < SUM_LEN)
        return brc_fail(err, BRC_ECORRUPT, "%zu bytes cannot hold the checksum", src.len);
    brc_span data = { src.data + (state->at_end ? 0 : SUM_LEN), src.len - SUM_LEN };
    uint32_t stored = (uint32_t)brc_codec_load(src.data + (state->at_end ? data.len : 0), SUM_LEN);
    int rc = kind->sum(state, data, &sum, err);
    if (rc < 0)
        return rc;
    if (sum != stored && (kind->other_sum == NULL || kind->other_sum(data) != stored))
        return brc_fail(err, BRC_ECORRUPT, "the stored checksum is %08x, but the bytes have %08x",
                        stored, sum);
    return brc_buf_append(dst, data.data, data.len, err);
}

int brc_codec_checksums_register(brc_registry *reg, brc_error *err)
{
    brc_codec_spec spec = {
        .size = sizeof(spec),
        .kind = BRC_BYTES_TO_BYTES,
        .open = checksum_open,
        .close = checksum_close,
        .write_config = checksum_write_config,
    };
    brc_codec_impl impl = {
        .size = sizeof(impl),
        .encode = checksum_encode,
        .decode = checksum_decode,
    };
    int rc = BRC_OK;

    for (size_t i = 0; i < sizeof(checksum_kinds) / sizeof(checksum_kinds[0]) && rc == BRC_OK;
         i++) {
        const struct checksum_kind *kind = &checksum_kinds[i];
        spec.name = impl.spec = kind->name;
        impl.name = i < 2 ? "zlib" : "portable";
        spec.ctx = impl.ctx = (void *)(uintptr_t)kind;
        rc = brc_codec_add(reg, &spec, &impl, err);
    }
    /* its former name in zarrs */
    return rc < 0 ? rc
                  : brc_registry_add_alias(reg, "https://codec.zarrs.dev/bytes_to_bytes/fletcher32",
                                           "numcodecs.fletcher32", err);
}
