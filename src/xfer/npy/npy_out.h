/* The bytes of a .npy file with the selected elements of an array, piece by piece:
 * the header, then runs of elements, little-endian in C order. */
#ifndef BRC_XFER_NPY_OUT_H
#define BRC_XFER_NPY_OUT_H

#include "../../codec/registry.h"
#include "../../zarr/element_runs.h"

typedef struct brc_npy_out {
    uint64_t size; /* bytes in all */
    /* the rest is its own */
    brc_dtype *type;
    brc_sel sel;
    brc_buf header;
    brc_element_runs runs;
    int begun;
} brc_npy_out;

/* The array must outlive it. BRC_EUNSUPPORTED if NumPy has no such type. */
BRC_MUST_USE int brc_npy_out_start(brc_npy_out *out, brc_array *a, const brc_sel *sel,
                                   const brc_registry *reg, brc_error *err);
/* 1: *piece is the next one, valid until the next call; 0: there are no more. */
BRC_MUST_USE int brc_npy_out_next(brc_npy_out *out, brc_span *piece, brc_error *err);
void brc_npy_out_stop(brc_npy_out *out);

/* Writes the file dest; an existing one is refused, or replaced. */
BRC_MUST_USE int brc_npy_save(brc_array *a, const brc_sel *sel, const char *dest, int replace,
                              brc_error *err);

#endif
