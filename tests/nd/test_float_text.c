/*
 * Text of floats: every conversion rounds once, in the target type, and the
 * shortest text reads back bit for bit. Random patterns come from the seeds that
 * a failure prints.
 */
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/base/buf.h"
#include "../../src/nd/dtype.h"
#include "../../src/nd/dtype_ops.h"
#include "../kit/suite.h"

TEST_SUITE(float_text);

static uint64_t dtype_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state * UINT64_C(0x2545f4914f6cdd1d);
}

static brc_dtype float_type_of(const char *name)
{
    brc_dtype type = { 0 };
    size_t n;
    const brc_dtype_spec *specs = brc_dtype_builtins(&n);
    for (size_t i = 0; i < n; i++)
        if (strcmp(specs[i].name, name) == 0)
            ck_assert_int_eq(specs[i].open(specs[i].ctx, &type, name, NULL, NULL), 0);
    ck_assert_ptr_nonnull(type.ops);
    return type;
}

/* Printed as a fill value and read again, NaNs too, the element has the same bits. */
static void float_keeps_its_bits(const brc_dtype *type, const uint8_t *element, uint64_t seed)
{
    brc_buf text = BRC_BUF_INIT, again = BRC_BUF_INIT;
    brc_json *value = NULL;
    ck_assert_int_eq(type->ops->print(type, element, type->item_size, BRC_PRINT_FILL, &text, NULL),
                     0);
    ck_assert_int_eq(brc_json_parse(&value, (char *)text.data, text.len, 0, NULL), 0);
    ck_assert_int_eq(type->ops->parse(type, value, &again, NULL), 0);
    ck_assert_uint_eq(again.len, type->item_size);
    ck_assert_msg(memcmp(again.data, element, type->item_size) == 0, "seed %#llx: %s %.*s",
                  (unsigned long long)seed, type->name, (int)text.len, (char *)text.data);
    brc_json_free(value);
    brc_buf_dispose(&text);
    brc_buf_dispose(&again);
}

CASE("floats", .timeout = UNTIMED);

TEST(float16_every_pattern_round_trips)
{
    brc_dtype type = float_type_of("float16");
    for (uint32_t bits = 0; bits < 65536; bits++) {
        uint8_t element[2] = { (uint8_t)bits, (uint8_t)(bits >> 8) };
        char text[BRC_FLOAT_TEXT];
        int overflow;
        float_keeps_its_bits(&type, element, 0);
        if ((bits & 0x7c00) == 0x7c00)
            continue;
        brc_float_text(text, element, 2);
        ck_assert_uint_eq(brc_half_from_text(text, &overflow), bits);
        ck_assert_int_eq(overflow, 0);
        /* text of the exact value, with all its digits */
        char exact[64];
        snprintf(exact, sizeof(exact), "%.30f", brc_half_to_double((uint16_t)bits));
        ck_assert_uint_eq(brc_half_from_text(exact, &overflow), bits);
    }
}

/* Trap 14: between each two neighbours lies a boundary; exactly there the even one
 * wins, and a digit far behind float64's precision decides. */
TEST(float16_rounds_once_at_every_boundary)
{
    for (uint32_t bits = 0; bits < 0x7c00; bits++) {
        double low = brc_half_to_double((uint16_t)bits);
        double high = bits == 0x7bff ? 65536.0 : brc_half_to_double((uint16_t)(bits + 1));
        char text[96];
        int overflow;
        uint32_t even = bits + (bits & 1);
        snprintf(text, sizeof(text), "%.26f", (low + high) / 2);
        ck_assert_msg(brc_half_from_text(text, &overflow) == even, "%s", text);
        ck_assert_int_eq(overflow, even == 0x7c00);
        snprintf(text, sizeof(text), "%.26f%040d1", (low + high) / 2, 0);
        ck_assert_msg(brc_half_from_text(text, &overflow) == bits + 1, "%s", text);
        /* a hair below: take the last unit that is not zero down by one, nines behind */
        snprintf(text, sizeof(text), "%.26f%040d", (low + high) / 2, 0);
        size_t at = strlen(text);
        while (text[at - 1] == '0' || text[at - 1] == '.')
            at--;
        text[at - 1]--;
        for (size_t i = at; i < strlen(text); i++)
            if (text[i] != '.')
                text[i] = '9';
        ck_assert_msg(brc_half_from_text(text, &overflow) == bits, "%s", text);
        ck_assert_int_eq(overflow, 0);
    }
}

TEST(half_to_double_is_exact)
{
    ck_assert(brc_half_to_double(0x3c00) == 1.0);
    ck_assert(brc_half_to_double(0xc000) == -2.0);
    ck_assert(brc_half_to_double(0x0001) == 0x1p-24);
    ck_assert(brc_half_to_double(0x03ff) == 0x3ffp-24);
    ck_assert(brc_half_to_double(0x0400) == 0x1p-14);
    ck_assert(brc_half_to_double(0x7bff) == 65504.0);
    ck_assert(brc_half_to_double(0x7c00) == 1e308 * 10);
    ck_assert(1 / brc_half_to_double(0x8000) < -1e308);
    double nan = brc_half_to_double(0x7c01);
    ck_assert(nan != nan);
}

static void random_floats_round_trip(const char *name, uint64_t seed, int rounds)
{
    brc_dtype type = float_type_of(name);
    uint64_t state = seed;
    for (int i = 0; i < rounds; i++) {
        uint64_t bits = dtype_random(&state);
        uint8_t element[8], again[8];
        brc_decimal decimal;
        char text[BRC_FLOAT_TEXT];
        int overflow;
        if (i % 8 == 0) /* powers of two, where the gaps differ */
            bits &= brc_float_inf_bits(type.item_size) | brc_float_sign_bit(type.item_size);
        if (i % 8 == 1) /* subnormals and small ones */
            bits >>= 12 + bits % 50;
        brc_store_le(element, type.item_size, bits);
        float_keeps_its_bits(&type, element, seed);
        brc_float_text(text, element, type.item_size);
        if (!brc_decimal_read(&decimal, text))
            continue; /* NaN, Infinity */
        brc_store_le(again, type.item_size,
                     brc_decimal_to_bits(&decimal, type.item_size, &overflow));
        ck_assert_msg(memcmp(again, element, type.item_size) == 0, "seed %#llx: %s %s",
                      (unsigned long long)seed, name, text);
    }
}

TEST(float32_random_patterns_round_trip)
{
    random_floats_round_trip("float32", UINT64_C(0x5eed0001), 20000);
}

TEST(float64_random_patterns_round_trip)
{
    random_floats_round_trip("float64", UINT64_C(0x5eed0002), 20000);
}

/* No text with a digit less reads back. */
TEST(float_text_is_the_shortest)
{
    uint64_t state = UINT64_C(0x5eed0003);
    for (int i = 0; i < 4000; i++) {
        uint64_t bits = dtype_random(&state) >> 1;
        double value;
        uint8_t element[8];
        char text[BRC_FLOAT_TEXT], shorter[64];
        if (i % 2 == 0)
            bits &= UINT64_C(0x7ff) << 52;
        if (bits >= brc_float_inf_bits(8) || bits == 0)
            continue;
        memcpy(&value, &bits, sizeof(value));
        brc_store_le(element, 8, bits);
        brc_float_text(text, element, 8);
        brc_decimal decimal;
        ck_assert_int_eq(brc_decimal_read(&decimal, text), 1);
        if (decimal.ndigits < 2)
            continue;
        snprintf(shorter, sizeof(shorter), "%.*e", (int)decimal.ndigits - 2, value);
        ck_assert_msg(strtod(shorter, NULL) != value, "%s is longer than %s", text, shorter);
    }
}

TEST(float_literals_of_any_length_round_once)
{
    static const struct {
        const char *head;
        int zeros;
        const char *tail;
        uint64_t bits;
    } rows[] = {
        /* between 2^53 and 2^53 + 2, a hair above, after more digits than are kept */
        { "9007199254740993.", 2000, "1", UINT64_C(0x4340000000000001) },
        { "9007199254740993.", 2000, "", UINT64_C(0x4340000000000000) },
        { "0.", 5000, "1e5001", UINT64_C(0x3ff0000000000000) },
        { "1", 5000, "e-5000", UINT64_C(0x3ff0000000000000) },
    };
    char text[6000];
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        brc_decimal decimal;
        int overflow;
        snprintf(text, sizeof(text), "%s%0*d%s", rows[i].head, rows[i].zeros, 0, rows[i].tail);
        ck_assert_int_eq(brc_decimal_read(&decimal, text), 1);
        ck_assert_uint_eq(brc_decimal_to_bits(&decimal, 8, &overflow), rows[i].bits);
    }
}

TEST(text_that_is_no_number_is_seen)
{
    static const char *const bad[] = { "", "-", "+1", "1.", ".5", "1e", "1e+", "0x1", "1 ", "--1" };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        brc_decimal decimal;
        ck_assert_msg(!brc_decimal_read(&decimal, bad[i]), "%s", bad[i]);
    }
}

TEST(numbers_do_not_follow_the_locale)
{
    static const char *const commas[] = { "de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "de_DE" };
    for (size_t i = 0; i < sizeof(commas) / sizeof(commas[0]); i++)
        if (setlocale(LC_NUMERIC, commas[i]) != NULL)
            break;
    double value = 1.25e-7;
    uint8_t element[8];
    char text[BRC_FLOAT_TEXT];
    uint64_t bits;
    brc_decimal decimal;
    int overflow;
    memcpy(&bits, &value, sizeof(bits));
    brc_store_le(element, 8, bits);
    brc_float_text(text, element, 8);
    ck_assert_str_eq(text, "1.25e-07");
    ck_assert_int_eq(brc_decimal_read(&decimal, text), 1);
    ck_assert_uint_eq(brc_decimal_to_bits(&decimal, 8, &overflow), bits);
    setlocale(LC_NUMERIC, "C");
}
