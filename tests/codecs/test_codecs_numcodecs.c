/* The codecs of numcodecs: published values, the forms of other writers, hostile input. */
#include <bzlib.h>
#include <lzma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "../kit/chain_fixture.h"
#include "../kit/codec_kit.h"
#include "../kit/suite.h"

TEST_SUITE(codecs_numcodecs);

#define LITTLE "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"
#define NAMED(name_, config_) "{\"name\":\"" name_ "\",\"configuration\":" config_ "}"

/* ---- all of them -------------------------------------------------------------------- */

static const struct {
    const char *list;
    int ndim;
} numcodecs_lists[] = {
    { "[" LITTLE "," NAMED("numcodecs.zlib", "{\"level\":5}") "]", -1 },
    { "[" LITTLE "," NAMED("numcodecs.gzip", "{}") "]", -1 },
    { "[" LITTLE "," NAMED("numcodecs.zstd", "{\"level\":100,\"checksum\":true}") "]", 2 },
    { "[" LITTLE "," NAMED("numcodecs.blosc", "{\"shuffle\":-1,\"clevel\":1}") "]", 2 },
    { "[" LITTLE "," NAMED("numcodecs.lz4", "{\"acceleration\":10}") "]", -1 },
    { "[" LITTLE "," NAMED("numcodecs.bz2", "{\"level\":1}") "]", 2 },
    { "[" LITTLE "," NAMED("numcodecs.lzma", "{\"preset\":0}") "]", 2 },
    { "[" LITTLE "," NAMED("numcodecs.lzma", "{\"format\":2,\"preset\":0}") "]", 1 },
    { "[" LITTLE "," NAMED("numcodecs.lzma", "{\"format\":3,\"filters\":[{\"id\":3,\"dist\":4},"
                                             "{\"id\":33,\"preset\":1}]}") "]",
      1 },
    { "[" LITTLE "," NAMED("numcodecs.shuffle", "{\"elementsize\":4}") "," NAMED(
          "numcodecs.crc32", "{}") "," NAMED("numcodecs.adler32", "{\"location\":\"end\"}") "]",
      -1 },
    { "[" LITTLE ",\"numcodecs.fletcher32\",\"numcodecs.crc32c\",\"numcodecs.base64\"]", -1 },
    { "[" LITTLE "," NAMED("numcodecs.jenkins_lookup3", "{\"initval\":7,\"prefix\":[1,2,255]}") "]",
      -1 },
    { "[" NAMED("reshape", "{\"shape\":[[0],-1]}") "," LITTLE "]", -1 },
    { "[\"zarrs.squeeze\"," LITTLE "]", -1 },
    { "[" NAMED("bitround", "{\"keepbits\":3}") "," LITTLE "]", -1 },
    { "[" NAMED("numcodecs.bitround", "{\"keepbits\":64}") "," LITTLE "]", 2 },
    { "[" NAMED("numcodecs.delta", "{\"dtype\":\"<i4\"}") "," LITTLE "]", -1 },
    { "[" NAMED("numcodecs.delta", "{\"dtype\":\"|u1\"}") "," LITTLE "]", -1 },
    { "[" NAMED("numcodecs.delta", "{\"dtype\":\"<i2\",\"astype\":\">i8\"}") "," LITTLE "]", 2 },
    { "[\"numcodecs.packbits\",\"bytes\"]", -1 },
    { "[" NAMED("numcodecs.astype",
                "{\"decode_dtype\":\"<u2\",\"encode_dtype\":\"<f8\"}") "," LITTLE "]",
      2 },
};

CASE("kit", .setup = codecs_setup, .teardown = codecs_teardown, .timeout = UNTIMED);

EACH(P16_numcodecs_chains_hold_what_the_kit_asks, numcodecs_lists)
{
    char why[1024] = "no data type was taken";
    codec_kit kit = { .reg = codecs_reg,
                      .codecs = numcodecs_lists[_i].list,
                      .ndim = numcodecs_lists[_i].ndim,
                      .rounds = 3,
                      .seed = 77 };

    ck_assert_msg(codec_kit_run(&kit, why, sizeof(why)) == 0, "%s", why);
}

/* ---- checksums ---------------------------------------------------------------------- */

static void expect_checksum(const char *codec, const void *data, size_t len, int at_end,
                            uint32_t sum)
{
    char list[200];
    uint8_t stored[64];
    uint8_t *at = stored + (at_end ? len : 0);

    memcpy(stored + (at_end ? 0 : 4), data, len);
    for (int i = 0; i < 4; i++)
        at[i] = (uint8_t)(sum >> 8 * i);
    snprintf(list, sizeof(list), "[\"bytes\",%s]", codec);
    codecs_open_bytes(list, len);
    codecs_expect_stored(data, len, stored, len + 4);
    stored[len > 0 ? 5 : 0] ^= 1;
    codecs_expect_corrupt(stored, len + 4, "the stored checksum is");
    codecs_expect_corrupt(stored, 3, "3 bytes cannot hold the checksum");
}

CASE("each", .setup = codecs_setup, .teardown = codecs_teardown, .timeout = UNTIMED);

TEST(checksums_have_their_published_values)
{
    static const uint8_t words[] = { 0, 1, 0, 2 }, odd[] = { 0, 1, 2 }, ones[] = { 255, 255 },
                         first[] = { 0, 1, 255, 254 };

    expect_checksum("\"numcodecs.crc32\"", "123456789", 9, 0, 0xCBF43926);
    expect_checksum(NAMED("numcodecs.crc32", "{\"location\":\"end\"}"), "123456789", 9, 1,
                    0xCBF43926);
    expect_checksum("\"numcodecs.adler32\"", "Wikipedia", 9, 0, 0x11E60398);
    expect_checksum("\"numcodecs.crc32c\"", "123456789", 9, 1, 0xE3069283);
    expect_checksum(NAMED("numcodecs.crc32c", "{\"location\":\"start\"}"), "123456789", 9, 0,
                    0xE3069283);
    /* the words 1 and 2 have the sums 3 and 1 + 3 */
    expect_checksum("\"numcodecs.fletcher32\"", words, 4, 1, 0x00040003);
    /* the last byte is the high one of 0x0200 */
    expect_checksum("\"numcodecs.fletcher32\"", odd, 3, 1, 0x02020201);
    /* a sum of 65535 stays what it is and is not zero */
    expect_checksum("\"numcodecs.fletcher32\"", ones, 2, 1, 0xFFFFFFFF);
    /* the words 1 and 65534 make only the first sum 65535 */
    expect_checksum("\"numcodecs.fletcher32\"", first, 4, 1, 0x0001FFFF);
}

TEST(lookup3_has_its_authors_values)
{
    static const char text[] = "Four score and seven years ago";

    expect_checksum("\"numcodecs.jenkins_lookup3\"", text, 30, 1, 0x17770551);
    expect_checksum(NAMED("numcodecs.jenkins_lookup3", "{\"initval\":1}"), text, 30, 1, 0xCD628161);
    expect_checksum(NAMED("numcodecs.jenkins_lookup3", "{\"prefix\":\"Four score \"}"), text + 11,
                    19, 1, 0x17770551);
    codecs_open_bytes("[\"bytes\",\"numcodecs.jenkins_lookup3\"]", 0);
    codecs_expect_stored("", 0, "\xEF\xBE\xAD\xDE", 4);
}

/* Older releases of zarrs left an odd last byte out of the sum. */
TEST(fletcher32_reads_sums_without_an_odd_byte)
{
    static const uint8_t stored[] = { 0, 1, 2, 1, 0, 1, 0 };

    codecs_open_bytes("[\"bytes\",\"numcodecs.fletcher32\"]", 3);
    codecs_expect(stored, 7, stored, 3);
}

/* ---- compressors: what others write ------------------------------------------------- */

TEST(zlib_and_gzip_are_told_apart_by_their_headers)
{
    uint8_t plain[500], packed[600];
    uLongf len = sizeof(packed);
    brc_buf out = BRC_BUF_INIT;

    for (size_t i = 0; i < sizeof(plain); i++)
        plain[i] = (uint8_t)(i / 5);
    ck_assert_int_eq(compress(packed, &len, plain, sizeof(plain)), Z_OK);
    codecs_open_bytes("[\"bytes\",\"numcodecs.zlib\"]", sizeof(plain));
    codecs_expect(packed, len, plain, sizeof(plain));
    codecs_expect_corrupt(packed, len - 1, "truncated");
    codecs_encode(plain, sizeof(plain), &out);
    ck_assert_uint_eq(out.data[0], 0x78);
    /* plain names of zarrita, and the other one's header */
    codecs_open_bytes("[\"bytes\",\"zlib\"]", sizeof(plain));
    codecs_expect(packed, len, plain, sizeof(plain));
    codecs_open_bytes("[\"bytes\",\"numcodecs.gzip\"]", sizeof(plain));
    codecs_expect(packed, len, plain, sizeof(plain));
    codecs_encode(plain, sizeof(plain), &out);
    ck_assert_uint_eq(out.data[0], 0x1F);
    codecs_open_bytes("[\"bytes\",\"numcodecs.zlib\"]", sizeof(plain));
    codecs_expect(out.data, out.len, plain, sizeof(plain));
    /* the codec of the specification is strict */
    codecs_open_bytes("[\"bytes\",\"gzip\"]", sizeof(plain));
    codecs_expect_corrupt(packed, len, "header");
    brc_buf_dispose(&out);
}

TEST(lz4_is_a_block_behind_its_length)
{
    static const uint8_t stored[] = { 5, 0, 0, 0, 0x50, 'h', 'e', 'l', 'l', 'o' };
    static const uint8_t lie[] = { 5, 0, 0, 1, 0x50, 'h', 'e', 'l', 'l', 'o' };

    codecs_open_bytes("[\"bytes\",\"numcodecs.lz4\"]", 5);
    codecs_expect_stored("hello", 5, stored, sizeof(stored));
    codecs_expect_corrupt(lie, sizeof(lie), "the block says that it has 16777221 bytes, not 5");
    codecs_expect_corrupt(stored, 9, "cannot be decompressed");
    codecs_expect_corrupt(stored, 3, "3 bytes cannot hold the length");
    codecs_open_bytes("[\"bytes\",\"lz4\"]", 0);
    codecs_expect("\0\0\0\0", 4, "", 0);
}

TEST(bz2_streams_may_follow_one_another)
{
    char packed[400], plain[] = "one two three";
    unsigned first = 200, second = 200;

    ck_assert_int_eq(BZ2_bzBuffToBuffCompress(packed, &first, plain, 4, 9, 0, 0), BZ_OK);
    ck_assert_int_eq(BZ2_bzBuffToBuffCompress(packed + first, &second, plain + 4, 9, 1, 0, 0),
                     BZ_OK);
    codecs_open_bytes("[\"bytes\",\"numcodecs.bz2\"]", 13);
    codecs_expect(packed, first + second, plain, 13);
    codecs_expect_corrupt(packed, first + second - 3, "the last stream is truncated");
    codecs_expect_corrupt(packed, first, "the chunk decodes to 4 bytes, not 13");
    codecs_open_bytes("[\"bytes\",\"https://codec.zarrs.dev/bytes_to_bytes/bz2\"]", 12);
    codecs_expect_corrupt(packed, first + second, "more than 12 bytes");
}

TEST(lzma_reads_its_three_containers)
{
    uint8_t plain[300], packed[600];
    size_t len = 0;
    lzma_stream z = LZMA_STREAM_INIT;
    lzma_options_lzma options;

    memset(plain, 'x', sizeof(plain));
    ck_assert_int_eq(lzma_easy_buffer_encode(1, LZMA_CHECK_CRC32, NULL, plain, sizeof(plain),
                                             packed, &len, sizeof(packed)),
                     LZMA_OK);
    codecs_open_bytes("[\"bytes\"," NAMED("numcodecs.lzma", "{\"format\":1,\"check\":-1}") "]",
                      300);
    codecs_expect(packed, len, plain, 300);
    codecs_expect_corrupt(packed, len - 4, "truncated");
    ck_assert(!lzma_lzma_preset(&options, 3));
    ck_assert_int_eq(lzma_alone_encoder(&z, &options), LZMA_OK);
    z.next_in = plain;
    z.avail_in = sizeof(plain);
    z.next_out = packed;
    z.avail_out = sizeof(packed);
    ck_assert_int_eq(lzma_code(&z, LZMA_FINISH), LZMA_STREAM_END);
    codecs_open_bytes("[\"bytes\"," NAMED("numcodecs.lzma", "{\"format\":2,\"filters\":null}") "]",
                      300);
    codecs_expect(packed, z.total_out, plain, 300);
    lzma_end(&z);
}

/* A bomb gives up at the chunk's length, and a dictionary that nobody has is refused. */
TEST(X6_numcodecs_bombs_stop_at_the_limit)
{
    uint8_t *zeros = calloc(1, 1 << 20);
    static const char *const lists[] = { "[\"bytes\",\"numcodecs.zlib\"]",
                                         "[\"bytes\",\"numcodecs.bz2\"]",
                                         "[\"bytes\",\"numcodecs.lzma\"]",
                                         "[\"bytes\",\"numcodecs.zstd\"]",
                                         "[\"bytes\",\"numcodecs.blosc\"]" };
    brc_buf out = BRC_BUF_INIT;

    for (size_t i = 0; i < 5; i++) {
        codecs_open_bytes(lists[i], 1 << 20);
        codecs_encode(zeros, 1 << 20, &out);
        codecs_open_bytes(lists[i], 100);
        codecs_expect_corrupt(out.data, out.len, "");
    }
    codecs_open_bytes("[\"bytes\"," NAMED("numcodecs.lzma", "{\"format\":2}") "]", 4);
    codecs_expect_corrupt("\x5D\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\0\0\0\0\0", 18,
                          "bytes of memory");
    brc_buf_dispose(&out);
    free(zeros);
}

TEST(base64_is_padded_text)
{
    codecs_open_bytes("[\"bytes\",\"numcodecs.base64\"]", 4);
    codecs_expect_stored("any!", 4, "YW55IQ==", 8);
    codecs_expect_corrupt("YW55IQ=", 7, "not whole groups of four");
    codecs_expect_corrupt("YW55I*==", 8, "characters that base64");
    codecs_expect_corrupt("YW=5IQ==", 8, "characters that base64");
    codecs_open_bytes("[\"bytes\",\"numcodecs.base64\"]", 3);
    codecs_expect_stored("\xFB\xEF\xFF", 3, "++//", 4);
}

TEST(shuffle_puts_equal_bytes_together)
{
    codecs_open_bytes("[\"bytes\"," NAMED("numcodecs.shuffle", "{\"elementsize\":3}") "]", 8);
    codecs_expect_stored("abcdefgh", 8, "adbecfgh", 8);
    codecs_open_bytes("[\"bytes\"," NAMED("numcodecs.shuffle", "{\"elementsize\":0}") "]", 3);
    codecs_expect_stored("abc", 3, "abc", 3);
    /* without a size: that of the array's elements */
    uint64_t n = 2;
    codecs_open("[" LITTLE ",\"numcodecs.shuffle\"]", "int16", 1, &n);
    codecs_expect_stored("abcd", 4, "acbd", 4);
}

/* ---- array to array ----------------------------------------------------------------- */

TEST(delta_counts_from_the_first_element)
{
    static const int16_t plain[] = { 100, 102, 99, 32767, -32768 };
    static const int16_t stored[] = { 100, 2, -3, 32668, 1 };
    static const int8_t narrow[] = { 100, 2, -3 };
    static const uint8_t bools[] = { 1, 1, 0, 0, 1 }, xors[] = { 1, 0, 1, 0, 1 };
    uint64_t n = 5, three = 3;

    codecs_open("[" NAMED("numcodecs.delta", "{\"dtype\":\">i2\"}") "," LITTLE "]", "int16", 1, &n);
    codecs_expect_stored(plain, sizeof(plain), stored, sizeof(stored));
    ck_assert(!brc_chain_is_lossy(codecs_chain));
    codecs_open("[" NAMED("numcodecs.delta",
                          "{\"dtype\":\"i2\",\"astype\":\"int16\"}") "," LITTLE "]",
                "int16", 1, &n);
    codecs_expect_stored(plain, sizeof(plain), stored, sizeof(stored));
    codecs_open(
        "[" NAMED("numcodecs.delta", "{\"dtype\":\"|b1\",\"astype\":\"|b1\"}") ",\"bytes\"]",
        "bool", 1, &n);
    codecs_expect_stored(bools, 5, xors, 5);
    codecs_open(
        "[" NAMED("numcodecs.delta", "{\"dtype\":\"<i2\",\"astype\":\"|i1\"}") ",\"bytes\"]",
        "int16", 1, &three);
    codecs_expect_stored(plain, 6, narrow, 3);
    codecs_expect_unstorable(plain + 2, 6, "the difference before element 1 does not fit int8");
}

TEST(delta_of_floats_adds_up_in_their_own_type)
{
    static const float plain[] = { 0.5f, 0.75f, -1.0f }, stored[] = { 0.5f, 0.25f, -1.75f };
    static const double wide[] = { 0.1, 0.2, 0.4 };
    brc_buf out = BRC_BUF_INIT, back = BRC_BUF_INIT, again = BRC_BUF_INIT;
    uint64_t n = 3;

    codecs_open("[" NAMED("numcodecs.delta", "{\"dtype\":\"<f4\"}") "," LITTLE "]", "float32", 1,
                &n);
    codecs_expect_stored(plain, sizeof(plain), stored, sizeof(stored));
    ck_assert(brc_chain_is_lossy(codecs_chain));
    codecs_open("[" NAMED("numcodecs.delta", "{\"dtype\":\"<f8\",\"astype\":\"<f4\"}") "," LITTLE
                                                                                       "]",
                "float64", 1, &n);
    codecs_encode(wide, sizeof(wide), &out);
    ck_assert_uint_eq(out.len, 12);
    ck_assert_int_eq(codecs_decode(out.data, out.len, &back), BRC_OK);
    double near;
    memcpy(&near, back.data + 16, 8);
    ck_assert_double_eq_tol(near, 0.4, 1e-7);
    codecs_expect(out.data, out.len, back.data, back.len);
    brc_buf_dispose(&out);
    brc_buf_dispose(&back);
    brc_buf_dispose(&again);
}

TEST(fixed_scale_rounds_halves_to_even)
{
    static const double plain[] = { 1000.05, 1000.15, 1000.25, 999.0 },
                        read[] = { 1000, 1000.2, 1000.2, 999 };
    static const float halves[] = { 0.5f, 1.5f, 2.5f, -2.5f }, even[] = { 0, 2, 2, -2 };
    int16_t stored[] = { 0, 2, 2, -10 };
    brc_buf out = BRC_BUF_INIT;
    uint64_t n = 4;

    codecs_open(
        "[" NAMED("numcodecs.fixedscaleoffset",
                  "{\"offset\":1000,\"scale\":10,\"dtype\":\"<f8\",\"astype\":\"<i2\"}") "," LITTLE
                                                                                         "]",
        "float64", 1, &n);
    codecs_expect(stored, sizeof(stored), read, sizeof(read));
    codecs_encode(read, sizeof(read), &out);
    ck_assert_mem_eq(out.data, stored, sizeof(stored));
    ck_assert_uint_eq(out.len, sizeof(stored));
    codecs_encode(plain, sizeof(plain), &out); /* 0.05 * 10 is a little below a half */
    ck_assert_uint_eq(out.len, sizeof(stored));
    static const double huge[] = { 1e6, 0, 0, 0 };
    codecs_expect_unstorable(huge, sizeof(huge), "element 0: 9990000 is out of the range of int16");
    codecs_open(
        "[" NAMED("numcodecs.fixedscaleoffset",
                  "{\"offset\":0.0,\"scale\":1.0,\"dtype\":\"<f4\",\"astype\":null}") "," LITTLE
                                                                                      "]",
        "float32", 1, &n);
    codecs_encode(halves, sizeof(halves), &out);
    ck_assert_mem_eq(out.data, even, 12); /* -2 and not -0: see the last           */
    codecs_expect(out.data, out.len, even, sizeof(even));
    brc_buf_dispose(&out);
}

TEST(quantize_keeps_decimal_digits)
{
    /* one digit: scale 2^ceil(log2(10)) = 16 */
    static const double plain[] = { 1.23, -1.23, 1e300, 0.03125 };
    static const double stored[] = { 1.25, -1.25, 1e300, 0 };
    brc_buf out = BRC_BUF_INIT;
    uint64_t n = 4;

    codecs_open("[" NAMED("numcodecs.quantize", "{\"digits\":1,\"dtype\":\"<f8\"}") "," LITTLE "]",
                "float64", 1, &n);
    codecs_encode(plain, sizeof(plain), &out);
    ck_assert_mem_eq(out.data, stored, sizeof(stored));
    codecs_expect_stored(stored, sizeof(stored), stored, sizeof(stored));
    codecs_open("[" NAMED("numcodecs.quantize",
                          "{\"digits\":1,\"dtype\":\"<f8\",\"astype\":\"<f4\"}") "," LITTLE "]",
                "float64", 1, &n);
    codecs_expect_unstorable(plain, sizeof(plain), "out of the range of float32");
    brc_buf_dispose(&out);
}

TEST(numcodecs_packbits_begins_at_the_highest_bit)
{
    static const uint8_t plain[] = { 1, 0, 1, 1, 0, 0, 0, 0, 0, 1 };
    static const uint8_t stored[] = { 6, 0xB0, 0x40 }, lie[] = { 5, 0xB0, 0x40 };
    uint64_t shape[2] = { 2, 5 };

    codecs_open("[\"numcodecs.packbits\",\"bytes\"]", "bool", 2, shape);
    codecs_expect_stored(plain, 10, stored, 3);
    codecs_expect_corrupt(lie, 3, "number of padding bits is 5, not 6");
    shape[0] = 0;
    codecs_open("[\"numcodecs.packbits\",\"bytes\"]", "bool", 2, shape);
    codecs_expect_stored("", 0, "\0", 1);
}

/* The tables are those of the registry's sample arrays. */
TEST(bitround_gives_the_registrys_samples)
{
    static const uint8_t bytes[] = { 0, 1, 10, 11, 100, 123, 200, 208, 209, 255 };
    static const uint8_t rounded[] = { 0, 1, 10, 12, 96, 128, 192, 192, 224, 224 };
    float floats[] = { 0, 0.1f, 1.2f, 12.3f, 123.4f, 1234.5f, 0, 0, 0 };
    float near[] = { 0, 0.1015625f, 1.25f, 12, 120, 1280, 0, 0, 0 };
    static const uint32_t specials[] = { 0x7FC00001, 0x7F800000, 0xFF800000 };
    brc_buf out = BRC_BUF_INIT;
    uint64_t n = 10;

    codecs_open("[" NAMED("bitround", "{\"keepbits\":3}") ",\"bytes\"]", "uint8", 1, &n);
    codecs_encode(bytes, 10, &out);
    ck_assert_mem_eq(out.data, rounded, 10);
    codecs_expect_stored(rounded, 10, rounded, 10);
    memcpy(floats + 6, specials, 12);
    memcpy(near + 6, specials, 12);
    n = 9;
    codecs_open("[" NAMED("https://codec.zarrs.dev/array_to_array/bitround",
                          "{\"keepbits\":3}") "," LITTLE "]",
                "float32", 1, &n);
    codecs_encode(floats, sizeof(floats), &out);
    ck_assert_mem_eq(out.data, near, sizeof(near));
    brc_buf_dispose(&out);
}

/* ---- configurations ------------------------------------------------------------------ */

TEST(B07_wrong_options_of_numcodecs_are_refused)
{
    static const struct {
        const char *codec, *says;
    } cases[] = {
        { NAMED("numcodecs.zlib", "{\"level\":10}"), "\"level\" must be an integer from -1 to 9" },
        { NAMED("numcodecs.bz2", "{\"level\":0}"), "from 1 to 9" },
        { NAMED("numcodecs.lz4", "{\"level\":1}"), "level" },
        { NAMED("numcodecs.lzma", "{\"format\":4}"), "\"format\" must be 1 (xz)" },
        { NAMED("numcodecs.lzma", "{\"format\":3}"), "format 3 needs \"filters\"" },
        { NAMED("numcodecs.lzma", "{\"filters\":[{\"id\":33,\"size\":1}]}"), "size" },
        { NAMED("numcodecs.lzma", "{\"preset\":77}"), "no preset 77" },
        { NAMED("numcodecs.crc32", "{\"location\":\"middle\"}"), "\"start\" or \"end\"" },
        { NAMED("numcodecs.fletcher32", "{\"location\":\"end\"}"), "location" },
        { NAMED("numcodecs.jenkins_lookup3", "{\"prefix\":[256]}"), "list of bytes" },
        { NAMED("numcodecs.blosc", "{\"shuffle\":\"shuffle\"}"), "from -1 to 2" },
        { NAMED("numcodecs.shuffle", "{\"elementsize\":-1}"), "\"elementsize\"" },
    };
    char list[300];

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        snprintf(list, sizeof(list), "[" LITTLE ",%s]", cases[i].codec);
        codecs_expect_refused(list, BRC_EINVAL, cases[i].says);
    }
    codecs_expect_refused("[" LITTLE ",\"numcodecs.pickle\"]", BRC_EUNSUPPORTED, "is not known");
}

TEST(B07_wrong_options_of_array_codecs_are_refused)
{
    static const struct {
        const char *codec, *says;
    } cases[] = {
        { NAMED("reshape", "{\"shape\":[5,-1]}"), "another number of elements" },
        { NAMED("reshape", "{\"shape\":[-1,-1]}"), "more than one -1" },
        { NAMED("reshape", "{\"shape\":[24,0]}"), "extents above zero" },
        { NAMED("reshape", "{\"shape\":[[1],[0]]}"), "increasing order" },
        { NAMED("reshape", "{\"shape\":[2,[1],2]}"), "before or after item 1" },
        { NAMED("reshape", "{\"shape\":[[2],-1]}"), "0 to 1" },
        { NAMED("reshape", "{}"), "\"shape\" must be given" },
        { NAMED("bitround", "{\"keepbits\":0}"), "from 1 to 64" },
        { NAMED("numcodecs.bitround", "{\"keepbits\":4}"), "not floats" },
        { NAMED("numcodecs.delta", "{\"dtype\":\"<i8\"}"), "4 bytes, as int32 has" },
        { NAMED("numcodecs.delta", "{\"dtype\":\"<i4\",\"astype\":\"<f4\"}"), "must be integers" },
        { NAMED("numcodecs.delta", "{\"dtype\":\"<q9\"}"), "NumPy data type" },
        { NAMED("numcodecs.quantize", "{\"digits\":1,\"dtype\":\"<i4\"}"), "must be floats" },
        { NAMED("numcodecs.astype", "{\"decode_dtype\":\"<i4\"}"),
          "\"encode_dtype\" must be given" },
        { NAMED("numcodecs.fixedscaleoffset", "{\"offset\":0,\"scale\":0,\"dtype\":\"<i4\"}"),
          "neither zero" },
        { "\"numcodecs.packbits\"", "not booleans" },
    };
    char list[300];

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        snprintf(list, sizeof(list), "[%s," LITTLE "]", cases[i].codec);
        codecs_expect_refused(list, BRC_EINVAL, cases[i].says);
    }
}

TEST(reshape_takes_the_forms_of_the_registry)
{
    static const char *const shapes[] = { "[24]",      "[-1]",      "[[0,1]]",
                                          "[[0],2,3]", "[2,2,[1]]", "[[],[0],1,[1]]" };
    char list[300];
    uint64_t shape[2] = { 4, 6 };
    uint8_t plain[24] = { 9, 8, 7 };

    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        snprintf(list, sizeof(list), "[" NAMED("reshape", "{\"shape\":%s}") ",\"bytes\"]",
                 shapes[i]);
        codecs_open(list, "uint8", 2, shape);
        codecs_expect_stored(plain, 24, plain, 24);
    }
    /* what comes behind sees the new shape */
    codecs_open("[" NAMED("reshape", "{\"shape\":[[0],2,3]}") "," NAMED(
                    "transpose", "{\"order\":[2,0,1]}") ",\"bytes\"]",
                "uint8", 2, shape);
    codecs_open("[" NAMED("reshape", "{\"shape\":[]}") ",\"bytes\"]", "uint8", 0, shape);
    codecs_expect_stored("a", 1, "a", 1);
}

/* ---- LZF ------------------------------------------------------------------------------ */

#define LZF(header_) "[\"bytes\"," NAMED("imagecodecs_lzf", "{\"header\":" header_ "}") "]"

/* Streams of imagecodecs 2026, which are those of liblzf. */
TEST(lzf_is_that_of_liblzf)
{
    static const char forty[] = "\50\0\0\0\1aa\340\33\0\1aa";
    char as[40];

    memset(as, 'a', sizeof(as));
    codecs_open_bytes(LZF("true"), 40);
    codecs_expect(forty, sizeof(forty) - 1, as, 40);
    codecs_open_bytes(LZF("false"), 40);
    codecs_expect(forty + 4, sizeof(forty) - 5, as, 40);
    codecs_expect_stored(as, 40, "\0a\340\36\0", 5);
    codecs_open_bytes("[\"bytes\",\"imagecodecs_lzf\"]", 7);
    codecs_expect_stored("abcdefg", 7, "\7\0\0\0\6abcdefg", 12);
    codecs_open_bytes(LZF("false"), 0);
    codecs_expect_stored("", 0, "", 0);
}

TEST(lzf_that_is_damaged_is_refused)
{
    codecs_open_bytes(LZF("false"), 16);
    codecs_expect_corrupt("\17abcdefghijklmno", 16, "damaged after 0 of 16");
    codecs_expect_corrupt("\7abcdefgh", 9, "decode to 8, not 16");
    codecs_expect_corrupt("\17abcdefghijklmnop\0a", 19, "damaged after 16 of 16");
    codecs_expect_corrupt("\0a\40\1", 4, "damaged after 1 of 16");
    codecs_expect_corrupt("\0a\340\5", 4, "damaged after 1 of 16");
    codecs_expect_corrupt("\0a\340\15\0", 5, "damaged after 1 of 16");
    codecs_open_bytes(LZF("true"), 16);
    codecs_expect_corrupt("\20\0\0", 3, "cannot hold the header");
    codecs_expect_corrupt("\21\0\0\0\17abcdefghijklmnop", 21, "decode to 17, which is impossible");
    codecs_expect_refused("[" LITTLE "," NAMED("imagecodecs_lzf", "{\"header\":1}") "]", BRC_EINVAL,
                          "must be true or false");
    codecs_expect_refused("[" LITTLE "," NAMED("imagecodecs_lzf", "{\"level\":1}") "]", BRC_EINVAL,
                          "level");
    codecs_expect_refused("[" LITTLE "," NAMED("numcodecs.zlib", "{\"level\":1}") "," NAMED(
                              "imagecodecs_lzf", "{\"header\":false}") "]",
                          BRC_EINVAL, "the length of what is stored must be known");
}
