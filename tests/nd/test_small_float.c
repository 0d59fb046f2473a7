/*
 * bfloat16, float8, float6 and float4: every pattern, every boundary between two.
 * The expected values come from the definition of the formats, computed here in
 * another way than in the library: bit by bit, from the text of the layouts.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/base/buf.h"
#include "../kit/dtype_kit.h"
#include "../kit/suite.h"

TEST_SUITE(small_float);

/* kind: i IEEE, z fnuz, n fn, m fn with one NaN a sign, u e8m0 */
static const struct {
    const char *name;
    char kind;
    int exponent, mantissa, bias;
    unsigned nan, inf, max;
    double largest;
} formats[] = {
    { "bfloat16", 'i', 8, 7, 127, 0x7fc0, 0x7f80, 0x7f7f, 0x1.fep127 },
    { "float8_e3m4", 'i', 3, 4, 3, 0x78, 0x70, 0x6f, 15.5 },
    { "float8_e4m3", 'i', 4, 3, 7, 0x7c, 0x78, 0x77, 240 },
    { "float8_e4m3b11fnuz", 'z', 4, 3, 11, 0x80, 0, 0x7f, 30 },
    { "float8_e4m3fnuz", 'z', 4, 3, 8, 0x80, 0, 0x7f, 240 },
    { "float8_e5m2", 'i', 5, 2, 15, 0x7e, 0x7c, 0x7b, 57344 },
    { "float8_e5m2fnuz", 'z', 5, 2, 16, 0x80, 0, 0x7f, 57344 },
    { "float8_e8m0fnu", 'u', 8, 0, 127, 0xff, 0, 0xfe, 0x1p127 },
    { "float6_e2m3fn", 'n', 2, 3, 1, 0, 0, 0x1f, 7.5 },
    { "float6_e3m2fn", 'n', 3, 2, 3, 0, 0, 0x1f, 28 },
    { "float4_e2m1fn", 'n', 2, 1, 1, 0, 0, 0x07, 6 },
    { "float8_e4m3fn", 'm', 4, 3, 7, 0x7f, 0, 0x7e, 448 },
};
#define NFORMATS ((int)(sizeof(formats) / sizeof(formats[0])))

static unsigned patterns_of(int f)
{
    return 1u << (formats[f].exponent + formats[f].mantissa + (formats[f].kind != 'u'));
}

static unsigned sign_of(int f)
{
    return formats[f].kind == 'u' ? 0 : patterns_of(f) / 2;
}

/* Each mantissa bit adds its power of two. */
static double defined_value(int f, unsigned bits)
{
    int m = formats[f].mantissa, e = 0;
    unsigned magnitude = bits & ~sign_of(f);
    if (formats[f].kind == 'z' && bits == formats[f].nan)
        return NAN;
    if (formats[f].kind == 'm' && magnitude == 0x7f)
        return NAN;
    if (formats[f].kind == 'u' && bits == 0xff)
        return NAN;
    if (formats[f].kind == 'i' && magnitude > formats[f].inf)
        return NAN;
    for (int i = 0; i < formats[f].exponent; i++)
        e += (magnitude >> (m + i) & 1) ? 1 << i : 0;
    double value = e > 0 || formats[f].kind == 'u' ? 1 : 0;
    for (int i = 0; i < m; i++)
        value += (magnitude >> i & 1) ? pow(2, i - m) : 0;
    value *= pow(2, (e > 0 || formats[f].kind == 'u' ? e : 1) - formats[f].bias);
    if (formats[f].kind == 'i' && magnitude == formats[f].inf)
        value = INFINITY;
    return bits & sign_of(f) ? -value : value;
}

static void store_bits(uint8_t *element, size_t size, unsigned bits)
{
    for (size_t i = 0; i < size; i++)
        element[i] = (uint8_t)(bits >> (8 * i));
}

static unsigned load_bits(const brc_buf *element)
{
    unsigned bits = 0;
    for (size_t i = element->len; i-- > 0;)
        bits = bits << 8 | element->data[i];
    return bits;
}

/* The bits that a number's literal reads as; `code` where it is refused. */
static unsigned parsed_bits(const brc_dtype *type, const char *json, int *code)
{
    brc_buf out = BRC_BUF_INIT;
    brc_error err = BRC_ERROR_INIT;
    *code = kit_parse(type, json, &out, &err);
    unsigned bits = load_bits(&out);
    brc_buf_dispose(&out);
    return bits;
}

CASE("all", .setup = dtype_kit_setup, .teardown = dtype_kit_teardown, .timeout = UNTIMED);

LOOP(D2_small_floats_have_the_values_of_their_formats, 0, NFORMATS)
{
    brc_dtype *type = kit_open(formats[_i].name);
    uint8_t element[2];
    ck_assert_str_eq(type->name, formats[_i].name);
    ck_assert_int_eq(type->klass, BRC_CLASS_FLOAT);
    ck_assert_uint_eq(type->item_size, _i == 0 ? 2 : 1);
    ck_assert_uint_eq(type->swap_unit, _i == 0 ? 2 : 1);
    ck_assert_uint_eq(1u << type->bits, patterns_of(_i));
    for (unsigned bits = 0; bits < patterns_of(_i); bits++) {
        double want = defined_value(_i, bits);
        store_bits(element, type->item_size, bits);
        double found = type->ops->number(type, element);
        ck_assert_msg(memcmp(&found, &want, sizeof(found)) == 0 || (isnan(found) && isnan(want)),
                      "%x: %g, not %g", bits, found, want);
    }
    store_bits(element, type->item_size, formats[_i].max);
    ck_assert(type->ops->number(type, element) == formats[_i].largest);
    brc_dtype_free(type);
}

LOOP(small_floats_survive_print_and_parse, 0, NFORMATS)
{
    brc_dtype *type = kit_open(formats[_i].name);
    uint8_t element[2];
    int code;
    for (unsigned bits = 0; bits < patterns_of(_i); bits++) {
        store_bits(element, type->item_size, bits);
        char *fill = kit_print(type, element, type->item_size, BRC_PRINT_FILL);
        unsigned back = parsed_bits(type, fill, &code);
        ck_assert_msg(code == BRC_OK && back == bits, "%x is %s is %x", bits, fill, back);
        double value = defined_value(_i, bits);
        char *json = kit_print(type, element, type->item_size, BRC_PRINT_JSON);
        char *text = kit_print(type, element, type->item_size, BRC_PRINT_TEXT);
        if (isnan(value)) {
            ck_assert_str_eq(json, "\"NaN\"");
            ck_assert_str_eq(text, "nan");
            ck_assert_int_eq(strncmp(fill, "\"0x", 3) == 0, bits != formats[_i].nan);
        } else if (isinf(value)) {
            ck_assert_str_eq(json, value < 0 ? "\"-Infinity\"" : "\"Infinity\"");
            ck_assert_str_eq(text, value < 0 ? "-inf" : "inf");
        } else {
            ck_assert_str_eq(json, fill);
            ck_assert_str_eq(text, fill);
        }
        free(fill);
        free(json);
        free(text);
    }
    brc_dtype_free(type);
}

/* No shorter text reads back: one digit fewer, rounded either way, does not. */
LOOP(small_floats_print_shortest, 0, NFORMATS)
{
    brc_dtype *type = kit_open(formats[_i].name);
    uint8_t element[2];
    int code;
    for (unsigned bits = 0; bits <= formats[_i].max; bits++) {
        double value = defined_value(_i, bits);
        if (value == floor(value) && value <= (_i == 0 ? 256 : 0x1p53))
            continue;
        store_bits(element, type->item_size, bits);
        char *text = kit_print(type, element, type->item_size, BRC_PRINT_TEXT);
        int digits = 0;
        char shorter[64];
        double shown = strtod(text, NULL);
        for (digits = 1; digits < 17; digits++) {
            snprintf(shorter, sizeof(shorter), "%.*e", digits - 1, shown);
            if (strtod(shorter, NULL) == shown)
                break;
        }
        if (digits > 1) {
            snprintf(shorter, sizeof(shorter), "%.*e", digits - 2, value);
            ck_assert_msg(parsed_bits(type, shorter, &code) != bits || code != BRC_OK,
                          "%s for %s", text, shorter);
        }
        free(text);
    }
    brc_dtype_free(type);
}

/* The exact text of a value, then with a digit far behind it. */
static void check_boundary(const brc_dtype *type, double middle, unsigned below, unsigned above,
                           unsigned max)
{
    char text[400], beyond[440];
    int code;
    snprintf(text, sizeof(text), "%.130e", middle);
    char *e = strchr(text, 'e');
    *e = '\0';
    unsigned even = below & 1 ? above : below;
    snprintf(beyond, sizeof(beyond), "%se%s", text, e + 1);
    unsigned found = parsed_bits(type, beyond, &code);
    if (even > max)
        ck_assert_int_eq(code, BRC_EINVAL);
    else
        ck_assert_msg(code == BRC_OK && found == even, "%s: %x, not %x", beyond, found, even);
    snprintf(beyond, sizeof(beyond), "%s0000000001e%s", text, e + 1);
    found = parsed_bits(type, beyond, &code);
    if (above > max)
        ck_assert_int_eq(code, BRC_EINVAL);
    else
        ck_assert_msg(code == BRC_OK && found == above, "%s: %x", beyond, found);
    snprintf(beyond, sizeof(beyond), "%.17g", nextafter(middle, 0));
    found = parsed_bits(type, beyond, &code);
    ck_assert_msg(code == BRC_OK && found == below, "%s: %x, not %x", beyond, found, below);
}

LOOP(small_floats_round_half_to_even_once, 0, NFORMATS)
{
    brc_dtype *type = kit_open(formats[_i].name);
    unsigned max = formats[_i].max;
    for (unsigned bits = 0; bits <= max; bits += _i == 0 && bits > 300 && bits < 0x7f00 ? 37 : 1) {
        double low = defined_value(_i, bits);
        double high = bits < max ? defined_value(_i, bits + 1) :
                      formats[_i].kind == 'u' ? 0x1p128 :
                                                2 * low - defined_value(_i, bits - 1);
        check_boundary(type, (low + high) / 2, bits, bits + 1, max);
    }
    brc_dtype_free(type);
}

LOOP(small_floats_know_their_words, 0, NFORMATS)
{
    brc_dtype *type = kit_open(formats[_i].name);
    int code;
    unsigned bits = parsed_bits(type, "\"NaN\"", &code);
    ck_assert_int_eq(code == BRC_OK, formats[_i].nan != 0);
    ck_assert_uint_eq(bits, formats[_i].nan);
    static const char *const words[] = { "\"Infinity\"", "\"+Infinity\"", "\"-Infinity\"" };
    for (int i = 0; i < 3; i++) {
        bits = parsed_bits(type, words[i], &code);
        ck_assert_int_eq(code == BRC_OK, formats[_i].inf != 0);
        if (formats[_i].inf != 0)
            ck_assert_uint_eq(bits, formats[_i].inf | (i == 2 ? sign_of(_i) : 0));
    }
    bits = parsed_bits(type, "-0.0", &code);
    ck_assert_int_eq(code == BRC_OK, formats[_i].kind != 'u');
    ck_assert_uint_eq(bits, formats[_i].kind == 'z' ? 0 : sign_of(_i));
    parsed_bits(type, "0", &code);
    ck_assert_int_eq(code == BRC_OK, formats[_i].kind != 'u');
    parsed_bits(type, "-1", &code);
    ck_assert_int_eq(code == BRC_OK, formats[_i].kind != 'u');
    static const char *const wrong[] = { "\"nan\"", "\"inf\"", "\"1.5\"", "null", "true", "[1]",
                                         "\"0x\"",  "\"0x0\"", "\"0x00000\"", "\"0xzz\"", "{}",
                                         "1e999",   "-1e999",  "\"a\\u0000\"", "\"-NaN\"" };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        parsed_bits(type, wrong[i], &code);
        ck_assert_msg(code == BRC_EINVAL, "%s", wrong[i]);
    }
    brc_dtype_free(type);
}

TEST(D7_small_floats_print_as_people_write)
{
    kit_check("bfloat16", "1", "803f", "1.0", NULL, "1.0");
    kit_check("bfloat16", "3.3895313892515355e38", "7f7f", "3.39e+38", NULL, "3.39e+38");
    kit_check("bfloat16", "\"0x7FC1\"", "c17f", "\"0x7fc1\"", "\"NaN\"", "nan");
    kit_check("bfloat16", "3.14159", "4940", "3.14", NULL, "3.14");
    kit_check("float8_e4m3", "240", "77", "240.0", NULL, "240.0");
    kit_check("float8_e4m3", "0.1", "1d", "0.1", NULL, "0.1");
    kit_check("float8_e4m3", "-0.0", "80", NULL, NULL, "-0.0");
    kit_check("float8_e4m3fn", "448", "7e", "448.0", NULL, "448.0");
    kit_check("float8_e4m3fn", "\"NaN\"", "7f", "\"NaN\"", "\"NaN\"", "nan");
    kit_check("float8_e4m3fn", "\"0xff\"", "ff", "\"0xff\"", "\"NaN\"", "nan");
    kit_refuses("float8_e4m3fn", "480", "(-448.0 to 448.0)");
    kit_refuses("float8_e4m3fn", "\"Infinity\"", "(a number, \"NaN\" or \"0x\"");
    kit_check("float8_e5m2", "57344", "7b", "57344.0", NULL, "57344.0");
    kit_check("float8_e8m0fnu", "16", "83", "16.0", NULL, "16.0");
    kit_check("float8_e8m0fnu", "3", "80", "2.0", NULL, "2.0");
    kit_check("float8_e8m0fnu", "1e-60", "00", "6e-39", NULL, "6e-39");
    kit_check("float4_e2m1fn", "-6", "0f", "-6.0", NULL, "-6.0");
    kit_check("float4_e2m1fn", "\"0x0f\"", "0f", "-6.0", NULL, "-6.0");
    kit_refuses("float4_e2m1fn", "7", "(-6.0 to 6.0)");
    kit_refuses("float4_e2m1fn", "\"0x10\"", "\"0x\" and 2 hex digits");
    kit_refuses("float8_e4m3", "248", "fill value 248 does not fit float8_e4m3 (-240.0 to 240.0)");
    kit_refuses("float8_e4m3fnuz", "\"Infinity\"", "(a number, \"NaN\" or \"0x\"");
    kit_refuses("float8_e8m0fnu", "0", "float8_e8m0fnu (6e-39 to ");
    kit_refuses("bfloat16", "3.4e38", "does not fit bfloat16");
    kit_refuses("bfloat16", "\"0x7f\"", "4 hex digits");
}

TEST(D7_complex_numbers_of_small_floats)
{
    char name[40];
    for (int f = 0; f < NFORMATS && formats[f].kind != 'm'; f++) {
        snprintf(name, sizeof(name), "complex_%s", formats[f].name);
        brc_dtype *type = kit_open(name), *part = kit_open(formats[f].name);
        ck_assert_str_eq(type->name, name);
        ck_assert_int_eq(type->klass, BRC_CLASS_COMPLEX);
        ck_assert_uint_eq(type->item_size, 2 * part->item_size);
        ck_assert_uint_eq(type->swap_unit, part->swap_unit);
        ck_assert_uint_eq(type->bits, 2 * part->bits);
        ck_assert_ptr_null(type->ops->number);
        brc_dtype_free(type);
        brc_dtype_free(part);
        kit_refuses(name, "1", name);
        kit_refuses(name, "[1]", name);
        kit_refuses(name, "[1,1,1]", name);
        kit_refuses(name, "[1,1e999]", name);
    }
    kit_check("complex_bfloat16", "[1,\"NaN\"]", "803fc07f", "[1.0,\"NaN\"]", NULL, "(1+nanj)");
    kit_check("complex_float8_e4m3", "[0,-1.5]", "00bc", "[0.0,-1.5]", NULL, "-1.5j");
    kit_check("complex_float4_e2m1fn", "[-0.5,6]", "0907", "[-0.5,6.0]", NULL, "(-0.5+6j)");
    kit_check("complex_float8_e8m0fnu", "[1,2]", "7f80", "[1.0,2.0]", NULL, "(1+2j)");
}
