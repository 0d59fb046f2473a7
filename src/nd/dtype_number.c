/*
 * bool, integers, floats and complex numbers: converts a fill_value to an element's
 * bytes, and the bytes back to text.
 *
 * Fill values keep their bits. Hex text and NaNs are handled as integers from end
 * to end: a signalling NaN that passes through a floating register comes out
 * changed. Integers never pass through a double.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "dtype_ops.h"

static void sub_byte_normalize(const brc_dtype *type, uint8_t *data, size_t n);

/* ==== dtype number ================================ */

static int append_le(brc_buf *out, uint64_t value, size_t size, brc_error *err)
{
    uint8_t bytes[8];
    brc_store_le(bytes, size, value);
    return brc_buf_append(out, bytes, size, err);
}

/* ---- bool -------------------------------------------------------------------- */

static int bool_parse(const brc_dtype *type, const brc_json *json, brc_buf *out, brc_error *err)
{
    char label[BRC_VALUE_LABEL];
    int truth;
    if (!brc_json_bool(json, &truth))
        return brc_fail(err, BRC_EINVAL, "fill value %s does not fit %s (true or false)",
                        brc_value_label(label, json), type->name);
    return append_le(out, (uint64_t)truth, 1, err);
}

static int bool_print(const brc_dtype *type, const uint8_t *element, size_t len, int how,
                      brc_buf *out, brc_error *err)
{
    BRC_TRY(brc_element_length_fits(type, len, err));
    if (how == BRC_PRINT_TEXT)
        return brc_buf_append(out, element[0] ? "True" : "False", element[0] ? 4 : 5, err);
    return brc_buf_append(out, element[0] ? "true" : "false", element[0] ? 4 : 5, err);
}

static double bool_number(const brc_dtype *type, const uint8_t *element)
{
    (void)type;
    return element[0] != 0;
}

const brc_dtype_ops brc_bool_ops = { .size = sizeof(brc_dtype_ops),
                                     .parse = bool_parse,
                                     .print = bool_print,
                                     .number = bool_number };

/* ---- integers ---------------------------------------------------------------- */

enum { INTEGER_OK, INTEGER_FRACTION, INTEGER_HUGE, INTEGER_INEXACT };

/*
 * 100.0 and 1e3 are integers too, but a writer may have made them from a double, so such forms
 * are refused past 2^53.
 */
static int decimal_to_integer(const brc_decimal *d, uint64_t *magnitude)
{
    uint64_t value = 0;
    if (d->ndigits > 0 && (d->cut || d->exponent < (int)d->ndigits))
        return d->exponent > 20 ? INTEGER_HUGE : INTEGER_FRACTION;
    if (d->exponent > 20) /* 2^64 has 20 digits */
        return INTEGER_HUGE;
    for (int i = 0; i < d->exponent; i++) {
        unsigned digit = (size_t)i < d->ndigits ? (unsigned)(d->digits[i] - '0') : 0;
        if (__builtin_mul_overflow(value, UINT64_C(10), &value) ||
            __builtin_add_overflow(value, (uint64_t)digit, &value))
            return INTEGER_HUGE;
    }
    *magnitude = value;
    return !d->plain && value > UINT64_C(1) << 53 ? INTEGER_INEXACT : INTEGER_OK;
}

static int integer_range_error(const brc_dtype *type, const brc_json *json, uint64_t lowest,
                               uint64_t highest, brc_error *err)
{
    char label[BRC_VALUE_LABEL];
    return brc_fail(err, BRC_EINVAL, "fill value %s does not fit %s (%s%" PRIu64 " to %" PRIu64 ")",
                    brc_value_label(label, json), type->name, lowest > 0 ? "-" : "", lowest,
                    highest);
}

int brc_integer_parse(const brc_dtype *type, const brc_json *json, uint64_t lowest,
                      uint64_t highest, brc_buf *out, brc_error *err)
{
    char label[BRC_VALUE_LABEL];
    brc_decimal decimal;
    uint64_t magnitude = 0;
    if (!brc_decimal_read(&decimal, brc_json_literal(json)))
        return brc_fail(err, BRC_EINVAL, "fill value %s is not a number, as %s needs",
                        brc_value_label(label, json), type->name);
    switch (decimal_to_integer(&decimal, &magnitude)) {
    case INTEGER_FRACTION:
        return brc_fail(err, BRC_EINVAL, "fill value %s is not an integer, as %s needs",
                        brc_value_label(label, json), type->name);
    case INTEGER_HUGE: return integer_range_error(type, json, lowest, highest, err);
    case INTEGER_INEXACT:
        if (magnitude <= (decimal.negative ? lowest : highest))
            return brc_fail(err, BRC_EINVAL,
                            "fill value %s is above 2^53: write it for %s with plain digits",
                            brc_value_label(label, json), type->name);
        return integer_range_error(type, json, lowest, highest, err);
    default:
        if (magnitude > (decimal.negative ? lowest : highest))
            return integer_range_error(type, json, lowest, highest, err);
        return append_le(out, decimal.negative ? 0 - magnitude : magnitude, type->item_size, err);
    }
}

static int int_parse(const brc_dtype *type, const brc_json *json, brc_buf *out, brc_error *err)
{
    uint64_t lowest = UINT64_C(1) << (type->bits - 1);
    return brc_integer_parse(type, json, lowest, lowest - 1, out, err);
}

static int uint_parse(const brc_dtype *type, const brc_json *json, brc_buf *out, brc_error *err)
{
    return brc_integer_parse(type, json, 0, UINT64_MAX >> (64 - type->bits), out, err);
}

/* Loads an integer, and ignores the bits above those of the value. */
static uint64_t load_uint(const brc_dtype *type, const uint8_t *element)
{
    return brc_load_le(element, type->item_size) & UINT64_MAX >> (64 - type->bits);
}

static int64_t load_int(const brc_dtype *type, const uint8_t *element)
{
    uint64_t sign = UINT64_C(1) << (type->bits - 1);
    return (int64_t)((load_uint(type, element) ^ sign) - sign);
}

static int int_print(const brc_dtype *type, const uint8_t *element, size_t len, int how,
                     brc_buf *out, brc_error *err)
{
    (void)how;
    BRC_TRY(brc_element_length_fits(type, len, err));
    return brc_buf_printf(out, err, "%" PRId64, load_int(type, element));
}

static int uint_print(const brc_dtype *type, const uint8_t *element, size_t len, int how,
                      brc_buf *out, brc_error *err)
{
    (void)how;
    BRC_TRY(brc_element_length_fits(type, len, err));
    return brc_buf_printf(out, err, "%" PRIu64, load_uint(type, element));
}

static double int_number(const brc_dtype *type, const uint8_t *element)
{
    return (double)load_int(type, element);
}

static double uint_number(const brc_dtype *type, const uint8_t *element)
{
    return (double)load_uint(type, element);
}

const brc_dtype_ops brc_int_ops = { .size = sizeof(brc_dtype_ops),
                                    .parse = int_parse,
                                    .print = int_print,
                                    .number = int_number };
const brc_dtype_ops brc_uint_ops = { .size = sizeof(brc_dtype_ops),
                                     .parse = uint_parse,
                                     .print = uint_print,
                                     .number = uint_number };
const brc_dtype_ops brc_sub_int_ops = { .size = sizeof(brc_dtype_ops),
                                        .parse = int_parse,
                                        .print = int_print,
                                        .number = int_number,
                                        .normalize = sub_byte_normalize };
const brc_dtype_ops brc_sub_uint_ops = { .size = sizeof(brc_dtype_ops),
                                         .parse = uint_parse,
                                         .print = uint_print,
                                         .number = uint_number,
                                         .normalize = sub_byte_normalize };

/* ---- floats ------------------------------------------------------------------ */

/* Reads "0x" and all 2 * size digits of the bit pattern, the most significant first. */
static int float_hex_bits(const char *text, size_t size, uint64_t *bits)
{
    uint64_t value = 0;
    if (strncmp(text, "0x", 2) != 0 || strlen(text) != 2 + 2 * size)
        return 0;
    for (const char *p = text + 2; *p != '\0'; p++) {
        unsigned digit;
        if (*p >= '0' && *p <= '9')
            digit = (unsigned)(*p - '0');
        else if (*p >= 'a' && *p <= 'f')
            digit = (unsigned)(*p - 'a' + 10);
        else if (*p >= 'A' && *p <= 'F')
            digit = (unsigned)(*p - 'A' + 10);
        else
            return 0;
        value = value << 4 | digit;
    }
    *bits = value;
    return 1;
}

static int float_word_bits(const char *text, size_t size, uint64_t *bits)
{
    if (strcmp(text, "NaN") == 0)
        *bits = brc_float_nan_bits(size);
    else if (strcmp(text, "Infinity") == 0 || strcmp(text, "+Infinity") == 0)
        *bits = brc_float_inf_bits(size);
    else if (strcmp(text, "-Infinity") == 0)
        *bits = brc_float_inf_bits(size) | brc_float_sign_bit(size);
    else
        return 0;
    return 1;
}

/* Reads one float, or one part of a complex number. */
static int float_part_parse(const brc_dtype *type, size_t size, const brc_json *json,
                            uint64_t *bits, brc_error *err)
{
    char label[BRC_VALUE_LABEL];
    brc_decimal decimal;
    int overflow = 0;
    const char *text = brc_json_literal(json);
    if (brc_json_is_nan(json) || brc_json_text(json, &text)) {
        if (float_word_bits(text, size, bits) || float_hex_bits(text, size, bits))
            return BRC_OK;
        if (strncmp(text, "0x", 2) == 0)
            return brc_fail(err, BRC_EINVAL, "fill value %s for %s must be 0x and %zu hex digits",
                            brc_value_label(label, json), type->name, 2 * size);
    }
    if (!brc_decimal_read(&decimal, brc_json_literal(json)))
        return brc_fail(
            err, BRC_EINVAL,
            "fill value %s does not fit %s (a number, \"NaN\", \"Infinity\", \"-Infinity\" "
            "or \"0x\" and %zu hex digits)",
            brc_value_label(label, json), type->name, 2 * size);
    *bits = brc_decimal_to_bits(&decimal, size, &overflow);
    if (overflow)
        return brc_fail(err, BRC_EINVAL, "fill value %s is too large for %s",
                        brc_value_label(label, json), type->name);
    return BRC_OK;
}

static int float_parse(const brc_dtype *type, const brc_json *json, brc_buf *out, brc_error *err)
{
    uint64_t bits = 0;
    BRC_TRY(float_part_parse(type, type->item_size, json, &bits, err));
    return append_le(out, bits, type->item_size, err);
}

/* Writes JSON: numbers stay bare, and values that JSON lacks are strings. */
static int float_print_json(const uint8_t *element, size_t size, int how, brc_buf *out,
                            brc_error *err)
{
    char text[BRC_FLOAT_TEXT];
    uint64_t bits = brc_load_le(element, size);
    uint64_t magnitude = bits & ~brc_float_sign_bit(size);
    if (how == BRC_PRINT_FILL && magnitude > brc_float_inf_bits(size) &&
        bits != brc_float_nan_bits(size))
        return brc_buf_printf(out, err, "\"0x%0*" PRIx64 "\"", (int)(2 * size), bits);
    brc_float_text(text, element, size);
    return brc_buf_printf(out, err, magnitude >= brc_float_inf_bits(size) ? "\"%s\"" : "%s", text);
}

/* NumPy's words for values that are not finite. */
static void float_numpy_text(char out[BRC_FLOAT_TEXT], const uint8_t *element, size_t size)
{
    uint64_t bits = brc_load_le(element, size);
    uint64_t magnitude = bits & ~brc_float_sign_bit(size);
    if (magnitude > brc_float_inf_bits(size))
        memcpy(out, "nan", 4);
    else if (magnitude == brc_float_inf_bits(size))
        memcpy(out, bits == magnitude ? "inf" : "-inf", bits == magnitude ? 4 : 5);
    else
        brc_float_text(out, element, size);
}

static int float_print(const brc_dtype *type, const uint8_t *element, size_t len, int how,
                       brc_buf *out, brc_error *err)
{
    char text[BRC_FLOAT_TEXT];
    BRC_TRY(brc_element_length_fits(type, len, err));
    if (how != BRC_PRINT_TEXT)
        return float_print_json(element, len, how, out, err);
    float_numpy_text(text, element, len);
    return brc_buf_append(out, text, strlen(text), err);
}

static double float_number(const brc_dtype *type, const uint8_t *element)
{
    uint64_t bits = brc_load_le(element, type->item_size);
    if (type->item_size == 2)
        return brc_half_to_double((uint16_t)bits);
    if (type->item_size == 4) {
        uint32_t word = (uint32_t)bits;
        float value;
        memcpy(&value, &word, sizeof(value));
        return (double)value;
    }
    double value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

const brc_dtype_ops brc_float_ops = { .size = sizeof(brc_dtype_ops),
                                      .parse = float_parse,
                                      .print = float_print,
                                      .number = float_number };

/* ---- complex numbers ----------------------------------------------------------- */

static int complex_parse(const brc_dtype *type, const brc_json *json, brc_buf *out, brc_error *err)
{
    char label[BRC_VALUE_LABEL];
    uint8_t element[16];
    size_t size = type->item_size / 2;
    if (brc_json_kind(json) != BRC_JSON_ARRAY)
        return brc_fail(err, BRC_EINVAL,
                        "fill value %s does not fit %s (an array: [real, imaginary])",
                        brc_value_label(label, json), type->name);
    if (brc_json_count(json) != 2)
        return brc_fail(err, BRC_EINVAL,
                        "fill value for %s has %zu parts, not 2 ([real, imaginary])", type->name,
                        brc_json_count(json));
    for (size_t i = 0; i < 2; i++) {
        uint64_t bits = 0;
        BRC_TRY(float_part_parse(type, size, brc_json_item(json, i), &bits, err));
        brc_store_le(element + i * size, size, bits);
    }
    return brc_buf_append(out, element, type->item_size, err);
}

/* Prints "(1+2j)", and "2j" if the real part is +0, as NumPy's scalars do. */
static int complex_text(brc_buf *out, char part[2][BRC_FLOAT_TEXT], int real_is_zero,
                        brc_error *err)
{
    for (size_t i = 0; i < 2; i++) {
        size_t n = strlen(part[i]);
        if (n > 2 && strcmp(part[i] + n - 2, ".0") == 0)
            part[i][n - 2] = '\0';
    }
    if (real_is_zero)
        return brc_buf_printf(out, err, "%sj", part[1]);
    return brc_buf_printf(out, err, "(%s%s%sj)", part[0], part[1][0] == '-' ? "" : "+", part[1]);
}

static int complex_print_text(const uint8_t *element, size_t size, brc_buf *out, brc_error *err)
{
    char part[2][BRC_FLOAT_TEXT];
    for (size_t i = 0; i < 2; i++)
        float_numpy_text(part[i], element + i * size, size);
    return complex_text(out, part, brc_load_le(element, size) == 0, err);
}

static int complex_print(const brc_dtype *type, const uint8_t *element, size_t len, int how,
                         brc_buf *out, brc_error *err)
{
    BRC_TRY(brc_element_length_fits(type, len, err));
    size_t size = len / 2;
    if (how == BRC_PRINT_TEXT)
        return complex_print_text(element, size, out, err);
    BRC_TRY(brc_buf_append(out, "[", 1, err));
    BRC_TRY(float_print_json(element, size, how, out, err));
    BRC_TRY(brc_buf_append(out, ",", 1, err));
    BRC_TRY(float_print_json(element + size, size, how, out, err));
    return brc_buf_append(out, "]", 1, err);
}

const brc_dtype_ops brc_complex_ops = { .size = sizeof(brc_dtype_ops),
                                        .parse = complex_parse,
                                        .print = complex_print };

/* ==== dtype sub byte ================================ */

/*
 * Types of less than a byte per number, stored as one byte per number.
 *
 * The value lies in the low bits. Writers differ in what they put above it, so
 * readers ignore these bits; canonical elements are sign-extended (signed integers) or
 * zero-extended (all others), so that equal values have equal bits.
 */

/* bits < 8, or a complex number of two such parts: ops.normalize of one byte per number */
static void sub_byte_normalize(const brc_dtype *type, uint8_t *data, size_t n)
{
    unsigned bits = type->bits / (unsigned)type->item_size;
    size_t len = n * type->item_size;
    uint8_t mask = (uint8_t)((1u << bits) - 1);
    unsigned sign = type->klass == BRC_CLASS_INT ? 1u << (bits - 1) : 0;
    for (size_t i = 0; i < len; i++)
        data[i] = (uint8_t)(((data[i] & mask) ^ sign) - sign);
}

/* ==== small float ================================ */

/*
 * Floats of at most 16 bits with a format of their own, and complex numbers of two
 * of them. The formats are those of the Zarr extension registry, which takes the
 * names from ml_dtypes: sign, exponent, mantissa from the top of the bits used.
 * float8_e4m3fn is not in the registry; TensorStore writes it.
 *
 *   IEEE   an exponent of all ones is infinity and NaN
 *   fnuz   finite, no negative zero: its pattern is the one NaN
 *   fn     no infinity; all patterns are finite numbers, but for e4m3fn, where all ones
 *          below the sign are NaN
 *   fnu    e8m0: 2^(pattern - 127), no sign, no zero; 0xff is NaN
 *
 * Every value, and every midpoint of two neighbours, is a float64. So decimal text
 * is rounded here by where its nearest float64 lies among the neighbours, and by
 * the text's own digits where that float64 is a midpoint: one rounding, half to
 * the even pattern. A finite text beyond the largest value is refused.
 */

enum { SMALL_IEEE, SMALL_FNUZ, SMALL_FN, SMALL_FNU };

struct small_format {
    int kind;
    unsigned bits, fraction_bits;
    int bias;
    unsigned nan; /* the canonical NaN; 0: none                                  */
};

static const struct small_format small_formats[BRC_SMALL_FLOATS] = {
    { SMALL_IEEE, 16, 7, 127, 0x7fc0 }, /* bfloat16           */
    { SMALL_IEEE, 8, 4, 3, 0x78 },      /* float8_e3m4        */
    { SMALL_IEEE, 8, 3, 7, 0x7c },      /* float8_e4m3        */
    { SMALL_FNUZ, 8, 3, 11, 0x80 },     /* float8_e4m3b11fnuz */
    { SMALL_FNUZ, 8, 3, 8, 0x80 },      /* float8_e4m3fnuz    */
    { SMALL_IEEE, 8, 2, 15, 0x7e },     /* float8_e5m2        */
    { SMALL_FNUZ, 8, 2, 16, 0x80 },     /* float8_e5m2fnuz    */
    { SMALL_FNU, 8, 0, 127, 0xff },     /* float8_e8m0fnu     */
    { SMALL_FN, 6, 3, 1, 0 },           /* float6_e2m3fn      */
    { SMALL_FN, 6, 2, 3, 0 },           /* float6_e3m2fn      */
    { SMALL_FN, 4, 1, 1, 0 },           /* float4_e2m1fn      */
    { SMALL_FN, 8, 3, 7, 0x7f },        /* float8_e4m3fn      */
};

static const struct small_format *small_format_of(const brc_dtype *type)
{
    return type->state;
}

/* ---- patterns ------------------------------------------------------------------- */

static unsigned small_sign(const struct small_format *f)
{
    return f->kind == SMALL_FNU ? 0 : 1u << (f->bits - 1);
}

/* Returns the largest finite magnitude. */
static unsigned small_max(const struct small_format *f)
{
    if (f->kind == SMALL_FNU)
        return 0xfe;
    unsigned all = small_sign(f) - 1;
    if (f->kind == SMALL_IEEE)
        return all - (1u << f->fraction_bits);
    return f->nan == all ? all - 1 : all;
}

static int small_is_nan(const struct small_format *f, unsigned bits)
{
    if (f->kind == SMALL_IEEE)
        return (bits & ~small_sign(f)) > small_max(f) + 1;
    if (f->kind == SMALL_FN)
        return f->nan != 0 && (bits & ~small_sign(f)) == f->nan;
    return bits == f->nan;
}

static int small_is_inf(const struct small_format *f, unsigned bits)
{
    return f->kind == SMALL_IEEE && (bits & ~small_sign(f)) == small_max(f) + 1;
}

/* Returns the value of a magnitude up to small_max() + 1, which counts as one more finite value. */
static double small_value(const struct small_format *f, unsigned magnitude)
{
    int exponent = (int)(magnitude >> f->fraction_bits);
    int fraction = (int)(magnitude & ((1u << f->fraction_bits) - 1));
    if (exponent == 0 && f->kind != SMALL_FNU)
        return ldexp(fraction, 1 - f->bias - (int)f->fraction_bits);
    return ldexp(fraction + (1 << f->fraction_bits), exponent - f->bias - (int)f->fraction_bits);
}

static double small_to_double(const struct small_format *f, unsigned bits)
{
    unsigned sign = bits & small_sign(f);
    double value = small_is_nan(f, bits)   ? NAN
                   : small_is_inf(f, bits) ? INFINITY
                                           : small_value(f, bits & ~small_sign(f));
    return sign ? -value : value;
}

/* ---- decimal to pattern ------------------------------------------------------------ */

/* Returns the largest magnitude whose value is not above v; 0 if all values are. */
static unsigned small_floor(const struct small_format *f, double v)
{
    unsigned low = 0, high = small_max(f) + 1;
    while (low < high) {
        unsigned middle = low + (high - low + 1) / 2;
        if (small_value(f, middle) <= v)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

/* Returns the nearest magnitude to a decimal above zero; past small_max() the decimal overflows. */
static unsigned small_round(const struct small_format *f, const brc_decimal *decimal)
{
    int overflow;
    double v;
    brc_decimal magnitude = *decimal;
    magnitude.negative = 0;
    uint64_t bits = brc_decimal_to_bits(&magnitude, 8, &overflow);
    memcpy(&v, &bits, sizeof(v));
    unsigned low = small_floor(f, v);
    if (low > small_max(f) || v < small_value(f, low)) /* e8m0 has nothing below 2^-127 */
        return low;
    double middle = (small_value(f, low) + small_value(f, low + 1)) / 2;
    int order = v < middle ? -1 : v > middle ? 1 : brc_decimal_order(&magnitude, middle);
    return order > 0 || (order == 0 && (low & 1)) ? low + 1 : low;
}

/* Returns 1 with the bits of a number's literal; 0 if the number does not fit. */
static int small_from_decimal(const struct small_format *f, const brc_decimal *decimal,
                              unsigned *bits)
{
    unsigned magnitude = 0;
    if (f->kind == SMALL_FNU && (decimal->ndigits == 0 || decimal->negative))
        return 0;
    if (decimal->ndigits > 0)
        magnitude = small_round(f, decimal);
    if (magnitude > small_max(f))
        return 0;
    int negative = decimal->negative && (magnitude > 0 || f->kind != SMALL_FNUZ);
    *bits = negative ? magnitude | small_sign(f) : magnitude;
    return 1;
}

/* ---- pattern to text ------------------------------------------------------------- */

struct small_bits {
    const struct small_format *format;
    unsigned magnitude;
};

static int small_reads_back(const void *ctx, const brc_decimal *decimal)
{
    const struct small_bits *want = ctx;
    return small_round(want->format, decimal) == want->magnitude;
}

/*
 * Writes whole numbers in full if the type has one byte: 16.0 and not 20.0, although
 * a float8_e8m0fnu reads 20.0 as 16. bfloat16 follows float16: in full as far as each
 * whole number has a pattern of its own.
 */
static void small_magnitude_text(char *out, const struct small_format *f, unsigned magnitude)
{
    struct small_bits want = { f, magnitude };
    brc_shortest shortest = {
        .value = small_value(f, magnitude),
        .exact = f->bits == 16 ? 256 : 9007199254740992,
        .first = 1,
        .last = 9,
        .power_of_two = (magnitude & ((1u << f->fraction_bits) - 1)) == 0,
        .reads_back = small_reads_back,
        .ctx = &want,
    };
    brc_shortest_text(out, &shortest);
}

/* `words` are those of NaN, infinity and minus infinity. */
static void small_text(char out[BRC_FLOAT_TEXT], const struct small_format *f, unsigned bits,
                       const char *const words[3])
{
    unsigned sign = bits & small_sign(f);
    const char *word = small_is_nan(f, bits) ? words[0] : words[sign ? 2 : 1];
    if (small_is_nan(f, bits) || small_is_inf(f, bits)) {
        memcpy(out, word, strlen(word) + 1);
        return;
    }
    if (sign)
        *out++ = '-';
    small_magnitude_text(out, f, bits & ~small_sign(f));
}

static int small_print_json(const struct small_format *f, unsigned bits, int how, brc_buf *out,
                            brc_error *err)
{
    static const char *const words[3] = { "\"NaN\"", "\"Infinity\"", "\"-Infinity\"" };
    char text[BRC_FLOAT_TEXT];
    if (how == BRC_PRINT_FILL && small_is_nan(f, bits) && bits != f->nan)
        return brc_buf_printf(out, err, "\"0x%0*x\"", (int)(f->bits + 7) / 8 * 2, bits);
    small_text(text, f, bits, words);
    return brc_buf_append(out, text, strlen(text), err);
}

static const char *const small_numpy_words[3] = { "nan", "inf", "-inf" };

/* Loads a pattern, and ignores the bits above those of the value. */
static unsigned small_load(const struct small_format *f, const uint8_t *element)
{
    return (unsigned)brc_load_le(element, (f->bits + 7) / 8) & ((1u << f->bits) - 1);
}

/* ---- JSON to pattern --------------------------------------------------------------- */

static int small_from_word(const struct small_format *f, const char *text, unsigned *bits)
{
    int negative = text[0] == '-';
    if (strcmp(text, "NaN") == 0 && f->nan != 0) {
        *bits = f->nan;
        return 1;
    }
    if (f->kind != SMALL_IEEE || strcmp(text + (negative || text[0] == '+'), "Infinity") != 0)
        return 0;
    *bits = (small_max(f) + 1) | (negative ? small_sign(f) : 0);
    return 1;
}

static const char *small_forms(const struct small_format *f)
{
    if (f->kind == SMALL_IEEE)
        return "a number, \"NaN\", \"Infinity\", \"-Infinity\"";
    if (f->kind == SMALL_FNU)
        return "a number above 0, \"NaN\"";
    return f->nan != 0 ? "a number, \"NaN\"" : "a number";
}

static int small_range_error(const brc_dtype *type, const brc_json *json, brc_error *err)
{
    const struct small_format *f = small_format_of(type);
    char label[BRC_VALUE_LABEL], max[BRC_FLOAT_TEXT], min[BRC_FLOAT_TEXT] = "";
    small_magnitude_text(max, f, small_max(f));
    if (f->kind == SMALL_FNU)
        small_magnitude_text(min, f, 0);
    return brc_fail(err, BRC_EINVAL, "fill value %s does not fit %s (%s%s to %s)",
                    brc_value_label(label, json), type->name, f->kind == SMALL_FNU ? "" : "-",
                    f->kind == SMALL_FNU ? min : max, max);
}

/* Reads one float, or one part of a complex number. */
static int small_part_parse(const brc_dtype *type, const brc_json *json, unsigned *bits,
                            brc_error *err)
{
    const struct small_format *f = small_format_of(type);
    size_t size = (f->bits + 7) / 8;
    char label[BRC_VALUE_LABEL];
    brc_decimal decimal;
    uint64_t hex = 0;
    const char *text = brc_json_literal(json);
    if (brc_json_is_nan(json) || brc_json_text(json, &text)) {
        if (small_from_word(f, text, bits))
            return BRC_OK;
        if (float_hex_bits(text, size, &hex) && hex >> f->bits == 0) {
            *bits = (unsigned)hex;
            return BRC_OK;
        }
    }
    if (!brc_decimal_read(&decimal, brc_json_literal(json)))
        return brc_fail(err, BRC_EINVAL,
                        "fill value %s does not fit %s (%s or \"0x\" and %zu hex digits)",
                        brc_value_label(label, json), type->name, small_forms(f), 2 * size);
    if (small_from_decimal(f, &decimal, bits))
        return BRC_OK;
    return small_range_error(type, json, err);
}

/* ---- the two kinds of types --------------------------------------------------------- */

static int small_parse(const brc_dtype *type, const brc_json *json, brc_buf *out, brc_error *err)
{
    unsigned bits = 0;
    uint8_t element[2];
    BRC_TRY(small_part_parse(type, json, &bits, err));
    brc_store_le(element, type->item_size, bits);
    return brc_buf_append(out, element, type->item_size, err);
}

static int small_print(const brc_dtype *type, const uint8_t *element, size_t len, int how,
                       brc_buf *out, brc_error *err)
{
    const struct small_format *f = small_format_of(type);
    char text[BRC_FLOAT_TEXT];
    BRC_TRY(brc_element_length_fits(type, len, err));
    if (how != BRC_PRINT_TEXT)
        return small_print_json(f, small_load(f, element), how, out, err);
    small_text(text, f, small_load(f, element), small_numpy_words);
    return brc_buf_append(out, text, strlen(text), err);
}

static double small_number(const brc_dtype *type, const uint8_t *element)
{
    const struct small_format *f = small_format_of(type);
    return small_to_double(f, small_load(f, element));
}

static int small_complex_parse(const brc_dtype *type, const brc_json *json, brc_buf *out,
                               brc_error *err)
{
    char label[BRC_VALUE_LABEL];
    uint8_t element[4];
    size_t size = type->item_size / 2;
    if (brc_json_kind(json) != BRC_JSON_ARRAY || brc_json_count(json) != 2)
        return brc_fail(err, BRC_EINVAL,
                        "fill value %s does not fit %s (an array of 2: [real, imaginary])",
                        brc_value_label(label, json), type->name);
    for (size_t i = 0; i < 2; i++) {
        unsigned bits = 0;
        BRC_TRY(small_part_parse(type, brc_json_item(json, i), &bits, err));
        brc_store_le(element + i * size, size, bits);
    }
    return brc_buf_append(out, element, type->item_size, err);
}

static int small_complex_print(const brc_dtype *type, const uint8_t *element, size_t len, int how,
                               brc_buf *out, brc_error *err)
{
    const struct small_format *f = small_format_of(type);
    char text[2][BRC_FLOAT_TEXT];
    BRC_TRY(brc_element_length_fits(type, len, err));
    unsigned part[2] = { small_load(f, element), small_load(f, element + len / 2) };
    if (how == BRC_PRINT_TEXT) {
        for (size_t i = 0; i < 2; i++)
            small_text(text[i], f, part[i], small_numpy_words);
        return complex_text(out, text, part[0] == 0 && f->kind != SMALL_FNU, err);
    }
    BRC_TRY(brc_buf_append(out, "[", 1, err));
    BRC_TRY(small_print_json(f, part[0], how, out, err));
    BRC_TRY(brc_buf_append(out, ",", 1, err));
    BRC_TRY(small_print_json(f, part[1], how, out, err));
    return brc_buf_append(out, "]", 1, err);
}

static const brc_dtype_ops small_ops = { .size = sizeof(brc_dtype_ops),
                                         .parse = small_parse,
                                         .print = small_print,
                                         .number = small_number };
static const brc_dtype_ops small_sub_ops = { .size = sizeof(brc_dtype_ops),
                                             .parse = small_parse,
                                             .print = small_print,
                                             .number = small_number,
                                             .normalize = sub_byte_normalize };
static const brc_dtype_ops small_complex_ops = { .size = sizeof(brc_dtype_ops),
                                                 .parse = small_complex_parse,
                                                 .print = small_complex_print };
static const brc_dtype_ops small_sub_complex_ops = { .size = sizeof(brc_dtype_ops),
                                                     .parse = small_complex_parse,
                                                     .print = small_complex_print,
                                                     .normalize = sub_byte_normalize };

#define SMALL(i, name_, bytes, bits_, ops_)                                                 \
    {                                                                                       \
        .size = sizeof(brc_dtype), .name = name_, .klass = BRC_CLASS_FLOAT,                 \
        .item_size = bytes, .swap_unit = bytes, .bits = bits_, .ops = &ops_,                \
        .state = (void *)&small_formats[i]                                                  \
    }
#define SMALL_COMPLEX(i, name_, bytes, bits_, ops_)                                         \
    {                                                                                       \
        .size = sizeof(brc_dtype), .name = name_, .klass = BRC_CLASS_COMPLEX,               \
        .item_size = 2 * (bytes), .swap_unit = bytes, .bits = 2 * (bits_), .ops = &ops_,    \
        .state = (void *)&small_formats[i]                                                  \
    }

const brc_dtype brc_small_floats[BRC_SMALL_TYPES] = {
    SMALL(0, "bfloat16", 2, 16, small_ops),
    SMALL(1, "float8_e3m4", 1, 8, small_ops),
    SMALL(2, "float8_e4m3", 1, 8, small_ops),
    SMALL(3, "float8_e4m3b11fnuz", 1, 8, small_ops),
    SMALL(4, "float8_e4m3fnuz", 1, 8, small_ops),
    SMALL(5, "float8_e5m2", 1, 8, small_ops),
    SMALL(6, "float8_e5m2fnuz", 1, 8, small_ops),
    SMALL(7, "float8_e8m0fnu", 1, 8, small_ops),
    SMALL(8, "float6_e2m3fn", 1, 6, small_sub_ops),
    SMALL(9, "float6_e3m2fn", 1, 6, small_sub_ops),
    SMALL(10, "float4_e2m1fn", 1, 4, small_sub_ops),
    SMALL_COMPLEX(0, "complex_bfloat16", 2, 16, small_complex_ops),
    SMALL_COMPLEX(1, "complex_float8_e3m4", 1, 8, small_complex_ops),
    SMALL_COMPLEX(2, "complex_float8_e4m3", 1, 8, small_complex_ops),
    SMALL_COMPLEX(3, "complex_float8_e4m3b11fnuz", 1, 8, small_complex_ops),
    SMALL_COMPLEX(4, "complex_float8_e4m3fnuz", 1, 8, small_complex_ops),
    SMALL_COMPLEX(5, "complex_float8_e5m2", 1, 8, small_complex_ops),
    SMALL_COMPLEX(6, "complex_float8_e5m2fnuz", 1, 8, small_complex_ops),
    SMALL_COMPLEX(7, "complex_float8_e8m0fnu", 1, 8, small_complex_ops),
    SMALL_COMPLEX(8, "complex_float6_e2m3fn", 1, 6, small_sub_complex_ops),
    SMALL_COMPLEX(9, "complex_float6_e3m2fn", 1, 6, small_sub_complex_ops),
    SMALL_COMPLEX(10, "complex_float4_e2m1fn", 1, 4, small_sub_complex_ops),
    SMALL(11, "float8_e4m3fn", 1, 8, small_ops),
};
