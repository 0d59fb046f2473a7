/* Regions: a selection of an array with the memory that holds it, processed chunk by chunk. */
#ifndef BRC_ZARR_REGION_H
#define BRC_ZARR_REGION_H

#include "array.h"
#include "places.h"

/* A region of memory, and the part of the array that it holds. */
typedef struct brc_region {
    brc_sel sel;                    /* for positions: how many, step 1            */
    brc_places *places;             /* positions instead of a box; NULL: none     */
    int axes;                       /* of the memory                              */
    const uint64_t *shape;          /* the bounds: the array's, or the whole grid's */
    int64_t strides[BRC_MAX_NDIM];  /* of the memory, in bytes                    */
    /* For a box: */
    uint64_t first[BRC_MAX_NDIM], chunks[BRC_MAX_NDIM]; /* the box of chunks around it */
    uint64_t met[BRC_MAX_NDIM];     /* along each axis: those with an element of the region */
    /* For both: */
    uint64_t nchunks;               /* the number of these chunks                 */
    const brc_grid *grid;           /* the array's                                */
    int in_one_piece;               /* a whole chunk is contiguous in memory      */
} brc_region;
/* Initializes a box. shape NULL: the array's; strides NULL: packed. */
BRC_MUST_USE int brc_region_init(brc_region *r, const brc_array *a, const brc_sel *sel,
                                 const uint64_t *shape, const int64_t *strides, brc_error *err);
/* Initializes the box or the positions of a brc_io; `strides` are those of its memory. brc_region_end() frees the
 * memory of positions. */
BRC_MUST_USE int brc_region_select(brc_region *r, const brc_io *io, const uint64_t *shape,
                                   const int64_t *strides, brc_error *err);
/* The same with the memory, too; `way` is that of brc_memory_of(). */
BRC_MUST_USE int brc_region_of_io(brc_region *r, brc_memory *memory, const brc_io *io, const uint64_t *shape,
                                  int way, brc_error *err);
void brc_region_end(brc_region *r);
/* Returns the index of the i-th chunk that has an element of the region. */
void brc_region_chunk(const brc_region *r, int ndim, uint64_t i, uint64_t *index);
/* One chunk of a region: its index, and the selected part of it. */
typedef struct brc_region_part {
    uint64_t index[BRC_MAX_NDIM];
    uint64_t chunk[BRC_MAX_NDIM]; /* its shape                                    */
    uint64_t elements;
    int full;                     /* every element is selected, also those outside the array */
    brc_overlap overlap;
    int64_t in_memory;            /* offset of the overlap in the region's memory */
    int64_t in_chunk;             /* and in the chunk's memory                    */
    int64_t strides[BRC_MAX_NDIM]; /* from one selected element of the chunk to the next */
    uint64_t piece[BRC_MAX_NDIM]; /* for positions: see places.h; `overlap` is the box around them */
    uint64_t corner[BRC_MAX_NDIM];
} brc_region_part;
/* Returns the bytes of the region's elements, counting one byte for each element of variable length; at least 1. */
uint64_t brc_region_bytes(const brc_array *a, const brc_region *r);
/* Reports to progress that `chunks` of the region are done; *told: the bytes reported so far. */
BRC_MUST_USE int brc_region_step(brc_array *a, const brc_region *r, uint64_t *told, uint64_t chunks, brc_error *err);
void brc_region_part_of(brc_region_part *out, const brc_array *a, const brc_region *r, uint64_t i);
/* Finds a part by its index in the grid, which must be within the region's box of chunks. For boxes only. */
void brc_region_part_at(brc_region_part *out, const brc_array *a, const brc_region *r, const uint64_t *index);
/* Copy the selected elements between a chunk and the region's memory. */
void brc_region_take(const brc_array *a, const brc_region *r, const brc_region_part *part, uint8_t *memory,
                     const uint8_t *chunk);
void brc_region_put(const brc_array *a, const brc_region *r, const brc_region_part *part, const uint8_t *memory,
                    uint8_t *chunk);
/* Sets the same element everywhere that brc_region_take() would write. */
void brc_region_fill(const brc_array *a, const brc_region *r, const brc_region_part *part, uint8_t *memory,
                     const uint8_t *element);

/* ---- elements of variable length -------------------------------- */

/* Converts between their packed form (the length as a little-endian uint32, and the bytes) and spans, in a table or in
 * sequence. */

/* A position in packed elements. */
typedef struct brc_element_cursor {
    brc_span packed;
    size_t at;
    uint64_t number; /* of the next element */
} brc_element_cursor;

/* Returns the next element, with its length prefix; BRC_EINVAL if the bytes end within the element. */
BRC_MUST_USE int brc_element_next(brc_element_cursor *cursor, brc_span *out, brc_error *err);
/* Fails with BRC_EINVAL if bytes are left. */
BRC_MUST_USE int brc_elements_end(const brc_element_cursor *cursor, brc_error *err);

/* Points table[0..n) to the elements, with their length prefixes; BRC_EINVAL unless the bytes hold exactly n of
 * them. */
BRC_MUST_USE int brc_elements_find(brc_span *table, uint64_t n, brc_span packed, brc_error *err);
/* Appends the elements in sequence. */
BRC_MUST_USE int brc_elements_pack(brc_buf *out, const brc_span *table, uint64_t n, brc_error *err);

/* A chunk of elements of variable length that is about to be written, as a table of spans. */

/* Makes the item's canonical bytes, for gather(). An element to which table[0..item->elements) does not point (data
 * NULL) is the old element (item->old), or the fill value. The table is overwritten. */
BRC_MUST_USE int brc_gather_elements(brc_write_item *item, brc_span *table, const brc_meta *m,
                                     brc_scratch *scratch, brc_error *err);

#endif
