/*
 * bool, integers, floats and complex numbers: from a fill_value to an element's
 * bytes and back to text.
 *
 * Fill values keep their bits. Hex text and NaNs are handled as integers from end
 * to end: a signalling NaN that passes through a floating register comes out
 * changed. Integers never pass through a double.
 */
#include "dtype_ops.h"

#include <inttypes.h>
#include <string.h>

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
 * 100.0 and 1e3 are integers too, but they may have been written from a double: past 2^53
 * they are refused.
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

/* Bits above those of the value are ignored. */
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
                                        .normalize = brc_sub_byte_normalize };
const brc_dtype_ops brc_sub_uint_ops = { .size = sizeof(brc_dtype_ops),
                                         .parse = uint_parse,
                                         .print = uint_print,
                                         .number = uint_number,
                                         .normalize = brc_sub_byte_normalize };

/* ---- floats ------------------------------------------------------------------ */

int brc_float_hex_bits(const char *text, size_t size, uint64_t *bits)
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

/* One float, or one part of a complex number. */
static int float_part_parse(const brc_dtype *type, size_t size, const brc_json *json,
                            uint64_t *bits, brc_error *err)
{
    char label[BRC_VALUE_LABEL];
    brc_decimal decimal;
    int overflow = 0;
    const char *text = brc_json_literal(json);
    if (brc_json_is_nan(json) || brc_json_text(json, &text)) {
        if (float_word_bits(text, size, bits) || brc_float_hex_bits(text, size, bits))
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

/* JSON: numbers stay bare, what JSON lacks is a string. */
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

/* NumPy's words for what is not finite. */
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

int brc_complex_text(brc_buf *out, char part[2][BRC_FLOAT_TEXT], int real_is_zero, brc_error *err)
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
    return brc_complex_text(out, part, brc_load_le(element, size) == 0, err);
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
