/* What the files of the built-in data types share among themselves. */
#ifndef BRC_ND_DTYPE_OPS_H
#define BRC_ND_DTYPE_OPS_H

#include "dtype.h"

extern const brc_dtype_ops brc_bool_ops, brc_int_ops, brc_uint_ops, brc_float_ops;
extern const brc_dtype_ops brc_complex_ops;

/* r<bits>: dtype_raw.c */
int brc_raw_match(void *ctx, const char *name);
int brc_raw_open(void *ctx, brc_dtype *out, const char *name, const brc_json *config,
                 brc_error *err);
void brc_raw_close(void *ctx, brc_dtype *type);

/* None of the built-in types has a configuration: absent, or an empty object. */
BRC_MUST_USE int brc_dtype_no_config(const char *name, const brc_json *config, brc_error *err);
/* A JSON value in an error's sentence: short text as it is, else its beginning. */
#define BRC_VALUE_LABEL 64
const char *brc_value_label(char out[BRC_VALUE_LABEL], const brc_json *value);

/*
 * A number as JSON writes it, without limits: (-1)^negative * 0.DIGITS * 10^exponent.
 * DIGITS neither begins nor ends with 0; zero has none. No boundary between two
 * float64 values has more than 768 significant digits, so a longer number keeps
 * 800 and `cut`, which says that something above zero follows.
 */
#define BRC_DECIMAL_DIGITS 800
typedef struct brc_decimal {
    int negative, cut, exponent;
    int plain; /* written without point and exponent */
    size_t ndigits;
    char digits[BRC_DECIMAL_DIGITS];
} brc_decimal;
/* 0 where text is no JSON number. */
int brc_decimal_read(brc_decimal *out, const char *text);
/* The bits of the nearest binary16/32/64 (size 2, 4, 8), half to even, sign
 * included; *overflow set where that is infinity. */
uint64_t brc_decimal_to_bits(const brc_decimal *decimal, size_t size, int *overflow);

/* An element of up to 8 bytes, little-endian. */
static inline uint64_t brc_load_le(const uint8_t *p, size_t size)
{
    uint64_t v = 0;
    for (size_t i = 0; i < size; i++)
        v |= (uint64_t)p[i] << (8 * i);
    return v;
}
static inline void brc_store_le(uint8_t *p, size_t size, uint64_t v)
{
    for (size_t i = 0; i < size; i++)
        p[i] = (uint8_t)(v >> (8 * i));
}

/* Sign, exponent and fraction of IEEE 754's binary16, 32 and 64. */
static inline int brc_float_fraction_bits(size_t size)
{
    return size == 2 ? 10 : size == 4 ? 23 : 52;
}
static inline uint64_t brc_float_sign_bit(size_t size)
{
    return UINT64_C(1) << (8 * size - 1);
}
/* All exponent bits set: infinity's magnitude. */
static inline uint64_t brc_float_inf_bits(size_t size)
{
    return brc_float_sign_bit(size) - (UINT64_C(1) << brc_float_fraction_bits(size));
}
/* "NaN": sign 0, the fraction's top bit alone. */
static inline uint64_t brc_float_nan_bits(size_t size)
{
    return brc_float_inf_bits(size) | UINT64_C(1) << (brc_float_fraction_bits(size) - 1);
}

#endif
