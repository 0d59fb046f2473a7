/* Values in other types: cast_value, scale_offset, and what becomes of fill values. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../kit/chain_fixture.h"
#include "../kit/codec_kit.h"
#include "../kit/suite.h"

TEST_SUITE(codecs_cast);

#define LITTLE "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"
#define NAMED(name_, config_) "{\"name\":\"" name_ "\",\"configuration\":" config_ "}"
#define CAST(config_) "[" NAMED("cast_value", config_) "," LITTLE "]"
#define SCALE(config_) "[" NAMED("scale_offset", config_) "," LITTLE "]"
#define COUNT(array_) (sizeof(array_) / sizeof((array_)[0]))

/* Opens for as many elements as `plain` has, and says what is stored and read back. */
#define EXPECT_CAST(list_, type_, plain_, stored_, back_)                               \
    do {                                                                                \
        uint64_t count_ = COUNT(plain_);                                                \
        brc_buf out_ = BRC_BUF_INIT;                                                    \
        codecs_open(list_, type_, 1, &count_);                                          \
        codecs_encode(plain_, sizeof(plain_), &out_);                                   \
        ck_assert_uint_eq(out_.len, sizeof(stored_));                                   \
        for (size_t i_ = 0; i_ < COUNT(stored_); i_++)                                  \
            ck_assert_msg(memcmp(out_.data + i_ * sizeof((stored_)[0]), &(stored_)[i_], \
                                 sizeof((stored_)[0])) == 0,                            \
                          "%s: element %zu", list_, i_);                                \
        brc_buf_dispose(&out_);                                                         \
        codecs_expect(stored_, sizeof(stored_), back_, sizeof(back_));                  \
    } while (0)

CASE("each", .setup = codecs_setup, .teardown = codecs_teardown, .timeout = UNTIMED);

/* ---- cast_value -------------------------------- */

TEST(cast_rounds_in_five_ways)
{
    static const double plain[] = { 0.5, 1.5, 2.5, -0.5, -1.5, 1.2, -1.7, 3 };
    static const struct {
        const char *list;
        int8_t stored[8];
    } cases[] = {
        { CAST("{\"data_type\":\"int8\"}"), { 0, 2, 2, 0, -2, 1, -2, 3 } },
        { CAST("{\"data_type\":\"int8\",\"rounding\":\"nearest-even\"}"),
          { 0, 2, 2, 0, -2, 1, -2, 3 } },
        { CAST("{\"data_type\":\"int8\",\"rounding\":\"towards-zero\"}"),
          { 0, 1, 2, 0, -1, 1, -1, 3 } },
        { CAST("{\"data_type\":\"int8\",\"rounding\":\"towards-positive\"}"),
          { 1, 2, 3, 0, -1, 2, -1, 3 } },
        { CAST("{\"data_type\":\"int8\",\"rounding\":\"towards-negative\"}"),
          { 0, 1, 2, -1, -2, 1, -2, 3 } },
        { CAST("{\"data_type\":\"int8\",\"rounding\":\"nearest-away\"}"),
          { 1, 2, 3, -1, -2, 1, -2, 3 } },
    };
    double back[8];

    for (size_t i = 0; i < COUNT(cases); i++) {
        for (size_t k = 0; k < 8; k++)
            back[k] = cases[i].stored[k];
        EXPECT_CAST(cases[i].list, "float64", plain, cases[i].stored, back);
        ck_assert(brc_chain_is_lossy(codecs_chain));
    }
}

/* int64 to float64 is rounding above 2^53, and nothing on the way is a double. */
TEST(cast_is_exact_above_2_to_the_53)
{
    static const int64_t plain[] = { INT64_MAX, INT64_MIN, 9007199254740993, 9007199254740995,
                                     -9007199254740993 };
    static const double even[] = { 0x1p63, -0x1p63, 9007199254740992, 9007199254740996,
                                   -9007199254740992 };
    static const uint64_t large[] = { UINT64_MAX, UINT64_C(9223372036854775809) };
    static const double down[] = { 0x1.fffffffffffffp63, 0x1p63 };
    uint64_t n = 5, two = 2;
    brc_buf out = BRC_BUF_INIT;

    codecs_open(CAST("{\"data_type\":\"float64\"}"), "int64", 1, &n);
    codecs_encode(plain, sizeof(plain), &out);
    ck_assert_mem_eq(out.data, even, sizeof(even));
    /* 2^63 is not an int64 */
    codecs_expect_corrupt(out.data, out.len, "element 0: 9223372036854775808 is out of the range");
    codecs_open(CAST("{\"data_type\":\"float64\",\"rounding\":\"towards-zero\"}"), "uint64", 1,
                &two);
    codecs_encode(large, sizeof(large), &out);
    ck_assert_mem_eq(out.data, down, sizeof(down));
    codecs_open(CAST("{\"data_type\":\"uint64\"}"), "int64", 1, &n);
    codecs_expect_unstorable(plain, sizeof(plain), "-9223372036854775808 is out of the range");
    brc_buf_dispose(&out);
}

TEST(cast_knows_what_is_out_of_range)
{
    static const int32_t plain[] = { 300, -1, 255, -300 };
    static const uint8_t clamped[] = { 255, 0, 255, 0 }, wrapped[] = { 44, 255, 255, 212 };
    static const int32_t clamped_back[] = { 255, 0, 255, 0 },
                         wrapped_back[] = { 44, 255, 255, 212 };
    static const double wide[] = { 1e300, -1e300, 1e10, -INFINITY };
    static const float floats[] = { INFINITY, -INFINITY, 1e10f, -INFINITY };
    static const double floats_back[] = { INFINITY, -INFINITY, 1e10, -INFINITY };
    uint64_t n = 4;

    EXPECT_CAST(CAST("{\"data_type\":\"uint8\",\"out_of_range\":\"clamp\"}"), "int32", plain,
                clamped, clamped_back);
    EXPECT_CAST(CAST("{\"data_type\":\"uint8\",\"out_of_range\":\"wrap\"}"), "int32", plain,
                wrapped, wrapped_back);
    EXPECT_CAST(CAST("{\"data_type\":\"float32\",\"out_of_range\":\"clamp\"}"), "float64", wide,
                floats, floats_back);
    codecs_open(CAST("{\"data_type\":\"float32\"}"), "float64", 1, &n);
    codecs_expect_unstorable(wide, sizeof(wide), "element 0: 1");
    codecs_open(CAST("{\"data_type\":\"uint8\"}"), "int32", 1, &n);
    codecs_expect_unstorable(plain, sizeof(plain), "element 0: 300 is out of the range of uint8");
}

TEST(cast_of_special_floats)
{
    static const double plain[] = { -0.0, INFINITY, 65519.0, 5.9604644775390625e-8, 2.9e-8, 65504 };
    static const uint16_t stored[] = { 0x8000, 0x7C00, 0x7BFF, 1, 0, 0x7BFF };
    static const double back[] = { -0.0, INFINITY, 65504, 5.9604644775390625e-8, 0, 65504 };
    static const double nan[] = { NAN }, edge[] = { 65520 };
    static const uint16_t half_nan[] = { 0x7E00 };
    uint64_t one = 1;
    brc_buf out = BRC_BUF_INIT;

    EXPECT_CAST(CAST("{\"data_type\":\"float16\"}"), "float64", plain, stored, back);
    codecs_open(CAST("{\"data_type\":\"float16\"}"), "float64", 1, &one);
    codecs_encode(nan, 8, &out);
    ck_assert_mem_eq(out.data, half_nan, 2);
    codecs_expect_unstorable(edge, 8, "65520 is out of the range of float16");
    codecs_open(CAST("{\"data_type\":\"int16\",\"out_of_range\":\"clamp\"}"), "float64", 1, &one);
    codecs_expect_unstorable(nan, 8, "int16 has no NaN");
    brc_buf_dispose(&out);
}

TEST(cast_maps_scalars_before_all_else)
{
    static const float plain[] = { NAN, 1.5f, -INFINITY, 7 };
    static const int16_t stored[] = { -32768, 2, -1, 9 };
    static const int16_t read[] = { -32768, 2, -1, 9 };
    static const float back[] = { NAN, 2, -INFINITY, 7 };
    uint64_t n = 4;
    brc_buf out = BRC_BUF_INIT;
    uint32_t bits;

    codecs_open(CAST("{\"data_type\":\"int16\",\"scalar_map\":{"
                     "\"encode\":[[\"NaN\",-32768],[\"-Infinity\",-1],[7,9],[7,10]],"
                     "\"decode\":[[-32768,\"NaN\"],[-1,\"-Infinity\"],[9,7.0]]}}"),
                "float32", 1, &n);
    codecs_encode(plain, sizeof(plain), &out);
    ck_assert_mem_eq(out.data, stored, sizeof(stored));
    ck_assert_int_eq(codecs_decode(read, sizeof(read), &out), BRC_OK);
    memcpy(&bits, out.data, 4);
    ck_assert_uint_eq(bits, 0x7FC00000);
    ck_assert_mem_eq(out.data + 4, back + 1, 12);
    brc_buf_dispose(&out);
}

/* Types of less than a byte, and floats that have their own tables. */
TEST(cast_reaches_the_small_types)
{
    static const float plain[] = { 0.5f, -448, 3, 1.0625f, 1.0626f, -0.0f };
    static const uint8_t stored[] = { 0x30, 0xF8, 0x44, 0x38, 0x39, 0x80 };
    static const float back[] = { 0.5f, -INFINITY, 3, 1, 1.125f, -0.0f };
    static const int16_t integers[] = { -8, 7, 0 };
    static const uint8_t nibbles[] = { 0xF8, 7, 0 };
    static const float brains[] = { 1.0f, 1.00390625f, 3.3895314e38f };
    static const uint16_t brain_bits[] = { 0x3F80, 0x3F80, 0x7F7F };
    static const float brains_back[] = { 1.0f, 1.0f, 3.3895314e38f };
    static const int16_t eight[] = { 8 };
    uint64_t one = 1;

    EXPECT_CAST(
        "[" NAMED("cast_value",
                  "{\"data_type\":\"float8_e4m3\",\"out_of_range\":\"clamp\"}") ",\"bytes\"]",
        "float32", plain, stored, back);
    EXPECT_CAST("[" NAMED("cast_value", "{\"data_type\":\"int4\"}") ",\"bytes\"]", "int16",
                integers, nibbles, integers);
    EXPECT_CAST(CAST("{\"data_type\":\"bfloat16\"}"), "float32", brains, brain_bits, brains_back);
    codecs_open("[" NAMED("cast_value", "{\"data_type\":\"int4\"}") ",\"packbits\"]", "int16", 1,
                &one);
    codecs_expect_unstorable(eight, 2, "8 is out of the range of int4");
}

/* Every value of the small floats survives a trip through float32, rounds to itself and
 * is the nearest to what lies next to it. */
static void check_small_float(const char *type, unsigned bits)
{
    char list[200];
    uint64_t n = UINT64_C(1) << bits;
    uint8_t all[256];
    brc_buf wide = BRC_BUF_INIT, again = BRC_BUF_INIT;

    for (size_t i = 0; i < n; i++)
        all[i] = (uint8_t)i;
    codecs_open(CAST("{\"data_type\":\"float32\"}"), type, 1, &n);
    codecs_encode(all, n, &wide);
    snprintf(list, sizeof(list),
             "[" NAMED("cast_value", "{\"data_type\":\"%s\","
                                     "\"out_of_range\":\"clamp\"}") ",\"bytes\"]",
             type);
    codecs_open(list, "float32", 1, &n);
    for (int way = -1; way <= 1; way++) {
        for (size_t i = 0; i < n; i++) {
            float value;
            memcpy(&value, wide.data + 4 * i, 4);
            value = way == 0 || isnan(value) ? value : nextafterf(value, (float)way * 1e38f);
            memcpy(wide.data + 4 * i, &value, 4);
        }
        codecs_encode(wide.data, wide.len, &again);
        for (size_t i = 0; i < n; i++) {
            float value;
            memcpy(&value, wide.data + 4 * i, 4);
            int is_tiny = value != 0 && fabsf(value) < 1e-30f; /* beside a zero       */
            ck_assert_msg(again.data[i] == i || isnan(value) || isinf(value) || is_tiny ||
                              fabsf(value) > 1e38f,
                          "%s: %zu becomes %d, for %g", type, i, again.data[i], (double)value);
        }
        codecs_open(CAST("{\"data_type\":\"float32\"}"), type, 1, &n);
        codecs_encode(all, n, &wide);
        codecs_open(list, "float32", 1, &n);
    }
    brc_buf_dispose(&wide);
    brc_buf_dispose(&again);
}

TEST(cast_gives_each_small_float_back)
{
    check_small_float("float8_e4m3", 8);
    check_small_float("float8_e4m3fn", 8);
    check_small_float("float8_e5m2", 8);
    check_small_float("float8_e3m4", 8);
    check_small_float("float8_e4m3fnuz", 8);
    check_small_float("float8_e5m2fnuz", 8);
    check_small_float("float8_e4m3b11fnuz", 8);
    check_small_float("float6_e2m3fn", 6);
    check_small_float("float6_e3m2fn", 6);
    check_small_float("float4_e2m1fn", 4);
}

LOOP(P16_casts_hold_what_the_kit_asks, 0, 3)
{
    static const char *const lists[] = {
        /* "NaN" is not an integer, so the kit sees the floats here */
        CAST("{\"data_type\":\"int64\",\"out_of_range\":\"wrap\",\"scalar_map\":"
             "{\"encode\":[[\"NaN\",0],[\"Infinity\",1],[\"-Infinity\",2]]}}"),
        CAST("{\"data_type\":\"float64\",\"out_of_range\":\"clamp\"}"),
        SCALE("{}"),
    };
    char why[1024] = "no data type was taken";
    codec_kit kit = {
        .reg = codecs_reg, .codecs = lists[_i], .ndim = -1, .rounds = 3, .seed = 4242
    };

    ck_assert_msg(codec_kit_run(&kit, why, sizeof(why)) == 0, "%s", why);
}

TEST(P16_casts_of_integers_are_exact_where_there_is_room)
{
    static const struct {
        const char *name;
        int bits, is_signed;
    } types[] = {
        { "int8", 8, 1 },   { "uint8", 8, 0 },   { "int16", 16, 1 }, { "uint16", 16, 0 },
        { "int32", 32, 1 }, { "uint32", 32, 0 }, { "int64", 64, 1 }, { "uint64", 64, 0 }
    };
    char list[200];
    uint64_t plain[16], random = 5, n;

    for (size_t i = 0; i < 64; i++) {
        size_t from = i / 8, to = i % 8;
        int room = types[to].bits - (types[to].is_signed && !types[from].is_signed);
        int fits = room >= types[from].bits && (types[to].is_signed || !types[from].is_signed);
        for (size_t k = 0; k < 16; k++)
            plain[k] = codec_kit_random(&random);
        n = sizeof(plain) / (size_t)(types[from].bits / 8);
        snprintf(list, sizeof(list),
                 "[" NAMED("cast_value", "{\"data_type\":\"%s\"}") "," LITTLE "]", types[to].name);
        codecs_open(list, types[from].name, 1, &n);
        ck_assert_msg(brc_chain_is_lossy(codecs_chain) == !fits, "%s to %s", types[from].name,
                      types[to].name);
        if (!fits)
            continue;
        brc_buf out = BRC_BUF_INIT;
        codecs_encode(plain, sizeof(plain), &out);
        codecs_expect(out.data, out.len, plain, sizeof(plain));
        brc_buf_dispose(&out);
    }
}

/* ---- scale_offset -------------------------------- */

TEST(scale_offset_of_integers_is_exact)
{
    static const int16_t plain[] = { 100, 103, 97, 5 }, stored[] = { 0, 30, -30, -950 };
    static const int16_t far[] = { 32767, 0, 0, 0 }, below[] = { -32768, 0, 0, 0 };
    static const int16_t odd[] = { 0, 31, 0, 0 }, over[] = { 32760, 0, 0, 0 };
    static const uint64_t big[] = { UINT64_C(18446744073709551615) },
                          small[] = { UINT64_C(9223372036854775807) };
    uint64_t n = 4, one = 1;

    codecs_open(SCALE("{\"offset\":100,\"scale\":10}"), "int16", 1, &n);
    codecs_expect_stored(plain, sizeof(plain), stored, sizeof(stored));
    ck_assert(!brc_chain_is_lossy(codecs_chain));
    codecs_expect_unstorable(far, sizeof(far), "element 0: 32767 cannot be scaled within int16");
    codecs_expect_unstorable(below, sizeof(below), "-32768 cannot be scaled within int16");
    codecs_expect_corrupt(odd, sizeof(odd), "element 1: 31 has no counterpart in int16");
    codecs_open(SCALE("{\"offset\":100}"), "int16", 1, &n);
    codecs_expect_corrupt(over, sizeof(over), "32760 has no counterpart");
    codecs_open(SCALE("{\"offset\":9223372036854775808}"), "uint64", 1, &one);
    codecs_expect_stored(big, 8, small, 8);
}

TEST(scale_offset_of_floats_rounds_as_they_do)
{
    static const float plain[] = { 5, 6, -1 }, stored[] = { 0, 0.1f, -0.6f };
    static const double huge[] = { 1e300 };
    brc_buf out = BRC_BUF_INIT, back = BRC_BUF_INIT;
    uint64_t n = 3, one = 1;

    codecs_open(SCALE("{\"offset\":5,\"scale\":0.1}"), "float32", 1, &n);
    codecs_encode(plain, sizeof(plain), &out);
    for (size_t i = 0; i < 3; i++) {
        float value, want = (plain[i] - 5.0f) * 0.1f;
        memcpy(&value, out.data + 4 * i, 4);
        ck_assert_float_eq(value, want);
        ck_assert_float_eq_tol(value, stored[i], 1e-6f);
    }
    ck_assert_int_eq(codecs_decode(out.data, out.len, &back), BRC_OK);
    codecs_expect(out.data, out.len, back.data, back.len);
    codecs_open(SCALE("{\"scale\":\"0x7fe0000000000000\"}"), "float64", 1, &one);
    codecs_expect_unstorable(huge, 8, "cannot be scaled within float64");
    brc_buf_dispose(&out);
    brc_buf_dispose(&back);
}

TEST(scale_offset_refuses_a_scale_of_zero)
{
    static const char *const zeros[] = {
        "0", "0.0", "-0.0", "\"0x00000000\"", "\"0x80000000\"", "\"NaN\"", "\"Infinity\""
    };
    char list[200];
    uint64_t n = 1;

    for (size_t i = 0; i < COUNT(zeros); i++) {
        snprintf(list, sizeof(list), SCALE("{\"scale\":%s}"), zeros[i]);
        ck_assert_int_eq(codecs_try_open(list, "float32", 1, &n), BRC_EINVAL);
        ck_assert_msg(strstr(codecs_err.message, "\"scale\"") != NULL, "%s", codecs_err.message);
    }
    codecs_expect_refused(SCALE("{\"factor\":1}"), BRC_EINVAL, "factor");
    codecs_expect_refused(SCALE("{\"scale\":1.5}"), BRC_EINVAL, "1.5");
    ck_assert_int_eq(codecs_try_open("[\"scale_offset\",\"bytes\"]", "bool", 1, &n), BRC_EINVAL);
}

/* ---- fill values and types through the chain -------------------------------- */

/* A missing inner chunk behind these codecs is the transformed fill value, read back. */
TEST(D7_fill_values_pass_through_the_codecs_before_a_shard)
{
    static const float plain[] = { 20, 20, 25, 30 };
    static const float fill = 20;
    static const uint8_t head[] = { 5, 10 };
    brc_buf out = BRC_BUF_INIT;
    uint64_t n = 4;

    codecs_open_filled(
        "[" NAMED("scale_offset", "{\"offset\":20,\"scale\":1}") "," NAMED(
            "cast_value", "{\"data_type\":\"uint8\"}") "," NAMED("sharding_indexed",
                                                                 "{\"chunk_shape\":[2],"
                                                                 "\"codecs\":[\"bytes\"],"
                                                                 "\"index_codecs\":[" LITTLE
                                                                 "]}") "]",
        "float32", 1, &n, &fill, 4);
    ck_assert(brc_chain_needs_fill(codecs_chain));
    codecs_encode(plain, sizeof(plain), &out);
    ck_assert_uint_eq(out.len, 2 + 32);
    ck_assert_mem_eq(out.data, head, 2);
    codecs_expect(out.data, out.len, plain, sizeof(plain));
    brc_buf_dispose(&out);
}

TEST(cast_refuses_a_fill_that_does_not_come_back)
{
    static const double half = 0.5, nan = NAN;
    uint64_t n = 1;

    ck_assert_int_eq(
        codecs_try_open_filled(CAST("{\"data_type\":\"int8\"}"), "float64", 1, &n, &half, 8),
        BRC_EINVAL);
    ck_assert_msg(strstr(codecs_err.message,
                         "the fill value: decoding from int8 gives another value") != NULL,
                  "%s", codecs_err.message);
    ck_assert_int_eq(
        codecs_try_open_filled(CAST("{\"data_type\":\"int8\"}"), "float64", 1, &n, &nan, 8),
        BRC_EINVAL);
    codecs_open_filled(CAST("{\"data_type\":\"float32\"}"), "float64", 1, &n, &nan, 8);
}

TEST(B07_wrong_options_of_cast_value_are_refused)
{
    static const struct {
        const char *config, *says;
    } cases[] = {
        { "{}", "\"data_type\" must be given" },
        { "{\"data_type\":\"complex64\"}", "not real numbers" },
        { "{\"data_type\":\"bool\"}", "not real numbers" },
        { "{\"data_type\":\"float32\",\"out_of_range\":\"wrap\"}", "only integers wrap around" },
        { "{\"data_type\":\"int8\",\"rounding\":\"up\"}", "\"rounding\" has an unknown value" },
        { "{\"data_type\":\"int8\",\"out_of_range\":\"saturate\"}", "\"out_of_range\"" },
        { "{\"data_type\":\"int8\",\"scalar_map\":{\"encode\":[[1]]}}", "is not a pair" },
        { "{\"data_type\":\"int8\",\"scalar_map\":{\"decode\":[[\"NaN\",1]]}}", "item 0" },
        { "{\"data_type\":\"int8\",\"scalar_map\":{\"both\":[]}}", "both" },
        { "{\"data_type\":\"int8\",\"extra\":1}", "extra" },
    };
    char list[300];

    for (size_t i = 0; i < COUNT(cases); i++) {
        snprintf(list, sizeof(list), "[" NAMED("cast_value", "%s") "," LITTLE "]", cases[i].config);
        codecs_expect_refused(list, BRC_EINVAL, cases[i].says);
    }
    codecs_expect_refused(CAST("{\"data_type\":\"int7\"}"), BRC_EUNSUPPORTED, "int7");
}

/* Decoded elements are encoded and decoded to the same elements again. */
LOOP(P16_lossy_chains_lose_only_once, 0, 7)
{
    static const char *const lists[] = {
        CAST("{\"data_type\":\"float16\",\"out_of_range\":\"clamp\"}"),
        CAST("{\"data_type\":\"int8\",\"out_of_range\":\"clamp\"}"),
        "[" NAMED("bitround", "{\"keepbits\":5}") "," LITTLE "]",
        "[" NAMED("numcodecs.quantize",
                  "{\"digits\":2,\"dtype\":\"<f8\",\"astype\":\"<f4\"}") "," LITTLE "]",
        "[" NAMED("numcodecs.fixedscaleoffset",
                  "{\"offset\":1.5,\"scale\":8,\"dtype\":\"<f8\",\"astype\":\"<i4\"}") "," LITTLE
                                                                                       "]",
        "[" NAMED("numcodecs.astype",
                  "{\"decode_dtype\":\"<f8\",\"encode_dtype\":\"<i4\"}") "," LITTLE "]",
        SCALE("{\"offset\":3,\"scale\":0.25}"),
    };
    double plain[256];
    uint64_t n = 256, random = 99 + (uint64_t)_i;
    brc_buf first = BRC_BUF_INIT, once = BRC_BUF_INIT, second = BRC_BUF_INIT, twice = BRC_BUF_INIT;

    for (size_t i = 0; i < n; i++)
        plain[i] = ldexp((double)(int64_t)codec_kit_random(&random), -55 - (int)(i % 20));
    codecs_open(lists[_i], "float64", 1, &n);
    ck_assert(brc_chain_is_lossy(codecs_chain));
    codecs_encode(plain, sizeof(plain), &first);
    ck_assert_int_eq(codecs_decode(first.data, first.len, &once), BRC_OK);
    codecs_encode(once.data, once.len, &second);
    ck_assert_int_eq(codecs_decode(second.data, second.len, &twice), BRC_OK);
    ck_assert_uint_eq(twice.len, sizeof(plain));
    ck_assert_mem_eq(once.data, twice.data, twice.len);
    brc_buf_dispose(&first);
    brc_buf_dispose(&once);
    brc_buf_dispose(&second);
    brc_buf_dispose(&twice);
}
