/*
 * Elements as real numbers, exactly, and back with one rounding.
 *
 * Every integer of 64 bits and every float64 is sign * mantissa * 2^exponent with a
 * mantissa of 64 bits, so loading an element loses nothing, and storing a number rounds
 * once, in integer arithmetic: 2^53 + 1 as an int64 keeps its value. Floats of one byte
 * have 256 values at most, which are looked up in a sorted table made from the data type's
 * own doubles.
 */
#include "number.h"
#include "codec_help.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBER_BITS = 64 };

/* ---- numbers ------------------------------------------------------------------------ */

static brc_number number_of(int negative, uint64_t mantissa, int exponent)
{
    brc_number number = { BRC_NUMBER_FINITE, negative, 0, 0 };

    if (mantissa == 0)
        return number;
    int up = __builtin_clzll(mantissa);
    number.mantissa = mantissa << up;
    number.exponent = exponent - up;
    return number;
}

static brc_number number_special(int kind, int negative)
{
    return (brc_number){ kind, negative, 0, 0 };
}

brc_number brc_number_of_double(double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof(bits));
    int negative = (int)(bits >> 63), field = (int)(bits >> 52 & 0x7ff);
    uint64_t fraction = bits & ((UINT64_C(1) << 52) - 1);
    if (field == 0x7ff)
        return number_special(fraction != 0 ? BRC_NUMBER_NAN : BRC_NUMBER_INFINITE, negative);
    if (field == 0)
        return number_of(negative, fraction, -1074);
    return number_of(negative, fraction | UINT64_C(1) << 52, field - 1075);
}

static int number_compare_magnitude(brc_number a, brc_number b)
{
    if (a.kind != b.kind)
        return a.kind == BRC_NUMBER_INFINITE ? 1 : -1;
    if (a.mantissa == 0 || b.mantissa == 0)
        return (a.mantissa != 0) - (b.mantissa != 0);
    if (a.exponent != b.exponent)
        return a.exponent < b.exponent ? -1 : 1;
    return a.mantissa < b.mantissa ? -1 : a.mantissa > b.mantissa;
}

int brc_number_compare(brc_number a, brc_number b)
{
    if (a.kind == BRC_NUMBER_NAN || b.kind == BRC_NUMBER_NAN)
        return (a.kind == BRC_NUMBER_NAN) - (b.kind == BRC_NUMBER_NAN);
    int a_zero = a.kind == BRC_NUMBER_FINITE && a.mantissa == 0;
    int b_zero = b.kind == BRC_NUMBER_FINITE && b.mantissa == 0;
    if (a_zero && b_zero)
        return 0;
    int a_below = a.negative && !a_zero, b_below = b.negative && !b_zero;
    if (a_below != b_below)
        return a_below ? -1 : 1;
    return a_below ? -number_compare_magnitude(a, b) : number_compare_magnitude(a, b);
}

/* Returns mantissa / 2^shift as a rounded integer; shift may be any number from 0 up. */
static uint64_t number_shift(uint64_t mantissa, int shift, int negative, int rounding)
{
    uint64_t kept = shift < NUMBER_BITS ? mantissa >> shift : 0;
    uint64_t rest = shift < NUMBER_BITS ? mantissa - (kept << shift) : mantissa;
    int half; /* the rest compared with one half: -1, 0 or 1                     */

    if (rest == 0)
        return kept;
    if (shift > NUMBER_BITS) {
        half = -1;
    } else {
        uint64_t middle = UINT64_C(1) << (shift - 1);
        half = rest < middle ? -1 : rest > middle;
    }
    switch (rounding) {
    case BRC_ROUND_TOWARDS_ZERO:
        return kept;
    case BRC_ROUND_TOWARDS_POSITIVE:
        return kept + !negative;
    case BRC_ROUND_TOWARDS_NEGATIVE:
        return kept + (negative != 0);
    case BRC_ROUND_NEAREST_AWAY:
        return kept + (half >= 0);
    default:
        return kept + (half > 0 || (half == 0 && (kept & 1) != 0));
    }
}

/* ---- types -------------------------------------------------------------------------- */

static int numeric_by_value(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;

    return left < right ? -1 : left > right;
}

/* Lists the values of a float of one byte in order. The list lacks negative zero, which storing
 * handles separately. */
static void numeric_list_values(brc_numeric *out)
{
    unsigned bits = out->type->bits > 0 && out->type->bits < 8 ? out->type->bits : 8;

    out->is_signed = 0;
    for (unsigned pattern = 0; pattern < 1u << bits; pattern++) {
        uint8_t element = (uint8_t)pattern;
        double value = out->type->ops->number(out->type, &element);
        if (isnan(value) && !out->has_nan) {
            out->has_nan = 1;
            out->nan = pattern;
        } else if (isinf(value) && value > 0) {
            out->has_infinity = 1;
            out->infinity = pattern;
        } else if (isfinite(value) && value == 0 && signbit(value)) {
            out->is_signed = 2;
        } else if (isfinite(value)) {
            out->values[out->nvalues].value = value;
            out->values[out->nvalues++].bits = element;
        }
    }
    /* If there are several NaNs, take the one with only the fraction's top bit set. */
    if (out->has_nan && out->has_infinity)
        out->nan = out->infinity + (0x80 - out->infinity) / 2;
    qsort(out->values, out->nvalues, sizeof(out->values[0]), numeric_by_value);
}

static void numeric_set_ieee(brc_numeric *out, int precision, int emax)
{
    int total = (int)(8 * out->size);

    out->precision = precision;
    out->emax = emax;
    out->emin = 1 - emax;
    out->has_nan = out->has_infinity = 1;
    out->infinity = (UINT64_C(1) << (total - 1)) - (UINT64_C(1) << (precision - 1));
    out->nan = out->infinity | UINT64_C(1) << (precision - 2);
}

static int numeric_open_float(brc_numeric *out, brc_error *err)
{
    const brc_dtype *type = out->type;

    out->is_float = 1;
    out->is_signed = 1;
    if (out->size == 8)
        numeric_set_ieee(out, 53, 1023);
    else if (out->size == 4)
        numeric_set_ieee(out, 24, 127);
    else if (out->size == 2 && strcmp(type->name, "bfloat16") == 0)
        numeric_set_ieee(out, 8, 127);
    else if (out->size == 2)
        numeric_set_ieee(out, 11, 15);
    else if (out->size == 1 && type->ops->number != NULL)
        numeric_list_values(out);
    else
        return brc_fail(err, BRC_EUNSUPPORTED, "floats of %zu bytes (%s) are not known here",
                        out->size, type->name);
    return BRC_OK;
}

int brc_numeric_open(brc_numeric *out, const brc_dtype *type, brc_error *err)
{
    memset(out, 0, sizeof(*out));
    out->type = type;
    out->size = type->item_size;
    if (type->klass == BRC_CLASS_FLOAT)
        return numeric_open_float(out, err);
    if ((type->klass != BRC_CLASS_INT && type->klass != BRC_CLASS_UINT) || out->size < 1 ||
        out->size > 8)
        return brc_fail(err, BRC_EINVAL, "elements of %s are not real numbers", type->name);
    out->is_signed = type->klass == BRC_CLASS_INT;
    out->bits =
        type->bits > 0 && type->bits < 8 * out->size ? type->bits : (unsigned)(8 * out->size);
    return BRC_OK;
}

static brc_number numeric_load_integer(const brc_numeric *numeric, uint64_t bits)
{
    uint64_t sign = UINT64_C(1) << (numeric->bits - 1);

    if (numeric->bits < NUMBER_BITS)
        bits &= (sign << 1) - 1;
    if (!numeric->is_signed || (bits & sign) == 0)
        return number_of(0, bits, 0);
    bits |= ~(sign - 1);
    return number_of(1, 0 - bits, 0);
}

static brc_number numeric_load_ieee(const brc_numeric *numeric, uint64_t bits)
{
    int fraction_bits = numeric->precision - 1;
    int negative = (int)(bits >> (8 * numeric->size - 1));
    uint64_t magnitude = bits & ~(UINT64_C(1) << (8 * numeric->size - 1));
    uint64_t fraction = magnitude & ((UINT64_C(1) << fraction_bits) - 1);
    int field = (int)(magnitude >> fraction_bits);

    if (magnitude >= numeric->infinity)
        return number_special(magnitude > numeric->infinity ? BRC_NUMBER_NAN : BRC_NUMBER_INFINITE,
                              negative);
    if (field == 0)
        return number_of(negative, fraction, numeric->emin - fraction_bits);
    return number_of(negative, fraction | UINT64_C(1) << fraction_bits,
                     numeric->emin + field - 1 - fraction_bits);
}

brc_number brc_numeric_load(const brc_numeric *numeric, const uint8_t *element)
{
    if (!numeric->is_float)
        return numeric_load_integer(numeric, brc_codec_load(element, numeric->size));
    if (numeric->size == 1)
        return brc_number_of_double(numeric->type->ops->number(numeric->type, element));
    return numeric_load_ieee(numeric, brc_codec_load(element, numeric->size));
}

/* ---- rounding into a type ------------------------------------------------------------ */

/* The results of storing a number in a type. */
enum { STORED, STORED_TOO_LARGE, STORED_NO_NAN };

static int integer_pack(const brc_numeric *numeric, brc_number number, int rounding, int range,
                        uint64_t *bits)
{
    uint64_t top = UINT64_C(1) << (numeric->bits - 1);
    uint64_t most = numeric->is_signed ? top - 1 : top | (top - 1);
    uint64_t least = numeric->is_signed ? top : 0; /* magnitude of the lowest value */
    uint64_t magnitude = UINT64_MAX;
    int huge = 1;

    if (number.kind == BRC_NUMBER_NAN)
        return STORED_NO_NAN;
    if (number.kind == BRC_NUMBER_FINITE && number.exponent <= 0) {
        magnitude = number_shift(number.mantissa, -number.exponent, number.negative, rounding);
        huge = 0;
    } else if (number.kind == BRC_NUMBER_FINITE && range == BRC_RANGE_WRAP) {
        magnitude = number.exponent < NUMBER_BITS ? number.mantissa << number.exponent : 0;
    }
    if (huge || magnitude > (number.negative ? least : most)) {
        if (range == BRC_RANGE_CLAMP)
            magnitude = number.negative ? least : most;
        else if (range != BRC_RANGE_WRAP || number.kind != BRC_NUMBER_FINITE)
            return STORED_TOO_LARGE;
    }
    *bits = number.negative ? 0 - magnitude : magnitude;
    if (numeric->bits < NUMBER_BITS) {
        *bits &= most | top;
        if (numeric->is_signed && (*bits & top) != 0)
            *bits |= ~(top - 1);
    }
    return STORED;
}

static int float_too_large(const brc_numeric *numeric, int range, uint64_t largest, uint64_t *bits)
{
    if (range != BRC_RANGE_CLAMP)
        return STORED_TOO_LARGE;
    *bits = numeric->has_infinity ? numeric->infinity : largest;
    return STORED;
}

static int ieee_pack(const brc_numeric *numeric, brc_number number, int rounding, int range,
                     uint64_t *bits)
{
    int fraction_bits = numeric->precision - 1, rc = STORED;
    uint64_t hidden = UINT64_C(1) << fraction_bits;

    if (number.kind == BRC_NUMBER_NAN) {
        *bits = numeric->nan;
        return STORED;
    }
    *bits = numeric->infinity;
    if (number.kind == BRC_NUMBER_FINITE && number.mantissa == 0) {
        *bits = 0;
    } else if (number.kind == BRC_NUMBER_FINITE) {
        int top = number.exponent + NUMBER_BITS - 1;
        int e = top > numeric->emin ? top : numeric->emin;
        uint64_t kept = number_shift(number.mantissa, e - fraction_bits - number.exponent,
                                     number.negative, rounding);
        if (kept >> numeric->precision != 0) {
            kept >>= 1;
            e++;
        }
        if (e > numeric->emax)
            rc = float_too_large(numeric, range, 0, bits);
        else
            *bits = kept < hidden
                        ? kept
                        : ((uint64_t)(e - numeric->emin + 1) << fraction_bits) + (kept - hidden);
    }
    if (number.negative)
        *bits |= UINT64_C(1) << (8 * numeric->size - 1);
    return rc;
}

/* Returns 1 if a number between two neighbours rounds to the upper one. `even_above` says that
 * nearest-even takes the upper neighbour for a tie. */
static int between_goes_up(brc_number number, double below, double above, int rounding,
                           int even_above)
{
    int order = brc_number_compare(number, brc_number_of_double(below / 2 + above / 2));

    switch (rounding) {
    case BRC_ROUND_TOWARDS_ZERO:
        return number.negative;
    case BRC_ROUND_TOWARDS_POSITIVE:
        return 1;
    case BRC_ROUND_TOWARDS_NEGATIVE:
        return 0;
    case BRC_ROUND_NEAREST_AWAY:
        return order > 0 || (order == 0 && !number.negative);
    default:
        return order > 0 || (order == 0 && even_above);
    }
}

/* Packs a number beyond the last value. The number still rounds to the last value if it is nearer
 * to that than to the value that would come next, were there more exponents. */
static int table_pack_outside(const brc_numeric *numeric, brc_number number, int rounding,
                              int range, uint64_t *bits)
{
    size_t last = number.negative ? 0 : numeric->nvalues - 1;
    double edge = numeric->values[last].value;
    double inner = numeric->values[number.negative ? 1 : last - 1].value;
    double next = inner == edge / 2 ? 2 * edge : edge + (edge - inner);
    int is_odd = numeric->values[last].bits & 1, fits = 0;

    *bits = numeric->values[last].bits;
    if (number.negative && edge > 0) /* a type of positive values only            */
        fits = 0;
    else if (number.kind == BRC_NUMBER_FINITE && !number.negative)
        fits = brc_number_compare(number, brc_number_of_double(next)) < 0 &&
               !between_goes_up(number, edge, next, rounding, is_odd);
    else if (number.kind == BRC_NUMBER_FINITE)
        fits = brc_number_compare(number, brc_number_of_double(next)) > 0 &&
               between_goes_up(number, next, edge, rounding, !is_odd);
    return fits ? STORED : float_too_large(numeric, range, *bits, bits);
}

static int table_pack(const brc_numeric *numeric, brc_number number, int rounding, int range,
                      uint64_t *bits)
{
    size_t low = 0, high = numeric->nvalues;

    if (number.kind == BRC_NUMBER_NAN || numeric->nvalues < 2) {
        *bits = numeric->nan;
        return numeric->has_nan ? STORED : STORED_NO_NAN;
    }
    /* values[low] <= number < values[high] */
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (brc_number_compare(brc_number_of_double(numeric->values[middle].value), number) <= 0)
            low = middle;
        else
            high = middle;
    }
    int order = brc_number_compare(number, brc_number_of_double(numeric->values[low].value));
    *bits = numeric->values[low].bits;
    if (order == 0)
        return STORED;
    if (order < 0 && !number.negative) { /* below the least value, and not negative */
        if (range != BRC_RANGE_CLAMP)
            return STORED_TOO_LARGE;
        return STORED;
    }
    if (order < 0 || high == numeric->nvalues)
        return table_pack_outside(numeric, number, rounding, range, bits);
    if (between_goes_up(number, numeric->values[low].value, numeric->values[high].value, rounding,
                        (numeric->values[high].bits & 1) == 0))
        *bits = numeric->values[high].bits;
    return STORED;
}

/* Packs the numbers that the sorted table lacks, infinities and negative zero, and all others by
 * the table. */
static int table_pack_signed(const brc_numeric *numeric, brc_number number, int rounding, int range,
                             uint64_t *bits)
{
    uint64_t sign =
        UINT64_C(1) << (numeric->type->bits > 0 && numeric->type->bits < 8 ? numeric->type->bits - 1
                                                                           : 7);

    if (number.kind == BRC_NUMBER_INFINITE && numeric->has_infinity) {
        *bits = numeric->infinity | (number.negative ? sign : 0);
        return STORED;
    }
    int rc = table_pack(numeric, number, rounding, range, bits);
    if (rc == STORED && number.negative && number.kind == BRC_NUMBER_FINITE &&
        ((*bits == 0 && numeric->is_signed == 2) ||
         (numeric->has_infinity && *bits == numeric->infinity)))
        *bits |= sign;
    return rc;
}

static int numeric_pack(const brc_numeric *numeric, brc_number number, int rounding, int range,
                        uint64_t *bits)
{
    if (!numeric->is_float)
        return integer_pack(numeric, number, rounding, range, bits);
    if (numeric->size == 1)
        return table_pack_signed(numeric, number, rounding, range, bits);
    return ieee_pack(numeric, number, rounding, range, bits);
}

int brc_numeric_store(const brc_numeric *numeric, brc_number number, int rounding, int range,
                      uint8_t *element, brc_error *err)
{
    char text[BRC_NUMBER_TEXT];
    uint64_t bits = 0;

    switch (numeric_pack(numeric, number, rounding, range, &bits)) {
    case STORED_NO_NAN:
        return brc_fail(err, BRC_EINVAL, "%s has no NaN", numeric->type->name);
    case STORED_TOO_LARGE:
        return brc_fail(err, BRC_EINVAL, "%s is out of the range of %s",
                        brc_number_text(text, number), numeric->type->name);
    default:
        brc_codec_store(element, numeric->size, bits);
        return BRC_OK;
    }
}

void brc_numeric_cast(const brc_numeric *numeric, brc_number number, uint8_t *element)
{
    uint64_t bits = 0;
    int rc = numeric->is_float
                 ? numeric_pack(numeric, number, BRC_ROUND_NEAREST_EVEN, BRC_RANGE_CLAMP, &bits)
                 : numeric_pack(numeric, number, BRC_ROUND_TOWARDS_ZERO, BRC_RANGE_WRAP, &bits);

    brc_codec_store(element, numeric->size, rc == STORED ? bits : 0);
}

/* Rounds half to even. */
static double number_to_double(brc_number number)
{
    static const brc_numeric float64 = {
        .is_float = 1,
        .is_signed = 1,
        .size = 8,
        .precision = 53,
        .emin = -1022,
        .emax = 1023,
        .has_nan = 1,
        .has_infinity = 1,
        .nan = UINT64_C(0x7ff8000000000000),
        .infinity = UINT64_C(0x7ff0000000000000),
    };
    uint64_t bits = 0;
    double value;

    numeric_pack(&float64, number, BRC_ROUND_NEAREST_EVEN, BRC_RANGE_CLAMP, &bits);
    memcpy(&value, &bits, sizeof(value));
    return value;
}

double brc_numeric_to_double(const brc_numeric *numeric, const uint8_t *element)
{
    double value;

    if (!numeric->is_float || numeric->size != 8)
        return number_to_double(brc_numeric_load(numeric, element));
    uint64_t bits = brc_codec_load(element, 8);
    memcpy(&value, &bits, sizeof(value));
    return value;
}

const char *brc_number_text(char out[BRC_NUMBER_TEXT], brc_number number)
{
    const char *sign = number.negative ? "-" : "";

    if (number.kind == BRC_NUMBER_NAN)
        snprintf(out, BRC_NUMBER_TEXT, "NaN");
    else if (number.kind == BRC_NUMBER_INFINITE)
        snprintf(out, BRC_NUMBER_TEXT, "%sInfinity", sign);
    else if (number.exponent == 0 || (number.exponent < 0 && number.exponent > -NUMBER_BITS &&
                                      number.mantissa << (NUMBER_BITS + number.exponent) == 0))
        snprintf(out, BRC_NUMBER_TEXT, "%s%llu", sign,
                 (unsigned long long)(number.mantissa >> -number.exponent));
    else
        snprintf(out, BRC_NUMBER_TEXT, "%.17g", number_to_double(number));
    return out;
}

/* An operation of float64 whose result is rounded once more, to a type of at most 25 bits of
 * precision, gives the result of the type's own operation (Figueroa, 1995). */
double brc_numeric_round(const brc_numeric *numeric, double value)
{
    uint8_t element[8];

    if (!numeric->is_float || numeric->size == 8)
        return value;
    if (numeric->size == 4)
        return (double)(float)value;
    brc_numeric_cast(numeric, brc_number_of_double(value), element);
    return brc_numeric_to_double(numeric, element);
}
