/* The built-in data types, and what all types have in common. */
#ifndef BRC_ND_DTYPE_H
#define BRC_ND_DTYPE_H

#include "../base/json.h"

/* A static table. */
const brc_dtype_spec *brc_dtype_builtins(size_t *n);

/* The i-th data type, opened into *open where its name alone says all; else NULL. 0 past
 * the end. */
BRC_MUST_USE int brc_registry_each_dtype(const brc_registry *reg, size_t i, brc_dtype **open, brc_dtype_info *out, brc_error *err);
/* Looks up by NumPy's descr, either byte order; *big set for ">". */
BRC_MUST_USE int brc_dtype_open_npy(brc_dtype **out, int *big, const brc_registry *reg, const char *descr, brc_error *err);

/* Appends the type's default element: all bits zero unless the type says else. */
BRC_MUST_USE int brc_dtype_default(const brc_dtype *type, brc_buf *out, brc_error *err);

/* Appends the element as BRC_ELEMENT_QUOTED has it. */
BRC_MUST_USE int brc_dtype_print_quoted(const brc_dtype *type, const uint8_t *element, size_t len, brc_buf *out, brc_error *err);

/* Shortest decimal that reads back as the same value in the type; "NaN",
 * "Infinity", "-Infinity" for the rest. `size` is 2, 4 or 8. Integral values get
 * ".0"; large and small ones an exponent. out holds BRC_FLOAT_TEXT bytes. */
#define BRC_FLOAT_TEXT 40
void brc_float_text(char out[BRC_FLOAT_TEXT], const uint8_t *element, size_t size);
double brc_half_to_double(uint16_t bits);
/* Correctly rounded, half to even; *overflow set where a finite text gives infinity. */
uint16_t brc_half_from_text(const char *text, int *overflow);

/* n elements, each swap_unit reversed; dst may be src. */
void brc_swap_units(uint8_t *dst, const uint8_t *src, size_t len, size_t unit);
/* Canonical (little-endian) to native memory and back; nothing to do on a
 * little-endian host. */
void brc_dtype_native(const brc_dtype *type, uint8_t *data, size_t len);

#endif
