/* The built-in codecs: vectors, foreign forms, hostile input, and the kit on all. */
#include <blosc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include "../../src/codec/chain_steps.h"
#include "../kit/chain_fixture.h"
#include "../kit/codec_kit.h"
#include "../kit/suite.h"

TEST_SUITE(codecs);

/* ---- all of them -------------------------------------------------------------------- */

static const struct {
    const char *list;
    int ndim, rounds;
} kit_lists[] = {
    { "[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}]", -1, 5 },
    { "[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}}]", -1, 5 },
    { "[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}},\"crc32c\"]", -1, 5 },
    { "[{\"name\":\"transpose\",\"configuration\":{\"order\":[]}},"
      "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}}]",
      0, 2 },
    { "[{\"name\":\"transpose\",\"configuration\":{\"order\":[1,0]}},"
      "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}]",
      2, 6 },
    { "[{\"name\":\"transpose\",\"configuration\":{\"order\":[2,0,1]}},"
      "{\"name\":\"transpose\",\"configuration\":{\"order\":[0,2,1]}},"
      "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}},"
      "{\"name\":\"zstd\",\"configuration\":{\"level\":-5}}]",
      3, 6 },
    { "[{\"name\":\"transpose\",\"configuration\":{\"order\":[3,1,0,2]}},"
      "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}},\"crc32c\"]",
      4, 6 },
    { "[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}},"
      "{\"name\":\"zstd\",\"configuration\":{\"level\":3,\"checksum\":true}}]",
      -1, 5 },
    { "[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}},"
      "{\"name\":\"gzip\",\"configuration\":{\"level\":1}}]",
      -1, 5 },
    { "[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}},"
      "{\"name\":\"zstd\",\"configuration\":{\"level\":1}},{\"name\":\"gzip\",\"configuration\":{"
      "\"level\":9}},"
      "{\"name\":\"gzip\",\"configuration\":{\"level\":0}},{\"name\":\"zstd\",\"configuration\":{"
      "\"level\":1}},"
      "\"crc32c\"]",
      -1, 5 },
    { "[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}},{\"name\":\"blosc\","
      "\"configuration\":"
      "{\"cname\":\"zstd\",\"clevel\":1,\"shuffle\":\"shuffle\",\"typesize\":4,\"blocksize\":0}}]",
      -1, 5 },
    { "[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}},{\"name\":\"blosc\","
      "\"configuration\":"
      "{\"cname\":\"lz4\",\"clevel\":5,\"shuffle\":\"bitshuffle\",\"typesize\":2,\"blocksize\":"
      "1024}},"
      "{\"name\":\"blosc\",\"configuration\":{\"cname\":\"blosclz\",\"clevel\":9,\"shuffle\":"
      "\"noshuffle\"}}]",
      -1, 5 },
};

CASE("kit", .setup = codecs_setup, .teardown = codecs_teardown, .timeout = UNTIMED);

EACH(P16_every_chain_holds_what_the_kit_asks, kit_lists)
{
    char why[1024] = "no data type was taken";
    codec_kit kit = { .reg = codecs_reg,
                      .codecs = kit_lists[_i].list,
                      .ndim = kit_lists[_i].ndim,
                      .rounds = kit_lists[_i].rounds,
                      .seed = 20240229 };

    ck_assert_msg(codec_kit_run(&kit, why, sizeof(why)) == 0, "%s", why);
}

CASE("one by one", .setup = codecs_setup, .teardown = codecs_teardown, .timeout = UNTIMED);

/* ---- bytes -------------------------------------------------------------------------- */

TEST(bytes_swap_each_unit)
{
    static const uint8_t plain[16] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 };
    static const uint8_t by4[16] = { 4, 3, 2, 1, 8, 7, 6, 5, 12, 11, 10, 9, 16, 15, 14, 13 };
    static const uint8_t by8[16] = { 8, 7, 6, 5, 4, 3, 2, 1, 16, 15, 14, 13, 12, 11, 10, 9 };
    uint64_t n = 4, two = 2, one = 1;

    codecs_open("[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}}]", "int32", 1, &n);
    codecs_expect(by4, 16, plain, 16);
    codecs_open("[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}}]", "complex64", 1,
                &two);
    codecs_expect(by4, 16, plain, 16);
    codecs_open("[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}}]", "complex128", 1,
                &one);
    codecs_expect(by8, 16, plain, 16);
    codecs_open("[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}}]", "r64", 1, &two);
    codecs_expect(plain, 16, plain, 16);
    codecs_open("[{\"name\":\"endian\",\"configuration\":{\"endian\":\"big\"}}]", "int32", 1, &n);
    codecs_expect_corrupt(by4, 15, "bytes: 16 bytes are expected, not 15");
    codecs_open("[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}}]", "int32", 1, &one);
    codecs_expect(by4, 4, plain, 4);
    codecs_open("[\"bytes\"]", "r128", 1, &one);
    codecs_expect_corrupt(by4, 15, "bytes: the chunk decodes to 15 bytes, not 16");
    ck_assert_str_eq(codecs_err.source, "codec:bytes");
}

/* ---- transpose ---------------------------------------------------------------------- */

TEST(transpose_goes_the_right_way)
{
    /* A[i][j][k] of shape (2, 3, 5); B has the shape (5, 2, 3), B[k][i][j] = A[i][j][k]. */
    uint64_t shape[3] = { 2, 3, 5 };
    uint16_t a[30], b[30];
    brc_buf out = BRC_BUF_INIT;

    for (uint16_t i = 0; i < 30; i++)
        a[i] = (uint16_t)(1000 + i);
    for (size_t k = 0; k < 5; k++)
        for (size_t i = 0; i < 2; i++)
            for (size_t j = 0; j < 3; j++)
                b[k * 6 + i * 3 + j] = a[i * 15 + j * 5 + k];
    codecs_open("[{\"name\":\"transpose\",\"configuration\":{\"order\":[2,0,1]}},"
                "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}]",
                "uint16", 3, shape);
    codecs_encode(a, sizeof(a), &out);
    ck_assert_uint_eq(out.len, sizeof(b));
    ck_assert_mem_eq(out.data, b, sizeof(b));
    codecs_expect(b, sizeof(b), a, sizeof(a));
    brc_buf_dispose(&out);
}

/* B by the definition, one element at a time: y[order[i]] = x[i]. */
static void transpose_model(uint8_t *b, const uint8_t *a, int ndim, const uint64_t *shape,
                            const int *order, size_t item)
{
    uint64_t x[BRC_MAX_NDIM], count = 1;

    for (int i = 0; i < ndim; i++)
        count *= shape[i];
    for (uint64_t n = 0; n < count; n++) {
        uint64_t rest = n, at = 0, y[BRC_MAX_NDIM] = { 0 };
        for (int i = ndim - 1; i >= 0; i--) {
            x[i] = rest % shape[order[i]];
            rest /= shape[order[i]];
        }
        for (int i = 0; i < ndim; i++)
            y[order[i]] = x[i];
        for (int i = 0; i < ndim; i++)
            at = at * shape[i] + y[i];
        memcpy(b + n * item, a + at * item, item);
    }
}

TEST(P16_transpose_equals_the_definition)
{
    static const struct {
        const char *name;
        size_t size;
    } types[] = { { "uint8", 1 },   { "int16", 2 },   { "r24", 3 },
                  { "float32", 4 }, { "float64", 8 }, { "complex128", 16 } };
    uint64_t random = 77;

    for (int round = 0; round < 120; round++) {
        int ndim = 1 + (int)(codec_kit_random(&random) % 5), order[5] = { 0, 1, 2, 3, 4 };
        uint64_t shape[5], len = types[round % 6].size, most = ndim <= 2 ? 90 : 9;
        char list[200] = "", axes[32] = "";
        brc_buf out = BRC_BUF_INIT;
        for (int i = ndim - 1; i > 0; i--) {
            int k = (int)(codec_kit_random(&random) % (uint64_t)(i + 1)), keep = order[i];
            order[i] = order[k];
            order[k] = keep;
        }
        for (int i = 0; i < ndim; i++) {
            shape[i] = 1 + codec_kit_random(&random) % most;
            len *= shape[i];
            snprintf(axes + strlen(axes), sizeof(axes) - strlen(axes), "%s%d", i > 0 ? "," : "",
                     order[i]);
        }
        snprintf(list, sizeof(list),
                 "[{\"name\":\"transpose\",\"configuration\":{\"order\":[%s]}},"
                 "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}]",
                 axes);
        uint8_t *a = malloc(len), *b = malloc(len);
        for (uint64_t i = 0; i < len; i++)
            a[i] = (uint8_t)codec_kit_random(&random);
        transpose_model(b, a, ndim, shape, order, types[round % 6].size);
        codecs_open(list, types[round % 6].name, ndim, shape);
        codecs_encode(a, len, &out);
        ck_assert_msg(out.len == len && memcmp(out.data, b, len) == 0, "%s, round %d", list, round);
        codecs_expect(b, len, a, len);
        brc_buf_dispose(&out);
        free(a);
        free(b);
    }
}

/* ---- crc32c ------------------------------------------------------------------------- */

TEST(crc32c_has_the_published_check_value)
{
    brc_buf out = BRC_BUF_INIT;

    codecs_open_bytes("[\"bytes\",\"crc32c\"]", 9);
    codecs_encode("123456789", 9, &out);
    ck_assert_uint_eq(out.len, 13);
    ck_assert_mem_eq(out.data, "123456789\x83\x92\x06\xe3", 13);
    codecs_expect_corrupt(out.data, 3, "3 bytes cannot hold the checksum");
    out.data[0] ^= 1;
    codecs_expect_corrupt(out.data, 13, "the stored checksum is e3069283");
    brc_buf_dispose(&out);
}

static uint32_t crc32c_model(const uint8_t *data, size_t len)
{
    uint32_t crc = UINT32_MAX;

    for (size_t i = 0; i < len; i++) {
        crc ^= data[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0x82F63B78u : 0);
    }
    return ~crc;
}

/* The chosen implementation; test_registry compares the others with it. */
TEST(crc32c_equals_the_definition_at_every_length)
{
    uint8_t data[300];
    uint64_t random = 5;
    brc_buf out = BRC_BUF_INIT;

    for (size_t i = 0; i < sizeof(data); i++)
        data[i] = (uint8_t)codec_kit_random(&random);
    for (size_t len = 1; len <= sizeof(data); len++) {
        codecs_open_bytes("[\"bytes\",\"crc32c\"]", len);
        codecs_encode(data, len, &out);
        uint32_t crc = crc32c_model(data, len);
        uint8_t tail[4] = { (uint8_t)crc, (uint8_t)(crc >> 8), (uint8_t)(crc >> 16),
                            (uint8_t)(crc >> 24) };
        ck_assert_mem_eq(out.data + len, tail, 4);
    }
    brc_buf_dispose(&out);
}

/* ---- zstd --------------------------------------------------------------------------- */

/* One frame without content size, as streaming encoders write it. */
static size_t zstd_frame_without_size(uint8_t *out, size_t room, const void *data, size_t len)
{
    ZSTD_CCtx *cctx = ZSTD_createCCtx();
    ZSTD_CCtx_setParameter(cctx, ZSTD_c_contentSizeFlag, 0);
    ZSTD_CCtx_setParameter(cctx, ZSTD_c_checksumFlag, 1);
    size_t n = ZSTD_compress2(cctx, out, room, data, len);
    ZSTD_freeCCtx(cctx);
    ck_assert(!ZSTD_isError(n));
    return n;
}

TEST(zstd_reads_what_others_write)
{
    static const uint8_t skippable[] = { 0x50, 0x2A, 0x4D, 0x18, 3, 0, 0, 0, 'x', 'y', 'z' };
    uint8_t plain[1000], stored[4000];
    size_t n;

    for (size_t i = 0; i < sizeof(plain); i++)
        plain[i] = (uint8_t)(i * i / 50);
    codecs_open_bytes("[\"bytes\",{\"name\":\"zstd\",\"configuration\":{}}]", sizeof(plain));
    n = zstd_frame_without_size(stored, sizeof(stored), plain, sizeof(plain));
    ck_assert_uint_eq(ZSTD_getFrameContentSize(stored, n), ZSTD_CONTENTSIZE_UNKNOWN);
    codecs_expect(stored, n, plain, sizeof(plain));
    /* two frames with a skippable one before, between and behind */
    memcpy(stored, skippable, sizeof(skippable));
    n = sizeof(skippable);
    n += zstd_frame_without_size(stored + n, sizeof(stored) - n, plain, 400);
    memcpy(stored + n, skippable, sizeof(skippable));
    n += sizeof(skippable);
    n += ZSTD_compress(stored + n, sizeof(stored) - n, plain + 400, 600, 3);
    codecs_expect_corrupt(stored, n - 1, "zstd:");
    memcpy(stored + n, skippable, sizeof(skippable));
    n += sizeof(skippable);
    codecs_expect(stored, n, plain, sizeof(plain));
    /* the same where the length between two codecs is not known */
    codecs_open_bytes("[\"bytes\",\"gzip\",\"zstd\"]", sizeof(plain));
    brc_buf gz = BRC_BUF_INIT;
    codecs_open_bytes("[\"bytes\",\"gzip\"]", sizeof(plain));
    codecs_encode(plain, sizeof(plain), &gz);
    codecs_open_bytes("[\"bytes\",\"gzip\",\"zstd\"]", sizeof(plain));
    n = zstd_frame_without_size(stored, sizeof(stored), gz.data, gz.len);
    codecs_expect(stored, n, plain, sizeof(plain));
    codecs_expect_corrupt(stored, n - 1, "the last frame is truncated");
    codecs_expect_corrupt(stored, 0, "there is no frame");
    brc_buf_dispose(&gz);
}

/* Data of many blocks through the growing reader, several times its first room. */
TEST(zstd_grows_with_what_comes_out)
{
    size_t len = 3000000;
    uint8_t *plain = malloc(len);
    brc_buf stored = BRC_BUF_INIT;
    uint64_t random = 3;

    for (size_t i = 0; i < len; i++)
        plain[i] = i % 3 ? (uint8_t)codec_kit_random(&random) : 0;
    codecs_open_bytes("[\"bytes\",{\"name\":\"gzip\",\"configuration\":{\"level\":0}},\"zstd\"]",
                      len);
    codecs_encode(plain, len, &stored);
    codecs_expect(stored.data, stored.len, plain, len);
    codecs_open_bytes("[\"bytes\",\"zstd\",{\"name\":\"gzip\",\"configuration\":{\"level\":1}}]",
                      len);
    codecs_encode(plain, len, &stored);
    codecs_expect(stored.data, stored.len, plain, len);
    /* little input, much output: all of it is read before most has come out */
    memset(plain, 0, len);
    codecs_open_bytes(
        "[\"bytes\",{\"name\":\"gzip\",\"configuration\":{\"level\":0}},\"zstd\"]", len);
    codecs_encode(plain, len, &stored);
    ck_assert_uint_lt(stored.len, 10000);
    codecs_expect(stored.data, stored.len, plain, len);
    brc_buf_dispose(&stored);
    free(plain);
}

/* The box is the first bytes; those after them are damaged, and not looked at. */
static int decode_first(const brc_buf *stored, uint64_t n, brc_buf *out)
{
    brc_box box = BRC_BOX_INIT;

    box.count[0] = n;
    out->len = 0;
    return brc_chain_decode(codecs_chain, codecs_scratch, (brc_span){ stored->data, stored->len },
                            &box, out, &codecs_err);
}

static const char *const parted[] = {
    "[\"bytes\",{\"name\":\"zstd\",\"configuration\":{\"level\":1}}]",
    "[\"bytes\",{\"name\":\"gzip\",\"configuration\":{\"level\":1}}]",
    "[\"bytes\",{\"name\":\"zstd\",\"configuration\":{\"level\":1}},\"crc32c\"]",
};

EACH(a_part_is_decoded_without_what_follows, parted)
{
    enum { LEN = 1 << 20, PART = 300000 };
    uint8_t *plain = malloc(LEN);
    brc_buf stored = BRC_BUF_INIT, out = BRC_BUF_INIT;
    uint64_t random = 9;

    ck_assert_ptr_nonnull(plain);
    for (size_t i = 0; i < LEN; i++)
        plain[i] = i % 2 ? (uint8_t)codec_kit_random(&random) : 7;
    codecs_open_bytes(parted[_i], LEN);
    codecs_encode(plain, LEN, &stored);
    ck_assert(brc_chain_has_boxes(codecs_chain, 1, (const uint64_t[]){ LEN }));
    ck_assert_int_eq(decode_first(&stored, PART, &out), BRC_OK);
    ck_assert_uint_eq(out.len, LEN);
    ck_assert_mem_eq(out.data, plain, PART);
    ck_assert_int_eq(decode_first(&stored, LEN, &out), BRC_OK);
    ck_assert_mem_eq(out.data, plain, LEN);
    if (_i == 2) { /* all bytes are in the checksum */
        stored.data[stored.len - 100] ^= 1;
        ck_assert_int_eq(decode_first(&stored, PART, &out), BRC_ECORRUPT);
    } else { /* half of a chunk is enough for its first third, and not for two thirds */
        stored.len /= 2;
        codecs_expect_corrupt(stored.data, stored.len, "");
        ck_assert_int_eq(decode_first(&stored, PART, &out), BRC_OK);
        ck_assert_mem_eq(out.data, plain, PART);
        ck_assert_int_eq(decode_first(&stored, 2 * PART, &out), BRC_ECORRUPT);
        ck_assert_uint_eq(out.len, 0);
    }
    brc_buf_dispose(&stored);
    brc_buf_dispose(&out);
    free(plain);
}

/* A codec that changes the shape, the byte order or the order of axes puts the bytes of a box
 * elsewhere. */
TEST(parts_are_only_of_bytes_that_are_the_elements)
{
    static const struct {
        const char *list;
        int has;
    } cases[] = {
        { "[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}},\"zstd\"]", 0 },
        { "[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}},\"zstd\"]", 1 },
        { "[\"bytes\",\"crc32c\",\"zstd\"]", 0 },
    };
    const uint64_t shape[] = { 4, 6 }, other[] = { 6, 4 };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        codecs_open(cases[i].list, i < 2 ? "int32" : "uint8", 2, shape);
        ck_assert_int_eq(brc_chain_has_boxes(codecs_chain, 2, shape), cases[i].has);
        ck_assert(!brc_chain_has_boxes(codecs_chain, 2, other));
    }
}

TEST(zstd_checksum_is_written_and_checked)
{
    uint8_t plain[256] = { 0 };
    brc_buf with = BRC_BUF_INIT, without = BRC_BUF_INIT;

    codecs_open_bytes(
        "[\"bytes\",{\"name\":\"zstd\",\"configuration\":{\"level\":1,\"checksum\":true}}]", 256);
    codecs_encode(plain, 256, &with);
    codecs_open_bytes("[\"bytes\",{\"name\":\"zstd\",\"configuration\":{\"level\":1}}]", 256);
    codecs_encode(plain, 256, &without);
    ck_assert_uint_eq(with.len, without.len + 4);
    codecs_expect(with.data, with.len, plain, 256);
    with.data[with.len - 1] ^= 0x40;
    codecs_expect_corrupt(with.data, with.len, "checksum");
    ck_assert_str_eq(codecs_err.source, "codec:zstd");
    brc_buf_dispose(&with);
    brc_buf_dispose(&without);
}

/* ---- gzip --------------------------------------------------------------------------- */

/* A member with name, extra field, comment and header checksum, as gzip(1) and others write. */
static size_t gzip_rich_member(uint8_t *out, size_t room, const void *data, size_t len)
{
    z_stream z;
    gz_header header;
    Bytef extra[4] = { 1, 2, 3, 4 }, name[] = "chunk.bin", comment[] = "a comment";

    memset(&z, 0, sizeof(z));
    memset(&header, 0, sizeof(header));
    header.time = 1234567;
    header.os = 3;
    header.extra = extra;
    header.extra_len = sizeof(extra);
    header.name = name;
    header.comment = comment;
    header.hcrc = 1;
    ck_assert_int_eq(deflateInit2(&z, 6, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
    ck_assert_int_eq(deflateSetHeader(&z, &header), Z_OK);
    z.next_in = (z_const Bytef *)(uintptr_t)data;
    z.avail_in = (uInt)len;
    z.next_out = out;
    z.avail_out = (uInt)room;
    ck_assert_int_eq(deflate(&z, Z_FINISH), Z_STREAM_END);
    deflateEnd(&z);
    return room - z.avail_out;
}

TEST(gzip_reads_members_and_padding)
{
    uint8_t plain[300], stored[2000];
    size_t n = 0;

    for (size_t i = 0; i < sizeof(plain); i++)
        plain[i] = (uint8_t)(i % 11);
    n += gzip_rich_member(stored, sizeof(stored), plain, 100);
    n += gzip_rich_member(stored + n, sizeof(stored) - n, plain, 0);
    n += gzip_rich_member(stored + n, sizeof(stored) - n, plain + 100, 200);
    codecs_open_bytes("[\"bytes\",\"gzip\"]", sizeof(plain));
    codecs_expect(stored, n, plain, sizeof(plain));
    memset(stored + n, 0, 20);
    codecs_expect(stored, n + 20, plain, sizeof(plain));
    stored[n + 5] = 7;
    codecs_expect_corrupt(stored, n + 20, "gzip:");
    codecs_expect_corrupt(stored, n - 1, "the last member is truncated");
    stored[n - 6] ^= 1; /* of the last checksum */
    codecs_expect_corrupt(stored, n, "incorrect data check");
    codecs_open_bytes("[\"bytes\",\"gzip\"]", 299);
    codecs_expect_corrupt(stored, n, "more than 299 bytes");
    codecs_open_bytes("[\"bytes\",\"gzip\"]", 301);
    stored[n - 6] ^= 1;
    codecs_expect_corrupt(stored, n, "decodes to 300 bytes, not 301");
    codecs_expect_corrupt(stored, 0, "there is no member");
}

TEST(gzip_writes_the_same_header_everywhere)
{
    brc_buf out = BRC_BUF_INIT;

    for (int i = 0; i < 3; i++) { /* with a fresh deflater, a used one and one of another level */
        codecs_open_bytes(i == 1
                              ? "[\"bytes\",{\"name\":\"gzip\",\"configuration\":{\"level\":2}}]"
                              : "[\"bytes\",{\"name\":\"gzip\",\"configuration\":{\"level\":5}}]",
                          4);
        codecs_encode("abcd", 4, &out);
        ck_assert_uint_ge(out.len, 18);
        ck_assert_mem_eq(out.data, "\x1f\x8b\x08\0\0\0\0\0\0\xff", 10);
        codecs_expect(out.data, out.len, "abcd", 4);
    }
    brc_buf_dispose(&out);
}

/* ---- bombs -------------------------------------------------------------------------- */

TEST(bombs_stop_at_the_limit)
{
    size_t big = 64 << 20;
    uint8_t *zeros = calloc(1, big), *stored = malloc(big / 100);
    uint8_t room[16 + 8];
    brc_buf dst = BRC_FIXED_BUF(room, 16);

    memset(room, 0x5A, sizeof(room));
    /* zstd, into fixed memory of 16 bytes */
    size_t n = ZSTD_compress(stored, big / 100, zeros, big, 1);
    codecs_open_bytes("[\"bytes\",\"zstd\"]", 16);
    ck_assert_int_eq(
        brc_chain_decode(codecs_chain, codecs_scratch, (brc_span){ stored, n }, NULL, &dst,
                         &codecs_err),
        BRC_ECORRUPT);
    ck_assert_ptr_nonnull(strstr(codecs_err.message, "more than 16 bytes"));
    ck_assert_mem_eq(room + 16, "\x5A\x5A\x5A\x5A\x5A\x5A\x5A\x5A", 8);
    /* between two codecs, where only a limit is known: 16 bytes may take some 64 KiB */
    codecs_open_bytes("[\"bytes\",\"gzip\",\"zstd\"]", 16);
    codecs_expect_corrupt(stored, n, "zstd: the chunk decodes to more than 65554 bytes");
    n = gzip_rich_member(stored, big / 100, zeros, big);
    codecs_open_bytes("[\"bytes\",\"gzip\"]", 16);
    codecs_expect_corrupt(stored, n, "more than 16 bytes");
    codecs_open_bytes("[\"bytes\",\"zstd\",\"gzip\"]", 16);
    codecs_expect_corrupt(stored, n, "more than 65554 bytes");
    /* nothing grew past that limit on the way */
    ck_assert_uint_ge(codecs_scratch->between[0].cap, 60000);
    ck_assert_uint_le(codecs_scratch->between[0].cap, 65554);
    ck_assert_uint_eq(codecs_scratch->between[0].limit, 0);
    ck_assert_uint_eq(codecs_scratch->between[1].cap, 0);
    free(zeros);
    free(stored);
}

/* ---- configurations ----------------------------------------------------------------- */

#define B_LE "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"
#define B_BLOSC(rest) \
    "[" B_LE ",{\"name\":\"blosc\",\"configuration\":{\"cname\":\"lz4\"," rest "}}]"

TEST(B07_wrong_options_are_refused_at_open)
{
    static const struct {
        const char *list, *says;
    } wrong[] = {
        { "[\"bytes\"]", "\"endian\" must be given for int32" },
        { "[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"middle\"}}]",
          "\"little\" or \"big\"" },
        { "[{\"name\":\"bytes\",\"configuration\":{\"endian\":1}}]", "\"little\" or \"big\"" },
        { "[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\",\"level\":1}}]", "level" },
        { "[{\"name\":\"bytes\",\"configuration\":[]}]", "must be an object" },
        { "[{\"name\":\"bytes\",\"config\":{}}]", "config" },
        { "[{\"configuration\":{}}]", "\"name\"" },
        { "[7]", "/codecs/0" },
        { "[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"},\"must_understand\":1}]",
          "true or false" },
        { "[{\"name\":\"transpose\",\"configuration\":{\"order\":[2,1,2]}}," B_LE "]", "3 axes" },
        { "[{\"name\":\"transpose\",\"configuration\":{\"order\":[1,1]}}," B_LE "]",
          "0 to 1 once" },
        { "[{\"name\":\"transpose\",\"configuration\":{\"order\":[0,2]}}," B_LE "]",
          "0 to 1 once" },
        { "[{\"name\":\"transpose\",\"configuration\":{\"order\":[0,-1]}}," B_LE "]",
          "0 to 1 once" },
        { "[{\"name\":\"transpose\",\"configuration\":{\"order\":\"A\"}}," B_LE "]",
          "list of axes" },
        { "[{\"name\":\"transpose\",\"configuration\":{\"order\":[1,0],\"x\":0}}," B_LE "]",
          "\"x\"" },
        { "[\"transpose\"," B_LE "]", "\"order\" must be given" },
        { "[" B_LE ",{\"name\":\"gzip\",\"configuration\":{\"level\":-1}}]", "0 to 9" },
        { "[" B_LE ",{\"name\":\"gzip\",\"configuration\":{\"level\":10}}]", "0 to 9" },
        { "[" B_LE ",{\"name\":\"gzip\",\"configuration\":{\"level\":\"1\"}}]", "0 to 9" },
        { "[" B_LE ",{\"name\":\"gzip\",\"configuration\":{\"Level\":1}}]", "Level" },
        { "[" B_LE ",{\"name\":\"zstd\",\"configuration\":{\"level\":23}}]", "-131072 to 22" },
        { "[" B_LE ",{\"name\":\"zstd\",\"configuration\":{\"level\":-131073}}]", "-131072 to 22" },
        { "[" B_LE ",{\"name\":\"zstd\",\"configuration\":{\"level\":1.5}}]", "-131072 to 22" },
        { "[" B_LE ",{\"name\":\"zstd\",\"configuration\":{\"level\":1,\"checksum\":0}}]",
          "\"checksum\"" },
        { "[" B_LE ",{\"name\":\"zstd\",\"configuration\":{\"level\":1,\"chksum\":true}}]",
          "chksum" },
        { "[" B_LE ",{\"name\":\"crc32c\",\"configuration\":{\"location\":\"end\"}}]", "location" },
        { B_BLOSC("\"clevel\":10"), "0 to 9" },
        { B_BLOSC("\"shuffle\":\"auto\""), "\"bitshuffle\"" },
        { B_BLOSC("\"shuffle\":1"), "\"bitshuffle\"" },
        { B_BLOSC("\"typesize\":0"), "1 to 255" },
        { B_BLOSC("\"blocksize\":-1"), "\"blocksize\"" },
        { B_BLOSC("\"nthreads\":4"), "nthreads" },
        { "[" B_LE ",{\"name\":\"blosc\",\"configuration\":{\"cname\":\"foo\"}}]", "\"blosclz\"" },
    };

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        codecs_expect_refused(wrong[i].list, BRC_EINVAL, wrong[i].says);
    if (blosc_compname_to_compcode("snappy") < 0)
        codecs_expect_refused("[" B_LE
                              ",{\"name\":\"blosc\",\"configuration\":{\"cname\":\"snappy\"}}]",
                              BRC_EUNSUPPORTED, "lacks \"snappy\"");
}

TEST(B09_blosc_refuses_items_that_it_cannot_shuffle)
{
    codecs_expect_refused(B_BLOSC("\"typesize\":256"), BRC_EINVAL, "not shuffle wider items");
}
