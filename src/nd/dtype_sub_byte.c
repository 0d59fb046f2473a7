/*
 * Types of less than a byte per number, stored as one byte per number.
 *
 * The value lies in the low bits. Writers differ in what they put above it, so
 * readers ignore that; canonical elements are sign-extended (signed integers) or
 * zero-extended (all others), so that equal values have equal bits.
 */
#include "dtype_ops.h"

void brc_sub_byte_normalize(const brc_dtype *type, uint8_t *data, size_t n)
{
    unsigned bits = type->bits / (unsigned)type->item_size;
    size_t len = n * type->item_size;
    uint8_t mask = (uint8_t)((1u << bits) - 1);
    unsigned sign = type->klass == BRC_CLASS_INT ? 1u << (bits - 1) : 0;
    for (size_t i = 0; i < len; i++)
        data[i] = (uint8_t)(((data[i] & mask) ^ sign) - sign);
}
