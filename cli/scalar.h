/*
 * scalar.h - elements of arrays as numbers.
 */
#ifndef BRC_CLI_SCALAR_H
#define BRC_CLI_SCALAR_H

#include <stddef.h>
#include <stdint.h>

#include "../src/breccia.h"

/* How an element becomes a number. */
enum cli_number {
    CLI_NO_NUMBER,
    CLI_BOOL, CLI_I8, CLI_I16, CLI_I32, CLI_I64, CLI_U8, CLI_U16, CLI_U32, CLI_U64, CLI_F16, CLI_F32, CLI_F64,
    CLI_TIME,  /* int64, and NaT is NaN                                        */
    CLI_SPAN,  /* likewise, of elapsed time: only decoders (decode.h) know them */
    CLI_BY_TEXT /* other numbers: as they are printed                          */
};

enum cli_number cli_number_of(const brc_array_info *info);
/* Tells whether the numbers are integers of 1 to 8 bytes. */
int cli_number_is_int(enum cli_number number);
/* Returns the name of the data type of one that is no CLI_TIME, CLI_SPAN, CLI_BY_TEXT or CLI_NO_NUMBER. */
const char *cli_number_name(enum cli_number number);
size_t cli_number_size(enum cli_number number);
/* Returns the number from the bit pattern of a float16. */
double cli_half_number(uint16_t bits);
/* Reads an element of such a type. A long double holds every number of 64 bits. */
long double cli_number_get(enum cli_number number, const void *element);
/* Writes an element of such a type but float16, and returns its size. The number is in its range. */
size_t cli_number_put(enum cli_number number, long double value, void *element);
/* Sets the bounds of an integer type. */
void cli_number_range(enum cli_number number, long double *low, long double *high);

/* Returns the bytes of the element at `at`. An element of variable length begins with a count of its other bytes. */
size_t cli_element_len(const brc_array_info *info, const uint8_t *at);

#endif
