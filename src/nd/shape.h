/* Shapes, regular grids and the copying of boxes. Everything works for rank 0. */
#ifndef BRC_ND_SHAPE_H
#define BRC_ND_SHAPE_H

#include "../base/alloc.h"

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

#endif
