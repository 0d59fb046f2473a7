/*
 * Elements by their positions: index arrays, sorted into the chunks of a grid.
 *
 * Axis by axis, what is selected is a product, and so are the chunks that have some of it: along
 * each axis there is a list of parts, one for each row of chunks that is met. Points have one list.
 *
 *      index    7 0 3 9 1         chunks of 4
 *      order    1 2 4 0 3         places in `index`, chunk by chunk; in a chunk as they come
 *      from     0     3 4 5       where in `order` each part begins, and the end
 *      chunk    0     1 2
 *
 * Place k of the index array is place k of the memory along that axis, or along its only one.
 */
#ifndef BRC_ZARR_PLACES_H
#define BRC_ZARR_PLACES_H

#include "../../base/alloc.h"
#include "../../nd/shape.h"
#include "../doc/grid.h"

/* ---- sel chunks -------------------------------- */

/* The chunks of a grid that a selection meets, and which parts of the selection they have. */

/* Along each axis, which of the selected places are in a box: from `from` on, `n` of them. */
typedef struct brc_sel_part {
    uint64_t from[BRC_MAX_NDIM], n[BRC_MAX_NDIM];
} brc_sel_part;

/* 0 if none is. */
int brc_sel_part_of(brc_sel_part *out, const brc_sel *sel, const uint64_t *corner, const uint64_t *extent);

/* Keys of chunks, sorted. */
typedef struct brc_chunk_keys {
    brc_arena memory;
    brc_span *keys;
    size_t n, cap;
} brc_chunk_keys;
#define BRC_CHUNK_KEYS_INIT { BRC_ARENA_INIT, NULL, 0, 0 }

void brc_chunk_keys_dispose(brc_chunk_keys *list);
BRC_MUST_USE int brc_chunk_keys_add(brc_chunk_keys *list, brc_span key, brc_error *err);
/* Lists the chunks of the grid that the selection meets. *listed 0: there may be more than `most` of them,
 * and none is listed. */
BRC_MUST_USE int brc_sel_chunks(brc_chunk_keys *list, int *listed, const brc_sel *sel, const brc_grid *grid, uint64_t most,
                                brc_error *err);

/* ---- places -------------------------------- */

typedef struct brc_place_axis {
    const int64_t *index; /* the caller's; NULL: start, step                    */
    uint64_t start, step, count;
    uint64_t extent;      /* of the array: what negative indexes count from      */
} brc_place_axis;

typedef struct brc_place_parts {
    uint64_t *order;      /* NULL: they come in the order of chunks              */
    uint64_t *from;       /* n + 1 of them                                       */
    uint64_t *chunk;      /* along the axis; of points along all axes: n * ndim  */
    uint64_t n;
} brc_place_parts;

typedef struct brc_places {
    int ndim;
    int points;
    const brc_grid *grid;
    brc_place_axis axis[BRC_MAX_NDIM];
    brc_place_parts parts[BRC_MAX_NDIM]; /* of points the first alone            */
} brc_places;

/* BRC_EINVAL where a position is outside of the shape. The grid, and the caller's index arrays, must
 * stay. After a failure, too, brc_places_free() releases what was made. */
BRC_MUST_USE int brc_places_new(brc_places **out, const brc_at *at, const brc_grid *grid, const uint64_t *shape,
                                brc_error *err);
void brc_places_free(brc_places *p);

/* How many chunks are met: UINT64_MAX if they are more than fit. */
uint64_t brc_places_chunks(const brc_places *p);
/* The i-th of them, as the number of its part in each list. */
void brc_places_piece(const brc_places *p, uint64_t i, uint64_t *piece);
/* Where it is in the grid. */
void brc_places_chunk(const brc_places *p, const uint64_t *piece, uint64_t *index);
/* The box around what of it is selected, and whether that is all of the chunk that lies inside the array. */
void brc_places_bounds(const brc_places *p, const uint64_t *piece, const uint64_t *corner,
                       const uint64_t *chunk, brc_overlap *out);

/* One chunk's elements, and where the selected ones are in memory. Strides are in bytes. */
typedef struct brc_places_move {
    const brc_places *places;
    const uint64_t *piece, *corner;
    size_t unit;
    uint8_t *memory, *chunk;         /* the first element of each               */
    const int64_t *in_memory, *in_chunk;
    int to_chunk;                    /* else to memory                          */
} brc_places_move;
/* Of elements that are put to one place the last stays. */
void brc_places_copy(const brc_places_move *m);

#endif
