/* Elements as real numbers, exactly, and back with one rounding. */
#ifndef BRC_CODECS_LIB_NUMBER_H
#define BRC_CODECS_LIB_NUMBER_H

#include "../../src/breccia_codec.h"

enum { BRC_NUMBER_FINITE, BRC_NUMBER_INFINITE, BRC_NUMBER_NAN };

/* An exact real number: (-1)^negative * mantissa * 2^exponent. The mantissa's top bit is set
 * in a finite number other than zero; zero has mantissa 0. */
typedef struct brc_number {
    int kind, negative, exponent;
    uint64_t mantissa;
} brc_number;

enum {
    BRC_ROUND_NEAREST_EVEN,
    BRC_ROUND_TOWARDS_ZERO,
    BRC_ROUND_TOWARDS_POSITIVE,
    BRC_ROUND_TOWARDS_NEGATIVE,
    BRC_ROUND_NEAREST_AWAY
};
enum { BRC_RANGE_ERROR, BRC_RANGE_CLAMP, BRC_RANGE_WRAP };

/* How the elements of a type represent real numbers: integers of up to 64 bits, floats. */
typedef struct brc_numeric {
    const brc_dtype *type;
    int is_float, is_signed;   /* is_signed is 2 for a float of one byte with -0   */
    size_t size;
    unsigned bits;             /* of an integer                                   */
    int precision, emin, emax; /* of a float of 2 to 8 bytes: hidden bit included */
    int has_nan, has_infinity;
    uint64_t nan, infinity;    /* bit patterns                                    */
    size_t nvalues;            /* of a float of one byte: every finite value,     */
    struct {                   /* from the lowest to the highest                  */
        double value;
        uint8_t bits;
    } values[256];
} brc_numeric;

/* Fails with BRC_EINVAL if the type's elements are not real numbers. */
BRC_MUST_USE int brc_numeric_open(brc_numeric *out, const brc_dtype *type, brc_error *err);
brc_number brc_numeric_load(const brc_numeric *numeric, const uint8_t *element);
/* Stores a number in a type. Fails with BRC_EINVAL if the number is out of the type's range and
 * `range` is BRC_RANGE_ERROR. An infinity is in range if the type has one. */
BRC_MUST_USE int brc_numeric_store(const brc_numeric *numeric, brc_number number, int rounding,
                                   int range, uint8_t *element, brc_error *err);
/* Stores a number as C and NumPy convert it: integers wrap, fractions are cut off, and a number
 * too large for a float becomes infinite. NaN and the infinities become the integer 0. */
void brc_numeric_cast(const brc_numeric *numeric, brc_number number, uint8_t *element);
/* Returns -1, 0 or 1. NaN equals only NaN and is above all other numbers. */
int brc_number_compare(brc_number a, brc_number b);
brc_number brc_number_of_double(double value);
/* Rounds half to even. */
double brc_numeric_to_double(const brc_numeric *numeric, const uint8_t *element);
/* Returns the value of the type that is nearest to `value`; for an integer type, `value` itself. */
double brc_numeric_round(const brc_numeric *numeric, double value);
/* Writes a number as text for messages: "1.5", "NaN". */
#define BRC_NUMBER_TEXT 48
const char *brc_number_text(char out[BRC_NUMBER_TEXT], brc_number number);

#endif
