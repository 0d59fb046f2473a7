/* Data types of breccia in Arrow's C data interface. */
#ifndef BRC_ZARR_ARROW_H
#define BRC_ZARR_ARROW_H

#include "arrow_abi.h"
#include "tensor.h"

/* How the values of one element lie in Arrow's buffers. */
enum {
    BRC_ARROW_FIXED = 1, /* one buffer of values                                 */
    BRC_ARROW_BITS,      /* one buffer of bits: booleans                         */
    BRC_ARROW_TIME,      /* as FIXED; not-a-time is null                         */
    BRC_ARROW_BYTES      /* offsets of 64 bits, and bytes                        */
};

/* The form of a data type. An array with several axes has lists of fixed length around it. */
typedef struct brc_arrow_form {
    char format[24];
    int values;      /* BRC_ARROW_*                                              */
    int is_optional; /* elements begin with a byte that says whether they are there */
    uint64_t pair;   /* 2: a complex number is a list of two floats; else 1      */
    size_t item;     /* bytes of a value; 0: variable                            */
} brc_arrow_form;

/* BRC_EUNSUPPORTED: Arrow has no such type. */
BRC_MUST_USE int brc_arrow_form_of(brc_arrow_form *out, const brc_array *a, brc_error *err);

#endif
