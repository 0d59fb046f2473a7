/*
 * Elements by position: index arrays, sorted into the chunks of a grid.
 *
 * The selection is a product of its axes, and so are the chunks that hold a part of it: each axis has
 * a list of parts, one for each row of chunks that it meets. Points have a single list.
 *
 *      index    7 0 3 9 1         chunks of 4
 *      order    1 2 4 0 3         places in `index`, chunk by chunk; within a chunk as they come
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

/* The chunks of a grid that a selection meets, and the part of the selection in each. */

/* The selected places that are in a box: along each axis `n` of them, from `from` on. */
typedef struct brc_sel_part {
    uint64_t from[BRC_MAX_NDIM], n[BRC_MAX_NDIM];
} brc_sel_part;

/* Returns 0 if the box has none. */
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
/* Lists the chunks of the grid that the selection meets. *listed 0: there may be more than `most`, and none is
 * listed. */
BRC_MUST_USE int brc_sel_chunks(brc_chunk_keys *list, int *listed, const brc_sel *sel, const brc_grid *grid, uint64_t most,
                                brc_error *err);

/* ---- places -------------------------------- */

typedef struct brc_place_axis {
    const int64_t *index; /* the caller's; NULL: start, step                    */
    uint64_t start, step, count;
    uint64_t extent;      /* the array's; negative indexes count from it         */
} brc_place_axis;

typedef struct brc_place_parts {
    uint64_t *order;      /* NULL: the places come in the order of chunks        */
    uint64_t *from;       /* n + 1 numbers                                       */
    uint64_t *chunk;      /* along the axis; for points along all axes: n * ndim */
    uint64_t n;
} brc_place_parts;

typedef struct brc_places {
    int ndim;
    int points;
    const brc_grid *grid;
    brc_place_axis axis[BRC_MAX_NDIM];
    brc_place_parts parts[BRC_MAX_NDIM]; /* for points only the first            */
} brc_places;

/* Makes the lists; BRC_EINVAL if a position is outside the shape. The grid and the caller's index arrays must
 * outlive them. Call brc_places_free() also after a failure. */
BRC_MUST_USE int brc_places_new(brc_places **out, const brc_at *at, const brc_grid *grid, const uint64_t *shape,
                                brc_error *err);
void brc_places_free(brc_places *p);

/* Returns the number of chunks that are met; UINT64_MAX if the number does not fit. */
uint64_t brc_places_chunks(const brc_places *p);
/* Finds the i-th of these chunks, as the number of its part in each list. */
void brc_places_piece(const brc_places *p, uint64_t i, uint64_t *piece);
/* Finds its index in the grid. */
void brc_places_chunk(const brc_places *p, const uint64_t *piece, uint64_t *index);
/* Finds the box around the selected part of the chunk, and whether it is everything of the chunk that lies inside
 * the array. */
void brc_places_bounds(const brc_places *p, const uint64_t *piece, const uint64_t *corner,
                       const uint64_t *chunk, brc_overlap *out);

/* One chunk's elements, and the place of the selected ones in memory. Strides are in bytes. */
typedef struct brc_places_move {
    const brc_places *places;
    const uint64_t *piece, *corner;
    size_t unit;
    uint8_t *memory, *chunk;         /* the first element of each               */
    const int64_t *in_memory, *in_chunk;
    int to_chunk;                    /* otherwise to memory                     */
} brc_places_move;
/* Copies the elements. If several are copied to one place, the last one stays. */
void brc_places_copy(const brc_places_move *m);

#endif
