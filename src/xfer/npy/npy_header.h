/*
 * The header of a .npy file (NumPy's NEP 1, numpy/lib/format.py):
 *
 *   93 'N' 'U' 'M' 'P' 'Y'  major minor  length (LE: u16 in 1.0, u32 in 2.0, 3.0)
 *   {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }   spaces  \n
 *
 * The text is a Python literal, Latin-1 in 1.0 and 2.0, UTF-8 in 3.0. Exactly the
 * three keys, in any order. Nothing is evaluated.
 */
#ifndef BRC_XFER_NPY_HEADER_H
#define BRC_XFER_NPY_HEADER_H

#include "../../base/buf.h"

#define BRC_NPY_MAGIC "\x93NUMPY"
#define BRC_NPY_MAGIC_LEN 6
#define BRC_NPY_HEADER_MAX ((uint32_t)1 << 20) /* longest text that is read       */

typedef struct brc_npy_header {
    const char *descr; /* in the text, without quotes where it is a string     */
    size_t descr_len;
    int structured; /* descr is not a string: a list of fields, say            */
    int fortran;
    int ndim;
    uint64_t shape[BRC_MAX_NDIM];
} brc_npy_header;

/* BRC_EINVAL says what is wrong and at which byte; BRC_ELIMIT for more axes than
 * BRC_MAX_NDIM or an extent past 64 bits. */
BRC_MUST_USE int brc_npy_header_parse(brc_npy_header *out, const char *text, size_t len,
                                      brc_error *err);
/* Appends all that precedes the elements; its length is a multiple of 64. */
BRC_MUST_USE int brc_npy_header_write(brc_buf *out, const char *descr, int ndim,
                                      const uint64_t *shape, brc_error *err);

#endif
