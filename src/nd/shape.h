/* Shapes, regular grids and the copying of boxes. Everything works for rank 0. */
#ifndef BRC_ND_SHAPE_H
#define BRC_ND_SHAPE_H

#include "../base/alloc.h"

/* ---- shape -------------------------------- */

/* Computes the product of the extents times `unit`. Returns 0 if it does not fit into 64 bits. */
int brc_shape_bytes(int ndim, const uint64_t *shape, uint64_t unit, uint64_t *out);
/* Returns the product of the extents, or UINT64_MAX if it does not fit. */
uint64_t brc_shape_count(int ndim, const uint64_t *shape);

/* Returns the number of chunks along an axis: ceil(extent / chunk), 0 for extent 0. */
static inline uint64_t brc_grid_extent(uint64_t extent, uint64_t chunk)
{
    return extent / chunk + (extent % chunk != 0);
}

static inline uint64_t brc_at_least_one(uint64_t n)
{
    return n > 0 ? n : 1;
}

/* Steps index through the box of `shape` in C order. Returns 0 after the last one. */
int brc_index_next(int ndim, uint64_t *index, const uint64_t *shape);
/* Returns < 0, 0 or > 0: `a` comes before `b`, equals `b`, or comes after it. */
static inline int brc_index_order(int ndim, const uint64_t *a, const uint64_t *b)
{
    for (int i = 0; i < ndim; i++)
        if (a[i] != b[i])
            return a[i] < b[i] ? -1 : 1;
    return 0;
}

/* Chooses the shape of chunks, of about a MiB, each of which is one range of a file that holds all elements in C
 * order, or with the first axis fastest. `pieces`: the elements are in so many pieces along the slowest axis. Only
 * along that axis may a chunk be cut off by the array's end. */
void brc_range_chunks(int ndim, const uint64_t *shape, uint64_t item, int fortran, uint64_t pieces, uint64_t *chunk);

/* Computes the strides, in bytes, of packed elements in C order. */
void brc_strides_packed(int ndim, const uint64_t *shape, size_t item, int64_t *strides);

/* Copies a box of elements between two strided places. Strides are in bytes and may have
 * any value, also zero in src; item is the element's bytes. Runs that are contiguous on
 * both sides are copied at once. */
void brc_copy_box(int ndim, const uint64_t *shape, size_t item, uint8_t *dst, const int64_t *dst_strides,
                  const uint8_t *src, const int64_t *src_strides);
/* A box that lies in two strided places, cut into rectangles of rows: row i is `width` bytes, at + i * pitch in the far
 * place and near + i * near_pitch in the near one, counted in bytes from the first element. */
typedef struct brc_rectangle {
    int64_t at, near;
    size_t pitch, near_pitch;
    size_t width, rows;
} brc_rectangle;
typedef int (*brc_rectangle_fn)(void *ctx, const brc_rectangle *r, brc_error *err);
/* Calls each() for rectangles that together are the box, as few as there can be. */
BRC_MUST_USE int brc_box_rectangles(int ndim, const uint64_t *shape, size_t item, const int64_t *strides,
                                    const int64_t *near_strides, brc_rectangle_fn each, void *ctx, brc_error *err);
/* Writes the same element everywhere in the box. */
void brc_fill_box(int ndim, const uint64_t *shape, size_t item, uint8_t *dst, const int64_t *dst_strides,
                  const uint8_t *element);
/* Writes the same element n times, packed. */
void brc_fill_run(uint8_t *dst, uint64_t n, size_t item, const uint8_t *element);
/* Returns 1 if all n packed elements have the element's bits; stops at the first element
 * that has others. Returns 1 for n 0. */
int brc_all_equal(const uint8_t *data, uint64_t n, size_t item, const uint8_t *element);

/* The part of a selection (a box with steps over an array) that lies in one chunk. */
typedef struct brc_overlap {
    uint64_t count[BRC_MAX_NDIM];    /* elements along each axis; any 0: none */
    uint64_t in_chunk[BRC_MAX_NDIM]; /* first element, from the chunk's corner */
    uint64_t in_sel[BRC_MAX_NDIM];   /* first element, in the selection's result */
    int whole;                       /* covers every element of the chunk that
                                        lies inside the array                 */
} brc_overlap;
/* Computes the overlap with a chunk of any grid, whose first element is `corner`. Returns 0 if there is
 * none. */
int brc_overlap_box(brc_overlap *out, const brc_sel *sel, const uint64_t *shape, const uint64_t *corner, const uint64_t *chunk);
/* Computes the overlap with chunk `index` of a regular grid. Returns 0 if there is none. */
int brc_overlap_of(brc_overlap *out, const brc_sel *sel, const uint64_t *shape, const uint64_t *chunk, const uint64_t *index);

/* Selects all elements of a shape. */
void brc_sel_of_shape(brc_sel *out, int ndim, const uint64_t *shape);
/* Reads a selection in Python's slicing syntax, with or without brackets; see brc_sel_parse(). */
BRC_MUST_USE int brc_sel_read(brc_sel *out, int ndim, const uint64_t *shape, const char *text, brc_error *err);
/* Checks a selection made by hand: BRC_EINVAL if it exceeds the shape. */
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
/* The bytes that are read at once if the caller sets no limit. */
#define BRC_SLAB_BYTES ((size_t)64 << 20)

typedef struct brc_cut {
    brc_sel sel;       /* the current box, as a selection of the array         */
    uint64_t elements; /* in the current box                                   */
    uint64_t most;     /* the most elements of any box                         */
    /* The walk's own. */
    brc_sel within;
    int order[BRC_MAX_NDIM];       /* axes, the slowest one first              */
    uint64_t extent[BRC_MAX_NDIM]; /* of a box, in indices of the selection    */
    uint64_t first[BRC_MAX_NDIM];  /* of the first box: the second begins at a chunk's edge */
    uint64_t at[BRC_MAX_NDIM];     /* where the current box begins             */
    int state;
} brc_cut;

/* Cuts a selection into runs of elements in C order, or with the first axis fastest; the runs come in
 * this order. If `budget` bytes allow it, a run covers whole rows of chunks, so that each chunk is
 * read or written once; a row of chunks may take up to four times the budget, and one element
 * always fits. `within` fits the array. item: bytes of an element; 0: variable. */
void brc_cut_runs(brc_cut *out, const brc_sel *within, const uint64_t *chunk, size_t item,
                  int fortran, uint64_t budget);
/* Returns 1 if the boxes of a cut into runs end where chunks do, so that no chunk is in two of them. */
int brc_cut_is_whole(const brc_cut *cut, const uint64_t *chunk);
/* Cuts a selection into boxes of one chunk, or of as many chunks, from the last axis on, as `budget`
 * bytes allow. A box has several chunks along an axis only if it covers all later axes whole. */
void brc_cut_chunks(brc_cut *out, const brc_sel *within, const uint64_t *chunk, size_t item,
                    uint64_t budget);
/* Sets cut->sel to the next box. Returns 0 if there are no more. */
int brc_cut_next(brc_cut *cut);
/* Computes the bytes from one element of the box to the next along each axis, for a box that lies in
 * memory in the order of the cut. */
void brc_cut_strides(const brc_cut *cut, size_t item, int64_t *strides);

/* Grows the extents of a box to multiples of the extents, from the fastest axis on, as far as `budget` allows,
 * and along an axis only if the faster axes have reached `whole`. `order` NULL: the last axis is the
 * fastest. `bytes` is the size of the box before it grows. */
void brc_cut_grow(int ndim, const int *order, uint64_t *extent, const uint64_t *whole,
                  uint64_t bytes, uint64_t budget);

/* ---- memory -------------------------------- */

/* A caller's memory, as a brc_buffer describes it. */

/* The memory of a checked buffer. */
typedef struct brc_memory {
    uint8_t *origin;        /* the first element                              */
    size_t len;             /* bytes from there to the end of the memory      */
    const int64_t *strides; /* NULL: packed                                   */
    size_t offset;          /* of the first element in the memory             */
    uint32_t device, device_id; /* as in a brc_buffer, as are the next two    */
    const char *prototype;
    void *stream;
} brc_memory;

enum { BRC_MEMORY_IN = 1 /* the source of a write */, BRC_MEMORY_OUT = 2 /* the target of a read */ };

/* Checks the structure. BRC_EINVAL if it is wrong. The memory may be that of a device.
 * brc_memory_fits() checks where the elements lie. */
BRC_MUST_USE int brc_memory_of(brc_memory *out, const brc_buffer *given, int way, brc_error *err);
/* Checks that `count` elements of `item` bytes lie within the memory, which packed elements must fill.
 * For BRC_MEMORY_OUT also that an axis of several elements does not have the stride 0. */
BRC_MUST_USE int brc_memory_fits(const brc_buffer *given, int ndim, const uint64_t *count, size_t item, int way,
                                 brc_error *err);

#endif
