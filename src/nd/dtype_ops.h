/* Declarations that the files of the built-in data types share. */
#ifndef BRC_ND_DTYPE_OPS_H
#define BRC_ND_DTYPE_OPS_H

#include "dtype.h"

extern const brc_dtype_ops brc_bool_ops, brc_int_ops, brc_uint_ops, brc_float_ops;
extern const brc_dtype_ops brc_complex_ops;
/* Integers of less than a byte. */
extern const brc_dtype_ops brc_sub_int_ops, brc_sub_uint_ops;

/* bfloat16, float8, float6 and float4, and the complex numbers of these: dtype_number.c.
 * Each row is a complete data type; the complex types come second. */
#define BRC_SMALL_FLOATS 12
#define BRC_SMALL_TYPES 23 /* the last float has no complex type */
extern const brc_dtype brc_small_floats[BRC_SMALL_TYPES];

/* r<bits>: dtype_fixed.c */
int brc_raw_match(void *ctx, const char *name);
int brc_raw_open(void *ctx, brc_dtype *out, const char *name, const brc_json *config,
                 brc_error *err);
void brc_raw_close(void *ctx, brc_dtype *type);

/* string, and bytes under three names: dtype_text.c. Each row is a complete data type. */
#define BRC_TEXT_TYPES 4
extern const brc_dtype brc_text_types[BRC_TEXT_TYPES];


/* Types of a fixed length: dtype_fixed.c; ctx is the type's own name, here and below. */
int brc_fixed_open(void *ctx, brc_dtype *out, const char *name, const brc_json *config,
                   brc_error *err);
void brc_fixed_close(void *ctx, brc_dtype *type);

/* numpy.datetime64 and numpy.timedelta64: dtype_text.c */
extern const brc_dtype_ops brc_datetime_ops, brc_timedelta_ops;
int brc_time_open(void *ctx, brc_dtype *out, const char *name, const brc_json *config,
                  brc_error *err);
void brc_time_close(void *ctx, brc_dtype *type);

/* struct and structured: dtype_fixed.c */
int brc_struct_open(void *ctx, brc_dtype *out, const char *name, const brc_json *config,
                    brc_error *err);
void brc_struct_close(void *ctx, brc_dtype *type);

/* zarrs.optional: dtype_fixed.c */
int brc_optional_open(void *ctx, brc_dtype *out, const char *name, const brc_json *config,
                      brc_error *err);
void brc_optional_close(void *ctx, brc_dtype *type);

/* The most bytes of an element of a fixed length. */
#define BRC_MAX_ITEM_SIZE ((size_t)16 << 20)

/* Checks the configuration of a type that has none: it must be absent, or an empty object. */
BRC_MUST_USE int brc_dtype_no_config(const char *name, const brc_json *config, brc_error *err);
BRC_MUST_USE int brc_element_length_fits(const brc_dtype *type, size_t len, brc_error *err);
BRC_MUST_USE int brc_text_is_utf8(const brc_dtype *type, const char *text, brc_error *err);
/* Reads an integer of the type's item_size; `lowest` is the magnitude of the smallest. */
BRC_MUST_USE int brc_integer_parse(const brc_dtype *type, const brc_json *json, uint64_t lowest,
                                   uint64_t highest, brc_buf *out, brc_error *err);
/* Returns the length of the quoted text that `text` begins with, in single or double quotes or as b'...';
 * 0 if it does not begin with one. */
size_t brc_printed_quotes(const char *text);
/* Writes a JSON value for an error's sentence: a short text in full, a longer one cut. */
#define BRC_VALUE_LABEL 64
const char *brc_value_label(char out[BRC_VALUE_LABEL], const brc_json *value);

/*
 * A number of JSON text, without limits: (-1)^negative * 0.DIGITS * 10^exponent.
 * DIGITS neither begins nor ends with 0; zero has no digits. A boundary between two
 * float64 values has at most 768 significant digits, so a longer number keeps
 * 800 digits and sets `cut`: digits above zero follow.
 */
#define BRC_DECIMAL_DIGITS 800
typedef struct brc_decimal {
    int negative, cut, exponent;
    int plain; /* written without point and exponent */
    size_t ndigits;
    char digits[BRC_DECIMAL_DIGITS];
} brc_decimal;
/* Reads a number. Returns 0 if the text is not a JSON number. */
int brc_decimal_read(brc_decimal *out, const char *text);
/* Returns the bits of the nearest binary16/32/64 (size 2, 4, 8), half to even, sign
 * included; sets *overflow if that is infinity. */
uint64_t brc_decimal_to_bits(const brc_decimal *decimal, size_t size, int *overflow);

/* Compares the decimal with a finite value that is not negative. Returns < 0, 0 or > 0. The result
 * is exact if the value has at most BRC_EXACT_DIGITS digits: a multiple of 2^-160 of
 * at most 12 bits, say. */
#define BRC_EXACT_DIGITS 124
int brc_decimal_order(const brc_decimal *decimal, double value);

/* A request for the shortest text of a finite value that is not negative. */
typedef struct brc_shortest {
    double value;
    double exact;      /* integral values up to this one are written in full     */
    int first, last;   /* the least and the most digits to try                   */
    int power_of_two;  /* the next value above is farther away than the one below */
    int (*reads_back)(const void *ctx, const brc_decimal *decimal);
    const void *ctx;
} brc_shortest;
void brc_shortest_text(char *out, const brc_shortest *shortest);

/* Loads an element of up to 8 bytes, little-endian. */
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
