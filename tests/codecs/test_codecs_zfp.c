/* "zfp" and "numcodecs.zfpy": streams of zfpy and zarrs, what cannot be stored, hostile streams. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../kit/chain_fixture.h"
#include "../kit/codec_kit.h"
#include "../kit/suite.h"

TEST_SUITE(codecs_zfp);

#define NAMED(name_, config_) "[{\"name\":\"" name_ "\",\"configuration\":" config_ "}]"
#define ZFP(config_) NAMED("zfp", config_)
#define ZFPY(config_) NAMED("numcodecs.zfpy", config_)
#define REVERSIBLE ZFP("{\"mode\":\"reversible\"}")

CASE("each", .setup = codecs_setup, .teardown = codecs_teardown, .timeout = UNTIMED);

#if !__has_include(<zfp.h>)

TEST(a_build_without_libzfp_names_it)
{
    codecs_expect_refused(REVERSIBLE, BRC_EUNSUPPORTED, "built without libzfp");
    codecs_expect_refused(ZFPY("{\"mode\":5}"), BRC_EUNSUPPORTED, "built without libzfp");
}

#else

static const uint64_t three_five[2] = { 3, 5 };

/* -3, -1.75, -0.5 ... as an array of (3, 5). */
static const float *fifteen(void)
{
    static float values[15];

    for (int i = 0; i < 15; i++)
        values[i] = (float)i * 1.25f - 3;
    return values;
}

/* The bytes that a text of hexadecimal digits says. */
static size_t unhex(uint8_t *out, const char *text)
{
    size_t n = 0;
    char digits[3] = "";

    for (; text[2 * n] != '\0'; n++) {
        memcpy(digits, text + 2 * n, 2);
        out[n] = (uint8_t)strtoul(digits, NULL, 16);
    }
    return n;
}

/* ---- streams of others ---------------------------------------------------------------- */

/* Streams of zfpy 1.0.1 without a header, then chunks of numcodecs 0.16.6, with the header. Most
 * give the numbers back as they were. */
static const struct {
    const char *list, *stored;
    int rounds; /* the values that come out are in `rounded` */
} streams[] = {
    { REVERSIBLE, "0d9e002250810244800101c0400d9e0022108102540000018040000000000000", 0 },
    { ZFP("{\"mode\":\"fixed_accuracy\",\"tolerance\":0.05}"),
      "0771488844702213912844042200000000808396501085a044252a51880844000000000000000000", 0 },
    { ZFP("{\"mode\":\"fixed_precision\",\"precision\":9}"),
      "077148884470221391e8a0251444212851894a0400000000", 1 },
    { ZFPY("{\"mode\":4,\"compression_kwargs\":{\"tolerance\":0.05},\"tolerance\":0.05,\"rate\":-1,"
           "\"precision\":-1}"),
      "7a667005460000200000e0ca0771488844702213912844042200000000808396501085a044252a51880844000000"
      "0000",
      0 },
    { ZFPY("{\"mode\":2,\"compression_kwargs\":{\"rate\":8},\"tolerance\":-1,\"rate\":8,"
           "\"precision\":-1}"),
      "7a667005460000200000f00707714888447022139128440422000000072da1200a41894a54a21011880000000000"
      "0000",
      0 },
    { ZFPY("{\"mode\":3,\"precision\":9}"),
      "7a6670054600002000008080077148884470221391e8a0251444212851894a04", 1 },
    { ZFPY("{\"mode\":4,\"tolerance\":-1}"),
      "7a66700546000020000000880d9e002250810244800101c0400d9e00221081025400000180400000", 0 },
    { ZFPY("{}"),
      "7a66700546000020000000880d9e002250810244800101c0400d9e00221081025400000180400000", 0 },
};

EACH(streams_of_zfpy_are_read_and_written, streams)
{
    static const char rounded[] = "00003ec00000dcbf0000f0be0000483f000002400000464000008b400000b340"
                                  "0000db40008001410080164100802a41"
                                  "00803e410080524100806641";
    uint8_t stored[64], values[60];
    size_t len = unhex(stored, streams[_i].stored);
    brc_buf out = BRC_BUF_INIT;

    codecs_open(streams[_i].list, "float32", 2, three_five);
    if (streams[_i].rounds)
        ck_assert_uint_eq(unhex(values, rounded), sizeof(values));
    else
        memcpy(values, fifteen(), sizeof(values));
    codecs_expect(stored, len, values, sizeof(values));
    codecs_encode(fifteen(), 60, &out);
    ck_assert_uint_eq(out.len, len);
    ck_assert_mem_eq(out.data, stored, len);
    brc_buf_dispose(&out);
}

TEST(the_header_says_how_a_stream_was_made)
{
    uint8_t stored[64];
    size_t len = unhex(stored, streams[3].stored);

    codecs_open(ZFPY("{\"mode\":3,\"precision\":2}"), "float32", 2, three_five);
    codecs_expect(stored, len, fifteen(), 60);
}

TEST(old_versions_of_numcodecs_wrote_one_axis)
{
    uint64_t n = 15;
    brc_buf out = BRC_BUF_INIT;

    codecs_open(ZFPY("{\"mode\":5}"), "float32", 1, &n);
    codecs_encode(fifteen(), 60, &out);
    codecs_open(ZFPY("{\"mode\":5}"), "float32", 2, three_five);
    codecs_expect(out.data, out.len, fifteen(), 60);
    n = 16;
    codecs_open(ZFPY("{\"mode\":5}"), "float32", 1, &n);
    codecs_expect_corrupt(out.data, out.len, "another type or shape");
    brc_buf_dispose(&out);
}

/* A chunk that zarrs wrote: uint8 in the upper bits of int32. */
TEST(small_integers_are_in_the_upper_bits)
{
    static const uint8_t stored[] = { 0x68, 0xa1, 0x88, 0x40, 0x04, 0x2d, 0x14, 0x55,
                                      0x88, 0x0a, 0,    0,    0,    0,    0,    0 };
    uint64_t shape[2] = { 4, 6 };
    uint8_t values[24];

    for (int i = 0; i < 24; i++)
        values[i] = (uint8_t)(i / 6 * 24 + i % 6);
    codecs_open(REVERSIBLE, "uint8", 2, shape);
    codecs_expect_stored(values, 24, stored, sizeof(stored));
}

TEST(integers_are_those_of_zfpy)
{
    static const int32_t narrow[] = { INT32_MIN, -1, 0, 1, 2, INT32_MAX };
    static const int64_t wide[] = { 0, 5, INT64_MAX };
    uint8_t stored[64];
    uint64_t six = 6, three = 3;
    size_t len = unhex(stored, "ff0f00000000000000000000000000402ebf030000000000000000000000"
                               "0000b932000000000000");

    codecs_open(REVERSIBLE, "int32", 1, &six);
    codecs_expect_stored(narrow, sizeof(narrow), stored, len);
    codecs_open(REVERSIBLE, "int64", 1, &three);
    len = unhex(stored,
                "7f060000000000000000000000000000000000000000000000000000000062703400000000000000");
    codecs_expect_stored(wide, sizeof(wide), stored, len);
    codecs_open(REVERSIBLE, "uint64", 1, &three);
    codecs_expect_stored(wide, sizeof(wide), stored, len);
}

/* zarrs gives a block the bits of one of three axes: 64 values, at 2 bits 128 bits. */
TEST(a_rate_counts_three_axes)
{
    static const double eight[] = { 0, 1.5, 3, 4.5, 6, 7.5, 9, 10.5 };
    uint8_t stored[16];
    uint64_t cube[3] = { 2, 2, 2 }, n = 8;
    brc_buf out = BRC_BUF_INIT;

    codecs_open(ZFP("{\"mode\":\"fixed_rate\",\"rate\":2}"), "float64", 3, cube);
    codecs_expect(stored, unhex(stored, "0788030e6081024c2000000000000000"), eight, sizeof(eight));
    codecs_open(ZFP("{\"mode\":\"fixed_rate\",\"rate\":2}"), "float64", 1, &n);
    codecs_encode(eight, sizeof(eight), &out);
    ck_assert_uint_eq(out.len, 2 * 128 / 8);
    codecs_open(ZFPY("{\"mode\":2,\"rate\":16}"), "float64", 1, &n);
    codecs_encode(eight, sizeof(eight), &out);
    ck_assert_uint_eq(out.len, 2 * 64 / 8 + 16 /* with the header */);
    brc_buf_dispose(&out);
}

/* ---- what cannot be stored ------------------------------------------------------------- */

TEST(values_that_zfp_would_change_are_refused)
{
    float values[15];
    uint32_t big[3] = { 1, UINT32_C(0x80000000), 2 };
    uint64_t three = 3;

    memcpy(values, fifteen(), sizeof(values));
    values[7] = NAN;
    codecs_open(ZFP("{\"mode\":\"fixed_accuracy\",\"tolerance\":1}"), "float32", 2, three_five);
    codecs_expect_unstorable(values, sizeof(values), "element 7 is NaN or infinite");
    values[7] = -INFINITY;
    codecs_expect_unstorable(values, sizeof(values), "element 7 is NaN or infinite");
    codecs_open(REVERSIBLE, "float32", 2, three_five);
    brc_buf out = BRC_BUF_INIT;
    codecs_encode(values, sizeof(values), &out);
    codecs_expect(out.data, out.len, values, sizeof(values));
    brc_buf_dispose(&out);
    codecs_open(REVERSIBLE, "uint32", 1, &three);
    codecs_expect_unstorable(big, sizeof(big), "element 1 is more than 2147483647");
}

static const struct {
    const char *list, *type, *says;
} refused[] = {
    { ZFP("{}"), "float32", "\"mode\" must be" },
    { "[\"zfp\"]", "float32", "\"mode\" must be" },
    { ZFP("{\"mode\":\"lossless\"}"), "float32", "\"mode\" must be" },
    { ZFP("{\"mode\":\"reversible\",\"rate\":1}"), "float32", "rate" },
    { ZFP("{\"mode\":\"fixed_rate\"}"), "float32", "\"rate\" must be a number" },
    { ZFP("{\"mode\":\"fixed_rate\",\"rate\":0}"), "float32", "more than 0 and at most 260" },
    { ZFP("{\"mode\":\"fixed_rate\",\"rate\":261}"), "float32", "more than 0 and at most 260" },
    { ZFP("{\"mode\":\"fixed_precision\",\"precision\":65}"), "float32", "from 0 to 64" },
    { ZFP("{\"mode\":\"fixed_precision\",\"precision\":-1}"), "float32", "from 0 to 64" },
    { ZFP("{\"mode\":\"fixed_accuracy\",\"tolerance\":-1}"), "float32", "from 0 on" },
    { ZFP("{\"mode\":\"fixed_accuracy\",\"tolerance\":1}"), "int32", "a tolerance is for floats" },
    { ZFP("{\"mode\":\"expert\",\"minbits\":1,\"maxbits\":8,\"maxprec\":9,\"minexp\":0}"),
      "float32", "\"maxbits\" must be an integer from 9 on" },
    { ZFP("{\"mode\":\"expert\",\"minbits\":1,\"maxbits\":11,\"maxprec\":9,\"minexp\":0}"),
      "float64", "\"maxbits\" must be an integer from 12 on" },
    { ZFP("{\"mode\":\"expert\",\"minbits\":21,\"maxbits\":20,\"maxprec\":9,\"minexp\":0}"),
      "float32", "\"minbits\" must be an integer from 0 to 20" },
    { ZFP("{\"mode\":\"expert\",\"minbits\":1,\"maxbits\":20,\"maxprec\":0,\"minexp\":0}"),
      "float32", "\"maxprec\" must be" },
    { ZFP("{\"mode\":\"expert\",\"minbits\":1,\"maxbits\":20,\"maxprec\":9,\"minexp\":-1075}"),
      "float32", "\"minexp\" must be" },
    { ZFP("{\"mode\":\"expert\",\"minbits\":1,\"maxbits\":20,\"maxprec\":9}"), "float32",
      "\"minexp\" must be" },
    { REVERSIBLE, "float16", "no elements of float16" },
    { REVERSIBLE, "complex64", "no elements of complex64" },
    { REVERSIBLE, "bool", "no elements of bool" },
    { REVERSIBLE, "int4", "no elements of int4" },
    { REVERSIBLE, "string", "no elements of string" },
    { ZFPY("{\"mode\":5}"), "int16", "no elements of int16" },
    { ZFPY("{\"mode\":5}"), "uint32", "no elements of uint32" },
    { ZFPY("{\"mode\":1}"), "float32", "\"mode\" must be 2" },
    { ZFPY("{\"mode\":4,\"tolerance\":-2}"), "float32", "from 0 on" },
    { ZFPY("{\"mode\":3,\"precision\":\"a\"}"), "float32", "\"precision\" must be a number" },
    { ZFPY("{\"mode\":3,\"digits\":1}"), "float32", "digits" },
};

EACH(wrong_configurations_of_zfp_are_refused, refused)
{
    ck_assert_int_eq(codecs_try_open(refused[_i].list, refused[_i].type, 2, three_five),
                     BRC_EINVAL);
    ck_assert_msg(strstr(codecs_err.message, refused[_i].says) != NULL, "%s", codecs_err.message);
}

TEST(zfp_takes_up_to_four_axes)
{
    uint64_t shape[5] = { 2, 2, 2, 2, 2 };
    float value = 2.5f;
    brc_buf out = BRC_BUF_INIT;

    ck_assert_int_eq(codecs_try_open(REVERSIBLE, "float32", 5, shape), BRC_EINVAL);
    ck_assert_msg(strstr(codecs_err.message, "up to 4 axes, not 5") != NULL, "%s",
                  codecs_err.message);
    codecs_open(REVERSIBLE, "float32", 0, NULL);
    codecs_encode(&value, 4, &out);
    codecs_expect(out.data, out.len, &value, 4);
    shape[1] = 0;
    codecs_open(REVERSIBLE, "float32", 2, shape);
    codecs_expect_stored("", 0, "", 0);
    codecs_expect_corrupt("x", 1, "0 bytes are expected");
    brc_buf_dispose(&out);
}

/* ---- hostile streams ---------------------------------------------------------------- */

TEST(a_stream_of_zfp_that_was_cut_is_refused)
{
    uint8_t stored[64];
    size_t len = unhex(stored, streams[0].stored);

    codecs_open(REVERSIBLE, "float32", 2, three_five);
    for (size_t i = 0; i < 25; i++)
        codecs_expect_corrupt(stored, i, "ends before its last block");
    memset(stored + len, 0, 8);
    codecs_expect_corrupt(stored, len + 8, "bytes follow the stream");
    /* blocks of 1000 bits: the configuration says how long the stream must be */
    codecs_open(ZFP("{\"mode\":\"expert\",\"minbits\":1000,\"maxbits\":1000,\"maxprec\":64,"
                    "\"minexp\":-1074}"),
                "float32", 2, three_five);
    codecs_expect_corrupt(stored, len, "ends before its last block");
}

TEST(a_header_of_zfp_that_lies_is_refused)
{
    uint8_t stored[64];
    size_t len = unhex(stored, streams[6].stored);

    codecs_open(ZFPY("{\"mode\":5}"), "float32", 2, three_five);
    for (size_t i = 0; i < 12; i++) /* whatever is flipped there: no other values */
        for (int bit = 0; bit < 8; bit++) {
            brc_buf out = BRC_BUF_INIT;
            stored[i] ^= (uint8_t)(1 << bit);
            int rc = codecs_decode(stored, len, &out);
            ck_assert_msg(rc == BRC_ECORRUPT || (rc == BRC_OK && out.len == 60), "byte %zu: %d", i,
                          rc);
            ck_assert(i >= 10 || rc == BRC_ECORRUPT);
            stored[i] ^= (uint8_t)(1 << bit);
            brc_buf_dispose(&out);
        }
    codecs_expect_corrupt(stored, 11, "");
    codecs_expect_corrupt("", 0, "not a stream of zfp with a header");
    codecs_open(ZFPY("{\"mode\":5}"), "int32", 2, three_five);
    codecs_expect_corrupt(stored, len, "another type or shape");
}

/* Few bytes cannot claim many blocks, whatever memory there is. */
TEST(X6_a_short_stream_of_zfp_takes_no_memory)
{
    uint64_t n = UINT64_C(1) << 40;

    codecs_open(REVERSIBLE, "float64", 1, &n);
    brc_buf out = BRC_BUF_INIT;
    ck_assert_int_eq(codecs_decode("\1\2\3\4\5\6\7\10", 8, &out), BRC_ECORRUPT);
    ck_assert_uint_eq(out.cap, 0);
    n = (UINT64_C(1) << 60) - 1;
    ck_assert_int_eq(codecs_try_open(REVERSIBLE, "float64", 1, &n), BRC_ELIMIT);
}

#endif
