/* Shapes, regular grids and the copying of boxes. Everything works for rank 0. */
#ifndef BRC_ND_SHAPE_H
#define BRC_ND_SHAPE_H

#include "../base/alloc.h"

/* ---- shape -------------------------------- */

/* The product of the extents times `unit`; 0 if it does not fit 64 bits. */
int brc_shape_bytes(int ndim, const uint64_t *shape, uint64_t unit, uint64_t *out);
/* The product as far as it goes: UINT64_MAX if it does not fit. */
uint64_t brc_shape_count(int ndim, const uint64_t *shape);

/* Chunks along an axis: ceil(extent / chunk), 0 for extent 0. */
static inline uint64_t brc_grid_extent(uint64_t extent, uint64_t chunk)
{
    return extent / chunk + (extent % chunk != 0);
}

static inline uint64_t brc_at_least_one(uint64_t n)
{
    return n > 0 ? n : 1;
}

/* Steps index through the box of `shape` in C order; 0 after the last one. */
int brc_index_next(int ndim, uint64_t *index, const uint64_t *shape);
/* Negative, zero or positive: whether `a` comes before, is or comes after `b`. */
static inline int brc_index_order(int ndim, const uint64_t *a, const uint64_t *b)
{
    for (int i = 0; i < ndim; i++)
        if (a[i] != b[i])
            return a[i] < b[i] ? -1 : 1;
    return 0;
}

/* Packed C-order strides in bytes. */
void brc_strides_packed(int ndim, const uint64_t *shape, size_t item, int64_t *strides);

/* Copies a box of elements between two strided places. Strides are in bytes and may have
 * any value, also zero in src; item is the element's bytes. Runs that are contiguous on
 * both sides are copied at once. */
void brc_copy_box(int ndim, const uint64_t *shape, size_t item, uint8_t *dst, const int64_t *dst_strides,
                  const uint8_t *src, const int64_t *src_strides);
/* The same element everywhere in the box. */
void brc_fill_box(int ndim, const uint64_t *shape, size_t item, uint8_t *dst, const int64_t *dst_strides,
                  const uint8_t *element);
/* n packed elements. */
void brc_fill_run(uint8_t *dst, uint64_t n, size_t item, const uint8_t *element);
/* 1 if all n packed elements have the element's bits; stops at the first that
 * does not. n 0: 1. */
int brc_all_equal(const uint8_t *data, uint64_t n, size_t item, const uint8_t *element);

/* A box with steps over an array, cut by one chunk of a regular grid: what part
 * of the selection lies in the chunk. */
typedef struct brc_overlap {
    uint64_t count[BRC_MAX_NDIM];    /* elements along each axis; any 0: none */
    uint64_t in_chunk[BRC_MAX_NDIM]; /* first one, from the chunk's corner    */
    uint64_t in_sel[BRC_MAX_NDIM];   /* first one, in the selection's result  */
    int whole;                       /* covers every element of the chunk that
                                        lies inside the array                 */
} brc_overlap;
/* The chunk of any grid whose first element is `corner`; 0 if nothing overlaps. */
int brc_overlap_box(brc_overlap *out, const brc_sel *sel, const uint64_t *shape, const uint64_t *corner, const uint64_t *chunk);
/* The same for chunk `index` of a regular grid. */
int brc_overlap_of(brc_overlap *out, const brc_sel *sel, const uint64_t *shape, const uint64_t *chunk, const uint64_t *index);

/* All of a shape. */
void brc_sel_of_shape(brc_sel *out, int ndim, const uint64_t *shape);
/* Reads Python's slicing, with or without brackets; see brc_sel_parse(). */
BRC_MUST_USE int brc_sel_read(brc_sel *out, int ndim, const uint64_t *shape, const char *text, brc_error *err);
/* BRC_EINVAL if a selection made by hand leaves the shape. */
BRC_MUST_USE int brc_sel_check(const brc_sel *sel, int ndim, const uint64_t *shape, brc_error *err);

/* ---- cut -------------------------------- */

/*
 * Cutting a selection of an array into boxes that fit into memory: runs of elements in the
 * order in which a file holds them, or whole chunks.
 *
 *   a run, C order, cut along axis 1 of 3:   [i] [j..j+n) [all]
 */

/* The bytes that an element of variable length is assumed to have. */
#define BRC_VARIABLE_BYTES 64
/* How much is read at once if nothing else limits it. */
#define BRC_SLAB_BYTES ((size_t)64 << 20)

typedef struct brc_cut {
    brc_sel sel;       /* the box now, as a selection of the array             */
    uint64_t elements; /* in it                                                */
    uint64_t most;     /* no box has more                                      */
    /* the rest is the walk's own */
    brc_sel within;
    int order[BRC_MAX_NDIM];       /* axes, the slowest one first              */
    uint64_t extent[BRC_MAX_NDIM]; /* of a box, in indices of the selection ... */
    uint64_t first[BRC_MAX_NDIM];  /* ... and of the first: the next begins at a chunk's edge */
    uint64_t at[BRC_MAX_NDIM];     /* where the box begins, by axis            */
    int state;
} brc_cut;

/* Each box is a run of elements in C order, or with the first axis fastest, and the runs come in
 * that order. Where `budget` bytes allow it a run covers whole rows of chunks, so that no chunk is
 * read or written twice; a row of chunks may take up to four times the budget, and one element
 * always fits. `within` fits the array. item: bytes of an element; 0: variable. */
void brc_cut_runs(brc_cut *out, const brc_sel *within, const uint64_t *chunk, size_t item,
                  int fortran, uint64_t budget);
/* Each box is one chunk, or from the last axis on as many chunks as `budget` bytes allow: along an
 * axis only where those behind it are covered whole. */
void brc_cut_chunks(brc_cut *out, const brc_sel *within, const uint64_t *chunk, size_t item,
                    uint64_t budget);
/* 1: cut->sel is the next box; 0: there are no more. */
int brc_cut_next(brc_cut *cut);
/* Bytes from one element of the box to the next along each axis, where it lies in memory in the
 * order of the boxes. */
void brc_cut_strides(const brc_cut *cut, size_t item, int64_t *strides);

/* Extents of boxes, as multiples of what they are: from the fastest axis on as large as `budget`
 * allows, along an axis only where those behind it are `whole`. `order` NULL: the last axis is the
 * fastest; bytes: of a box before. */
void brc_cut_grow(int ndim, const int *order, uint64_t *extent, const uint64_t *whole,
                  uint64_t bytes, uint64_t budget);

#endif
