/* .npy and .npz files as sources and destinations. */
#ifndef BRC_XFER_NPY_NPY_H
#define BRC_XFER_NPY_NPY_H

#include "../../base/buf.h"
#include "../../codec/registry.h"
#include "../../zarr/transfer.h"
#include "../elements.h"
#include "../formats.h"

/* ---- npy header -------------------------------- */

/*
 * The header of a .npy file (NumPy's NEP 1, numpy/lib/format.py):
 *
 *   93 'N' 'U' 'M' 'P' 'Y'  major minor  length (LE: u16 in 1.0, u32 in 2.0, 3.0)
 *   {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }   spaces  \n
 *
 * The text is a Python literal, Latin-1 in 1.0 and 2.0, UTF-8 in 3.0. Exactly the
 * three keys, in any order. Nothing is evaluated.
 */

#define BRC_NPY_MAGIC "\x93NUMPY"
#define BRC_NPY_MAGIC_LEN 6
#define BRC_NPY_HEADER_MAX ((uint32_t)1 << 20) /* the longest text that is read   */

typedef struct brc_npy_header {
    const char *descr; /* within the text, without quotes if it is a string    */
    size_t descr_len;
    int structured; /* descr is not a string: a list of fields, for example    */
    int fortran;
    int ndim;
    uint64_t shape[BRC_MAX_NDIM];
} brc_npy_header;

/* Parses a header. BRC_EINVAL names the fault and its byte; BRC_ELIMIT for more axes than BRC_MAX_NDIM or an extent
 * past 64 bits. */
BRC_MUST_USE int brc_npy_header_parse(brc_npy_header *out, const char *text, size_t len,
                                      brc_error *err);
/* Appends everything before the elements; the length is a multiple of 64. */
BRC_MUST_USE int brc_npy_header_write(brc_buf *out, const char *descr, int ndim,
                                      const uint64_t *shape, brc_error *err);

/* ---- npy -------------------------------- */

/* Reads the header, up to the first element, and checks the file's size. */
BRC_MUST_USE int brc_npy_open(brc_elements *out, brc_input *in, const brc_registry *reg,
                              brc_error *err);

/* ---- npy out -------------------------------- */

/* Produces a .npy file with the selected elements of an array, piece by piece: the header, then runs of elements,
 * little-endian in C order. */

typedef struct brc_npy_out {
    uint64_t size; /* bytes in all */
    /* private */
    brc_dtype *type;
    brc_sel sel;
    brc_buf header;
    brc_element_runs runs;
    int begun;
} brc_npy_out;

/* Starts the file. The array must outlive `out`. BRC_EUNSUPPORTED if NumPy lacks the data type. */
BRC_MUST_USE int brc_npy_out_start(brc_npy_out *out, brc_array *a, const brc_sel *sel,
                                   const brc_registry *reg, brc_error *err);
/* Returns 1 with the next *piece, valid until the next call; 0 at the end. */
BRC_MUST_USE int brc_npy_out_next(brc_npy_out *out, brc_span *piece, brc_error *err);
void brc_npy_out_stop(brc_npy_out *out);

/* Writes the file dest; refuses an existing file unless `replace`. */
BRC_MUST_USE int brc_npy_save(brc_array *a, const brc_sel *sel, const char *dest, int replace,
                              brc_error *err);

#endif
