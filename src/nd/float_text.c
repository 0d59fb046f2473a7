/*
 * Decimal text of floats, and back. Every conversion rounds once, in the target
 * type: decimal -> float64 -> float16 would round twice.
 *
 * The C library converts float32 and float64. It obeys the locale, so its
 * input is digits and an exponent without a point, and only the digits of its output
 * are used.
 *
 * Shortest text: a float has DIG decimal digits that survive a trip through it, so
 * if the DIG-digit text reads back, it is the shortest one with zeros after it;
 * else one more digit is tried, up to MAX, which always reads back.
 */
#include "dtype_ops.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPONENT_FAR 100000 /* beyond any float's range, within int */

/* ---- decimal text taken apart ---------------------------------------------- */

static void decimal_add_digit(brc_decimal *d, char digit)
{
    if (d->ndigits < BRC_DECIMAL_DIGITS)
        d->digits[d->ndigits++] = digit;
    else if (digit != '0')
        d->cut = 1;
}

static void decimal_trim(brc_decimal *d)
{
    while (!d->cut && d->ndigits > 0 && d->digits[d->ndigits - 1] == '0')
        d->ndigits--;
}

/* Reads "e+12" at *p; huge exponents stay huge without overflowing. */
static int read_exponent_part(const char **p, int64_t *out)
{
    const char *s = *p + 1;
    int negative = *s == '-';
    int64_t e = 0;
    if (*s == '-' || *s == '+')
        s++;
    if (*s < '0' || *s > '9')
        return 0;
    for (; *s >= '0' && *s <= '9'; s++)
        if (e < INT64_C(1000000000000000))
            e = e * 10 + (*s - '0');
    *out += negative ? -e : e;
    *p = s;
    return 1;
}

/* Reads the digits at *p without leading zeros; *leading counts the zeros, *rest the other digits.
 * Returns 0 if there are no digits. */
static int read_digits(brc_decimal *out, const char **p, int64_t *leading, int64_t *rest)
{
    const char *s = *p;
    for (; *s >= '0' && *s <= '9'; s++) {
        if (out->ndigits == 0 && *s == '0') {
            ++*leading;
        } else {
            decimal_add_digit(out, *s);
            ++*rest;
        }
    }
    int any = s > *p;
    *p = s;
    return any;
}

int brc_decimal_read(brc_decimal *out, const char *text)
{
    const char *p = text;
    int64_t zeros = 0, exponent = 0, decimals = 0;
    memset(out, 0, offsetof(brc_decimal, digits));
    out->negative = *p == '-';
    if (*p == '-')
        p++;
    if (!read_digits(out, &p, &zeros, &exponent))
        return 0;
    out->plain = *p == '\0';
    if (*p == '.') {
        zeros = 0;
        p++;
        if (!read_digits(out, &p, &zeros, &decimals))
            return 0;
        exponent -= zeros;
    }
    if ((*p == 'e' || *p == 'E') && !read_exponent_part(&p, &exponent))
        return 0;
    decimal_trim(out);
    if (exponent > EXPONENT_FAR)
        exponent = EXPONENT_FAR;
    if (exponent < -EXPONENT_FAR)
        exponent = -EXPONENT_FAR;
    out->exponent = out->ndigits > 0 ? (int)exponent : 0;
    return *p == '\0';
}

/* Computes the first `precision` digits, at most BRC_EXACT_DIGITS, of a finite value that is
 * not negative, rounded. */
static void decimal_of_double(brc_decimal *out, double value, int precision)
{
    char text[BRC_EXACT_DIGITS + 24];
    snprintf(text, sizeof(text), "%.*e", precision - 1, value);
    const char *p = text;
    memset(out, 0, offsetof(brc_decimal, digits));
    for (; *p != '\0' && *p != 'e'; p++)
        if (*p >= '0' && *p <= '9')
            decimal_add_digit(out, *p);
    out->exponent = *p == 'e' ? (int)strtol(p + 1, NULL, 10) + 1 : 1;
    decimal_trim(out);
    if (out->ndigits == 0)
        out->exponent = 0;
}

/* Compares magnitudes, without signs. */
static int decimal_compare(const brc_decimal *a, const brc_decimal *b)
{
    if (a->ndigits == 0 || b->ndigits == 0)
        return (a->ndigits > 0) - (b->ndigits > 0);
    if (a->exponent != b->exponent)
        return a->exponent < b->exponent ? -1 : 1;
    size_t n = a->ndigits < b->ndigits ? a->ndigits : b->ndigits;
    int order = memcmp(a->digits, b->digits, n);
    if (order != 0)
        return order;
    if (a->ndigits != b->ndigits)
        return a->ndigits < b->ndigits ? -1 : 1;
    return a->cut - b->cut;
}

int brc_decimal_order(const brc_decimal *decimal, double value)
{
    brc_decimal exact;
    decimal_of_double(&exact, value, BRC_EXACT_DIGITS);
    return decimal_compare(decimal, &exact);
}

/* ---- decimal to bits --------------------------------------------------------- */

/* Writes text that strtod() reads alike in every locale: "15e-1". */
static void decimal_plain_text(char out[BRC_DECIMAL_DIGITS + 24], const brc_decimal *d)
{
    size_t n = d->ndigits;
    memcpy(out, d->digits, n);
    if (d->cut)
        out[n++] = '1';
    snprintf(out + n, 24, "e%d", d->exponent - (int)n);
}

/*
 * value is the nearest float64 to the decimal. The value tells how the decimal
 * compares with every other float64, boundaries between halves among them; if the value
 * is such a boundary itself, the decimal's own digits decide.
 */
static uint16_t half_round(double value, const brc_decimal *decimal)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    int e = (int)(bits >> 52) - 1023;
    if (e < -25) /* below half of the smallest, 2^-24 */
        return 0;
    if (e > 15)
        return 0x7c00;
    uint64_t mantissa = (bits & ((UINT64_C(1) << 52) - 1)) | UINT64_C(1) << 52;
    int shift = e >= -14 ? 42 : 42 + (-14 - e);
    uint64_t kept = mantissa >> shift;
    uint64_t rest = mantissa & ((UINT64_C(1) << shift) - 1);
    uint64_t boundary = UINT64_C(1) << (shift - 1);
    /* the leading one of a normal half adds itself to the exponent field */
    uint64_t half = e >= -14 ? ((uint64_t)(e + 14) << 10) + kept : kept;
    if (rest > boundary)
        return (uint16_t)(half + 1);
    if (rest < boundary)
        return (uint16_t)half;
    int order = brc_decimal_order(decimal, value);
    return (uint16_t)(half + (order > 0 || (order == 0 && (half & 1))));
}

uint64_t brc_decimal_to_bits(const brc_decimal *decimal, size_t size, int *overflow)
{
    char text[BRC_DECIMAL_DIGITS + 24];
    uint64_t bits = 0;
    if (decimal->ndigits > 0) {
        decimal_plain_text(text, decimal);
        if (size == 4) {
            float value = strtof(text, NULL);
            uint32_t word;
            memcpy(&word, &value, sizeof(word));
            bits = word;
        } else {
            double value = strtod(text, NULL);
            if (size == 2)
                bits = half_round(value, decimal);
            else
                memcpy(&bits, &value, sizeof(bits));
        }
    }
    *overflow = bits == brc_float_inf_bits(size);
    return decimal->negative ? bits | brc_float_sign_bit(size) : bits;
}

uint16_t brc_half_from_text(const char *text, int *overflow)
{
    brc_decimal decimal;
    *overflow = 0;
    if (!brc_decimal_read(&decimal, text))
        return (uint16_t)brc_float_nan_bits(2);
    return (uint16_t)brc_decimal_to_bits(&decimal, 2, overflow);
}

double brc_half_to_double(uint16_t half)
{
    uint64_t sign = (uint64_t)(half >> 15) << 63;
    uint64_t exponent = (half >> 10) & 0x1f, fraction = half & 0x3ff;
    uint64_t bits;
    if (exponent == 0x1f) {
        bits = UINT64_C(0x7ff) << 52 | fraction << 42;
    } else if (exponent > 0) {
        bits = (exponent + 1023 - 15) << 52 | fraction << 42;
    } else {
        double value = (double)fraction * 0x1p-24;
        memcpy(&bits, &value, sizeof(bits));
    }
    bits |= sign;
    double out;
    memcpy(&out, &bits, sizeof(out));
    return out;
}

/* ---- bits to the shortest decimal --------------------------------------------- */

static double magnitude_as_double(uint64_t bits, size_t size)
{
    double value;
    if (size == 2)
        return brc_half_to_double((uint16_t)bits);
    if (size == 4) {
        uint32_t word = (uint32_t)bits;
        float single;
        memcpy(&single, &word, sizeof(single));
        return (double)single;
    }
    memcpy(&value, &bits, sizeof(value));
    return value;
}

/* Increases the last digit by one: 0.199 -> 0.2, 0.99 -> 0.1e1. */
static void decimal_step_up(brc_decimal *d, size_t precision)
{
    while (d->ndigits < precision)
        d->digits[d->ndigits++] = '0';
    while (d->ndigits > 0 && d->digits[d->ndigits - 1] == '9')
        d->ndigits--;
    if (d->ndigits == 0) {
        d->digits[d->ndigits++] = '1';
        d->exponent++;
    } else {
        d->digits[d->ndigits - 1]++;
    }
}

struct ieee_bits {
    uint64_t bits;
    size_t size;
};

static int ieee_reads_back(const void *ctx, const brc_decimal *d)
{
    const struct ieee_bits *want = ctx;
    int overflow;
    return brc_decimal_to_bits(d, want->size, &overflow) == want->bits;
}

static void shortest_decimal(brc_decimal *out, const brc_shortest *s)
{
    for (int precision = s->first; precision <= s->last; precision++) {
        decimal_of_double(out, s->value, precision);
        if (s->reads_back(s->ctx, out))
            return;
        /* The gap above a power of two is twice the gap below: the nearest decimal
         * may lie too far below while the next one up is near enough. */
        if (s->power_of_two) {
            decimal_step_up(out, (size_t)precision);
            if (s->reads_back(s->ctx, out))
                return;
        }
    }
}

/* Uses fixed point from 0.0001 up to 1e16, as Python prints floats. */
static void decimal_format(char *out, const brc_decimal *d)
{
    int n = (int)d->ndigits, point = d->exponent;
    if (point < -3 || point > 16) {
        *out++ = d->digits[0];
        if (n > 1) {
            *out++ = '.';
            memcpy(out, d->digits + 1, (size_t)n - 1);
            out += n - 1;
        }
        snprintf(out, 16, "e%c%02d", point > 0 ? '+' : '-', abs(point - 1));
        return;
    }
    if (point <= 0) {
        memcpy(out, "0.000", 5);
        out += 2 - point;
        memcpy(out, d->digits, (size_t)n);
        out[n] = '\0';
        return;
    }
    for (int i = 0; i < point; i++)
        *out++ = i < n ? d->digits[i] : '0';
    *out++ = '.';
    if (n <= point)
        *out++ = '0';
    for (int i = point; i < n; i++)
        *out++ = d->digits[i];
    *out = '\0';
}

void brc_shortest_text(char *out, const brc_shortest *shortest)
{
    brc_decimal decimal;
    double value = shortest->value;
    if (value <= shortest->exact && value == (double)(int64_t)value) {
        snprintf(out, BRC_FLOAT_TEXT - 1, "%lld.0", (long long)value);
        return;
    }
    shortest_decimal(&decimal, shortest);
    decimal_format(out, &decimal);
}

/* `bits` are those of a finite value that is not negative. */
static void ieee_text(char *out, uint64_t bits, size_t size)
{
    struct ieee_bits want = { bits, size };
    int fraction_bits = brc_float_fraction_bits(size);
    int subnormal = bits >> fraction_bits == 0;
    brc_shortest shortest = {
        .value = magnitude_as_double(bits, size),
        .exact = size == 2 ? 2048 : size == 4 ? 16777216 : 9007199254740992,
        .first = subnormal ? 1 : size == 2 ? 3 : size == 4 ? 6 : 15,
        .last = size == 2 ? 5 : size == 4 ? 9 : 17,
        .power_of_two = (bits & ((UINT64_C(1) << fraction_bits) - 1)) == 0,
        .reads_back = ieee_reads_back,
        .ctx = &want,
    };
    brc_shortest_text(out, &shortest);
}

void brc_float_text(char out[BRC_FLOAT_TEXT], const uint8_t *element, size_t size)
{
    uint64_t sign = brc_float_sign_bit(size), inf = brc_float_inf_bits(size);
    uint64_t bits = brc_load_le(element, size);
    uint64_t magnitude = bits & ~sign;
    if (magnitude > inf) {
        memcpy(out, "NaN", 4);
        return;
    }
    if (bits & sign)
        *out++ = '-';
    if (magnitude == inf) {
        memcpy(out, "Infinity", 9);
        return;
    }
    ieee_text(out, magnitude, size);
}
